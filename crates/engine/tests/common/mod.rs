//! An engine as a process of its own, for tests that ask, kill and start it again.
//!
//! The process is this test program once more: told where a configuration is, its test
//! `engine_process` runs the engine.
#![allow(dead_code, reason = "each file of tests uses a part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use trimtab_engine::add_token;
use trimtab_fleet::{Interval, Report, Sketch, Summary};
use trimtab_fleet_client::{Client, NewToken, ReportBatch, Role};

const CONFIG: &str = "TRIMTAB_TEST_ENGINE_CONFIG";

/// Numbers between 0 and 1, the same in each run.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// To be called by the test `engine_process` of each test program.
pub(crate) fn run_if_asked() {
    let Some(config) = std::env::var_os(CONFIG) else { return };
    // Ends with the test that started it, even when that was killed.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    trimtab_engine::run(Path::new(&config)).expect("the engine runs");
    std::process::exit(0);
}

/// A folder with a configuration, a service `tv` with intervals of a second, and tokens.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) edge: String,
    pub(crate) operator: String,
    pub(crate) viewer: String,
}

impl Site {
    /// With lines of the configuration in addition to the usual ones.
    pub(crate) fn new(settings: &str) -> Self {
        Self::at(0, "20ms", settings)
    }

    /// On a port, closing intervals so long after their end.
    pub(crate) fn at(port: u16, grace: &str, settings: &str) -> Self {
        Self::with_store((port, grace, settings), "[store]\nfile = \"engine.db\"\n")
    }

    /// The same with another store than a file.
    pub(crate) fn with_store(by: (u16, &str, &str), store: &str) -> Self {
        Self::with_intervals("1s", by, store)
    }

    /// The same with intervals of another length.
    pub(crate) fn with_intervals(
        length: &str,
        (port, grace, settings): (u16, &str, &str),
        store: &str,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let services = folder.path().join("services");
        std::fs::create_dir(&services).expect("a folder");
        let service = |name: &str| {
            format!(
                "name = \"{name}\"\ninterval = \"{length}\"\nreward = \"mean(throughput)\"\n[knobs]\n\
                 gamma = {{ min = 1, max = 5000, scale = \"log\" }}\n\
                 startup_rate_max = {{ min = 1, max = 1000, scale = \"log\" }}\n[safe]\nstartup_rate_max = 20\n"
            )
        };
        for name in ["tv", "vod"] {
            std::fs::write(services.join(format!("{name}.toml")), service(name))
                .expect("a service");
        }
        let config = folder.path().join("engine.toml");
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\nservices = \"services\"\ngrace = \"{grace}\"\n{settings}\n{store}"
        );
        std::fs::write(&config, text).expect("a configuration");
        let token = |name: &str, role, services: &[&str]| {
            add_token(&config, &NewToken::new(name, role, services)).expect("a token")
        };
        Self {
            edge: token("edge-1", Role::Edge, &["tv"]),
            operator: token("kim", Role::Operator, &[]),
            viewer: token("robin", Role::Viewer, &[]),
            folder,
        }
    }

    /// Adds lines to the description of `tv`, before an engine starts.
    pub(crate) fn choose_among(&self, lines: &str) {
        let file = self.folder.path().join("services/tv.toml");
        let text = std::fs::read_to_string(&file).expect("the service");
        std::fs::write(&file, format!("{lines}\n{text}")).expect("it may be written");
    }

    /// A token of one more edge of `tv`.
    pub(crate) fn add_edge(&self, name: &str) -> String {
        add_token(&self.config(), &NewToken::new(name, Role::Edge, &["tv"])).expect("a token")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("engine.toml")
    }

    /// Starts an engine, and waits until it listens.
    pub(crate) fn start(&self) -> Process {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "engine_process", "--nocapture"])
            .env(CONFIG, self.config())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the engine starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut before = Vec::new();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            before.push(line.clone());
            let (_, rest) = line.split_once("listens at ")?;
            Some(rest.split(',').next()?.to_owned())
        });
        let url = url.unwrap_or_else(|| panic!("the engine does not listen: {before:#?}"));
        // What else it says must not fill the pipe.
        let said = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                keeps.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Process { child, url, said }
    }
}

/// An engine that runs.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// What it has said since it listens.
    said: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub(crate) fn client(&self, token: &str) -> Client {
        Client::new(&self.url, token, None).expect("a client")
    }

    /// The lines that it has said since it listens, as far as something is in them.
    pub(crate) fn said(&self, what: &str) -> Vec<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().filter(|line| line.contains(what)).cloned().collect()
    }

    /// Has it read its services again.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    /// Has it end in good order, and says how long that took.
    pub(crate) fn terminate(&mut self) -> Duration {
        let begun = Instant::now();
        // It ends at once where nobody holds this, as when its test is killed.
        let held = self.child.stdin.take();
        self.signal("-TERM");
        assert!(self.child.wait().expect("it ends").success());
        drop(held);
        begun.elapsed()
    }

    fn signal(&self, which: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([which, &pid]).status().expect("kill").success());
    }

    /// Kills it, as a loss of power would.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64
}

/// A report for an aggregate such as `tv/203.0.113.0/24`.
pub(crate) fn report(key: &str, interval: u64, version: u64, throughput: f64) -> String {
    let mut summary = Summary::new(10);
    summary.set("throughput", Sketch::of([throughput; 10])).expect("a statistic");
    let key = key.parse().expect("a key");
    let report = Report { key, interval: Interval(interval), version, summary, next: None };
    STANDARD.encode(report.encode().expect("a report"))
}

/// A batch that is sent now.
pub(crate) fn batch(sequence: u64, reports: Vec<String>) -> ReportBatch {
    ReportBatch { sequence, sent_ms: now_ms(), interval_ms: None, reports }
}

/// Says something to the engine, and gives the status and body that it answers.
pub(crate) fn say(
    engine: &Process,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &[u8],
) -> (u16, Value) {
    let address = engine.url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let token =
        token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n{token}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    // A client that sends too much is answered before all is sent.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (status, serde_json::from_str(body).unwrap_or(Value::String(body.to_owned())))
}

/// Waits for something that the engine does by itself.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}
