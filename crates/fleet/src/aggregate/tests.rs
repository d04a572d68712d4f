use trimtab_steer::customize::{Outcome, Purpose};
use trimtab_units::Time;

use super::*;
use crate::Sketch;

fn service(more: &str) -> Service {
    let text = format!(
        r#"
        name = "tv"
        interval = "20min"
        reward = "mean(bitrate) - 50 * mean(rebuffering)"
        surrogate = "mean(throughput)"
        guards = ["mean(loss) < 0.1"]
        statistics = ["bitrate"]
        connections_min = 2
        {more}
        [knobs]
        gamma = {{ min = 10, max = 5000, scale = "log" }}
        omega = {{ min = 0.1, max = 10, scale = "log" }}
        loss_filter = {{}}
        "#
    );
    Service::parse(&text).unwrap()
}

fn summary(statistics: &[(&str, f64)]) -> Summary {
    let mut summary = Summary::new(2);
    for &(name, value) in statistics {
        summary.set(name, Sketch::of([value, value])).unwrap();
    }
    summary
}

fn aggregate() -> Aggregate {
    Aggregate::new("tv/203.0.113.0/24".parse().unwrap())
}

/// Friday, 2026-11-20 00:00 UTC.
const FRIDAY: u64 = 1_795_132_800;

/// Rewards that are best where gamma is 1000, whatever else.
fn reward_of(configuration: &Configuration) -> f64 {
    let gamma = configuration.knobs[0].1;
    5.0 - (gamma / 1000.0).ln().powi(2)
}

#[test]
fn learns_and_says_what_it_did() {
    let service = service("");
    let mut aggregate = aggregate();
    let first = service.interval_at(Time::from_secs(FRIDAY));
    let mut said = Vec::new();
    let mut last = None;
    for n in 0..24 * 3 * 5 {
        let interval = Interval(first.0 + n);
        let configuration = aggregate.open(&service, interval);
        assert_eq!(aggregate.open(&service, interval), configuration, "asking changes nothing");
        configuration.spec().unwrap();
        let back = summary(&[("bitrate", reward_of(&configuration)), ("rebuffering", 0.0)]);
        let decision = aggregate.close(&service, interval, &back).unwrap();
        assert_eq!(decision.tried, configuration.knobs);
        assert_eq!(decision.version, configuration.version);
        assert_eq!(decision.source, RewardSource::Reward);
        assert_eq!(aggregate.close(&service, interval, &back), Err(CloseError::NotOpen(interval)));
        said.push(decision.to_string());
        last = Some(decision);
    }
    assert!(said.iter().any(|s| s.contains("The best guess moves: gamma")), "{:?}", &said[..6]);
    let gamma = last.unwrap().after[0].1;
    assert!((700.0..1500.0).contains(&gamma), "{gamma}");
}

#[test]
fn gradients_say_what_they_did() {
    for preset in ["paper", "pairs"] {
        let service = service(&format!("[learning]\npreset = \"{preset}\""));
        let mut aggregate = aggregate();
        let said: Vec<String> = (0..60)
            .map(|n| {
                let back = reward_of(&aggregate.open(&service, Interval(n)));
                let back = summary(&[("throughput", back)]);
                aggregate.close(&service, Interval(n), &back).unwrap().to_string()
            })
            .collect();
        assert!(said.iter().any(|s| s.contains("Stepped: gamma")), "{:?}", &said[..6]);
    }
}

#[test]
fn others_findings_are_heeded_and_told() {
    let service = service("[start]\ngamma = 12");
    let mut commons = crate::Commons::default();
    // One aggregate finds out where gamma is best.
    let mut first = aggregate();
    for n in 0..200 {
        let back = summary(&[("throughput", reward_of(&first.open(&service, Interval(n))))]);
        let decision = first.close(&service, Interval(n), &back).unwrap();
        if let Some((point, advantage)) = decision.finding(&service) {
            commons.add(&point, advantage);
        }
    }
    assert!(commons.weight() > 100.0, "{}", commons.weight());
    let mean = |heeds: bool| {
        let mut aggregate = Aggregate::new("tv/198.51.100.0/24".parse().unwrap());
        if heeds {
            aggregate.heed(commons.cells());
        }
        let mut sum = 0.0;
        for n in 0..15 {
            let configuration = aggregate.open(&service, Interval(n));
            let reward = reward_of(&configuration);
            sum += reward / 15.0;
            aggregate.close(&service, Interval(n), &summary(&[("throughput", reward)])).unwrap();
        }
        sum
    };
    assert!(mean(true) > mean(false) + 0.2, "{} {}", mean(true), mean(false));
}

#[test]
fn k5_contexts_are_learnt_independently() {
    let service = service("");
    let mut aggregate = aggregate();
    let first = service.interval_at(Time::from_secs(FRIDAY));
    for n in 0..24 * 3 * 14 {
        let interval = Interval(first.0 + n);
        let context = service.context_at(aggregate.key(), interval);
        let others: Vec<_> = aggregate
            .learners
            .iter()
            .filter(|(c, _)| **c != context)
            .map(|(c, l)| (*c, l.clone()))
            .collect();
        let configuration = aggregate.open(&service, interval);
        // Another best configuration in each of the six contexts.
        let best = 20.0 * 3.0_f64.powi(i32::from(context.0));
        let off = (configuration.knobs[0].1 / best).ln();
        let back = summary(&[("bitrate", 30.0 - off * off), ("rebuffering", 0.0)]);
        let said = aggregate.close(&service, interval, &back).unwrap().to_string();
        for (other, before) in others {
            assert!(aggregate.learners[&other] == before, "interval {n}: {said}");
        }
    }
    assert_eq!(aggregate.learners.len(), 6);
    let centres: Vec<f64> = service
        .contexts()
        .all()
        .map(|c| service.space().values(aggregate.learner(c).unwrap().centre())[0])
        .collect();
    for (n, pair) in centres.windows(2).enumerate() {
        assert!(pair[0] * 1.5 < pair[1], "contexts {n} and {}: {centres:?}", n + 1);
    }
}

#[test]
fn the_same_history_gives_the_same_decisions() {
    let run = |seed| {
        let service = service(&format!("seed = {seed}"));
        let mut aggregate = aggregate();
        let mut decisions = Vec::new();
        for n in 0..50 {
            let configuration = aggregate.open(&service, Interval(n));
            // The engine was stopped and started in between.
            let stored = serde_json::to_string(&aggregate).unwrap();
            aggregate = serde_json::from_str(&stored).unwrap();
            let back = summary(&[("throughput", reward_of(&configuration))]);
            decisions.push(aggregate.close(&service, Interval(n), &back).unwrap());
        }
        decisions
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn reports_may_come_late_and_in_any_order() {
    let service = service("");
    let mut aggregate = aggregate();
    let back = summary(&[("throughput", 3.0)]);
    for n in 0..3 {
        aggregate.open(&service, Interval(n));
    }
    for n in [2, 0, 1] {
        let decision = aggregate.close(&service, Interval(n), &back).unwrap();
        assert_eq!((decision.source, decision.reward), (RewardSource::Surrogate, Some(3.0)));
    }
    // Without reports for long, the oldest are given up.
    for n in 3..20 {
        aggregate.open(&service, Interval(n));
    }
    let open: Vec<_> = aggregate.open_intervals().collect();
    assert_eq!(open, [16, 17, 18, 19].map(Interval));
    assert_eq!(
        aggregate.close(&service, Interval(9), &back),
        Err(CloseError::NotOpen(Interval(9)))
    );
    let now = aggregate.open(&service, Interval(19));
    assert_eq!(aggregate.open(&service, Interval(4)), now, "the past is not begun anew");
}

#[test]
fn too_little_is_no_reward() {
    let service = service("");
    let mut aggregate = aggregate();
    aggregate.open(&service, Interval(0));
    let mut lonely = Summary::new(1);
    lonely.set("throughput", Sketch::of([9.0])).unwrap();
    lonely.set("loss", Sketch::of([0.9])).unwrap();
    let decision = aggregate.close(&service, Interval(0), &lonely).unwrap();
    assert_eq!((decision.source, decision.reward), (RewardSource::Missing, None));
    assert_eq!(decision.lesson.outcome, Outcome::NoReward);
    assert!(decision.broken.is_empty());
}

#[test]
fn guards_bring_the_safe_configuration() {
    let service = service("");
    let mut aggregate = aggregate();
    for n in 0..4 {
        let configuration = aggregate.open(&service, Interval(n));
        let back = summary(&[("throughput", 3.0), ("loss", 0.2)]);
        let decision = aggregate.close(&service, Interval(n), &back).unwrap();
        assert_eq!(decision.broken, ["mean(loss) < 0.1"]);
        match n {
            2 => assert!(decision.to_string().contains("Fell back"), "{decision}"),
            3 => assert_eq!(configuration.knobs, service.configured(&service.safe())),
            _ => {}
        }
    }
}

#[test]
fn operators_hold_and_roll_back() {
    let service = service("");
    let mut aggregate = aggregate();
    let back = summary(&[("throughput", 3.0)]);
    for n in 0..9 {
        aggregate.open(&service, Interval(n));
        aggregate.close(&service, Interval(n), &back).unwrap();
    }
    aggregate.set_hold(Hold::Pinned { values: vec![100.0, 1.0, 0.05] });
    let pinned = aggregate.open(&service, Interval(9));
    let expected = [("gamma", 100.0), ("omega", 1.0), ("loss_filter", 0.05)];
    for ((name, value), (knob, want)) in pinned.knobs.iter().zip(expected) {
        assert!(name == knob && (value / want - 1.0).abs() < 1e-9, "{name} {value}");
    }
    let decision = aggregate.close(&service, Interval(9), &back).unwrap();
    assert_eq!(decision.purpose, Purpose::Held);
    aggregate.set_hold(Hold::Paused);
    let paused = aggregate.open(&service, Interval(10));
    assert_eq!(aggregate.open(&service, Interval(11)).version, paused.version, "nothing changes");
    aggregate.restart_at(&service, None, &[200.0, 2.0, 0.02]);
    let context = service.context_at(aggregate.key(), Interval(12));
    let centre = service.space().values(aggregate.learner(context).unwrap().centre());
    assert!((centre[0] / 200.0 - 1.0).abs() < 1e-6 && (centre[1] / 2.0 - 1.0).abs() < 1e-6);
}

#[test]
fn another_description_of_the_knobs_starts_anew() {
    let one = service("");
    let mut aggregate = aggregate();
    aggregate.open(&one, Interval(0));
    let text = r#"
        name = "tv"
        reward = "mean(throughput)"
        [knobs]
        gamma = { min = 20, max = 2000, scale = "log" }
    "#;
    let other = Service::parse(text).unwrap();
    let configuration = aggregate.open(&other, Interval(1));
    assert_eq!(configuration.knobs.len(), 1);
    assert_eq!(configuration.version, 2, "versions still grow");
    assert!(aggregate.close(&other, Interval(0), &Summary::new(0)).is_err());
}

#[test]
fn a_new_aggregate_may_begin_where_others_have_come_to() {
    let service = service("");
    let mut first = aggregate();
    for n in 0..40 {
        let configuration = first.open(&service, Interval(n));
        let back = summary(&[("throughput", 20.0 + reward_of(&configuration))]);
        first.close(&service, Interval(n), &back).unwrap();
    }
    let guess = first.guess(&service).unwrap();
    let mut second = aggregate().starting_at(guess.clone());
    assert_eq!(second.guess(&service), None, "it has learnt nothing itself");
    second.open(&service, Interval(0));
    let context = service.context_at(second.key(), Interval(0));
    let centre = service.space().values(second.learner(context).unwrap().centre());
    assert!((centre[0] / guess[0] - 1.0).abs() < 1e-6, "{centre:?} {guess:?}");
}
