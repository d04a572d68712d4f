//! How runs went over time: one group of charts per trace, stacked on one time axis.

use std::fmt::Write;

use trimtab_net::Trace;
use trimtab_units::Duration;

use super::cast::Role;
use super::chart::{Axis, Frame, Scale, escape, open, path};
use crate::result::{RunRecord, Series};

/// Points per line: what a screen can show, and what keeps the file small.
pub(super) const POINTS_MAX: usize = 360;

/// A panel: what it shows, and from where.
struct Panel {
    label: &'static str,
    values: fn(&Series) -> &[f64],
    log: bool,
    height: f64,
}

const THROUGHPUT: Panel = Panel {
    label: "throughput, Mbit/s",
    values: |s| &s.throughput_mbps,
    log: false,
    height: 190.0,
};
const PANELS: [Panel; 5] = [
    THROUGHPUT,
    Panel { label: "queueing delay, ms", values: |s| &s.queue_delay_ms, log: false, height: 150.0 },
    Panel { label: "δ, 1/packet", values: |s| &s.delta, log: true, height: 130.0 },
    Panel { label: "λ", values: |s| &s.lambda, log: true, height: 130.0 },
    Panel { label: "τ", values: |s| &s.tau, log: true, height: 130.0 },
];

/// The charts of one trace: a run per scheme. Schemes that are not `shown` are drawn but hidden
/// until the reader asks for them.
pub(super) fn charts(title: &str, runs: &[(&Role, &RunRecord)], shown: &[&str]) -> Vec<String> {
    let all: Vec<(&Role, &Series)> =
        runs.iter().filter_map(|(role, run)| Some((*role, run.series.as_ref()?))).collect();
    let has_values =
        |panel: &Panel| all.iter().any(|(_, s)| (panel.values)(s).iter().any(|v| v.is_finite()));
    let panels: Vec<&Panel> = PANELS.iter().filter(|p| has_values(p)).collect();
    let chart = |(i, panel): (usize, &&Panel)| {
        // They share the time axis: its name stands below the last one.
        let time = if i + 1 == panels.len() { "time, s" } else { "" };
        chart(title, panel, time, &all, shown)
    };
    panels.iter().enumerate().map(chart).collect()
}

/// The runs on a trace with the seed and the setting of the first one that has a course over time, and
/// that one.
pub(super) fn group<'a>(
    cast: &'a [Role],
    runs: &[&'a RunRecord],
    trace: &str,
) -> Option<(&'a RunRecord, Vec<(&'a Role, &'a RunRecord)>)> {
    let with = || runs.iter().copied().filter(|r| r.series.is_some() && r.trace == trace);
    let first = with().next()?;
    let same = with().filter(|r| r.seed == first.seed && r.cell == first.cell);
    let group = same.filter_map(|r| Some((cast.iter().find(|role| role.cc == r.cc)?, r)));
    Some((first, group.collect()))
}

fn chart(
    title: &str,
    panel: &Panel,
    time: &str,
    all: &[(&Role, &Series)],
    shown: &[&str],
) -> String {
    let mut frame = Frame::new(760.0, panel.height);
    if time.is_empty() {
        frame.bottom += 18.0;
    }
    let end = all
        .iter()
        .map(|(_, s)| s.bin_ms * s.capacity_mbps.len() as f64 / 1000.0)
        .fold(0.0, f64::max);
    let is_throughput = panel.label == THROUGHPUT.label;
    let lines: Vec<(&Role, f64, Vec<f64>)> = all
        .iter()
        .map(|(role, s)| {
            let (bin, values) = thinned(s.bin_ms, (panel.values)(s));
            (*role, bin, values)
        })
        .collect();
    let capacity = all.first().map(|(_, s)| thinned(s.bin_ms, &s.capacity_mbps));
    let values = || {
        let extra = capacity.iter().filter(|_| is_throughput).flat_map(|(_, v)| v.iter());
        lines.iter().flat_map(|(_, _, v)| v.iter()).chain(extra).copied()
    };
    let scale = if panel.log {
        Scale::log(values(), frame.bottom, frame.top)
    } else {
        Scale::from_zero(values(), frame.bottom, frame.top)
    };
    let x = Axis { scale: Scale::exact(0.0, end, frame.left, frame.right), label: time };
    let y = Axis { scale, label: panel.label };
    let mut svg = open(frame, &format!("{title}: {}", panel.label), &x, &y);
    let points = |bin: f64, v: &[f64]| {
        let at = |(i, v): (usize, &f64)| {
            (
                x.scale.at(i as f64 * bin / 1000.0),
                if v.is_finite() { y.scale.at(*v) } else { f64::NAN },
            )
        };
        path(v.iter().enumerate().map(at).collect::<Vec<_>>().into_iter())
    };
    if let (true, Some((bin, v))) = (is_throughput, &capacity) {
        let (d, last) =
            (points(*bin, v), x.scale.at((v.len().saturating_sub(1)) as f64 * bin / 1000.0));
        let (left, bottom) = (frame.left, frame.bottom);
        let _ = writeln!(
            svg,
            "<path class=\"capacity\" d=\"{d}L{last:.1} {bottom}H{left}Z\"><title>capacity</title></path>"
        );
    }
    // Those that are shown come last, on top of the others.
    let is_shown = |role: &Role| shown.contains(&role.cc.as_str());
    for (role, bin, v) in
        lines.iter().filter(|l| !is_shown(l.0)).chain(lines.iter().filter(|l| is_shown(l.0)))
    {
        let extra = if is_shown(role) { "" } else { " class=\"extra\"" };
        let (line, name) = (role.line(), escape(&role.cc));
        let _ = writeln!(
            svg,
            "<g{extra}><path {line} d=\"{}\"><title>{name}</title></path></g>",
            points(*bin, v)
        );
    }
    svg + "</svg>\n"
}

/// The capacity of a trace over one period.
pub(super) fn capacity_chart(name: &str, trace: &Trace) -> String {
    let bin = Duration::from_millis(100);
    let rates: Vec<f64> = trace.rates(bin).iter().map(|r| r.mbps()).collect();
    let (bin_ms, rates) = thinned(bin.as_millis_f64(), &rates);
    let frame = Frame::new(760.0, 300.0);
    let seconds = |i: usize| i as f64 * bin_ms / 1000.0;
    let x = Axis {
        scale: Scale::exact(0.0, seconds(rates.len()), frame.left, frame.right),
        label: "time, s",
    };
    let scale = Scale::from_zero(rates.iter().copied(), frame.bottom, frame.top);
    let y = Axis { scale, label: "capacity, Mbit/s" };
    let points = rates.iter().enumerate().map(|(i, r)| (x.scale.at(seconds(i)), y.scale.at(*r)));
    let last = x.scale.at(seconds(rates.len().saturating_sub(1)));
    let (left, bottom, line) = (frame.left, frame.bottom, path(points));
    let area = format!("<path class=\"capacity\" d=\"{line}L{last:.1} {bottom}H{left}Z\"/>");
    open(frame, &format!("capacity of {name}"), &x, &y) + &area + "</svg>"
}

/// Means over groups of bins, so that no line has more than [`POINTS_MAX`] points; with the new
/// length of a bin.
pub(super) fn thinned(bin_ms: f64, values: &[f64]) -> (f64, Vec<f64>) {
    let group = values.len().div_ceil(POINTS_MAX).max(1);
    let mean = |bins: &[f64]| {
        let (sum, n) =
            bins.iter().filter(|v| v.is_finite()).fold((0.0, 0_u32), |(s, n), v| (s + v, n + 1));
        if n == 0 { f64::NAN } else { sum / f64::from(n) }
    };
    (bin_ms * group as f64, values.chunks(group).map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_are_averaged() {
        let long: Vec<f64> = (0..1200).map(f64::from).collect();
        let (bin, v) = thinned(100.0, &long);
        assert_eq!((bin, v.len(), v[0]), (400.0, 300, 1.5));
        let (bin, v) = thinned(100.0, &[f64::NAN, 2.0]);
        assert_eq!((bin, v.len(), v[1]), (100.0, 2, 2.0));
        assert!(v[0].is_nan());
        assert_eq!(thinned(100.0, &[]).1.len(), 0);
    }
}
