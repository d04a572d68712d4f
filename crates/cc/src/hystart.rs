//! HyStart++: leave slow start when the round-trip time rises, before packets are lost.
//!
//! Read first: RFC 9406, whose names the comments use.

use trimtab_units::{Bytes, Duration};

use crate::Ack;
use crate::round::Round;

/// `MIN_RTT_THRESH` and `MAX_RTT_THRESH` (RFC 9406 §4.3).
const THRESHOLD_MIN: Duration = Duration::from_millis(4);
const THRESHOLD_MAX: Duration = Duration::from_millis(16);
/// `MIN_RTT_DIVISOR`.
const RTT_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// `CSS_ROUNDS`.
const CSS_ROUNDS: u32 = 5;
/// `L` of a sender that does not pace: one acknowledgement grows the window by 8 packets at most. For
/// a paced one there is no limit (RFC 9406 §4.3), however few the acknowledgements are.
const GROWTH_MAX_PACKETS: u64 = 8;

/// What slow start does with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Grow the window by this.
    Grow(Bytes),
    /// Slow start is over: the present window becomes the threshold.
    Leave,
}

/// The state of HyStart++ in the first slow start of a connection.
#[derive(Clone, Debug)]
pub(crate) struct HystartPp {
    round: Round,
    last_round_min: Duration,
    current_round_min: Duration,
    samples: u32,
    css: Option<Css>,
    paced: bool,
}

/// Conservative slow start: a quarter of the growth, while it is seen whether the rise stays.
#[derive(Clone, Copy, Debug)]
struct Css {
    baseline_min: Duration,
    rounds: u32,
}

impl HystartPp {
    pub(crate) fn new(paced: bool) -> Self {
        Self {
            round: Round::default(),
            last_round_min: Duration::MAX,
            current_round_min: Duration::MAX,
            samples: 0,
            css: None,
            paced,
        }
    }

    /// Takes an acknowledgement in slow start.
    pub(crate) fn on_ack(&mut self, ack: &Ack, mss: Bytes) -> Verdict {
        if self.round.ends(ack) {
            if let Some(css) = &mut self.css {
                css.rounds += 1; // the partial round of entry counts (RFC 9406 §4.2)
                if css.rounds >= CSS_ROUNDS {
                    return Verdict::Leave;
                }
            }
            self.last_round_min = self.current_round_min;
            self.current_round_min = Duration::MAX;
            self.samples = 0;
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min = self.current_round_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        let most = if self.paced { Bytes::MAX } else { mss * GROWTH_MAX_PACKETS };
        let growth = ack.acked.min(most);
        Verdict::Grow(if self.css.is_some() { growth / CSS_GROWTH_DIVISOR } else { growth })
    }

    /// Enters or leaves conservative slow start on what the round has shown so far.
    fn judge(&mut self) {
        if self.samples < SAMPLES {
            return;
        }
        match self.css {
            None => {
                let known = self.last_round_min != Duration::MAX;
                let threshold = threshold(self.last_round_min);
                if known && self.current_round_min >= self.last_round_min + threshold {
                    self.css = Some(Css { baseline_min: self.current_round_min, rounds: 0 });
                }
            }
            // The rise was a passing one: back to slow start.
            Some(css) if self.current_round_min < css.baseline_min => self.css = None,
            Some(_) => {}
        }
    }
}

/// `RttThresh` (RFC 9406 §4.2).
fn threshold(last_round_min: Duration) -> Duration {
    (last_round_min / RTT_DIVISOR).clamp(THRESHOLD_MIN, THRESHOLD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;
    use trimtab_units::Time;

    const MSS: Bytes = Bytes::new(1500);

    /// One packet-timed round of `n` acknowledgements of one packet each.
    fn round(h: &mut HystartPp, at: &mut Time, n: u64, rtt: Duration) -> std::vec::Vec<Verdict> {
        let sent = *at + Duration::from_nanos(1);
        *at += rtt;
        (0..n).map(|_| h.on_ack(&acked(*at, sent, MSS, rtt), MSS)).collect()
    }

    /// expected.md H1.
    #[test]
    fn threshold_is_an_eighth_within_4_and_16_ms() {
        let ms = Duration::from_millis;
        for (rtt, want) in [(10, 4.0), (32, 4.0), (50, 6.25), (100, 12.5), (128, 16.0), (200, 16.0)]
        {
            assert_eq!(threshold(ms(rtt)), Duration::from_millis_f64(want), "{rtt} ms");
        }
    }

    /// expected.md H2: eight samples are needed, and the full threshold.
    #[test]
    fn conservative_slow_start_needs_eight_samples_at_the_threshold() {
        let us = Duration::from_micros;
        let mut at = Time::from_millis(1);
        let mut h = HystartPp::new(false);
        round(&mut h, &mut at, 10, us(50_000));
        let under = round(&mut h, &mut at, 10, us(56_249));
        assert!(under.iter().all(|v| *v == Verdict::Grow(MSS)), "1 us below the threshold");

        let mut h = HystartPp::new(false);
        round(&mut h, &mut at, 10, us(50_000));
        let over = round(&mut h, &mut at, 10, us(56_250));
        assert_eq!(over[6], Verdict::Grow(MSS), "seven samples");
        assert_eq!(over[7], Verdict::Grow(MSS / 4), "eight samples");
    }

    /// expected.md H3 and H4.
    #[test]
    fn five_conservative_rounds_end_slow_start_and_a_lower_rtt_resumes_it() {
        let ms = Duration::from_millis;
        let mut at = Time::from_millis(1);
        let mut h = HystartPp::new(false);
        round(&mut h, &mut at, 10, ms(50));
        round(&mut h, &mut at, 10, ms(60));
        assert!(h.css.is_some());
        let mut resumed = h.clone();
        let mut after = at;
        round(&mut resumed, &mut after, 10, ms(59));
        assert!(resumed.css.is_none(), "the rise did not last");

        for _ in 0..4 {
            let verdicts = round(&mut h, &mut at, 10, ms(60));
            assert!(verdicts.iter().all(|v| *v == Verdict::Grow(MSS / 4)));
        }
        assert_eq!(round(&mut h, &mut at, 1, ms(60)), [Verdict::Leave]);
    }

    /// expected.md H5, and RFC 9406 §4.3: `L` is 8 without pacing and infinite with it.
    #[test]
    fn one_acknowledgement_grows_the_window_by_eight_packets_at_most_unless_paced() {
        let ack = acked(Time::from_millis(50), Time::ZERO, MSS * 20, Duration::from_millis(50));
        for (paced, want) in [(false, 8), (true, 20)] {
            let mut h = HystartPp::new(paced);
            assert_eq!(h.on_ack(&ack, MSS), Verdict::Grow(MSS * want), "paced: {paced}");
        }
    }

    /// RFC 9406 §4.2 divides growth by 4 in conservative slow start, after the limit of 8 packets.
    #[test]
    fn conservative_growth_is_a_quarter_of_what_slow_start_would_allow() {
        let ms = Duration::from_millis;
        for (paced, packets, want) in [(false, 4, 1), (false, 8, 2), (false, 20, 2), (true, 20, 5)]
        {
            let mut at = Time::from_millis(1);
            let mut h = HystartPp::new(paced);
            round(&mut h, &mut at, 10, ms(50));
            round(&mut h, &mut at, 10, ms(60));
            let ack = acked(at, at - ms(60), MSS * packets, ms(60));
            assert_eq!(h.on_ack(&ack, MSS), Verdict::Grow(MSS * want), "{packets} at once");
        }
    }

    /// RFC 9406 §4.2: the threshold is of the last round's minimum, and rounds without eight
    /// samples are no reason to leave, whatever they show.
    #[test]
    fn each_round_is_judged_against_the_one_before_it() {
        let ms = Duration::from_millis;
        let mut at = Time::from_millis(1);
        let mut h = HystartPp::new(false);
        // 6 ms more in each round: the threshold is an eighth of 50 ms and more, which is above 6
        // ms.
        for rtt in [50, 56, 62, 69, 77] {
            round(&mut h, &mut at, 10, ms(rtt));
            assert!(h.css.is_none(), "{rtt} ms");
        }
        round(&mut h, &mut at, 7, ms(200));
        assert!(h.css.is_none(), "seven samples");
        round(&mut h, &mut at, 8, ms(216));
        assert!(h.css.is_some(), "16 ms more than those seven, which is the highest threshold");
    }

    /// Samples of what was sent again are none (Karn): they neither count nor lower the minimum.
    #[test]
    fn an_acknowledgement_without_a_sample_judges_nothing() {
        let ms = Duration::from_millis;
        let mut at = Time::from_millis(1);
        let mut h = HystartPp::new(false);
        round(&mut h, &mut at, 10, ms(50));
        let sent = at + Duration::from_nanos(1);
        at += ms(60);
        for _ in 0..20 {
            let ack = Ack { rtt: None, ..acked(at, sent, MSS, ms(60)) };
            assert_eq!(h.on_ack(&ack, MSS), Verdict::Grow(MSS));
        }
        assert_eq!((h.samples, h.css.is_some()), (0, false));
    }
}
