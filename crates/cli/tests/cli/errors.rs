//! Whatever is wrong: one clear message, exit code 2, no panic (and no half-written file).

use std::fs;
use std::path::Path;

use crate::support::{error, failure, trimtab};

/// A comparison of a second that works; tests break one thing of it.
const WORKS: &[&str] =
    &["compare", "--app", "bulk", "--cc", "newreno", "--traces", "constant:8Mbit/s", "--quiet"];

fn compare(folder: &Path, more: &[&str]) -> String {
    error(folder, &arguments(more))
}

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = [WORKS, more].concat();
    if !more.contains(&"--duration") {
        args.extend(["--duration", "1s"]);
    }
    args
}

/// The message of a comparison whose files cannot be written. Its results are not lost: the table is
/// printed.
fn unwritten(folder: &Path, more: &[&str]) -> String {
    let (message, out) = failure(folder, &arguments(more));
    assert!(out.contains("congestion control") && out.contains("Mbit/s"), "{out}");
    message
}

#[test]
fn unknown_congestion_controls_and_knobs() {
    let dir = tempfile::tempdir().unwrap();
    let e = compare(dir.path(), &["--cc", "kubic"]);
    assert!(e.contains("did you mean cubic?") && e.contains("trimtab cc list"), "{e}");
    let e = compare(dir.path(), &["--cc", "copa:delta=7"]);
    assert!(e.contains("delta = 7 is outside its range"), "{e}");
    let e = compare(dir.path(), &["--cc", "copa:gamma=1"]);
    assert!(e.contains("no such knob") && e.contains("delta"), "{e}");
    let e = compare(dir.path(), &["--cc", "copa:tokyo"]);
    assert!(e.contains("no such preset") && e.contains("mit"), "{e}");
    let e = compare(dir.path(), &["--cc", "newreno"]);
    assert!(e.contains("named twice"), "{e}");
}

#[test]
fn traces() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| fs::write(dir.path().join(name), content).unwrap();
    write("empty.trace", b"");
    write("unsorted.trace", b"5\n3\n");
    write("words.trace", b"1\ntwo\n");
    let mut whole = Vec::new();
    let mut gzip = flate2::write::GzEncoder::new(&mut whole, flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, b"1\n2\n3\n4\n5\n6\n7\n8\n").unwrap();
    gzip.finish().unwrap();
    write("cut.trace.gz", &whole[..whole.len() - 9]);
    for (file, part) in [
        ("empty.trace", "the trace is empty"),
        ("unsorted.trace", "line 2 goes back"),
        ("words.trace", "line 2 is \"two\""),
        ("cut.trace.gz", "truncated"),
    ] {
        for args in [&["trace", "info", file][..], &["trace", "plot", file, "-o", "x.svg"]] {
            let e = error(dir.path(), args);
            assert!(e.contains(part) && e.contains(file), "{e}");
        }
        let e = compare(dir.path(), &["--traces", file]);
        assert!(e.contains(part) && e.contains(file), "{e}");
    }
    assert!(!dir.path().join("x.svg").exists());
    let e = compare(dir.path(), &["--traces", "nowhere/*.gz"]);
    assert!(e.contains("no trace file matches nowhere/*.gz") && e.contains("trace fetch"), "{e}");
    let e = error(dir.path(), &["trace", "fetch", "moon"]);
    assert!(e.contains("no trace set \"moon\"") && e.contains("mahimahi"), "{e}");
}

#[test]
fn units_are_needed() {
    let dir = tempfile::tempdir().unwrap();
    for (flag, value, part) in [
        ("--rtt", "20", "needs a unit"),
        ("--buffer", "150", "needs a unit"),
        ("--loss", "0.1", "needs its unit"),
        ("--mark", "0.1", "a share of the packets"),
        ("--duration", "60", "needs a unit"),
    ] {
        let e = compare(dir.path(), &[flag, value]);
        assert!(e.contains(part), "{flag} {value}: {e}");
    }
}

#[test]
fn a_round_trip_time_that_steps() {
    let dir = tempfile::tempdir().unwrap();
    let e = compare(dir.path(), &["--rtt", "step:20ms"]);
    assert!(e.contains("'--rtt <TIME>'") && e.contains("step:20ms,150ms@20s"), "{e}");
    let e = compare(dir.path(), &["--rtt", "step:20ms@20"]);
    assert!(e.contains("needs a unit"), "{e}");
    let lines = ["step:20ms,80ms@1s", "40ms"].map(|rtt| ["--rtt", rtt]);
    let more = [&lines.concat()[..], &["--buffer", "1BDP", "--duration", "2s", "--json", "-"]];
    let out = trimtab(dir.path(), &arguments(&more.concat()));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("it is JSON");
    let [stepped, constant] = [0, 1].map(|run| &json["runs"][run]);
    let cell = &stepped["cell"];
    assert_eq!((&cell["rtt_ms"], &cell["rtt_steps"]), (&80.0.into(), &"step:20ms,80ms@1s".into()));
    assert_eq!(cell["buffer_bytes"], 80_000, "by the longest");
    assert_eq!(constant["cell"]["rtt_ms"], 40.0);
    assert!(constant["cell"].get("rtt_steps").is_none(), "{}", constant["cell"]);
    // A second of each, without and with what stands in the queue of a BDP.
    let median = stepped["rtt_ms"]["p50"].as_f64().unwrap();
    let late = stepped["rtt_ms"]["p95"].as_f64().unwrap();
    assert!((20.0..100.0).contains(&median) && (80.0..170.0).contains(&late), "{stepped}");
}

#[test]
fn formulas_show_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let e = compare(dir.path(), &["--qoe", "T / (D + Q)"]);
    assert!(e.contains("column 10") && e.contains("`Q`") && e.contains('^'), "{e}");
}

/// Until this was an error, `--qoe web` printed the same experience of video as `--qoe vod`.
#[test]
fn a_qoe_model_that_does_not_suit_the_application() {
    let dir = tempfile::tempdir().unwrap();
    let vod = ["compare", "--app", "vod", "--qoe", "web", "--cc", "newreno", "--traces", "demo"];
    let e = error(dir.path(), &vod);
    assert!(e.contains("`web` does not score vod: use vod, vod-printed"), "{e}");
    let e = compare(dir.path(), &["--qoe", "T - Rbar"]);
    assert!(e.contains("`Rbar` is unknown when bulk is scored: use download, vod"), "{e}");
    let scenario = "cc = [\"cubic\"]\ntraces = \"demo\"\n[[app]]\nkind = \"vod\"\nqoe = \"web\"\n";
    fs::write(dir.path().join("video.toml"), scenario).unwrap();
    let e = error(dir.path(), &["compare", "--scenario", "video.toml"]);
    assert!(e.contains("QoE of vod: `web` does not score vod"), "{e}");
}

#[test]
fn workloads() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad.wk"), "0 1000\n5 many\n").unwrap();
    let download = |file: &str| compare(dir.path(), &["--app", "download", "--workload", file]);
    let e = download("bad.wk");
    assert!(e.contains("bad.wk") && e.contains("line 2"), "{e}");
    let e = download("none.wk");
    assert!(e.contains("none.wk") && e.contains("cannot be read"), "{e}");
    let e = compare(dir.path(), &["--workload", "bad.wk"]);
    assert!(e.contains("--app download"), "{e}");
}

#[test]
fn scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let e = error(dir.path(), &["compare", "--scenario", "none.toml"]);
    assert!(e.contains("none.toml"), "{e}");
    fs::write(dir.path().join("typo.toml"), "cc = [\"cubic\"]\nbufer = \"1KB\"\n").unwrap();
    let e = error(dir.path(), &["compare", "--scenario", "typo.toml"]);
    assert!(
        e.contains("typo.toml") && e.contains("line 2, column 1") && e.contains("bufer"),
        "{e}"
    );
    fs::create_dir(dir.path().join("s")).unwrap();
    let shared =
        "cc = [\"cubic\"]\ntraces = \"../../shared/traces/x/*.gz\"\n[[app]]\nkind = \"vod\"\n";
    fs::write(dir.path().join("s/shared.toml"), shared).unwrap();
    let e = error(dir.path(), &["compare", "--scenario", "s/shared.toml"]);
    assert!(e.contains("TRIMTAB_SHARED"), "{e}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    for flag in ["--json", "--html"] {
        let e = unwritten(dir.path(), &[flag, "/dev/full"]);
        assert!(e.contains("/dev/full") && e.contains("the disk is full"), "{e}");
    }
    let e = error(
        dir.path(),
        &["trace", "generate", "constant", "--rate", "9Mbit/s", "-o", "/dev/full"],
    );
    assert!(e.contains("the disk is full"), "{e}");

    // A file system of 16 KiB, where this user may mount one.
    let small = dir.path().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&small)
        .output()
        .is_ok_and(|out| out.status.success());
    if !mounted {
        eprintln!("the part with --out is skipped: this user may not mount a small file system");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        let long = ["--duration", "60s"];
        let e = unwritten(dir.path(), &[&long[..], &["--out", "small/results"]].concat());
        assert!(e.contains("the disk is full"), "{e}");
        assert!(!small.join("results").exists(), "nothing is left over");
        let e = unwritten(dir.path(), &[&long[..], &["--html", "small/report.html"]].concat());
        assert!(e.contains("the disk is full"), "{e}");
        assert_eq!(fs::read_dir(&small).unwrap().count(), 0, "nothing is left over");
    });
    let unmounted = std::process::Command::new("umount").arg(&small).status();
    assert!(unmounted.is_ok_and(|s| s.success()));
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// Ctrl-C ends the runs, leaves no file, and has the exit code that shells know.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_trimtab"))
        .args([
            "compare",
            "--app",
            "bulk",
            "--cc",
            "newreno",
            "--traces",
            "constant:8Mbit/s",
            "--seeds",
            "100000",
            "--quiet",
        ])
        .args(["--duration", "20s", "--json", "x.json", "--html", "x.html", "--out", "x"])
        .current_dir(dir.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(400));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.is_ok_and(|s| s.success()));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn mistakes_of_clap_are_exit_code_2_too() {
    let dir = tempfile::tempdir().unwrap();
    let out = trimtab(dir.path(), &["compare", "--colour"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--colour"));
}

#[test]
fn figures() {
    let dir = tempfile::tempdir().unwrap();
    let e = compare(dir.path(), &["--plot", "axis"]);
    assert!(e.contains("it takes KIND=FILE, e.g. axis=figure.svg"), "{e}");
    let e = compare(dir.path(), &["--plot", "completion=x.gif"]);
    assert!(e.contains("x.gif: name a file that ends in .svg, .pdf or .png"), "{e}");
    let e = compare(dir.path(), &["--plot", "pie=a.svg"]);
    assert!(
        e.contains(
            "no figure \"pie\": there are qoe, changes, cdf, tradeoff, ellipses, series, axis"
        ),
        "{e}"
    );
    let e = unwritten(dir.path(), &["--plot", "axis=a.svg"]);
    assert!(e.contains("needs one of rtt, buffer, loss, jitter, flows and rivals"), "{e}");
    let e = unwritten(dir.path(), &["--plot", "period=a.svg"]);
    assert!(e.contains("as floo:every=3s and floo:every=12s"), "{e}");
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is written");
    let args = arguments(&["--jitter", "0ms", "--jitter", "9ms", "--plot", "axis=jitter.svg"]);
    assert!(trimtab(dir.path(), &args).status.success());
    let svg = fs::read_to_string(dir.path().join("jitter.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("jitter, ms"), "{svg}");
}

#[test]
fn webrtc_needs_its_feature() {
    let dir = tempfile::tempdir().unwrap();
    let e = compare(dir.path(), &["--datapath", "webrtc-virtual"]);
    if cfg!(feature = "webrtc") {
        assert!(e.contains("runs calls only"), "{e}");
    } else {
        assert!(e.contains("without WebRTC: build it with ./dev build, or with cargo"), "{e}");
        assert_eq!(compare(dir.path(), &["--datapath", "webrtc"]), e);
    }
}

#[test]
fn quic_needs_its_feature() {
    let dir = tempfile::tempdir().unwrap();
    let over_sockets = ["--datapath", "quic", "--transport", "tcp"];
    let e = compare(dir.path(), &over_sockets);
    let problem =
        if cfg!(feature = "quic") { "--datapath quic runs QUIC" } else { "built without QUIC" };
    assert!(e.contains(problem), "{e}");
    let on_noq = ["--datapath", "quic-virtual"];
    if cfg!(feature = "quic") {
        let e = compare(dir.path(), &[&on_noq[..], &["--transport", "tcp"]].concat());
        assert!(e.contains("--transport quic"), "{e}");
        let out = trimtab(dir.path(), &arguments(&on_noq));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    } else {
        let e = compare(dir.path(), &on_noq);
        assert!(e.contains("built without QUIC") && e.contains("--features quic"), "{e}");
    }
}
