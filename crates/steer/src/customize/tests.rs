//! Rows K1 to K4 of the reference's expected values (K5 is the aggregate's, in `trimtab-fleet`).

use super::*;

/// A learner of three knobs that starts in a corner of the cube.
fn learner(settings: Settings) -> Learner {
    Learner::new(settings, vec![0.2; 3], vec![0.5; 3], 3)
}

const BEST: [f64; 3] = [0.7, 0.4, 0.6];

fn quadratic(point: &[f64]) -> f64 {
    -point.iter().zip(BEST).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
}

fn distance(point: &[f64]) -> f64 {
    (-quadratic(point)).sqrt()
}

/// A value between −1 and 1 that has no relation to the draws of the learner.
fn noise(round: u64) -> f64 {
    let mixed = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Distance from the best configuration after so many rounds.
fn after(settings: Settings, rounds: u64, seed: u64, noisy: f64) -> f64 {
    let mut learner = learner(settings);
    for round in 0..rounds {
        let trial = learner.propose(seed * 1_000_003 + round);
        let reward = quadratic(&trial.point) + noisy * noise(seed * 7919 + round);
        learner.observe(&trial, Some(reward), false);
    }
    distance(learner.centre())
}

fn calm(preset: Preset) -> Settings {
    // No alarms: a reward that only rises has hardly a deviation.
    Settings { alarm_deviations: 100.0, ..Settings::of(preset) }
}

#[test]
fn k1_converges_to_within_a_tenth_in_a_few_hundred_rounds() {
    for seed in 0..20 {
        for preset in [Preset::Paper, Preset::Pairs] {
            let off = after(calm(preset), 500, seed, 0.0);
            assert!(off < 0.1, "{preset:?}, seed {seed}: {off}");
        }
    }
}

/// Mean square distance from the mean of where learners with different draws end.
fn spread(settings: &Settings) -> f64 {
    let ends: Vec<Vec<f64>> = (0..60)
        .map(|seed| {
            let mut learner = learner(settings.clone());
            for round in 0..400 {
                let trial = learner.propose(seed * 1_000_003 + round);
                let reward = quadratic(&trial.point) + 0.05 * noise(seed * 7919 + round);
                learner.observe(&trial, Some(reward), false);
            }
            learner.centre().to_vec()
        })
        .collect();
    (0..3)
        .map(|knob| {
            let mean = ends.iter().map(|e| e[knob]).sum::<f64>() / ends.len() as f64;
            ends.iter().map(|e| (e[knob] - mean).powi(2)).sum::<f64>() / ends.len() as f64
        })
        .sum()
}

#[test]
fn k1_variance_falls_with_averaging_and_with_momentum() {
    let base = Settings { momentum: 0.0, average: 1, step_max: 1.0, ..calm(Preset::Paper) };
    let plain = spread(&base);
    // The same number of rewards makes fewer steps, each of a better estimate.
    let averaged = spread(&Settings { average: 4, ..base.clone() });
    assert!(averaged < 0.7 * plain, "averaged {averaged}, plain {plain}");
    // Momentum smooths what single steps do.
    let jumps = |settings: &Settings| {
        let mut learner = learner(settings.clone());
        let mut sum = 0.0;
        for round in 0..400 {
            let trial = learner.propose(round);
            let reward = quadratic(&trial.point) + 0.05 * noise(round);
            if let Outcome::Stepped { step, .. } =
                learner.observe(&trial, Some(reward), false).outcome
            {
                sum += step.by.iter().map(|s| s * s).sum::<f64>();
            }
        }
        sum
    };
    let smooth = jumps(&Settings { momentum: 0.5, ..base.clone() });
    assert!(smooth < 0.6 * jumps(&base), "{smooth}");
}

#[test]
fn k2_trials_lie_on_the_sphere_and_in_the_box() {
    for preset in [Preset::Paper, Preset::Pairs] {
        let mut learner = learner(calm(preset));
        for round in 0..400 {
            let (centre, radius) = (learner.centre().to_vec(), learner.radius());
            let trial = learner.propose(round);
            let from = trial.point.iter().zip(&centre).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            assert!((from.sqrt() - radius).abs() < 1e-9, "round {round}: {} {radius}", from.sqrt());
            assert!(trial.point.iter().all(|x| (0.0..=1.0).contains(x)), "{:?}", trial.point);
            // Ever upwards: the centre runs into a corner and stays there.
            learner.observe(&trial, Some(trial.point.iter().sum()), false);
        }
        assert!(learner.centre().iter().all(|&x| x > 0.7), "{:?}", learner.centre());
    }
}

#[test]
fn k3_the_estimate_is_unbiased() {
    // E[r·x] = (φ/d)·∇r of the smoothed reward; a quadratic's is that of the reward itself.
    let centre = [0.3, 0.5, 0.5];
    let slope: Vec<f64> = centre.iter().zip(BEST).map(|(c, b)| -2.0 * (c - b)).collect();
    for preset in [Preset::Paper, Preset::Pairs] {
        let settings =
            Settings { rate: 0.0, halving: 0, momentum: 0.0, average: 1, ..calm(preset) };
        let mut learner = Learner::new(settings, centre.to_vec(), vec![0.5; 3], 3);
        let (mut sum, mut count) = ([0.0; 3], 0.0);
        for round in 0..40_000 {
            let trial = learner.propose(round);
            let lesson = learner.observe(&trial, Some(quadratic(&trial.point)), false);
            if let Outcome::Stepped { step, .. } = lesson.outcome {
                step.gradient.iter().zip(&mut sum).for_each(|(g, s)| *s += g);
                count += 1.0;
            }
        }
        assert!(count >= 20_000.0, "every round or every other gives an estimate: {count}");
        for (got, want) in sum.iter().map(|s| s / count).zip(&slope) {
            assert!((got - want).abs() < 0.02, "{preset:?}: {got} {want}");
        }
    }
}

#[test]
fn k4_three_bad_intervals_bring_the_safe_configuration_back() {
    let mut learner = learner(Settings::of(Preset::Pairs));
    let safe = [0.5; 3];
    for round in 0..60 {
        let trial = learner.propose(round);
        let reward = 1.0 + quadratic(&trial.point) + 0.02 * noise(round);
        let lesson = learner.observe(&trial, Some(reward), false);
        assert!(!matches!(lesson.outcome, Outcome::FellBack { .. }), "round {round}: {lesson:?}");
    }
    let usual = *learner.watch();
    for bad in 1..=3 {
        assert!(!learner.is_resting());
        let trial = learner.propose(1000 + bad);
        let reward = usual.mean() - 3.0 * usual.deviation().max(0.02 * usual.mean()) - 0.5;
        let lesson = learner.observe(&trial, Some(reward), false);
        let fell = matches!(lesson.outcome, Outcome::FellBack { alarm: Alarm::Reward { .. } });
        assert_eq!(fell, bad == 3, "{lesson:?}");
    }
    assert_eq!(learner.centre()[..], safe[..]);
    // A result from before is no lesson now.
    for left in [2, 1] {
        let trial = learner.propose(2000);
        assert_eq!((&trial.point[..], trial.purpose), (&safe[..], Purpose::Safe));
        let lesson = learner.observe(&trial, Some(-5.0), true);
        assert_eq!(lesson.outcome, Outcome::Resting { left });
    }
    let trial = learner.propose(2001);
    assert_eq!(learner.observe(&trial, Some(-5.0), false).outcome, Outcome::Restarted);
    let trial = learner.propose(2002);
    assert!(matches!(trial.purpose, Purpose::Explore { .. }));
    assert_eq!(learner.centre()[..], safe[..], "learning restarts there");
}

#[test]
fn k4_two_bad_intervals_and_a_good_one_are_no_alarm() {
    let mut learner = learner(Settings::of(Preset::Pairs));
    for round in 0..90 {
        let trial = learner.propose(round);
        let low = round > 30 && round % 3 != 0;
        let reward = 1.0 + 0.02 * noise(round) - if low { 0.5 } else { 0.0 };
        let lesson = learner.observe(&trial, Some(reward), false);
        assert!(!matches!(lesson.outcome, Outcome::FellBack { .. }), "round {round}");
    }
}

#[test]
fn a_broken_guard_is_an_alarm_whatever_the_reward() {
    let mut learner = learner(Settings::of(Preset::Pairs));
    for round in 0..3 {
        let trial = learner.propose(round);
        let lesson = learner.observe(&trial, Some(1e6), true);
        let fell = lesson.outcome == Outcome::FellBack { alarm: Alarm::Guard };
        assert_eq!(fell, round == 2);
    }
}

#[test]
fn what_was_tried_before_a_restart_teaches_nothing_after_it() {
    let mut learner = learner(Settings::of(Preset::Pairs));
    let trial = learner.propose(1);
    learner.restart_at(vec![0.3; 3]);
    assert_eq!(learner.observe(&trial, Some(9.0), false).outcome, Outcome::Stale);
    assert_eq!(learner.centre()[..], [0.3; 3]);
}

#[test]
fn without_a_reward_a_pair_is_given_up() {
    let mut learner = learner(Settings::of(Preset::Pairs));
    let first = learner.propose(1);
    assert_eq!(learner.observe(&first, Some(1.0), false).outcome, Outcome::AwaitsOpposite);
    let second = learner.propose(2);
    assert_eq!(second.direction, first.direction);
    for nothing in [None, Some(f64::NAN)] {
        assert_eq!(learner.observe(&second, nothing, false).outcome, Outcome::NoReward);
    }
    assert_ne!(learner.propose(3).direction, first.direction);
}

#[test]
fn the_knobs_that_matter_are_found() {
    // Six knobs, two active; only the fifth and the fourth matter, and those are not active at first.
    let settings = Settings { select_every: 20, ..calm(Preset::Pairs) };
    let mut learner = Learner::new(settings, vec![0.4; 6], vec![0.5; 6], 2);
    let reward =
        |p: &[f64], round| -(p[4] - 0.8).powi(2) - (p[3] - 0.1).powi(2) + 0.01 * noise(round);
    let mut selected = None;
    for round in 0..300 {
        let trial = learner.propose(round);
        let lesson = learner.observe(&trial, Some(reward(&trial.point, round)), false);
        if let Outcome::Selected { active, .. } = lesson.outcome {
            selected.get_or_insert(active);
        }
    }
    assert_eq!(selected.as_deref(), Some(&[3, 4][..]));
    let centre = learner.centre();
    assert!((centre[4] - 0.8).abs() < 0.15 && (centre[3] - 0.1).abs() < 0.15, "{centre:?}");
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = Settings { momentum: 1.0, ..Settings::of(Preset::Paper) };
    let message = wrong.check().unwrap_err().to_string();
    assert_eq!(message, "momentum = 1 is outside its range 0 to 0.99");
    Settings::of(Preset::Paper).check().unwrap();
    Settings::of(Preset::Pairs).check().unwrap();
}
