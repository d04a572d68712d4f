//! What each edge learnt over time, as an SVG.

use trimtab_lab::report::figure::{Line, panel};
use trimtab_lab::report::look::{Look, looks};
use trimtab_lab::report::sheet::{Arrangement, compose};

use super::result::FleetRun;

/// Draws the best guess of each knob over the time of learning, a line for each edge.
pub fn plot(run: &FleetRun) -> String {
    let names: Vec<&str> = run.edges.iter().map(|edge| edge.name.as_str()).collect();
    let looks = looks(&names);
    let edges = || run.edges.iter().zip(&looks);
    let legend: Vec<(String, Look)> =
        edges().map(|(edge, look)| (edge.name.clone(), *look)).collect();
    let knobs = run.edges.first().map(|edge| edge.default.keys()).into_iter().flatten();
    let panels: Vec<String> = knobs
        .map(|knob| {
            let line = |(edge, &look): (&super::EdgeResult, &Look)| {
                let at = |moment: &super::Moment| Some((moment.at_s, *moment.guess.get(knob)?));
                Line { look, points: edge.course.iter().filter_map(at).collect() }
            };
            let lines: Vec<Line> = edges().map(line).collect();
            panel("seconds of learning", false, knob, &lines)
        })
        .collect();
    compose(&legend, &panels, Arrangement::Row)
}
