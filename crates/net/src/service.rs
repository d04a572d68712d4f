//! The server of a link: when the packet at the head of the queue starts and ends its transmission.
//!
//! The link asks in two steps. [`Server::start`] says from when the server could send the head of the
//! queue, and may be asked again; [`Server::serve`] sends it. Both take constant time; only after an idle
//! time a trace looks for its place by galloping search.

use std::sync::Arc;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::capacity::Capacity;
use crate::trace::Trace;

#[derive(Clone, Debug)]
pub(crate) enum Server {
    Constant(Smooth),
    Trace(Opportunities),
}

impl Server {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        match capacity {
            Capacity::Constant(rate) => Self::Constant(Smooth::new(*rate)),
            Capacity::Trace { trace, offset, opportunity } => {
                Self::Trace(Opportunities::new(trace.clone(), *offset, *opportunity))
            }
        }
    }

    /// Goes on at another place of its trace, the position of [`Time::ZERO`], from `now` on. Gives when
    /// the packet comes to its end that was being sent until `busy_until`: what is left of it takes the
    /// next opportunity.
    pub(crate) fn move_to(&mut self, place: Duration, now: Time, busy_until: Time) -> Time {
        let Self::Trace(server) = self else { return busy_until };
        let opportunity = Bytes::new(server.opportunity);
        *server = Opportunities::new(server.trace.clone(), place, opportunity);
        server.skip_until(now.as_millis() + server.offset_ms + 1);
        if busy_until <= now {
            return busy_until;
        }
        server.state = Place { left: 0, ..server.after(Bytes::new(1)) };
        server.link_time(server.state.at_ms)
    }

    /// When the transmission of a packet that was queued at `queued` starts if it is the next one.
    #[inline]
    pub(crate) fn start(&mut self, queued: Time) -> Time {
        match self {
            Self::Constant(server) => server.start(queued),
            Self::Trace(server) => server.start(queued),
        }
    }

    /// What [`start`](Self::start) would say again about the packet that it was last asked about.
    pub(crate) fn next_start(&self, queued: Time) -> Time {
        match self {
            Self::Constant(server) => server.start(queued),
            Self::Trace(server) => server.next_start(),
        }
    }

    /// When the transmission of that packet would end if it started at `start`.
    pub(crate) fn end(&self, start: Time, size: Bytes) -> Time {
        match self {
            Self::Constant(server) => server.after(start, size).busy_until,
            Self::Trace(server) => server.link_time(server.after(size).at_ms),
        }
    }

    /// Sends the packet that [`start`](Self::start) was last asked about, at the time that it gave.
    /// Returns when its last byte leaves.
    #[inline]
    pub(crate) fn serve(&mut self, start: Time, size: Bytes) -> Time {
        match self {
            Self::Constant(server) => {
                server.state = server.after(start, size);
                server.state.busy_until
            }
            Self::Trace(server) => {
                server.state = server.after(size);
                server.link_time(server.state.at_ms)
            }
        }
    }
}

/// Bytes leave one after the other at a constant rate.
#[derive(Clone, Debug)]
pub(crate) struct Smooth {
    rate: Rate,
    state: Busy,
}

#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    busy_until: Time,
    /// The part of a nanosecond beyond `busy_until` that is already spent, in units of a nanosecond
    /// divided by the rate in bytes per second. Carrying it keeps a busy link exact for ever.
    remainder: u64,
}

impl Smooth {
    fn new(rate: Rate) -> Self {
        Self { rate, state: Busy::default() }
    }

    #[inline]
    fn start(&self, queued: Time) -> Time {
        queued.max(self.state.busy_until)
    }

    #[inline]
    fn after(&self, start: Time, size: Bytes) -> Busy {
        let rate = self.rate.bytes_per_sec();
        if rate == 0 {
            return Busy { busy_until: Time::MAX, remainder: 0 };
        }
        let carried = if start == self.state.busy_until { self.state.remainder } else { 0 };
        let work = size.get().checked_mul(1_000_000_000).and_then(|work| work.checked_add(carried));
        let (ns, remainder) = match work {
            Some(work) => (work / rate, work % rate),
            None => {
                let work = u128::from(size.get()) * 1_000_000_000 + u128::from(carried);
                let remainder = (work % u128::from(rate)) as u64;
                (u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX), remainder)
            }
        };
        Busy { busy_until: start + Duration::from_nanos(ns), remainder }
    }
}

/// Bytes leave at the opportunities of a trace, as [`Link`](crate::Link) describes.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    opportunity: u64,
    offset_ms: u64,
    state: Place,
}

/// A place in the endless repetition of the trace. Positions are in ms from the start of the trace; the
/// time of the link is the position less the offset.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The position of the opportunity that was used last.
    at_ms: u64,
    /// What is left of it, in bytes.
    left: u64,
    /// Where the repetition starts that holds the next opportunity.
    round_ms: u64,
    /// The next opportunity of that repetition; always a valid index.
    next: usize,
}

impl Opportunities {
    fn new(trace: Arc<Trace>, offset: Duration, opportunity: Bytes) -> Self {
        let offset_ms = offset.as_millis();
        let state = Place { at_ms: 0, left: 0, round_ms: 0, next: 0 };
        let mut server = Self { trace, opportunity: opportunity.get(), offset_ms, state };
        server.skip_until(offset_ms);
        server
    }

    fn link_time(&self, position_ms: u64) -> Time {
        // Saturates: a position that is never reached is a time that never comes.
        Time::from_millis(position_ms.saturating_sub(self.offset_ms))
    }

    fn next_ms(&self) -> u64 {
        self.state.round_ms.saturating_add(u64::from(self.trace.opportunities()[self.state.next]))
    }

    fn start(&mut self, queued: Time) -> Time {
        let queued_ms = queued.as_millis() + self.offset_ms;
        // The rest of an opportunity is for packets that were there when it came.
        if queued_ms >= self.state.at_ms {
            self.state.left = 0;
        }
        if self.state.left == 0 && self.next_ms() <= queued_ms {
            self.skip_until(queued_ms + 1);
        }
        self.next_start()
    }

    fn next_start(&self) -> Time {
        self.link_time(if self.state.left > 0 { self.state.at_ms } else { self.next_ms() })
    }

    /// Lets all opportunities before `position_ms` pass unused.
    fn skip_until(&mut self, position_ms: u64) {
        let times = self.trace.opportunities();
        let period_ms = self.trace.period_ms();
        if self.state.round_ms.saturating_add(period_ms) < position_ms {
            // The last opportunity of this repetition is among those that pass.
            self.state.round_ms = (position_ms - 1) / period_ms * period_ms;
            self.state.next = 0;
        }
        let wanted = position_ms - self.state.round_ms;
        let rest = &times[self.state.next..];
        let passed = |&time: &u32| u64::from(time) < wanted;
        // An idle time is mostly short compared with the trace, so the search starts near and doubles.
        let mut reach = 8;
        while reach < rest.len() && passed(&rest[reach]) {
            reach *= 2;
        }
        self.state.next += rest[..rest.len().min(reach + 1)].partition_point(passed);
    }

    /// The place after sending `size` bytes from the present place, idle opportunities already skipped.
    fn after(&self, size: Bytes) -> Place {
        let mut place = self.state;
        if self.opportunity == 0 {
            // Never, and the packets behind it wait too.
            return Place { at_ms: u64::MAX, left: 1, ..place };
        }
        // A packet of no bytes still waits for its opportunity.
        let size = size.get().max(1);
        if size <= place.left {
            place.left -= size;
            return place;
        }
        let missing = size - place.left;
        let count = missing.div_ceil(self.opportunity);
        place.left = (self.opportunity - missing % self.opportunity) % self.opportunity;
        if count > 1 {
            self.advance(&mut place, count - 1);
        }
        let next_ms = u64::from(self.trace.opportunities()[place.next]);
        place.at_ms = place.round_ms.saturating_add(next_ms);
        self.advance(&mut place, 1);
        place
    }

    /// Moves the next opportunity on by `count`.
    fn advance(&self, place: &mut Place, count: u64) {
        let length = self.trace.opportunities().len() as u64;
        let next = (place.next as u64).saturating_add(count);
        if next < length {
            place.next = next as usize;
        } else {
            let rounds_ms = (next / length).saturating_mul(self.trace.period_ms());
            place.round_ms = place.round_ms.saturating_add(rounds_ms);
            place.next = (next % length) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_constant_link_does_not_drift() {
        // 1500 bytes at 7 000 001 B/s take 214 285.683... ns.
        let rate = 7_000_001;
        let mut server = Server::new(&Capacity::Constant(Rate::from_bytes_per_sec(rate)));
        let mut end = Time::ZERO;
        for _ in 0..1_000_000 {
            let start = server.start(Time::ZERO);
            assert_eq!(start, end);
            end = server.serve(start, Bytes::new(1500));
        }
        let exact = 1_500_000_000u128 * 1_000_000_000 / u128::from(rate);
        assert_eq!(u128::from(end.as_nanos()), exact);
        // After an idle time it starts afresh.
        let start = server.start(end + Duration::from_nanos(5));
        assert_eq!(server.serve(start, Bytes::new(1500)), start + Duration::from_nanos(214_285));
    }

    #[test]
    fn the_ends_of_the_range() {
        let mut endless = Server::new(&Capacity::Constant(Rate::MAX));
        assert_eq!(endless.serve(Time::from_millis(1), Bytes::new(9000)), Time::from_millis(1));
        let mut closed = Server::new(&Capacity::Constant(Rate::ZERO));
        assert_eq!(closed.serve(Time::ZERO, Bytes::new(1)), Time::MAX);
        assert_eq!(closed.start(Time::from_millis(1)), Time::MAX);

        let trace = Arc::new(Trace::from_opportunities(vec![1, 3]).unwrap());
        let opportunity = Bytes::ZERO;
        let nothing = Capacity::Trace { trace: trace.clone(), offset: Duration::ZERO, opportunity };
        let mut closed = Server::new(&nothing);
        let start = closed.start(Time::ZERO);
        assert_eq!(closed.serve(start, Bytes::new(1)), Time::MAX);
        assert_eq!(closed.start(Time::from_millis(9)), Time::MAX);

        // A packet of 4 GB through opportunities of a byte: no loop runs that long.
        let opportunity = Bytes::new(1);
        let narrow = Capacity::Trace { trace, offset: Duration::ZERO, opportunity };
        let mut narrow = Server::new(&narrow);
        let start = narrow.start(Time::ZERO);
        let end = narrow.serve(start, Bytes::new(4_000_000_000));
        assert_eq!(end, Time::from_millis(6_000_000_000));
        let mut times: Vec<u64> = Vec::new();
        for _ in 0..3 {
            let start = narrow.start(end - Duration::from_millis(1));
            times.push(narrow.serve(start, Bytes::new(1)).as_millis() - end.as_millis());
        }
        assert_eq!(times, [1, 3, 4]);
    }

    #[test]
    fn idle_time_is_jumped_over() {
        let trace = Arc::new(Trace::from_opportunities((1..=100_000).collect()).unwrap());
        let mut server = Server::new(&Capacity::trace(trace));
        for queued_ms in [0, 1, 5, 70_000, 99_998, 99_999, 100_000, 100_001, 12_345_678, 1 << 40] {
            let start = server.start(Time::from_millis(queued_ms) + Duration::from_micros(999));
            assert_eq!(start, Time::from_millis(queued_ms + 1));
            assert_eq!(server.serve(start, Bytes::new(1500)), start);
        }
    }
}
