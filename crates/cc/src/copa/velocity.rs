//! Velocity: how much faster than at first the window moves, the longer it moves one way.

/// Which way the window moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// Rounds in one direction before the velocity doubles (Copa §2.2).
const ROUNDS_BEFORE_DOUBLING: u32 = 3;

/// Copa's velocity parameter `v` (§2.2).
#[derive(Clone, Debug)]
pub(super) struct Velocity {
    pub(super) value: f64,
    direction: Option<Direction>,
    /// Rounds for which the direction was the same.
    same: u32,
    /// The window, in bytes, when the round began.
    window_then: f64,
}

impl Velocity {
    pub(super) fn new(window: f64) -> Self {
        Self { value: 1.0, direction: None, same: 0, window_then: window }
    }

    /// A round ended at this window: doubles once the window has moved one way for three rounds,
    /// starts again when it turned. A window that stands (held by the application) has none.
    pub(super) fn on_round(&mut self, window: f64, max: f64) {
        let direction = match window.total_cmp(&self.window_then) {
            core::cmp::Ordering::Greater => Some(Direction::Up),
            core::cmp::Ordering::Less => Some(Direction::Down),
            core::cmp::Ordering::Equal => None,
        };
        self.window_then = window;
        if direction.is_none() || direction != self.direction {
            self.value = 1.0;
            self.same = 0;
        }
        self.direction = direction;
        if direction.is_some() {
            self.same = self.same.saturating_add(1);
        }
        if self.same >= ROUNDS_BEFORE_DOUBLING {
            self.value = (2.0 * self.value).min(max);
        }
    }

    /// A window that moves fast and has to turn does so at once, not at the end of the round.
    pub(super) fn on_decision(&mut self, direction: Direction, window: f64) {
        if self.value > 1.0 && self.direction.is_some_and(|d| d != direction) {
            *self = Self { direction: Some(direction), ..Self::new(window) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// expected.md P10 and P11.
    #[test]
    fn doubles_after_three_rounds_and_turns_at_once() {
        let mut v = Velocity::new(10.0);
        let mut seen: Vec<f64> = std::vec![v.value];
        for i in 1..=5 {
            v.on_round(10.0 + f64::from(i), 64.0);
            seen.push(v.value);
        }
        assert_eq!(seen, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0]);
        v.on_decision(Direction::Up, 15.5);
        assert_eq!(v.value, 8.0);
        v.on_decision(Direction::Down, 15.5);
        assert_eq!(v.value, 1.0);
        v.on_round(15.0, 64.0);
        assert_eq!(v.value, 1.0, "the first round downwards");
    }

    #[test]
    fn is_bounded_and_needs_movement() {
        let mut v = Velocity::new(10.0);
        for i in 0..30 {
            v.on_round(20.0 + f64::from(i), 64.0);
        }
        assert_eq!(v.value, 64.0);
        v.on_round(49.0, 64.0);
        assert_eq!(v.value, 1.0, "the window stood for a round");
    }
}
