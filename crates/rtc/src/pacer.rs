//! The pacer: packets leave at 2.5 times the target, within the algorithm's window. It numbers what
//! leaves, so that the path knows of each packet before feedback comes.
//!
//! rtc-interceptor's own pacer sends at the target itself, so a key frame takes as many frame times
//! as it is larger than others, and it knows neither window nor probes.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rtc_interceptor::{Interceptor, Packet, StreamInfo, TaggedPacket};
use rtc_shared::error::Error;
use rtc_shared::marshal::MarshalSize as _;
use sansio::Protocol;
use trimtab_stack::Probe;
use trimtab_stack::units::{Bytes, Rate};

use crate::shared::Shared;

/// What was not used of the last milliseconds may leave at once: timers are late by so much.
const BURST: Duration = Duration::from_millis(5);
/// A probe that finds too little to send is given up after this (libwebrtc waits a second for a
/// result, `kMaxWaitingTimeForProbingResult`).
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// A full packet, where a probe is stated in packets.
const FULL: Bytes = Bytes::new(1200);

/// Releases packets at the pace, for [`Slot::Pacer`](rtc_interceptor::Slot::Pacer).
///
/// Sound passes by, as in libwebrtc, and so does RTCP.
pub struct Pacer {
    shared: Arc<Shared>,
    queue: VecDeque<TaggedPacket>,
    queued: Bytes,
    /// When the next packet may leave, by the rate.
    free_at: Instant,
    /// When the last packet left.
    released_at: Instant,
    probing: Option<Probing>,
    /// Streams that are reported on: those that were bound, as in the history.
    streams: HashSet<u32>,
    sounds: HashSet<u32>,
    released: VecDeque<TaggedPacket>,
    inbound: VecDeque<TaggedPacket>,
}

/// A probe, and what of it is still to leave.
#[derive(Clone, Copy, Debug)]
struct Probing {
    probe: Probe,
    bytes: Bytes,
    packets: u32,
    /// Until when it may wait for packets; `None` once it runs.
    until: Option<Instant>,
}

impl Probing {
    /// The bytes that it takes.
    fn needs(&self) -> Bytes {
        self.bytes.max(FULL * u64::from(self.packets))
    }
}

fn size(packet: &TaggedPacket) -> Bytes {
    match &packet.message.packet {
        Packet::Rtp(rtp) => Bytes::new(rtp.marshal_size() as u64),
        _ => Bytes::ZERO,
    }
}

fn source(packet: &TaggedPacket) -> Option<u32> {
    match &packet.message.packet {
        Packet::Rtp(rtp) => Some(rtp.header.ssrc),
        _ => None,
    }
}

fn time(bytes: Bytes, rate: Rate) -> Duration {
    Duration::from_nanos((bytes / rate).as_nanos())
}

impl fmt::Debug for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packets, probing) = (self.queue.len(), self.probing);
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
            queue: VecDeque::new(),
            queued: Bytes::ZERO,
            free_at: now,
            released_at: now,
            probing: None,
            streams: HashSet::new(),
            sounds: HashSet::new(),
            released: VecDeque::new(),
            inbound: VecDeque::new(),
        }
    }

    /// The rate of the packets that leave now.
    fn rate(&self) -> Rate {
        match self.probing {
            Some(Probing { probe, until: None, .. }) => probe.rate,
            _ => self.shared.pace(self.queued),
        }
    }

    /// When the packet at the head may leave.
    fn due(&self) -> Option<Instant> {
        let head = size(self.queue.front()?);
        if matches!(self.probing, Some(Probing { until: None, .. })) {
            return Some(self.free_at);
        }
        let mut path = self.shared.path.lock();
        if path.inflight() < path.window() {
            return Some(self.free_at);
        }
        // So much leaves at any rate: after a loss of all packets, feedback has to come again.
        path.on_window_limited();
        let least = self.released_at + time(head, self.shared.bitrates.least);
        Some(self.free_at.max(least))
    }

    /// Begins a probe that the algorithm asks for, once there is enough to send.
    fn probe(&mut self, now: Instant) {
        if self.probing.is_none() {
            let Some(probe) = self.shared.path.lock().take_probe(now) else { return };
            let (bytes, packets) = (probe.bytes, probe.packets);
            self.probing = Some(Probing { probe, bytes, packets, until: Some(now + PROBE_WAIT) });
        }
        let Some(probing) = &mut self.probing else { return };
        let Some(until) = probing.until else { return };
        let needs = probing.needs();
        if self.queued >= needs && self.queue.len() >= probing.packets as usize {
            probing.until = None;
            self.free_at = self.free_at.min(now);
        } else if now >= until {
            self.probing = None;
        }
        self.want();
    }

    /// Lets the encoder see what a probe needs.
    fn want(&self) {
        let waits = self.probing.filter(|probing| probing.until.is_some());
        self.shared.books().wanted = waits.map_or(Bytes::ZERO, |probing| probing.needs());
    }

    /// Lets out what may leave.
    fn release(&mut self, now: Instant) {
        self.probe(now);
        while self.due().is_some_and(|due| due <= now) {
            let Some(packet) = self.queue.pop_front() else { break };
            let bytes = size(&packet);
            self.queued -= bytes;
            self.free_at = self.free_at.max(now - BURST) + time(bytes, self.rate());
            self.released_at = now;
            let probe = self.probing.filter(|probing| probing.until.is_none());
            self.depart(now, packet, probe.map(|probing| probing.probe.id));
            self.advance_probe(bytes);
        }
        self.shared.books().queued = self.queued;
    }

    /// A packet of the probe that runs has left. A probe that finds no more packets has ended: its
    /// rate would be that of the pause.
    fn advance_probe(&mut self, bytes: Bytes) {
        let Some(probing) = self.probing.as_mut().filter(|probing| probing.until.is_none()) else {
            return;
        };
        probing.bytes -= bytes;
        probing.packets = probing.packets.saturating_sub(1);
        let is_done = probing.bytes.is_zero() && probing.packets == 0;
        if is_done || self.queue.is_empty() {
            self.probing = None;
        }
    }

    /// A packet leaves now.
    fn depart(&mut self, now: Instant, mut packet: TaggedPacket, probe: Option<u32>) {
        packet.now = now;
        if source(&packet).is_some_and(|ssrc| self.streams.contains(&ssrc)) {
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
        let Some(ssrc) = source(&packet) else {
            self.released.push_back(packet);
            return Ok(());
        };
        if self.sounds.contains(&ssrc) {
            self.depart(now, packet, None);
            return Ok(());
        }
        self.queued += size(&packet);
        self.queue.push_back(packet);
        self.release(now);
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
        self.due()
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
