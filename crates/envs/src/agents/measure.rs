//! What an agent may see of an interval: one table.

use trimtab_sim::{Dial, Sight};
use trimtab_units::{Bytes, Duration, Rate};

/// Packets are counted as so large where a source counts packets.
pub(super) const PACKET: Bytes = Bytes::new(1500);
/// The round-trip time that counts as no queue, over the lowest (Orca, SIGCOMM 2020, §4.2; its code has
/// `delay_margin_coef` = 1.25).
const DELAY_MARGIN: f64 = 1.25;

/// An interval of one agent's flow.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What the flow saw in it.
    pub sight: &'a Sight,
    /// What it was set to.
    pub dial: Dial,
    /// What the agent's flow saw before and in it.
    pub past: Past,
    /// What the bottleneck could carry in it. No sender sees that.
    pub capacity: Rate,
    /// What waits in the bottleneck's queue at its end. No sender sees that.
    pub queue: Bytes,
}

/// What is kept of a connection from interval to interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Past {
    /// The highest throughput of an interval.
    pub throughput_max: Rate,
    /// The mean round-trip time of the last interval that had samples.
    pub rtt: Duration,
    /// The lowest of these means; `None` before the first.
    pub rtt_least: Option<Duration>,
}

impl Past {
    /// Takes in an interval.
    pub(super) fn observe(&mut self, sight: &Sight) {
        let report = &sight.report;
        self.throughput_max = self.throughput_max.max(per(report.acked, report.interval));
        if let Some(mean) = report.rtt_mean {
            self.rtt = mean;
            self.rtt_least = Some(self.rtt_least.map_or(mean, |least| least.min(mean)));
        } else if self.rtt.is_zero() {
            self.rtt = report.srtt;
        }
    }
}

/// Something that can be seen of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name, which ends with its unit where it has one.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The least and the most that an observation of it is: beyond these it counts as these.
    pub range: (f64, f64),
    /// Its value.
    pub of: fn(&View<'_>) -> f64,
}

const fn measure(
    name: &'static str,
    about: &'static str,
    range: (f64, f64),
    of: fn(&View<'_>) -> f64,
) -> Measure {
    Measure { name, about, range, of }
}

const ANY: (f64, f64) = (0.0, f64::INFINITY);
const SHARE: (f64, f64) = (0.0, 1.0);

/// Every measure. A further one is a line here. The ranges of Aurora's three are those of its code
/// (`sender_obs.py`).
#[rustfmt::skip]
pub const MEASURES: [Measure; 25] = [
    measure("throughput_mbps", "bytes acknowledged over the interval's length", ANY, throughput),
    measure("sending_mbps", "bytes sent over the interval's length", ANY, sending),
    measure("pace_mbps", "the pacing rate that was set; 0 where only a window was", ANY, |v| v.dial.rate.map_or(0.0, Rate::mbps)),
    measure("window_packets", "the window that was set", ANY, |v| v.dial.window.ratio(PACKET)),
    measure("in_flight_packets", "what is in flight at the end", ANY, |v| v.sight.report.inflight.ratio(PACKET)),
    measure("rtt_ms", "mean of the round-trip times; without samples the last one", ANY, |v| v.past.rtt.as_millis_f64()),
    measure("srtt_ms", "smoothed round-trip time at the end", ANY, |v| v.sight.report.srtt.as_millis_f64()),
    measure("min_rtt_ms", "lowest round-trip time of the connection", ANY, |v| v.sight.report.min_rtt.as_millis_f64()),
    measure("loss", "share of bytes lost of those that were lost or acknowledged", SHARE, loss),
    measure("lost_mbps", "bytes declared lost over the interval's length", ANY, lost),
    measure("latency_gradient", "growth of the round-trip time in s/s", (-1.0, 10.0), |v| v.sight.latency_gradient),
    measure("latency_ratio", "mean round-trip time over the lowest such mean", (1.0, 10_000.0), latency_ratio),
    measure("send_ratio", "bytes sent over bytes acknowledged", (0.0, 1_000.0), send_ratio),
    measure("delivery_mbps", "highest delivery-rate sample", ANY, |v| v.sight.report.delivery_rate_any.map_or(0.0, Rate::mbps)),
    measure("max_throughput_mbps", "highest throughput of an interval of the connection", ANY, |v| v.past.throughput_max.mbps()),
    measure("relative_throughput", "throughput over the highest (Orca)", SHARE, |v| relative(v, throughput(v))),
    measure("relative_pace", "pacing rate over the highest throughput (Orca)", (0.0, 10.0), |v| relative(v, pace(v))),
    measure("relative_loss", "5 times the rate of losses over the highest throughput (Orca)", ANY, |v| relative(v, 5.0 * lost(v))),
    measure("acks_per_window", "round-trip samples over the window in packets (Orca)", ANY, |v| v.sight.report.rtt_samples as f64 / window(v)),
    measure("rtt_share", "lowest round-trip time over the smoothed one (Orca)", SHARE, rtt_share),
    measure("delay_metric", "1.25 times that, at most 1 (Orca)", SHARE, delay_metric),
    measure("acks", "round-trip samples", ANY, |v| v.sight.report.rtt_samples as f64),
    measure("interval_ms", "the interval's length", ANY, |v| v.sight.report.interval.as_millis_f64()),
    measure("queue_packets", "what waits at the bottleneck at the end: no sender sees it", ANY, |v| v.queue.ratio(PACKET)),
    measure("capacity_mbps", "what the bottleneck could carry: no sender sees it", ANY, |v| v.capacity.mbps()),
];

/// What a system of the literature observes.
#[derive(Clone, Copy, Debug)]
pub struct ObservationSet {
    /// Its name.
    pub name: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The measures.
    pub measures: &'static [&'static str],
}

/// Sets of measures by name.
#[rustfmt::skip]
pub const OBSERVATION_SETS: [ObservationSet; 2] = [
    ObservationSet { name: "aurora", source: "Aurora, ICML 2019, §3.1", measures: &["latency_gradient", "latency_ratio", "send_ratio"] },
    ObservationSet {
        name: "orca",
        source: "Orca, SIGCOMM 2020, §4.2",
        measures: &["relative_throughput", "relative_pace", "relative_loss", "acks_per_window", "interval_ms", "rtt_share", "delay_metric"],
    },
];

/// Bytes over time, 0 in no time.
fn per(bytes: Bytes, time: Duration) -> Rate {
    if time.is_zero() { Rate::ZERO } else { bytes / time }
}

fn rate(view: &View<'_>, bytes: Bytes) -> f64 {
    per(bytes, view.sight.report.interval).mbps()
}

/// In Mbit/s.
pub(super) fn throughput(view: &View<'_>) -> f64 {
    rate(view, view.sight.report.acked)
}

/// In Mbit/s.
pub(super) fn sending(view: &View<'_>) -> f64 {
    rate(view, view.sight.report.sent)
}

/// Rate of losses in Mbit/s.
pub(super) fn lost(view: &View<'_>) -> f64 {
    rate(view, view.sight.report.lost)
}

/// 0 to 1.
pub(super) fn loss(view: &View<'_>) -> f64 {
    let report = &view.sight.report;
    let known = report.lost + report.acked;
    if known.is_zero() { 0.0 } else { report.lost.ratio(known) }
}

/// Without samples 1, as in Aurora's code.
fn latency_ratio(view: &View<'_>) -> f64 {
    match (view.sight.report.rtt_mean, view.past.rtt_least) {
        (Some(mean), Some(least)) if !least.is_zero() => mean.ratio(least),
        _ => 1.0,
    }
}

/// Where nothing arrived 1, as in Aurora's code.
fn send_ratio(view: &View<'_>) -> f64 {
    let report = &view.sight.report;
    if report.acked.is_zero() { 1.0 } else { report.sent.ratio(report.acked) }
}

/// The window in packets, at least one.
fn window(view: &View<'_>) -> f64 {
    view.dial.window.ratio(PACKET).max(1.0)
}

/// The rate of sending that was asked for, in Mbit/s; of a window, what it lets pass.
pub(super) fn pace(view: &View<'_>) -> f64 {
    let by_window = || per(view.dial.window, view.sight.report.srtt);
    view.dial.rate.unwrap_or_else(by_window).mbps()
}

/// A rate in Mbit/s over the highest throughput; 0 before there was any.
pub(super) fn relative(view: &View<'_>, mbps: f64) -> f64 {
    let most = view.past.throughput_max.mbps();
    if most > 0.0 { mbps / most } else { 0.0 }
}

fn rtt_share(view: &View<'_>) -> f64 {
    let report = &view.sight.report;
    if report.srtt.is_zero() { 1.0 } else { report.min_rtt.ratio(report.srtt).min(1.0) }
}

/// Orca §4.2.
pub(super) fn delay_metric(view: &View<'_>) -> f64 {
    (DELAY_MARGIN * rtt_share(view)).min(1.0)
}
