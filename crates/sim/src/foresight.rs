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

    /// Another future of each link ([`Link::redraw`]), the same as that of the links themselves.
    pub(crate) fn redraw(&mut self, now: Time, seed: u64) {
        for (i, link) in self.links.iter_mut().enumerate() {
            link.redraw(now, seed.wrapping_add(i as u64));
        }
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

#[cfg(test)]
mod tests {
    use trimtab_net::LossConfig;
    use trimtab_units::{Duration, Rate};

    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    /// 12 Mbit/s: a packet per millisecond. The delay and the losses of the link are not foreseen.
    fn link() -> LinkConfig {
        LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
            .delay(Duration::from_millis(30))
            .loss(LossConfig::Independent(0.5))
    }

    #[test]
    fn a_queue_that_packets_fill_and_the_link_drains() {
        let link = link().queue(QueueConfig::drop_tail_bytes(PACKET * 5));
        let mut foresight = Foresight::new(&[(link, 1)]);
        let at = Time::from_millis(50);
        (0..4).for_each(|_| foresight.send(0, at, PACKET));
        let (_, queue, limit) = foresight.see(0, at);
        assert_eq!(limit, PACKET * 5);
        assert!(queue >= PACKET * 3, "one may be on the wire: {queue}");
        let (_, later, _) = foresight.see(0, at + Duration::from_millis(2));
        assert_eq!(queue - later, PACKET * 2);
        let (_, end, _) = foresight.see(0, at + Duration::from_millis(4));
        assert_eq!(end, Bytes::ZERO);
    }

    #[test]
    fn a_queue_has_the_smaller_of_its_limits() {
        let limit = |queue: QueueConfig| queue_limit(&queue);
        assert_eq!(limit(QueueConfig::drop_tail_packets(10)), Bytes::new(15_000));
        let both =
            |bytes| QueueConfig::DropTail { bytes: Some(Bytes::new(bytes)), packets: Some(10) };
        assert_eq!(limit(both(9_000)), Bytes::new(9_000));
        assert_eq!(limit(both(90_000)), Bytes::new(15_000));
        let none = QueueConfig::DropTail { bytes: None, packets: None };
        assert_eq!(limit(none), Bytes::MAX);
    }
}
