//! The largest of recent samples, in constant space.
//!
//! The method is Kathleen Nichols' (Linux `lib/win_minmax.c`):
//! keep the best sample and the best of those that came after it, twice over. When the best leaves
//! the window, the next takes its place, so the answer is exact for a falling signal sampled at
//! least once per quarter of the window and never too low by more than what was sampled there.

/// A sample and the round in which it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Sample<T> {
    value: T,
    round: u64,
}

/// Windowed maximum over rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax<T> {
    /// The best, then the best after it, then the best after that.
    best: [Sample<T>; 3],
}

impl<T: Copy + PartialOrd> WindowedMax<T> {
    /// The maximum; the type's zero before any sample.
    pub(super) fn get(&self) -> T {
        self.best[0].value
    }

    /// Forgets everything but this sample.
    pub(super) fn reset(&mut self, round: u64, value: T) {
        self.best = [Sample { value, round }; 3];
    }

    /// Adds the sample of a round. Samples older than `window` rounds leave.
    pub(super) fn update(&mut self, window: u64, round: u64, value: T) {
        let new = Sample { value, round };
        let [first, second, third] = &mut self.best;
        if value >= first.value || round.saturating_sub(third.round) > window {
            return self.reset(round, value);
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        let age = round.saturating_sub(first.round);
        if age > window {
            (*first, *second, *third) = (*second, *third, new);
            if round.saturating_sub(first.round) > window {
                (*first, *second) = (*second, *third);
            }
        } else if second.round == first.round && age > window / 4 {
            // A quarter of the window without a better sample: its best becomes the second choice.
            (*second, *third) = (new, new);
        } else if third.round == second.round && age > window / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_forgotten_after_the_window() {
        let mut max = WindowedMax::<u64>::default();
        max.update(10, 0, 100);
        for round in 1..=10 {
            max.update(10, round, 50);
            assert_eq!(max.get(), 100, "round {round} still sees the peak of round 0");
        }
        max.update(10, 11, 50);
        assert_eq!(max.get(), 50, "the peak is 11 rounds old");
    }

    #[test]
    fn never_below_the_newest_nor_above_the_true_windowed_maximum() {
        let mut max = WindowedMax::<u64>::default();
        let mut samples = std::vec::Vec::new();
        let mut x = 1u64;
        for round in 0..2000u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = 1000 + (x >> 33) % 1000;
            samples.push(value);
            max.update(10, round, value);
            let start = (round as usize).saturating_sub(10);
            let truth = *samples[start..].iter().max().unwrap();
            assert!(max.get() >= value && max.get() <= truth, "round {round}");
        }
    }

    use proptest::prelude::*;

    proptest! {
        /// Whatever comes in whatever rounds: no higher than the true maximum of the window, and no
        /// lower than the best of the newest round.
        #[test]
        fn within_the_newest_and_the_true_maximum(
            window in 1u64..40,
            samples in prop::collection::vec((0u64..4, 1u64..1000), 1..200),
        ) {
            let mut max = WindowedMax::<u64>::default();
            let mut all = std::vec::Vec::new();
            let mut round = 0;
            for (gap, value) in samples {
                round += gap;
                all.push((round, value));
                max.update(window, round, value);
                let of = |age: u64| {
                    all.iter().filter(|(r, _)| round - r <= age).map(|(_, v)| *v).max().unwrap()
                };
                prop_assert!(max.get() >= value && max.get() <= of(window), "round {round}");
                prop_assert!(max.get() >= of(0), "of this round");
            }
        }
    }

    #[test]
    fn a_reset_forgets_all_but_one() {
        let mut max = WindowedMax::<u64>::default();
        max.update(10, 1, 100);
        max.reset(2, 30);
        assert_eq!(max.get(), 30);
        max.update(10, 3, 20);
        assert_eq!(max.get(), 30);
        max.update(10, 13, 20);
        assert_eq!(max.get(), 20, "the one of round 2 is too old");
    }
}
