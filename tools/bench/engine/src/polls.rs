//! Edges that wait for changes, as many as a fleet has: one process holds all their connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use trimtab_fleet_client::Role;

use crate::Figure;
use crate::cases::{figure, median};
use crate::load::{Edge, list, now_ms, prefix, report};
use crate::process::{Engine, Site};

/// Aggregates that each edge waits for: one that all have, and others of its own.
const AGGREGATES: u64 = 20;
/// Edges of one token.
const OF_TOKEN: u64 = 100;
/// How long each question may wait, in s.
const WAIT_S: u64 = 60;
/// Connections that are made at a time.
const AT_ONCE: usize = 64;
/// Decisions that are followed, of each kind.
const DECISIONS: u64 = 8;
/// How long edges that wait are watched.
const IDLE: Duration = Duration::from_secs(20);
/// Longer takes no decision to reach who waits for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Files that this process and the engine need besides the connections.
const OTHER_FILES: u64 = 1000;

/// What reaches an edge: its number, the aggregate and the version.
struct Heard {
    edge: u64,
    aggregate: u64,
    version: u64,
    at: Instant,
}

/// An edge: the aggregates that it waits for, with the versions that it has.
struct Waiting {
    number: u64,
    token: Arc<str>,
    have: Vec<(u64, u64)>,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

/// The aggregate that all edges have.
const COMMON: u64 = 0;

fn own(edge: u64) -> impl Iterator<Item = u64> {
    let first = 1 + edge * (AGGREGATES - 1);
    first..first + AGGREGATES - 1
}

impl Waiting {
    async fn connect(address: &str, number: u64, token: Arc<str>) -> Result<Self, String> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|e| format!("edge {number} cannot reach {address}: {e}"))?;
        let (reader, writer) = stream.into_split();
        let have = std::iter::once(COMMON).chain(own(number)).map(|n| (n, 0)).collect();
        Ok(Self { number, token, have, reader: BufReader::new(reader), writer })
    }

    /// Asks again and again, until this process ends.
    async fn follow(mut self, told: Sender<Heard>) -> Result<(), String> {
        let numbers: BTreeMap<String, usize> =
            self.have.iter().enumerate().map(|(at, (n, _))| (prefix(*n), at)).collect();
        loop {
            let answer = self.ask().await?;
            let at = Instant::now();
            for item in answer["configurations"].as_array().into_iter().flatten() {
                let place = item["prefix"].as_str().and_then(|prefix| numbers.get(prefix));
                let (Some(&place), Some(version)) = (place, item["version"].as_u64()) else {
                    return Err(format!("an odd configuration: {item}"));
                };
                self.have[place].1 = version;
                let (edge, aggregate) = (self.number, self.have[place].0);
                // Nobody may listen any more.
                let _ = told.send(Heard { edge, aggregate, version, at });
            }
        }
    }

    async fn ask(&mut self) -> Result<Value, String> {
        let have: Vec<Value> = self
            .have
            .iter()
            .map(
                |(n, version)| json!({ "service": "tv", "prefix": prefix(*n), "version": version }),
            )
            .collect();
        let body = json!({ "have": have, "wait_s": WAIT_S }).to_string();
        let request = format!(
            "POST /v1/configurations HTTP/1.1\r\nHost: engine\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        let fail = |e: std::io::Error| format!("the engine went away: {e}");
        self.writer.write_all(request.as_bytes()).await.map_err(fail)?;
        let (mut status, mut len) = (String::new(), 0);
        self.reader.read_line(&mut status).await.map_err(fail)?;
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).await.map_err(fail)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                len = value.trim().parse().map_err(|_| "an odd answer".to_owned())?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; len];
        self.reader.read_exact(&mut answer).await.map_err(fail)?;
        if status.split(' ').nth(1) != Some("200") {
            return Err(format!("{}: {}", status.trim(), String::from_utf8_lossy(&answer)));
        }
        serde_json::from_slice(&answer).map_err(|e| e.to_string())
    }
}

/// Lets this process, and engines that it starts, have so many files.
fn allow_files(files: u64) -> Result<(), String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if maximum.is_some_and(|most| most < files) {
        return Err(format!(
            "{files} files are needed, and {} are allowed: raise the hard limit (`ulimit -Hn`)",
            maximum.unwrap_or_default()
        ));
    }
    if current.is_some_and(|now| now < files) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })
            .map_err(|e| format!("cannot raise the limit of files to {files}: {e}"))?;
    }
    Ok(())
}

/// What follows the decisions on one aggregate.
struct Followed<'a> {
    sender: Edge,
    heard: &'a Receiver<Heard>,
    aggregate: u64,
    version: u64,
}

impl Followed<'_> {
    /// Reports an interval that is over, and waits until so many edges have what is decided: the
    /// times from the report to each, in ms, in their order; none where nothing changed.
    fn decide(&mut self, edges: u64) -> Result<Vec<f64>, String> {
        // Well after a second began: the last one may be closed at once, and is reported once.
        std::thread::sleep(Duration::from_millis(1100 - now_ms() % 1000));
        let sent = Instant::now();
        self.sender.send(&list(&[report(self.aggregate, now_ms() / 1000 - 1, self.version)]))?;
        let mut taken = BTreeMap::new();
        let mut latest = self.version;
        while (taken.len() as u64) < edges {
            let left = PATIENCE.checked_sub(sent.elapsed()).unwrap_or_default();
            let Ok(heard) = self.heard.recv_timeout(left) else {
                let some = taken.len();
                return match some {
                    0 => Ok(Vec::new()),
                    _ => Err(format!("{some} of {edges} edges have a decision after a minute")),
                };
            };
            if heard.aggregate == self.aggregate && heard.version > self.version {
                latest = latest.max(heard.version);
                taken.insert(heard.edge, (heard.at - sent).as_secs_f64() * 1000.0);
            }
        }
        self.version = latest;
        let mut times: Vec<f64> = taken.into_values().collect();
        times.sort_by(f64::total_cmp);
        Ok(times)
    }

    /// Follows decisions: the first, median and last edge of each, in ms, as medians; and the
    /// engine's processor time for each, in ms.
    fn follow(&mut self, engine: &Engine, edges: u64) -> Result<[f64; 4], String> {
        let mut all: [Vec<f64>; 4] = Default::default();
        for _ in 0..DECISIONS {
            let before = engine.used()?.processor_s;
            let times = self.decide(edges)?;
            let (Some(first), Some(last)) = (times.first(), times.last()) else { continue };
            let (first, last) = (*first, *last);
            // They ask again, which is part of what it takes.
            std::thread::sleep(Duration::from_millis(500));
            let used_ms = (engine.used()?.processor_s - before) * 1000.0;
            for (list, value) in all.iter_mut().zip([first, median(times), last, used_ms]) {
                list.push(value);
            }
        }
        if all[0].is_empty() {
            return Err("no decision changed a configuration".to_owned());
        }
        Ok(all.map(median))
    }
}

/// So many edges that wait at one engine with a file.
pub(crate) fn long_polls(edges: u64, note: &mut dyn FnMut(Figure)) -> Result<(), String> {
    allow_files(edges + OTHER_FILES)?;
    let site = Site::with_file("1s")?;
    let engine = site.start()?;
    let tokens: Vec<Arc<str>> = (0..edges.div_ceil(OF_TOKEN))
        .map(|n| Ok(site.token(&format!("edges-{n}"), Role::Edge)?.into()))
        .collect::<Result<_, String>>()?;
    let senders = [site.token("sender-1", Role::Edge)?, site.token("sender-2", Role::Edge)?];
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| format!("cannot start the edges' thread: {e}"))?;
    let (told, heard) = channel();
    let bare = engine.used()?;
    let begun = Instant::now();
    let address: Arc<str> = engine.address.as_str().into();
    runtime.block_on(async {
        let numbers: Vec<u64> = (0..edges).collect();
        for some in numbers.chunks(AT_ONCE) {
            let connecting: Vec<_> = some
                .iter()
                .map(|&n| {
                    let token = Arc::clone(&tokens[(n / OF_TOKEN) as usize]);
                    let address = Arc::clone(&address);
                    tokio::spawn(async move { Waiting::connect(&address, n, token).await })
                })
                .collect();
            for edge in connecting {
                let edge = edge.await.map_err(|e| e.to_string())??;
                let told = told.clone();
                tokio::spawn(async move {
                    if let Err(why) = edge.follow(told).await {
                        eprintln!("{why}");
                    }
                });
            }
        }
        Ok::<(), String>(())
    })?;
    // The last ones ask while the first ones wait.
    std::thread::sleep(Duration::from_secs(5));
    let connected_s = begun.elapsed().as_secs_f64();
    let before = engine.used()?;
    std::thread::sleep(IDLE);
    let after = engine.used()?;
    let idle = (after.processor_s - before.processor_s) / IDLE.as_secs_f64();
    note(figure("edges that wait for changes, each for 20 aggregates", edges as f64, ""));
    note(figure("… all of them wait after", connected_s, "s"));
    note(figure("… memory of the engine for each", per(&bare, &after, edges), "bytes"));
    note(figure("… the engine while nothing changes, of a core", 100.0 * idle, "%"));
    let of = |sender: &str, aggregate| {
        let sender = Edge::new(&engine.address, sender)?;
        Ok::<_, String>(Followed { sender, heard: &heard, aggregate, version: 0 })
    };
    let alone = own(edges / 2).next().expect("each has some");
    let [_, own_ms, _, used_ms] = of(&senders[0], alone)?.follow(&engine, 1)?;
    note(figure("a decision for one of them: from the report to the edge", own_ms, "ms"));
    note(figure("… processor time of the engine", used_ms, "ms"));
    let [first, middle, last, used_ms] = of(&senders[1], COMMON)?.follow(&engine, edges)?;
    note(figure("a decision for all of them: from the report to the first", first, "ms"));
    note(figure("… to half of them", middle, "ms"));
    note(figure("… to the last", last, "ms"));
    note(figure(
        "… processor time of the engine for each edge",
        1000.0 * used_ms / edges as f64,
        "us",
    ));
    let memory = engine.used()?.resident as f64 / 1e6;
    note(figure("memory of the engine then", memory, "MB"));
    runtime.shutdown_background();
    Ok(())
}

/// What the engine grew by for each edge, in bytes.
fn per(bare: &crate::process::Used, now: &crate::process::Used, edges: u64) -> f64 {
    now.resident.saturating_sub(bare.resident) as f64 / edges as f64
}
