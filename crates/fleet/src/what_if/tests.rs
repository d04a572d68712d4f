use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::{Aggregate, Configuration, Odds, Sketch, Summary};

const SERVICE: &str = r#"
    name = "tv"
    interval = "20min"
    incumbent = "bbr"
    others = ["cubic", "copa"]
    reward = "mean(throughput)"
    contexts = { bands = [0], weekend = false }
    [knobs]
    gamma = { min = 10, max = 1000, scale = "log" }
    omega = { min = 0.1, max = 10, scale = "log" }
"#;

fn service(learning: &str) -> Service {
    Service::parse(&format!("{SERVICE}\n[learning]\n{learning}")).unwrap()
}

const THOMPSON: &str = "acquisition = \"thompson\"\nchance_min = 0.02";

/// What an arm brings at noon; of Vivace it depends on gamma.
fn worth(configuration: &Configuration) -> f64 {
    match configuration.algorithm.as_str() {
        "bbr" => 10.0,
        "cubic" => 9.6,
        "copa" => 10.2,
        _ => {
            let gamma = configuration.knobs.iter().find(|knob| knob.0 == "gamma").unwrap().1;
            10.3 - 0.5 * (gamma / 100.0).ln().abs()
        }
    }
}

/// What the hour adds to every arm: a busy evening takes a third away.
fn hour(n: u64) -> f64 {
    3.0 * (n as f64 / 72.0 * std::f64::consts::TAU).sin()
}

/// The decisions about some aggregates, each with a level and noise of its own, and by decision
/// what the hour and the level were.
fn log(service: &Service, seed: u64, aggregates: u8, intervals: u64) -> Vec<(Decision, f64)> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut log = Vec::new();
    for number in 0..aggregates {
        let key = format!("tv/203.0.{number}.0/24").parse().unwrap();
        let mut aggregate = Aggregate::new(key);
        for n in 0..intervals {
            let configuration = aggregate.open(service, Interval(n));
            let base = hour(n) + f64::from(number);
            // The sum of four is nearly normal, with a deviation of 0.58.
            let noise: f64 = (0..4).map(|_| random.random_range(-0.5..0.5)).sum();
            let mut summary = Summary::new(1);
            let reward = 20.0 + base + worth(&configuration) + noise;
            summary.set("throughput", Sketch::of([reward])).unwrap();
            log.push((aggregate.close(service, Interval(n), &summary).unwrap(), base));
        }
    }
    log
}

fn ask(service: &Service, target: &Target, log: &[(Decision, f64)]) -> Result<WhatIf, WhatIfError> {
    WhatIf::estimate(service, target, log.iter().map(|(decision, _)| decision))
}

fn algorithm(service: &Service, name: &str) -> Target {
    Target::new(service, Some(name), &[]).unwrap()
}

fn knobs(service: &Service, knobs: &[(&str, f64)]) -> Result<Target, WhatIfError> {
    let knobs: Vec<_> = knobs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Target::new(service, None, &knobs)
}

/// The truth of an algorithm over the intervals that are estimated from: those that chance decided
/// on.
fn truth(worth: f64, log: &[(Decision, f64)]) -> f64 {
    let drawn: Vec<f64> = (log.iter())
        .filter(|(decision, _)| !decision.chances.is_empty())
        .map(|(_, base)| 20.0 + base + worth)
        .collect();
    drawn.iter().sum::<f64>() / drawn.len() as f64
}

/// The bar: the 95% interval holds the truth in at least 18 of 20 logs, by both estimates and for
/// an algorithm that is seldom in force as for the one that is best.
#[test]
fn intervals_hold_what_an_algorithm_would_have_brought() {
    let service = service(THOMPSON);
    let mut held = [[0; 2]; 2];
    let mut widths = [0.0; 2];
    for seed in 0..20 {
        let log = log(&service, seed, 4, 400);
        for (of, (name, worth)) in held.iter_mut().zip([("bbr", 10.0), ("copa", 10.2)]) {
            let found = ask(&service, &algorithm(&service, name), &log).unwrap();
            let truth = truth(worth, &log);
            for (i, effect) in [found.weighted, found.robust].iter().enumerate() {
                of[i] += u32::from((effect.low..=effect.high).contains(&truth));
                widths[i] += effect.high - effect.low;
            }
            assert!(found.effective >= EFFECTIVE_MIN && found.matched < found.intervals);
            assert_eq!(found.decisions, found.certain + found.intervals);
        }
    }
    println!("of 20 logs held: weighted and robust of bbr {:?}, of copa {:?}", held[0], held[1]);
    println!("mean width: weighted {:.2}, robust {:.2}", widths[0] / 40.0, widths[1] / 40.0);
    assert!(held.iter().flatten().all(|held| *held >= 18), "{held:?}");
    // Levels and hours are known before the arm is drawn, which weights make no use of.
    assert!(widths[1] < 0.85 * widths[0], "{widths:?}");
}

/// What is asked for may be knobs. Far from the best ones rewards are lower, by what they are off.
#[test]
fn knobs_are_compared_with_what_was() {
    let service = service(THOMPSON);
    let log = log(&service, 5, 6, 200);
    let of = |gamma: f64| {
        let target = knobs(&service, &[("gamma", gamma)]).unwrap();
        ask(&service, &target, &log)
    };
    let best = of(100.0).unwrap();
    assert_eq!(best.target, "gamma=100");
    // 0.1 of the range is a factor of 1.58 at most, and costs up to 0.23.
    let gain = best.gain;
    assert!((-0.3..0.6).contains(&gain.value) && gain.low < gain.high, "{best:?}");
    let vivace = ask(&service, &algorithm(&service, "vivace"), &log).unwrap();
    assert_eq!((vivace.impossible, vivace.target.as_str()), (0, "vivace"));
    assert!(vivace.matched >= best.matched);
}

#[test]
fn a_log_of_certain_choices_is_refused() {
    let service = service("");
    let log = log(&service, 1, 1, 60);
    let refused = ask(&service, &algorithm(&service, "cubic"), &log).unwrap_err();
    assert_eq!(refused, WhatIfError::Certain { target: "cubic".to_owned(), decisions: 60 });
    let said = refused.to_string();
    assert!(said.contains("60 decisions") && said.contains("acquisition = \"thompson\""), "{said}");
}

#[test]
fn a_log_with_too_little_of_it_is_refused() {
    let service = service(THOMPSON);
    let log = log(&service, 1, 1, 40);
    let refused = ask(&service, &algorithm(&service, "cubic"), &log).unwrap_err();
    let WhatIfError::Overlap { matched, effective, intervals, .. } = refused else {
        panic!("{refused}")
    };
    assert!(effective < EFFECTIVE_MIN && matched < intervals && intervals <= 40, "{effective}");
    // Nobody ever was in this corner.
    let corner = knobs(&service, &[("gamma", 10.0), ("omega", 10.0)]).unwrap();
    assert!(matches!(ask(&service, &corner, &log), Err(WhatIfError::Overlap { .. })));
    let without: Vec<_> = (log.into_iter())
        .map(|(decision, base)| (Decision { reward: None, ..decision }, base))
        .collect();
    let refused = ask(&service, &corner, &without).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "no estimate for gamma=10,omega=10: no decision of the log has a reward"
    );
}

#[test]
fn what_the_service_does_not_have_is_named() {
    let service = service(THOMPSON);
    let said = |algorithm: Option<&str>, knobs: &[(&str, f64)]| {
        let knobs: Vec<_> = knobs.iter().map(|(k, value)| ((*k).to_owned(), *value)).collect();
        Target::new(&service, algorithm, &knobs).unwrap_err().to_string()
    };
    assert!(said(None, &[]).starts_with("nothing is asked for"));
    let known = "the service has no algorithm \"reno\": there are vivace, bbr, cubic, copa";
    assert_eq!(said(Some("reno"), &[]), known);
    assert!(said(Some("bbr"), &[("gamma", 50.0)]).contains("leave the knobs out"));
    let known = "the service learns no knob \"beta\": there are gamma, omega";
    assert_eq!(said(None, &[("beta", 1.0)]), known);
    for value in [9.0, 1001.0, f64::NAN] {
        assert!(said(None, &[("gamma", value)]).contains("10 to 1000"), "{value}");
    }
    let own = Target::new(&service, Some("vivace"), &[("gamma".to_owned(), 50.0)]).unwrap();
    assert_eq!(own.text, "gamma=50");
}

/// Two arms with 1/4 and 3/4: rewards of 8 and 6 where 7 was expected, and of 5 where 5 was.
#[test]
fn figures_are_those_of_the_formulas() {
    let service = service(THOMPSON);
    let decisions = log(&service, 3, 1, 1);
    let arm = |name: &str| Chosen::Other { algorithm: name.to_owned() };
    let odds = |name, probability, expected| Odds { arm: arm(name), probability, expected };
    let (bbr, copa) = (odds("bbr", 0.25, 7.0), odds("copa", 0.75, 5.0));
    let of = |chances: &[&Odds], reward| Decision {
        chances: chances.iter().map(|odds| (*odds).clone()).collect(),
        reward: Some(reward),
        ..decisions[0].0.clone()
    };
    let of_copa = of(&[&copa, &bbr], 5.0);
    let decisions: Vec<Decision> = (0..30)
        .flat_map(|n| {
            let of_bbr = of(&[&bbr, &copa], if n % 2 == 0 { 8.0 } else { 6.0 });
            [of_bbr, of_copa.clone(), of_copa.clone(), of_copa.clone()]
        })
        .collect();
    let found = WhatIf::estimate(&service, &algorithm(&service, "bbr"), &decisions).unwrap();
    assert_eq!((found.intervals, found.matched, found.effective), (120, 30, 30.0));
    assert_eq!((found.actual, found.weighted.value), (5.5, 7.0));
    assert!((found.robust.value - 7.0).abs() < 1e-12 && (found.gain.value - 1.5).abs() < 1e-12);
    // 7 ± 4 in a quarter of them, and 7: a deviation of 2.
    for effect in [found.weighted, found.robust] {
        let reach = (effect.high - effect.low) / 2.0;
        assert!((reach - 1.96 * 2.0 / 120.0_f64.sqrt()).abs() < 0.03, "{found:?}");
    }
}

/// What rewards are off by for hours is no noise: it is known from the intervals before.
#[test]
fn an_hour_that_lasts_is_taken_out() {
    let service = service(THOMPSON);
    let log = log(&service, 3, 1, 200);
    let of = |n: usize, off: f64| Drawn {
        key: &log[0].0.key,
        interval: log[n].0.interval,
        reward: 0.0,
        weight: 1.0,
        expected: 0.0,
        off,
    };
    let left = |off: &dyn Fn(usize) -> f64| {
        // The latest first, as a store has them.
        let mut drawn: Vec<Drawn<'_>> = (0..200).rev().map(|n| of(n, off(n))).collect();
        move_by_before(&mut drawn);
        drawn.iter().map(|one| one.off * one.off).sum::<f64>() / 200.0
    };
    let lasting = left(&|n| if n / 40 % 2 == 0 { 1.0 } else { -1.0 });
    assert!(lasting < 0.2, "{lasting}");
    // What goes up and down at once says nothing of the next interval, and stays as it is.
    assert_eq!(left(&|n| if n % 2 == 0 { 1.0 } else { -1.0 }), 1.0);
}
