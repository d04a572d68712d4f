//! Video on demand (Mortise §4, Eq. 8 and 9): picture quality, less the time spent stalled.

use trimtab_units::{Duration, Rate};

use crate::smooth::{softplus, softplus_slope};
use crate::{Factor, Factors, Gradient, OperatingPoint};

/// The lowest bitrate of the ladder, `B_min` (Mortise §4): 400 kbit/s.
const BITRATE_MIN_MBPS: f64 = 0.4;
/// Utility lost per second of stall, `ρ` (Mortise §4).
const STALL_COST: f64 = 2.66;

/// The QoE of a finished video, in units of log bitrate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamingQoe {
    /// Eq. 8: quality less stalls, over the whole video.
    pub total: f64,
    /// The same per chunk, so that videos of different lengths compare. Zero without chunks.
    pub per_chunk: f64,
    /// The part that bitrates earned: the sum of `ln(B/B_min)`.
    pub quality: f64,
    /// The part that stalls cost: `ρ` times the stalled seconds.
    pub stall_cost: f64,
}

/// The QoE of a finished video (Mortise Eq. 8) from the bitrate of each chunk and the duration of
/// each stall, with `ρ` = 2.66 per second and `B_min` = 400 kbit/s.
///
/// The paper leaves the base of the logarithm open. Its hints (Eq. 9) are derivatives only of the
/// natural one, so natural it is.
pub fn streaming_qoe(chunk_bitrates: &[Rate], stalls: &[Duration]) -> StreamingQoe {
    let rate_min = Rate::from_bytes_per_sec(1);
    let quality: f64 = chunk_bitrates
        .iter()
        .map(|&rate| libm::log(rate.max(rate_min).mbps() / BITRATE_MIN_MBPS))
        .sum();
    let stalled: f64 = stalls.iter().map(|s| s.as_secs_f64()).sum();
    let stall_cost = STALL_COST * stalled;
    let total = quality - stall_cost;
    let per_chunk =
        if chunk_bitrates.is_empty() { 0.0 } else { total / chunk_bitrates.len() as f64 };
    StreamingQoe { total, per_chunk, quality, stall_cost }
}

/// The streaming model: `f = ln(T/B_min) − ρ·max(0, C/T + D·(1+L) − V)` (Mortise §4).
///
/// Reads the factors [`Factor::Chunk`] and [`Factor::Buffer`].
///
/// As printed (Eq. 9), delay and loss weigh nothing at all until the moment a stall is certain:
/// with some buffer the hints are both zero, the controller turns greedy, and the queue that it
/// builds is still there when the buffer runs low. By default the maximum is therefore rounded off
/// over [`Streaming::MARGIN`]: the hints grow smoothly as the buffer's lead over the download
/// shrinks to that margin, and meet Eq. 9 once a stall is certain. [`Streaming::printed`] gives the
/// equation to the letter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streaming {
    /// Seconds over which the maximum is rounded off; 0 for the printed equation.
    pub margin_s: f64,
}

impl Default for Streaming {
    fn default() -> Self {
        Self { margin_s: Self::MARGIN.as_secs_f64() }
    }
}

impl Streaming {
    /// The model as a formula, as it is by default.
    pub const FORMULA: &'static str = "ln(T/0.4) - 2.66 * softplus(C/T + D*(1+L) - V, 0.5)";
    /// The model as a formula, as Mortise prints it.
    pub const FORMULA_PRINTED: &'static str = "ln(T/0.4) - 2.66 * max(0, C/T + D*(1+L) - V)";
    /// The default margin: a few round trips, and a fraction of the video in one chunk.
    pub const MARGIN: Duration = Duration::from_millis(500);

    /// The model with the sharp maximum that Mortise prints.
    pub const fn printed() -> Self {
        Self { margin_s: 0.0 }
    }

    /// The score, in units of log bitrate; NaN without chunk size and buffer.
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        let Some((_, late)) = lateness(point, factors) else { return f64::NAN };
        libm::log(point.throughput_mbps() / BITRATE_MIN_MBPS)
            - STALL_COST * softplus(late, self.margin_s)
    }

    /// The derivatives of the score; NaN without chunk size and buffer. On the kink of the sharp
    /// maximum, those of the stalled side.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        let Some((chunk, late)) = lateness(point, factors) else { return Gradient::NAN };
        let t = point.throughput_mbps();
        let cost = STALL_COST * softplus_slope(late, self.margin_s);
        Gradient {
            throughput: 1.0 / t + cost * chunk / (t * t),
            delay: -cost * (1.0 + point.loss_ratio()),
            loss: -cost * point.delay_s(),
        }
    }
}

/// The chunk size in Mbit, and by how many seconds the chunk misses the end of the buffer.
fn lateness(point: &OperatingPoint, factors: &Factors) -> Option<(f64, f64)> {
    let chunk = factors.positive(Factor::Chunk)?;
    let buffer = factors.get(Factor::Buffer)?;
    let download = chunk / point.throughput_mbps() + point.delay_s() * (1.0 + point.loss_ratio());
    Some((chunk, download - buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_videos() {
        let rates = [Rate::from_mbps(0.4), Rate::from_mbps(0.8), Rate::from_mbps(1.6)];
        let qoe = streaming_qoe(&rates, &[Duration::from_millis(500)]);
        assert!((qoe.quality - 3.0 * core::f64::consts::LN_2).abs() < 1e-12);
        assert!((qoe.stall_cost - 1.33).abs() < 1e-12);
        assert!((qoe.total - (qoe.quality - 1.33)).abs() < 1e-12);
        assert!((qoe.per_chunk * 3.0 - qoe.total).abs() < 1e-12);
        assert_eq!(streaming_qoe(&[], &[]), StreamingQoe::default());
        assert!(streaming_qoe(&[Rate::ZERO], &[]).total.is_finite());
    }
}
