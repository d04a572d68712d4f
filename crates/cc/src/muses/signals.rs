//! The seven signals of Table I, in whole numbers.

use trimtab_units::{Bytes, Duration};

use super::log2::log2;
use crate::{Ack, Sent};

/// How many signals there are (Muses Table I).
pub const SIGNALS: usize = 7;
/// Their names, in the order of a [`State`].
pub const SIGNAL_NAMES: [&str; SIGNALS] =
    ["srtt", "qdelay", "min_rtt", "srate", "drate", "loss", "cwnd"];

/// What a policy sees at the end of a control interval: one vector of whole numbers for all who look at it. A
/// tree compares them with thresholds, the kernel's too; an LSTM divides them by 1024; the projection by which a
/// tree is chosen multiplies them in fixed point.
///
/// | signal | what it is, and its scale |
/// |---|---|
/// | srtt | smoothed round-trip time: 256·log2(1 + microseconds) |
/// | qdelay | queueing delay over the minimum round-trip time: 256·log2(1 + 16·ratio) |
/// | `min_rtt` | lowest round-trip time of the connection: as srtt |
/// | srate | rate at which packets left over the last round trip: 256·log2(1 + bytes per second) |
/// | drate | rate at which they arrived: as srate |
/// | loss | 1 − received / sent in the last interval, within 0 and 1: times 1024 |
/// | cwnd | window: 256·log2(1 + packets·1024) |
///
/// Times, rates and windows span decades, and the actions multiply: equal steps of the logarithm are equal
/// ratios. The paper does not give its scaling.
pub type State = [i16; SIGNALS];

/// An interval that lost everything.
const LOSS_ONE: u64 = 1024;
/// Parts of one in which the ratio of queueing delay and minimum round-trip time is kept.
const RATIO_ONE: u64 = 1024;
/// A ratio of one sixteenth in these parts: the logarithm bends there.
const RATIO_KNEE: u64 = RATIO_ONE / 16;
/// A round-trip time is at least this: rates stay finite on a link without delay.
const RTT_FLOOR: Duration = Duration::from_micros(1);
/// The largest value that is smoothed, so that sums cannot overflow (a petabyte per second).
const VALUE_MAX: u64 = 1 << 50;

/// A moving average, kept times eight as Linux keeps its round-trip time. A sample weighs so many
/// eighths, the first is taken whole. The paper does not give its weight.
#[derive(Clone, Copy, Debug, Default)]
struct Smooth {
    eightfold: u64,
    is_set: bool,
}

impl Smooth {
    fn update(&mut self, sample: u64, eighths: u64) {
        let sample = sample.min(VALUE_MAX);
        if self.is_set {
            self.eightfold = self.eightfold - self.eightfold / 8 * eighths + sample * eighths;
        } else {
            *self = Self { eightfold: sample * 8, is_set: true };
        }
    }

    fn get(self) -> u64 {
        self.eightfold / 8
    }
}

/// How much the samples of an acknowledgement weigh, in eighths: as much as it acknowledges of what
/// was in flight, and one at least. An average then spans about a round trip at most, however few
/// packets the window has. With one eighth always, a window of four packets was multiplied eight
/// times before its average showed what came of the first time, and swung.
fn weight(ack: &Ack) -> u64 {
    let window = ack.prior_inflight.get().clamp(1, VALUE_MAX);
    ((8 * ack.acked.get().min(VALUE_MAX) + window / 2) / window).clamp(1, 8)
}

/// What is measured between the ends of control intervals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    srtt_us: Smooth,
    queue_ratio: Smooth,
    min_rtt_us: u64,
    send_rate: Smooth,
    delivery_rate: Smooth,
    /// Of the interval.
    sent: Bytes,
    received: Bytes,
}

impl Signals {
    /// A packet left.
    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        self.sent += sent.bytes;
    }

    /// Data was acknowledged.
    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        self.received += ack.acked;
        let weight = weight(ack);
        let min_rtt = ack.min_rtt.max(RTT_FLOOR);
        self.min_rtt_us = min_rtt.as_micros().max(1);
        if let Some(rtt) = ack.rtt {
            let us = rtt.as_micros();
            self.srtt_us.update(us, weight);
            let queued = us.saturating_sub(self.min_rtt_us).min(VALUE_MAX / RATIO_ONE);
            self.queue_ratio.update(queued * RATIO_ONE / self.min_rtt_us, weight);
        }
        if let Some(sample) = &ack.rate {
            self.delivery_rate.update(sample.rate().bytes_per_sec(), weight);
            // What left since the sampled packet did: the kernel has the same from `rate_sample.last_end_seq`.
            let since = sample.delivered + ack.inflight + sample.lost - sample.tx_in_flight;
            let rate = since / ack.rtt.unwrap_or(ack.srtt).max(RTT_FLOOR);
            self.send_rate.update(rate.bytes_per_sec(), weight);
        }
    }

    /// The state at the end of an interval (Muses Table I), with the window in 1/1024 of a packet;
    /// the next interval begins.
    pub(crate) fn end_interval(&mut self, cwnd: u64) -> State {
        let (sent, received) = (self.sent.get(), self.received.get());
        // More may arrive than left: what left before.
        let lost = sent.saturating_sub(received).min(VALUE_MAX);
        let loss = (lost * LOSS_ONE).checked_div(sent.min(VALUE_MAX)).unwrap_or(0).min(LOSS_ONE);
        self.sent = Bytes::ZERO;
        self.received = Bytes::ZERO;
        [
            log2(self.srtt_us.get()),
            log2(self.queue_ratio.get() + RATIO_KNEE - 1) - log2(RATIO_KNEE - 1),
            log2(self.min_rtt_us),
            log2(self.send_rate.get()),
            log2(self.delivery_rate.get()),
            loss as i16,
            log2(cwnd),
        ]
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::{Rate, Time};

    use super::*;
    use crate::RateSample;
    use crate::testing::acked;

    const PACKET: Bytes = Bytes::new(1500);

    fn ack(rtt_ms: u64, min_ms: u64) -> Ack {
        let ms = Duration::from_millis;
        let now = Time::from_millis(500);
        Ack { min_rtt: ms(min_ms), ..acked(now, now, PACKET, ms(rtt_ms)) }
    }

    fn scaled(x: f64) -> i16 {
        (256.0 * libm::log2(x)) as i16
    }

    #[test]
    fn a_steady_flow_shows_its_delays() {
        let mut signals = Signals::default();
        for _ in 0..100 {
            signals.on_ack(&ack(60, 40));
        }
        let state = signals.end_interval(10 * 1024);
        // A queue of half the minimum: 1 + 16 * 0.5.
        let expected = [scaled(60_001.0), scaled(9.0), scaled(40_001.0), 0, 0, 0, scaled(10_241.0)];
        for (i, (got, want)) in state.iter().zip(expected).enumerate() {
            assert!((got - want).abs() <= 1, "{}: {got} for {want}", SIGNAL_NAMES[i]);
        }
    }

    #[test]
    fn rates_are_those_of_the_sampled_packet() {
        // 20 packets arrived in 20 ms, and 40 have left since the sampled one did, 40 ms ago.
        let sample = RateSample {
            delivered: PACKET * 20,
            interval: Duration::from_millis(20),
            prior_delivered: Bytes::ZERO,
            app_limited: false,
            tx_in_flight: PACKET * 20,
            lost: PACKET * 5,
        };
        let mut signals = Signals::default();
        signals.on_ack(&Ack { rate: Some(sample), inflight: PACKET * 35, ..ack(40, 40) });
        let state = signals.end_interval(0);
        let rate = Rate::from_bytes_per_sec(1_500_000);
        assert_eq!(state[4], log2(rate.bytes_per_sec()), "delivery");
        assert_eq!(state[3], log2(rate.bytes_per_sec()), "sending");
    }

    #[test]
    fn an_average_spans_a_round_trip_at_most() {
        let mut smooth = Smooth::default();
        smooth.update(800, 1);
        assert_eq!(smooth.get(), 800, "the first is taken whole");
        smooth.update(1600, 1);
        assert_eq!(smooth.get(), 900);
        smooth.update(1700, 4);
        assert_eq!(smooth.get(), 1300);
        smooth.update(700, 8);
        assert_eq!(smooth.get(), 700);
        smooth.update(u64::MAX, 1);
        assert_eq!(smooth.get(), 612 + VALUE_MAX / 8);
        let of = |acked: u64, window: u64| {
            let (acked, prior_inflight) = (PACKET * acked, PACKET * window);
            weight(&Ack { acked, prior_inflight, ..ack(40, 40) })
        };
        assert_eq!([of(2, 100), of(2, 16), of(2, 9), of(2, 6), of(2, 4)], [1, 1, 2, 3, 4]);
        assert_eq!([of(2, 2), of(1, 0), of(0, 10), of(u64::MAX >> 12, 1)], [8, 8, 1, 8]);
    }

    #[test]
    fn loss_is_that_of_the_interval_and_never_negative() {
        let mut signals = Signals::default();
        let sent = |packets: u64| Sent {
            now: Time::ZERO,
            bytes: PACKET * packets,
            inflight: PACKET,
            app_limited: false,
        };
        signals.on_sent(&sent(4));
        signals.on_ack(&ack(40, 40));
        assert_eq!(signals.end_interval(0)[5], 768, "3 of 4 are missing");
        signals.on_ack(&ack(40, 40));
        assert_eq!(signals.end_interval(0)[5], 0, "nothing left");
        signals.on_sent(&sent(1));
        for _ in 0..3 {
            signals.on_ack(&ack(40, 40));
        }
        assert_eq!(signals.end_interval(0)[5], 0, "more arrived than left");
    }
}
