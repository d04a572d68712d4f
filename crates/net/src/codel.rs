//! The CoDel law of RFC 8289: when to drop the packet at the head of a queue.
//!
//! Names follow the pseudocode of section 5 of the RFC.

use trimtab_units::{Bytes, Duration, Time};

/// The backlog at which no packet is dropped, a full packet (`MAXPACKET` in RFC 8289 section 5.1).
const MAX_PACKET: Bytes = Bytes::new(1500);

/// The state of CoDel for one queue.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    target: Duration,
    interval: Duration,
    /// When the wait will have been above the target for a whole interval, if it is above it now.
    first_above_time: Option<Time>,
    state: State,
    /// The drops since the queue entered the dropping state.
    count: u64,
    /// `count` as it was when the dropping state was entered last.
    last_count: u64,
    /// When the next drop is due, or was when the dropping state ended.
    drop_next: Time,
}

/// ```text
///            ok to drop: drop one
///          ┌──────────────────────┐
///       Passing               Dropping ─┐ drop_next is reached: drop one,
///          └──────────────────────┘  ▲──┘ the next is due interval/√count later
///           the wait is below target,
///           or almost nothing waits
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Passing,
    Dropping,
}

/// What CoDel must know of a packet that waits.
pub(crate) trait Waited {
    fn queued_at(&self) -> Time;
}

/// A packet from the head of the queue, and whether it may be dropped.
struct Head<P> {
    packet: P,
    ok_to_drop: bool,
}

impl CoDel {
    pub(crate) fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above_time: None,
            state: State::Passing,
            count: 0,
            last_count: 0,
            drop_next: Time::ZERO,
        }
    }

    /// The packet to send at `now`, after dropping those that the law says (`deque` in RFC 8289
    /// section 5.5). `pop` takes the head of the queue and says how many bytes are left behind it.
    pub(crate) fn dequeue<P: Waited>(
        &mut self,
        now: Time,
        mut pop: impl FnMut() -> Option<(P, Bytes)>,
        mut drop: impl FnMut(P),
    ) -> Option<P> {
        let mut head = self.head(now, pop())?;
        match self.state {
            State::Dropping => {
                if !head.ok_to_drop {
                    self.state = State::Passing;
                }
                while self.state == State::Dropping && now >= self.drop_next {
                    drop(head.packet);
                    self.count += 1;
                    head = self.head(now, pop())?;
                    if head.ok_to_drop {
                        self.drop_next = self.control_law(self.drop_next);
                    } else {
                        self.state = State::Passing;
                    }
                }
            }
            State::Passing => {
                if head.ok_to_drop {
                    drop(head.packet);
                    head = self.head(now, pop())?;
                    self.start_dropping(now);
                }
            }
        }
        Some(head.packet)
    }

    /// Enters the dropping state. When the last stay there ended a short time ago, it goes on at the drop
    /// rate that controlled the queue then (RFC 8289 section 5.5).
    fn start_dropping(&mut self, now: Time) {
        self.state = State::Dropping;
        let delta = self.count - self.last_count;
        let is_recent = now.since(self.drop_next) < self.interval * 16;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }

    /// Judges the packet just taken from the queue (`dodequeue` in RFC 8289 section 5.6).
    fn head<P: Waited>(&mut self, now: Time, popped: Option<(P, Bytes)>) -> Option<Head<P>> {
        let Some((packet, backlog)) = popped else {
            self.first_above_time = None;
            return None;
        };
        let waited = now.since(packet.queued_at());
        let ok_to_drop = if waited < self.target || backlog <= MAX_PACKET {
            self.first_above_time = None;
            false
        } else if let Some(first_above_time) = self.first_above_time {
            now >= first_above_time
        } else {
            self.first_above_time = Some(now + self.interval);
            false
        };
        Some(Head { packet, ok_to_drop })
    }

    /// When the drop after the one at `from` is due (RFC 8289 section 5.3).
    fn control_law(&self, from: Time) -> Time {
        // A square root and a division are exactly rounded, so the result is the same everywhere.
        from + self.interval.mul_f64(1.0 / (self.count as f64).sqrt())
    }
}
