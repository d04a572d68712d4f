//! The links one propagation delay ahead, for governors that see them.

use trimtab_net::{Capacity, Link, LinkConfig, Packet, QueueConfig};
use trimtab_units::{Bytes, Time};

/// Each link as the packets that leave now will find it, without losses.
#[derive(Clone, Debug)]
pub(crate) struct Foresight {
    links: Vec<Link<()>>,
    /// How many bytes each link's queue holds.
    queue_limits: Vec<Bytes>,
}

impl Foresight {
    pub(crate) fn new(links: &[(LinkConfig, u64)]) -> Self {
        let future = |link: &LinkConfig| {
            Link::new(&LinkConfig::new(link.capacity.clone()).overhead(link.overhead), 0)
        };
        Self {
            links: links.iter().map(|(link, _)| future(link)).collect(),
            queue_limits: links.iter().map(|(link, _)| queue_limit(&link.queue)).collect(),
        }
    }

    /// A link at this time: its capacity, the bytes in its queue, and how many that holds.
    pub(crate) fn see(&mut self, link: usize, at: Time) -> (&Capacity, Bytes, Bytes) {
        let future = &mut self.links[link];
        future.advance(at);
        (future.capacity(), future.queue_bytes(), self.queue_limits[link])
    }

    /// A packet will enter a link at this time.
    pub(crate) fn send(&mut self, link: usize, at: Time, size: Bytes) {
        let future = &mut self.links[link];
        while future.poll(at).is_some() {}
        // It drops nothing.
        let _ = future.send(at, Packet { size, payload: () });
    }
}

/// The bytes that fit a queue, a packet of 1500 bytes where the limit is in packets.
fn queue_limit(queue: &QueueConfig) -> Bytes {
    let (QueueConfig::DropTail { bytes, packets } | QueueConfig::CoDel { bytes, packets, .. }) =
        *queue;
    let packets = packets.map_or(Bytes::MAX, |n| Bytes::new(1500) * u64::from(n));
    bytes.unwrap_or(Bytes::MAX).min(packets)
}
