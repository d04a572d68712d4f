//! Whether experiments tell the truth: many simulated ones, of fleets whose aggregates differ, with
//! noise that lasts, days and nights, and what happens to all at a time.

use super::*;

const SERVICE: &str = r#"
    name = "tv"
    interval = "20min"
    reward = "mean(throughput)"
    [knobs]
    gamma = { min = 1, max = 5000, scale = "log" }
    [safe]
    gamma = 900
"#;

/// Normal numbers, the same in each run.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((mix(self.0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A fleet: what each aggregate has in each interval without any treatment.
struct Fleet {
    members: Vec<Member>,
    values: Vec<Vec<f64>>,
    /// By how much the treatment moves each aggregate.
    effects: Vec<f64>,
}

/// Intervals of the past by which baselines are known.
const PAST: usize = 72;

impl Fleet {
    /// `aggregates` that differ by a factor of e, with noise that lasts for hours, days, and what hits all.
    fn new(seed: u64, aggregates: usize, intervals: usize, effect: f64) -> Self {
        let mut chance = Chance(seed);
        let mut shock = 0.0;
        let shocks: Vec<f64> = (0..PAST + intervals)
            .map(|_| {
                shock = 0.9 * shock + 0.2 * chance.normal();
                shock
            })
            .collect();
        let (mut members, mut values, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        for aggregate in 0..aggregates {
            let level = 10.0 + 3.0 * chance.normal();
            let (day, phase) = (1.0 + chance.normal().abs(), chance.uniform());
            let mut noise = 0.0;
            let all: Vec<f64> = (0..PAST + intervals)
                .map(|i| {
                    noise = 0.8 * noise + 0.6 * chance.normal();
                    let hour = std::f64::consts::TAU * (i as f64 / 72.0 + 0.2 * phase);
                    level + day * hour.sin() + shocks[i] + noise
                })
                .collect();
            let (past, rest) = all.split_at(PAST);
            members.push(Member {
                key: format!("tv/10.{}.{}.0/24", aggregate / 256, aggregate % 256),
                baseline: Some(past.iter().sum::<f64>() / PAST as f64),
            });
            values.push(rest.to_vec());
            effects.push(effect * (1.0 + 0.5 * chance.normal()));
        }
        Self { members, values, effects }
    }

    /// Runs an experiment on it, and gives the cells.
    fn run(&self, plan: &Plan, places: &[i64], length: u32) -> Vec<CellOf> {
        let mut cells: BTreeMap<(usize, i64), CellOf> = BTreeMap::new();
        for (member, values) in self.values.iter().enumerate() {
            for at in 0..length {
                let interval = Interval(1000 + u64::from(at));
                let place = Some(places[member]);
                let part = plan
                    .assignment(1, &self.members[member].key, place, interval)
                    .and_then(|a| a.part)
                    .expect("it takes part");
                let treated = part.arm == 1;
                let value = values[at as usize] + if treated { self.effects[member] } else { 0.0 };
                let observation = if part.wash_out {
                    Observation::WashOut
                } else {
                    Observation::Values(vec![Some(value), Some(value)])
                };
                let empty =
                    || CellOf { member, block: part.block, arm: part.arm, cell: Cell::default() };
                cells.entry((member, part.block)).or_insert_with(empty).cell.add(&observation);
            }
        }
        cells.into_values().collect()
    }
}

fn experiment(design: Design, length: u32, seed: u64) -> Experiment {
    Experiment {
        control: Arm::Learn,
        treatment: Arm::Safe,
        design,
        start: Interval(1000),
        length,
        wash_out: 1,
        metric: None,
        guards: vec!["mean(throughput) > -5%".to_owned()],
        seed,
    }
}

fn report_at(
    seed: u64,
    design: Design,
    effect: f64,
    at: &[u32],
    aggregates: usize,
) -> (Fleet, Vec<Report>) {
    let service = Service::parse(SERVICE).unwrap();
    let length = 144;
    let fleet = Fleet::new(seed ^ 0xf1ee, aggregates, length as usize, effect);
    let experiment = experiment(design, length, seed);
    let plan = Plan::of_experiment(&experiment, &service).unwrap();
    let places = match design {
        Design::Prefixes { share } => assign(&fleet.members, share, seed),
        Design::Switchback { .. } => vec![0; aggregates],
    };
    let reports = at
        .iter()
        .map(|&elapsed| {
            let cells = fleet.run(&plan, &places, elapsed);
            experiment.report(&plan, &service, &fleet.members, 0, &cells, elapsed)
        })
        .collect();
    (fleet, reports)
}

fn report(seed: u64, design: Design, effect: f64) -> Report {
    report_at(seed, design, effect, &[144], 40).1.remove(0)
}

const HALF: Design = Design::Prefixes { share: 0.5 };
const THIRD: Design = Design::Prefixes { share: 0.3 };
const EACH: Design = Design::Switchback { block: 6, schedule: Schedule::Each };
const TOGETHER: Design = Design::Switchback { block: 6, schedule: Schedule::Together };

/// Of 400 experiments with a coverage of 95.5% (what looks before the end leave), 400 · 0.955 ± 3.3
/// standard deviations.
const EXPERIMENTS: u64 = 400;
const COVERED: std::ops::RangeInclusive<usize> = 368..=396;

#[test]
fn intervals_of_experiments_without_an_effect_hold_zero_in_95_of_100() {
    for design in [HALF, THIRD, EACH, TOGETHER] {
        let (mut covered, mut small) = (0, 0);
        for seed in 0..EXPERIMENTS {
            let report = report(seed, design, 0.0);
            let effect = report.effect.unwrap();
            covered += usize::from(effect.low <= 0.0 && 0.0 <= effect.high);
            small += usize::from(report.p.unwrap() <= 0.05);
        }
        println!("{design:?}: {covered} of {EXPERIMENTS} hold zero, {small} have p up to 0.05");
        assert!(COVERED.contains(&covered), "{design:?}: {covered} of {EXPERIMENTS}");
        // 5% and 3.3 standard deviations.
        assert!(small <= 34, "{design:?}: p is at most 0.05 in {small} of {EXPERIMENTS}");
    }
}

/// Experiments with an effect.
const FOUND: u64 = 100;

#[test]
fn intervals_hold_an_effect_that_is_there_and_find_it() {
    for (design, effect) in [(HALF, 1.0), (THIRD, 1.0), (EACH, 0.5), (TOGETHER, 1.0)] {
        let (mut covered, mut found, mut detectable) = (0, 0, 0.0);
        for seed in 0..FOUND {
            let (fleet, mut reports) = report_at(seed, design, effect, &[144], 40);
            let report = reports.remove(0);
            let shown = report.effect.unwrap();
            // By prefixes only some have the treatment: the truth is that of all that might have had it.
            let truth = moments_of(&fleet.effects);
            covered += usize::from(shown.low <= truth && truth <= shown.high);
            found += usize::from(shown.low > 0.0);
            detectable += report.detectable.unwrap() / FOUND as f64;
        }
        println!(
            "{design:?}: {covered} hold the effect, {found} find it; {detectable:.3} is detectable"
        );
        // 95.5% and 3.3 standard deviations.
        assert!(covered >= 89, "{design:?}: {covered} of {FOUND}");
        // What is said to be found in 80 of 100 is: by how much the effect is larger than that, more often.
        let expected = if effect >= detectable { 0.78 } else { 0.0 };
        assert!(found as f64 >= expected * FOUND as f64, "{design:?}: found {found}");
        assert!(found > FOUND as usize / 20, "{design:?}: found {found}");
    }
}

fn moments_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn looking_at_every_look_finds_nothing_that_is_not_there_more_often_than_5_of_100() {
    for design in [HALF, EACH] {
        let looks: Vec<u32> = (1..=12).map(|look| look * 12).collect();
        let mut wrong = 0;
        for seed in 0..120 {
            let (_, reports) = report_at(seed + 7000, design, 0.0, &looks, 24);
            let sure = |r: &Report| r.effect.is_some_and(|e| e.low > 0.0 || e.high < 0.0);
            wrong += usize::from(reports.iter().any(sure));
        }
        println!("{design:?}: {wrong} of 120 show an effect at some look");
        // 5% of 120 and 3.3 standard deviations.
        assert!(wrong <= 14, "{design:?}: {wrong} of 120");
    }
}

#[test]
fn what_was_known_before_makes_intervals_narrower() {
    let width = |known: bool| -> f64 {
        let service = Service::parse(SERVICE).unwrap();
        (0..20)
            .map(|seed| {
                let mut fleet = Fleet::new(seed, 40, 144, 0.0);
                let experiment = experiment(HALF, 144, seed);
                let plan = Plan::of_experiment(&experiment, &service).unwrap();
                let places = assign(&fleet.members, 0.5, seed);
                if !known {
                    fleet.members.iter_mut().for_each(|member| member.baseline = None);
                }
                let cells = fleet.run(&plan, &places, 144);
                let report = experiment.report(&plan, &service, &fleet.members, 0, &cells, 144);
                assert_eq!(report.units.adjusted, known);
                let effect = report.effect.unwrap();
                effect.high - effect.low
            })
            .sum()
    };
    let (with, without) = (width(true), width(false));
    assert!(with < 0.5 * without, "{with} of {without}");
}

#[test]
fn the_same_experiment_has_the_same_report_and_is_the_same_whatever_the_order() {
    assert_eq!(report(5, HALF, 0.3), report(5, HALF, 0.3));
    let fleet = Fleet::new(1, 50, 1, 0.0);
    let places = assign(&fleet.members, 0.3, 9);
    assert_eq!(places.iter().sum::<i64>(), 15);
    let mut reversed = fleet.members.clone();
    reversed.reverse();
    let mut back = assign(&reversed, 0.3, 9);
    back.reverse();
    assert_eq!(back, places);
    // Of two that are alike one has the treatment.
    let halves = assign(&fleet.members, 0.5, 9);
    let mut order: Vec<usize> = (0..50).collect();
    order.sort_by(|&a, &b| {
        fleet.members[a].baseline.partial_cmp(&fleet.members[b].baseline).unwrap()
    });
    assert!(order.chunks(2).all(|pair| halves[pair[0]] + halves[pair[1]] == 1));
}

#[test]
fn a_switchback_gives_each_pair_of_blocks_both_arms_and_leaves_out_what_comes_first() {
    let experiment = experiment(EACH, 48, 3);
    let mut first = 0;
    for key in 0..200 {
        let key = format!("tv/10.0.{key}.0/24");
        let arms: Vec<u8> = (0..48)
            .map(|at| {
                let (block, arm, wash_out) =
                    experiment.part(key.as_bytes(), 0, Interval(1000 + at)).expect("in it");
                assert_eq!((block, wash_out), (at as i64 / 6, at % 6 == 0));
                arm
            })
            .collect();
        assert!(arms.chunks(12).all(|pair| {
            pair[..6].iter().all(|arm| *arm == pair[0])
                && pair[6..].iter().all(|arm| *arm != pair[0])
        }));
        first += usize::from(arms[0]);
    }
    assert!((75..=125).contains(&first), "{first} of 200 begin with the treatment");
    assert_eq!(experiment.part(b"x", 0, Interval(999)), None);
    assert_eq!(experiment.part(b"x", 0, Interval(1048)), None);
}

/// Lets a rollout go on by itself for at most so many intervals; `worse` is what the treatment adds
/// to the guarded metric. Says where it ends, after how many intervals, and the largest stage that
/// it had.
fn roll_out(seed: u64, aggregates: usize, worse: f64) -> (Phase, u32, u32) {
    roll_out_valued(seed, aggregates, worse, |_, value| Some(value))
}

/// The same where the success metric of a member is `worth` of the guarded one.
fn roll_out_valued(
    seed: u64,
    aggregates: usize,
    worse: f64,
    worth: fn(usize, f64) -> Option<f64>,
) -> (Phase, u32, u32) {
    let (state, after, most) = roll_out_to(seed, aggregates, worse, worth);
    (state.phase, after, most)
}

/// The same with the state in which it ends.
fn roll_out_to(
    seed: u64,
    aggregates: usize,
    worse: f64,
    worth: fn(usize, f64) -> Option<f64>,
) -> (RolloutState, u32, u32) {
    let service = Service::parse(SERVICE).unwrap();
    let rollout = Rollout {
        from: Arm::Learn,
        to: Arm::Safe,
        stages: vec![0.05, 0.25, 1.0],
        start: Interval(1000),
        intervals: 6,
        wash_out: 1,
        metric: "reward".to_owned(),
        // Three aggregates of the first stage vary by about 7.5% of their metric: less than that they could not show.
        guards: vec!["mean(throughput) < +25%".to_owned()],
        seed,
    };
    let fleet = Fleet::new(seed ^ 0xabc, aggregates, 120, 0.0);
    let keys: Vec<String> = fleet.members.iter().map(|m| m.key.clone()).collect();
    let places = places(&keys, &rollout.stages, seed);
    let mut state = RolloutState::new(&rollout);
    let mut cells: BTreeMap<(usize, i64), CellOf> = BTreeMap::new();
    let mut most = 0;
    for at in 0..120u64 {
        let interval = Interval(1000 + at);
        let plan = Plan::of_rollout(&rollout, &state, &service).unwrap();
        for (member, values) in fleet.values.iter().enumerate() {
            let (block, arm, wash_out) =
                rollout.part(&state, places[member], interval).expect("it is in it");
            let value = values[at as usize] + if arm == 1 { worse } else { 0.0 };
            let observation = if wash_out {
                Observation::WashOut
            } else {
                Observation::Values(vec![worth(member, value), Some(value)])
            };
            let empty = || CellOf { member, block, arm, cell: Cell::default() };
            cells.entry((member, block)).or_insert_with(empty).cell.add(&observation);
        }
        let all: Vec<CellOf> = cells.values().cloned().collect();
        let judgement = rollout.judge(&plan, &state, &places, &all, interval);
        most = most.max(state.stage);
        if let Some(step) = judgement.step {
            state = state.after(&step, interval);
        }
        if state.kept().is_some() {
            return (state, at as u32 + 1, most);
        }
    }
    (state, 120, most)
}

#[test]
fn a_rollout_of_something_harmless_goes_on_and_of_something_bad_goes_back_soon() {
    let (mut done, mut at_limit, mut back, mut soon) = (0, 0, 0, Vec::new());
    for seed in 0..40 {
        done += usize::from(roll_out(seed, 60, 0.0).0 == Phase::Done);
        // The metric is about 10, the limit a quarter of it.
        at_limit += usize::from(roll_out(seed, 60, 2.5).0 == Phase::Done);
        let (phase, after, most) = roll_out(seed, 60, 10.0);
        back += usize::from(phase == Phase::RolledBack);
        assert!(most < 3, "never for all");
        soon.push(after);
    }
    soon.sort_unstable();
    println!("{done} of 40 harmless ones are done, {back} of 40 bad ones are back after {soon:?}");
    assert!(done >= 36, "{done} of 40 are done");
    println!("{at_limit} of 40 that are as bad as may be are done");
    assert!(at_limit <= 2, "{at_limit} of 40 at the limit are done");
    assert_eq!(back, 40);
    // Six intervals before, one that was open, one of wash-out; then it shows.
    assert!(soon[20] <= 10 && soon[39] <= 26, "{soon:?}");
}

#[test]
fn a_rollout_that_makes_the_success_metric_worse_goes_back_although_its_guard_holds() {
    let back = |worse: f64| {
        let cost = |_, value: f64| Some(-value);
        let ends = (0..20).map(|seed| roll_out_valued(seed, 60, worse, cost).0);
        ends.filter(|&phase| phase == Phase::RolledBack).count()
    };
    // The guard permits 25% more of a metric of about 10; what it costs is shown within the first stages.
    let (harmless, costs) = (back(0.0), back(1.5));
    println!("back of 20: {harmless} harmless ones, {costs} that cost");
    assert!(harmless <= 3 && costs >= 18, "{harmless} {costs}");
}

/// Guards alone let nothing on: a rollout is done for its success metric.
#[test]
fn a_rollout_without_data_of_its_success_metric_goes_back() {
    for seed in 0..5 {
        let (state, after, most) = roll_out_to(seed, 60, 0.0, |_, _| None);
        assert_eq!((state.phase, most), (Phase::RolledBack, 1), "{state:?}");
        assert_eq!(
            state.why,
            "after 18 intervals of stage 1 there is no data of the success metric reward"
        );
        // Six before, one that was open, and three times the length of the stage.
        assert_eq!(after, 25);
    }
    let some = |member: usize, value| (!member.is_multiple_of(4)).then_some(value);
    let ends = (0..20).map(|seed| roll_out_valued(seed, 60, 0.0, some).0);
    assert!(ends.filter(|&phase| phase == Phase::Done).count() >= 17, "a part of them is enough");
}

#[test]
fn stages_grow_by_the_order_of_a_hash() {
    let keys: Vec<String> = (0..200).map(|i| format!("tv/10.0.{i}.0/24")).collect();
    let count = |places: &[i64], stage| places.iter().filter(|&&place| place <= stage).count();
    let all = places(&keys, &[0.01, 0.05, 0.25, 1.0], 4);
    assert_eq!([1, 2, 3, 4].map(|stage| count(&all, stage)), [2, 10, 50, 200]);
    let few = places(&keys[..3], &[0.01, 0.05, 0.25, 1.0], 4);
    assert_eq!([1, 2, 3, 4].map(|stage| count(&few, stage)), [1, 2, 3, 3]);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let service = Service::parse(SERVICE).unwrap();
    let good = experiment(EACH, 48, 0);
    let said = |change: &dyn Fn(&mut Experiment)| {
        let mut one = good.clone();
        change(&mut one);
        Plan::of_experiment(&one, &service).unwrap_err().to_string()
    };
    assert!(said(&|e| e.length = 50).contains("48 or 60, say"), "{}", said(&|e| e.length = 50));
    assert!(said(&|e| e.wash_out = 6).contains("make it shorter"));
    assert!(said(&|e| e.design = Design::Prefixes { share: 1.0 }).contains("below 1"));
    assert!(said(&|e| e.metric = Some("mean(lss)".to_owned())).contains("column 6"));
    assert!(said(&|e| e.metric = Some(String::new())).contains("metric = \"reward\""));
    assert!(said(&|e| e.guards = vec!["mean(loss)".to_owned()]).contains("< +20%"));
    assert!(said(&|e| e.guards = vec!["mean(loss) < 20%".to_owned()]).contains("< +20%"));
    let knobs = |name: &str, value| Arm::Knobs([(name.to_owned(), value)].into());
    assert!(said(&|e| e.control = knobs("gama", 3.0)).contains("there are gamma"));
    assert!(said(&|e| e.control = knobs("gamma", 0.5)).contains("1 to 5000"));
    // By flow is no design.
    let flow = serde_json::from_str::<Design>("{\"kind\":\"flows\",\"share\":0.5}").unwrap_err();
    assert!(flow.to_string().contains("expected `prefixes` or `switchback`"), "{flow}");
}
