//! The simulator compared with noq in virtual time: `trimtab parity`, in small.

use std::path::Path;

use trimtab_lab::compare::compare;
use trimtab_lab::report::table::Style;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::run::{Recording, pool::Effort};
use trimtab_lab::scenario::Scenario;
use trimtab_lab::validate::parity::parity;
use trimtab_quic::Virtual;

/// The scenario of the book, with as many cells as time allows. Six cells do not even out where the
/// random losses fall, so a few medians may be out of their bands, but not by much.
/// `docs/reference/parity.md` has the table.
#[test]
fn the_simulator_is_near_noq() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/quic/parity.toml");
    let mut scenario = Scenario::load(&file).unwrap();
    assert!(scenario.thin.is_some_and(|cells| cells >= 60));
    (scenario.thin, scenario.seeds) = (Some(6), 2);
    let effort = Effort { jobs: Some(2), quiet: true };
    let datapath = Virtual::new(&scenario).unwrap();
    let noq = compare(&scenario, effort, Recording::default(), "x", &datapath).unwrap();
    let parity = parity(&noq, &Simulator, effort).unwrap();
    let table = parity.render(Style { width: 120, lines: false });
    println!("{table}");
    let [reference, model] = [&parity.reference, &parity.model].map(|side| side.datapath.as_str());
    assert_eq!((reference, model), ("quic-virtual", "sim"));
    assert_eq!(parity.rows.len(), scenario.cc.len() * scenario.app.len());
    assert!(parity.rows.iter().all(|row| row.cells == 6));
    let all = || parity.rows.iter().flat_map(|row| &row.differences);
    let within = all().filter(|d| d.holds()).count();
    assert_eq!(all().count(), 63, "three of bulk data and four of downloads, of nine schemes");
    assert!(within >= 54, "{within} are within their bands: {table}");
    assert!(all().all(|d| d.bands < 4.0), "{table}");
}
