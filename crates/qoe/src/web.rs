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

/// The web model: `f = −(S/T + D)` in seconds (Mortise Eq. 22, negated so that more is better).
///
/// S is what the path carries until a response in flight is complete, on average. Of a single one it
/// is its size, [`Factor::MeanResponse`], as in the paper. Several share the path: in the order in
/// which they were asked for, n of size R are complete after R, 2 R … n R. So S is halfway from
/// their mean size to all that is outstanding, [`Factor::Remaining`]. The paper's `n` responses have
/// a throughput of T each, which a backlog has not.
///
/// It has no loss term, so β is 0; λ is Eq. 23 with S, and the download model's λ without loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Web;

impl Web {
    /// The model as a formula.
    pub const FORMULA: &'static str = "-((Rbar + max(Rbar, remaining))/2/T + D)";

    /// What is carried until a response is complete, in Mbit; `None` without a mean response size.
    fn carried(factors: &Factors) -> Option<f64> {
        let size = factors.positive(Factor::MeanResponse)?;
        let outstanding = factors.get(Factor::Remaining).unwrap_or(size);
        Some(0.5 * (size + size.max(outstanding)))
    }

    /// The score in seconds, negative; NaN without a mean response size.
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        let Some(size) = Self::carried(factors) else { return f64::NAN };
        -(size / point.throughput_mbps() + point.delay_s())
    }

    /// The derivatives of the score; NaN without a mean response size.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        let Some(size) = Self::carried(factors) else { return Gradient::NAN };
        let t = point.throughput_mbps();
        Gradient { throughput: size / (t * t), delay: -1.0, loss: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::Rate;

    use super::*;

    #[test]
    fn finished_responses() {
        let ms = Duration::from_millis;
        assert_eq!(web_qoe(&[]), None);
        assert!((web_qoe(&[ms(100), ms(300)]).unwrap() + 0.2).abs() < 1e-12);
    }

    /// Ten responses of 0.8 Mbit: after the last one has left, 8 Mbit were carried, and after the
    /// first 0.8, so 4.4 on average. A single one waits for itself, also when part of it is there.
    #[test]
    fn responses_wait_for_those_before_them() {
        let point = OperatingPoint {
            throughput: Rate::from_mbps(10.0),
            delay: Duration::from_millis(50),
            loss: 0.0,
        };
        let mut factors = Factors::new();
        factors.set(Factor::MeanResponse, 0.8);
        let alone = Web.gradient(&point, &factors);
        assert!((alone.throughput - 0.008).abs() < 1e-12);
        for (remaining, carried) in [(8.0, 4.4), (0.8, 0.8), (0.3, 0.8), (0.0, 0.8)] {
            factors.set(Factor::Remaining, remaining);
            let score = Web.score(&point, &factors);
            assert!((score + carried / 10.0 + 0.05).abs() < 1e-12, "{remaining}: {score}");
            let gradient = Web.gradient(&point, &factors);
            assert!((gradient.throughput - carried / 100.0).abs() < 1e-12, "{remaining}");
            assert_eq!((gradient.delay, gradient.loss), (-1.0, 0.0));
        }
    }
}
