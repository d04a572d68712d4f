//! The engine against its own description: Schemathesis makes requests from `/openapi.json`, right
//! and wrong ones, and checks that each answer is as described. `./dev contract` installs it.

mod common;

use std::process::Command;

use common::{Site, batch, now_ms, report, until};
use trimtab_fleet_client::Name;

/// The program, where `./dev contract` has installed it.
const PROGRAM: &str = "TRIMTAB_SCHEMATHESIS";
/// Requests of each operation in addition to those that cover its schema.
const EXAMPLES: &str = "3";
/// The same requests in each run.
const SEED: &str = "1";

#[test]
fn engine_process() {
    common::run_if_asked();
}

/// Everybody's token, and an aggregate that exists in every second request or so.
fn settings(site: &Site) -> String {
    format!(
        r#"
headers = {{ Authorization = "Bearer {operator}" }}
parameters = {{ service = "tv", prefix = "203.0.113.0/24" }}
warnings = false

[checks]
enabled = false
not_a_server_error.enabled = true
status_code_conformance.enabled = true
content_type_conformance.enabled = true
response_schema_conformance.enabled = true

[phases.stateful]
enabled = false

[[operations]]
include-path-regex = "^/v1/(reports|configurations|comparisons)$"
include-method = "POST"
headers = {{ Authorization = "Bearer {edge}" }}
"#,
        operator = site.operator,
        edge = site.edge
    )
}

#[test]
fn the_engine_answers_as_its_description_says() {
    let Some(program) = std::env::var_os(PROGRAM) else {
        println!("skipped: `./dev contract` installs schemathesis and runs this");
        return;
    };
    let limits = "[limits]\nrequests_per_second = 100000\nstrangers_per_address = 100000";
    let site = Site::new(limits);
    let engine = site.start();
    // There is something to be asked for.
    let name = Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() };
    let now = (now_ms() / 1000) as u64;
    let reports = vec![report("tv/203.0.113.0/24", now, 0, 5.0)];
    assert_eq!(engine.client(&site.edge).report(&batch(1, reports)).expect("kept").kept, 1);
    let viewer = engine.client(&site.viewer);
    until("a decision", || {
        viewer.decisions(&name, 1).ok().filter(|some| !some.decisions.is_empty())
    });
    let config = site.folder.path().join("schemathesis.toml");
    std::fs::write(&config, settings(&site)).expect("a file");
    let run = Command::new(program)
        .current_dir(site.folder.path())
        .arg("--config-file")
        .arg(&config)
        .args(["run", &format!("{}/openapi.json", engine.url)])
        .args(["--max-examples", EXAMPLES, "--seed", SEED, "--no-color"])
        .output()
        .expect("schemathesis runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    // It has tried every operation.
    let operations = said.lines().find(|line| line.contains("Tested:")).expect("a summary");
    let tested: usize = operations.split(':').nth(1).map_or(0, |n| n.trim().parse().unwrap_or(0));
    assert!(tested >= 30, "{said}");
    println!("{said}");
}
