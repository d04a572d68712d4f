//! Figures of lines: over an axis of the grid, over selection periods, and distributions over runs.

use std::fmt::Write;

use trimtab_units::Duration;

use super::{Axis, Drawn, FigureError, Frame, Scale, Subject, marked, open, path};
use crate::report::look::Look;
use crate::report::sheet::{Arrangement, MARK};
use crate::result::{RctRecord, RunRecord, SwitchRecord};
use crate::stats::Sorted;
use crate::stats::summary::in_order;

/// Of a panel.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;

/// A line of a panel.
#[derive(Clone, Debug)]
pub struct Line {
    /// How it is drawn.
    pub look: Look,
    /// It breaks where a number is not finite.
    pub points: Vec<(f64, f64)>,
}

/// A quantity of a run's place in the grid, with its unit.
type Place = (&'static str, fn(&RunRecord) -> f64);

const PLACES: [Place; 6] = [
    ("base round-trip time, ms", |run| run.cell.rtt_ms),
    ("buffer, KB", |run| run.cell.buffer_bytes as f64 / 1e3),
    ("random loss, %", |run| run.cell.loss * 100.0),
    ("jitter, ms", |run| run.cell.jitter_ms),
    ("flows", |run| f64::from(run.cell.flows)),
    // Competitors come last among the flows of a run.
    ("competing flows", |run| {
        run.flow_throughput_mbps.len().saturating_sub(run.cell.flows as usize) as f64
    }),
];

pub(super) fn along(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    let has_several = |place: &Place| {
        runs.iter().any(|run| runs.first().is_some_and(|first| place.1(run) != place.1(first)))
    };
    let mut several: Vec<Place> = PLACES.into_iter().filter(has_several).collect();
    // A flow alone has no list of flows, so those that compete count only where their sets differ.
    if runs.iter().all(|run| run.cell.rivals.is_empty()) {
        several.retain(|place| place.0 != PLACES[5].0);
    }
    // A buffer in bandwidth-delay products follows the round-trip time.
    if several.len() == 2 && several[0].0 == PLACES[0].0 && several[1].0 == PLACES[1].0 {
        several.pop();
    }
    let [(label, at)] = several[..] else { return Err(FigureError::NoAxis) };
    let names = names(runs.iter().map(|run| run.cc.as_str()));
    let lines = subject.lines(&names, |cc| {
        let own = runs.iter().filter(|run| run.cc == cc);
        means(own.map(|run| (at(run), subject.worth(run))))
    });
    Ok(row(names, vec![panel(label, false, subject.worth_label(), &lines)]))
}

pub(super) fn by_period(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    // What a scheme is called without its period, and the period in seconds.
    let parts = |cc: &str| -> Option<(String, f64)> {
        let every = cc.split(':').find_map(|part| part.strip_prefix("every="))?;
        let seconds = every.parse::<Duration>().ok()?.as_secs_f64();
        Some((cc.replacen(&format!(":every={every}"), "", 1), seconds))
    };
    let with: Vec<(String, f64, f64)> = runs
        .iter()
        .filter_map(|run| parts(&run.cc).map(|(name, seconds)| (name, seconds, subject.worth(run))))
        .collect();
    let mut names = names(with.iter().map(|(name, ..)| name.as_str()));
    let of = |name: &str| {
        means(with.iter().filter(|(n, ..)| n == name).map(|(_, seconds, worth)| (*seconds, *worth)))
    };
    names.retain(|name| of(name).len() > 1);
    if names.is_empty() {
        return Err(FigureError::NoPeriods);
    }
    // Who does not choose is level.
    let ends = || with.iter().filter(|(n, ..)| names.contains(n)).map(|(_, seconds, _)| *seconds);
    let (least, most) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
    let choosing = names.len();
    let level = in_order(runs.iter().map(|run| run.cc.as_str()));
    names.extend(level.into_iter().filter(|cc| parts(cc).is_none()).map(str::to_owned));
    let chooses = |name: &str| names[..choosing].iter().any(|other| other == name);
    let lines = subject.lines(&names, |name| {
        if chooses(name) {
            return of(name);
        }
        let own = runs.iter().filter(|run| run.cc == name);
        let level = means(own.map(|run| (0.0, subject.worth(run))));
        level.first().map_or(Vec::new(), |(_, level)| vec![(least, *level), (most, *level)])
    });
    Ok(row(names, vec![panel("selection period, s", true, subject.worth_label(), &lines)]))
}

pub(super) fn switches(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    let names =
        names(runs.iter().filter(|run| !run.switches.is_empty()).map(|run| run.cc.as_str()));
    if names.is_empty() {
        return Err(FigureError::NoSwitches);
    }
    let distribution = |value: fn(&SwitchRecord) -> Option<f64>| -> Vec<Line> {
        subject.lines(&names, |cc| {
            let own = runs.iter().filter(|run| run.cc == cc).flat_map(|run| &run.switches);
            cumulative(&Sorted::new(own.filter_map(value)))
        })
    };
    let losses = distribution(|switch| Some(switch.loss_ratio * 100.0));
    let label = "% of switches at or below";
    let mut panels = vec![panel("lost in the second after a switch, %", false, label, &losses)];
    // Who never settles counts with the whole turn.
    let settled = distribution(|switch| {
        switch.settles.map(|_| switch.settled_ms.unwrap_or(switch.turn_ms) / 1e3)
    });
    if settled.iter().any(|line| !line.points.is_empty()) {
        panels.push(panel("until the flow had settled, s", false, label, &settled));
    }
    Ok(row(names, panels))
}

/// What sums up the completion times of a run, with what it is called.
type Summary = (&'static str, fn(&RctRecord) -> f64);

pub(super) fn completion(subject: &Subject<'_>) -> Result<Drawn, FigureError> {
    let runs = &subject.runs;
    let names = names(runs.iter().filter(|run| run.rct_ms.is_some()).map(|run| run.cc.as_str()));
    if names.is_empty() {
        return Err(FigureError::NoRequests);
    }
    let distribution = |(label, value): Summary| {
        let lines = subject.lines(&names, |cc| {
            let own = runs.iter().filter(|run| run.cc == cc);
            cumulative(&Sorted::new(own.filter_map(|run| run.rct_ms.as_ref().map(value))))
        });
        panel(label, true, "% of runs at or below", &lines)
    };
    let panels: [Summary; 3] = [
        ("mean completion time of a run, ms", |rct| rct.mean),
        ("its median, ms", |rct| rct.p50),
        ("its 90th percentile, ms", |rct| rct.p90),
    ];
    let panels = panels.into_iter().map(distribution).collect();
    Ok(row(names, panels))
}

fn names<'a>(of: impl Iterator<Item = &'a str>) -> Vec<String> {
    in_order(of).into_iter().map(str::to_owned).collect()
}

fn row(names: Vec<String>, panels: Vec<String>) -> Drawn {
    Drawn { names, panels, arrangement: Arrangement::Row }
}

impl Subject<'_> {
    /// A line for each name.
    fn lines(&self, names: &[String], points: impl Fn(&str) -> Vec<(f64, f64)>) -> Vec<Line> {
        let line = |(name, look): (&String, Look)| Line { look, points: points(name) };
        names.iter().zip(self.looks(names)).map(line).collect()
    }
}

/// The values over which percent are at or below them.
pub(in crate::report) fn cumulative(sorted: &Sorted) -> Vec<(f64, f64)> {
    let point = |i: u32| Some((sorted.percentile(f64::from(i) / 2.0)?, f64::from(i) / 2.0));
    (0..=200).filter_map(point).collect()
}

/// The mean of the second numbers for each of the first, in ascending order.
pub(super) fn means(samples: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut samples: Vec<(f64, f64)> = samples.collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |same: &[(f64, f64)]| {
        (same[0].0, same.iter().map(|(_, y)| y).sum::<f64>() / same.len() as f64)
    };
    samples.chunk_by(|a, b| a.0 == b.0).map(of).collect()
}

/// A panel; its vertical axis is logarithmic where values differ by more than ten times.
pub fn panel(label: &str, log: bool, y_label: &str, lines: &[Line]) -> String {
    let frame = Frame::new(WIDTH, HEIGHT);
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let (xs, ys) = (|| points().map(|(x, _)| x), || points().map(|(_, y)| y));
    let (least, most) =
        (ys().fold(f64::INFINITY, f64::min), ys().fold(f64::NEG_INFINITY, f64::max));
    let scale = if log {
        Scale::log(xs(), frame.left, frame.right)
    } else {
        Scale::from_zero(xs(), frame.left, frame.right)
    };
    let x = Axis { scale, label };
    let scale = if least > 0.0 && most > 10.0 * least {
        Scale::log(ys(), frame.bottom, frame.top)
    } else {
        Scale::linear(ys(), frame.bottom, frame.top)
    };
    let y = Axis { scale, label: y_label };
    let mut svg = open(frame, label, &x, &y);
    for (number, Line { look, points }) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            points.iter().map(|(px, py)| (x.scale.at(*px), y.scale.at(*py))).collect();
        let (classes, dashes) = (look.classes(), look.dashes());
        let drawn = path(points.iter().copied());
        let _ = writeln!(svg, "<path class=\"line {classes}\"{dashes} d=\"{drawn}\"/>");
        for (px, py) in marked(&points, number) {
            let _ = writeln!(
                svg,
                "<path class=\"marker {classes}\" transform=\"translate({px:.1} {py:.1}) scale({MARK})\" d=\"{}\"/>",
                look.marker()
            );
        }
    }
    svg + "</svg>"
}
