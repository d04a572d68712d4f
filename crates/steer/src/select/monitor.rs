//! What a connection's reports come to: the metrics of Floo's Table 2 over their windows.

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::features::{FEATURES, FEATURES_LEN, State};
use super::slope::Slope;
use crate::Report;

/// How far back the metrics of the path look (Floo §3.2).
const WINDOW: Duration = Duration::from_secs(10);
/// They do so in slices of this length. Reports must come about as often.
pub(super) const SLICE: Duration = Duration::from_millis(500);
/// Slices of a window, and the one that is being filled.
const SLICES: usize = 21;
/// How far back a queue that stays is looked for: longer than one that comes and goes with a window.
const FLOOR_WINDOW: Duration = Duration::from_secs(2);
/// The least slices that a correlation is made of.
const CORRELATED_MIN: f64 = 4.0;

/// What was measured of the path in half a second.
#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    began: Time,
    ended: Time,
    sent: Bytes,
    acked: Bytes,
    lost: Bytes,
    busy: Duration,
    delivery_rate: Option<Rate>,
    /// The same without what the application limited.
    full_rate: Option<Rate>,
    rtt_min: Option<Duration>,
    rtt_max: Duration,
    samples: f64,
    /// Sums over the round-trip samples, in seconds.
    rtt_sum: f64,
    rtt_squares: f64,
    /// Lost bytes times the round-trip time of the time, in seconds.
    lost_rtt: f64,
}

impl Slice {
    fn add(&mut self, report: &Report) {
        self.ended = report.now;
        self.sent += report.sent;
        self.acked += report.acked;
        self.lost += report.lost;
        self.busy += report.busy;
        self.delivery_rate = self.delivery_rate.max(report.delivery_rate_any);
        self.full_rate = self.full_rate.max(report.delivery_rate);
        if let (Some(mean), Some(least), Some(most)) =
            (report.rtt_mean, report.rtt_min, report.rtt_max)
        {
            self.rtt_min = Some(self.rtt_min.map_or(least, |m| m.min(least)));
            self.rtt_max = self.rtt_max.max(most);
            let (n, mean) = (report.rtt_samples as f64, mean.as_secs_f64());
            self.samples += n;
            self.rtt_sum += n * mean;
            self.rtt_squares += n * (mean * mean + report.rtt_variance);
        }
        let rtt = report.rtt_max.unwrap_or(report.srtt);
        self.lost_rtt += report.lost.as_f64() * rtt.as_secs_f64();
    }

    fn length(&self) -> Duration {
        self.ended.since(self.began)
    }

    /// The rate it sent at, in bit/s.
    fn rate(&self) -> f64 {
        share(self.sent.as_f64() * 8.0, self.length().as_secs_f64())
    }
}

/// What the application got since the selection before.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    began: Time,
    ended: Time,
    sent: Bytes,
    busy: Duration,
    finished: f64,
    /// Sums over the finished responses: bit/s, bytes.
    goodput: f64,
    size: f64,
    /// How long the responses that were written had waited, in s, by when that was, in s since the period began.
    waits: Slope,
}

impl Period {
    fn add(&mut self, report: &Report) {
        self.ended = report.now;
        self.sent += report.sent;
        self.busy += report.busy;
        let responses = &report.responses;
        let n = responses.arrived as f64;
        self.finished += n;
        self.goodput += n * responses.goodput_mean.bits_per_sec();
        self.size += n * responses.size_mean.as_f64();
        // The samples of a report count as taken in its middle.
        let when = (report.now - report.interval / 2).since(self.began).as_secs_f64();
        self.waits.add(responses.sent as f64, when, responses.wait_mean.as_secs_f64());
    }
}

/// The metrics of one connection: reports in, a [`State`] out. It allocates nothing.
///
/// Reports should come at least every half second; see [`Selector`](super::Selector), which asks for
/// them so.
#[derive(Clone, Debug, Default)]
pub struct Monitor {
    /// A ring, the newest at `newest`.
    slices: [Slice; SLICES],
    newest: usize,
    len: usize,
    period: Period,
    latest: Latest,
}

/// What the last report said of its end.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    srtt: Duration,
    window: Bytes,
    unsent: Bytes,
    min_rtt: Duration,
    algorithm: &'static str,
}

/// The metrics in their units, before they are scaled. All are 0 where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics([f64; FEATURES_LEN]);

impl Metrics {
    /// The metric of this name (see [`FEATURES`]), in its unit; `None` when there is no such one.
    pub fn get(&self, name: &str) -> Option<f64> {
        super::features::feature_index(name).map(|i| self.0[i])
    }

    /// All of them, in the order of [`FEATURES`].
    pub fn values(&self) -> &[f64; FEATURES_LEN] {
        &self.0
    }

    /// The state that they come to.
    pub fn state(&self) -> State {
        core::array::from_fn(|i| FEATURES[i].scale.apply(self.0[i]))
    }
}

impl Monitor {
    /// Of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a report.
    pub fn on_report(&mut self, report: &Report) {
        self.period.add(report);
        self.latest = Latest {
            srtt: report.srtt,
            window: report.window,
            unsent: report.responses.unsent,
            min_rtt: report.min_rtt,
            algorithm: report.algorithm,
        };
        // While nothing happens nothing gets old: after a pause what was known before is the best guess.
        if report.rtt_samples == 0 && report.lost.is_zero() && report.sent.is_zero() {
            return;
        }
        let began = report.now - report.interval;
        let fits = self.len > 0
            && began < self.slices[self.newest].began + SLICE
            && report.now >= self.slices[self.newest].began;
        if !fits {
            self.newest = (self.newest + 1) % SLICES;
            self.slices[self.newest] = Slice { began, ..Slice::default() };
            self.len = (self.len + 1).min(SLICES);
        }
        self.slices[self.newest].add(report);
    }

    /// A selection was made: the metrics of the application begin anew.
    pub fn begin_period(&mut self, now: Time) {
        self.period = Period { began: now, ended: now, ..Period::default() };
    }

    /// The slices of the last 10 s.
    fn window(&self) -> impl Iterator<Item = &Slice> {
        let end = self.slices[self.newest].ended;
        let recent = move |slice: &&Slice| slice.ended + WINDOW > end;
        (0..self.len).map(|i| &self.slices[(self.newest + SLICES - i) % SLICES]).filter(recent)
    }

    /// The metrics now.
    pub fn metrics(&self) -> Metrics {
        let mut all = Slice::default();
        let (mut rates, mut rate_sum, mut rate_squares) = (0.0, 0.0, 0.0);
        for slice in self.window() {
            all.sent += slice.sent;
            all.lost += slice.lost;
            all.delivery_rate = all.delivery_rate.max(slice.delivery_rate);
            if let Some(rate) = slice.full_rate {
                let rate = rate.bits_per_sec();
                rates += 1.0;
                rate_sum += rate;
                rate_squares += rate * rate;
            }
            all.rtt_min = match (all.rtt_min, slice.rtt_min) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            all.rtt_max = all.rtt_max.max(slice.rtt_max);
            all.samples += slice.samples;
            all.rtt_sum += slice.rtt_sum;
            all.rtt_squares += slice.rtt_squares;
            all.lost_rtt += slice.lost_rtt;
        }
        let rtt_min = all.rtt_min.unwrap_or_default().as_secs_f64();
        let over_min = |rtt: f64| if rtt_min > 0.0 { (rtt / rtt_min - 1.0).max(0.0) } else { 0.0 };
        let (period, latest) = (&self.period, &self.latest);
        let is = |name: &str| f64::from(u8::from(latest.algorithm == name));
        let lost = all.lost.as_f64();
        Metrics([
            all.delivery_rate.unwrap_or_default().bits_per_sec(),
            rtt_min,
            share(lost, all.sent.as_f64()),
            over_min(latest.srtt.as_secs_f64()),
            variance(all.samples, all.rtt_sum, all.rtt_squares),
            is("cubic"),
            is("bbr"),
            is("copa"),
            is("westwood"),
            latest.window.as_f64(),
            share(period.goodput, period.finished),
            latest.unsent.as_f64(),
            period.waits.mean(),
            period.waits.slope(),
            period.sent.as_f64(),
            share(period.busy.as_secs_f64(), period.ended.since(period.began).as_secs_f64()),
            over_min(all.rtt_max.as_secs_f64()),
            if lost > 0.0 { over_min(all.lost_rtt / lost) } else { 0.0 },
            share(libm::sqrt(variance(rates, rate_sum, rate_squares)), share(rate_sum, rates)),
            period.finished,
            share(period.size, period.finished),
            latest.min_rtt.as_secs_f64(),
            self.queue_floor(),
            self.queue_quiet(),
            self.delivered(),
            self.rate_rtt(),
        ])
    }

    /// The excess of a round-trip time over the lowest of the connection; 0 where either is not known.
    fn excess(&self, rtt: Option<Duration>) -> f64 {
        let path = self.latest.min_rtt;
        let known = rtt.filter(|_| !path.is_zero());
        known.map_or(0.0, |rtt| (rtt.ratio(path) - 1.0).max(0.0))
    }

    fn queue_floor(&self) -> f64 {
        let end = self.slices[self.newest].ended;
        let recent = self.window().filter(|slice| slice.ended + FLOOR_WINDOW > end);
        self.excess(recent.filter_map(|slice| slice.rtt_min).min())
    }

    fn queue_quiet(&self) -> f64 {
        let measured = self.window().filter(|slice| slice.rtt_min.is_some());
        let quiet = measured.min_by(|a, b| a.rate().total_cmp(&b.rate()));
        self.excess(quiet.and_then(|slice| slice.rtt_min))
    }

    fn delivered(&self) -> f64 {
        let loaded = self.window().filter(|slice| slice.busy * 2 >= slice.length());
        let (acked, sent) = loaded.fold((Bytes::ZERO, Bytes::ZERO), |(acked, sent), slice| {
            (acked + slice.acked, sent + slice.sent)
        });
        share(acked.as_f64(), sent.as_f64())
    }

    /// Pearson's correlation, over the slices with round-trip samples.
    fn rate_rtt(&self) -> f64 {
        let measured = || self.window().filter(|slice| slice.samples > 0.0);
        let pair = |slice: &Slice| (slice.rate(), slice.rtt_sum / slice.samples);
        let n = measured().count() as f64;
        if n < CORRELATED_MIN {
            return 0.0;
        }
        let (rates, rtts) = measured().map(pair).fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        let (mut both, mut of_rate, mut of_rtt) = (0.0, 0.0, 0.0);
        for (rate, rtt) in measured().map(pair) {
            let (rate, rtt) = (rate - rates / n, rtt - rtts / n);
            both += rate * rtt;
            of_rate += rate * rate;
            of_rtt += rtt * rtt;
        }
        // Rounding may take it past 1.
        share(both, libm::sqrt(of_rate * of_rtt)).clamp(-1.0, 1.0)
    }

    /// The state now.
    pub fn state(&self) -> State {
        self.metrics().state()
    }
}

/// `part / whole`; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The sample variance, by number, sum and sum of squares; 0 of fewer than two.
fn variance(n: f64, sum: f64, squares: f64) -> f64 {
    if n < 2.0 { 0.0 } else { ((squares - sum * sum / n) / (n - 1.0)).max(0.0) }
}
