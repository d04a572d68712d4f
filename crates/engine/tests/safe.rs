//! Orders that keep services on their safe configurations: in force at once on every engine, through
//! restarts, and until they end.

mod common;

use std::time::{Duration, Instant};

use common::{Process, Site, batch, now_ms, report, say, until};
use serde_json::{Value, json};
use trimtab_fleet_client::experiment::{Arm, Phase};
use trimtab_fleet_client::{
    Action, AggregateBody, ConfigurationQuery, EndSafe, Error, Held, Hold, Name, NewRollout,
    NewSafe, OrderBody, SafeOrder,
};

const TV: &str = "tv/203.0.113.0/24";

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn name() -> Name {
    Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() }
}

fn rollout() -> NewRollout {
    NewRollout {
        service: "tv".to_owned(),
        name: "gamma-100".to_owned(),
        from: None,
        to: Arm::Knobs([("gamma".to_owned(), 100.0)].into()),
        stages: Some(vec![0.5, 1.0]),
        intervals: Some(1),
        wash_out: Some(0),
        metric: "reward".to_owned(),
        guards: vec!["mean(throughput) > -50%".to_owned()],
        seed: Some(1),
        reason: String::new(),
    }
}

/// What an edge asks that serves one aggregate.
fn asks(version: Option<u64>, wait_s: u32) -> ConfigurationQuery {
    ConfigurationQuery {
        have: vec![Held { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned(), version }],
        wait_s,
    }
}

fn safe(services: &[&str], why: &str) -> NewSafe {
    let services = services.iter().map(|name| (*name).to_owned()).collect();
    NewSafe { services, why: why.to_owned() }
}

fn end(services: &[&str]) -> EndSafe {
    let services = services.iter().map(|name| (*name).to_owned()).collect();
    EndSafe { services, reason: "over".to_owned() }
}

#[test]
fn everything_safe_is_in_force_at_once_for_all_engines_outlives_them_and_ends() {
    let Some(servers) = trimtab_servers::Servers::for_tests() else { return };
    let settings = (0, "20ms", "[limits]\nrequests_per_second = 1000");
    let site = Site::with_store(settings, &servers.configuration(true));
    let (engine, other) = (site.start(), site.start());
    let (edge, viewer, operator) =
        (engine.client(&site.edge), engine.client(&site.viewer), engine.client(&site.operator));
    let first = edge.configurations(&asks(None, 0)).unwrap().configurations.remove(0);
    edge.report(&batch(1, vec![report(TV, (now_ms() / 1000) as u64, 0, 5.0)])).unwrap();
    until("the aggregate", || viewer.aggregate(&name()).ok());
    let pin = OrderBody {
        service: "tv".to_owned(),
        prefix: "203.0.113.0/24".to_owned(),
        action: Action::Pin,
        version: None,
        knobs: Some(json!({ "gamma": 77 })),
        interval: None,
        reason: String::new(),
    };
    let pinned = operator.order(&pin).unwrap();
    let waiting = [&engine, &other].map(|engine| {
        let (client, query) = (engine.client(&site.edge), asks(Some(pinned.version), 60));
        std::thread::spawn(move || {
            let told = client.configurations(&query).expect("an answer").configurations;
            (told, Instant::now())
        })
    });
    std::thread::sleep(Duration::from_millis(300));

    assert!(matches!(viewer.make_safe(&safe(&[], "x")), Err(Error::NotAllowed { .. })));
    assert!(operator.make_safe(&safe(&[], " ")).unwrap_err().to_string().contains("say `why`"));
    let stray = operator.make_safe(&safe(&["game"], "x")).unwrap_err().to_string();
    assert!(stray.contains("no service \"game\""), "{stray}");
    operator.make_safe(&safe(&["vod"], "of vod alone")).unwrap();
    assert!(!viewer.aggregate(&name()).unwrap().safe, "another service is not this one");
    let begun = Instant::now();
    let orders = operator.make_safe(&safe(&[], "trouble at the peer")).unwrap().orders;
    assert_eq!(orders.len(), 2);
    for waits in waiting {
        let (told, at) = waits.join().expect("no panic");
        assert_eq!((told[0].version, &told[0].configuration), (0, &first.configuration));
        assert!(at - begun < Duration::from_secs(20), "long before the wait is over");
    }
    let shown = viewer.aggregate(&name()).unwrap();
    assert_eq!((shown.safe, shown.hold, shown.version), (true, Hold::Pinned, pinned.version));
    assert_eq!(shown.configuration, first.configuration);
    engine.kill();
    other.kill();
    it_goes_on_and_ends(&site, &orders, (&first.configuration, &pinned));
}

/// Nothing is learnt meanwhile, also by an engine that comes later, and nothing begins. One order ends it.
fn it_goes_on_and_ends(
    site: &Site,
    orders: &[SafeOrder],
    (first, pinned): (&Value, &AggregateBody),
) {
    let engine = site.start();
    let (edge, viewer, operator) =
        (engine.client(&site.edge), engine.client(&site.viewer), engine.client(&site.operator));
    assert_eq!(viewer.status().unwrap().safe, orders);
    assert_eq!((orders[1].service.as_deref(), orders[1].who.as_str()), (None, "kim"));
    let interval = (now_ms() / 1000) as u64;
    edge.report(&batch(2, vec![report(TV, interval, 0, 9.0)])).unwrap();
    let decided = until("a decision", || {
        let decisions = viewer.decisions(&name(), 10).ok()?.decisions;
        decisions.into_iter().find(|decision| decision.interval == interval as i64)
    });
    assert_eq!((decided.version, &decided.configuration), (0, first));
    let why = decided.why["sentence"].as_str().unwrap_or_default();
    assert!(why.contains("by order of kim: trouble at the peer"), "{why}");
    assert_eq!(edge.configurations(&asks(Some(0), 0)).unwrap().configurations, []);
    let refused = operator.begin_rollout(&rollout()).unwrap_err().to_string();
    assert!(
        refused.contains("by order of kim, trouble at the peer: end that order first"),
        "{refused}"
    );
    let (_, page) = say(&engine, "GET", "/metrics", Some(&site.viewer), b"");
    assert!(page.as_str().expect("a page").contains("trimtab_engine_safe_services 2\n"), "{page}");

    let refused = operator.end_safe(&end(&["tv"])).unwrap_err().to_string();
    assert!(refused.contains("end it for all"), "{refused}");
    assert_eq!(operator.end_safe(&end(&[])).unwrap().orders, []);
    let back = edge.configurations(&asks(Some(0), 0)).unwrap().configurations.remove(0);
    assert_eq!((back.version, &back.configuration), (pinned.version, &pinned.configuration));
    assert!(operator.end_safe(&end(&[])).is_err(), "there is none any more");
    let lines = viewer.audit(Some(false), 3).unwrap().lines;
    let lines: Vec<_> =
        lines.iter().map(|l| (l.action.as_str(), l.subject.as_str(), l.detail.as_str())).collect();
    let expected = [
        ("safe ended", "every service", "over"),
        ("safe", "every service", "trouble at the peer"),
        ("safe", "vod", "of vod alone"),
    ];
    assert_eq!(lines, expected);
}

/// Reports of a second for four aggregates, under the versions that an edge gets.
fn serve(engine: &Process, site: &Site, second: u64) -> Vec<Value> {
    let edge = engine.client(&site.edge);
    let prefixes = (0..4).map(|i| format!("10.0.{i}.0/24"));
    let have: Vec<Held> =
        prefixes.map(|prefix| Held { service: "tv".to_owned(), prefix, version: None }).collect();
    let got = edge.configurations(&ConfigurationQuery { have, wait_s: 0 }).expect("an answer");
    let now = (now_ms() / 1000) as u64;
    let reports = got
        .configurations
        .iter()
        .map(|one| report(&format!("{}/{}", one.service, one.prefix), now, one.version, 5.0));
    edge.report(&batch(second, reports.collect())).expect("it is there");
    std::thread::sleep(Duration::from_secs(1));
    got.configurations.into_iter().map(|one| one.configuration).collect()
}

#[test]
fn a_rollout_stands_still_meanwhile_and_changes_nothing() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let operator = engine.client(&site.operator);
    let mut seconds = 1_u64..;
    let mut serve = || serve(&engine, &site, seconds.next().expect("there are many"));
    let first = serve();
    until("that all are decided on", || {
        serve();
        (operator.status().ok()?.counts.decisions >= 8).then_some(())
    });
    operator.begin_rollout(&rollout()).unwrap();
    operator.make_safe(&safe(&["tv"], "trouble")).unwrap();
    let shown = || operator.rollout("tv", "gamma-100").expect("it is there");
    let before = shown();
    for _ in 0..4 {
        assert_eq!(serve(), first, "the safe one is in force");
    }
    let after = shown();
    assert_eq!((after.phase, after.stage, after.why), (before.phase, before.stage, before.why));
    assert_eq!((after.phase, after.stage), (Phase::Running, 0));
    operator.end_safe(&end(&["tv"])).unwrap();
    // It goes on, or back, as what it lacks then lets it.
    until("that the rollout goes on", || {
        serve();
        let now = shown();
        ((now.phase, now.stage) != (Phase::Running, 0)).then_some(())
    });
}
