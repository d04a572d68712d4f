//! Algorithms from outside in comparisons: the examples next to the built-in algorithm, what they share
//! a link with, and what is wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::result::Comparison;
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::Scenario;

/// A file of the crate that loads them.
fn of_plugin(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin").join(path)
}

/// Builds a library, and the scheme that names it.
fn library(folder: &Path, name: &str, source: &str) -> String {
    let [from, to] = ["c", "so"].map(|ending| folder.join(format!("{name}.{ending}")));
    std::fs::write(&from, source).unwrap();
    let built = Command::new("cc")
        .args(["-std=c99", "-shared", "-fPIC", "-O2", "-w", "-I"])
        .arg(of_plugin("include"))
        .arg("-o")
        .args([&to, &from])
        .status()
        .expect("a C compiler");
    assert!(built.success());
    format!("plugin:{}", to.display())
}

/// The example in C.
fn example() -> String {
    std::fs::read_to_string(of_plugin("examples/newreno.c")).unwrap()
}

/// Bulk data over 12 Mbit/s and 40 ms, with these lines of a scenario.
fn run(cc: &[&str], lines: &str, jobs: usize) -> Result<Comparison, CompareError> {
    let lines =
        if lines.contains("duration") { lines } else { &format!("duration = \"30s\"\n{lines}") };
    let scenario =
        format!("cc = {cc:?}\ntraces = [\"constant:12Mbit/s\"]\nrtt = \"40ms\"\n{lines}\n");
    let scenario = Scenario::parse(&scenario).unwrap();
    let effort = Effort { jobs: Some(jobs), quiet: true };
    compare(&scenario, effort, Recording::default(), "x", &Simulator)
}

const BULK: &str = "[[app]]\nkind = \"bulk\"\n";

/// The same throughput within 1% and the same loss, alone and next to each other, under drops of the
/// queue and random ones; and the same bytes again on any number of threads.
#[test]
fn the_examples_in_c_and_python_are_newreno() {
    let folder = tempfile::tempdir().unwrap();
    let c = library(folder.path(), "newreno", &example());
    let python = format!("python:{}", of_plugin("examples/newreno.py").display());
    let schemes = ["newreno", &c, &python];
    for lines in
        ["buffer = \"1BDP\"\n", "buffer = \"0.5BDP\"\nflows = 2\n", "loss = \"0.5%\"\nseeds = 2\n"]
    {
        let lines = &format!("{lines}{BULK}");
        let first = run(&schemes, lines, 1).unwrap();
        let of = |cc: &str| first.runs.iter().filter(|run| run.cc == cc).collect::<Vec<_>>();
        for scheme in [&c, &python] {
            let pairs: Vec<_> = of("newreno").into_iter().zip(of(scheme)).collect();
            assert!(!pairs.is_empty(), "its runs have its name");
            for (built_in, mine) in pairs {
                let ratio = mine.throughput_mbps / built_in.throughput_mbps;
                let more = mine.loss_ratio - built_in.loss_ratio;
                println!("{scheme}, {lines:?}: throughput {ratio:.4} of it, loss {more:+.6}");
                assert!((ratio - 1.0).abs() < 0.01 && more.abs() < 0.0005, "{scheme} {lines}");
            }
        }
        assert_eq!(run(&schemes, lines, 3).unwrap(), first, "the same again, on three threads");
    }
}

/// A plug-in and CUBIC on one link: each gets a good part of it, as NewReno next to CUBIC does.
#[test]
fn a_plug_in_shares_a_link_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let c = library(folder.path(), "newreno", &example());
    let lines = format!("buffer = \"1BDP\"\n{BULK}[[competitor]]\ncc = {c:?}\n");
    let mine = run(&["cubic"], &lines, 1).unwrap();
    let lines = format!("buffer = \"1BDP\"\n{BULK}[[competitor]]\ncc = \"newreno\"\n");
    let built_in = run(&["cubic"], &lines, 1).unwrap();
    let [mine, built_in] = [mine, built_in].map(|c| c.runs[0].throughput_mbps);
    assert!(
        (mine / built_in - 1.0).abs() < 0.02,
        "{mine} next to mine, {built_in} next to NewReno"
    );
    assert!((2.0..10.0).contains(&mine), "{mine} Mbit/s of 12");
}

#[test]
fn a_fault_in_a_run_ends_the_comparison_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("late.py");
    let text = "class A:\n    def on_ack(self, ack):\n        1 / (ack.now_ms < 500)\n";
    std::fs::write(&file, text).unwrap();
    let name = format!("python:{}", file.display());
    let e = run(&[&name], BULK, 2).unwrap_err().to_string();
    assert!(e.starts_with(&format!("{name}: ZeroDivisionError: division by zero; mend")), "{e}");
    assert!(e.contains("line 3, in on_ack"), "{e}");
    let nan =
        example().replace("return ((const struct newreno *)self)->window;", "return 0.0 / 0;");
    let e = run(&[&library(folder.path(), "nan", &nan)], BULK, 2).unwrap_err().to_string();
    assert!(e.contains("nan.so: window(), after create, gave ") && e.contains("0 or more"), "{e}");
}

/// A bound that copies the world, next to a library that cannot be copied, and next to one that can.
#[test]
fn a_bound_next_to_what_cannot_be_copied_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let forks = library(folder.path(), "forks", &example());
    let stuck = library(folder.path(), "stuck", &example().replace("\t.clone = copy,\n", ""));
    let with = |rival: &str| {
        let lines = format!("duration = \"6s\"\n{BULK}[[competitor]]\ncc = {rival:?}\n");
        run(&["oracle-dynamic:copa"], &lines, 1)
    };
    let e = with(&stuck).unwrap_err().to_string();
    let part = format!("{stuck} next to it cannot be copied: give its table a clone function");
    assert!(e.contains(&part), "{e}");
    let runs = with(&forks).unwrap().runs;
    assert!(runs[0].throughput_mbps > 1.0, "{}", runs[0].throughput_mbps);
}
