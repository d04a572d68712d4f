//! Tokens that expire and are rotated, while an edge and the engine run.

mod common;

use common::{Process, Site, say, until};
use serde_json::json;
use trimtab_engine::{add_token, list_tokens, rotate_token};
use trimtab_fleet_client::edge::{Edge, Key, Options};
use trimtab_fleet_client::{Error, NewToken, Role, RotateToken, Secret, Validity};

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn rotate(name: &str, overlap: &str) -> RotateToken {
    let overlap = overlap.parse().expect("a time");
    RotateToken { name: name.to_owned(), expires: Validity::default(), overlap }
}

fn metric(engine: &Process, token: &str, series: &str) -> Option<String> {
    let (_, page) = say(engine, "GET", "/metrics", Some(token), b"");
    page.as_str()?.lines().find_map(|line| Some(line.strip_prefix(series)?.trim().to_owned()))
}

#[test]
fn an_edge_takes_another_secret_of_its_token_without_an_outage() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let file = site.folder.path().join("edge.token");
    std::fs::write(&file, &site.edge).unwrap();
    let edge = Edge::start(&Options {
        engine: engine.url.clone(),
        token: Secret::File(file.clone()),
        authority: None,
        folder: site.folder.path().join("edge"),
    })
    .unwrap();
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    until("a configuration", || edge.in_force(&key));
    let secret = rotate_token(&site.config(), &rotate("edge-1", "1h")).unwrap();
    // Both are valid, and the edge gets on with either.
    for token in [&site.edge, &secret] {
        until("that it is taken", || engine.client(token).services().ok());
    }
    assert_eq!(edge.status().trouble, None);
    let next = site.folder.path().join("next.token");
    std::fs::write(&next, format!("{secret}\n")).unwrap();
    std::fs::rename(&next, &file).unwrap();
    // From then on the one before may expire.
    let last = rotate_token(&site.config(), &rotate("edge-1", "10s")).unwrap();
    until("that it is taken", || engine.client(&last).services().ok());
    std::fs::write(&file, &last).unwrap();
    let gone = until("that the first one is none", || engine.client(&site.edge).services().err());
    assert!(gone.to_string().contains("unknown or revoked"), "{gone}");
    let expired =
        until("that the second one has expired", || engine.client(&secret).services().err());
    assert!(matches!(expired, Error::Expired { .. }), "{expired:?}");
    assert!(expired.to_string().contains("was replaced by another, and expired on"), "{expired}");
    let other: Key = "tv/198.51.100.0/24".parse().unwrap();
    until("another configuration", || edge.in_force(&other));
    assert_eq!(edge.status().trouble, None);
    // Who tries an expired one is in the audit by name.
    let operator = engine.client(&site.operator);
    until("a line of the audit", || {
        let lines = operator.audit(Some(true), 9).ok()?.lines;
        let of = lines.into_iter().find(|line| line.detail.starts_with("expired, from"))?;
        (of.who == "edge-1").then_some(())
    });
    drop(edge);
    drop(engine);
    let tokens = list_tokens(&site.config()).unwrap();
    let edge = tokens.iter().find(|token| token.name == "edge-1").unwrap();
    let kim = tokens.iter().find(|token| token.name == "kim").unwrap();
    let year_ms = 365 * 86_400_000;
    assert_eq!(kim.expires_ms, Some(kim.created_ms + year_ms), "the default");
    assert!(edge.former.is_some() && edge.used_ms.is_none(), "it was killed: {edge:?}");
}

#[test]
fn a_token_that_expires_is_warned_about_and_then_named_to_its_user() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let short = NewToken {
        expires: "20s".parse().unwrap(),
        ..NewToken::new("edge-2", Role::Edge, &["tv"])
    };
    let engine = site.start();
    let secret = add_token(&site.config(), &short).unwrap();
    let edge = Edge::start(&Options {
        engine: engine.url.clone(),
        token: (&secret).into(),
        authority: None,
        folder: site.folder.path().join("edge"),
    })
    .unwrap();
    let key: Key = "tv/203.0.113.0/24".parse().unwrap();
    until("a configuration", || edge.in_force(&key));
    let trouble = edge.status().trouble.expect("it expires soon");
    assert!(trouble.contains("expires in 0 days and 0 hours"), "{trouble}");
    let status = engine.client(&site.viewer).status().unwrap();
    let names: Vec<&str> = status.expiring.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["edge-2"]);
    let text = trimtab_engine::status_text(&status);
    assert!(text.contains("the token edge-2 expires on 20"), "{text}");
    let expiring = "trimtab_engine_tokens{state=\"expiring\"}";
    assert_eq!(metric(&engine, &site.viewer, expiring).as_deref(), Some("1"));
    until("a line of the log", || engine.said("tokens expire: edge-2 on 20").pop());
    let expired = until("that it expires", || {
        // Who asks for no more of an aggregate would forget it.
        edge.in_force(&key);
        engine.client(&secret).services().err()
    });
    let said = expired.to_string();
    assert!(
        matches!(expired, Error::Expired { .. })
            && said.contains("the token edge-2 expired on 20")
            && said.contains("`trimtab engine token rotate edge-2` on the engine's machine"),
        "{said}"
    );
    // The edge keeps what it has, and says why it gets nothing new.
    let other: Key = "tv/198.51.100.0/24".parse().unwrap();
    until("the edge's trouble", || {
        edge.in_force(&key);
        edge.in_force(&other);
        edge.status().trouble.filter(|trouble| trouble.contains("edge-2 expired on 20"))
    });
    assert!(edge.known(&key).is_some() && edge.known(&other).is_none());
    let expired = "trimtab_engine_tokens{state=\"expired\"}";
    assert_eq!(metric(&engine, &site.viewer, expired).as_deref(), Some("1"));
}

#[test]
fn operators_rotate_over_the_api_and_see_when_a_secret_was_used() {
    let site = Site::new("[limits]\nrequests_per_second = 1000");
    let engine = site.start();
    let ask = |token: &str, body: serde_json::Value| {
        let bytes = body.to_string();
        say(&engine, "POST", "/v1/tokens/rotate", Some(token), bytes.as_bytes())
    };
    let (status, _) = ask(&site.viewer, json!({ "name": "robin" }));
    assert_eq!(status, 403);
    for (body, status) in [
        (json!({ "name": "nobody" }), 404),
        (json!({ "name": "robin", "expires": "soon" }), 400),
        (json!({ "name": "robin", "overlap": "never" }), 400),
    ] {
        assert_eq!(ask(&site.operator, body.clone()).0, status, "{body}");
    }
    let (status, answer) = ask(&site.operator, json!({ "name": "robin", "expires": "90d" }));
    assert_eq!(status, 200, "{answer}");
    let secret = answer["token"].as_str().unwrap().to_owned();
    for token in [&secret, &site.viewer] {
        engine.client(token).status().unwrap();
    }
    let pid = engine.child.id().to_string();
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
    // An engine that ends in good order writes the last uses down.
    until("that they are kept", || {
        let all = list_tokens(&site.config()).unwrap();
        let robin = all.into_iter().find(|token| token.name == "robin")?;
        let former = robin.former?.used_ms?;
        (robin.used_ms? >= robin.created_ms && former >= robin.used_ms?).then_some(())
    });
}
