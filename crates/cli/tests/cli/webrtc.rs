//! `--datapath webrtc` where something that it needs is missing: one message before the first run, and
//! nothing is left behind.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::failed;

const CALL: &[&str] = &[
    "compare",
    "--datapath",
    "webrtc",
    "--app",
    "conference",
    "--cc",
    "gcc",
    "--traces",
    "constant:2Mbit/s",
    "--duration",
    "2s",
    "--json",
    "calls.json",
    "--quiet",
];
/// A user without rights.
const NOBODY: u32 = 65_534;

/// A folder that all users may read, with these programs, which do nothing.
fn folder(programs: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let all = || fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), all()).unwrap();
    for program in programs {
        let path = folder.path().join(program);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, all()).unwrap();
    }
    folder
}

/// The command in an empty folder, with the programs and the tools of another one.
fn command(here: &Path, tools: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
    command.args(CALL).current_dir(here).env("PATH", tools).env("TRIMTAB_QUALITY", tools);
    command
}

/// The message of such a run.
fn message(here: &Path, out: Output) -> String {
    let (message, printed) = failed(out, CALL);
    assert_eq!(printed, "", "it printed results as well as an error");
    assert!(fs::read_dir(here).unwrap().next().is_none(), "nothing is written");
    message
}

#[test]
fn a_call_without_ffmpeg_or_a_browser_says_what_to_install() {
    let needs: [(&[&str], _); 2] = [
        (&["chromium"], ["ffmpeg: ", "./dev quality"]),
        (&["ffmpeg"], ["cannot start chromium: ", "apt-get install chromium"]),
    ];
    for (has, words) in needs {
        let (here, tools) = (folder(&[]), folder(has));
        let e = message(here.path(), command(here.path(), tools.path()).output().unwrap());
        assert!(words.iter().all(|part| e.contains(part)), "{e}");
    }
}

/// Where users without rights may make namespaces, as some systems let them, the clip is what is
/// missing next.
#[test]
fn a_call_without_rights_says_what_it_needs() {
    let (here, tools) = (folder(&[]), folder(&["chromium", "ffmpeg"]));
    let mut command = command(here.path(), tools.path());
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let out = match command.output() {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: users without rights cannot start the command where it lies");
            return;
        }
        out => out.unwrap(),
    };
    let e = message(here.path(), out);
    let known = ["needs network namespaces", "/dev/net/tun", "bunny.mp4"];
    assert!(known.iter().any(|words| e.contains(words)), "{e}");
}
