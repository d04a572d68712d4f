//! Congestion control algorithms (CCAs) as pure state machines.
//!
//! Events go in ([`Ack`], [`Loss`], [`Timeout`], …); a congestion window, a pacing rate and the time
//! of the next timer come out. A CCA has no clock, does no I/O, allocates nothing while it runs and
//! never panics, so the same code serves a simulator, a QUIC stack and a microcontroller.
//!
//! ```
//! use trimtab_cc::{Config, CongestionControl, Spec};
//!
//! // Algorithms are named as on the command line: an algorithm, a preset, knobs.
//! let spec: Spec = "newreno".parse().unwrap();
//! let cca = spec.build(&Config::default());
//! assert_eq!(cca.window(), Config::default().initial_window);
//! ```
//!
//! What to read first: RFC 5681 and RFC 9002 §7 for what every algorithm shares, then the paper or
//! RFC named at the top of the algorithm's own file. `algorithms.rs` is the table of them all.
#![no_std]

#[cfg(any(feature = "plugin", feature = "rivals"))]
extern crate alloc;

#[cfg(test)]
extern crate std;

#[cfg(feature = "rivals")]
pub mod actor;
mod algorithms;
#[cfg(feature = "rivals")]
mod allegro;
#[cfg(feature = "rivals")]
pub mod astraea;
#[cfg(feature = "rivals")]
pub mod aurora;
mod bbr;
#[cfg(feature = "media")]
mod by_rate;
mod ceiling;
mod copa;
mod cubic;
mod episode;
mod event;
mod filter;
#[cfg(feature = "media")]
mod gcc;
mod hystart;
mod hystart_linux;
mod illinois;
#[cfg(feature = "rivals")]
pub mod indigo;
mod interval;
mod knob;
mod ledbat;
pub mod migrate;
pub mod muses;
#[cfg(feature = "media")]
mod nada;
mod newreno;
#[cfg(feature = "media")]
mod one_way;
#[cfg(feature = "plugin")]
mod plugin;
#[cfg(feature = "rivals")]
pub mod remy;
pub mod resume;
mod rival;
mod round;
#[cfg(feature = "media")]
mod scream;
mod spec;
#[cfg(feature = "rivals")]
mod sprout;
#[cfg(test)]
mod testing;
pub mod transport;
mod vegas;
#[cfg(feature = "rivals")]
mod verus;
mod vivace;
mod westwood;
mod window;

pub use algorithms::*;
#[cfg(feature = "rivals")]
pub use cubic::orca;
pub use event::{
    Ack, Arrival, Discarded, Feedback, Idle, Loss, LostPacket, Marked, Probe, RateSample, Sent,
    Timeout,
};
pub use knob::{Knob, KnobError};
pub use muses::Decision;
#[cfg(feature = "plugin")]
pub use plugin::{Outside, Plugged, Plugin};
pub use spec::{KNOBS_MAX, Spec, SpecError};

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::episode::Episode;
use crate::muses::State;
use crate::window::Window;

/// What every algorithm is built from: the transport's limits, a seed and a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bytes of a full-size packet as it counts against the window (the maximum datagram size of
    /// RFC 9002 §7.2, the SMSS of RFC 5681).
    pub mss: Bytes,
    /// Window before anything is known of the path: 10 packets (RFC 6928, RFC 9002 §7.2).
    pub initial_window: Bytes,
    /// The window never falls below this: 2 packets (RFC 9002 §7.2); TCP allows 1 (RFC 5681 §3.1).
    pub min_window: Bytes,
    /// Whether the transport paces the packets of algorithms that give no rate of their own.
    pub paced: bool,
    /// Seed of the algorithm's own randomness (BBR's start in its gain cycle, for one).
    pub seed: u64,
    /// What a clock that all senders share says when the connection's own says zero, such as the
    /// time since 1970. Copa drains the queue at its ticks (knob `competitive` at 2). Default: zero,
    /// which fits connections that share a clock.
    pub clock: Duration,
}

impl Config {
    /// The usual limits for packets of `mss` bytes: initial window 10 packets, minimum 2, not paced.
    pub const fn with_mss(mss: Bytes, seed: u64) -> Self {
        let n = mss.get();
        let [initial_window, min_window] = [Bytes::new(10 * n), Bytes::new(2 * n)];
        Self { mss, initial_window, min_window, paced: false, seed, clock: Duration::ZERO }
    }
}

impl Default for Config {
    /// Packets of 1500 bytes, seed 0.
    fn default() -> Self {
        Self::with_mss(Bytes::new(1500), 0)
    }
}

/// Where in its life an algorithm is; for traces, reports and the decision when to switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Exponential search for the path's capacity (slow start, Startup).
    SlowStart,
    /// Emptying the queue that the search left behind.
    Drain,
    /// The algorithm knows the path and uses it (congestion avoidance, `ProbeBW`).
    Steady,
    /// In the window reduction after a loss.
    Recovery,
    /// Deliberately below capacity to measure the minimum round-trip time.
    ProbeRtt,
}

impl Phase {
    /// The phase of an algorithm that has a window, a threshold and loss episodes.
    fn of_window(window: &Window, episode: &Episode) -> Self {
        if episode.recovering() {
            Self::Recovery
        } else if window.in_slow_start() {
            Self::SlowStart
        } else {
            Self::Steady
        }
    }
}

/// A congestion control algorithm.
///
/// The transport calls the `on_*` methods in the order in which things happen. When one received
/// acknowledgement both acknowledges and reveals losses, the calls are: [`on_packet_lost`] for each
/// lost packet, then [`on_loss`] for the batch, then [`on_ack`]. Congestion marks ([`on_marked`])
/// come just before [`on_ack`].
///
/// The transport sends while bytes in flight are below [`window`], no faster than
/// [`pacing_rate`], and calls [`on_timer`] once [`next_timer`] has passed.
///
/// [`on_packet_lost`]: CongestionControl::on_packet_lost
/// [`on_loss`]: CongestionControl::on_loss
/// [`on_marked`]: CongestionControl::on_marked
/// [`on_ack`]: CongestionControl::on_ack
/// [`on_timer`]: CongestionControl::on_timer
/// [`next_timer`]: CongestionControl::next_timer
/// [`window`]: CongestionControl::window
/// [`pacing_rate`]: CongestionControl::pacing_rate
#[enum_dispatch::enum_dispatch]
pub trait CongestionControl {
    /// The handshake is done and has measured the path's round-trip time; nothing was sent yet. Not
    /// called where nothing was measured.
    fn on_established(&mut self, _rtt: Duration) {}

    /// A packet left.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// New data was acknowledged.
    fn on_ack(&mut self, ack: &Ack);

    /// One packet was declared lost; followed by one [`on_loss`](Self::on_loss) for the batch.
    fn on_packet_lost(&mut self, _lost: &LostPacket) {}

    /// A batch of packets was declared lost by one acknowledgement or one timer.
    fn on_loss(&mut self, loss: &Loss);

    /// The path marked packets instead of dropping them (ECN). By default the answer is that to a loss (RFC 3168 §5):
    /// for an algorithm that cuts its window once in a round trip of losses, as RFC 9002 §7.3.1 and RFC 9438 §4.6 have
    /// it. Another has to answer in its own way.
    fn on_marked(&mut self, marked: &Marked) {
        let Marked { now, newest_sent_at, inflight, prior_inflight } = *marked;
        self.on_loss(&Loss { now, lost: Bytes::ZERO, newest_sent_at, inflight, prior_inflight });
    }

    /// TCP's retransmission timer expired (RFC 6298), or QUIC saw persistent congestion
    /// (RFC 9002 §7.6): nothing that was learnt of the path can be trusted.
    fn on_timeout(&mut self, timeout: &Timeout);

    /// Packets left flight that neither arrived nor were lost (RFC 9002 §6.4).
    fn on_discarded(&mut self, _discarded: &Discarded) {}

    /// Full-size packets have another size from now on, which path MTU discovery found (RFC 8899): the
    /// limits are these, their seed aside. The window stays what it is in bytes, or becomes the new
    /// minimum where it was below.
    fn on_mtu(&mut self, limits: &Config);

    /// The losses of the current episode turned out to be none (RFC 9438 §4.9): undo its reduction.
    fn on_spurious_loss(&mut self, _now: Time) {}

    /// The sender had nothing in flight for longer than the retransmission timeout and sends again.
    /// Called by transports that validate the window after idle times (RFC 5681 §4.1).
    fn on_idle(&mut self, _idle: &Idle) {}

    /// A receiver told of packets one by one, with the times of their arrivals. Transports of media
    /// call it, after [`on_ack`](Self::on_ack) and its siblings for the same feedback. An algorithm
    /// that estimates from arrivals takes acknowledgements for them where this is never called.
    fn on_feedback(&mut self, _feedback: &Feedback<'_>) {}

    /// The state for which the algorithm waits for a [`Decision`] from outside, if it does. Without
    /// one its window stays, and the next state takes the place of this one.
    fn awaiting(&self) -> Option<&State> {
        None
    }

    /// Answers the state that waits. Nothing happens when none does.
    fn on_decision(&mut self, _decision: Decision) {}

    /// The time given by [`next_timer`](Self::next_timer) has come.
    fn on_timer(&mut self, _now: Time) {}

    /// When [`on_timer`](Self::on_timer) wants to be called; `None` for never.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// The congestion window: the most bytes that may be in flight.
    fn window(&self) -> Bytes;

    /// The rate to pace packets at; `None` leaves it to the transport.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// The bitrate that an encoder should fill, for algorithms that set one. A transport of media
    /// makes it of window, round-trip time and pacing rate for the others.
    fn target(&self) -> Option<Rate> {
        None
    }

    /// The probe that is to leave now, once. A transport of media asks after every event, and before
    /// it sends; others send none.
    fn take_probe(&mut self, _now: Time) -> Option<Probe> {
        None
    }

    /// The slow start threshold, where there is one and it is finite.
    fn ssthresh(&self) -> Option<Bytes> {
        None
    }

    /// Where in its life the algorithm is.
    fn phase(&self) -> Phase;

    /// Whether the algorithm sets the window during loss recovery itself. A TCP transport applies
    /// Proportional Rate Reduction (RFC 6937) for those that do not.
    fn manages_recovery(&self) -> bool {
        false
    }

    /// The knobs that can be turned while the algorithm runs, in a fixed order. By default none.
    fn knobs(&self) -> &'static [Knob] {
        &[]
    }

    /// The value of knob number `index` of [`knobs`](Self::knobs), in the knob's unit.
    /// `None` when there is no such knob.
    fn knob(&self, _index: usize) -> Option<f64> {
        None
    }

    /// Sets knob number `index`. The value has been checked against the knob's range.
    fn apply_knob(&mut self, _index: usize, _value: f64) {}
}

/// Sets the knob called `name`.
///
/// # Errors
/// The algorithm has no such knob, or `value` is outside its range (NaN always is): nothing changes.
pub fn set_knob(cca: &mut impl CongestionControl, name: &str, value: f64) -> Result<(), KnobError> {
    let knobs = cca.knobs();
    let index = knobs.iter().position(|k| k.name == name).ok_or(KnobError::Unknown { knobs })?;
    knobs[index].check(value)?;
    cca.apply_knob(index, value);
    Ok(())
}

/// The value of the knob called `name`; `None` when there is no such knob.
pub fn get_knob(cca: &impl CongestionControl, name: &str) -> Option<f64> {
    let index = cca.knobs().iter().position(|k| k.name == name)?;
    cca.knob(index)
}
