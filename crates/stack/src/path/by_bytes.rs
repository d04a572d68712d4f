//! A stack that reports bytes, as quinn does: the sum of the packets that leave at once, what was
//! acknowledged by the time when it left, and the sum of what was lost.
//!
//! Such a stack may report packets that elicit no acknowledgement as well. Nothing mentions them
//! again, and they leave flight with the records that are stale.

use std::time::Instant;

use trimtab_units::{Bytes, Duration, Time};

use super::Path;

/// No fate comes later. Without acknowledgements, as at an end that only receives, nothing else
/// tells that a record is stale.
const FATE_MAX: Duration = Duration::from_secs(10);

impl Path {
    /// Packets left at once: so many bytes, in packets of the path's size.
    pub fn on_bytes_sent(&mut self, now: Instant, bytes: Bytes) {
        self.settle();
        self.now = self.at(now);
        self.steer();
        self.responses.on_sent(self.now);
        self.discard_older(self.now - FATE_MAX);
        let mut left = bytes;
        while !left.is_zero() {
            let size = left.min(self.limits.mss);
            left -= size;
            let (packet, sent) = self.tracker.on_sent(self.now, size);
            self.packets.insert(self.now.as_nanos(), packet);
            self.driver.on_sent(&sent);
        }
    }

    /// The acknowledgement that arrives covers so many bytes of what left at that time. `smoothed`
    /// is the stack's estimate before it. What left over another path, before this one began, says
    /// nothing of it (RFC 9000 §9.4).
    pub fn on_bytes_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: Bytes,
        smoothed: Duration,
    ) {
        self.begin_acked(now, smoothed);
        if sent < self.epoch {
            return;
        }
        let sent_at = self.at(sent);
        let mut left = bytes;
        while let Some(mut packet) = self.packets.take_bytes(sent_at, sent_at, &mut left) {
            self.tracker.on_acked(&mut packet);
        }
    }

    /// So many bytes were declared lost, of which the newest left at that time: the oldest in
    /// flight, since loss detection goes by age and number (RFC 9002 §6.1).
    pub fn on_bytes_lost(&mut self, now: Instant, newest_sent: Instant, bytes: Bytes) {
        self.now = self.at(now);
        if newest_sent < self.epoch {
            return;
        }
        let until = self.at(newest_sent);
        let mut left = bytes;
        while let Some(mut packet) = self.packets.take_bytes(Time::ZERO, until, &mut left) {
            self.take_lost(&mut packet);
        }
        if let Some(trace) = &mut self.trace {
            trace.on_bytes_lost(self.now, bytes - left);
        }
    }
}
