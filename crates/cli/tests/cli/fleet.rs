//! `trimtab fleet real`: engine, agents and connections as in production, on this machine's kernel.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::{error, trimtab};

/// By opposite points, whose steps are small and certain, rather than by a model, which takes
/// longer to see through the noise of intervals of two seconds.
const SMALL: &str = r#"
name = "small"
learn = "24s"
block = "4s"
rounds = 1
grace = "400ms"

[clients]
count = 3
size = ["100KB", "300KB"]
pause = "50ms"

[service]
name = "files"
interval = "2s"
reward = "mean(throughput) - 100 * mean(loss)"
[service.contexts]
bands = [0]
weekend = false
[service.learning]
preset = "pairs"
average = 1
rate = 0.3
step_max = 0.2
[service.knobs]
startup_rate_max = { min = 1, max = 100, scale = "log" }
[service.start]
startup_rate_max = 8
[service.safe]
startup_rate_max = 8

[[edge]]
name = "fast"
link = "constant:40Mbit/s"
rtt = "60ms"
buffer = "4BDP"

[[edge]]
name = "slow"
link = "constant:5Mbit/s"
rtt = "40ms"
buffer = "8KB"

[[edge]]
name = "lossy"
link = "constant:12Mbit/s"
rtt = "20ms"
buffer = "1BDP"
loss = "1%"
"#;

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// What this machine lacks for it, where it lacks something: then tests skip, and print that.
fn lacks() -> Option<String> {
    let out = trimtab(Path::new("."), &["doctor", "--json"]);
    let findings: Vec<Value> = serde_json::from_slice(&out.stdout).expect("findings");
    let bad = findings.iter().find(|finding| finding["health"] == "bad");
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun".to_owned());
    }
    bad.map(ToString::to_string)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number: {value}"))
}

#[test]
fn three_edges_of_one_engine_each_learn_their_own_link() {
    if let Some(lack) = lacks() {
        eprintln!("skipped: {lack}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("small.toml"), SMALL).unwrap();
    let args =
        ["fleet", "real", "--scenario", "small.toml", "--json", "out.json", "--plot", "out.svg"];
    let out = trimtab(dir.path(), &[&args[..], &["--keep", "kept"]].concat());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    let table = String::from_utf8(out.stdout).unwrap();
    println!("{table}");
    let run: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("out.json")).unwrap()).unwrap();
    let edges = run["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 3);
    for (edge, name) in edges.iter().zip(["fast", "slow", "lossy"]) {
        assert_eq!(edge["name"], name);
        let course = edge["course"].as_array().unwrap();
        let rewarded = course.iter().filter(|moment| moment["reward"].is_f64()).count();
        assert!(course.len() >= 6 && rewarded * 2 > course.len(), "{name}: {course:?}");
        for block in edge["blocks"].as_array().unwrap() {
            assert!(number(&block["download_mbps"]) > 0.2, "{block}");
            assert!(block["downloads"].as_u64() > Some(2), "{block}");
        }
        let tried: BTreeSet<String> =
            course.iter().map(|moment| moment["tried"]["startup_rate_max"].to_string()).collect();
        assert!(tried.len() >= 4, "{name}: it looks around: {tried:?}");
        assert!(edge["differences"][0]["reward"]["mean"].is_f64(), "{name}: {edge}");
        assert!(table.contains(&format!("\n{name}: constant:")), "{table}");
    }
    assert_eq!(edges[0]["blocks"].as_array().unwrap().len(), 2, "two arms once");
    // Half a minute is too short to say which way each goes; each has its own, since nothing but its rewards leads it.
    let ways: BTreeSet<String> = edges
        .iter()
        .map(|edge| {
            let course = edge["course"].as_array().unwrap().iter();
            course.map(|moment| moment["guess"]["startup_rate_max"].to_string() + " ").collect()
        })
        .collect();
    assert_eq!(ways.len(), 3, "{ways:?}");
    assert!(
        std::fs::read_to_string(dir.path().join("out.svg")).unwrap().contains("startup_rate_max")
    );
    assert!(dir.path().join("kept/engine/engine.db").exists());
    assert!(dir.path().join("kept/slow/agent.toml").exists());
    // Nothing of it stays in the kernel.
    let left = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let config = std::fs::read_to_string(dir.path().join("kept/slow/agent.toml")).unwrap();
    let suffix = config.lines().find_map(|line| line.strip_prefix("suffix = ")).unwrap();
    let name = format!("trimtab_pcc{}", suffix.trim_matches('"'));
    assert!(!left.unwrap().contains(&name), "{name}");
}

#[test]
fn what_is_wrong_with_a_fleet_is_told_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fleet.toml");
    let told = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        error(dir.path(), &[&["fleet", "real", "--scenario", "fleet.toml"][..], more].concat())
    };
    let wrong = SMALL.replace("startup_rate_max = { min", "startup_rate_ma = { min");
    let message = told(&wrong, &[]);
    assert!(
        message.contains("fleet.toml: service: ") && message.contains("startup_rate_max"),
        "{message}"
    );
    let message = told(SMALL, &["--learn", "1s"]);
    assert!(message.contains("learn: two intervals of 2s or more"), "{message}");
    let message = told(SMALL, &["--keep", "."]);
    assert!(message.contains("cannot make the folder .: File exists"), "{message}");
    if !is_root() {
        let message = told(SMALL, &[]);
        assert!(message.contains("needs root") && message.contains("sudo"), "{message}");
    }
}
