//! The checks on this repository. Each asserts first that it had something to look at.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use trimtab_tidy::{Finding, dependencies, files, includes, links, root, tracked_files, words};

fn assert_clean(findings: &[Finding]) {
    let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} finding(s):\n{}", list.len(), list.join("\n"));
}

/// The tracked files; outside a git checkout (a source archive) there is nothing to tell ours from the user's, so
/// the test says so and passes, except in CI.
fn tracked() -> Option<Vec<String>> {
    let files = tracked_files();
    if files.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI runs in a git checkout, with git installed");
        println!("skipped: not a git checkout, or git is missing");
    }
    files
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn files_keep_the_house_style() {
    let Some(tracked) = tracked() else { return };
    let mut findings = Vec::new();
    for path in &tracked {
        let bytes = std::fs::read(root().join(path)).expect("a tracked file can be read");
        if bytes.len() as u64 > files::BYTES_MAX {
            findings.push(Finding::at(path, format!("{} bytes: too large for git", bytes.len())));
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            findings.extend(files::check(path, text));
            findings.extend(includes::check(path, text));
        }
        let of_workspace = path.starts_with("crates/") || path.starts_with("tools/");
        if of_workspace && path.ends_with("/Cargo.toml") {
            findings.extend(files::check_manifest(path, &read(path)));
        }
    }
    assert!(tracked.iter().any(|path| path == "tools/tidy/src/files.rs"), "sees itself");
    assert_clean(&findings);
}

#[test]
fn links_of_the_documentation_lead_somewhere() {
    let Some(tracked) = tracked() else { return };
    let pages: BTreeMap<String, String> = tracked
        .iter()
        .filter(|path| path.ends_with(".md"))
        .map(|path| (path.clone(), read(path)))
        .collect();
    assert!(pages.contains_key("README.md") && pages.contains_key(links::SUMMARY));
    assert_clean(&links::check(&pages, &tracked.into_iter().collect::<BTreeSet<_>>()));
}

#[test]
fn words_that_are_out_get_fewer() {
    let Some(tracked) = tracked() else { return };
    let rules = words::Rules::parse(&read("tools/tidy/words.toml")).expect("words.toml");
    let counted = tracked.into_iter().filter(|path| words::counts(path));
    let texts: BTreeMap<String, String> = counted.map(|path| (path.clone(), read(&path))).collect();
    assert!(texts.contains_key("README.md") && texts.len() > 500, "{} files", texts.len());
    assert_clean(&words::check(&rules, &texts));
}

/// What `cargo metadata` prints for the targets of `deny.toml`.
fn metadata(rules: &dependencies::Rules) -> dependencies::Metadata {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    for target in rules.targets() {
        cargo.args(["--filter-platform", target]);
    }
    let output = cargo.current_dir(root()).output().expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo metadata failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata = dependencies::Metadata::parse(&output.stdout).expect("cargo's JSON");
    assert!(metadata.package_count() > 20, "it lists dependencies, and not ours alone");
    metadata
}

#[test]
fn dependencies_keep_to_deny_toml() {
    let rules = dependencies::Rules::parse(&read("deny.toml")).expect("deny.toml");
    assert_clean(&dependencies::check(&rules, &metadata(&rules)));
}

#[test]
fn rooms_keep_to_rooms_toml() {
    let rules = dependencies::Rules::parse(&read("deny.toml")).expect("deny.toml");
    let rooms = dependencies::Rooms::parse(&read("tools/tidy/rooms.toml")).expect("rooms.toml");
    assert_clean(&dependencies::check_rooms(&rooms, &metadata(&rules)));
}
