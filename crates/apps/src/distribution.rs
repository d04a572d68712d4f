//! The published distribution of Mortise's services, as something to draw from.

use trimtab_units::{Bytes, Duration};

use crate::draw::Draw;

/// Requests of the services behind Mortise (its Appendix B and Fig. 19: file downloads and web
/// pages from CDN servers).
///
/// The paper states five points: of the intervals between requests 36 % are 0, 40 % are below
/// 200 ms and 80 % below 1 s; of the responses about 30 % are below 100 KB and about 50 % above
/// 1 MB. Between the points we draw so:
///
/// | share | interval | | share | size |
/// |---|---|---|---|---|
/// | 36 % | 0 | | 30 % | log-uniform, `size_min` to 100 KB |
/// | 4 % | uniform, 1 to 200 ms | | 20 % | log-uniform, 100 KB to 1 MB |
/// | 40 % | uniform, 200 ms to 1 s | | 50 % | log-uniform, 1 MB to `size_max` |
/// | 20 % | log-uniform, 1 s to `gap_max` | | | |
///
/// The paper gives no ends. The defaults are those of the one workload that it publishes: responses
/// from 10 KB to 3.2 MB, gaps of up to 20 s. That gives a mean response of 1.04 MB, a mean gap of
/// 1.51 s (1.62 s in the published workload) and so a mean demand of 5.5 Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CdnDistribution {
    /// Smallest response, 1 B to 100 KB. Default: 10 KB.
    pub size_min: Bytes,
    /// Largest response, at least 1 MB. Default: 3.2 MB.
    pub size_max: Bytes,
    /// Longest gap, at least 1 s. Default: 20 s.
    pub gap_max: Duration,
}

impl Default for CdnDistribution {
    fn default() -> Self {
        Self {
            size_min: Bytes::new(10_000),
            size_max: Bytes::new(3_200_000),
            gap_max: Duration::from_secs(20),
        }
    }
}

impl CdnDistribution {
    /// Draws the gap before a request, in whole milliseconds.
    pub(crate) fn gap(&self, draw: &mut Draw) -> Duration {
        // Rounding down keeps "below 200 ms" and "below 1 s" true to the paper's points.
        let ms = match draw.unit() {
            p if p < 0.36 => 0.0,
            p if p < 0.40 => draw.uniform(1.0, 200.0),
            p if p < 0.80 => draw.uniform(200.0, 1000.0),
            _ => draw.log_uniform(1000.0, self.gap_max.as_millis_f64().max(1000.0)),
        };
        Duration::from_millis(ms as u64)
    }

    /// Draws the size of a response.
    pub(crate) fn size(&self, draw: &mut Draw) -> Bytes {
        let size = match draw.unit() {
            p if p < 0.3 => draw.log_uniform(self.size_min.as_f64().clamp(1.0, 1e5), 1e5),
            p if p < 0.5 => draw.log_uniform(1e5, 1e6),
            // "Above 1 MB": not at it.
            _ => draw.log_uniform(1e6, self.size_max.as_f64().max(1e6)) + 1.0,
        };
        Bytes::new(size as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 20_000;

    /// Four standard deviations of a share estimated from so many draws.
    fn tolerance(p: f64) -> f64 {
        4.0 * (p * (1.0 - p) / DRAWS as f64).sqrt()
    }

    #[test]
    fn gaps_meet_the_published_points() {
        let mut draw = Draw::new(1, 0);
        let d = CdnDistribution::default();
        let gaps: Vec<u64> = (0..DRAWS).map(|_| d.gap(&mut draw).as_millis()).collect();
        let share =
            |f: &dyn Fn(u64) -> bool| gaps.iter().filter(|&&g| f(g)).count() as f64 / DRAWS as f64;
        assert!((share(&|g| g == 0) - 0.36).abs() < tolerance(0.36));
        assert!((share(&|g| g < 200) - 0.40).abs() < tolerance(0.40));
        assert!((share(&|g| g < 1000) - 0.80).abs() < tolerance(0.80));
        assert!(*gaps.iter().max().unwrap() < 20_000);
        let mean = gaps.iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((mean - 1512.0).abs() < 100.0, "mean gap {mean} ms");
    }

    #[test]
    fn sizes_meet_the_published_points() {
        let mut draw = Draw::new(2, 0);
        let d = CdnDistribution::default();
        let sizes: Vec<u64> = (0..DRAWS).map(|_| d.size(&mut draw).get()).collect();
        let share =
            |f: &dyn Fn(u64) -> bool| sizes.iter().filter(|&&s| f(s)).count() as f64 / DRAWS as f64;
        assert!((share(&|s| s < 100_000) - 0.30).abs() < tolerance(0.30));
        assert!((share(&|s| s > 1_000_000) - 0.50).abs() < tolerance(0.50));
        assert!(sizes.iter().all(|s| (10_000..=3_200_001).contains(s)));
        let mean = sizes.iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((mean - 1.0356e6).abs() < 3e4, "mean size {mean} B");
    }

    #[test]
    fn ends_that_make_no_sense_are_pulled_to_the_points() {
        let mut draw = Draw::new(3, 0);
        let d = CdnDistribution {
            size_min: Bytes::MAX,
            size_max: Bytes::ZERO,
            gap_max: Duration::ZERO,
        };
        for _ in 0..1000 {
            assert!(d.gap(&mut draw) <= Duration::from_secs(1));
            assert!((100_000..=1_000_001).contains(&d.size(&mut draw).get()));
        }
    }
}
