//! Edges next to an engine whose store is away for minutes: nothing counts twice, and nothing that
//! was acknowledged is lost.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration as StdDuration, Instant};
use trimtab_fleet_client::{DecisionBody, Name};

use crate::common::Site;
use trimtab_fleet_client::edge::{Edge, Key, Observation, Options};
use trimtab_servers::{Servers, Which};
use trimtab_units::Rate;

/// How long each server is away, in seconds; `TRIMTAB_OUTAGE_S` sets another time for both. PostgreSQL
/// is away for longer than edges once kept the number of a batch; NATS for less, to spare the tests a minute.
const OUTAGES_S: [(Which, u64); 2] = [(Which::Postgres, 65), (Which::Nats, 15)];

/// A server is killed, and comes back after `away`; `each` runs all the time.
fn outage(servers: &mut Servers, which: Which, away: StdDuration, mut each: impl FnMut()) {
    servers.kill(which);
    let end = Instant::now() + away;
    while Instant::now() < end {
        each();
        std::thread::sleep(StdDuration::from_millis(200));
    }
    servers.start_again(which);
}

#[test]
fn outages_of_minutes_count_nothing_twice_and_lose_nothing() {
    let Some(mut servers) = Servers::for_tests() else { return };
    let asked: Option<u64> =
        std::env::var("TRIMTAB_OUTAGE_S").ok().and_then(|text| text.parse().ok());
    let limits = "[limits]\nrequests_per_second = 1000";
    let site = Site::with_store((0, "900ms", limits), &servers.configuration(true));
    let service = site.folder.path().join("services/tv.toml");
    let text = std::fs::read_to_string(&service).unwrap().replace("\"1s\"", "\"2s\"");
    std::fs::write(&service, text).unwrap();
    let engine = site.start();
    let edge = Edge::start(&Options {
        engine: engine.url.clone(),
        token: (&site.edge).into(),
        authority: None,
        folder: site.folder.path().join("edge"),
    })
    .unwrap();
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    // The versions under which each interval has something to report: each is one report.
    let recorded: RefCell<BTreeMap<i64, BTreeSet<u64>>> = RefCell::default();
    let saw = || {
        let Some(force) = edge.in_force(&key) else { return };
        let throughput = Some(Rate::from_mbps(5.0));
        let seen = Observation { throughput, ..Observation::default() };
        let (version, interval) = (force.configuration.version, edge.interval(&force));
        edge.record(&key, version, interval, &seen);
        recorded.borrow_mut().entry(interval.0 as i64).or_default().insert(version);
    };
    let until = |what: &str, done: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < StdDuration::from_secs(60), "{what}: {:?}", edge.status());
            saw();
            std::thread::sleep(StdDuration::from_millis(100));
        }
    };
    until("the first report", &|| edge.status().kept >= 2);
    let mut before = edge.status().kept;
    for (which, usual) in OUTAGES_S {
        let away = StdDuration::from_secs(asked.unwrap_or(usual));
        outage(&mut servers, which, away, saw);
        // A batch of the time without a store, and then one of the time after it.
        let waited = away.as_secs() / 2 - 3;
        until("what waited", &|| edge.status().kept + edge.status().late >= before + waited);
        before = edge.status().kept;
        until("what is new", &|| edge.status().kept >= before + 3);
        before = edge.status().kept;
    }
    // No more is said: what is acknowledged now is all that there is.
    std::thread::sleep(StdDuration::from_secs(4));
    let told = edge.status();
    assert_eq!((told.waiting, told.dropped), (0, 0), "{told:?}");
    let viewer = engine.client(&site.viewer);
    let name = Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() };
    let start = Instant::now();
    let decisions = loop {
        let all = viewer.decisions(&name, 1000).expect("decisions").decisions;
        let waiting = viewer.status().expect("a status").counts.waiting_reports;
        if waiting == 0 || start.elapsed() > StdDuration::from_secs(30) {
            break all;
        }
        std::thread::sleep(StdDuration::from_millis(200));
    };
    let counted: i64 = decisions.iter().map(|decision| decision.reports).sum();
    let recorded = recorded.into_inner();
    let twice = |decision: &DecisionBody| {
        let versions = recorded.get(&decision.interval).map_or(0, BTreeSet::len) as i64;
        (decision.reports - versions).max(0)
    };
    let twice: i64 = decisions.iter().map(twice).sum();
    let sent: usize = recorded.values().map(BTreeSet::len).sum();
    println!(
        "{sent} reports sent, {} acknowledged, {counted} counted, {} late, {twice} counted twice",
        told.kept, told.late
    );
    assert_eq!(twice, 0, "a version that ended within an interval has one report of its own");
    assert_eq!(told.kept + told.late, sent as u64, "each report is answered once");
    assert_eq!(counted as u64, told.kept, "what was acknowledged counts");
}
