//! A sender and a receiver of `rtc-interceptor` over a link of the simulator, in virtual time.
#![allow(dead_code, reason = "each test and example uses a part")]

use std::time::{Duration as StdDuration, Instant};

use rtc_interceptor::{
    AttributedPacket, BandwidthEstimator, CongestionControlBuilder, Interceptor,
    NackGeneratorBuilder, NackResponderBuilder, Packet, RTCPFeedback, RTPHeaderExtension, Registry,
    Slot, StreamInfo, TaggedPacket, TwccReceiverBuilder, TwccSenderBuilder,
};
use rtc_shared::TransportContext;
use rtc_shared::marshal::MarshalSize as _;
use trimtab_net::{Capacity, Event, Link, LinkConfig, LossConfig, Packet as OnLink, QueueConfig};
use trimtab_rtc::units::{Bytes, Duration, Rate, Time};
use trimtab_rtc::{Bitrates, Config, Estimator, Handle, Target};

const SSRC: u32 = 7;
const FRAME: Duration = Duration::from_millis(40);
const PAYLOAD: u64 = 1200;
/// IP, UDP and SRTP.
const OVERHEAD: u64 = 20 + 8 + 10;

/// A path, and what the encoder can do.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) capacity: Capacity,
    pub(crate) buffer: Bytes,
    pub(crate) loss: f64,
    /// One way.
    pub(crate) delay: Duration,
    pub(crate) bitrates: Bitrates,
    /// The most that the encoder makes, whatever the target is.
    pub(crate) content: Rate,
}

impl Setting {
    /// A link of this rate, 20 ms each way, with a buffer of 250 ms.
    pub(crate) fn of_mbps(mbps: f64) -> Self {
        let rate = Rate::from_mbps(mbps);
        Self {
            capacity: Capacity::Constant(rate),
            buffer: rate * Duration::from_millis(250),
            loss: 0.0,
            delay: Duration::from_millis(20),
            bitrates: Bitrates { most: Rate::from_mbps(20.0), ..Bitrates::default() },
            content: Rate::MAX,
        }
    }
}

/// What a second of the run was like.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    /// The target at its end, and what arrived, in Mbit/s.
    pub(crate) target: f64,
    pub(crate) arrived: f64,
    /// The longest that a packet waited at the link, in ms.
    pub(crate) queue_ms: f64,
    /// Packets that the link dropped.
    pub(crate) dropped: u64,
    /// The longest that the pacer needed for what waited in it, in ms.
    pub(crate) backlog_ms: f64,
}

/// A sender, a link and a receiver.
pub(crate) struct World {
    epoch: Instant,
    now: Time,
    setting: Setting,
    sender: Box<dyn Interceptor>,
    receiver: Box<dyn Interceptor>,
    target: Target,
    pub(crate) handle: Handle,
    there: Link<Packet>,
    back: Link<Packet>,
    next_frame: Time,
    sequence: u16,
    next_second: Time,
    second: Second,
    pub(crate) seconds: Vec<Second>,
    /// While this is set, nothing reaches the sender.
    pub(crate) is_deaf: bool,
}

fn stream() -> StreamInfo {
    let feedback = |typ: &str| RTCPFeedback { typ: typ.to_owned(), parameter: String::new() };
    StreamInfo {
        ssrc: SSRC,
        clock_rate: 90_000,
        mime_type: "video/H264".to_owned(),
        payload_type: 108,
        rtcp_feedback: vec![feedback("transport-cc"), feedback("nack")],
        rtp_header_extensions: vec![RTPHeaderExtension {
            uri: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
                .to_owned(),
            id: 5,
        }],
        ..StreamInfo::default()
    }
}

impl World {
    pub(crate) fn new(scheme: &str, setting: &Setting) -> Self {
        let config = Config::new(scheme).expect("a scheme");
        Self::with(config, setting, |estimator| estimator)
    }

    /// The same with settings of one's own, and an estimator that stands in for ours.
    pub(crate) fn with<E: BandwidthEstimator + 'static>(
        config: Config,
        setting: &Setting,
        wrap: impl FnOnce(Estimator) -> E,
    ) -> Self {
        let epoch = Instant::now();
        let config = config.with_seed(1).with_clock(epoch);
        let (factory, handle) = config.connection();
        let parts = factory.sender(epoch, setting.bitrates);
        let estimator = wrap(parts.estimator);
        let mut sender = Registry::new()
            .with(
                Slot::CongestionControl,
                CongestionControlBuilder::new(estimator)
                    .with_prune_horizon(trimtab_rtc::HISTORY)
                    .build(),
            )
            .with(Slot::TwccSender, TwccSenderBuilder::new().build())
            .with(Slot::Pacer, parts.pacer)
            .with(Slot::NackResponder, NackResponderBuilder::new().build())
            .build();
        sender.bind_local_stream(&stream());
        let mut receiver = Registry::new()
            .with(Slot::NackGenerator, NackGeneratorBuilder::new().build())
            .with(Slot::TwccReceiver, TwccReceiverBuilder::new().build())
            .build();
        receiver.bind_remote_stream(&stream());
        let there = LinkConfig::new(setting.capacity.clone())
            .queue(QueueConfig::drop_tail_bytes(setting.buffer))
            .loss(LossConfig::Independent(setting.loss))
            .delay(setting.delay);
        let back = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(setting.delay);
        Self {
            epoch,
            now: Time::ZERO,
            setting: setting.clone(),
            sender: Box::new(sender),
            receiver: Box::new(receiver),
            target: parts.target,
            handle,
            there: Link::new(&there, 1),
            back: Link::new(&back, 2),
            next_frame: Time::ZERO,
            sequence: 0,
            next_second: Time::from_secs(1),
            second: Second::default(),
            seconds: Vec::new(),
            is_deaf: false,
        }
    }

    fn instant(&self) -> Instant {
        self.epoch + StdDuration::from_nanos(self.now.as_nanos())
    }

    fn time(&self, at: Option<Instant>) -> Time {
        at.map_or(Time::MAX, |at| {
            Time::from_nanos((at - self.epoch).as_nanos().try_into().expect("in range"))
        })
    }

    fn tagged(&self, packet: Packet) -> TaggedPacket {
        TaggedPacket {
            now: self.instant(),
            transport: TransportContext::default(),
            message: AttributedPacket::new(packet),
        }
    }

    /// A frame of the target's size, and the filler that a probe asks for.
    fn encode(&mut self) {
        let backlog_ms = self.target.backlog().as_secs_f64() * 1e3;
        self.second.backlog_ms = self.second.backlog_ms.max(backlog_ms);
        let bitrate = self.target.bitrate().min(self.setting.content);
        let mut left = (bitrate * FRAME).get().max(200);
        if self.setting.content == Rate::MAX {
            left += self.target.filler(Bytes::new(left)).get();
        }
        while left > 0 {
            let size = left.min(PAYLOAD);
            left -= size;
            let header = rtc_rtp::header::Header {
                version: 2,
                marker: left == 0,
                payload_type: 108,
                sequence_number: self.sequence,
                timestamp: u32::try_from(self.now.as_micros() * 9 / 100).expect("a short run"),
                ssrc: SSRC,
                ..Default::default()
            };
            self.sequence = self.sequence.wrapping_add(1);
            let payload = vec![0; size as usize].into();
            let packet = self.tagged(Packet::Rtp(rtc_rtp::Packet { header, payload }));
            self.sender.handle_write(packet).expect("the chain takes it");
        }
        self.next_frame += FRAME;
    }

    fn flush(&mut self) {
        while let Some(tagged) = self.sender.poll_write() {
            let Packet::Rtp(rtp) = &tagged.message.packet else { continue };
            let size = Bytes::new(rtp.marshal_size() as u64 + OVERHEAD);
            let packet = OnLink { size, payload: tagged.message.packet };
            self.second.dropped += u64::from(self.there.send(self.now, packet).is_err());
        }
        while let Some(tagged) = self.receiver.poll_write() {
            let packet = OnLink { size: Bytes::new(100), payload: tagged.message.packet };
            self.back.send(self.now, packet).expect("it has no limit");
        }
        // Nobody takes what has passed a chain.
        while self.receiver.poll_read().is_some() || self.sender.poll_read().is_some() {}
    }

    fn deliver(&mut self) {
        while let Some(event) = self.there.poll(self.now) {
            let Event::Delivered(delivery) = event else { continue };
            self.second.arrived += delivery.packet.size.bits() / 1e6;
            let waited = delivery.departed_at.since(delivery.enqueued_at).as_millis_f64();
            self.second.queue_ms = self.second.queue_ms.max(waited);
            let packet = self.tagged(delivery.packet.payload);
            self.receiver.handle_read(packet).expect("the chain takes it");
        }
        while let Some(event) = self.back.poll(self.now) {
            let Event::Delivered(delivery) = event else { continue };
            let packet = self.tagged(delivery.packet.payload);
            if !self.is_deaf {
                self.sender.handle_read(packet).expect("the chain takes it");
            }
        }
    }

    /// Goes on until that time.
    pub(crate) fn run_until(&mut self, until: Time) -> &[Second] {
        let from = self.seconds.len();
        loop {
            let ends = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let links = [self.there.next_event(), self.back.next_event()];
            let next = ends.map(|at| self.time(at)).into_iter().chain(links.into_iter().flatten());
            let own = self.next_frame.min(self.next_second);
            self.now = next.fold(own, Time::min).max(self.now);
            if self.now >= until {
                self.now = until;
                return &self.seconds[from..];
            }
            self.deliver();
            if self.next_frame <= self.now {
                self.encode();
            }
            if self.next_second <= self.now {
                self.second.target = self.target.bitrate().mbps();
                self.seconds.push(std::mem::take(&mut self.second));
                self.next_second += Duration::from_secs(1);
            }
            let now = self.instant();
            self.sender.handle_timeout(now).expect("the chain goes on");
            self.receiver.handle_timeout(now).expect("the chain goes on");
            self.flush();
        }
    }
}

/// The mean over seconds.
pub(crate) fn mean(seconds: &[Second], of: impl Fn(&Second) -> f64) -> f64 {
    seconds.iter().map(of).sum::<f64>() / seconds.len() as f64
}
