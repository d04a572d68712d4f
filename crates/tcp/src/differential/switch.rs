//! Hand-overs: the C core in the kernel's role against `trimtab_cc::migrate::Switcher`, with requests at random moments.
//!
//! The Rust side drives. Each time it switches, the core has to find that it is time, too, and takes over from its own state.
//! Windows of CUBIC are whole packets, Copa's are not, so the window that goes over is the one of the Rust side: as the
//! socket's window in the kernel, it is none of the core's business.

use std::collections::VecDeque;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_cc::{
    Ack, Config, CongestionControl as _, Idle, Loss, Phase, RateSample, Sent, Spec, Timeout,
};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::AGREE;
use super::core::CoreCopa;
use super::cubic_core::CoreCubic;
use super::path::spread;
use super::switch_core::{CorePath, cubic_is_converged};
use crate::algorithm::Algorithm;
use crate::knobs::{self, Words};
use crate::layout;

const SEQUENCES: u64 = 1500;
const EVENTS: u64 = 1500;
/// Values of δ that the kernel's integers have exactly.
const DELTAS: [f64; 4] = [0.5, 0.25, 0.0625, 0.03125];
/// As in `cubic.rs` beside this.
const NO_THRESHOLD: u32 = u32::MAX;

/// How often the two agreed, and where the sequences went.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    events: u64,
    /// Of these, with CUBIC; and those of them after which both windows were the same to the packet.
    cubic: u64,
    cubic_windows: u64,
    /// With Copa: after which both windows were the same within a hundredth. It decides by thresholds, see `mod.rs`.
    copa_windows: u64,
    /// Sum of the logarithms of the ratio of both windows.
    log_ratio: f64,
    modes: u64,
    /// After which the least round-trip time, its moment and the bandwidth were the same.
    paths: u64,
    full: u64,
    part: u64,
    /// Where nothing was known.
    over: u64,
    /// Of all these, those that the core made at the same event.
    agreed: u64,
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.cubic += other.cubic;
        self.cubic_windows += other.cubic_windows;
        self.copa_windows += other.copa_windows;
        self.log_ratio += other.log_ratio;
        self.modes += other.modes;
        self.paths += other.paths;
        self.full += other.full;
        self.part += other.part;
        self.over += other.over;
        self.agreed += other.agreed;
    }
}

enum Running {
    Copa(CoreCopa),
    Cubic(CoreCubic),
}

struct Path {
    rng: Pcg64Mcg,
    mss: u64,
    now: u64,
    base: u64,
    /// Packets per second.
    rate: f64,
    buffer: u64,
    loss: f64,
    srtt: u64,
    least: u64,
    /// When each packet in flight was sent, oldest first.
    flying: VecDeque<u64>,
    last_sent: u64,
    delivered: u64,
    gone: u64,
    cumulative: u64,
    episode: Option<u64>,
    stalled: bool,
    in_recovery: bool,
    /// Whether there are samples of the delivery rate.
    rated: bool,
    rust: Switcher,
    core: Running,
    path: CorePath,
    /// What was asked for and waits: its knobs for the core.
    pending: Option<(Algorithm, Words)>,
    window: u32,
    threshold: u32,
    seen: Outcome,
}

fn time(us: u64) -> Time {
    Time::from_micros(us)
}

/// An algorithm with some knobs, as both sides want it.
fn drawn(rng: &mut Pcg64Mcg) -> (Spec, Algorithm, Words) {
    if rng.random_bool(0.5) {
        let delta = DELTAS[rng.random_range(0..DELTAS.len())];
        let mut words = knobs::defaults(Algorithm::Copa);
        for (name, value) in [("delta", delta), ("initial_window", 10.0)] {
            let place = knobs::find(Algorithm::Copa, name).expect("a knob");
            words[place.index] = place.encode(value);
        }
        let mut spec = Spec::new("copa").expect("in the table");
        spec.set("delta", delta).expect("in range");
        return (spec, Algorithm::Copa, words);
    }
    let words = knobs::defaults(Algorithm::Cubic);
    let mut spec = Spec::new("cubic").expect("in the table");
    spec.set("linux", 1.0).expect("a knob");
    for place in knobs::places(Algorithm::Cubic) {
        let value = place.decode(words[place.index]);
        spec.set(place.knob.name, value).expect("in range");
    }
    (spec, Algorithm::Cubic, words)
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mss = [536, 1200, 1448, 8948][rng.random_range(0..4)];
        let config = Config {
            mss: Bytes::new(mss),
            initial_window: Bytes::new(10 * mss),
            min_window: Bytes::new(mss),
            seed,
        };
        let (spec, algorithm, words) = drawn(&mut rng);
        Self {
            base: spread(&mut rng, 500.0, 300_000.0) as u64,
            rate: spread(&mut rng, 100.0, 100_000.0),
            buffer: spread(&mut rng, 5.0, 2000.0) as u64,
            loss: if rng.random_bool(0.5) { 0.0 } else { spread(&mut rng, 1e-4, 0.02) },
            rng,
            mss,
            now: 1_000_000,
            srtt: 0,
            least: u64::MAX,
            flying: VecDeque::new(),
            last_sent: 0,
            delivered: 0,
            gone: 0,
            cumulative: 0,
            episode: None,
            stalled: false,
            in_recovery: false,
            rated: !seed.is_multiple_of(4),
            rust: Switcher::new(spec, &config),
            core: begin(algorithm, &words, mss, 10 * mss),
            path: CorePath::new(),
            pending: None,
            window: 10,
            threshold: NO_THRESHOLD,
            seen: Outcome::default(),
        }
    }

    fn event(&mut self) {
        if self.flying.is_empty() {
            self.send();
        }
        match self.rng.random_range(0..2000) {
            0..20 => self.request(),
            20 => self.timeout(),
            21..25 => self.pause(),
            25 => self.rate = (self.rate * spread(&mut self.rng, 0.3, 3.0)).clamp(50.0, 2e5),
            _ => self.ack(),
        }
    }

    fn is_converged(&self) -> bool {
        match &self.core {
            Running::Copa(copa) => copa.is_converged(),
            Running::Cubic(_) => {
                let recovering = self.rust.phase() == Phase::Recovery;
                cubic_is_converged(self.window, self.threshold, recovering)
            }
        }
    }

    fn request(&mut self) {
        let (spec, algorithm, words) = drawn(&mut self.rng);
        let how = if self.rng.random_bool(0.8) { Switch::Full } else { Switch::Part };
        let before = self.rust.switches();
        let (converged, recovering) = (self.is_converged(), self.in_recovery);
        self.rust.request(spec, how, time(self.now));
        self.pending = self.rust.pending().is_some().then_some((algorithm, words));
        let number = if how == Switch::Full { layout::HOW_FULL } else { layout::HOW_PART };
        if self.rust.switches() > before {
            let due = self.path.is_due(number, converged, recovering);
            self.pending = Some((algorithm, words));
            self.switched(number, due);
        }
    }

    /// The Rust side has switched, in this way; so does the core, which found it `due` or did not.
    fn switched(&mut self, how: u32, due: bool) {
        let (algorithm, words) = self.pending.take().expect("it was asked for");
        let bytes = self.rust.window().get();
        self.window = (bytes / self.mss) as u32;
        self.core = begin(algorithm, &words, self.mss, bytes);
        self.seen.agreed += u64::from(due);
        self.threshold = NO_THRESHOLD;
        self.episode = None;
        self.stalled = false;
        match (how, &mut self.core) {
            (layout::HOW_FULL, core) => {
                self.seen.full += 1;
                let inflight = self.flying.len() as u64 * self.mss;
                let delivered = self.delivered * self.mss;
                match core {
                    Running::Copa(copa) => {
                        copa.take_over(
                            &self.path,
                            &[self.now, bytes, self.srtt, delivered, inflight],
                        );
                    }
                    Running::Cubic(cubic) => {
                        cubic.take_over(&self.path, self.window);
                        self.threshold = self.window;
                    }
                }
            }
            (layout::HOW_PART, core) => {
                self.seen.part += 1;
                if let Running::Copa(copa) = core {
                    copa.inherit();
                }
            }
            _ => self.seen.over += 1,
        }
    }

    /// After something that may let a pending switch happen.
    fn follow(&mut self, before: u64) {
        let converged = self.is_converged_before_switch(before);
        let due = self.path.is_due(layout::HOW_FULL, converged, self.in_recovery);
        self.path.note_converged(converged);
        if self.rust.switches() > before {
            self.switched(layout::HOW_FULL, due);
        }
    }

    /// The core's view; the Rust side's phase is the new algorithm's already when it has switched, and then was no recovery.
    fn is_converged_before_switch(&self, before: u64) -> bool {
        match &self.core {
            Running::Cubic(_) if self.rust.switches() > before => {
                cubic_is_converged(self.window, self.threshold, false)
            }
            _ => self.is_converged(),
        }
    }

    fn send(&mut self) {
        let starts = self.flying.is_empty();
        self.now += 1;
        let full = self.rust.window().get() / self.mss;
        while (self.flying.len() as u64) < full.max(1) {
            self.flying.push_back(self.now);
        }
        let all = Bytes::new(self.flying.len() as u64 * self.mss);
        let bytes = Bytes::new(self.mss);
        let before = self.rust.switches();
        let converged = self.is_converged();
        let sent = Sent { now: time(self.now), bytes, inflight: all, app_limited: false };
        if starts {
            self.rust.on_sent(&Sent { inflight: bytes, ..sent });
        }
        if all > bytes {
            self.rust.on_sent(&sent);
        }
        if starts {
            if self.rust.switches() > before {
                let due = self.path.starts_over(converged, self.delivered > 0);
                self.switched(0, due);
            }
            match &mut self.core {
                Running::Copa(copa) => copa.on_first_sent(self.now),
                Running::Cubic(cubic) => cubic.on_first_sent(self.now, self.last_sent),
            }
        }
        self.last_sent = self.now;
    }

    fn timeout(&mut self) {
        let none = Bytes::ZERO;
        self.now += 300_000;
        let recovering = self.rust.phase() == Phase::Recovery;
        let timeout = Timeout { now: time(self.now), prior_inflight: none, inflight: none };
        self.rust.on_timeout(&timeout);
        match &mut self.core {
            Running::Copa(copa) => copa.on_timeout(self.now),
            Running::Cubic(cubic) => {
                if !recovering && !self.stalled {
                    self.threshold = cubic.on_loss(self.window);
                }
                cubic.on_timeout();
                self.window = 1;
            }
        }
        self.in_recovery = true;
        self.episode = Some(self.now);
        self.stalled = true;
        self.gone += self.flying.len() as u64;
        self.cumulative = self.gone;
        self.flying.clear();
    }

    /// Everything arrived, and nothing is sent for a while.
    fn pause(&mut self) {
        self.delivered += self.flying.len() as u64;
        self.gone += self.flying.len() as u64;
        self.cumulative = self.gone;
        self.flying.clear();
        let idle = Duration::from_millis(self.rng.random_range(1..3000));
        let rto = Duration::from_millis(300);
        self.now += idle.as_micros();
        if idle <= rto {
            return;
        }
        match &mut self.core {
            Running::Copa(copa) => {
                self.rust.on_idle(&Idle { now: time(self.now), idle, rto });
                copa.on_idle();
            }
            // As in `cubic.rs` beside this: the kernel's rule, and in whole packets.
            Running::Cubic(_) if self.window.is_multiple_of(4) => {
                self.rust.on_idle(&Idle { now: time(self.now), idle, rto });
                self.window = (self.rust.window().get() / self.mss) as u32;
                let threshold = self.rust.ssthresh();
                self.threshold =
                    threshold.map_or(NO_THRESHOLD, |bytes| (bytes.get() / self.mss) as u32);
            }
            Running::Cubic(_) => {}
        }
    }

    fn lose(&mut self, prior: u64) {
        let lost = self.rng.random_range(1..=3).min(prior);
        let Some(newest) = self.flying.drain(..lost as usize).next_back() else { return };
        self.gone += lost;
        self.rust.on_loss(&Loss {
            now: time(self.now),
            lost: Bytes::new(lost * self.mss),
            newest_sent_at: time(newest),
            inflight: Bytes::new((prior - lost) * self.mss),
            prior_inflight: Bytes::new(prior * self.mss),
        });
        self.in_recovery = true;
        match &mut self.core {
            Running::Copa(copa) => copa.on_loss(self.now, lost * self.mss, newest),
            Running::Cubic(cubic) => {
                if self.episode.is_none_or(|start| newest > start) {
                    self.episode = Some(self.now);
                    self.threshold = cubic.on_loss(self.window);
                    self.window = self.threshold;
                }
            }
        }
    }

    fn ack(&mut self) {
        let prior = self.flying.len() as u64;
        let path = (self.base as f64 * self.rate / 1e6) as u64;
        let overflow = prior > path + self.buffer;
        if self.rng.random_bool(self.loss) || (overflow && self.rng.random_bool(0.3)) {
            self.lose(prior);
        }
        let acked = self.rng.random_range(1..=4).min(self.flying.len() as u64);
        let Some(newest) = self.flying.drain(..acked as usize).next_back() else { return };
        let served = self.now + (acked as f64 * 1e6 / self.rate) as u64;
        self.now = served.max(newest + self.base);
        self.delivered += acked;
        self.gone += acked;
        let rtt = self.now - newest;
        self.srtt = if self.srtt == 0 { rtt } else { (7 * self.srtt + rtt) / 8 };
        self.least = self.least.min(rtt);
        let recovering = self.rust.phase() == Phase::Recovery;
        if !(recovering && self.episode.is_some_and(|e| newest < e)) {
            self.cumulative = self.gone;
        }
        let limited = self.rng.random_bool(0.95);
        let sampled = self.rng.random_bool(0.98);
        self.in_recovery = self.rng.random_bool(0.02);
        let before = self.rust.switches();
        let ack = Ack {
            now: time(self.now),
            acked: Bytes::new(acked * self.mss),
            rtt: sampled.then(|| Duration::from_micros(rtt)),
            srtt: Duration::from_micros(self.srtt),
            min_rtt: Duration::from_micros(self.least),
            inflight: Bytes::new(self.flying.len() as u64 * self.mss),
            prior_inflight: Bytes::new(prior * self.mss),
            delivered: Bytes::new(self.delivered * self.mss),
            newest_sent_at: time(newest),
            rate: self.sample(acked),
            cwnd_limited: limited,
            in_recovery: self.in_recovery,
        };
        self.rust.on_ack(&ack);
        self.stalled = false;
        let rtt = if sampled { rtt } else { 0 };
        let rate = ack.rate.map_or(0, |sample| sample.rate().bytes_per_sec());
        let slow = ack.rate.is_some_and(|sample| sample.app_limited);
        self.path.on_sample(&[self.now, self.srtt, rtt, rate, slow.into()]);
        self.core_ack(&ack, rtt, before);
        self.follow(before);
        self.send();
    }

    /// A delivery rate about that of the path, sometimes none.
    fn sample(&mut self, packets: u64) -> Option<RateSample> {
        let share = self.rng.random_range(0.5..1.0);
        let interval = Duration::from_secs_f64(packets as f64 / (share * self.rate));
        self.rated.then(|| RateSample {
            delivered: Bytes::new(packets * self.mss),
            interval,
            prior_delivered: Bytes::ZERO,
            app_limited: share < 0.7,
            tx_in_flight: Bytes::ZERO,
            lost: Bytes::ZERO,
        })
    }

    /// What the core and the kernel make of an acknowledgement, before any switch.
    fn core_ack(&mut self, ack: &Ack, rtt: u64, switches: u64) {
        let acked = ack.acked.get() / self.mss;
        let sent_to = self.gone + self.flying.len() as u64;
        let switched = self.rust.switches() > switches;
        match &mut self.core {
            Running::Copa(copa) => copa.on_ack(&[
                self.now,
                ack.acked.get(),
                rtt,
                self.srtt,
                ack.delivered.get(),
                ack.inflight.get(),
                ack.newest_sent_at.as_micros(),
                ack.cwnd_limited.into(),
                ack.in_recovery.into(),
            ]),
            Running::Cubic(cubic) => {
                let recovering = !switched && self.rust.phase() == Phase::Recovery;
                let inflight = (ack.prior_inflight.get() / self.mss) as u32;
                let window = if recovering { inflight } else { self.window };
                let (now, threshold) = (self.now, self.threshold);
                let round =
                    [now, rtt, self.cumulative, sent_to, window.into(), 1, threshold.into()];
                if cubic.leaves(&round) {
                    self.threshold = window;
                    self.window = window;
                }
                if ack.cwnd_limited && !recovering {
                    self.window = cubic.on_ack(self.window, self.threshold, acked as u32, now);
                }
            }
        }
    }

    fn compare(&mut self) {
        let rust = self.rust.window().as_f64();
        let slow_start = self.rust.phase() == Phase::SlowStart;
        let mode = match &self.core {
            Running::Copa(copa) => {
                let core = copa.window() as f64;
                let slack = (AGREE * rust.max(core)).max(0.1 * self.mss as f64);
                self.seen.copa_windows += u64::from((rust - core).abs() <= slack);
                self.seen.log_ratio += (core / rust).ln();
                copa.is_in_slow_start() == slow_start
            }
            Running::Cubic(_) => {
                self.seen.cubic += 1;
                let same = (rust / self.mss as f64) as u32 == self.window;
                self.seen.cubic_windows += u64::from(same);
                self.rust.phase() == Phase::Recovery || slow_start == (self.window < self.threshold)
            }
        };
        let known = self.rust.path().min_rtt();
        let known = known.map(|(rtt, at)| (rtt.as_micros() as u32, (at.as_nanos() / 1000) as u32));
        self.seen.events += 1;
        self.seen.modes += u64::from(mode);
        // In the core rates are multiples of 64 bytes per second.
        let rate = self.rust.path().bandwidth().map_or(0, Rate::bytes_per_sec);
        let same_rate = rate.abs_diff(self.path.bandwidth()) <= 64;
        self.seen.paths += u64::from(known == self.path.min_rtt() && same_rate);
    }
}

fn begin(algorithm: Algorithm, words: &Words, mss: u64, window: u64) -> Running {
    match algorithm {
        Algorithm::Copa => Running::Copa(CoreCopa::new(words, mss as u32, mss as u32, window)),
        Algorithm::Cubic => Running::Cubic(CoreCubic::new(words)),
    }
}

#[test]
fn the_core_hands_over_as_the_rust_switcher_on_random_sequences() {
    let mut all = Outcome::default();
    for seed in 0..SEQUENCES {
        let mut path = Path::new(seed);
        for _ in 0..EVENTS {
            path.event();
            path.compare();
        }
        all.add(&path.seen);
    }
    println!("{all:?}");
    let share = |part: u64| part as f64 / all.events as f64;
    let switches = all.full + all.part + all.over;
    // Where two rates differ by less than 64 bytes per second, the core may keep the younger.
    assert!(share(all.paths) > 0.9999, "what is known of the path: {all:?}");
    assert_eq!(all.cubic_windows, all.cubic, "{all:?}");
    let copa = (all.events - all.cubic) as f64;
    assert!(all.copa_windows as f64 > 0.99 * copa, "{all:?}");
    assert!((all.log_ratio / copa).abs() < 3e-4, "neither is larger on the whole: {all:?}");
    assert!(share(all.modes) > 0.999, "slow start: {all:?}");
    assert!(all.agreed as f64 > 0.999 * switches as f64, "moments: {all:?}");
    // The sequences do go everywhere.
    assert!(all.full > 2000 && all.part > 1000 && all.over > 20, "{all:?}");
}
