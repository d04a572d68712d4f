//! File download (Mortise §4, Eq. 6 and 7): how fast a request completes, less what retransmissions
//! cost the operator.

use trimtab_units::{Bytes, Duration};

use crate::factors::mbit;
use crate::{Factor, Factors, Gradient, OperatingPoint};

/// The piece `P(r) = a·r + b` of the penalty on which a ratio lies.
#[derive(Clone, Copy)]
struct Piece {
    a: f64,
    b: f64,
}

/// The piece of the penalty for retransmission ratio `r` (Mortise §4, below Eq. 6).
///
/// `P` itself is continuous; its slope, and with it β, jumps at 5, 10 and 40 %.
fn piece(r: f64) -> Piece {
    match r {
        r if r < 0.05 => Piece { a: 0.0, b: 0.0 },
        r if r < 0.1 => Piece { a: 4.0, b: -0.2 },
        r if r < 0.4 => Piece { a: 1.0, b: 0.1 },
        _ => Piece { a: 0.0, b: 0.5 },
    }
}

/// The penalty `P(r)` for retransmitting the ratio `r` of packets: 0 up to 5 %, 0.2 at 10 %, 0.5
/// from 40 % (Mortise §4). `r` outside 0 to 1 counts as the nearer end.
pub fn retransmission_penalty(r: f64) -> f64 {
    let r = r.clamp(0.0, 1.0);
    let Piece { a, b } = piece(r);
    a * r + b
}

/// The QoE of one finished request, in Mbit/s (Mortise Eq. 6): size over completion time, less the
/// penalty for the ratio of retransmitted packets, `r`.
///
/// A request without size scores 0; one that took no time counts as one nanosecond.
pub fn download_qoe(size: Bytes, completion: Duration, r: f64) -> f64 {
    let seconds = completion.max(Duration::from_nanos(1)).as_secs_f64();
    mbit(size) / seconds * (1.0 - retransmission_penalty(r))
}

/// The download model: `f = R·(1 − P(L)) / (R/T + D + D·L/2)` in Mbit/s (Mortise §4).
///
/// Reads the factor [`Factor::Request`]. Loss lengthens the request even where `P` is zero, so β is
/// positive whenever there is delay. The hints equal Eq. 7; the paper leaves λ's unit open, and with
/// `R` in Mbit and `D` in seconds it is Mbit/s per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Download;

impl Download {
    /// The model as a formula.
    pub const FORMULA: &'static str = "R * (1 - if(L < 0.05, 0, if(L < 0.1, 4*L - 0.2, \
                                       if(L < 0.4, L + 0.1, 0.5)))) / (R/T + D + D*L/2)";

    /// The score in Mbit/s; NaN without a request size.
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        let Some(size) = factors.positive(Factor::Request) else { return f64::NAN };
        let (t, d, l) = (point.throughput_mbps(), point.delay_s(), point.loss_ratio());
        size * (1.0 - retransmission_penalty(l)) / (size / t + d + d * l / 2.0)
    }

    /// The derivatives of the score; NaN without a request size.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        let Some(size) = factors.positive(Factor::Request) else { return Gradient::NAN };
        let (t, d, l) = (point.throughput_mbps(), point.delay_s(), point.loss_ratio());
        let Piece { a, b } = piece(l);
        let kept = 1.0 - (a * l + b);
        let time = size / t + d + d * l / 2.0;
        let score_per_time = -size * kept / (time * time);
        Gradient {
            throughput: -score_per_time * size / (t * t),
            delay: score_per_time * (1.0 + l / 2.0),
            loss: score_per_time * d / 2.0 - size * a / time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn penalty_is_continuous() {
        let near = |r: f64, p: f64| assert!((retransmission_penalty(r) - p).abs() < 1e-9, "{r}");
        near(0.05 - 1e-12, 0.0);
        near(0.05, 0.0);
        near(0.1 - 1e-12, 0.2);
        near(0.1, 0.2);
        near(0.4 - 1e-12, 0.5);
        near(0.4, 0.5);
        near(2.0, 0.5);
        near(-1.0, 0.0);
    }

    #[test]
    fn finished_requests() {
        let (size, time) = (Bytes::new(1_000_000), Duration::from_secs(2));
        assert_eq!(download_qoe(size, time, 0.01), 4.0);
        assert!((download_qoe(size, time, 0.1) - 3.2).abs() < 1e-12);
        assert_eq!(download_qoe(size, time, 0.9), 2.0);
        assert_eq!(download_qoe(Bytes::ZERO, Duration::ZERO, 0.0), 0.0);
        assert!(download_qoe(size, Duration::ZERO, 0.0).is_finite());
    }
}
