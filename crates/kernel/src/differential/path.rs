//! A random path with both algorithms on it.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::{
    Ack, Config, CongestionControl as _, Copa, Idle, Loss, Marked, Phase, Sent, Timeout, set_knob,
};
use trimtab_units::{Bytes, Duration, Time};

use super::core::CoreCopa;
use super::tally::tally;
use crate::algorithm::Algorithm;
use crate::knobs::{self, Place, Words};
use crate::layout::SCALE_Q16;

tally! {
    /// How often the two agreed.
    pub(super) struct Outcome {
        pub(super) events: u64,
        /// Events after which both windows, and both pacing rates, were the same but for the tolerance.
        pub(super) windows: u64,
        pub(super) pacing: u64,
        /// After which slow start and competitive mode were.
        pub(super) modes: u64,
        /// Sum of the logarithms of the ratio of both windows.
        pub(super) log_ratio: f64,
        pub(super) slow_start: u64,
        pub(super) competitive: u64,
    }
}

struct Path {
    rng: Pcg64Mcg,
    mss: u64,
    now: u64,
    base: u64,
    /// Bytes per microsecond, times 1000.
    rate: u64,
    buffer: u64,
    /// Whether other flows fill the queue at times, and the bytes that they keep in it.
    crowded: bool,
    others: u64,
    jitter: u64,
    loss: f64,
    marks: f64,
    srtt: u64,
    least: u64,
    delivered: u64,
    rust: Copa,
    core: CoreCopa,
    words: Words,
}

/// Draws with equal chance for each order of magnitude.
pub(super) fn spread(rng: &mut Pcg64Mcg, least: f64, most: f64) -> f64 {
    (rng.random_range(least.ln()..=most.ln())).exp()
}

fn time(us: u64) -> Time {
    Time::from_micros(us)
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mss = [536, 1200, 1448, 1500, 8948][rng.random_range(0..5)];
        let config = Config {
            mss: Bytes::new(mss),
            initial_window: Bytes::new(10 * mss),
            min_window: Bytes::new(2 * mss),
            paced: false,
            seed,
            clock: Duration::ZERO,
        };
        let mut words = knobs::defaults(Algorithm::Copa);
        let window = knobs::find(Algorithm::Copa, "initial_window").expect("a knob");
        words[window.index] = window.encode(10.0);
        let base = spread(&mut rng, 200.0, 300_000.0) as u64;
        let rate = spread(&mut rng, 50.0, 100_000.0) as u64;
        let buffer = (spread(&mut rng, 5.0, 2000.0) * mss as f64) as u64;
        let jitter = if rng.random_bool(0.5) { 0 } else { base / 8 };
        let loss = if rng.random_bool(0.5) { 0.0 } else { spread(&mut rng, 1e-4, 0.2) };
        let marks = if seed % 3 == 1 { spread(&mut rng, 1e-4, 0.3) } else { 0.0 };
        Self {
            core: CoreCopa::new(&words, mss as u32, 2 * mss as u32, 10 * mss),
            rust: Copa::new(&config),
            rng,
            mss,
            now: 1_000_000,
            base,
            rate,
            buffer,
            crowded: seed % 6 == 2,
            others: 0,
            jitter,
            loss,
            marks,
            srtt: 0,
            least: u64::MAX,
            delivered: 0,
            words,
        }
    }

    /// Turns a knob, on both to what the kernel's integer can say.
    fn turn(&mut self, place: Place) {
        let knob = place.knob;
        let value = match self.rng.random_range(0..3) {
            0 => knob.default,
            _ if knob.name == "competitive" => f64::from(self.rng.random_range(0..3)),
            _ if knob.name == "restart_probe" => f64::from(self.rng.random_bool(0.5)),
            _ if knob.min > 0.0 => spread(&mut self.rng, knob.min, knob.max),
            _ => self.rng.random_range(knob.min..=knob.max),
        };
        self.words[place.index] = place.encode(value);
        let value = place.decode(self.words[place.index]).clamp(knob.min, knob.max);
        set_knob(&mut self.rust, knob.name, value).expect("in range");
        self.core.set_knobs(&self.words);
    }

    fn event(&mut self) {
        match self.rng.random_range(0..2000) {
            0..4 => {
                let place = self.rng.random_range(0..Copa::KNOBS.len());
                self.turn(knobs::places(Algorithm::Copa).nth(place).expect("one of them"));
            }
            4 => {
                let timeout = Timeout {
                    now: time(self.now),
                    prior_inflight: Bytes::ZERO,
                    inflight: Bytes::ZERO,
                };
                self.rust.on_timeout(&timeout);
                self.core.on_timeout(self.now);
            }
            5 => {
                self.now += 1_000_000;
                let idle = Duration::from_secs(1);
                self.rust.on_idle(&Idle { now: time(self.now), idle, rto: idle / 4 });
                self.core.on_idle();
                self.first_sent();
            }
            6 => self.first_sent(),
            7 => {
                self.rate =
                    (self.rate as f64 * spread(&mut self.rng, 0.3, 3.0)).clamp(20.0, 2e5) as u64;
            }
            8 if self.crowded => {
                self.others =
                    if self.others > 0 { 0 } else { self.rng.random_range(0..=self.buffer) };
            }
            _ => self.ack(),
        }
    }

    fn first_sent(&mut self) {
        let bytes = Bytes::new(self.mss);
        self.rust.on_sent(&Sent {
            now: time(self.now),
            bytes,
            inflight: bytes,
            app_limited: false,
        });
        self.core.on_first_sent(self.now);
    }

    fn ack(&mut self) {
        let acked = self.mss * self.rng.random_range(1..=4);
        self.now += (acked * 1000 / self.rate).max(1);
        let window = self.rust.window().get();
        let path = self.base * self.rate / 1000;
        let queue = (window.saturating_sub(path) + self.others).min(self.buffer);
        let overflow = window + self.others > path + self.buffer;
        let jitter = if self.jitter > 0 { self.rng.random_range(0..self.jitter) } else { 0 };
        let rtt = self.base + queue * 1000 / self.rate + jitter;
        self.srtt = if self.srtt == 0 { rtt } else { (7 * self.srtt + rtt) / 8 };
        self.least = self.least.min(rtt);
        self.delivered += acked;
        let newest_sent = self.now.saturating_sub(rtt);
        if self.rng.random_bool(self.loss) || (overflow && self.rng.random_bool(0.2)) {
            let lost = self.mss * self.rng.random_range(1..=5);
            let none = Bytes::ZERO;
            self.rust.on_loss(&Loss {
                now: time(self.now),
                lost: Bytes::new(lost),
                newest_sent_at: time(newest_sent),
                inflight: none,
                prior_inflight: none,
            });
            self.core.on_loss(self.now, lost, newest_sent);
        }
        if self.marks > 0.0 && self.rng.random_bool(self.marks) {
            self.rust.on_marked(&Marked {
                now: time(self.now),
                newest_sent_at: time(newest_sent),
                inflight: Bytes::new(window),
                prior_inflight: Bytes::new(window + acked),
            });
            self.core.on_marked(self.now, newest_sent);
        }
        let limited = self.rng.random_bool(0.95);
        let sampled = self.rng.random_bool(0.98);
        let recovery = self.rng.random_bool(0.02);
        self.rust.on_ack(&Ack {
            now: time(self.now),
            acked: Bytes::new(acked),
            rtt: sampled.then(|| Duration::from_micros(rtt)),
            srtt: Duration::from_micros(self.srtt),
            min_rtt: Duration::from_micros(self.least),
            inflight: Bytes::new(window),
            prior_inflight: Bytes::new(window + acked),
            delivered: Bytes::new(self.delivered),
            newest_sent_at: time(newest_sent),
            rate: None,
            cwnd_limited: limited,
            in_recovery: recovery,
        });
        self.core.on_ack(&[
            self.now,
            acked,
            if sampled { rtt } else { 0 },
            self.srtt,
            self.delivered,
            window,
            newest_sent,
            limited.into(),
            recovery.into(),
        ]);
    }

    fn compare(&self, agree: f64) -> Outcome {
        let same = |a: f64, b: f64, slack: f64| (a - b).abs() <= (agree * a.max(b)).max(slack);
        let (rust, core) = (self.rust.window().as_f64(), self.core.window() as f64);
        let pacing = match self.rust.pacing_rate() {
            Some(rate) => same(rate.bytes_per_sec() as f64, self.core.pacing() as f64, 1.0),
            None => self.core.pacing() == 0,
        };
        let slow_start = self.rust.phase() == Phase::SlowStart;
        let inverse = f64::from(self.core.inverse_delta()) / f64::from(SCALE_Q16);
        let modes = slow_start == self.core.is_in_slow_start()
            && same(1.0 / self.rust.effective_delta(), inverse, 0.0);
        Outcome {
            events: 1,
            windows: same(rust, core, 0.1 * self.mss as f64).into(),
            pacing: pacing.into(),
            modes: modes.into(),
            log_ratio: (core / rust).ln(),
            slow_start: slow_start.into(),
            competitive: self.rust.is_competitive().into(),
        }
    }
}

/// Runs one sequence.
pub(super) fn run(seed: u64, events: u64, agree: f64) -> Outcome {
    let mut path = Path::new(seed);
    for place in knobs::places(Algorithm::Copa) {
        if path.rng.random_bool(0.3) {
            path.turn(place);
        }
    }
    let mut outcome = Outcome::default();
    for _ in 0..events {
        path.event();
        outcome.add(&path.compare(agree));
    }
    outcome
}
