//! Figures of experiments and rollouts that a few numbers on paper give, and who gets which arm when.

use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::*;

const SERVICE: &str = r#"
    name = "tv"
    interval = "20min"
    reward = "mean(throughput)"
    connections_min = 2
    [knobs]
    gamma = { min = 1, max = 5000, scale = "log" }
    omega = { min = 0.1, max = 10, scale = "log" }
    [safe]
    gamma = 900
"#;
const HALF: Design = Design::Prefixes { share: 0.5 };

fn service() -> Service {
    Service::parse(SERVICE).unwrap()
}

fn experiment(design: Design, length: u32, guards: &[&str]) -> Experiment {
    Experiment {
        control: Arm::Learn,
        treatment: Arm::Safe,
        design,
        start: Interval(1000),
        length,
        wash_out: 0,
        metric: None,
        guards: guards.iter().map(|guard| (*guard).to_owned()).collect(),
        seed: 7,
    }
}

fn rollout() -> Rollout {
    Rollout {
        from: Arm::Learn,
        to: Arm::Safe,
        stages: vec![0.5, 1.0],
        start: Interval(1000),
        intervals: 4,
        wash_out: 2,
        metric: "reward".to_owned(),
        guards: vec!["mean(loss) < +20%".to_owned()],
        seed: 3,
    }
}

fn members(baselines: &[Option<f64>]) -> Vec<Member> {
    let member = |(i, &baseline)| Member { key: format!("tv/10.0.{i}.0/24"), baseline };
    baselines.iter().enumerate().map(member).collect()
}

/// A cell of one interval with these values of the metric and of a guard.
fn cell(member: usize, block: i64, arm: u8, values: [Option<f64>; 2]) -> CellOf {
    let mut cell = Cell::default();
    cell.add(&Observation::Values(values.to_vec()));
    CellOf { member, block, arm, cell }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found}, not {expected}");
}

/// The probability outside of an interval around an estimate with this error.
fn outside(effect: &Effect, error: f64, freedom: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom).unwrap();
    2.0 * t.sf((effect.high - effect.value) / error)
}

/// Control 1, 2, 3 and treatment 4, 6, 8: Welch's t by hand.
#[test]
fn aggregates_are_compared_as_by_welch() {
    let experiment = experiment(HALF, 24, &["mean(loss) < +20%", "mean(loss) < 0.2"]);
    let plan = Plan::of_experiment(&experiment, &service()).unwrap();
    let values = [(0, 1.0), (0, 2.0), (0, 3.0), (1, 4.0), (1, 6.0), (1, 8.0)];
    let cells: Vec<CellOf> = values
        .iter()
        .enumerate()
        .map(|(member, &(arm, value))| {
            let mut cell = Cell::default();
            let loss = Some(0.1 + 0.05 * f64::from(arm) + 0.001 * member as f64);
            cell.add(&Observation::Values(vec![Some(value), loss, loss]));
            CellOf { member, block: 0, arm, cell }
        })
        .collect();
    let report = experiment.report(&plan, &service(), &members(&[None; 6]), 0, &cells, 24);
    assert!(report.over && !report.units.adjusted);
    near(report.control.unwrap(), 2.0);
    near(report.treatment.unwrap(), 6.0);
    let effect = report.effect.unwrap();
    near(effect.value, 4.0);
    near(effect.value - effect.low, effect.high - effect.value);
    // Variances 1 and 4 of three each, and Satterthwaite's degrees of freedom.
    let (error, freedom) = ((1.0_f64 / 3.0 + 4.0 / 3.0).sqrt(), 50.0 / 17.0);
    assert!((outside(&effect, error, freedom) - (1.0 - report.confidence)).abs() < 1e-6);
    near(report.confidence, 0.955);
    // 2 is less than four of its errors of 0.577 away from zero, by which nothing is divided.
    assert_eq!(report.relative, None);
    // 0.154 of 1.2 times 0.101, and of 0.2.
    near(report.guards[0].excess.unwrap().value, 0.154 - 1.2 * 0.101);
    near(report.guards[1].excess.unwrap().value, 0.154 - 0.2);
    assert_eq!(
        report.guards.iter().map(|g| g.verdict).collect::<Vec<_>>(),
        [Verdict::Broken, Verdict::Holds]
    );
    assert!(report.verdict.starts_with("The difference is +4.0000 (-0."), "{}", report.verdict);
    assert!(report.verdict.contains("which may be none"), "{}", report.verdict);
    assert!(report.verdict.ends_with("mean(loss) < +20% is broken."), "{}", report.verdict);
    // Of 6 aggregates over 24 intervals, 6 intervals were reported.
    assert_eq!(report.left_out, LeftOut { unreported: 6 * 23, ..LeftOut::default() });
}

/// Rewards before that differ by 100 from aggregate to aggregate are no noise where they are known.
#[test]
fn what_aggregates_had_before_is_taken_out() {
    let experiment = experiment(HALF, 24, &[]);
    let plan = Plan::of_experiment(&experiment, &service()).unwrap();
    let before: Vec<Option<f64>> = (0..10).map(|i| Some(100.0 * f64::from(i))).collect();
    let cells: Vec<CellOf> = (0..10)
        .map(|member| {
            let arm = (member % 2) as u8;
            let value = 100.0 * member as f64 + 3.0 * f64::from(arm);
            cell(member, 0, arm, [Some(value), None])
        })
        .collect();
    let report = experiment.report(&plan, &service(), &members(&before), 0, &cells, 24);
    assert!(report.units.adjusted);
    let effect = report.effect.unwrap();
    near(effect.value, 3.0);
    assert!(effect.high - effect.low < 1e-6, "{effect:?}");
    assert_eq!((report.units.control, report.units.treatment), (5, 5));
    // Without them the treatment looks 103 higher, which may be none.
    let report = experiment.report(&plan, &service(), &members(&[None; 10]), 0, &cells, 24);
    near(report.effect.unwrap().value, 103.0);
    assert!(report.verdict.contains("which may be none"), "{}", report.verdict);
}

/// Differences of 1, 2, 3 and 2 within pairs of blocks: 2, give or take the deviation by the root of 4.
#[test]
fn a_switchback_compares_within_pairs_of_blocks() {
    let design = Design::Switchback { block: 3, schedule: Schedule::Each };
    let experiment = experiment(design, 24, &["mean(loss) > -5%"]);
    let plan = Plan::of_experiment(&experiment, &service()).unwrap();
    let pairs = [(10.0, 11.0), (50.0, 52.0), (20.0, 23.0), (90.0, 92.0)];
    let mut cells = Vec::new();
    for (pair, (control, treatment)) in (0..).zip(pairs) {
        cells.push(cell(0, 2 * pair, 0, [Some(control), Some(1.0)]));
        cells.push(cell(0, 2 * pair + 1, 1, [Some(treatment), Some(0.9)]));
    }
    // A block without its other half counts for nothing.
    cells.push(cell(1, 0, 1, [Some(1e6), None]));
    let of =
        |elapsed| experiment.report(&plan, &service(), &members(&[None; 2]), 1, &cells, elapsed);
    let report = of(24);
    let effect = report.effect.unwrap();
    near(effect.value, 2.0);
    near(report.control.unwrap(), 42.5);
    let error = (2.0_f64 / 3.0 / 4.0).sqrt();
    assert!((outside(&effect, error, 3.0) - (1.0 - report.confidence)).abs() < 1e-6);
    near(report.guards[0].excess.unwrap().value, 0.95 - 0.9);
    assert_eq!((report.units.control, report.units.left), (4, 1));
    let series: Vec<u64> = report.series.iter().map(|point| point.interval).collect();
    assert_eq!(series, [1000, 1006, 1012, 1018]);
    // Before the end only pairs count that are over.
    near(of(17).effect.unwrap().value, 1.5);
    assert!(of(17).p.is_none() && of(17).verdict.contains("17 of 24 intervals"));
    let early = of(11);
    assert!(early.effect.is_none());
    assert!(early.verdict.contains("Too little is known"), "{}", early.verdict);
}

#[test]
fn a_cell_has_a_mean_of_each_metric_and_tallies_what_was_left_out() {
    let mut cell = Cell::default();
    for observation in [
        Observation::WashOut,
        Observation::Values(vec![Some(1.0), None]),
        Observation::OtherVersion,
        Observation::Values(vec![None, Some(5.0), Some(9.0)]),
        Observation::NoValue,
        Observation::Values(vec![Some(2.0)]),
    ] {
        cell.add(&observation);
    }
    assert_eq!(
        [0, 1, 2, 3].map(|metric| cell.mean(metric)),
        [Some(1.5), Some(5.0), Some(9.0), None]
    );
    let mut left_out = LeftOut::default();
    cell.tally(&mut left_out);
    let expected = LeftOut { wash_out: 1, other_version: 1, no_value: 1, unreported: 0 };
    assert_eq!(left_out, expected);
    let json = serde_json::to_string(&cell).unwrap();
    assert_eq!(serde_json::from_str::<Cell>(&json).unwrap(), cell, "{json}");
}

#[test]
fn an_interval_counts_only_where_what_was_to_be_run_ran() {
    let service = service();
    let plan = Plan::of_experiment(&experiment(HALF, 24, &["mean(loss) < 0.1"]), &service).unwrap();
    let part = Part { study: 1, block: 0, arm: 1, wash_out: false };
    let mut summary = Summary::new(2);
    assert_eq!(plan.observe(&part, &summary, &service, true), Observation::NoValue);
    summary.set("throughput", crate::Sketch::of([4.0, 8.0])).unwrap();
    let seen = Observation::Values(vec![Some(6.0), None]);
    assert_eq!(plan.observe(&part, &summary, &service, true), seen);
    assert_eq!(plan.observe(&part, &summary, &service, false), Observation::OtherVersion);
    let washed = Part { wash_out: true, ..part };
    assert_eq!(plan.observe(&washed, &summary, &service, true), Observation::WashOut);
    let mut lonely = Summary::new(1);
    lonely.set("throughput", crate::Sketch::of([4.0])).unwrap();
    assert_eq!(plan.observe(&part, &lonely, &service, true), Observation::NoValue);
}

/// A stage that was entered begins with the interval after the one that was open then.
#[test]
fn a_rollout_switches_from_the_interval_after_the_open_one_on() {
    let rollout = rollout();
    let plan = |state: &RolloutState| Plan::of_rollout(&rollout, state, &service()).unwrap();
    let arms = |state: &RolloutState, at: u64| {
        let of = |place| {
            let part = plan(state).assignment(1, "k", Some(place), Interval(at))?.part?;
            Some((part.block, part.arm, part.wash_out))
        };
        [of(1), of(2)]
    };
    let state = RolloutState::new(&rollout);
    assert_eq!(arms(&state, 999), [None, None]);
    assert_eq!(arms(&state, 1000), [Some((0, 0, false)); 2]);
    let first = state.after(&Step::Advance, Interval(1003));
    assert_eq!((first.stage, first.since, first.kept()), (1, Interval(1005), None));
    assert_eq!(arms(&first, 1004), [Some((0, 0, false)); 2], "it was open already");
    assert_eq!(arms(&first, 1005), [Some((1, 1, true)), Some((1, 0, true))]);
    assert_eq!(arms(&first, 1007), [Some((1, 1, false)), Some((1, 0, false))]);
    let last = first.after(&Step::Advance, Interval(1010));
    assert_eq!(arms(&last, 1011), [Some((1, 1, false)), Some((1, 0, false))]);
    assert_eq!(arms(&last, 1014), [Some((2, 1, false)); 2]);
    // What is over is kept by all, those too that came later and have no place.
    let safe = service().chosen(&service().safe());
    for (step, kept, values) in
        [(Step::Finish, 1, Some(safe)), (Step::Back { why: "mean(loss)".to_owned() }, 0, None)]
    {
        let over = last.after(&step, Interval(1020));
        assert_eq!(over.kept(), Some(kept));
        let assignment = plan(&over).assignment(1, "new", None, Interval(1021)).unwrap();
        assert_eq!(assignment, Assignment { values, part: None });
    }
    assert_eq!(plan(&last).assignment(1, "new", None, Interval(1021)), None);
}

#[test]
fn an_arm_sets_what_it_names_and_the_rest_is_safe() {
    let service = service();
    let knobs = |pairs: &[(&str, f64)]| {
        Arm::Knobs(pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
    };
    let values = |arm: Arm| match arm.values(&service).unwrap() {
        Some(Chosen::Knobs(values)) => values,
        other => panic!("{arm}: {other:?}"),
    };
    let safe = values(Arm::Safe);
    assert_eq!(Arm::Learn.values(&service), Ok(None));
    let set = values(knobs(&[("omega", 2.5)]));
    assert_eq!(set, [safe[0], 2.5]);
    near(set[0], 900.0);
    assert_eq!(knobs(&[("omega", 2.5), ("gamma", 3.0)]).to_string(), "gamma=3,omega=2.5");
    assert_eq!(Arm::Safe.to_string(), "safe");
    for value in [f64::NAN, 0.09, 10.1] {
        assert!(knobs(&[("omega", value)]).values(&service).is_err(), "{value}");
    }
}

#[test]
fn rollouts_that_cannot_be_are_refused_with_what_can() {
    let said = |change: &dyn Fn(&mut Rollout)| {
        let mut one = rollout();
        change(&mut one);
        let state = RolloutState::new(&one);
        Plan::of_rollout(&one, &state, &service()).unwrap_err().to_string()
    };
    for stages in [vec![], vec![0.0, 1.0], vec![0.5], vec![0.5, 0.5, 1.0], vec![0.5, 1.0, 1.5]] {
        assert!(said(&|r| r.stages.clone_from(&stages)).contains("ascend from above 0 to 1"));
    }
    assert!(said(&|r| r.intervals = 0).contains("length = 0"));
    assert!(said(&|r| r.wash_out = 4).contains("nothing would be left"));
    assert!(said(&|r| r.guards.clear()).contains("needs a guard metric"));
    assert!(said(&|r| r.guards = vec!["mean(loss) < 1".to_owned(); 9]).contains("at most 8"));
    assert!(said(&|r| r.metric.clear()).contains("success metric is needed"));
    assert!(said(&|r| r.metric = "mean(los)".to_owned()).contains("metric \"mean(los)\""));
}

proptest! {
    #[test]
    fn the_share_is_kept_to_within_one_in_any_order(
        baselines in prop::collection::vec(prop::option::of(-5.0..5.0f64), 1..120),
        share in 0.02..0.98f64,
        seed in any::<u64>(),
    ) {
        let all = members(&baselines);
        let places = assign(&all, share, seed);
        let treated = places.iter().sum::<i64>() as f64;
        prop_assert!((treated - share * all.len() as f64).abs() < 1.0 + 1e-9, "{}", treated);
        prop_assert!(places.iter().all(|place| (0..=1).contains(place)));
        let reversed: Vec<Member> = all.iter().rev().cloned().collect();
        let mut again = assign(&reversed, share, seed);
        again.reverse();
        prop_assert_eq!(again, places);
    }

    #[test]
    fn each_stage_switches_its_share_and_none_is_left(
        count in 1..150usize, cuts in prop::collection::btree_set(1..100u32, 0..6), seed in any::<u64>(),
    ) {
        let stages: Vec<f64> =
            cuts.into_iter().map(|cut| f64::from(cut) / 100.0).chain([1.0]).collect();
        let keys: Vec<String> = (0..count).map(|i| format!("tv/10.0.{i}.0/24")).collect();
        let all = places(&keys, &stages, seed);
        let mut before = 0;
        for (stage, share) in (1..).zip(&stages) {
            let switched = all.iter().filter(|&&place| place <= stage).count();
            let least = (share * count as f64 - 1e-6).max(0.0) as usize;
            prop_assert!(switched >= least && switched >= count.min(before + 1), "{}", switched);
            prop_assert!(switched <= (least + 1).max(before + 1), "{} of {}", switched, least);
            before = switched;
        }
        prop_assert_eq!(before, count);
    }

    #[test]
    fn a_switchback_gives_each_pair_both_arms_for_the_same_time(
        block in 1..9u32, pairs in 4..9u32, wash_out in 0..9u32, together in any::<bool>(),
        seed in any::<u64>(),
    ) {
        prop_assume!(wash_out < block);
        let schedule = if together { Schedule::Together } else { Schedule::Each };
        let length = 2 * block * pairs;
        let mut experiment = experiment(Design::Switchback { block, schedule }, length, &[]);
        (experiment.wash_out, experiment.seed) = (wash_out, seed);
        let plan = Plan::of_experiment(&experiment, &service()).unwrap();
        let part = |key: &str, at: u64| {
            plan.assignment(1, key, Some(0), Interval(at)).map(|a| a.part.unwrap())
        };
        prop_assert_eq!(part("a", 999), None);
        prop_assert_eq!(part("a", 1000 + u64::from(length)), None);
        let mut seen = vec![[0, 0]; pairs as usize];
        for at in 1000..1000 + u64::from(length) {
            let one = part("a", at).unwrap();
            if !one.wash_out {
                seen[one.block as usize / 2][usize::from(one.arm)] += 1;
            }
            prop_assert_eq!(one.wash_out, (at - 1000) % u64::from(block) < u64::from(wash_out));
            if together {
                prop_assert_eq!(part("b", at).unwrap(), one);
            }
        }
        prop_assert!(seen.iter().all(|arms| *arms == [block - wash_out; 2]), "{:?}", seen);
    }
}
