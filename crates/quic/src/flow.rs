//! One flow: its client, its server, and what carries the datagrams between them.

use std::sync::Arc;

use noq_proto::congestion::Controller;
use noq_proto::{ClientConfig, ConnectionError, PathId, PathStats, ServerConfig};
use trimtab_apps::{App, Application, Concurrency};
use trimtab_lab::run::course::Member;
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::scenario::Job;
use trimtab_noq::{Factors, Handle};
use trimtab_units::{Bytes, Rate, Time};

use crate::admission::{self, Governor};
use crate::carrier::{Carrier, End};
use crate::client::Client;
use crate::clock::Clock;
use crate::error::QuicError;
use crate::identity::Identity;
use crate::logs::RunLogs;
use crate::observer::{ObservedFactory, Seen, SharedSeen};
use crate::server::Server;
use crate::side::{Side, UNLIMITED, transport};

/// A flow of a world.
pub(crate) struct FlowConfig {
    /// Its number, from 0.
    number: usize,
    /// What decides how the server sends.
    governor: Governor,
    /// The application of its client.
    app: App,
    /// When the client starts asking, and when it stops, in the time of the run.
    active: (Time, Time),
    /// What the client buffers of a stream.
    stream_window: Bytes,
    /// Seed of all that is drawn.
    pub(crate) seed: u64,
}

/// What the client buffers of a stream. noq gives up a connection of whose stream more than 1024
/// pieces are out of order; at most half of the packets of 2.5 MB are, 874 of 1430 bytes. That is
/// twice noq's default. Where all responses take one stream, it is no limit for a fast and long path.
fn stream_window(concurrency: Concurrency, mean_rate: Rate, job: &Job) -> Bytes {
    let bounded = Bytes::new(2_500_000);
    let held = mean_rate * job.cell.rtt.longest();
    match concurrency {
        Concurrency::InOrder if held > bounded => UNLIMITED,
        Concurrency::InOrder | Concurrency::Streams => bounded,
    }
}

impl FlowConfig {
    /// That of a member of a run.
    pub(crate) fn new(
        number: usize,
        member: Member<'_>,
        (prepared, job): (&Prepared, &Job),
        logs: RunLogs<'_>,
        clock: Clock,
    ) -> Self {
        let seed = job.seed ^ ((number as u64) << 32);
        let log = logs.of(number, member.scheme);
        let (scheme, goal) = (member.scheme, member.goal);
        let mean_rate = prepared.plan.links[job.trace].mean_rate();
        let end = Time::ZERO + prepared.plan.scenario.duration;
        Self {
            number,
            governor: admission::governor(scheme, goal, prepared, (seed, clock), log),
            stream_window: stream_window(member.app.concurrency(), mean_rate, job),
            app: member.app,
            active: (Time::ZERO + member.start, end),
            seed,
        }
    }

    /// A flow on its own, which asks from the start and never stops.
    pub(crate) fn alone(governor: Governor, app: App, seed: u64) -> Self {
        let active = (Time::ZERO, Time::MAX);
        Self { number: 0, governor, app, active, stream_window: UNLIMITED, seed }
    }

    /// When the client starts asking, in the time of the run.
    pub(crate) fn start(&self) -> Time {
        self.active.0
    }
}

/// A running flow.
#[derive(Debug)]
pub(crate) struct Flow<C> {
    number: usize,
    clock: Clock,
    client: Client,
    server: Server,
    /// What the client connects with, until it does.
    dial: Option<ClientConfig>,
    /// When it does, by the clock of connections.
    dials_at: Time,
    /// When the flow's part of the run begins, in the time of the run.
    start: Time,
    handle: Option<Handle>,
    wants_factors: bool,
    seen: SharedSeen,
    pub(crate) carrier: C,
    /// Whether the client has begun to connect since its last turn.
    has_dialed: bool,
    sent: u64,
}

impl<C: Carrier> Flow<C> {
    /// A flow whose client connects at `dials_at`, by the clock of connections.
    pub(crate) fn new(
        config: FlowConfig,
        identity: &Identity,
        clock: Clock,
        dials_at: Time,
        carrier: C,
    ) -> Self {
        let FlowConfig { number, governor, app, active, stream_window, seed } = config;
        let seen = SharedSeen::default();
        let observed = ObservedFactory::new(governor.controllers, seen.clone());
        let mut servers = transport(UNLIMITED);
        servers.congestion_controller_factory(Arc::new(observed));
        let mut server = ServerConfig::with_crypto(identity.server.clone());
        server.transport_config(Arc::new(servers));
        let mut dial = ClientConfig::new(identity.client.clone());
        dial.transport_config(Arc::new(transport(stream_window)));
        let concurrency = app.concurrency();
        let mut flow = Self {
            number,
            clock,
            client: Client::new(Side::client(seed), app, clock, active),
            server: Server::new(Side::server(seed, server), concurrency),
            dial: Some(dial),
            dials_at,
            start: active.0,
            handle: governor.handle,
            wants_factors: governor.wants_factors,
            seen,
            carrier,
            has_dialed: false,
            sent: 0,
        };
        flow.set_clock(clock);
        flow
    }

    /// The run begins by this clock.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        (self.clock, self.client.clock) = (clock, clock);
        self.seen.begin(clock.instant(self.opens()));
    }

    /// When its part of the run begins, by the clock of connections.
    pub(crate) fn opens(&self) -> Time {
        self.clock.of_run(self.start)
    }

    /// Whether both ends know that the handshake is over.
    pub(crate) fn is_established(&self) -> bool {
        self.client.side.is_established() && self.server.side.is_established()
    }

    /// The application.
    pub(crate) fn app(&self) -> &App {
        &self.client.app
    }

    /// Bytes of responses that the application has got.
    pub(crate) fn goodput(&self) -> Bytes {
        self.client.goodput()
    }

    /// Packets that the server sent, handshake apart.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// What was seen of the server's controller.
    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// What steers the server.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.handle.as_ref()
    }

    /// noq's figures of the server's path; `None` before the handshake.
    pub(crate) fn path(&mut self) -> Option<PathStats> {
        self.server.side.connection()?.path_stats(PathId::ZERO)
    }

    /// The server's congestion controller; `None` before the handshake.
    pub(crate) fn controller(&mut self) -> Option<&dyn Controller> {
        self.server.side.connection()?.congestion_state(PathId::ZERO)
    }

    /// When something is due, by the clock of connections.
    pub(crate) fn next(&self, now: Time) -> Time {
        if self.has_dialed {
            return now;
        }
        let dial = self.dial.as_ref().map_or(Time::MAX, |_| self.dials_at);
        let arrivals = self.carrier.next(End::Server).min(self.carrier.next(End::Client));
        let timers = self.client.timer(now).min(self.server.side.timer(&self.clock));
        timers.min(arrivals).min(dial).max(now)
    }

    /// Does what is due at both ends.
    ///
    /// # Errors
    /// The connection ended.
    pub(crate) fn turn(&mut self, now: Time) -> Result<(), QuicError> {
        if let Some(config) = self.dial.take_if(|_| now >= self.dials_at) {
            self.client.side.connect(self.clock.instant(now), config);
            self.has_dialed = true;
        }
        let done = self.server_turn(now).and_then(|()| self.client_turn(now));
        done.map_err(|reason| self.lost(now, reason.to_string()))?;
        match now >= self.opens() && !self.client.side.is_established() {
            true => Err(self.has_no_handshake(now)),
            false => Ok(()),
        }
    }

    /// The error of a handshake that takes too long.
    pub(crate) fn has_no_handshake(&self, now: Time) -> QuicError {
        self.lost(now, "the handshake did not end".to_owned())
    }

    fn lost(&self, now: Time, reason: String) -> QuicError {
        QuicError::Lost { flow: self.number, after: self.clock.run(now), reason }
    }

    fn server_turn(&mut self, now: Time) -> Result<(), ConnectionError> {
        let at = self.clock.instant(now);
        let arrives = self.carrier.next(End::Server) <= now;
        if !arrives && self.server.side.timer(&self.clock) > now {
            return Ok(());
        }
        if self.wants_factors
            && let Some(handle) = &self.handle
        {
            // The steering runs within what follows.
            handle.set_factors(Factors::from(&self.client.app.factors(self.clock.run(now))));
        }
        while let Some(datagram) = self.carrier.take(End::Server, now) {
            self.server.side.receive(at, datagram);
        }
        let opens = self.opens();
        let Self { server, carrier, sent, .. } = self;
        server.turn(at, |datagram| {
            *sent += u64::from(now >= opens);
            carrier.send(End::Server, now, datagram);
        })
    }

    fn client_turn(&mut self, now: Time) -> Result<(), ConnectionError> {
        let arrives = self.carrier.next(End::Client) <= now;
        if !arrives && !self.has_dialed && self.client.timer(now) > now {
            return Ok(());
        }
        self.has_dialed = false;
        let at = self.clock.instant(now);
        while let Some(datagram) = self.carrier.take(End::Client, now) {
            self.client.side.receive(at, datagram);
        }
        let Self { client, carrier, .. } = self;
        client.turn(now, |datagram| carrier.send(End::Client, now, datagram))
    }
}
