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
/// The curve is read again after this many ticks although the window stands (`HZ / 32`).
const REFRESH_TICKS: u64 = HZ / 32;
/// Without a loss so far, one packet per this many acknowledged at least: 5% per round trip.
const CNT_MAX_BEFORE_LOSS: u64 = 20;
/// The window grows by half of what is acknowledged at most.
const CNT_MIN: u64 = 2;
/// For so long after the start of an epoch round-trip times are no minimum candidates: the queue
/// may still be what recovery left.
const SETTLE_TICKS: u64 = HZ;

/// What Linux's CUBIC remembers; all windows in packets.
#[derive(Clone, Debug)]
pub(super) struct LinuxCurve {
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
    pub(super) fn new() -> Self {
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

    /// After a timeout nothing is known but when the last packet left.
    pub(super) fn reset(&mut self) {
        *self = Self { last_sent: self.last_sent, ..Self::new() };
    }

    /// Goes on from another algorithm's window, in packets: the plateau is there.
    pub(super) fn take_over(&mut self, window: u64, min_rtt: Duration) {
        *self = Self {
            last_max: window,
            delay_min: Some(min_rtt),
            last_sent: self.last_sent,
            ..Self::new()
        };
    }

    /// A packet leaves; when nothing else is in flight, the pause since the last one moves the
    /// epoch.
    pub(super) fn on_sent(&mut self, now: Time, starts: bool) {
        if let (true, Some(epoch)) = (starts, self.epoch) {
            let now_tick = tick(now);
            let pause = now_tick.saturating_sub(tick(self.last_sent));
            self.epoch = Some((epoch + pause).min(now_tick));
        }
        self.last_sent = now;
    }

    /// A round-trip time was measured.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let settling = self.epoch.is_some_and(|e| tick(now).saturating_sub(e) < SETTLE_TICKS);
        if !settling {
            self.delay_min = Some(self.delay_min.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// A reduction: gives the new threshold.
    pub(super) fn on_loss(&mut self, window: &Window, tuning: &Tuning) -> Bytes {
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

    /// Grows the window in congestion avoidance.
    pub(super) fn grow(&mut self, window: &mut Window, acked: Bytes, now: Time, tuning: &Tuning) {
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

    /// Works out `cnt`.
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
                // Both in units of the curve's clock: K = 2^10 · cbrt(ΔW / C).
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
        // C·offset³ in packets; saturates after hours, where Linux would wrap.
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

    /// No slower than Reno with CUBIC's decrease would be (`tcp_friendliness`).
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

/// A factor in 1024ths, as Linux's module parameters have it.
fn scaled(factor: f64) -> u64 {
    (factor * 1024.0 + 0.5) as u64
}
