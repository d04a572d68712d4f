//! One direction of a link.

use std::collections::VecDeque;

use trimtab_units::{Bytes, Time};

use crate::capacity::Capacity;
use crate::config::LinkConfig;
use crate::delay::DelayLine;
use crate::loss::Loss;
use crate::mark::{Marker, Verdict};
use crate::policer::Policer;
use crate::queue::Queue;
use crate::service::Server;
use crate::sleeper::{Sleeper, whole_ms};
use crate::stats::LinkStats;

/// A packet: its size, and whatever the owner of the link wants to have carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// The bytes that it takes on the link, headers included.
    pub size: Bytes,
    /// What comes out at the far end.
    pub payload: T,
}

/// A packet that reached the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The packet.
    pub packet: Packet<T>,
    /// When it reached the far end: the departure, the propagation delay and the jitter.
    pub at: Time,
    /// When it was sent into the link.
    pub enqueued_at: Time,
    /// When its last byte left the queue's end of the link.
    pub departed_at: Time,
    /// Whether the link marked it: "congestion experienced" (RFC 3168).
    pub marked: bool,
}

/// A packet that the link dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// The packet.
    pub packet: Packet<T>,
    /// Why.
    pub cause: DropCause,
    /// When.
    pub at: Time,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// Random loss.
    RandomLoss,
    /// Above the rate of the policer.
    Policer,
    /// No room in the queue.
    QueueFull,
    /// Active queue management: after it had waited, or above the threshold for marks.
    Aqm,
}

/// What comes out of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// A packet reached the far end.
    Delivered(Delivery<T>),
    /// A packet that had been accepted was dropped in the queue (by CoDel).
    Dropped(Dropped<T>),
}

/// One direction of a link: packets go in with [`send`](Self::send) and come out of [`poll`](Self::poll).
///
/// # Time
/// The caller says what time it is, and the link does what happened since the last call, in order. A
/// time before the latest one counts as the latest one. A packet is dequeued before another one that
/// arrives at the same time.
///
/// # A constant rate
/// Packets leave one after the other, each after its size divided by the rate. Times are rounded down to
/// the nanosecond, and the fraction is carried while the link is busy, so the rate is exact.
///
/// # A trace
/// Mahimahi's `mm-link`, whose clock has whole milliseconds:
///
/// 1. Opportunities and departures are at whole milliseconds. An arrival at any time within a
///    millisecond counts as one at its start (as Mahimahi's clock reads), but waits for an opportunity
///    of a later millisecond: all opportunities up to and including the arrival's millisecond pass
///    before it is queued. So it leaves later than it came, always.
/// 2. An opportunity takes packets from the head of the queue until its bytes are used up. A packet may
///    begin in one opportunity and end in a later one.
/// 3. What is left of an opportunity when the queue is empty is lost.
/// 4. The packet whose first byte has been sent no longer counts against the limit of the queue.
///
/// With arrivals at whole milliseconds this gives Mahimahi's departures and drops, packet by packet.
/// Cost: a few nanoseconds per packet; opportunities that pass unused are jumped over.
///
/// # Randomness
/// All of it comes from the seed, so the same calls give the same results, and a clone goes on like its
/// original.
#[derive(Clone, Debug)]
pub struct Link<T> {
    capacity: Capacity,
    overhead: Bytes,
    loss: Loss,
    policer: Option<Policer>,
    marker: Marker,
    queue: Queue<T>,
    server: Server,
    exit: DelayLine,
    sleeper: Option<Sleeper>,
    /// Packets dropped in the queue that the owner has not heard of, by time.
    dropped: VecDeque<Dropped<T>>,
    now: Time,
    stats: LinkStats,
}

impl<T> Link<T> {
    /// An empty link.
    pub fn new(config: &LinkConfig, seed: u64) -> Self {
        Self {
            capacity: config.capacity.clone(),
            overhead: config.overhead,
            loss: Loss::new(config.loss.clone(), seed),
            policer: config.policer.map(Policer::new),
            marker: Marker::new(config.mark, seed),
            queue: Queue::new(&config.queue, config.overhead),
            server: Server::new(&config.capacity),
            exit: DelayLine::new(config.delay.clone(), config.jitter, config.reorder, seed),
            sleeper: Sleeper::new(config.jitter, seed),
            dropped: VecDeque::new(),
            now: Time::ZERO,
            stats: LinkStats::default(),
        }
    }

    /// Sends a packet into the link at `now`, of a transport that does not understand marks.
    ///
    /// # Errors
    /// The packet, when the link drops it at once: by random loss, by the policer, because the queue is
    /// full, or above the threshold for marks.
    pub fn send(&mut self, now: Time, packet: Packet<T>) -> Result<(), Dropped<T>> {
        self.accept(now, packet, false)
    }

    /// Sends a packet into the link at `now`, of a transport that understands marks (ECT of RFC 3168).
    ///
    /// # Errors
    /// The packet, when the link drops it at once: by random loss, by the policer, or because the queue is
    /// full.
    pub fn send_capable(&mut self, now: Time, packet: Packet<T>) -> Result<(), Dropped<T>> {
        self.accept(now, packet, true)
    }

    fn accept(&mut self, now: Time, packet: Packet<T>, ect: bool) -> Result<(), Dropped<T>> {
        self.advance(now);
        let now = self.now;
        let size = packet.size + self.overhead;
        self.stats.arrivals.add(size);
        let passes_policer = |policer: &mut Policer| policer.passes(now, size);
        let cause = if self.loss.drops_next(now) {
            DropCause::RandomLoss
        } else if !self.policer.as_mut().is_none_or(passes_policer) {
            DropCause::Policer
        } else if !self.queue.has_room(size) {
            DropCause::QueueFull
        } else {
            match self.marker.judge(self.queue.bytes(), ect) {
                Verdict::Drop => DropCause::Aqm,
                verdict => {
                    self.enqueue(packet, size, verdict == Verdict::Mark);
                    return Ok(());
                }
            }
        };
        self.stats.add_drop(cause, size);
        Err(Dropped { packet, cause, at: now })
    }

    fn enqueue(&mut self, packet: Packet<T>, size: Bytes, marked: bool) {
        if marked {
            self.stats.marked.add(size);
        }
        let was_empty = self.queue.is_empty();
        self.queue.push(self.now, packet, marked);
        if was_empty {
            // An idle link starts at once, and looks up when the new head's turn is.
            self.serve_until(self.now);
        }
        self.look(self.now);
    }

    /// A time by which [`poll`](Self::poll) must next be called; `None` when nothing will come out unless
    /// something is sent.
    ///
    /// Never later than the next delivery. It is the time of the next delivery itself, except that with
    /// jitter, reordering or CoDel it can be earlier (`poll` then gives nothing, and the next call of this
    /// method a later time). Drops by CoDel are not announced: they come with the next `poll`.
    pub fn next_event(&self) -> Option<Time> {
        let mut next = self.queue.next_arrival();
        // Behind what is under way no packet arrives earlier, unless some of that is held back.
        if next == Time::MAX || self.exit.reorders() {
            next = next.min(self.first_in_queue());
        }
        if let Some(dropped) = self.dropped.front() {
            next = next.min(dropped.at);
        }
        if let Some(sleeper) = &self.sleeper {
            next = sleeper.next(self.now, next);
        }
        (next < Time::MAX).then_some(next)
    }

    /// The earliest time at which a packet that waits now can come out; [`Time::MAX`] for never.
    fn first_in_queue(&self) -> Time {
        let Some((queued_at, size)) = self.queue.head() else { return Time::MAX };
        let start = self.server.next_start(queued_at);
        if self.queue.drops_at_head() {
            start
        } else {
            self.exit.earliest(self.server.end(start, size))
        }
    }

    /// What has come out by `now`, one at a time and in order of time: call it until it returns `None`.
    pub fn poll(&mut self, now: Time) -> Option<Event<T>> {
        self.advance(now);
        if self.sleeper.as_ref().is_some_and(|sleeper| sleeper.is_awake(self.now)) {
            self.look(self.now);
        }
        let due = self.queue.next_arrival();
        let arriving = self.sleeper.as_ref().map_or(due, |sleeper| sleeper.next(self.now, due));
        if self.dropped.front().is_some_and(|dropped| dropped.at <= arriving) {
            return self.dropped.pop_front().map(Event::Dropped);
        }
        if arriving > self.now || arriving == Time::MAX {
            return None;
        }
        let mut delivery = self.queue.arrive()?;
        if let Some(sleeper) = &mut self.sleeper {
            delivery.at = arriving;
            sleeper.on_written(arriving);
        }
        self.stats.deliveries.add(delivery.packet.size + self.overhead);
        Some(Event::Delivered(delivery))
    }

    /// Lets time pass until `now`, so that the queue is what it is then. [`send`](Self::send) and
    /// [`poll`](Self::poll) do it themselves.
    pub fn advance(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.serve_until(now);
        }
    }

    /// Starts all transmissions that are due by `now`.
    fn serve_until(&mut self, now: Time) {
        while let Some((queued_at, _)) = self.queue.head() {
            let start = self.server.start(queued_at);
            if start > now {
                break;
            }
            let Self { queue, dropped, stats, .. } = self;
            queue.discard(start, |packet, size| {
                stats.add_drop(DropCause::Aqm, size);
                dropped.push_back(Dropped { packet, cause: DropCause::Aqm, at: start });
            });
            let Some((_, size)) = queue.head() else { break };
            let departed_at = self.server.serve(start, size);
            self.stats.departures.add(size);
            let leaves = if self.sleeper.is_some() { whole_ms(departed_at) } else { departed_at };
            self.queue.depart(departed_at, self.exit.release(leaves));
        }
    }

    /// A program that carries the packets looks what is due.
    fn look(&mut self, now: Time) {
        let Some(mut sleeper) = self.sleeper.take() else { return };
        let waits = |delivery: &Delivery<T>| delivery.at > whole_ms(now);
        let next =
            self.queue.under_way().find(|delivery| waits(delivery)).map(|delivery| delivery.at);
        let next = next.unwrap_or_else(|| self.first_in_queue());
        sleeper.look(now, next);
        self.sleeper = Some(sleeper);
    }

    /// From `now` on another future, drawn by `seed`, and the same past: other losses, jitter and
    /// marks, and another place of the trace. What waits or is under way stays.
    pub fn redraw(&mut self, now: Time, seed: u64) {
        self.advance(now);
        self.loss.reseed(seed);
        self.marker.reseed(seed);
        self.exit.reseed(seed);
        if let Some(sleeper) = &mut self.sleeper {
            sleeper.reseed(seed);
        }
        let Some(place) = self.capacity.elsewhere(now, seed) else { return };
        if let Capacity::Trace { offset, .. } = &mut self.capacity {
            *offset = place;
        }
        let mut from_last = self.queue.under_way().rev();
        let busy_until = from_last.next().map_or(Time::ZERO, |last| last.departed_at);
        let before = from_last.next().map_or(Time::ZERO, |other| other.at);
        let departs = self.server.move_to(place, self.now, busy_until);
        if departs != busy_until
            && let Some(last) = self.queue.last_under_way()
        {
            // It is not known yet when the packet that is being sent comes to its end.
            let late = last.at.since(last.departed_at);
            last.departed_at = departs;
            last.at = before.max(departs + late);
            self.exit.last_comes_out(last.at);
        }
    }

    /// The bytes that wait, overhead included, as of the latest call that let time pass.
    pub fn queue_bytes(&self) -> Bytes {
        self.queue.bytes()
    }

    /// The packets that wait, as of the latest call that let time pass.
    pub fn queue_packets(&self) -> usize {
        self.queue.len()
    }

    /// The packets that have left the queue and not come out of [`poll`](Self::poll), with the one in
    /// transmission.
    pub fn transit_packets(&self) -> usize {
        self.queue.departed()
    }

    /// What the link has done so far.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// What the link can carry.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }
}
