//! Whether the one-way delay grows: a line through the smoothed delays of the last groups, and an
//! adaptive threshold on its slope (libwebrtc `trendline_estimator.cc`; Carlucci et al., "Analysis
//! and design of the Google congestion control for WebRTC", MMSys 2016 §3).

use trimtab_units::Time;

use super::groups::Delta;
use super::knobs::Values;

/// Points of the line (`kDefaultTrendlineWindowSize`), and how many of each end the cap looks at
/// (`trendline_estimator.h` `beginning_packets`, `end_packets`).
const POINTS: usize = 20;
const ENDS: usize = 7;
/// What smoothing keeps (`kDefaultTrendlineSmoothingCoeff`).
const SMOOTHING: f64 = 0.9;
/// The slope counts by the number of groups so far, up to this (`kMinNumDeltas`).
const DELTAS_MAX: u16 = 60;
/// The threshold at first, and its range, in milliseconds (`threshold_`, `UpdateThreshold()`).
const THRESHOLD: (f64, f64, f64) = (6.0, 12.5, 600.0);
/// A trend farther above the threshold is a spike, which does not move it (`kMaxAdaptOffsetMs`).
const SPIKE: f64 = 15.0;
/// The threshold moves for at most so many milliseconds at once (`kMaxTimeDeltaMs`).
const ADAPT_MAX: f64 = 100.0;
/// A trend above the threshold for longer is overuse, in milliseconds (`kOverUsingTimeThreshold`).
const OVERUSE: f64 = 10.0;

/// What the detector says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// The delay stays.
    Normal,
    /// It grows.
    Over,
    /// It falls.
    Under,
}

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// Since the first arrival, in milliseconds.
    arrival: f64,
    /// Smoothed and raw sum of the differences, in milliseconds.
    smoothed: f32,
    raw: f32,
}

/// The line and the detector.
#[derive(Clone, Debug)]
pub(super) struct Trend {
    /// A ring; `next` is the oldest once it is full.
    points: [Point; POINTS],
    next: u8,
    deltas: u16,
    first_arrival: Time,
    accumulated: f64,
    smoothed: f64,
    /// In milliseconds.
    threshold: f64,
    adapted_at: f64,
    last: f64,
    /// For how long the trend has been above the threshold, in milliseconds, and how often in a
    /// row.
    over_for: Option<f64>,
    over: u16,
    usage: Usage,
}

impl Default for Trend {
    fn default() -> Self {
        Self {
            points: [Point::default(); POINTS],
            next: 0,
            deltas: 0,
            first_arrival: Time::ZERO,
            accumulated: 0.0,
            smoothed: 0.0,
            threshold: THRESHOLD.1,
            adapted_at: 0.0,
            last: 0.0,
            over_for: None,
            over: 0,
            usage: Usage::Normal,
        }
    }
}

impl Trend {
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The groups' span, and when the packet arrived that closed it (`UpdateTrendline()`).
    pub(super) fn add(&mut self, delta: Delta, arrival: Time, values: &Values) {
        if self.deltas == 0 {
            self.first_arrival = arrival;
        }
        self.deltas = (self.deltas + 1).min(1000);
        let arrival = arrival.since(self.first_arrival).as_millis_f64();
        let sent = delta.sent.as_millis_f64();
        self.accumulated += delta.arrived.as_millis_f64() - sent;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.accumulated;
        self.points[usize::from(self.next)] =
            Point { arrival, smoothed: self.smoothed as f32, raw: self.accumulated as f32 };
        self.next = (self.next + 1) % POINTS as u8;
        let mut slope = self.last;
        if usize::from(self.deltas) >= POINTS {
            slope = self.fitted().unwrap_or(slope);
            if values.capped && slope >= 0.0 {
                slope = self.cap().map_or(slope, |cap| slope.min(cap));
            }
        }
        self.detect(slope, sent, arrival, values);
    }

    /// Least squares (`LinearFitSlope()`); `None` when all arrived at once.
    fn fitted(&self) -> Option<f64> {
        let n = POINTS as f64;
        let (x, y) = self.points.iter().fold((0.0, 0.0), |(x, y), point| {
            (x + point.arrival / n, y + f64::from(point.smoothed) / n)
        });
        let (across, along) = self.points.iter().fold((0.0, 0.0), |(across, along), point| {
            let dx = point.arrival - x;
            (across + dx * (f64::from(point.smoothed) - y), along + dx * dx)
        });
        (along > 0.0).then(|| across / along)
    }

    /// The slope between the least delays of both ends (`ComputeSlopeCap()`).
    fn cap(&self) -> Option<f64> {
        let oldest = usize::from(self.next);
        let least = |from: usize| {
            let mut points = (from..from + ENDS).map(|i| self.points[(oldest + i) % POINTS]);
            let first = points.next()?;
            Some(points.fold(first, |a, b| if b.raw < a.raw { b } else { a }))
        };
        let (early, late) = (least(0)?, least(POINTS - ENDS)?);
        let span = late.arrival - early.arrival;
        (span >= 1.0).then(|| f64::from(late.raw - early.raw) / span)
    }

    /// `Detect()`.
    fn detect(&mut self, slope: f64, sent: f64, arrival: f64, values: &Values) {
        if self.deltas < 2 {
            return;
        }
        let trend = f64::from(self.deltas.min(DELTAS_MAX)) * slope * values.gain;
        if trend > self.threshold {
            // The first time half of the span since the last group counts.
            let over_for = self.over_for.map_or(sent / 2.0, |before| before + sent);
            self.over_for = Some(over_for);
            self.over = self.over.saturating_add(1);
            if over_for > OVERUSE && self.over > 1 && slope >= self.last {
                (self.over_for, self.over) = (Some(0.0), 0);
                self.usage = Usage::Over;
            }
        } else {
            (self.over_for, self.over) = (None, 0);
            self.usage = if trend < -self.threshold { Usage::Under } else { Usage::Normal };
        }
        self.last = slope;
        self.adapt(trend.abs(), arrival, values);
    }

    /// `UpdateThreshold()`.
    fn adapt(&mut self, trend: f64, arrival: f64, values: &Values) {
        let elapsed = (arrival - self.adapted_at).clamp(0.0, ADAPT_MAX);
        self.adapted_at = arrival;
        if trend > self.threshold + SPIKE {
            return;
        }
        let k = if trend < self.threshold { values.k_down } else { values.k_up };
        let step = k * elapsed * (trend - self.threshold);
        self.threshold = (self.threshold + step).clamp(THRESHOLD.0, THRESHOLD.2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_units::Duration;

    /// Groups 10 ms apart whose delay grows by `growth` ms each.
    fn play(trend: &mut Trend, from: u64, groups: u64, growth: f64) -> Option<u64> {
        let values = Values::default();
        for i in 0..groups {
            let arrived = Duration::from_millis_f64(10.0 + growth);
            let delta = Delta { sent: Duration::from_millis(10), arrived };
            let at = Time::from_millis_f64((from + i) as f64 * (10.0 + growth));
            trend.add(delta, at, &values);
            if trend.usage() == Usage::Over {
                return Some(i);
            }
        }
        None
    }

    /// A queue that grows by 1 ms every 10 ms: the slope is 1/11 and with 60 groups the trend
    /// 60 x 4 / 11 = 21.8 ms. The line needs 20 groups, and the smoothing some more.
    #[test]
    fn a_growing_queue_is_overuse_and_a_standing_one_is_not() {
        let mut trend = Trend::default();
        let at = play(&mut trend, 0, 200, 1.0).expect("overuse");
        assert!((19..60).contains(&at), "group {at}");
        let mut trend = Trend::default();
        assert_eq!(play(&mut trend, 0, 1000, 0.0), None);
        assert_eq!(trend.usage(), Usage::Normal);
        // What does not grow lets the threshold fall to its least.
        assert!((trend.threshold - THRESHOLD.0).abs() < 1e-9, "{}", trend.threshold);
    }

    #[test]
    fn a_falling_queue_is_underuse() {
        let mut trend = Trend::default();
        play(&mut trend, 0, 100, 0.0);
        play(&mut trend, 100, 60, -1.0);
        assert_eq!(trend.usage(), Usage::Under);
    }

    /// Every second of the last groups is late by 60 ms: the line rises, but not the least delays
    /// of its two ends.
    #[test]
    fn the_cap_overlooks_spikes() {
        let slope = |capped: f64| {
            let mut values = Values::default();
            values.set(crate::Knob::place(Values::KNOBS, "capped"), capped);
            let (mut trend, mut arrival) = (Trend::default(), 1000);
            for i in 0..20_u64 {
                let (late, before) = (i >= 14 && i % 2 == 0, i > 14 && i % 2 == 1);
                let arrived = 100 + if late { 60 } else { 0 } - if before { 60 } else { 0 };
                arrival += arrived;
                let [sent, arrived] = [100, arrived].map(Duration::from_millis);
                trend.add(Delta { sent, arrived }, Time::from_millis(arrival), &values);
            }
            trend.last
        };
        assert!(slope(0.0) > 0.005, "{}", slope(0.0));
        assert_eq!(slope(1.0), 0.0);
    }

    /// `UpdateThreshold()`: γ moves by Δt · k · (|m| − γ).
    #[test]
    fn the_threshold_follows_the_trend() {
        let values = Values::default();
        let mut trend = Trend::default();
        trend.adapt(20.0, 10.0, &values);
        assert!((trend.threshold - (12.5 + 10.0 * 0.0087 * 7.5)).abs() < 1e-12);
        let before = trend.threshold;
        trend.adapt(2.0, 15.0, &values);
        assert!((trend.threshold - (before + 5.0 * 0.039 * (2.0 - before))).abs() < 1e-12);
        let before = trend.threshold;
        trend.adapt(before + 15.1, 20.0, &values);
        assert_eq!(trend.threshold, before, "a spike");
    }
}
