//! Linux's HyStart: leave slow start on a long train of closely spaced acknowledgements, or when
//! the round-trip time rises.
//!
//! Read first: Ha and Rhee, "Taming the elephants: new TCP slow start" (2011); the constants and
//! the reading of both signs are those of Linux's `net/ipv4/tcp_cubic.c`.
//!
//! The train is a brittle sign: one gap above 2 ms ends it, for the rest of the round. Of Linux 6.18
//! recorded over Mahimahi's links, whose acknowledgements come in bursts of a millisecond, no run left
//! slow start by it, at 12 or 48 Mbit/s. A simulator's clock is too even for that, so the train can be
//! left out (`hystart_detect` 2 in Linux).

use trimtab_units::{Bytes, Duration, Time};

use crate::Ack;
use crate::round::Round;

/// `hystart_low_window`: below this window (in packets) nothing is judged.
const LOW_WINDOW_PACKETS: u64 = 16;
/// `hystart_ack_delta_us`: acknowledgements this close belong to one train.
const ACK_DELTA: Duration = Duration::from_micros(2000);
/// What the sender's own segmentation offload may spread a train by: four bursts of the largest
/// size at the pacing rate, at most 1 ms (`hystart_ack_delay()`). It is 1 ms at every rate below 2
/// Gbit/s, so it is here.
const OFFLOAD_DELAY: Duration = Duration::from_millis(1);
/// `HYSTART_MIN_SAMPLES`.
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const THRESHOLD_MIN: Duration = Duration::from_millis(4);
const THRESHOLD_MAX: Duration = Duration::from_millis(16);

/// The state of HyStart between two timeouts.
#[derive(Clone, Debug)]
pub(crate) struct LinuxHystart {
    /// Whether a train is a sign.
    pub(crate) trains: bool,
    round: Round,
    round_start: Time,
    /// The last acknowledgement of the train.
    last_ack: Time,
    delay_min: Duration,
    current_round_min: Duration,
    samples: u32,
    found: bool,
}

impl LinuxHystart {
    pub(crate) fn new(trains: bool) -> Self {
        Self {
            trains,
            round: Round::default(),
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            delay_min: Duration::MAX,
            current_round_min: Duration::MAX,
            samples: 0,
            found: false,
        }
    }

    /// Judges nothing until the next timeout: slow start is over.
    pub(crate) fn disarm(&mut self) {
        self.found = true;
    }

    /// Takes an acknowledgement in slow start, before the window grows by it. Whether slow start
    /// is over; it reports that once, then not again until a timeout. Rounds end by cumulative
    /// acknowledgement, so none does while `stuck` at a hole.
    pub(crate) fn leaves(&mut self, ack: &Ack, window: Bytes, mss: Bytes, stuck: bool) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        self.delay_min = self.delay_min.min(rtt);
        if self.found {
            return false;
        }
        if !stuck && self.round.ends(ack) {
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.current_round_min = Duration::MAX;
            self.samples = 0;
        }
        if window < mss * LOW_WINDOW_PACKETS {
            return false;
        }
        self.found = (self.trains && self.train_is_long(ack.now)) | self.delay_rose(rtt);
        self.found
    }

    /// `hystart_update()`: a train longer than the path's delay: the window fills the path. (Of a
    /// sender that paces, as our transports do; of one that does not, Linux takes half the delay.)
    fn train_is_long(&mut self, now: Time) -> bool {
        if now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = now;
        now.since(self.round_start) > self.delay_min + OFFLOAD_DELAY
    }

    /// `hystart_update()`: the least delay of the round is above the least ever by a threshold.
    fn delay_rose(&mut self, rtt: Duration) -> bool {
        self.current_round_min = self.current_round_min.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold = (self.delay_min / 8).clamp(THRESHOLD_MIN, THRESHOLD_MAX);
        self.current_round_min > self.delay_min + threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;

    const MSS: Bytes = Bytes::new(1500);
    const WINDOW: Bytes = Bytes::new(20 * 1500);

    #[test]
    fn a_train_longer_than_the_delay_ends_slow_start() {
        // 40 ms and 1 ms of offload after the start of the round.
        let rtt = Duration::from_millis(40);
        let mut h = LinuxHystart::new(true);
        let start = Time::from_millis(40);
        for step in 0..=41 {
            let ack = acked(start + Duration::from_millis(step), Time::ZERO, MSS, rtt);
            assert!(!h.leaves(&ack, WINDOW, MSS, false), "{step} ms into the train");
        }
        assert!(h.leaves(&acked(Time::from_millis(82), Time::ZERO, MSS, rtt), WINDOW, MSS, false));
        assert!(!h.leaves(&acked(Time::from_millis(83), Time::ZERO, MSS, rtt), WINDOW, MSS, false));
    }

    #[test]
    fn a_gap_breaks_the_train_and_a_small_window_is_not_judged() {
        let rtt = Duration::from_millis(40);
        let run = |gap_ms: u64, window: Bytes| {
            let mut h = LinuxHystart::new(true);
            (0..60).any(|i| {
                let now = Time::from_millis(40 + i * gap_ms);
                h.leaves(&acked(now, Time::ZERO, MSS, rtt), window, MSS, false)
            })
        };
        assert!(run(2, WINDOW), "2 ms is still one train");
        assert!(!run(3, WINDOW), "3 ms is not");
        assert!(!run(2, MSS * 15), "below 16 packets nothing is judged");
    }

    #[test]
    fn a_risen_delay_ends_slow_start_after_eight_samples() {
        let mut h = LinuxHystart::new(true);
        let ms = Duration::from_millis;
        h.leaves(&acked(Time::from_millis(80), Time::ZERO, MSS, ms(80)), WINDOW, MSS, false);
        // 80 ms / 8 = 10 ms is the threshold, which has to be passed. Acks 3 ms apart: no train.
        let leaves_at = |rtt: Duration, base: u64| {
            let mut h = h.clone();
            (0..12).position(|i| {
                let now = Time::from_millis(base + 3 * i);
                h.leaves(&acked(now, Time::from_millis(81), MSS, rtt), WINDOW, MSS, false)
            })
        };
        assert_eq!(leaves_at(ms(91), 200), Some(8), "the ninth, as Linux counts");
        assert_eq!(leaves_at(ms(90), 200), None);
    }

    /// `hystart_update()`: the train begins anew with each round, and its length is the path's
    /// least delay and what offload may add.
    #[test]
    fn a_train_is_measured_from_the_start_of_its_round() {
        let rtt = Duration::from_millis(40);
        let mut h = LinuxHystart::new(true);
        // Each acknowledgement is of a packet sent after the round began: every one starts a round.
        for step in 0..200u64 {
            let now = Time::from_millis(40 + step);
            let ack = acked(now, now - Duration::from_nanos(1), MSS, rtt);
            assert!(!h.leaves(&ack, WINDOW, MSS, false), "{step} ms");
        }
        // At a hole no round ends, so that the train grows.
        let stuck = (200..300u64).position(|step| {
            let now = Time::from_millis(40 + step);
            h.leaves(&acked(now, now - Duration::from_nanos(1), MSS, rtt), WINDOW, MSS, true)
        });
        assert_eq!(stuck, Some(42 - 1), "41 ms after the last round began, at 239 ms");
    }

    /// `hystart_detect` 2: only the delay is a sign.
    #[test]
    fn without_trains_only_the_delay_counts() {
        let rtt = Duration::from_millis(40);
        let mut h = LinuxHystart::new(false);
        for step in 0..200 {
            let ack = acked(Time::from_millis(40 + step), Time::ZERO, MSS, rtt);
            assert!(!h.leaves(&ack, WINDOW, MSS, false));
        }
        assert!(!h.leaves(
            &Ack { rtt: None, ..acked(Time::from_millis(300), Time::ZERO, MSS, rtt) },
            WINDOW,
            MSS,
            false
        ));
    }

    /// After a hand-over slow start is over, whatever the delay does; the minimum still follows.
    #[test]
    fn what_is_disarmed_says_nothing() {
        let mut h = LinuxHystart::new(true);
        h.disarm();
        for (step, rtt) in [(0, 40), (1, 30), (2, 400), (100, 900)] {
            let rtt = Duration::from_millis(rtt);
            let ack = acked(Time::from_millis(40 + step), Time::ZERO, MSS, rtt);
            assert!(!h.leaves(&ack, WINDOW, MSS, false));
        }
        assert_eq!(h.delay_min, Duration::from_millis(30));
    }

    /// `hystart_delay_thresh`: an eighth of the least delay, within 4 and 16 ms; to be passed.
    #[test]
    fn the_delay_threshold_is_an_eighth_within_4_and_16_ms() {
        let us = Duration::from_micros;
        for (base, threshold) in
            [(10_000, 4000), (40_000, 5000), (128_000, 16_000), (300_000, 16_000)]
        {
            let rises = |more: u64| {
                let mut h = LinuxHystart::new(false);
                h.leaves(
                    &acked(Time::from_millis(500), Time::ZERO, MSS, us(base)),
                    WINDOW,
                    MSS,
                    false,
                );
                (0..20).any(|i| {
                    let (now, sent) = (Time::from_millis(900 + i), Time::from_millis(501));
                    h.leaves(&acked(now, sent, MSS, us(base + more)), WINDOW, MSS, false)
                })
            };
            assert!(!rises(threshold), "{base} us");
            assert!(rises(threshold + 1), "{base} us");
        }
    }
}
