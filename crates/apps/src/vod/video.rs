//! The video itself: its chunks and their sizes.

use std::sync::Arc;

use trimtab_units::{Bytes, Duration, Rate};

use super::VodConfig;
use crate::draw::Draw;

/// How much larger or smaller than its share a chunk can be.
const FACTOR_MAX: f64 = 2.0;

/// A video cut into chunks, each stored at every bitrate of the ladder.
#[derive(Clone, Debug)]
pub(super) struct Video {
    length: Duration,
    chunk_length: Duration,
    repeats: bool,
    /// Size of each chunk over that of a chunk of constant bitrate; empty for constant bitrate.
    factors: Arc<[f64]>,
}

impl Video {
    pub(super) fn new(config: &VodConfig) -> Self {
        let mut video = Self {
            length: config.length,
            chunk_length: config.chunk_length,
            repeats: config.repeats,
            factors: Arc::default(),
        };
        if config.size_variation > 0.0 {
            video.factors = factors(video.chunks(), config.size_variation, config.seed).into();
        }
        video
    }

    /// Chunks of one showing.
    fn chunks(&self) -> u64 {
        self.length.as_nanos().div_ceil(self.chunk_length.as_nanos())
    }

    /// Whether there is a chunk `index`, counted from 0 through all showings.
    pub(super) fn has(&self, index: usize) -> bool {
        self.repeats || (index as u64) < self.chunks()
    }

    /// Playing time of chunk `index`. The last of a showing can be shorter than the others.
    pub(super) fn duration(&self, index: usize) -> Duration {
        let index = index as u64 % self.chunks();
        self.chunk_length.min(self.length - self.chunk_length * index)
    }

    /// Size of chunk `index` at a nominal bitrate.
    pub(super) fn size(&self, index: usize, bitrate: Rate) -> Bytes {
        let constant = bitrate * self.duration(index);
        let factor = self.factors.get((index as u64 % self.chunks()) as usize);
        factor.map_or(constant, |&f| constant.mul_f64(f)).max(Bytes::new(1))
    }
}

/// Log-normal factors, cut to at most double and at least half, and then scaled to a mean of 1, so
/// that a nominal bitrate stays what the video takes on average. All rungs share them: what makes a
/// scene hard to encode does so at every bitrate.
fn factors(chunks: u64, variation: f64, seed: u64) -> Vec<f64> {
    let mut draw = Draw::new(seed, 3);
    // A log-normal's coefficient of variation is sqrt(exp(σ²) − 1).
    let sigma = libm::sqrt(libm::log(1.0 + variation * variation));
    let mut factors: Vec<f64> = (0..chunks)
        .map(|_| libm::exp(sigma * draw.normal()).clamp(1.0 / FACTOR_MAX, FACTOR_MAX))
        .collect();
    let mean = factors.iter().sum::<f64>() / factors.len() as f64;
    factors.iter_mut().for_each(|f| *f /= mean);
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_length() {
        let config = VodConfig { length: Duration::from_secs(10), ..VodConfig::default() };
        let video = Video::new(&config);
        let lengths: Vec<u64> =
            (0..).take_while(|&i| video.has(i)).map(|i| video.duration(i).as_millis()).collect();
        assert_eq!(lengths, [4000, 4000, 2000]);
        assert_eq!(video.size(0, Rate::from_mbps(3.0)), Bytes::new(1_500_000));
        assert_eq!(video.size(2, Rate::from_mbps(3.0)), Bytes::new(750_000));
        let endless = Video::new(&VodConfig { repeats: true, ..config });
        assert!(endless.has(1_000_000));
        assert_eq!(endless.duration(5), Duration::from_secs(2), "the third chunk again");
    }

    #[test]
    fn varying_sizes_keep_the_nominal_bitrate() {
        let config = VodConfig {
            length: Duration::from_secs(4000),
            size_variation: 0.3,
            ..VodConfig::default()
        };
        let sizes = |seed| {
            let video = Video::new(&VodConfig { seed, ..config.clone() });
            let bitrate = Rate::from_mbps(3.0);
            (0..1000).map(|i| video.size(i, bitrate).as_f64()).collect::<Vec<_>>()
        };
        let s = sizes(1);
        let mean = s.iter().sum::<f64>() / 1000.0;
        let variance = s.iter().map(|x| (x / mean - 1.0).powi(2)).sum::<f64>() / 1000.0;
        assert!((mean - 1.5e6).abs() < 1.0);
        // The cut takes away a little of the 0.3.
        assert!((0.25..0.32).contains(&variance.sqrt()), "variation {}", variance.sqrt());
        assert_eq!(s, sizes(1));
        assert_ne!(s, sizes(2));
    }
}
