//! Where a flow operates, how its QoE changes around that point, and the hints that follow.

use trimtab_units::{Duration, Rate};

/// What the network gives a flow right now: the `T`, `D` and `L` of Mortise Eq. 2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OperatingPoint {
    /// Throughput `T`: the rate at which the receiver gets data.
    pub throughput: Rate,
    /// Delay `D`: the round-trip time that packets see, queueing included.
    pub delay: Duration,
    /// Loss `L`: lost packets over sent packets, 0 to 1. Values outside count as the nearer end.
    pub loss: f64,
}

/// Models divide by the throughput; below this (1 byte/s) they see this.
const THROUGHPUT_MBPS_MIN: f64 = 8e-6;

impl OperatingPoint {
    /// `T` in Mbit/s, never below one byte per second, so that `R/T` and `ln T` stay finite.
    pub fn throughput_mbps(&self) -> f64 {
        self.throughput.mbps().max(THROUGHPUT_MBPS_MIN)
    }
    /// `D` in seconds.
    pub fn delay_s(&self) -> f64 {
        self.delay.as_secs_f64()
    }
    /// `L` as a fraction within 0 to 1; NaN counts as no loss.
    pub fn loss_ratio(&self) -> f64 {
        if self.loss.is_nan() { 0.0 } else { self.loss.clamp(0.0, 1.0) }
    }
}

/// The partial derivatives of a model's score at an operating point (Mortise §3.2).
///
/// A component is NaN where the model has no value, and may be infinite at a singular point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gradient {
    /// ∂f/∂T: score per Mbit/s.
    pub throughput: f64,
    /// ∂f/∂D: score per second of delay.
    pub delay: f64,
    /// ∂f/∂L: score per unit of loss (from no loss to total loss).
    pub loss: f64,
}

/// What an application would pay, in throughput, to be spared delay and loss (Mortise Eq. 3).
///
/// Both are finite and never negative. Along a curve of equal QoE, λ is dT/dD: raising the delay by
/// `dD` and the loss by `dL` is worth it exactly when it brings more than `λ·dD + β·dL` of
/// throughput. (Mortise §3.2 words λ the other way round, as delay tolerated per throughput; that
/// is 1/λ, and contradicts its Eq. 3.) A large λ thus means: keep the queue short.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hints {
    /// λ in Mbit/s per second of delay, 0 to [`Hints::MAX`].
    pub lambda: f64,
    /// β in Mbit/s per unit of loss, 0 to [`Hints::MAX`]: 1 % of loss costs β/100.
    pub beta: f64,
}

impl Hints {
    /// The largest hint, a clamp: "no throughput is worth any more of this".
    ///
    /// Far above what the built-in models give on real links (10 Gbit/s and a request of 10 KB
    /// make λ = 1.25·10^9 Mbit/s per second), yet safe to add, scale and square.
    pub const MAX: f64 = 1e12;

    /// λ in Mbit/s per millisecond of delay.
    pub fn lambda_per_ms(&self) -> f64 {
        self.lambda * 1e-3
    }
}

impl Gradient {
    /// The gradient of a score that does not exist.
    pub(crate) const NAN: Self = Self { throughput: f64::NAN, delay: f64::NAN, loss: f64::NAN };

    /// λ and β as ratios of partial derivatives (Mortise Eq. 3); `None` when a derivative is NaN or
    /// the ratio is undefined.
    ///
    /// Where throughput helps and delay hurts (or the reverse, for a formula that measures a cost),
    /// this is Eq. 3 with its absolute values. Where that trade does not exist Eq. 3 would invent
    /// one, so here a delay that does no harm has the hint 0, and a delay that hurts while
    /// throughput brings nothing has [`Hints::MAX`]. The same holds for loss.
    pub fn hints(&self) -> Option<Hints> {
        Some(Hints {
            lambda: exchange(self.throughput, -self.delay)?,
            beta: exchange(self.throughput, -self.loss)?,
        })
    }
}

/// The throughput that outweighs one unit of a harm, given the score per Mbit/s that throughput
/// gains and the score that the unit of harm costs.
fn exchange(gain: f64, harm: f64) -> Option<f64> {
    if gain.is_nan() || harm.is_nan() {
        return None;
    }
    if harm == 0.0 || (harm < 0.0 && gain >= 0.0) {
        return Some(0.0);
    }
    if harm > 0.0 && gain <= 0.0 {
        return Some(Hints::MAX);
    }
    let ratio = harm / gain;
    if ratio.is_nan() { None } else { Some(ratio.min(Hints::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(throughput: f64, delay: f64, loss: f64) -> Option<Hints> {
        Gradient { throughput, delay, loss }.hints()
    }

    #[test]
    fn ratio_of_derivatives() {
        assert_eq!(hints(2.0, -8.0, -3.0), Some(Hints { lambda: 4.0, beta: 1.5 }));
        // A cost (say a completion time) has every sign reversed and the same trade.
        assert_eq!(hints(-2.0, 8.0, 3.0), Some(Hints { lambda: 4.0, beta: 1.5 }));
        assert_eq!(Hints { lambda: 20.0, beta: 0.0 }.lambda_per_ms(), 0.02);
    }

    #[test]
    fn no_trade_to_be_had() {
        // Nothing matters; delay helps; throughput is worthless; throughput harms as well.
        assert_eq!(hints(0.0, 0.0, 0.0), Some(Hints { lambda: 0.0, beta: 0.0 }));
        assert_eq!(hints(1.0, 1.0, 1.0), Some(Hints { lambda: 0.0, beta: 0.0 }));
        assert_eq!(hints(0.0, -1.0, 0.0), Some(Hints { lambda: Hints::MAX, beta: 0.0 }));
        assert_eq!(hints(-1.0, -1.0, 0.0), Some(Hints { lambda: Hints::MAX, beta: 0.0 }));
    }

    #[test]
    fn what_is_not_finite_is_clamped_or_none() {
        assert_eq!(hints(f64::NAN, -1.0, -1.0), None);
        assert_eq!(hints(1.0, -1.0, f64::NAN), None);
        assert_eq!(hints(f64::INFINITY, f64::NEG_INFINITY, 0.0), None);
        assert_eq!(
            hints(1.0, f64::NEG_INFINITY, 0.0),
            Some(Hints { lambda: Hints::MAX, beta: 0.0 })
        );
        assert_eq!(hints(f64::INFINITY, -1.0, -1.0), Some(Hints { lambda: 0.0, beta: 0.0 }));
        assert_eq!(hints(1e-300, -1e300, -1.0).map(|h| h.lambda), Some(Hints::MAX));
    }

    #[test]
    fn point_stays_in_the_models_domain() {
        let dead = OperatingPoint { loss: f64::NAN, ..Default::default() };
        assert_eq!((dead.throughput_mbps(), dead.loss_ratio()), (8e-6, 0.0));
        let odd = OperatingPoint { loss: 7.0, ..dead };
        assert_eq!(odd.loss_ratio(), 1.0);
        assert_eq!(OperatingPoint { loss: -0.5, ..dead }.loss_ratio(), 0.0);
    }
}
