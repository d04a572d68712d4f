//! The whole loop on QUIC: real sockets, an engine in a process of its own, and Vivace whose knobs it
//! chooses, by the example's lines.

#[path = "../../../engine/tests/common/mod.rs"]
mod engine;
#[path = "../../examples/fleet.rs"]
#[expect(dead_code, unreachable_pub, reason = "a program of its own")]
mod example;
mod relay;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::rustls::RootCertStore;
use noq::rustls::pki_types::CertificateDer;
use noq::{ClientConfig, Endpoint, ServerConfig};
use tokio::task::JoinHandle;
use trimtab_fleet_client::Name;
use trimtab_fleet_client::edge::{Configuration, Edge, Key, Options, ServiceName};
use trimtab_noq::Handle;
use trimtab_noq::units::Rate;

use engine::Site;
use relay::Relay;

/// Not a test by itself: the process of the engine.
#[test]
fn engine_process() {
    engine::run_if_asked();
}

async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not come");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A server of the service `tv`, and how clients trust it.
struct Server {
    endpoint: Endpoint,
    address: SocketAddr,
    config: ServerConfig,
    certificate: CertificateDer<'static>,
    edge: Arc<Edge>,
}

/// A client behind a link, which downloads until this is dropped.
struct Viewer {
    handle: Handle,
    tasks: [JoinHandle<()>; 2],
    _relay: Relay,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Server {
    fn start(edge: Edge) -> Self {
        let (certificate, config) = example::certified().unwrap();
        let endpoint = Endpoint::server(config.clone(), (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = endpoint.local_addr().unwrap();
        Self { endpoint, address, config, certificate, edge: Arc::new(edge) }
    }

    /// Serves a client that it sees at this address, at this rate.
    async fn serve(&self, from: [u8; 4], mbps: f64) -> Viewer {
        let relay = Relay::start(self.address, from, Rate::from_mbps(mbps)).await.unwrap();
        let downloads = tokio::spawn(download(self.certificate.clone(), relay.address));
        let incoming = self.endpoint.accept().await.unwrap();
        let (config, service) = (self.config.clone(), "tv".parse::<ServiceName>().unwrap());
        let (connection, follower) =
            example::accept(incoming, config, &self.edge, &service).await.unwrap();
        let (handle, edge) = (follower.handle.clone(), Arc::clone(&self.edge));
        let serves = tokio::spawn(async move {
            example::serve(connection, follower, edge).await.unwrap();
        });
        Viewer { handle, tasks: [downloads, serves], _relay: relay }
    }

    fn in_force(&self, key: &Key) -> Option<Configuration> {
        Some(self.edge.known(key)?.configuration.clone())
    }
}

/// Reads a response without an end.
async fn download(certificate: CertificateDer<'static>, from: SocketAddr) {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    client.set_default_client_config(config);
    let connection = client.connect(from, "localhost").unwrap().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&u64::MAX.to_be_bytes()).await.unwrap();
    let mut piece = vec![0; 1 << 16];
    while receive.read(&mut piece).await.is_ok_and(|read| read.is_some()) {}
}

/// What runs is what a configuration says, to the last knob.
fn runs(handle: &Handle, configuration: &Configuration) -> bool {
    let Some(metrics) = handle.metrics() else { return false };
    let spec = configuration.spec().unwrap();
    metrics.scheme == configuration.to_string()
        && metrics.algorithm == spec.algorithm().name
        && spec.settings().iter().all(|(knob, value)| metrics.knobs.get(knob) == Some(*value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_engine_learns_comes_back_to_connections_on_noq() {
    let site = Site::at(0, "900ms", "");
    let service = site.folder.path().join("services/tv.toml");
    // Longer than the grace, for what came in time to be of the configuration in force.
    let text = std::fs::read_to_string(&service).unwrap().replace("\"1s\"", "\"2s\"");
    std::fs::write(&service, format!("connections_min = 1\n{text}")).unwrap();
    let engine = site.start();
    let (url, token) = (engine.url.clone(), site.edge.clone());
    let folder = site.folder.path().join("edge");
    let edge = Edge::start(&Options { engine: url, token: token.into(), authority: None, folder })
        .unwrap();
    let server = Server::start(edge);

    // Two subnets, each with its link.
    let links = [([127, 0, 1, 1], 12.0), ([127, 0, 2, 1], 3.0)];
    let keys = ["tv/127.0.1.0/24", "tv/127.0.2.0/24"].map(|key| key.parse::<Key>().unwrap());
    let mut viewers = Vec::new();
    for (from, mbps) in links {
        viewers.push(server.serve(from, mbps).await);
    }
    // The connections that live get the first configuration, the safe one.
    let mut first = Vec::new();
    for key in &keys {
        first.push(wait_for("the first configuration", || server.in_force(key)).await);
    }
    let safe =
        |(knob, value): &(String, f64)| knob == "startup_rate_max" && (value - 20.0).abs() < 1e-6;
    assert!(first[0].version > 0 || first[0].knobs.iter().any(safe), "{}", first[0]);
    // Then later ones: both points of a pair, and what came of them.
    let mut versions = Vec::new();
    for (i, viewer) in viewers.iter().enumerate() {
        let later = wait_for("what it learnt", || {
            let now = server.in_force(&keys[i]).filter(|now| now.version >= 3)?;
            (now.knobs != first[i].knobs && runs(&viewer.handle, &now)).then_some(now)
        })
        .await;
        let metrics = viewer.handle.metrics().unwrap();
        assert_eq!((metrics.switches, metrics.refused), (0, 0), "it goes on where it is");
        versions.push(later.version);
    }

    // A connection that begins now begins with what is known of its subnet.
    let before = server.in_force(&keys[0]).unwrap();
    let another = server.serve([127, 0, 1, 2], 12.0).await;
    let begun = another.handle.scheme();
    let after = server.in_force(&keys[0]).unwrap();
    assert!(before.version >= versions[0]);
    assert!([&before, &after].iter().any(|known| known.to_string() == begun), "{begun}");

    // The engine knows what the connections got, subnet by subnet.
    let client = engine.client(&site.viewer);
    let mut best = Vec::new();
    for (key, (_, mbps)) in keys.iter().zip(links) {
        let name = Name { service: "tv".to_owned(), prefix: key.prefix.to_string() };
        let rewards = wait_for("two rewards", || {
            let decisions = client.decisions(&name, 20).unwrap().decisions;
            let rewards: Vec<f64> = decisions.iter().filter_map(|one| one.reward).collect();
            (rewards.len() >= 2).then_some(rewards)
        })
        .await;
        println!("{key}: {rewards:.2?} Mbit/s of {mbps}");
        // What waited in a stall is acknowledged after it.
        let possible = 0.05 * mbps..1.5 * mbps;
        assert!(rewards.iter().all(|reward| possible.contains(reward)), "{rewards:?}");
        best.push(rewards.iter().copied().fold(0.0, f64::max));
    }
    assert!(best[0] > 1.5 * links[1].1, "{best:?}");
    let status = server.edge.status();
    assert_eq!((status.aggregates, status.dropped, status.trouble), (2, 0, None));
    assert!(status.kept >= 4, "{}", status.kept);
}
