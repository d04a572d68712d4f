//! What a learner does besides learning: resting, testing knobs, and moving to another box.

use super::*;
use crate::customize::Preset;

fn learner(preset: Preset) -> Learner {
    Learner::new(Settings::of(preset), vec![0.4, 0.6], vec![0.5, 0.5], 2)
}

/// Takes in so many trials whose rewards are highest at 0.4 and 0.6.
fn run(learner: &mut Learner, rounds: u64) {
    for round in 0..rounds {
        let trial = learner.propose(round);
        let off = (trial.point[0] - 0.4).powi(2) + (trial.point[1] - 0.6).powi(2);
        learner.observe(&trial, Some(5.0 - off), false);
    }
}

#[test]
fn another_safe_configuration_is_looked_at_next() {
    let mut learner = learner(Preset::Model);
    run(&mut learner, 5);
    learner.set_safe(vec![0.5, 0.5]);
    assert_ne!(learner.propose(9).purpose, Purpose::Check, "it is the same");
    learner.set_safe(vec![0.8, 0.2]);
    let trial = learner.propose(9);
    assert_eq!((trial.purpose, &trial.point[..]), (Purpose::Check, &[0.8, 0.2][..]));
    learner.observe(&trial, Some(1.0), false);
    assert_ne!(learner.propose(10).purpose, Purpose::Check, "once");
}

#[test]
fn a_trial_of_another_box_is_stale_and_the_guess_stays_where_it_was() {
    for preset in [Preset::Pairs, Preset::Model] {
        let mut learner = learner(preset);
        let open = learner.propose(1);
        // The first knob's range is the upper half of it from now on, the second has no place.
        let to = |point: &[f64]| vec![(point[0] - 0.25) * 2.0, f64::NAN];
        learner.carry_over(to, vec![0.0, 0.0]);
        assert_eq!(learner.observe(&open, Some(1.0), false).outcome, Outcome::Stale);
        assert!((learner.centre()[0] - 0.3).abs() < 1e-9, "{:?}", learner.centre());
        assert!((0.0..0.2).contains(&learner.centre()[1]), "{:?}", learner.centre());
    }
}

#[test]
fn who_rests_goes_on_resting_in_another_box() {
    let mut learner = learner(Preset::Pairs);
    for _ in 0..3 {
        let trial = learner.propose(1);
        learner.observe(&trial, Some(1.0), true);
    }
    assert!(learner.is_resting());
    learner.carry_over(<[f64]>::to_vec, vec![0.1, 0.9]);
    let trial = learner.propose(2);
    assert!(learner.is_resting());
    assert_eq!((trial.purpose, &trial.point[..]), (Purpose::Safe, &[0.1, 0.9][..]));
}

/// A guard that breaks where everything is safe says nothing against what is tried.
#[test]
fn a_guard_that_the_safe_configuration_breaks_is_no_alarm() {
    let mut learner = learner(Preset::Model);
    run(&mut learner, 5);
    learner.set_safe(vec![0.8, 0.2]);
    for round in 0..10 {
        let trial = learner.propose(round);
        assert_eq!(trial.purpose == Purpose::Check, round == 0);
        let lesson = learner.observe(&trial, Some(5.0), true);
        assert!(!matches!(lesson.outcome, Outcome::FellBack { .. }), "{round}: {lesson:?}");
    }
}

#[test]
fn a_knob_is_tested_alone_and_within_the_box() {
    let settings = Settings { select_every: 4, select_reach: 0.5, ..Settings::of(Preset::Pairs) };
    let mut learner = Learner::new(settings, vec![0.4, 0.6], vec![0.5, 0.5], 1);
    let mut tested = Vec::new();
    for round in 0..40 {
        let before = learner.centre().to_vec();
        let trial = learner.propose(round);
        if let Purpose::Test(test) = trial.purpose {
            if let TestPoint::Knob { knob, up } = test {
                let moved = trial.point[knob] - before[knob];
                let room = if up { 1.0 - before[knob] } else { before[knob] };
                assert!((moved.abs() - room.min(0.5)).abs() < 1e-9 && (moved > 0.0) == up);
                assert_eq!(trial.point[1 - knob], before[1 - knob]);
            } else {
                assert_eq!(trial.point[..], before[..]);
            }
            tested.push(round);
        }
        learner.observe(&trial, Some(5.0), false);
    }
    assert_eq!(tested[0], 4, "after four intervals: {tested:?}");
    // Two knobs, three tests of each, twice.
    assert_eq!(tested[..12], (4..16).collect::<Vec<_>>(), "{tested:?}");
    assert!(tested[12] >= 20, "and four more: {tested:?}");
}

#[test]
fn trials_of_one_point_lie_on_all_sides() {
    let settings = Settings { rate: 0.0, ..Settings::of(Preset::Paper) };
    let mut learner = Learner::new(settings, vec![0.5; 2], vec![0.5; 2], 2);
    let mut sides = [0; 2];
    for round in 0..400 {
        let trial = learner.propose(round);
        assert_eq!(trial.purpose, Purpose::Explore { plus: true });
        sides[usize::from(trial.point[0] > 0.5)] += 1;
        learner.observe(&trial, Some(1.0), false);
    }
    assert!(sides.iter().all(|&count| count > 150), "{sides:?}");
}

#[test]
fn either_of_a_pair_comes_first() {
    let mut learner = learner(Preset::Pairs);
    let mut first = [0; 2];
    for round in 0..200_u64 {
        let trials = [2 * round + round % 2, round].map(|random| {
            let trial = learner.propose(random);
            learner.observe(&trial, Some(1.0), false);
            trial
        });
        let signs = trials.map(|trial| trial.purpose == Purpose::Explore { plus: true });
        assert_ne!(signs[0], signs[1], "{round}");
        first[usize::from(signs[0])] += 1;
    }
    assert_eq!(first, [100, 100]);
}

#[test]
fn held_intervals_teach_nothing_of_the_best_point() {
    for preset in [Preset::Pairs, Preset::Model] {
        let mut learner = learner(preset);
        run(&mut learner, 6);
        let (centre, steps) = (learner.centre().to_vec(), learner.steps());
        let trial = learner.hold_at(vec![0.9, 0.9]);
        assert_eq!((trial.purpose, &trial.point[..]), (Purpose::Held, &[0.9, 0.9][..]));
        learner.observe(&trial, Some(99.0), false);
        assert_eq!((&learner.centre()[..], learner.steps()), (&centre[..], steps));
    }
}

/// Two other algorithms: the first is the incumbent, the second the best of all, and knobs are between.
fn choosing() -> Learner {
    learner(Preset::Model).choosing(2, Point::other(1), Point::other(1))
}

fn brings(point: &Point) -> f64 {
    match point {
        Point::Knobs(at) => 5.0 - (at[0] - 0.4).powi(2) - (at[1] - 0.6).powi(2),
        Point::Other { choice: 1 } => 5.5,
        Point::Other { .. } => 6.0,
    }
}

#[test]
fn it_begins_with_the_incumbent_and_comes_to_the_algorithm_that_is_best() {
    let mut learner = choosing();
    let first = learner.propose(0);
    assert_eq!((&first.point, first.purpose), (&Point::other(1), Purpose::Best));
    let mut last = [0; 3];
    for round in 0..120 {
        let trial = learner.propose(round);
        last[usize::from(trial.point.choice())] += usize::from(round >= 60);
        learner.observe(&trial, Some(brings(&trial.point)), false);
    }
    assert_eq!(learner.centre(), &Point::other(2));
    // The rest looks at the incumbent, which the second is judged by.
    assert!(last[2] >= 50 && last[1] <= 5, "{last:?}");
}

#[test]
fn knobs_are_learnt_on_while_they_are_better_than_any_other_algorithm() {
    let mut learner = choosing();
    for round in 0..120 {
        let trial = learner.propose(round);
        let reward = brings(&trial.point) + if trial.point.choice() == 0 { 2.0 } else { 0.0 };
        learner.observe(&trial, Some(reward), false);
    }
    let centre = learner.centre();
    assert_eq!(centre.choice(), 0);
    assert!((centre[0] - 0.4).abs() < 0.1 && (centre[1] - 0.6).abs() < 0.1, "{centre:?}");
    assert_eq!(learner.stand(), &centre[..]);
}

#[test]
fn it_falls_back_to_the_incumbent() {
    let mut learner = choosing();
    for round in 0..60 {
        let trial = learner.propose(round);
        learner.observe(&trial, Some(brings(&trial.point)), false);
    }
    for _ in 0..3 {
        let trial = learner.propose(7);
        learner.observe(&trial, Some(brings(&trial.point)), true);
    }
    assert!(learner.is_resting());
    let trial = learner.propose(8);
    assert_eq!((&trial.point, trial.purpose), (&Point::other(1), Purpose::Safe));
    assert_eq!(learner.stand().len(), 2, "where the knobs were is known");
}

#[test]
fn other_numbers_of_the_same_algorithms_lose_nothing() {
    let mut learner = choosing();
    for round in 0..120 {
        let trial = learner.propose(round);
        learner.observe(&trial, Some(brings(&trial.point)), false);
    }
    // The second becomes the third; the first is the incumbent still, and a new one lies between.
    let open = learner.propose(200);
    let to = |number| Some(if number == 2 { 3 } else { number });
    learner.choose_among(3, to, Point::other(1));
    assert_eq!(learner.observe(&open, Some(0.0), false).outcome, Outcome::Stale);
    assert_eq!(learner.centre(), &Point::other(3));
    let look = learner.propose(201);
    assert_eq!((&look.point, look.purpose), (&Point::other(1), Purpose::Check));
    learner.observe(&look, Some(brings(&look.point)), false);
    let mut tried = [false; 4];
    for round in 202..230 {
        let trial = learner.propose(round);
        tried[usize::from(trial.point.choice())] = true;
        let reward = if trial.point.choice() == 3 { 6.0 } else { 5.0 };
        learner.observe(&trial, Some(reward), false);
    }
    assert!(tried[2], "what is new is tried");
    assert_eq!(learner.centre(), &Point::other(3));
    // An algorithm that is gone is forgotten, and the safe one is in force.
    learner.choose_among(1, |number| (number == 1).then_some(1), Point::other(1));
    assert_eq!(learner.centre(), &Point::other(1));
}

#[test]
fn a_learner_with_a_choice_is_kept_across_a_restart() {
    let mut learner = choosing();
    for round in 0..30 {
        let trial = learner.propose(round);
        learner.observe(&trial, Some(brings(&trial.point)), false);
    }
    let json = serde_json::to_string(&learner).unwrap();
    let mut again: Learner = serde_json::from_str(&json).unwrap();
    assert_eq!(again, learner);
    assert_eq!(again.propose(31), learner.propose(31));
    let before = serde_json::to_string(&self::learner(Preset::Model)).unwrap();
    assert!(!before.contains("stand") && !before.contains("others"), "{before}");
}

/// An incumbent that is far worse than all others does not hide which of those is best.
#[test]
fn algorithms_that_are_far_apart_are_not_taken_for_noise() {
    let mut learner = learner(Preset::Model).choosing(3, Point::other(1), Point::other(1));
    let mut best = 0;
    for round in 0..60 {
        let trial = learner.propose(round);
        let noise = if round % 4 < 2 { 0.2 } else { -0.2 };
        let reward = match trial.point.choice() {
            0 => -1.5,
            1 => -10.0,
            2 => 0.3,
            _ => -2.3,
        };
        best += usize::from(round >= 30 && trial.point == Point::other(2));
        learner.observe(&trial, Some(reward + noise), false);
    }
    assert!(best >= 25, "{best} of 30");
}
