//! Normalised delay and throughput of every scheme, with the ellipses of their deviations (Floo, figures 8
//! and 17).

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Axis, Drawn, FigureError, Frame, Scale, Subject, open, path};
use crate::report::sheet::Arrangement;
use crate::result::RunRecord;
use crate::stats::Moments;
use crate::stats::summary::{PairKey, in_order, keyed};

/// Of a panel.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 340.0;

/// Points of an ellipse.
const POINTS: u32 = 72;

/// The panels of the figure: a title, and parts of the names of its traces. Without parts it has all.
pub type Panels = BTreeMap<String, Vec<String>>;

/// A run in the plane: its round-trip time over the least that any scheme had at the same place, and its
/// throughput over the most.
#[derive(Clone, Debug)]
pub(crate) struct Normalised {
    /// Whose.
    pub(crate) cc: String,
    /// Where.
    pub(crate) key: PairKey,
    /// 1 for the least, and above.
    pub(crate) delay: f64,
    /// 1 for the most, and below.
    pub(crate) throughput: f64,
}

/// Every run, normalised to the best of all schemes at its place (Floo, section 5.2).
pub(crate) fn normalised(runs: &[&RunRecord]) -> Vec<Normalised> {
    let mut places: BTreeMap<PairKey, Vec<&RunRecord>> = BTreeMap::new();
    for cc in in_order(runs.iter().map(|run| run.cc.as_str())) {
        let own = keyed(runs.iter().copied().filter(|run| run.cc == cc));
        own.into_iter().for_each(|(key, run)| places.entry(key).or_default().push(run));
    }
    let of_place = |(key, runs): (PairKey, Vec<&RunRecord>)| {
        let least = runs.iter().map(|run| run.rtt_ms.mean).fold(f64::INFINITY, f64::min);
        let most = runs.iter().map(|run| run.throughput_mbps).fold(0.0, f64::max);
        let one = move |run: &RunRecord| Normalised {
            cc: run.cc.clone(),
            key: key.clone(),
            delay: run.rtt_ms.mean / least,
            throughput: run.throughput_mbps / most,
        };
        // Where nothing arrived there is nothing to be a share of.
        let runs = if least > 0.0 && most > 0.0 { runs } else { Vec::new() };
        runs.into_iter().map(one).collect::<Vec<_>>()
    };
    places.into_iter().flat_map(of_place).collect()
}

/// The runs of a scheme on the traces of a panel, summed up. Without parts of names these are all.
pub(crate) fn moments(all: &[Normalised], cc: &str, parts: &[String]) -> Moments {
    let is_in = |trace: &str| parts.is_empty() || parts.iter().any(|part| trace.contains(part));
    let own = all.iter().filter(|run| run.cc == cc && is_in(run.key.trace()));
    own.fold(Moments::default(), |sum, run| sum + Moments::of(run.delay, run.throughput))
}

pub(super) fn ellipses(subject: &Subject<'_>, panels: &Panels) -> Result<Drawn, FigureError> {
    let all = normalised(&subject.runs);
    let names: Vec<String> = in_order(subject.runs.iter().map(|run| run.cc.as_str()))
        .into_iter()
        .map(str::to_owned)
        .collect();
    let whole = Panels::from([(String::new(), Vec::new())]);
    let panels = if panels.is_empty() { &whole } else { panels };
    let panel = |(title, parts): (&String, &Vec<String>)| {
        let of = |cc: &String| moments(&all, cc, parts);
        draw(subject, title, &names, &names.iter().map(of).collect::<Vec<_>>())
    };
    let panels: Vec<String> = panels.iter().filter_map(panel).collect();
    if panels.is_empty() {
        return Err(FigureError::NoSpread);
    }
    Ok(Drawn { names, panels, arrangement: Arrangement::Row })
}

/// A panel; nothing where nobody has two runs.
fn draw(subject: &Subject<'_>, title: &str, names: &[String], all: &[Moments]) -> Option<String> {
    let looks = subject.looks(names);
    let ellipses = all.iter().zip(looks).filter_map(|(sum, look)| Some((sum.ellipse()?, look)));
    let ellipses: Vec<_> = ellipses.map(|(e, look)| (e, e.outline(POINTS), look)).collect();
    if ellipses.is_empty() {
        return None;
    }
    let frame = Frame::new(WIDTH, HEIGHT);
    let points = || ellipses.iter().flat_map(|(_, outline, _)| outline.iter().copied());
    // Less delay is better, so it grows to the left.
    let scale = Scale::linear(points().map(|(x, _)| x), frame.right, frame.left);
    let of = if title.is_empty() { String::new() } else { format!("{title}: ") };
    let label = format!("{of}RTT over the least (better →)");
    let x = Axis { scale, label: &label };
    let scale = Scale::linear(points().map(|(_, y)| y), frame.bottom, frame.top);
    let y = Axis { scale, label: "throughput over the most (better →)" };
    let mut svg = open(frame, &label, &x, &y);
    for (ellipse, outline, look) in &ellipses {
        let (classes, dashes) = (look.classes(), look.dashes());
        let drawn = path(outline.iter().map(|(px, py)| (x.scale.at(*px), y.scale.at(*py))));
        let (px, py) = (x.scale.at(ellipse.mean.0), y.scale.at(ellipse.mean.1));
        let _ = writeln!(
            svg,
            "<path class=\"line {classes}\"{dashes} d=\"{drawn}\"/>\
             <path class=\"marker {classes}\" transform=\"translate({px:.1} {py:.1})\" d=\"{}\"/>",
            look.marker()
        );
    }
    Some(svg + "</svg>")
}
