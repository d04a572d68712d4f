//! One flow: its client, its server, and the datagrams on their way between them and the link.

use std::collections::VecDeque;
use std::sync::Arc;

use noq_proto::{ClientConfig, ConnectionError, PathId, PathStats, ServerConfig};
use trimtab_apps::{App, Application};
use trimtab_net::{DelayConfig, DelayLine, JitterConfig};
use trimtab_noq::{Factors, Handle};
use trimtab_sim::Histogram;
use trimtab_units::{Bytes, Time};

use crate::admission::Governor;
use crate::client::Client;
use crate::clock::Clock;
use crate::error::QuicError;
use crate::identity::Identity;
use crate::observer::{ObservedFactory, Seen, SharedSeen};
use crate::server::Server;
use crate::side::{Datagram, Side, transport};

/// A flow of a world.
pub(crate) struct FlowConfig {
    /// What decides how the server sends.
    pub(crate) governor: Governor,
    /// The application of its client.
    pub(crate) app: App,
    /// When the client starts asking, and when it stops, in the time of the run.
    pub(crate) active: (Time, Time),
    /// Propagation delay from the server to the link.
    pub(crate) forward_delay: DelayConfig,
    /// Propagation delay from the client to the server.
    pub(crate) reverse_delay: DelayConfig,
    /// Variation of the forward delay.
    pub(crate) jitter: JitterConfig,
    /// Seed of all that is drawn.
    pub(crate) seed: u64,
}

/// A running flow.
#[derive(Debug)]
pub(crate) struct Flow {
    number: usize,
    clock: Clock,
    client: Client,
    server: Server,
    /// What the client connects with, until it does.
    dial: Option<ClientConfig>,
    /// When it does, and when the flow's part of the run begins, by the clock of connections.
    begins: Time,
    opens: Time,
    handle: Option<Handle>,
    wants_factors: bool,
    seen: SharedSeen,
    forward: DelayLine,
    reverse: DelayLine,
    /// Datagrams between the server and the link.
    outbound: VecDeque<(Time, Datagram)>,
    /// Datagrams between the client and the server.
    inbound: VecDeque<(Time, Datagram)>,
    /// Whether something has reached the client since its last turn.
    has_arrivals: bool,
    sent: u64,
    pub(crate) dropped: u64,
    pub(crate) queue_delay: Histogram,
}

impl Flow {
    pub(crate) fn new(
        number: usize,
        config: FlowConfig,
        identity: &Identity,
        clock: Clock,
    ) -> Self {
        let FlowConfig { governor, active, seed, .. } = config;
        let opens = clock.of_run(active.0);
        let seen = SharedSeen::default();
        let observed =
            ObservedFactory::new(governor.controllers, seen.clone(), clock.instant(opens));
        let mut servers = transport();
        servers.congestion_controller_factory(Arc::new(observed));
        let mut server = ServerConfig::with_crypto(identity.server.clone());
        server.transport_config(Arc::new(servers));
        let mut dial = ClientConfig::new(identity.client.clone());
        dial.transport_config(Arc::new(transport()));
        let concurrency = config.app.concurrency();
        let of_run = |delay: DelayConfig| delay.begin(clock.of_run(Time::ZERO));
        Self {
            number,
            clock,
            client: Client::new(
                Side::client(seed),
                config.app,
                clock,
                (opens, clock.of_run(active.1)),
            ),
            server: Server::new(Side::server(seed, server), concurrency),
            dial: Some(dial),
            // As far ahead of its part of the run as the clock is of the run.
            begins: Time::ZERO + active.0.since(Time::ZERO),
            opens,
            handle: governor.handle,
            wants_factors: governor.wants_factors,
            seen,
            forward: DelayLine::new(of_run(config.forward_delay), config.jitter, None, seed),
            reverse: DelayLine::plain(of_run(config.reverse_delay)),
            outbound: VecDeque::new(),
            inbound: VecDeque::new(),
            has_arrivals: false,
            sent: 0,
            dropped: 0,
            queue_delay: Histogram::default(),
        }
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

    /// When something is due, by the clock of connections.
    pub(crate) fn next(&self, now: Time) -> Time {
        let dial = self.dial.as_ref().map_or(Time::MAX, |_| self.begins);
        let lines = [self.outbound.front(), self.inbound.front()];
        let lines = lines.into_iter().flatten().map(|&(at, _)| at).min().unwrap_or(Time::MAX);
        let timers = self.client.timer(now).min(self.server.side.timer(&self.clock));
        if self.has_arrivals { now } else { timers.min(lines).min(dial).max(now) }
    }

    /// Does what is due at both ends.
    ///
    /// # Errors
    /// The connection ended.
    pub(crate) fn turn(&mut self, now: Time) -> Result<(), QuicError> {
        if let Some(config) = self.dial.take_if(|_| now >= self.begins) {
            self.client.side.connect(self.clock.instant(now), config);
            self.has_arrivals = true;
        }
        let done = self.server_turn(now).and_then(|()| self.client_turn(now));
        done.map_err(|reason| self.lost(now, reason.to_string()))?;
        match now >= self.opens && !self.client.side.is_established() {
            true => Err(self.lost(now, "the handshake did not end".to_owned())),
            false => Ok(()),
        }
    }

    fn lost(&self, now: Time, reason: String) -> QuicError {
        QuicError::Lost { flow: self.number, after: self.clock.run(now), reason }
    }

    fn server_turn(&mut self, now: Time) -> Result<(), ConnectionError> {
        let at = self.clock.instant(now);
        let arrives = self.inbound.front().is_some_and(|&(at, _)| at <= now);
        if !arrives && self.server.side.timer(&self.clock) > now {
            return Ok(());
        }
        if self.wants_factors
            && let Some(handle) = &self.handle
        {
            // The steering runs within what follows.
            handle.set_factors(Factors::from(&self.client.app.factors(self.clock.run(now))));
        }
        while let Some(datagram) = take_due(&mut self.inbound, now) {
            self.server.side.receive(at, datagram);
        }
        let Self { server, forward, outbound, sent, opens, .. } = self;
        server.turn(at, |datagram| {
            *sent += u64::from(now >= *opens);
            outbound.push_back((forward.release(now), datagram));
        })
    }

    fn client_turn(&mut self, now: Time) -> Result<(), ConnectionError> {
        if !self.has_arrivals && self.client.timer(now) > now {
            return Ok(());
        }
        self.has_arrivals = false;
        let Self { client, inbound, reverse, .. } = self;
        client.turn(now, |datagram| inbound.push_back((reverse.release(now), datagram)))
    }

    /// Takes the next datagram that reaches the link now. Those of the handshake pass it by: they
    /// find no queue, whatever other flows do.
    pub(crate) fn take_outbound(&mut self, now: Time) -> Option<Datagram> {
        while let Some(datagram) = take_due(&mut self.outbound, now) {
            if now >= self.opens {
                return Some(datagram);
            }
            self.deliver(now, datagram);
        }
        None
    }

    /// A datagram reached the client.
    pub(crate) fn deliver(&mut self, now: Time, datagram: Datagram) {
        self.client.side.receive(self.clock.instant(now), datagram);
        self.has_arrivals = true;
    }
}

/// The next datagram of a line, if it has reached the end.
fn take_due(line: &mut VecDeque<(Time, Datagram)>, now: Time) -> Option<Datagram> {
    line.front().filter(|&&(at, _)| at <= now)?;
    line.pop_front().map(|(_, datagram)| datagram)
}
