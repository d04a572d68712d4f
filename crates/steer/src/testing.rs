//! Reports for unit tests: the fields that a test does not care about at sensible values.

use trimtab_cc::Phase;
use trimtab_qoe::Factors;
use trimtab_units::{Bytes, Duration, Time};

use crate::{KnobValues, Report, Responses};

/// A report of a connection on which nothing happened in the interval that ends at `now`.
pub(crate) fn silent(now: Time, interval: Duration, algorithm: &'static str) -> Report {
    Report {
        now,
        interval,
        algorithm,
        sent: Bytes::ZERO,
        acked: Bytes::ZERO,
        lost: Bytes::ZERO,
        busy: interval,
        rtt_samples: 0,
        rtt_variance: 0.0,
        rtt_mean: None,
        rtt_min: None,
        rtt_max: None,
        rtts: None,
        srtt: interval,
        min_rtt: interval,
        delivery_rate: None,
        delivery_rate_any: None,
        window: Bytes::ZERO,
        inflight: Bytes::ZERO,
        mss: Bytes::ZERO,
        phase: Phase::Steady,
        knobs: KnobValues::NONE,
        states: None,
        responses: Responses::default(),
        factors: Factors::new(),
    }
}

/// Deterministic noise: standard normal by the sum of twelve uniforms.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}
