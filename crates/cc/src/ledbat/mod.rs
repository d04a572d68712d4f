//! LEDBAT: a background transport. It fills a path with at most `target` of queueing delay, and
//! gives way to flows that queue more.
//!
//! Read first: RFC 6817, whose names the comments use. Three things differ here.
//!
//! * RFC 6817 §2.3 measures one-way delay. An acknowledgement carries a round-trip time here, so
//!   a queue on the way back counts too, and LEDBAT then yields without need. Clock offset and
//!   skew (RFC 6817 App. A) cancel out in return.
//! * The window rests during loss recovery, as in RFC 9002 §7.3.2. RFC 6817 has no recovery.
//! * `flightsize` is the most that was in flight in two round trips. RFC 6817 §2.4.2 takes the
//!   value before one acknowledgement. Several at once would each lower the window to their own.

use trimtab_units::{Bytes, Duration, Time};

use crate::episode::Episode;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::round::Round;
use crate::window::{Window, repair_methods};
use crate::{Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Phase, Timeout};

/// `MIN_CWND`, in packets (RFC 6817 §2.5).
const WINDOW_MIN: u64 = 2;
/// One entry of the base delay history spans so long (RFC 6817 §2.4.2, `update_base_delay`).
const MINUTE: Duration = Duration::from_secs(60);
/// The longest base delay history, in minutes.
const MINUTES: usize = 20;
/// The longest filter of the current delay, in samples.
const SAMPLES: usize = 16;
/// Slow start ends at this share of the target. RFC 6817 leaves slow start open; the queue
/// doubles before the exit shows, so half the target makes a peak near the target.
const EXIT: f64 = 0.5;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "ledbat",
    about: "background transport: queues at most 100 ms, and gives way to flows that queue more",
    source: "RFC 6817, on round-trip times instead of one-way delays",
    knobs: Ledbat::KNOBS,
    presets: &[],
    build: |config| Ledbat::new(config).into(),
};

knobs! {
    /// The values of LEDBAT's knobs. Ranges and defaults: RFC 6817 §2.5, where it has any.
    struct Values {
        target: f64 = 100.0, 1.0..=100.0, "ms",
            "queueing delay to aim for; less disturbs others less, more fills jittery links";
        gain: f64 = 1.0, 0.05..=1.0, "1",
            "packets that an empty queue adds in a round trip; less is slower and steadier";
        base_history: f64 = 10.0, 2.0..=MINUTES as f64, "min",
            "minutes for which a base delay counts; less follows a changed route sooner, and \
             takes its own queue for the path sooner";
        current_filter: f64 = 4.0, 1.0..=SAMPLES as f64, "samples",
            "samples of which the least is the current delay; more ignores more jitter";
        allowed_increase: f64 = 1.0, 1.0..=64.0, "packets",
            "packets by which the window may exceed what is in flight; more lets a sender burst \
             that was limited by its application";
        slow_start: bool = 1.0, 0.0..=1.0, "1",
            "1: begins with slow start, until half the target is queued; 0: a packet per round \
             trip from the first on";
    }
}

/// The newest `N` delays, the newest first; [`Duration::MAX`] where there is none yet
/// (RFC 6817 §2.4.2 initialises its lists to infinity).
#[derive(Clone, Copy, Debug)]
struct Newest<const N: usize>([Duration; N]);

impl<const N: usize> Newest<N> {
    const NONE: Self = Self([Duration::MAX; N]);

    fn push(&mut self, delay: Duration) {
        self.0.rotate_right(1);
        self.0[0] = delay;
    }

    /// The least of the newest `count`.
    fn least(&self, count: f64) -> Option<Duration> {
        let least = self.0.iter().take(count as usize).min().copied();
        least.filter(|delay| *delay != Duration::MAX)
    }
}

/// The delay of the empty path: the minima of the last minutes (RFC 6817 §3.1.1).
#[derive(Clone, Copy, Debug)]
struct BaseDelay {
    minima: Newest<MINUTES>,
    /// The minute of the newest entry (RFC 6817 §2.4.2, `last_rollover`).
    minute: Option<u64>,
}

impl BaseDelay {
    const NONE: Self = Self { minima: Newest::NONE, minute: None };

    /// RFC 6817 §2.4.2, `update_base_delay`: a sample in a new minute opens an entry, the others
    /// lower it. Minutes without samples have no entry.
    fn add(&mut self, now: Time, delay: Duration) {
        let minute = now.as_nanos() / MINUTE.as_nanos();
        if self.minute == Some(minute) {
            self.minima.0[0] = self.minima.0[0].min(delay);
        } else {
            self.minute = Some(minute);
            self.minima.push(delay);
        }
    }
}

/// The LEDBAT state machine.
///
/// ```text
///             queue ≥ target / 2
///  SlowStart ────────────────────▶ Steady ── loss ──▶ Recovery
///    ▲  └────── loss ──▶ Recovery    ▲                   │
///    │                               └── packet sent after the reduction acknowledged
///    └── timeout (from any state)
/// ```
#[derive(Clone, Debug)]
pub struct Ledbat {
    window: Window,
    episode: Episode,
    values: Values,
    base: BaseDelay,
    /// RFC 6817 §2.4.2, `current_delays`.
    current: Newest<SAMPLES>,
    round: Round,
    /// The most that was in flight in the last round trip and in this one.
    flight: [Bytes; 2],
    /// The part of a byte by which the window should have moved.
    credit: f64,
}

impl Ledbat {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let window = Window::new(config);
        Self {
            flight: [window.size; 2],
            window,
            episode: Episode::default(),
            values: Values::default(),
            base: BaseDelay::NONE,
            current: Newest::NONE,
            round: Round::default(),
            credit: 0.0,
        }
    }

    /// The present queueing delay as a share of the target (RFC 6817 §3.1.2).
    fn queue(&self) -> Option<f64> {
        let base = self.base.minima.least(self.values.base_history)?;
        let current = self.current.least(self.values.current_filter)?;
        let target = Duration::from_millis_f64(self.values.target);
        Some((current - base).ratio(target))
    }

    fn searches(&self) -> bool {
        self.values.slow_start && self.window.in_slow_start()
    }

    /// RFC 6817 §2.4.2: `flightsize`, over two round trips.
    fn note_flight(&mut self, ack: &Ack) {
        if self.round.ends(ack) {
            self.flight = [self.flight[1], Bytes::ZERO];
        }
        self.flight[1] = self.flight[1].max(ack.prior_inflight);
    }

    /// Slow start (RFC 5681 §3.1); gives the acknowledged bytes that it leaves.
    fn search(&mut self, ack: &Ack, queue: f64) -> Bytes {
        if queue >= EXIT {
            // Slow start doubles in the round trip that a sample takes: half was enough.
            self.settle(self.window.size / 2);
            Bytes::ZERO
        } else if ack.cwnd_limited {
            self.window.slow_start(ack.acked)
        } else {
            Bytes::ZERO
        }
    }

    /// RFC 6817 §2.4.2: `cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd`, and its
    /// two bounds.
    fn steer(&mut self, acked: Bytes, queue: f64) {
        let off_target = 1.0 - queue; // RFC 6817 §2.4.2: (TARGET - queuing_delay) / TARGET
        let mss = self.window.mss;
        let share = acked.ratio(self.window.size);
        self.credit += self.values.gain * off_target * share * mss.as_f64();
        let moved = libm::trunc(self.credit);
        self.credit -= moved;
        let size = Bytes::from_f64(self.window.size.as_f64() + moved);
        // RFC 6817 §2.4.2, `max_allowed_cwnd`.
        let ahead = mss.mul_f64(self.values.allowed_increase);
        self.settle(size.min(self.flight[0].max(self.flight[1]) + ahead));
    }

    /// Sets the window, at least `MIN_CWND` (RFC 6817 §2.4.2); below it is no slow start's.
    fn settle(&mut self, size: Bytes) {
        self.window.set(size.max(self.window.mss * WINDOW_MIN));
        self.window.ssthresh = self.window.ssthresh.min(self.window.size);
    }

    /// What is in flight says nothing of this window until a round trip has passed.
    fn trust_flight(&mut self, flight: Bytes) {
        self.flight = [flight; 2];
        self.credit = 0.0;
    }
}

impl CongestionControl for Ledbat {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base.add(ack.now, rtt); // RFC 6817 §3.1.1
            self.current.push(rtt); // RFC 6817 §3.1.2
        }
        self.note_flight(ack);
        if self.episode.on_ack(ack) {
            return;
        }
        let Some(queue) = self.queue() else { return };
        let acked = if self.searches() { self.search(ack, queue) } else { ack.acked };
        if !acked.is_zero() {
            self.steer(acked, queue);
        }
    }

    /// RFC 6817 §2.4.2: half, at most once in a round trip; at least `MIN_CWND`, but never more
    /// than before. A mark counts as a loss (RFC 3168 §5).
    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            let before = self.window.size;
            self.window.reduce(before / 2);
            self.window.set(self.window.size.min(before));
            self.credit = 0.0;
        }
    }

    /// RFC 6817 §2.4.2, the congestion timeout: one packet, or the least that the transport has.
    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.window.size / 2));
        self.current = Newest::NONE;
        self.credit = 0.0;
    }

    /// RFC 5681 §4.1; the queue that the last samples saw is gone.
    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
        self.current = Newest::NONE;
        self.trust_flight(self.window.size);
    }

    fn window(&self) -> Bytes {
        self.window.size
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.threshold()
    }

    fn phase(&self) -> Phase {
        match Phase::of_window(&self.window, &self.episode) {
            Phase::SlowStart if !self.searches() => Phase::Steady,
            phase => phase,
        }
    }

    repair_methods!(self);

    knob_methods!(self.values);
}

impl Migrate for Ledbat {
    /// The base delay begins with the connection's least of ten seconds (RFC 6817 §3.1.1 would
    /// look back ten minutes). A queue that stood for so long counts as part of the path.
    fn take_over(&mut self, from: &HandOver) {
        self.episode = Episode::default();
        self.window.take_over(from.window);
        self.base = BaseDelay::NONE;
        self.base.add(from.now, from.min_rtt);
        self.current = Newest::NONE;
        self.round = Round::beginning(from);
        self.trust_flight(self.window.size);
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.window.set(window);
        self.trust_flight(self.window.size);
    }

    /// The losses of the jump stay those of one episode.
    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.window.retreat(from.window, ssthresh);
        self.trust_flight(self.window.size);
    }
}

#[cfg(test)]
mod tests;
