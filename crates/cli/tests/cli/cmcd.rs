//! `trimtab cmcd`: what a log shows, and what is wrong with it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{error, stdout, trimtab};

/// A session in two minutes: a start of 1.5 s, and a stall of 2 s in the first.
const REQUESTS: [(&str, &str); 5] = [
    ("1795972980.0", "ot=m,sid=\\\"a\\\""),
    ("1795972980.5", "bl=0,br=1000,d=4000,ot=v,sid=\\\"a\\\",su"),
    ("1795972981.5", "bl=4000,br=3000,d=4000,ot=v,sid=\\\"a\\\""),
    ("1795972991.5", "bl=0,br=2000,bs,d=4000,ot=v,sid=\\\"a\\\""),
    ("1795973050.0", "br=500,d=4000,ot=v,sid=\\\"a\\\""),
];

fn write_log(folder: &Path) {
    let line = |(time, data): &(&str, &str)| {
        format!(
            "{{\"ts\":{time},\"remote_addr\":\"203.0.113.7\",\"request_uri\":\"/tv/1\",\
             \"status\":200,\"http_cmcd_request\":\"{data}\"}}\n"
        )
    };
    let text: String = REQUESTS.iter().map(line).collect();
    fs::write(folder.join("log"), text + "neither\n").unwrap();
}

#[test]
fn show_has_a_row_for_each_interval_and_subnet() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path());
    let args = ["cmcd", "show", "log", "--field", "time=ts"];
    let out = trimtab(dir.path(), &args);
    let warning = String::from_utf8(out.stderr).unwrap();
    assert!(warning.starts_with("lines not read: 1; the last one: the line"), "{warning}");
    let table = String::from_utf8(out.stdout).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["interval_s", "prefix", "sessions"]);
    let first = ["1795972980", "203.0.113.0/24", "1", "2.000", "0.2000", "1", "1.50"];
    assert_eq!(rows[1], first, "{table}");
    assert_eq!(rows[2], ["1795973040", "203.0.113.0/24", "1", "0.500", "-", "0", "-"], "{table}");
    assert_eq!(rows.len(), 3);
    let json = stdout(dir.path(), &[&args[..], &["--json", "--path", "/tv"]].concat());
    let row: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((row["bitrate_mbps"].as_f64(), row["stalls"].as_u64()), (Some(2.0), Some(1)));
    assert_eq!(stdout(dir.path(), &[&args[..], &["--json", "--path", "/vod"]].concat()), "");
    let piped = Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args(["cmcd", "show", "-", "--field", "time=ts"])
        .stdin(Stdio::from(fs::File::open(dir.path().join("log")).unwrap()))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), table);
}

#[test]
fn mistakes_say_what_to_write() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path());
    let token = "--token-file=none.token";
    for (args, what) in [
        (&["show", "none"][..], "cannot read none"),
        (&["show", "log", "--field", "when=ts"], "FIELD is one of time, address"),
        (&["show", "log", "--prefix", "24"], "e.g. 24,48"),
        (&["show", "log", "--interval", "0s"], "intervals are longer than nothing"),
        (&["follow", "log", "--service", "tv", token], "cannot read none.token"),
        (&["follow", "log", "--service", "a b", token], "a b"),
        (&["follow", "--service", "tv", token], "LOG"),
    ] {
        let message = error(dir.path(), &[&["cmcd"], args].concat());
        assert!(message.contains(what), "{args:?}: {message}");
    }
}

/// A `trimtab cmcd follow` that only listens, where it does, and its further lines.
fn listening(folder: &Path) -> (Child, String, impl Iterator<Item = String>) {
    fs::write(folder.join("token"), format!("trimtab_{}", "a".repeat(43))).unwrap();
    let mut follow = Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args(["cmcd", "follow", "--listen", "127.0.0.1:0", "--client-header", "X-Real-IP"])
        .args(["--service", "tv", "--token-file", "token", "--folder", "state"])
        // Nobody answers there: what is to be reported waits.
        .args(["--engine", "http://127.0.0.1:1"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address = first.strip_prefix("listens for reports of players at ").expect(&first);
    (follow, address.to_owned(), lines)
}

fn post(address: &str, header: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /qoe HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ";
    write!(stream, "{head}{}\r\n{header}\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The last line of one that ends, after it has looked at what has come, several times a second.
fn last_line(mut follow: Child, lines: impl Iterator<Item = String>) -> String {
    std::thread::sleep(std::time::Duration::from_secs(1));
    let pid = follow.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let last = lines.last().unwrap();
    assert!(follow.wait().unwrap().success());
    last
}

const CLIENT: &str = "X-Real-IP: 203.0.113.7\r\n";
const REPORT: &str = "sid=\"a\",sta=p,ts=1795973783250,v=2\n";

#[test]
fn follow_takes_in_reports_without_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let (follow, address, lines) = listening(dir.path());
    let answer = post(&address, CLIENT, REPORT);
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    let answer = post(&address, CLIENT, "sid=\"a\",sta=p,v=2\n");
    assert!(answer.contains("the report has no ts: it belongs to each"), "{answer}");
    assert!(post(&address, "", "").contains("no client's address into x-real-ip"));
    let last = last_line(follow, lines);
    assert!(last.contains("1 reports of players, 0 late, 0 before"), "{last}");
}

#[test]
fn what_was_posted_outlasts_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (mut first, address, _lines) = listening(dir.path());
    let answer = post(&address, CLIENT, REPORT);
    assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
    first.kill().unwrap();
    first.wait().unwrap();
    let (again, _, lines) = listening(dir.path());
    let last = last_line(again, lines);
    assert!(last.contains("0 reports of players") && last.contains("; 1 sessions;"), "{last}");
}

#[test]
fn a_killed_follow_goes_on_where_the_open_interval_began() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    fs::write(&log, "").unwrap();
    fs::write(dir.path().join("token"), format!("trimtab_{}", "a".repeat(43))).unwrap();
    let start = || {
        let mut follow = Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args(["cmcd", "follow", "log", "--service", "tv", "--token-file", "token"])
            .args(["--folder", "state", "--engine", "http://127.0.0.1:1"])
            .current_dir(dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(follow.stderr.take().unwrap()).lines().map(Result::unwrap);
        (follow, lines)
    };
    let until = |what: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !what() {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "it never comes");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let (mut first, _lines) = start();
    let kept = dir.path().join("state/follow.json");
    until(&|| kept.exists());
    first.kill().unwrap();
    first.wait().unwrap();
    write_log(dir.path());
    fs::rename(&log, dir.path().join("log.1")).unwrap();
    // Also root may not open it: as a log that this process may not read.
    let socket = std::os::unix::net::UnixListener::bind(&log).unwrap();
    let (mut again, mut lines) = start();
    let line = lines.next().unwrap();
    assert!(line.starts_with("6 lines, 0 with CMCD"), "{line}");
    assert!(line.contains("cannot read the new log: No such device or address"), "{line}");
    drop(socket);
    fs::remove_file(&log).unwrap();
    fs::write(&log, "one\ntwo\n").unwrap();
    let line = lines.next().unwrap();
    assert!(!line.contains("cannot read"), "{line}");
    // It looks several times a second.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let pid = again.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let line = lines.last().unwrap();
    assert!(line.starts_with("8 lines"), "{line}");
    again.wait().unwrap();
}
