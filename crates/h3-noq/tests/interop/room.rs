//! The file server at one end of an emulated link, and room for a client at the other.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;
use trimtab_emu::{Config, EmuError, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_noq::units::{Bytes, Duration, Rate};

use crate::browser::Browser;
use crate::common::report::Report;
use crate::common::server::{Options, Server};
use crate::file_server::site::Site;

/// Of the way to the client, in Mbit/s.
const LINK_MBPS: f64 = 12.0;
/// One way, in ms.
const DELAY_MS: u64 = 15;
/// Packets that the way to the client loses, as a share.
const LOSS: f64 = 0.005;
/// Mortise's first `delta` (`DELTA_START` in `crates/steer/src/tune/mod.rs`).
const FIRST_DELTA: f64 = 0.035;
/// A busy machine needs some.
const PATIENCE: StdDuration = StdDuration::from_secs(60);

/// Whether CI runs the tests, where nothing may be missing.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| !ci.is_empty())
}

/// Says that a test skips, and why; in CI that is a failure.
pub(crate) fn skip(why: &str) {
    assert!(!in_ci(), "{why}, and CI is set: run `./dev test`, which installs it, as root");
    println!("skipped: {why}");
}

/// A server behind a link.
pub(crate) struct Room {
    pub(crate) topology: Topology,
    pub(crate) port: u16,
    /// Of the server's key, for browsers.
    key_hash: String,
    reports: Arc<Mutex<Vec<Report>>>,
    folder: tempfile::TempDir,
    _runtime: Runtime,
}

impl Room {
    /// Serves these files under `mortise` by a QoE model; `None` where this machine makes no links.
    pub(crate) fn open(model: &str, files: &[(String, Vec<u8>)]) -> Option<Self> {
        let mut topology = match Topology::new(ServerSide::Private) {
            Err(e @ (EmuError::NotPermitted(_) | EmuError::NoTun(_))) => {
                skip(&e.to_string());
                return None;
            }
            made => made.expect("a topology"),
        };
        let folder = tempfile::tempdir().expect("a folder");
        let www = folder.path().join("www");
        std::fs::create_dir(&www).expect("a folder");
        for (name, contents) in files {
            std::fs::write(www.join(name), contents).expect("a file");
        }
        let runtime = Runtime::new().expect("a runtime");
        let options = Options {
            listen: ([0, 0, 0, 0], 0).into(),
            cert: None,
            key: None,
            name: vec![topology.server_address().to_string()],
            cc: "mortise".to_owned(),
            model: model.to_owned(),
            idle: 10,
            qlog: None,
            report: true,
        };
        let within = runtime.handle().clone();
        // A socket stays where it was opened.
        let opened = topology.server().run(move || {
            let _within = within.enter();
            Server::new(&options)
        });
        let server = opened.expect("a server");
        let port = server.address().expect("an address").port();
        let key_hash = server.key_hash().expect("a hash");
        let reports = Arc::<Mutex<Vec<Report>>>::default();
        let kept = reports.clone();
        runtime.spawn(server.run(Site::open(&www).expect("the folder"), move |report| {
            println!("{report}");
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        }));

        let delay = Duration::from_millis(DELAY_MS);
        let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(LINK_MBPS)))
            .queue(QueueConfig::drop_tail_bytes(Bytes::new(100_000)))
            .loss(LossConfig::Independent(LOSS))
            .delay(delay);
        let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(delay);
        topology.start(&Config { down, up, seed: 1, log: None }).expect("a link");
        Some(Self { topology, port, key_hash, reports, folder, _runtime: runtime })
    }

    /// A folder for what clients write.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The URL of a file.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("https://{}:{}/{name}", self.topology.server_address(), self.port)
    }

    /// Chromium on the client's side, at a page; `None` where there is none.
    pub(crate) fn browse(&self, page: &str) -> Option<Browser> {
        if !has_program("chromium") {
            skip("there is no chromium");
            return None;
        }
        let host = self.topology.server_address().to_string();
        let options = [
            // It needs both: the first alone keeps to TCP, and the second alone trusts nobody.
            format!("--origin-to-force-quic-on={host}:{}", self.port),
            format!("--ignore-certificate-errors-spki-list={}", self.key_hash),
            "--disable-dev-shm-usage".to_owned(),
            "--autoplay-policy=no-user-gesture-required".to_owned(),
        ];
        let client = self.topology.client();
        let mut browser = client.run(move || Browser::start_for(&host, &options))?;
        let went = browser.tell("Page.navigate", &serde_json::json!({ "url": self.url(page) }));
        assert!(went["errorText"].is_null(), "{went}");
        Some(browser)
    }

    /// Runs a client to its end, and gives what it prints.
    pub(crate) fn client(&self, mut command: Command) -> String {
        let program = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.topology.client().spawn(command).expect("a client");
        let mut errors = child.stderr.take().expect("a pipe");
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        let begun = Instant::now();
        let output = std::thread::spawn(move || child.wait_with_output());
        while !output.is_finished() {
            assert!(begun.elapsed() < PATIENCE, "{program} does not end");
            std::thread::sleep(StdDuration::from_millis(10));
        }
        let output = output.join().expect("a thread").expect("an end");
        let errors = errors.join().expect("a thread").expect("its errors");
        assert!(output.status.success(), "{program}: {}\n{errors}", output.status);
        println!("{program}: {:.2} s", begun.elapsed().as_secs_f64());
        String::from_utf8(output.stdout).expect("text")
    }

    /// The reports of all connections, once so many responses were delivered.
    pub(crate) fn reports(&self, responses: u64) -> Vec<Report> {
        let begun = Instant::now();
        loop {
            let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
            let delivered: u64 = reports.iter().map(|report| report.responses).sum();
            if delivered >= responses {
                return std::mem::take(&mut *reports);
            }
            assert!(begun.elapsed() < PATIENCE, "{delivered} of {responses} responses");
            drop(reports);
            std::thread::sleep(StdDuration::from_millis(10));
        }
    }
}

/// What must hold of a connection that was steered by its application, over this link.
pub(crate) fn assert_steered(report: &Report) {
    let Report { metrics, .. } = report;
    assert_eq!((&*metrics.scheme, metrics.algorithm), ("mortise", "copa"));
    // Without the application's factors there is no preference, and without one no action.
    let preference = metrics.insight.preference.expect("a preference");
    assert!(preference.lambda.is_finite() && preference.lambda >= 0.0, "{report}");
    assert!(metrics.reason.is_some() && metrics.refused == 0, "{report}: {:?}", metrics.reason);
    let delta = metrics.knobs.get("delta").expect("Copa's knob");
    println!("delta = {delta:.3}");
    let moved = (delta - FIRST_DELTA).abs() > 1e-9;
    assert!(moved, "{report}: nothing has moved delta");
    // There is no other way than the link. Stalls falsify its times, and not its losses.
    assert!(metrics.lost > Bytes::ZERO, "{report}: the link loses packets");
}

/// Whether a program is in the search path.
pub(crate) fn has_program(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The Python of the repository, where it has this package; says that the test skips otherwise.
pub(crate) fn python_with(package: &str) -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let look = Command::new(&python)
        .args(["-c", &format!("import {package}")])
        .stderr(Stdio::null())
        .status();
    let there = look.is_ok_and(|status| status.success());
    if !there {
        skip(&format!("there is no {package} in .venv"));
    }
    there.then_some(python)
}

/// The hash of a body, as the clients print it.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of which no part is as another.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let block = |n: u64| Sha256::digest([seed.to_le_bytes(), n.to_le_bytes()].concat());
    let mut bytes: Vec<u8> = (0..length.div_ceil(32) as u64).flat_map(block).collect();
    bytes.truncate(length);
    bytes
}
