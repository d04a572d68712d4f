//! Startup's end: the bandwidth no longer grows, so the pipe is full (`bbr_check_full_bw_reached`).

use trimtab_units::Rate;

use super::super::gain::Gain;

/// Less growth than this in a round is a plateau (`bbr_full_bw_thresh`).
const GROWTH: Gain = Gain::ratio(5, 4);
/// Rounds of plateau: time for the receiver to enlarge its window and for us to use it
/// (`bbr_full_bw_cnt`).
const PLATEAU_ROUNDS: u8 = 3;

/// Whether the pipe has been filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    plateau: u8,
    reached: bool,
}

impl FullPipe {
    pub(super) fn reached(&self) -> bool {
        self.reached
    }

    /// The pipe was filled by another algorithm, at this bandwidth.
    pub(super) fn filled_at(bandwidth: Rate) -> Self {
        Self { baseline: bandwidth, plateau: PLATEAU_ROUNDS, reached: true }
    }

    /// Takes the bandwidth estimate at the start of a round that was not application-limited.
    pub(super) fn on_round(&mut self, max_bw: Rate) {
        if self.reached {
            return;
        }
        if max_bw >= GROWTH.of_rate(self.baseline) {
            self.baseline = max_bw;
            self.plateau = 0;
        } else {
            self.plateau += 1;
            self.reached = self.plateau >= PLATEAU_ROUNDS;
        }
    }

    /// After a retransmission timeout the rate begins anew (`bbr_set_state`).
    pub(super) fn forget_baseline(&mut self) {
        self.baseline = Rate::ZERO;
    }

    /// A slow-down turned out to be spurious: plateaus seen in it count for nothing
    /// (`bbr_undo_cwnd`).
    pub(super) fn forget_plateau(&mut self) {
        self.baseline = Rate::ZERO;
        self.plateau = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_below_a_quarter_of_growth_end_startup() {
        let mut pipe = FullPipe::default();
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
}
