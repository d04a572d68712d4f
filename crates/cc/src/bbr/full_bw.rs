//! Whether sending faster still delivers faster, in Startup and when version 3 probes (Linux
//! `bbr_check_full_bw_reached`; draft-ietf-ccwg-bbr, "Exiting Acceleration Based on Bandwidth
//! Plateau").

use trimtab_units::{Duration, Rate};

use super::gain::Gain;
use crate::Ack;

/// Less growth than this in a round is a plateau (`bbr_full_bw_thresh`).
const GROWTH: Gain = Gain::ratio(5, 4);
/// Rounds of plateau that show a full pipe: time for the receiver to enlarge its window and for us
/// to use it (`bbr_full_bw_cnt`).
const PLATEAU_ROUNDS: u8 = 3;

/// A round-trip time above 5/4 of the least one shows a queue, and a pipe with one is full. As much
/// as a probe adds at most (`bbr_pacing_gain`).
const QUEUE: (u64, u64) = (5, 4);

/// Whether an acknowledgement shows a queue; ours, for a search over another algorithm's rate.
pub(super) fn shows_queue(ack: &Ack, min_rtt: Option<Duration>) -> bool {
    let both = ack.rtt.zip(min_rtt);
    both.is_some_and(|(rtt, min_rtt)| rtt * QUEUE.1 > min_rtt * QUEUE.0)
}

/// The plateau detector. It can be started again; that it once succeeded is remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    baseline: Rate,
    plateau: u8,
    now: bool,
    reached: bool,
}

impl FullBw {
    /// The pipe was filled by another algorithm, at this bandwidth.
    pub(super) fn filled_at(bandwidth: Rate) -> Self {
        Self { baseline: bandwidth, plateau: 0, now: true, reached: true }
    }

    /// Whether the pipe has ever been full.
    pub(super) fn reached(&self) -> bool {
        self.reached
    }

    /// Whether it was found full since the last start.
    pub(super) fn now(&self) -> bool {
        self.now
    }

    /// `ResetFullBW()`, with the rate from which growth counts.
    pub(super) fn restart(&mut self, baseline: Rate) {
        *self = Self { baseline, reached: self.reached, ..Self::default() };
    }

    /// After a retransmission timeout the rate begins anew, but plateaus before it count
    /// (`bbr_set_state`).
    pub(super) fn forget_baseline(&mut self) {
        self.baseline = Rate::ZERO;
    }

    /// `CheckFullBWReached()`: takes the bandwidth at the start of a round that was not
    /// application-limited.
    pub(super) fn on_round(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        if rate >= GROWTH.of_rate(self.baseline) {
            self.restart(rate);
            return;
        }
        self.plateau += 1;
        if self.plateau >= PLATEAU_ROUNDS {
            self.declare();
        }
    }

    /// Loss shows the pipe full, plateau or not.
    pub(super) fn declare(&mut self) {
        self.now = true;
        self.reached = true;
    }

    /// The loss was none: the pipe may never have been full.
    pub(super) fn forget_reached(&mut self) {
        self.reached = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `bbr_check_full_bw_reached`.
    #[test]
    fn three_rounds_below_a_quarter_of_growth_end_startup() {
        let mut pipe = FullBw::default();
        for bw in [100, 125, 156, 195, 244] {
            pipe.on_round(Rate::from_bytes_per_sec(bw));
            assert!(!pipe.reached(), "growth of a quarter continues");
        }
        for _ in 0..2 {
            pipe.on_round(Rate::from_bytes_per_sec(300));
            assert!(!pipe.reached());
        }
        pipe.on_round(Rate::from_bytes_per_sec(304));
        assert!(pipe.reached(), "304 < 1.25 * 244 for the third round");
    }

    /// Linux `bbr_set_state` sets `full_bw` to 0 and leaves `full_bw_cnt`; the round after it grows
    /// from nothing, which begins the count anew.
    #[test]
    fn after_a_timeout_any_rate_is_growth() {
        let mut pipe = FullBw::default();
        rounds(&mut pipe, &[100, 100, 100]);
        pipe.forget_baseline();
        rounds(&mut pipe, &[50, 50, 50]);
        assert!(!pipe.reached(), "50 was growth, then two rounds of plateau");
        rounds(&mut pipe, &[50]);
        assert!(pipe.reached());
    }

    fn rounds(full: &mut FullBw, rates: &[u64]) {
        for rate in rates {
            full.on_round(Rate::from_bytes_per_sec(*rate));
        }
    }

    /// draft-ietf-ccwg-bbr, "Exiting Acceleration Based on Bandwidth Plateau": three rounds in
    /// which the rate did not grow by a quarter.
    #[test]
    fn three_rounds_without_a_quarter_more_are_a_plateau() {
        let mut full = FullBw::default();
        rounds(&mut full, &[100, 125, 157, 158, 190]);
        assert!(!full.now(), "two rounds");
        rounds(&mut full, &[197]);
        assert!(!full.now(), "197 is a quarter more than 157: the count begins anew");
        rounds(&mut full, &[197, 245, 240]);
        assert!(full.now() && full.reached());
        rounds(&mut full, &[1000]);
        assert!(full.now(), "more comes too late for this search");
    }

    #[test]
    fn a_search_that_begins_anew_remembers_that_the_pipe_was_full() {
        let mut full = FullBw::default();
        full.declare();
        full.restart(Rate::from_bytes_per_sec(200));
        assert!(full.reached() && !full.now());
        rounds(&mut full, &[249, 249]);
        assert!(!full.now(), "growth counts from the rate at the start");
        rounds(&mut full, &[249]);
        assert!(full.now());
        full.forget_reached();
        assert!(full.now() && !full.reached());
    }
}
