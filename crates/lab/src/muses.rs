//! Muses' policies in whole runs.

use crate::compare::compare;
use crate::result::Comparison;
use crate::run::Recording;
use crate::run::pool::Effort;
use crate::run::simulator::Simulator;
use crate::scenario::Scenario;

fn scenario(cc: &str) -> Scenario {
    Scenario::parse(&format!(
        "cc = [{cc}]\ntraces = [\"constant:12Mbit/s\"]\nduration = \"15s\"\nrtt = \"40ms\"\n\
         buffer = \"300KB\"\n[[app]]\nkind = \"bulk\"\n"
    ))
    .unwrap()
}

fn compared(scenario: &Scenario) -> Comparison {
    let effort = Effort { jobs: None, quiet: true };
    compare(scenario, effort, Recording::default(), "x", &Simulator).unwrap()
}

/// On a link that stays as it is the shipped policies use it, with less of a queue than CUBIC.
#[test]
fn they_run_as_any_other_scheme() {
    let all = scenario("\"cubic\", \"muses\", \"treeg\", \"muses:lstm\"");
    let c = compared(&all);
    let cubic = &c.runs[0];
    for run in &c.runs[1..] {
        assert!(run.utilization > 0.8, "{}: {}", run.cc, run.utilization);
        let (own, other) = (run.queue_delay_ms.p95, cubic.queue_delay_ms.p95);
        assert!(own < other / 2.0, "{}: {own} vs. {other} ms", run.cc);
    }
}

/// A policy that only ever grows, by 5% every 10 ms, runs away on any link: the guard hands over to Copa, which does
/// not lose most of what it sends.
#[test]
fn a_policy_that_runs_away_gives_way() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trees/grows");
    let all =
        scenario(&format!("\"treeg:model={file}\", \"treeg:model={file}:safe=none\", \"cubic\""));
    let c = compared(&all);
    let loss = |i: usize| c.runs[i].loss_ratio;
    assert!(loss(1) > 0.5, "{}: a window without bounds", loss(1));
    assert!(loss(0) < loss(1) / 3.0, "{} and {} without the guard", loss(0), loss(1));
    assert!(c.runs[0].utilization > 0.8, "{}", c.runs[0].utilization);
}

#[test]
fn a_model_that_is_not_there_is_known_before_anything_runs() {
    let plan = scenario("\"muses:model=nowhere/at-all.trees\"").plan().unwrap();
    let e = crate::run::prepare::prepare(&plan).unwrap_err().to_string();
    assert!(e.contains("nowhere/at-all.trees") && e.contains("muses:model=FILE"), "{e}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let plan = scenario(&format!("\"muses:model={file}\"")).plan().unwrap();
    let e = crate::run::prepare::prepare(&plan).unwrap_err().to_string();
    assert!(e.contains("it does not begin with TRIMTREE"), "{e}");
}
