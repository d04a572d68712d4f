//! The bytes of the application on their way: what the server has still to send, and what the
//! client can read.
//!
//! On a transport with one ordered byte stream (TCP) the responses follow each other on stream 0,
//! and one lost packet holds back all that follow. On one with independent streams (QUIC) every
//! response is a stream, and the streams take turns.

use std::collections::VecDeque;

use trimtab_apps::{Concurrency, RequestId};
use trimtab_units::Bytes;

/// A piece of a stream that fits one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) stream: u32,
    pub(crate) len: u32,
    pub(crate) offset: u64,
}

/// What the server has to send.
#[derive(Clone, Debug)]
pub(crate) struct SendStreams {
    concurrency: Concurrency,
    /// Streams with unsent bytes, in turn: (stream, next offset, end).
    open: VecDeque<(u32, u64, u64)>,
    /// End of stream 0 when there is only that one.
    written: u64,
}

impl SendStreams {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        Self { concurrency, open: VecDeque::new(), written: 0 }
    }

    pub(crate) fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    /// The application hands over a response of `size` bytes; `stream` counts responses.
    pub(crate) fn write(&mut self, stream: u32, size: Bytes) {
        let size = size.get();
        match self.concurrency {
            Concurrency::Streams => self.open.push_back((stream, 0, size)),
            Concurrency::InOrder => {
                self.written = self.written.saturating_add(size);
                match self.open.front_mut() {
                    Some((_, _, end)) => *end = self.written,
                    None => self.open.push_back((0, self.written - size, self.written)),
                }
            }
        }
    }

    /// Whether nothing waits to be sent for the first time.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether more than `bytes` wait to be sent for the first time.
    pub(crate) fn has_more_than(&self, bytes: Bytes) -> bool {
        let mut left = bytes.get();
        self.open.iter().any(|&(_, offset, end)| {
            let more = end - offset > left;
            left = left.saturating_sub(end - offset);
            more
        })
    }

    /// Takes the next piece of at most `limit` bytes. Streams take turns, packet by packet.
    pub(crate) fn next(&mut self, limit: Bytes) -> Option<Chunk> {
        let &mut (stream, ref mut offset, end) = self.open.front_mut()?;
        let len = (end - *offset).min(limit.get());
        let chunk = Chunk { stream, len: len as u32, offset: *offset };
        *offset += len;
        if *offset == end {
            self.open.pop_front();
        } else if self.open.len() > 1 {
            self.open.rotate_left(1);
        }
        Some(chunk)
    }
}

/// Which bytes of one stream have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// All below has arrived.
    next: u64,
    /// Pieces beyond the first gap: (start, end), sorted, apart from each other.
    beyond: Vec<(u64, u64)>,
}

impl Reassembly {
    /// Takes in a piece; returns how far the readable part grew.
    pub(crate) fn insert(&mut self, offset: u64, len: u64) -> u64 {
        let before = self.next;
        let end = offset + len;
        if end <= self.next {
            return 0;
        }
        if offset <= self.next {
            self.next = end;
            while self.beyond.first().is_some_and(|&(start, _)| start <= self.next) {
                let (_, end) = self.beyond.remove(0);
                self.next = self.next.max(end);
            }
        } else {
            // Merge with every piece that touches [offset, end).
            let from = self.beyond.partition_point(|&(_, e)| e < offset);
            let to = self.beyond.partition_point(|&(s, _)| s <= end);
            let start =
                self.beyond.get(from).filter(|_| from < to).map_or(offset, |p| p.0.min(offset));
            let end = if from < to { self.beyond[to - 1].1.max(end) } else { end };
            self.beyond.splice(from..to, [(start, end)]);
        }
        self.next - before
    }

    /// All below this offset has arrived.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether something is missing before bytes that have arrived.
    pub(crate) fn has_gap(&self) -> bool {
        !self.beyond.is_empty()
    }
}

/// Progress of one response that the client can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) id: RequestId,
    /// Newly readable bytes.
    pub(crate) newly: Bytes,
    /// Whether these are its first.
    pub(crate) first: bool,
    /// Whether all of it is there.
    pub(crate) complete: bool,
}

/// What the client has received.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveStreams {
    concurrency: Concurrency,
    /// One per response (or one for all), from `first_stream` on.
    streams: VecDeque<Reassembly>,
    /// Responses not complete: (id, start, end) in their stream.
    pending: VecDeque<(RequestId, u64, u64)>,
    first_stream: u32,
    written: u64,
}

impl ReceiveStreams {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        let streams = match concurrency {
            Concurrency::InOrder => VecDeque::from([Reassembly::default()]),
            Concurrency::Streams => VecDeque::new(),
        };
        Self { concurrency, streams, pending: VecDeque::new(), first_stream: 0, written: 0 }
    }

    /// The next response will have `size` bytes; called in the order in which the server answers.
    pub(crate) fn expect(&mut self, id: RequestId, size: Bytes) {
        let size = size.get();
        match self.concurrency {
            Concurrency::InOrder => {
                self.pending.push_back((id, self.written, self.written.saturating_add(size)));
                self.written = self.written.saturating_add(size);
            }
            Concurrency::Streams => {
                self.streams.push_back(Reassembly::default());
                self.pending.push_back((id, 0, size));
            }
        }
    }

    /// All of stream 0 below this offset has arrived: TCP's cumulative acknowledgement.
    pub(crate) fn cumulative(&self) -> u64 {
        match self.concurrency {
            Concurrency::InOrder => self.streams[0].next(),
            Concurrency::Streams => 0,
        }
    }

    /// Takes in a chunk; calls `progress` for every response that moves. Returns whether a gap
    /// remains in the chunk's stream.
    #[inline]
    pub(crate) fn insert(&mut self, chunk: Chunk, mut progress: impl FnMut(Progress)) -> bool {
        match self.concurrency {
            Concurrency::InOrder => {
                let stream = &mut self.streams[0];
                let mut from = stream.next();
                stream.insert(chunk.offset, u64::from(chunk.len));
                let to = stream.next();
                let gap = stream.has_gap();
                while from < to {
                    let Some(&(id, start, end)) = self.pending.front() else { break };
                    let upto = to.min(end);
                    let newly = Bytes::new(upto - from);
                    progress(Progress { id, newly, first: from == start, complete: upto == end });
                    from = upto;
                    if upto == end {
                        self.pending.pop_front();
                    }
                }
                gap
            }
            Concurrency::Streams => {
                let Some(index) = chunk.stream.checked_sub(self.first_stream) else { return false };
                let index = index as usize;
                let Some(stream) = self.streams.get_mut(index) else { return false };
                let before = stream.next();
                let newly = stream.insert(chunk.offset, u64::from(chunk.len));
                let gap = stream.has_gap();
                let (id, _, end) = self.pending[index];
                if newly > 0 {
                    let complete = stream.next() >= end;
                    progress(Progress {
                        id,
                        newly: Bytes::new(newly),
                        first: before == 0,
                        complete,
                    });
                }
                while self.streams.front().is_some_and(|s| s.next() >= self.pending[0].2) {
                    self.streams.pop_front();
                    self.pending.pop_front();
                    self.first_stream += 1;
                }
                gap
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, seq::SliceRandom};

    #[test]
    fn any_order_of_pieces_reassembles() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(3);
        for _ in 0..200 {
            let mut pieces: Vec<(u64, u64)> = (0..30).map(|i| (i * 10, 10)).collect();
            pieces.extend([(5, 20), (95, 10), (295, 5)]);
            pieces.shuffle(&mut rng);
            let mut all = Reassembly::default();
            let grown: u64 = pieces.iter().map(|&(o, l)| all.insert(o, l)).sum();
            assert_eq!((grown, all.next(), all.has_gap()), (300, 300, false));
        }
    }

    #[test]
    fn a_gap_holds_back_the_stream_and_only_it() {
        for concurrency in [Concurrency::InOrder, Concurrency::Streams] {
            let mut send = SendStreams::new(concurrency);
            let mut receive = ReceiveStreams::new(concurrency);
            for i in 0..2 {
                send.write(i, Bytes::new(1000));
                receive.expect(RequestId(i), Bytes::new(1000));
            }
            let mut chunks = Vec::new();
            while let Some(chunk) = send.next(Bytes::new(500)) {
                chunks.push(chunk);
            }
            assert_eq!(chunks.len(), 4);
            let mut done = Vec::new();
            // The first packet is lost; the rest arrives.
            for &chunk in &chunks[1..] {
                receive.insert(chunk, |p| done.extend(p.complete.then_some(p.id.0)));
            }
            let expected: &[u32] = if concurrency == Concurrency::InOrder { &[] } else { &[1] };
            assert_eq!(done, expected, "{concurrency:?}");
            receive.insert(chunks[0], |p| done.extend(p.complete.then_some(p.id.0)));
            done.sort_unstable();
            assert_eq!(done, [0, 1], "{concurrency:?}");
        }
    }

    #[test]
    fn duplicates_change_nothing() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(4);
        let mut once = Reassembly::default();
        let mut twice = Reassembly::default();
        for _ in 0..500 {
            let (offset, len) = (rng.random_range(0..5_000), rng.random_range(1..100));
            once.insert(offset, len);
            twice.insert(offset, len);
            assert_eq!(twice.insert(offset, len), 0);
            assert_eq!(once.next(), twice.next());
        }
    }
}
