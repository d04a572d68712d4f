//! The figures of a fleet, from courses whose figures are known.

use trimtab_fleet::Sketch;

use super::super::change::versus;
use super::super::table::render;
use super::*;
use crate::testing::close;

/// A course with these rewards.
fn course(rewards: impl IntoIterator<Item = f64>) -> Course {
    Course { rewards: rewards.into_iter().collect(), ..Course::default() }
}

fn level(reward: f64, intervals: usize) -> Course {
    course(std::iter::repeat_n(reward, intervals))
}

/// A fleet of two aggregates with 24 intervals and an outage in intervals 6 to 9.
fn scenario() -> FleetScenario {
    let text = r#"
        name = "made up"
        aggregates = 2
        duration = "24h"
        connections = 1
        baselines = ["bbr"]
        compare_with = "bbr"
        paper = ["it is so"]
        [app]
        kind = "download"
        size = ["100KB", "300KB"]
        [links]
        rate = ["2Mbit/s", "20Mbit/s"]
        rtt = ["20ms", "80ms"]
        buffer = [0.5, 4]
        [outage]
        from = 6
        until = 10
        capacity = 0.2
        loss = 0.05
        [[service]]
        name = "small"
        interval = "1h"
        reward = "mean(throughput)"
        [service.knobs]
        initial_rate = { min = 0.2, max = 20, scale = "log" }
        [service.safe]
        initial_rate = 1
    "#;
    FleetScenario::parse(text).unwrap()
}

fn fared(name: &str, courses: Vec<Course>) -> Fared {
    Fared::new(name, courses)
}

fn service(fared: &[Fared]) -> ServiceResult {
    let scenario = scenario();
    of_service(&scenario, &scenario.services[0], fared, 1)
}

#[test]
fn windows_cover_the_run_without_a_gap() {
    for intervals in 1..200 {
        let windows = WINDOWS.min(intervals);
        let ends: Vec<usize> = (0..=windows).map(|w| begins(intervals, w)).collect();
        assert_eq!((ends[0], ends[windows]), (0, intervals));
        assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "{intervals}: {ends:?}");
    }
}

#[test]
fn a_mean_between_intervals_is_that_of_all_aggregates() {
    let courses = [course([1.0, 2.0, 3.0, 4.0]), course([5.0, 6.0, 7.0, 8.0])];
    let all: Vec<&Course> = courses.iter().collect();
    assert_eq!(mean_between(&all, 0, 4), 4.5);
    assert_eq!(mean_between(&all, 1, 3), 4.5);
    assert_eq!(mean_between(&all, 3, 9), 6.0, "the run ends before");
    assert_eq!(mean_between(&all, 7, 9), 0.0, "nothing there");
    // Intervals 0, 3, 6 and 9.
    let course = Course { skips: 2, ..course([1.0, 2.0, 3.0, 4.0]) };
    assert_eq!(
        [0, 2, 3, 9, 12].map(|n| course.at(n)),
        [Some(1.0), None, Some(2.0), Some(4.0), None]
    );
    assert_eq!((course.between(1, 7), course.between(4, 6)), (&[2.0, 3.0][..], &[][..]));
    assert_eq!((course.between(9, 40), course.between(12, 13)), (&[4.0][..], &[][..]));
}

#[test]
fn the_exponent_of_a_power_of_time_is_its_power() {
    for power in [0.5, 0.8, 1.0, 1.3] {
        let regret: Vec<f64> = (1..=24).map(|w| 7.0 * libm::pow(f64::from(w), power)).collect();
        close(exponent(&regret).unwrap(), power);
    }
    assert_eq!(exponent(&[1.0, 2.0]), None, "two points make no fit");
    assert_eq!(exponent(&[-1.0, 0.0, -2.0, 1.0, 2.0]), None, "there is no regret to speak of");
}

#[test]
fn regret_adds_up_what_the_best_had_more() {
    let own = [level(1.0, 48), level(2.0, 48)];
    let best = [level(1.5, 48), level(3.0, 48)];
    let to_best = ToBest { own: own.iter().collect(), best: best.iter().collect() };
    let regret = to_best.regret(48);
    assert_eq!(regret.len(), WINDOWS);
    close(regret[0], 1.5);
    close(*regret.last().unwrap(), 0.75 * 48.0);
    close(exponent(&regret).unwrap(), 1.0);
}

#[test]
fn a_share_of_the_best_has_an_interval_over_aggregates() {
    let result = service(&[
        fared(LEARNT, vec![level(0.9, 24), level(1.8, 24)]),
        fared("start", vec![level(0.5, 24), level(1.9, 24)]),
        fared(BEST_BY_CONTEXT, vec![level(1.0, 24), level(2.0, 24)]),
    ]);
    let of = |name: &str| result.schemes.iter().find(|s| s.name == name).unwrap();
    let learnt = of(LEARNT).to_best.unwrap();
    for part in [learnt.value, learnt.low, learnt.high] {
        close(part, -0.1);
    }
    let start = of("start").to_best.unwrap();
    close(start.value, -0.2);
    close(start.low, -0.5);
    close(start.high, -0.05);
    close(of(BEST_BY_CONTEXT).to_best.unwrap().value, 0.0);
    let names: Vec<&str> = result.schemes.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, [BEST_BY_CONTEXT, LEARNT, "start"], "the best comes first");
}

#[test]
fn only_the_last_third_counts_as_late() {
    let grows = || course((0..24).map(|n| if n < 16 { 0.0 } else { 3.0 }));
    let result = service(&[
        fared(LEARNT, vec![grows(), grows()]),
        fared(BEST_BY_CONTEXT, vec![level(3.0, 24), level(3.0, 24)]),
    ]);
    let learnt = result.schemes.iter().find(|s| s.name == LEARNT).unwrap();
    assert_eq!((learnt.reward, learnt.late_reward), (1.0, 3.0));
    close(learnt.to_best.unwrap().value, 0.0);
    assert_eq!(learnt.windows[15..17], [0.0, 3.0]);
    close(*learnt.regret.last().unwrap(), 48.0);
    assert_eq!(result.close_after, Some(16));
}

#[test]
fn close_means_close_until_the_end() {
    let best = [level(1.0, 24)];
    let after = |rewards: Vec<f64>| {
        let own = [course(rewards)];
        close_after(&own.iter().collect::<Vec<_>>(), &best.iter().collect::<Vec<_>>(), 24)
    };
    let mut rewards = vec![0.5; 24];
    rewards[10..].fill(0.98);
    assert_eq!(after(rewards.clone()), Some(10));
    rewards[20] = 0.96;
    assert_eq!(after(rewards.clone()), Some(21), "a window in between was not within 3%");
    rewards[23] = 0.5;
    assert_eq!(after(rewards), None);
    assert_eq!(after(vec![1.2; 24]), Some(0));
}

#[test]
fn the_most_behind_is_the_worst_stretch_in_mean_rewards() {
    let safe = course([2.0; 6]);
    close(most_behind(&course([2.0, 0.0, 1.0, 2.0, 9.0, 2.0]), &safe), 1.5);
    // What is ahead before a stretch does not pay for it.
    close(most_behind(&course([9.0, 9.0, 0.0, 0.0, 2.0, 2.0]), &safe), 2.0);
    close(most_behind(&course([0.0, 3.0, 0.0, 2.0, 2.0, 2.0]), &safe), 1.5);
    close(most_behind(&course([3.0; 6]), &safe), 0.0);
}

#[test]
fn an_outage_is_summed_up_by_who_fell_back_and_when() {
    let with = |mut course: Course, fallbacks: &[u64]| {
        course.fallbacks = fallbacks.to_vec();
        course
    };
    let dips = |low: f64| course((0..24).map(|n| if (6..10).contains(&n) { low } else { 1.0 }));
    let result = service(&[
        fared(LEARNT, vec![with(dips(0.2), &[2, 7, 9]), with(dips(0.4), &[12])]),
        fared("start", vec![dips(0.5), dips(0.5)]),
    ]);
    let outage = result.outage.unwrap();
    assert_eq!(outage.fell_back, 1, "before and after it do not count");
    assert_eq!((outage.median_intervals, outage.most_intervals), (Some(2), Some(2)));
    close(outage.reward, 0.3);
    close(outage.safe_reward, 0.5);
    assert_eq!((outage.reward_after, outage.safe_reward_after), (1.0, 1.0));
    // Of the mean reward of the safe configuration, (20 + 4 · 0.5) / 24.
    close(outage.behind_most, 4.0 * 0.3 * 24.0 / 22.0);
    let learnt = result.schemes.iter().find(|s| s.name == LEARNT).unwrap();
    assert_eq!(learnt.fallbacks, 4, "all of them");
    assert!(result.close_after.is_none() && learnt.to_best.is_none(), "nothing to come close to");
}

/// Connections that all saw this throughput and loss.
fn saw(mbps: f64, loss: f64) -> Course {
    let mut late = Summary::new(10);
    late.set("throughput", Sketch::of([mbps; 10])).unwrap();
    late.set("loss", Sketch::of([loss; 10])).unwrap();
    Course { late, ..level(mbps, 24) }
}

#[test]
fn a_change_is_a_share_of_the_others_statistic() {
    let (own, other) = ([saw(6.0, 0.01), saw(2.0, 0.01)], [saw(4.0, 0.0), saw(4.0, 0.0)]);
    let result =
        versus("bbr", &[], &own.iter().collect::<Vec<_>>(), &other.iter().collect::<Vec<_>>());
    let of = |name: &str| result.statistics.iter().find(|(n, _)| n == name).map(|(_, e)| *e);
    let mean = of("mean(throughput)").unwrap();
    close(mean.value, 0.0);
    close(mean.low, -0.5);
    close(mean.high, 0.5);
    assert!(of("mean(loss)").is_none(), "of nothing there is no share");
    let median = of("p50(throughput)").unwrap();
    assert!(median.low <= median.value && median.value <= median.high, "{median:?}");
}

#[test]
fn what_was_learnt_is_a_median_over_aggregates() {
    let with = |rate: f64| Course {
        learnt: vec![("night".to_owned(), vec![("rate".to_owned(), rate)])],
        ..level(1.0, 24)
    };
    let result = service(&[fared(LEARNT, vec![with(9.0), with(1.0), with(2.0)])]);
    assert_eq!(result.learnt, [("night".to_owned(), vec![("rate".to_owned(), 2.0)])]);
}

#[test]
fn the_table_has_the_figures_of_the_result() {
    let guesses = |mut course: Course| {
        course.guessed = vec![3.9; 8];
        course
    };
    let fared = vec![
        fared(LEARNT, vec![guesses(saw(3.0, 0.02)), guesses(saw(3.0, 0.02))]),
        fared("start", vec![saw(1.0, 0.01), saw(1.0, 0.01)]),
        fared("bbr", vec![saw(2.0, 0.01), saw(2.0, 0.01)]),
        fared(BEST_BY_CONTEXT, vec![saw(4.0, 0.01), saw(4.0, 0.01)]),
    ];
    let text = render(&FleetResult::of(&scenario(), (5, 1), "x", &[fared]));
    let row = |name: &str| -> Vec<&str> {
        let line = text.lines().find(|l| l.trim_start().starts_with(name)).expect(name);
        line.trim_start()[name.len()..].split_whitespace().collect()
    };
    let learnt = ["3.000", "3.000", "-25.0%", "-25.0", "to", "-25.0", "t^1.00", "3.00", "2.00"];
    assert_eq!(row(LEARNT), learnt, "{text}");
    assert_eq!(row(BEST_BY_CONTEXT)[..6], ["4.000", "4.000", "0.0%", "0.0", "to", "0.0"]);
    for line in [
        "made up: 2 aggregates, 24 intervals, 1 connections in each, seed 5",
        " within 3% of the best per context: not in this run",
        " its best guesses alone: -2.5% to best; looking around costs 22.5%",
        " learnt vs. bbr, with 95% intervals:",
        "Paper: it is so",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(row("Mbit/s"), ["+50.0%", "(+50.0", "to", "+50.0)"], "{text}");
    assert_eq!(row("loss"), ["+100.0%", "(+100.0", "to", "+100.0)"], "{text}");
    assert!(text.contains("outage: 0 of 2 aggregates fell back, after - intervals"), "{text}");
    assert!(!text.contains("median RTT"), "what nobody measured has no column: {text}");
}
