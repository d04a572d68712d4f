//! What `trimtab engine` does on the engine's machine, without an engine that runs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
        serde_json::from_slice::<serde_json::Value>(&out.stdout).ok()
    };
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let decisions = status().and_then(|status| status["counts"]["decisions"].as_i64());
        // Each of the twelve aggregates, twice.
        if decisions >= Some(24) {
            break;
        }
        assert!(Instant::now() < end, "{decisions:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let pid = demo.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(demo.wait().unwrap().success());
}
