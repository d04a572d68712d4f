//! What the commands do when all is well.

use std::fs;
use std::path::Path;

use crate::support::{error, stdout, trimtab};

const SMALL: &[&str] = &[
    "compare",
    "--app",
    "download",
    "--cc",
    "cubic",
    "--cc",
    "omniscient",
    "--traces",
    "step:4Mbit/s,12Mbit/s@5s",
    "--duration",
    "20s",
    "--rtt",
    "40ms",
    "--quiet",
];

#[test]
fn compare_writes_everything_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["--json", "r.json", "--html", "out/r.html", "--out", "p"];
    let table = stdout(dir.path(), &[SMALL, &files].concat());
    assert!(
        table.contains("cubic") && table.contains("omniscient") && table.contains("QoE"),
        "{table}"
    );

    let text = fs::read_to_string(dir.path().join("r.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "trimtab.compare/2");
    let run = &json["runs"][0];
    for key in [
        "cc",
        "app",
        "trace",
        "seed",
        "throughput_mbps",
        "utilization",
        "loss_ratio",
        "retransmit_ratio",
        "requests",
    ] {
        assert!(!run[key].is_null(), "{key} in {run}");
    }
    for (key, parts) in [
        ("qoe", &["mean", "p5", "p50", "p95"][..]),
        ("rtt_ms", &["mean", "p50", "p95"]),
        ("queue_delay_ms", &["mean", "p95"]),
        ("rct_ms", &["mean", "p50", "p90", "p95", "p99"]),
    ] {
        for part in parts {
            assert!(run[key][part].is_number(), "{key}.{part} in {run}");
        }
    }
    assert!(run["rtt_ms"]["mean"].as_f64().unwrap() >= 40.0);
    let row = &json["summary"][0];
    assert!(row["qoe_ci95"][1].as_f64().is_none_or(|hi| hi >= row["qoe_mean"].as_f64().unwrap()));
    assert_eq!(row["versus"][0]["cc"], "omniscient");
    assert!(row["versus"][0]["change_percent"].is_number());
    let command = json["provenance"]["command"].as_str().unwrap();
    assert!(command.starts_with("trimtab compare --app download"), "{command}");

    let html = fs::read_to_string(dir.path().join("out/r.html")).unwrap();
    assert!(html.contains("</html>") && !html.contains("http://") && !html.contains("https://"));
    for file in ["runs", "requests", "series"] {
        assert!(dir.path().join(format!("p/{file}.parquet")).is_file());
    }
}

#[test]
fn the_printed_scenario_is_the_same_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let toml = stdout(dir.path(), &[SMALL, &["--print-scenario"]].concat());
    fs::write(dir.path().join("mine.toml"), &toml).unwrap();
    let runs = |args: &[&str]| {
        let text = stdout(dir.path(), &[args, &["--json", "-"]].concat());
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["runs"].clone()
    };
    assert_eq!(runs(&["compare", "--scenario", "mine.toml"]), runs(SMALL));
}

#[test]
fn flags_thin_the_grid() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--share-min", "1500 kbit/s", "--thin", "2", "--print-scenario"];
    let toml = stdout(dir.path(), &[SMALL, &flags].concat());
    assert!(toml.contains("share_min = \"1.5Mbit/s\"\nthin = 2\n"), "{toml}");
}

#[test]
fn flags_choose_the_transport() {
    let dir = tempfile::tempdir().unwrap();
    let toml = stdout(dir.path(), &[SMALL, &["--transport", "tcp", "--print-scenario"]].concat());
    assert!(toml.contains("transport = \"tcp\"\n"), "{toml}");
    let json = |more: &[&str]| -> serde_json::Value {
        let text = stdout(dir.path(), &[SMALL, more, &["--json", "-"]].concat());
        serde_json::from_str(&text).unwrap()
    };
    let (quic, tcp) = (json(&[]), json(&["--transport", "tcp"]));
    for (result, name) in [(&quic, "quic"), (&tcp, "tcp")] {
        let runs = result["runs"].as_array().unwrap();
        assert!(runs.iter().all(|run| run["transport"] == name), "{runs:?}");
        let scenario = result["provenance"]["scenario"].as_str().unwrap();
        assert!(scenario.contains(&format!("transport = \"{name}\"\n")), "{scenario}");
    }
    assert_ne!(quic["runs"][0]["qoe"], tcp["runs"][0]["qoe"]);
    assert!(stdout(dir.path(), &["completions", "fish"]).contains("-l transport"));
}

#[test]
fn jobs_do_not_change_a_byte() {
    let dir = tempfile::tempdir().unwrap();
    let with = |jobs: &str| {
        let text = stdout(
            dir.path(),
            &[SMALL, &["--seeds", "2", "--loss", "1%", "--json", "-", "--jobs", jobs]].concat(),
        );
        // The command line is part of the record, and differs.
        text.lines().filter(|l| !l.contains("\"command\"")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(with("1"), with("3"));
}

#[test]
fn cc_list() {
    let dir = tempfile::tempdir().unwrap();
    let text = stdout(dir.path(), &["cc", "list"]);
    let json: serde_json::Value =
        serde_json::from_str(&stdout(dir.path(), &["cc", "list", "--json"])).unwrap();
    for a in trimtab_cc::ALGORITHMS {
        assert!(text.contains(a.about), "{} in {text}", a.name);
        let listed = json.as_array().unwrap().iter().find(|v| v["name"] == a.name).unwrap();
        assert_eq!(listed["knobs"].as_array().unwrap().len(), a.knobs.len());
    }
    assert!(text.contains("mortise") && text.contains("omniscient"));
}

/// The page is written by hand around rows that are the registry's.
#[test]
fn the_page_of_algorithms_has_every_knob() {
    let dir = tempfile::tempdir().unwrap();
    let listed: serde_json::Value =
        serde_json::from_str(&stdout(dir.path(), &["cc", "list", "--json"])).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/algorithms.md");
    let page = fs::read_to_string(page).unwrap();
    for algorithm in listed.as_array().unwrap() {
        for knob in algorithm["knobs"].as_array().unwrap() {
            let text = |field: &str| knob[field].as_str().unwrap();
            let number = |field: &str| (knob[field].as_f64().unwrap() * 1e5).round() / 1e5;
            let unit = if text("unit") == "1" { "" } else { text("unit") };
            let row = format!(
                "\n| `{}` | {} | {} to {} | {unit} | {} |\n",
                text("name"),
                number("default"),
                number("min"),
                number("max"),
                text("about"),
            );
            assert!(page.contains(&row), "{}: the page lacks {row}", algorithm["name"]);
        }
    }
}

#[test]
fn the_kernel_keeps_its_former_name() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = |datapath| {
        let common = ["compare", "--app", "bulk", "--cc", "cubic", "--traces", "constant:1Mbit/s"];
        stdout(dir.path(), &[&common[..], &["--print-scenario", "--datapath", datapath]].concat())
    };
    assert_eq!(scenario("kernel"), scenario("tcp"));
    assert!(scenario("kernel").contains("transport = \"tcp\""));
}

#[test]
fn app_list() {
    let dir = tempfile::tempdir().unwrap();
    let text = stdout(dir.path(), &["app", "list"]);
    let json: serde_json::Value =
        serde_json::from_str(&stdout(dir.path(), &["app", "list", "--json"])).unwrap();
    for a in trimtab_apps::APPLICATIONS {
        assert!(text.contains(a.about), "{} in {text}", a.name);
        let listed = json.as_array().unwrap().iter().find(|v| v["name"] == a.name).unwrap();
        assert_eq!(listed["settings"].as_array().unwrap().len(), a.settings.len());
        assert_eq!(listed["qoe"][0], a.models[0]);
    }
}

#[test]
fn live_video_reports_how_far_behind_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let common = ["--cc", "cubic", "--traces", "constant:12Mbit/s", "--duration", "60s"];
    let flags = ["compare", "--app", "live", "--app", "vod", "--quiet", "--json", "out.json"];
    stdout(dir.path(), &[&flags[..], &common[..]].concat());
    let text = std::fs::read_to_string(dir.path().join("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let run = |app: &str| {
        json["runs"].as_array().unwrap().iter().find(|run| run["app"] == app).unwrap().clone()
    };
    // On a fast link it stays at its target, 6 s; a chunk joins at most a segment further behind.
    let latency = run("live")["latency_ms"].as_f64().unwrap();
    assert!((5800.0..6600.0).contains(&latency), "{latency}");
    assert_eq!(run("live")["stalls"], 0);
    assert!(run("vod").get("latency_ms").is_none());
}

#[test]
fn traces_are_made_shown_and_converted() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| stdout(dir.path(), args);
    run(&[
        "trace",
        "generate",
        "step",
        "--rates",
        "12Mbit/s,6Mbit/s",
        "--each",
        "2s",
        "-o",
        "s.trace.gz",
    ]);
    let info: serde_json::Value =
        serde_json::from_str(&run(&["trace", "info", "s.trace.gz", "--json"])).unwrap();
    assert_eq!(info[0]["trace"], "s");
    assert_eq!(info[0]["mean_mbps"], 9.0);
    assert_eq!(info[0]["duration_s"], 4.0);
    run(&["trace", "convert", "s.trace.gz", "s.csv"]);
    run(&["trace", "convert", "s.csv", "again.trace"]);
    let plain = fs::read_to_string(dir.path().join("again.trace")).unwrap();
    assert_eq!(
        plain,
        run(&["trace", "generate", "step", "--rates", "12Mbit/s,6Mbit/s", "--each", "2s"])
    );
    run(&["trace", "plot", "s.trace.gz", "-o", "s.svg"]);
    run(&["trace", "plot", "wifi:seed=2", "-o", "w.html"]);
    let svg = fs::read_to_string(dir.path().join("s.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg:.80}");
    for (file, start) in [("w.png", &b"\x89PNG\r\n"[..]), ("w.pdf", b"%PDF-")] {
        run(&["trace", "plot", "wifi:seed=2", "-o", file]);
        assert!(fs::read(dir.path().join(file)).unwrap().starts_with(start), "{file}");
    }
    let one = run(&["trace", "generate", "cellular", "--seed", "5", "--length", "20s"]);
    assert_eq!(one, run(&["trace", "generate", "cellular", "--seed", "5", "--length", "20s"]));
    assert_ne!(one, run(&["trace", "generate", "cellular", "--seed", "6", "--length", "20s"]));
}

#[test]
fn traces_have_segments_and_applications_requests() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| stdout(dir.path(), args);
    let steps = "step:12Mbit/s@5s,6Mbit/s@8s,24Mbit/s@4s";
    let text = run(&["trace", "segments", steps, "constant:9Mbit/s", "-o", "segments.png"]);
    assert!(
        text.contains("\n  3 segments, median 5.0 s: 100% over 3 s, 100% under 17 s; 2 changes: "),
        "{text}"
    );
    assert!(text.contains("; no change\n") && text.contains("\nall 2 traces\n"), "{text}");
    assert!(fs::read(dir.path().join("segments.png")).unwrap().starts_with(b"\x89PNG"));
    // A change by half costs more than it explains.
    let text = run(&["trace", "segments", steps, "--penalty", "50"]);
    assert!(text.contains("  1 segment, median 17.0 s: "), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&run(&["trace", "segments", steps, "--json"])).unwrap();
    assert_eq!(json[0]["values"]["segment-length"], serde_json::json!([5.0, 8.0, 4.0]));
    let e = error(dir.path(), &["trace", "segments", steps, "--penalty", "0"]);
    assert!(e.contains("\"0\" is no number above 0"), "{e}");

    let text = run(&["app", "cdf", "web", "--set", "pauses=false", "--sessions", "2"]);
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or("").to_owned();
    assert!(row("gap between requests, ms").contains(" 0.00 "), "{text}");
    assert!(text.starts_with("web: ") && !row("size of responses, KB").is_empty(), "{text}");
    let e = error(dir.path(), &["app", "cdf", "vod"]);
    assert!(e.contains("vod makes no requests by a schedule of its own"), "{e}");
    let e = error(dir.path(), &["app", "cdf", "web", "--set", "pause=false"]);
    assert!(e.contains("`pause` is no setting of web"), "{e}");
}

#[test]
fn help_version_and_completions() {
    let dir = tempfile::tempdir().unwrap();
    assert!(stdout(dir.path(), &["--version"]).starts_with("trimtab 0."));
    let help = stdout(dir.path(), &["compare", "--help"]);
    for part in ["Examples:", "--print-scenario", "150KB", "mortise:sigma=0.3"] {
        assert!(help.contains(part), "{part} in {help}");
    }
    assert!(!stdout(dir.path(), &["trace", "fetch", "--help"]).contains("--from"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(dir.path(), &["completions", shell]).contains("compare"));
    }
    assert_eq!(trimtab(dir.path(), &[]).status.code(), Some(2), "no verb is a mistake");
}

/// A reader pastes these lines: each of README.md's comparisons must be one that can run.
#[test]
fn comparisons_of_the_readme_are_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let lines: Vec<&str> = readme
        .match_indices("trimtab compare")
        .map(|(at, _)| readme[at..].split(['\n', '`', '#']).next().unwrap_or("").trim())
        .map(|line| line.trim_end_matches(" -->"))
        .collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in lines {
        let args: Vec<&str> = line.split_whitespace().skip(1).chain(["--print-scenario"]).collect();
        let scenario = stdout(&root, &args);
        let has_links = scenario.contains("traces = [") || scenario.contains("[[path]]");
        assert!(has_links, "{line}: {scenario}");
    }
}

#[test]
fn a_folder_that_is_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for expected in [true, false] {
        let out = trimtab(dir.path(), &[SMALL, &["--json", "nope/x.json"]].concat());
        assert!(out.status.success());
        let said = String::from_utf8_lossy(&out.stderr).contains("made the folder nope");
        assert_eq!(said, expected, "it is there the second time");
    }
}
