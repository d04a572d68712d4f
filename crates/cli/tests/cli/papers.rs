//! Every command that the catalogue of the papers names exists.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{stdout, trimtab};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn every_command_of_the_catalogue_exists() {
    let entries = stdout(Path::new(ROOT), &["reproduce", "--list", "--json"]);
    let entries: Vec<Value> = serde_json::from_str(&entries).unwrap();
    let commands = entries
        .iter()
        .filter_map(|entry| Some((entry["name"].as_str()?, entry["command"].as_str()?)));
    let mut count = 0;
    for (name, command) in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let exists = match words[..] {
            // Everything before --help has to be right: verbs, flags, and values such as schemes.
            ["trimtab", ref args @ ..] => {
                let args: Vec<&str> = args.iter().copied().chain(["--help"]).collect();
                trimtab(Path::new(ROOT), &args).status.success() && files_exist(&words)
            }
            ["cargo", "test", "-p", package, "--test", target, ref filter @ ..] => {
                let target = package_folder(package).join("tests").join(target);
                let file = target.with_extension("rs");
                has_test(if file.exists() { &file } else { &target }, filter)
            }
            ["cargo", "test", "-p", package, ref filter @ ..] => {
                has_test(&package_folder(package), filter)
            }
            ["cargo", "run", "--release", "-p", package, "--example", example] => {
                let example = package_folder(package).join("examples").join(example);
                example.exists() || example.with_extension("rs").exists()
            }
            ["./dev", verb, ..] => {
                let table = fs::read_to_string(Path::new(ROOT).join("dev")).unwrap();
                table.lines().any(|line| line.split(' ').next() == Some(verb))
            }
            _ => false,
        };
        assert!(exists, "{name}: {command}");
        count += 1;
    }
    assert!(count > 50, "{count} commands");
}

/// Whether the scenarios among the words are there.
fn files_exist(words: &[&str]) -> bool {
    let files = words.iter().filter(|word| word.starts_with("scenarios/"));
    files.into_iter().all(|file| Path::new(ROOT).join(file).exists())
}

/// The folder of a package of the workspace.
fn package_folder(package: &str) -> PathBuf {
    Path::new(ROOT).join("crates").join(package.strip_prefix("trimtab-").unwrap_or("cli"))
}

/// Whether a file or folder has a test that the filter of `cargo test` lets through: by its name, or by that
/// of its module. Without a filter any test will do.
fn has_test(path: &Path, filter: &[&str]) -> bool {
    let filter = match filter {
        [] => "",
        [filter] => *filter,
        _ => return false,
    };
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let inner = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            open.extend(inner.collect::<Vec<PathBuf>>());
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let is_module = path.file_stem().is_some_and(|stem| *stem == *filter);
            if tests_of(&text).any(|test| is_module || test.contains(filter)) {
                return true;
            }
        }
    }
    false
}

/// The names of the tests in a file. Tests of properties have a line of arguments after theirs.
fn tests_of(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[test]").skip(1).filter_map(|rest| {
        let name = rest.split_once("fn ")?.1;
        name.split(['(', '<']).next()
    })
}
