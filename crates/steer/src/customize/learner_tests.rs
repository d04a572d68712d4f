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
    assert_eq!((trial.purpose, trial.point.as_slice()), (Purpose::Check, &[0.8, 0.2][..]));
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
    assert_eq!((trial.purpose, trial.point.as_slice()), (Purpose::Safe, &[0.1, 0.9][..]));
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
                assert_eq!(trial.point, before);
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
        assert_eq!((trial.purpose, trial.point.as_slice()), (Purpose::Held, &[0.9, 0.9][..]));
        learner.observe(&trial, Some(99.0), false);
        assert_eq!((learner.centre(), learner.steps()), (&centre[..], steps));
    }
}
