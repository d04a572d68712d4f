//! Mortise as it was published, without what `tune` has added since: the control for it.
//!
//! The paper (NSDI 2026, §3) comes first. It leaves numbers open; these are of its published prototype
//! (github.com/BobAnkh/Mortise), which is also the source of the closed forms. Left out are the
//! prototype's departures from the paper: a Copa that aims at 1.7 times its target rate, λ and β in
//! mixed units, and adjustments of δ after the search. Eq. 5 stands in place of its smoothing of δ.
//!
//! What to read first: the paper's §3.3, then `decide` below, then `closed_form.rs`.

mod change_point;
mod closed_form;
mod filter;
mod signal;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use trimtab_cc::{Phase, Spec};
use trimtab_qoe::{Factors, Hints, Model, OperatingPoint};
use trimtab_units::{Duration, Rate};

use super::COPA;
use super::recent::Recent;
use super::twin::Point;
use super::window::Window;
use crate::{Action, Insight, KnobValues, Needs, Reason, Report, Steer};
use change_point::Detector;
use closed_form::Conditions;
use signal::{Sample, Signal};

/// Where every flow starts, in 1/packet.
const DELTA_START: f64 = 0.1;
/// No flow is shyer than Copa's own default.
const DELTA_MAX: f64 = 0.5;
/// The neighbouring operating points of the secant: these multiples of δ.
const BOLDER: f64 = 0.76;
const SHYER: f64 = 1.24;
/// Losses that differ by no more than this give no tradeoff.
const LOSS_NOTABLE: f64 = 0.005;
/// A tradeoff within this factor of the preferred one is near it.
const NEAR: f64 = 2.0;
/// Far from it δ moves by one of these, and by the lesser where losses call for the other way.
const STRIDE: f64 = 1.24;
const STRIDE_LESSER: f64 = 1.12;
/// The search for the δ of a tradeoff goes by this.
const SEARCH_STEP: f64 = 0.025;
/// The least δ of a search and of a stride where delay costs nothing, and what each Mbit/s for a
/// millisecond adds.
const SEARCH_MIN: f64 = 0.012;
const STRIDE_MIN: f64 = 0.010;
const MIN_PER_LAMBDA: f64 = 0.1;
/// Where neither delay nor loss has a price, such as for a video that does not stall (Eq. 9), δ goes
/// by this down to the value of the paper's baseline Copa MVFST. The paper does not say; its prototype
/// prices every video as if it stalled. A price is none below this share of the throughput, for a
/// round trip of delay or for all packets: the model of video rounds Eq. 9 off.
const SILENT: f64 = 1e-4;
const SILENT_STRIDE: f64 = 0.75;
const SILENT_MIN: f64 = 0.04;
/// A search and a stride go no further down than this share of δ.
const SEARCH_REACH: f64 = 0.5;
const STRIDE_REACH: f64 = 1.0 / 3.0;
/// The most δ keeps 1/δ packets for this share of a round trip.
const SEARCH_QUEUE: f64 = 0.08;
const STRIDE_QUEUE: f64 = 0.1;
/// An interval is an oscillation of Copa's window, which takes so many round trips (Copa §2.2).
const OSCILLATION: u64 = 5;
/// Intervals per decision, far from the preferred tradeoff and near it. The paper has the measure
/// take longer when near (§3.3) without numbers; the prototype always takes 5.
const PERIOD_FAR: usize = 3;
const PERIOD_NEAR: usize = 8;
/// So many intervals are known before a change of the bandwidth is believed.
const KNOWN: usize = 10;
/// Intervals whose losses are the loss ratio of now.
const LOSS_INTERVALS: usize = 2;
/// From peak to peak, in standard deviations.
const PEAK_TO_PEAK: f64 = 2.0;

/// The settings of [`PaperMortise`].
#[derive(Clone, Debug)]
pub struct PaperConfig {
    /// The application's QoE model.
    pub model: Model,
    /// Values of the model's factors that the application does not give while it runs.
    pub factors: Factors,
    /// Share of the way from the achieved to the preferred tradeoff that a step goes (Eq. 5), 0 to 1.
    pub sigma: f64,
    /// Whether change-point detection on bandwidth restarts the search (§3.3).
    pub change_points: bool,
}

/// What the reports of an oscillation of Copa's window said.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    window: Window,
    fast: Spread,
    slow: Spread,
    /// How often the slow swings turned.
    turns: f64,
}

/// Samples by their number, sum and sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        libm::sqrt((self.squares / self.count.max(1.0) - mean * mean).max(0.0))
    }
}

impl Interval {
    fn add(&mut self, report: &Report, sample: Sample) {
        self.window.add(report);
        self.fast.add(sample.fast);
        self.slow.add(sample.slow);
        self.turns += f64::from(u8::from(sample.turned));
    }

    fn merge(mut self, other: &Self) -> Self {
        self.window.merge(&other.window);
        self.fast.merge(&other.fast);
        self.slow.merge(&other.slow);
        self.turns += other.turns;
        self
    }
}

/// The controller of one connection.
#[derive(Clone, Debug)]
pub struct PaperMortise {
    config: PaperConfig,
    delta: f64,
    signal: Signal,
    /// The interval that runs, and those before of the present regime, the last one at the end.
    running: Interval,
    intervals: VecDeque<Interval>,
    detector: Detector,
    /// Intervals since the last decision and since the last change point, and how many the next
    /// decision waits for.
    waited: usize,
    known: usize,
    period: usize,
    /// The queue, in multiples of 1/δ, that the buffer held when it last dropped packets.
    queue_max: Option<f64>,
    hints: Hints,
    tradeoff: Option<f64>,
    rtt_min: Duration,
    /// `None` where the model does not read samples.
    recent: Option<Box<Recent>>,
}

impl PaperMortise {
    /// A new connection.
    pub fn new(config: PaperConfig) -> Self {
        Self {
            recent: config.model.reads_samples().then(Box::default),
            config,
            delta: DELTA_START,
            signal: Signal::default(),
            running: Interval::default(),
            intervals: VecDeque::new(),
            detector: Detector::new(),
            waited: 0,
            known: 0,
            period: PERIOD_FAR,
            queue_max: None,
            hints: Hints::default(),
            tradeoff: None,
            rtt_min: Duration::ZERO,
        }
    }

    /// The algorithm that it steers: Copa as its paper has it, with the δ of a new connection.
    ///
    /// # Panics
    /// Never: a test builds it.
    pub fn algorithm() -> Spec {
        let mut spec = Spec::new(COPA).expect("Copa is in the table");
        spec.set("delta", DELTA_START).expect("within the knob's range");
        spec
    }

    /// The value of δ that the algorithm has been told, in 1/packet.
    pub fn applied_delta(&self) -> f64 {
        self.delta
    }

    /// An interval is over: whether it is time to decide, and whether widely.
    fn conclude(&mut self) -> Option<bool> {
        let interval = core::mem::take(&mut self.running);
        if interval.window.loss() > 0.0 {
            self.queue_max = Some((1.0 - interval.window.loss()) / self.delta);
        }
        if self.intervals.len() == PERIOD_NEAR {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval);
        self.waited += 1;
        self.known += 1;
        let detects = self.config.change_points;
        let new = detects.then(|| self.detector.on_sample(self.signal.rate() * 8e-6)).flatten();
        match new.filter(|_| self.known > KNOWN) {
            Some(age) => {
                self.forget(age);
                Some(true)
            }
            None => (self.waited >= self.period).then_some(false),
        }
    }

    /// §3.3: of the history only the new regime is kept, which has this age in intervals.
    fn forget(&mut self, age: usize) {
        let old = self.intervals.len().saturating_sub(age.max(1));
        self.intervals.drain(..old);
        self.queue_max = None;
        self.known = 0;
        if let Some(recent) = &mut self.recent {
            **recent = Recent::default();
        }
    }

    fn all(&self) -> Interval {
        self.intervals.iter().fold(Interval::default(), Interval::merge)
    }

    /// The loss ratio of now.
    fn loss(&self) -> f64 {
        let last = self.intervals.iter().rev().take(LOSS_INTERVALS);
        last.fold(Interval::default(), Interval::merge).window.loss()
    }

    fn conditions(&self, all: &Interval, packet_mbit: f64) -> Conditions {
        Conditions {
            rate: self.signal.rate() * 8e-6 / packet_mbit,
            rtt_min: self.rtt_min.as_secs_f64(),
            fast: PEAK_TO_PEAK * all.fast.deviation(),
            slow: PEAK_TO_PEAK * all.slow.deviation(),
            width: all.window.time / (all.turns + 1.0),
            queue_max: self.queue_max,
        }
    }

    /// §3.3: measure the operating point, ask for the preferred tradeoff there (Eq. 3), find the
    /// achieved one by the secant between its neighbours, and step between the two (Eq. 5).
    fn decide(&mut self, wide: bool, factors: &Factors, packet_mbit: f64) {
        let all = self.all();
        let path = self.conditions(&all, packet_mbit);
        let here = OperatingPoint {
            throughput: Rate::from_mbps(path.rate * packet_mbit),
            delay: Duration::from_secs_f64(all.window.delay()),
            loss: self.loss(),
        };
        if here.throughput.is_zero() {
            return;
        }
        let hints = match &self.recent {
            None => self.config.model.hints(&here, factors), // Eq. 3
            Some(recent) => self.config.model.hints_over(&here, &recent.samples(), factors), // Eq. 4
        };
        if let Some(hints) = hints {
            self.hints = hints;
        }
        let Hints { lambda, beta } = self.hints;
        let bold = path.at(BOLDER * self.delta);
        let shy = path.at((SHYER * self.delta).min(DELTA_MAX));
        let gain = (bold.throughput - shy.throughput) * packet_mbit;
        let tradeoff = gain / (bold.delay - shy.delay);
        let lost = bold.loss - shy.loss;
        self.tradeoff = Some(tradeoff);
        let near = tradeoff < NEAR * lambda && lambda < NEAR * tradeoff;
        let dearest = (lambda * path.rtt_min).max(beta);
        let next = if dearest < SILENT * here.throughput_mbps() {
            (SILENT_STRIDE * self.delta).max(SILENT_MIN)
        } else if near || wide {
            // A wide search goes all the way (the prototype's, after a change point).
            let sigma = if wide { 1.0 } else { self.config.sigma };
            let step = |preferred: f64, achieved: f64| sigma * preferred + (1.0 - sigma) * achieved;
            let price = step(lambda, tradeoff); // Eq. 5
            let loss_price = if lost > LOSS_NOTABLE { step(beta, gain / lost) } else { beta };
            self.search(&path, wide, [price, loss_price], packet_mbit)
        } else {
            self.stride(&path, tradeoff < lambda)
        };
        self.delta = next;
        self.period = if near { PERIOD_NEAR } else { PERIOD_FAR };
        self.waited = 0;
    }

    /// The δ whose tradeoffs are these: there more delay and loss cost what their throughput is
    /// worth.
    fn search(&self, path: &Conditions, wide: bool, prices: [f64; 2], packet_mbit: f64) -> f64 {
        let worth = |point: Point| {
            let [price, loss_price] = prices;
            point.throughput * packet_mbit
                - price * point.delay / (1.0 - point.loss).max(0.01)
                - loss_price * point.loss
        };
        let reach = if wide { 0.0 } else { SEARCH_REACH * self.delta };
        let least = self.least(SEARCH_MIN).max(reach);
        let most = most(path, SEARCH_QUEUE);
        let mut best: Option<(f64, f64)> = None;
        let mut delta = least;
        while delta <= most {
            let worth = worth(path.at(delta));
            if best.is_none_or(|(_, so_far)| worth > so_far) {
                best = Some((delta, worth));
            }
            delta += SEARCH_STEP;
        }
        best.map_or(self.delta, |(delta, _)| delta)
    }

    /// A step in the right direction, which is all that is known far from the optimum.
    fn stride(&self, path: &Conditions, shyer: bool) -> f64 {
        let loses = self.loss() > LOSS_NOTABLE;
        let factor = match (shyer, loses) {
            (true, true) => STRIDE,
            (true, false) => STRIDE_LESSER,
            (false, false) => 1.0 / STRIDE,
            (false, true) => 1.0 / STRIDE_LESSER,
        };
        let least = self.least(STRIDE_MIN).max(STRIDE_REACH * self.delta);
        (self.delta * factor).min(most(path, STRIDE_QUEUE)).max(least).min(DELTA_MAX)
    }

    /// The least δ, which is more where delay is dear.
    fn least(&self, cheap: f64) -> f64 {
        cheap + MIN_PER_LAMBDA * self.hints.lambda * 1e-3
    }
}

/// The δ that keeps 1/δ packets for this share of a round trip.
fn most(path: &Conditions, share: f64) -> f64 {
    (1.0 / (share * path.rtt_min * path.rate).max(1e-9)).min(DELTA_MAX)
}

impl Steer for PaperMortise {
    fn interval(&self, srtt: Duration) -> Duration {
        signal::step(if self.rtt_min.is_zero() { srtt } else { self.rtt_min })
    }

    fn needs(&self) -> Needs {
        Needs { samples: self.recent.is_some(), ..Needs::default() }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        if report.algorithm != COPA {
            return None;
        }
        self.rtt_min = report.min_rtt;
        // Held back by the application for more than half of the time: says nothing of the path.
        if report.busy.ratio(report.interval) < 0.5 {
            return None;
        }
        let sample = self.signal.on_report(report)?;
        if let Some(recent) = &mut self.recent {
            recent.on_report(report);
        }
        if report.phase == Phase::SlowStart {
            return None;
        }
        self.running.add(report, sample);
        if self.running.window.time < (report.srtt * OSCILLATION).as_secs_f64() {
            return None;
        }
        let wide = self.conclude()?;
        let (before, factors) = (self.delta, report.factors.or(&self.config.factors));
        self.decide(wide, &factors, report.mss.bits() * 1e-6);
        (self.delta != before).then(|| Action::Set(KnobValues::one("delta", self.delta)))
    }

    fn reason(&self, _action: &Action) -> Option<Reason> {
        Some(Reason::Preference)
    }

    fn on_model(&mut self, model: &Model) {
        self.config.model = model.clone();
        self.recent = model.reads_samples().then(Box::default);
        (self.hints, self.tradeoff) = (Hints::default(), None);
    }

    fn insight(&self) -> Insight {
        Insight { preference: Some(self.hints), tradeoff: self.tradeoff, ..Insight::default() }
    }
}

#[cfg(test)]
mod tests;
