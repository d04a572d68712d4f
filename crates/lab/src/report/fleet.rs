//! A simulated fleet as a figure: reward by window, and regret.

use crate::fleet::FleetResult;

use super::figure::{Line, panel};
use super::look::{Look, looks};
use super::sheet::{Arrangement, compose};

/// Draws the rewards of all schemes with the first service, and their regret where there is something to regret.
pub fn plot(result: &FleetResult) -> String {
    let Some(service) = result.services.first() else {
        return compose(&[], &[], Arrangement::Row);
    };
    let at = |w: usize, of: usize| (w + 1) as f64 / of as f64 * result.intervals as f64;
    let points = |values: &[f64]| {
        values.iter().enumerate().map(|(w, &v)| (at(w, values.len()), v)).collect()
    };
    let names: Vec<&str> = service.schemes.iter().map(|c| c.name.as_str()).collect();
    let looks = looks(&names);
    let all = || service.schemes.iter().zip(&looks);
    let legend: Vec<(String, Look)> = all().map(|(c, look)| (c.name.clone(), *look)).collect();
    let lines: Vec<Line> =
        all().map(|(c, &look)| Line { look, points: points(&c.windows) }).collect();
    let mut panels = vec![panel("intervals", false, "mean reward", &lines)];
    let regret: Vec<Line> = all()
        .filter(|(c, _)| !c.regret.is_empty())
        .map(|(c, &look)| Line { look, points: points(&c.regret) })
        .collect();
    if !regret.is_empty() {
        panels.push(panel("intervals", false, "regret per aggregate", &regret));
    }
    compose(&legend, &panels, Arrangement::Row)
}
