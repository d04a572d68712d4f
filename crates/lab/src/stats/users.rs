//! Experience per user, then across users.
//!
//! Each flow of the scheme is a user. Its score is the arithmetic mean over what it asked for.
//! Across users the geometric mean is the headline: no gain of one makes up for another who
//! starves.

use serde::{Deserialize, Serialize};

use crate::stats::{Sorted, jain};

/// What a user counts as who got nothing, in the unit of the QoE model. Our own choice: a logarithm
/// needs a floor, and a thousandth of a Mbit/s serves nobody.
pub const NOTHING: f64 = 0.001;

/// The scores of the users of a run, in the unit of the QoE model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsersRecord {
    /// Geometric mean of the users' scores, each at least [`NOTHING`]. `null` where experience may
    /// be negative, as for video and web pages: then `mean` is the score of the run.
    pub log_mean: Option<f64>,
    /// Arithmetic mean of the users' scores.
    pub mean: f64,
    /// Their 5th percentile: the users who were served worst.
    pub p5: f64,
    /// Jain's index of the scores, 0 to 1. `null` where experience may be negative.
    pub jain: Option<f64>,
}

impl UsersRecord {
    /// Of the score of each user. `ratio`: experience cannot be negative, so that twice as much
    /// means something. Nobody at all counts as one user who got nothing.
    pub fn of(scores: &[f64], ratio: bool) -> Self {
        let sorted = Sorted::new(scores.iter().copied());
        let ratio = ratio && scores.iter().all(|&score| score >= 0.0);
        let log = |score: f64| libm::log(score.max(NOTHING));
        let logs = Sorted::new(scores.iter().map(|&score| log(score))).mean();
        Self {
            log_mean: ratio.then(|| logs.map_or(NOTHING, libm::exp)),
            mean: sorted.mean().unwrap_or(0.0),
            p5: sorted.percentile(5.0).unwrap_or(0.0),
            jain: jain(scores).filter(|_| ratio),
        }
    }

    /// What a run is judged by: the log mean where experience has one, else the mean.
    pub fn score(&self) -> f64 {
        self.log_mean.unwrap_or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starving_user_shows_in_the_log_mean() {
        let fair = UsersRecord::of(&[5.0, 5.0], true);
        let unfair = UsersRecord::of(&[9.9, 0.1], true);
        assert_eq!((fair.mean, unfair.mean), (5.0, 5.0));
        assert!((fair.log_mean.unwrap() - 5.0).abs() < 1e-12);
        // √(9.9 · 0.1).
        assert!((unfair.log_mean.unwrap() - 0.994987).abs() < 1e-6);
        assert_eq!(fair.jain, Some(1.0));
        // 10² / (2 · (9.9² + 0.1²)).
        assert!((unfair.jain.unwrap() - 0.510099).abs() < 1e-6);
        // A twentieth of the way from the least to the most.
        assert!((unfair.p5 - 0.59).abs() < 1e-12);
    }

    #[test]
    fn a_user_who_got_nothing_counts_as_a_thousandth() {
        let users = UsersRecord::of(&[10.0, 0.0], true);
        assert!((users.log_mean.unwrap() - 0.1).abs() < 1e-12, "√(10 · 0.001)");
        let nobody = UsersRecord::of(&[], true);
        assert_eq!((nobody.log_mean, nobody.mean, nobody.jain), (Some(NOTHING), 0.0, None));
    }

    #[test]
    fn experience_below_zero_has_no_log_mean() {
        for (scores, ratio) in [(&[1.0, 3.0][..], false), (&[5.0, -1.0], true)] {
            let users = UsersRecord::of(scores, ratio);
            assert_eq!((users.log_mean, users.jain), (None, None));
            assert_eq!(users.score(), 2.0);
        }
    }
}
