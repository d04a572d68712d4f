//! A bottleneck for tests of media: encoders that follow the target, pacers, a droptail queue whose
//! rate changes, and feedback on each packet (the ground of RFC 8867 §4, with one direction).

use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{
    Ack, Arrival, Config, CongestionControl, Controller, Feedback, Loss, LostPacket, Probe, Sent,
};

const PACKET: Bytes = Bytes::new(1200);
const TICK: Duration = Duration::from_millis(1);
/// A packet on the wire with its headers stands for no media below this size.
const PACKET_MIN: Bytes = Bytes::new(100);
/// The receiver's clock is this much ahead of the sender's.
const CLOCK: Duration = Duration::from_millis(1_234_567);
/// A transport writes packets off of which it has heard nothing for so long.
const PRUNED: Duration = Duration::from_secs(2);
/// What is recorded is recorded so often.
pub(crate) const SLOT: Duration = Duration::from_millis(100);

/// The path.
pub(crate) struct Path {
    pub(crate) capacity: Box<dyn Fn(Time) -> Rate>,
    /// One-way propagation, each way.
    pub(crate) delay: Duration,
    /// The queue holds what leaves in so long at the present rate.
    pub(crate) buffer: Duration,
    /// Every so many packets one is lost on the way; 0: none.
    pub(crate) lossy: u64,
    /// The first of each so many packets is late by this.
    pub(crate) jitter: (u64, Duration),
    pub(crate) feedback_every: Duration,
}

impl Path {
    /// A constant rate in Mbit/s: 25 ms each way, 300 ms of queue (RFC 8867 §4.1), feedback every
    /// 50 ms.
    pub(crate) fn constant(mbps: f64) -> Self {
        Self::varying(move |_| mbps)
    }

    /// The same with a rate that changes.
    pub(crate) fn varying(mbps: impl Fn(f64) -> f64 + 'static) -> Self {
        Self {
            capacity: Box::new(move |t: Time| Rate::from_mbps(mbps(t.as_secs_f64()))),
            delay: Duration::from_millis(25),
            buffer: Duration::from_millis(300),
            lossy: 0,
            jitter: (1, Duration::ZERO),
            feedback_every: Duration::from_millis(50),
        }
    }
}

/// An encoder and its controller.
pub(crate) struct Media {
    pub(crate) spec: &'static str,
    pub(crate) start: Time,
    /// What the encoder makes at most, by the time in seconds, in Mbit/s.
    pub(crate) most: Box<dyn Fn(f64) -> f64>,
    /// Whether the transport sends probes.
    pub(crate) probes: bool,
}

impl Media {
    pub(crate) fn new(spec: &'static str) -> Self {
        Self { spec, start: Time::ZERO, most: Box::new(|_| 1000.0), probes: true }
    }
}

/// A slot of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) target: f64,
    /// In Mbit/s.
    pub(crate) delivered: f64,
    /// Mean of the packets that arrived, in milliseconds.
    pub(crate) queue_ms: f64,
    pub(crate) lost: u32,
}

/// The slots of a flow from one second to another.
pub(crate) fn between(slots: &[Slot], from: u64, to: u64) -> &[Slot] {
    &slots[(from * 10) as usize..(to * 10) as usize]
}

pub(crate) fn mean(slots: &[Slot], of: impl Fn(&Slot) -> f64) -> f64 {
    slots.iter().map(of).sum::<f64>() / slots.len() as f64
}

struct Packet {
    flow: usize,
    sent_at: Time,
    bytes: Bytes,
    probe: Option<u32>,
    number: u64,
}

struct Flow {
    cca: Controller,
    media: Media,
    next_frame: Time,
    /// Media that waits for the pacer.
    waiting: Bytes,
    next_send: Time,
    probe: Option<(Probe, u32, Bytes)>,
    sent: u64,
    inflight: Bytes,
    delivered: Bytes,
    srtt: Duration,
    min_rtt: Duration,
    /// At the receiver since the last feedback, and feedback under way.
    arrived: Vec<(u64, Arrival)>,
    lost: Vec<(u64, Arrival)>,
    next_feedback: Time,
    feedback: VecDeque<(Time, Vec<Arrival>, Duration)>,
    slot: (Bytes, f64, u32, u32),
    slots: Vec<Slot>,
}

/// Runs flows over the path, and what each of its slots was.
pub(crate) fn run(path: &Path, flows: Vec<Media>, seconds: u64) -> Vec<Vec<Slot>> {
    let config = Config::with_mss(PACKET, 0);
    let mut flows: Vec<Flow> = flows.into_iter().map(|media| Flow::new(media, &config)).collect();
    let (mut queue, mut queued) = (VecDeque::<Packet>::new(), Bytes::ZERO);
    let (mut now, mut free_at, mut carried) = (Time::ZERO, Time::ZERO, 0_u64);
    while now < Time::from_secs(seconds) {
        let end = now + TICK;
        for (i, flow) in flows.iter_mut().enumerate() {
            flow.receive(now);
            while let Some(packet) = flow.send(i, now, end) {
                let room = (path.capacity)(now) * path.buffer;
                if queued + packet.bytes > room.max(PACKET * 2) {
                    flow.lose(&packet);
                } else {
                    queued += packet.bytes;
                    queue.push_back(packet);
                }
            }
        }
        while let Some(packet) = queue.front() {
            let begins = free_at.max(packet.sent_at);
            let leaves = begins + packet.bytes / (path.capacity)(begins);
            if leaves >= end {
                break;
            }
            free_at = leaves;
            let Some(packet) = queue.pop_front() else { break };
            queued -= packet.bytes;
            carried += 1;
            let flow = &mut flows[packet.flow];
            if path.lossy > 0 && carried % path.lossy == 0 {
                flow.lose(&packet);
            } else {
                let late =
                    if carried % path.jitter.0 == 0 { path.jitter.1 } else { Duration::ZERO };
                flow.arrive(&packet, leaves, path.delay + late);
            }
        }
        for flow in &mut flows {
            flow.report(now, path);
            if now.as_nanos() % SLOT.as_nanos() == 0 {
                flow.record();
            }
        }
        now = end;
    }
    flows.into_iter().map(|flow| flow.slots).collect()
}

impl Flow {
    fn new(media: Media, config: &Config) -> Self {
        let cca = media.spec.parse::<crate::Spec>().expect("a spec").build(config);
        let start = media.start;
        Self {
            cca,
            media,
            next_frame: start,
            waiting: Bytes::ZERO,
            next_send: start,
            probe: None,
            sent: 0,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            srtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            arrived: Vec::new(),
            lost: Vec::new(),
            next_feedback: start,
            feedback: VecDeque::new(),
            slot: (Bytes::ZERO, 0.0, 0, 0),
            slots: Vec::new(),
        }
    }

    /// The next packet that leaves before `end`.
    fn send(&mut self, flow: usize, now: Time, end: Time) -> Option<Packet> {
        if now < self.media.start {
            return None;
        }
        if now >= self.next_frame {
            let frame = Duration::from_nanos(1_000_000_000 / 30);
            self.next_frame += frame;
            let most = Rate::from_mbps((self.media.most)(now.as_secs_f64()));
            let rate = self.cca.target().expect("a rate for an encoder").min(most);
            self.waiting += rate * frame;
        }
        if self.probe.is_none() && self.media.probes {
            self.probe = self.cca.take_probe(now).map(|probe| (probe, 0, Bytes::ZERO));
            if self.probe.is_some() {
                self.next_send = self.next_send.max(now);
            }
        }
        let at = self.next_send.max(now);
        let probing = self.probe.map(|(probe, ..)| probe);
        if at >= end || (probing.is_none() && self.waiting.is_zero()) {
            return None;
        }
        let bytes = if probing.is_some() { PACKET } else { self.waiting.min(PACKET) };
        let bytes = bytes.max(PACKET_MIN);
        if probing.is_none() && self.inflight + bytes > self.cca.window() {
            return None;
        }
        let rate = match probing {
            Some(probe) => probe.rate,
            None => self.cca.pacing_rate().expect("a pacing rate"),
        };
        self.waiting -= bytes;
        self.next_send = at + bytes / rate;
        self.inflight += bytes;
        self.sent += 1;
        if let Some((probe, packets, sent)) = &mut self.probe {
            (*packets, *sent) = (*packets + 1, *sent + bytes);
            if *packets >= probe.packets && *sent >= probe.bytes {
                self.probe = None;
            }
        }
        let app_limited = self.waiting.is_zero();
        self.cca.on_sent(&Sent { now: at, bytes, inflight: self.inflight, app_limited });
        let probe = probing.map(|probe| probe.id);
        Some(Packet { flow, sent_at: at, bytes, probe, number: self.sent })
    }

    fn lose(&mut self, packet: &Packet) {
        self.slot.3 += 1;
        let Packet { sent_at, bytes, probe, .. } = *packet;
        let arrival = Arrival { sent_at, arrived_at: None, bytes, probe, marked: false };
        self.lost.push((packet.number, arrival));
    }

    fn arrive(&mut self, packet: &Packet, leaves: Time, delay: Duration) {
        let Packet { sent_at, bytes, probe, .. } = *packet;
        let queue = leaves.since(sent_at).as_millis_f64();
        self.slot = (self.slot.0 + bytes, self.slot.1 + queue, self.slot.2 + 1, self.slot.3);
        let arrived_at = Some(leaves + delay + CLOCK);
        let arrival = Arrival { sent_at, arrived_at, bytes, probe, marked: false };
        self.arrived.push((packet.number, arrival));
    }

    /// The receiver tells of what arrived, and of what is missing before it.
    fn report(&mut self, now: Time, path: &Path) {
        if now < self.next_feedback {
            return;
        }
        self.next_feedback = now + path.feedback_every;
        let here = now + CLOCK;
        let is_here = |arrival: &Arrival| arrival.arrived_at.is_some_and(|at| at <= here);
        let Some(newest) =
            self.arrived.iter().filter(|(_, a)| is_here(a)).map(|(number, _)| *number).max()
        else {
            return;
        };
        let mut told: Vec<_> = self.arrived.extract_if(.., |(_, a)| is_here(a)).collect();
        told.extend(self.lost.extract_if(.., |(number, _)| *number < newest));
        told.sort_by_key(|(number, _)| *number);
        let wait = told
            .iter()
            .rev()
            .find_map(|(_, a)| a.arrived_at)
            .map_or(Duration::ZERO, |at| here.since(at));
        let packets = told.into_iter().map(|(_, arrival)| arrival).collect();
        self.feedback.push_back((now + path.delay, packets, wait));
    }

    fn receive(&mut self, now: Time) {
        let old = |(_, lost): &mut (u64, Arrival)| now.since(lost.sent_at) > PRUNED;
        for (_, lost) in self.lost.extract_if(.., old) {
            self.inflight -= lost.bytes;
        }
        while self.feedback.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, packets, wait)) = self.feedback.pop_front() else { return };
            self.acknowledge(now, &packets, wait);
            let newest = packets.iter().rev().find(|packet| packet.arrived_at.is_some());
            let rtt = newest.map(|packet| now.since(packet.sent_at + wait));
            let feedback = Feedback { now, packets: &packets, rtt, inflight: self.inflight };
            self.cca.on_feedback(&feedback);
        }
    }

    /// What a transport tells by acknowledgements.
    fn acknowledge(&mut self, now: Time, packets: &[Arrival], wait: Duration) {
        let prior_inflight = self.inflight;
        let (mut acked, mut newest, mut loss) = (Bytes::ZERO, None, None::<Loss>);
        for packet in packets {
            self.inflight -= packet.bytes;
            if packet.arrived_at.is_some() {
                acked += packet.bytes;
                newest = Some(packet.sent_at);
                continue;
            }
            let lost = loss.map_or(Bytes::ZERO, |l| l.lost) + packet.bytes;
            let (newest_sent_at, inflight) = (packet.sent_at, self.inflight);
            loss = Some(Loss { now, lost, newest_sent_at, inflight, prior_inflight });
            self.cca.on_packet_lost(&LostPacket {
                now,
                bytes: packet.bytes,
                sent_at: packet.sent_at,
                tx_in_flight: prior_inflight,
                lost_since_sent: packet.bytes,
                app_limited: false,
                delivered_at_send: self.delivered,
                new_range: true,
            });
        }
        if let Some(loss) = loss {
            self.cca.on_loss(&loss);
        }
        let Some(newest_sent_at) = newest else { return };
        let rtt = now.since(newest_sent_at + wait);
        self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
        self.min_rtt = self.min_rtt.min(rtt);
        self.delivered += acked;
        self.cca.on_ack(&Ack {
            now,
            acked,
            rtt: Some(rtt),
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            inflight: self.inflight,
            prior_inflight,
            delivered: self.delivered,
            newest_sent_at,
            rate: None,
            cwnd_limited: false,
            in_recovery: false,
        });
    }

    fn record(&mut self) {
        let (bytes, queue, packets, lost) = core::mem::take(&mut self.slot);
        self.slots.push(Slot {
            target: self.cca.target().map_or(0.0, Rate::mbps),
            delivered: (bytes / SLOT).mbps(),
            queue_ms: queue / f64::from(packets.max(1)),
            lost,
        });
    }
}

/// One flow alone.
pub(crate) fn one(path: &Path, spec: &'static str, seconds: u64) -> Vec<Slot> {
    run(path, [Media::new(spec)].into(), seconds).remove(0)
}

/// Mean target, in the unit of the slots.
pub(crate) fn target(slots: &[Slot]) -> f64 {
    mean(slots, |slot| slot.target)
}

/// Mean of what arrived.
pub(crate) fn delivered(slots: &[Slot]) -> f64 {
    mean(slots, |slot| slot.delivered)
}

/// Mean queueing delay, in ms.
pub(crate) fn queue(slots: &[Slot]) -> f64 {
    mean(slots, |slot| slot.queue_ms)
}
