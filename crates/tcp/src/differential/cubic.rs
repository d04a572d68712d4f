//! CUBIC: the C core in the kernel's role against `trimtab_cc::Cubic` as Linux has it.
//!
//! Of a socket with CUBIC the kernel keeps window and threshold and decides what a loss episode is; the core says how the
//! window grows, when slow start ends and what a loss leaves. So the harness plays the kernel.

use std::collections::VecDeque;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::{
    Ack, Config, CongestionControl as _, Cubic, Idle, Loss, Phase, Sent, Timeout, set_knob,
};
use trimtab_units::{Bytes, Duration, Time};

use super::cubic_core::{CoreCubic, root};
use super::path::spread;
use crate::algorithm::Algorithm;
use crate::knobs::{self, Words};

const SEQUENCES: u64 = 3000;
const EVENTS: u64 = 1500;
/// A finite threshold in packets may be any; this one is of a socket that has none.
const NO_THRESHOLD: u32 = u32::MAX;

/// How often the two agreed, and where the sequences went.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    events: u64,
    windows: u64,
    thresholds: u64,
    slow_start: u64,
    recovery: u64,
    /// Slow starts that HyStart ended.
    exits: u64,
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.windows += other.windows;
        self.thresholds += other.thresholds;
        self.slow_start += other.slow_start;
        self.recovery += other.recovery;
        self.exits += other.exits;
    }
}

struct Path {
    rng: Pcg64Mcg,
    mss: u64,
    now: u64,
    base: u64,
    /// Packets per second.
    rate: f64,
    buffer: u64,
    jitter: u64,
    loss: f64,
    srtt: u64,
    least: u64,
    /// When each packet in flight was sent, oldest first.
    flying: VecDeque<u64>,
    last_sent: u64,
    delivered: u64,
    /// Packets that are no longer in flight.
    gone: u64,
    /// Packets up to the first hole.
    cumulative: u64,
    episode: Option<u64>,
    stalled: bool,
    rust: Cubic,
    core: CoreCubic,
    words: Words,
    window: u32,
    threshold: u32,
    exits: u64,
}

fn time(us: u64) -> Time {
    Time::from_micros(us)
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mss = [536, 1200, 1448, 8948][rng.random_range(0..4)];
        let mut rust = Cubic::new(&Config {
            mss: Bytes::new(mss),
            initial_window: Bytes::new(10 * mss),
            min_window: Bytes::new(mss),
            seed,
        });
        let mut words = knobs::defaults(Algorithm::Cubic);
        set_knob(&mut rust, "linux", 1.0).expect("a knob");
        for place in knobs::places(Algorithm::Cubic) {
            let knob = place.knob;
            if rng.random_bool(0.5) && knob.name != "fast_convergence" {
                words[place.index] = place.encode(rng.random_range(knob.min..=knob.max));
            }
            let value = place.decode(words[place.index]).clamp(knob.min, knob.max);
            set_knob(&mut rust, knob.name, value).expect("in range");
        }
        let base = spread(&mut rng, 500.0, 300_000.0) as u64;
        let rate = spread(&mut rng, 100.0, 100_000.0);
        let buffer = spread(&mut rng, 5.0, 2000.0) as u64;
        let jitter = if rng.random_bool(0.5) { 0 } else { base / 8 };
        let loss = if rng.random_bool(0.3) { 0.0 } else { spread(&mut rng, 1e-4, 0.05) };
        Self {
            core: CoreCubic::new(&words),
            rust,
            rng,
            mss,
            now: 1_000_000,
            base,
            rate,
            buffer,
            jitter,
            loss,
            srtt: 0,
            least: u64::MAX,
            flying: VecDeque::new(),
            last_sent: 0,
            delivered: 0,
            gone: 0,
            cumulative: 0,
            episode: None,
            stalled: false,
            words,
            window: 10,
            threshold: NO_THRESHOLD,
            exits: 0,
        }
    }

    fn event(&mut self) {
        if self.flying.is_empty() {
            self.send();
        }
        match self.rng.random_range(0..2000) {
            0..2 => self.turn(),
            2 => self.timeout(),
            3..5 => self.pause(),
            5 => self.rate = (self.rate * spread(&mut self.rng, 0.3, 3.0)).clamp(50.0, 2e5),
            _ => self.ack(),
        }
    }

    /// Turns the steepness or the decrease, on both to what the kernel's integer can say.
    fn turn(&mut self) {
        let name = if self.rng.random_bool(0.5) { "c" } else { "beta" };
        let place = knobs::find(Algorithm::Cubic, name).expect("a knob");
        let value = spread(&mut self.rng, place.knob.min, place.knob.max);
        self.words[place.index] = place.encode(value);
        let value = place.decode(self.words[place.index]).clamp(place.knob.min, place.knob.max);
        set_knob(&mut self.rust, name, value).expect("in range");
        self.core.set_knobs(&self.words);
    }

    /// Fills the window, just after what made room in it.
    fn send(&mut self) {
        let starts = self.flying.is_empty();
        self.now += 1;
        let full = self.rust.window().get() / self.mss;
        while (self.flying.len() as u64) < full.max(1) {
            self.flying.push_back(self.now);
        }
        let bytes = Bytes::new(self.mss);
        let inflight = if starts { bytes } else { bytes * 2 };
        self.rust.on_sent(&Sent { now: time(self.now), bytes, inflight, app_limited: false });
        if starts {
            self.core.on_first_sent(self.now, self.last_sent);
        }
        self.last_sent = self.now;
    }

    fn timeout(&mut self) {
        let none = Bytes::ZERO;
        self.now += 300_000;
        let recovering = self.rust.phase() == Phase::Recovery;
        self.rust.on_timeout(&Timeout {
            now: time(self.now),
            prior_inflight: none,
            inflight: none,
        });
        if !recovering && !self.stalled {
            self.threshold = self.core.on_loss(self.window);
        }
        self.core.on_timeout();
        self.window = 1;
        self.episode = Some(self.now);
        self.stalled = true;
        self.gone += self.flying.len() as u64;
        self.cumulative = self.gone;
        self.flying.clear();
    }

    /// Everything arrived, and nothing is sent for a while. What an idle time leaves of the window is the kernel's rule.
    fn pause(&mut self) {
        self.delivered += self.flying.len() as u64;
        self.gone += self.flying.len() as u64;
        self.cumulative = self.gone;
        self.flying.clear();
        let idle = Duration::from_millis(self.rng.random_range(1..3000));
        let rto = Duration::from_millis(300);
        self.now += idle.as_micros();
        // Of other windows Rust keeps three quarters in bytes as the threshold, and the kernel in whole packets.
        if idle > rto && self.window.is_multiple_of(4) {
            self.rust.on_idle(&Idle { now: time(self.now), idle, rto });
            self.window = (self.rust.window().get() / self.mss) as u32;
            self.threshold = self.packets_of_threshold();
        }
    }

    fn packets_of_threshold(&self) -> u32 {
        self.rust.ssthresh().map_or(NO_THRESHOLD, |bytes| (bytes.get() / self.mss) as u32)
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
        let jitter = if self.jitter > 0 { self.rng.random_range(0..self.jitter) } else { 0 };
        let served = self.now + (acked as f64 * 1e6 / self.rate) as u64;
        self.now = served.max(newest + self.base + jitter);
        self.delivered += acked;
        self.gone += acked;
        let rtt = self.now - newest;
        self.srtt = if self.srtt == 0 { rtt } else { (7 * self.srtt + rtt) / 8 };
        self.least = self.least.min(rtt);
        let stuck =
            self.rust.phase() == Phase::Recovery && self.episode.is_some_and(|e| newest < e);
        if !stuck {
            self.cumulative = self.gone;
        }
        let limited = self.rng.random_bool(0.95);
        let sampled = self.rng.random_bool(0.98);
        let in_recovery = self.rng.random_bool(0.02);
        self.rust.on_ack(&Ack {
            now: time(self.now),
            acked: Bytes::new(acked * self.mss),
            rtt: sampled.then(|| Duration::from_micros(rtt)),
            srtt: Duration::from_micros(self.srtt),
            min_rtt: Duration::from_micros(self.least),
            inflight: Bytes::new(self.flying.len() as u64 * self.mss),
            prior_inflight: Bytes::new(prior * self.mss),
            delivered: Bytes::new(self.delivered * self.mss),
            newest_sent_at: time(newest),
            rate: None,
            cwnd_limited: limited,
            in_recovery,
        });
        self.stalled = false;
        self.core_ack(acked as u32, if sampled { rtt } else { 0 }, prior as u32, limited);
        self.send();
    }

    /// What the kernel does with the same acknowledgement. In recovery its window is what is in flight.
    fn core_ack(&mut self, acked: u32, rtt: u64, inflight: u32, limited: bool) {
        let recovering = self.rust.phase() == Phase::Recovery;
        let window = if recovering { inflight } else { self.window };
        let sent_to = self.gone + self.flying.len() as u64;
        let (window_now, threshold) = (window.into(), self.threshold.into());
        if self.core.leaves(&[self.now, rtt, self.cumulative, sent_to, window_now, 1, threshold]) {
            self.exits += 1;
            self.threshold = window;
            self.window = window;
        }
        if limited && !recovering {
            self.window = self.core.on_ack(self.window, self.threshold, acked, self.now);
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
        if self.episode.is_none_or(|start| newest > start) {
            self.episode = Some(self.now);
            self.threshold = self.core.on_loss(self.window);
            self.window = self.threshold;
        }
    }

    fn compare(&self) -> Outcome {
        let window = (self.rust.window().get() / self.mss) as u32;
        let phase = self.rust.phase();
        Outcome {
            events: 1,
            windows: (window == self.window).into(),
            thresholds: (self.packets_of_threshold() == self.threshold).into(),
            slow_start: (phase == Phase::SlowStart).into(),
            recovery: (phase == Phase::Recovery).into(),
            exits: 0,
        }
    }
}

fn run(seed: u64) -> Outcome {
    let mut path = Path::new(seed);
    let mut outcome = Outcome::default();
    for _ in 0..EVENTS {
        path.event();
        outcome.add(&path.compare());
    }
    outcome.exits = path.exits;
    outcome
}

/// Windows are whole packets, so they are the same, not nearly the same.
#[test]
fn the_core_of_cubic_agrees_with_the_rust_algorithm_on_thousands_of_random_sequences() {
    let mut all = Outcome::default();
    for seed in 0..SEQUENCES {
        all.add(&run(seed));
    }
    println!("{all:?}");
    let share = |part: u64| part as f64 / all.events as f64;
    assert_eq!((all.windows, all.thresholds), (SEQUENCES * EVENTS, SEQUENCES * EVENTS), "{all:?}");
    // The sequences do go everywhere.
    assert!(share(all.slow_start) > 0.02 && share(all.recovery) > 0.02, "{all:?}");
    assert!(all.exits > 100, "{all:?}");
}

#[test]
fn the_cube_root_is_exact_to_its_last_bit() {
    for whole in [1u64, 2, 3, 10, 1023, 1024, 1_048_576, 2_097_151] {
        let cube = whole * whole * whole;
        assert_eq!(u64::from(root(cube)), whole);
        assert_eq!(u64::from(root(cube - 1)), whole - 1);
    }
    assert_eq!(root(0), 0);
}
