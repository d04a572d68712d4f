//! What `trimtab engine` does on the engine's machine without an engine that runs, and how it asks
//! one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{error, stdout, trimtab};

#[test]
fn an_audit_is_checked_and_one_that_is_not_whole_ends_with_status_1() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("services")).unwrap();
    let service =
        "name = \"tv\"\nreward = \"mean(throughput)\"\n[knobs]\ngamma = { min = 1, max = 5000 }\n";
    fs::write(dir.path().join("services/tv.toml"), service).unwrap();
    let config = "services = \"services\"\n[store]\nfile = \"engine.db\"\n";
    fs::write(dir.path().join("engine.toml"), config).unwrap();
    let verify = ["engine", "audit", "--verify", "--config", "engine.toml"];
    assert_eq!(stdout(dir.path(), &verify), "the audit has no lines yet\n");
    let token = ["engine", "token", "add", "kim", "--role", "viewer", "--config", "engine.toml"];
    stdout(dir.path(), &token);
    let whole = stdout(dir.path(), &verify);
    assert!(whole.starts_with("the audit is whole: lines 1 to 1\n"), "{whole}");
    let (_, known) = whole.trim().rsplit_once(' ').unwrap();
    assert_eq!(stdout(dir.path(), &[&verify[..], &["--known", known]].concat()), whole);

    // A line that was another one when somebody looked before.
    let other = if known.ends_with('0') { '1' } else { '0' };
    let other = format!("{}{other}", &known[..known.len() - 1]);
    for more in [&[][..], &["--json"]] {
        let out = trimtab(dir.path(), &[&verify[..], &["--known", &other], more].concat());
        let message = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{message}");
        let expected = "error: the audit is not whole: line 1 has another hash than the known one";
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(
            String::from_utf8_lossy(&out.stdout).contains("\"found\": \"line 1"),
            !more.is_empty()
        );
    }
    let wrong = error(dir.path(), &[&verify[..], &["--known", "1:ab"]].concat());
    assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
}

/// Stands in for an engine: gives the same answer to two requests, and their first lines when it is
/// joined.
fn answer_twice(body: String) -> (String, JoinHandle<[String; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        [(); 2].map(|()| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            // The request has no body: it ends with an empty line.
            lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json";
            let length = body.len();
            write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            first
        })
    });
    (url, asked)
}

#[test]
fn shared_bottlenecks_are_printed_as_the_file_that_edges_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("kim.token"), "trimtab_secret").unwrap();
    let answer = json!({
        "service": "tv", "together": ["10.0.0.0/24 10.0.1.0/24"],
        "sharing": { "aggregates": 12, "left_out": 3, "pairs": 66, "found": [{
            "one": "10.0.0.0/24", "other": "10.0.1.0/24", "intervals": 72, "correlation": 0.81,
            "halves": [0.75, 0.9], "chance": 1e-9,
        }] },
    });
    let (url, asked) = answer_twice(answer.to_string());
    let ask = ["engine", "shared", "tv", "--engine", &url, "--token-file", "kim.token"];
    let text = stdout(dir.path(), &ask);
    let expected = "# tv: 1 of 66 pairs of 12 aggregates share a bottleneck; 3 aggregates have too \
                    few intervals\n\
                    # 10.0.0.0/24 and 10.0.1.0/24: rank correlation 0.81 in 72 intervals, 0.75 and \
                    0.90 in their halves\n\
                    10.0.0.0/24 10.0.1.0/24\n";
    assert_eq!(text, expected);
    let json = stdout(dir.path(), &[&ask[..], &["--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), answer);
    let line = "GET /v1/shared?service=tv&last=200 HTTP/1.1";
    assert_eq!(asked.join().unwrap(), [line, line]);

    // What edges read now stays, with its names.
    fs::write(dir.path().join("now.txt"), "10.0.1.0/24 10.0.9.0/24\n10.0.4.0/24 10.0.5.0/24")
        .unwrap();
    let (url, asked) = answer_twice(answer.to_string());
    let ask = ["engine", "shared", "tv", "--engine", &url, "--token-file", "kim.token"];
    let ask = [&ask[..], &["--with", "now.txt"]].concat();
    let [first, second] = [(); 2].map(|()| stdout(dir.path(), &ask));
    assert_eq!(first, second);
    let groups = "10.0.1.0/24 10.0.0.0/24 10.0.9.0/24\n10.0.4.0/24 10.0.5.0/24\n";
    assert!(first.ends_with(&format!("halves\n{groups}")), "{first}");
    asked.join().unwrap();
    fs::write(dir.path().join("now.txt"), "10.0.1.0/24").unwrap();
    let wrong = error(dir.path(), &ask);
    assert!(wrong.contains("now.txt, line 1: 10.0.1.0/24 is alone"), "{wrong}");
}

#[test]
fn what_if_asks_the_engine_and_prints_its_estimates() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("kim.token"), "trimtab_secret").unwrap();
    let effect = |value: f64| json!({ "value": value, "low": value - 0.5, "high": value + 0.5 });
    let answer = json!({
        "service": "tv", "prefix": "203.0.113.0/24", "aggregates": 1,
        "estimate": {
            "target": "gamma=900", "decisions": 90, "unrewarded": 1, "certain": 9, "impossible": 10,
            "intervals": 70, "matched": 30, "effective": 24.6, "actual": 2.0,
            "weighted": effect(2.25), "robust": effect(2.5), "gain": effect(0.5),
        },
    });
    let (url, asked) = answer_twice(answer.to_string());
    let ask = ["engine", "what-if", "tv/203.0.113.0/24", "gamma=900", "--last", "90"];
    let at = ["--engine", &url, "--token-file", "kim.token"];
    let text = stdout(dir.path(), &[&ask[..], &at].concat());
    let head = "tv/203.0.113.0/24: 70 intervals of 1 aggregates, 30 of them with gamma=900, which \
                count as 25\n";
    assert!(text.starts_with(head), "{text}");
    for (name, figures) in [
        ("as it was", ["2.0000", "-", "-"]),
        ("gamma=900, doubly robust", ["2.5000", "2.0000", "3.0000"]),
        ("gamma=900, by weights", ["2.2500", "1.7500", "2.7500"]),
        ("gain, doubly robust", ["0.5000", "0.0000", "1.0000"]),
    ] {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), figures, "{text}");
    }
    let json = stdout(dir.path(), &[&ask[..], &at, &["--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), answer);
    let path = "/v1/what-if?service=tv&prefix=203.0.113.0%2F24&knobs=gamma%3D900&last=90";
    assert_eq!(asked.join().unwrap(), [(); 2].map(|()| format!("GET {path} HTTP/1.1")));
    let neither = error(dir.path(), &["engine", "what-if", "tv"]);
    assert!(neither.contains("KNOB=VALUE"), "{neither}");
}

#[test]
fn fit_surrogate_prints_the_line_for_the_services_file_and_how_well_it_predicts() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("kim.token"), "trimtab_secret").unwrap();
    let effect = |value: f64| json!({ "value": value, "low": value - 0.1, "high": value + 0.1 });
    let prediction = |of: f64| json!({ "r_squared": of, "rank_correlation": of + 0.1 });
    let term = |statistic: &str, coefficient: f64, chosen: u64| json!({ "statistic": statistic, "coefficient": effect(coefficient), "chosen": chosen });
    let formula = "1.5 * mean(throughput) - 20 * p50(rtt)";
    let answer = json!({
        "service": "tv",
        "fit": {
            "surrogate": formula,
            "terms": [term("mean(throughput)", 1.5, 5), term("p50(rtt)", -20.0, 4)],
            "decisions": 1000, "intervals": 900, "aggregates": 12, "held_out": 300, "fits": 5,
            "fitted": prediction(0.2),
            "present": { "formula": "mean(throughput)", "prediction": prediction(0.1) },
            "gain": effect(0.125), "stands_in": false,
            "candidates": ["mean(throughput)", "p50(rtt)"],
            "unsuitable": [{ "statistic": "mean(bitrate)", "why": "the reward reads it" }],
        },
    });
    let (url, asked) = answer_twice(answer.to_string());
    let ask = ["engine", "fit-surrogate", "tv", "--last", "90", "--engine", &url];
    let at = ["--token-file", "kim.token"];
    let text = stdout(dir.path(), &[&ask[..], &at].concat());
    let line = |start: &str| {
        let found = text.lines().find_map(|line| line.trim().strip_prefix(start));
        let rest = found.unwrap_or_else(|| panic!("{start} in {text}"));
        rest.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(text.lines().nth(2), Some(&*format!("surrogate = \"{formula}\"")), "{text}");
    // The heading says "fitted to", too, but not at the start of a line.
    assert_eq!(line("fitted "), ["0.2000", "0.3000"]);
    assert_eq!(line("present: mean(throughput)"), ["0.1000", "0.2000"]);
    assert_eq!(line("gain in R²:"), ["+0.1250", "(95%:", "+0.0250", "to", "+0.2250)"]);
    assert_eq!(line("mean(throughput) "), ["1.5", "1.4", "1.6", "5", "of", "5"]);
    assert_eq!(line("p50(rtt) "), ["-20", "-20.1", "-19.9", "4", "of", "5"]);
    assert_eq!(line("not tried: mean(bitrate),"), ["since", "the", "reward", "reads", "it"]);
    assert!(text.contains("less than a quarter of the reward"), "{text}");
    let json = stdout(dir.path(), &[&ask[..], &at, &["--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), answer);
    let path = "/v1/fit-surrogate?service=tv&last=90";
    assert_eq!(asked.join().unwrap(), [(); 2].map(|()| format!("GET {path} HTTP/1.1")));
}

#[test]
fn a_demo_decides_within_a_minute_and_ends_in_good_order() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args(["engine", "demo", "--listen", &format!("127.0.0.1:{port}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let token = lines.map_while(Result::ok).find(|line| line.starts_with("trimtab_")).unwrap();
    let status = || {
        let ask = ["engine", "status", "--json", "--engine", &format!("http://127.0.0.1:{port}")];
        let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
        let out = command.args(ask).env("TRIMTAB_TOKEN", &token).output().unwrap();
        serde_json::from_slice::<Value>(&out.stdout).ok()
    };
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let decisions = status().and_then(|status| status["counts"]["decisions"].as_i64());
        // Each of the twelve aggregates, twice.
        if decisions >= Some(24) {
            break;
        }
        assert!(Instant::now() < end, "{decisions:?}");
        thread::sleep(Duration::from_millis(200));
    }
    let pid = demo.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(demo.wait().unwrap().success());
}
