//! The API as edges, operators and strangers find it, at an engine that runs as a process of its own.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};
use trimtab_fleet_client::{
    Action, AggregateBody, Client, ConfigurationQuery, Error, Held, Hold, Listing, Name, OrderBody,
};

use common::{Process, Site, batch, now_ms, report, say, until};
use serde_json::{Value, json};

const TV: &str = "tv/203.0.113.0/24";

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn name() -> Name {
    Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() }
}

fn refused(engine: &Process, token: &str, body: &Value) -> (u16, String) {
    let bytes = body.to_string();
    let (status, answer) = say(engine, "POST", "/v1/reports", Some(token), bytes.as_bytes());
    (status, answer["reason"].as_str().unwrap_or_default().to_owned())
}

/// How often the engine says that it refused something for a reason.
fn count(engine: &Process, token: &str, reason: &str) -> u64 {
    let (_, page) = say(engine, "GET", "/metrics", Some(token), b"");
    let series = format!("trimtab_engine_refused_total{{reason=\"{reason}\"}} ");
    let page = page.as_str().expect("a page").to_owned();
    page.lines()
        .find_map(|line| line.strip_prefix(&series))
        .map_or(0, |n| n.parse().expect("a number"))
}

#[test]
fn what_is_wrong_is_refused_counted_and_changes_nothing() {
    let site =
        Site::new("[limits]\nbody = \"60KB\"\nrequests_per_second = 1000\nnew_aggregates = 100");
    let engine = site.start();
    let now = (now_ms() / 1000) as u64;
    let good = json!({ "sequence": 5, "sent_ms": now_ms(), "reports": [report(TV, now, 0, 5.0)] });
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body
    };
    let stranger = format!("trimtab_{}", "A".repeat(43));
    let refuse = |token: &str, body: &Value, status: u16, reason: &str| {
        let before = count(&engine, &site.viewer, reason);
        assert_eq!(refused(&engine, token, body), (status, reason.to_owned()));
        assert_eq!(count(&engine, &site.viewer, reason), before + 1, "{reason} is counted");
    };
    refuse(&stranger, &good, 401, "token");
    refuse("hello", &good, 401, "token");
    refuse(&site.operator, &good, 403, "role");
    refuse(
        &site.edge,
        &with("reports", json!([report("vod/203.0.113.0/24", now, 0, 5.0)])),
        403,
        "service",
    );
    refuse(
        &site.edge,
        &with("reports", json!([report("game/203.0.113.0/24", now, 0, 5.0)])),
        403,
        "service",
    );
    refuse(&site.edge, &with("sent_ms", json!(now_ms() - 3_600_000)), 400, "clock");
    refuse(&site.edge, &with("sent_ms", json!(now_ms() + 3_600_000)), 400, "clock");
    refuse(&site.edge, &with("reports", json!([report(TV, now + 1000, 0, 5.0)])), 400, "clock");
    refuse(&site.edge, &with("reports", json!(["AAAA"])), 400, "malformed");
    refuse(&site.edge, &with("reports", json!(["no base64!"])), 400, "malformed");
    refuse(&site.edge, &with("sequence", json!(-1)), 400, "malformed");
    refuse(&site.edge, &with("frob", json!(1)), 400, "malformed");
    refuse(&site.edge, &with("reports", json!(["A".repeat(90_000)])), 413, "oversized");
    let client = engine.client(&site.viewer);
    assert_eq!(client.status().unwrap().counts.aggregates, 0, "nothing of all that was kept");

    // What one report is wrong about leaves the others of its batch alone.
    let outcome = |reports: Value, sequence: u64| {
        let mut body = with("reports", reports);
        body["sequence"] = json!(sequence);
        let bytes = body.to_string();
        let (status, answer) =
            say(&engine, "POST", "/v1/reports", Some(&site.edge), bytes.as_bytes());
        assert_eq!(status, 200, "{answer}");
        (answer["kept"].clone(), answer["refused"].clone(), answer["refused_why"].to_string())
    };
    let fast = report("tv/198.51.100.0/24", now, 0, 900_000.0);
    let ancient = report("tv/198.51.100.0/24", now - 90_000, 0, 5.0);
    let good_one = report(TV, now - 1, 0, 5.0);
    let (kept, refused, why) = outcome(json!([fast, ancient, good_one]), 1);
    assert_eq!((kept, refused), (json!(1), json!(2)));
    assert!(why.contains("at most 400000 is believed"), "{why}");
    let (kept, refused, why) = outcome(json!([ancient]), 2);
    assert_eq!((kept, refused), (json!(0), json!(1)));
    assert!(why.contains("at most 86400 s are taken"), "{why}");
    // One request makes no ten thousand aggregates.
    let many: Vec<String> =
        (0..150).map(|i| report(&format!("tv/10.0.{i}.0/24"), now, 0, 5.0)).collect();
    let (kept, refused, why) = outcome(json!(many), 3);
    assert_eq!((kept, refused), (json!(99), json!(51)), "one was made before");
    assert!(why.contains("may make 100 aggregates an hour"), "{why}");
    let (kept, refused, _) = outcome(json!([many[0]]), 4);
    assert_eq!((kept, refused), (json!(0), json!(0)), "what there is is no matter of that");

    let bytes = good.to_string();
    let (status, answer) = say(&engine, "POST", "/v1/reports", Some(&site.edge), bytes.as_bytes());
    assert_eq!((status, &answer["kept"], &answer["again"]), (200, &json!(1), &json!(false)));
    let (status, answer) = say(&engine, "POST", "/v1/reports", Some(&site.edge), bytes.as_bytes());
    assert_eq!((status, &answer["again"]), (200, &json!(true)), "the same once more is no harm");
    refuse(&site.edge, &with("reports", json!([report(TV, now, 0, 900.0)])), 409, "replayed");
    refuse(&site.edge, &with("sequence", json!(4)), 409, "replayed");
    assert_eq!(client.status().unwrap().counts.edges, 1);
}

#[test]
fn every_route_of_the_description_asks_for_a_token_of_its_roles() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let (status, description) = say(&engine, "GET", "/openapi.json", None, b"");
    assert_eq!((status, &description["openapi"]), (200, &json!("3.1.0")));
    let mut seen = 0;
    for (path, operations) in description["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            seen += 1;
            let method = method.to_uppercase();
            let (status, answer) = say(&engine, &method, path, None, b"{}");
            assert_eq!((status, &answer["reason"]), (401, &json!("token")), "{method} {path}");
            let roles = operation["x-roles"].as_array().expect("roles");
            for (role, token) in
                [("edge", &site.edge), ("operator", &site.operator), ("viewer", &site.viewer)]
            {
                let (status, answer) = say(&engine, &method, path, Some(token), b"{}");
                let may = roles.contains(&json!(role));
                assert_ne!(status, 404, "{method} {path} is served: {answer}");
                assert_ne!(status, 405, "{method} {path} is served: {answer}");
                assert_eq!(status != 403, may, "{method} {path} for {role}: {status} {answer}");
                // What it answers where nothing is missing is what it says that it answers.
                if status == 200 {
                    let schema =
                        &operation["responses"]["200"]["content"]["application/json"]["schema"];
                    let form =
                        schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()).expect("a form");
                    let form = &description["components"]["schemas"][form];
                    for field in form["required"].as_array().expect("fields") {
                        assert!(
                            answer.get(field.as_str().expect("a name")).is_some(),
                            "{path}: {field}"
                        );
                    }
                }
            }
        }
    }
    assert_eq!(seen, 30);
    assert_eq!(say(&engine, "GET", "/nowhere", None, b"").0, 404);
    assert_eq!(say(&engine, "GET", "/healthz", None, b"").0, 200);
    let (status, page) = say(&engine, "GET", "/", None, b"");
    assert_eq!(status, 200);
    assert!(page.as_str().is_some_and(|page| page.contains("<title>Trimtab engine</title>")));
}

fn order(action: Action, knobs: Option<Value>, interval: Option<i64>) -> OrderBody {
    OrderBody {
        service: "tv".to_owned(),
        prefix: "203.0.113.0/24".to_owned(),
        action,
        version: None,
        knobs,
        interval,
        reason: "a test".to_owned(),
    }
}

fn gamma(body: &AggregateBody) -> Option<f64> {
    body.configuration["knobs"]["gamma"].as_f64().map(f64::round)
}

#[test]
fn an_edge_reports_and_is_told_and_operators_have_their_way() {
    let site = Site::new("");
    let engine = site.start();
    let (edge, viewer, operator) =
        (engine.client(&site.edge), engine.client(&site.viewer), engine.client(&site.operator));
    let asks = |version, wait_s| ConfigurationQuery {
        have: vec![Held { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned(), version }],
        wait_s,
    };
    let first = edge.configurations(&asks(None, 0)).unwrap().configurations.remove(0);
    assert_eq!((first.version, &first.configuration["algorithm"]), (0, &json!("vivace")));
    assert_eq!(edge.configurations(&asks(Some(0), 0)).unwrap().configurations, []);

    // Nobody tried what the first report was measured under; from then on there is something to learn from.
    let interval = (now_ms() / 1000) as u64;
    let waiting = {
        let client = engine.client(&site.edge);
        let query = asks(Some(0), 30);
        std::thread::spawn(move || client.configurations(&query).expect("an answer"))
    };
    edge.report(&batch(1, vec![report(TV, interval, 0, 5.0)])).unwrap();
    let told = waiting.join().expect("no panic").configurations.remove(0);
    assert_eq!(told.version, 1, "a waiting edge gets its answer at once");
    let mut version = told.version;
    for sequence in 2..5 {
        let interval = (now_ms() / 1000) as u64;
        edge.report(&batch(sequence, vec![report(TV, interval, version, 5.0)])).unwrap();
        let decided = until("a decision", || {
            let decisions = viewer.decisions(&name(), 10).ok()?.decisions;
            decisions.into_iter().find(|decision| decision.interval == interval as i64)
        });
        assert_eq!((decided.version, decided.reward.map(f64::round)), (version, Some(5.0)));
        assert!(
            decided.why["sentence"].as_str().is_some_and(|why| why.contains("Reward 5")),
            "{decided:?}"
        );
        version = viewer.aggregate(&name()).unwrap().version;
    }

    assert!(matches!(
        viewer.order(&order(Action::Pause, None, None)),
        Err(Error::NotAllowed { .. })
    ));
    assert_eq!(operator.order(&order(Action::Pause, None, None)).unwrap().hold, Hold::Paused);
    let pinned = operator.order(&order(Action::Pin, Some(json!({ "gamma": 77 })), None)).unwrap();
    assert_eq!((pinned.hold, gamma(&pinned)), (Hold::Pinned, Some(77.0)));
    assert!(pinned.version > version, "edges get it");
    let got = edge.configurations(&asks(Some(version), 0)).unwrap().configurations.remove(0);
    assert_eq!(got.version, pinned.version);
    let wrong = operator.order(&order(Action::Pin, Some(json!({ "gamma": 77_000 })), None));
    assert!(wrong.unwrap_err().to_string().contains("outside what the service permits"));
    let wrong = operator.order(&order(Action::Pin, Some(json!({ "gama": 7 })), None));
    assert!(wrong.unwrap_err().to_string().contains("no knob \"gama\""));
    let stale = OrderBody { version: Some(version), ..order(Action::Pause, None, None) };
    assert!(operator.order(&stale).unwrap_err().to_string().contains("has changed meanwhile"));

    // It stays pinned whatever comes, and what came is still told.
    let interval = (now_ms() / 1000) as u64;
    edge.report(&batch(9, vec![report(TV, interval, pinned.version, 8.0)])).unwrap();
    until("a decision while pinned", || {
        let decisions = viewer.decisions(&name(), 1).ok()?.decisions;
        (decisions.first()?.interval == interval as i64).then_some(())
    });
    let after = viewer.aggregate(&name()).unwrap();
    assert_eq!((after.hold, gamma(&after)), (Hold::Pinned, Some(77.0)));

    let history = viewer.decisions(&name(), 100).unwrap().decisions;
    let tried = history.iter().find(|decision| decision.version == 1).expect("the first trial");
    let back = operator.order(&order(Action::Rollback, None, Some(tried.interval))).unwrap();
    for (knob, value) in tried.configuration["knobs"].as_object().expect("knobs") {
        let (then, now) =
            (value.as_f64().unwrap(), back.configuration["knobs"][knob].as_f64().unwrap());
        assert!((then - now).abs() <= 1e-9 * then.abs(), "{knob}: {then} {now}");
    }
    let resumed = operator.order(&order(Action::Resume, None, None)).unwrap();
    assert_eq!(resumed.hold, Hold::Learning);
    let audit = viewer.audit(Some(false), 10).unwrap().lines;
    let actions: Vec<&str> = audit.iter().map(|line| line.action.as_str()).take(4).collect();
    assert_eq!(actions, ["resume", "rollback", "pin", "pause"]);
    assert!(
        audit.iter().take(4).all(|line| line.who == "kim" && line.detail.starts_with("a test"))
    );
    let found =
        viewer.aggregates(&Listing { search: "203.0".to_owned(), limit: 5, ..Listing::default() });
    assert_eq!(found.unwrap().aggregates.len(), 1);
}

#[test]
fn an_operator_pins_another_algorithm_and_edges_get_it() {
    let site = Site::new("");
    site.choose_among("incumbent = \"cubic\"\nothers = [\"bbr\", \"copa:mvfst\"]");
    let engine = site.start();
    let (edge, operator) = (engine.client(&site.edge), engine.client(&site.operator));
    let service = operator.services().unwrap().services.remove(0);
    assert_eq!((service.incumbent.as_deref(), service.others.len()), (Some("cubic"), 3));
    let safe: Vec<Option<f64>> =
        service.knobs.iter().map(|knob| knob.safe.map(f64::round)).collect();
    assert_eq!(safe, [Some(900.0), Some(20.0)]);
    edge.report(&batch(1, vec![report(TV, (now_ms() / 1000) as u64, 0, 5.0)])).unwrap();
    until("the aggregate", || operator.aggregate(&name()).ok());
    let pin = |knobs| operator.order(&order(Action::Pin, Some(knobs), None));
    let pinned = pin(json!({ "algorithm": "copa:mvfst" })).unwrap();
    let copa = json!({ "algorithm": "copa", "knobs": { "delta": 0.04, "competitive": 0.0 } });
    assert_eq!((pinned.hold, &pinned.configuration), (Hold::Pinned, &copa));
    let query = ConfigurationQuery {
        have: vec![Held {
            service: "tv".to_owned(),
            prefix: "203.0.113.0/24".to_owned(),
            version: None,
        }],
        wait_s: 0,
    };
    let got = edge.configurations(&query).unwrap().configurations.remove(0);
    assert_eq!((got.version, &got.configuration), (pinned.version, &copa));
    let wrong = pin(json!({ "algorithm": "vegas" })).unwrap_err().to_string();
    assert!(wrong.contains("there are cubic, bbr, copa:mvfst"), "{wrong}");
    // Learning goes on from there, and an earlier choice comes back.
    let cubic = pin(json!({ "algorithm": "cubic" })).unwrap();
    assert_eq!(cubic.configuration["algorithm"], "cubic");
    let resumed = operator.order(&order(Action::Resume, None, None)).unwrap();
    assert_eq!(resumed.hold, Hold::Learning);
}

#[test]
fn intervals_may_have_another_length_from_now_on_and_back() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let (edge, viewer) = (engine.client(&site.edge), engine.client(&site.viewer));
    let service = site.folder.path().join("services/tv.toml");
    let text = std::fs::read_to_string(&service).unwrap();
    let mut sequence = 0;
    // A report of the interval that it is now, by a length that its edge knows.
    let mut tell = |length_ms: i64| {
        sequence += 1;
        let interval = now_ms() / length_ms;
        let version = viewer.aggregate(&name()).map_or(0, |one| one.version);
        let mut sent = batch(sequence, vec![report(TV, interval as u64, version, 5.0)]);
        sent.interval_ms = Some(length_ms);
        let answer = edge.report(&sent).unwrap();
        assert_eq!((answer.kept, answer.late), (1, 0), "an interval of {length_ms} ms");
        interval * length_ms
    };
    let decided = |begins_ms: i64| {
        until("a decision", || {
            let all = viewer.decisions(&name(), 100).ok()?.decisions;
            all.into_iter().find(|decision| decision.begins_ms == begins_ms)
        })
    };
    decided(tell(1000));
    decided(tell(1000));
    for (old, new) in [("1s", "2s"), ("2s", "1s")] {
        let (old_ms, new_ms) = if old == "1s" { (1000, 2000) } else { (2000, 1000) };
        let queued = tell(old_ms);
        std::fs::write(&service, text.replace("\"1s\"", &format!("{new:?}"))).unwrap();
        engine.hang_up();
        until("another length", || {
            let known = viewer.status().ok()?.services;
            known.iter().any(|one| one.name == "tv" && one.interval_ms == new_ms).then_some(())
        });
        // One that was queued comes due, and so does one of an edge that does not know yet.
        decided(queued);
        std::thread::sleep(Duration::from_millis(new_ms as u64));
        decided(tell(old_ms));
        std::thread::sleep(Duration::from_millis(new_ms as u64));
        let versions: Vec<u64> = (0..3)
            .map(|_| {
                let found = decided(tell(new_ms));
                std::thread::sleep(Duration::from_millis(new_ms as u64 / 2));
                found.version
            })
            .collect();
        assert!(
            versions.windows(2).all(|pair| pair[0] < pair[1]),
            "it goes on learning: {versions:?}"
        );
    }
    let history = viewer.decisions(&name(), 100).unwrap();
    let begins: Vec<i64> = history.decisions.iter().map(|one| one.begins_ms).collect();
    assert!(begins.windows(2).all(|pair| pair[0] > pair[1]), "in order: {begins:?}");
    assert_eq!(viewer.status().unwrap().counts.waiting_reports, 0);
}

#[test]
fn who_does_not_finish_a_request_is_not_waited_for_and_health_is_told() {
    let site = Site::new("");
    let engine = site.start();
    let address = engine.url.strip_prefix("http://").expect("plain HTTP");
    let mut slow = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST /v1/reports HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{",
        site.edge
    );
    slow.write_all(head.as_bytes()).expect("it listens");
    let (status, ready) = until("that it is ready", || {
        let (status, ready) = say(&engine, "GET", "/readyz", None, b"");
        (status == 200).then_some((status, ready))
    });
    assert_eq!((status, &ready["ready"], &ready["damaged"]), (200, &json!(true), &json!(0)));
    let start = Instant::now();
    slow.set_read_timeout(Some(Duration::from_secs(40))).expect("a socket");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("did not come within 20 s"),
        "{answer}"
    );
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_revoked_token_and_a_missing_engine_are_named() {
    let site = Site::new("");
    let engine = site.start();
    let client = engine.client(&site.viewer);
    client.status().unwrap();
    trimtab_engine::revoke_token(&site.config(), "robin").unwrap();
    let refused = until("that the engine heeds it", || client.status().err());
    assert!(
        matches!(&refused, Error::Token { reason, .. } if reason.contains("revoked")),
        "{refused}"
    );
    let url = engine.url.clone();
    engine.kill();
    let gone = Client::new(&url, &site.operator, None).unwrap().status().unwrap_err();
    assert!(gone.to_string().contains("Start it with `trimtab engine run"), "{gone}");
}

#[test]
fn refusals_are_in_the_audit_once_with_a_count_and_the_audit_is_whole() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let operator = engine.client(&site.operator);
    let stranger = format!("trimtab_{}", "A".repeat(43));
    for token in [None, Some("hello"), Some(stranger.as_str())] {
        assert_eq!(say(&engine, "GET", "/v1/status", token, b"").0, 401);
    }
    let pause = order(Action::Pause, None, None);
    for _ in 0..50 {
        assert!(engine.client(&site.viewer).order(&pause).is_err());
    }
    let strange = json!({ "sequence": 1, "sent_ms": now_ms(),
        "reports": [report("vod/203.0.113.0/24", (now_ms() / 1000) as u64, 0, 5.0)] });
    assert_eq!(refused(&engine, &site.edge, &strange).0, 403);
    let lines = until("all refusals", || {
        let lines = operator.audit(Some(true), 99).ok()?.lines;
        (lines.len() == 3).then_some(lines)
    });
    let mut said: Vec<_> =
        lines.iter().map(|l| (l.who.as_str(), l.action.as_str(), l.subject.as_str())).collect();
    said.sort_unstable();
    let expected = [
        ("(127.0.0.1)", "refused", "GET /v1/status"),
        ("edge-1", "refused", "POST /v1/reports"),
        ("robin", "refused", "POST /v1/aggregate"),
    ];
    assert_eq!(said, expected);
    let of = |who: &str| lines.iter().find(|line| line.who == who).expect("a line");
    assert!(of("(127.0.0.1)").detail.starts_with("token, from 127.0.0.1: this needs a token"));
    assert!(of("robin").detail.contains("is of role viewer, this is for operator"));
    assert!(of("edge-1").detail.starts_with("service, from 127.0.0.1: "), "{:?}", of("edge-1"));
    // The tokens of this site were made before; neither kind hides the other.
    let done = operator.audit(Some(false), 99).unwrap().lines;
    assert_eq!(
        done.iter().map(|line| line.action.as_str()).collect::<Vec<_>>(),
        ["token added"; 3]
    );
    assert_eq!(operator.audit(None, 99).unwrap().lines.len(), 6);

    // An engine that ends writes what it has counted.
    let pid = engine.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    until("the engine's end", || operator.status().is_err().then_some(()));
    let check = || trimtab_engine::check_audit(&site.config(), None).expect("a store");
    let whole = until("the last refusals", || Some(check()).filter(|check| check.lines == 8));
    assert_eq!((whole.first, whole.end.line, whole.found), (1, 8, None));
    let known = trimtab_engine::check_audit(&site.config(), Some(&whole.end)).expect("a store");
    assert_eq!(known, whole);
    let engine = site.start();
    let lines = engine.client(&site.viewer).audit(Some(true), 2).unwrap().lines;
    let mut counts: Vec<_> =
        lines.iter().map(|line| (line.who.as_str(), line.subject.as_str())).collect();
    counts.sort_unstable();
    let expected = [("(127.0.0.1)", "2 more in a minute"), ("robin", "49 more in a minute")];
    assert_eq!(counts, expected);
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let site = Site::new("[limits]\nrequests_per_second = 1");
    let engine = site.start();
    let client = engine.client(&site.viewer);
    let answers: Vec<bool> = (0..40).map(|_| client.status().is_ok()).collect();
    assert!(answers[..10].iter().all(|ok| *ok), "a burst is no harm");
    assert!(answers.iter().filter(|ok| !**ok).count() >= 10, "{answers:?}");
    engine.client(&site.operator).status().expect("others are not kept waiting");
}

#[test]
fn it_speaks_tls_to_who_trusts_its_certificate() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let tls = format!("[tls]\ncertificate = \"{data}/certificate.pem\"\nkey = \"{data}/key.pem\"");
    let site = Site::new(&tls);
    let engine = site.start();
    assert!(engine.url.starts_with("https://127.0.0.1:"), "{}", engine.url);
    let authority = format!("{data}/authority.pem");
    let client = Client::new(&engine.url, &site.viewer, Some(authority.as_ref())).unwrap();
    assert_eq!(client.status().unwrap().counts.aggregates, 0);
    let distrusting = Client::new(&engine.url, &site.viewer, None).unwrap();
    assert!(matches!(distrusting.status(), Err(Error::NoEngine { .. })), "nobody vouches for it");
}

#[test]
fn a_service_of_which_nothing_would_be_learnt_is_refused_at_the_start() {
    let site = Site::new("");
    let text = std::fs::read_to_string(site.config()).unwrap().replace("20ms", "1s");
    std::fs::write(site.config(), text).unwrap();
    let error = trimtab_engine::run(&site.config()).unwrap_err().to_string();
    assert!(error.contains("tv.toml") && error.contains("nothing would be learnt"), "{error}");
    assert!(
        error.contains("its interval, 1s, is not longer than the engine's grace, 1s"),
        "{error}"
    );
}

/// Choices that are certain say nothing of others, and an edge may not ask.
#[test]
fn what_if_is_refused_where_the_log_cannot_say() {
    let site = Site::new("");
    site.choose_among("incumbent = \"bbr\"");
    let engine = site.start();
    let now = (now_ms() / 1000) as u64;
    let kept = engine.client(&site.edge).report(&batch(1, vec![report(TV, now, 0, 5.0)]));
    assert_eq!(kept.expect("kept").kept, 1);
    let viewer = engine.client(&site.viewer);
    until("a decision", || {
        viewer.decisions(&name(), 1).ok().filter(|some| !some.decisions.is_empty())
    });
    let ask = |query: &str, token: &str| {
        let (status, answer) =
            say(&engine, "GET", &format!("/v1/what-if?{query}"), Some(token), b"");
        (status, answer["message"].as_str().unwrap_or_default().to_owned())
    };
    let (status, message) = ask("service=tv&algorithm=bbr", &site.viewer);
    assert!(status == 409 && message.starts_with("no estimate for bbr"), "{status} {message}");
    for (query, said) in [
        ("service=tv&algorithm=reno", "there are vivace, bbr"),
        ("service=tv&knobs=delta%3D1", "no knob \"delta\""),
        ("service=tv", "nothing is asked for"),
    ] {
        let (status, message) = ask(query, &site.viewer);
        assert!(status == 400 && message.contains(said), "{query}: {status} {message}");
    }
    assert_eq!(ask("service=radio&algorithm=bbr", &site.viewer).0, 404);
    assert_eq!(ask("service=tv&algorithm=bbr", &site.edge).0, 403);
}

#[test]
fn reads_of_a_damaged_aggregate_answer_what_can_be_read_and_what_to_do() {
    let site = Site::new("");
    let engine = site.start();
    let kept = |sequence, interval| {
        let body = serde_json::to_string(&batch(sequence, vec![report(TV, interval, 0, 5.0)]));
        let body = body.expect("a batch is plain data");
        say(&engine, "POST", "/v1/reports", Some(&site.edge), body.as_bytes()).0
    };
    let asked = || {
        let path = "/v1/decisions?service=tv&prefix=203.0.113.0%2F24";
        say(&engine, "GET", path, Some(&site.viewer), b"")
    };
    let count = |body: &Value| body["decisions"].as_array().map_or(0, Vec::len);
    let first = (now_ms() / 1000) as u64;
    for past in 0..3 {
        assert_eq!(kept(past + 1, first - 3 + past), 200);
        until("a decision", || (count(&asked().1) as u64 == past + 1).then_some(()));
    }
    assert_eq!(asked().1["damaged"], Value::Null);
    let file = site.folder.path().join("engine.db");
    let damage = |sql: &str| {
        let db = rusqlite::Connection::open(&file).expect("the store");
        db.busy_timeout(Duration::from_secs(10)).expect("it waits");
        assert_eq!(db.execute(sql, []).expect("it may be written"), 1);
    };
    damage("UPDATE aggregates SET state = x'5a5a5a'");
    let (status, body) = asked();
    assert_eq!((status, count(&body)), (200, 3), "{body}");
    let what_to_do = "; `trimtab engine reset tv/203.0.113.0/24` makes it learn anew";
    let damage_of = |body: &Value| body["damaged"].as_str().map(str::to_owned);
    let learnt = format!("what it has learnt is nothing that the engine writes{what_to_do}");
    assert_eq!(damage_of(&body), Some(learnt.clone()));
    let one = || {
        say(
            &engine,
            "GET",
            "/v1/aggregate?service=tv&prefix=203.0.113.0%2F24",
            Some(&site.viewer),
            b"",
        )
    };
    let (status, body) = one();
    assert_eq!((status, damage_of(&body)), (200, Some(learnt.clone())), "{body}");
    assert_eq!((&body["decisions"], &body["hold"]), (&3.into(), &"learning".into()));
    let viewer = engine.client(&site.viewer);
    let both = (
        viewer.aggregate(&name()).expect("an answer"),
        viewer.decisions(&name(), 9).expect("an answer"),
    );
    let text = trimtab_engine::explain_text(&both.0, &both.1);
    assert!(text.contains(&format!("\nDAMAGED: {learnt}\n")), "{text}");
    // What needs the rest is refused for good, and not until later.
    let pause = br#"{"service":"tv","prefix":"203.0.113.0/24","action":"pause","reason":""}"#;
    let (status, body) = say(&engine, "POST", "/v1/aggregate", Some(&site.operator), pause);
    assert_eq!((status, body["reason"].as_str()), (409, Some("damaged")), "{body}");
    assert!(body["message"].as_str().is_some_and(|said| said.ends_with(what_to_do)), "{body}");
    damage("UPDATE decisions SET packed = x'5a5a5a' WHERE previous IS NULL");
    let (status, body) = asked();
    assert_eq!((status, count(&body)), (200, 2), "{body}");
    let (status, body) = say(
        &engine,
        "GET",
        "/v1/what-if?service=tv&prefix=203.0.113.0%2F24&knobs=gamma%3D100",
        Some(&site.viewer),
        b"",
    );
    assert_eq!((status, body["reason"].as_str()), (409, Some("damaged")), "{body}");
    // The answers name what keeps the engine from deciding about it.
    assert_eq!(kept(9, first), 200);
    until("it is set aside", || {
        let (_, status) = say(&engine, "GET", "/v1/status", Some(&site.viewer), b"");
        let reason = status["damaged"][0]["reason"].as_str()?;
        let said = Some(format!("{reason}{what_to_do}"));
        (damage_of(&asked().1) == said && damage_of(&one().1) == said).then_some(())
    });
    let (_, list) = say(&engine, "GET", "/v1/aggregates", Some(&site.viewer), b"");
    assert_eq!(list["aggregates"][0]["damaged"], one().1["damaged"]);
    let unknown = "/v1/decisions?service=tv&prefix=203.0.114.0%2F24";
    assert_eq!(say(&engine, "GET", unknown, Some(&site.viewer), b"").0, 404);
}

#[test]
fn a_list_has_all_other_aggregates_and_names_one_whose_row_cannot_be_read() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let prefixes = ["198.51.100.0/24", "203.0.113.0/24", "203.0.114.0/24"];
    let now = (now_ms() / 1000) as u64;
    let reports = prefixes.map(|prefix| report(&format!("tv/{prefix}"), now, 0, 5.0));
    engine.client(&site.edge).report(&batch(1, reports.to_vec())).expect("it is there");
    let viewer = engine.client(&site.viewer);
    until("decisions", || (viewer.status().ok()?.counts.decisions == 3).then_some(()));
    let damage = |sql: &str| {
        let db = rusqlite::Connection::open(site.folder.path().join("engine.db")).expect("it");
        db.busy_timeout(Duration::from_secs(10)).expect("it waits");
        assert_eq!(db.execute(sql, []).expect("it may be written"), 1);
    };
    let get = |path: &str| say(&engine, "GET", path, Some(&site.viewer), b"");
    let (_, sound) = get("/v1/aggregates");
    assert_eq!(sound["unreadable"], Value::Null, "{sound}");

    damage("UPDATE aggregates SET hold = 'resting' WHERE prefix = '203.0.113.0/24'");
    let (status, list) = get("/v1/aggregates");
    assert_eq!(status, 200, "{list}");
    let others = [&sound["aggregates"][0], &sound["aggregates"][2]];
    assert_eq!(list["aggregates"], json!(others));
    let why = "its row is nothing that the engine writes; \
               `trimtab engine reset tv/203.0.113.0/24` makes it learn anew";
    let one = json!({ "service": "tv", "prefix": "203.0.113.0/24", "damaged": why });
    assert_eq!(list["unreadable"], json!([one]));
    // The question about it alone has the same reason.
    let (status, alone) = get("/v1/aggregate?service=tv&prefix=203.0.113.0%2F24");
    assert_eq!((status, &alone["reason"]), (409, &json!("damaged")), "{alone}");
    assert_eq!(alone["message"], format!("tv 203.0.113.0/24 is damaged: {why}"));
    // A page has as many as before, and names it on one page alone.
    let (_, page) = get("/v1/aggregates?limit=1");
    assert_eq!((&page["unreadable"], &page["more"]), (&Value::Null, &json!(true)), "{page}");
    let next = "/v1/aggregates?limit=1&after_service=tv&after_prefix=198.51.100.0%2F24";
    let (_, page) = get(next);
    assert_eq!((&page["unreadable"], &page["more"]), (&json!([one]), &json!(false)), "{page}");
    assert_eq!(page["aggregates"], json!([others[1]]));

    let listing = Listing { limit: 9, ..Listing::default() };
    let text = trimtab_engine::aggregates_text(&viewer.aggregates(&listing).expect("a list"));
    assert!(text.contains(&format!("DAMAGED: tv/203.0.113.0/24: {why}\n")), "{text}");
    let (status, overview) = get("/v1/overview");
    assert_eq!((status, &overview["services"][0]["aggregates"]), (200, &json!(2)), "{overview}");
    let pause = br#"{"service":"tv","action":"pause","reason":"","dry_run":true}"#;
    let (status, body) = say(&engine, "POST", "/v1/aggregates/order", Some(&site.operator), pause);
    assert_eq!((status, &body["message"]), (409, &alone["message"]), "{body}");

    let reset = order(Action::Reset, None, None);
    engine.client(&site.operator).order(&reset).expect("it learns anew");
    assert_eq!(get("/v1/aggregates").1["unreadable"], Value::Null);
    damage("UPDATE aggregates SET prefix = x'ff' WHERE prefix = '203.0.113.0/24'");
    let (status, list) = get("/v1/aggregates");
    let said = list["unreadable"][0]["damaged"].as_str().expect("one");
    assert!(status == 200 && said.starts_with("its name is nothing that the engine"), "{list}");
    assert_eq!(list["aggregates"], json!(others));
}
