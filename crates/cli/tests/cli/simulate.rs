//! `trimtab fleet simulate`.

use std::fs;

use serde_json::Value;

use crate::support::{error, stdout};

const FLEET: &str = include_str!("../../../../scenarios/fleet/car.toml");

const SIMULATE: &[&str] = &[
    "fleet",
    "simulate",
    "--scenario",
    "fleet.toml",
    "--seed",
    "3",
    "--aggregates",
    "2",
    "--duration",
    "2h",
    "--quiet",
];

#[test]
fn a_fleet_is_simulated_as_flags_and_file_have_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::write(folder.join("fleet.toml"), FLEET).unwrap();
    let more = ["--jobs", "1", "--json", "fleet.json", "--plot", "regret.svg"];
    let table = stdout(folder, &[SIMULATE, &more[..]].concat());
    assert!(
        table.starts_with("fleet-car: 2 aggregates, 6 intervals, 2 connections in each, seed 3\n")
    );
    assert!(table.contains("\ncar: mean(throughput) - 20 * mean(rtt)\n"), "{table}");
    for scheme in ["learnt", "bbr", "start"] {
        assert!(table.lines().any(|line| line.trim_start().starts_with(scheme)), "{table}");
    }
    assert!(fs::read_to_string(folder.join("regret.svg")).unwrap().starts_with("<svg"));
    let record = |text: &str| {
        let mut record: Value = serde_json::from_str(text).expect("it is JSON");
        let command = record.as_object_mut().unwrap().remove("command").expect("a command");
        (record, command.as_str().expect("a text").to_owned())
    };
    let (own, command) = record(&fs::read_to_string(folder.join("fleet.json")).unwrap());
    assert!(command.starts_with("trimtab fleet simulate --scenario fleet.toml"), "{command}");
    let printed = stdout(folder, &[SIMULATE, &["--jobs", "2", "--json", "-"]].concat());
    assert_eq!(record(&printed).0, own, "on any number of cores");
}

#[test]
fn seeds_are_kept_in_a_folder_and_not_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::write(folder.join("fleet.toml"), FLEET).unwrap();
    let more = ["--aggregates", "2", "--duration", "2h", "--quiet", "--seeds", "3..4"];
    let whole = [&SIMULATE[..4], &more[..], &["--out", "kept"]].concat();
    let table = stdout(folder, &whole);
    assert!(table.contains("2 connections in each, seeds 3 to 4\n"), "{table}");
    let kept = fs::read(folder.join("kept/seed-4.json")).unwrap();
    assert_eq!(stdout(folder, &whole), table);
    assert_eq!(fs::read(folder.join("kept/seed-4.json")).unwrap(), kept);
    let message = error(folder, &[&whole[..], &["--connections", "3"]].concat());
    assert!(message.contains("seed-3.json: is of another scenario"), "{message}");
    let message = error(folder, &[&SIMULATE[..4], &["--seeds", "4..3"]].concat());
    assert!(message.contains("it takes A..B, e.g. 21..30"), "{message}");
}

#[test]
fn what_a_fleet_found_is_saved_and_another_one_begins_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    fs::write(folder.join("fleet.toml"), FLEET).unwrap();
    let new = stdout(folder, &[SIMULATE, &["--save-prior", "prior.toml"]].concat());
    let prior = fs::read_to_string(folder.join("prior.toml")).unwrap();
    assert!(prior.starts_with("# What a fleet found: trimtab fleet simulate "), "{prior}");
    let with = [SIMULATE, &["--prior", "prior.toml"]].concat();
    assert_ne!(stdout(folder, &with), new);
    // The tables go into the description of a service as they are.
    let inside = FLEET.to_owned() + &prior.replace("[[prior]]", "[[service.prior]]");
    fs::write(folder.join("fleet.toml"), inside).unwrap();
    assert_eq!(stdout(folder, SIMULATE), stdout(folder, &with));
    fs::write(folder.join("prior.toml"), "[[prior]]\nrun = \"cubicc\"\n").unwrap();
    let message = error(folder, &with);
    assert!(message.contains("prior.toml: ") && message.contains("missing field"), "{message}");
    let message = error(folder, &[SIMULATE, &["--prior", "gone.toml"]].concat());
    assert!(message.contains("cannot read the prior gone.toml"), "{message}");
}

#[test]
fn mistakes_name_the_file_and_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let message = error(folder, SIMULATE);
    assert!(message.contains("cannot read the scenario fleet.toml"), "{message}");
    let told = |text: &str, more: &[&str]| {
        fs::write(folder.join("fleet.toml"), text).unwrap();
        error(folder, &[SIMULATE, more].concat())
    };
    let message = told(&FLEET.replace("rtt =", "rrt ="), &[]);
    assert!(message.contains("fleet.toml: ") && message.contains("unknown field `rrt`"));
    let message = told(&FLEET.replace("\"cubic\", \"bbr\"", "\"cubic\", \"bbrr\""), &[]);
    assert!(message.contains("baselines: bbrr: no such algorithm"), "{message}");
    let message = told(&FLEET.replace("others = [\"bbr\"", "others = [\"bbrr\""), &[]);
    assert!(message.contains("service 1: others \"bbrr\": no such algorithm"), "{message}");
    // A program that ends at once answers nothing.
    let message = told(FLEET, &["--scheme", "mine=true"]);
    assert!(message.contains("the scheme mine: "), "{message}");
    let message = told(FLEET, &["--plot", "regret.gif"]);
    assert!(message.contains("regret.gif"), "{message}");
}
