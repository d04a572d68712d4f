//! The learner that has a model of the reward.

use super::*;

const BEST: [f64; 3] = [0.7, 0.4, 0.6];

fn quadratic(point: &[f64], best: &[f64]) -> f64 {
    -point.iter().zip(best).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
}

/// A value of deviation 1 that has no relation to the draws of the learner.
fn noise(round: u64) -> f64 {
    let mixed = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0) * 3.0_f64.sqrt()
}

fn calm() -> Settings {
    Settings { alarm_deviations: 100.0, debt_max: 1e6, ..Settings::of(Preset::Model) }
}

fn learner(settings: Settings) -> Learner {
    Learner::new(settings, vec![0.2; 3], vec![0.2; 3], 3)
}

/// Mean of what trials that were chosen lacked to the best, in each fifth of a run, and what the
/// best guess lacks in the end.
fn lacks(learner: &mut Learner, rounds: u64, seed: u64, noisy: f64) -> ([f64; 5], f64) {
    let mut fifths = [0.0; 5];
    for round in 0..rounds {
        let trial = learner.propose(seed * 1_000_003 + round);
        let reward = quadratic(&trial.point, &BEST);
        // Looking at the safe configuration has a price of its own, which is not one of looking around.
        if trial.purpose != Purpose::Check {
            fifths[(round * 5 / rounds) as usize] -= reward * 5.0 / rounds as f64;
        }
        learner.observe(&trial, Some(10.0 + reward + noisy * noise(seed * 7919 + round)), false);
    }
    (fifths, -quadratic(learner.centre(), &BEST))
}

#[test]
fn it_looks_around_less_the_more_it_knows() {
    let mut late = 0.0;
    for seed in 0..8 {
        let (fifths, guess) = lacks(&mut learner(calm()), 200, seed, 0.05);
        late += fifths[4] / 8.0;
        assert!(fifths[4] < 0.5 * fifths[0], "seed {seed}: {fifths:?}");
        assert!(fifths[4] < 0.03 && guess < 0.02, "seed {seed}: {fifths:?} {guess}");
    }
    // One seed may be unlucky, all may not.
    assert!(late < 0.02, "{late}");
}

#[test]
fn it_is_nearer_and_sooner_there_than_by_gradients() {
    let of = |preset, seed| {
        let settings = Settings { alarm_deviations: 100.0, ..Settings::of(preset) };
        let mut learner = learner(Settings { debt_max: 1e6, ..settings });
        lacks(&mut learner, 200, seed, 0.2).0.iter().sum::<f64>() / 5.0
    };
    let [model, pairs] =
        [Preset::Model, Preset::Pairs].map(|p| (20..28).map(|seed| of(p, seed)).sum::<f64>());
    assert!(model < 0.6 * pairs, "model {model}, pairs {pairs}");
}

/// A thousand times as many connections in every other interval: what trials lack in the second half
/// of a run, with and without the error of their rewards told.
#[test]
fn what_many_connections_brought_counts_for_more() {
    let lack = |told: bool, seed: u64| {
        let mut learner = learner(calm());
        let mut sum = 0.0;
        for round in 0..160 {
            let trial = learner.propose(seed * 1_000_003 + round);
            let lacks = quadratic(&trial.point, &BEST);
            let is_late = round >= 80 && trial.purpose != Purpose::Check;
            sum -= if is_late { lacks / 80.0 } else { 0.0 };
            let connections: f64 = if round % 2 == 0 { 20.0 } else { 20_000.0 };
            let error = 2.0 / connections.sqrt();
            let off = error * noise(seed * 7919 + round) + 0.05 * noise(seed * 104_729 + round);
            let reward =
                Reward { value: 10.0 + lacks + off, error: told.then_some(error), harm: None };
            learner.observe_knowing(&trial, Some(reward), false, &Known::default());
        }
        sum
    };
    let of = |told| (0..8).map(|seed| lack(told, seed) / 8.0).sum::<f64>();
    let (told, untold) = (of(true), of(false));
    println!("late trials lack {told:.4} with errors, {untold:.4} without");
    assert!(told < 0.8 * untold, "{told} {untold}");
}

#[test]
fn trials_stay_in_reach_and_in_the_box() {
    let settings = calm();
    let mut learner = learner(settings.clone());
    let mut best = learner.centre().to_vec();
    for round in 0..120 {
        let trial = learner.propose(round);
        // Twice: what is known may have moved the best guess first.
        let reach = 2.0 * settings.radius + 1e-3;
        let is_near = trial.point.iter().zip(&best).all(|(a, b)| (a - b).abs() <= reach);
        assert!(is_near || trial.purpose == Purpose::Check, "{trial:?}");
        assert!(trial.point.iter().all(|x| (0.0..=1.0).contains(x)), "{trial:?}");
        learner.observe(&trial, Some(trial.point.iter().sum()), false);
        best = learner.centre().to_vec();
    }
    assert!(best.iter().all(|&x| x > 0.9), "{best:?}");
}

/// What a fleet found all over the box whose best is there, at `steep` deviations for a whole range of one knob.
fn findings(best: &[f64], steep: f64) -> Commons {
    let mut commons = Commons::default();
    for i in 0..400_u64 {
        let at = |k: u64| (((i * 97 + k * 31 + i * i * k) % 101) as f64) / 100.0;
        let point = [at(1), at(2), at(3)];
        let advantage = steep * (quadratic(&point, best) - quadratic(&[0.2; 3], best));
        let advantage = advantage + noise(i);
        commons.add(&Finding { point: point.to_vec().into(), advantage, trials: 1.0 });
    }
    commons
}

#[test]
fn an_aggregate_that_is_unlike_the_others_goes_its_own_way() {
    // The fleet is sure, and wrong for this one.
    let commons = findings(&[0.15, 0.9, 0.1], 12.0);
    let late = |known: &Known<'_>, seed: u64| {
        let mut learner = learner(calm());
        let mut sum = 0.0;
        for round in 0..150 {
            let trial = learner.propose_knowing(seed * 1_000_003 + round, known);
            let reward = quadratic(&trial.point, &BEST);
            sum -= if round < 75 { 0.0 } else { reward / 75.0 };
            let noisy = 0.1 * noise(seed * 7919 + round);
            learner.observe_knowing(&trial, Some((5.0 + reward + noisy).into()), false, known);
        }
        sum
    };
    let of = |known: &Known<'_>| (0..6).map(|seed| late(known, seed) / 6.0).sum::<f64>();
    let (alone, among_others) =
        (of(&Known::default()), of(&Known { fleet: commons.cells(), ..Known::default() }));
    assert!(among_others < 1.5 * alone, "{among_others} {alone}");
}

#[test]
fn what_others_found_is_where_it_begins() {
    // Others: the same network in another context, and a fleet whose best is about the same.
    let mut other = learner(calm());
    lacks(&mut other, 150, 1, 0.1);
    let commons = findings(&BEST, 4.0);
    assert!(commons.cells().len() <= 32 && commons.weight() > 300.0);
    let lack = |known: &Known<'_>| {
        let mut learner = learner(calm());
        let mut sum = 0.0;
        for round in 0..12 {
            let trial = learner.propose_knowing(round, known);
            let reward = quadratic(&trial.point, &BEST);
            sum -= reward / 12.0;
            let came = 5.0 + reward + 0.1 * noise(round);
            learner.observe_knowing(&trial, Some(came.into()), false, known);
        }
        sum
    };
    let alone = lack(&Known::default());
    let by_other = lack(&Known { others: vec![&other], ..Known::default() });
    let by_fleet = lack(&Known { fleet: commons.cells(), ..Known::default() });
    assert!(by_other < 0.5 * alone, "{by_other} {alone}");
    assert!(by_fleet < 0.5 * alone, "{by_fleet} {alone}");
}

#[test]
fn when_everything_gets_better_it_looks_around_again() {
    let mut learner = learner(calm());
    lacks(&mut learner, 150, 3, 0.02);
    // Another route: twice the reward, and the best lies elsewhere.
    let best = [0.4, 0.8, 0.3];
    let mut noticed = None;
    for round in 0..150 {
        let trial = learner.propose(5_000 + round);
        let reward = 20.0 + 2.0 * quadratic(&trial.point, &best) + 0.02 * noise(round);
        let lesson = learner.observe(&trial, Some(reward), false);
        if lesson.anew {
            noticed.get_or_insert(round);
        }
    }
    assert_eq!(noticed, Some(2), "three surprises in a row");
    let lack = -quadratic(learner.centre(), &best);
    assert!(lack < 0.03, "{lack} {:?}", learner.centre());
}

#[test]
fn the_loss_relative_to_the_safe_configuration_grows_ever_more_slowly() {
    // The safe configuration is best, and the learner is as reckless as it may be: it would look elsewhere for ever.
    let lost_by = |debt_max, rounds| {
        let settings = Settings { optimism: 10.0, debt_max, ..calm() };
        let mut learner = Learner::new(settings, vec![0.5; 3], vec![0.5; 3], 3);
        let mut lost = 0.0;
        for round in 0..rounds {
            let trial = learner.propose(round);
            let less = -8.0 * quadratic(&trial.point, &[0.5; 3]);
            lost += less;
            learner.observe(&trial, Some(10.0 - less + 0.2 * noise(round)), false);
        }
        lost
    };
    let (early, late) = (lost_by(8.0, 400), lost_by(8.0, 800));
    let unbound = lost_by(1e6, 800);
    assert!(late < 0.5 * unbound, "{late} {unbound}");
    assert!(late < 1.5 * early, "{early} {late}");
}

#[test]
fn a_safe_configuration_that_became_better_is_found_out() {
    // It was bad, and is far from what was learnt: no trial near the best guess would tell.
    let safe = [0.1; 3];
    let mut learner = Learner::new(calm(), vec![0.7; 3], safe.to_vec(), 3);
    let near = |point: &[f64]| libm::exp(30.0 * quadratic(point, &safe));
    let (mut checks, mut found) = (0, None);
    for round in 0..400_u64 {
        let better = round >= 250;
        let trial = learner.propose(round);
        checks += u32::from(trial.purpose == Purpose::Check && !better);
        let level = if better { 5.0 } else { -5.0 };
        let reward = 5.0 + quadratic(&trial.point, &BEST) + level * near(&trial.point);
        learner.observe(&trial, Some(reward + 0.1 * noise(round)), false);
        if better && near(learner.centre()) > 0.5 {
            found.get_or_insert(round - 250);
        }
    }
    assert!((3..=6).contains(&checks), "ever more seldom: {checks}");
    assert!(found.is_some_and(|after| after < 100), "{found:?} {:?}", learner.centre());
}

#[test]
fn an_alarm_forgets_and_the_safe_configuration_teaches() {
    let mut learner = Learner::new(Settings::of(Preset::Model), vec![0.2; 3], vec![0.5; 3], 3);
    lacks(&mut learner, 80, 2, 0.05);
    let mut fell = None;
    for round in 0..8 {
        let trial = learner.propose(900 + round);
        let lesson = learner.observe(&trial, Some(1.0), false);
        if matches!(lesson.outcome, Outcome::FellBack { alarm: Alarm::Reward { .. } }) {
            fell.get_or_insert(round);
            assert_eq!(learner.steps(), 0, "nothing is known of the new network");
        }
    }
    assert_eq!(fell, Some(2));
    assert!(learner.steps() >= 3, "{}", learner.steps());
}

/// The safe configuration brings 5 and what is learnt 10. Rewards fall for good, to 7.
#[test]
fn a_safe_configuration_that_is_known_to_be_worse_does_not_come_into_force() {
    let after_a_fall = |to: f64, broken: bool| {
        let mut learner = Learner::new(Settings::of(Preset::Model), vec![0.7; 3], vec![0.1; 3], 3);
        let mut fell_back = false;
        let mut spared = 0;
        for round in 0..120_u64 {
            let trial = learner.propose(round);
            let near = libm::exp(30.0 * quadratic(&trial.point, &[0.1; 3]));
            let better = if round < 100 { 10.0 } else { to };
            let reward = better + near * (5.0 - better) + 0.1 * noise(round);
            let lesson = learner.observe(&trial, Some(reward), broken && round >= 100);
            fell_back |= matches!(lesson.outcome, Outcome::FellBack { .. });
            spared += u32::from(lesson.spared.is_some());
        }
        (fell_back, spared)
    };
    assert_eq!(after_a_fall(7.0, false), (false, 1), "the alarm is spared, and once");
    assert_eq!(after_a_fall(3.0, false), (true, 0), "nothing says that the safe one is worse");
    assert!(after_a_fall(7.0, true).0, "a guard that breaks is another thing");
}

#[test]
fn its_state_is_small_and_comes_back_the_same() {
    let mut learner = learner(calm());
    lacks(&mut learner, 400, 5, 0.1);
    let text = serde_json::to_string(&learner).unwrap();
    assert!(text.len() < 2500, "{}", text.len());
    let mut back: Learner = serde_json::from_str(&text).unwrap();
    assert_eq!(back.propose(77), learner.propose(77));
}

/// Trials from a change of the network to learning anew, where rewards fall by so many deviations
/// of their noise after 120 trials; and how often it began anew before.
fn until_anew(forgetting: Forgetting, seed: u64, fall: f64) -> (u64, u32) {
    let mut learner = learner(Settings { forgetting, ..calm() });
    let mut false_ones = 0;
    for round in 0..220 {
        let trial = learner.propose(seed * 1_000_003 + round);
        let level = if round < 120 { 10.0 } else { 10.0 - 0.2 * fall };
        let off = 0.2 * noise(seed * 7919 + round);
        let reward = level + quadratic(&trial.point, &BEST) + off;
        if learner.observe(&trial, Some(reward), false).anew {
            if round >= 120 {
                return (round - 119, false_ones);
            }
            false_ones += 1;
        }
    }
    (100, false_ones)
}

#[test]
fn change_points_notice_a_change_sooner_than_surprises() {
    let of = |forgetting| {
        let all: Vec<_> = (0..12).map(|seed| until_anew(forgetting, seed, 2.5)).collect();
        let mean = all.iter().map(|one| one.0 as f64).sum::<f64>() / 12.0;
        (mean, all.iter().map(|one| one.1).sum::<u32>())
    };
    let (surprises, change_points) = (of(Forgetting::Fading), of(Forgetting::ChangePoints));
    println!("trials to notice: {surprises:?} by surprises, {change_points:?} by change points");
    assert!(change_points.0 < 12.0 && change_points.0 < 0.6 * surprises.0);
    assert!(change_points.1 <= 1, "of 1,440 trials without a change");
}

/// Where nothing changes, what fades is lost: trials lack less without it.
#[test]
fn without_fading_a_network_that_stays_is_known_better() {
    let late = |forgetting| {
        let of = |seed| {
            let mut learner = learner(Settings { forgetting, ..calm() });
            lacks(&mut learner, 1000, seed, 0.3).0[4] / 8.0
        };
        (0..8).map(of).sum::<f64>()
    };
    let (fading, kept) = (late(Forgetting::Fading), late(Forgetting::ChangePoints));
    println!("the last 200 of 1,000 trials lack {fading:.4} with fading, {kept:.4} without");
    assert!(kept < 0.9 * fading, "{kept} {fading}");
}

/// What is known from before the change is left out, and what came since is not.
#[test]
fn after_a_change_only_trials_since_then_are_known() {
    let settings = Settings { forgetting: Forgetting::ChangePoints, ..calm() };
    let mut learner = learner(settings);
    let mut rounds = (0_u64..).map(|round| (round, 0.1 * noise(round)));
    let mut observe = |learner: &mut Learner, level: f64| {
        let (round, off) = rounds.next().expect("there is no end");
        let trial = learner.propose(round);
        learner.observe(&trial, Some(level + quadratic(&trial.point, &BEST) + off), false).anew
    };
    assert!(!(0..80).any(|_| observe(&mut learner, 10.0)));
    assert_eq!(learner.steps(), 80, "nothing fades");
    let taken = (1..20).find(|_| observe(&mut learner, 9.0)).expect("a change");
    assert!((3..8).contains(&taken) && learner.steps() <= taken, "{taken} {}", learner.steps());
    assert_eq!(learner.centre()[..], [0.2; 3], "it begins at the safe configuration");
    let text = serde_json::to_string(&learner).unwrap();
    assert_eq!(serde_json::from_str::<Learner>(&text).unwrap(), learner);
}
