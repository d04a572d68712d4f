//! Mortise for any algorithm: its neighbouring operating points are tried, not replayed.
use trimtab_cc::{Phase, Spec};
use trimtab_qoe::{Factors, Hints, Model, OperatingPoint};
use trimtab_units::{Duration, Rate};

use super::{DELAY_FLOOR, LOSS_FLOOR};
use crate::{Action, Insight, KnobValues, Reason, Report, Steer};

fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A knob on the axis from shy to bold.
#[derive(Debug)]
pub struct Axis {
    knob: &'static str,
    pivot: f64,
    shyest: f64,
    boldest: f64,
}

#[derive(Debug)]
pub struct Tuned {
    pub name: &'static str,
    cycle: f64,
    rounds: f64,
    axes: &'static [Axis],
}

const fn axis(knob: &'static str, pivot: f64, shyest: f64, boldest: f64) -> Axis {
    Axis { knob, pivot, shyest, boldest }
}

pub static TUNED: &[Tuned] = &[
    Tuned { name: "bbr3", cycle: 1.0, rounds: 10.0, axes: &[axis("loss_thresh", 0.0, 0.01, 0.1)] },
    Tuned {
        name: "vivace",
        cycle: 0.0,
        rounds: 10.0,
        axes: &[axis("loss_filter", 0.0, 0.005, 0.1), axis("latency_filter", 0.0, 0.01, 0.1)],
    },
    Tuned {
        name: "cubic",
        cycle: 0.0,
        rounds: 10.0,
        axes: &[axis("beta", 1.0, 0.5, 0.95), axis("c", 0.0, 0.1, 4.0)],
    },
];

impl Tuned {
    pub fn find(name: &str) -> Option<&'static Self> {
        TUNED.iter().find(|t| t.name == name)
    }

    fn spec(&self) -> Spec {
        Spec::new(self.name).expect("in the table")
    }

    fn at(&self, boldness: f64) -> KnobValues {
        let spec = self.spec();
        let value = |axis: &Axis| {
            let knob = spec.algorithm().knobs.iter().find(|k| k.name == axis.knob).expect("knob");
            let end = if boldness < 0.0 { axis.shyest } else { axis.boldest };
            let own = knob.default - axis.pivot;
            axis.pivot + own * libm::pow((end - axis.pivot) / own, boldness.abs())
        };
        self.axes.iter().map(|a| (a.knob, value(a))).collect()
    }
}

#[derive(Clone, Debug)]
pub struct TunerConfig {
    pub model: Model,
    pub factors: Factors,
    pub sigma: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    time: f64,
    mbit: f64,
    lost: f64,
    delay: f64,
    samples: f64,
    full: f64,
}

impl Window {
    fn add(&mut self, report: &Report) {
        let length = report.interval.as_secs_f64();
        self.time += length;
        self.mbit += report.acked.bits() * 1e-6;
        self.lost += report.lost.bits() * 1e-6;
        if let (Some(mean), Some(low)) = (report.rtt_mean, report.rtt_min) {
            let n = report.rtt_samples as f64;
            self.delay += mean.as_secs_f64() * n;
            self.samples += n;
            let packets = 2.0 * report.mss.as_f64() / report.acked.as_f64().max(1.0) * length;
            if low > report.min_rtt + Duration::from_secs_f64(packets.clamp(0.0015, 1.0)) {
                self.full += length;
            }
        }
    }
    fn t(&self) -> f64 {
        self.mbit / self.time.max(1e-9)
    }
    fn d(&self) -> f64 {
        self.delay / self.samples.max(1.0)
    }
    fn l(&self) -> f64 {
        self.lost / (self.lost + self.mbit).max(1e-9)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    count: f64,
    t: f64,
    d: f64,
    l: f64,
    common: f64,
    noise: f64,
}

#[derive(Clone, Debug)]
pub struct Tuner {
    config: TunerConfig,
    tuned: &'static Tuned,
    boldness: f64,
    place: usize,
    flip: bool,
    window: Window,
    windows: [Window; 2],
    settle: f64,
    started: bool,
    evidence: Evidence,
    harmed: u32,
    hints: Hints,
    tradeoff: f64,
    dither: f64,
    rounds: f64,
    settle_rounds: f64,
    room: f64,
    offset: f64,
}

impl Tuner {
    pub fn new(tuned: &'static Tuned, config: TunerConfig) -> Self {
        Self {
            config,
            tuned,
            boldness: env("ORIGIN", 0.0),
            place: 0,
            flip: false,
            window: Window::default(),
            windows: [Window::default(); 2],
            settle: 0.0,
            started: false,
            evidence: Evidence::default(),
            harmed: 0,
            hints: Hints::default(),
            tradeoff: 0.0,
            dither: env("FAR", 0.5),
            rounds: env("ROUNDS", tuned.rounds),
            settle_rounds: env("SETTLE", 2.0),
            room: 0.0,
            offset: 0.0,
        }
    }

    pub fn algorithm(&self) -> Spec {
        self.tuned.spec()
    }
    pub fn boldness(&self) -> f64 {
        self.boldness
    }

    fn bold(&self) -> bool {
        (self.place == 1) != self.flip
    }

    fn values(&self) -> KnobValues {
        let d = if self.bold() { self.dither } else { -self.dither };
        self.tuned.at((self.boldness + d).clamp(-1.0, 1.0))
    }

    fn decide(&mut self, factors: &Factors, min_rtt: f64) {
        let w = self.windows;
        let mean = |f: fn(&Window) -> f64| w.iter().map(f).sum::<f64>() / 2.0;
        let (t, d, l) = (mean(Window::t), mean(Window::d), mean(Window::l));
        if t <= 0.0 {
            return;
        }
        let here = OperatingPoint {
            throughput: Rate::from_mbps(t),
            delay: Duration::from_secs_f64(d),
            loss: l,
        };
        if let Some(hints) = self.config.model.hints(&here, factors) {
            self.hints = hints;
        }
        let lambda = self.hints.lambda.max(DELAY_FLOOR * t / min_rtt.max(1e-3));
        let beta = self.hints.beta.max(LOSS_FLOOR * t);
        let sign = if self.flip { -1.0 } else { 1.0 };
        let contrast = |f: &dyn Fn(&Window) -> f64| sign * (f(&w[1]) - f(&w[0])) / t;
        let dt = contrast(&|w| w.t());
        let dd = contrast(&|w| lambda * w.d());
        let dl = contrast(&|w| beta * w.l());
        let full = w.iter().map(|w| w.full).sum::<f64>() / w.iter().map(|w| w.time).sum::<f64>();
        let fade = env("FADE", 0.8);
        let e = &mut self.evidence;
        e.count = fade * e.count + 1.0;
        let weight = e.count;
        let now = dt - dd - dl;
        let before = e.t - e.d - e.l;
        let mix = |old: &mut f64, new: f64| *old += (new - *old) / weight;
        mix(&mut e.t, dt);
        mix(&mut e.d, dd);
        mix(&mut e.l, dl);
        mix(&mut e.common, dt.min(0.0) + dt.max(0.0) * (1.0 - full));
        let own = e.t - e.d - e.l;
        if e.count > 1.0 {
            e.noise = fade * e.noise + (now - before) * (now - own);
        }
        let prior = env("PRIOR", 0.15);
        let error = (libm::sqrt(e.noise + prior * prior) / weight).max(env("NOISE", 0.01));
        let common = e.common - e.d - e.l;
        self.tradeoff = e.t / e.d.abs().max(1e-9) * lambda;
        let gate = env("GATE", 1.0);
        let judged = if own < 0.0 { own } else { own.min(common).max(0.0) };
        let sure = judged.abs() / error;
        let authority = if sure > gate { 1.0 - gate * gate / (sure * sure) } else { 0.0 };
        let good = e.t.max(0.0) + (-e.d).max(0.0) + (-e.l).max(0.0);
        let bad = (-e.t).max(0.0) + e.d.max(0.0) + e.l.max(0.0);
        let excess = libm::log(good.max(1e-6) / bad.max(1e-6)).clamp(-1.0, 1.0);
        let step = self.config.sigma * 2.0 * env("STEP", 0.4) * excess * authority;
        let leak = env("LEAK", 0.5);
        let far = env("FAR", 0.3);
        let near = env("NEAR", 0.3);
        self.dither = far + (near - far) * authority;
        self.offset = (self.offset + step) * (1.0 - leak * (1.0 - authority));
        self.offset = self.offset.clamp(-1.0, 1.0);
        if std::env::var("DEBUG").is_ok() {
            std::eprintln!("t {t:.2} d {d:.3} l {l:.3} dt {dt:+.3} dd {dd:+.3} dl {dl:+.3} full {full:.2} e.t {:+.3} e.d {:+.3} e.l {:+.3} common {common:+.3} own {own:+.3} err {error:.3} u {:.2} room {:.2}", e.t, e.d, e.l, self.boldness, self.room);
        }
    }
}

impl Steer for Tuner {
    fn interval(&self, srtt: Duration) -> Duration {
        srtt.max(Duration::from_millis(10)).min(Duration::from_millis(250))
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        if report.algorithm != self.tuned.name || report.phase == Phase::SlowStart {
            return None;
        }
        if report.busy.ratio(report.interval) < 0.5 || report.rtt_mean.is_none() {
            return None;
        }
        if !self.started {
            self.started = true;
            return Some(Action::Set(self.values()));
        }
        let srtt = report.srtt.as_secs_f64();
        let packets = 2.0 * report.mss.as_f64() / report.acked.as_f64().max(1.0);
        let slack = (packets * report.interval.as_secs_f64()).clamp(0.0015, 1.0);
        let is_room = report.rtt_min.is_some_and(|low| low <= report.min_rtt + Duration::from_secs_f64(slack));
        let w = report.interval.as_secs_f64() / (env("ROOMT", 10.0) * srtt).max(1e-3);
        self.room += w.min(1.0) * (f64::from(u8::from(is_room)) - self.room);
        if self.settle < self.settle_rounds * srtt {
            self.settle += report.interval.as_secs_f64();
            return None;
        }
        self.window.add(report);
        let cycle = env("CYCLE", self.tuned.cycle);
        if self.window.time < (self.rounds * srtt).max(cycle) {
            return None;
        }
        let harmed = self.window.l() > env("HARM", 0.15);
        self.harmed = if harmed { self.harmed + 1 } else { 0 };
        self.windows[self.place] = core::mem::take(&mut self.window);
        self.place += 1;
        self.settle = 0.0;
        if self.place == 2 {
            let factors = report.factors.or(&self.config.factors);
            self.decide(&factors, report.min_rtt.as_secs_f64());
            self.place = 0;
            self.flip = !self.flip;
            let r0 = env("R0", 0.2);
            let origin = env("ORIGIN", 0.0) + env("ROOM", 1.0) * ((self.room - r0) / (1.0 - r0)).max(0.0);
            let max = 1.0 - self.dither;
            self.boldness = (origin + self.offset).clamp(-max, max);
        }
        if self.harmed >= 4 {
            self.boldness = 0.0;
            self.offset = 0.0;
            self.dither = 0.0;
            self.harmed = 0;
            self.evidence = Evidence::default();
        }
        Some(Action::Set(self.values()))
    }

    fn reason(&self, _action: &Action) -> Option<Reason> {
        Some(Reason::Preference)
    }

    fn on_model(&mut self, model: &Model) {
        self.config.model = model.clone();
        self.evidence = Evidence::default();
    }

    fn insight(&self) -> Insight {
        Insight {
            preference: Some(self.hints),
            tradeoff: Some(self.tradeoff),
            ..Insight::default()
        }
    }
}
