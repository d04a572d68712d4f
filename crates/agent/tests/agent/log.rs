//! The log of an agent that runs, as JSON.

use std::net::{TcpListener, TcpStream};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{self, need_kernel, wait_for};
use crate::setup::{Agent, Setup};

const RULE: &str = "[[rule]]\nname = \"web\"\nknobs = { delta = 0.25 }\n";

/// Every line of the log: each is an object with a time and a level.
fn lines(agent: &Agent) -> Vec<Value> {
    let log = agent.log();
    let line = |line: &str| {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let time = object["time"].as_str().expect("a time");
        assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
        assert!(["error", "warning", "info", "debug"].map(Value::from).contains(&object["level"]));
        object
    };
    log.lines().map(line).collect()
}

/// Gives a connection of ours another algorithm, and waits for the line that tells of it.
fn by_hand(setup: &Setup, agent: &Agent, before: usize) -> (TcpStream, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
    set_tcp_congestion(&stream, &setup.algorithm()).expect("our algorithm");
    let port = stream.local_addr().expect("an address").port();
    wait_for("the connection", || agent.flow(port));
    set_tcp_congestion(&stream, "reno").expect("another algorithm");
    let told = wait_for("the note", || {
        let is_note =
            |line: &Value| line["message"].as_str().is_some_and(|m| m.contains("by hand"));
        lines(agent).into_iter().filter(is_note).nth(before)
    });
    (stream, told)
}

#[test]
fn a_line_of_json_has_the_connection_and_no_address_below_debug() {
    need_kernel!();
    let setup = Setup::new("_L");
    setup.configure("log_format = \"json\"", RULE);
    let agent = setup.start();
    let (stream, told) = by_hand(&setup, &agent, 0);
    let expected = [("network", json!("127.0.0.0/24")), ("algorithm", json!("reno"))];
    for (field, value) in expected {
        assert_eq!(told[field], value, "{told}");
    }
    assert!(told["connection"].as_u64().is_some_and(|number| number > 0), "{told}");
    assert_eq!(told["level"], "info", "{told}");
    assert!(!agent.log().contains("127.0.0.1"), "{}", agent.log());
    drop(stream);

    setup.configure("log_format = \"json\"\nlog = \"debug\"", RULE);
    agent.signal(Signal::HUP);
    wait_for("the reload", || agent.log().contains("configuration taken over").then_some(()));
    let (_stream, told) = by_hand(&setup, &agent, 1);
    let message = told["message"].as_str().expect("a text");
    assert!(message.contains("to 127.0.0.1:"), "{told}");
}
