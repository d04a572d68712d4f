//! A server and a client of a QUIC stack over a simulated link, in virtual time: no socket, no clock,
//! and the same bytes for the same seed. And the same algorithm in the simulator, for comparison.
//!
//! The tests of each adapter include this file. `super::stack` has the types of its stack, under the
//! names that noq and quinn share, and functions for the calls in which they differ.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use trimtab_apps::{App, BulkConfig};
pub(crate) use trimtab_net::MarkConfig;
use trimtab_net::{Capacity, Event, Link, LinkConfig, LinkStats, LossConfig, Packet, QueueConfig};
use trimtab_qoe::{Factors, Model};
use trimtab_sim::{Control, FlowConfig, Transport, WorldConfig};
use trimtab_steer::Unusable;
use trimtab_steer::scheme::{Goal, Scheme};

use super::stack::units::{Bytes, Duration, Rate, Time};
use super::stack::{
    self, ClientConfig, Config, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Handle, Incoming, Memory, Metrics, ServerConfig, StreamId,
    TransportConfig,
};

/// Headers of IPv4 and UDP.
const HEADERS: Bytes = Bytes::new(28);

/// The link of the tests.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    pub(crate) loss: f64,
    pub(crate) mark: MarkConfig,
    /// In bandwidth-delay products.
    pub(crate) buffer: f64,
    /// What the application writes ahead of what path and buffer hold, in bandwidth-delay products.
    pub(crate) ahead: f64,
    pub(crate) seed: u64,
}

impl Default for Setting {
    /// 8 Mbit/s, 40 ms, a buffer of one bandwidth-delay product. The application stops soon after it
    /// has no more data.
    fn default() -> Self {
        let (rate, rtt) = (Rate::from_mbps(8.0), Duration::from_millis(40));
        Self { rate, rtt, loss: 0.0, mark: MarkConfig::None, buffer: 1.0, ahead: 1.0, seed: 1 }
    }
}

impl Setting {
    /// The link, behind its buffer.
    pub(crate) fn bottleneck(&self) -> LinkConfig {
        LinkConfig::new(Capacity::Constant(self.rate))
            .queue(QueueConfig::drop_tail_bytes((self.rate * self.rtt).mul_f64(self.buffer)))
            .loss(LossConfig::Independent(self.loss))
            .mark(self.mark)
    }
}

#[derive(Debug)]
struct Datagram {
    data: BytesMut,
    ecn: Option<EcnCodepoint>,
}

#[derive(Debug)]
struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    incoming: Option<Incoming>,
    out: Link<Datagram>,
    peer: SocketAddr,
}

/// What left the server at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Batch {
    pub(crate) at: Time,
    pub(crate) bytes: Bytes,
}

/// Both ends, and what was seen.
#[derive(Debug)]
pub(crate) struct World {
    epoch: Instant,
    pub(crate) now: Time,
    server: Side,
    client: Side,
    accept_with: Arc<ServerConfig>,
    pub(crate) handle: Handle,
    stream: Option<StreamId>,
    /// Whether the server's application has data.
    pub(crate) has_data: bool,
    pub(crate) batches: Vec<Batch>,
    pub(crate) received: Bytes,
    /// When the client's application got data last.
    pub(crate) read_at: Time,
    /// The longest that it has waited for data.
    pub(crate) longest_wait: Duration,
}

impl World {
    /// A server whose connection runs a scheme.
    pub(crate) fn new(scheme: &str, setting: &Setting) -> Self {
        Self::with(&Config::new(scheme).unwrap().with_seed(setting.seed), setting)
    }

    pub(crate) fn with(config: &Config, setting: &Setting) -> Self {
        // Signatures of other kinds have random lengths.
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        // One from the key has a byte less now and then.
        params.serial_number = Some(rcgen::SerialNumber::from(1_u64));
        let cert: CertificateDer<'static> = params.self_signed(&key).unwrap().into();
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());

        let epoch = Instant::now();
        let config = config.clone().with_clock(epoch);
        let (factory, handle) = config.connection_to(Ipv4Addr::LOCALHOST.into());
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(factory);
        let held = (setting.rate * setting.rtt).mul_f64(1.0 + setting.buffer + setting.ahead);
        transport.send_window(held.get());
        let mut server =
            ServerConfig::with_single_cert(vec![cert.clone()], private.into()).unwrap();
        let plain = Arc::new(server.clone());
        server.transport_config(Arc::new(transport));

        let mut roots = rustls::RootCertStore::empty();
        roots.add(cert).unwrap();
        let client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();

        let seeded = |salt: u8| {
            let mut config = EndpointConfig::default();
            let mut seed = [salt; 32];
            seed[..8].copy_from_slice(&setting.seed.to_le_bytes());
            config.rng_seed(Some(seed));
            config
        };
        let link = setting.bottleneck().delay(setting.rtt / 2).overhead(HEADERS);
        let back = LinkConfig::new(Capacity::Constant(Rate::from_mbps(1000.0)))
            .delay(setting.rtt / 2)
            .overhead(HEADERS);
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let side = |endpoint, out: &LinkConfig, peer| Side {
            endpoint,
            connection: None,
            incoming: None,
            out: Link::new(out, setting.seed),
            peer,
        };
        let mut dialling = stack::endpoint(seeded(2), None);
        let connection = dialling.connect(epoch, client, address(1), "localhost").unwrap();
        let mut client = side(dialling, &back, address(1));
        client.connection = Some(connection);
        Self {
            epoch,
            now: Time::ZERO,
            server: side(stack::endpoint(seeded(1), Some(plain)), &link, address(2)),
            client,
            accept_with: Arc::new(server),
            handle,
            stream: None,
            has_data: true,
            batches: Vec::new(),
            received: Bytes::ZERO,
            read_at: Time::ZERO,
            longest_wait: Duration::ZERO,
        }
    }

    /// What the server has sent into the link, and what the link dropped.
    pub(crate) fn link(&self) -> &LinkStats {
        self.server.out.stats()
    }

    /// The server gets the client's datagrams from another address from now on.
    pub(crate) fn move_client(&mut self, to: SocketAddr) {
        self.server.peer = to;
    }

    fn at(epoch: Instant, time: Time) -> Instant {
        epoch + std::time::Duration::from_nanos(time.as_nanos())
    }

    /// Lets time pass until then.
    pub(crate) fn run_until(&mut self, end: Time) {
        while let Some(next) = self.step() {
            if next > end {
                break;
            }
            self.now = self.now.max(next);
        }
        self.now = end;
    }

    /// The rate at which the client's application gets data, until then.
    pub(crate) fn goodput_until(&mut self, end: Time) -> Rate {
        let (from, before) = (self.now, self.received);
        self.run_until(end);
        (self.received - before) / end.since(from)
    }

    /// Does all that is due now. When something is due next.
    fn step(&mut self) -> Option<Time> {
        let now = Self::at(self.epoch, self.now);
        while let Some(Event::Delivered(arrived)) = self.server.out.poll(self.now) {
            let Datagram { data, ecn } = arrived.packet.payload;
            let ecn = if arrived.marked { Some(EcnCodepoint::Ce) } else { ecn };
            self.client.receive(now, data, ecn);
        }
        while let Some(Event::Delivered(arrived)) = self.client.out.poll(self.now) {
            let Datagram { data, ecn } = arrived.packet.payload;
            self.server.receive(now, data, ecn);
        }
        if let Some(incoming) = self.server.incoming.take() {
            let with = Some(self.accept_with.clone());
            let accepted = self.server.endpoint.accept(incoming, now, &mut Vec::new(), with);
            self.server.connection = accepted.ok();
        }
        for side in [&mut self.server, &mut self.client] {
            side.work(now);
        }
        self.write();
        self.read();
        let sent = self.server.transmit(now, self.now);
        self.batches.extend(sent.into_iter().map(|bytes| Batch { at: self.now, bytes }));
        self.client.transmit(now, self.now);
        let sides = [&mut self.server, &mut self.client];
        sides.into_iter().filter_map(|side| side.next(self.epoch)).min()
    }

    /// The server's application keeps the stream full.
    fn write(&mut self) {
        let Some((_, connection)) = &mut self.server.connection else { return };
        if !self.has_data || connection.is_handshaking() {
            return;
        }
        if self.stream.is_none() {
            self.stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = self.stream else { return };
        while connection.send_stream(id).write(&[7; 16_384]).is_ok_and(|written| written > 0) {}
    }

    /// The client's application reads all that is there.
    fn read(&mut self) {
        let Some((_, connection)) = &mut self.client.connection else { return };
        let Some(id) = self.stream else { return };
        let _ = connection.streams().accept(Dir::Uni);
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.received += Bytes::new(chunk.bytes.len() as u64);
            self.longest_wait = self.longest_wait.max(self.now.since(self.read_at));
            self.read_at = self.now;
        }
        let _ = chunks.finalize();
    }
}

impl Side {
    fn receive(&mut self, now: Instant, data: BytesMut, ecn: Option<EcnCodepoint>) {
        match stack::handle(&mut self.endpoint, now, self.peer, ecn, data) {
            Some(DatagramEvent::NewConnection(incoming)) => self.incoming = Some(incoming),
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Timers, and what connection and endpoint have for each other.
    fn work(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while connection.poll().is_some() {}
    }

    /// Sends all that may leave; the bytes of each batch.
    fn transmit(&mut self, now: Instant, at: Time) -> Vec<Bytes> {
        let Some((_, connection)) = &mut self.connection else { return Vec::new() };
        let (mut sent, mut buffer) = (Vec::new(), Vec::new());
        while let Some(batch) = stack::transmit(connection, now, &mut buffer) {
            for data in buffer[..batch.size].chunks(batch.segment_size.unwrap_or(batch.size)) {
                let payload = Datagram { data: BytesMut::from(data), ecn: batch.ecn };
                let packet = Packet { size: Bytes::new(data.len() as u64), payload };
                let _ = match batch.ecn {
                    Some(_) => self.out.send_capable(at, packet),
                    None => self.out.send(at, packet),
                };
            }
            sent.push(Bytes::new(batch.size as u64));
            buffer.clear();
        }
        sent
    }

    fn next(&mut self, epoch: Instant) -> Option<Time> {
        let timer = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        let timer = timer.map(|at| {
            let nanos = at.saturating_duration_since(epoch).as_nanos();
            Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        });
        [timer, self.out.next_event()].into_iter().flatten().min()
    }
}

/// Goodput from the second second on, for ten seconds.
pub(crate) fn goodput(scheme: &str, setting: &Setting) -> Rate {
    let mut world = World::new(scheme, setting);
    world.run_until(Time::from_secs(2));
    let goodput = world.goodput_until(Time::from_secs(12));
    let metrics = world.handle.metrics().unwrap();
    println!(
        "{scheme}: {:.2} Mbit/s, srtt {:?}, window {:?}, lost {:?} of {:?}, refused {}",
        goodput.mbps(),
        metrics.srtt,
        metrics.window,
        metrics.lost,
        metrics.sent,
        metrics.refused
    );
    assert_eq!(metrics.refused, 0, "{scheme}");
    goodput
}

/// A queue that marks from 10 ms on, where an unanswered one grows to 80 ms: ten seconds' goodput, and
/// the path before and after them.
pub(crate) fn over_marks(scheme: &str) -> (Rate, [Metrics; 2]) {
    let threshold = Rate::from_mbps(8.0) * Duration::from_millis(10);
    let setting = Setting { buffer: 2.0, mark: MarkConfig::Above(threshold), ..Setting::default() };
    let mut world = World::new(scheme, &setting);
    world.run_until(Time::from_secs(3));
    let before = world.handle.metrics().unwrap();
    let goodput = world.goodput_until(Time::from_secs(13));
    let after = world.handle.metrics().unwrap();
    println!(
        "{scheme}: {:.2} Mbit/s, srtt {:?}, {} acknowledgements with marks, lost {:?}",
        goodput.mbps(),
        after.srtt,
        after.marked - before.marked,
        after.lost - before.lost
    );
    (goodput, [before, after])
}

/// Everything that left the server, and when.
pub(crate) fn trace(scheme: &str, seed: u64) -> u64 {
    let setting = Setting { seed, loss: 0.005, ..Setting::default() };
    let mut world = World::new(scheme, &setting);
    world.run_until(Time::from_secs(3));
    world.handle.set_scheme("bbr3").unwrap();
    world.run_until(Time::from_secs(6));
    let mut hasher = DefaultHasher::new();
    world.batches.hash(&mut hasher);
    hasher.finish()
}

/// How long 1 MB takes from the start of a connection that runs CUBIC.
pub(crate) fn first_megabyte(memory: &Memory, setting: &Setting) -> (Duration, World) {
    let config = Config::new("cubic").unwrap().with_memory(memory);
    let mut world = World::with(&config, setting);
    while world.received < Bytes::new(1_000_000) {
        world.run_until(world.now + Duration::from_millis(5));
        assert!(world.now < Time::from_secs(60), "{:?}", world.handle.metrics());
    }
    (world.now.since(Time::ZERO), world)
}

/// A price of delay, for comparisons of schemes that follow a preference.
pub(crate) const MODEL: &str = "T - 50*D";

/// The goodput of a scheme from one time to another, in the simulator.
pub(crate) fn simulated(scheme: &str, setting: &Setting, from: Time, until: Time) -> Rate {
    let scheme: Scheme = scheme.parse().unwrap();
    let model = Model::parse(MODEL, &[]).unwrap();
    let goal = Goal {
        model: &model,
        factors: Factors::new(),
        learnt: &|_| Err(Unusable::Missing),
        runs: &|_| true,
    };
    let (spec, steerer) = scheme.kind().steering(&goal);
    let control = Control::Algorithm { spec, steerer };
    let app = App::bulk(&BulkConfig::default());
    let flow = FlowConfig::new(control, Transport::quic(), app, setting.rtt);
    let links = vec![(setting.bottleneck(), setting.seed)];
    let mut world = trimtab_sim::World::new(&WorldConfig { links, flows: vec![flow] });
    world.run_until(from);
    let before = world.flows()[0].received().goodput;
    world.run_until(until);
    (world.flows()[0].received().goodput - before) / until.since(from)
}
