//! One scale for all rewards of an aggregate (paper 002 §3.3: a surrogate stands in where
//! statistics of the reward are missing).
//!
//! A surrogate is another quantity than the reward: as it is, it would look like another network.
//! So where the reward is known at all, a surrogate counts for the reward that it was seen to go
//! with; where it never was, all that is learnt from is the surrogate.

use serde::{Deserialize, Serialize};

use crate::RewardSource;

/// So many intervals with both say how they go together.
const KNOWN_AFTER: f64 = 8.0;
/// Each counts so much less with every later one.
const KEEP: f64 = 0.99;
/// A surrogate that explains less than this of the reward's variance stands in for nothing.
pub(crate) const EXPLAINS: f64 = 0.25;
/// It says nothing so many deviations from where it was seen.
const REACH: f64 = 3.0;

/// How the reward goes with its surrogate: weighted moments of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scale {
    /// What was learnt from; none until something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<RewardSource>,
    weight: f64,
    surrogate: f64,
    reward: f64,
    /// Sums of squares and of products, about the means.
    surrogate2: f64,
    reward2: f64,
    both: f64,
}

impl Scale {
    /// Whether nothing is known.
    pub(crate) fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// What was learnt from until now.
    pub(crate) fn learnt_from(&self) -> Option<RewardSource> {
        self.from
    }

    /// What to learn from the values of reward and surrogate in an interval.
    pub(crate) fn take(
        &mut self,
        (reward, surrogate): (Option<f64>, Option<f64>),
    ) -> Option<(f64, RewardSource)> {
        if let (Some(reward), Some(surrogate)) = (reward, surrogate) {
            self.add(reward, surrogate);
        }
        if let Some(reward) = reward {
            self.from = Some(RewardSource::Reward);
            return Some((reward, RewardSource::Reward));
        }
        let value = match self.from {
            Some(RewardSource::Reward) => self.reward_at(surrogate?)?,
            _ => surrogate?,
        };
        self.from.get_or_insert(RewardSource::Surrogate);
        Some((value, RewardSource::Surrogate))
    }

    /// An interval with both (West's update of weighted moments, Communications of the ACM 22(9), 1979).
    fn add(&mut self, reward: f64, surrogate: f64) {
        for sum in [&mut self.weight, &mut self.surrogate2, &mut self.reward2, &mut self.both] {
            *sum *= KEEP;
        }
        self.weight += 1.0;
        let (ds, dr) = (surrogate - self.surrogate, reward - self.reward);
        self.surrogate += ds / self.weight;
        self.reward += dr / self.weight;
        self.surrogate2 += ds * (surrogate - self.surrogate);
        self.reward2 += dr * (reward - self.reward);
        self.both += ds * (reward - self.reward);
    }

    /// The reward that goes with a surrogate, by least squares; none where that is not known.
    fn reward_at(&self, surrogate: f64) -> Option<f64> {
        let product = self.surrogate2 * self.reward2;
        let explains = product > 0.0 && self.both * self.both >= EXPLAINS * product;
        let off = surrogate - self.surrogate;
        let is_near = off * off <= REACH * REACH * self.surrogate2 / self.weight;
        (self.weight >= KNOWN_AFTER && explains && is_near)
            .then(|| self.reward + self.both / self.surrogate2 * off)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_surrogate_counts_for_the_reward_that_it_goes_with() {
        let mut scale = Scale::default();
        assert_eq!(scale.take((Some(1.0), None)), Some((1.0, RewardSource::Reward)));
        assert_eq!(scale.take((None, Some(50.0))), None, "nobody knows what 50 is worth");
        for n in 0..20 {
            let surrogate = 40.0 + f64::from(n % 7);
            scale.take((Some(3.0 - 0.5 * surrogate), Some(surrogate)));
        }
        let (value, source) = scale.take((None, Some(44.0))).unwrap();
        assert!((value + 19.0).abs() < 1e-9, "{value}");
        assert_eq!(source, RewardSource::Surrogate);
        assert_eq!(scale.take((None, Some(400.0))), None, "far from all that was seen");
        assert_eq!(scale.take((None, None)), None);
    }

    #[test]
    fn a_surrogate_that_says_nothing_of_the_reward_stands_in_for_nothing() {
        let mut scale = Scale::default();
        for n in 0..40 {
            scale.take((Some(f64::from(n % 2)), Some(f64::from(n / 2 % 2))));
        }
        assert_eq!(scale.take((None, Some(0.5))), None);
    }

    #[test]
    fn where_there_never_was_a_reward_the_surrogate_is_learnt_from() {
        let mut scale = Scale::default();
        for value in [5.0, 900.0] {
            assert_eq!(scale.take((None, Some(value))), Some((value, RewardSource::Surrogate)));
        }
        assert_eq!(scale.learnt_from(), Some(RewardSource::Surrogate));
        scale.take((Some(1.0), Some(5.0)));
        assert_eq!(scale.learnt_from(), Some(RewardSource::Reward));
    }

    proptest! {
        /// Where the reward is a line over the surrogate, that line is found.
        #[test]
        fn a_line_is_found_whatever_it_is(
            slope in prop_oneof![-50.0..-0.01f64, 0.01..50.0f64],
            offset in -100.0..100.0f64,
            surrogates in prop::collection::vec(0.0..10.0f64, 8..60),
        ) {
            let spread = surrogates.iter().fold(0.0, |most: f64, s| most.max((s - surrogates[0]).abs()));
            prop_assume!(spread > 1.0);
            let mut scale = Scale::default();
            let of = |surrogate: f64| offset + slope * surrogate;
            for &surrogate in &surrogates {
                scale.take((Some(of(surrogate)), Some(surrogate)));
            }
            let last = surrogates[surrogates.len() - 1];
            if let Some((found, source)) = scale.take((None, Some(last))) {
                prop_assert_eq!(source, RewardSource::Surrogate);
                prop_assert!((found - of(last)).abs() < 1e-6 * (1.0 + of(last).abs()), "{}", found);
            }
            let mean = scale.surrogate;
            let near = scale.take((None, Some(mean)));
            // Seven intervals with both tell nothing, and weights of old ones shrink.
            prop_assert_eq!(near.is_some(), scale.weight >= KNOWN_AFTER);
        }
    }

    #[test]
    fn a_scale_is_kept_across_a_restart() {
        let mut scale = Scale::default();
        assert!(scale.is_new());
        for n in 0..20 {
            scale.take((Some(f64::from(n)), Some(f64::from(2 * n))));
        }
        let json = serde_json::to_string(&scale).unwrap();
        let mut again: Scale = serde_json::from_str(&json).unwrap();
        assert_eq!(again, scale);
        assert_eq!(again.take((None, Some(20.0))), scale.take((None, Some(20.0))));
    }
}
