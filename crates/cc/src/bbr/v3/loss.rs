//! What losses do to the model ("Updating the Model Upon Packet Loss").
//!
//! While probing, loss above the threshold sets the long-term bound on inflight; otherwise each
//! round with loss pulls the short-term bounds towards what is being delivered.

use trimtab_units::{Bytes, Rate, Time};

use super::{Bbr3, Resume, State, Step};
use crate::LostPacket;

/// Discontiguous ranges that must be lost in a round for loss to end Startup
/// (`BBRStartupFullLossCnt`).
const STARTUP_LOSS_RANGES: u32 = 6;

/// The delivery process of the current round, and the loss in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signals {
    /// Largest delivery rate and volume of the round.
    pub(super) bw_latest: Rate,
    pub(super) inflight_latest: Bytes,
    pub(super) loss_in_round: bool,
    /// Ranges of packets lost in the round.
    ranges: u32,
    /// A packet sent at or after this many delivered bytes ends the loss round.
    round_end: Bytes,
    pub(super) round_started: bool,
}

impl Signals {
    /// `ResetCongestionSignals()`.
    pub(super) fn reset(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = Bytes::ZERO;
    }
}

/// Bounds that hold until the next probe for bandwidth; the largest value for none.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    pub(super) bw: Rate,
    pub(super) inflight: Bytes,
}

impl ShortTerm {
    pub(super) const NONE: Self = Self { bw: Rate::MAX, inflight: Bytes::MAX };
}

/// What a loss episode changed, in case it turns out to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that the episode ended, if it did.
    pub(super) resume: Option<Resume>,
    short_term: ShortTerm,
    inflight_longterm: Bytes,
}

impl Undo {
    pub(super) const NOTHING: Self = Self {
        resume: None,
        short_term: ShortTerm { bw: Rate::ZERO, inflight: Bytes::ZERO },
        inflight_longterm: Bytes::ZERO,
    };
}

/// Lost packets come before the acknowledgement that revealed them, which alone tells how much it
/// delivered; so what starts a round at a lost packet is corrected when it comes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Anchors {
    at: Time,
    loss_round: bool,
    round: bool,
}

impl Anchors {
    /// Whether packets were declared lost at that time.
    pub(super) fn is_at(&self, now: Time) -> bool {
        self.at == now
    }
}

/// `InflightAtLoss()`: how much was in flight when losses crossed the threshold within the lost
/// packet, from what was in flight and lost up to and including it.
fn inflight_at_loss(thresh: f64, size: Bytes, tx_in_flight: Bytes, lost: Bytes) -> Bytes {
    let inflight_before = (tx_in_flight - size).as_f64();
    let lost_before = (lost - size).as_f64();
    let lost_prefix = (thresh * inflight_before - lost_before) / (1.0 - thresh);
    Bytes::from_f64(inflight_before + lost_prefix)
}

impl Bbr3 {
    /// `IsInflightTooHigh()`; every transport here has selective acknowledgements.
    pub(super) fn is_too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        lost.as_f64() > tx_in_flight.as_f64() * self.tuning.values.loss_thresh
    }

    /// `HandleLostPacket()`.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostPacket) {
        self.note_loss(lost.now);
        self.signals.ranges += u32::from(lost.new_range);
        if !self.is_probe_sample || !self.is_too_high(lost.lost_since_sent, lost.tx_in_flight) {
            return;
        }
        // `HandleInflightTooHigh()`: once per probe.
        self.prev_probe_too_high = true;
        self.is_probe_sample = false;
        if !lost.app_limited && !self.bubble.contains(lost.delivered_at_send) {
            let thresh = self.tuning.values.loss_thresh;
            let inflight =
                inflight_at_loss(thresh, lost.bytes, lost.tx_in_flight, lost.lost_since_sent);
            self.inflight_longterm =
                inflight.max(self.tuning.beta.of_bytes(self.target_inflight()));
        }
        if matches!(self.state, State::Up(_)) {
            self.undo.resume = Some(Resume::Probe);
            self.anchors.round = true;
            self.start_down(lost.now);
        }
    }

    /// `NoteLoss()`, and the start of a loss episode if this is one.
    ///
    /// The draft's pseudocode saves the undo state at the first loss of each round too. That would
    /// overwrite what the episode began with (leaving `ProbeBW_UP` resets the loss round, so the next
    /// packet of the same batch is again a first loss), against its text: saved when "a loss recovery
    /// episode starts". Here only that counts.
    pub(super) fn note_loss(&mut self, now: Time) {
        if self.anchors.at != now {
            self.anchors = Anchors { at: now, ..Anchors::default() };
        }
        if !self.in_recovery {
            self.save_window();
            self.undo = Undo {
                resume: None,
                short_term: self.short_term,
                inflight_longterm: self.inflight_longterm,
            };
            self.in_recovery = true;
        }
        if !self.signals.loss_in_round {
            self.signals.loss_in_round = true;
            self.signals.round_end = self.delivered;
            self.anchors.loss_round = true;
        }
    }

    /// Moves rounds that lost packets began to the acknowledgement that revealed them.
    pub(super) fn settle_anchors(&mut self, now: Time) {
        let anchors = core::mem::take(&mut self.anchors);
        if anchors.at == now {
            if anchors.loss_round {
                self.signals.round_end = self.delivered;
            }
            if anchors.round {
                self.rounds.restart(self.delivered);
            }
        }
    }

    /// `UpdateLatestDeliverySignals()`.
    pub(super) fn update_latest_signals(&mut self, step: &Step<'_>) {
        let signals = &mut self.signals;
        signals.round_started = false;
        let Some(sample) = &step.sample else { return };
        signals.bw_latest = signals.bw_latest.max(step.rate);
        signals.inflight_latest = signals.inflight_latest.max(sample.delivered);
        if sample.prior_delivered >= signals.round_end {
            signals.round_end = self.delivered;
            signals.round_started = true;
        }
    }

    /// `AdaptLowerBoundsFromCongestion()`, at the end of each loss round.
    pub(super) fn adapt_short_term(&mut self) {
        if self.signals.loss_in_round && !self.is_probing_bw() {
            let ShortTerm { bw, inflight } = &mut self.short_term;
            if *bw == Rate::MAX {
                *bw = self.max_bw.get();
            }
            if *inflight == Bytes::MAX {
                *inflight = self.window;
            }
            let beta = self.tuning.beta;
            *bw = self.signals.bw_latest.max(beta.of_rate(*bw));
            *inflight = self.signals.inflight_latest.max(beta.of_bytes(*inflight));
        }
        self.signals.loss_in_round = false;
    }

    /// `CheckStartupHighLoss()`: a whole round of recovery with too much loss, in enough places not
    /// to be one burst.
    pub(super) fn check_startup_loss(&mut self, step: &Step<'_>) {
        if !self.signals.round_started {
            return;
        }
        let ranges = core::mem::take(&mut self.signals.ranges);
        let Some(sample) = &step.sample else { return };
        if self.state == State::Startup
            && self.in_recovery
            && ranges >= STARTUP_LOSS_RANGES
            && self.is_too_high(sample.lost, sample.tx_in_flight)
        {
            self.undo.resume = Some(Resume::Startup);
            self.full_bw.declare();
            self.inflight_longterm = self.bdp(self.bw).max(self.signals.inflight_latest);
        }
    }

    /// `AdvanceLatestDeliverySignals()`.
    pub(super) fn advance_latest_signals(&mut self, step: &Step<'_>) {
        if let Some(sample) = step.sample.filter(|_| self.signals.round_started) {
            self.signals.bw_latest = step.rate;
            self.signals.inflight_latest = sample.delivered;
        }
    }

    /// `HandleSpuriousLossDetection()`.
    pub(super) fn undo_loss(&mut self) {
        self.restore_window();
        self.signals.loss_in_round = false;
        self.full_bw.restart(Rate::ZERO);
        let undo = core::mem::replace(&mut self.undo, Undo::NOTHING);
        self.short_term.bw = self.short_term.bw.max(undo.short_term.bw);
        self.short_term.inflight = self.short_term.inflight.max(undo.short_term.inflight);
        self.inflight_longterm = self.inflight_longterm.max(undo.inflight_longterm);
        let in_probe_rtt = matches!(self.state, State::ProbeRtt(_));
        match undo.resume {
            Some(Resume::Startup) if self.state != State::Startup => {
                self.full_bw.forget_reached();
                if !in_probe_rtt {
                    self.enter(State::Startup);
                }
            }
            Some(Resume::Probe) if !matches!(self.state, State::Up(_)) && !in_probe_rtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// expected.md U2, in packets of 10 000 "bytes" so that four decimals show.
    #[test]
    fn inflight_at_loss_solves_for_the_threshold() {
        let unit = 10_000u64;
        for (tx_in_flight, lost, expected) in
            [(100, 3, 989_796), (1000, 25, 9_948_980), (50, 2, 489_796)]
        {
            let inflight = inflight_at_loss(
                0.02,
                Bytes::new(unit),
                Bytes::new(unit * tx_in_flight),
                Bytes::new(unit * lost),
            );
            assert_eq!(inflight, Bytes::new(expected));
        }
    }

    use crate::Config;
    use trimtab_units::Duration;

    const MSS: Bytes = Bytes::new(1500);

    /// 12 Mbit/s, 100 packets of window, in ProbeBW.
    fn bbr() -> Bbr3 {
        let mut bbr = Bbr3::new(&Config { min_window: MSS, ..Config::with_mss(MSS, 7) });
        bbr.max_bw.update(Rate::from_mbps(12.0), false);
        (bbr.bw, bbr.window, bbr.state) = (Rate::from_mbps(12.0), MSS * 100, State::Cruise);
        bbr
    }

    /// A packet of a hundred in flight of which so many were lost.
    fn lost(ms: u64, packets: u64) -> LostPacket {
        let now = Time::from_millis(ms);
        LostPacket {
            now,
            bytes: MSS,
            sent_at: now - Duration::from_millis(40),
            tx_in_flight: MSS * 100,
            lost_since_sent: MSS * packets,
            app_limited: false,
            delivered_at_send: MSS * 500,
            new_range: true,
        }
    }

    /// `IsInflightTooHigh()`: more than 2% of what was in flight.
    #[test]
    fn two_in_a_hundred_are_tolerated() {
        let bbr = bbr();
        assert!(!bbr.is_too_high(MSS * 2, MSS * 100));
        assert!(bbr.is_too_high(MSS * 2 + Bytes::new(1), MSS * 100));
    }

    /// `AdaptLowerBoundsFromCongestion()`: 0.7 of the bound, or what was delivered where that is
    /// more.
    #[test]
    fn each_round_with_loss_lowers_the_short_term_bounds() {
        let mut bbr = bbr();
        bbr.adapt_short_term();
        assert_eq!(bbr.short_term.inflight, Bytes::MAX, "no loss, no bound");
        bbr.signals.loss_in_round = true;
        bbr.adapt_short_term();
        let rate = bbr.short_term.bw.ratio(Rate::from_mbps(12.0));
        assert!((rate - 0.7).abs() < 1e-4, "{rate}");
        assert_eq!(bbr.short_term.inflight.get() / MSS.get(), 69, "0.7 in 1/65536, rounded down");
        bbr.signals.loss_in_round = true;
        (bbr.signals.bw_latest, bbr.signals.inflight_latest) = (Rate::from_mbps(8.0), MSS * 60);
        bbr.adapt_short_term();
        assert_eq!((bbr.short_term.bw, bbr.short_term.inflight), (Rate::from_mbps(8.0), MSS * 60));
        assert!(!bbr.signals.loss_in_round, "the round is over");
        let mut probing = super::super::Bbr3 { short_term: ShortTerm::NONE, ..bbr };
        (probing.state, probing.signals.loss_in_round) = (State::Refill, true);
        probing.adapt_short_term();
        assert_eq!(probing.short_term.bw, Rate::MAX, "a probe is meant to lose");
    }

    /// `HandleInflightTooHigh()`: once per probe, and never below 0.7 of the target.
    #[test]
    fn a_probe_that_loses_too_much_sets_the_long_term_bound() {
        let mut bbr = bbr();
        bbr.handle_lost_packet(&lost(10, 3));
        assert_eq!(bbr.inflight_longterm, Bytes::MAX, "not feedback to a probe");
        bbr.is_probe_sample = true;
        bbr.handle_lost_packet(&lost(10, 2));
        assert!(bbr.is_probe_sample, "2 of 100 are tolerated");
        bbr.handle_lost_packet(&lost(10, 3));
        // 99 packets before this one, 2 of them lost: (0.02 × 99 - 2) / 0.98 more were too many.
        let want = (99.0 + (0.02 * 99.0 - 2.0) / 0.98) * 1500.0;
        assert!((bbr.inflight_longterm.as_f64() - want).abs() <= 1.0, "{}", bbr.inflight_longterm);
        assert!(!bbr.is_probe_sample && bbr.prev_probe_too_high);
        let bound = bbr.inflight_longterm;
        bbr.handle_lost_packet(&lost(10, 50));
        assert_eq!(bbr.inflight_longterm, bound, "once per probe");
        bbr.is_probe_sample = true;
        bbr.handle_lost_packet(&LostPacket { app_limited: true, ..lost(10, 50) });
        assert_eq!(bbr.inflight_longterm, bound, "the application had left the path unused");
    }

    /// `HandleSpuriousLossDetection()`: the bounds are those from before the episode.
    #[test]
    fn losses_that_were_none_are_undone() {
        let mut bbr = bbr();
        bbr.inflight_longterm = MSS * 90;
        bbr.note_loss(Time::from_millis(10));
        assert!(bbr.in_recovery && bbr.signals.loss_in_round);
        bbr.adapt_short_term();
        (bbr.inflight_longterm, bbr.window) = (MSS * 50, MSS * 40);
        bbr.note_loss(Time::from_millis(20));
        bbr.undo_loss();
        assert_eq!((bbr.window, bbr.inflight_longterm), (MSS * 100, MSS * 90));
        assert_eq!((bbr.short_term.bw, bbr.short_term.inflight), (Rate::MAX, Bytes::MAX));
        assert!(!bbr.signals.loss_in_round);
        (bbr.inflight_longterm, bbr.window) = (MSS * 50, MSS * 40);
        bbr.undo_loss();
        assert_eq!(bbr.inflight_longterm, MSS * 50, "only once");
    }

    /// `CheckStartupHighLoss()`: six ranges in a round, more than 2%, and in recovery.
    #[test]
    fn startup_ends_by_loss_in_six_places() {
        let ends = |ranges: u32, lost: u64, in_recovery: bool, state: State| {
            let mut bbr = bbr();
            (bbr.state, bbr.in_recovery) = (state, in_recovery);
            (bbr.signals.round_started, bbr.signals.ranges) = (true, ranges);
            let now = Time::from_secs(1);
            let ack = crate::testing::acked(now, Time::ZERO, MSS, Duration::from_millis(40));
            let sample = crate::RateSample {
                delivered: MSS * 100,
                interval: Duration::from_millis(40),
                prior_delivered: MSS * 500,
                app_limited: false,
                tx_in_flight: MSS * 100,
                lost: MSS * lost,
            };
            bbr.check_startup_loss(&Step { ack: &ack, sample: Some(sample), rate: Rate::ZERO });
            bbr.full_bw.reached()
        };
        assert!(ends(6, 3, true, State::Startup));
        assert!(!ends(5, 3, true, State::Startup), "five ranges");
        assert!(!ends(6, 2, true, State::Startup), "2%");
        assert!(!ends(6, 3, false, State::Startup), "no round of recovery");
        assert!(!ends(6, 3, true, State::Cruise));
    }
}
