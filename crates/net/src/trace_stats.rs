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
    /// The statistics of one period. Takes time and memory by the opportunities, however long the
    /// period: a trace of a few lines may last 49 days, which is 43 million bins.
    pub fn stats(&self) -> TraceStats {
        let bin_ms = u64::from(BIN_MS);
        let bins = (self.period_ms() / bin_ms).max(1);
        let mut busy: Vec<Rate> = if self.period_ms() < bin_ms {
            vec![self.mean_rate()]
        } else {
            self.busy_bins(bin_ms).map(|(_, count)| rate_of(count, bin_ms)).collect()
        };
        busy.sort_unstable();
        let (count, empty) = (bins as f64, bins - busy.len() as u64);
        let real = || busy.iter().map(|rate| rate.bytes_per_sec() as f64);
        let mean = real().sum::<f64>() / count;
        let squares = real().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>();
        let variance = (squares + empty as f64 * mean * mean) / count;
        let rates = SortedBins { empty, busy: &busy };
        TraceStats {
            duration: self.period(),
            mean: self.mean_rate(),
            median_100ms: rates.percentile(0.5),
            p5: rates.percentile(0.05),
            p95: rates.percentile(0.95),
            cv: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
            outage_fraction: empty as f64 / count,
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
        let mut rates = vec![Rate::ZERO; usize::try_from(bins).unwrap_or(usize::MAX)];
        for (bin, count) in self.busy_bins(bin_ms) {
            if let Some(rate) = usize::try_from(bin).ok().and_then(|bin| rates.get_mut(bin)) {
                *rate = rate_of(count, bin_ms);
            }
        }
        rates
    }

    /// The whole bins of one period that have opportunities, in order, and how many.
    fn busy_bins(&self, bin_ms: u64) -> impl Iterator<Item = (u64, u64)> {
        let bin = move |time: &u32| u64::from(*time).saturating_sub(1) / bin_ms;
        let whole = self.period_ms() / bin_ms;
        let runs = self.opportunities().chunk_by(move |a, b| bin(a) == bin(b));
        runs.map(move |run| (bin(&run[0]), run.len() as u64)).filter(move |&(bin, _)| bin < whole)
    }
}

fn rate_of(opportunities: u64, bin_ms: u64) -> Rate {
    OPPORTUNITY * opportunities / Duration::from_millis(bin_ms)
}

/// Bins in ascending order of their rate, the empty ones counted only.
struct SortedBins<'a> {
    empty: u64,
    busy: &'a [Rate],
}

impl SortedBins<'_> {
    fn at(&self, index: u64) -> f64 {
        let busy =
            index.checked_sub(self.empty).and_then(|i| self.busy.get(usize::try_from(i).ok()?));
        busy.map_or(0.0, |rate| rate.bytes_per_sec() as f64)
    }

    /// The value at `fraction`, linear between neighbours.
    fn percentile(&self, fraction: f64) -> Rate {
        let last = self.empty + self.busy.len() as u64 - 1;
        let position = fraction * last as f64;
        let below = position as u64;
        let (low, high) = (self.at(below), self.at((below + 1).min(last)));
        Rate::from_bytes_per_sec_f64(low + (high - low) * (position - below as f64))
    }
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

    /// Used to take 700 MB and a sort of 43 million bins: a fuzzer's favourite.
    #[test]
    fn a_long_period_costs_nothing() {
        let times = [50, 60, 4_294_967_000, 4_294_967_295];
        let stats = Trace::from_opportunities(times.to_vec()).unwrap().stats();
        assert_eq!(stats.duration, Duration::from_millis(4_294_967_295));
        assert_eq!((stats.median_100ms, stats.p95), (Rate::ZERO, Rate::ZERO));
        // Two busy bins of 42 949 672, with 2 and 1 opportunities; the last one is of no whole bin.
        assert_eq!(stats.outage_fraction, 42_949_670.0 / 42_949_672.0);
        let (n, mean) = (42_949_672.0_f64, 3.0 / 42_949_672.0);
        let cv = (5.0 / n - mean * mean).sqrt() / mean;
        assert!((stats.cv / cv - 1.0).abs() < 1e-9, "{} is not {cv}", stats.cv);
    }
}
