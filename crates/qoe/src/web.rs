//! Web responses (Mortise App. D, Eq. 21 to 23): the mean completion time of those in flight.

use trimtab_units::Duration;

use crate::{Factor, Factors, Gradient, OperatingPoint};

/// The QoE of finished responses: minus their mean completion time in seconds (Mortise Eq. 22).
/// `None` when nothing finished.
pub fn web_qoe(completions: &[Duration]) -> Option<f64> {
    if completions.is_empty() {
        return None;
    }
    let sum: f64 = completions.iter().map(|c| c.as_secs_f64()).sum();
    Some(-sum / completions.len() as f64)
}

/// The web model: `f = −(Rbar/T + D)` in seconds (Mortise Eq. 22, negated so that more is better).
///
/// Reads the factor [`Factor::MeanResponse`]. It has no loss term, so β is 0; λ is Eq. 23, and the
/// download model's λ without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Web;

impl Web {
    /// The model as a formula.
    pub const FORMULA: &'static str = "-(Rbar/T + D)";

    /// The score in seconds, negative; NaN without a mean response size.
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        let Some(size) = factors.positive(Factor::MeanResponse) else { return f64::NAN };
        -(size / point.throughput_mbps() + point.delay_s())
    }

    /// The derivatives of the score; NaN without a mean response size.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        let Some(size) = factors.positive(Factor::MeanResponse) else { return Gradient::NAN };
        let t = point.throughput_mbps();
        Gradient { throughput: size / (t * t), delay: -1.0, loss: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_responses() {
        let ms = Duration::from_millis;
        assert_eq!(web_qoe(&[]), None);
        assert!((web_qoe(&[ms(100), ms(300)]).unwrap() + 0.2).abs() < 1e-12);
    }
}
