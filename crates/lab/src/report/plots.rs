//! The charts that summarise an application: distributions, tradeoff, and paired changes.

use std::fmt::Write;

use super::cast::Role;
use super::chart::{Axis, Frame, Scale, escape, open, path};
use crate::result::SummaryRow;
use crate::stats::Sorted;
use trimtab_steer::scheme::is_bound;

/// Points along a distribution's curve.
const CDF_POINTS: u32 = 160;

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
        let (line, name) = (role.line(), escape(&role.cc));
        let _ = writeln!(svg, "<path {line} d=\"{}\"><title>{name}</title></path>", path(points));
    }
    svg + "</svg>"
}

/// Mean throughput over mean queueing delay, low delay to the right: up and right is better. The line
/// joins the senders that no other real sender beats in both.
pub(super) fn tradeoff(title: &str, cast: &[Role], rows: &[&SummaryRow]) -> String {
    let frame = Frame::new(460.0, 340.0);
    // Below a tenth of a millisecond there is no queue.
    let delay = |r: &SummaryRow| r.queue_delay_ms.max(0.1);
    let x = Axis {
        scale: Scale::log(rows.iter().map(|r| delay(r)), frame.right - 8.0, frame.left + 8.0),
        label: "mean queueing delay, ms (better →)",
    };
    let y = Axis {
        scale: Scale::linear(rows.iter().map(|r| r.throughput_mbps), frame.bottom, frame.top),
        label: "mean throughput, Mbit/s (better →)",
    };
    let at = |r: &SummaryRow| (x.scale.at(delay(r)), y.scale.at(r.throughput_mbps));
    let mut svg = open(frame, title, &x, &y);
    let front = pareto(rows);
    let _ = writeln!(svg, "<path class=\"front\" d=\"{}\"/>", path(front.iter().map(|r| at(r))));
    let mut placed: Vec<[f64; 4]> =
        rows.iter().map(|r| at(r)).map(|(x, y)| [x - 8.0, y - 8.0, x + 8.0, y + 8.0]).collect();
    for row in rows {
        let Some(role) = cast.iter().find(|c| c.cc == row.cc) else { continue };
        let (px, py) = at(row);
        svg += &role.marker(px, py);
        let name = escape(&row.cc);
        let (lx, ly, anchor) = label_place(px, py, row.cc.chars().count(), frame, &mut placed);
        let number = role.number;
        let _ = writeln!(
            svg,
            "<text class=\"name s{number}\" x=\"{lx:.1}\" y=\"{ly:.1}\" text-anchor=\"{anchor}\">{name}</text>"
        );
    }
    svg + "</svg>"
}

/// The real senders that no other real sender beats in throughput and delay, by rising throughput.
fn pareto<'a>(rows: &[&'a SummaryRow]) -> Vec<&'a SummaryRow> {
    let real = || rows.iter().copied().filter(|r| !is_bound(&r.cc));
    let mut front: Vec<&SummaryRow> = real()
        .filter(|a| {
            !real().any(|b| {
                b.throughput_mbps >= a.throughput_mbps
                    && b.queue_delay_ms <= a.queue_delay_ms
                    && (b.throughput_mbps > a.throughput_mbps
                        || b.queue_delay_ms < a.queue_delay_ms)
            })
        })
        .collect();
    front.sort_by(|a, b| a.throughput_mbps.total_cmp(&b.throughput_mbps));
    front
}

/// Where a name stands beside its marker: the first of right, left, above, below that is free.
fn label_place(
    x: f64,
    y: f64,
    letters: usize,
    frame: Frame,
    placed: &mut Vec<[f64; 4]>,
) -> (f64, f64, &'static str) {
    // Widths of letters at the chart's font size, rounded up.
    let width = letters as f64 * 7.0;
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
    let free = |b: &[f64; 4]| {
        b[0] >= frame.left
            && b[2] <= frame.width
            && b[1] >= 0.0
            && b[3] <= frame.bottom
            && !placed.iter().any(|p| b[0] < p[2] && p[0] < b[2] && b[1] < p[3] && p[1] < b[3])
    };
    let best = options.iter().find(|o| free(&area(o))).unwrap_or(&options[0]);
    placed.push(area(best));
    (best.0, best.1, best.2)
}

/// The paired change of every scheme against one of them, with its 95% interval.
pub(super) fn changes(title: &str, cast: &[Role], rows: &[&SummaryRow], against: &str) -> String {
    let versus: Vec<(&Role, f64, Option<[f64; 2]>, bool)> = rows
        .iter()
        .filter_map(|row| {
            let role = cast.iter().find(|c| c.cc == row.cc)?;
            let v = row.versus.iter().find(|v| v.cc == against)?;
            let c = v.shown(row.scale);
            Some((role, c.value, c.ci95, c.percent))
        })
        .collect();
    let percent = versus.iter().all(|v| v.3);
    let label = if percent {
        format!("QoE against {against}, %")
    } else {
        format!("QoE against {against}, difference")
    };
    let mut frame = Frame::new(460.0, 60.0 + 30.0 * versus.len() as f64);
    frame.left =
        24.0 + 7.0 * versus.iter().map(|v| v.0.cc.chars().count()).max().unwrap_or(0) as f64;
    let ends =
        versus.iter().flat_map(|(_, v, ci95, _)| ci95.unwrap_or([*v; 2]).into_iter().chain([*v]));
    let x = Axis { scale: Scale::from_zero(ends, frame.left, frame.right), label: &label };
    let rows = Scale::exact(0.0, versus.len() as f64, frame.top, frame.bottom);
    // No grid and no numbers on the vertical axis: names stand there.
    let y = Axis { scale: Scale::log(std::iter::empty(), -99.0, -99.0), label: "" };
    let mut svg = open(frame, title, &x, &y);
    let zero = x.scale.at(0.0);
    let _ = write!(svg, "<path class=\"zero\" d=\"M{zero:.1} {}V{}\"/>", frame.top, frame.bottom);
    for (i, (role, value, ci95, _)) in versus.iter().enumerate() {
        let (px, py) = (x.scale.at(*value), rows.at(i as f64 + 0.5));
        let Role { number, color, cc, .. } = role;
        let name = escape(cc);
        let unit = if percent { "%" } else { "" };
        let (whisker, ends) = ci95.map_or_else(Default::default, |[lo, hi]| {
            let (from, to) = (x.scale.at(lo), x.scale.at(hi));
            (
                format!("<path class=\"whisker {color}\" d=\"M{from:.1} {py:.1}H{to:.1}\"/>"),
                format!(" ({lo:+.2} to {hi:+.2})"),
            )
        });
        let (text_x, text_y) = (frame.left - 10.0, py + 4.0);
        let _ = writeln!(
            svg,
            "<g><title>{name}: {value:+.2}{unit}{ends}</title>\
             <text class=\"name\" x=\"{text_x:.1}\" y=\"{text_y:.1}\" text-anchor=\"end\">{name}</text>\
             {whisker}{}</g>",
            role.marker(px, py)
        );
        debug_assert!(*number < cast.len());
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::summary::summarise;
    use crate::testing::run;

    #[test]
    fn the_front_is_who_nobody_beats() {
        let runs: Vec<_> = [
            ("slow", 5.0, 1.0),
            ("fast", 20.0, 80.0),
            ("bad", 4.0, 90.0),
            ("omniscient", 30.0, 0.5),
        ]
        .map(|(cc, throughput, delay)| {
            let mut r = run(cc, "t", 0, 1.0);
            r.throughput_mbps = throughput;
            r.queue_delay_ms.mean = delay;
            r
        })
        .into();
        let rows = summarise(&runs);
        let rows: Vec<&SummaryRow> = rows.iter().collect();
        let front: Vec<&str> = pareto(&rows).iter().map(|r| r.cc.as_str()).collect();
        assert_eq!(front, ["slow", "fast"], "a bound is no sender, and bad is beaten by both");
    }

    #[test]
    fn labels_keep_apart() {
        let frame = Frame::new(460.0, 340.0);
        let mut placed = vec![[192.0, 92.0, 208.0, 108.0], [194.0, 94.0, 210.0, 110.0]];
        let a = label_place(200.0, 100.0, 5, frame, &mut placed);
        let b = label_place(202.0, 102.0, 5, frame, &mut placed);
        assert_ne!((a.1, a.2), (b.1, b.2));
        let (x, _, anchor) = label_place(440.0, 300.0, 12, frame, &mut Vec::new());
        assert!(anchor == "end" && x < 440.0, "a name stays inside the chart");
    }
}
