//! `trimtab cmcd`: what a log shows, and what is wrong with it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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
    ] {
        let message = error(dir.path(), &[&["cmcd"], args].concat());
        assert!(message.contains(what), "{args:?}: {message}");
    }
}
