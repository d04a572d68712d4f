//! What packets and reports carry.

use trimtab_apps::VideoPacket;
use trimtab_units::{Bytes, Duration, Time};

use super::{HEADER, RTCP_HEADER};

/// What a packet of media carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// Part of a frame of video, with its number in the stream's sequence.
    Video { sequence: u64, packet: VideoPacket },
    /// The same again, with the two bytes of its original number (RFC 4588 §4).
    Again { sequence: u64, packet: VideoPacket },
    /// Parity of packets of video that follow each other.
    Parity { first: u64, count: u32, bytes: Bytes },
    /// A frame of audio.
    Audio { number: u32, bytes: Bytes },
    /// Nothing; it fills a probe.
    Padding { bytes: Bytes },
}

impl Content {
    /// Size on the wire.
    pub(super) fn size(&self) -> Bytes {
        HEADER
            + match *self {
                Self::Video { packet, .. } => packet.bytes,
                Self::Again { packet, .. } => packet.bytes + Bytes::new(2),
                Self::Parity { bytes, .. }
                | Self::Audio { bytes, .. }
                | Self::Padding { bytes } => bytes,
            }
    }
}

/// What a receiver sends back.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// What became of packets: transport-wide feedback, or that of RFC 8888.
    Feedback(Feedback),
    /// Packets of video to be sent again (RFC 4585 §6.2.1).
    Repair(Vec<u64>),
    /// The picture cannot go on without a key frame (PLI, RFC 4585 §6.3.1).
    Key,
    /// What the player did.
    Input(Time),
}

/// Feedback on packets.
#[derive(Clone, Debug)]
pub(crate) struct Feedback {
    /// By number: when they arrived, or that they have not.
    pub(super) packets: Vec<(u64, Option<Time>)>,
    /// How long ago the newest arrived; only RFC 8888 says it.
    pub(super) waited: Option<Duration>,
}

impl Report {
    /// Size on the wire.
    pub(super) fn size(&self) -> Bytes {
        let body = match self {
            // draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1: 20 bytes, two bits of status
            // and a byte of time for each packet. RFC 8888 §3.1: 20 bytes and two for each packet.
            Self::Feedback(Feedback { packets, waited }) => {
                let quarters = if waited.is_some() { 8 } else { 5 };
                20 + packets.len() as u64 * quarters / 4
            }
            Self::Repair(sequences) => 12 + 4 * sequences.len() as u64,
            Self::Key => 12,
            Self::Input(_) => 32,
        };
        RTCP_HEADER + Bytes::new(body)
    }
}
