//! The growth of Linux's CUBIC: the same curve in whole packets and clock ticks.
//!
//! Read first: RFC 9438, then `net/ipv4/tcp_cubic.c` of Linux 6. What differs from the RFC, and
//! shows in throughput and queue:
//! * The window is whole packets. The curve says after how many acknowledged packets it grows by
//!   one (`cnt`), which is worked out at most once per tick, and at least 2 (the RFC's 1.5 × window
//!   per round trip).
//! * Time runs in ticks of 4 ms (`HZ` 250, what most distributions build) and steps of 1/1024 s;
//!   the curve is read one minimum round-trip time ahead, not one smoothed one.
//! * Reno's estimate grows by 1 packet per `window × 15/8` acknowledged for ever: the RFC's α = 1
//!   beyond the former window is not there. It bounds `cnt` and does not set the window.
//! * After a timeout or without a loss so far, the window grows by at least 5% per round trip.
//! * After a pause the curve is moved by the time since the last packet was sent, and never while
//!   the application merely sends less than the window.

use libm::cbrt;
use trimtab_units::{Bytes, Duration, Time};

use super::Tuning;
use crate::window::{WINDOW_MAX, Window};

/// Nanoseconds of a clock tick (`1/HZ`).
const TICK_NS: u64 = 4_000_000;
/// Ticks per second (`HZ`).
const HZ: u64 = 250;
/// The curve's own clock has `2^10` steps per second (`BICTCP_HZ`).
const STEP_SHIFT: u32 = 10;
/// The curve is read again after this many ticks although the window stands (`HZ / 32` in
/// `bictcp_update()`).
const REFRESH_TICKS: u64 = HZ / 32;
/// Without a loss so far, one packet per this many acknowledged at least: 5% per round trip
/// (`bictcp_update()`, "slow start and low utilization").
const CNT_MAX_BEFORE_LOSS: u64 = 20;
/// The window grows by half of what is acknowledged at most (`bictcp_update()`).
const CNT_MIN: u64 = 2;
/// For so long after the start of an epoch round-trip times are no minimum candidates: the queue
/// may still be what recovery left (`cubictcp_acked()`).
const SETTLE_TICKS: u64 = HZ;

/// What Linux's CUBIC remembers; all windows in packets.
#[derive(Clone, Debug)]
pub(crate) struct LinuxCurve {
    /// Acknowledged packets per packet of growth.
    cnt: u64,
    /// Acknowledged packets not yet used for growth.
    credit: u64,
    /// Acknowledged bytes that are not yet a packet.
    part: Bytes,
    /// The window at the last loss, after fast convergence; 0 when there was none.
    last_max: u64,
    /// Window and tick when `cnt` was last worked out.
    last_window: u64,
    last_tick: u64,
    origin: u64,
    /// Steps of the curve's clock from the start of the epoch to its plateau.
    k: u64,
    delay_min: Option<Duration>,
    /// The tick at which the epoch started.
    epoch: Option<u64>,
    /// Acknowledged packets not yet used by Reno's estimate.
    reno_credit: u64,
    reno_window: u64,
    last_sent: Time,
}

fn tick(now: Time) -> u64 {
    now.as_nanos() / TICK_NS
}

impl LinuxCurve {
    pub(crate) fn new() -> Self {
        Self {
            cnt: 0,
            credit: 0,
            part: Bytes::ZERO,
            last_max: 0,
            last_window: 0,
            last_tick: 0,
            origin: 0,
            k: 0,
            delay_min: None,
            epoch: None,
            reno_credit: 0,
            reno_window: 0,
            last_sent: Time::ZERO,
        }
    }

    /// After a timeout nothing is known but when the last packet left (`cubictcp_state()`,
    /// `bictcp_reset()`).
    pub(super) fn reset(&mut self) {
        *self = Self { last_sent: self.last_sent, ..Self::new() };
    }

    /// Goes on from another algorithm's window, in packets: the plateau is there.
    pub(crate) fn take_over(&mut self, window: u64, min_rtt: Duration) {
        *self = Self {
            last_max: window,
            delay_min: Some(min_rtt),
            last_sent: self.last_sent,
            ..Self::new()
        };
    }

    /// A packet leaves; when nothing else is in flight, the pause since the last one moves the
    /// epoch (`cubictcp_cwnd_event()`, `CA_EVENT_TX_START`).
    pub(crate) fn on_sent(&mut self, now: Time, starts: bool) {
        if let (true, Some(epoch)) = (starts, self.epoch) {
            let now_tick = tick(now);
            let pause = now_tick.saturating_sub(tick(self.last_sent));
            self.epoch = Some((epoch + pause).min(now_tick));
        }
        self.last_sent = now;
    }

    /// A round-trip time was measured (`cubictcp_acked()`).
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let settling = self.epoch.is_some_and(|e| tick(now).saturating_sub(e) < SETTLE_TICKS);
        if !settling {
            self.delay_min = Some(self.delay_min.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// A reduction: gives the new threshold (`cubictcp_recalc_ssthresh()`).
    pub(crate) fn on_loss(&mut self, window: &Window, tuning: &Tuning) -> Bytes {
        let cwnd = window.size.get() / window.mss.get();
        let beta = scaled(tuning.values.beta);
        self.epoch = None;
        self.last_max = if tuning.values.fast_convergence && cwnd < self.last_max {
            cwnd * (1024 + beta) / 2048
        } else {
            cwnd
        };
        self.credit = 0;
        window.mss * (cwnd * beta / 1024).max(2)
    }

    /// Grows the window in congestion avoidance (`cubictcp_cong_avoid()`, `tcp_cong_avoid_ai()`).
    pub(crate) fn grow(&mut self, window: &mut Window, acked: Bytes, now: Time, tuning: &Tuning) {
        let mss = window.mss.get();
        self.part += acked.min(WINDOW_MAX);
        let acked = self.part.get() / mss;
        self.part = Bytes::new(self.part.get() % mss);
        let cwnd = window.size.get() / mss;

        self.update(cwnd, acked, tick(now), tuning);

        // Linux first spends credit that a smaller `cnt` now makes sufficient, one packet of it.
        let mut grown = cwnd;
        if self.credit >= self.cnt {
            self.credit = 0;
            grown += 1;
        }
        self.credit += acked;
        if self.credit >= self.cnt {
            grown += self.credit / self.cnt;
            self.credit %= self.cnt;
        }
        window.set(window.mss * grown);
    }

    /// Works out `cnt` (`bictcp_update()`).
    fn update(&mut self, cwnd: u64, acked: u64, now: u64, tuning: &Tuning) {
        self.reno_credit = self.reno_credit.saturating_add(acked);
        let since = now.saturating_sub(self.last_tick);
        let fresh = self.epoch.is_some() && self.cnt != 0;
        if fresh && self.last_window == cwnd && since <= REFRESH_TICKS {
            return;
        }
        if !(fresh && since == 0) {
            self.last_window = cwnd;
            self.last_tick = now;
            self.read_curve(cwnd, acked, now, tuning);
        }
        self.be_friendly(cwnd, tuning);
        self.cnt = self.cnt.max(CNT_MIN);
    }

    fn read_curve(&mut self, cwnd: u64, acked: u64, now: u64, tuning: &Tuning) {
        let scale = scaled(tuning.values.c).max(1);
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.epoch = Some(now);
                self.reno_credit = acked;
                self.reno_window = cwnd;
                // Both in units of the curve's clock: K = 2^10 · cbrt(ΔW / C) (RFC 9438 §4.2, eq.
                // 2).
                self.k = if self.last_max > cwnd {
                    let cubed = (self.last_max - cwnd) as f64 * 1024.0 / scale as f64;
                    (cbrt(cubed) * 1024.0) as u64
                } else {
                    0
                };
                self.origin = self.last_max.max(cwnd);
                now
            }
        };
        let ahead = self.delay_min.map_or(0, |d| d.as_nanos().div_ceil(TICK_NS));
        let t = ((now.saturating_sub(epoch) + ahead) << STEP_SHIFT) / HZ;
        let offset = t.abs_diff(self.k);
        // C·offset³ in packets (RFC 9438 §4.2, eq. 1); saturates after hours, where Linux would
        // wrap.
        let cube = offset.saturating_mul(offset).saturating_mul(offset).saturating_mul(scale);
        let delta = cube >> (10 + 3 * STEP_SHIFT);
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            self.cnt = self.cnt.min(CNT_MAX_BEFORE_LOSS);
        }
    }

    /// No slower than Reno with CUBIC's decrease would be (RFC 9438 §4.3; `tcp_friendliness` in
    /// `bictcp_update()`).
    fn be_friendly(&mut self, cwnd: u64, tuning: &Tuning) {
        let beta = scaled(tuning.values.beta);
        // Eighths of a packet acknowledged per packet of window: Reno's growth is 8/15 for 0.7.
        let eighths = 8 * (1024 + beta) / 3 / (1024 - beta);
        let per_packet = (cwnd * eighths) >> 3;
        if self.reno_credit > per_packet {
            let packets = (self.reno_credit - 1) / per_packet.max(1);
            self.reno_credit -= packets * per_packet;
            self.reno_window = self.reno_window.saturating_add(packets);
        }
        if self.reno_window > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.reno_window - cwnd));
        }
    }

    #[cfg(test)]
    pub(super) fn plateau(&self) -> (u64, u64) {
        (self.last_max, self.k)
    }
}

/// A factor in 1024ths, as Linux's module parameters have it (`BICTCP_BETA_SCALE` of tcp_cubic.c).
fn scaled(factor: f64) -> u64 {
    (factor * 1024.0 + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::cubic::Values;
    use proptest::prelude::*;

    const MSS: u64 = 1500;

    fn tuning() -> Tuning {
        Tuning::derive(Values { beta: 717.0 / 1024.0, ..Values::default() })
    }

    /// A window of so many packets.
    fn window(packets: u64) -> Window {
        let initial_window = Bytes::new(MSS * packets);
        Window::new(&Config { initial_window, ..Config::with_mss(Bytes::new(MSS), 0) })
    }

    /// tcp_cubic.c `cubictcp_recalc_ssthresh()`: in 1/1024, rounded down, at least two packets.
    #[test]
    fn a_loss_leaves_717_of_1024() {
        for (packets, left) in [(100, 70), (99, 69), (10, 7), (3, 2), (2, 2)] {
            let ssthresh = LinuxCurve::new().on_loss(&window(packets), &tuning());
            assert_eq!(ssthresh.get() / MSS, left, "{packets}");
        }
    }

    /// `cubictcp_recalc_ssthresh()`: fast convergence remembers (1024 + 717) / 2048 of a smaller
    /// peak.
    #[test]
    fn a_smaller_peak_is_remembered_smaller_still() {
        let mut curve = LinuxCurve::new();
        curve.on_loss(&window(100), &tuning());
        curve.on_loss(&window(80), &tuning());
        assert_eq!(curve.last_max, 80 * 1741 / 2048);
        curve.on_loss(&window(68), &tuning());
        assert_eq!(curve.last_max, 68, "as large as what was remembered");
        let plain = Tuning::derive(Values { fast_convergence: false, ..Values::default() });
        curve.on_loss(&window(40), &plain);
        assert_eq!(curve.last_max, 40);
    }

    /// `bictcp_update()`: K in 1/1024 s. expected.md §3 has 4.2172 s for a peak of 100 and 0.7 of
    /// it.
    #[test]
    fn the_plateau_is_k_away() {
        for (peak, k) in [(10, 1.9574), (100, 4.2172), (1000, 9.0856)] {
            let mut curve = LinuxCurve::new();
            let low = curve.on_loss(&window(peak), &tuning()).get() / MSS;
            curve.read_curve(low, 1, 1000, &tuning());
            // C is 410/1024 and the window whole packets: K is a little less or more.
            assert!((curve.k as f64 / 1024.0 / k - 1.0).abs() < 0.02, "{peak}: {}", curve.k);
            assert_eq!((curve.origin, curve.epoch), (peak, Some(1000)));
        }
    }

    /// `bictcp_update()`: `cnt` acknowledged packets grow the window by one so that the target is
    /// reached in a round trip; 20 at most before any loss, and hardly any growth at the plateau.
    #[test]
    fn the_count_reaches_the_target_in_a_round_trip() {
        let mut new = LinuxCurve::new();
        new.read_curve(100, 1, 1000, &tuning());
        assert_eq!(new.cnt, 20, "5% in a round trip");
        let mut curve = LinuxCurve { last_max: 100, ..LinuxCurve::new() };
        curve.read_curve(100, 1, 1000, &tuning());
        assert_eq!((curve.k, curve.cnt), (0, 10_000), "at the plateau: a hundred windows");
        // 2 s later (500 ticks of 4 ms): 0.4 × 2³ = 3.2 packets more, 3 of them whole.
        curve.read_curve(100, 1, 1500, &tuning());
        assert_eq!(curve.cnt, 33);
        // 100 ms of round trip are 25 ticks more: 0.4 × 2.1³ = 3.7.
        curve.delay_min = Some(Duration::from_millis(1000));
        curve.read_curve(100, 1, 1500, &tuning());
        assert_eq!(curve.cnt, 10, "0.4 × 3³ = 10.8");
        // 30 packets below the plateau K is 4.216 s. The curve is 0.4 × 4.216³ = 29.99 below it at
        // the start, and 0.4 × 3.216³ = 13.3 a second later; whole packets are 29 and 13.
        let mut below = LinuxCurve { last_max: 100, ..LinuxCurve::new() };
        below.read_curve(70, 1, 1000, &tuning());
        assert_eq!(below.cnt, 70, "a packet, to 71");
        below.read_curve(70, 1, 1000 + 250, &tuning());
        assert_eq!(below.cnt, 70 / 17, "to 87");
    }

    /// `tcp_friendliness`: 8 (1024 + 717) / 3 / (1024 - 717) = 15 eighths of a window for a packet.
    #[test]
    fn reno_grows_by_a_packet_for_15_eighths_of_a_window() {
        let mut curve = LinuxCurve { cnt: 10_000, reno_window: 100, ..LinuxCurve::new() };
        curve.reno_credit = 187;
        curve.be_friendly(100, &tuning());
        assert_eq!((curve.reno_window, curve.cnt), (100, 10_000), "100 × 15 / 8 is 187");
        curve.reno_credit = 188;
        curve.be_friendly(100, &tuning());
        assert_eq!((curve.reno_window, curve.reno_credit), (101, 1));
        assert_eq!(curve.cnt, 100, "a packet in the round trip");
        curve.reno_credit = 1 + 187 * 3;
        curve.be_friendly(100, &tuning());
        assert_eq!((curve.reno_window, curve.cnt), (104, 25), "four of a hundred");
    }

    /// `cubictcp_cwnd_event()`: a pause moves the epoch, but never into the future.
    #[test]
    fn a_pause_moves_the_epoch() {
        let ms = Time::from_millis;
        let mut curve = LinuxCurve { epoch: Some(100), ..LinuxCurve::new() };
        curve.on_sent(ms(1000), false);
        assert_eq!(curve.epoch, Some(100));
        curve.on_sent(ms(1400), false);
        assert_eq!(curve.epoch, Some(100), "something was in flight");
        curve.on_sent(ms(1800), true);
        assert_eq!(curve.epoch, Some(200), "400 ms are 100 ticks");
        curve.epoch = Some(440);
        curve.on_sent(ms(2000), true);
        assert_eq!(curve.epoch, Some(490), "200 ms more");
        curve.on_sent(ms(2040), true);
        assert_eq!(curve.epoch, Some(500));
        curve.on_sent(ms(9000), true);
        assert_eq!(curve.epoch, Some(2240));
    }

    /// `cubictcp_acked()`: for a second after the start of an epoch no sample is a minimum.
    #[test]
    fn the_first_second_of_an_epoch_has_no_minimum() {
        let ms = Duration::from_millis;
        let mut curve = LinuxCurve::new();
        curve.on_rtt(Time::from_millis(500), ms(50));
        curve.epoch = Some(250);
        curve.on_rtt(Time::from_millis(1999), ms(20));
        assert_eq!(curve.delay_min, Some(ms(50)));
        curve.on_rtt(Time::from_millis(2000), ms(30));
        assert_eq!(curve.delay_min, Some(ms(30)));
        curve.on_rtt(Time::from_millis(2100), ms(40));
        assert_eq!(curve.delay_min, Some(ms(30)));
    }

    #[test]
    fn a_timeout_forgets_all_but_when_the_last_packet_left() {
        let mut curve = LinuxCurve::new();
        curve.on_sent(Time::from_millis(800), false);
        curve.on_loss(&window(100), &tuning());
        curve.on_rtt(Time::from_millis(900), Duration::from_millis(20));
        curve.reset();
        assert_eq!((curve.last_max, curve.delay_min, curve.cnt), (0, None, 0));
        assert_eq!(curve.last_sent, Time::from_millis(800));
        curve.take_over(84, Duration::from_millis(30));
        assert_eq!((curve.last_max, curve.delay_min), (84, Some(Duration::from_millis(30))));
        assert_eq!(curve.last_sent, Time::from_millis(800));
    }

    proptest! {
        /// The window is always whole packets and grows by at most one for two acknowledged
        /// (`cnt` ≥ 2), however acknowledgements cut the bytes.
        #[test]
        fn at_most_one_packet_for_two_acknowledged(
            packets in 2u64..500,
            steps in prop::collection::vec((0u64..50_000, 1u64..9000), 1..200),
        ) {
            let mut curve = LinuxCurve::new();
            let mut window = window(packets);
            let (mut now, mut acked) = (Time::from_secs(1), 0);
            for (us, bytes) in steps {
                now += Duration::from_micros(us);
                acked += bytes;
                let before = window.size;
                curve.grow(&mut window, Bytes::new(bytes), now, &tuning());
                prop_assert!(window.size >= before);
                prop_assert_eq!(window.size.get() % MSS, 0);
            }
            let grown = window.size.get() / MSS - packets;
            prop_assert!(grown <= acked / MSS / 2 + 1, "{} of {}", grown, acked / MSS);
        }
    }
}
