//! Quantiles of many values in little memory, from parts that merge exactly.

use alloc::vec;
use alloc::vec::Vec;

/// Buckets per power of two, as a power of two.
const STEPS_LOG2: u32 = 6;
/// Values above this count as this.
const VALUE_MAX: u64 = 1 << 32;

/// How often which whole number came. A quantile is right to [`Sketch::ACCURACY`] of its value.
///
/// That is what DDSketch promises (Masson et al., VLDB 2019), by other buckets: 64 of equal width
/// in each power of two, as in an HDR histogram. So no logarithm decides where a value goes, and
/// every machine agrees. Merging adds counts: no order of merges changes anything.
///
/// It takes 4 bytes for each bucket between the least and the largest value: 0.9 KB for values
/// within a factor of ten, and never more than 7 KB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// The bucket of the first count.
    first: usize,
    counts: Vec<u32>,
    total: u64,
}

impl Sketch {
    /// The most that a quantile is off, as a share of it: for values from 64 to 2^32. Below, it is
    /// off by at most a half.
    pub const ACCURACY: f64 = 1.0 / 128.0;

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    /// Counts a value as often as this.
    #[inline]
    pub fn record_many(&mut self, value: u64, times: u32) {
        let bucket = bucket(value);
        if !(self.first..self.first + self.counts.len()).contains(&bucket) {
            self.make_room(bucket, bucket);
        }
        let count = &mut self.counts[bucket - self.first];
        *count = count.saturating_add(times);
        self.total += u64::from(times);
    }

    /// Counts everything that another one has counted.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.is_empty() {
            return;
        }
        self.make_room(other.first, other.first + other.counts.len() - 1);
        let skipped = other.first - self.first;
        for (count, more) in self.counts[skipped..].iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.total += other.total;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The least value that at least a share `q` of the values does not exceed; `None` without
    /// values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = libm::ceil(q * self.total as f64).max(1.0) as u64;
        let mut seen = 0;
        let reached = |&(_, count): &(f64, u32)| {
            seen += u64::from(count);
            seen >= rank
        };
        self.iter().find(reached).map(|(value, _)| value)
    }

    /// The middles of the buckets that have values, ascending, and how many values each has.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u32)> {
        let all = self.counts.iter().enumerate();
        all.filter(|&(_, &count)| count > 0).map(|(i, &count)| (middle(self.first + i), count))
    }

    /// Makes the counts reach from at most the one bucket to at least the other.
    fn make_room(&mut self, low: usize, high: usize) {
        if self.counts.is_empty() {
            (self.first, self.counts) = (low, vec![0; high - low + 1]);
            return;
        }
        if low < self.first {
            self.counts.splice(..0, core::iter::repeat_n(0, self.first - low));
            self.first = low;
        }
        let len = self.counts.len().max(high - self.first + 1);
        self.counts.resize(len, 0);
    }
}

/// Buckets are one wide below 64, then there are 64 in each power of two.
#[inline]
fn bucket(value: u64) -> usize {
    let value = value.min(VALUE_MAX);
    let octave = (value >> STEPS_LOG2).checked_ilog2().map_or(0, |o| o + 1);
    let shift = octave.saturating_sub(1);
    let base = if octave == 0 { 0 } else { octave << STEPS_LOG2 };
    let step = if octave == 0 { value } else { (value >> shift) - (1 << STEPS_LOG2) };
    (u64::from(base) + step) as usize
}

/// Half way from the least value of a bucket to the least of the next.
fn middle(bucket: usize) -> f64 {
    let octave = bucket >> STEPS_LOG2;
    let step = (bucket & ((1 << STEPS_LOG2) - 1)) as u64;
    let doubled = match octave {
        0 => 2 * step + 1,
        _ => (2 * ((1 << STEPS_LOG2) + step) + 1) << (octave - 1),
    };
    doubled as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_holds_its_own_middle() {
        for n in 0..1_500 {
            assert_eq!(bucket(middle(n) as u64), n);
        }
    }

    #[test]
    fn memory_is_what_its_page_says() {
        let of = |values: &[u64]| {
            let mut sketch = Sketch::default();
            values.iter().for_each(|&value| sketch.record(value));
            4 * sketch.counts.len()
        };
        assert!(of(&[20_000, 200_000]) <= 900, "{}", of(&[20_000, 200_000]));
        assert!(of(&[u64::MAX, 0]) <= 7_168, "{}", of(&[u64::MAX, 0]));
    }

    #[test]
    fn of_nothing_there_is_no_quantile() {
        let mut nothing = Sketch::default();
        nothing.merge(&Sketch::default());
        assert_eq!((nothing.quantile(0.5), nothing.count()), (None, 0));
    }
}
