//! Programs that fetch files: every body is whole, came by HTTP/3, and was steered.

use std::path::Path;
use std::process::Command;

use crate::room::{Room, assert_steered, has_program, hash, noise, python_with, skip};

/// Together 2.7 s of the link.
const SIZES: [usize; 3] = [2_500_000, 1_000_000, 500_000];

fn files() -> Vec<(String, Vec<u8>)> {
    let file = |(n, size)| (format!("{n}.bin"), noise(size, n as u64));
    SIZES.into_iter().enumerate().map(file).collect()
}

/// What a script has to print of each file, in any order: name, version of HTTP, hash.
fn expected(files: &[(String, Vec<u8>)]) -> Vec<String> {
    let line = |(name, contents): &(String, Vec<u8>)| format!("/{name} h3 {}", hash(contents));
    files.iter().map(line).collect()
}

/// Runs a script of this folder with the URLs of all files.
fn script_fetches(package: &str, script: &str) {
    let Some(python) = python_with(package) else { return };
    let files = files();
    let Some(room) = Room::open("download", &files) else { return };
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(script));
    command.args(files.iter().map(|(name, _)| room.url(name)));
    let said = room.client(command);
    let mut lines: Vec<_> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, expected(&files));
    check_reports(&room);
}

/// One connection brought all, and Mortise moved its knob.
fn check_reports(room: &Room) {
    let reports = room.reports(SIZES.len() as u64);
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_steered(&reports[0]);
}

#[test]
fn aioquic_fetches_files_on_a_steered_connection() {
    script_fetches("aioquic", "aioquic_client.py");
}

#[test]
fn libcurl_fetches_files_on_a_steered_connection() {
    script_fetches("curl_cffi", "curl_client.py");
}

#[test]
fn ngtcp2_fetches_files_on_a_steered_connection() {
    if !has_program("gtlsclient") {
        skip("there is no gtlsclient, of Debian's package ngtcp2-client");
        return;
    }
    let files = files();
    let Some(room) = Room::open("download", &files) else { return };
    let folder = room.folder();
    let mut command = Command::new("gtlsclient");
    command.args(["--quiet", "--exit-on-all-streams-close"]);
    command.arg(format!("--download={}", folder.display()));
    command.arg(room.topology.server_address().to_string()).arg(room.port.to_string());
    command.args(files.iter().map(|(name, _)| room.url(name)));
    room.client(command);
    for (name, contents) in &files {
        let arrived = std::fs::read(folder.join(name)).expect("a file");
        assert_eq!(hash(&arrived), hash(contents), "{name}");
    }
    // The server speaks HTTP/3 alone, and ends a handshake for anything else.
    check_reports(&room);
}
