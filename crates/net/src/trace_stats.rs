//! Statistics of a trace, over bins of 100 ms.

use trimtab_units::{Duration, Rate};

use crate::trace::{OPPORTUNITY, Trace};

/// The bins of the percentiles, in milliseconds.
const BIN_MS: u32 = 100;

/// What a trace is like. Rates count 1500 bytes per opportunity. The percentiles, `cv` and
/// `outage_fraction` are over the whole 100 ms bins of one period; a shorter trace is one bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceStats {
    /// The period.
    pub duration: Duration,
    /// The mean over the period.
    pub mean: Rate,
    /// The median of the bins.
    pub median_100ms: Rate,
    /// The 5th percentile of the bins.
    pub p5: Rate,
    /// The 95th percentile of the bins.
    pub p95: Rate,
    /// Standard deviation of the bins divided by their mean.
    pub cv: f64,
    /// The share of bins without an opportunity, 0 to 1. Below about 0.1 Mbit/s a bin can be empty
    /// without an outage.
    pub outage_fraction: f64,
}

impl Trace {
    /// The statistics of one period.
    pub fn stats(&self) -> TraceStats {
        let mut bins = self.rates(Duration::from_millis(u64::from(BIN_MS)));
        bins.sort_unstable();
        let count = bins.len() as f64;
        let real = || bins.iter().map(|rate| rate.bytes_per_sec() as f64);
        let mean = real().sum::<f64>() / count;
        let variance = real().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / count;
        TraceStats {
            duration: self.period(),
            mean: self.mean_rate(),
            median_100ms: percentile(&bins, 0.5),
            p5: percentile(&bins, 0.05),
            p95: percentile(&bins, 0.95),
            cv: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
            outage_fraction: bins.iter().filter(|rate| rate.is_zero()).count() as f64 / count,
        }
    }

    /// The rate in each whole bin of one period, at 1500 bytes per opportunity. The opportunity at the
    /// end of a bin belongs to that bin. A trace shorter than one bin gives its mean. `bin` is taken in
    /// whole milliseconds, at least one.
    pub fn rates(&self, bin: Duration) -> Vec<Rate> {
        let bin_ms = bin.as_millis().max(1);
        let bins = self.period_ms() / bin_ms;
        if bins == 0 {
            return vec![self.mean_rate()];
        }
        let mut counts = vec![0u64; usize::try_from(bins).unwrap_or(usize::MAX)];
        for &time in self.opportunities() {
            let bin = u64::from(time).saturating_sub(1) / bin_ms;
            if let Some(count) = usize::try_from(bin).ok().and_then(|bin| counts.get_mut(bin)) {
                *count += 1;
            }
        }
        let bin = Duration::from_millis(bin_ms);
        counts.into_iter().map(|count| OPPORTUNITY * count / bin).collect()
    }
}

/// The value at `fraction` of the sorted, non-empty `rates`, linear between neighbours.
fn percentile(rates: &[Rate], fraction: f64) -> Rate {
    let position = fraction * (rates.len() - 1) as f64;
    let below = position as usize;
    let above = (below + 1).min(rates.len() - 1);
    let [low, high] = [below, above].map(|at| rates[at].bytes_per_sec() as f64);
    Rate::from_bytes_per_sec_f64(low + (high - low) * (position - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_on_off_trace() {
        // 12 Mbit/s for 500 ms, nothing for 500 ms, and one opportunity that closes the second.
        let mut times: Vec<u32> = (1..=500).collect();
        times.push(1000);
        let stats = Trace::from_opportunities(times).unwrap().stats();
        assert_eq!(stats.duration, Duration::from_secs(1));
        assert_eq!(stats.mean, Rate::from_bytes_per_sec(501 * 1500));
        assert_eq!(stats.p5, Rate::ZERO);
        assert_eq!(stats.p95, Rate::from_mbps(12.0));
        // Sorted: 0 0 0 0 0.12 12 12 12 12 12; halfway between the fifth and the sixth.
        assert_eq!(stats.median_100ms, Rate::from_mbps(6.06));
        assert_eq!(stats.outage_fraction, 0.4);
        assert!((stats.cv - 0.99).abs() < 0.01, "{}", stats.cv);
    }

    #[test]
    fn a_trace_shorter_than_a_bin_is_one_bin() {
        let stats = Trace::parse(b"1").unwrap().stats();
        assert_eq!(stats.median_100ms, Rate::from_mbps(12.0));
        assert_eq!((stats.cv, stats.outage_fraction), (0.0, 0.0));
    }
}
