//! Mistakes that show before the first run, each with its place and what to do.

use super::*;
use crate::scenario::Scenario;

fn prepared(lines: &str) -> Result<Prepared, PrepareError> {
    let text = format!("cc = [\"cubic\"]\ntraces = \"constant:9Mbit/s\"\n{lines}");
    prepare(&Scenario::parse(&text).unwrap().plan().unwrap())
}

fn mistake(lines: &str) -> String {
    prepared(lines).unwrap_err().to_string()
}

#[test]
fn a_formula_is_shown_with_a_mark_below_the_mistake() {
    let e = mistake("[[app]]\nkind = \"web\"\nname = \"shop\"\nqoe = \"T / (D +\"\n");
    let lines: Vec<&str> = e.lines().collect();
    assert!(lines[0].starts_with("QoE of shop: ") && lines[0].contains("column"), "{e}");
    assert!(e.contains("T / (D +"), "{e}");
    let mark = lines.last().unwrap();
    assert_eq!(mark.trim_start(), "^", "{e}");
    let e = mistake("[[app]]\nkind = \"web\"\nqoe = \"T - price\"\n");
    assert!(e.starts_with("QoE of web: ") && e.contains("price"), "{e}");
}

#[test]
fn a_factor_has_to_be_one_of_the_users_own() {
    let e = mistake("[[app]]\nkind = \"web\"\nqoe = \"T\"\nfactors = { T = 1.0 }\n");
    assert!(e.contains("\"T\" cannot name a factor: it already means something"), "{e}");
    let app = &prepared("[[app]]\nkind = \"web\"\nqoe = \"T * a\"\nfactors = { a = 2.5 }\n")
        .unwrap()
        .apps[0];
    let point = trimtab_qoe::OperatingPoint {
        throughput: trimtab_units::Rate::from_mbps(4.0),
        delay: Duration::from_millis(20),
        loss: 0.0,
    };
    assert_eq!(app.model.score(&point, &app.factors), 10.0, "4 Mbit/s times the factor");
}

#[test]
fn a_file_that_is_not_there_is_named_with_what_to_write() {
    let e = mistake("[[app]]\nkind = \"download\"\nworkload = \"nowhere/x.wk\"\n");
    assert!(e.contains("nowhere/x.wk"), "{e}");
    let plan = |cc: &str| {
        let text =
            format!("cc = [\"{cc}\"]\ntraces = \"constant:9Mbit/s\"\n[[app]]\nkind = \"bulk\"\n");
        Scenario::parse(&text).unwrap().plan().unwrap()
    };
    let e = prepare(&plan("muses:model=nowhere/m.bin")).unwrap_err().to_string();
    assert!(e.contains("nowhere/m.bin cannot be read") && e.contains("muses:model=FILE"), "{e}");
    // A fallback that the user names runs in the place of a model that is missing.
    let prepared = prepare(&plan("floo:model=nowhere/m.st:safe=bbr")).unwrap();
    let [warning] = prepared.warnings() else { panic!("{:?}", prepared.warnings()) };
    assert!(warning.contains("nowhere/m.st") && warning.ends_with("bbr runs in its place"));
    assert!(prepare(&plan("cubic")).unwrap().warnings().is_empty());
}

#[test]
fn the_checksum_of_each_trace_goes_by_its_content() {
    let of = |traces: &str| {
        let text = format!("cc = [\"cubic\"]\ntraces = {traces}\n[[app]]\nkind = \"bulk\"\n");
        prepare(&Scenario::parse(&text).unwrap().plan().unwrap()).unwrap().origins()
    };
    let two = of("[\"wifi:seed=1,length=5s\", \"wifi:seed=2,length=5s\"]");
    assert_eq!(two[0].trace, "wifi:seed=1,length=5s");
    assert_ne!(two[0].sha256, two[1].sha256);
    assert_eq!(of("\"wifi:seed=2,length=5s\"")[0], two[1], "whatever stands next to it");
}
