//! TCP Illinois: additive increase and multiplicative decrease whose two factors follow the
//! queueing delay. Losses say when to yield; delay says how fast to grow, and how much to yield.
//!
//! Read first: Liu, Başar and Srikant, "TCP-Illinois: A loss- and delay-based congestion control
//! algorithm for high-speed networks", Performance Evaluation 65 (2008). The comments use its
//! symbols: `f1`, `f2`, `da`, `dm`, `κ1` to `κ4`. The form is that of Linux's
//! `net/ipv4/tcp_illinois.c`. Four things differ from Linux.
//!
//! * Factors are real numbers. Linux counts in 1/128 and 1/64: its `ALPHA_MIN` is 0.297.
//! * Acknowledged bytes that do not yet make a packet are kept, as in RFC 5681 §3.1. Linux forgets
//!   them with each packet that the window grows, which costs most with a large `alpha`.
//! * Congestion marks (ECN) bound the window (`ceiling.rs`). Linux reduces by `β` alone.
//! * Round-trip times have no upper limit. Linux's `RTT_MAX` guards its fixed-point arithmetic.

use trimtab_units::{Bytes, Duration, Time};

use crate::ceiling::Ceiling;
use crate::episode::Episode;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::round::Round;
use crate::window::{Window, window_methods};
use crate::{Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Marked, Timeout};

/// Reno's factors: `ALPHA_BASE` and `BETA_BASE` of tcp_illinois.c; α = 1 and β = 1/2 of the paper.
const RENO: Factors = Factors { alpha: 1.0, beta: 0.5 };
/// Up to this share of `dm` growth is fastest (the paper's d1, tcp_illinois.c `alpha()`).
const D1: f64 = 0.01;
/// From this share of `dm` on the decrease grows (the paper's d2, tcp_illinois.c `beta()`).
const D2: f64 = 0.1;
/// From this share of `dm` on it grows no more (the paper's d3, tcp_illinois.c `beta()`).
const D3: f64 = 0.8;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "illinois",
    about: "loss-based; grows faster and yields less, the shorter the queue is",
    source: "Liu, Başar and Srikant, Performance Evaluation 2008; Linux tcp_illinois.c",
    knobs: Illinois::KNOBS,
    presets: &[],
    build: |config| Illinois::new(config).into(),
};

knobs! {
    /// The values of Illinois's knobs. Defaults: the constants of tcp_illinois.c.
    struct Values {
        alpha_min: f64 = 0.3, 0.05..=1.0, "packets",
            "growth in a round trip with the longest queue; more fills buffers sooner";
        alpha_max: f64 = 10.0, 1.0..=100.0, "packets",
            "growth in a round trip without a queue; more finds capacity sooner, and overshoots";
        beta_min: f64 = 0.125, 0.01..=0.5, "1",
            "share of the window that a loss takes without a queue; less bears more random loss";
        beta_max: f64 = 0.5, 0.5..=0.9, "1",
            "share of the window that a loss takes with a long queue; more yields more";
        theta: f64 = 5.0, 1.0..=100.0, "round trips",
            "round trips without a queue until growth is fastest again; more trusts them later";
        win_thresh: f64 = 15.0, 0.0..=1000.0, "packets",
            "below this window growth and decrease are Reno's; more is Reno on more paths";
    }
}

/// How fast the window grows and how far it falls.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Factors {
    /// Packets that a round trip adds.
    alpha: f64,
    /// Share of the window that a loss takes.
    beta: f64,
}

/// Round-trip times of the connection and of the present round.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// The least and the greatest since the connection began.
    base: Duration,
    max: Duration,
    /// Of the samples of this round, and how many those are.
    sum: Duration,
    samples: u64,
}

impl Delays {
    const NONE: Self =
        Self { base: Duration::MAX, max: Duration::ZERO, sum: Duration::ZERO, samples: 0 };

    fn add(&mut self, rtt: Duration) {
        self.base = self.base.min(rtt);
        self.max = self.max.max(rtt);
        self.sum += rtt;
        self.samples += 1;
    }

    /// The average queueing delay of the round, `da`, and the greatest ever, `dm`
    /// (tcp_illinois.c `avg_delay()`, `max_delay()`).
    fn queues(&self) -> Option<(Duration, Duration)> {
        (self.samples > 0).then(|| (self.sum / self.samples - self.base, self.max - self.base))
    }

    /// tcp_illinois.c `rtt_reset()`.
    fn start_round(&mut self) {
        (self.sum, self.samples) = (Duration::ZERO, 0);
    }
}

/// Guards the fastest growth: once delay was seen, it takes some rounds without to come back
/// (the paper's θ).
#[derive(Clone, Copy, Debug, Default)]
struct Guard {
    /// The average delay was above d1 (tcp_illinois.c `rtt_above`).
    above: bool,
    /// Rounds at or below d1 since (tcp_illinois.c `rtt_low`).
    low: u32,
}

impl Guard {
    /// Whether this round may grow fastest (tcp_illinois.c `alpha()`).
    fn opens(&mut self, low: bool, theta: f64) -> bool {
        if !low {
            self.above = true;
            return false;
        }
        if self.above {
            self.low += 1;
            if f64::from(self.low) < theta {
                return false;
            }
            *self = Self::default();
        }
        true
    }
}

/// The paper's `f1` past d1: `κ1 / (κ2 + da)`, from αmax at d1 to αmin at dm, with `κ1` and `κ2`
/// resolved as in tcp_illinois.c `alpha()`.
fn alpha(da: f64, dm: f64, values: &Values) -> f64 {
    let (least, most) = (values.alpha_min, values.alpha_max);
    let (above, range) = (da - D1 * dm, dm - D1 * dm);
    range * most / (range + above * (most - least) / least)
}

/// The paper's `f2`: βmin up to d2, βmax from d3 on, `κ3 + κ4 da` between them
/// (tcp_illinois.c `beta()`).
fn beta(da: f64, dm: f64, values: &Values) -> f64 {
    let (least, most) = (values.beta_min, values.beta_max);
    let (d2, d3) = (D2 * dm, D3 * dm);
    if da <= d2 {
        least
    } else if da >= d3 {
        most
    } else {
        least + (most - least) * (da - d2) / (d3 - d2)
    }
}

/// The Illinois state machine: that of `NewReno`, with factors that follow each round's delay.
#[derive(Clone, Debug)]
pub struct Illinois {
    window: Window,
    episode: Episode,
    round: Round,
    values: Values,
    delays: Delays,
    guard: Guard,
    factors: Factors,
    /// What congestion marks leave.
    ceiling: Ceiling,
}

impl Illinois {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let values = Values::default();
        Self {
            window: Window::new(config),
            episode: Episode::default(),
            round: Round::default(),
            // tcp_illinois.c `tcp_illinois_init()`.
            factors: Factors { alpha: values.alpha_max, ..RENO },
            values,
            delays: Delays::NONE,
            guard: Guard::default(),
            ceiling: Ceiling::default(),
        }
    }

    /// Once per round trip (tcp_illinois.c `update_params()`).
    fn update(&mut self) {
        if self.window.packets() < self.values.win_thresh {
            self.factors = RENO; // the paper's window threshold
        } else if let Some((da, dm)) = self.delays.queues() {
            let (da, dm) = (da.as_secs_f64(), dm.as_secs_f64());
            let low = da <= D1 * dm;
            if self.guard.opens(low, self.values.theta) {
                self.factors.alpha = self.values.alpha_max; // the paper's f1, da ≤ d1
            } else if !low {
                self.factors.alpha = alpha(da, dm, &self.values);
            }
            self.factors.beta = beta(da, dm, &self.values);
        }
        self.delays.start_round();
    }

    /// The paper's decrease: `W - β W` (tcp_illinois.c `tcp_illinois_ssthresh()`).
    fn decrease(&self) -> Bytes {
        self.window.size.mul_f64(1.0 - self.factors.beta)
    }

    /// Keeps the window below what marks left of it (RFC 3168 §5), and the threshold with it.
    fn bound(&mut self) {
        if self.window.size > self.ceiling.get() {
            self.window.set(self.ceiling.get());
            self.window.ssthresh = self.window.ssthresh.min(self.window.size);
        }
    }

    fn raise_ceiling(&mut self, ack: &Ack) {
        let limits = ack.cwnd_limited && self.window.size >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.window.mss);
    }

    /// Nothing is known of the queue: Reno until a round has been measured
    /// (tcp_illinois.c `tcp_illinois_state()`).
    fn forget(&mut self) {
        self.factors = RENO;
        self.guard = Guard::default();
        self.delays.start_round();
    }
}

impl CongestionControl for Illinois {
    /// The samples of a recovery count for the round that ends after it: Linux calls
    /// `update_params()` from `tcp_illinois_cong_avoid()`, which rests in recovery.
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.delays.add(rtt);
        }
        self.raise_ceiling(ack);
        if self.episode.on_ack(ack) {
            return;
        }
        if self.round.ends(ack) {
            self.update();
        }
        if !ack.cwnd_limited {
            return; // RFC 9002 §7.8
        }
        let slow = self.window.in_slow_start();
        let acked = if slow { self.window.slow_start(ack.acked) } else { ack.acked };
        // The paper's increase: α / W for each packet acknowledged, which is Reno's growth
        // (RFC 5681 §3.1, eq. 3) with α times as much acknowledged.
        if !acked.is_zero() {
            self.window.grow_reno(acked.mul_f64(self.factors.alpha));
        }
        self.bound();
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            self.window.reduce(self.decrease());
        }
    }

    /// As a loss (RFC 3168 §5), within the bound of `ceiling.rs`. With a short queue a loss takes
    /// an eighth and ten packets come back in a round trip, but a mark tells of congestion.
    fn on_marked(&mut self, marked: &Marked) {
        self.ceiling.on_marked(marked, self.window.size, self.window.mss);
        if self.episode.opens(marked.now, marked.newest_sent_at) {
            self.window.reduce(self.decrease());
        }
        self.bound();
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.decrease()));
        self.forget();
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.window.resize(limits);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        if self.episode.undo(&mut self.window) {
            self.bound();
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
    }

    window_methods!(self);

    knob_methods!(self.values);
}

impl Migrate for Illinois {
    /// The greatest delay so far is that of the smoothed round-trip time, the connection's only
    /// measure of it; the first full buffer raises it.
    fn take_over(&mut self, from: &HandOver) {
        self.episode = Episode::default();
        self.window.take_over(from.window);
        self.delays =
            Delays { base: from.min_rtt, max: from.srtt.max(from.min_rtt), ..Delays::NONE };
        self.round = Round::beginning(from);
        self.forget();
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.window.set(window);
    }

    /// The losses of the jump stay those of one episode.
    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.window.retreat(from.window, ssthresh);
    }
}

#[cfg(test)]
mod tests;
