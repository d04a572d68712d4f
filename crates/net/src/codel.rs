//! The CoDel law of RFC 8289: when to drop the packet at the head of a queue.
//!
//! Names follow the pseudocode of section 5 of the RFC.

use trimtab_units::{Bytes, Duration, Time};

/// The backlog at which no packet is dropped, a full packet (`maxpacket` in the pseudocode).
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

    /// How many packets to drop from the head of the queue before one is sent at `now` (`deque` in
    /// RFC 8289 section 5.5). `next` takes them in turn: since when it waits, and how many bytes are
    /// left behind it.
    pub(crate) fn drops(
        &mut self,
        now: Time,
        mut next: impl FnMut() -> Option<(Time, Bytes)>,
    ) -> usize {
        let mut drops = 0;
        let Some(ok_to_drop) = self.judge(now, next()) else { return drops };
        match self.state {
            State::Dropping => {
                if !ok_to_drop {
                    self.state = State::Passing;
                }
                while self.state == State::Dropping && now >= self.drop_next {
                    drops += 1;
                    self.count += 1;
                    match self.judge(now, next()) {
                        Some(true) => self.drop_next = self.control_law(self.drop_next),
                        Some(false) => self.state = State::Passing,
                        None => break,
                    }
                }
            }
            State::Passing => {
                if ok_to_drop {
                    drops += 1;
                    if self.judge(now, next()).is_some() {
                        self.start_dropping(now);
                    }
                }
            }
        }
        drops
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

    /// Whether the packet just taken from the queue may be dropped (`dodequeue` in RFC 8289 section
    /// 5.6); `None` of an empty queue.
    fn judge(&mut self, now: Time, taken: Option<(Time, Bytes)>) -> Option<bool> {
        let Some((queued_at, backlog)) = taken else {
            self.first_above_time = None;
            return None;
        };
        let waited = now.since(queued_at);
        if waited < self.target || backlog <= MAX_PACKET {
            self.first_above_time = None;
            Some(false)
        } else if let Some(first_above_time) = self.first_above_time {
            Some(now >= first_above_time)
        } else {
            self.first_above_time = Some(now + self.interval);
            Some(false)
        }
    }

    /// When the drop after the one at `from` is due (`control_law` in RFC 8289 section 5.6).
    fn control_law(&self, from: Time) -> Time {
        // A square root and a division are exactly rounded, so the result is the same everywhere.
        from + self.interval.mul_f64(1.0 / (self.count as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, Event, Link, LinkConfig, Packet, QueueConfig};
    use trimtab_units::Rate;

    const PACKET: Bytes = Bytes::new(1500);

    /// A 12 Mbit/s link (a packet per ms) with CoDel, offered packets at `gap_us` for `seconds`. Returns the
    /// drop times in ms and the waits of the packets delivered, in ms.
    fn drops_and_waits(gap_us: u64, seconds: u64) -> (Vec<f64>, Vec<f64>) {
        let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
            .queue(QueueConfig::codel(None));
        let mut link = Link::new(&config, 1);
        let (mut drops, mut waits) = (Vec::new(), Vec::new());
        for k in 0..seconds * 1_000_000 / gap_us {
            let now = Time::from_micros(k * gap_us);
            while let Some(event) = link.poll(now) {
                match event {
                    Event::Delivered(delivery) => {
                        let wait = delivery.departed_at.since(delivery.enqueued_at);
                        waits.push(wait.as_millis_f64() - 1.0);
                    }
                    Event::Dropped(dropped) => drops.push(dropped.at.as_millis_f64()),
                }
            }
            link.send(now, Packet { size: PACKET, payload: () }).unwrap();
        }
        (drops, waits)
    }

    #[test]
    fn a_short_queue_is_left_alone() {
        // 92% load: nothing ever waits.
        assert_eq!(drops_and_waits(1_090, 20).0, []);
    }

    /// RFC 8289 sections 5.5 and 5.6: the first drop comes an interval after the wait has passed the target, the ones
    /// after it at interval/sqrt(count).
    #[test]
    fn drops_come_closer_by_the_square_root() {
        // One packet in 24 too many: the wait passes 5 ms after about 120 ms.
        let (drops, waits) = drops_and_waits(960, 3);
        let first_above = waits.iter().position(|&wait| wait >= 5.0).unwrap() as f64;
        assert!((drops[0] - first_above - 100.0).abs() <= 1.0, "{} {first_above}", drops[0]);
        for (count, pair) in drops.windows(2).enumerate().take(10) {
            let spacing = 100.0 / ((count + 1) as f64).sqrt();
            // The link dequeues once per ms, so a drop waits up to that long, but the times do not drift.
            assert!((pair[1] - pair[0] - spacing).abs() <= 1.0, "{pair:?} {spacing}");
        }
        let due = (1..=10).map(|count| 100.0 / f64::from(count).sqrt()).sum::<f64>();
        assert!((drops[10] - drops[0] - due).abs() <= 1.0);
    }

    /// A steady overload of 4% ends with the wait near the target, where drop-tail would fill any buffer.
    #[test]
    fn the_wait_settles_near_the_target() {
        let (drops, waits) = drops_and_waits(960, 120);
        let late = &waits[waits.len() / 2..];
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!(mean < 20.0, "{mean} ms");
        // What does not fit must go: 1/24 of the packets offered.
        let share = drops.len() as f64 / (drops.len() + waits.len()) as f64;
        assert!((share - 0.04).abs() < 0.003, "{share}");
    }

    /// RFC 8289 section 5.5: soon after a dropping state, the next one begins at the drop rate that had worked.
    #[test]
    fn the_drop_rate_is_remembered() {
        let mut codel = CoDel::new(Duration::from_millis(5), Duration::from_millis(100));
        codel.count = 30;
        codel.last_count = 10;
        codel.drop_next = Time::from_millis(1000);
        codel.start_dropping(Time::from_millis(2500));
        assert_eq!((codel.count, codel.last_count), (20, 20));
        let sqrt_20 = 22_360_680;
        assert_eq!(codel.drop_next.since(Time::from_millis(2500)), Duration::from_nanos(sqrt_20));
        // 16 intervals later it is forgotten.
        codel.count = 90;
        codel.start_dropping(codel.drop_next + Duration::from_millis(1600));
        assert_eq!((codel.count, codel.last_count), (1, 1));
    }
}
