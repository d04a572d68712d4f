//! A call as its viewer saw it: frames on the screen, freezes, delays, what the encoder was given,
//! and the worst moments. One run is shown, scheme by scheme.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trimtab_apps::{CallRecord, Moment, MomentKind, Still};
use trimtab_units::{Bytes, Duration, Time};

use super::cast::Role;
use super::chart::{Axis, Frame, Scale, escape, open, path};
use super::series::{self, POINTS_MAX, thinned};
use super::setting;
use crate::result::{RunRecord, Series};
use crate::run::course::BIN;
use crate::stats::summary::in_order;

/// Bins in the shortest column: of one bin, 25 frames a second would show as 2 and 3 by turns.
const BINS_MIN: u64 = 2;
/// Freezes that are drawn, the longest.
const FREEZES_MAX: usize = 60;
/// The bitrate of the encoder is taken over this time: single frames differ much.
const BITRATE_OVER: Duration = Duration::from_secs(1);
/// Rates of more than so many times what the encoder makes are drawn at the edge.
const RATE_SHOWN: f64 = 3.0;

/// The calls of the first run that has some; `shown` schemes are unfolded. Nothing where none has.
pub(super) fn calls(cast: &[Role], runs: &[&RunRecord], shown: &[&str]) -> String {
    let with: Vec<&RunRecord> = runs.iter().copied().filter(|run| run.call.is_some()).collect();
    let traces = in_order(with.iter().map(|run| run.trace.as_str()));
    let group = traces.first().and_then(|trace| series::group(cast, &with, trace));
    let Some((first, group)) = group else { return String::new() };
    let mut html = format!(
        "<h3>As its viewer saw it</h3>\n<p>One call: {}, {}. On top, frames on the screen per \
         second; bands are freezes, by the W3C's rule. Below, the longest delay from capture to \
         screen. At the bottom, what the link could carry is the filled area. What the congestion \
         control gave the encoder is dashed, and the line is what the encoder made of it, over the \
         last second. Numbers are the worst moments: the longest freezes, and the frames that came \
         latest.</p>\n",
        escape(&first.trace),
        setting(first)
    );
    for (place, (role, run)) in group.iter().enumerate() {
        let (Some(call), Some(series)) = (&run.call, &run.series) else { continue };
        let is_open = if shown.is_empty() { place == 0 } else { shown.contains(&role.cc.as_str()) };
        let moments = call.worst_moments();
        let _ = writeln!(
            html,
            "<details class=\"call s{}\"{}><summary>{} <small>{}</small></summary>\n\
             <div class=\"scroll\">{}</div>\n{}</details>",
            role.number,
            if is_open { " open" } else { "" },
            escape(&role.cc),
            about(run, call),
            charts(role, call, series, &moments).concat(),
            list(&moments, &call.stills)
        );
    }
    html
}

/// A call in a line.
fn about(run: &RunRecord, call: &CallRecord) -> String {
    let freezes = call.freezes().count;
    let mut text = format!(
        "{freezes} freeze{}, {:.2}% of the time",
        if freezes == 1 { "" } else { "s" },
        100.0 * call.freeze_ratio()
    );
    if let Some(delay) = run.frame_delay_ms {
        let _ = write!(text, "; frame delay {:.0} ms, {:.0} at p95", delay.mean, delay.p95);
    }
    let measured = if call.measured_vmaf.is_some() { "measured" } else { "modelled" };
    if let Some(vmaf) = run.vmaf {
        let _ = write!(text, "; VMAF {vmaf:.1}, {measured}");
    }
    text
}

/// What happened in each of at most [`POINTS_MAX`] columns of the same length.
#[derive(Debug, PartialEq)]
struct Columns {
    length: Duration,
    /// Frames that got to the screen, per second.
    presented: Vec<f64>,
    /// The longest delay of these, in milliseconds; NaN where there is none.
    delay_ms: Vec<f64>,
    /// The bitrate of what was encoded until the end of the column, in Mbit/s.
    encoded_mbps: Vec<f64>,
}

impl Columns {
    fn of(call: &CallRecord, end: Time) -> Self {
        let bins = end.since(Time::ZERO).as_nanos().div_ceil(BIN.as_nanos());
        let length = BIN * bins.div_ceil(POINTS_MAX as u64).max(BINS_MIN);
        let count = bins.div_ceil(length.as_nanos() / BIN.as_nanos()) as usize;
        let place = |at: Time| (at.as_nanos() / length.as_nanos()) as usize;
        let (mut presented, mut delay_ms) = (vec![0.0; count], vec![f64::NAN; count]);
        for frame in &call.frames {
            let Some((at, delay)) = frame.presented_at.zip(frame.delay()) else { continue };
            if let (Some(frames), Some(longest)) =
                (presented.get_mut(place(at)), delay_ms.get_mut(place(at)))
            {
                *frames += 1.0 / length.as_secs_f64();
                *longest = delay.as_millis_f64().max(*longest);
            }
        }
        let encoded_mbps = (1..=count as u64).map(|n| encoded(call, Time::ZERO + length * n));
        Self { length, presented, delay_ms, encoded_mbps: encoded_mbps.collect() }
    }

    /// When a column begins, in seconds.
    fn seconds(&self, column: usize) -> f64 {
        column as f64 * self.length.as_secs_f64()
    }
}

/// The bitrate of what was encoded in the last second, in Mbit/s.
fn encoded(call: &CallRecord, until: Time) -> f64 {
    let from = Time::ZERO + (until.since(Time::ZERO) - BITRATE_OVER);
    let first = call.frames.partition_point(|frame| frame.captured_at < from);
    let recent = call.frames[first..].iter().take_while(|frame| frame.captured_at < until);
    let bytes: Bytes = recent.map(|frame| frame.bytes).sum();
    (bytes / BITRATE_OVER.min(until.since(Time::ZERO))).mbps()
}

/// Three charts on one time axis.
fn charts(role: &Role, call: &CallRecord, series: &Series, moments: &[Moment]) -> [String; 3] {
    let end = Time::ZERO + BIN * series.capacity_mbps.len() as u64;
    let columns = Columns::of(call, end);
    let chart = Chart { role, call, end };
    [chart.frames(&columns, moments), chart.delays(&columns), chart.rates(&columns, series)]
}

/// What the charts of a call share.
struct Chart<'a> {
    role: &'a Role,
    call: &'a CallRecord,
    end: Time,
}

impl Chart<'_> {
    /// An open chart with the freezes in it, its frame and its scales.
    fn open(
        &self,
        (height, time): (f64, &str),
        label: &str,
        y: impl Fn(Frame) -> Scale,
    ) -> (String, Frame, Scale, Scale) {
        let mut frame = Frame::new(760.0, height);
        if time.is_empty() {
            frame.bottom += 18.0;
        }
        let end = self.end.since(Time::ZERO).as_secs_f64();
        let x = Axis { scale: Scale::exact(0.0, end, frame.left, frame.right), label: time };
        let y = Axis { scale: y(frame), label };
        let mut svg = open(frame, &format!("{}: {label}", self.role.cc), &x, &y);
        let mut frozen = self.call.frozen();
        frozen.sort_by_key(|moment| (std::cmp::Reverse(moment.length()), moment.until));
        let (top, bottom) = (frame.top, frame.bottom);
        for moment in frozen.iter().take(FREEZES_MAX) {
            let (from, until) =
                (x.scale.at(seconds(moment.from)), x.scale.at(seconds(moment.until)));
            let _ = writeln!(
                svg,
                "<path class=\"freeze\" d=\"M{from:.1} {top}H{until:.1}V{bottom}H{from:.1}Z\">\
                 <title>{}</title></path>",
                words(moment)
            );
        }
        (svg, frame, x.scale, y.scale)
    }

    /// Frames on the screen per second, and the numbers of the worst moments.
    fn frames(&self, columns: &Columns, moments: &[Moment]) -> String {
        let values = || columns.presented.iter().copied();
        let (mut svg, frame, x, y) = self.open((136.0, ""), "frames/s", |frame| {
            Scale::from_zero(values(), frame.bottom, frame.top)
        });
        let (left, bottom) = (frame.left, frame.bottom);
        let mut d = format!("M{left} {bottom}");
        for (column, frames) in columns.presented.iter().enumerate() {
            let until = x.at(columns.seconds(column + 1));
            let _ = write!(d, "V{:.1}H{until:.1}", y.at(*frames));
        }
        let _ = writeln!(svg, "<path class=\"frames\" d=\"{d}V{bottom}Z\"/>");
        for (number, moment) in moments.iter().enumerate() {
            let (at, above) = (x.at(seconds(moment.until)), frame.top - 3.0);
            let _ = writeln!(
                svg,
                "<text class=\"moment\" x=\"{at:.1}\" y=\"{above}\" text-anchor=\"middle\">{}\
                 <title>{}</title></text>",
                number + 1,
                words(moment)
            );
        }
        svg + "</svg>\n"
    }

    /// The longest delay in each column, as a step: a frame alone has a line as well.
    fn delays(&self, columns: &Columns) -> String {
        let values = || columns.delay_ms.iter().copied();
        let (mut svg, _, x, y) = self.open((150.0, ""), "frame delay, ms", |frame| {
            Scale::from_zero(values(), frame.bottom, frame.top)
        });
        let points = columns.delay_ms.iter().enumerate().flat_map(|(column, ms)| {
            let at = if ms.is_finite() { y.at(*ms) } else { f64::NAN };
            [column, column + 1].map(|end| (x.at(columns.seconds(end)), at))
        });
        let _ = writeln!(svg, "<path class=\"{}\" d=\"{}\"/>", self.line(), path(points));
        svg + "</svg>\n"
    }

    /// Capacity, what the encoder was given, and what it made.
    fn rates(&self, columns: &Columns, series: &Series) -> String {
        let encoded = || columns.encoded_mbps.iter().copied();
        let most = RATE_SHOWN * encoded().fold(0.0, f64::max);
        let (bin_ms, capacity) = thinned(series.bin_ms, &series.capacity_mbps);
        let (_, target) = thinned(series.bin_ms, &series.target_mbps);
        let given = || capacity.iter().chain(&target).map(|rate| rate.min(most));
        let (mut svg, frame, x, y) = self.open((190.0, "time, s"), "Mbit/s", |frame| {
            Scale::from_zero(encoded().chain(given()), frame.bottom, frame.top)
        });
        let line = |rates: &[f64]| {
            path(rates.iter().enumerate().map(|(bin, rate)| {
                let at = if rate.is_finite() { y.at(*rate) } else { f64::NAN };
                (x.at(bin as f64 * bin_ms / 1000.0), at)
            }))
        };
        let last = x.at(capacity.len().saturating_sub(1) as f64 * bin_ms / 1000.0);
        let (left, bottom) = (frame.left, frame.bottom);
        let _ = writeln!(
            svg,
            "<path class=\"capacity\" d=\"{}L{last:.1} {bottom}H{left}Z\">\
             <title>capacity</title></path>",
            line(&capacity)
        );
        let made = columns.encoded_mbps.iter().enumerate();
        let made =
            path(made.map(|(column, rate)| (x.at(columns.seconds(column + 1)), y.at(*rate))));
        let _ = writeln!(
            svg,
            "<path class=\"{}\" d=\"{made}\"><title>encoded</title></path>\n\
             <path class=\"target\" d=\"{}\"><title>given to the encoder</title></path>",
            self.line(),
            line(&target)
        );
        svg + "</svg>\n"
    }

    /// The classes of a solid line: dashes tell lines of one scheme apart here, not schemes.
    fn line(&self) -> String {
        format!("line {}", self.role.look.classes())
    }
}

fn seconds(at: Time) -> f64 {
    at.since(Time::ZERO).as_secs_f64()
}

fn words(moment: &Moment) -> String {
    let (from, ms) = (seconds(moment.from), moment.length().as_millis_f64());
    match moment.kind {
        MomentKind::Frozen => format!("{from:.1} s: frozen for {ms:.0} ms"),
        MomentKind::Late => {
            format!("{:.1} s: a frame came {ms:.0} ms after its capture", seconds(moment.until))
        }
    }
}

/// The worst moments in words, with their pictures where there are some.
fn list(moments: &[Moment], stills: &[Still]) -> String {
    let mut html = String::from("<ol class=\"moments\">\n");
    for moment in moments {
        let _ = write!(html, "<li>{}", words(moment));
        if let Some(still) = stills.iter().find(|still| still.at == moment.until) {
            let at = seconds(still.at);
            html += "<div class=\"stills\">";
            for (what, jpeg) in [("on the screen", &still.seen), ("captured", &still.captured)] {
                let data = STANDARD.encode(jpeg);
                let _ = write!(
                    html,
                    "<figure><img alt=\"{what} at {at:.1} s\" \
                     src=\"data:image/jpeg;base64,{data}\"><figcaption>{what} at {at:.1} s</figcaption></figure>"
                );
            }
            html += "</div>";
        }
        html += "</li>\n";
    }
    html + "</ol>\n"
}
