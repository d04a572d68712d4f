//! s2n-quic in virtual time: the checks of `trimtab conform`, and parity with the simulator in small.

use std::path::Path;

use trimtab_lab::compare::compare;
use trimtab_lab::conform::{By, Conformance, Subject, checks, conform};
use trimtab_lab::report::table::Style;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::run::{Recording, pool::Effort};
use trimtab_lab::scenario::Scenario;
use trimtab_lab::validate::parity::parity;
use trimtab_quic::{OnS2n, S2nVirtual};

const EFFORT: Effort = Effort { jobs: Some(2), quiet: true };
const STYLE: Style = Style { width: 120, lines: false };

/// Checks of many packets, which take seconds each on a busy machine.
const SLOW: [&str; 7] = [
    "field-fast-long",
    "field-overshoot",
    "field-bad-start",
    "bbr-random-loss",
    "bbr-rise",
    "bbr-fall",
    "bbr-policer",
];

fn run(names: &[&str], wanted: impl Fn(&str, By) -> bool) -> Conformance {
    let subject = |name: &&str| -> Box<dyn Subject> { Box::new(OnS2n::named(name).unwrap()) };
    let subjects: Vec<_> = names.iter().map(subject).collect();
    let checks: Vec<_> = checks().filter(|check| wanted(check.name, check.by)).collect();
    let conformance = conform(&checks, &subjects, EFFORT).unwrap();
    println!("{}", conformance.render(STYLE));
    conformance
}

fn failed(conformance: &Conformance) -> Vec<&'static str> {
    let failed = conformance.rows.iter().filter(|row| !row.verdict.conforms());
    failed.map(|row| row.check.name).collect()
}

#[test]
fn trimtabs_algorithms_conform_on_s2n_quic() {
    let quick = |name: &str, by| by == By::Algorithm && !SLOW.contains(&name);
    let conformance = run(&["trimtab/newreno", "trimtab/cubic", "trimtab/bbr3"], quick);
    assert!(conformance.holds(), "{:?}", failed(&conformance));
}
