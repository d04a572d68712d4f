//! What keeps a selection from flapping.

/// A new winner has to win twice in a row. The first prediction applies at once (`predicCC` of the published code).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hysteresis {
    applied: Option<usize>,
    last: Option<usize>,
}

impl Hysteresis {
    /// Of a connection for which nothing was foretold.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the winner of a decision, and gives the candidate that is to run.
    pub fn settle(&mut self, winner: usize) -> usize {
        let before = self.last.replace(winner);
        match self.applied {
            Some(applied) if before != Some(winner) => applied,
            _ => {
                self.applied = Some(winner);
                winner
            }
        }
    }
}
