use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use trimtab_fleet::Report;
use trimtab_units::Rate;

use super::*;
use crate::ReportBatch;
use crate::stand_in::{Reply, Request, StandIn, ok, refusal, wait_until};

fn now() -> Time {
    Clock::default().now()
}

const SECOND: Duration = Duration::from_secs(1);
/// What an engine with intervals of a second has.
const SERVICES: &str = "/v1/services";
const CONFIGURATIONS: &str = "/v1/configurations";
const REPORTS: &str = "/v1/reports";

fn key() -> Key {
    "tv/203.0.113.0/24".parse().unwrap()
}

fn services() -> Reply {
    let of = |name: &str, interval_ms: i64| {
        json!({
            "name": name, "interval_ms": interval_ms, "algorithm": "vivace", "reward": "",
            "knobs": [],
        })
    };
    ok(&json!({ "services": [of("tv", 1000), of("broken", 0), of("vod", 60_000)] }))
}

fn item(prefix: &str, version: u64, configuration: &Value) -> Value {
    json!({
        "service": "tv", "prefix": prefix, "version": version, "configuration": configuration,
    })
}

fn vivace(gamma: f64) -> Value {
    json!({ "algorithm": "vivace", "knobs": { "gamma": gamma } })
}

fn configurations(items: &[Value]) -> Reply {
    ok(&json!({ "configurations": items, "now_ms": 0 }))
}

fn kept(count: usize) -> Reply {
    ok(&json!({ "kept": count, "late": 0, "again": false, "now_ms": 0 }))
}

fn batch(request: &Request) -> ReportBatch {
    serde_json::from_str(&request.body).unwrap()
}

fn asked_for(request: &Request) -> ConfigurationQuery {
    serde_json::from_str(&request.body).unwrap()
}

/// What talks to an engine, without a thread, and the folder that it keeps its state in.
fn reporting(engine: &StandIn) -> (Reporting, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut book = Book::default();
    let (state, sequence) = State::open(folder.path(), &mut book, now()).unwrap();
    let edge = Edge::of(book, None, Clock::default());
    let keeper = Keeper::new(state, sequence);
    let client = Client::new(&engine.url, "secret", None).unwrap();
    let shared = Arc::clone(&edge.shared);
    (Reporting::new(Arc::new(client), shared, Arc::new(keeper)), folder)
}

fn force(version: u64, interval: Duration) -> InForce {
    let knobs = vec![("gamma".to_owned(), 12.5)];
    let algorithm = "vivace".to_owned();
    let configuration = Configuration { version, algorithm, knobs, control: None };
    InForce { configuration, interval }
}

#[test]
fn what_is_in_force_is_kept_when_an_edge_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mut book = Book::default();
    let (state, sequence) = State::open(folder.path(), &mut book, now()).unwrap();
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    book.learn(key.clone(), force(3, SECOND), now());
    drop(Edge::of(book, Some(Arc::new(Keeper::new(state, sequence))), Clock::default()));
    let mut book = Book::default();
    State::open(folder.path(), &mut book, now()).unwrap();
    assert_eq!(book.in_force(&key, now()).unwrap().configuration.version, 3);
}

/// Puts a report for each service into the outbox.
/// An engine that knows no controls sends none, and one that an edge cannot run is refused whole.
#[test]
fn a_control_comes_with_its_configuration() {
    let control = json!({
        "version": 3, "algorithm": "cubic", "knobs": {}, "share": 0.25, "seed": u64::MAX,
    });
    let read = |control: &Value| {
        let mut configuration = vivace(100.0);
        configuration["control"] = control.clone();
        let item = item("203.0.113.0/24", 4, &configuration);
        super::configuration(&serde_json::from_value(item).unwrap()).map(|(_, read)| read.control)
    };
    let (algorithm, knobs) = ("cubic".to_owned(), Vec::new());
    let expected = Control { version: 3, algorithm, knobs, share: 0.25, seed: u64::MAX };
    assert_eq!(read(&control), Ok(Some(expected)));
    assert_eq!(read(&Value::Null), Ok(None));
    for (key, value, why) in [
        ("algorithm", json!("newer"), "there is no algorithm"),
        ("share", json!(0.9), "at most 0.5"),
        ("seed", Value::Null, "it has no seed"),
        ("knobs", Value::Null, "it has no knobs"),
    ] {
        let mut wrong = control.clone();
        wrong[key] = value;
        let error = read(&wrong).unwrap_err();
        assert!(
            error.contains("is left as it was: its control: ") && error.contains(why),
            "{error}"
        );
    }
}

fn add_reports(reporting: &mut Reporting, services: &[&str]) {
    let mut book = Book::default();
    for service in services {
        let key: Key = format!("{service}/203.0.113.0/24").parse().unwrap();
        book.learn(key.clone(), force(1, SECOND), now());
        let seen = Observation { throughput: Some(Rate::from_mbps(8.0)), ..Observation::default() };
        book.record(&key, 1, Interval::at(now(), SECOND), &seen);
    }
    reporting.outbox.add(&book.close(Time::MAX, |_| Duration::ZERO));
}

#[test]
fn a_batch_is_sent_again_as_it_was_until_the_engine_has_it() {
    let mut tries = 0;
    let engine = StandIn::new(move |request| match request.path() {
        SERVICES => services(),
        REPORTS => {
            tries += 1;
            match tries {
                1 => refusal(503, "the store is away"),
                2 => Reply::Close,
                3 => Reply::Raw(b"HTTP/1.1 200 OK\r\n\r\n<html>".to_vec()),
                4 => refusal(401, "revoked"),
                5 => refusal(429, "too many"),
                _ => ok(&json!({
                    "kept": 1, "late": 1, "refused": 1, "refused_why": "the clock",
                    "again": true, "now_ms": 0,
                })),
            }
        }
        _ => configurations(&[]),
    });
    let (mut reporting, _folder) = reporting(&engine);
    add_reports(&mut reporting, &["tv"]);
    for failure in 1..=5 {
        reporting.talk().unwrap_err();
        assert_eq!((reporting.outbox.len(), reporting.outbox.dropped), (1, 0), "{failure}");
    }
    reporting.talk().unwrap();
    assert_eq!((reporting.outbox.len(), reporting.outbox.dropped), (0, 1));
    let status = reporting.shared.status().clone();
    assert_eq!((status.kept, status.late), (1, 1));
    assert!(status.trouble.unwrap().contains("does not keep 1 reports: the clock"));
    let sent: Vec<ReportBatch> = engine.asked_of(REPORTS).iter().map(batch).collect();
    assert_eq!(sent.len(), 6);
    for again in &sent {
        assert_eq!((again.sequence, &again.reports), (sent[0].sequence, &sent[0].reports));
    }
    let report = Report::decode(&STANDARD.decode(&sent[0].reports[0]).unwrap()).unwrap();
    assert_eq!((report.key, report.version, sent[0].interval_ms), (key(), 1, Some(1000)));
    let mbps = report.summary.get("throughput").unwrap().mean().unwrap();
    assert!((mbps - 8.0).abs() < 1e-5, "{mbps}");
}

#[test]
fn a_batch_that_the_engine_never_takes_is_not_in_the_way_of_the_next() {
    for status in [400, 403, 413] {
        let mut tries = 0;
        let engine = StandIn::new(move |request| {
            tries += usize::from(request.path() == REPORTS);
            match (request.path(), tries) {
                (SERVICES, _) => services(),
                (REPORTS, 1) => refusal(status, "not for this token"),
                _ => kept(batch(request).reports.len()),
            }
        });
        let (mut reporting, _folder) = reporting(&engine);
        add_reports(&mut reporting, &["tv", "vod"]);
        let error = reporting.talk().unwrap_err().to_string();
        assert!(error.contains("not for this token"), "{error}");
        assert_eq!((reporting.outbox.len(), reporting.outbox.dropped), (1, 1), "{status}");
        reporting.talk().unwrap();
        assert_eq!((reporting.outbox.len(), reporting.outbox.dropped), (0, 1), "{status}");
        let sent: Vec<ReportBatch> = engine.asked_of(REPORTS).iter().map(batch).collect();
        assert!(sent[1].sequence > sent[0].sequence, "{sent:?}");
    }
}

/// While its clock is wrong nothing is taken, and nothing given up. Right again, what it counted for
/// later waits for its time, and the rest goes out.
#[test]
fn reports_wait_while_the_engine_refuses_what_the_clock_says() {
    let mut refuses = true;
    let engine = StandIn::new(move |request| match request.path() {
        SERVICES => services(),
        _ if std::mem::take(&mut refuses) => {
            let body = json!({ "reason": "clock", "message": "it is 300 s off" });
            Reply::Of(400, body.to_string())
        }
        _ => kept(batch(request).reports.len()),
    });
    let (mut reporting, _folder) = reporting(&engine);
    add_reports(&mut reporting, &["tv"]);
    assert!(matches!(reporting.talk(), Err(Error::Clock(_))));
    assert_eq!((reporting.outbox.len(), reporting.outbox.dropped), (1, 0));
    reporting.talk().unwrap();
    assert_eq!((reporting.outbox.len(), reporting.shared.status().kept), (0, 1));
}

#[test]
fn numbers_of_batches_grow_across_a_restart_even_where_the_clock_went_back() {
    let engine = StandIn::new(|request| match request.path() {
        SERVICES => services(),
        _ => kept(1),
    });
    let (mut reporting, folder) = reporting(&engine);
    // Of a clock that was years ahead.
    let ahead = now().as_nanos() / 1000 * 2;
    reporting.keeper.sequence.store(ahead, Ordering::Relaxed);
    add_reports(&mut reporting, &["tv", "vod"]);
    reporting.talk().unwrap();
    let sent: Vec<u64> = engine.asked_of(REPORTS).iter().map(|r| batch(r).sequence).collect();
    assert_eq!(sent, [ahead + 1, ahead + 2]);
    reporting.keeper.keep(&reporting.shared);
    let (_, sequence) = State::open(folder.path(), &mut Book::default(), now()).unwrap();
    assert_eq!(sequence, ahead + 2);
}

#[test]
fn one_configuration_that_cannot_be_carried_out_leaves_the_others_alone() {
    let odd = [
        ("10.0.0.0/24", json!({ "knobs": {} }), "it names no algorithm"),
        ("10.0.1.0/24", json!({ "algorithm": "vivace" }), "it has no knobs"),
        ("10.0.2.0/24", json!({ "algorithm": "newer", "knobs": {} }), "no algorithm \"newer\""),
        ("10.0.3.0/24", json!({ "algorithm": "vivace", "knobs": { "gama": 1 } }), "no such knob"),
        ("10.0.4.0/24", vivace(1e300), "gamma"),
        ("10.0.5.0/99", vivace(10.0), "is no prefix"),
        ("10.0.6.0/24", json!("vivace"), "it names no algorithm"),
        ("10.0.7.0/24", Value::Null, "it names no algorithm"),
    ];
    for (prefix, configuration, why) in odd {
        let items = [
            item(prefix, 3, &configuration),
            item("203.0.113.0/24", 4, &vivace(100.0)),
            json!({ "service": "later", "prefix": "10.0.0.0/8", "version": 1,
                    "configuration": vivace(1.0) }),
            json!({ "service": "broken", "prefix": "10.0.0.0/8", "version": 1,
                    "configuration": vivace(1.0) }),
        ];
        let engine = StandIn::new(move |request| match request.path() {
            SERVICES => services(),
            _ => configurations(&items),
        });
        let (mut reporting, folder) = reporting(&engine);
        assert!(reporting.shared.book().in_force(&key(), now()).is_none());
        reporting.talk().unwrap();
        let trouble = reporting.shared.status().trouble.clone().unwrap();
        assert!(trouble.contains(prefix) && trouble.contains(why), "{trouble}");
        assert!(trouble.contains("is left as it was"), "{trouble}");
        let mut kept = Book::default();
        State::open(folder.path(), &mut kept, now()).unwrap();
        for book in [&kept, &*reporting.shared.book()] {
            let all: Vec<_> = book.all().collect();
            let [(of, learnt)] = &all[..] else { panic!("{why}: {all:?}") };
            assert_eq!((*of, learnt.interval), (&key(), SECOND));
            let configuration = &learnt.configuration;
            assert_eq!(configuration.version, 4);
            assert_eq!(configuration.knobs, [("gamma".to_owned(), 100.0)]);
        }
    }
}

fn options(url: &str, folder: &std::path::Path) -> Options {
    let folder = folder.to_owned();
    Options { engine: url.to_owned(), token: "secret".into(), authority: None, folder }
}

/// An engine of which a part is away for as long as the number is above 0.
fn engine_with_outage(failures: Arc<AtomicUsize>, items: Vec<Value>) -> StandIn {
    StandIn::new(move |request| {
        let left = failures.load(Ordering::Relaxed);
        if left > 0 {
            failures.store(left - 1, Ordering::Relaxed);
            return refusal(503, "the store is away");
        }
        match request.path() {
            SERVICES => services(),
            REPORTS => kept(batch(request).reports.len()),
            _ if asked_for(request).wait_s > 0 => Reply::Hang,
            _ => configurations(&items),
        }
    })
}

#[test]
fn an_edge_waits_longer_between_tries_and_reports_once_the_engine_is_back() {
    let failures = Arc::new(AtomicUsize::new(4));
    let items = vec![item("203.0.113.0/24", 7, &vivace(50.0))];
    let engine = engine_with_outage(Arc::clone(&failures), items);
    let folder = tempfile::tempdir().unwrap();
    let edge = Edge::start(&options(&engine.url, folder.path())).unwrap();
    assert_eq!(edge.in_force(&key()), None, "it never waits for the network");
    wait_until("trouble", || edge.status().trouble.is_some());
    let trouble = edge.status().trouble.unwrap();
    assert!(trouble.contains("the store is away; reports wait for the engine"), "{trouble}");
    wait_until("a configuration", || edge.known(&key()).is_some());
    let force = edge.known(&key()).unwrap();
    assert_eq!((force.configuration.version, force.interval), (7, SECOND));
    assert_eq!(edge.status().aggregates, 1);
    let tries: Vec<Instant> = engine.asked_of(SERVICES).iter().map(|r| r.at).collect();
    for (pair, least_ms) in tries.windows(2).zip([200, 400, 800, 1600]) {
        let gap = pair[1] - pair[0];
        assert!(gap >= StdDuration::from_millis(least_ms), "{gap:?} is below {least_ms} ms");
    }
    assert_eq!(tries.len(), 5);
    // Two connections of one interval make one report, whose numbers are those that they saw.
    let interval = edge.interval(&edge.in_force(&key()).unwrap());
    for mbps in [4.0, 6.0] {
        let throughput = Some(Rate::from_mbps(mbps));
        edge.record(&key(), 7, interval, &Observation { throughput, ..Observation::default() });
    }
    wait_until("a report", || edge.status().kept > 0);
    let status = edge.status();
    assert_eq!((status.kept, status.waiting, status.dropped), (1, 0, 0));
    let sent = engine.asked_of(REPORTS);
    assert_eq!(sent.len(), 1);
    let bytes = STANDARD.decode(&batch(&sent[0]).reports[0]).unwrap();
    let report = Report::decode(&bytes).unwrap();
    assert_eq!((report.interval, report.summary.connections()), (interval, 2));
    let mbps = report.summary.get("throughput").unwrap().mean().unwrap();
    assert!((mbps - 5.0).abs() < 1e-5, "{mbps}");
}

#[test]
fn trouble_is_over_when_the_engine_answers_again() {
    let failures = Arc::new(AtomicUsize::new(1));
    // It has nothing about this aggregate, so there is no configuration to follow.
    let engine = engine_with_outage(failures, vec![]);
    let folder = tempfile::tempdir().unwrap();
    let edge = Edge::start(&options(&engine.url, folder.path())).unwrap();
    edge.in_force(&key());
    wait_until("trouble", || edge.status().trouble.is_some_and(|why| why.contains("away")));
    wait_until("an answer", || !engine.asked_of(CONFIGURATIONS).is_empty());
    wait_until("no trouble with the store", || {
        edge.status().trouble.is_none_or(|why| !why.contains("away"))
    });
    let trouble = edge.status().trouble.unwrap();
    assert!(trouble.contains("no configuration for tv/203.0.113.0/24 (1 in all)"), "{trouble}");
}

#[test]
fn the_last_configurations_stay_in_force_across_a_restart_without_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let mut book = Book::default();
    let (state, _) = State::open(folder.path(), &mut book, now()).unwrap();
    book.learn(key(), force(9, SECOND * 60), now());
    state.keep(&book, 5).unwrap();
    let engine = StandIn::new(|_| Reply::Close);
    let edge = Edge::start(&options(&engine.url, folder.path())).unwrap();
    let force = edge.in_force(&key()).expect("what was kept");
    assert_eq!(force.configuration.version, 9);
    wait_until("tries", || engine.asked().len() >= 3);
    assert_eq!(edge.in_force(&key()), Some(force));
    let trouble = edge.status().trouble.expect("there is no engine");
    assert!(trouble.contains("no engine answers at"), "{trouble}");
}

#[test]
fn an_edge_asks_by_the_version_that_it_has_and_takes_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut book = Book::default();
    let (state, _) = State::open(folder.path(), &mut book, now()).unwrap();
    book.learn(key(), force(9, SECOND * 60), now());
    state.keep(&book, 5).unwrap();
    let engine = StandIn::new(|request| match request.path() {
        SERVICES => services(),
        _ if asked_for(request).have[0].version == Some(9) => {
            configurations(&[item("203.0.113.0/24", 10, &vivace(77.0))])
        }
        _ => Reply::Hang,
    });
    let edge = Edge::start(&options(&engine.url, folder.path())).unwrap();
    wait_until("version 10", || {
        edge.known(&key()).is_some_and(|force| force.configuration.version == 10)
    });
    wait_until("the next question", || engine.asked_of(CONFIGURATIONS).len() == 2);
    let asked: Vec<_> = engine.asked_of(CONFIGURATIONS).iter().map(asked_for).collect();
    assert_eq!(asked[0].have[0].version, Some(9));
    assert_eq!((asked[1].have[0].version, asked[1].wait_s), (Some(10), WAIT_S));
    // The intervals are those that the engine names now, and a restart knows it.
    let mut again = Book::default();
    State::open(folder.path(), &mut again, now()).unwrap();
    let kept: Vec<_> = again.all().map(|(_, force)| force.configuration.version).collect();
    assert_eq!(kept, [10]);
    assert_eq!(edge.known(&key()).unwrap().interval, SECOND);
}

#[test]
fn an_edge_without_a_folder_or_a_certificate_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Edge::start(&options("http://127.0.0.1:1", &file)).unwrap_err();
    assert!(matches!(error, StartError::State(_)), "{error}");
    let authority = Some(file);
    let wrong = Options { authority, ..options("http://127.0.0.1:1", folder.path()) };
    let error = Edge::start(&wrong).unwrap_err();
    assert!(matches!(error, StartError::Engine(_)), "{error}");
    assert!(error.to_string().contains("no certificate"), "{error}");
}

#[test]
fn reports_settle_for_a_twentieth_of_the_interval_and_four_seconds_at_most() {
    for (interval, expected) in [(1, 50), (60, 3000), (80, 4000), (1200, 4000), (86_400, 4000)] {
        assert_eq!(settle(SECOND * interval), Duration::from_millis(expected), "{interval} s");
    }
}

fn found(host: &str) -> HostComparisons {
    HostComparisons { host: host.to_owned(), rules: Vec::new() }
}

#[test]
fn an_engine_that_knows_no_comparisons_gets_the_reports_all_the_same() {
    let engine = StandIn::new(|request| match request.path() {
        SERVICES => services(),
        REPORTS => kept(1),
        _ => Reply::Of(404, String::new()),
    });
    let (mut reporting, _folder) = reporting(&engine);
    reporting.shared.book().learn(key(), force(1, SECOND), now());
    let interval = Interval::at(now(), SECOND);
    reporting.shared.book().record(&key(), 1, interval, &Observation::default());
    let ended = reporting.shared.book().close(now() + SECOND * 3, settle);
    reporting.outbox.add(&ended);
    *reporting.shared.found() = Some(found("a"));
    reporting.talk().unwrap();
    assert_eq!(engine.asked_of("/v1/comparisons").len(), 1);
    assert_eq!(engine.asked_of(REPORTS).len(), 1);
    reporting.talk().unwrap();
    assert_eq!(engine.asked_of("/v1/comparisons").len(), 1, "it was sent");
}

#[test]
fn of_comparisons_that_wait_the_last_is_sent() {
    let mut away = true;
    let engine = StandIn::new(move |request| match request.path() {
        SERVICES => services(),
        _ if std::mem::take(&mut away) => refusal(503, "later"),
        _ => ok(&json!({ "done": true })),
    });
    let (mut reporting, _folder) = reporting(&engine);
    *reporting.shared.found() = Some(found("first"));
    assert!(matches!(reporting.talk(), Err(Error::Later(_))));
    assert_eq!(*reporting.shared.found(), Some(found("first")), "it waits");
    *reporting.shared.found() = Some(found("second"));
    reporting.talk().unwrap();
    let asked = engine.asked_of("/v1/comparisons");
    let hosts = asked
        .iter()
        .map(|request| serde_json::from_str::<HostComparisons>(&request.body).unwrap().host);
    assert_eq!(hosts.collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(*reporting.shared.found(), None);
}
