//! The charts that summarise an application: distributions, tradeoffs, means and paired changes.

use std::fmt::Write;

use super::cast::Role;
use super::chart::{Axis, Frame, Scale, escape, marked, open, path};
use super::picture::text_width;
use super::sheet::MARK;
use crate::result::{RunRecord, SummaryRow};
use crate::stats::Sorted;
use trimtab_steer::scheme::is_bound;

/// Points along a distribution's curve.
const CDF_POINTS: u32 = 160;
/// Of names in the report, in the chart's units; sheets have smaller ones.
const NAME_SIZE: f64 = 12.5;

/// The cumulative distribution of a quantity per scheme.
pub(super) fn cdf(title: &str, label: &str, log: bool, samples: &[(&Role, Sorted)]) -> String {
    let frame = Frame::new(460.0, 300.0);
    let all =
        || samples.iter().flat_map(|(_, s)| [s.percentile(0.5), s.percentile(99.5)]).flatten();
    let scale = if log {
        Scale::log(all(), frame.left, frame.right)
    } else {
        Scale::linear(all(), frame.left, frame.right)
    };
    let x = Axis { scale, label };
    let y =
        Axis { scale: Scale::exact(0.0, 100.0, frame.bottom, frame.top), label: "% at or below" };
    let mut svg = open(frame, title, &x, &y);
    for (role, sorted) in samples {
        let points = (0..=CDF_POINTS).filter_map(|i| {
            let percent = 100.0 * f64::from(i) / f64::from(CDF_POINTS);
            Some((x.scale.at(sorted.percentile(percent)?), y.scale.at(percent)))
        });
        let points: Vec<(f64, f64)> = points.collect();
        let (line, name) = (role.line(), escape(&role.cc));
        let drawn = path(points.iter().copied());
        let _ = writeln!(svg, "<path {line} d=\"{drawn}\"><title>{name}</title></path>");
        for (px, py) in marked(&points, role.number) {
            svg += &role.marker(px, py, MARK);
        }
    }
    svg + "</svg>"
}

/// Two factors of experience against each other, each a mean per scheme.
pub(super) struct Tradeoff {
    /// What costs: less of it is better, and it grows to the left.
    pub(super) cost: (&'static str, fn(&Means<'_>) -> Option<f64>),
    /// What it buys: more is better.
    pub(super) gain: (&'static str, fn(&Means<'_>) -> Option<f64>),
    /// The cost is drawn on a logarithmic axis from this value on.
    pub(super) log_from: Option<f64>,
}

/// A scheme's means over its runs with one application.
pub(super) struct Means<'a> {
    /// Its row of the summary.
    pub(super) row: &'a SummaryRow,
    /// Mean bitrate of the chunks in Mbit/s, where there are chunks.
    pub(super) bitrate_mbps: Option<f64>,
    /// Time stalled over time watched, in percent, where something is watched.
    pub(super) stalled_percent: Option<f64>,
}

/// The means of each row's scheme over its runs.
pub(super) fn means_of<'a>(rows: &[&'a SummaryRow], runs: &[&RunRecord]) -> Vec<Means<'a>> {
    let mean = |cc: &str, of: fn(&RunRecord) -> Option<f64>| {
        let values: Vec<f64> =
            runs.iter().filter(|run| run.cc == cc).filter_map(|run| of(run)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let of = |row: &&'a SummaryRow| Means {
        row,
        bitrate_mbps: mean(&row.cc, |run| run.bitrate_kbps_mean.map(|kbps| kbps / 1000.0)),
        stalled_percent: mean(&row.cc, |run| run.stall_ratio.map(|share| share * 100.0)),
    };
    rows.iter().map(of).collect()
}

/// What every sender trades.
pub(super) const RATE_AND_DELAY: Tradeoff = Tradeoff {
    cost: ("mean queueing delay, ms (better →)", |m| Some(m.row.queue_delay_ms)),
    gain: ("mean throughput, Mbit/s (better →)", |m| Some(m.row.throughput_mbps)),
    // Below a tenth of a millisecond there is no queue.
    log_from: Some(0.1),
};

/// What a video player trades.
pub(super) const BITRATE_AND_STALLS: Tradeoff = Tradeoff {
    cost: ("time stalled, % (better →)", |m| m.stalled_percent),
    gain: ("mean bitrate, Mbit/s (better →)", |m| m.bitrate_mbps),
    log_from: None,
};

/// Up and right is better. The line joins the senders that no other real sender beats in both. Nothing
/// where a factor is missing or where nobody pays.
pub(super) fn tradeoff(
    title: &str,
    what: &Tradeoff,
    cast: &[Role],
    means: &[Means<'_>],
) -> Option<String> {
    let point = |m: &Means<'_>| {
        let role = cast.iter().find(|role| role.cc == m.row.cc)?;
        let cost = (what.cost.1)(m)?;
        Some(Point { role, cost: cost.max(what.log_from.unwrap_or(cost)), gain: (what.gain.1)(m)? })
    };
    let points: Vec<Point<'_>> = means.iter().filter_map(point).collect();
    if points.iter().all(|p| p.cost == 0.0) {
        return None;
    }
    let labels = (what.cost.0, what.gain.0);
    Some(plane(title, labels, what.log_from.is_some(), &points, usize::MAX))
}

/// A scheme in the plane of two factors.
pub(super) struct Point<'a> {
    /// Who it is.
    pub(super) role: &'a Role,
    /// What costs: less of it is better.
    pub(super) cost: f64,
    /// What it buys: more is better.
    pub(super) gain: f64,
}

/// Points by their cost, which grows to the left, and their gain. A line joins the front. With more
/// than `named` points only those on the front have their names, or these would cover each other.
pub(super) fn plane(
    title: &str,
    (cost, gain): (&str, &str),
    log: bool,
    points: &[Point<'_>],
    named: usize,
) -> String {
    let frame = Frame::new(460.0, 340.0);
    let costs = || points.iter().map(|p| p.cost);
    let (from, to) = (frame.right - 8.0, frame.left + 8.0);
    let scale =
        if log { Scale::log(costs(), from, to) } else { Scale::from_zero(costs(), from, to) };
    let x = Axis { scale, label: cost };
    let y = Axis {
        scale: Scale::linear(points.iter().map(|p| p.gain), frame.bottom, frame.top),
        label: gain,
    };
    let at = |p: &Point<'_>| (x.scale.at(p.cost), y.scale.at(p.gain));
    let mut svg = open(frame, title, &x, &y);
    let front = pareto(points);
    let _ = writeln!(svg, "<path class=\"front\" d=\"{}\"/>", path(front.iter().map(|p| at(p))));
    let mut placed: Vec<[f64; 4]> =
        points.iter().map(at).map(|(x, y)| [x - 8.0, y - 8.0, x + 8.0, y + 8.0]).collect();
    for point in points {
        let (px, py) = at(point);
        let Role { cc, number, .. } = point.role;
        svg += &point.role.marker(px, py, 1.0);
        if points.len() > named && !front.iter().any(|on| std::ptr::eq(*on, point)) {
            continue;
        }
        let (lx, ly, anchor) = label_place(px, py, text_width(cc, NAME_SIZE), frame, &mut placed);
        let name = escape(cc);
        let _ = writeln!(
            svg,
            "<text class=\"name s{number}\" x=\"{lx:.1}\" y=\"{ly:.1}\" text-anchor=\"{anchor}\">{name}</text>"
        );
    }
    svg + "</svg>"
}

/// The real senders that no other real sender beats in gain and cost, by rising gain.
fn pareto<'p, 'a>(points: &'p [Point<'a>]) -> Vec<&'p Point<'a>> {
    let real = || points.iter().filter(|p| !is_bound(&p.role.cc));
    let beats = |b: &Point<'_>, a: &Point<'_>| {
        b.gain >= a.gain && b.cost <= a.cost && (b.gain > a.gain || b.cost < a.cost)
    };
    let mut front: Vec<&Point<'_>> = real().filter(|a| !real().any(|b| beats(b, a))).collect();
    front.sort_by(|a, b| a.gain.total_cmp(&b.gain));
    front
}

/// Where a name of this width stands at its marker: the first of right, left, above, below that is free,
/// or else that is inside the chart.
fn label_place(
    x: f64,
    y: f64,
    width: f64,
    frame: Frame,
    placed: &mut Vec<[f64; 4]>,
) -> (f64, f64, &'static str) {
    let options = [
        (x + 11.0, y + 4.0, "start", x + 11.0),
        (x - 11.0, y + 4.0, "end", x - 11.0 - width),
        (x, y - 12.0, "middle", x - width / 2.0),
        (x, y + 21.0, "middle", x - width / 2.0),
        (x + 9.0, y - 11.0, "start", x + 9.0),
        (x + 9.0, y + 19.0, "start", x + 9.0),
        (x - 9.0, y - 11.0, "end", x - 9.0 - width),
        (x - 9.0, y + 19.0, "end", x - 9.0 - width),
    ];
    let area = |&(_, ly, _, from): &(f64, f64, &'static str, f64)| {
        [from, ly - 11.0, from + width, ly + 3.0]
    };
    let inside = |b: &[f64; 4]| {
        b[0] >= frame.left && b[2] <= frame.width && b[1] >= 0.0 && b[3] <= frame.bottom
    };
    let free = |b: &[f64; 4]| {
        inside(b)
            && !placed.iter().any(|p| b[0] < p[2] && p[0] < b[2] && b[1] < p[3] && p[1] < b[3])
    };
    let best = options.iter().find(|o| free(&area(o)));
    // Names that cover each other can be read in part, those that are cut off cannot.
    let best = best.or_else(|| options.iter().find(|o| inside(&area(o)))).unwrap_or(&options[0]);
    placed.push(area(best));
    (best.0, best.1, best.2)
}

/// A scheme's value with its 95% interval, where it has one.
struct Estimated<'a> {
    role: &'a Role,
    value: f64,
    ci95: Option<[f64; 2]>,
}

/// The mean experience of every scheme, with its 95% interval.
pub(super) fn means(title: &str, label: &str, cast: &[Role], rows: &[&SummaryRow]) -> String {
    let estimated = |row: &&SummaryRow| {
        let role = cast.iter().find(|role| role.cc == row.cc)?;
        Some(Estimated { role, value: row.score, ci95: row.score_ci95 })
    };
    let all: Vec<Estimated<'_>> = rows.iter().filter_map(estimated).collect();
    let label = match all.iter().any(|e| e.ci95.is_some()) {
        true => format!("mean {label}, with 95% interval"),
        false => format!("mean {label}"),
    };
    estimates(title, &label, &all, &|v| format!("{v:.3}"), false)
}

/// The paired change of every scheme against one of them, with its 95% interval.
pub(super) fn changes(title: &str, cast: &[Role], rows: &[&SummaryRow], against: &str) -> String {
    let shown = |row: &&SummaryRow| {
        let role = cast.iter().find(|role| role.cc == row.cc)?;
        let change = row.versus.iter().find(|v| v.cc == against)?.shown(row.scale);
        Some((Estimated { role, value: change.value, ci95: change.ci95 }, change.percent))
    };
    let (all, percent): (Vec<Estimated<'_>>, Vec<bool>) = rows.iter().filter_map(shown).unzip();
    let (unit, sign) = match percent.iter().all(|&percent| percent) {
        true => ("%", "%"),
        false => ("difference", ""),
    };
    let text = |v: f64| format!("{v:+.2}{sign}");
    estimates(title, &format!("QoE against {against}, {unit}"), &all, &text, true)
}

/// A row per scheme: its name, its value as a marker, its interval as a bar; with a line at zero where
/// values are changes.
fn estimates(
    title: &str,
    label: &str,
    all: &[Estimated<'_>],
    text: &dyn Fn(f64) -> String,
    are_changes: bool,
) -> String {
    let mut frame = Frame::new(460.0, 60.0 + 30.0 * all.len() as f64);
    let widest = all.iter().map(|e| text_width(&e.role.cc, NAME_SIZE)).fold(0.0, f64::max);
    frame.left = libm::round((24.0 + widest).min(frame.width / 2.0));
    let ends = all.iter().flat_map(|e| e.ci95.unwrap_or([e.value; 2]).into_iter().chain([e.value]));
    let scale = if are_changes {
        Scale::from_zero(ends, frame.left, frame.right)
    } else {
        Scale::linear(ends, frame.left, frame.right)
    };
    let x = Axis { scale, label };
    let rows = Scale::exact(0.0, all.len() as f64, frame.top, frame.bottom);
    // Names stand at the vertical axis.
    let y = Axis { scale: rows.without_ticks(), label: "" };
    let mut svg = open(frame, title, &x, &y);
    if are_changes {
        let zero = x.scale.at(0.0);
        let (top, bottom) = (frame.top, frame.bottom);
        let _ = write!(svg, "<path class=\"zero\" d=\"M{zero:.1} {top}V{bottom}\"/>");
    }
    for (i, Estimated { role, value, ci95 }) in all.iter().enumerate() {
        let (px, py) = (x.scale.at(*value), rows.at(i as f64 + 0.5));
        let name = escape(&role.cc);
        let (whisker, ends) = ci95.map_or_else(Default::default, |[lo, hi]| {
            let (from, to) = (x.scale.at(lo), x.scale.at(hi));
            let classes = role.look.classes();
            (
                format!("<path class=\"whisker {classes}\" d=\"M{from:.1} {py:.1}H{to:.1}\"/>"),
                format!(" ({} to {})", text(lo), text(hi)),
            )
        });
        let (text_x, text_y) = (frame.left - 10.0, py + 4.0);
        let _ = writeln!(
            svg,
            "<g><title>{name}: {}{ends}</title>\
             <text class=\"name\" x=\"{text_x:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{name}</text>\
             {whisker}{}</g>",
            text(*value),
            role.marker(px, py, 1.0)
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::look::looks;

    #[test]
    fn the_front_is_who_nobody_beats() {
        let cast: Vec<Role> = looks(&["slow", "fast", "bad", "omniscient"])
            .into_iter()
            .zip(["slow", "fast", "bad", "omniscient"])
            .map(|(look, cc)| Role { cc: cc.to_owned(), number: 0, look })
            .collect();
        let factors = [(5.0, 1.0), (20.0, 80.0), (4.0, 90.0), (30.0, 0.5)];
        let points: Vec<Point<'_>> = cast
            .iter()
            .zip(factors)
            .map(|(role, (gain, cost))| Point { role, cost, gain })
            .collect();
        let front: Vec<&str> = pareto(&points).iter().map(|p| p.role.cc.as_str()).collect();
        assert_eq!(front, ["slow", "fast"], "a bound is no sender, and bad is beaten by both");
    }

    #[test]
    fn labels_keep_apart() {
        let frame = Frame::new(460.0, 340.0);
        let mut placed = vec![[192.0, 92.0, 208.0, 108.0], [194.0, 94.0, 210.0, 110.0]];
        let a = label_place(200.0, 100.0, 35.0, frame, &mut placed);
        let b = label_place(202.0, 102.0, 35.0, frame, &mut placed);
        assert_ne!((a.1, a.2), (b.1, b.2));
        let (x, _, anchor) = label_place(440.0, 300.0, 84.0, frame, &mut Vec::new());
        assert!(anchor == "end" && x < 440.0, "a name stays inside the chart");
        let mut all = vec![[0.0, 0.0, frame.width, frame.height]];
        let (x, _, anchor) = label_place(440.0, 300.0, 84.0, frame, &mut all);
        assert!(anchor == "end" && x < 440.0, "also where no place is free");
    }
}
