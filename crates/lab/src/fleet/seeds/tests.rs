//! Seeds one after the other, stopped and gone on with.

use super::*;
use crate::fleet::render;

/// Two services on bottlenecks of two aggregates each.
const FLEET: &str = r#"
name = "shared"
aggregates = 3
duration = "48h"
connections = 3
fixed = 1
baselines = ["cubic", "bbr"]
baselines_every = 2
compare_with = "cubic"
[app]
kind = "download"
size = ["50KB", "100KB"]
[links]
rate = ["2Mbit/s", "8Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [0.5, 2]
[links.shared]
aggregates = 2
connections = 2
within = "500ms"
cross = ["cubic"]
[[service]]
name = "fast"
interval = "6h"
reward = "mean(throughput)"
incumbent = "cubic"
others = ["bbr"]
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
[service.safe]
initial_rate = 1
[[service]]
name = "soon"
reward = "10 - p50(request_time)"
"#;

const EFFORT: Effort = Effort { jobs: Some(2), quiet: true };

fn with(seeds: RangeInclusive<u64>, folder: Option<&Path>) -> Result<FleetResult, SimulateError> {
    let scenario = FleetScenario::parse(FLEET).unwrap();
    simulate(&scenario, seeds, &[], EFFORT, folder, "")
}

fn json(result: &FleetResult) -> String {
    serde_json::to_string(result).unwrap()
}

#[test]
fn a_run_that_was_stopped_goes_on_and_ends_as_if_it_had_not_been() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("kept");
    let whole = with(4..=5, None).unwrap();
    assert_eq!((whole.seed, whole.seeds), (4, 2));
    with(4..=4, Some(&folder)).unwrap();
    let first = folder.join("seed-4.json");
    let before = fs::metadata(&first).unwrap().modified().unwrap();
    let resumed = with(4..=5, Some(&folder)).unwrap();
    assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), before, "it was not run again");
    assert!(folder.join("seed-5.json").exists());
    assert_eq!(json(&resumed), json(&whole));
    assert_eq!(json(&with(4..=5, Some(&folder)).unwrap()), json(&whole), "all from the folder");

    let table = render(&whole);
    assert!(table.starts_with("shared: 3 aggregates, 8 intervals, 3 connections in each, seeds 4"));
    for text in [
        "harm %",
        "  others cubic",
        "and the start: in one of 2 intervals",
        "reward vs. the incumbent cubic",
        "of 6 aggregate-days",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let of = |seed: u64| {
        let file = fs::read(folder.join(format!("seed-{seed}.json"))).unwrap();
        serde_json::from_slice::<SeedFile>(&file).unwrap().services.remove(0)
    };
    for fared in of(4) {
        let in_all = ["learnt", "safe", "cubic"].contains(&&*fared.name);
        assert_eq!(fared.courses[0].rewards.len(), if in_all { 8 } else { 4 }, "{}", fared.name);
    }
    let cubic = whole.services[0].schemes.iter().find(|s| s.name == "cubic").unwrap();
    let harm = cubic.cross[0].harm.unwrap();
    assert_eq!((harm.throughput.value, harm.loss.value), (0.0, 0.0), "its own kind is the measure");
}

#[test]
fn files_of_something_else_are_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    with(4..=4, Some(folder)).unwrap();
    let of = |text: &str| {
        let scenario = FleetScenario::parse(text).unwrap();
        simulate(&scenario, 4..=4, &[], EFFORT, Some(folder), "").unwrap_err().to_string()
    };
    let message = of(&FLEET.replace("mean(throughput)", "p25(throughput)"));
    assert!(message.contains("seed-4.json: is of another scenario"), "{message}");
    fs::copy(folder.join("seed-4.json"), folder.join("seed-6.json")).unwrap();
    let message = with(6..=6, Some(folder)).unwrap_err().to_string();
    assert!(message.contains("seed-6.json: is of another scenario"), "{message}");
    fs::write(folder.join("seed-4.json"), "{").unwrap();
    let message = of(FLEET);
    assert!(message.contains("remove it to run the seed again"), "{message}");
}
