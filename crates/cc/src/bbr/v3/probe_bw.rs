//! ProbeBW: when to probe for bandwidth, how far, and when to stop ("ProbeBW Algorithm Details").

use rand::RngExt;
use trimtab_units::{Bytes, Rate, Time};

use super::loss::ShortTerm;
use super::{Bbr3, State, Step};

/// No flow waits more rounds than this to probe, so that it can repair what 1% of loss per round
/// took, and a Reno flow of the same size fills its window in that time ("Bandwidth Probing and
/// Coexistence with Reno/CUBIC").
const RENO_ROUNDS_MAX: u64 = 63;
/// Rounds after which the growth of the long-term bound no longer doubles.
const GROWTH_ROUNDS_MAX: u32 = 30;

/// What the acknowledgements now arriving are feedback to (`BBR.ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Not to a probe.
    Init,
    /// To a pipe being filled before a probe.
    Refilling,
    /// To what was sent before the probe.
    Starting,
    /// To the probe.
    Feedback,
    /// To the probe, which has ended.
    Stopping,
}

/// How the long-term bound grows in `ProbeBW_UP`: by 1, 2, 4, … packets per round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    rounds: u32,
    acked: Bytes,
    acked_per_packet: Bytes,
}

impl Growth {
    pub(super) fn new(window: Bytes, mss: Bytes) -> Self {
        let mut growth = Self { rounds: 0, acked: Bytes::ZERO, acked_per_packet: Bytes::MAX };
        growth.steepen(window, mss);
        growth
    }

    /// `RaiseInflightLongtermSlope()`.
    fn steepen(&mut self, window: Bytes, mss: Bytes) {
        self.acked_per_packet = (window / (1u64 << self.rounds)).max(mss);
        self.rounds = (self.rounds + 1).min(GROWTH_ROUNDS_MAX);
    }

    /// How much the bound grows for newly acknowledged bytes.
    fn take(&mut self, acked: Bytes, mss: Bytes) -> Bytes {
        self.acked += acked;
        let packets = self.acked.get() / self.acked_per_packet.get().max(1);
        self.acked -= self.acked_per_packet * packets;
        mss * packets
    }
}

impl Bbr3 {
    /// `StartProbeBW_DOWN()`.
    pub(super) fn start_down(&mut self, now: Time) {
        self.signals.reset();
        self.pick_probe_wait();
        self.cycle_start = now;
        self.ack_phase = AckPhase::Stopping;
        self.rounds.restart(self.delivered);
        self.enter(State::Down);
    }

    /// `StartProbeBW_REFILL()`.
    pub(super) fn start_refill(&mut self) {
        self.short_term = ShortTerm::NONE;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.enter(State::Refill);
    }

    /// `StartProbeBW_UP()`.
    fn start_up(&mut self, rate: Rate) {
        self.ack_phase = AckPhase::Starting;
        self.rounds.restart(self.delivered);
        self.full_bw.restart(rate);
        self.enter(State::Up(Growth::new(self.window, self.mss)));
    }

    /// `UpdateProbeBWCyclePhase()`.
    pub(super) fn update_cycle(&mut self, step: &Step<'_>) {
        if !self.full_bw.reached() || self.adapt_long_term(step) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(step.ack.now) => {
                self.start_refill();
            }
            State::Down if self.is_time_to_cruise(step.ack.inflight) => self.enter(State::Cruise),
            // After one round of refilling.
            State::Refill if self.rounds.started => {
                self.is_probe_sample = true;
                self.start_up(step.rate);
            }
            State::Up(_) if self.is_time_to_go_down(step) => {
                self.prev_probe_too_high = false; // no high loss (yet)
                self.start_down(step.ack.now);
            }
            _ => {}
        }
    }

    /// `AdaptLongTermModel()`: follows the feedback of a probe, and raises the long-term bound while
    /// loss is low. Returns whether it changed the state.
    fn adapt_long_term(&mut self, step: &Step<'_>) -> bool {
        if self.ack_phase == AckPhase::Starting && self.rounds.started {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.rounds.started {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_probe_bw() {
                if step.sample.is_some_and(|s| !s.app_limited) {
                    self.max_bw.advance();
                }
                // The cautious probe did no harm: probe again, and stay.
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if let Some(sample) = &step.sample
            && self.inflight_longterm != Bytes::MAX
            && !self.is_too_high(sample.lost, sample.tx_in_flight)
        {
            self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
            self.grow_long_term(step);
        }
        false
    }

    /// `ProbeInflightLongtermUpward()`.
    fn grow_long_term(&mut self, step: &Step<'_>) {
        let State::Up(growth) = &mut self.state else { return };
        if !step.ack.cwnd_limited || self.window < self.inflight_longterm {
            return; // the bound is not what limits the flow
        }
        self.inflight_longterm += growth.take(step.ack.acked, self.mss);
        if self.rounds.started {
            growth.steepen(self.window, self.mss);
        }
    }

    /// `IsTimeToProbeBW()`: by the clock, or by rounds in step with Reno.
    fn is_time_to_probe(&self, now: Time) -> bool {
        now > self.cycle_start + self.probe_wait || self.rounds_since_probe >= self.reno_rounds()
    }

    /// As many rounds as Reno needs to grow its window by what we have in flight, within reason
    /// (`IsRenoCoexistenceProbeTime()`).
    pub(super) fn reno_rounds(&self) -> u64 {
        (self.target_inflight().get() / self.mss.get().max(1)).min(RENO_ROUNDS_MAX)
    }

    /// `PickProbeWait()`: both bounds are random, so that flows do not probe together.
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe = self.rng.random_range(0..=1);
        let random = self.rng.random_range(0.0..1.0);
        self.probe_wait = self.tuning.probe_wait.mul_f64(1.0 + random / 2.0);
    }

    /// `IsTimeToCruise()`.
    fn is_time_to_cruise(&self, inflight: Bytes) -> bool {
        inflight <= self.inflight_with_headroom()
            && inflight <= self.quantise(self.bdp(self.max_bw.get()))
    }

    /// `IsTimeToGoDown()`.
    fn is_time_to_go_down(&mut self, step: &Step<'_>) -> bool {
        if self.prev_probe_too_high && step.ack.inflight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if step.ack.cwnd_limited && self.window >= self.inflight_longterm {
            self.full_bw.restart(step.rate); // the bound limits the rate, not the path
            return false;
        }
        self.full_bw.now()
    }

    /// `InflightWithHeadroom()`.
    pub(super) fn inflight_with_headroom(&self) -> Bytes {
        if self.inflight_longterm == Bytes::MAX {
            return Bytes::MAX;
        }
        let headroom = self.tuning.headroom.of_bytes(self.inflight_longterm).max(self.mss);
        (self.inflight_longterm - headroom).max(self.min_pipe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// expected.md U3: bytes acknowledged per packet of growth, with a window of 100 packets of 8.
    #[test]
    fn growth_doubles_each_round() {
        let mss = Bytes::new(8);
        let mut growth = Growth::new(mss * 100, mss);
        let mut per_packet = std::vec::Vec::new();
        for _ in 0..8 {
            per_packet.push(growth.acked_per_packet.ratio(mss));
            growth.steepen(mss * 100, mss);
        }
        assert_eq!(per_packet, [100.0, 50.0, 25.0, 12.5, 6.25, 3.125, 1.5, 1.0]);
        let mut growth = Growth::new(mss * 100, mss);
        assert_eq!(growth.take(mss * 99, mss), Bytes::ZERO);
        assert_eq!(growth.take(mss, mss), mss);
        assert_eq!(growth.take(mss * 250, mss), mss * 2);
        assert_eq!(growth.take(mss * 50, mss), mss, "the rest was kept");
    }
}
