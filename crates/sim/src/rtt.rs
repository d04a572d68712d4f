//! Round-trip time estimation (RFC 6298 §2, RFC 9002 §5) and the timeouts made from it.

use trimtab_units::{Duration, Time};

use crate::transport::LossDetection;

/// RFC 9002 §6.1.2: `kGranularity`.
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 9002 §6.2.2: `kInitialRtt`.
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Linux: `TCP_RTO_MIN`, the floor of the variation term of the RTO.
const RTO_MIN: Duration = Duration::from_millis(200);

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    min: Duration,
    first_sample_at: Option<Time>,
}

impl RttEstimator {
    pub(crate) fn new() -> Self {
        Self {
            latest: INITIAL_RTT,
            smoothed: INITIAL_RTT,
            variation: INITIAL_RTT / 2,
            min: Duration::MAX,
            first_sample_at: None,
        }
    }

    /// Takes a sample. `ack_delay` is what the peer says it waited; zero where it says nothing.
    pub(crate) fn sample(&mut self, now: Time, rtt: Duration, ack_delay: Duration) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
        if self.first_sample_at.is_none() {
            self.first_sample_at = Some(now);
            self.smoothed = rtt;
            self.variation = rtt / 2;
            return;
        }
        // RFC 9002 §5.3: the peer's delay counts only as far as the minimum allows.
        let adjusted = if rtt >= self.min + ack_delay { rtt - ack_delay } else { rtt };
        let deviation = self.smoothed.abs_diff(adjusted);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Lowers the minimum only: TCP's newest segment gives a better bound than its smoothed sample.
    pub(crate) fn sample_min(&mut self, rtt: Duration) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
    }

    /// The newest sample.
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// The smoothed round-trip time; 333 ms before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The lowest sample; the initial value before the first.
    pub(crate) fn min(&self) -> Duration {
        if self.min == Duration::MAX { INITIAL_RTT } else { self.min }
    }

    /// When the first sample was taken.
    pub(crate) fn first_sample_at(&self) -> Option<Time> {
        self.first_sample_at
    }

    /// Base of the probe or retransmission timeout, without back-off.
    pub(crate) fn timeout(&self, detection: LossDetection, max_ack_delay: Duration) -> Duration {
        let spread = self.variation * 4;
        match detection {
            // RFC 9002 §6.2.1.
            LossDetection::Rfc9002 => self.smoothed + spread.max(GRANULARITY) + max_ack_delay,
            // RFC 6298 §2.3 with Linux's floor.
            LossDetection::RackTlp => self.smoothed + spread.max(RTO_MIN),
        }
    }

    /// RFC 9002 §6.1.2: how long after its sending a packet is lost when later ones have arrived.
    pub(crate) fn time_threshold(&self) -> Duration {
        (self.smoothed.max(self.latest) * 9 / 8).max(GRANULARITY)
    }

    /// RFC 8985 §6.2 step 4: the reordering window while no recovery goes on.
    pub(crate) fn reordering_window(&self) -> Duration {
        (self.min() / 4).min(self.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_6298_by_hand() {
        let mut rtt = RttEstimator::new();
        rtt.sample(Time::ZERO, Duration::from_millis(100), Duration::ZERO);
        assert_eq!(
            (rtt.smoothed, rtt.variation),
            (Duration::from_millis(100), Duration::from_millis(50))
        );
        rtt.sample(Time::ZERO, Duration::from_millis(180), Duration::ZERO);
        // RTTVAR = 3/4 * 50 + 1/4 * 80, SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(rtt.variation, Duration::from_micros(57_500));
        assert_eq!(rtt.smoothed, Duration::from_millis(110));
        let quic = rtt.timeout(LossDetection::Rfc9002, Duration::from_millis(25));
        assert_eq!(quic, Duration::from_millis(110 + 230 + 25));
        assert_eq!(rtt.timeout(LossDetection::RackTlp, Duration::ZERO), Duration::from_millis(340));
    }

    /// RFC 8985 §6.2: a quarter of the minimum, however small the variation; used to be an eighth of
    /// the smoothed one, because Linux stores that eightfold.
    #[test]
    fn reordering_may_take_a_quarter_of_the_minimum() {
        let mut rtt = RttEstimator::new();
        rtt.sample(Time::ZERO, Duration::from_millis(100), Duration::ZERO);
        assert_eq!(rtt.reordering_window(), Duration::from_millis(25));
        rtt.sample(Time::ZERO, Duration::from_millis(300), Duration::ZERO);
        assert_eq!(rtt.reordering_window(), Duration::from_millis(25));
    }

    #[test]
    fn the_peers_delay_never_goes_below_the_minimum() {
        let mut rtt = RttEstimator::new();
        let ms = Duration::from_millis;
        rtt.sample(Time::ZERO, ms(100), Duration::ZERO);
        rtt.sample(Time::ZERO, ms(110), ms(25));
        assert_eq!(rtt.smoothed, Duration::from_micros(101_250), "110 - 25 is below the minimum");
        rtt.sample(Time::ZERO, ms(130), ms(25));
        assert_eq!(rtt.smoothed, (Duration::from_micros(101_250) * 7 + ms(105)) / 8);
    }
}
