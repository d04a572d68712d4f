//! `trimtab parity`, on comparisons of the simulator that claim to be another datapath's.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{error, stdout, trimtab};

/// Makes `sim.json`.
fn compare(folder: &Path, cc: &str, transport: &str) {
    let command = format!(
        "compare --app download --cc {cc} --traces constant:8Mbit/s --transport {transport} \
         --rtt 40ms --duration 5s --seeds 2 --json sim.json --quiet"
    );
    stdout(folder, &command.split_whitespace().collect::<Vec<_>>());
}

/// Writes `other.json`: the runs of `sim.json` as those of this datapath, with their throughput
/// times this.
fn claim(folder: &Path, datapath: &str, factor: f64) {
    let text = fs::read_to_string(folder.join("sim.json")).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    if datapath == "kernel" {
        record["provenance"]["kernel"] = "6.12".into();
    }
    for run in record["runs"].as_array_mut().unwrap() {
        run["datapath"] = datapath.into();
        let throughput = run["throughput_mbps"].as_f64().unwrap();
        run["throughput_mbps"] = (factor * throughput).into();
    }
    fs::write(folder.join("other.json"), record.to_string()).unwrap();
}

#[test]
fn it_makes_the_same_runs_and_judges_the_difference() {
    let kernel = ["throughput", "rtt_p95", "retransmits", "rct_p50"];
    let noq = ["throughput", "queue_delay", "loss", "rct_p50"];
    for (datapath, transport, cc, system, quantities) in [
        ("kernel", "tcp", "cubic:linux", Value::from("6.12"), kernel),
        ("quic-virtual", "noq", "cubic", Value::Null, noq),
        ("quic", "noq", "cubic", Value::Null, noq),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        compare(folder, cc, transport);
        claim(folder, datapath, 1.0);
        let table = stdout(folder, &["parity", "other.json", "--json", "parity.json", "--quiet"]);
        assert!(table.contains(cc) && !table.contains("% !"), "{table}");
        assert!(table.contains("4 of 4 medians are within their bands"), "{table}");
        let printed = stdout(folder, &["parity", "other.json", "--json", "-", "--quiet"]);
        assert_eq!(fs::read_to_string(folder.join("parity.json")).unwrap(), printed);
        let parity: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(parity["schema"], "trimtab.parity/2");
        assert_eq!(parity["reference"]["datapath"], datapath);
        assert_eq!(parity["reference"]["system"], system);
        assert_eq!(parity["model"]["datapath"], "sim");
        let row = &parity["rows"][0];
        assert_eq!((&row["cc"], &row["cells"]), (&cc.into(), &1.into()));
        for quantity in quantities {
            let difference = row[quantity]["difference"].as_f64().unwrap();
            assert!(difference.abs() < 1e-9, "{quantity}: {difference}");
        }
        claim(folder, datapath, 1.2);
        let out = trimtab(folder, &["parity", "other.json", "--quiet"]);
        assert_eq!(out.status.code(), Some(1), "a result, not a mistake of the user");
        let message = String::from_utf8(out.stderr).unwrap();
        assert!(message.contains("the simulator is out of its bands"), "{message}");
        assert!(String::from_utf8(out.stdout).unwrap().contains("% !"), "the table marks it");
    }
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    compare(folder, "cubic", "quic");
    let message = error(folder, &["parity", "sim.json"]);
    assert!(message.contains("sim.json: the runs are those of the datapath `sim`"), "{message}");
    assert!(
        message.contains("compare --datapath kernel|quic-virtual|quic|s2n-virtual|webrtc-virtual|"),
        "{message}"
    );
    fs::write(folder.join("other.json"), "{}").unwrap();
    let message = error(folder, &["parity", "other.json"]);
    assert!(message.contains("not the JSON of `trimtab compare --json`"), "{message}");
    let message = error(folder, &["parity", "nowhere.json"]);
    assert!(message.contains("nowhere.json: cannot be read"), "{message}");
}
