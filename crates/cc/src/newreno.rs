//! `NewReno`: additive increase of one packet per round trip, halving on loss.
//!
//! Read first: RFC 5681 (TCP), RFC 9002 §7 (the same for QUIC, by bytes and packet numbers).

use trimtab_units::{Bytes, Duration};

use crate::episode::Episode;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::window::{Window, repair_methods, window_methods};
use crate::{Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Preset, Timeout};

/// RFC 9002 §7.3.2 (`kLossReductionFactor`), RFC 5681 eq. 4.
const REDUCTION: f64 = 0.5;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "newreno",
    about: "loss-based additive increase, multiplicative decrease: the baseline of the \
            standards",
    source: "RFC 5681, RFC 6582, RFC 9002 section 7",
    knobs: NewReno::KNOBS,
    presets: NewReno::PRESETS,
    build: |config| NewReno::new(config).into(),
};

knobs! {
    /// The value of its knob: the standard fixes all others.
    struct Values {
        // Linux `tcp_reno_ssthresh`: half of 11 is 5, which grows to 6 after 5 packets, not 5.5
        // after 5.5. With windows of ten packets that is 4% more growth.
        linux: bool = 0.0, 0.0..=1.0, "1",
            "0: the window counts bytes (RFC 9002); 1: whole packets, as in Linux";
    }
}

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
    values: Values,
}

impl NewReno {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// Its presets.
    pub const PRESETS: &'static [Preset] = &[Preset {
        name: "linux",
        knobs: &[("linux", 1.0)],
        about: "as Linux's reno: the window in whole packets",
    }];

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let (window, episode) = (Window::new(config), Episode::default());
        Self { window, episode, values: Values::default() }
    }

    fn on_knob(&mut self, _place: usize) {
        if self.values.linux {
            self.window.align();
        }
    }

    /// The threshold after a loss at the present window (RFC 5681 eq. 4, RFC 9002 §7.3.2).
    fn decrease(&self) -> Bytes {
        let half = self.window.size.mul_f64(REDUCTION);
        if self.values.linux {
            self.window.mss * (half.get() / self.window.mss.get())
        } else {
            half
        }
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
            self.window.reduce(self.decrease());
        }
    }

    /// RFC 5681 §3.1, RFC 9002 §7.6.2.
    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.decrease()));
    }

    /// RFC 5681 §4.1.
    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
        if self.values.linux {
            self.window.align();
        }
    }

    window_methods!(self);

    repair_methods!(self);

    knob_methods!(self.values, then on_knob);
}

impl Migrate for NewReno {
    fn take_over(&mut self, from: &HandOver) {
        self.episode = Episode::default();
        self.window.take_over(from.window);
        if self.values.linux {
            self.window.align();
            self.window.ssthresh = self.window.size;
        }
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
mod tests {
    use super::*;
    use crate::testing::link::MSS;
    use crate::testing::{acked, lost, timed_out};
    use crate::{Phase, set_knob};
    use trimtab_units::Time;

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

    /// Linux over Mahimahi, `reno` at 150 ms and 1% loss: windows of 11 fall to 5 (18 of 20 times; the
    /// others were of two losses) and are 6 after one round trip.
    #[test]
    fn in_whole_packets_half_of_eleven_is_five() {
        let config = Config::with_mss(MSS, 0);
        let halved = |linux: f64| {
            let (mut reno, mut now) = (NewReno::new(&config), Time::ZERO);
            set_knob(&mut reno, "linux", linux).unwrap();
            round(&mut reno, &mut now);
            reno.on_loss(&lost(now, now - RTT));
            round(&mut reno, &mut now);
            assert_eq!(reno.window(), MSS * 11);
            reno.on_loss(&lost(now, now));
            let low = reno.window();
            round(&mut reno, &mut now);
            (low, reno.window())
        };
        assert_eq!(halved(1.0), (MSS * 5, MSS * 6));
        assert_eq!(halved(0.0), (MSS * 11 / 2, MSS * 11 / 2), "5 acknowledged of the 5.5 needed");
    }

    /// expected.md R4: a mean window of sqrt(3 / 2p) packets with one loss every 1/p; up to 7% more with
    /// small windows, which grow in steps.
    #[test]
    fn mean_window_falls_with_the_root_of_the_loss_rate() {
        for (every, want) in [(100, 12.2), (1000, 38.7), (10_000, 122.5)] {
            for linux in [0.0, 1.0] {
                let (mut reno, mut now) = (NewReno::new(&Config::with_mss(MSS, 0)), Time::ZERO);
                set_knob(&mut reno, "linux", linux).unwrap();
                let (mut since, mut sum, mut rounds) = (0, 0.0, 0);
                // A hundred epochs of half a window each, in round trips; the first ten do not count.
                for epoch in 0..100 {
                    let mut lossless = true;
                    while lossless {
                        let flight = reno.window().get() / MSS.get();
                        if epoch >= 10 {
                            sum += reno.window().ratio(MSS);
                            rounds += 1;
                        }
                        now += RTT;
                        for _ in 0..flight {
                            since += 1;
                            if since == every {
                                since = 0;
                                lossless = false;
                                reno.on_loss(&lost(now, now));
                            }
                            let sent = now + Duration::from_nanos(1);
                            reno.on_ack(&acked(now, sent, MSS, RTT));
                        }
                    }
                }
                let mean = sum / f64::from(rounds);
                assert!((mean / want - 1.0).abs() < 0.1, "1/{every}: {mean}, not {want}");
            }
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
