//! What one address may do: asked for from this machine, which is one.

mod common;

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use common::{Process, Site, say, until};

#[test]
fn engine_process() {
    common::run_if_asked();
}

fn metric(engine: &Process, token: &str, series: &str) -> u64 {
    let (_, page) = say(engine, "GET", "/metrics", Some(token), b"");
    let page = page.as_str().expect("a page");
    let value = page.lines().find_map(|line| line.strip_prefix(series));
    value.map_or(0, |value| value.trim().parse().expect("a number"))
}

/// The statuses of so many requests.
fn statuses(engine: &Process, path: &str, token: Option<&str>, count: usize) -> Vec<u16> {
    (0..count).map(|_| say(engine, "GET", path, token, b"").0).collect()
}

#[test]
fn an_address_without_a_token_is_slowed_down_and_nobody_else_is() {
    let site = Site::new("[limits]\nrequests_per_second = 1000\nstrangers_per_address = 1");
    let engine = site.start();
    let stranger = format!("trimtab_{}", "A".repeat(43));
    let all = statuses(&engine, "/v1/status", Some(&stranger), 30);
    let (refused, slowed) = (all.iter().filter(|s| **s == 401), all.iter().filter(|s| **s == 429));
    // Ten at once, and one in each second that this takes.
    let (refused, slowed) = (refused.count(), slowed.count());
    assert!(refused >= 10 && refused + slowed == 30, "{all:?}");
    for path in ["/", "/openapi.json", "/nothing"] {
        until("that pages for everybody are slowed down, too", || {
            (say(&engine, "GET", path, None, b"").0 == 429).then_some(())
        });
    }
    // A valid token from the same address counts by itself, and so do probes.
    assert_eq!(statuses(&engine, "/v1/status", Some(&site.viewer), 30), [200; 30]);
    assert_eq!(statuses(&engine, "/healthz", None, 30), [200; 30]);
    let counted = metric(&engine, &site.viewer, "trimtab_engine_refused_total{reason=\"rate\"}");
    assert!(counted >= slowed as u64, "{counted}");
    // It may ask again later.
    until("that it is answered again", || {
        (say(&engine, "GET", "/openapi.json", None, b"").0 == 200).then_some(())
    });
}

#[test]
fn an_address_with_many_tokens_has_one_allowance() {
    let site = Site::new("[limits]\nrequests_per_second = 1000\nrequests_per_address = 1");
    let engine = site.start();
    let tokens = [&site.edge, &site.operator, &site.viewer];
    let asked = (0..30).map(|i| say(&engine, "GET", "/v1/services", Some(tokens[i % 3]), b""));
    let all: Vec<_> = asked.collect();
    let slowed: Vec<_> = all.iter().filter(|(status, _)| *status == 429).collect();
    let served = all.iter().filter(|(status, _)| *status == 200).count();
    assert!(served >= 10 && served + slowed.len() == 30 && !slowed.is_empty(), "{all:?}");
    let message = slowed[0].1["message"].as_str().expect("a message");
    assert_eq!(message, "127.0.0.1 asks more than 1 times a second: ask less often");
}

#[test]
fn an_address_has_so_many_connections_and_gets_them_back() {
    let site = Site::new("[limits]\nrequests_per_second = 1000\nconnections_per_address = 5");
    let engine = site.start();
    let address = engine.url.strip_prefix("http://").expect("plain HTTP");
    let connect = || {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
        stream
    };
    // An engine that closes one has all of the others.
    let mut held: Vec<TcpStream> = (0..5).map(|_| connect()).collect();
    let mut more = connect();
    assert_eq!(more.read(&mut [0]).expect("it is closed"), 0);
    drop((held.pop(), more));
    until("that there is a place again", || {
        let mut stream = TcpStream::connect(address).ok()?;
        std::io::Write::write_all(
            &mut stream,
            b"GET /healthz HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n",
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
    drop(held);
    until("that it is counted", || {
        let refused = metric(&engine, &site.viewer, "trimtab_engine_refused_connections_total");
        (refused >= 1).then_some(())
    });
    assert!(!engine.said("connections_per_address").is_empty());
}
