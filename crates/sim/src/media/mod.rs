//! A transport of media: RTP packets over UDP, feedback on each of them, retransmission on request.
//!
//! ```text
//!   call ─ frames ─▶ MediaSender ─ packets ─▶ links ─▶ MediaReceiver ─ packets ─▶ call
//!     ▲                │    ▲                              │
//!     └── bitrate ─────┘    └──── Report (RTCP) ◀──────────┘
//! ```
//!
//! What the congestion control sees of it is what other transports show it (`sender/acks.rs`), and
//! after that the arrivals of packets one by one. What it gives is the window, which bounds what
//! may be in flight, and the bitrate of the encoder.
//!
//! Packets and reports on the links are numbers; what they carry is looked up in the histories.
//!
//! Read first: `sender.rs`, then `receiver.rs`.

mod content;
mod history;
mod parity;
mod receiver;
mod sender;

use trimtab_apps::Call;
use trimtab_units::{Bytes, Duration, Rate, Time};

pub(crate) use content::Report;
use receiver::MediaReceiver;
use sender::MediaSender;

use crate::sender::{Outgoing, Sender};
use crate::transport::{LossDetection, Pacing, Transport};

/// Payload of a full packet (libwebrtc: `kDefaultMaxPacketSize` is 1200, before the headers below).
const PAYLOAD: Bytes = Bytes::new(1200);
/// IPv4 20, UDP 8, RTP 12, its extension with the transport-wide number 8, SRTP's tag 10.
const HEADER: Bytes = Bytes::new(58);
/// Headers and SRTCP's trailer of a compound RTCP packet: IPv4 20, UDP 8, SRTCP 14.
const RTCP_HEADER: Bytes = Bytes::new(42);
/// How often the receiver sends transport-wide feedback. libwebrtc asks for 50 ms
/// (`TransportSequenceNumberFeedbackGenenerator`, `kMinInterval`), and Chromium's timers of low
/// precision make it four ticks of a 64th of a second: recorded calls have 62.4 ms.
const FEEDBACK: Duration = Duration::from_micros(62_500);

/// What a flow of media runs on: packets of a call, found lost by feedback.
pub(crate) fn transport(of: Transport) -> Transport {
    Transport {
        packet: PAYLOAD + HEADER,
        header: HEADER,
        loss_detection: LossDetection::Rfc9002,
        max_ack_delay: FEEDBACK,
        idle_restart: false,
        proportional_rate_reduction: false,
        pacing: Pacing::Multiple(sender::PACING),
        min_window: of.min_window.max(2),
        ..of
    }
}

/// Both ends of a flow of media.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    sender: MediaSender,
    receiver: MediaReceiver,
    /// When the receiving end's next input leaves; never where it sends none.
    input_at: Time,
    begun: bool,
}

impl Media {
    pub(crate) fn new(call: &Call) -> Self {
        let protection = call.config().protection;
        Self {
            sender: MediaSender::new(protection),
            receiver: MediaReceiver::new(protection),
            input_at: Time::MAX,
            begun: false,
        }
    }

    /// The call has begun. Whether that was not known.
    pub(crate) fn begin(&mut self, now: Time, base: &mut Sender, call: &mut Call) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            return false;
        }
        if call.config().interactive {
            self.input_at = now;
        }
        self.sender.ask(base, call);
        true
    }

    /// The next packet that may leave now.
    pub(crate) fn poll_send(
        &mut self,
        now: Time,
        base: &mut Sender,
        call: &mut Call,
    ) -> Option<Outgoing> {
        self.sender.poll(now, base, call)
    }

    /// The rate that the congestion control gives for everything, headers included.
    pub(crate) fn rate(&self, base: &Sender) -> Rate {
        self.sender.rate(base)
    }

    /// Whether anything waits to be sent.
    pub(crate) fn has_data(&self) -> bool {
        self.sender.has_data()
    }

    /// Bytes that wait to be sent for the first time.
    pub(crate) fn unsent(&self) -> Bytes {
        self.sender.unsent()
    }

    /// When the sending end has something to do.
    pub(crate) fn server_timer(&self, base: &Sender, call: &Call) -> Time {
        self.sender.next_timer(base, call)
    }

    /// Does what is due there.
    pub(crate) fn on_server_timer(&mut self, now: Time, base: &mut Sender, call: &mut Call) {
        self.sender.on_timer(now, base, call);
    }

    /// A packet reached the client. How much of the call arrived for the first time.
    pub(crate) fn deliver(
        &mut self,
        now: Time,
        number: u64,
        call: &mut Call,
        rtt: Duration,
    ) -> Bytes {
        let Some(content) = self.sender.content(number) else { return Bytes::ZERO };
        let mut fresh = self.receiver.on_packet(now, number, content, call, rtt);
        while let Some(sequence) = self.receiver.recover() {
            let Some(packet) = self.sender.video(sequence) else { break };
            fresh += self.receiver.on_recovered(now, sequence, packet, call, rtt);
        }
        fresh
    }

    /// When the receiving end has something to do.
    pub(crate) fn client_timer(&self, call: &Call) -> Time {
        let input = if call.is_over() { Time::MAX } else { self.input_at };
        self.receiver.next_timer().min(call.key_due()).min(input)
    }

    /// A report that is due: its number and its size on the wire. Call until there is none.
    pub(crate) fn report(
        &mut self,
        now: Time,
        call: &mut Call,
        rtt: Duration,
    ) -> Option<(u64, Bytes)> {
        if self.input_at <= now && !call.is_over() {
            self.input_at = now + call.interval();
            return Some(self.receiver.send(Report::Input(now)));
        }
        self.receiver.report(now, call, rtt)
    }

    /// A report reached the sending end.
    pub(crate) fn arrive(&mut self, now: Time, number: u64, base: &mut Sender, call: &mut Call) {
        if let Some(report) = self.receiver.take(number) {
            self.sender.on_report(now, report, base, call);
        }
    }
}
