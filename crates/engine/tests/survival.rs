//! An engine that is killed at any instant loses no report that it acknowledged, and no decision;
//! nor do two that share a store, whichever is killed.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use trimtab_fleet_client::{DecisionBody, Error, Name, ReportBatch};

use common::{Chance, Process, Site, batch, now_ms, report};

use trimtab_servers::{Encryption, Servers, Which};

const KEY: &str = "tv/203.0.113.0/24";

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn name() -> Name {
    Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() }
}

/// The edge: sends a batch for each next interval, again and again until it is acknowledged.
struct Edge {
    first_interval: u64,
    next: u64,
    unanswered: Option<ReportBatch>,
    acknowledged: u64,
}

impl Edge {
    /// One whose intervals are long ago, so that each may be closed at once.
    fn new() -> Self {
        let first_interval = (now_ms() / 1000 - 50_000) as u64;
        Self { first_interval, next: 1, unanswered: None, acknowledged: 0 }
    }

    fn send(&mut self, engine: &Process, token: &str) -> bool {
        self.try_to_send(engine, token).is_ok()
    }

    fn try_to_send(&mut self, engine: &Process, token: &str) -> Result<(), Error> {
        let (interval, sequence) = (self.first_interval + self.next, self.next);
        let batch = self
            .unanswered
            .get_or_insert_with(|| batch(sequence, vec![report(KEY, interval, 0, 5.0)]));
        let answer = engine.client(token).report(batch)?;
        assert_eq!(answer.late, 0, "interval {interval} was closed before its report came");
        self.acknowledged += 1;
        self.next += 1;
        self.unanswered = None;
        Ok(())
    }
}

/// So many reports in a round at most, so that all decisions fit one page of a thousand.
const ROUND_MAX: f64 = 9.0;

/// Everything that was decided, by interval. An aggregate is known from its first report on.
fn decisions(engine: &Process, token: &str, edge: &Edge) -> BTreeMap<i64, DecisionBody> {
    if edge.acknowledged == 0 {
        return BTreeMap::new();
    }
    let body = engine.client(token).decisions(&name(), 1000).expect("it answers who reads");
    assert!(!body.more, "they fit a page");
    body.decisions.into_iter().map(|decision| (decision.interval, decision)).collect()
}

/// Decisions stay as they were seen before.
fn see(seen: &mut BTreeMap<i64, DecisionBody>, now: BTreeMap<i64, DecisionBody>, round: usize) {
    for (interval, decision) in &*seen {
        let kept = now.get(interval);
        assert_eq!(kept, Some(decision), "round {round}: a decision was lost or changed");
    }
    *seen = now;
}

#[test]
fn a_hundred_kills_lose_nothing() {
    let site = Site::new("");
    let mut edge = Edge::new();
    let mut chance = Chance(6);
    let mut seen: BTreeMap<i64, DecisionBody> = BTreeMap::new();
    for round in 0..100 {
        let engine = site.start();
        let now = decisions(&engine, &site.viewer, &edge);
        see(&mut seen, now, round);
        let killer = kill_soon(&engine, &mut chance);
        let most = 1 + (chance.next() * ROUND_MAX) as u32;
        let _killed = (0..most).any(|_| !edge.send(&engine, &site.edge));
        assert!(killer.join().expect("no panic").success());
        engine.kill();
    }
    let engine = site.start();
    assert!(edge.send(&engine, &site.edge), "the engine that is left alone answers");
    check_all(&engine, &site, &edge);
}

/// Kills an engine in the middle of sending, of a commit, of closing, or of nothing.
fn kill_soon(engine: &Process, chance: &mut Chance) -> std::thread::JoinHandle<ExitStatus> {
    let pid = engine.child.id().to_string();
    let rest = Duration::from_micros((chance.next() * 25_000.0) as u64);
    std::thread::spawn(move || {
        std::thread::sleep(rest);
        std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill")
    })
}

/// Waits until everything is decided, and sees that all of it counts, once.
fn check_all(engine: &Process, site: &Site, edge: &Edge) {
    let first_interval = edge.first_interval;
    let until = Instant::now() + Duration::from_secs(60);
    let (mut now, wanted) = (BTreeMap::new(), edge.next - 1);
    while now.len() < wanted as usize && Instant::now() < until {
        now = decisions(engine, &site.viewer, edge);
        // A token may ask twenty times a second.
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(edge.acknowledged >= 20, "{} reports are too few to show anything", edge.acknowledged);
    let decided: Vec<u64> = now.keys().map(|interval| *interval as u64 - first_interval).collect();
    assert_eq!(
        decided,
        (1..=wanted).collect::<Vec<_>>(),
        "one decision for each report that was acknowledged"
    );
    assert!(now.values().all(|decision| decision.reports == 1), "each report counts once");
    let counts = engine.client(&site.operator).status().expect("it answers").counts;
    assert_eq!((counts.decisions as u64, counts.waiting_reports), (wanted, 0));
}

/// Kills of one of two engines; fewer, since an edge waits seconds for what a killed one had taken.
const KILLS_OF_TWO: usize = 30;

#[test]
fn kills_of_either_of_two_engines_lose_nothing() {
    let Some(servers) = Servers::for_tests() else { return };
    kills_of_either(&servers.configuration(false));
}

#[test]
fn kills_of_either_of_two_engines_with_a_broker_lose_nothing() {
    let Some(servers) = Servers::for_tests() else { return };
    kills_of_either(&servers.configuration(true));
}

fn kills_of_either(store: &str) {
    let limits = "[limits]\nrequests_per_second = 1000";
    let site = Site::with_store((0, "20ms", limits), store);
    let mut edge = Edge::new();
    let mut chance = Chance(7);
    let mut seen: BTreeMap<i64, DecisionBody> = BTreeMap::new();
    let mut engines = [site.start(), site.start()];
    for round in 0..KILLS_OF_TWO {
        let victim = usize::from(chance.next() < 0.5);
        let killer = kill_soon(&engines[victim], &mut chance);
        // By both in turn, so that either may have what it then cannot tell of.
        let most = 1 + (chance.next() * ROUND_MAX) as usize;
        for turn in 0..most {
            edge.send(&engines[(victim + turn) % 2], &site.edge);
        }
        assert!(killer.join().expect("no panic").success());
        let now = decisions(&engines[1 - victim], &site.viewer, &edge);
        see(&mut seen, now, round);
        std::mem::replace(&mut engines[victim], site.start()).kill();
    }
    while !edge.send(&engines[0], &site.edge) {}
    check_all(&engines[1], &site, &edge);
}

#[test]
fn kills_of_postgresql_lose_nothing() {
    let Some(servers) = Servers::for_tests() else { return };
    kills_of_servers(servers, &[Which::Postgres; 4]);
}

#[test]
fn kills_of_postgresql_and_nats_lose_nothing() {
    let Some(servers) = Servers::for_tests() else { return };
    let both = [Which::Postgres, Which::Nats];
    kills_of_servers(servers, &[both, both].concat());
}

/// The engine goes on by itself when they are back, and the edge needs to know of nothing.
fn kills_of_servers(mut servers: Servers, victims: &[Which]) {
    let limits = "[limits]\nrequests_per_second = 1000";
    let store = servers.configuration(victims.contains(&Which::Nats));
    let site = Site::with_store((0, "20ms", limits), &store);
    let mut edge = Edge::new();
    let engine = site.start();
    for &which in victims {
        for _ in 0..5 {
            send_until_kept(&mut edge, &engine, &site);
        }
        servers.kill(which);
        // Nothing can be kept; that one of them is away is said, and no acknowledgement is given.
        assert!(!edge.send(&engine, &site.edge), "{which:?} is away, and it acknowledges");
        servers.start_again(which);
    }
    send_until_kept(&mut edge, &engine, &site);
    check_all(&engine, &site, &edge);
}

fn send_until_kept(edge: &mut Edge, engine: &Process, site: &Site) {
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(why) = edge.try_to_send(engine, &site.edge) {
        assert!(Instant::now() < until, "the engine does not find its servers again: {why}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn both_servers_are_spoken_to_in_tls_and_have_to_be_vouched_for() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let (certificate, key) = (data.join("certificate.pem"), data.join("key.pem"));
    let encryption = Encryption { certificate: &certificate, key: &key };
    let Some(servers) = Servers::encrypted_for_tests(encryption) else { return };
    let authority = format!("authority = {:?}\n", data.join("authority.pem"));
    let store = servers
        .configuration(true)
        .replace("[broker]\n", &format!("{authority}[broker]\n{authority}"));
    let site = Site::with_store((0, "20ms", ""), &store);
    let engine = site.start();
    let mut edge = Edge::new();
    assert!(edge.send(&engine, &site.edge), "a report is kept");

    // Who is not vouched for is not spoken to.
    let config = site.folder.path().join("other.toml");
    let text = std::fs::read_to_string(site.config()).expect("a configuration");
    let both = text.replace("authority.pem", "stranger.pem");
    let broker = {
        let (store, broker) = text.split_once("[broker]").expect("both");
        format!("{store}[broker]{}", broker.replace("authority.pem", "stranger.pem"))
    };
    for (text, server) in [(both, "PostgreSQL"), (broker, "NATS")] {
        std::fs::write(&config, text).expect("a configuration");
        let refused = trimtab_engine::run(&config).expect_err("it trusts nobody").to_string();
        assert!(refused.contains(server) && refused.contains("certificate"), "{refused}");
    }
}
