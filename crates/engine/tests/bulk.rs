//! Orders for many aggregates: carried out on all that fit, or on none.

mod common;

use common::{Process, Site, batch, now_ms, report, say, until};
use serde_json::{Value, json};
use trimtab_fleet_client::{Action, BulkBody, BulkOrder, Error, Hold, Name};

const PREFIXES: [&str; 4] =
    ["198.51.100.0/24", "2001:db8::/48", "203.0.113.0/24", "203.0.114.0/24"];

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn order(action: Action, within: Option<&str>) -> BulkOrder {
    BulkOrder {
        service: Some("tv".to_owned()),
        within: within.map(str::to_owned),
        action,
        knobs: None,
        interval: None,
        reason: "trouble at the peer".to_owned(),
        dry_run: false,
    }
}

fn pin(knobs: Value) -> BulkOrder {
    BulkOrder { knobs: Some(knobs), ..order(Action::Pin, None) }
}

fn changed(body: &BulkBody) -> Vec<&str> {
    body.changes.iter().map(|one| one.prefix.as_str()).collect()
}

/// An engine on which each of these was decided on once.
fn start(site: &Site) -> Process {
    let engine = site.start();
    let now = (now_ms() / 1000) as u64;
    let reports = PREFIXES.map(|prefix| report(&format!("tv/{prefix}"), now, 0, 5.0));
    engine.client(&site.edge).report(&batch(1, reports.to_vec())).expect("it is there");
    let viewer = engine.client(&site.viewer);
    until("decisions", || (viewer.status().ok()?.counts.decisions == 4).then_some(()));
    engine
}

#[test]
fn an_order_for_many_is_tried_first_and_then_carried_out_on_all() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = start(&site);
    let (operator, viewer) = (engine.client(&site.operator), engine.client(&site.viewer));
    let lines = || viewer.audit(Some(false), 100).expect("it answers").lines;
    let before = lines().len();
    let held = || {
        PREFIXES.map(|prefix| {
            let name = Name { service: "tv".to_owned(), prefix: prefix.to_owned() };
            viewer.aggregate(&name).expect("it is there").hold
        })
    };
    let (learning, paused) = (Hold::Learning, Hold::Paused);

    let pause = order(Action::Pause, Some("203.0.112.0/20"));
    let dry = operator.order_all(&BulkOrder { dry_run: true, ..pause.clone() }).expect("it says");
    assert_eq!((dry.done, changed(&dry), dry.unchanged), (false, PREFIXES[2..].to_vec(), 0));
    assert_eq!((dry.changes[0].before.hold, dry.changes[0].after.hold), (learning, paused));
    assert_eq!((held(), lines().len()), ([learning; 4], before), "nothing was done");

    let done = operator.order_all(&pause).expect("it is ordered");
    assert_eq!((done.done, &done.changes), (true, &dry.changes));
    assert_eq!(held(), [learning, learning, paused, paused]);
    let written: Vec<_> = lines().into_iter().take(2).map(|l| (l.action, l.subject)).collect();
    let line = |prefix: &str| ("pause".to_owned(), format!("tv {prefix}"));
    assert_eq!(written, [line(PREFIXES[3]), line(PREFIXES[2])], "a line for each");
    let again = operator.order_all(&pause).expect("it says");
    assert_eq!((again.changes.len(), again.unchanged, lines().len()), (0, 2, before + 2));

    // Of one knob that is pinned, the other stays as it is in force.
    let set = json!({ "gamma": 77.0, "startup_rate_max": 500.0 });
    assert_eq!(operator.order_all(&pin(set)).expect("it is ordered").changes.len(), 4);
    let pinned = operator.order_all(&pin(json!({ "gamma": 900.0 }))).expect("it is ordered");
    for one in &pinned.changes {
        let knob = |name: &str| one.after.configuration["knobs"][name].as_f64().map(f64::round);
        assert_eq!((knob("gamma"), knob("startup_rate_max")), (Some(900.0), Some(500.0)));
        assert_eq!(one.after.version, one.before.version + 1);
    }
    assert_eq!(held(), [Hold::Pinned; 4]);
    let resumed = operator.order_all(&order(Action::Resume, None)).expect("it is ordered");
    assert_eq!((resumed.changes.len(), held()), (4, [learning; 4]));
    let reset = operator.order_all(&order(Action::Reset, Some("2001:db8::/32"))).expect("it is");
    assert_eq!(changed(&reset), [PREFIXES[1]]);
    assert_eq!(lines()[0].action, "reset");
}

#[test]
fn an_order_that_one_aggregate_cannot_carry_out_changes_none() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = start(&site);
    let (operator, viewer) = (engine.client(&site.operator), engine.client(&site.viewer));
    // One has an interval that the others do not have.
    let now = (now_ms() / 1000) as u64;
    let alone = report(&format!("tv/{}", PREFIXES[0]), now, 0, 5.0);
    engine.client(&site.edge).report(&batch(2, vec![alone])).expect("it is there");
    let name = Name { service: "tv".to_owned(), prefix: PREFIXES[0].to_owned() };
    let interval = until("a second decision", || {
        let all = viewer.decisions(&name, 9).ok()?.decisions;
        (all.len() == 2).then(|| all[0].interval)
    });
    let lines = || viewer.audit(Some(false), 100).expect("it answers").lines.len();
    let before = lines();
    let back = BulkOrder { interval: Some(interval), ..order(Action::Rollback, None) };
    for (wanted, said) in [
        (back.clone(), "nothing is kept of interval"),
        (pin(json!({ "gamma": 1.0e9 })), "gamma"),
        (pin(json!([1])), "knobs are an object"),
        (order(Action::Pin, None), "pin needs `knobs`"),
        (order(Action::Pause, Some("nowhere")), "within"),
        (BulkOrder { service: Some("game".to_owned()), ..back.clone() }, "no service \"game\""),
    ] {
        let refused = operator.order_all(&wanted).expect_err("it is refused").to_string();
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let refused = viewer.order_all(&order(Action::Pause, None));
    assert!(matches!(refused, Err(Error::NotAllowed { .. })), "{refused:?}");
    assert_eq!(lines(), before);
    let status = viewer.status().expect("it answers").counts;
    assert_eq!((status.paused, status.pinned), (0, 0));
    // Where it fits all that there are, it is done.
    let one = BulkOrder { within: Some(PREFIXES[0].to_owned()), ..back };
    assert_eq!(changed(&operator.order_all(&one).expect("it is ordered")), [PREFIXES[0]]);
}

#[test]
fn more_aggregates_than_one_transaction_has_are_refused() {
    let limits = "[limits]\nrequests_per_second = 1000\nnew_aggregates = 2000";
    let site = Site::new(limits);
    let engine = site.start();
    let now = (now_ms() / 1000) as u64;
    let reports: Vec<String> = (0..1100)
        .map(|i| report(&format!("tv/10.{}.{}.0/24", i / 256, i % 256), now, 0, 5.0))
        .collect();
    let kept = engine.client(&site.edge).report(&batch(1, reports)).expect("it is there");
    assert_eq!(kept.kept, 1100);
    let operator = engine.client(&site.operator);
    until("decisions", || (operator.status().ok()?.counts.decisions == 1100).then_some(()));
    let refused = operator.order_all(&order(Action::Pause, None)).expect_err("too many");
    assert!(refused.to_string().contains("more than 1000 aggregates fit"), "{refused}");
    let some = operator.order_all(&order(Action::Pause, Some("10.0.0.0/15"))).expect("it is");
    assert_eq!(some.changes.len(), 512);
    let (status, _) = say(&engine, "POST", "/v1/aggregates/order", Some(&site.operator), b"{}");
    assert_eq!(status, 400);
}
