//! What a link is made of.

use trimtab_units::{Bytes, Duration};

use crate::capacity::Capacity;
use crate::delay::{DelayConfig, JitterConfig, ReorderConfig};
use crate::loss::LossConfig;
use crate::mark::MarkConfig;
use crate::policer::PolicerConfig;

/// The description of a link. A packet meets its parts in this order: random loss, policer, marks, queue,
/// capacity, propagation delay with jitter and reordering.
///
/// [`new`](Self::new) gives a link with a capacity, an unlimited queue and nothing else; the other methods
/// each set one field.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// What the link can carry.
    pub capacity: Capacity,
    /// How packets wait for it.
    pub queue: QueueConfig,
    /// Random loss before the queue. Lost packets take no capacity.
    pub loss: LossConfig,
    /// A token bucket before the queue that drops what is above its rate.
    pub policer: Option<PolicerConfig>,
    /// Which packets are marked (ECN) as they enter the queue.
    pub mark: MarkConfig,
    /// The propagation delay after the last byte has left.
    pub delay: DelayConfig,
    /// What is added to the delay, packet by packet, without changing their order.
    pub jitter: JitterConfig,
    /// Packets that others overtake.
    pub reorder: Option<ReorderConfig>,
    /// Added to the size of each packet wherever the link counts bytes: in the queue, in the policer and
    /// against the capacity (a tunnel's or a lower layer's header). Statistics count it too.
    pub overhead: Bytes,
}

impl LinkConfig {
    /// A link with an unlimited queue, no delay and no impairment.
    pub fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            queue: QueueConfig::UNLIMITED,
            loss: LossConfig::None,
            policer: None,
            mark: MarkConfig::None,
            delay: DelayConfig::default(),
            jitter: JitterConfig::None,
            reorder: None,
            overhead: Bytes::ZERO,
        }
    }

    /// Sets the queue.
    #[must_use]
    pub fn queue(self, queue: QueueConfig) -> Self {
        Self { queue, ..self }
    }

    /// Sets the random loss.
    #[must_use]
    pub fn loss(self, loss: LossConfig) -> Self {
        Self { loss, ..self }
    }

    /// Sets a policer.
    #[must_use]
    pub fn policer(self, policer: PolicerConfig) -> Self {
        Self { policer: Some(policer), ..self }
    }

    /// Sets which packets are marked.
    #[must_use]
    pub fn mark(self, mark: MarkConfig) -> Self {
        Self { mark, ..self }
    }

    /// Sets the propagation delay.
    #[must_use]
    pub fn delay(self, delay: impl Into<DelayConfig>) -> Self {
        Self { delay: delay.into(), ..self }
    }

    /// Sets the jitter.
    #[must_use]
    pub fn jitter(self, jitter: JitterConfig) -> Self {
        Self { jitter, ..self }
    }

    /// Sets the reordering.
    #[must_use]
    pub fn reorder(self, reorder: ReorderConfig) -> Self {
        Self { reorder: Some(reorder), ..self }
    }

    /// Sets the overhead per packet.
    #[must_use]
    pub fn overhead(self, overhead: Bytes) -> Self {
        Self { overhead, ..self }
    }
}

/// A queue and its limits. The packet whose first byte has been sent is no longer in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueConfig {
    /// First in, first out; a packet that does not fit is dropped.
    DropTail {
        /// The most bytes that may wait; `None` for no limit.
        bytes: Option<Bytes>,
        /// The most packets that may wait; `None` for no limit.
        packets: Option<u32>,
    },
    /// Controlled delay (RFC 8289): drops from the head while the wait stays above a target.
    CoDel {
        /// The most bytes that may wait; `None` for no limit.
        bytes: Option<Bytes>,
        /// The most packets that may wait; `None` for no limit.
        packets: Option<u32>,
        /// The wait that is acceptable for ever. RFC 8289 section 4.3 ("Setting TARGET") recommends
        /// 5 ms.
        target: Duration,
        /// How long the wait may stay above the target before the first drop. RFC 8289 section 4.2
        /// ("Setting INTERVAL") recommends 100 ms, about the largest round-trip time.
        interval: Duration,
    },
}

impl QueueConfig {
    /// First in, first out, for any number of packets.
    pub const UNLIMITED: Self = Self::DropTail { bytes: None, packets: None };

    /// A drop-tail queue that holds up to `bytes`.
    pub const fn drop_tail_bytes(bytes: Bytes) -> Self {
        Self::DropTail { bytes: Some(bytes), packets: None }
    }

    /// A drop-tail queue that holds up to `packets`.
    pub const fn drop_tail_packets(packets: u32) -> Self {
        Self::DropTail { bytes: None, packets: Some(packets) }
    }

    /// CoDel with the target of 5 ms and the interval of 100 ms that RFC 8289 recommends, and a limit
    /// of `packets`.
    pub const fn codel(packets: Option<u32>) -> Self {
        Self::CoDel {
            bytes: None,
            packets,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
        }
    }
}
