//! Virtual time: a call of the simulator's encoder and receiver over the interceptors of
//! `rtc-interceptor` and a link of the simulator. No socket is opened and no clock is read.

use std::collections::BTreeMap;
use std::time::{Duration as StdDuration, Instant};

use bytes::Bytes as Payload;
use rtc_interceptor::{
    AttributedPacket, CongestionControlBuilder, Interceptor, NackGeneratorBuilder,
    NackResponderBuilder, Packet, RTCPFeedback, RTPHeaderExtension, Registry, Slot, StreamInfo,
    TaggedPacket, TwccReceiverBuilder, TwccSenderBuilder,
};
use rtc_rtcp::transport_feedbacks::transport_layer_nack::TransportLayerNack;
use rtc_shared::TransportContext;
use rtc_shared::marshal::MarshalSize as _;
use trimtab_apps::{Call, Captured, FRAME_PACKETS_MAX, VideoPacket};
use trimtab_net::{Capacity, Event, Link, LinkConfig, Packet as OnLink};
use trimtab_rtc::units::{Bytes, Time};
use trimtab_rtc::{Config, Handle, Target};
use trimtab_sim::Histogram;

use crate::rates::{BACKLOG_MAX, PAYLOAD, bitrates, video_rate};

const VIDEO: u32 = 1;
const AUDIO: u32 = 2;
/// IPv4 20, UDP 8, SRTP's tag 10: what is around an RTP packet.
const AROUND: Bytes = Bytes::new(38);
/// A compound RTCP packet is about so large (the simulator counts 42 bytes of headers, and 20 to 60
/// of feedback).
const REPORT: Bytes = Bytes::new(90);
/// How often the receiver reports: as Chromium and the simulator.
const FEEDBACK: StdDuration = StdDuration::from_micros(62_500);
/// How often the receiver asks for what is missing (libwebrtc, `NackPeriodicProcessor`,
/// `kUpdateInterval`). The sender passes over what it asks for too soon.
const REPAIR: StdDuration = StdDuration::from_millis(20);
static ZEROS: [u8; PAYLOAD as usize] = [0; PAYLOAD as usize];

/// What goes back to the sender.
#[derive(Debug)]
enum Back {
    Report(Packet),
    /// The picture cannot go on without a key frame.
    Key,
}

/// A call under way.
pub(crate) struct VirtualWorld {
    epoch: Instant,
    now: Time,
    sender: Box<dyn Interceptor>,
    receiver: Box<dyn Interceptor>,
    target: Target,
    pub(crate) handle: Handle,
    call: Box<dyn Calling>,
    there: Link<Packet>,
    back: Link<Back>,
    capacity: Capacity,
    /// What packets of video carry, by their sequence number; `None` for filler. Those that
    /// can be asked for again.
    carried: BTreeMap<u64, Option<VideoPacket>>,
    next_video: u64,
    next_audio: u64,
    /// The highest number of video that arrived.
    newest: u64,
    pub(crate) packets: u64,
    pub(crate) retransmits: u64,
    pub(crate) dropped: u64,
    /// Waits in the queue.
    pub(crate) queue: Histogram,
}

/// An application with a call.
pub(crate) trait Calling {
    /// The call.
    fn call(&self) -> &Call;
    /// The same, to go on with it.
    fn call_mut(&mut self) -> &mut Call;
}

fn stream(ssrc: u32, mime_type: &str) -> StreamInfo {
    let feedback = |typ: &str| RTCPFeedback { typ: typ.to_owned(), parameter: String::new() };
    let mut rtcp_feedback = vec![feedback("transport-cc")];
    if ssrc == VIDEO {
        rtcp_feedback.push(feedback("nack"));
    }
    StreamInfo {
        ssrc,
        clock_rate: 90_000,
        mime_type: mime_type.to_owned(),
        payload_type: 96,
        rtcp_feedback,
        rtp_header_extensions: vec![RTPHeaderExtension {
            uri: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
                .to_owned(),
            id: 5,
        }],
        ..StreamInfo::default()
    }
}

impl VirtualWorld {
    /// A call of an application by a scheme over a link: towards the receiver, and back.
    pub(crate) fn new(
        config: &Config,
        epoch: Instant,
        mut call: Box<dyn Calling>,
        (down, up): (&LinkConfig, &LinkConfig),
        seed: u64,
    ) -> Self {
        let (factory, handle) = config.connection();
        let parts = factory.sender(epoch, bitrates(call.call().config()));
        let mut sender = Registry::new()
            .with(
                Slot::CongestionControl,
                CongestionControlBuilder::new(parts.estimator)
                    .with_prune_horizon(trimtab_rtc::HISTORY)
                    .build(),
            )
            .with(Slot::TwccSender, TwccSenderBuilder::new().build())
            .with(Slot::Pacer, parts.pacer)
            .with(Slot::NackResponder, NackResponderBuilder::new().build())
            .build();
        let mut receiver = Registry::new()
            .with(Slot::NackGenerator, NackGeneratorBuilder::new().with_interval(REPAIR).build())
            .with(Slot::TwccReceiver, TwccReceiverBuilder::new().with_interval(FEEDBACK).build())
            .build();
        for (ssrc, kind) in [(VIDEO, "video/H264"), (AUDIO, "audio/opus")] {
            sender.bind_local_stream(&stream(ssrc, kind));
            receiver.bind_remote_stream(&stream(ssrc, kind));
        }
        call.call_mut().begin(Time::ZERO);
        Self {
            epoch,
            now: Time::ZERO,
            sender: Box::new(sender),
            receiver: Box::new(receiver),
            target: parts.target,
            handle,
            call,
            there: Link::new(down, seed),
            back: Link::new(up, seed ^ 1),
            capacity: down.capacity.clone(),
            carried: BTreeMap::new(),
            next_video: 0,
            next_audio: 0,
            newest: 0,
            packets: 0,
            retransmits: 0,
            dropped: 0,
            queue: Histogram::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn call(&self) -> &Call {
        self.call.call()
    }

    pub(crate) fn carried(&self) -> Bytes {
        self.there.stats().departures.bytes
    }

    /// How long what waits now will take, as in the simulator.
    pub(crate) fn queue_delay_ms(&mut self) -> f64 {
        let waiting = self.there.queue_bytes();
        let drain = trimtab_lab::run::course::drain_time(&self.capacity, self.now, waiting);
        drain.as_millis_f64()
    }

    fn instant(&self) -> Instant {
        self.epoch + StdDuration::from_nanos(self.now.as_nanos())
    }

    fn time(&self, at: Option<Instant>) -> Time {
        at.map_or(Time::MAX, |at| {
            let since = at.saturating_duration_since(self.epoch).as_nanos();
            Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
        })
    }

    fn tagged(&self, packet: Packet) -> TaggedPacket {
        TaggedPacket {
            now: self.instant(),
            transport: TransportContext::default(),
            message: AttributedPacket::new(packet),
        }
    }

    /// Goes on until that time.
    pub(crate) fn run_until(&mut self, until: Time) {
        loop {
            let ends = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let links = [self.there.next_event(), self.back.next_event()];
            let call = self.call.call();
            let own = call.next_capture().min(call.key_due());
            let next = ends.map(|at| self.time(at)).into_iter().chain(links.into_iter().flatten());
            self.now = next.fold(own, Time::min).max(self.now);
            if self.now >= until {
                self.now = until;
                return;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        self.deliver();
        self.report();
        self.capture();
        let key_due = self.call.call().key_due() <= self.now;
        if key_due {
            self.call.call_mut().on_key_asked(self.now);
            self.send_back(Back::Key);
        }
        let now = self.instant();
        // Only what is malformed is refused, and both ends are ours.
        let _ = (self.sender.handle_timeout(now), self.receiver.handle_timeout(now));
        self.flush();
    }

    /// Encodes and sends what was captured.
    fn capture(&mut self) {
        if self.call.call().next_capture() > self.now {
            return;
        }
        let (call, target) = (self.call.call(), self.target.bitrate());
        let rate = video_rate(target, call.audio_rate(), call.interval());
        self.call.call_mut().ask(rate);
        let congested = self.target.backlog() > BACKLOG_MAX;
        while let Some(captured) = self.call.call_mut().capture(self.now, congested) {
            match captured {
                Captured::Audio { number, bytes } => {
                    self.next_audio = u64::from(number);
                    self.send(AUDIO, self.next_audio, bytes, true);
                }
                Captured::Video { frame, bytes, key, media_time } => {
                    self.send_frame(frame, bytes, key, media_time);
                }
            }
        }
    }

    fn send_frame(&mut self, frame: u32, bytes: Bytes, key: bool, media_time: Time) {
        let full = Bytes::new(PAYLOAD);
        let count = bytes.get().div_ceil(PAYLOAD).clamp(1, FRAME_PACKETS_MAX.into()) as u16;
        let filler = self.target.filler(bytes);
        // As equal as can be, as libwebrtc cuts them (`SplitAboutEqually`).
        let part = Bytes::new(bytes.get().div_ceil(u64::from(count)));
        for index in 0..count {
            let packet = VideoPacket { frame, index, count, key, media_time, bytes: part };
            self.send_video(Some(packet), part, index + 1 == count && filler.is_zero());
        }
        let mut left = filler;
        while !left.is_zero() {
            let part = left.min(full);
            left -= part;
            self.send_video(None, part, left.is_zero());
        }
    }

    fn send_video(&mut self, packet: Option<VideoPacket>, bytes: Bytes, marker: bool) {
        self.carried.insert(self.next_video, packet);
        self.send(VIDEO, self.next_video, bytes, marker);
        self.next_video += 1;
        // As many as the responder keeps.
        while self.carried.len() > 1024 {
            self.carried.pop_first();
        }
    }

    fn send(&mut self, ssrc: u32, number: u64, bytes: Bytes, marker: bool) {
        let header = rtc_rtp::header::Header {
            version: 2,
            marker,
            payload_type: 96,
            sequence_number: number as u16,
            timestamp: (self.now.as_micros() * 9 / 100) as u32,
            ssrc,
            ..Default::default()
        };
        let size = usize::try_from(bytes.get()).unwrap_or(0).min(ZEROS.len());
        let payload = Payload::from_static(&ZEROS[..size]);
        let packet = self.tagged(Packet::Rtp(rtc_rtp::Packet { header, payload }));
        let _ = self.sender.handle_write(packet);
    }

    /// Puts on the links what leaves the chains.
    fn flush(&mut self) {
        while let Some(tagged) = self.sender.poll_write() {
            let Packet::Rtp(rtp) = &tagged.message.packet else { continue };
            let size = Bytes::new(rtp.marshal_size() as u64) + AROUND;
            let packet = OnLink { size, payload: tagged.message.packet };
            self.packets += 1;
            self.dropped += u64::from(self.there.send(self.now, packet).is_err());
        }
        while let Some(tagged) = self.receiver.poll_write() {
            self.send_back(Back::Report(tagged.message.packet));
        }
        // Nobody else wants what has passed a chain.
        while self.receiver.poll_read().is_some() || self.sender.poll_read().is_some() {}
    }

    fn send_back(&mut self, back: Back) {
        let lost = self.back.send(self.now, OnLink { size: REPORT, payload: back });
        debug_assert!(lost.is_ok(), "the way back has no queue to be full");
    }

    /// Takes what has crossed the link.
    fn deliver(&mut self) {
        while let Some(event) = self.there.poll(self.now) {
            let delivery = match event {
                Event::Delivered(delivery) => delivery,
                Event::Dropped(_) => {
                    self.dropped += 1;
                    continue;
                }
            };
            self.queue.record(delivery.departed_at.since(delivery.enqueued_at));
            let packet = delivery.packet.payload;
            if let Packet::Rtp(rtp) = &packet {
                match rtp.header.ssrc {
                    AUDIO => {
                        let number = extended(rtp.header.sequence_number, self.next_audio);
                        self.call.call_mut().on_audio(self.now, number as u32);
                    }
                    _ => self.on_video(rtp.header.sequence_number),
                }
            }
            let packet = self.tagged(packet);
            let _ = self.receiver.handle_read(packet);
        }
    }

    fn on_video(&mut self, sequence: u16) {
        let number = extended(sequence, self.next_video);
        let again = number < self.newest;
        self.newest = self.newest.max(number);
        if let Some(Some(packet)) = self.carried.get(&number) {
            let rtt = self.handle.metrics().and_then(|metrics| metrics.srtt).unwrap_or_default();
            self.call.call_mut().on_video(self.now, packet, again, rtt);
        }
    }

    /// Takes what has come back.
    fn report(&mut self) {
        while let Some(event) = self.back.poll(self.now) {
            let Event::Delivered(delivery) = event else { continue };
            match delivery.packet.payload {
                Back::Key => self.call.call_mut().request_key(),
                Back::Report(packet) => {
                    self.retransmits += asked_again(&packet);
                    let packet = self.tagged(packet);
                    let _ = self.sender.handle_read(packet);
                }
            }
        }
    }
}

/// How many packets a report asks for again.
fn asked_again(packet: &Packet) -> u64 {
    let Packet::Rtcp(parts) = packet else { return 0 };
    let missing =
        parts.iter().filter_map(|part| part.as_any().downcast_ref::<TransportLayerNack>());
    missing
        .flat_map(|missing| &missing.nacks)
        .map(|pair| 1 + u64::from(pair.lost_packets.count_ones()))
        .sum()
}

/// The number near another of which these are the last 16 bits.
fn extended(sequence: u16, near: u64) -> u64 {
    let ahead = sequence.wrapping_sub(near as u16).cast_signed();
    near.saturating_add_signed(ahead.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_are_extended_around_the_newest() {
        for (near, of) in [(5, 4), (5, 9), (65_535, 65_536), (65_540, 65_530), (200_000, 199_000)] {
            assert_eq!(extended(of as u16, near), of, "{of} near {near}");
        }
    }
}
