//! A stack that reports of an acknowledgement the newest packet and the sum of bytes, and each lost
//! packet by its number, as s2n-quic does. It reports losses before the acknowledgement that reveals
//! them.
//!
//! Which other packets a sum covers is not known. Nearly always they are the ones just before the
//! newest, so those are taken. Where that was wrong, the lost packet that was taken for
//! acknowledged has an older one stand for it: sums are exact, and single packets around a gap are
//! not.

use std::time::Instant;

use trimtab_units::{Bytes, Duration, Rate};

use super::Path;

impl Path {
    /// The acknowledgement that arrives covers this packet, and older ones, in all so many bytes.
    /// `smoothed` is the stack's estimate before it.
    pub fn on_newest_acked(&mut self, now: Instant, newest: u64, bytes: Bytes, smoothed: Duration) {
        self.begin_acked(now, smoothed);
        let mut left = bytes;
        while let Some(mut packet) = self.packets.take_down(newest, &mut left) {
            self.tracker.on_acked(&mut packet);
        }
    }

    /// A packet of so many bytes was declared lost, by this number. The batch of losses ends with
    /// the next callback of another kind.
    pub fn on_loss(&mut self, now: Instant, number: u64, bytes: Bytes, persistent: bool) {
        if self.losing.is_none() {
            self.settle();
        }
        self.now = self.at(now);
        *self.losing.get_or_insert(false) |= persistent;
        if let Some(trace) = &mut self.trace {
            trace.on_packet_lost(self.now, number, bytes);
        }
        let mut left = bytes;
        while let Some(mut packet) = self.packets.take_down(number, &mut left) {
            self.take_lost(&mut packet);
        }
    }

    /// So many bytes, of the oldest packets, leave flight without a signal: their keys were
    /// discarded (RFC 9002 §6.4), or they were probes of the packet size (RFC 8899 §3).
    pub fn on_bytes_discarded(&mut self, bytes: Bytes) {
        self.settle();
        let mut left = bytes;
        while let Some(mut packet) = self.packets.take_up(&mut left) {
            if let Some(discarded) = self.tracker.on_discarded(self.now, &mut packet) {
                self.driver.on_discarded(&discarded);
            }
        }
    }

    /// The rate at which a stack sends that has no pacer of its own: the algorithm's, else 5/4 of a
    /// window per round trip (RFC 9002 §7.7). `None` before the first round trip is known, where
    /// the algorithm has no rate.
    pub fn pace(&self) -> Option<Rate> {
        self.pacing_rate().or_else(|| {
            let (srtt, _) = self.rtt.filter(|(srtt, _)| !srtt.is_zero())?;
            Some((self.offered() / srtt).mul_f64(1.25))
        })
    }

    /// The size of its packets.
    pub fn mss(&self) -> Bytes {
        self.limits.mss
    }
}
