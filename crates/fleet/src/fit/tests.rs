use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::{Aggregate, Interval, Summary};

/// A service with a reward of players, and perhaps a surrogate.
fn service(surrogate: &str) -> Service {
    let surrogate = match surrogate {
        "" => String::new(),
        formula => format!("surrogate = \"{formula}\""),
    };
    Service::parse(&format!(
        "name = \"tv\"\nreward = \"mean(bitrate) - mean(rebuffering)\"\n{surrogate}\n\
         statistics = [\"bitrate\"]\nconnections_min = 5\n[knobs]\ngamma = {{}}"
    ))
    .unwrap()
}

/// Statistics of an interval by name.
type Seen = Vec<(&'static str, f64)>;

/// A log: by aggregate and interval what is seen, in two contexts in turn.
fn log(
    seed: u64,
    (aggregates, intervals): (u64, u64),
    mut of: impl FnMut(&mut Pcg64Mcg, u64, u64) -> Seen,
) -> Vec<Decision> {
    let service = service("");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut first = Aggregate::new("tv/203.0.113.0/24".parse().unwrap());
    first.open(&service, Interval(0));
    let one = first.close(&service, Interval(0), &Summary::new(10)).unwrap();
    let mut log = Vec::new();
    for aggregate in 0..aggregates {
        for n in 0..intervals {
            let seen = of(&mut random, aggregate, n);
            log.push(Decision {
                key: format!("tv/198.51.{aggregate}.0/24").parse().unwrap(),
                interval: Interval(n),
                context: if n / 24 % 2 == 0 { "00-12" } else { "12-24" }.to_owned(),
                statistics: seen.into_iter().map(|(name, v)| (name.to_owned(), v)).collect(),
                ..one.clone()
            });
        }
    }
    log
}

/// Nearly normal with a deviation of 1: a sum of twelve uniform numbers.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    (0..12).map(|_| random.random_range(-0.5..0.5)).sum()
}

/// A reward, of which the stall is a part that no formula of the tests reads.
fn rewarded(reward: f64, mut statistics: Seen) -> Seen {
    statistics.extend([("mean(bitrate)", reward + 1.0), ("mean(rebuffering)", 1.0)]);
    statistics
}

/// Throughput counts for 2, the median round-trip time for −30; loss for nothing. Each aggregate has
/// levels of its own. What is not explained has a deviation of `noise`.
fn known(seed: u64, size: (u64, u64), noise: f64) -> Vec<Decision> {
    log(seed, size, |random, aggregate, _| {
        let level = aggregate as f64;
        let throughput = 10.0 + level + normal(random);
        let rtt = 0.05 + 0.01 * level + 0.02 * normal(random).abs();
        let reward = 5.0 * level + 2.0 * throughput - 30.0 * rtt + noise * normal(random);
        let loss = 0.01 + 0.001 * normal(random);
        rewarded(
            reward,
            vec![("mean(throughput)", throughput), ("p50(rtt)", rtt), ("mean(loss)", loss)],
        )
    })
}

fn fit(service: &Service, log: &[Decision]) -> Result<SurrogateFit, SurrogateFitError> {
    SurrogateFit::of(service, log)
}

/// The bar: the 95% intervals hold the truth in at least 18 of 20 logs. By 40 aggregates, since few
/// units make a bootstrap too sure of itself.
#[test]
fn the_formula_behind_the_rewards_is_found_within_its_intervals() {
    let service = service("");
    let (mut held, mut same) = ([0; 2], 0);
    for seed in 0..20 {
        let found = fit(&service, &known(seed, (40, 48), 1.0)).unwrap();
        let names: Vec<&str> = found.terms.iter().map(|t| t.statistic.as_str()).collect();
        assert_eq!(names[..2], ["mean(throughput)", "p50(rtt)"], "{found:?}");
        same += u32::from(names.len() == 2);
        for ((held, term), truth) in held.iter_mut().zip(&found.terms).zip([2.0, -30.0]) {
            let Effect { low, high, .. } = term.coefficient;
            *held += u32::from((low..=high).contains(&truth));
        }
        // A throughput with a deviation of 1 explains 4, a half-normal rtt 0.13, of 5.13.
        let Prediction { r_squared, rank_correlation } = found.fitted;
        assert!((r_squared - 4.13 / 5.13).abs() < 0.05 && rank_correlation > 0.8, "{found:?}");
        assert!((found.gain.value - r_squared).abs() < 1e-12, "compared with nothing");
        assert!(found.stands_in && found.present.is_none());
        assert_eq!((found.intervals, found.aggregates, found.held_out), (1920, 40, 640));
        let read = |name: &str| match name {
            "mean(throughput)" => 3.0,
            _ => 0.5,
        };
        // It is what goes into the service's file.
        let formula = self::service(&found.surrogate).surrogate().unwrap().clone();
        let value = formula.value(|statistic| Some(read(&statistic.to_string())));
        let sum: f64 = found.terms.iter().map(|t| t.coefficient.value * read(&t.statistic)).sum();
        assert!((value / sum - 1.0).abs() < 2e-3, "{value} and {sum}: {}", found.surrogate);
    }
    println!("of 20 logs held: throughput and rtt {held:?}; {same} had no other term");
    assert!(held.iter().all(|held| *held >= 18) && same >= 18, "{held:?}, {same}");
}

#[test]
fn noise_is_refused() {
    for seed in 0..20 {
        let log = log(seed, (12, 72), |random, aggregate, _| {
            let [throughput, rtt] = [normal(random), normal(random)];
            let reward = aggregate as f64 + normal(random);
            rewarded(reward, vec![("mean(throughput)", throughput), ("mean(rtt)", rtt)])
        });
        let refused = fit(&service(""), &log).unwrap_err();
        let SurrogateFitError::Nothing { candidates, gain, intervals } = &refused else {
            panic!("{seed}: {refused}")
        };
        assert_eq!(candidates, &["mean(rtt)", "mean(throughput)"]);
        assert!(gain.value < 0.02 && *intervals == 288, "{refused}");
    }
}

/// Two names of nearly the same, one of exactly the same, a constant, and one that is no number now
/// and then: one of the first three is read, with the coefficient that they have together.
#[test]
fn statistics_that_go_together_share_one_term() {
    let log = log(3, (12, 72), |random, _, n| {
        let rtt = 0.1 + 0.02 * normal(random);
        let reward = -40.0 * rtt + 0.4 * normal(random);
        rewarded(
            reward,
            vec![
                ("mean(rtt)", 1.02 * rtt + 1e-5 * normal(random)),
                ("p50(rtt)", rtt),
                ("p51(rtt)", rtt),
                ("mean(loss)", 0.1),
                ("mean(throughput)", if n % 5 == 0 { f64::NAN } else { 7.0 }),
            ],
        )
    });
    let found = fit(&service(""), &log).unwrap();
    let [term] = &found.terms[..] else { panic!("{found:?}") };
    assert!(term.statistic.ends_with("(rtt)") && term.chosen > 0, "{found:?}");
    let truth = if term.statistic == "mean(rtt)" { -40.0 / 1.02 } else { -40.0 };
    let Effect { low, high, .. } = term.coefficient;
    assert!((low..=high).contains(&truth) && high - low < 6.0, "{term:?}");
    let why = |name: &str| found.unsuitable.iter().find(|of| of.statistic == name).unwrap();
    assert!(why("mean(loss)").why.contains("does not vary"), "{found:?}");
    // Every fifth of 72, from the first, in each of 12.
    assert_eq!(why("mean(throughput)").why, "it is known in 684 of 864 intervals with a reward");
}

/// Richer networks have more throughput and better scores; within each, more throughput goes with
/// worse ones. Over all intervals the slope is positive (Simpson 1951).
#[test]
fn levels_of_aggregates_do_not_hide_the_relation_within_them() {
    let log = log(4, (12, 72), |random, aggregate, _| {
        let level = 10.0 * aggregate as f64;
        let throughput = level + normal(random);
        let reward = 3.0 * level - 2.0 * (throughput - level) + normal(random);
        rewarded(reward, vec![("mean(throughput)", throughput)])
    });
    let of = |decision: &Decision| (decision.statistics[0].1, decision.statistics[1].1 - 1.0);
    let points: Vec<(f64, f64)> = log.iter().map(of).collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let both: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let squares: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    assert!(both / squares > 2.5, "over all: {}", both / squares);
    let found = fit(&service(""), &log).unwrap();
    let Effect { value, low, high } = found.terms[0].coefficient;
    assert!((low..=high).contains(&-2.0) && (value + 2.0).abs() < 0.2, "{found:?}");
    // 4 of 5 of the variance within aggregates.
    assert!((found.fitted.r_squared - 0.8).abs() < 0.05, "{found:?}");
}

/// What goes with the reward until the cut, and no more; and what goes with it in each aggregate by
/// another rule: neither predicts what it was not fitted to.
#[test]
fn what_predicts_only_what_was_fitted_to_is_refused() {
    let broken = |is_early: bool| {
        log(5, (15, 90), move |random, aggregate, n| {
            let reward = normal(random);
            let own = [1.0, -1.0][(aggregate as usize / 3) % 2];
            let decoy = match (is_early, n < 60) {
                (true, true) => reward + 0.1 * normal(random),
                (true, false) => normal(random),
                (false, _) => own * reward + 0.1 * normal(random),
            };
            rewarded(reward, vec![("mean(throughput)", decoy)])
        })
    };
    for is_early in [true, false] {
        let log = broken(is_early);
        let (service, rows) = (service(""), log.iter());
        let table = Table::read(&service, rows).unwrap();
        let found = HeldOut::of(&table, &[0]).unwrap();
        assert!(found.fitted.r_squared < 0.05, "{is_early}: {found:?}");
        assert!(found.fitted.rank_correlation < 0.05, "{is_early}: {found:?}");
        let refused = fit(&service, &log).unwrap_err();
        assert!(matches!(refused, SurrogateFitError::Nothing { .. }), "{is_early}: {refused}");
        if is_early {
            // On what it was fitted to it is nearly perfect.
            let early: Vec<&Decision> = log.iter().filter(|d| d.interval.0 < 60).collect();
            let found = SurrogateFit::of(&service, early.iter().copied()).unwrap();
            assert!(found.fitted.r_squared > 0.95, "{found:?}");
        }
    }
}

#[test]
fn a_present_surrogate_is_kept_unless_another_is_better() {
    let log = known(6, (20, 72), 0.5);
    let same = fit(&service("2 * mean(throughput) - 30 * p50(rtt)"), &log).unwrap_err();
    let SurrogateFitError::NoBetter { of_present, of_fitted, gain, .. } = &same else {
        panic!("{same}")
    };
    assert!(
        (of_present.r_squared - of_fitted.r_squared).abs() < 0.01 && gain.value < 0.01,
        "{same}"
    );
    assert!(same.to_string().contains("keep it"), "{same}");
    // Throughput alone has 4 of 4.38, rtt 0.13 more.
    let better = fit(&service("mean(throughput)"), &log).unwrap();
    let present = better.present.as_ref().unwrap();
    assert_eq!(present.formula, "mean(throughput)");
    let of_present = present.prediction.unwrap();
    assert!((of_present.r_squared - 4.0 / 4.38).abs() < 0.03, "{better:?}");
    let Effect { value, low, high } = better.gain;
    assert!(low > 0.0 && (low..=high).contains(&(0.13 / 4.38)), "{better:?}");
    let differ = better.fitted.r_squared - of_present.r_squared;
    assert!((value - differ).abs() < 1e-12, "{better:?}");
    // The sign and the level of a surrogate do not matter: it counts for the reward it goes with.
    let turned = fit(&service("100 - 7 * mean(throughput)"), &log).unwrap();
    assert!(
        (turned.present.unwrap().prediction.unwrap().r_squared - of_present.r_squared).abs() < 1e-9
    );
    // Of one that the log does not know nothing is said.
    let unknown = fit(&service("p99(request_time)"), &log).unwrap();
    assert_eq!(unknown.present.unwrap().prediction, None);
    assert!((unknown.gain.value - unknown.fitted.r_squared).abs() < 1e-12);
}

#[test]
fn what_goes_missing_with_the_reward_is_no_part_of_a_surrogate() {
    let with = |every: u64, rtt_stays: bool| {
        log(7, (10, 90), move |random, _, n| {
            let (rtt, throughput) = (normal(random), normal(random));
            let reward = rtt + throughput + 0.3 * normal(random);
            let seen = vec![("sum(throughput)", throughput), ("mean(throughput)", throughput)];
            let is_rewarded = n % every == 0;
            let mut seen = if is_rewarded { rewarded(reward, seen) } else { seen };
            if is_rewarded || rtt_stays {
                seen.push(("mean(rtt)", rtt));
            }
            seen
        })
    };
    let names = |log: &[Decision]| {
        let found = fit(&service(""), log).unwrap();
        let why = |name: &str| {
            let of = found.unsuitable.iter().find(|of| of.statistic == name);
            of.map_or_else(String::new, |of| of.why.clone())
        };
        let whys = ["mean(bitrate)", "mean(rtt)", "sum(throughput)"].map(why);
        (found.candidates.clone(), whys)
    };
    let (candidates, [bitrate, rtt, sum]) = names(&with(3, true));
    assert_eq!(candidates, ["mean(rtt)", "mean(throughput)"]);
    assert_eq!(bitrate, "it is known in 0 of 600 intervals without a reward");
    assert!(rtt.is_empty() && sum.contains("amount of traffic"), "{sum}");
    let (candidates, [_, rtt, _]) = names(&with(3, false));
    assert_eq!(candidates, ["mean(throughput)"]);
    assert_eq!(rtt, "it is known in 0 of 600 intervals without a reward");
    // Where each interval has a reward it is not known what goes missing with it.
    let (candidates, [bitrate, ..]) = names(&with(1, true));
    assert_eq!(candidates, ["mean(rtt)", "mean(throughput)"]);
    assert_eq!(bitrate, "the reward reads it");
}

#[test]
fn a_log_that_shows_too_little_is_refused_with_what_it_lacks() {
    let refused = |log: &[Decision]| fit(&service(""), log).unwrap_err();
    let few = refused(&known(8, (12, 10), 1.0));
    assert_eq!(few, SurrogateFitError::TooFew { intervals: 120, aggregates: 12 });
    assert_eq!(
        refused(&known(8, (4, 90), 1.0)),
        SurrogateFitError::TooFew { intervals: 360, aggregates: 4 }
    );
    assert!(few.to_string().contains("200 of 5 are needed; ask for a longer log"), "{few}");
    // Too few connections make no reward.
    let thin: Vec<Decision> = known(8, (12, 90), 1.0)
        .into_iter()
        .map(|decision| Decision { connections: 4, ..decision })
        .collect();
    assert_eq!(refused(&thin), SurrogateFitError::TooFew { intervals: 0, aggregates: 0 });
    // With two intervals of each aggregate, its mean takes half of what there is.
    let short = refused(&known(8, (110, 2), 1.0));
    assert!(matches!(short, SurrogateFitError::TooShort { .. }), "{short}");
    let only_its_own = log(8, (10, 40), |random, _, _| rewarded(normal(random), vec![]));
    let none = refused(&only_its_own).to_string();
    assert!(none.contains("mean(bitrate): the reward reads it") && none.contains("`statistics`"));
    let same = log(8, (10, 40), |random, _, _| rewarded(3.0, vec![("mean(rtt)", normal(random))]));
    assert_eq!(refused(&same), SurrogateFitError::Constant);
}

#[test]
fn the_order_of_decisions_does_not_matter() {
    let log = known(9, (8, 60), 1.0);
    let turned: Vec<Decision> = log.iter().rev().cloned().collect();
    let service = service("mean(throughput)");
    assert_eq!(fit(&service, &log), fit(&service, &turned));
}
