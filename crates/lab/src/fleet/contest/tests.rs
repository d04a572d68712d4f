//! Ways to choose, without a fleet around them.

use trimtab_fleet::{Control, Sketch};

use super::*;
use crate::fleet::connection::generator;
use crate::fleet::group::Fleet;

const FLEET: &str = r#"
aggregates = 300
duration = "72h"
connections = 2
[app]
kind = "download"
size = ["100KB", "101KB"]
[links]
rate = ["20Mbit/s", "20Mbit/s"]
rtt = ["20ms", "20ms"]
buffer = [1, 1]
[[service]]
name = "small"
interval = "1h"
reward = "mean(throughput)"
contexts = { bands = [0, 8, 16], weekend = true }
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
startup_rate_max = { min = 1, max = 100, scale = "log" }
[service.safe]
initial_rate = 1
startup_rate_max = 50
"#;

fn arms(epsilon: f64, count: u32) -> Arms {
    Arms {
        points: (0..count).map(|i| halton(i, 2)).collect(),
        tallies: vec![(0.0, 0); count as usize],
        epsilon,
        random: generator(1, &[2]),
    }
}

/// Radical inverses in bases 2 and 3 (Halton 1960).
#[test]
fn points_that_spread_evenly_are_haltons() {
    let points: Vec<Vec<f64>> = (0..5).map(|i| halton(i, 2)).collect();
    let thirds = [1.0 / 3.0, 2.0 / 3.0, 1.0 / 9.0, 4.0 / 9.0, 7.0 / 9.0];
    for ((point, half), third) in points.iter().zip([0.5, 0.25, 0.75, 0.125, 0.625]).zip(thirds) {
        assert!((point[0] - half).abs() < 1e-12 && (point[1] - third).abs() < 1e-12, "{points:?}");
    }
    // Of 64 points, each quarter of the square has 16, give or take the edges.
    let in_corner = (0..64).map(|i| halton(i, 2)).filter(|p| p[0] < 0.5 && p[1] < 0.5);
    assert!((14..=18).contains(&in_corner.count()));
    assert!((0..200).flat_map(|i| halton(i, 16)).all(|x| x > 0.0 && x < 1.0));
}

#[test]
fn each_arm_is_tried_once_and_then_the_best_by_its_mean() {
    let mut arms = arms(0.0, 4);
    for (n, reward) in [1.0, 5.0, 4.0, 2.0].into_iter().enumerate() {
        assert_eq!(arms.choose(), n);
        arms.note(n, reward);
    }
    assert_eq!(arms.choose(), 1);
    arms.note(1, 0.0);
    assert_eq!(arms.choose(), 2, "2.5 is now the mean of the first choice");
    arms.note(2, 0.5);
    assert_eq!(arms.choose(), 1, "2.25 is less than 2.5");
}

#[test]
fn epsilon_greedy_leaves_the_best_arm_now_and_then() {
    let mut arms = arms(EPSILON, 4);
    (0..4).for_each(|arm| arms.note(arm, f64::from(u8::from(arm == 2))));
    let others = (0..4000).filter(|_| arms.choose() != 2).count();
    // A tenth takes any of four, the best one too: 3/40 of 4000.
    assert!((240..=360).contains(&others), "{others} of 4000");
}

/// Each connection runs what the arm of its cluster does. On a link of its own it sees what it would
/// if all ran that.
#[test]
fn arms_side_by_side_divide_the_connections_of_an_interval() {
    let text = FLEET.replace("connections = 2", "connections = 32").replace("300", "1");
    let scenario = FleetScenario::parse(&text).unwrap();
    let fleet = Fleet::new(&scenario, 1);
    let groups = Group::all(&fleet, &scenario.services[0]);
    let [cubic, bbr] = ["cubic", "bbr"].map(|name| name.parse::<Spec>().unwrap());
    let arms = |tried: Spec, control: Spec| {
        let (algorithm, knobs) = (control.algorithm().name.to_owned(), Vec::new());
        let drawn = Control { version: 1, algorithm, knobs, share: 0.5, seed: 3 };
        let seen = groups[0].seen_by_arm(5, &[Some(tried)], &[Some((drawn, control))]);
        (seen[0].summary.clone(), seen[0].arms.clone().unwrap())
    };
    let (whole, [ours, theirs]) = arms(bbr, cubic);
    let count = |arms: &[Summary; 2]| arms[0].connections() + arms[1].connections();
    assert_eq!((count(&ours) + count(&theirs), whole.connections()), (32, 32));
    assert!(count(&ours) >= 8 && count(&theirs) >= 8);
    assert_eq!((&ours, &theirs), (&arms(bbr, bbr).1[0], &arms(cubic, cubic).1[1]));
    assert_ne!(ours, arms(cubic, bbr).1[0]);
    assert_eq!(
        whole.connections(),
        groups[0].seen(5, &[Some(bbr)], Sample::Run)[0].summary.connections()
    );
}

#[test]
fn aggregates_have_keys_of_their_own_and_the_day_goes_through_their_contexts() {
    let scenario = FleetScenario::parse(FLEET).unwrap();
    let service = &scenario.services[0];
    let field = |aggregate| Field { scenario: &scenario, service, seed: 1, aggregate };
    let keys: std::collections::BTreeSet<String> =
        [0, 1, 255, 256, 257, 9999].map(|a| field(a).key().to_string()).into();
    assert_eq!(keys.len(), 6, "{keys:?}");
    // The run begins on a Monday at midnight.
    let names: Vec<String> =
        (0..72).map(|n| service.contexts().name(field(0).context(n))).collect();
    let distinct: std::collections::BTreeSet<&String> = names[..24].iter().collect();
    assert_eq!(distinct.len(), 3, "three bands a day: {names:?}");
    assert_eq!(names[0], names[24], "the next day is like the first");
    assert!(names[..24].windows(2).filter(|pair| pair[0] != pair[1]).count() <= 3, "{names:?}");
}

#[test]
fn the_summary_of_an_interval_is_of_its_connections() {
    let scenario = FleetScenario::parse(FLEET).unwrap();
    let service = &scenario.services[0];
    let fleet = Fleet::new(&scenario, 1);
    let group = Group::all(&fleet, service).remove(0);
    let field = group.fields[0];
    let spec = Some(field.spec(&service.start().into()));
    let summary = |n| group.seen(n, &[spec], Sample::Run)[0].summary.clone();
    let (again, summary) = (summary(5), summary(5));
    assert_eq!(summary.connections(), 2);
    let mean = |name: &str| summary.get(name).unwrap().mean().unwrap();
    let reward = field.reward(&summary);
    assert!((reward / mean("throughput") - 1.0).abs() < 1e-9, "the reward is the throughput");
    assert!(reward > 0.5 && reward < 20.0, "{reward}");
    // 100 KB over 20 Mbit/s take 40 ms and a round trip.
    assert!(mean("request_time") > 0.06 && mean("rtt") >= 0.02, "{}", mean("request_time"));
    assert_eq!(field.reward(&again), reward, "the same again");
    assert_eq!(field.reward(&Summary::default()), 0.0, "without connections there is no reward");
}

#[test]
fn only_the_last_third_is_late() {
    let scenario = FleetScenario::parse(FLEET).unwrap();
    let mut course = Course::default();
    for n in 0..72_u32 {
        let mut summary = Summary::new(1);
        summary.set("rtt", Sketch::of([f64::from(n)])).unwrap();
        let seen = Seen { summary, arms: None, cross: Vec::new() };
        course.note(&scenario, &seen, f64::from(n));
    }
    assert_eq!((course.rewards.len(), course.rewards[71]), (72, 71.0));
    assert_eq!(course.late.connections(), 24);
    assert_eq!(course.late.get("rtt").unwrap().mean(), Some(59.5), "the mean of 48 to 71");
}

/// After they are joined, two have one configuration, and one learner learns from both.
#[test]
fn joined_aggregates_run_and_learn_as_one() {
    let shared =
        "buffer = [1, 1]\n[links.shared]\naggregates = 2\nconnections = 2\nwithin = \"1s\"";
    let text =
        FLEET.replace("aggregates = 300", "aggregates = 10").replace("buffer = [1, 1]", shared);
    let scenario = FleetScenario::parse(&text).unwrap();
    let scenario = scenario.joining("50h".parse().unwrap()).unwrap();
    let fleet = Fleet::new(&scenario, 3);
    let service = &scenario.services[0];
    let policy = Policy::Learner(service);
    let group = Group::all(&fleet, service).remove(0);
    let mut run = Run::new(group, &policy, false);
    run.advance(6);
    assert_eq!(run.take_sighted().len(), 12, "each by itself");
    let prefixes = run.prefixes();
    run.join(&Together::default().with_pairs([(prefixes[0], prefixes[1])]));
    run.advance(40);
    assert_eq!(run.take_sighted().len(), 34, "one learns");
    let [first, second] = &run.members[..] else { panic!("two members") };
    assert_eq!(second.learner.latest(), Some(run.group.fields[1].interval(5)));
    assert_eq!(first.learner.latest(), Some(run.group.fields[0].interval(39)));
    assert_eq!(first.course.rewards.len(), second.course.rewards.len());
    let courses = run.finish();
    assert_eq!(courses[0].learnt, courses[1].learnt);
}
