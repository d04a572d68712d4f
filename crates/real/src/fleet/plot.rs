//! What each edge learnt over time, as an SVG.

use trimtab_lab::report::figure::{Line, compose, panel};

use super::result::FleetRun;

/// Draws the best guess of each knob over the time of learning, a line for each edge.
pub fn plot(run: &FleetRun) -> String {
    let names: Vec<String> = run.edges.iter().map(|edge| edge.name.clone()).collect();
    let knobs = run.edges.first().map(|edge| edge.default.keys()).into_iter().flatten();
    let panels: Vec<String> = knobs
        .map(|knob| {
            let line = |(colour, edge): (usize, &super::EdgeResult)| {
                let at = |moment: &super::Moment| Some((moment.at_s, *moment.guess.get(knob)?));
                Line { colour, points: edge.course.iter().filter_map(at).collect() }
            };
            let lines: Vec<Line> = run.edges.iter().enumerate().map(line).collect();
            panel("seconds of learning", false, knob, &lines)
        })
        .collect();
    if panels.is_empty() { String::new() } else { compose(&names, &panels) }
}
