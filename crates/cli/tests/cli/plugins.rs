//! Algorithms from outside: what the how-to says, step by step, in an empty folder; the examples
//! next to the built-in algorithms; what is wrong.

use std::fs::{read_to_string, write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{error, stdout};

const PAGE: &str = include_str!("../../../../docs/how-to/plug-in-an-algorithm.md");

/// A file of the crate that loads them.
fn of_plugin(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin").join(path)
}

/// Builds a library.
fn build(source: &Path, library: &Path) {
    let built = Command::new("cc")
        .args(["-std=c99", "-shared", "-fPIC", "-O2", "-w", "-I"])
        .arg(of_plugin("include"))
        .arg("-o")
        .args([library, source])
        .status()
        .expect("a C compiler");
    assert!(built.success());
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

/// The throughput of each scheme and its loss, by its label, in a comparison of these flags.
fn measured(folder: &Path, schemes: &[&str], more: &[&str]) -> Vec<(String, f64, f64)> {
    let mut args = vec!["compare", "--app", "bulk", "--quiet", "--json", "-", "--duration", "30s"];
    schemes.iter().for_each(|scheme| args.extend(["--cc", scheme]));
    args.extend(more);
    let all: Value = serde_json::from_str(&stdout(folder, &args)).unwrap();
    let row = |run: &Value| {
        let number = |key: &str| run[key].as_f64().unwrap();
        (run["cc"].as_str().unwrap().to_owned(), number("throughput_mbps"), number("loss_ratio"))
    };
    all["runs"].as_array().unwrap().iter().map(row).collect()
}

/// The examples are NewReno: the same throughput within 1%, alone and next to each other, under
/// drops of the queue and random ones.
#[test]
fn the_examples_in_c_and_python_are_newreno() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("newreno.so");
    build(&of_plugin("examples/newreno.c"), &library);
    let python = format!("python:{}", of_plugin("examples/newreno.py").display());
    let schemes = ["newreno", "plugin:./newreno.so", &python];
    for more in [
        &["--traces", "constant:12Mbit/s", "--buffer", "1BDP", "--rtt", "40ms"][..],
        &["--traces", "constant:12Mbit/s", "--buffer", "0.5BDP", "--flows", "2"],
        &["--traces", "constant:12Mbit/s", "--loss", "0.5%", "--seeds", "2", "--transport", "tcp"],
    ] {
        let runs = measured(folder.path(), &schemes, more);
        let of = |scheme: &str| runs.iter().filter(move |(cc, ..)| cc == scheme);
        for scheme in &schemes[1..] {
            for ((_, wanted, losses), (_, got, lost)) in of("newreno").zip(of(scheme)) {
                println!("{scheme} {more:?}: {got} next to {wanted} Mbit/s, {lost} {losses}");
                assert!(
                    (got / wanted - 1.0).abs() < 0.01,
                    "{scheme} {more:?}: {got}, not {wanted}"
                );
                assert!((lost - losses).abs() < 0.0005, "{scheme} {more:?}: {lost}, not {losses}");
            }
        }
        assert_eq!(measured(folder.path(), &schemes, more), runs, "the same again");
    }
}

#[test]
fn a_plug_in_that_is_wrong_ends_the_comparison_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--app", "bulk", "--traces", "constant:12Mbit/s", "--duration", "2s", "--quiet"];
    let e = |cc: &str| error(folder.path(), &[&["compare", "--cc", cc], &short[..]].concat());
    assert!(e("plugin:./mine.so").contains("plugin:./mine.so: ./mine.so cannot be read"));
    let text = "class A:\n    def on_ack(self, ack):\n        return 1 / (ack.now_ms < 500)\n";
    write(folder.path().join("late.py"), text).unwrap();
    let message = e("python:late.py");
    assert!(message.starts_with("error: python:late.py: ZeroDivisionError: "), "{message}");
    assert!(message.contains("line 3, in on_ack"), "{message}");
    write(folder.path().join("a.so"), "x").unwrap();
    assert!(e("plugin:./a.so").contains("the library cannot be loaded"));
}

/// A bound that copies the world, next to a library that cannot be copied.
#[test]
fn a_bound_next_to_what_cannot_be_copied_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, source) =
        blocks(PAGE).into_iter().find(|(_, language, _)| *language == "c").unwrap();
    let library = |name: &str, source: &str| {
        let file = folder.path().join(format!("{name}.c"));
        write(&file, source).unwrap();
        build(&file, &folder.path().join(format!("{name}.so")));
    };
    library("forks", source);
    library("stuck", &source.replace("\t.clone = copy,\n", ""));
    let scenario = |rival: &str| {
        let text = format!(
            "cc = [\"oracle-dynamic:copa\"]\ntraces = [\"constant:12Mbit/s\"]\nduration = \"5s\"\n\
             [[app]]\nkind = \"bulk\"\n[[competitor]]\ncc = \"plugin:./{rival}.so\"\n"
        );
        write(folder.path().join("s.toml"), text).unwrap();
        ["compare", "--scenario", "s.toml", "--quiet"]
    };
    let e = error(folder.path(), &scenario("stuck"));
    assert!(
        e.contains("plugin:./stuck.so next to it cannot be copied: give its table a clone"),
        "{e}"
    );
    assert!(stdout(folder.path(), &scenario("forks")).contains("oracle-dynamic:copa"));
}
