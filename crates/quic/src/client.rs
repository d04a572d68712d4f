//! The client: an application over streams.

use std::collections::VecDeque;

use noq_proto::{ConnectionError, Dir, StreamEvent, StreamId};
use trimtab_apps::wire::{self, Responses};
use trimtab_apps::{App, Application, Command, Concurrency, RequestId};
use trimtab_units::{Bytes, Time};

use crate::clock::Clock;
use crate::side::{Datagram, Side};

/// A client of one connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) side: Side,
    pub(crate) app: App,
    concurrency: Concurrency,
    pub(crate) clock: Clock,
    /// When it starts asking, and when it stops, in the time of the run.
    active: (Time, Time),
    /// Streams with responses that have not arrived.
    streams: Vec<(StreamId, Responses)>,
    /// Requests for which no stream is free.
    waiting: VecDeque<Request>,
    goodput: Bytes,
}

/// A request before it has a stream.
#[derive(Debug)]
struct Request {
    id: RequestId,
    size: Bytes,
    upload: Bytes,
}

impl Client {
    pub(crate) fn new(side: Side, app: App, clock: Clock, active: (Time, Time)) -> Self {
        Self {
            side,
            concurrency: app.concurrency(),
            app,
            clock,
            active,
            streams: Vec::new(),
            waiting: VecDeque::new(),
            goodput: Bytes::ZERO,
        }
    }

    /// When it starts asking, and when it stops, by the clock of connections.
    fn active(&self) -> (Time, Time) {
        (self.clock.of_run(self.active.0), self.clock.of_run(self.active.1))
    }

    /// Bytes of responses that the application has got.
    pub(crate) fn goodput(&self) -> Bytes {
        self.goodput
    }

    /// When something is due, if nothing arrives.
    pub(crate) fn timer(&self, now: Time) -> Time {
        let (start, stop) = self.active();
        let app = match self.app.next_timer() {
            _ if now < start => start,
            // A stopped client is not asked; what it would have asked by now stays due.
            Some(at) if now < stop && self.clock.of_run(at) < stop => self.clock.of_run(at),
            _ => Time::MAX,
        };
        self.side.timer(&self.clock).min(app)
    }

    /// Does what is due: reads responses, asks for more, and sends what may leave.
    ///
    /// # Errors
    /// The connection ended.
    pub(crate) fn turn(
        &mut self,
        now: Time,
        out: impl FnMut(Datagram),
    ) -> Result<(), ConnectionError> {
        let at = self.clock.instant(now);
        let mut readable = Vec::new();
        self.side.work(at, |event| {
            if let StreamEvent::Readable { id } = event {
                readable.push(id);
            }
        })?;
        for stream in readable {
            self.read(self.clock.run(now), stream);
        }
        if self.side.is_established() {
            self.ask(now);
        }
        self.side.transmit(at, out);
        Ok(())
    }

    /// Hands what has arrived on a stream to the application.
    fn read(&mut self, run: Time, id: StreamId) {
        let Some(connection) = self.side.connection() else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut newly = Bytes::ZERO;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            newly += Bytes::new(chunk.bytes.len() as u64);
        }
        // What it asks for leaves with the next packet.
        let _ = chunks.finalize();
        self.goodput += newly;
        let Some(place) = self.streams.iter().position(|(stream, _)| *stream == id) else { return };
        let responses = &mut self.streams[place].1;
        responses.take(&mut self.app, run, newly);
        if self.concurrency == Concurrency::Streams && responses.is_complete() {
            self.streams.swap_remove(place);
        }
    }

    /// Asks for what the application wants now.
    fn ask(&mut self, now: Time) {
        let (start, stop) = self.active();
        while (start..stop).contains(&now)
            && let Some(Command::Request { id, size, upload }) = self.app.poll(self.clock.run(now))
        {
            self.waiting.push_back(Request { id, size, upload });
        }
        while !self.waiting.is_empty()
            && let Some(place) = self.stream_for_next()
            && let Some(request) = self.waiting.pop_front()
        {
            self.send(place, &request);
        }
    }

    /// The stream of the next request, by its place in the list; `None` while too many are open.
    fn stream_for_next(&mut self) -> Option<usize> {
        if self.concurrency == Concurrency::InOrder && !self.streams.is_empty() {
            return Some(0);
        }
        let id = self.side.connection()?.streams().open(Dir::Bi)?;
        self.streams.push((id, Responses::default()));
        Some(self.streams.len() - 1)
    }

    fn send(&mut self, place: usize, request: &Request) {
        let &Request { id, size, upload } = request;
        let (stream, responses) = &mut self.streams[place];
        responses.expect(id, size);
        let Some(connection) = self.side.connection() else { return };
        let mut stream = connection.send_stream(*stream);
        let message = wire::encode(size, upload);
        let taken = stream.write(&message);
        debug_assert_eq!(taken, Ok(message.len()), "no window limits a client");
        if self.concurrency == Concurrency::Streams {
            // It fails only where the server wants no more, and servers read all.
            let _ = stream.finish();
        }
    }
}
