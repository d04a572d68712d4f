//! Verdicts on courses whose figures are known.

use super::*;
use crate::testing::close;

const FLEET: &str = r#"
aggregates = 2
duration = "72h"
connections = 1
[app]
kind = "download"
[links]
rate = ["2Mbit/s", "20Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [0.5, 4]
[[service]]
name = "small"
interval = "6h"
reward = "mean(throughput)"
incumbent = "cubic"
others = ["bbr"]
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
[service.safe]
initial_rate = 1
"#;

/// Rewards of four intervals a day.
fn course(days: [f64; 3]) -> Course {
    let rewards = days.into_iter().flat_map(|reward| [reward; 4]).collect();
    Course { rewards, ..Course::default() }
}

fn fared(name: &str, courses: Vec<Course>) -> Fared {
    Fared::new(name, courses)
}

fn verdict(all: &[Fared]) -> Option<VerdictResult> {
    let scenario = FleetScenario::parse(FLEET).unwrap();
    of(&scenario, &scenario.services[0], all, 1)
}

#[test]
fn the_first_day_is_apart_and_the_worst_day_is_of_the_rest() {
    let all = [
        fared(LEARNT, vec![course([5.0, 10.0, 11.0]), course([1.0, 1.9, 2.2])]),
        fared("safe", vec![course([10.0; 3]), course([2.0; 3])]),
        fared("start", vec![course([1.0; 3]), course([1.0; 3])]),
    ];
    let verdict = verdict(&all).unwrap();
    assert_eq!(verdict.incumbent, "cubic");
    close(verdict.first_day.value, -0.5);
    // (0 + 0.1) / 2 and (-0.05 + 0.1) / 2.
    close(verdict.after.value, (0.05 + 0.025) / 2.0);
    close(verdict.after.low, 0.025);
    close(verdict.worst.change, -0.05);
    assert_eq!((verdict.worst.aggregate, verdict.worst.day), (1, 2));
    assert_eq!((verdict.below, verdict.days), (0, 4));
    assert!(verdict.mean_is_met && verdict.days_are_met);
    // The best of what is learnt and the incumbent: 10, 11 and 2, 2.2.
    close(verdict.oracle.value, 0.05);
    assert_eq!(verdict.gain_noise, 0.0, "the incumbent's rewards are all the same");
}

#[test]
fn losses_are_found_and_measured_by_the_noise() {
    let noisy = |by: f64| {
        let rewards = (0..12).map(|n| by + if n % 2 == 0 { 9.0 } else { 11.0 }).collect();
        Course { rewards, ..Course::default() }
    };
    let all = [
        fared(LEARNT, vec![noisy(-1.5), noisy(0.0)]),
        fared("safe", vec![noisy(0.0), noisy(0.0)]),
        fared("bbr", vec![noisy(2.0), noisy(-1.0)]),
    ];
    let verdict = verdict(&all).unwrap();
    close(verdict.after.value, -0.075);
    close(verdict.worst.change, -0.15);
    assert_eq!((verdict.below, verdict.days), (2, 4));
    assert!(!verdict.mean_is_met && !verdict.days_are_met);
    close(verdict.oracle.value, 0.1);
    // Steps of 2 are those of independent values with a standard deviation of √2.
    close(verdict.gain_noise, -0.75 / 2f64.sqrt());
    close(verdict.regret_noise, 1.75 / 2f64.sqrt());
    let mut text = String::new();
    render(&mut text, &verdict);
    for line in [
        "  after it            -7.5% (-15.0 to +0.0); at least -2.0% with 95%: missed",
        "  dynamic oracle     +10.0% (+0.0 to +20.0), after the first day",
        "  below -10%         2 of 4 aggregate-days after the first day, 2 with 95%; none: missed; \
         the worst -15.0% (fleet 0, aggregate 0, day 2)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Four intervals a day with gains of 3 and -7 in turn are off by more than the change.
#[test]
fn a_day_that_is_off_by_chance_is_below_and_not_surely() {
    let turns = (0..12).map(|n| if n % 2 == 0 { 13.0 } else { 3.0 }).collect();
    let learnt = Course { rewards: turns, ..Course::default() };
    let all = [
        fared(LEARNT, vec![learnt, course([8.0; 3])]),
        fared("safe", vec![course([10.0; 3]), course([10.0; 3])]),
    ];
    let verdict = verdict(&all).unwrap();
    close(verdict.worst.change, -0.2);
    assert_eq!((verdict.below, verdict.below_surely, verdict.days), (4, 2, 4));
}

/// The oracle picks where all of its choices took part: in intervals 4, 8 and so on.
#[test]
fn baselines_in_some_intervals_bound_these() {
    let skips =
        |rewards: [f64; 3]| Course { rewards: rewards.into(), skips: 3, ..Course::default() };
    let learnt = Course { rewards: (0..12).map(f64::from).collect(), ..Course::default() };
    let all = [
        fared(LEARNT, vec![learnt]),
        fared("safe", vec![course([5.0; 3])]),
        fared("start", vec![skips([90.0, 1.0, 1.0])]),
        fared("bbr", vec![skips([90.0, 7.0, 4.0])]),
    ];
    let verdict = verdict(&all).unwrap();
    // 7 and 8 of bbr and what is learnt, where the incumbent has 5.
    close(verdict.oracle.value, (2.0 + 3.0) / 2.0 / 5.0);
    // Of eight intervals: 4 to 11.
    close(verdict.after.value, 2.5 / 5.0);
}

#[test]
fn one_day_or_no_incumbent_has_no_verdict() {
    let all = [fared(LEARNT, vec![course([1.0; 3])]), fared("safe", vec![course([1.0; 3])])];
    let of_text = |text: &str| {
        let scenario = FleetScenario::parse(text).unwrap();
        of(&scenario, &scenario.services[0], &all, 1)
    };
    assert!(of_text(FLEET).is_some());
    assert!(of_text(&FLEET.replace("72h", "47h")).is_none());
    let alone = FLEET.replace("incumbent = \"cubic\"\nothers = [\"bbr\"]\n", "");
    assert!(of_text(&alone).is_none());
}
