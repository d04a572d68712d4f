//! A simulated fleet as a figure: reward by window, and regret.

use crate::fleet::FleetResult;

use super::figure::{Line, Pen, compose, panel};

/// Draws the rewards of all schemes with the first service, and their regret where there is something to regret.
pub fn plot(result: &FleetResult) -> String {
    let Some(service) = result.services.first() else { return compose(&[], &[]) };
    let at = |w: usize, of: usize| (w + 1) as f64 / of as f64 * result.intervals as f64;
    let points = |values: &[f64]| {
        values.iter().enumerate().map(|(w, &v)| (at(w, values.len()), v)).collect()
    };
    let legend: Vec<(String, Pen)> = service
        .schemes
        .iter()
        .enumerate()
        .map(|(i, c)| (c.name.clone(), Pen::numbered(i)))
        .collect();
    let lines: Vec<Line> = service
        .schemes
        .iter()
        .enumerate()
        .map(|(i, c)| Line { pen: Pen::numbered(i), points: points(&c.windows) })
        .collect();
    let mut panels = vec![panel("intervals", false, "mean reward", &lines)];
    let regret: Vec<Line> = service
        .schemes
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.regret.is_empty())
        .map(|(i, c)| Line { pen: Pen::numbered(i), points: points(&c.regret) })
        .collect();
    if !regret.is_empty() {
        panels.push(panel("intervals", false, "regret per aggregate", &regret));
    }
    compose(&legend, &panels)
}
