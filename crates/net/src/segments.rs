//! Stretches of steady capacity in a trace (Mortise, appendix A).

use trimtab_units::{Duration, Rate};

use crate::pelt;
use crate::trace::Trace;

/// The most bins that are segmented: a trace without changes takes time by their square.
const BINS_MAX: u64 = 100_000;

/// A bin counts as at least this share of the trace's mean: the change after an outage would be infinite.
/// The paper filters outliers out and does not say how.
const FLOOR: f64 = 0.05;

/// A stretch of one mean rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How long it lasts.
    pub duration: Duration,
    /// Its mean rate: of a generated one before fading and outages, of one that was found with outages
    /// limited as in [`Segmentation`].
    pub mean: Rate,
}

/// How a trace is segmented. The paper names PELT, and neither its cost nor its penalty. Ours is the
/// squared error of the logarithm of the rate, since what counts is by how many percent a rate changes.
/// A bin counts as at least 5% of the trace's mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segmentation {
    /// The length of a bin, whose rates are segmented, 1 ms at least. Default: 500 ms.
    pub bin: Duration,
    /// What a change costs, above 0. Two levels of `k` bins each, the rates `r` times apart, are two
    /// segments from a penalty of `k ln(r)² / 2` down. Default: 0.5, a change by half that lasts 3 s on
    /// both sides.
    pub penalty: f64,
}

impl Default for Segmentation {
    fn default() -> Self {
        Self { bin: Duration::from_millis(500), penalty: 0.5 }
    }
}

/// The trace is too long for its bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the trace has {bins} bins of {bin}, and at most {BINS_MAX} can be segmented: choose longer bins"
)]
pub struct TooManyBins {
    /// How many it has.
    pub bins: u64,
    /// How long one is.
    pub bin: Duration,
}

impl Segmentation {
    /// The segments of one period of a trace, in order; at least one. The ends of the trace cut the
    /// first and the last. A part of a bin at the end belongs to none.
    ///
    /// # Errors
    /// The trace has more than 100,000 bins.
    pub fn segments(&self, trace: &Trace) -> Result<Vec<Segment>, TooManyBins> {
        let bin = Duration::from_millis(self.bin.as_millis().max(1));
        let bins = trace.period().as_millis() / bin.as_millis();
        if bins > BINS_MAX {
            return Err(TooManyBins { bins, bin });
        }
        if bins == 0 {
            return Ok(vec![Segment { duration: trace.period(), mean: trace.mean_rate() }]);
        }
        let floor = trace.mean_rate().mul_f64(FLOOR).bytes_per_sec().max(1);
        let rates: Vec<f64> =
            trace.rates(bin).iter().map(|rate| rate.bytes_per_sec().max(floor) as f64).collect();
        let levels: Vec<f64> = rates.iter().map(|rate| libm::log(*rate)).collect();
        let mut from = 0;
        let segment = |to: usize| {
            let part = &rates[from..to];
            from = to;
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            Segment { duration: bin * part.len() as u64, mean: Rate::from_bytes_per_sec_f64(mean) }
        };
        Ok(pelt::ends(&levels, self.penalty).into_iter().map(segment).collect())
    }
}

impl Segment {
    /// By what share of its own the mean of the `next` differs: 0.5 is a change by half.
    pub fn change_to(&self, next: &Self) -> f64 {
        (next.mean.mbps() - self.mean.mbps()).abs() / self.mean.mbps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::steps;

    const SECOND: Duration = Duration::from_secs(1);

    fn link(each: &[(u64, f64)]) -> Trace {
        let each = each.iter().map(|&(seconds, mbps)| (SECOND * seconds, Rate::from_mbps(mbps)));
        steps(&each.collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn steps_are_segments() {
        let found = Segmentation::default().segments(&link(&[(5, 12.0), (8, 6.0), (4, 24.0)]));
        let found = found.unwrap();
        let lengths: Vec<u64> = found.iter().map(|s| s.duration.as_millis()).collect();
        assert_eq!(lengths, [5000, 8000, 4000]);
        let changes: Vec<f64> = found.windows(2).map(|pair| pair[0].change_to(&pair[1])).collect();
        assert!((changes[0] - 0.5).abs() < 0.01 && (changes[1] - 3.0).abs() < 0.02, "{changes:?}");
    }

    /// The default's border: by half and for 3 s.
    #[test]
    fn a_change_counts_by_its_size_and_length() {
        let count = |seconds, mbps| {
            let trace = link(&[(seconds, 12.0), (seconds, mbps)]);
            Segmentation::default().segments(&trace).unwrap().len()
        };
        assert_eq!([count(4, 18.0), count(2, 18.0), count(4, 15.0)], [2, 1, 1]);
    }

    #[test]
    fn changes_after_an_outage_are_limited() {
        let trace = link(&[(20, 12.0), (5, 0.0), (20, 12.0)]);
        let found = Segmentation::default().segments(&trace).unwrap();
        let last = found[1].change_to(&found[2]);
        // From 5% of the mean, which is 10.7 Mbit/s.
        assert!(found.len() == 3 && (last - 21.5).abs() < 0.1, "{last}");
    }

    #[test]
    fn short_and_long_traces() {
        let short = Trace::parse(b"1").unwrap();
        let one = Segmentation::default().segments(&short).unwrap();
        assert_eq!(one, [Segment { duration: short.period(), mean: short.mean_rate() }]);
        let long = Trace::from_opportunities(vec![1, 4_294_967_295]).unwrap();
        let e = Segmentation::default().segments(&long).unwrap_err();
        assert_eq!(e.bins, 8_589_934);
        assert!(e.to_string().contains("bins of 500ms, and at most 100000"), "{e}");
    }
}
