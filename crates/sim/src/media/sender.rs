//! The sending end: packets, their pace, and what feedback says of them.

mod feedback;

use std::collections::VecDeque;

use trimtab_apps::{Call, Captured, FRAME_PACKETS_MAX, Protection, VideoPacket};
use trimtab_cc::Probe;
use trimtab_cc::transport::{Packet, Repairs, Reports};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::content::{Content, Report};
use super::history::History;
use super::parity::GROUP;
use super::{HEADER, PAYLOAD};
use crate::governor::Governor;
use crate::sender::{Outgoing, Sender};
use crate::streams::Chunk;

/// The pacer sends at this multiple of the encoder's bitrate (libwebrtc,
/// `kDefaultPacingMultiplier`), so that a frame does not take a whole frame's time.
pub(super) const PACING: f64 = 2.5;
/// … so much of which may leave at once (`PacerConfig::kDefaultTimeInterval`): most frames do.
const BURST: Duration = Duration::from_millis(40);
/// A controller of rates whose pace is less than twice its target means to spread frames: so much of
/// that leaves at once. Ours: what timers resolve.
const BURST_SMOOTH: Duration = Duration::from_millis(1);
/// … or as fast as what waits is gone by then (`kMaxExpectedQueueLength`).
const QUEUE_MAX: Duration = Duration::from_secs(2);
/// The encoder skips frames while what waits takes longer than this at the bitrate. Ours: libwebrtc
/// relies on controllers of rates, whose pacer is never blocked; a window blocks it.
const BACKLOG_MAX: Duration = Duration::from_millis(250);
/// What waits longer than a frame at the bitrate is taken off it, to be gone after this time. Ours, as
/// in `trimtab-rtc`.
const BACKLOG: Duration = Duration::from_millis(40);
const BACKLOG_GONE: Duration = Duration::from_millis(250);
/// The share of what a window lets pass that the encoder fills: frames come in bursts, which a
/// window that is full holds back. Ours: of 1, 0.9 and 0.8 the one with which Copa and BBR score
/// best (examples/call.rs).
const FILLED: f64 = 0.8;
/// So much leaves even where the window is full, so that feedback comes and it can open: the least
/// bitrate of video (libwebrtc, `kDefaultMinVideoBitrateBps`).
const TRICKLE: Rate = Rate::from_bits_per_sec(30_000);
/// A probe that finds nothing to send is given up after this, as in `trimtab-rtc`.
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// Packets that are remembered: over ten seconds at 2.5 Mbit/s.
const HISTORY: usize = 4096;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    record: Packet,
    content: Content,
    probe: Option<u32>,
}

/// A packet of video, by its sequence number.
#[derive(Clone, Copy, Debug)]
struct Video {
    packet: VideoPacket,
    /// When it was sent last; never while it waits.
    sent_at: Time,
}

/// A probe that is under way.
#[derive(Clone, Copy, Debug)]
struct Probing {
    probe: Probe,
    packets: u32,
    bytes: Bytes,
    next_at: Time,
}

impl Probing {
    fn new(probe: Probe, next_at: Time) -> Self {
        Self { probe, packets: 0, bytes: Bytes::ZERO, next_at }
    }
}

/// The sending end of a flow of media.
#[derive(Clone, Debug)]
pub(super) struct MediaSender {
    protection: Protection,
    sent: History<Sent>,
    video: History<Video>,
    /// What waits: audio first, then repairs, then video with its parity.
    audio: VecDeque<Content>,
    again: VecDeque<Content>,
    frames: VecDeque<Content>,
    /// Bytes of frames that wait, and of repairs.
    waiting: Bytes,
    repairing: Bytes,
    /// When the last packet left but for audio, and when the pace has made up for what left.
    left_at: Time,
    paid_at: Time,
    /// Probes that wait for a packet of video, and the one that is under way.
    probes: VecDeque<(Time, Probe)>,
    probing: Option<Probing>,
    /// When the pacer lets the next packet go, where one waits for it.
    paced_until: Time,
    /// Packets below are not in flight any more.
    settled: u64,
    /// The latest feedback, or the first packet after all was settled.
    progress_at: Time,
    /// The present loss episode began then.
    episode: Option<Time>,
    /// What the receiver adds to round trips.
    reports: Reports,
    /// What is spent on packets that were asked for again.
    repairs: Repairs,
}

impl MediaSender {
    pub(super) fn new(protection: Protection) -> Self {
        Self {
            protection,
            sent: History::new(HISTORY),
            video: History::new(HISTORY),
            audio: VecDeque::new(),
            again: VecDeque::new(),
            frames: VecDeque::new(),
            waiting: Bytes::ZERO,
            repairing: Bytes::ZERO,
            left_at: Time::ZERO,
            paid_at: Time::ZERO,
            probes: VecDeque::new(),
            probing: None,
            paced_until: Time::MAX,
            settled: 0,
            progress_at: Time::ZERO,
            episode: None,
            reports: Reports::default(),
            repairs: Repairs::default(),
        }
    }

    /// What a packet carries.
    pub(super) fn content(&self, number: u64) -> Option<Content> {
        self.sent.get(number).map(|sent| sent.content)
    }

    /// The packet of video of that sequence number.
    pub(super) fn video(&self, sequence: u64) -> Option<VideoPacket> {
        self.video.get(sequence).map(|video| video.packet)
    }

    pub(super) fn has_data(&self) -> bool {
        !self.audio.is_empty() || !self.again.is_empty() || !self.frames.is_empty()
    }

    pub(super) fn unsent(&self) -> Bytes {
        self.waiting
    }

    /// The rate that the governor gives for everything, headers included. A window lets pass what
    /// it holds in the time that packets are in flight, which is longer than the round trip: they
    /// wait for feedback.
    pub(super) fn rate(&self, base: &Sender) -> Rate {
        let srtt = base.rtt.smoothed();
        let time = self.reports.turnaround().map_or(srtt, |took| took.max(srtt));
        match &base.governor {
            Governor::Driven(driver) => {
                driver.target().unwrap_or_else(|| driver.encoder_rate(time).mul_f64(FILLED))
            }
            Governor::Seeing(sender) => sender.encoder_rate(),
            Governor::Outside(outside) => {
                let dial = outside.dial();
                dial.rate.unwrap_or_else(|| (dial.window / time).mul_f64(FILLED))
            }
        }
    }

    /// The same, at most what the call can use.
    fn target(&self, base: &Sender, call: &Call) -> Rate {
        self.rate(base).min(call.config().most(PAYLOAD, HEADER))
    }

    /// Asks the encoder for what remains for video after headers, audio, parity, what waits and what
    /// is sent again.
    pub(super) fn ask(&self, base: &Sender, call: &mut Call) {
        let target = self.target(base, call);
        let rate = target - (self.backlog() - target * BACKLOG) / BACKLOG_GONE;
        let interval = call.interval();
        let audio = match call.audio_rate() {
            Rate::ZERO => Rate::ZERO,
            rate => rate + HEADER / Duration::from_millis(20),
        };
        let video = (rate.max(audio) - audio).mul_f64(1.0 - self.repairs.share());
        let frame = video * interval;
        let full = PAYLOAD + HEADER;
        let (mut shared, mut packets) = (frame, frame.get().div_ceil(full.get()));
        if self.protection.parity {
            // A packet of each group is parity; a frame has one group at least.
            let groups = packets.div_ceil(u64::from(GROUP) + 1).max(1);
            packets = (packets.max(groups + 1) - groups).max(1);
            shared = frame * packets / (packets + groups);
        }
        let payload = shared.max(HEADER * packets) - HEADER * packets;
        call.ask(payload / interval);
    }

    /// The next packet that may leave now. Call until it returns `None`.
    pub(super) fn poll(
        &mut self,
        now: Time,
        base: &mut Sender,
        call: &mut Call,
    ) -> Option<Outgoing> {
        while call.next_capture() <= now {
            let congested = self.backlog() > self.target(base, call) * BACKLOG_MAX;
            match call.capture(now, congested) {
                Some(captured) => self.packetize(captured),
                None => break,
            }
        }
        self.paced_until = Time::MAX;
        self.begin_probe(now, base);
        if let Some(content) = self.audio.pop_front() {
            let probe = self.probing.map(|probing| probing.probe.id);
            // In a probe it counts, as what is not paced does in libwebrtc.
            self.advance_probe(content.size());
            return Some(self.send(now, content, probe, base));
        }
        if let Some(probing) = self.probing {
            return self.poll_probe(now, probing, base);
        }
        let Some(next) = self.again.front().or(self.frames.front()) else {
            self.on_drained(base, call);
            return None;
        };
        let size = next.size();
        if base.tracker.inflight() + size > base.governor.window() {
            base.tracker.on_window_limited();
            let trickles_at = self.left_at + size / TRICKLE;
            if now < trickles_at {
                self.paced_until = trickles_at;
                return None;
            }
        }
        let burst = Self::burst(base);
        if self.paid_at > now + burst {
            self.paced_until = self.paid_at - burst;
            if base.tracker.inflight() * 2 >= base.governor.window() {
                base.tracker.on_window_limited();
            }
            return None;
        }
        let content = self.pop()?;
        self.pay(now, size, base);
        Some(self.send(now, content, None, base))
    }

    /// Nothing waits. The application limits the sender, unless the encoder fills a target that is
    /// less than it can use.
    fn on_drained(&self, base: &mut Sender, call: &Call) {
        let most = call.config().most(PAYLOAD, HEADER);
        let target = base.governor.driver_mut().and_then(|driver| driver.target());
        if target.is_none_or(|target| target >= most) {
            base.tracker.on_app_limited();
        }
    }

    /// A packet leaves that the pacer counts: all but audio.
    fn pay(&mut self, now: Time, size: Bytes, base: &Sender) {
        self.left_at = now;
        self.paid_at = self.paid_at.max(now) + size / self.pace(base);
    }

    /// Begins a probe that the governor asks for, with the next packet of video. Those that wait
    /// behind it follow at once (libwebrtc, `BitrateProber`).
    fn begin_probe(&mut self, now: Time, base: &mut Sender) {
        if let Some(driver) = base.governor.driver_mut() {
            let taken = std::iter::from_fn(|| driver.take_probe(now));
            self.probes.extend(taken.map(|probe| (now + PROBE_WAIT, probe)));
        }
        self.probes.retain(|&(until, _)| now < until);
        if self.probing.is_none() && !self.frames.is_empty() {
            self.probing = self.probes.pop_front().map(|(_, probe)| Probing::new(probe, now));
        }
    }

    /// A packet of a probe: what waits, or padding. Neither window nor pace bounds it.
    fn poll_probe(&mut self, now: Time, probing: Probing, base: &mut Sender) -> Option<Outgoing> {
        if now < probing.next_at {
            self.paced_until = probing.next_at;
            return None;
        }
        let content = self.pop().unwrap_or(Content::Padding { bytes: PAYLOAD });
        let size = content.size();
        self.advance_probe(size);
        self.pay(now, size, base);
        Some(self.send(now, content, Some(probing.probe.id), base))
    }

    /// A packet leaves. One that waits behind the probe that ends with it follows at once.
    fn advance_probe(&mut self, size: Bytes) {
        let Some(probing) = &mut self.probing else { return };
        let Probe { rate, packets, bytes, .. } = probing.probe;
        probing.packets += 1;
        probing.bytes += size;
        probing.next_at += size / rate;
        if probing.packets >= packets && probing.bytes >= bytes {
            let next_at = probing.next_at;
            self.probing = self.probes.pop_front().map(|(_, probe)| Probing::new(probe, next_at));
        }
    }

    fn pop(&mut self) -> Option<Content> {
        if let Some(content) = self.again.pop_front() {
            self.repairing -= content.size();
            return Some(content);
        }
        let content = self.frames.pop_front()?;
        self.waiting -= content.size();
        Some(content)
    }

    /// Bytes that wait for the pacer.
    fn backlog(&self) -> Bytes {
        self.waiting + self.repairing
    }

    /// How much of the pace may leave at once.
    fn burst(base: &mut Sender) -> Duration {
        let target = base.governor.driver_mut().and_then(|driver| driver.target());
        match (base.governor.pacing_rate(), target) {
            (Some(pace), Some(target)) if pace < target.mul_f64(2.0) => BURST_SMOOTH,
            _ => BURST,
        }
    }

    fn pace(&self, base: &Sender) -> Rate {
        let given = base.governor.pacing_rate();
        let rate = given.unwrap_or_else(|| self.rate(base).mul_f64(PACING));
        rate.max(self.backlog() / QUEUE_MAX)
    }

    fn send(
        &mut self,
        now: Time,
        content: Content,
        probe: Option<u32>,
        base: &mut Sender,
    ) -> Outgoing {
        let size = content.size();
        if base.tracker.inflight().is_zero() {
            self.progress_at = now;
        }
        let (record, sent) = base.tracker.on_sent(now, size);
        let number = self.sent.push(Sent { record, content, probe });
        debug_assert_eq!(number, record.number(), "the tracker counts as the history does");
        if !matches!(content, Content::Audio { .. }) {
            self.repairs.on_sent(now, size, matches!(content, Content::Again { .. }));
        }
        if let Content::Video { sequence, .. } | Content::Again { sequence, .. } = content
            && let Some(video) = self.video.get_mut(sequence)
        {
            video.sent_at = now;
        }
        base.totals.packets += 1;
        base.totals.bytes += size;
        base.totals.retransmits += u64::from(matches!(content, Content::Again { .. }));
        base.governor.on_sent(&sent);
        let len = (size - HEADER).get() as u32;
        let chunk = Chunk { stream: 0, len, offset: 0 };
        Outgoing { number, size, chunk, capable: false, reduced: false, marked: false }
    }

    /// Cuts a frame into packets, as equal as can be.
    fn packetize(&mut self, captured: Captured) {
        let (frame, bytes, key, media_time) = match captured {
            Captured::Audio { number, bytes } => {
                self.audio.push_back(Content::Audio { number, bytes });
                return;
            }
            Captured::Video { frame, bytes, key, media_time } => (frame, bytes, key, media_time),
        };
        let count = bytes.get().div_ceil(PAYLOAD.get()).min(u64::from(FRAME_PACKETS_MAX)) as u16;
        let first = self.video.end();
        let part = Bytes::new(bytes.get().div_ceil(u64::from(count)));
        for index in 0..count {
            let packet = VideoPacket { frame, index, count, key, media_time, bytes: part };
            let sequence = self.video.push(Video { packet, sent_at: Time::MAX });
            self.enqueue(Content::Video { sequence, packet });
        }
        if self.protection.parity {
            let mut left = u32::from(count);
            while left > 0 {
                let covered = left.min(GROUP);
                let first = first + u64::from(u32::from(count) - left);
                // RFC 5109 §7.3, §7.4: 10 bytes for the group and 4 for its mask.
                let bytes = part + Bytes::new(14);
                self.enqueue(Content::Parity { first, count: covered, bytes });
                left -= covered;
            }
        }
    }

    fn enqueue(&mut self, content: Content) {
        self.waiting += content.size();
        self.frames.push_back(content);
    }

    /// When it has something to do.
    pub(super) fn next_timer(&self, base: &Sender, call: &Call) -> Time {
        let governor = base.governor.next_timer().unwrap_or(Time::MAX);
        call.next_capture().min(self.paced_until).min(governor).min(self.timeout_at(base))
    }

    /// Does what is due but for sending.
    pub(super) fn on_timer(&mut self, now: Time, base: &mut Sender, call: &mut Call) {
        base.governor.on_timer(now);
        if self.timeout_at(base) <= now {
            self.on_timeout(now, base);
        }
        self.ask(base, call);
    }

    /// Something came back.
    pub(super) fn on_report(
        &mut self,
        now: Time,
        report: Report,
        base: &mut Sender,
        call: &mut Call,
    ) {
        match report {
            Report::Feedback(feedback) => {
                self.on_feedback(now, &feedback, base);
                self.ask(base, call);
            }
            Report::Repair(sequences) => self.repair(now, &sequences, base),
            Report::Key => call.request_key(),
            Report::Input(made_at) => call.on_input(made_at),
        }
    }

    /// Queues packets that were asked for again, unless they left within the last round trip
    /// (libwebrtc, `RtpPacketHistory::GetPacketAndMarkAsPending`), up to the target: the rest of a
    /// request is passed over.
    fn repair(&mut self, now: Time, sequences: &[u64], base: &Sender) {
        let (rtt, target) = (base.rtt.smoothed(), self.rate(base));
        for &sequence in sequences {
            let Some(video) = self.video.get_mut(sequence) else { continue };
            if video.sent_at == Time::MAX || now < video.sent_at + rtt {
                continue;
            }
            let content = Content::Again { sequence, packet: video.packet };
            if !self.repairs.ask(now, content.size(), target) {
                return;
            }
            video.sent_at = Time::MAX;
            self.repairing += content.size();
            self.again.push_back(content);
        }
    }
}
