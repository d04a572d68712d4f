//! Mergeable sketches: how often which value came, in buckets whose width is a share of the value.
//!
//! The buckets are those of H2 histograms (the `histogram` crate): whole numbers, no logarithms, so
//! every machine puts a value into the same one. The sum is kept as a whole number, too. So merging
//! is exact, and the order in which reports arrive changes nothing.

use histogram::{Config, Histogram, SparseHistogram};
use serde::{Deserialize, Serialize};
use trimtab_qoe::StatisticKind;

/// The most that a percentile is off, as a share of the value, for values of at least 128 steps of 10⁻⁶; below, it is
/// off by at most a half of a step.
pub const RELATIVE_ERROR_MAX: f64 = 1.0 / 256.0;

/// Each power of two is divided into 2⁷ buckets. A bucket's middle is then at most 1/256 from its ends.
const GROUPING_POWER: u8 = 7;
/// Values go up to 2⁴⁰ steps.
const MAX_VALUE_POWER: u8 = 40;
/// The smallest difference that is kept: 10⁻⁶, which is 1 µs for seconds and 1 bit/s for Mbit/s.
const STEP: f64 = 1e-6;

/// The largest value that a sketch tells from larger ones, about a million.
pub const VALUE_MAX: f64 = ((1u64 << MAX_VALUE_POWER) - 1) as f64 * STEP;

/// Buckets that there are; the largest sketch has so many.
const BUCKETS: u32 = (MAX_VALUE_POWER - GROUPING_POWER + 1) as u32 * (1 << GROUPING_POWER);
/// The most samples that one sketch, or one report, may say it has.
const COUNT_MAX: u64 = 1 << 48;

fn config() -> Config {
    Config::new(GROUPING_POWER, MAX_VALUE_POWER).expect("both powers are in range")
}

/// Collects values as they come. About 40 KB; [`Recorder::sketch`] is small.
#[derive(Clone, Debug)]
pub struct Recorder {
    histogram: Histogram,
    count: u64,
    sum: u128,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// An empty one.
    pub fn new() -> Self {
        Self { histogram: Histogram::with_config(&config()), count: 0, sum: 0 }
    }

    /// Adds a value. A negative one counts as 0, one above [`VALUE_MAX`] as that; NaN is left out.
    pub fn record(&mut self, value: f64) {
        if value.is_nan() || self.count == COUNT_MAX {
            return;
        }
        // `as` saturates.
        let steps = ((value / STEP + 0.5) as u64).min((1 << MAX_VALUE_POWER) - 1);
        // Cannot fail: the value is below the largest.
        let added = self.histogram.increment(steps);
        debug_assert!(added.is_ok());
        self.count += 1;
        self.sum += u128::from(steps);
    }

    /// What was added until now.
    pub fn sketch(&self) -> Sketch {
        let sparse = SparseHistogram::from(&self.histogram);
        Sketch { index: sparse.index().to_vec(), count: sparse.count().to_vec(), sum: self.sum }
    }
}

/// Many values, mergeable: about 2 bytes for each distinct bucket when encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Sketch {
    /// Buckets with values, ascending.
    index: Vec<u32>,
    /// How many values each has; as long as `index`.
    count: Vec<u64>,
    /// Sum of the values in steps.
    sum: u128,
}

/// A sketch as somebody sent it.
#[derive(Deserialize)]
struct Unchecked {
    index: Vec<u32>,
    count: Vec<u64>,
    sum: u128,
}

/// Why a sketch is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SketchError {
    /// The buckets do not ascend, or there are no such ones, or counts are missing.
    #[error("the buckets of a sketch ascend and are below {BUCKETS}, with a count for each")]
    Buckets,
    /// A count is zero, or there are too many samples.
    #[error("the counts of a sketch are at least 1 and at most {COUNT_MAX} together")]
    Counts,
    /// The sum is not one that values in these buckets can have.
    #[error("the sum of a sketch does not fit its buckets")]
    Sum,
}

impl TryFrom<Unchecked> for Sketch {
    type Error = SketchError;

    fn try_from(unchecked: Unchecked) -> Result<Self, SketchError> {
        let Unchecked { index, count, sum } = unchecked;
        let ascends = index.windows(2).all(|pair| pair[0] < pair[1]);
        if index.len() != count.len() || !ascends {
            return Err(SketchError::Buckets);
        }
        let total = count.iter().try_fold(0u64, |total, &n| total.checked_add(n));
        if count.contains(&0) || total.is_none_or(|total| total > COUNT_MAX) {
            return Err(SketchError::Counts);
        }
        let sketch = Self { index, count, sum };
        let histogram = sketch.histogram().ok_or(SketchError::Buckets)?;
        let (mut least, mut most) = (0u128, 0u128);
        for bucket in &histogram {
            least += u128::from(bucket.count()) * u128::from(bucket.start());
            most += u128::from(bucket.count()) * u128::from(bucket.end());
        }
        if (least..=most).contains(&sum) { Ok(sketch) } else { Err(SketchError::Sum) }
    }
}

impl Sketch {
    /// The sketch of some values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut recorder = Recorder::new();
        values.into_iter().for_each(|value| recorder.record(value));
        recorder.sketch()
    }

    fn histogram(&self) -> Option<SparseHistogram> {
        SparseHistogram::from_parts(config(), self.index.clone(), self.count.clone()).ok()
    }

    /// How many values.
    pub fn len(&self) -> u64 {
        self.count.iter().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Buckets with values: what it costs in memory and on the wire.
    pub fn buckets(&self) -> usize {
        self.index.len()
    }

    /// The sum of the values, exact but for rounding each to 10⁻⁶.
    pub fn sum(&self) -> f64 {
        self.sum as f64 * STEP
    }

    /// The mean, exact but for rounding each value to 10⁻⁶; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum() / self.len() as f64)
    }

    /// Its values, each the middle of its bucket, and how many there are of each; ascending.
    pub(crate) fn values(&self) -> impl Iterator<Item = (f64, u64)> {
        let middle = |bucket: histogram::Bucket| {
            ((bucket.start() as f64 + bucket.end() as f64) / 2.0 * STEP, bucket.count())
        };
        let buckets: Vec<_> = self.histogram().iter().flatten().map(middle).collect();
        buckets.into_iter()
    }

    /// A percentile, 0 to 100, within [`RELATIVE_ERROR_MAX`]; `None` without values.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let histogram = self.histogram()?;
        let result = histogram.quantile((percent / 100.0).clamp(0.0, 1.0)).ok()??;
        let bucket = result.entries().values().next()?.clone();
        Some((bucket.start() as f64 + bucket.end() as f64) / 2.0 * STEP)
    }

    /// Its first and last bucket; `None` without values.
    pub(crate) fn reach(&self) -> Option<(u32, u32)> {
        Some((*self.index.first()?, *self.index.last()?))
    }

    /// The same with values moved to the nearest bucket from `least` to `most`, and no more of them
    /// than `len`: of each bucket its share. Of a sketch that is changed the sum is that of the
    /// middles of its buckets, within [`RELATIVE_ERROR_MAX`].
    #[must_use]
    pub(crate) fn within(&self, (least, most): (u32, u32), len: u64) -> Self {
        let total = self.len();
        let is_inside = self.reach().is_none_or(|(first, last)| least <= first && last <= most);
        if total <= len && is_inside {
            return self.clone();
        }
        let (mut index, mut count): (Vec<u32>, Vec<u64>) = (Vec::new(), Vec::new());
        let (mut seen, mut kept) = (0_u64, 0_u64);
        for (&bucket, &n) in self.index.iter().zip(&self.count) {
            seen += n;
            // What the buckets until here have together, so that rounding adds up to the whole.
            let until = (u128::from(seen) * u128::from(len.min(total)) / u128::from(total)) as u64;
            let bucket = bucket.clamp(least, most);
            match (until - kept, index.last()) {
                (0, _) => {}
                (more, Some(&last)) if last == bucket => {
                    *count.last_mut().expect("as above") += more;
                }
                (more, _) => {
                    index.push(bucket);
                    count.push(more);
                }
            }
            kept = until;
        }
        let mut sketch = Self { index, count, sum: 0 };
        let middles = sketch.histogram().map(|histogram| {
            let middle = |bucket: histogram::Bucket| {
                u128::from(bucket.count()) * (u128::from(bucket.start()) + u128::from(bucket.end()))
            };
            histogram.into_iter().map(middle).sum::<u128>() / 2
        });
        sketch.sum = middles.unwrap_or(0);
        sketch
    }

    /// A statistic of the values; `None` without any, but for their count and sum.
    pub fn statistic(&self, kind: StatisticKind) -> Option<f64> {
        match kind {
            StatisticKind::Count => Some(self.len() as f64),
            StatisticKind::Sum => Some(self.sum()),
            StatisticKind::Mean => self.mean(),
            StatisticKind::Percentile(percent) => self.percentile(f64::from(percent)),
        }
    }

    /// Adds the values of another one, exactly. Counts that would pass 2⁴⁸ together stay as they are, and nothing is
    /// added.
    pub fn merge(&mut self, other: &Self) {
        if self.len().saturating_add(other.len()) > COUNT_MAX {
            return;
        }
        let (Some(a), Some(b)) = (self.histogram(), other.histogram()) else { return };
        if let Ok(both) = a.checked_add(&b) {
            let (_, index, count) = both.into_parts();
            *self = Self { index, count, sum: self.sum.saturating_add(other.sum) };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_within_the_stated_error() {
        let values: Vec<f64> = (0..20_000).map(|i| 0.0005 * 1.0007_f64.powi(i)).collect();
        let sketch = Sketch::of(values.iter().copied());
        for percent in [0, 1, 5, 25, 50, 75, 90, 99, 100] {
            let rank = ((f64::from(percent) / 100.0 * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let got = sketch.percentile(f64::from(percent)).unwrap();
            assert!(
                (got / exact - 1.0).abs() <= RELATIVE_ERROR_MAX + 0.0007,
                "p{percent}: {got} {exact}"
            );
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((sketch.mean().unwrap() / mean - 1.0).abs() < 1e-6);
    }

    #[test]
    fn merging_is_exact_in_any_order() {
        let parts: Vec<Sketch> =
            (0..7).map(|k| Sketch::of((0..50).map(|i| f64::from(i * k) * 0.37))).collect();
        let all = Sketch::of((0..7).flat_map(|k| (0..50).map(move |i| f64::from(i * k) * 0.37)));
        let mut forth = Sketch::default();
        parts.iter().for_each(|p| forth.merge(p));
        let mut back = Sketch::default();
        parts.iter().rev().for_each(|p| back.merge(p));
        assert_eq!(forth, all);
        assert_eq!(back, all);
    }

    #[test]
    fn odd_values_do_no_harm() {
        let sketch = Sketch::of([f64::NAN, -3.0, f64::INFINITY, 0.0, 1e300]);
        assert_eq!((sketch.len(), sketch.percentile(0.0)), (4, Some(0.0)));
        let most = sketch.percentile(100.0).unwrap();
        assert!((most / VALUE_MAX - 1.0).abs() <= RELATIVE_ERROR_MAX, "{most}");
        assert_eq!((Sketch::default().mean(), Sketch::default().percentile(50.0)), (None, None));
        assert_eq!(Sketch::default().statistic(StatisticKind::Count), Some(0.0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refuse = |index: &[u32], count: &[u64], sum| {
            Sketch::try_from(Unchecked { index: index.into(), count: count.into(), sum })
        };
        // Buckets below 256 hold one value each.
        assert!(refuse(&[1, 5], &[1, 2], 11).is_ok());
        assert_eq!(refuse(&[5, 1], &[1, 2], 7), Err(SketchError::Buckets));
        assert_eq!(refuse(&[5, 5], &[1, 2], 15), Err(SketchError::Buckets));
        assert_eq!(refuse(&[5], &[1, 2], 5), Err(SketchError::Buckets));
        assert_eq!(refuse(&[u32::MAX], &[1], 5), Err(SketchError::Buckets));
        assert_eq!(refuse(&[BUCKETS], &[1], 5), Err(SketchError::Buckets));
        assert_eq!(refuse(&[1, 5], &[1, 0], 1), Err(SketchError::Counts));
        assert_eq!(refuse(&[1, 5], &[u64::MAX, 2], 1), Err(SketchError::Counts));
        assert_eq!(refuse(&[1, 5], &[1, 2], 12), Err(SketchError::Sum));
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let decades = (-5.0..5.9f64).prop_map(|log| 10.0_f64.powf(log));
        prop::collection::vec(prop_oneof![decades, Just(0.0)], 1..200)
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_values(values in values(), percent in 0..=100u8) {
            let sketch = Sketch::of(values.iter().copied());
            prop_assert_eq!(sketch.len(), values.len() as u64);
            let sum: f64 = values.iter().sum();
            let half_steps = values.len() as f64 * STEP;
            prop_assert!((sketch.sum() - sum).abs() <= half_steps + sum * 1e-12);
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let rank = (f64::from(percent) / 100.0 * sorted.len() as f64).ceil() as usize;
            let exact = sorted[rank.max(1) - 1];
            let found = sketch.percentile(f64::from(percent)).unwrap();
            let off = (exact * RELATIVE_ERROR_MAX).max(STEP);
            prop_assert!((found - exact).abs() <= off, "p{}: {} {}", percent, found, exact);
        }

        #[test]
        fn what_two_edges_saw_is_what_one_had_seen(a in values(), b in values()) {
            let mut merged = Sketch::of(a.iter().copied());
            merged.merge(&Sketch::of(b.iter().copied()));
            prop_assert_eq!(&merged, &Sketch::of(a.into_iter().chain(b)));
            // What was merged passes the check of what is sent.
            let json = serde_json::to_string(&merged).unwrap();
            prop_assert_eq!(serde_json::from_str::<Sketch>(&json).unwrap(), merged);
        }

        #[test]
        fn a_limited_sketch_keeps_its_limits_and_can_be_sent(
            values in values(), ends in (0..BUCKETS, 0..BUCKETS), len in 1..300u64,
        ) {
            let sketch = Sketch::of(values);
            let (least, most) = (ends.0.min(ends.1), ends.0.max(ends.1));
            let limited = sketch.within((least, most), len);
            prop_assert_eq!(limited.len(), sketch.len().min(len));
            let (first, last) = limited.reach().unwrap();
            prop_assert!(least <= first && last <= most, "{} {}", first, last);
            let Sketch { index, count, sum } = limited.clone();
            prop_assert_eq!(Sketch::try_from(Unchecked { index, count, sum }), Ok(limited));
        }
    }

    #[test]
    fn more_samples_than_may_be_are_not_added() {
        let mut sketch = Sketch::of([3.0, 4.0]);
        while sketch.len() <= COUNT_MAX / 2 {
            let same = sketch.clone();
            sketch.merge(&same);
        }
        let full = sketch.clone();
        assert_eq!(full.len(), COUNT_MAX);
        sketch.merge(&Sketch::of([5.0]));
        assert_eq!(sketch, full);
        assert!((sketch.mean().unwrap() - 3.5).abs() < 1e-9);
    }
}
