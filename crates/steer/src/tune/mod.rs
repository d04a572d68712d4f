//! Mortise: tuning a knob from the gradient of QoE (Mortise §3).
//!
//! Per decision: measure the operating point; ask the application's model for the preferred tradeoff
//! there (Eq. 3, and over the samples of late Eq. 4); find the tradeoff that is achieved, by the secant
//! over neighbouring operating points; step between the two (Eq. 5); look up the δ that achieves the step.
//!
//! What to read first: the paper's §3.3, then `decide` below, then `twin.rs` for how the neighbours
//! are found and `path.rs` for what is known of the path.

mod boldness;
mod buffer;
mod burst;
mod change_point;
mod paper;
mod path;
mod recent;
mod regime;
mod tuner;
mod twin;
mod window;

pub use boldness::Tuned;
pub use change_point::ChangePoint;
pub use paper::{PaperConfig, PaperMortise};
pub use tuner::{Tuner, TunerConfig};

use alloc::boxed::Box;

use trimtab_cc::{Phase, Spec};
use trimtab_qoe::{Factors, Hints, Model, OperatingPoint};
use trimtab_units::{Duration, Rate};

use crate::{Action, Insight, KnobValues, Needs, Reason, Report, Steer};
use burst::Burst;
use path::Path;
use recent::Recent;
use twin::{Point, replay};

/// The algorithm whose knobs are turned.
const COPA: &str = "copa";
/// Where every flow starts and is drawn back to on a path that drops nothing, in 1/packet …
const DELTA_START: f64 = 0.035;
/// … and where on one that does: above this share of the buffer kept filled, e-fold with each further
/// 1/FULLNESS_GAIN of it, so that all who share a small buffer leave each other room …
const FULLNESS: f64 = 0.4;
const FULLNESS_GAIN: f64 = 8.0;
/// … and twice as high where bursts lose this share of the packets although the queue is short.
const OVERFLOW_SCALE: f64 = 0.03;
/// What delay costs an application, as the share of its throughput that it would give for one base
/// round-trip time less: above this its flows start with less queue, in proportion. Most downloads are
/// below, and all flows of an application agree on it.
const DEAR: f64 = 0.1;
/// Above this many times [`DEAR`] a flow yields to those that fill the queue: a share of it is not worth
/// the delay of claiming one, and its own kind, which it may take for them, does without that delay.
const YIELDS: f64 = 3.0;
/// The preference has all of its weight from this σ on.
const SIGMA_FULL: f64 = 0.5;
/// Weight of a decision in the price of late.
const PRICE_WEIGHT: f64 = 0.2;
/// The range of δ that is steered: the paper's prototype stays above 0.01; above 1 a flow keeps
/// hardly a packet waiting.
const DELTA_MIN: f64 = 0.01;
const DELTA_MAX: f64 = 1.0;
/// The five values of `mortise-disc` (Mortise §5.1 leaves them open).
const DISCRETE: [f64; 5] = [0.04, 0.08, 0.16, 0.3, 0.5];
/// Neighbouring operating points are this factor of δ apart, and that after a change point.
const NEIGHBOUR: f64 = 1.25;
const NEIGHBOUR_FAR: f64 = 1.8;
/// Neighbours on each side, and all points.
const SIDE: usize = 2;
const POINTS: usize = 2 * SIDE + 1;
/// Reports per decision, at first and once converged.
const PERIOD_MIN: u32 = 4;
const PERIOD_MAX: u32 = 32;
/// A step of δ by more than this factor (its logarithm) shows that it has not converged.
const FAR: f64 = 0.2;
/// The network's own price where the application has none: a base round trip of delay is worth this
/// share of the throughput …
const DELAY_FLOOR: f64 = 0.001;
/// … and a loss this many times its share of it.
const LOSS_FLOOR: f64 = 1.0;
/// The queue that is worth keeping whatever its delay costs, as packets and as time: with less, the
/// jitter of the link and of the acknowledgements idles it.
const QUEUE_MIN: f64 = 4.0;
const QUEUE_MIN_S: f64 = 0.0025;
/// Overflow above this is reason to keep less.
const OVERFLOW: f64 = 0.005;
/// Overflow above this at so many decisions in a row is harm, whatever the application says: δ goes
/// back to the setting that is safe on any path, Copa's own default (NSDI 2018 §2).
const HARM: f64 = 0.1;
const HARM_DECISIONS: u32 = 4;
const DELTA_SAFE: f64 = 0.5;
/// Mean queue of a lone flow, in multiples of 1/δ (Copa §3).
const MEAN_QUEUE: f64 = 1.25;
/// How far each decision goes back to where every flow starts. What a flow sees of its own share is
/// noise to the others; without a common origin their δ drift apart, and with them their shares, which
/// are as 1/δ (Copa §3).
const LEAK: f64 = 0.5;
/// Share of a step that a decision takes: what one sees is noisy, and two in a row must not swing.
const CAUTION: f64 = 0.5;
const VELOCITY_MAX: f64 = 2.0;
/// Next to flows that fill the queue it claims the share that CUBIC would get, or none.
const COMPETITIVE: &str = "competitive";
const CLAIMS: f64 = 2.0;
const CLAIMS_NOTHING: f64 = 0.0;
/// What Mortise sets of Copa at first. Velocity without bound overflows buffers that one flow in
/// equilibrium never fills; losses beyond noise are answered; variable links look like competition;
/// and the queue is drained to measure the path every 15 s, not every 5 s.
const SETTINGS: [(&str, f64); 7] = [
    ("delta", DELTA_START),
    ("velocity_max", VELOCITY_MAX),
    (COMPETITIVE, CLAIMS),
    ("growth_max", 0.25),
    ("min_rtt_window", 30.0),
    ("loss_beta", 0.7),
    ("loss_tolerance", 0.1),
];

/// The settings of [`Mortise`].
#[derive(Clone, Debug)]
pub struct MortiseConfig {
    /// The application's QoE model.
    pub model: Model,
    /// Values of the model's factors that the application does not give while it runs.
    pub factors: Factors,
    /// Share of the way from the achieved to the preferred tradeoff that a step goes (Eq. 5), 0 to 1.
    pub sigma: f64,
    /// Whether change-point detection on bandwidth restarts the search (§3.3).
    pub change_points: bool,
    /// Whether δ takes one of five values only (`mortise-disc`).
    pub discrete: bool,
}

impl MortiseConfig {
    /// The paper's settings for an application with this model.
    pub fn new(model: Model) -> Self {
        Self { model, factors: Factors::new(), sigma: 0.5, change_points: true, discrete: false }
    }
}

/// The controller of one connection.
#[derive(Clone, Debug)]
pub struct Mortise {
    config: MortiseConfig,
    delta: f64,
    /// The δ that the algorithm was told last, and how to meet flows that fill the queue; `None` where
    /// somebody else told it.
    applied: f64,
    rivalry: Option<f64>,
    path: Path,
    change_point: ChangePoint,
    hints: Hints,
    tradeoff: f64,
    /// Reports since the last decision, and how many the next one waits for.
    reports: u32,
    period: u32,
    /// A change point was seen, and nothing decided since.
    exploring: bool,
    /// Decisions in a row that saw harm.
    harmed: u32,
    /// Logarithm of what delay costs of late: λ in units of throughput per base round-trip time.
    price: f64,
    burst: Burst,
    /// `None` where the model does not read samples.
    recent: Option<Box<Recent>>,
}

impl Mortise {
    /// A new connection.
    pub fn new(config: MortiseConfig) -> Self {
        Self {
            recent: config.model.reads_samples().then(Box::default),
            config,
            delta: DELTA_START,
            applied: DELTA_START,
            rivalry: Some(CLAIMS),
            path: Path::new(),
            change_point: ChangePoint::new(),
            hints: Hints::default(),
            tradeoff: 0.0,
            reports: 0,
            period: PERIOD_MIN,
            exploring: true,
            harmed: 0,
            price: libm::log(DEAR),
            burst: Burst::new(),
        }
    }

    /// A connection that has been steered before, by a process that is gone, and has this δ in 1/packet.
    pub fn resume(config: MortiseConfig, delta: f64) -> Self {
        let delta = delta.clamp(DELTA_MIN, DELTA_MAX);
        Self { delta, applied: delta, rivalry: None, ..Self::new(config) }
    }

    /// Copa runs with this δ in 1/packet, which somebody else chose: what follows starts from there.
    pub fn start_from(&mut self, delta: f64) {
        (self.delta, self.applied, self.rivalry) = (delta, delta, None);
    }

    /// The algorithm that it steers: Copa, with what it sets once.
    ///
    /// # Panics
    /// Never: a test builds it.
    pub fn algorithm() -> Spec {
        let mut spec = Spec::new(COPA).expect("Copa is in the table");
        for (knob, value) in SETTINGS {
            spec.set(knob, value).expect("within the knob's range");
        }
        spec
    }

    /// Its settings.
    pub fn config(&self) -> &MortiseConfig {
        &self.config
    }

    /// The value of δ that the algorithm has been told, in 1/packet.
    pub fn applied_delta(&self) -> f64 {
        self.applied
    }

    /// The application's preference at the last decision.
    pub fn hints(&self) -> Hints {
        self.hints
    }

    /// The achieved tradeoff at the last decision, in Mbit/s per second of delay.
    pub fn tradeoff(&self) -> f64 {
        self.tradeoff
    }

    /// The operating points of the neighbours of δ, from the boldest (least δ) to the shyest.
    fn neighbours(&self, ratio: f64) -> [Point; POINTS] {
        let overflow = self.path.overflow();
        let factors: [f64; POINTS] =
            core::array::from_fn(|i| libm::pow(ratio, i as f64 - SIDE as f64));
        let points = replay(&self.path, factors.map(|factor| self.delta * factor), VELOCITY_MAX);
        // What the buffer drops is measured, and goes with the queue that a neighbour keeps.
        core::array::from_fn(|i| Point { loss: (overflow / factors[i]).min(0.5), ..points[i] })
    }

    fn decide(&mut self, factors: &Factors, packet_mbit: f64) {
        let ratio = if self.exploring { NEIGHBOUR_FAR } else { NEIGHBOUR };
        let points = self.neighbours(ratio);
        let here = OperatingPoint {
            throughput: Rate::from_mbps(points[SIDE].throughput * packet_mbit),
            delay: Duration::from_secs_f64(points[SIDE].delay),
            loss: self.path.loss(points[SIDE].loss),
        };
        let hints = match &self.recent {
            None => self.config.model.hints(&here, factors),
            Some(recent) => self.config.model.hints_over(&here, &recent.samples(), factors),
        };
        if let Some(hints) = hints {
            self.hints = hints;
        }
        let throughput = here.throughput_mbps();
        let lambda = self.hints.lambda.max(DELAY_FLOOR * throughput / self.path.rtt_min.max(1e-3));
        let beta = self.hints.beta.max(LOSS_FLOOR * throughput);
        let price = self.hints.lambda * self.path.rtt_min / throughput.max(1e-9);
        if price.is_finite() {
            self.price += PRICE_WEIGHT * (libm::log(price.clamp(1e-6, 1e6)) - self.price);
        }
        // The achieved tradeoff between two neighbours, and the preferred one, into which the price
        // of the losses that come with the delay is folded: ΔT = λ·ΔD + β·ΔL.
        let tradeoffs = |bold: Point, shy: Point| {
            let delay = (bold.delay - shy.delay).max(1e-6);
            let gain = (bold.throughput - shy.throughput) * packet_mbit;
            let preferred = lambda + beta * (bold.loss - shy.loss).max(0.0) / delay;
            (gain / delay, preferred.max(1e-12))
        };
        let (achieved, preferred) = tradeoffs(points[SIDE - 1], points[SIDE + 1]);
        self.tradeoff = achieved;
        // Eq. 5, as a share of the preference, which itself changes from neighbour to neighbour.
        let sigma = self.config.sigma;
        let next = (sigma * preferred + (1.0 - sigma) * achieved) / preferred;
        let excess: [f64; POINTS - 1] = core::array::from_fn(|i| {
            let (achieved, preferred) = tradeoffs(points[i], points[i + 1]);
            achieved / preferred - next
        });
        let step = crossing(&excess) * libm::log(ratio);
        let pull = LEAK * libm::log(self.origin() / self.delta);
        let delta =
            (self.delta * libm::exp(CAUTION * (step + pull))).clamp(DELTA_MIN, self.delta_max());
        let harmed = self.path.overflow() > HARM;
        self.harmed = if harmed { self.harmed + 1 } else { 0 };
        let delta = if self.harmed >= HARM_DECISIONS { delta.max(DELTA_SAFE) } else { delta };
        let moved = libm::log(delta / self.delta).abs();
        self.period = if moved > FAR { PERIOD_MIN } else { (self.period * 2).min(PERIOD_MAX) };
        self.exploring = false;
        self.delta = delta;
    }

    /// Where this application's flows on this path start: what all of them can agree on, because all wait
    /// in the same queue and pay the same price.
    fn origin(&self) -> f64 {
        let crowded = libm::exp(FULLNESS_GAIN * (self.path.fullness() - FULLNESS).max(0.0));
        let overflow = self.path.overflow() / OVERFLOW_SCALE;
        (DELTA_START * crowded * (1.0 + overflow * overflow) * self.dear()).min(DELTA_SAFE)
    }

    /// How dear delay is to the application, in multiples of [`DEAR`]; 1 where it is cheaper, or where
    /// the preference has no weight.
    fn dear(&self) -> f64 {
        let weight = (self.config.sigma / SIGMA_FULL).min(1.0);
        libm::exp(weight * (self.price - libm::log(DEAR))).max(1.0)
    }

    /// Without overflow no queue is kept below what jitter takes, unless delay is dear.
    fn delta_max(&self) -> f64 {
        if self.path.overflow() > OVERFLOW {
            return DELTA_MAX;
        }
        let queue = QUEUE_MIN.max(self.path.capacity * QUEUE_MIN_S) / self.dear();
        (MEAN_QUEUE / queue).clamp(2.0 * DELTA_MIN, DELTA_MAX)
    }

    /// What the algorithm is to be told, where it was told something else.
    fn told(&mut self) -> Option<Action> {
        let delta = if self.config.discrete { nearest(self.delta) } else { self.delta };
        let rivalry = if self.dear() > YIELDS { CLAIMS_NOTHING } else { CLAIMS };
        let mut values = KnobValues::NONE;
        if delta != self.applied {
            values = values.with("delta", delta);
        }
        if Some(rivalry) != self.rivalry {
            values = values.with(COMPETITIVE, rivalry);
        }
        (self.applied, self.rivalry) = (delta, Some(rivalry));
        (!values.is_empty()).then_some(Action::Set(values))
    }

    /// The regime has changed: what was learnt of it is dropped, and the search starts wide.
    fn explore(&mut self) {
        self.path.forget(PERIOD_MIN as usize);
        if let Some(recent) = &mut self.recent {
            **recent = Recent::default();
        }
        self.exploring = true;
        self.period = PERIOD_MIN;
        self.reports = 0;
    }
}

/// Where the excess of the achieved over the next tradeoff turns from too little to too much, in
/// neighbours from the middle, shyer being positive; beyond the last one where it does not turn.
fn crossing(excess: &[f64; POINTS - 1]) -> f64 {
    let at = |i: usize| i as f64 + 0.5 - SIDE as f64;
    for i in 1..excess.len() {
        let (before, after) = (excess[i - 1], excess[i]);
        if before < 0.0 && after >= 0.0 {
            return at(i - 1) + before / (before - after);
        }
    }
    let middle = 0.5 * (excess[SIDE - 1] + excess[SIDE]);
    if middle > 0.0 { at(0) } else { at(excess.len() - 1) }
}

impl Steer for Mortise {
    /// A round trip, as the paper has it; a few a second at least, a hundred at most.
    fn interval(&self, srtt: Duration) -> Duration {
        srtt.max(Duration::from_millis(10)).min(Duration::from_millis(250))
    }

    fn needs(&self) -> Needs {
        Needs { samples: self.recent.is_some(), ..Needs::default() }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        // What another algorithm does says nothing of δ.
        if report.algorithm != COPA {
            return None;
        }
        let step = self.path.on_report(report, self.delta)?;
        if step.full && self.config.change_points && self.change_point.on_sample(step.capacity) {
            self.explore();
        }
        if let Some(recent) = &mut self.recent {
            recent.on_report(report);
        }
        if report.phase == Phase::SlowStart {
            return None;
        }
        self.reports += 1;
        if self.reports < self.period || self.path.steps().len() < PERIOD_MIN as usize {
            // At most one action a report, and δ goes first.
            let gain = self.burst.on_report(&self.path, report)?;
            return Some(Action::Set(KnobValues::one("pacing_gain", gain)));
        }
        self.reports = 0;
        let factors = report.factors.or(&self.config.factors);
        self.decide(&factors, report.mss.bits() * 1e-6);
        self.told()
    }

    fn reason(&self, action: &Action) -> Option<Reason> {
        let by_burst = matches!(action, Action::Set(values) if values.get("pacing_gain").is_some());
        Some(if by_burst { Reason::Burst } else { Reason::Preference })
    }

    fn on_model(&mut self, model: &Model) {
        // What it learnt of the path was weighed by the other model; δ goes on from where it is.
        let config = MortiseConfig { model: model.clone(), ..self.config.clone() };
        *self = Self::resume(config, self.applied_delta());
    }

    fn insight(&self) -> Insight {
        Insight {
            preference: Some(self.hints),
            tradeoff: Some(self.tradeoff),
            ..Insight::default()
        }
    }
}

/// The discrete value nearest to δ, by ratio.
fn nearest(delta: f64) -> f64 {
    let distance = |d: f64| libm::log(d / delta).abs();
    DISCRETE.into_iter().fold(DISCRETE[0], |a, b| if distance(b) < distance(a) { b } else { a })
}

#[cfg(test)]
mod tests;
