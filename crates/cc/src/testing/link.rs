//! A bottleneck for tests: several bulk flows over a constant rate, droptail, and a fixed delay.

use std::collections::VecDeque;
use std::vec::Vec;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{Ack, Config, CongestionControl, Controller, Loss, LostPacket, Sent, Timeout};

pub(crate) const MSS: Bytes = Bytes::new(1500);

/// A link and how long to look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Its rate.
    pub(crate) rate: Rate,
    /// Base round-trip time.
    pub(crate) rtt: Duration,
    /// The queue holds this many packets.
    pub(crate) buffer: u64,
    /// Packets leave at whole multiples of this only, as many as fit (Mahimahi: 1 ms); zero for
    /// a link that sends each for its own time.
    pub(crate) tick: Duration,
    /// It stands still for so long at the end of each [`OUTAGE_EVERY`]; zero for never.
    pub(crate) outage: Duration,
    /// What is looked at: from this time, to that time.
    pub(crate) from: Time,
    pub(crate) until: Time,
}

/// How often a link with outages has one.
const OUTAGE_EVERY: Duration = Duration::from_secs(20);

impl Link {
    /// 48 Mbit/s, 20 ms (80 packets), a queue that never fills, 10 to 30 s.
    pub(crate) fn fast() -> Self {
        Self {
            rate: Rate::from_mbps(48.0),
            rtt: Duration::from_millis(20),
            buffer: 1_000_000,
            tick: Duration::ZERO,
            outage: Duration::ZERO,
            from: Time::from_millis(10_000),
            until: Time::from_millis(30_000),
        }
    }

    /// The first time from `at` on that is in no outage.
    fn carries_at(&self, at: Time) -> Time {
        let into = at.as_nanos() % OUTAGE_EVERY.as_nanos();
        let left = OUTAGE_EVERY - Duration::from_nanos(into);
        if left <= self.outage { at + left } else { at }
    }
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Bytes delivered to each flow, as a share of what the link could.
    pub(crate) shares: Vec<f64>,
    /// Mean of the packets that arriving packets found in the queue, and the most.
    pub(crate) queue_mean: f64,
    pub(crate) queue_max: u64,
    /// Share of the packets sent that the queue dropped.
    pub(crate) loss: f64,
}

struct Packet {
    number: u64,
    sent_at: Time,
    /// When its acknowledgement arrives; `None` when it was dropped.
    back_at: Option<Time>,
}

struct Flow {
    cca: Controller,
    start: Time,
    outstanding: VecDeque<Packet>,
    next_number: u64,
    next_send: Time,
    inflight: Bytes,
    delivered: Bytes,
    srtt: Duration,
    min_rtt: Duration,
    /// Number of the packet that was lost last.
    last_lost: Option<u64>,
}

struct Queue {
    link: Link,
    /// Departure times of what is in the queue.
    departures: VecDeque<Time>,
    free_at: Time,
    found: (f64, u64, u64),
    dropped: u64,
}

/// Runs flows over the link. Each is an algorithm, its start, and a look at it after each of its
/// acknowledgements.
pub(crate) fn run(
    link: Link,
    flows: &[(&str, Time)],
    mut see: impl FnMut(usize, Time, &Controller),
) -> Outcome {
    let config = Config::with_mss(MSS, 0);
    let mut queue = Queue {
        link,
        departures: VecDeque::new(),
        free_at: Time::ZERO,
        found: (0.0, 0, 0),
        dropped: 0,
    };
    let mut flows: Vec<Flow> = flows
        .iter()
        .map(|&(spec, start)| Flow {
            cca: spec.parse::<crate::Spec>().unwrap().build(&config),
            start,
            outstanding: VecDeque::new(),
            next_number: 0,
            next_send: start,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            srtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            last_lost: None,
        })
        .collect();
    let mut delivered_before: Vec<Bytes> = std::vec![Bytes::ZERO; flows.len()];
    let mut now = Time::ZERO;
    loop {
        let acks = flows.iter().enumerate().filter_map(|(i, f)| Some((f.next_ack()?, 0, i)));
        let sends = flows.iter().enumerate().filter_map(|(i, f)| Some((f.next_send(now)?, 1, i)));
        // Acknowledgements before sends of the same instant.
        let Some((at, what, i)) = acks.chain(sends).min() else {
            for flow in flows.iter_mut().filter(|f| f.start <= now) {
                flow.time_out(now);
            }
            now += Duration::from_millis(200);
            continue;
        };
        if at >= link.until {
            break;
        }
        if now < link.from && at >= link.from {
            delivered_before = flows.iter().map(|f| f.delivered).collect();
        }
        now = at;
        if what == 0 {
            flows[i].receive(now);
            see(i, now, &flows[i].cca);
        } else {
            flows[i].send(now, &mut queue);
        }
    }
    let capacity = (link.rate * link.until.since(link.from)).as_f64();
    let sent: u64 = flows.iter().map(|f| f.next_number).sum();
    Outcome {
        shares: flows
            .iter()
            .zip(&delivered_before)
            .map(|(f, before)| (f.delivered - *before).as_f64() / capacity)
            .collect(),
        queue_mean: queue.found.0 / queue.found.1 as f64,
        queue_max: queue.found.2,
        loss: queue.dropped as f64 / sent as f64,
    }
}

impl Queue {
    /// When a packet that arrives now leaves; `None` when it is dropped.
    fn take(&mut self, now: Time) -> Option<Time> {
        while self.departures.front().is_some_and(|t| *t <= now) {
            self.departures.pop_front();
        }
        let length = self.departures.len() as u64;
        if now >= self.link.from {
            self.found.0 += length as f64;
            self.found.1 += 1;
            self.found.2 = self.found.2.max(length);
        }
        if length >= self.link.buffer {
            self.dropped += 1;
            return None;
        }
        self.free_at = self.link.carries_at(self.free_at.max(now) + MSS / self.link.rate);
        let tick = self.link.tick.as_nanos();
        let leaves = if tick == 0 {
            self.free_at
        } else {
            Time::from_nanos(self.free_at.as_nanos().div_ceil(tick) * tick)
        };
        self.departures.push_back(leaves);
        Some(leaves)
    }
}

impl Flow {
    /// The next packet that comes back; a dropped one never does.
    fn next_ack(&self) -> Option<Time> {
        self.outstanding.iter().find_map(|p| p.back_at)
    }

    fn next_send(&self, now: Time) -> Option<Time> {
        (self.inflight + MSS <= self.cca.window()).then(|| self.next_send.max(now))
    }

    fn send(&mut self, now: Time, queue: &mut Queue) {
        let back_at = queue.take(now).map(|t| t + queue.link.rtt);
        self.outstanding.push_back(Packet { number: self.next_number, sent_at: now, back_at });
        self.next_number += 1;
        self.inflight += MSS;
        let gap = self.cca.pacing_rate().map_or(Duration::ZERO, |rate| MSS / rate);
        self.next_send = self.next_send.max(now) + gap;
        let sent = Sent { now, bytes: MSS, inflight: self.inflight, app_limited: false };
        self.cca.on_sent(&sent);
    }

    fn receive(&mut self, now: Time) {
        let prior_inflight = self.inflight;
        let index = self.outstanding.iter().position(|p| p.back_at.is_some()).unwrap();
        let packet = self.outstanding.remove(index).unwrap();
        self.inflight -= MSS;
        self.delivered += MSS;
        let rtt = now - packet.sent_at;
        self.min_rtt = self.min_rtt.min(rtt);
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        // Three packets later (RFC 9002 §6.1.1).
        let mut loss: Option<Loss> = None;
        while let Some(p) = self
            .outstanding
            .front()
            .filter(|p| p.back_at.is_none() && p.number + 3 <= packet.number)
        {
            let (newest_sent_at, number) = (p.sent_at, p.number);
            self.outstanding.pop_front();
            self.cca.on_packet_lost(&LostPacket {
                now,
                bytes: MSS,
                sent_at: newest_sent_at,
                tx_in_flight: prior_inflight,
                lost_since_sent: MSS,
                app_limited: false,
                delivered_at_send: self.delivered,
                new_range: self.last_lost.is_none_or(|last| last + 1 != number),
            });
            self.last_lost = Some(number);
            self.inflight -= MSS;
            let lost = loss.map_or(Bytes::ZERO, |l| l.lost) + MSS;
            let inflight = self.inflight;
            loss = Some(Loss { now, lost, newest_sent_at, inflight, prior_inflight });
        }
        if let Some(loss) = loss {
            self.cca.on_loss(&loss);
        }
        self.cca.on_ack(&Ack {
            now,
            acked: MSS,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            inflight: self.inflight,
            prior_inflight,
            delivered: self.delivered,
            newest_sent_at: packet.sent_at,
            rate: None,
            cwnd_limited: prior_inflight + MSS > self.cca.window(),
            in_recovery: false,
        });
    }

    /// Nothing will come back any more.
    fn time_out(&mut self, now: Time) {
        let prior_inflight = self.inflight;
        self.outstanding.clear();
        self.inflight = Bytes::ZERO;
        self.cca.on_timeout(&Timeout { now, prior_inflight, inflight: Bytes::ZERO });
    }
}
