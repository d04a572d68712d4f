//! A token-bucket policer: it drops at once what is above a rate, and delays nothing.

use trimtab_units::{Bytes, Rate, Time};

/// A policer. Its bucket is full at the start, fills at `rate`, and holds `burst`; a packet passes when
/// the bucket holds its size, and then takes it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// The long-run rate that passes.
    pub rate: Rate,
    /// How much may pass at once. A packet that is larger never passes.
    pub burst: Bytes,
}

/// Bytes times nanoseconds per second: tokens in this unit have no rounding error.
const SCALE: u128 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Policer {
    config: PolicerConfig,
    /// In bytes times [`SCALE`].
    tokens: u128,
    filled_at: Time,
}

impl Policer {
    pub(crate) fn new(config: PolicerConfig) -> Self {
        Self { config, tokens: u128::from(config.burst.get()) * SCALE, filled_at: Time::ZERO }
    }

    /// Whether a packet of `size` passes at `now`, which must not go back.
    pub(crate) fn passes(&mut self, now: Time, size: Bytes) -> bool {
        let elapsed = now.since(self.filled_at).as_nanos();
        self.filled_at = now;
        let gained = u128::from(self.config.rate.bytes_per_sec()) * u128::from(elapsed);
        let full = u128::from(self.config.burst.get()) * SCALE;
        self.tokens = self.tokens.saturating_add(gained).min(full);
        let price = u128::from(size.get()) * SCALE;
        let passes = price <= self.tokens;
        if passes {
            self.tokens -= price;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_units::Duration;

    #[test]
    fn the_long_run_rate_is_exact() {
        let config = PolicerConfig { rate: Rate::from_mbps(10.0), burst: Bytes::new(15_000) };
        let mut policer = Policer::new(config);
        // 20 Mbit/s offered for 60 s, at odd times.
        let gap = Duration::from_nanos(600_001);
        let (mut now, mut passed) = (Time::ZERO, 0);
        while now < Time::from_millis(60_000) {
            passed += u64::from(policer.passes(now, Bytes::new(1500)));
            now += gap;
        }
        // The burst, and 75 MB in a minute; what is left in the bucket is less than a packet.
        let expected = (15_000.0 + 75e6) / 1500.0;
        assert!((passed as f64 - expected).abs() <= 1.0, "{passed} {expected}");
    }

    #[test]
    fn an_idle_bucket_holds_one_burst() {
        let config = PolicerConfig { rate: Rate::from_mbps(8.0), burst: Bytes::new(3000) };
        let mut policer = Policer::new(config);
        let mut burst_at = |ms| {
            (0..10).filter(|_| policer.passes(Time::from_millis(ms), Bytes::new(1000))).count()
        };
        assert_eq!(burst_at(0), 3);
        assert_eq!(burst_at(1), 1);
        assert_eq!(burst_at(100_000), 3);
        assert!(!policer.passes(Time::from_millis(200_000), Bytes::new(3001)));
    }
}
