//! `NewReno`: additive increase of one packet per round trip, halving on loss.
//!
//! Read first: RFC 5681 (TCP), RFC 9002 §7 (the same for QUIC, by bytes and packet numbers).

use trimtab_units::{Bytes, Time};

use crate::episode::Episode;
use crate::window::Window;
use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Phase, Timeout};

/// RFC 9002 §7.3.2 (`kLossReductionFactor`), RFC 5681 eq. 4.
const REDUCTION: f64 = 0.5;

/// The `NewReno` state machine.
///
/// ```text
///             first loss                     window >= ssthresh
///  SlowStart ────────────▶ Recovery ◀──────────── (growth)
///      │                      │ packet sent after the reduction acknowledged
///      └── window ≥ ssthresh ─┴▶ Steady ── loss ──▶ Recovery
/// ```
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
    episode: Episode,
}

impl NewReno {
    /// No knobs: the standard fixes everything.
    pub const KNOBS: &'static [Knob] = &[];

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        Self { window: Window::new(config), episode: Episode::default() }
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        let recovering = self.episode.on_ack(ack);
        // No growth while in recovery (RFC 9002 §7.3.2), nor of a window that is not used (§7.8).
        if !recovering && ack.cwnd_limited {
            self.window.grow_reno(ack.acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            self.window.reduce(self.window.size.mul_f64(REDUCTION));
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.window.size.mul_f64(REDUCTION)));
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        if self.window.undo() {
            self.episode.cancel();
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
    }

    fn window(&self) -> Bytes {
        self.window.size
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.threshold()
    }

    fn phase(&self) -> Phase {
        Phase::of_window(&self.window, &self.episode)
    }

    fn knobs(&self) -> &'static [Knob] {
        Self::KNOBS
    }

    fn knob(&self, _index: usize) -> Option<f64> {
        None
    }

    fn apply_knob(&mut self, _index: usize, _value: f64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::link::MSS;
    use crate::testing::{acked, lost, timed_out};
    use trimtab_units::Duration;

    const RTT: Duration = Duration::from_millis(50);

    /// Acknowledges one window, packet by packet.
    fn round(reno: &mut NewReno, now: &mut Time) {
        let sent = *now + Duration::from_nanos(1);
        *now += RTT;
        for _ in 0..reno.window().get() / MSS.get() {
            reno.on_ack(&acked(*now, sent, MSS, RTT));
        }
    }

    /// expected.md R1.
    #[test]
    fn slow_start_doubles_per_round_trip() {
        let (mut reno, mut now) = (NewReno::new(&Config::with_mss(MSS, 0)), Time::ZERO);
        for packets in [10, 20, 40, 80] {
            assert_eq!(reno.window(), MSS * packets);
            assert_eq!(reno.ssthresh(), None);
            round(&mut reno, &mut now);
        }
    }

    /// expected.md R2 and R3.
    #[test]
    fn a_loss_halves_and_then_a_packet_is_added_per_round_trip() {
        let (mut reno, mut now) = (NewReno::new(&Config::with_mss(MSS, 0)), Time::ZERO);
        round(&mut reno, &mut now);
        reno.on_loss(&lost(now, now - RTT));
        assert_eq!((reno.window(), reno.phase()), (MSS * 10, Phase::Recovery));
        // Of the same episode: neither another reduction nor growth.
        reno.on_loss(&lost(now, now - RTT));
        reno.on_ack(&acked(now, now, MSS, RTT));
        assert_eq!((reno.window(), reno.ssthresh()), (MSS * 10, Some(MSS * 10)));
        for packets in 11..20 {
            round(&mut reno, &mut now);
            assert_eq!((reno.window(), reno.phase()), (MSS * packets, Phase::Steady));
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut reno = NewReno::new(&Config::with_mss(MSS, 0));
        reno.on_ack(&Ack {
            cwnd_limited: false,
            ..acked(Time::from_millis(50), Time::ZERO, MSS, RTT)
        });
        assert_eq!(reno.window(), MSS * 10);
    }

    #[test]
    fn timeouts_in_a_row_hold_the_threshold() {
        let mut reno = NewReno::new(&Config::with_mss(MSS, 0));
        for ms in [300, 900, 2100] {
            reno.on_timeout(&timed_out(Time::from_millis(ms)));
            assert_eq!((reno.window(), reno.ssthresh()), (MSS * 2, Some(MSS * 5)));
        }
        // The first acknowledgement is of the packet that the timeout sent again: slow start.
        reno.on_ack(&acked(Time::from_millis(2150), Time::from_millis(2100), MSS, RTT));
        assert_eq!((reno.window(), reno.phase()), (MSS * 3, Phase::SlowStart));
    }

    #[test]
    fn a_spurious_loss_is_taken_back_once() {
        let mut reno = NewReno::new(&Config::with_mss(MSS, 0));
        reno.on_loss(&lost(Time::ZERO, Time::ZERO));
        reno.on_spurious_loss(Time::from_millis(1));
        assert_eq!((reno.window(), reno.ssthresh()), (MSS * 10, None));
        assert_eq!(reno.phase(), Phase::SlowStart);
    }
}
