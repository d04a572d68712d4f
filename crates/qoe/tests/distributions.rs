//! Statistics of samples: they reduce to Eq. 3, see what one point cannot, and have true slopes.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trimtab_qoe::{
    Conference, Download, Factor, Factors, Formula, Gradient, Model, OperatingPoint, Samples,
    Sketch, Streaming, Web,
};
use trimtab_units::{Duration, Rate};

/// The same cases on every run and machine.
fn repeatable(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x00e2),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn point(mbps: f64, delay_s: f64, loss: f64) -> OperatingPoint {
    let (throughput, delay) = (Rate::from_mbps(mbps), Duration::from_secs_f64(delay_s));
    OperatingPoint { throughput, delay, loss }
}

fn samples(mbps: &[f64], delay_s: &[f64], loss: &[f64]) -> Samples {
    let mut samples = Samples::default();
    mbps.iter().for_each(|&rate| samples.add_throughput(Rate::from_mbps(rate)));
    delay_s.iter().for_each(|&delay| samples.add_delay(Duration::from_secs_f64(delay), 1));
    loss.iter().for_each(|&loss| samples.add_loss(loss));
    samples
}

fn parse(text: &str) -> Formula {
    Formula::parse(text, &["mine"]).unwrap_or_else(|e| panic!("{e}\n{}", e.pointer(text)))
}

fn score(text: &str, samples: &Samples) -> f64 {
    parse(text).score_over(&point(3.0, 0.05, 0.0), samples, &Factors::new())
}

fn gradient(text: &str, samples: &Samples) -> Gradient {
    parse(text).gradient_over(&point(3.0, 0.05, 0.0), samples, &Factors::new())
}

#[track_caller]
fn near(got: f64, want: f64, share: f64) {
    assert!((got - want).abs() <= share * want.abs() + 1e-9, "{got}, not {want}");
}

proptest! {
    #![proptest_config(repeatable(300))]

    /// DDSketch's promise: the quantile of a sketch is within a share of the exact one.
    #[test]
    fn a_quantile_is_as_near_as_promised(
        values in prop::collection::vec(1u64..4_000_000_000, 1..300), percent in 0u32..=100,
    ) {
        let mut sketch = Sketch::default();
        values.iter().for_each(|&value| sketch.record(value));
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let q = f64::from(percent) / 100.0;
        let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
        let exact = sorted[rank - 1] as f64;
        let got = sketch.quantile(q).unwrap();
        prop_assert!((got - exact).abs() <= (Sketch::ACCURACY * exact).max(0.5), "{got} {exact}");
    }

    /// Parts merge to what the whole would be, in whatever order.
    #[test]
    fn a_merge_loses_nothing(
        parts in prop::collection::vec(prop::collection::vec(0u64..5_000_000_000, 0..20), 1..8),
    ) {
        let of = |values: &mut dyn Iterator<Item = u64>| {
            let mut sketch = Sketch::default();
            values.for_each(|value| sketch.record(value));
            sketch
        };
        let whole = of(&mut parts.iter().flatten().copied());
        let mut forth = Sketch::default();
        let mut back = Sketch::default();
        parts.iter().for_each(|part| forth.merge(&of(&mut part.iter().copied())));
        parts.iter().rev().for_each(|part| back.merge(&of(&mut part.iter().copied())));
        prop_assert_eq!(&forth, &whole);
        prop_assert_eq!(&back, &whole);
    }

    /// A formula of means has the hints of Eq. 3 at the point, whatever the spread. The printed
    /// Eq. 4 would give λ_ext = |f_D / f_L| instead.
    #[test]
    fn formulas_of_the_point_reduce_to_equation_3(
        mbps in 0.8f64..48.0, d in 0.01f64..0.25, l in 0.001f64..0.04, spread in 0.0f64..0.5,
    ) {
        // Away from the cap of the picture score and the end of the delay score.
        prop_assume!((mbps - 6.745).abs() > 0.01 && (d - 0.26).abs() > 0.001);
        let p = point(mbps, d, l);
        let around = |x: f64| [x * (1.0 - spread), x, x * (1.0 + spread)];
        let spread = samples(&around(mbps), &around(d), &around(l));
        let mut f = Factors::new();
        for (factor, value) in [(Factor::Request, 4.87), (Factor::Chunk, 6.0),
            (Factor::Buffer, 1.0), (Factor::MeanResponse, 0.8), (Factor::Remaining, 3.1)] {
            f.set(factor, value);
        }
        for (text, model) in [
            (Download::FORMULA, Model::download()),
            (Streaming::FORMULA, Model::streaming()),
            (Conference::FORMULA, Model::conference()),
            (Web::FORMULA, Model::web()),
        ] {
            let (ext, eq3) = (Model::parse(text, &[]).unwrap(), model.hints(&p, &f).unwrap());
            let ext = ext.hints_over(&p, &spread, &f).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs() + 1e-6;
            prop_assert!(
                close(ext.lambda, eq3.lambda) && close(ext.beta, eq3.beta),
                "{text}: {ext:?}, Eq. 3 {eq3:?}"
            );
        }
        let means = parse("ln(mean(T)) - 9*mean(D) - 4*mean(L)").gradient_over(&p, &spread, &f);
        prop_assert!((means.delay + 9.0).abs() < 1e-9 && (means.loss + 4.0).abs() < 1e-9);
    }

    /// The slopes are what finite differences say, for samples however spread. The sketch rounds
    /// what the differences see, so the step is large and the test coarse; the next one is exact.
    #[test]
    fn slopes_are_those_of_finite_differences(
        waits in prop::collection::vec(1u32..200, 2..30), which in 0usize..6,
    ) {
        let text = ["p95(D)", "sd(D)", "mean(D) + 2*sd(D)", "mean(ln(D))", "mean(tanh(9*D))*p5(D)",
            "p50(if(D < 0.1, 3*D, 0.25 + D/2))"][which];
        // The least delay does not move; all others keep their ratios above it.
        let base = 0.02;
        let moved = |by: f64| {
            let mut samples = Samples::default();
            samples.add_delay(Duration::from_secs_f64(base), 1);
            for wait in &waits {
                let wait = f64::from(*wait) * 1e-3 * (1.0 + by);
                samples.add_delay(Duration::from_secs_f64(base + wait), 1);
            }
            samples
        };
        let step = 0.1;
        let mean_at = |by| score("mean(D)", &moved(by));
        let difference = score(text, &moved(step)) - score(text, &moved(-step));
        let numeric = difference / (mean_at(step) - mean_at(-step));
        let exact = gradient(text, &moved(0.0)).delay;
        // The choice jumps in slope: a difference across it is none.
        let across = which == 5 && [-step, 0.0, step].map(|by| {
            score("p50(D)", &moved(by)) < 0.1
        }) != [score("p50(D)", &moved(0.0)) < 0.1; 3];
        prop_assert!(
            across || (numeric - exact).abs() <= 0.2 * exact.abs() + 0.15, "{text}: {numeric} {exact}"
        );
    }
}

/// Far finer than the buckets of a sketch: values below 64 steps are exact.
#[test]
fn slopes_are_exact_where_the_samples_are() {
    // 20, 30 and 60 steps of a microsecond, each read as half a step more.
    let s = samples(&[], &[20e-6, 30e-6, 60e-6], &[]);
    let mean = (20.5e-6 + 30.5e-6 + 60.5e-6) / 3.0;
    near(score("mean(D)", &s), mean, 1e-12);
    let wait = mean - 20.5e-6;
    near(gradient("p95(D)", &s).delay, 40e-6 / wait, 1e-12);
    near(gradient("p0(D)", &s).delay, 0.0, 1e-12);
    near(gradient("p50(D)", &s).delay, 10e-6 / wait, 1e-12);
    near(gradient("sd(D)", &s).delay, score("sd(D)", &s) / wait, 1e-12);
    let chained = (10e-6 / 30.5e-6 + 40e-6 / 60.5e-6) / (3.0 * wait);
    near(gradient("mean(ln(D))", &s).delay, chained, 1e-12);
}

#[test]
fn tails_and_spread() {
    let s = samples(&[2.0, 4.0, 6.0], &[0.02, 0.03, 0.1], &[0.0, 0.01, 0.05]);
    near(score("p95(D)", &s), 0.1, 0.01);
    near(score("p50(D)", &s), 0.03, 0.01);
    near(score("sd(D)", &s), 0.0356, 0.02);
    near(score("mean(D) + 2*sd(D)", &s), 0.05 + 0.0712, 0.02);
    near(score("mean(ln(T))", &s), 48f64.ln() / 3.0, 0.01);
    // The share in time, which is no function of the mean.
    near(score("mean(if(D < 0.05, 1, 0))", &s), 2.0 / 3.0, 1e-9);
    // A Mbit/s more on average is spread in proportion: 5/4 of it for the largest, 1/2 for the least.
    near(gradient("p100(T)", &s).throughput, 1.5, 0.01);
    near(gradient("p0(T)", &s).throughput, 0.5, 0.01);
    near(gradient("p100(L)", &s).loss, 2.5, 0.01);
    // The wait of the slowest packet grows faster than the mean wait, so its price does, too.
    let hints = gradient("T - 20*p95(D)", &s).hints().unwrap();
    near(hints.lambda, 20.0 * 0.08 / 0.03, 0.02);
    assert_eq!(gradient("T - 20*D", &s).hints().unwrap().lambda, 20.0);
}

#[test]
fn without_samples_the_point_is_the_only_one() {
    let none = Samples::default();
    near(score("p95(D) + p5(T) + mean(L)", &none), 3.05, 1e-12);
    assert_eq!(score("sd(D)", &none), 0.0);
    assert_eq!(gradient("T - 20*p95(D) - 3*sd(D)", &none).hints().unwrap().lambda, 20.0);
    // So it is with samples that are all the same: they move together.
    near(gradient("p95(D)", &samples(&[], &[0.04; 5], &[])).delay, 1.0, 1e-12);
    near(gradient("p95(L)", &samples(&[], &[], &[0.0; 5])).loss, 1.0, 1e-12);
}

#[test]
fn factors_reach_into_a_statistic() {
    let model = Model::parse("T - mean(exp(mine * D)) - mine", &["mine"]).unwrap();
    assert_eq!(model.factors(), ["mine"]);
    assert!(model.reads_samples());
    assert!(!Model::parse("T - mine * D", &["mine"]).unwrap().reads_samples());
    let (s, p) = (samples(&[], &[0.02, 0.3], &[]), point(3.0, 0.05, 0.0));
    assert_eq!(model.hints_over(&p, &s, &Factors::new()), None);
    let mut f = Factors::new();
    f.set_named("mine", 2.0).unwrap();
    near(model.score_over(&p, &s, &f), 3.0 - (0.04f64.exp() + 0.6f64.exp()) / 2.0 - 2.0, 0.01);
}

#[test]
fn mistakes_are_named_where_they_are() {
    for (text, column, words) in [
        ("T - p95(D + oops)", 13, "unknown variable `oops` (known: T, D, L, R"),
        ("T - p95(D", 5, "never closed"),
        ("T - p95()", 5, "exactly one of T, D and L"),
        ("T - p95(R)", 5, "exactly one of T, D and L, e.g. p95(D)"),
        ("T - mean(T*D)", 5, "exactly one of T, D and L"),
        ("T - mean(D - mean(D))", 14, "`mean` cannot stand inside another"),
        ("T - p101(D)", 5, "unknown function `p101` (known: abs"),
        ("T - var(D)", 5, "mean, sd, p0 to p100); to multiply"),
        ("T - mean(D, 1)", 11, "a comma only parts"),
        ("T - p95 (ln(D) 2)", 16, "an operator is missing before `2`"),
    ] {
        let error = Formula::parse(text, &[]).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert_eq!(error.column(), Some(column), "{text}: {error}");
    }
    // A factor may have the name of a statistic: only a call is one.
    assert_eq!(Formula::parse("T - p1 * p1(D)", &["p1"]).unwrap().factors().count(), 1);
}
