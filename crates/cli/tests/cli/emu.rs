//! `trimtab emu`: programs behind links. Root's rights are needed for most of it; elsewhere the
//! tests say that they skip.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{error, trimtab};

/// Runs `trimtab emu` in a folder that is of no matter.
fn emu(args: &[&str]) -> Output {
    trimtab(Path::new("."), &[&["emu"], args].concat())
}

/// Whether links can be made here; the reason why not, printed. In CI that is a failure.
fn can() -> bool {
    let out = emu(&["--quiet", "true"]);
    let reason = text(&out.stderr);
    let can = out.status.success();
    if !can {
        assert!(
            reason.contains("needs network namespaces") || reason.contains("/dev/net/tun"),
            "{reason}"
        );
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
            "CI must run this test as root: {reason}"
        );
        println!("skipped: {reason}");
    }
    can
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name that only the processes of one test have as an argument.
fn mark(test: &str) -> String {
    format!("trimtab-test-{test}-{}", std::process::id())
}

/// The processes that have this argument.
fn processes(mark: &str) -> Vec<String> {
    let folders = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let lines = folders.filter_map(|folder| fs::read(folder.join("cmdline")).ok());
    lines.map(|line| text(&line)).filter(|line| line.split('\0').any(|arg| arg == mark)).collect()
}

/// Waits until it is so, at most some seconds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "waited for: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// A shell behind a link that starts a sleeper in the background and sleeps itself; both have the mark.
fn start_sleepers(mark: &str) -> Child {
    let script = "sh -c 'sleep 1000' \"$0\" & sh -c 'sleep 1000; true' \"$0\"; wait";
    let child = Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args(["emu", "--delay", "1ms", "sh", "-c", script, mark])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The emulator, its shell, and two more.
    until("all to have started", || processes(mark).len() >= 4);
    child
}

#[test]
fn what_cannot_be_run_says_why() {
    let here = Path::new(".");
    let e = error(here, &["emu", "--trace", "no-such-file.trace", "true"]);
    assert!(e.contains("no-such-file.trace") && e.contains("no such file"), "{e}");
    let e = error(here, &["emu", "--buffer", "2BDP", "true"]);
    assert!(e.contains("--trace"), "{e}");
    let e = error(here, &["emu", "--trace", "constant:9Mbit/s", "--mark", "0.5BDP", "true"]);
    assert!(e.contains("--delay"), "{e}");
    let e = error(here, &["emu", "--delay", "10", "true"]);
    assert!(e.contains("unit"), "{e}");
    let e = error(here, &["emu", "--loss", "5", "true"]);
    assert!(e.contains("5%") || e.contains('%'), "{e}");
    if !can() {
        return;
    }
    let e = error(here, &["emu", "trimtab-no-such-program"]);
    assert!(e.contains("trimtab-no-such-program") && e.contains("no such program"), "{e}");
    let e = error(here, &["emu", "--log", "/dev/null/log", "true"]);
    assert!(e.contains("--log"), "{e}");
    let e = error(here, &["emu", "--server", "exit 3", "true"]);
    assert!(e.contains("exit status: 3"), "{e}");
}

#[test]
fn the_exit_code_is_the_programs() {
    if !can() {
        return;
    }
    assert_eq!(emu(&["true"]).status.code(), Some(0));
    assert_eq!(emu(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(emu(&["sh", "-c", "kill -KILL $$"]).status.code(), Some(128 + 9));
}

#[test]
fn a_program_sees_its_link_and_nothing_else() {
    if !can() {
        return;
    }
    let out = emu(&[
        "--quiet",
        "--delay",
        "1ms",
        "sh",
        "-c",
        "cat /proc/net/dev; echo at $TRIMTAB_SERVER",
    ]);
    let seen = text(&out.stdout);
    let devices: Vec<&str> =
        seen.lines().filter_map(|l| Some(l.split_once(':')?.0.trim())).collect();
    assert_eq!(devices, ["lo", "link"], "{seen}");
    assert!(seen.contains("at 100."), "{seen}");
    assert_eq!(text(&out.stderr), "", "--quiet");
}

/// Bytes from a server on the other side, with the report as JSON and the logs as files.
#[test]
fn a_server_of_ones_own_answers_through_the_link() {
    if !can() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("page"), vec![b'x'; 300_000]).unwrap();
    let get = "import os,urllib.request as u;print(len(u.urlopen('http://'+os.environ['TRIMTAB_SERVER']+'/page').read()))";
    let args = ["emu", "--trace", "constant:12Mbit/s", "--delay", "5ms", "--buffer", "2BDP"];
    let more =
        ["--server", "exec python3 -m http.server 80", "--log", "log", "--json", "report.json"];
    let out = trimtab(dir.path(), &[&args[..], &more, &["--", "python3", "-c", get]].concat());
    assert_eq!(text(&out.stdout), "300000\n", "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("timing error"), "{}", text(&out.stderr));
    let report = fs::read_to_string(dir.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["schema"], "trimtab.emu/1");
    // 300 KB in packets of 1448 bytes and their headers.
    assert!(report["down"]["delivered_bytes"].as_u64().unwrap() > 310_000, "{report}");
    assert_eq!(report["down"]["drops"]["before_link"], 0);
    for file in ["packets.csv", "down.log", "up.log"] {
        assert!(fs::metadata(dir.path().join("log").join(file)).unwrap().len() > 1000, "{file}");
    }
}

/// The server's address is reached from two links deep, with the delay of both.
#[test]
fn links_nest() {
    if !can() {
        return;
    }
    let exe = env!("CARGO_BIN_EXE_trimtab");
    let echo = "import socket as s;x=s.socket(s.AF_INET,s.SOCK_DGRAM);x.bind(('',9));[x.sendto(*x.recvfrom(99)) for _ in iter(int,1)]";
    let time = "import socket as s,time as t,os;x=s.socket(s.AF_INET,s.SOCK_DGRAM);x.settimeout(5);b=t.time();x.sendto(b'x',(os.environ['OUTER'],9));x.recv(9);print((t.time()-b)*1e3)";
    let inner =
        format!("OUTER=$TRIMTAB_SERVER exec {exe} emu --quiet --delay 20ms python3 -c \"{time}\"");
    let server = format!("exec python3 -c \"{echo}\"");
    let out = emu(&["--quiet", "--delay", "10ms", "--server", &server, "sh", "-c", &inner]);
    let ms: f64 =
        text(&out.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&out.stderr)));
    assert!((60.0..80.0).contains(&ms), "{ms} ms");
}

#[test]
fn kill_9_leaves_nothing() {
    if !can() {
        return;
    }
    let mark = mark("kill-9");
    let mut child = start_sleepers(&mark);
    child.kill().unwrap();
    child.wait().unwrap();
    until("all processes to be gone", || processes(&mark).is_empty());
}

#[test]
fn sigterm_ends_the_program_and_what_it_started() {
    if !can() {
        return;
    }
    let mark = mark("sigterm");
    let child = start_sleepers(&mark);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(128 + 15), "as the shell that SIGTERM killed");
    assert!(text(&out.stderr).contains("link: "), "the report: {}", text(&out.stderr));
    assert_eq!(processes(&mark), Vec::<String>::new());
}

/// What is left in the background when a program ends, ends with it.
#[test]
fn the_end_of_the_program_is_the_end_of_all() {
    if !can() {
        return;
    }
    let mark = mark("end");
    let script = "sh -c 'sleep 1000; true' \"$0\" >/dev/null 2>&1 & exit 4";
    assert_eq!(emu(&["sh", "-c", script, &mark]).status.code(), Some(4));
    assert_eq!(processes(&mark), Vec::<String>::new());
}

/// Another user than root gets a link in a user namespace, or one clear message.
#[test]
fn without_root() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let dir = tempfile::tempdir().unwrap();
    if fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) != 0) {
        println!("skipped: only root can become another user");
        return;
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The build folder may not be readable for others. By another process: while this one has the copy open for
    // writing, another test may fork, and what a child holds open for writing cannot be run.
    let exe = dir.path().join("trimtab");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_trimtab")).arg(&exe).status().unwrap();
    assert!(copied.success());
    let run = |args: &[&str]| {
        let mut command = Command::new(&exe);
        command.arg("emu").args(args).current_dir(dir.path()).uid(65_534).gid(65_534);
        command.output().unwrap()
    };
    let get = "import os,socket as s;x=s.create_connection((os.environ['TRIMTAB_SERVER'],80));print(x.recv(9))";
    let server = "exec python3 -c \"import socket as s;s.create_server(('',80)).accept()[0].send(b'hello')\"";
    let out = run(&["--delay", "5ms", "--server", server, "python3", "-c", get]);
    let message = text(&out.stderr);
    if out.status.success() {
        assert_eq!(text(&out.stdout), "b'hello'\n");
        let alone = run(&["sh", "-c", "exit 5"]);
        assert_eq!(alone.status.code(), Some(5));
        assert!(text(&alone.stderr).contains("--server"), "{}", text(&alone.stderr));
    } else {
        assert_eq!(out.status.code(), Some(2), "{message}");
        assert!(message.contains("run it as root") && message.lines().count() == 1, "{message}");
    }
}
