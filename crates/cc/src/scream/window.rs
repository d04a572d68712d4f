//! The reference window: how it falls and grows ("Reference Window Update").

use trimtab_units::{Bytes, Duration, Time};

use super::delay::Delay;
use super::knobs::Values;
use super::{Scream, VIRTUAL_RTT};

/// Least window, MIN_REF_WND.
pub(super) const LEAST: Bytes = Bytes::new(3000);
/// Bytes in flight may grow by this before the window has to, BYTES_IN_FLIGHT_HEAD_ROOM.
const FLIGHT: f64 = 1.5;
/// Round trips after congestion in which growth is cautious, POST_CONGESTION_DELAY_RTT.
const CAUTIOUS: u64 = 100;
/// The window of the last congestion is kept for so many round trips.
const INFLECTION: u64 = 10;
/// Least factor by a varying delay, MIN_QUEUE_DELAY_DEV_SCALE.
const STEADY_MIN: f64 = 0.1;
/// Weights of the share of marks, L4S_AVG_G_UP and L4S_AVG_G_DOWN, and how often it is taken.
const MARKS: (f64, f64) = (1.0 / 8.0, 1.0 / 128.0);
const MARKS_EVERY: Duration = Duration::from_millis(10);

/// What congestion shows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Loss,
    Mark,
    /// The average delay is above half of its target.
    Queue,
}

/// The window and what it goes by.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// `ref_wnd`, in bytes.
    pub(super) bytes: f64,
    /// `ref_wnd_i`, where congestion began.
    inflection: f64,
    inflected_at: Option<Time>,
    congested_at: Option<Time>,
    reacted_at: Option<Time>,
    /// Most bytes in flight in this round trip and the one before.
    flight: (Bytes, Bytes),
    round_at: Time,
    lossy_round: bool,
    /// `l4s_alpha`, and packets and marks since it was taken.
    marks: f64,
    counted: (u32, u32),
    marks_at: Option<Time>,
}

impl Window {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self {
            bytes: bytes.as_f64(),
            inflection: 1.0,
            inflected_at: None,
            congested_at: None,
            reacted_at: None,
            flight: (Bytes::ZERO, Bytes::ZERO),
            round_at: Time::ZERO,
            lossy_round: false,
            marks: 0.0,
            counted: (0, 0),
            marks_at: None,
        }
    }

    /// MSS by window, at most 1 (`ref_wnd_ratio`).
    pub(super) fn small(&self, mss: Bytes) -> f64 {
        (mss.as_f64() / self.bytes.max(1.0)).min(1.0)
    }

    pub(super) fn on_sent(&mut self, inflight: Bytes) {
        self.flight.0 = self.flight.0.max(inflight);
    }

    /// Packets were reported, of which so many carry marks; whether a round trip ended with it, and
    /// with losses.
    pub(super) fn on_report(
        &mut self,
        now: Time,
        srtt: Duration,
        packets: u32,
        marked: u32,
    ) -> Option<bool> {
        self.counted.0 = self.counted.0.saturating_add(packets);
        self.counted.1 = self.counted.1.saturating_add(marked);
        let every = MARKS_EVERY.min(srtt);
        if self.counted.0 > 0 && self.marks_at.is_none_or(|at| now.since(at) >= every) {
            // Fast attack, slow decay.
            let share = f64::from(self.counted.1) / f64::from(self.counted.0);
            let up = MARKS.0 * share + (1.0 - MARKS.0) * self.marks;
            self.marks = if share >= self.marks { up } else { (1.0 - MARKS.1) * self.marks };
            (self.counted, self.marks_at) = ((0, 0), Some(now));
        }
        if now.since(self.round_at) < srtt {
            return None;
        }
        self.round_at = now;
        self.flight = (Bytes::ZERO, self.flight.0);
        Some(core::mem::take(&mut self.lossy_round))
    }

    /// Whether a packet that left then tells of other congestion than the last reduction answered:
    /// a loss or a mark reduces once in a round trip.
    pub(super) fn is_news(&self, sent_at: Time) -> bool {
        self.reacted_at.is_none_or(|at| sent_at > at)
    }

    /// How far the window is from where congestion began, 0.1 to 1 (`scl_t`).
    fn distance(&self) -> f64 {
        let off = 8.0 * (self.bytes - self.inflection) / self.inflection;
        (off * off).clamp(0.1, 1.0)
    }

    /// "Reference Window Reduction". Whether the window fell.
    pub(super) fn reduce(
        &mut self,
        sign: Sign,
        now: Time,
        srtt: Duration,
        delay: &Delay,
        mss: Bytes,
        values: &Values,
    ) -> bool {
        if sign != Sign::Queue {
            self.congested_at = Some(now);
            self.lossy_round |= sign == Sign::Loss;
        }
        let distance = self.distance();
        let since = self.reacted_at.map(|at| now.since(at));
        if since.is_some_and(|since| since < VIRTUAL_RTT.min(srtt)) {
            return false;
        }
        if self.inflected_at.is_none_or(|at| now.since(at) > srtt * INFLECTION) {
            self.inflected_at = Some(now);
            self.inflection = self.bytes.max(1.0);
        }
        // By round trips longer than the virtual one there are several reductions in each.
        let often = srtt.ratio(VIRTUAL_RTT).max(1.0);
        self.bytes *= match sign {
            Sign::Loss => values.beta_loss,
            Sign::Mark if !values.l4s => values.beta_ecn,
            Sign::Mark => {
                let mut less = self.marks / 2.0 / often;
                if delay.is_small() {
                    let steady = delay.steadiness(self.small(mss)).max(STEADY_MIN);
                    less *= distance.max(0.25) * steady;
                }
                let long = VIRTUAL_RTT.max(srtt) * CAUTIOUS;
                if since.is_some_and(|since| since > long) && !self.flight.1.is_zero() {
                    self.bytes = self.bytes.min(self.flight.1.as_f64());
                }
                1.0 - less
            }
            Sign::Queue => 1.0 - delay.excess() / 2.0 / often,
        };
        self.bytes = self.bytes.max(LEAST.as_f64());
        self.reacted_at = Some(now);
        true
    }

    /// "Reference Window Increase", by bytes that arrived without a mark.
    pub(super) fn grow(
        &mut self,
        arrived: Bytes,
        now: Time,
        srtt: Duration,
        delay: &Delay,
        mss: Bytes,
        values: &Values,
    ) {
        let (distance, small) = (self.distance(), self.small(mss));
        let cautious = (VIRTUAL_RTT.max(srtt) * CAUTIOUS).as_secs_f64();
        let calm = self.congested_at.unwrap_or(Time::ZERO);
        let calm = (now.since(calm).as_secs_f64() / cautious).min(1.0);
        let steady = delay.steadiness(small).max(STEADY_MIN);
        let mut more = arrived.as_f64() * small * srtt.ratio(VIRTUAL_RTT).min(1.0);
        more *= distance.max(0.25) * steady;
        more *= 1.0 + values.growth * self.bytes / mss.as_f64() * calm * distance;
        // What is not in flight shows nothing of a larger window.
        let most = mss.as_f64() + FLIGHT * self.flight.0.max(self.flight.1).as_f64();
        if self.bytes + more <= most {
            self.bytes += more;
        }
    }
}

impl Scream {
    /// The least window of the transport and of the draft.
    pub(super) fn least(&self) -> Bytes {
        LEAST.max(self.config.min_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1000);
    const RTT: Duration = Duration::from_millis(50);

    fn window(packets: u64) -> (Window, Delay, Values) {
        let values = Values::default();
        let mut window = Window::new(MSS * packets);
        window.on_sent(MSS * packets);
        (window, Delay::new(&values), values)
    }

    /// A window of 20 packets grows by a packet in a round trip, and by 2% of itself where
    /// congestion is long ago: 20 packets' bytes · 1/20 · (1 + 0.02 · 20) = 1.4 packets.
    #[test]
    fn growth_is_a_packet_and_two_percent_in_a_round_trip() {
        let (mut early, delay, values) = window(20);
        early.grow(MSS * 20, Time::ZERO, RTT, &delay, MSS, &values);
        assert!((early.bytes - 21_000.0).abs() < 1e-6, "{}", early.bytes);
        let (mut late, ..) = window(20);
        late.grow(MSS * 20, Time::from_secs(5), RTT, &delay, MSS, &values);
        assert!((late.bytes - 21_400.0).abs() < 1e-6, "{}", late.bytes);
    }

    /// 0.7 after a loss, 0.8 after a mark, not again within a virtual round trip; the draft's
    /// least.
    #[test]
    fn losses_and_marks_leave_their_shares() {
        let (mut w, delay, values) = window(20);
        let at = Time::from_millis;
        assert!(w.reduce(Sign::Loss, at(1000), RTT, &delay, MSS, &values));
        assert!((w.bytes - 14_000.0).abs() < 1e-6);
        assert!(!w.reduce(Sign::Mark, at(1024), RTT, &delay, MSS, &values));
        assert!(w.reduce(Sign::Mark, at(1025), RTT, &delay, MSS, &values));
        assert!((w.bytes - 11_200.0).abs() < 1e-6);
        for i in 0..20 {
            w.reduce(Sign::Loss, at(2000 + 50 * i), RTT, &delay, MSS, &values);
        }
        assert_eq!(w.bytes, 3000.0);
        assert!(!w.is_news(at(2950)) && w.is_news(at(2951)));
    }

    /// An application that uses 5 packets of 20 lets the window stay: 1 + 1.5 · 5 is less.
    #[test]
    fn what_is_not_used_does_not_grow() {
        let (mut w, delay, values) = window(20);
        w.flight = (MSS * 5, MSS * 5);
        w.grow(MSS * 20, Time::ZERO, RTT, &delay, MSS, &values);
        assert_eq!(w.bytes, 20_000.0);
    }

    /// L4S: an eighth of the share of marks, and half of that less over a virtual round trip.
    #[test]
    fn marks_of_l4s_count_by_their_share() {
        let (mut w, mut delay, mut values) = window(20);
        values.set(crate::Knob::place(Values::KNOBS, "l4s"), 1.0);
        // A queue of 20 ms is not small.
        delay.add(Time::ZERO, Duration::from_millis(20), RTT, 0.05, &values);
        w.on_report(Time::from_millis(100), VIRTUAL_RTT, 10, 5);
        assert!((w.marks - 0.0625).abs() < 1e-12);
        w.reduce(Sign::Mark, Time::from_millis(100), VIRTUAL_RTT, &delay, MSS, &values);
        assert!((w.bytes - 20_000.0 * (1.0 - 0.03125)).abs() < 1e-6, "{}", w.bytes);
    }
}
