//! A stack that reports each packet by its number, as noq does.

use std::time::Instant;

use trimtab_units::{Bytes, Duration};

use super::Path;

impl Path {
    /// A packet that elicits an acknowledgement left.
    pub fn on_sent(&mut self, now: Instant, size: Bytes, number: u64) {
        self.settle();
        self.now = self.at(now);
        self.steer();
        self.responses.on_sent(self.now);
        let (packet, sent) = self.tracker.on_sent(self.now, size);
        self.packets.insert(number, packet);
        self.driver.on_sent(&sent);
    }

    /// The acknowledgement that arrives covers a packet. `smoothed` is the stack's estimate
    /// before it.
    pub fn on_acked(&mut self, now: Instant, sent: Instant, number: u64, smoothed: Duration) {
        self.begin_acked(now, smoothed);
        let sent_at = self.at(sent);
        if let Some(mut packet) = self.packets.take(number, sent_at) {
            self.tracker.on_acked(&mut packet);
        }
    }

    /// A packet was declared lost. Packets that elicit no acknowledgement have no record.
    pub fn on_packet_lost(&mut self, now: Instant, number: u64) {
        self.now = self.at(now);
        if let Some(mut packet) = self.packets.take_oldest(number) {
            if let Some(trace) = &mut self.trace {
                trace.on_packet_lost(self.now, number, packet.size());
            }
            self.take_lost(&mut packet);
        }
    }
}
