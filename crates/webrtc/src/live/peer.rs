//! The sending end of a call: a peer connection of `rtc` on a UDP socket, driven by one thread.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rtc::interceptor::{Registry, Slot};
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::interceptor_registry::{
    configure_nack, configure_rtcp_reports, configure_twcc_sender_only,
};
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_H264, MediaEngine};
use rtc::peer_connection::event::RTCPeerConnectionEvent;
use rtc::peer_connection::sdp::RTCSessionDescription;
use rtc::peer_connection::state::RTCPeerConnectionState;
use rtc::peer_connection::transport::{CandidateConfig, CandidateHostConfig, RTCIceCandidate};
use rtc::peer_connection::{RTCPeerConnection, RTCPeerConnectionBuilder};
use rtc::rtp;
use rtc::rtp::codec::h264::H264Payloader;
use rtc::rtp::packetizer::Payloader as _;
use rtc::rtp_transceiver::RTCRtpSenderId;
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
    RtpCodecKind,
};
use rtc::sansio::Protocol as _;
use rtc::shared::{TaggedBytesMut, TransportContext, TransportProtocol};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trimtab_rtc::{Target, units};

use super::requests::Requests;
use crate::error::WebrtcError;
use crate::rates;

const PAYLOAD: usize = rates::PAYLOAD as usize;
/// The clock of video (RFC 6184 §8.2.1).
pub const CLOCK_RATE: u32 = 90_000;
const SSRC: u32 = 0x7472_696d;
/// NAL units of this type are filler, which decoders pass over (H.264 §7.4.2.7).
const FILLER: u8 = 12;
/// Constrained baseline with packetization mode 1, which browsers offer.
const FORMAT: &str = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f";

/// A sender of one stream of H.264.
pub struct Peer {
    connection: RTCPeerConnection,
    socket: UdpSocket,
    local: SocketAddr,
    stream: RTCRtpSenderId,
    payload_type: u8,
    payloader: H264Payloader,
    sequence: u16,
    target: Target,
    requests: Requests,
    state: RTCPeerConnectionState,
}

impl Peer {
    /// Answers an offer to receive video, in SDP; the answer goes back to who offered. `chain` has a
    /// scheme's estimator and pacer, and `target` is theirs. What requests, reports and numbers
    /// packets is added to it. The socket's address is the only candidate of this end.
    ///
    /// # Errors
    /// The offer cannot be read or has no H.264, or the socket fails.
    pub fn answer(
        socket: UdpSocket,
        offer: &str,
        chain: Registry,
        target: Target,
    ) -> Result<(Self, String), WebrtcError> {
        let fail = WebrtcError::peer::<rtc::shared::error::Error>;
        let system = WebrtcError::system::<std::io::Error>;
        socket.set_nonblocking(true).map_err(system("open a socket"))?;
        let local = socket.local_addr().map_err(system("look at a socket"))?;
        let requests = Requests::default();
        let mut connection = connection(chain, &requests)?;
        let track = MediaStreamTrack::new(
            "call".into(),
            "video".into(),
            "video".into(),
            RtpCodecKind::Video,
            vec![RTCRtpEncodingParameters {
                rtp_coding_parameters: RTCRtpCodingParameters {
                    ssrc: Some(SSRC),
                    ..Default::default()
                },
                codec: codec(),
                ..Default::default()
            }],
        );
        let stream = connection.add_track(track).map_err(fail("add a track"))?;
        let offer =
            RTCSessionDescription::offer(offer.to_owned()).map_err(fail("read the offer"))?;
        let now = Instant::now();
        connection.set_remote_description(now, offer).map_err(fail("take the offer"))?;
        let candidate = CandidateHostConfig {
            base_config: CandidateConfig {
                network: "udp".into(),
                address: local.ip().to_string(),
                port: local.port(),
                component: 1,
                ..Default::default()
            },
            ..Default::default()
        };
        let candidate = candidate.new_candidate_host().map_err(fail("make a candidate"))?;
        let candidate = RTCIceCandidate::from(&candidate).to_json();
        let candidate = candidate.map_err(fail("write a candidate"))?;
        connection.add_local_candidate(candidate).map_err(fail("add a candidate"))?;
        let answer = connection.create_answer(None).map_err(fail("answer"))?;
        connection.set_local_description(now, answer).map_err(fail("take the answer"))?;
        let answer = connection.local_description().map(|description| description.sdp);
        let answer = answer.ok_or_else(|| WebrtcError::peer("answer")("it has no answer"))?;
        let payload_type = connection.rtp_sender(stream).and_then(|mut sender| {
            let codecs = &sender.get_parameters().rtp_parameters.codecs;
            codecs.first().map(|codec| codec.payload_type)
        });
        let payload_type = payload_type
            .ok_or_else(|| WebrtcError::peer("agree on a codec")("the offer has no H.264"))?;
        let peer = Self {
            connection,
            socket,
            local,
            stream,
            payload_type,
            payloader: H264Payloader::default(),
            sequence: 0,
            target,
            requests,
            state: RTCPeerConnectionState::New,
        };
        Ok((peer, answer))
    }

    /// What an encoder follows.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the receiver asked for a key frame since last asked.
    pub fn take_key_frame_request(&self) -> bool {
        self.requests.take_key_frame()
    }

    /// How many packets the receiver asked for again.
    pub fn retransmits(&self) -> u64 {
        self.requests.packets()
    }

    /// Whether media can be sent.
    pub fn is_connected(&self) -> bool {
        self.state == RTCPeerConnectionState::Connected
    }

    /// Sends a frame: NAL units in Annex B form, and filler behind them where a probe of the path
    /// asks for it. `timestamp` is by [`CLOCK_RATE`].
    ///
    /// # Errors
    /// The connection has failed.
    pub fn send_frame(&mut self, frame: Vec<u8>, timestamp: u32) -> Result<(), WebrtcError> {
        let fail = WebrtcError::peer::<rtc::shared::error::Error>;
        let size = units::Bytes::new(frame.len() as u64);
        let wanted = self.target.filler(size);
        let payloads = self.payloader.payload(PAYLOAD, &Bytes::from(frame));
        let mut payloads = payloads.map_err(fail("cut a frame into packets"))?;
        let mut left = usize::try_from(wanted.get()).unwrap_or(0);
        while left > 0 {
            let size = left.min(PAYLOAD);
            left -= size;
            payloads.push(filler(size));
        }
        let last = payloads.len().saturating_sub(1);
        let now = Instant::now();
        for (number, payload) in payloads.into_iter().enumerate() {
            let header = rtp::header::Header {
                version: 2,
                marker: number == last,
                payload_type: self.payload_type,
                sequence_number: self.sequence,
                timestamp,
                ssrc: SSRC,
                ..Default::default()
            };
            self.sequence = self.sequence.wrapping_add(1);
            let stream = self.connection.rtp_sender(self.stream);
            let mut stream =
                stream.ok_or_else(|| WebrtcError::peer("send a frame")("the track is gone"))?;
            let packet = rtp::Packet { header, payload };
            stream.write_rtp(now, packet).map_err(fail("send a frame"))?;
        }
        self.flush()
    }

    /// Sends and receives until a time.
    ///
    /// # Errors
    /// The connection failed, or the socket does.
    pub fn run_until(&mut self, end: Instant) -> Result<(), WebrtcError> {
        let fail = WebrtcError::peer::<rtc::shared::error::Error>;
        loop {
            self.flush()?;
            self.look()?;
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            let due = self.connection.poll_timeout().map_or(end, |due| due.min(end));
            if due <= now {
                self.connection.handle_timeout(now).map_err(fail("go on"))?;
                continue;
            }
            self.wait(due - now)?;
            self.receive()?;
        }
    }

    /// Waits for a datagram.
    fn wait(&self, time: Duration) -> Result<(), WebrtcError> {
        let timeout =
            Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(WebrtcError::system("wait for datagrams")(e)),
        }
    }

    fn receive(&mut self) -> Result<(), WebrtcError> {
        let mut buffer = [0; 2048];
        loop {
            let (size, from) = match self.socket.recv_from(&mut buffer) {
                Ok(got) => got,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // A datagram of ours found nobody.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
                Err(e) => return Err(WebrtcError::system("receive a datagram")(e)),
            };
            let datagram = TaggedBytesMut {
                now: Instant::now(),
                transport: TransportContext {
                    local_addr: self.local,
                    peer_addr: from,
                    ecn: None,
                    transport_protocol: TransportProtocol::UDP,
                },
                message: BytesMut::from(&buffer[..size]),
            };
            // What cannot be read is no reason to end a call: anybody can send a datagram.
            let _ = self.connection.handle_read(datagram);
        }
    }

    fn flush(&mut self) -> Result<(), WebrtcError> {
        while let Some(datagram) = self.connection.poll_write() {
            match self.socket.send_to(&datagram.message, datagram.transport.peer_addr) {
                Ok(_) => {}
                // As lost on the way.
                Err(e)
                    if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
                }
                Err(e) => return Err(WebrtcError::system("send a datagram")(e)),
            }
        }
        Ok(())
    }

    /// Takes what the connection reports.
    fn look(&mut self) -> Result<(), WebrtcError> {
        while self.connection.poll_read().is_some() {}
        while let Some(event) = self.connection.poll_event() {
            if let RTCPeerConnectionEvent::OnConnectionStateChangeEvent(state) = event {
                self.state = state;
            }
        }
        match self.state {
            RTCPeerConnectionState::Failed | RTCPeerConnectionState::Closed => {
                Err(WebrtcError::peer("reach the receiver")(self.state))
            }
            _ => Ok(()),
        }
    }
}

/// A unit of filler of so many bytes, at least 2.
fn filler(size: usize) -> Bytes {
    let mut unit = vec![0xff; size.max(2)];
    unit[0] = FILLER;
    // The end of its bits (H.264 §7.3.2.7).
    let last = unit.len() - 1;
    unit[last] = 0x80;
    unit.into()
}

fn codec() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: MIME_TYPE_H264.to_owned(),
        clock_rate: CLOCK_RATE,
        channels: 0,
        sdp_fmtp_line: FORMAT.to_owned(),
        rtcp_feedback: vec![],
    }
}

/// A connection without an SSRC for retransmissions: rtc-interceptor would not report on them.
fn connection(chain: Registry, requests: &Requests) -> Result<RTCPeerConnection, WebrtcError> {
    let fail = WebrtcError::peer::<rtc::shared::error::Error>;
    let mut engine = MediaEngine::default();
    let parameters = RTCRtpCodecParameters { rtp_codec: codec(), payload_type: 102 };
    let added = engine.register_codec(parameters, RtpCodecKind::Video);
    added.map_err(fail("add a codec"))?;
    let registry = configure_nack(chain, &mut engine);
    let registry = configure_twcc_sender_only(configure_rtcp_reports(registry), &mut engine);
    let registry = registry.map_err(fail("number packets"))?;
    let registry = registry.with(Slot::from(14_000), requests.listener());
    RTCPeerConnectionBuilder::new()
        .with_media_engine(engine)
        .with_interceptor_registry(registry)
        .build(Instant::now())
        .map_err(fail("begin"))
}
