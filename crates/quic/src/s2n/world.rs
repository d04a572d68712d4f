//! A connection of s2n-quic over a link of the simulator: how it is set up, and goes on.

use std::sync::Arc;
use std::time::Duration as Std;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, Endpoint};
use s2n_quic::provider::event::Subscriber;
use s2n_quic::provider::event::disabled::Subscriber as Silent;
use s2n_quic::provider::io::testing::time::delay_until;
use s2n_quic::provider::io::testing::{self, Executor, Handle as Io, primary, spawn};
use s2n_quic::provider::limits::Limits;
use s2n_quic::{Client, Server, provider};
use s2n_quic_core::time::{Clock as _, NoopClock};
use trimtab_apps::App;
use trimtab_lab::run::datapath::RunError;
use trimtab_net::LinkConfig;
use trimtab_s2n_quic::{Config, Handle};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::ends::{self, Shared, Times};
use super::network::{Carrying, SharedWire, now};
use super::watched::{Seen, SharedSeen, WatchedEndpoint};
use crate::clock::Clock;
use crate::identity::NAME;
use crate::virtual_world::Propagation;
use crate::world::Crossed;

/// Headers included: the packets of the simulator.
const MTU: u16 = 1500;
/// The most that s2n-quic takes: only the congestion window limits a sender.
const WINDOW: u64 = u32::MAX as u64;
/// So much of responses waits to be sent, at most.
const AHEAD: u32 = 4_000_000;

/// What the client waits before it acknowledges packets in order. s2n-quic goes by time alone, where RFC
/// 9000 §13.2.2 has every other packet acknowledged, as noq and the simulator do. Without a delay a
/// round-trip time has no more in it than theirs.
pub(super) const ACK_DELAY: Std = Std::ZERO;

/// What governs the server.
pub(super) enum Governor {
    /// s2n-quic's own.
    Cubic(Cubic),
    Bbr(Bbr),
    /// A scheme of Trimtab.
    Ours(Arc<Config>),
}

/// A server and a client of s2n-quic, and the path between them.
pub(super) struct S2nWorld {
    executor: Executor<Carrying>,
    wire: SharedWire,
    seen: SharedSeen,
    ends: Shared,
    times: Times,
    /// In the time of the run.
    now: Time,
}

/// Text as TLS libraries read it (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let body = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// A certificate and its key, as text. s2n-tls takes no Ed25519.
fn identity() -> Result<(String, String), RunError> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(vec![NAME.to_owned()])?.self_signed(&key)?;
    Ok((pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der())))
}

fn limits(ack_delay: Std) -> Result<Limits, RunError> {
    Ok(Limits::new()
        .with_max_ack_delay(ack_delay)?
        .with_data_window(WINDOW)?
        .with_bidirectional_local_data_window(WINDOW)?
        .with_bidirectional_remote_data_window(WINDOW)?
        .with_max_send_buffer_size(AHEAD)?)
}

fn io(handle: &Io) -> Result<testing::Io, RunError> {
    // No search for the packet size.
    Ok(handle.builder().with_max_mtu(MTU).with_initial_mtu(MTU).with_base_mtu(MTU).build()?)
}

/// How long before the run its handshake begins. s2n-tls may ask for another key share, which takes
/// a round trip more than noq's (RFC 8446 §4.1.4), and the client acknowledges late.
pub(super) fn lead(longest_rtt: Duration) -> Duration {
    longest_rtt * 4 + Duration::from_millis(100)
}

impl S2nWorld {
    /// A path before its first handshake. A client asks from the start of the run on, and
    /// acknowledges after so long.
    pub(super) fn new(
        clock: Clock,
        link: (&LinkConfig, u64),
        propagation: &Propagation,
        governor: Governor,
        (app, ack_delay): (App, Std),
        wants_factors: bool,
    ) -> Result<Self, RunError> {
        let (seen, ends) = (SharedSeen::default(), Shared::new(app));
        // The least that there is: what the executor's clock says at the beginning.
        let zero = NoopClock.get_time();
        let times = Times { clock, zero };
        seen.lock().from = Some(times.of_run(Time::ZERO));
        let wire = SharedWire::new(clock, zero, link, propagation);
        let network = Carrying { wire: wire.clone(), wakes: Time::MAX };
        let mut executor = Executor::new(network, link.1);
        let handle = executor.handle().clone();
        let watched = seen.clone();
        let both = ends.clone();
        executor.enter(move || {
            let (certificate, key) = identity()?;
            let tls = (&*certificate, &*key);
            let seen = watched;
            let server = match governor {
                Governor::Cubic(inner) => {
                    server(&handle, tls, WatchedEndpoint { inner, seen }, Silent)?
                }
                Governor::Bbr(inner) => {
                    server(&handle, tls, WatchedEndpoint { inner, seen }, Silent)?
                }
                Governor::Ours(config) => {
                    let config = Config::clone(&config);
                    let (inner, events) = trimtab_s2n_quic::endpoint(config);
                    let inner = inner.with_clock(move || clock.instant(now(zero)));
                    server(&handle, tls, WatchedEndpoint { inner, seen }, events)?
                }
            };
            let address = server.local_addr()?;
            let tls = provider::tls::default::Client::builder();
            let client = Client::builder()
                .with_io(io(&handle)?)?
                .with_tls(tls.with_certificate(certificate)?.build()?)?
                .with_limits(limits(ack_delay)?)?
                .start()?;
            let serving = ends::serve(server, both.clone(), times, wants_factors);
            spawn(both.clone().keep(serving));
            let requesting = ends::request(client, address, both.clone(), times);
            spawn(both.keep(requesting));
            Ok::<_, RunError>(())
        })?;
        Ok(Self { executor, wire, seen, ends, times, now: Time::ZERO })
    }

    /// The time of the run.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Goes on up to and including `until`, in the time of the run.
    pub(super) fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        let at = self.times.of_run(until);
        self.executor.enter(|| primary::spawn(delay_until(at)));
        self.executor.run();
        self.now = until;
        self.wire.lock().link.advance(until);
        let state = self.ends.lock();
        let after = until.as_secs_f64();
        match &state.failure {
            Some(reason) => {
                Err(format!("s2n-quic ended the connection before {after:.2} s: {reason}").into())
            }
            None if !state.is_established => Err("s2n-quic's handshake did not end".into()),
            None => Ok(()),
        }
    }

    /// What was seen of the server's controller.
    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// Datagrams that the server sent, handshake apart, and what the link did with them.
    pub(super) fn crossed(&self) -> (u64, Crossed) {
        let wire = self.wire.lock();
        (wire.sent, wire.crossed.clone())
    }

    /// Bytes that have left the link, and that wait in it.
    pub(super) fn carried(&self) -> (Bytes, Bytes) {
        let wire = self.wire.lock();
        (wire.link.stats().departures.bytes, wire.link.queue_bytes())
    }

    /// Bytes of responses that the application has got.
    pub(super) fn goodput(&self) -> Bytes {
        self.ends.lock().goodput
    }

    /// What steers the server.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.ends.lock().handle.clone()
    }

    /// The rate of an algorithm of Trimtab that has one.
    pub(super) fn pacing(&self) -> Option<Rate> {
        self.handle()?.metrics()?.pacing_rate
    }

    /// What the application has gone through.
    pub(super) fn with_app<T>(&self, look: impl FnOnce(&App) -> T) -> T {
        look(&self.ends.lock().app)
    }
}

fn server<E: Endpoint>(
    handle: &Io,
    tls: (&str, &str),
    controllers: E,
    events: impl Subscriber,
) -> Result<Server, RunError> {
    Ok(Server::builder()
        .with_io(io(handle)?)?
        .with_tls(tls)?
        .with_limits(limits(ACK_DELAY)?)?
        .with_congestion_controller(controllers)?
        .with_event(events)?
        .start()?)
}
