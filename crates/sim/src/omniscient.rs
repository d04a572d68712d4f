//! The omniscient sender: a bound that no real sender can reach.

use trimtab_net::Capacity;
use trimtab_units::{Bytes, Duration, Time};

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
}

/// A sender that sees the link's future capacity and its queue, and sends exactly what keeps a queue
/// of a few packets (the in-flight of Muses Eq. 1: what the link will deliver in a round trip, and a
/// little more). It needs no pacing: its window says when to send.
#[derive(Clone, Debug, Default)]
pub struct Omniscient {
    window: Bytes,
}

impl Omniscient {
    /// How often it looks, packets aside.
    pub(crate) const LOOK: Duration = Duration::from_millis(1);

    /// What may be in flight now.
    pub(crate) fn window(&self) -> Bytes {
        self.window
    }

    /// Opens the window as far as the queue that the next packet will meet is below target, and the
    /// other such senders have as much in flight.
    pub(crate) fn look(&mut self, view: &LinkView<'_>) {
        let &LinkView { at, packet, inflight, .. } = view;
        // Enough that the link never runs dry between two looks, little enough for any buffer.
        let soon = view.capacity.bytes_between(at, at + Self::LOOK * 2);
        let target = (soon + packet * 2).min(view.queue_limit / 2).max(packet * 2);
        let room = target - view.queue;
        let fair = view.least_inflight + (room / view.peers).max(packet);
        self.window = fair.min(inflight + room);
    }
}
