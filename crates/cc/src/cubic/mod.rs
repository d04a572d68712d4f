//! CUBIC: the window follows a cubic function of the time since the last loss, so that it grows
//! fast where it is far from the window that was too much, and slowly near it.
//!
//! Read first: RFC 9438, whose names the comments use. `curve.rs` has its growth; `linux.rs` has
//! that of Linux, which differs in ways that show in throughput and queue; slow start ends by
//! [`HystartPp`] or [`LinuxHystart`]. `c2tcp.rs` is C2TCP, which watches a CUBIC's delay; `orca` is
//! Orca, whose network moves a CUBIC's window.

#[cfg(feature = "rivals")]
pub(crate) mod c2tcp;
mod curve;
mod linux;
mod migrate;
#[cfg(feature = "rivals")]
pub mod orca;

use libm::round;
use trimtab_units::{Bytes, Time};

use self::curve::Curve;
pub(crate) use self::linux::LinuxCurve;
use crate::episode::Episode;
use crate::hystart::{HystartPp, Verdict};
use crate::hystart_linux::LinuxHystart;
use crate::knob::{Value, knob_methods, knobs};
use crate::window::{Window, window_methods};
use crate::{Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Preset, Sent, Timeout};

knobs! {
    /// The values of CUBIC's knobs.
    struct Values {
        beta: f64 = 0.7, 0.5..=0.95, "1",
            "share of the window that a loss leaves; more keeps throughput and queue up, and \
             yields less to other flows";
        c: f64 = 0.4, 0.01..=10.0, "packets/s^3",
            "steepness of the cubic growth; more finds free capacity sooner and loses more";
        fast_convergence: bool = 1.0, 0.0..=1.0, "1",
            "1: a flow whose peaks shrink gives way to newer flows sooner; 0: it does not";
        hystart: Exit = 1.0, 0.0..=3.0, "1",
            "how slow start ends before loss: 0 not at all, 1 by HyStart++, 2 by Linux's \
             HyStart, 3 by its delay sign alone; later exits fill the path sooner and overflow \
             buffers more";
        linux: bool = 0.0, 0.0..=1.0, "1",
            "0: growth as in RFC 9438; 1: as in Linux, in whole packets and clock ticks";
    }
}

/// The places of the knobs whose change is acted upon at once.
const BETA: usize = Knob::place(Values::KNOBS, "beta");
const C: usize = Knob::place(Values::KNOBS, "c");
const HYSTART: usize = Knob::place(Values::KNOBS, "hystart");
const LINUX: usize = Knob::place(Values::KNOBS, "linux");

/// The share of the window that a loss leaves in Linux (`beta` of tcp_cubic.c).
const LINUX_BETA: f64 = 717.0 / 1024.0;

/// What the growth rules need of the knobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    values: Values,
    /// Additive increase of the Reno-friendly estimate, in packets per round trip.
    alpha: f64,
}

impl Tuning {
    /// That of the preset `linux`.
    pub(crate) fn linux() -> Self {
        Self::derive(Values { beta: LINUX_BETA, ..Values::default() })
    }

    fn derive(values: Values) -> Self {
        // The increase with which Reno's share is the same with this decrease (RFC 9438 §4.3).
        let alpha = 3.0 * (1.0 - values.beta) / (1.0 + values.beta);
        Self { values, alpha }
    }
}

/// What ends slow start before a loss does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Loss,
    /// RFC 9406.
    HystartPp,
    /// Linux's HyStart by its two signs.
    Linux,
    /// Linux's HyStart without its ack trains.
    LinuxDelay,
}

impl Value for Exit {
    fn of(number: f64) -> Self {
        match round(number) {
            0.0 => Self::Loss,
            1.0 => Self::HystartPp,
            2.0 => Self::Linux,
            _ => Self::LinuxDelay,
        }
    }

    fn number(self) -> f64 {
        f64::from(self as u8)
    }
}

/// How slow start ends, besides by loss.
#[derive(Clone, Debug)]
enum SlowStart {
    Plain,
    /// RFC 9406.
    HystartPp(HystartPp),
    Linux(LinuxHystart),
}

impl SlowStart {
    fn new(exit: Exit, paced: bool) -> Self {
        match exit {
            Exit::Loss => Self::Plain,
            Exit::HystartPp => Self::HystartPp(HystartPp::new(paced)),
            Exit::Linux => Self::Linux(LinuxHystart::new(true)),
            Exit::LinuxDelay => Self::Linux(LinuxHystart::new(false)),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::Plain => Exit::Loss,
            Self::HystartPp(_) => Exit::HystartPp,
            Self::Linux(LinuxHystart { trains: true, .. }) => Exit::Linux,
            Self::Linux(_) => Exit::LinuxDelay,
        }
    }
}

/// How the window grows in congestion avoidance.
#[derive(Clone, Debug)]
enum Growth {
    /// RFC 9438.
    Rfc(Curve),
    Linux(LinuxCurve),
}

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "cubic",
    about: "loss-based, the window a cubic function of time: what most of the Internet runs",
    source: "RFC 9438 with HyStart++ (RFC 9406)",
    knobs: Cubic::KNOBS,
    presets: Cubic::PRESETS,
    build: |config| Cubic::new(config).into(),
};

/// The CUBIC state machine.
///
/// ```text
///             first loss                packet sent after the reduction acknowledged
///  SlowStart ────────────▶ Recovery ─────────────────────────────────────▶ Steady
///    ▲   │                     ▲                                           │  ▲
///    │   └── HyStart, or window ≥ ssthresh ────────────────────────────────┼──┘
///    │                         └──────────────── loss ─────────────────────┤
///    └──────────────────────── timeout (from any state) ───────────────────┘
/// ```
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    episode: Episode,
    tuning: Tuning,
    slow_start: SlowStart,
    growth: Growth,
    paced: bool,
    /// The curve before the last reduction (RFC 9438 §4.9).
    before: Option<Curve>,
}

impl Cubic {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// Its presets.
    pub const PRESETS: &'static [Preset] = &[Preset {
        name: "linux",
        knobs: &[("beta", LINUX_BETA), ("hystart", 3.0), ("linux", 1.0)],
        about: "as Linux 6 does it: growth in whole packets, HyStart by delay (by acknowledgement \
                trains too with hystart=2; on links with jitter they do not happen)",
    }];

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let values = Values::default();
        Self {
            window: Window::new(config),
            episode: Episode::default(),
            tuning: Tuning::derive(values),
            slow_start: SlowStart::new(values.hystart, config.paced),
            growth: Growth::Rfc(Curve::new()),
            paced: config.paced,
            before: None,
        }
    }

    /// Slow start (RFC 5681 §3.1, RFC 9438 §4.10); gives the acknowledged bytes that are left for
    /// congestion avoidance.
    fn grow_exponentially(&mut self, ack: &Ack) -> Bytes {
        let growth = match &mut self.slow_start {
            SlowStart::Plain => ack.acked,
            SlowStart::Linux(hystart) => {
                if hystart.leaves(ack, self.window.size, self.window.mss, false) {
                    self.leave_slow_start();
                    return ack.acked;
                }
                ack.acked
            }
            // Only the first slow start has no threshold to stop it (RFC 9406 §4.3).
            SlowStart::HystartPp(_) if self.window.ssthresh != Bytes::MAX => ack.acked,
            SlowStart::HystartPp(hystart) => match hystart.on_ack(ack, self.window.mss) {
                Verdict::Grow(bytes) => bytes,
                Verdict::Leave => {
                    self.leave_slow_start();
                    return ack.acked;
                }
            },
        };
        if ack.cwnd_limited { self.window.slow_start(growth) } else { Bytes::ZERO }
    }

    /// Linux runs HyStart in recovery as well. There the window is what Proportional Rate Reduction
    /// (RFC 6937) makes of it, which is what is in flight, and after many losses that is less than
    /// the threshold: slow start, by the letter (`tcp_in_slow_start`). So a connection whose first
    /// losses came before HyStart had seen anything leaves recovery with what the path holds.
    fn heed_hystart_in_recovery(&mut self, ack: &Ack) {
        let SlowStart::Linux(hystart) = &mut self.slow_start else { return };
        let window = ack.prior_inflight;
        let stuck = self.episode.is_stuck(ack);
        if window < self.window.ssthresh && hystart.leaves(ack, window, self.window.mss, stuck) {
            self.window.set(window);
            self.window.ssthresh = self.window.size;
        }
    }

    /// RFC 9438 §4.10, RFC 9406 §4.2: the window becomes the threshold.
    fn leave_slow_start(&mut self) {
        self.window.ssthresh = self.window.size;
        if let Growth::Rfc(curve) = &mut self.growth {
            curve.on_slow_start_exit(self.window.packets());
        }
    }

    /// The threshold after a loss at the present window (RFC 9438 §4.6); starts a new epoch.
    fn decrease(&mut self) -> Bytes {
        match &mut self.growth {
            Growth::Rfc(curve) => {
                self.before = Some(curve.clone());
                curve.on_loss(self.window.packets(), &self.tuning);
                self.window.size.mul_f64(self.tuning.values.beta)
            }
            Growth::Linux(curve) => curve.on_loss(&self.window, &self.tuning),
        }
    }
}

impl Cubic {
    fn on_knob(&mut self, place: usize) {
        let values = self.tuning.values;
        match place {
            BETA => self.tuning = Tuning::derive(values),
            // One that is set already keeps what it has learnt.
            HYSTART if self.slow_start.exit() != values.hystart => {
                self.slow_start = SlowStart::new(values.hystart, self.paced);
            }
            LINUX => match (&self.growth, values.linux) {
                (Growth::Rfc(_), true) => {
                    self.growth = Growth::Linux(LinuxCurve::new());
                    self.window.align();
                    self.before = None;
                }
                (Growth::Linux(_), false) => self.growth = Growth::Rfc(Curve::new()),
                _ => {}
            },
            _ => {}
        }
        // A curve of other steepness, or from another decrease, starts where the window is now.
        if let (BETA | C, Growth::Rfc(curve)) = (place, &mut self.growth) {
            curve.end_epoch();
        }
    }
}

impl CongestionControl for Cubic {
    /// RFC 9438 §5.8: the curve has no time while nothing is in flight.
    fn on_sent(&mut self, sent: &Sent) {
        let starts = sent.inflight <= sent.bytes;
        match &mut self.growth {
            Growth::Rfc(curve) if starts => curve.skip_idle(sent.now),
            Growth::Rfc(_) => {}
            Growth::Linux(curve) => curve.on_sent(sent.now, starts),
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let (Growth::Linux(curve), Some(rtt)) = (&mut self.growth, ack.rtt) {
            curve.on_rtt(ack.now, rtt);
        }
        if self.episode.on_ack(ack) {
            self.heed_hystart_in_recovery(ack);
            return;
        }
        let acked =
            if self.window.in_slow_start() { self.grow_exponentially(ack) } else { ack.acked };
        match &mut self.growth {
            Growth::Rfc(curve) if !ack.cwnd_limited => curve.skip_app_limited(ack.now),
            Growth::Rfc(curve) if !acked.is_zero() => {
                curve.grow(&mut self.window, acked, ack, &self.tuning);
            }
            Growth::Linux(curve) if ack.cwnd_limited && !acked.is_zero() => {
                curve.grow(&mut self.window, acked, ack.now, &self.tuning);
            }
            Growth::Rfc(_) | Growth::Linux(_) => {}
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            let ssthresh = self.decrease();
            self.window.reduce(ssthresh);
        }
    }

    /// RFC 9438 §4.8; Linux `cubictcp_state()`, which also resets HyStart.
    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        let ssthresh = new.then(|| self.decrease());
        self.window.collapse(ssthresh);
        match &mut self.growth {
            Growth::Rfc(curve) => curve.on_timeout(),
            Growth::Linux(curve) => curve.reset(),
        }
        if let SlowStart::Linux(hystart) = &mut self.slow_start {
            *hystart = LinuxHystart::new(hystart.trains);
        }
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.window.resize(limits);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        if !self.episode.undo(&mut self.window) {
            return;
        }
        // Linux restores the window alone, and starts the curve anew.
        if let (Growth::Rfc(curve), Some(before)) = (&mut self.growth, self.before.take()) {
            *curve = before; // RFC 9438 §4.9
            curve.skip_app_limited(now);
        }
    }

    /// RFC 9438 leaves restarting to RFC 5681 §4.1; ours is that of `Window::restart`.
    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
        if matches!(self.growth, Growth::Linux(_)) {
            self.window.align();
        }
    }

    window_methods!(self);

    knob_methods!(self.tuning.values, then on_knob);
}

#[cfg(test)]
mod tests;
