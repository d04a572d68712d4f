//! What each edge learnt over time, as an SVG.

use trimtab_lab::report::figure::{Line, Pen, compose, panel};

use super::result::FleetRun;

/// Draws the best guess of each knob over the time of learning, a line for each edge.
pub fn plot(run: &FleetRun) -> String {
    let edges = || run.edges.iter().enumerate();
    let legend: Vec<(String, Pen)> =
        edges().map(|(i, edge)| (edge.name.clone(), Pen::numbered(i))).collect();
    let knobs = run.edges.first().map(|edge| edge.default.keys()).into_iter().flatten();
    let panels: Vec<String> = knobs
        .map(|knob| {
            let line = |(i, edge): (usize, &super::EdgeResult)| {
                let at = |moment: &super::Moment| Some((moment.at_s, *moment.guess.get(knob)?));
                Line { pen: Pen::numbered(i), points: edge.course.iter().filter_map(at).collect() }
            };
            let lines: Vec<Line> = edges().map(line).collect();
            panel("seconds of learning", false, knob, &lines)
        })
        .collect();
    if panels.is_empty() { String::new() } else { compose(&legend, &panels) }
}
