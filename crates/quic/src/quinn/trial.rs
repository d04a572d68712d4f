//! A connection of quinn over a link of the simulator: what happens when.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::{Bytes as Piece, BytesMut};
use quinn_proto::{ClientConfig, ConnectionError, Dir, ServerConfig, StreamEvent, StreamId};
use trimtab_apps::wire::{self, Messages, Responses};
use trimtab_apps::{App, Application, Command};
use trimtab_lab::conform::{Look, Scene, Trial};
use trimtab_lab::run::datapath::RunError;
use trimtab_net::{DelayLine, Event, Link, Packet};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::end::QuinnEnd;
use super::watched::Watching;
use crate::clock::Clock;
use crate::side::HEADERS;
use crate::virtual_world::lead;

/// What responses are made of.
static FILLER: [u8; 65_536] = [0; 65_536];
/// So much of responses waits to be sent, at least, while there is any.
const AHEAD: u64 = 4_000_000;

/// A server and a client of quinn, and the path between them.
pub(super) struct QuinnTrial {
    clock: Clock,
    /// By the clock of connections.
    now: Time,
    /// It lives in the time of the run.
    link: Link<BytesMut>,
    forward: DelayLine,
    reverse: DelayLine,
    /// Datagrams between the server and the link, at the client, and between the client and the
    /// server.
    outbound: VecDeque<(Time, BytesMut)>,
    delivered: VecDeque<BytesMut>,
    inbound: VecDeque<(Time, BytesMut)>,
    server: Server,
    client: Client,
    watching: Watching,
    /// Datagrams that the server sent, handshake apart.
    sent: u64,
    /// Whether the client has sent its first datagram.
    has_dialed: bool,
}

/// The server, which answers on one stream.
struct Server {
    end: QuinnEnd,
    stream: Option<StreamId>,
    messages: Messages,
    /// Bytes of responses that quinn has not been handed, that it was handed, and that left in
    /// datagrams.
    left: u64,
    written: u64,
    left_in_datagrams: u64,
}

/// The client, which asks on one stream.
struct Client {
    end: QuinnEnd,
    stream: Option<StreamId>,
    app: App,
    responses: Responses,
    goodput: Bytes,
}

impl QuinnTrial {
    pub(super) fn new(
        scene: &Scene,
        server: ServerConfig,
        client: ClientConfig,
        watching: Watching,
    ) -> Self {
        let clock = Clock::new(lead(scene.rtt.longest()));
        let half = scene.rtt.map(|delay| delay / 2).begin(clock.of_run(Time::ZERO));
        let start = clock.instant(Time::ZERO);
        Self {
            clock,
            now: Time::ZERO,
            link: Link::new(&scene.link, scene.seed),
            forward: DelayLine::plain(half.clone()),
            reverse: DelayLine::plain(half),
            outbound: VecDeque::new(),
            delivered: VecDeque::new(),
            inbound: VecDeque::new(),
            server: Server {
                end: QuinnEnd::server(scene.seed, server),
                stream: None,
                messages: Messages::default(),
                left: 0,
                written: 0,
                left_in_datagrams: 0,
            },
            client: Client {
                end: QuinnEnd::client(scene.seed, start, client),
                stream: None,
                app: scene.app.clone(),
                responses: Responses::default(),
                goodput: Bytes::ZERO,
            },
            watching,
            sent: 0,
            has_dialed: false,
        }
    }

    /// When something is due.
    fn next(&mut self) -> Time {
        if !self.has_dialed {
            return self.now;
        }
        let due = |line: &VecDeque<(Time, BytesMut)>| line.front().map_or(Time::MAX, |&(at, _)| at);
        let clock = self.clock;
        let link = self.link.next_event().map_or(Time::MAX, |at| clock.of_run(at));
        let app = self.client.app.next_timer().map_or(Time::MAX, |at| clock.of_run(at));
        let opens = clock.of_run(Time::ZERO);
        let app = if self.now < opens { opens } else { app };
        let ends = self.server.end.timer(&clock).min(self.client.end.timer(&clock));
        let lines = due(&self.outbound).min(due(&self.inbound));
        lines.min(link).min(app).min(ends).max(self.now)
    }

    /// Does what is due now: on the link, at the server, at the client, and what they sent.
    fn step(&mut self) -> Result<(), ConnectionError> {
        self.has_dialed = true;
        let Self { clock, now, .. } = *self;
        let (at, run, opens) = (clock.instant(now), clock.run(now), clock.of_run(Time::ZERO));
        while let Some(event) = self.link.poll(run) {
            if let Event::Delivered(delivery) = event {
                self.delivered.push_back(delivery.packet.payload);
            }
        }
        while let Some(datagram) = take_due(&mut self.inbound, now) {
            self.server.end.receive(at, datagram);
        }
        let Self { server, forward, outbound, sent, .. } = self;
        server.turn(at, |datagram| {
            *sent += u64::from(now >= opens);
            outbound.push_back((forward.release(now), datagram));
        })?;
        // Those of the handshake pass the link by.
        while let Some(datagram) = take_due(&mut self.outbound, now) {
            if now < opens {
                self.delivered.push_back(datagram);
                continue;
            }
            let size = Bytes::new(datagram.len() as u64) + HEADERS;
            // One that the link drops is gone.
            let _ = self.link.send(run, Packet { size, payload: datagram });
        }
        while let Some(datagram) = self.delivered.pop_front() {
            self.client.end.receive(at, datagram);
        }
        let Self { client, reverse, inbound, .. } = self;
        client.turn(at, (now >= opens).then_some(run), |datagram| {
            inbound.push_back((reverse.release(now), datagram));
        })
    }
}

fn take_due(line: &mut VecDeque<(Time, BytesMut)>, now: Time) -> Option<BytesMut> {
    line.front().filter(|&&(at, _)| at <= now)?;
    line.pop_front().map(|(_, datagram)| datagram)
}

impl Server {
    fn turn(&mut self, now: Instant, mut out: impl FnMut(BytesMut)) -> Result<(), ConnectionError> {
        self.end.work(now, |_| {})?;
        self.read();
        self.write();
        let left = &mut self.left_in_datagrams;
        self.end.transmit(now, |datagram| {
            *left += datagram.len() as u64;
            out(datagram);
        });
        Ok(())
    }

    /// Reads what has arrived of requests.
    fn read(&mut self) {
        let Self { end, stream, messages, left, .. } = self;
        let Some(connection) = end.connection() else { return };
        if stream.is_none() {
            *stream = connection.streams().accept(Dir::Bi);
        }
        let Some(stream) = *stream else { return };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            messages.take(&chunk.bytes, |size| *left += size.get());
        }
        // What it asks for leaves with the next packet.
        let _ = chunks.finalize();
    }

    /// Hands over what quinn is to send.
    fn write(&mut self) {
        let Self { end, stream, left, written, left_in_datagrams, .. } = self;
        let (Some(connection), Some(stream)) = (end.connection(), *stream) else { return };
        let mut stream = connection.send_stream(stream);
        while *left > 0 && *written < *left_in_datagrams + AHEAD {
            let length = (*left).min(FILLER.len() as u64) as usize;
            let mut piece = [Piece::from_static(&FILLER[..length])];
            let Ok(taken) = stream.write_chunks(&mut piece) else { break };
            *left -= taken.bytes as u64;
            *written += taken.bytes as u64;
        }
    }
}

impl Client {
    /// `run`: the time of the run, once it has begun.
    fn turn(
        &mut self,
        now: Instant,
        run: Option<Time>,
        out: impl FnMut(BytesMut),
    ) -> Result<(), ConnectionError> {
        let mut readable = false;
        self.end.work(now, |event| readable |= matches!(event, StreamEvent::Readable { .. }))?;
        if let Some(run) = run {
            if !self.end.is_established() {
                return Err(ConnectionError::TimedOut);
            }
            if readable {
                self.read(run);
            }
            self.ask(run);
        }
        self.end.transmit(now, out);
        Ok(())
    }

    /// Hands what has arrived to the application.
    fn read(&mut self, run: Time) {
        let Self { end, stream, app, responses, goodput } = self;
        let (Some(connection), Some(stream)) = (end.connection(), *stream) else { return };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut newly = Bytes::ZERO;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            newly += Bytes::new(chunk.bytes.len() as u64);
        }
        // What it asks for leaves with the next packet.
        let _ = chunks.finalize();
        *goodput += newly;
        responses.take(app, run, newly);
    }

    /// Asks for what the application wants now.
    fn ask(&mut self, run: Time) {
        while let Some(Command::Request { id, size, upload }) = self.app.poll(run) {
            let Some(connection) = self.end.connection() else { return };
            if self.stream.is_none() {
                self.stream = connection.streams().open(Dir::Bi);
            }
            let Some(stream) = self.stream else { return };
            let message = wire::encode(size, upload);
            let taken = connection.send_stream(stream).write(&message);
            debug_assert_eq!(taken, Ok(message.len()), "no window limits a client");
            self.responses.expect(id, size);
        }
    }
}

impl Trial for QuinnTrial {
    fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        let end = self.clock.of_run(until);
        loop {
            let next = self.next();
            if next > end {
                break;
            }
            self.now = next;
            self.step().map_err(|reason| {
                let after = self.clock.run(self.now).as_secs_f64();
                format!("quinn ended the connection after {after:.2} s: {reason}")
            })?;
        }
        self.now = end;
        self.link.advance(until);
        Ok(())
    }

    fn look(&mut self) -> Look {
        let connection = self.server.end.connection();
        let path = connection.as_ref().map(|connection| connection.stats().path);
        let metrics = connection.map(|connection| connection.congestion_state().metrics());
        let rtt = path.as_ref().map_or(0, |path| path.rtt.as_nanos());
        Look {
            at: self.clock.run(self.now),
            window: Bytes::new(path.as_ref().map_or(0, |path| path.cwnd)),
            inflight: Bytes::new(self.watching.inflight()),
            sent: self.sent,
            lost: path.as_ref().map_or(0, |path| path.lost_packets),
            goodput: self.client.goodput,
            srtt: Duration::from_nanos(u64::try_from(rtt).unwrap_or(u64::MAX)),
            // What it asks for: quinn paces by the window.
            pacing: metrics.and_then(|metrics| metrics.pacing_rate).map(Rate::from_bits_per_sec),
        }
    }
}
