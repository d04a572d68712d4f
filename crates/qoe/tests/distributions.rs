//! Models over distributions: they reduce to Eq. 3, and see what one point cannot.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trimtab_qoe::{
    Conference, DistributionModel, Download, Factor, Factors, Hints, Model, OperatingPoint,
    Samples, Streaming, Web,
};
use trimtab_units::{Duration, Rate};

fn samples<'a>(t: &'a [f64], d: &'a [f64], l: &'a [f64]) -> Samples<'a> {
    Samples { throughput_mbps: t, delay_s: d, loss: l }
}

fn hints(text: &str, samples: &Samples<'_>) -> Option<Hints> {
    DistributionModel::parse(text, &[]).unwrap().hints(samples, &Factors::new())
}

#[track_caller]
fn near(got: Option<Hints>, lambda: f64, beta: f64) {
    let got = got.unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs() + 1e-9;
    assert!(close(got.lambda, lambda) && close(got.beta, beta), "{got:?}, not {lambda} {beta}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(0x00e2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A formula of means only has the hints of Eq. 3 at the mean point, whatever the spread. The
    /// printed Eq. 4 would give λ_ext = |f_D / f_L| instead.
    #[test]
    fn scalar_metrics_reduce_to_equation_3(
        rate in 100_000u64..6_000_000, d in 0.01f64..0.25, l in 0.001f64..0.04, spread in 0.0f64..0.5,
    ) {
        let p = OperatingPoint {
            throughput: Rate::from_bytes_per_sec(rate),
            delay: Duration::from_secs_f64(d),
            loss: l,
        };
        // Away from the cap of the picture score and the end of the delay score.
        prop_assume!((p.throughput_mbps() - 6.745).abs() > 0.01 && (d - 0.26).abs() > 0.001);
        let around = |x: f64| [x * (1.0 - spread), x, x * (1.0 + spread)];
        let (t, d, l) = (around(p.throughput_mbps()), around(p.delay_s()), around(l));
        let mut f = Factors::new();
        for (factor, value) in [(Factor::Request, 4.87), (Factor::Chunk, 6.0),
            (Factor::Buffer, 1.0), (Factor::MeanResponse, 0.8)] {
            f.set(factor, value);
        }
        for (text, model) in [
            (Download::FORMULA, Model::download()),
            (Streaming::FORMULA, Model::streaming()),
            (Conference::FORMULA, Model::conference()),
            (Web::FORMULA, Model::web()),
        ] {
            let ext = DistributionModel::parse(text, &[]).unwrap();
            let ext = ext.hints(&samples(&t, &d, &l), &f).unwrap();
            let eq3 = model.hints(&p, &f).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs() + 1e-6;
            prop_assert!(
                close(ext.lambda, eq3.lambda) && close(ext.beta, eq3.beta),
                "{text}: {ext:?}, Eq. 3 {eq3:?}"
            );
        }
    }
}

#[test]
fn tails_and_spread() {
    let (t, d, l) = ([2.0, 4.0, 6.0], [0.02, 0.03, 0.1], [0.0, 0.01, 0.05]);
    let s = samples(&t, &d, &l);
    // All delays move: mean and percentile with them, the deviation not at all.
    near(hints("T_mean - 3*D_p95 - 100*D_std", &s), 3.0, 0.0);
    near(hints("ln(T_min) - 2*D_max - L_mean", &s), 4.0, 2.0);
    near(hints("T_p5 * (1 - L_max) - D_mean", &s), 1.0 / 0.95, 2.2 / 0.95);
    // Jitter over throughput: only the throughput has a slope, so delay has no price.
    near(hints("-D_std / T_mean", &s), 0.0, 0.0);
}

#[test]
fn any_function_of_the_samples() {
    // The share of packets within a deadline of 50 ms, smoothed, per Mbit/s.
    let model = DistributionModel::from_fn("deadline", |s, f| {
        let weight = f.get_named("weight").unwrap_or(f64::NAN);
        let late: f64 = s.delay_s.iter().map(|d| (d - 0.05).max(0.0)).sum();
        s.throughput_mbps.iter().sum::<f64>() - weight * late
    });
    let (t, d) = ([1.0, 1.0], [0.02, 0.06, 0.07, 0.08]);
    let s = samples(&t, &d, &[]);
    assert_eq!(model.hints(&s, &Factors::new()), None);
    let mut f = Factors::new();
    f.set_named("weight", 10.0).unwrap();
    // Three of four packets are late: 10·3 per second, over 2 per Mbit/s.
    near(model.hints(&s, &f), 15.0, 0.0);
    assert_eq!(model.text(), "deadline");
}

#[test]
fn samples_at_the_ends_of_their_range() {
    let at = |l: &[f64]| hints("T - 5*L_mean + 0*sqrt(L_min)", &samples(&[3.0], &[0.0], l));
    near(at(&[0.0, 0.0]), 0.0, 5.0);
    near(at(&[1.0, 1.0]), 0.0, 5.0);
    near(hints("T - 4*sqrt(1 + D)", &samples(&[3.0], &[0.0], &[0.0])), 2.0, 0.0);
}

#[test]
fn without_samples_there_are_no_hints() {
    assert_eq!(hints("T_mean - D_p95", &samples(&[3.0], &[], &[])), None);
    assert_eq!(hints("T_mean - D_p95", &Samples::default()), None);
    // Loss is not read, so it need not be there.
    near(hints("T_mean - D_p95", &samples(&[3.0], &[0.1], &[])), 1.0, 0.0);
}

#[test]
fn unknown_statistics_are_named() {
    let error = DistributionModel::parse("T_mean - D_q95", &["mine"]).unwrap_err();
    assert_eq!(error.column(), Some(10));
    let message = error.to_string();
    assert!(message.contains("unknown variable `D_q95`"), "{message}");
    assert!(message.contains("T_p0 to T_p100") && message.contains("mine"), "{message}");
    assert!(DistributionModel::parse("T", &["D_p95"]).is_err());
}
