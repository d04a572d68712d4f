//! An edge with an engine that is a process of its own.

mod common;

use std::net::TcpListener;
use std::time::{Duration as StdDuration, Instant};
use trimtab_fleet_client::experiment::Effect;
use trimtab_fleet_client::{HostComparisons, MetricCompared, Name, RuleCompared};

use common::Site;
use trimtab_fleet_client::edge::{Edge, Key, Observation, Options};
use trimtab_units::Rate;

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < StdDuration::from_secs(40), "{what} did not come");
        std::thread::sleep(StdDuration::from_millis(50));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn options(site: &Site, url: &str, token: &str) -> Options {
    Options {
        engine: url.to_owned(),
        token: token.into(),
        authority: None,
        folder: site.folder.path().join("edge"),
    }
}

/// A connection that ran what is in force; its version.
fn saw(edge: &Edge, key: &Key) -> u64 {
    let force = edge.in_force(key).expect("known");
    let version = force.configuration.version;
    let throughput = Some(Rate::from_mbps(5.0));
    let seen = Observation { throughput, ..Observation::default() };
    edge.record(key, version, edge.interval(&force), &seen);
    version
}

#[test]
fn an_edge_reports_learns_and_outlives_its_engine() {
    let port = free_port();
    let site = Site::at(port, "900ms", "");
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    // The engine learns from an interval in whose greater part its configuration was in force, so the grace is shorter.
    let service = site.folder.path().join("services/tv.toml");
    let text = std::fs::read_to_string(&service).unwrap().replace("\"1s\"", "\"2s\"");
    std::fs::write(&service, text).unwrap();
    let engine = site.start();
    let url = engine.url.clone();
    let edge = Edge::start(&options(&site, &url, &site.edge)).unwrap();
    let first = wait_for("a configuration", || edge.in_force(&key));
    assert_eq!(
        (first.configuration.version, first.configuration.algorithm.as_str()),
        (0, "vivace")
    );

    // Reports make the engine learn, and what it learns comes back.
    wait_for("another configuration", || {
        for _ in 0..20 {
            saw(&edge, &key);
        }
        (edge.in_force(&key).unwrap().configuration.version >= 2).then_some(())
    });
    let viewer = engine.client(&site.viewer);
    let name = Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() };
    let rewards = || {
        let decisions = viewer.decisions(&name, 20).expect("decisions").decisions;
        decisions.into_iter().filter_map(|decision| decision.reward).collect::<Vec<f64>>()
    };
    let learnt = wait_for("a reward", || {
        for _ in 0..20 {
            saw(&edge, &key);
        }
        Some(rewards()).filter(|rewards| !rewards.is_empty())
    });
    assert!(learnt.iter().all(|mbps| (mbps - 5.0).abs() < 0.05), "{learnt:?}");
    let status = edge.status();
    assert!(status.kept >= 1 && status.late == 0, "{status:?}");
    assert_eq!((status.aggregates, status.dropped), (1, 0), "{status:?}");

    // Without the engine the last configuration stays, and reports wait.
    engine.kill();
    let last = edge.in_force(&key).unwrap();
    let trouble = wait_for("the message", || {
        assert_eq!(saw(&edge, &key), last.configuration.version);
        edge.status().trouble.filter(|_| edge.status().waiting >= 2)
    });
    assert!(trouble.contains("no engine answers at"), "{trouble}");
    let kept = edge.status().kept;

    // It is back: what waited gets there, in time or late by its count, and there is something new again.
    let engine = site.start();
    assert_eq!(engine.url, url);
    wait_for("what waited", || (edge.status().waiting == 0).then_some(()));
    let status = edge.status();
    assert!(status.kept + status.late >= kept + 2 && status.dropped == 0, "{status:?}");
    wait_for("another configuration", || {
        saw(&edge, &key);
        (edge.in_force(&key)?.configuration.version > last.configuration.version).then_some(())
    });
    let last = edge.in_force(&key).unwrap();

    // So does what is started again without any engine.
    drop(edge);
    engine.kill();
    let edge = Edge::start(&options(&site, &url, &site.edge)).unwrap();
    let kept = edge.in_force(&key).expect("it was kept");
    assert!(kept.configuration.version >= last.configuration.version, "{kept:?} {last:?}");
}

#[test]
fn who_may_not_speak_is_told_what_to_do() {
    let site = Site::at(0, "800ms", "");
    let engine = site.start();
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    let other: Key = "vod/203.0.113.0/24".parse().unwrap();
    for (token, key, what) in [
        ("wrong", &key, "refuses this token"),
        (&site.edge, &other, "may not speak for the service"),
    ] {
        let edge = Edge::start(&options(&site, &engine.url, token)).unwrap();
        assert_eq!(edge.in_force(key), None);
        let trouble = wait_for("the trouble", || edge.status().trouble);
        assert!(trouble.contains(what), "{trouble}");
    }
}

#[test]
fn what_a_host_finds_by_comparing_its_rules_is_there_for_viewers() {
    let site = Site::at(0, "800ms", "");
    let engine = site.start();
    let edge = Edge::start(&options(&site, &engine.url, &site.edge)).unwrap();
    let found = |steered: f64| HostComparisons {
        host: "edge-7".to_owned(),
        rules: vec![RuleCompared {
            rule: "web".to_owned(),
            control: "former".to_owned(),
            over: false,
            networks: 12,
            metrics: vec![MetricCompared {
                metric: "score".to_owned(),
                steered,
                control: 2.0,
                change: Some(Effect { value: 0.1, low: 0.05, high: 0.15 }),
                difference: None,
                pairs: 24,
            }],
        }],
    };
    let viewer = engine.client(&site.viewer);
    assert_eq!(viewer.comparisons().unwrap().comparisons, []);
    for steered in [2.1, 2.2] {
        edge.compared(found(steered));
        let known = wait_for("the comparison", || {
            let known = viewer.comparisons().unwrap().comparisons;
            let is_new = |of: &RuleCompared| of.metrics[0].steered == steered;
            known.first().is_some_and(|one| is_new(&one.found)).then_some(known)
        });
        // The last of the host is in place of what it sent before.
        let [one] = &known[..] else { panic!("{known:?}") };
        assert_eq!((one.host.as_str(), &one.found), ("edge-7", &found(steered).rules[0]));
    }
    let text = trimtab_engine::comparisons_text(&viewer.comparisons().unwrap());
    let cells: Vec<&str> = text.lines().nth(1).expect("a row").split_whitespace().collect();
    let expected = "edge-7 web former 12 running score 2.2000 2.0000 +10.0% (+5.0 to +15.0%)";
    assert_eq!(cells[..12].join(" "), expected, "{text}");
    assert_eq!(edge.status().trouble, None);
}
