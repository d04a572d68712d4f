use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use ureq::Agent;

use super::*;
use crate::identity::ANSWER_WITHIN;
use crate::secret::Credential;
use crate::stand_in::{Reply, StandIn, ok, refusal};
use crate::{Action, EndSafe, NewSafe, RolloutAction};

/// What a client makes of one answer of its engine.
fn told(answer: impl Fn() -> Reply + Send + 'static) -> Error {
    let engine = StandIn::new(move |_| answer());
    Client::new(&engine.url, "secret", None).unwrap().services().unwrap_err()
}

/// A client that waits for an answer no longer than this.
fn impatient(url: &str, within: Duration) -> Client {
    let agent = Agent::config_builder().http_status_as_error(false).timeout_global(Some(within));
    let identity = Identity::Token(Credential::text(""), agent.build().into());
    Client { url: url.to_owned(), way: Way::Sockets(identity) }
}

fn name() -> Name {
    Name { service: "tv".to_owned(), prefix: "2001:db8::/32".to_owned() }
}

#[test]
fn each_question_goes_to_its_own_path() {
    let engine = StandIn::new(|_| refusal(418, "noted"));
    let client = Client::new(&engine.url, "secret", None).unwrap();
    let stop = StopExperiment {
        service: "tv".to_owned(),
        name: "x".to_owned(),
        reason: "over".to_owned(),
    };
    let hold = RolloutOrder {
        service: "tv".to_owned(),
        name: "r".to_owned(),
        action: RolloutAction::Hold,
        reason: String::new(),
    };
    let _ = client.status();
    let _ = client.services();
    let _ = client.aggregate(&name());
    let _ = client.decisions(&name(), 7);
    let knobs = vec!["gamma=9".to_owned(), "omega=2".to_owned()];
    let _ = client.what_if(&WhatIfAsked {
        service: "tv".to_owned(),
        prefix: Some("203.0.113.0/24".to_owned()),
        knobs,
        last: 9,
        ..WhatIfAsked::default()
    });
    let (service, algorithm) = ("tv".to_owned(), Some("bbr".to_owned()));
    let _ = client.what_if(&WhatIfAsked { service, algorithm, last: 9, ..WhatIfAsked::default() });
    let _ = client.fit_surrogate("tv", 9);
    let _ = client.audit(None, 9);
    let _ = client.audit(Some(true), 9);
    let make_safe = NewSafe { services: Vec::new(), why: "x".to_owned() };
    let _ = client.make_safe(&make_safe);
    let end_safe = EndSafe { services: vec!["tv".to_owned()], reason: "y".to_owned() };
    let _ = client.end_safe(&end_safe);
    let _ = client.experiments(None);
    let _ = client.experiments(Some("tv"));
    let _ = client.experiment("tv", "x");
    let _ = client.stop_experiment(&stop);
    let _ = client.rollouts(None);
    let _ = client.rollout("tv", "r");
    let _ = client.order_rollout(&hold);
    let asked = engine.asked();
    let lines: Vec<String> = asked
        .iter()
        .map(|request| format!("{} {} {}", request.method, request.target, request.body))
        .collect();
    let prefix = "2001%3Adb8%3A%3A%2F32";
    assert_eq!(
        lines,
        [
            "GET /v1/status ".to_owned(),
            "GET /v1/services ".to_owned(),
            format!("GET /v1/aggregate?service=tv&prefix={prefix} "),
            format!("GET /v1/decisions?service=tv&prefix={prefix}&limit=7 "),
            "GET /v1/what-if?service=tv&prefix=203.0.113.0%2F24&knobs=gamma%3D9%2Comega%3D2&last=9 "
                .to_owned(),
            "GET /v1/what-if?service=tv&algorithm=bbr&last=9 ".to_owned(),
            "GET /v1/fit-surrogate?service=tv&last=9 ".to_owned(),
            "GET /v1/audit?limit=9 ".to_owned(),
            "GET /v1/audit?limit=9&refused=true ".to_owned(),
            "POST /v1/safe {\"services\":[],\"why\":\"x\"}".to_owned(),
            "POST /v1/safe/end {\"services\":[\"tv\"],\"reason\":\"y\"}".to_owned(),
            "GET /v1/experiments ".to_owned(),
            "GET /v1/experiments?service=tv ".to_owned(),
            "GET /v1/experiment?service=tv&name=x ".to_owned(),
            "POST /v1/experiment/stop {\"service\":\"tv\",\"name\":\"x\",\"reason\":\"over\"}"
                .to_owned(),
            "GET /v1/rollouts ".to_owned(),
            "GET /v1/rollout?service=tv&name=r ".to_owned(),
            "POST /v1/rollout/order {\"service\":\"tv\",\"name\":\"r\",\"action\":\"hold\",\
             \"reason\":\"\"}"
                .to_owned(),
        ]
    );
    assert!(asked.iter().all(|request| request.authorization == "Bearer secret"), "{asked:?}");
}

#[test]
fn an_order_carries_the_version_that_the_operator_saw() {
    let engine = StandIn::new(|_| {
        ok(&json!({
            "service": "tv", "prefix": "203.0.113.0/24", "hold": "pinned", "version": 8,
            "configuration": { "gamma": 100.0 }, "changed_ms": 5, "closed": null,
            "reward": -2.5, "decisions": 3,
        }))
    });
    let client = Client::new(&engine.url, "secret", None).unwrap();
    let order = OrderBody {
        service: "tv".to_owned(),
        prefix: "203.0.113.0/24".to_owned(),
        action: Action::Pin,
        version: Some(7),
        knobs: Some(json!({ "gamma": 100 })),
        interval: None,
        reason: "a test".to_owned(),
    };
    let after = client.order(&order).unwrap();
    assert_eq!((after.hold, after.version), (Hold::Pinned, 8));
    assert_eq!((after.closed, after.reward), (None, Some(-2.5)));
    let sent: Value = serde_json::from_str(&engine.asked()[0].body).unwrap();
    assert_eq!((&sent["version"], &sent["action"]), (&json!(7), &json!("pin")));
    assert_eq!(sent["knobs"], json!({ "gamma": 100 }));
}

#[test]
fn each_status_has_its_error_with_the_words_of_the_engine() {
    for status in [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503] {
        let error = told(move || refusal(status, "the words of the engine"));
        let is_right = match status {
            401 => matches!(error, Error::Token { .. }),
            403 => matches!(error, Error::NotAllowed { .. }),
            408 | 429 | 500 | 503 => matches!(error, Error::Later(_)),
            _ => matches!(error, Error::Refused(_)),
        };
        assert!(is_right, "{status}: {error:?}");
        assert!(error.to_string().contains("the words of the engine"), "{status}: {error}");
    }
    let error = told(|| refusal(401, "unknown")).to_string();
    assert!(error.contains("http://127.0.0.1:") && error.contains("token add"), "{error}");
    // A proxy in between answers in another form.
    let error = told(|| Reply::Of(502, "<html>Bad Gateway</html>".to_owned()));
    assert!(matches!(&error, Error::Later(why) if why.contains("502")), "{error:?}");
    let clock = json!({ "reason": "clock", "message": "it is 300 s off" }).to_string();
    let error = told(move || Reply::Of(400, clock.clone()));
    assert!(matches!(&error, Error::Clock(why) if why.contains("300 s off")), "{error:?}");
}

#[test]
fn an_answer_that_is_none_is_an_error_and_names_the_engine() {
    let head = |text: &str| format!("HTTP/1.1 200 OK\r\n{text}\r\n\r\n").into_bytes();
    let short = [head("Content-Length: 400"), b"{\"services\":[".to_vec()].concat();
    let chunk = [head("Transfer-Encoding: chunked"), b"zz\r\n{}\r\n0\r\n\r\n".to_vec()].concat();
    let gzip = [head("Content-Encoding: gzip\r\nContent-Length: 4"), b"none".to_vec()].concat();
    for (what, bytes) in [
        ("no HTTP", b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        ("bytes", vec![0xff; 3000]),
        ("a part of a head", b"HTTP/1.1 200 OK\r\nContent-Le".to_vec()),
        ("an early end", short),
        ("a chunk without a length", chunk),
        ("compression that is none", gzip),
        ("no body", head("Content-Length: 0")),
        ("another page", [head("Content-Length: 6"), b"<html>".to_vec()].concat()),
        ("another form", [head("Content-Length: 12"), b"{\"other\":[]}".to_vec()].concat()),
        ("half a body", [head("Content-Length: 2"), b"{\"".to_vec()].concat()),
        ("nothing", Vec::new()),
    ] {
        let error = told(move || Reply::Raw(bytes.clone()));
        let Error::NoEngine { url, reason } = &error else { panic!("{what}: {error:?}") };
        assert!(url.starts_with("http://127.0.0.1:") && !reason.is_empty(), "{what}: {error}");
        assert!(error.to_string().contains("trimtab engine run"), "{what}: {error}");
    }
    assert!(matches!(told(|| Reply::Close), Error::NoEngine { .. }));
}

#[test]
fn nobody_at_the_port_is_an_error_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let begin = Instant::now();
    let error = Client::new(&url, "secret", None).unwrap().status().unwrap_err();
    assert!(matches!(&error, Error::NoEngine { url: of, .. } if *of == url), "{error:?}");
    assert!(begin.elapsed() < ANSWER_WITHIN / 3, "{:?}", begin.elapsed());
}

#[test]
fn an_engine_that_hangs_is_given_up() {
    let engine = StandIn::new(|_| Reply::Hang);
    let client = impatient(&engine.url, Duration::from_millis(300));
    let begin = Instant::now();
    let error = client.services().unwrap_err();
    assert!(matches!(error, Error::NoEngine { .. }), "{error:?}");
    let took = begin.elapsed();
    assert!((Duration::from_millis(300)..Duration::from_secs(20)).contains(&took), "{took:?}");
    // The engine may let a question wait for a minute, and the client waits for longer.
    assert!(ANSWER_WITHIN > Duration::from_secs(60));
}

#[test]
fn a_body_without_an_end_is_given_up() {
    let engine = StandIn::new(|_| Reply::Endless);
    let error = Client::new(&engine.url, "secret", None).unwrap().services().unwrap_err();
    let Error::NoEngine { reason, .. } = &error else { panic!("{error:?}") };
    assert!(reason.contains("large") || reason.contains("limit"), "{reason}");
}

/// The aggregates of a service that has `count` of them, in pages of `page` at most.
fn aggregates(count: usize, page: usize) -> StandIn {
    let prefix = |i: usize| format!("10.{}.{}.0/24", i / 256, i % 256);
    let place = move |of: &str| (0..count).position(|i| prefix(i) == of);
    StandIn::new(move |request| {
        let after = request.value("after_prefix").map_or(0, |last| place(&last).unwrap() + 1);
        let limit = request.value("limit").unwrap().parse::<usize>().unwrap().min(page);
        let end = (after + limit).min(count);
        let one = |i| {
            json!({
                "service": "tv", "prefix": prefix(i), "hold": "learning", "version": i,
                "configuration": {}, "changed_ms": 0, "closed": null, "reward": null,
                "decisions": 0,
            })
        };
        let all: Vec<Value> = (after..end).map(one).collect();
        ok(&json!({ "aggregates": all, "more": end < count }))
    })
}

#[test]
fn a_listing_has_each_aggregate_once_whatever_the_pages() {
    for (count, page, limit) in
        [(0, 5, 10), (5, 5, 10), (7, 3, 100), (7, 3, 6), (7, 1, 7), (12, 1000, 5), (9, 4, 0)]
    {
        let engine = aggregates(count, page);
        let client = Client::new(&engine.url, "secret", None).unwrap();
        let listing = Listing { limit, ..Listing::default() };
        let body = client.aggregates(&listing).unwrap();
        let versions: Vec<u64> = body.aggregates.iter().map(|one| one.version).collect();
        let expected: Vec<u64> = (0..count.min(limit) as u64).collect();
        let case = format!("{count} by {page}, at most {limit}");
        assert_eq!(versions, expected, "{case}");
        // Nobody has asked where the limit is 0.
        assert_eq!(body.more, count > limit || limit == 0, "{case}");
        for request in engine.asked() {
            let asked: usize = request.value("limit").unwrap().parse().unwrap();
            assert!((1..=limit.min(1000)).contains(&asked), "{case}: {asked}");
        }
    }
    let engine = aggregates(1500, 1000);
    let client = Client::new(&engine.url, "secret", None).unwrap();
    let body = client.aggregates(&Listing { limit: usize::MAX, ..Listing::default() }).unwrap();
    assert_eq!((body.aggregates.len(), engine.asked().len()), (1500, 2));
}

#[test]
fn a_listing_ends_where_an_engine_promises_more_and_sends_none() {
    let mut questions = 0;
    let engine = StandIn::new(move |_| {
        questions += 1;
        assert!(questions < 10, "it asks without an end");
        ok(&json!({ "aggregates": [], "more": true }))
    });
    let client = Client::new(&engine.url, "secret", None).unwrap();
    let body = client.aggregates(&Listing { limit: 5, ..Listing::default() }).unwrap();
    assert_eq!((body.aggregates.len(), engine.asked().len()), (0, 1));
}

#[test]
fn what_is_searched_for_arrives_as_it_was_written() {
    let engine = aggregates(2, 1);
    let client = Client::new(&engine.url, "secret", None).unwrap();
    let listing = Listing {
        search: "a b&limit=1+%20 ä".to_owned(),
        service: Some("tv".to_owned()),
        hold: Some(Hold::Paused),
        limit: 2,
    };
    client.aggregates(&listing).unwrap();
    let asked = engine.asked();
    assert_eq!(asked.len(), 2);
    for request in &asked {
        assert_eq!(request.value("q").as_deref(), Some("a b&limit=1+%20 ä"));
        assert_eq!(request.value("service").as_deref(), Some("tv"));
        assert_eq!(request.value("hold").as_deref(), Some("paused"));
    }
    assert_eq!(asked[1].value("after_service").as_deref(), Some("tv"));
    assert_eq!(asked[1].value("after_prefix").as_deref(), Some("10.0.0.0/24"));
}

#[test]
fn a_token_from_a_file_and_a_url_with_a_slash_are_taken_as_they_are_meant() {
    let engine = StandIn::new(|_| ok(&json!({ "services": [] })));
    let client = Client::new(&format!("{}//", engine.url), " secret\n", None).unwrap();
    assert_eq!(client.url(), engine.url);
    client.services().unwrap();
    let asked = engine.asked();
    assert_eq!((&*asked[0].target, &*asked[0].authorization), ("/v1/services", "Bearer secret"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edge.token");
    std::fs::write(&file, "first\n").unwrap();
    let client = Client::new(&engine.url, file.clone(), None).unwrap();
    client.services().unwrap();
    std::fs::write(&file, "the second\n").unwrap();
    client.services().unwrap();
    let with: Vec<String> = engine.asked().into_iter().map(|one| one.authorization).collect();
    assert_eq!(with[1..], ["Bearer first", "Bearer the second"]);
    // What cannot stand in a header, and what is no URL, are errors and no panics.
    for (url, token) in [(&*engine.url, "two\nlines"), ("engine.example", "x"), ("", "x")] {
        let error = Client::new(url, token, None).unwrap().services().unwrap_err();
        assert!(matches!(error, Error::NoEngine { .. }), "{url} {token}: {error:?}");
    }
}

#[test]
fn a_file_without_a_certificate_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pem");
    let error = Client::new("https://x", "", Some(&missing)).err().unwrap().to_string();
    assert!(error.contains("missing.pem") && error.contains("No such file"), "{error}");
    let key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAA\n-----END PRIVATE KEY-----\n";
    for (what, text) in [
        ("nothing", ""),
        ("no PEM", "certificate, please"),
        ("a key", key),
        ("no base64", "-----BEGIN CERTIFICATE-----\n?!\n-----END CERTIFICATE-----\n"),
        ("no end", "-----BEGIN CERTIFICATE-----\nAAAA\n"),
    ] {
        let path = folder.path().join("authority.pem");
        std::fs::write(&path, text).unwrap();
        let error = Client::new("https://x", "", Some(&path)).err().expect(what).to_string();
        assert!(error.contains("authority.pem") && error.contains("in PEM"), "{what}: {error}");
    }
}
