//! Video conferencing (Mortise App. C, Eq. 10 to 20): picture, frame delay and frame drops.

use trimtab_units::Duration;

use crate::{Factors, Gradient, OperatingPoint};

/// Weights of picture, delay and drops in the total (Mortise Eq. 13).
const WEIGHT_VIDEO: f64 = 0.5;
const WEIGHT_DELAY: f64 = 0.3;
const WEIGHT_DROP: f64 = 0.2;
/// The fit of VMAF to the bitrate `T` in Mbit/s, `41.06 + 30.53·ln(T + 0.1481)` (Mortise Eq. 16).
const VMAF_BASE: f64 = 41.06;
const VMAF_PER_LN: f64 = 30.53;
const VMAF_SHIFT_MBPS: f64 = 0.1481;
/// The top of each of the three scores.
const SCORE_MAX: f64 = 100.0;
/// Milliseconds of frame delay that cost one point (Mortise Eq. 11).
const MS_PER_POINT: f64 = 3.0;

/// The QoE of a finished call, 0 to 100 (Mortise Eq. 13), from the received video's VMAF (0 to 100),
/// its mean frame delay and the ratio of dropped frames (0 to 1). Values outside count as the
/// nearer end.
pub fn conference_qoe(vmaf: f64, frame_delay: Duration, drop_ratio: f64) -> f64 {
    let delay = (SCORE_MAX - frame_delay.as_millis_f64() / MS_PER_POINT).max(0.0);
    let drop = SCORE_MAX * (1.0 - drop_ratio.clamp(0.0, 1.0));
    WEIGHT_VIDEO * vmaf.clamp(0.0, SCORE_MAX) + WEIGHT_DELAY * delay + WEIGHT_DROP * drop
}

/// The conferencing model (Mortise Eq. 17):
/// `f = 0.5·(41.06 + 30.53·ln(T + 0.1481)) + 0.3·(100 − (c + D)/3) + 0.2·100·(1 − L)`,
/// `D` and `c` in milliseconds.
///
/// Reads no factor. By default the picture is capped at 100 (from 6.745 Mbit/s) and the delay score
/// ends at 0 (from 300 ms), as the definitions of the two scores say (Eq. 10 and 11) and Eq. 17
/// forgets. Past the cap more throughput is worth nothing and λ is [`crate::Hints::MAX`]; past
/// 300 ms more delay does no more harm and λ is 0. The fit is negative below 0.1125 Mbit/s; it is
/// left so, since a score that is flat there would tell a starving call to ask for nothing.
///
/// The paper says that it leaves frame drops out of the preference, yet keeps the loss term in
/// Eq. 17 and 20. So does this model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conference {
    /// `c` of Eq. 15: encoding delay plus the time to send one frame.
    pub frame_overhead: Duration,
    /// Whether the picture and delay scores keep to 0 to 100. `false` gives Eq. 17 to the letter.
    pub clamped: bool,
}

impl Default for Conference {
    /// Clamped, with 40 ms of overhead: one frame at 30 per second, and the encoder.
    fn default() -> Self {
        Self { frame_overhead: Duration::from_millis(40), clamped: true }
    }
}

impl Conference {
    /// The model as a formula, as it is by default.
    pub const FORMULA: &'static str = "0.5 * min(100, 41.06 + 30.53*ln(T + 0.1481)) \
                                       + 0.3 * max(0, 100 - (40 + 1000*D)/3) + 0.2 * 100*(1 - L)";
    /// The model as a formula, as Mortise prints it.
    pub const FORMULA_PRINTED: &'static str = "0.5 * (41.06 + 30.53*ln(T + 0.1481)) \
                                               + 0.3 * (100 - (40 + 1000*D)/3) + 0.2 * 100*(1 - L)";

    /// The model without clamps, as Mortise prints it (Eq. 17).
    pub fn printed() -> Self {
        Self { clamped: false, ..Self::default() }
    }

    /// VMAF by the fit of Eq. 16, not clamped.
    fn vmaf(point: &OperatingPoint) -> f64 {
        VMAF_BASE + VMAF_PER_LN * libm::log(point.throughput_mbps() + VMAF_SHIFT_MBPS)
    }
    /// The delay score of Eq. 15, not clamped.
    fn delay_score(&self, point: &OperatingPoint) -> f64 {
        let frame_ms = self.frame_overhead.as_millis_f64() + point.delay_s() * 1e3;
        SCORE_MAX - frame_ms / MS_PER_POINT
    }

    /// The score, at most 100.
    pub fn score(&self, point: &OperatingPoint, _: &Factors) -> f64 {
        let (mut video, mut delay) = (Self::vmaf(point), self.delay_score(point));
        if self.clamped {
            video = video.min(SCORE_MAX);
            delay = delay.max(0.0);
        }
        WEIGHT_VIDEO * video
            + WEIGHT_DELAY * delay
            + WEIGHT_DROP * SCORE_MAX * (1.0 - point.loss_ratio())
    }

    /// The derivatives of the score.
    pub fn gradient(&self, point: &OperatingPoint, _: &Factors) -> Gradient {
        let video_full = self.clamped && Self::vmaf(point) > SCORE_MAX;
        let delay_spent = self.clamped && self.delay_score(point) < 0.0;
        let video_slope = VMAF_PER_LN / (point.throughput_mbps() + VMAF_SHIFT_MBPS);
        Gradient {
            throughput: if video_full { 0.0 } else { WEIGHT_VIDEO * video_slope },
            delay: if delay_spent { 0.0 } else { -WEIGHT_DELAY * 1e3 / MS_PER_POINT },
            loss: -WEIGHT_DROP * SCORE_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hints;
    use trimtab_units::Rate;

    fn point(mbps: f64, ms: u64) -> OperatingPoint {
        OperatingPoint {
            throughput: Rate::from_mbps(mbps),
            delay: Duration::from_millis(ms),
            loss: 0.0,
        }
    }

    #[test]
    fn fit_reaches_its_ends_where_expected() {
        assert!((Conference::vmaf(&point(6.745, 0)) - 100.0).abs() < 0.01);
        assert!(Conference::vmaf(&point(0.1125, 0)).abs() < 0.01);
    }

    #[test]
    fn clamps_end_the_trade() {
        let hints = |p| Conference::default().gradient(&p, &Factors::new()).hints().unwrap();
        assert_eq!(hints(point(7.0, 40)).lambda, Hints::MAX);
        assert_eq!(hints(point(5.0, 261)).lambda, 0.0);
        assert!(hints(point(5.0, 259)).lambda > 30.0);
        let printed = Conference::printed().gradient(&point(7.0, 500), &Factors::new());
        assert!((printed.hints().unwrap().lambda_per_ms() - 7.1481 / 152.65).abs() < 1e-9);
    }

    #[test]
    fn finished_calls() {
        let ms = Duration::from_millis;
        assert_eq!(conference_qoe(80.0, ms(60), 0.1), 0.5 * 80.0 + 0.3 * 80.0 + 0.2 * 90.0);
        assert_eq!(conference_qoe(100.0, Duration::ZERO, 0.0), 100.0);
        assert_eq!(conference_qoe(-3.0, ms(900), 7.0), 0.0);
    }
}
