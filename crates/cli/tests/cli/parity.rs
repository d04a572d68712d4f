//! `trimtab parity`, on a comparison of the simulator that claims to be the kernel's.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{error, stdout, trimtab};

const COMPARE: &str = "compare --app download --cc cubic:linux --traces constant:8Mbit/s \
                       --transport tcp --rtt 40ms --duration 5s --seeds 2 --json sim.json --quiet";

/// Writes `kernel.json`: the runs of `sim.json` as the kernel's, with their throughput times this.
fn as_kernel(folder: &Path, factor: f64) {
    let text = fs::read_to_string(folder.join("sim.json")).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["provenance"]["kernel"] = "6.12".into();
    for run in record["runs"].as_array_mut().unwrap() {
        run["datapath"] = "kernel".into();
        let throughput = run["throughput_mbps"].as_f64().unwrap();
        run["throughput_mbps"] = (factor * throughput).into();
    }
    fs::write(folder.join("kernel.json"), record.to_string()).unwrap();
}

#[test]
fn it_makes_the_same_runs_and_judges_the_difference() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    stdout(folder, &COMPARE.split_whitespace().collect::<Vec<_>>());
    as_kernel(folder, 1.0);
    let table = stdout(folder, &["parity", "kernel.json", "--json", "parity.json", "--quiet"]);
    assert!(table.contains("cubic:linux") && !table.contains("% !"), "{table}");
    let printed = stdout(folder, &["parity", "kernel.json", "--json", "-", "--quiet"]);
    assert_eq!(fs::read_to_string(folder.join("parity.json")).unwrap(), printed);
    let parity: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(parity["schema"], "trimtab.parity/1");
    assert_eq!(parity["kernel"], "6.12");
    let row = &parity["rows"][0];
    assert_eq!((&row["cc"], &row["cells"]), (&"cubic:linux".into(), &1.into()));
    for quantity in ["throughput", "rtt_p95", "retransmits", "rct_p50"] {
        let difference = row[quantity]["difference"].as_f64().unwrap();
        assert!(difference.abs() < 1e-9, "{quantity}: {difference}");
    }
    as_kernel(folder, 1.2);
    let out = trimtab(folder, &["parity", "kernel.json", "--quiet"]);
    assert_eq!(out.status.code(), Some(1), "a result, not a mistake of the user");
    let message = String::from_utf8(out.stderr).unwrap();
    assert!(message.contains("the simulator is out of its bands"), "{message}");
    assert!(String::from_utf8(out.stdout).unwrap().contains("% !"), "the table marks it");
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    stdout(folder, &COMPARE.split_whitespace().collect::<Vec<_>>());
    let message = error(folder, &["parity", "sim.json"]);
    assert!(message.contains("sim.json: the runs are the simulator's"), "{message}");
    assert!(message.contains("compare --datapath kernel --json FILE"), "{message}");
    fs::write(folder.join("other.json"), "{}").unwrap();
    let message = error(folder, &["parity", "other.json"]);
    assert!(message.contains("not the JSON of `trimtab compare --json`"), "{message}");
    let message = error(folder, &["parity", "nowhere.json"]);
    assert!(message.contains("nowhere.json: cannot be read"), "{message}");
}
