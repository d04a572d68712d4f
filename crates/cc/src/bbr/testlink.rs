//! A bottleneck for the tests of both versions: one flow, a constant rate, droptail, and delivery
//! rate samples as in draft-cheng-iccrg-delivery-rate-estimation. Nothing of it is in the library.

use std::collections::VecDeque;
use std::vec::Vec;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::testing::acked;
use crate::{Ack, CongestionControl, Loss, LostPacket, RateSample, Sent, Timeout};

pub(super) const MSS: Bytes = Bytes::new(1500);

/// A token bucket that drops what exceeds it.
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    pub(super) rate: Rate,
    pub(super) depth: Bytes,
}

/// The path and what the application does.
#[derive(Clone)]
pub(super) struct Plan {
    /// The link's rate from each time on.
    pub(super) rates: Vec<(Time, Rate)>,
    pub(super) rtt: Duration,
    /// Packets that the queue holds.
    pub(super) buffer: u64,
    /// Lost independently before the queue.
    pub(super) loss: f64,
    pub(super) policer: Option<Bucket>,
    /// Packets that each acknowledgement covers.
    pub(super) ack_every: usize,
    /// Bytes that the application has written by a time.
    pub(super) written: fn(Time) -> Bytes,
    pub(super) duration: Duration,
}

impl Plan {
    /// A bulk flow on a clean link with a queue that never fills.
    pub(super) fn new(mbps: f64, rtt_ms: u64, secs: u64) -> Self {
        Self {
            rates: std::vec![(Time::ZERO, Rate::from_mbps(mbps))],
            rtt: Duration::from_millis(rtt_ms),
            buffer: 1_000_000,
            loss: 0.0,
            policer: None,
            ack_every: 1,
            written: |_| Bytes::MAX,
            duration: Duration::from_secs(secs),
        }
    }

    pub(super) fn bdp(&self) -> Bytes {
        self.rates[0].1 * self.rtt
    }

    fn rate(&self, now: Time) -> Rate {
        self.rates.iter().rev().find(|(from, _)| *from <= now).map_or(Rate::ZERO, |&(_, r)| r)
    }
}

/// What the flow sees after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) rtt: Duration,
    pub(super) inflight: Bytes,
    pub(super) delivered: Bytes,
    pub(super) lost: Bytes,
    pub(super) sent: Bytes,
}

#[derive(Clone, Copy)]
struct Packet {
    number: u64,
    sent_at: Time,
    delivered: Bytes,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited: bool,
    tx_in_flight: Bytes,
    lost: Bytes,
    /// When its acknowledgement arrives; `None` when the path drops it.
    acked_at: Option<Time>,
}

/// A TCP sender repairs a loss episode until its retransmissions have arrived.
#[derive(Clone, Copy)]
struct Repair {
    /// Packets from here on were sent after the episode began.
    point: u64,
    /// The last packet that repairs a loss from before.
    last_resent: u64,
}

/// The flow and its path.
pub(super) struct World<'a, C> {
    plan: &'a Plan,
    pub(super) cca: C,
    now: Time,
    outstanding: VecDeque<Packet>,
    next_number: u64,
    pacer: Time,
    link_free: Time,
    tokens: f64,
    tokens_at: Time,
    rng: u64,
    inflight: Bytes,
    sent: Bytes,
    delivered: Bytes,
    delivered_at: Time,
    first_sent_at: Time,
    lost: Bytes,
    app_limited: Option<Bytes>,
    srtt: Duration,
    min_rtt: Duration,
    recovery: Option<Repair>,
    last_lost: Option<u64>,
}

impl<'a, C: CongestionControl> World<'a, C> {
    pub(super) fn new(plan: &'a Plan, cca: C) -> Self {
        Self {
            plan,
            cca,
            now: Time::ZERO,
            outstanding: VecDeque::new(),
            next_number: 0,
            pacer: Time::ZERO,
            link_free: Time::ZERO,
            tokens: plan.policer.map_or(0.0, |p| p.depth.as_f64()),
            tokens_at: Time::ZERO,
            rng: 42,
            inflight: Bytes::ZERO,
            sent: Bytes::ZERO,
            delivered: Bytes::ZERO,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost: Bytes::ZERO,
            app_limited: None,
            srtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            recovery: None,
            last_lost: None,
        }
    }

    /// Runs to the end of the plan, showing the algorithm after each acknowledgement.
    pub(super) fn run(&mut self, mut see: impl FnMut(&C, Seen)) {
        let end = Time::ZERO + self.plan.duration;
        while self.now < end {
            let ack_at = self.next_ack();
            let send_at = self.next_send();
            match (ack_at, send_at) {
                (Some(ack), send) if send.is_none_or(|s| ack <= s) => {
                    self.now = ack;
                    let seen = self.receive();
                    see(&self.cca, seen);
                }
                (_, Some(send)) => {
                    self.now = send;
                    self.send();
                }
                (_, None) if self.inflight.is_zero() => self.now += Duration::from_millis(1),
                (_, None) => self.time_out(),
            }
        }
    }

    /// The next acknowledgement: of the `ack_every`-th packet that arrives, or of the last.
    fn next_ack(&self) -> Option<Time> {
        self.outstanding.iter().filter_map(|p| p.acked_at).take(self.plan.ack_every).last()
    }

    fn next_send(&mut self) -> Option<Time> {
        if self.inflight + MSS > self.cca.window() {
            return None;
        }
        if self.sent + MSS > (self.plan.written)(self.now) {
            self.app_limited = Some(self.delivered + self.inflight);
            return None;
        }
        Some(self.pacer.max(self.now))
    }

    fn random(&mut self) -> f64 {
        self.rng = self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.rng >> 11) as f64 / (1u64 << 53) as f64
    }

    fn send(&mut self) {
        if self.inflight.is_zero() {
            (self.first_sent_at, self.delivered_at) = (self.now, self.now);
        }
        self.inflight += MSS;
        self.sent += MSS;
        let app_limited = self.app_limited.is_some();
        let acked_at = self.path();
        self.outstanding.push_back(Packet {
            number: self.next_number,
            sent_at: self.now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited,
            tx_in_flight: self.inflight,
            lost: self.lost,
            acked_at,
        });
        self.next_number += 1;
        let rate = self.cca.pacing_rate().expect("BBR always paces");
        self.pacer = self.pacer.max(self.now) + MSS / rate;
        let sent = Sent { now: self.now, bytes: MSS, inflight: self.inflight, app_limited };
        self.cca.on_sent(&sent);
    }

    /// When the acknowledgement of a packet sent now comes back.
    fn path(&mut self) -> Option<Time> {
        if self.plan.loss > 0.0 && self.random() < self.plan.loss {
            return None;
        }
        if let Some(bucket) = self.plan.policer {
            let filled = (bucket.rate * self.now.since(self.tokens_at)).as_f64();
            self.tokens = (self.tokens + filled).min(bucket.depth.as_f64());
            self.tokens_at = self.now;
            if self.tokens < MSS.as_f64() {
                return None;
            }
            self.tokens -= MSS.as_f64();
        }
        let service = MSS / self.plan.rate(self.now);
        let queued = self.link_free.since(self.now).as_nanos() / service.as_nanos();
        if queued >= self.plan.buffer {
            return None;
        }
        self.link_free = self.link_free.max(self.now) + service;
        Some(self.link_free + self.plan.rtt)
    }

    fn receive(&mut self) -> Seen {
        let now = self.now;
        let prior_inflight = self.inflight;
        let mut acked = Bytes::ZERO;
        let mut newest = None;
        self.outstanding.retain(|p| {
            let arrived = p.acked_at.is_some_and(|t| t <= now);
            if arrived {
                acked += MSS;
                newest = Some(*p);
            }
            !arrived
        });
        let newest = newest.expect("an acknowledgement acknowledges something");
        self.inflight -= acked;
        self.delivered += acked;
        self.delivered_at = now;
        let send_elapsed = newest.sent_at - newest.first_sent_at;
        let interval = send_elapsed.max(now - newest.delivered_at);
        self.first_sent_at = newest.sent_at;
        if self.app_limited.is_some_and(|end| self.delivered > end) {
            self.app_limited = None;
        }
        let rtt = now - newest.sent_at;
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        self.detect_losses(newest.number, prior_inflight);
        let oldest = self.outstanding.front().map_or(u64::MAX, |p| p.number);
        self.recovery = self.recovery.filter(|repair| oldest <= repair.last_resent);
        let rate = (interval >= self.min_rtt).then_some(RateSample {
            delivered: self.delivered - newest.delivered,
            interval,
            prior_delivered: newest.delivered,
            app_limited: newest.app_limited,
            tx_in_flight: newest.tx_in_flight,
            lost: self.lost - newest.lost,
        });
        self.cca.on_ack(&Ack {
            now,
            acked,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            inflight: self.inflight,
            prior_inflight,
            delivered: self.delivered,
            newest_sent_at: newest.sent_at,
            rate,
            cwnd_limited: prior_inflight + MSS > self.cca.window(),
            in_recovery: self.recovery.is_some(),
        });
        Seen {
            now,
            rtt,
            inflight: self.inflight,
            delivered: self.delivered,
            lost: self.lost,
            sent: self.sent,
        }
    }

    /// Three packets later (RFC 9002 §6.1.1).
    fn detect_losses(&mut self, newest: u64, prior_inflight: Bytes) {
        let mut batch: Option<Loss> = None;
        let oldest_lost = self.outstanding.front().map_or(u64::MAX, |p| p.number);
        while let Some(&packet) = self.outstanding.front().filter(|p| p.number + 3 <= newest) {
            self.outstanding.pop_front();
            self.inflight -= MSS;
            self.lost += MSS;
            let new_range = self.last_lost != packet.number.checked_sub(1);
            self.last_lost = Some(packet.number);
            self.cca.on_packet_lost(&LostPacket {
                now: self.now,
                bytes: MSS,
                sent_at: packet.sent_at,
                tx_in_flight: packet.tx_in_flight,
                lost_since_sent: self.lost - packet.lost,
                app_limited: packet.app_limited,
                delivered_at_send: packet.delivered,
                new_range,
            });
            let lost = batch.map_or(Bytes::ZERO, |b| b.lost) + MSS;
            batch = Some(Loss {
                now: self.now,
                lost,
                newest_sent_at: packet.sent_at,
                inflight: self.inflight,
                prior_inflight,
            });
        }
        if let Some(loss) = batch {
            let resent = self.next_number + loss.lost.get() / MSS.get() - 1;
            let new = Repair { point: self.next_number, last_resent: resent };
            let repair = self.recovery.get_or_insert(new);
            if oldest_lost < repair.point {
                repair.last_resent = resent;
            }
            self.cca.on_loss(&loss);
        }
    }

    /// Nothing will arrive any more.
    fn time_out(&mut self) {
        self.now += Duration::from_secs(1);
        let prior_inflight = self.inflight;
        self.lost += self.inflight;
        self.outstanding.clear();
        self.inflight = Bytes::ZERO;
        self.recovery = None;
        self.cca.on_timeout(&Timeout { now: self.now, prior_inflight, inflight: Bytes::ZERO });
    }
}

/// The handshake took 100 ms: the first ten packets are paced at `gain` times their rate.
pub(super) fn is_paced_from_the_handshake(mut cca: impl CongestionControl, gain: f64) {
    let rtt = Duration::from_millis(100);
    cca.on_established(rtt);
    let rate = cca.pacing_rate().expect("BBR always paces");
    let want = (MSS * 10 / rtt).mul_f64(gain);
    assert!((rate.ratio(want) - 1.0).abs() < 1e-4, "{rate:?}, not {want:?}");
    // The first acknowledgement does not begin anew: before the pipe is full the rate never falls.
    cca.on_ack(&acked(Time::from_millis(150), Time::from_millis(100), MSS, rtt * 2));
    assert_eq!(cca.pacing_rate(), Some(rate));
}
