//! The steps of the gradient ascent (NSDI 2018 §5): how far to go for a gradient.

use super::knobs::Values;
use super::losses::Losses;
use super::utility::{most_gradient, secant, utility};
use crate::interval::Seen;

/// The largest step as a share of the rate: ω0, and how much more for each step in the same
/// direction that it bound (δ).
const BOUND: f64 = 0.05;
const BOUND_MORE: f64 = 0.1;

/// What the climb so far tells of the next step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Climb {
    /// What was seen last.
    last: Option<Seen>,
    /// Whether the last step was up.
    up: bool,
    /// Steps in that direction.
    streak: u32,
    /// How often the bound bound them.
    hits: u32,
    /// The last step in Mbit/s.
    step: f64,
}

impl Climb {
    /// The gradient between an interval and the one before it. Both are judged by the current
    /// estimate of random losses.
    pub(super) fn gradient(&self, seen: &Seen, losses: &Losses, values: &Values) -> f64 {
        let worth = |seen: &Seen| {
            let seen = losses.smoothed(values, *seen);
            (seen.rate, utility(values, &seen))
        };
        let now = worth(seen);
        let most = most_gradient(now.0, now.1);
        let secant = self.last.and_then(|last| secant(worth(&last), now));
        secant.map_or(most, |gradient| gradient.min(most))
    }

    pub(super) fn remember(&mut self, seen: &Seen) {
        self.last = Some(*seen);
    }

    /// The rate after `rate`, for a gradient there. Where each step is a probe, one up that did not
    /// pay is undone as a whole.
    pub(super) fn step(&mut self, rate: f64, gradient: f64, packet: f64, values: &Values) -> f64 {
        let (omega, undo) = (values.omega, values.unified);
        let up = gradient >= 0.0;
        let least = if undo && self.up && !up { self.step } else { 0.0 };
        if up == self.up && self.streak > 0 {
            self.streak = self.streak.saturating_add(1);
        } else {
            (self.up, self.streak, self.hits) = (up, 1, 0);
        }
        let wanted = omega * amplifier(self.streak) * gradient.abs();
        // A packet more in a round trip is the least that a path can notice, whatever its share.
        let notable = if up { packet } else { 0.0 };
        let bound = |hits: u32| ((BOUND + BOUND_MORE * f64::from(hits)) * rate).max(notable);
        let step = if wanted > bound(self.hits) {
            let bound = bound(self.hits);
            // The step after a turn is of the same size: the turn told no more than that this side is better.
            self.hits = self.hits.saturating_add(u32::from(self.streak > 1));
            bound
        } else {
            while self.hits > 0 && bound(self.hits - 1) >= wanted {
                self.hits -= 1;
            }
            wanted
        };
        self.step = step.max(least).max(values.explore * rate);
        if up { rate + self.step } else { rate - self.step }
    }
}

/// The confidence amplifier m(τ): steps that all went one way have far to go.
fn amplifier(streak: u32) -> f64 {
    let streak = f64::from(streak);
    match streak {
        0.0..=3.0 => streak,
        ..=6.0 => 2.0 * streak - 3.0,
        ..=9.0 => 4.0 * streak - 15.0,
        _ => 8.0 * streak - 51.0,
    }
}
