//! s2n-quic in virtual time: the checks of `trimtab conform`, and parity with the simulator in
//! small.

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

/// What `docs/reference/conformance.md` says of s2n-quic 1.91. Where a newer one passes, the page
/// changes.
#[test]
fn trimtabs_algorithms_fail_on_s2n_quic_no_more_than_the_page_says() {
    let quick = |name: &str, by| by == By::Algorithm && !SLOW.contains(&name);
    for (name, fails) in [
        ("trimtab/newreno", &["persistent-congestion"][..]),
        ("trimtab/cubic", &["persistent-congestion"]),
        ("trimtab/bbr3", &["initial-window", "bbr-probe-rtt"]),
    ] {
        // BBR's two are at the edge of their ranges, and runs differ.
        let failed = failed(&run(&[name], quick));
        assert!(failed.iter().all(|check| fails.contains(check)), "{name}: {failed:?}");
    }
}

#[test]
fn s2n_quics_own_controllers_fail_what_the_page_says() {
    let these = ["cubic-reduction", "reno-friendly-beyond", "cubic-idle", "persistent-congestion"];
    let cubic = failed(&run(&["cubic"], |name, _| these.contains(&name)));
    assert_eq!(cubic, ["persistent-congestion", "reno-friendly-beyond", "cubic-idle"]);
    let bbr = failed(&run(&["bbr"], |name, _| ["application-limited", "probes"].contains(&name)));
    assert_eq!(bbr, ["application-limited"]);
    let problem = OnS2n::named("copa").unwrap_err().to_string();
    assert!(problem.contains("cubic and bbr"), "{problem}");
}

/// The scenario of the book, with as many cells as time allows. `docs/reference/parity.md` has the
/// table.
#[test]
fn the_simulator_is_near_s2n_quic() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/quic/s2n.toml");
    let mut scenario = Scenario::load(&file).unwrap();
    (scenario.thin, scenario.seeds) = (Some(4), 1);
    scenario.cc.retain(|cc| ["cubic", "mortise"].contains(&cc.label()));
    let datapath = S2nVirtual::new(&scenario).unwrap();
    let s2n = compare(&scenario, EFFORT, Recording::default(), "x", &datapath).unwrap();
    let parity = parity(&s2n, &Simulator, EFFORT).unwrap();
    let table = parity.render(STYLE);
    println!("{table}");
    assert_eq!(parity.rows.len(), 4);
    let throughput = parity.rows.iter().flat_map(|row| &row.differences);
    assert!(
        throughput.clone().count() > 0 && throughput.into_iter().all(|d| d.bands < 6.0),
        "{table}"
    );
}
