//! Whether sending faster still delivers faster, in Startup and when probing ("Exiting Acceleration
//! Based on Bandwidth Plateau").

use trimtab_units::Rate;

use super::super::gain::Gain;

/// Less growth than this in a round is a plateau.
const GROWTH: Gain = Gain::ratio(5, 4);
/// Rounds of plateau that show a full pipe: time for the receiver to enlarge its window.
const PLATEAU_ROUNDS: u8 = 3;

/// The plateau detector. It can be started again; that it once succeeded is remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    baseline: Rate,
    plateau: u8,
    now: bool,
    reached: bool,
}

impl FullBw {
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

    /// `CheckFullBWReached()`: takes the delivery rate at the start of a round that was not
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
