//! How many packets a link will deliver at least within some ticks, by what is believed of its rate
//! (Sprout §3.3).
//!
//! A table has, for each rate at the start, the distribution of the packets that arrive within one
//! to eight ticks. As in the paper it is made beforehand, so that a forecast is a weighted sum over
//! the rates. All connections share the one table of the process: 1 MB, made with the first.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use once_cell::race::OnceBox;

use super::model::{BINS, Belief, Motion, TICK, poisson, rate};

/// Ticks that a forecast looks ahead (§3.3: 160 ms).
pub(super) const TICKS: usize = 8;
/// More packets do not arrive in a tick (`MAX_ARRIVALS_PER_TICK`): 1000 per second are 20.
const COUNTS: usize = 30;

/// For each count below the most, and each rate at the start: the probability of no more packets.
type Distribution = Vec<[f32; BINS]>;

/// The distributions of one to eight ticks.
pub(super) struct Table {
    motion: Motion,
    within: Box<[Distribution]>,
}

impl Table {
    /// The table of the process.
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceBox<Table> = OnceBox::new();
        TABLE.get_or_init(|| Box::new(Self::new()))
    }

    pub(super) fn motion(&self) -> &Motion {
        &self.motion
    }

    fn new() -> Self {
        let motion = Motion::new();
        // Packets in the next tick, for each rate at its beginning; then in the tick after that, and
        // so on: the rate moves in between.
        let mut tick: Vec<[f64; BINS]> = (0..COUNTS)
            .map(|count| core::array::from_fn(|bin| poisson(rate(bin) * TICK, count)))
            .collect();
        let mut so_far = vec![[1.0; BINS]];
        let mut within = Vec::with_capacity(TICKS);
        for _ in 0..TICKS {
            so_far = sums(&so_far, &tick);
            within.push(cumulative(&so_far));
            for counts in &mut tick {
                *counts = motion.expected(counts);
            }
        }
        Self { motion, within: within.into() }
    }

    /// A tick brought so many packets, and would have brought no more, however fast the link is: each
    /// rate's probability by that of this count or a greater one.
    pub(super) fn observe_at_least(&self, belief: &mut Belief, count: usize) {
        let below = count.saturating_sub(1).min(COUNTS - 1);
        let fewer = &self.within[0][below];
        belief.weigh(|bin| 1.0 - f64::from(fewer[bin]));
    }

    /// The most packets that arrive within so many ticks with a probability of 1 - `caution`.
    pub(super) fn at_least(&self, belief: &Belief, ticks: usize, caution: f64) -> usize {
        let within = &self.within[ticks.clamp(1, TICKS) - 1];
        let no_more = |below: &[f32; BINS]| -> f64 {
            below.iter().zip(belief.get()).map(|(share, p)| f64::from(*share) * p).sum()
        };
        within.partition_point(|below| no_more(below) < caution)
    }
}

/// The distribution of the sum of what arrived so far and in one more tick, for each rate.
fn sums(so_far: &[[f64; BINS]], tick: &[[f64; BINS]]) -> Vec<[f64; BINS]> {
    let mut sums = vec![[0.0; BINS]; so_far.len() + tick.len() - 1];
    for (i, before) in so_far.iter().enumerate() {
        for (j, now) in tick.iter().enumerate() {
            for (bin, sum) in sums[i + j].iter_mut().enumerate() {
                *sum += before[bin] * now[bin];
            }
        }
    }
    sums
}

#[expect(clippy::cast_possible_truncation, reason = "seven digits of a probability suffice")]
fn cumulative(counts: &[[f64; BINS]]) -> Distribution {
    let mut sum = [0.0; BINS];
    let mut below = Vec::with_capacity(counts.len());
    for count in counts {
        sum.iter_mut().zip(count).for_each(|(sum, p)| *sum += p);
        below.push(sum.map(|sum| sum as f32));
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bin of some 400 packets per second: 8 in a tick.
    const BIN: usize = 102;

    /// Within a tick it is the quantile of a Poisson distribution: of 8 packets, 4 or more with 95%.
    #[test]
    fn within_a_tick_the_count_is_poisson() {
        let belief = Belief::certain(BIN);
        let mean = rate(BIN) * TICK;
        for caution in [0.05, 0.25, 0.5, 0.95] {
            let mut sum = 0.0;
            let expected = (0..30).find(|k| {
                sum += poisson(mean, *k);
                sum >= caution
            });
            assert_eq!(Some(Table::get().at_least(&belief, 1, caution)), expected, "{caution}");
        }
        assert_eq!(Table::get().at_least(&belief, 1, 0.05), 4);
    }

    /// §3.3: it is cautious, and the less certain the further it looks. The variance within five
    /// ticks is that of the Poisson counts (40) and of the rate's motion: 800 (1 + 4 + 9 + 16) · 0.02².
    #[test]
    fn a_forecast_further_ahead_is_more_cautious() {
        let belief = Belief::certain(BIN);
        let table = Table::get();
        let ahead: Vec<usize> = (1..=TICKS).map(|n| table.at_least(&belief, n, 0.05)).collect();
        assert!(ahead.is_sorted() && ahead[0] > 0, "{ahead:?}");
        let mean = 5.0 * rate(BIN) * TICK;
        let normal = mean - 1.645 * libm::sqrt(mean);
        assert!((ahead[4] as f64) < normal + 1.5, "{ahead:?}, {normal}");
        assert!((ahead[4] as f64) > 0.5 * mean, "{ahead:?}");
        let middle = table.at_least(&belief, 5, 0.5) as f64;
        assert!((middle - mean).abs() < 2.0, "{middle} of {mean}");
    }

    #[test]
    fn an_outage_promises_nothing() {
        let mut belief = Belief::near(0.0);
        for _ in 0..100 {
            belief.evolve(Table::get().motion());
            belief.observe(0, Table::get().motion());
        }
        assert_eq!(Table::get().at_least(&belief, TICKS, 0.05), 0);
    }
}
