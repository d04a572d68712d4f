//! Packets to frames: which are complete, and which of them can be decoded.
//!
//! A frame is complete with its last packet. It can be decoded after the frame before it, or if it
//! is a key frame; a complete key frame drops the frames before it that are not there yet, as
//! libwebrtc's frame buffer does.

use std::collections::VecDeque;

use trimtab_units::{Bytes, Time};

/// The most packets of a frame.
pub const FRAME_PACKETS_MAX: u16 = 256;
/// How far ahead of the next frame a packet is kept: 13 s at 60 frames a second.
const AHEAD_MAX: u32 = 800;

/// A packet of video, without its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPacket {
    /// The frame, counted from 0 in the order of encoding.
    pub frame: u32,
    /// Which of its packets, from 0.
    pub index: u16,
    /// How many it has, 1 to [`FRAME_PACKETS_MAX`]. Others are ignored.
    pub count: u16,
    /// Whether it is a key frame.
    pub key: bool,
    /// The media time of the frame.
    pub media_time: Time,
    /// Payload of this packet.
    pub bytes: Bytes,
}

/// A frame that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decodable {
    pub(super) frame: u32,
    pub(super) media_time: Time,
    pub(super) bytes: Bytes,
    /// When its last packet arrived.
    pub(super) complete_at: Time,
    /// Whether a packet of it came by retransmission.
    pub(super) repaired: bool,
}

#[derive(Clone, Debug)]
struct Partial {
    packet: VideoPacket,
    seen: [u64; FRAME_PACKETS_MAX as usize / 64],
    missing: u16,
    bytes: Bytes,
    complete_at: Option<Time>,
    repaired: bool,
}

/// The frames that wait for packets or for the frame before them.
#[derive(Clone, Debug, Default)]
pub(super) struct Depacketizer {
    /// The number of the first frame in `frames`: the next to be decoded.
    next: u32,
    frames: VecDeque<Option<Partial>>,
    /// Whether a frame was decoded: until then only a key frame can be.
    begun: bool,
}

impl Depacketizer {
    /// A packet arrived. `again` says that it was sent for a second time.
    pub(super) fn insert(&mut self, now: Time, packet: &VideoPacket, again: bool) {
        let known = 1..=FRAME_PACKETS_MAX;
        let is_sound = known.contains(&packet.count) && packet.index < packet.count;
        let Some(ahead) = packet.frame.checked_sub(self.next).filter(|_| is_sound) else { return };
        if ahead > AHEAD_MAX {
            return;
        }
        let place = ahead as usize;
        if self.frames.len() <= place {
            self.frames.resize(place + 1, None);
        }
        let partial = self.frames[place].get_or_insert(Partial {
            packet: *packet,
            seen: [0; FRAME_PACKETS_MAX as usize / 64],
            missing: packet.count,
            bytes: Bytes::ZERO,
            complete_at: None,
            repaired: false,
        });
        let (word, bit) = (usize::from(packet.index / 64), 1u64 << (packet.index % 64));
        if packet.count != partial.packet.count || partial.seen[word] & bit != 0 {
            return;
        }
        partial.seen[word] |= bit;
        partial.missing -= 1;
        partial.bytes += packet.bytes;
        partial.repaired |= again;
        if partial.missing == 0 {
            partial.complete_at = Some(now);
        }
    }

    /// The next frame that can be decoded, once.
    pub(super) fn pop(&mut self) -> Option<Decodable> {
        let is_complete = |partial: &Option<Partial>| {
            partial.as_ref().is_some_and(|partial| partial.complete_at.is_some())
        };
        let place = match self.frames.front() {
            Some(front) if self.begun && is_complete(front) => 0,
            _ => self.frames.iter().position(|partial| {
                is_complete(partial) && partial.as_ref().is_some_and(|p| p.packet.key)
            })?,
        };
        self.frames.drain(..place);
        let partial = self.frames.pop_front()??;
        self.begun = true;
        self.next = partial.packet.frame + 1;
        Some(Decodable {
            frame: partial.packet.frame,
            media_time: partial.packet.media_time,
            bytes: partial.bytes,
            complete_at: partial.complete_at?,
            repaired: partial.repaired,
        })
    }

    /// Whether frames wait for something that is not there.
    pub(super) fn waits(&self) -> bool {
        !self.frames.is_empty()
    }
}
