//! A learnt policy that gives no answer: the algorithm that was named as safe runs, it is said once, and counted.

use std::fs;
use std::path::Path;

use crate::support::{error, stdout, trimtab};

/// The policy that ships with the project.
const MODEL: &[u8] = include_bytes!("../../../../models/floo-counterfactual.safetensors");

/// A path on which nothing is special.
const PATH: &[&str] = &["--traces", "constant:8Mbit/s", "--duration", "9s"];

/// The run of `cc`, and what was said of it.
fn selections(folder: &Path, cc: &str, more: &[&str]) -> (serde_json::Value, String) {
    let mut args = vec!["compare", "--app", "download", "--cc", cc, "--quiet"];
    args.extend(if more.is_empty() { PATH } else { more });
    let table = trimtab(folder, &args);
    assert!(table.status.success(), "{}", String::from_utf8_lossy(&table.stderr));
    let said = [table.stderr, table.stdout].concat();
    args.extend(["--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(folder, &args)).unwrap();
    (json["runs"][0].clone(), String::from_utf8(said).unwrap())
}

/// The run is that of the safe algorithm, and every selection counts.
fn falls_back(folder: &Path, file: &str, why: &str) {
    let cc = format!("floo:model={file}:every=2s:safe=bbr");
    let (run, said) = selections(folder, &cc, &[]);
    let made = run["selections"]["made"].as_u64().unwrap();
    assert!(made >= 4, "every 2 s of 9 s");
    let expected = serde_json::json!({
        "made": made, "changed": 0, "reverts": 0, "fallbacks": made,
        "distrust": format!("there is no model: {why}"),
    });
    assert_eq!(run["selections"], expected, "{cc}");
    let (bbr, _) = selections(folder, "bbr", &[]);
    assert_eq!(run["qoe"], bbr["qoe"], "{cc} is BBR");
    // Before the runs, and what came of it below the table; breaks are where the table ends.
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
    assert!(said.contains(&format!("warning: {cc}: ")) && said.contains("bbr runs in its place"));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = format!(
        "{cc}: the policy declined {made} of {made} selections, and the fallback was chosen; the \
         first time because there is no model: {why}"
    );
    assert_eq!(said.matches(&sentence).count(), 1, "{said}");
}

#[test]
fn a_model_that_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    falls_back(dir.path(), "nowhere.safetensors", "its file cannot be read");
    // Without a named fallback it may be a mistake.
    let args = ["compare", "--app", "download", "--cc", "floo:model=nowhere.safetensors"];
    let e = error(dir.path(), &[&args, PATH].concat());
    assert!(e.contains("cannot be read") && e.contains("safe=CC"), "{e}");
}

#[test]
fn a_damaged_model() {
    let dir = tempfile::tempdir().unwrap();
    let mut damaged = MODEL.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(dir.path().join("flipped.safetensors"), damaged).unwrap();
    fs::write(dir.path().join("cut.safetensors"), &MODEL[..MODEL.len() / 2]).unwrap();
    for file in ["flipped.safetensors", "cut.safetensors"] {
        falls_back(dir.path(), file, "its file is damaged, or no model");
    }
}

#[test]
fn a_model_of_another_version() {
    let dir = tempfile::tempdir().unwrap();
    let (of, to) = (br#""version":"1""#, br#""version":"9""#);
    let at = MODEL.windows(of.len()).position(|w| w == of).expect("the file says its version");
    let mut other = MODEL.to_vec();
    other[at..at + to.len()].copy_from_slice(to);
    fs::write(dir.path().join("later.safetensors"), other).unwrap();
    falls_back(dir.path(), "later.safetensors", "its file is of another version");
}

/// Responses arrive at rates that nobody has learnt from.
#[test]
fn a_state_that_nobody_learnt_from() {
    let dir = tempfile::tempdir().unwrap();
    let fast = ["--traces", "constant:3Gbit/s", "--rtt", "100us", "--duration", "2s"];
    let cc = "floo:every=500ms:safe=cubic";
    let (run, said) = selections(dir.path(), cc, &fast);
    let selections = &run["selections"];
    assert!(selections["fallbacks"].as_u64().unwrap() > 0, "{selections}");
    let why = selections["distrust"].as_str().unwrap();
    assert!(why.ends_with("is outside the range in which the policy learnt"), "{why}");
    let switches = run["switches"].as_array().unwrap();
    assert_eq!((&switches[0]["from"], &switches[0]["to"]), (&"copa".into(), &"cubic".into()));
    assert!(!said.contains("warning: ") && said.contains("the policy declined"), "{said}");
}
