//! The server's book of its responses: how long each waited until it was sent, and how fast it arrived.

use std::collections::VecDeque;

use trimtab_apps::Concurrency;
use trimtab_steer::Collector;
use trimtab_units::{Bytes, Time};

use crate::streams::Chunk;

/// A response that the server has given to its transport.
#[derive(Clone, Copy, Debug)]
struct Open {
    given_at: Time,
    size: Bytes,
    /// Bytes that were not sent, and not acknowledged.
    unsent: u64,
    unacked: u64,
}

/// Responses that have not arrived whole.
#[derive(Clone, Debug)]
pub(crate) struct Responses {
    concurrency: Concurrency,
    /// From number `first` on. `None` is a number whose request has not reached the server.
    open: VecDeque<Option<Open>>,
    first: u32,
    /// With a single stream: the response that is being sent, and where the first open one begins.
    sending: u32,
    begin: u64,
    unsent: Bytes,
}

impl Responses {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        Self {
            concurrency,
            open: VecDeque::new(),
            first: 0,
            sending: 0,
            begin: 0,
            unsent: Bytes::ZERO,
        }
    }

    /// Response bytes that wait to be sent for the first time.
    pub(crate) fn unsent(&self) -> Bytes {
        self.unsent
    }

    /// The application gives a response. On a single stream they follow each other as they are given.
    pub(crate) fn give(&mut self, now: Time, number: u32, size: Bytes) {
        let index = match self.concurrency {
            Concurrency::InOrder => self.open.len(),
            Concurrency::Streams => match number.checked_sub(self.first) {
                Some(index) => index as usize,
                None => return,
            },
        };
        if self.open.len() <= index {
            self.open.resize(index + 1, None);
        }
        let bytes = size.get();
        self.open[index] = Some(Open { given_at: now, size, unsent: bytes, unacked: bytes });
        self.unsent += size;
    }

    /// A chunk left for the first time.
    pub(crate) fn on_sent(&mut self, now: Time, chunk: Chunk, collector: &mut Collector) {
        let mut left = u64::from(chunk.len);
        self.unsent -= Bytes::new(left);
        match self.concurrency {
            Concurrency::Streams => {
                if let Some(open) = self.get_mut(chunk.stream) {
                    open.take_sent(now, left, collector);
                }
            }
            Concurrency::InOrder => {
                while left > 0 {
                    let Some(open) = self.get_mut(self.sending) else { break };
                    left -= open.take_sent(now, left, collector);
                    if open.unsent == 0 {
                        self.sending += 1;
                    }
                }
            }
        }
    }

    /// A chunk was acknowledged, and of a single stream all below `cumulative`. Where both a packet and its repetition
    /// arrive, a response counts as arrived by as much too soon.
    pub(crate) fn on_acked(
        &mut self,
        now: Time,
        chunk: Chunk,
        cumulative: u64,
        collector: &mut Collector,
    ) {
        match self.concurrency {
            Concurrency::Streams => {
                if let Some(open) = self.get_mut(chunk.stream) {
                    let before = open.unacked;
                    open.unacked = before.saturating_sub(u64::from(chunk.len));
                    if before > 0 && open.unacked == 0 {
                        collector.on_response_arrived(open.size, now.since(open.given_at));
                    }
                }
            }
            Concurrency::InOrder => {
                let mut begin = self.begin;
                for open in self.open.iter_mut().flatten() {
                    if begin + open.size.get() > cumulative {
                        break;
                    }
                    begin += open.size.get();
                    open.unacked = 0;
                    collector.on_response_arrived(open.size, now.since(open.given_at));
                }
                self.begin = begin;
            }
        }
        while self.open.front().is_some_and(|open| open.is_some_and(|open| open.unacked == 0)) {
            self.open.pop_front();
            self.first += 1;
        }
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Open> {
        self.open.get_mut(number.checked_sub(self.first)? as usize)?.as_mut()
    }
}

impl Open {
    /// Up to `bytes` of it leave; how many did.
    fn take_sent(&mut self, now: Time, bytes: u64, collector: &mut Collector) -> u64 {
        let taken = bytes.min(self.unsent);
        self.unsent -= taken;
        if taken > 0 && self.unsent == 0 {
            collector.on_response_sent(now.since(self.given_at));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::Phase;
    use trimtab_qoe::Factors;
    use trimtab_steer::{KnobValues, Responses as Counted, Snapshot};
    use trimtab_units::Duration;

    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    fn counted(collector: &mut Collector, responses: &Responses, now: Time) -> Counted {
        let end = Snapshot {
            algorithm: "cubic",
            srtt: Duration::ZERO,
            min_rtt: Duration::ZERO,
            window: Bytes::ZERO,
            inflight: Bytes::ZERO,
            mss: Bytes::new(1500),
            phase: Phase::Steady,
            knobs: KnobValues::NONE,
            unsent: responses.unsent(),
            factors: Factors::new(),
        };
        collector.report(now, end).responses
    }

    /// Two responses, 1000 and 500 bytes, given at 10 ms: the first leaves at 20 ms, the second at 20 and 40 ms.
    fn two(concurrency: Concurrency, chunks: [(u64, Chunk); 3]) {
        let mut collector = Collector::new(Time::ZERO);
        let mut responses = Responses::new(concurrency);
        responses.give(ms(10), 0, Bytes::new(1000));
        responses.give(ms(10), 1, Bytes::new(500));
        assert_eq!(responses.unsent(), Bytes::new(1500));
        for (at, chunk) in chunks {
            responses.on_sent(ms(at), chunk, &mut collector);
        }
        let mut cumulative = 0;
        for (at, chunk) in chunks {
            cumulative += u64::from(chunk.len);
            responses.on_acked(ms(at + 90), chunk, cumulative, &mut collector);
        }
        let got = counted(&mut collector, &responses, ms(200));
        assert_eq!((got.unsent, got.sent, got.arrived), (Bytes::ZERO, 2, 2), "{concurrency:?}");
        // (10 + 30) / 2 ms; 1000 bytes in 100 ms and 500 in 120 ms; their mean size.
        assert_eq!(got.wait_mean, Duration::from_millis(20), "{concurrency:?}");
        let kbps = got.goodput_mean.bits_per_sec() / 1e3;
        assert!((kbps - (80.0 + 4000.0 / 120.0) / 2.0).abs() < 0.01, "{concurrency:?}: {kbps}");
        assert_eq!(got.size_mean, Bytes::new(750));
        assert!(responses.open.is_empty());
        let nothing = counted(&mut collector, &responses, ms(300));
        assert_eq!((nothing.sent, nothing.arrived), (0, 0));
    }

    #[test]
    fn waits_and_goodput_of_streams_and_of_one_stream() {
        let chunk = |stream, offset, len| Chunk { stream, len, offset };
        two(
            Concurrency::Streams,
            [(20, chunk(0, 0, 1000)), (20, chunk(1, 0, 100)), (40, chunk(1, 100, 400))],
        );
        // On one stream a chunk may end one response and begin the next.
        two(
            Concurrency::InOrder,
            [(15, chunk(0, 0, 900)), (20, chunk(0, 900, 200)), (40, chunk(0, 1100, 400))],
        );
    }

    #[test]
    fn a_request_that_comes_late_leaves_a_gap() {
        let mut collector = Collector::new(Time::ZERO);
        let mut responses = Responses::new(Concurrency::Streams);
        let whole = |stream| Chunk { stream, len: 100, offset: 0 };
        responses.give(ms(10), 1, Bytes::new(100));
        responses.on_sent(ms(10), whole(1), &mut collector);
        responses.on_acked(ms(50), whole(1), 0, &mut collector);
        // The repetition of a packet that arrived after all changes nothing.
        responses.on_acked(ms(60), whole(1), 0, &mut collector);
        responses.give(ms(70), 0, Bytes::new(100));
        responses.on_sent(ms(80), whole(0), &mut collector);
        responses.on_acked(ms(90), whole(0), 0, &mut collector);
        let got = counted(&mut collector, &responses, ms(100));
        assert_eq!((got.sent, got.arrived), (2, 2));
        assert_eq!((responses.open.len(), responses.first), (0, 2));
    }
}
