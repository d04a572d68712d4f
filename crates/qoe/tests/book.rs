//! The book's page on QoE models says what the code does.

use trimtab_qoe::{
    Conference, Download, Factor, Factors, Formula, Model, OperatingPoint, Streaming, Web,
};
use trimtab_units::{Duration, Rate};

const PAGE: &str = include_str!("../../../docs/concepts/qoe-models.md");

/// The first line of every block marked as a formula.
fn formulas() -> Vec<&'static str> {
    PAGE.split("```qoe\n").skip(1).filter_map(|block| block.lines().next()).collect()
}

fn point(mbps: f64, delay_s: f64, loss: f64) -> OperatingPoint {
    let (throughput, delay) = (Rate::from_mbps(mbps), Duration::from_secs_f64(delay_s));
    OperatingPoint { throughput, delay, loss }
}

#[test]
fn formulas_are_those_of_the_models() {
    let found = formulas();
    for formula in &found {
        Formula::parse(formula, &[]).unwrap();
    }
    let of_models = [Download::FORMULA, Streaming::FORMULA, Web::FORMULA, Conference::FORMULA];
    assert_eq!(found[..4], of_models);
    assert_eq!(found.len(), 6);
}

#[test]
fn every_built_in_is_described() {
    for built_in in Model::BUILT_IN {
        assert!(PAGE.contains(&format!("`{}`", built_in.name)), "{}", built_in.name);
    }
}

#[test]
fn download_table_holds() {
    let row = |line: &str| -> Option<Vec<f64>> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().parse().ok()).collect()
    };
    let rows: Vec<_> = PAGE.lines().filter_map(row).filter(|r| r.len() == 7).collect();
    assert_eq!(rows.len(), 4);
    for r in rows {
        let mut factors = Factors::new();
        factors.set(Factor::Request, r[3]);
        let p = point(r[0], r[1], r[2]);
        let hints = Model::download().hints(&p, &factors).unwrap();
        let got = [Model::download().score(&p, &factors), hints.lambda, hints.beta];
        for (got, want) in got.into_iter().zip(&r[4..]) {
            assert!((got - want).abs() <= 6e-6 * want, "{r:?}: {got}, not {want}");
        }
    }
}

#[test]
fn vod_numbers_hold() {
    for (buffer, lambda) in [(4.0, 0.0107), (2.0, 0.519), (1.0, 2.22), (0.2, 3.76)] {
        let mut factors = Factors::new();
        factors.set(Factor::Chunk, 2.0);
        factors.set(Factor::Buffer, buffer);
        let got = Model::streaming().hints(&point(4.0, 0.05, 0.0), &factors).unwrap().lambda;
        assert!((got - lambda).abs() < 0.005 * lambda, "buffer {buffer}: {got}");
        assert!(PAGE.contains(&lambda.to_string()), "{lambda} is not on the page");
    }
}

#[test]
fn error_message_is_the_one_shown() {
    let error = Formula::parse("ln(T) - weigth * D", &["weight"]).unwrap_err();
    assert!(PAGE.contains(&error.to_string()), "{error}");
}
