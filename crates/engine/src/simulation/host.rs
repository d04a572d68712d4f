//! The engine's machine: the engine while it runs, its file, and the way that requests take to it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use trimtab_fleet_client::{NewToken, ReportAnswer, Role, Transport};

use super::ledger::Wire;
use crate::api;
use crate::clock::simulated;
use crate::closer::Closing;
use crate::config::{Config, Keep};
use crate::run::{assemble, keeps};
use crate::services::Services;
use crate::store::{Sqlite, Store};

/// The longest answer that is read, in bytes.
const ANSWER_MAX: usize = 64 << 20;
const SERVICE: &str = r#"
name = "tv"
interval = "20s"
reward = "mean(throughput)"
[knobs]
gamma = { min = 1, max = 5000, scale = "log" }
startup_rate_max = { min = 1, max = 1000, scale = "log" }
[safe]
startup_rate_max = 20
"#;
/// How long edges have after an interval, as in `SETTINGS`, and by which any clock may be off.
pub(super) const GRACE_MS: i64 = 15_000;
const SETTINGS: &str = "services = \"services\"\ngrace = \"15s\"\n[store]\nfile = \"engine.db\"\n";

/// An engine that runs.
struct Running {
    runtime: Runtime,
    router: Router,
    closing: Closing,
    store: Arc<Sqlite>,
}

/// The machine.
pub(super) struct Host {
    folder: tempfile::TempDir,
    /// In ms since 1970.
    pub(super) clock: Arc<AtomicI64>,
    running: Mutex<Option<Running>>,
}

impl Host {
    pub(super) fn new(now_ms: i64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let services = folder.path().join("services");
        std::fs::create_dir(&services).expect("a folder");
        std::fs::write(services.join("tv.toml"), SERVICE).expect("a service");
        std::fs::write(folder.path().join("engine.toml"), SETTINGS).expect("a configuration");
        let clock = Arc::new(AtomicI64::new(now_ms));
        Self { folder, clock, running: Mutex::default() }
    }

    /// A folder of an edge.
    pub(super) fn folder_of(&self, edge: usize) -> PathBuf {
        self.folder.path().join(format!("edge-{edge}"))
    }

    fn config(&self) -> Config {
        Config::read(&self.folder.path().join("engine.toml")).expect("a configuration")
    }

    fn file(&self) -> PathBuf {
        let Keep::File(file) = self.config().store else { panic!("it is a file") };
        file
    }

    /// Does something by the clock of this machine.
    fn by_own_clock<T>(&self, act: impl FnOnce() -> T) -> T {
        simulated::follow(Some(Arc::clone(&self.clock)));
        let done = act();
        simulated::follow(None);
        done
    }

    pub(super) fn add_edge(&self, name: &str) -> String {
        let new = NewToken::new(name, Role::Edge, &["tv"]);
        let config = self.folder.path().join("engine.toml");
        self.by_own_clock(|| crate::add_token(&config, &new)).expect("a token")
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self) -> bool {
        self.running().is_some()
    }

    /// Starts the engine, as `trimtab engine run` does.
    pub(super) fn start(&self) {
        let config = self.config();
        let services = Services::read(&config.services, config.grace).expect("services");
        let store = Sqlite::open(&self.file(), &services.lengths()).expect("a store");
        store.forgo_sync();
        let store = Arc::new(store);
        let clock = Arc::clone(&self.clock);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_start(move || simulated::follow(Some(Arc::clone(&clock))))
            .build()
            .expect("threads");
        let (engine, closing) = self.by_own_clock(|| {
            let shared = Arc::clone(&store) as Arc<dyn Store>;
            let engine = assemble(&config, shared, Arc::new(services)).expect("an engine");
            engine.read_safe().expect("the store answers");
            let closing = Closing::new(Arc::clone(&engine), keeps(&config));
            (engine, closing)
        });
        let router = api::router(&engine);
        *self.running() = Some(Running { runtime, router, closing, store });
    }

    /// Ends the engine wherever it is, without a word to anybody.
    pub(super) fn kill(&self) {
        *self.running() = None;
    }

    /// Does something to the file, where an engine has it.
    pub(super) fn store(&self, act: impl FnOnce(&Sqlite)) {
        if let Some(running) = &*self.running() {
            act(&running.store);
        }
    }

    /// Whether the file is away from an engine that runs.
    pub(super) fn lost_store(&self) -> bool {
        self.running().as_ref().is_some_and(|running| running.store.is_away())
    }

    /// The turn of the engine's thread that closes intervals.
    pub(super) fn close(&self) {
        if let Some(running) = &mut *self.running() {
            self.by_own_clock(|| running.closing.turn());
        }
    }

    /// Makes the row of an aggregate one that nobody can read.
    pub(super) fn damage(&self, prefix: &str) {
        let db = rusqlite::Connection::open(self.file()).expect("the file");
        let damage = "UPDATE aggregates SET state = x'5a5a5a' WHERE prefix = ?1";
        db.execute(damage, [prefix]).expect("it takes it");
    }

    /// Has an aggregate learn anew, as `trimtab engine reset` does.
    pub(super) fn reset(&self, prefix: &str) -> Result<bool, crate::StoreError> {
        let name = super::world::name(prefix);
        let now_ms = self.clock.load(Ordering::Relaxed);
        let store = Sqlite::open_next_to_engine(&self.file())?;
        store.reset(&[name], "kim", "its row was damaged", now_ms)
    }

    /// Reads from the file, as another process would.
    pub(super) fn read<T>(&self, ask: impl FnOnce(&Sqlite) -> T) -> T {
        ask(&Sqlite::open_next_to_engine(&self.file()).expect("the store"))
    }

    /// Hands a request to the engine: status and body of its answer; or why nobody answers.
    fn ask(&self, token: &str, path: &str, body: Option<&str>) -> Result<(u16, String), String> {
        let running = self.running();
        let Some(Running { runtime, router, .. }) = &*running else {
            return Err("nobody listens".to_owned());
        };
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Authorization", format!("Bearer {token}"))
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_owned())))
            .expect("a request");
        let service = TowerToHyperService::new(router.clone());
        let (status, bytes) = self.by_own_clock(|| {
            runtime.block_on(async {
                let answer = hyper::service::Service::call(&service, request).await;
                let (head, body) = answer.expect("it always answers").into_parts();
                let bytes = axum::body::to_bytes(body, ANSWER_MAX).await;
                (head.status.as_u16(), bytes.expect("a body"))
            })
        });
        Ok((status, String::from_utf8(bytes.to_vec()).expect("text")))
    }
}

/// What a link does to requests now.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    pub(super) is_cut: bool,
    pub(super) is_unanswered: bool,
    /// The next report is to be on its way for long.
    pub(super) delays: bool,
    /// One that is.
    pub(super) delayed: Option<String>,
}

/// The link of an edge to the engine.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) host: Arc<Host>,
    pub(super) token: String,
    pub(super) link: Arc<Mutex<Link>>,
    pub(super) wire: Arc<Mutex<Wire>>,
    /// An engine that loses its file is killed, and does not answer.
    pub(super) is_dying: Arc<AtomicBool>,
}

const REPORTS: &str = "/v1/reports";

impl Way {
    /// What was on its way for so long arrives; nobody waits for the answer.
    pub(super) fn deliver(&self) {
        let delayed = lock(&self.link).delayed.take();
        if let Some(body) = delayed {
            let _ = self.host.ask(&self.token, REPORTS, Some(&body));
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport for Way {
    fn exchange(
        &self,
        path: &str,
        _query: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<(u16, String), String> {
        let is_report = path == REPORTS;
        let body = body.map(|text| {
            let mut body: Value = serde_json::from_str(text).expect("JSON");
            if is_report {
                lock(&self.wire).sends(&body);
            } else if body["wait_s"].is_u64() {
                // Time stands still in a request.
                body["wait_s"] = json!(0);
            }
            body.to_string()
        });
        {
            let mut link = lock(&self.link);
            if link.is_cut {
                return Err("no route to the engine".to_owned());
            }
            if is_report && link.delays && link.delayed.is_none() {
                link.delayed.clone_from(&body);
                return Err("timed out".to_owned());
            }
        }
        let answer = self.host.ask(&self.token, path, body.as_deref())?;
        let dies = self.is_dying.load(Ordering::Relaxed) && self.host.lost_store();
        if dies || lock(&self.link).is_unanswered {
            return Err("the connection was cut".to_owned());
        }
        if is_report && answer.0 == 200 {
            let told: ReportAnswer = serde_json::from_str(&answer.1).expect("an answer");
            lock(&self.wire).receives(&told);
        }
        Ok(answer)
    }
}
