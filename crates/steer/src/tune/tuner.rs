//! Mortise for other algorithms than Copa: neighbouring operating points are measured, not replayed.
//!
//! No twin of the flow is at hand, so its boldness alternates between two neighbours of where it
//! stands, a window of time each: shy, bold, bold, shy, and so on, so that a path that gets better
//! or worse favours neither. What the pairs differ by is the secant of Mortise §3.3.
//!
//! What to read first: `boldness.rs`, then `decide` below.

use trimtab_cc::{Phase, Spec};
use trimtab_qoe::{Factors, Hints, Model, OperatingPoint};
use trimtab_units::{Duration, Rate};

use super::path::QUEUE_SLACK;
use super::window::Window;
use super::{DELAY_FLOOR, LOSS_FLOOR, Tuned};
use crate::{Action, Insight, KnobValues, Reason, Report, Steer};

/// How long a window is: so many round trips, and a second at least, since CUBIC's curve and BBR's
/// probes go by the clock.
const ROUNDS: f64 = 20.0;
const WINDOW_MIN: f64 = 1.0;
/// Round trips after a change of the knobs in which what is measured is still of those before.
const SETTLING: f64 = 2.0;
/// The neighbours are so far from the middle while nothing is known, and once it is (§3.3: a wide
/// search first).
const FAR: f64 = 0.3;
const NEAR: f64 = 0.15;
/// What older pairs weigh when a new one comes.
const FADE: f64 = 0.8;
/// The differences of a pair, as shares of the throughput: what they scatter by before any was
/// seen, and what makes none however little they scatter.
const SCATTER: f64 = 0.1;
const NOTABLE: f64 = 0.01;
/// A mean within so many standard errors of zero is noise, and what is beyond has authority.
const CLEAR: f64 = 2.0;
/// The largest step, at σ = 1 and with all authority, which a factor of e between gains and costs
/// takes.
const STEP: f64 = 0.8;
/// How far a decision without evidence goes back to where every flow on the path starts.
const LEAK: f64 = 0.2;
/// Flows start bold where the link is idle for more than this share of the time.
const IDLE: f64 = 0.2;
/// Time constant of that share, in round trips.
const IDLE_ROUNDS: f64 = 10.0;
/// A round-trip time that exceeds the shortest by so many packets of this flow shows a queue.
const QUEUE_PACKETS: f64 = 2.0;
/// More losses than this in so many windows in a row is harm, whatever the application says: all
/// knobs go back to where flows start, and rest for so many windows.
const HARM: f64 = 0.1;
const HARM_WINDOWS: u32 = 4;
const REST_WINDOWS: u32 = 8;

/// The settings of [`Tuner`].
#[derive(Clone, Debug)]
pub struct TunerConfig {
    /// The application's QoE model.
    pub model: Model,
    /// Values of the model's factors that the application does not give while it runs.
    pub factors: Factors,
    /// Share of the way from the achieved to the preferred tradeoff that a step goes (Eq. 5).
    pub sigma: f64,
}

/// What a bolder neighbour brings over a shyer one, each as a share of the throughput: more of it,
/// and what its delay and its losses cost.
#[derive(Clone, Copy, Debug, Default)]
struct Gains {
    throughput: f64,
    delay: f64,
    loss: f64,
}

impl Gains {
    fn sum(&self) -> f64 {
        self.throughput + self.delay + self.loss
    }

    /// The logarithm of what is gained over what it costs: ln(τ/λ) with the losses folded in, and
    /// Eq. 5 among logarithms goes the share σ of it.
    fn excess(&self) -> f64 {
        let all = [self.throughput, self.delay, self.loss];
        let sum = |sign: f64| all.iter().map(|gain| (sign * gain).max(0.0)).sum::<f64>().max(1e-6);
        libm::log(sum(1.0) / sum(-1.0)).clamp(-1.0, 1.0)
    }
}

/// The pairs seen so far, older ones fading.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    count: f64,
    mean: Gains,
    /// Sum of the squared deviations of the pairs from their mean.
    deviations: f64,
}

impl Evidence {
    fn add(&mut self, pair: Gains) {
        self.count = FADE * self.count + 1.0;
        let before = pair.sum() - self.mean.sum();
        let mix = |mean: f64, new: f64| mean + (new - mean) / self.count;
        self.mean = Gains {
            throughput: mix(self.mean.throughput, pair.throughput),
            delay: mix(self.mean.delay, pair.delay),
            loss: mix(self.mean.loss, pair.loss),
        };
        let first = self.count <= 1.0;
        let deviation = if first { 0.0 } else { before * (pair.sum() - self.mean.sum()) };
        self.deviations = FADE * self.deviations + deviation;
    }

    /// The standard error of the mean.
    fn error(&self) -> f64 {
        let error = libm::sqrt(self.deviations + SCATTER * SCATTER) / self.count.max(1.0);
        error.max(NOTABLE)
    }
}

/// The controller of one connection.
#[derive(Clone, Debug)]
pub struct Tuner {
    tuned: &'static Tuned,
    config: TunerConfig,
    /// The middle between the neighbours, from −1 (shyest) over 0 (where flows start) to 1 (boldest).
    boldness: f64,
    /// How far the neighbours are from it.
    reach: f64,
    /// What was learnt: how far the middle is from where flows on this path start.
    learnt: f64,
    evidence: Evidence,
    /// The share of the time in which the link was idle, of late.
    idle: f64,
    window: Window,
    /// The first of the two windows of a pair.
    first: Option<Window>,
    /// Whether the first was the bold one.
    bold_first: bool,
    /// Whether the knobs are where they belong, and for how many seconds they have been.
    begun: bool,
    settled: f64,
    /// Windows in a row that saw harm, and how many are left of the rest after it.
    harmed: u32,
    resting: u32,
    hints: Hints,
    tradeoff: Option<f64>,
}

impl Tuner {
    /// A new connection that runs this algorithm.
    pub fn new(tuned: &'static Tuned, config: TunerConfig) -> Self {
        Self {
            tuned,
            config,
            boldness: 0.0,
            reach: FAR,
            learnt: 0.0,
            evidence: Evidence::default(),
            idle: 0.0,
            window: Window::default(),
            first: None,
            bold_first: false,
            begun: false,
            settled: 0.0,
            harmed: 0,
            resting: 0,
            hints: Hints::default(),
            tradeoff: None,
        }
    }

    /// The algorithm that it steers, as [`Tuned::algorithm`] has it.
    pub fn algorithm(&self) -> Spec {
        self.tuned.algorithm()
    }

    /// The values of the knobs for the window that begins.
    fn values(&self) -> KnobValues {
        if self.resting > 0 {
            return self.tuned.at(0.0);
        }
        let bold = self.first.is_none() == self.bold_first;
        self.tuned.at(self.boldness + if bold { self.reach } else { -self.reach })
    }

    /// Whether the link ran idle, as far as the flow can tell: even a link that is full sometimes.
    fn watch(&mut self, report: &Report, srtt: f64) {
        let length = report.interval.as_secs_f64();
        let packet = length * report.mss.as_f64() / report.acked.as_f64().max(1.0);
        let packets = Duration::from_secs_f64((QUEUE_PACKETS * packet).min(1.0));
        let limit = report.min_rtt + QUEUE_SLACK.max(packets);
        let idle = report.rtt_min.is_some_and(|low| low <= limit);
        let weight = (length / (IDLE_ROUNDS * srtt)).min(1.0);
        self.idle += weight * (f64::from(u8::from(idle)) - self.idle);
    }

    /// Where flows on this path start. A link that is idle has room that nobody uses. What a bold
    /// flow takes of a full one, others lose.
    fn origin(&self) -> f64 {
        self.tuned.bold_when_idle * ((self.idle - IDLE) / (1.0 - IDLE)).max(0.0)
    }

    fn decide(&mut self, [shy, bold]: [Window; 2], factors: &Factors, rtt_min: f64) {
        let mean = |of: fn(&Window) -> f64| 0.5 * (of(&shy) + of(&bold));
        let throughput = mean(Window::throughput);
        if throughput <= 0.0 {
            return;
        }
        let here = OperatingPoint {
            throughput: Rate::from_mbps(throughput),
            delay: Duration::from_secs_f64(mean(Window::delay)),
            loss: mean(Window::loss),
        };
        if let Some(hints) = self.config.model.hints(&here, factors) {
            self.hints = hints; // Eq. 3
        }
        let lambda = self.hints.lambda.max(DELAY_FLOOR * throughput / rtt_min.max(1e-3));
        let beta = self.hints.beta.max(LOSS_FLOOR * throughput);
        let more = |of: fn(&Window) -> f64| (of(&bold) - of(&shy)) / throughput;
        self.evidence.add(Gains {
            throughput: more(Window::throughput),
            delay: -lambda * more(Window::delay),
            loss: -beta * more(Window::loss),
        });
        let seen = self.evidence.mean;
        self.tradeoff = (seen.delay != 0.0).then(|| -lambda * seen.throughput / seen.delay);
        let sure = self.worth().abs() / self.evidence.error();
        let authority = if sure > CLEAR { 1.0 - (CLEAR / sure) * (CLEAR / sure) } else { 0.0 };
        let step = STEP * self.config.sigma * seen.excess() * authority; // Eq. 5
        self.learnt = (self.learnt + step) * (1.0 - LEAK * (1.0 - authority));
        self.learnt = self.learnt.clamp(-1.0, 1.0);
        self.reach = FAR + (NEAR - FAR) * authority;
    }

    /// What boldness brings; nothing where this flow alone sees a gain. The throughput that a bold
    /// flow gains on a full link is taken from others.
    fn worth(&self) -> f64 {
        let own = self.evidence.mean;
        let throughput = own.throughput.min(own.throughput * self.idle);
        let common = Gains { throughput, ..own }.sum();
        if own.sum() < 0.0 { own.sum() } else { common.max(0.0) }
    }

    /// A window is over.
    fn conclude(&mut self, window: Window, report: &Report) {
        self.harmed = if window.loss() > HARM { self.harmed + 1 } else { 0 };
        if self.harmed >= HARM_WINDOWS {
            self.start_anew();
            return;
        }
        if self.resting > 0 {
            // It ran at the origin and not with a neighbour.
            self.resting -= 1;
            return;
        }
        let Some(first) = self.first.take() else {
            self.first = Some(window);
            return;
        };
        let pair = if self.bold_first { [window, first] } else { [first, window] };
        let factors = report.factors.or(&self.config.factors);
        self.decide(pair, &factors, report.min_rtt.as_secs_f64());
        self.bold_first = !self.bold_first;
        let most = 1.0 - self.reach;
        self.boldness = (self.origin() + self.learnt).clamp(-most, most);
    }

    /// Boldness does harm: nothing that was learnt holds any more, and the knobs rest.
    fn start_anew(&mut self) {
        (self.boldness, self.learnt, self.reach) = (0.0, 0.0, FAR);
        (self.evidence, self.first) = (Evidence::default(), None);
        (self.harmed, self.resting) = (0, REST_WINDOWS);
    }
}

impl Steer for Tuner {
    /// A round trip, as Mortise has it; a few a second at least, a hundred at most.
    fn interval(&self, srtt: Duration) -> Duration {
        srtt.max(Duration::from_millis(10)).min(Duration::from_millis(250))
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        // Held back by the application for more than half of the time: says nothing of the path.
        let busy = report.busy.ratio(report.interval) >= 0.5 && report.rtt_mean.is_some();
        let steers = report.algorithm == self.tuned.name() && report.phase != Phase::SlowStart;
        if !steers || !busy {
            return None;
        }
        let srtt = report.srtt.as_secs_f64().max(1e-3);
        self.watch(report, srtt);
        if self.begun {
            if self.settled < SETTLING * srtt {
                self.settled += report.interval.as_secs_f64();
                return None;
            }
            self.window.add(report);
            if self.window.time < WINDOW_MIN.max(ROUNDS * srtt) {
                return None;
            }
            let window = core::mem::take(&mut self.window);
            self.conclude(window, report);
        }
        (self.begun, self.settled) = (true, 0.0);
        Some(Action::Set(self.values()))
    }

    fn reason(&self, _action: &Action) -> Option<Reason> {
        Some(Reason::Preference)
    }

    fn on_model(&mut self, model: &Model) {
        // The other model weighed what was seen of the neighbours. The next report begins a pair.
        self.config.model = model.clone();
        (self.evidence, self.first) = (Evidence::default(), None);
        (self.window, self.begun) = (Window::default(), false);
    }

    fn insight(&self) -> Insight {
        Insight { preference: Some(self.hints), tradeoff: self.tradeoff, ..Insight::default() }
    }
}

#[cfg(test)]
#[path = "tuner_tests.rs"]
mod tests;
