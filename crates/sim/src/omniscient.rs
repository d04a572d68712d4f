//! The omniscient sender: a bound that no real sender can reach.

use trimtab_net::Capacity;
use trimtab_units::{Bytes, Duration, Rate, Time};

/// What a governor that sees the links is shown of the first one on its flow's way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkView<'a> {
    /// When a packet that leaves now reaches the link. The view is of that time.
    pub(crate) at: Time,
    /// The link's capacity, its future included.
    pub(crate) capacity: &'a Capacity,
    /// Bytes in its queue.
    pub(crate) queue: Bytes,
    /// Bytes that the queue holds.
    pub(crate) queue_limit: Bytes,
    /// Bytes of a full-size packet of the flow.
    pub(crate) packet: Bytes,
    /// The flow's bytes in flight.
    pub(crate) inflight: Bytes,
    /// Flows with data whose governors see the links, this one included, and the least that one of
    /// them has in flight.
    pub(crate) peers: u64,
    pub(crate) least_inflight: Bytes,
    /// Whether the flow carries a call, whose encoder wants a bitrate.
    pub(crate) is_call: bool,
}

/// A sender that sees the link's future capacity and its queue, and sends exactly what keeps a queue
/// of a few packets (the in-flight of Muses Eq. 1: what the link will deliver in a round trip, and a
/// little more). It needs no pacing: its window says when to send.
#[derive(Clone, Debug, Default)]
pub struct Omniscient {
    window: Bytes,
    rate: Rate,
}

impl Omniscient {
    /// How often it looks, packets aside.
    pub(crate) const LOOK: Duration = Duration::from_millis(1);

    /// How far an encoder is shown the future: as long as it takes to follow (RFC 8593's tau_v).
    const AHEAD: Duration = Duration::from_millis(200);
    /// The share of it that an encoder is asked to fill, so that a large frame finds room.
    const FILLED: f64 = 0.9;

    /// The bitrate that an encoder should fill, headers included; zero for flows without one.
    pub(crate) fn encoder_rate(&self) -> Rate {
        self.rate
    }

    /// What may be in flight now.
    pub(crate) fn window(&self) -> Bytes {
        self.window
    }

    /// Opens the window as far as the queue that the next packet will meet is below target, and the
    /// other such senders have as much in flight.
    pub(crate) fn look(&mut self, view: &LinkView<'_>) {
        let &LinkView { at, packet, inflight, .. } = view;
        if view.is_call {
            let ahead = view.capacity.bytes_between(at, at + Self::AHEAD) / view.peers.max(1);
            self.rate = (ahead / Self::AHEAD).mul_f64(Self::FILLED);
        }
        // Enough that the link never runs dry between two looks, little enough for any buffer.
        let soon = view.capacity.bytes_between(at, at + Self::LOOK * 2);
        let target = (soon + packet * 2).min(view.queue_limit / 2).max(packet * 2);
        let room = target - view.queue;
        let fair = view.least_inflight + (room / view.peers).max(packet);
        self.window = fair.min(inflight + room);
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::Rate;

    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    /// 12 Mbit/s, a packet per millisecond, with a queue of a hundred packets. Nothing is in flight.
    fn view(capacity: &Capacity) -> LinkView<'_> {
        LinkView {
            at: Time::from_millis(10),
            capacity,
            queue: Bytes::ZERO,
            queue_limit: PACKET * 100,
            packet: PACKET,
            inflight: Bytes::ZERO,
            peers: 1,
            least_inflight: Bytes::ZERO,
            is_call: false,
        }
    }

    fn window(view: &LinkView<'_>) -> u64 {
        let mut sender = Omniscient::default();
        sender.look(view);
        sender.window().get() / PACKET.get()
    }

    #[test]
    fn it_fills_the_queue_to_a_few_packets() {
        let capacity = Capacity::Constant(Rate::from_mbps(12.0));
        let empty = view(&capacity);
        // Two packets leave within two looks, and two more are to wait.
        assert_eq!(window(&empty), 4);
        let flying = LinkView { inflight: PACKET * 20, least_inflight: PACKET * 20, ..empty };
        assert_eq!(window(&flying), 24, "what flies has no part in the queue");
        assert_eq!(window(&LinkView { queue: PACKET * 3, ..flying }), 21);
        assert_eq!(window(&LinkView { queue: PACKET * 9, ..flying }), 20, "the queue is too long");
        assert_eq!(window(&LinkView { queue_limit: PACKET * 6, ..flying }), 23, "half the buffer");
        let tiny = LinkView { queue_limit: PACKET, ..flying };
        assert_eq!(window(&tiny), 22, "two packets in any buffer");
    }

    #[test]
    fn it_leaves_room_to_a_peer_that_has_less_in_flight() {
        let capacity = Capacity::Constant(Rate::from_mbps(12.0));
        let own = LinkView { inflight: PACKET * 20, peers: 2, ..view(&capacity) };
        // Half of the room for four packets.
        assert_eq!(window(&LinkView { least_inflight: PACKET * 5, ..own }), 7);
        assert_eq!(window(&LinkView { least_inflight: PACKET * 20, ..own }), 22);
        let full = LinkView { queue: PACKET * 4, least_inflight: PACKET * 5, ..own };
        assert_eq!(window(&full), 6, "a packet above the least, or no peer would ever catch up");
    }
}
