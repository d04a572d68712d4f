//! The pacer: packets leave at the algorithm's pace, or 2.5 times the target, within the algorithm's
//! window. It numbers what leaves, so that the path knows of each packet before feedback comes.
//!
//! rtc-interceptor's own pacer sends at the target itself, so a key frame takes as many frame times
//! as it is larger than others, and it knows neither window nor probes.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rtc_interceptor::{Attribute, Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc_shared::error::Error;
use rtc_shared::marshal::MarshalSize as _;
use sansio::Protocol;
use trimtab_stack::Probe;
use trimtab_stack::units::{Bytes, Rate};

use crate::departures::Departures;
use crate::factory::OVERHEAD;
use crate::shared::{Shared, Wanted};

/// A probe that finds too little to send is given up after this (libwebrtc waits a second for a
/// result, `kMaxWaitingTimeForProbingResult`).
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// Releases packets at the pace, for [`Slot::Pacer`](rtc_interceptor::Slot::Pacer).
///
/// Sound passes by, as in libwebrtc, and so does RTCP. Retransmissions go before video. A packet
/// leaves again only once in a round trip, however often it is asked for, and all that leave again
/// take no more than the target.
pub struct Pacer {
    shared: Arc<Shared>,
    /// What waits: retransmissions, and video behind them.
    repairs: VecDeque<TaggedPacket>,
    queue: VecDeque<TaggedPacket>,
    queued: Bytes,
    /// When the pace has made up for what left.
    paid_at: Instant,
    /// When the last packet left.
    released_at: Instant,
    /// Probes that wait for enough to send, and the one that is under way.
    waiting: VecDeque<Waiting>,
    probing: Option<Probing>,
    departures: Departures,
    /// Streams that are reported on: those that were bound, as in the history.
    streams: HashSet<u32>,
    sounds: HashSet<u32>,
    released: VecDeque<TaggedPacket>,
    inbound: VecDeque<TaggedPacket>,
}

/// A probe that waits, until then.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    probe: Probe,
    until: Instant,
}

/// A probe, and what of it is still to leave.
#[derive(Clone, Copy, Debug)]
struct Probing {
    probe: Probe,
    bytes: Bytes,
    packets: u32,
    next_at: Instant,
}

/// The size of a packet on the wire; zero of RTCP.
fn size(packet: &TaggedPacket) -> Bytes {
    match &packet.message.packet {
        Packet::Rtp(rtp) => Bytes::new(rtp.marshal_size() as u64 + u64::from(OVERHEAD)),
        _ => Bytes::ZERO,
    }
}

/// Stream and number of a packet; `None` of RTCP.
fn key(packet: &TaggedPacket) -> Option<(u32, u16)> {
    match &packet.message.packet {
        Packet::Rtp(rtp) => Some((rtp.header.ssrc, rtp.header.sequence_number)),
        _ => None,
    }
}

/// Whether a packet is the last of its frame (RFC 6184 §5.1, RFC 7741 §4.1).
fn ends_frame(packet: &TaggedPacket) -> bool {
    matches!(&packet.message.packet, Packet::Rtp(rtp) if rtp.header.marker)
}

fn time(bytes: Bytes, rate: Rate) -> Duration {
    Duration::from_nanos((bytes / rate).as_nanos())
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packets, probing) = (self.repairs.len() + self.queue.len(), self.probing);
        f.debug_struct("Pacer")
            .field("packets", &packets)
            .field("queued", &self.queued)
            .field("probing", &probing)
            .finish_non_exhaustive()
    }
}

impl Pacer {
    pub(crate) fn new(shared: Arc<Shared>, now: Instant) -> Self {
        Self {
            shared,
            repairs: VecDeque::new(),
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            paid_at: now,
            released_at: now,
            waiting: VecDeque::new(),
            probing: None,
            departures: Departures::default(),
            streams: HashSet::new(),
            sounds: HashSet::new(),
            released: VecDeque::new(),
            inbound: VecDeque::new(),
        }
    }

    /// When the packet at the head may leave, if that is after `now`; `now` where it may at once.
    fn due(&self, now: Instant) -> Option<Instant> {
        let head = size(self.repairs.front().or(self.queue.front())?);
        if let Some(probing) = self.probing {
            return Some(probing.next_at.max(now));
        }
        let paced = now + self.paid_at.saturating_duration_since(now + self.shared.burst());
        let mut path = self.shared.path.lock();
        if path.inflight() + head <= path.window() {
            return Some(paced);
        }
        // So much leaves at any rate: after a loss of all packets, feedback has to come again.
        path.on_window_limited();
        let least = self.released_at + time(head, self.shared.bitrates.least);
        Some(paced.max(least))
    }

    /// Begins a probe that the algorithm asks for, once there is enough to send.
    fn probe(&mut self, now: Instant) {
        let until = now + PROBE_WAIT;
        let asked = std::iter::from_fn(|| self.shared.path.lock().take_probe(now));
        self.waiting.extend(asked.map(|probe| Waiting { probe, until }));
        self.waiting.retain(|waiting| now < waiting.until);
        if self.probing.is_none() {
            self.begin_probe(now);
        }
    }

    /// What the next probe needs beyond what waits to be sent. A frame has filler for one: that for
    /// another would wait in the way of the next frame.
    fn wanted(&self) -> Wanted {
        let Some(Waiting { probe, .. }) = self.waiting.front() else { return Wanted::default() };
        let queued = (self.repairs.len() + self.queue.len()) as u64;
        Wanted {
            bytes: probe.bytes - self.queued,
            packets: u64::from(probe.packets).saturating_sub(queued),
        }
    }

    /// Begins the probe that waits, where there is enough to send.
    fn begin_probe(&mut self, next_at: Instant) {
        let packets = self.repairs.len() + self.queue.len();
        let is_enough = |waiting: &&Waiting| {
            self.queued >= waiting.probe.bytes && packets >= waiting.probe.packets as usize
        };
        let Some(&Waiting { probe, .. }) = self.waiting.front().filter(is_enough) else { return };
        self.waiting.pop_front();
        let Probe { bytes, packets, .. } = probe;
        self.probing = Some(Probing { probe, bytes, packets, next_at });
    }

    /// Lets out what may leave.
    fn release(&mut self, now: Instant) {
        self.probe(now);
        while self.due(now).is_some_and(|due| due <= now) {
            let Some(packet) = self.repairs.pop_front().or_else(|| self.queue.pop_front()) else {
                break;
            };
            let bytes = size(&packet);
            self.shared.on_video(now, bytes, packet.message.has(&Attribute::Retransmission));
            self.queued -= bytes;
            self.paid_at = self.paid_at.max(now) + time(bytes, self.shared.pace(self.queued));
            self.released_at = now;
            self.depart(now, packet, self.probing.map(|probing| probing.probe.id));
            self.advance_probe(bytes);
        }
        if self.queued.is_zero() {
            self.shared.path.lock().on_drained(self.shared.bitrates.most);
        }
        let wanted = self.wanted();
        let mut books = self.shared.books();
        (books.queued, books.wanted) = (self.queued, wanted);
    }

    /// A packet of the probe that runs has left. A probe that finds no more packets has ended: its
    /// rate would be that of the pause. One that waits behind it follows at once.
    fn advance_probe(&mut self, bytes: Bytes) {
        let Some(probing) = &mut self.probing else { return };
        probing.bytes -= bytes;
        probing.packets = probing.packets.saturating_sub(1);
        probing.next_at += time(bytes, probing.probe.rate);
        let (next_at, is_done) = (probing.next_at, probing.bytes.is_zero() && probing.packets == 0);
        if is_done || self.queued.is_zero() {
            self.probing = None;
            self.begin_probe(next_at);
        }
    }

    /// A packet leaves now.
    fn depart(&mut self, now: Instant, mut packet: TaggedPacket, probe: Option<u32>) {
        packet.now = now;
        if let Some(key) = key(&packet).filter(|(ssrc, _)| self.streams.contains(ssrc)) {
            self.departures.on_departure(key, now);
            let mut books = self.shared.books();
            if let Some(id) = probe {
                books.mark_probe(id);
            }
            self.shared.path.on_sent(now, size(&packet), books.sent);
            books.sent += 1;
            books.waiting_since.get_or_insert(now);
        }
        self.released.push_back(packet);
    }

    /// A packet that was asked for again waits, unless it left just now, or more is asked for than
    /// the target lets pass.
    fn repair(&mut self, now: Instant, packet: TaggedPacket, key: (u32, u16)) {
        let srtt = self.shared.path.lock().srtt().unwrap_or_default();
        let (rtt, bytes) = (Duration::from_nanos(srtt.as_nanos()), size(&packet));
        if self.departures.is_due(key, now, rtt) && self.shared.may_repair(now, bytes) {
            self.departures.wait(key);
            self.queued += bytes;
            self.repairs.push_back(packet);
        }
    }
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Pacer {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        // The feedback that passed the estimator just before may have opened the window.
        let now = packet.now;
        self.inbound.push_back(packet);
        self.release(now);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.inbound.pop_front()
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        let now = packet.now;
        let Some(key) = key(&packet) else {
            self.released.push_back(packet);
            return Ok(());
        };
        if self.sounds.contains(&key.0) {
            // In a probe it counts, as what is not paced does in libwebrtc.
            let bytes = size(&packet);
            self.depart(now, packet, self.probing.map(|probing| probing.probe.id));
            self.advance_probe(bytes);
            return Ok(());
        }
        if packet.message.has(&Attribute::Retransmission) {
            self.repair(now, packet, key);
            self.release(now);
            return Ok(());
        }
        self.queued += size(&packet);
        let is_whole = ends_frame(&packet);
        self.queue.push_back(packet);
        // A probe needs the whole frame, which is written at once.
        if is_whole || self.waiting.is_empty() {
            self.release(now);
        }
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.released.pop_front()
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.release(now);
        Ok(())
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.due(self.released_at)
    }
}

impl Interceptor for Pacer {
    fn bind_local_stream(&mut self, info: &StreamInfo) {
        self.streams.insert(info.ssrc);
        if info.mime_type.starts_with("audio/") {
            self.sounds.insert(info.ssrc);
        }
    }

    fn unbind_local_stream(&mut self, info: &StreamInfo) {
        self.streams.remove(&info.ssrc);
        self.sounds.remove(&info.ssrc);
    }

    fn bind_remote_stream(&mut self, _info: &StreamInfo) {}

    fn unbind_remote_stream(&mut self, _info: &StreamInfo) {}
}
