//! Algorithms from outside: what the how-to says, step by step, in an empty folder; what is wrong.

use std::fs::{read_to_string, write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::error;

const PAGE: &str = include_str!("../../../../docs/how-to/plug-in-an-algorithm.md");

/// A file of the crate that loads them.
fn of_plugin(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin").join(path)
}

/// The fenced blocks of a page: the text before each, its language, and what is in it.
fn blocks(page: &'static str) -> Vec<(&'static str, &'static str, &'static str)> {
    let parts: Vec<&str> = page.split("\n```").collect();
    let (opening, closing) = (parts[1..].iter().step_by(2), parts.iter().step_by(2));
    let block = |(opening, before)| {
        let (opening, before): (&&'static str, &&'static str) = (opening, before);
        let (language, text) = opening.split_once('\n').unwrap();
        (*before, language, text)
    };
    opening.zip(closing).map(block).collect()
}

/// The file that the text before a block asks to save it as.
fn file_of(before: &str) -> Option<&str> {
    Some(before.trim_end().strip_suffix("`:")?.rsplit_once('`')?.1)
}

/// Every file of the page is saved and every command run, in order, in a folder that has nothing
/// else.
#[test]
fn the_page_works_step_by_step_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_trimtab")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let (mut saved, mut run) = (Vec::new(), 0);
    for (before, language, text) in blocks(PAGE) {
        if language == "sh" {
            let mut shell = Command::new("sh");
            shell.args(["-ec", text]).current_dir(folder.path()).env("PATH", &path);
            let done = shell.output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{text}\n{said}");
            run += 1;
        } else {
            let name = file_of(before).unwrap_or_else(|| panic!("no name of\n{text}"));
            write(folder.path().join(name), format!("{}\n", text.trim_end())).unwrap();
            saved.push(name);
        }
    }
    assert_eq!(saved, ["mine.c", "mine.py", "make_onnx.py", "mine.toml", "shared.toml"]);
    assert_eq!(run, 5);
    let script = read_to_string(of_plugin("examples/make_onnx.py")).unwrap();
    assert_eq!(read_to_string(folder.path().join("make_onnx.py")).unwrap(), script);
    // The names are those of the command line.
    let html = read_to_string(folder.path().join("mine.html")).unwrap();
    assert!(html.contains("plugin:./mine.so"));
    let json = read_to_string(folder.path().join("shared.json")).unwrap();
    let shared: Value = serde_json::from_str(&json).unwrap();
    assert!(shared["provenance"]["scenario"].as_str().unwrap().contains("python:mine.py"));
}

/// The page lists what can be observed, as the code does.
#[test]
fn the_page_lists_every_observation() {
    let (_, table) = PAGE.split_once("## Observations").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted = trimtab_plugin::OBSERVATIONS;
    let wanted: Vec<String> =
        wanted.iter().map(|(name, about)| format!("| `{name}` | {about} |")).collect();
    assert_eq!(rows, wanted);
}

#[test]
fn a_plug_in_that_is_wrong_ends_the_comparison_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--app", "bulk", "--traces", "constant:12Mbit/s", "--duration", "2s", "--quiet"];
    let e = |cc: &str| error(folder.path(), &[&["compare", "--cc", cc], &short[..]].concat());
    assert!(e("plugin:./mine.so").contains("plugin:./mine.so: ./mine.so cannot be read"));
    let text = "class A:\n    def on_ack(self, ack):\n        1 / (ack.now_ms < 500)\n";
    write(folder.path().join("late.py"), text).unwrap();
    let message = e("python:late.py");
    assert!(message.starts_with("error: python:late.py: ZeroDivisionError: "), "{message}");
    assert!(message.contains("line 3, in on_ack"), "{message}");
    write(folder.path().join("a.so"), "x").unwrap();
    assert!(e("plugin:./a.so").contains("the library cannot be loaded"));
}
