use super::*;

const SMALL: &str = r#"
name = "small"
aggregates = 3
duration = "24h"
connections = 1
fixed = 4
baselines = ["bbr"]
[app]
kind = "download"
size = ["100KB", "300KB"]
[links]
rate = ["2Mbit/s", "20Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [0.5, 4]
loss = [0.0001, 0.01]
load = [1.0, 0.7, 0.5]
[[service]]
name = "small"
interval = "1h"
reward = "mean(throughput)"
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
startup_rate_max = { min = 1, max = 100, scale = "log" }
[service.safe]
initial_rate = 1
startup_rate_max = 50
[[service]]
name = "small-latency"
reward = "mean(throughput) - 100 * mean(rtt)"
"#;

/// A fleet with one seed.
fn simulate(
    scenario: &FleetScenario,
    seed: u64,
    schemes: &[Scheme],
    effort: Effort,
    command: &str,
) -> Result<FleetResult, SimulateError> {
    super::simulate(scenario, seed..=seed, schemes, effort, None, command)
}

/// So many threads.
fn threads(jobs: usize) -> Effort {
    Effort { jobs: Some(jobs), quiet: true }
}

#[test]
fn everyone_takes_part_and_threads_change_nothing() {
    let scenario = FleetScenario::parse(SMALL).unwrap();
    assert_eq!(scenario.intervals(), 24);
    let one = simulate(&scenario, 5, &[], threads(1), "").unwrap();
    let two = simulate(&scenario, 5, &[], threads(2), "").unwrap();
    let json = |r: &FleetResult| serde_json::to_string(r).unwrap();
    assert_eq!(json(&one), json(&two));
    assert_ne!(json(&one), json(&simulate(&scenario, 6, &[], threads(2), "").unwrap()));
    let names: Vec<_> = one.services[0].schemes.iter().map(|c| c.name.as_str()).collect();
    for name in [
        "learnt",
        "paper's estimator",
        "start",
        "random search",
        "epsilon-greedy",
        "bbr",
        "best for all",
        "best per context",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let table = render(&one);
    assert!(table.contains("small-latency: mean(throughput) - 100 * mean(rtt)"), "{table}");
}

#[test]
fn the_best_in_hindsight_is_better_than_where_learning_starts() {
    let scenario = FleetScenario::parse(SMALL).unwrap();
    let result = simulate(&scenario, 5, &[], threads(2), "").unwrap();
    let of = |name: &str| result.services[0].schemes.iter().find(|c| c.name == name).unwrap();
    assert!(of("best per context").reward > 1.05 * of("start").reward);
}

const OUTAGE: &str = r#"
name = "outage"
aggregates = 24
duration = "26h"
connections = 2
fixed = 1
[app]
kind = "download"
size = ["200KB", "400KB"]
[links]
rate = ["4Mbit/s", "20Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [1, 4]
loss = [0.0005, 0.005]
spread = 0.1
[outage]
from = 42
until = 58
capacity = 0.2
loss = 0.05
[[service]]
name = "games"
reward = "mean(throughput) - 20 * mean(loss)"
guards = ["mean(loss) < 0.05"]
harm_max = 0.1
contexts = { bands = [0], weekend = false }
[service.knobs]
initial_rate = { min = 0.3, max = 30, scale = "log" }
startup_exit_loss = { min = 0.005, max = 0.5, scale = "log" }
startup_exit_latency = { min = 0.05, max = 5, scale = "log" }
[service.safe]
initial_rate = 1
"#;

/// The bounds that `docs/results/fleet.md` states, by the production code. By its guard alone every
/// aggregate falls back soon; with the bound of harm some are safe before they break it.
#[test]
fn an_outage_costs_little_vs_the_safe_configuration() {
    let guarded = OUTAGE.replace("harm_max = 0.1", "harm_max = 1");
    for (seed, text, all) in [(11, OUTAGE, false), (11, &guarded, true), (12, OUTAGE, false)] {
        let scenario = FleetScenario::parse(text).unwrap();
        let result = simulate(&scenario, seed, &[], threads(2), "").unwrap();
        let outage = result.services[0].outage.as_ref().unwrap();
        assert!(outage.fell_back == 24 || !all, "seed {seed}: {outage:?}");
        assert!(outage.median_intervals <= Some(4), "seed {seed}: {outage:?}");
        assert!(outage.most_intervals <= Some(6) || !all, "seed {seed}: {outage:?}");
        assert!(outage.behind_median < BEHIND_MEDIAN, "seed {seed}: {outage:?}");
        assert!(outage.behind_most < BEHIND_MOST, "seed {seed}: {outage:?}");
        assert!(outage.reward_after > outage.safe_reward_after, "seed {seed}: {outage:?}");
    }
}

/// Mean rewards of the safe configuration that half of the aggregates do not fall behind by, and
/// that none does. One whose mean reward is small falls behind by many.
const BEHIND_MEDIAN: f64 = 6.0;
const BEHIND_MOST: f64 = 20.0;

/// Points at random, and no program: what a scheme from outside is asked and told.
struct Stubborn(Vec<f64>);

impl Chooser for Stubborn {
    fn choose(&mut self, context: &str) -> Result<Vec<f64>, String> {
        if context.is_empty() { Err("no context".into()) } else { Ok(self.0.clone()) }
    }

    fn learn(&mut self, _: &str, point: &[f64], _: f64) -> Result<(), String> {
        if point == self.0 { Ok(()) } else { Err("that was not tried".into()) }
    }
}

#[test]
fn schemes_from_outside_take_part() {
    let mut scenario = FleetScenario::parse(SMALL).unwrap();
    scenario.fixed = 1;
    let scheme = |name: &str, point: Option<Vec<f64>>| Scheme {
        name: name.into(),
        begin: Box::new(move |service, _, _| {
            let point = point.clone().unwrap_or_else(|| service.start());
            Ok(Box::new(Stubborn(point)))
        }),
    };
    let same = [scheme("stubborn", None)];
    let result = simulate(&scenario, 5, &same, threads(2), "").unwrap();
    let of = |name: &str| result.services[0].schemes.iter().find(|c| c.name == name).unwrap();
    assert_eq!(of("stubborn").windows, of("start").windows, "the same points on the same links");
    let short = [scheme("short", Some(vec![0.5]))];
    let message = simulate(&scenario, 5, &short, threads(2), "").unwrap_err().to_string();
    assert_eq!(message, "the scheme short: 2 numbers from 0 to 1 were to come, not [0.5]");
}

/// The ceiling is one, and what is learnt is compared with the algorithm that was named.
#[test]
fn nobody_is_faster_than_who_sees_the_link() {
    let text = SMALL.replacen("[\"bbr\"]", "[\"bbr\", \"omniscient\"]\ncompare_with = \"bbr\"", 1);
    let mut scenario = FleetScenario::parse(&text).unwrap();
    scenario.fixed = 1;
    let result = simulate(&scenario, 5, &[], threads(2), "").unwrap();
    let service = &result.services[0];
    let of = |name: &str, statistic: &str| {
        let scheme = service.schemes.iter().find(|c| c.name == name).unwrap();
        scheme.statistics.iter().find(|(n, _)| n == statistic).unwrap().1
    };
    let took = |name| of(name, "p50(request_time)");
    for name in ["learnt", "start", "bbr"] {
        assert!(took("omniscient") < took(name), "{name}: {}", took(name));
    }
    let versus = service.versus.as_ref().unwrap();
    let (_, change) =
        versus.statistics.iter().find(|(name, _)| name == "p50(request_time)").unwrap();
    assert_eq!(change.value, took("learnt") / took("bbr") - 1.0);
    assert!(change.low <= change.value && change.value <= change.high, "{change:?}");
    let table = render(&result);
    assert!(table.contains(" learnt vs. bbr, with 95% intervals:\n  Mbit/s "), "{table}");
}

/// [`SMALL`] with CUBIC installed, BBR next to it, and 1% of random loss.
fn lossy() -> String {
    SMALL
        .replace(
            "interval = \"1h\"",
            "interval = \"1h\"\nincumbent = \"cubic\"\nothers = [\"bbr\"]",
        )
        .replace("[0.0001, 0.01]", "[0.01, 0.02]")
        .replace("[\"100KB\", \"300KB\"]", "[\"500KB\", \"900KB\"]")
}

/// With 1% of random loss BBR gets several times as much as CUBIC.
#[test]
fn a_fleet_comes_from_the_incumbent_to_the_algorithm_that_is_best() {
    let scenario = FleetScenario::parse(&lossy()).unwrap();
    let result = simulate(&scenario, 5, &[], threads(2), "").unwrap();
    let service = &result.services[0];
    let of = |name: &str| service.schemes.iter().find(|c| c.name == name).unwrap().late_reward;
    assert!(of("learnt") > 1.2 * of("safe"), "{}", render(&result));
    assert!(of("best per context") >= of("safe"), "the others take part in hindsight");
    let cubic = service.ran.iter().find(|(name, _)| name == "cubic").map_or(0.0, |ran| ran.1);
    assert!(cubic < 0.5, "{:?}", service.ran);
    assert!(render(&result).contains(" in force in the last third: "), "{}", render(&result));
}

/// What one fleet found is written as a service has it, and spares another one the looking around.
#[test]
fn a_fleet_begins_with_what_another_one_found() {
    let two = FleetScenario::parse(&lossy()).unwrap();
    let text = lossy();
    let scenario = FleetScenario::parse(&text[..text.rfind("[[service]]").unwrap()]).unwrap();
    let teacher = simulate(&scenario, 5, &[], threads(2), "a command").unwrap();
    let prior = teacher.prior();
    assert!(prior.starts_with("# What a fleet found: a command\n\n[[prior]]\n"), "{prior}");
    let rows = trimtab_fleet::PriorRow::parse(&prior).unwrap();
    let surely: Vec<f64> = rows.iter().map(|r| r.advantage - r.trials.powf(-0.5)).collect();
    assert!(surely.is_sorted_by(|a, b| a >= b), "the surest comes first: {prior}");
    let bbr = rows.iter().find(|row| row.run == "bbr").expect("it was tried");
    assert!(
        bbr.advantage > 0.0 && rows.iter().any(|row| row.run.starts_with("vivace:")),
        "{prior}"
    );
    let informed = scenario.clone().beginning_with(&prior).unwrap();
    let early = |scenario: &FleetScenario| {
        let of = |seed| {
            let result = simulate(scenario, seed, &[], threads(2), "").unwrap();
            let learnt = result.services[0].schemes.iter().find(|c| c.name == "learnt").unwrap();
            learnt.windows[1..6].iter().sum::<f64>()
        };
        (6..10).map(of).sum::<f64>()
    };
    let (with, without) = (early(&informed), early(&scenario));
    assert!(with > 1.05 * without, "{with} {without}");
    let said = two.beginning_with(&prior).unwrap_err().to_string();
    assert!(said.starts_with("prior: of one service, and the scenario has several"), "{said}");
    let said = scenario.beginning_with(&prior.replace("\"bbr\"", "\"bbr3\"")).unwrap_err();
    assert!(said.to_string().contains("prior \"bbr3\": the service does not run it"), "{said}");
}

/// Those of one bottleneck are found by what a day shows, and nobody else.
#[test]
fn aggregates_of_one_bottleneck_become_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/fleet/tv-shared.toml");
    let mut scenario = FleetScenario::load(std::path::Path::new(path)).unwrap();
    scenario.baselines.clear();
    scenario.compare_with = None;
    scenario.aggregates = 10;
    scenario.duration = "25h".parse().unwrap();
    let after = |text: &str| scenario.clone().joining(text.parse().unwrap());
    for wrong in ["15h", "25h"] {
        let said = after(wrong).unwrap_err().to_string();
        assert!(said.contains("48 intervals at the earliest"), "{said}");
    }
    let result = simulate(&after("24h").unwrap(), 7, &[], threads(2), "").unwrap();
    let joined = result.services[0].joined.unwrap();
    assert_eq!((joined.pairs, joined.wrong), (5, 0));
    assert!(joined.found >= 4, "{joined:?}");
    assert!(render(&result).contains(" of 5 pairs that share a bottleneck; 0 more"));
    let apart = simulate(&scenario, 7, &[], threads(2), "").unwrap();
    assert_eq!(apart.services[0].joined, None);
    // Of all of the run but its last hour nothing differs.
    let first = |r: &FleetResult| r.services[0].schemes[0].windows[..20].to_vec();
    assert_eq!(first(&result), first(&apart));
}

#[test]
fn mistakes_say_what_is_right() {
    for (from, to, words) in [
        ("aggregates = 3", "aggregates = 0", "aggregates: a whole number from 1"),
        ("24h", "24", "duration: a duration needs a unit"),
        ("[\"bbr\"]", "[\"bbrr\"]", "baselines: bbrr: no such algorithm"),
        (
            "baselines =",
            "compare_with = \"cubic\"\nbaselines =",
            "compare_with: one of the baselines, which cubic is not",
        ),
        ("kind = \"download\"", "kind = \"upload\"", "unknown application: use download"),
        ("[0.5, 4]", "[4, 0.5]", "links.buffer: a range"),
        ("\"mean(throughput)\"", "\"throughput\"", "service 1: reward"),
        ("- 100 * mean(rtt)", "- 100 * mean(rt)", "service 2: reward"),
        ("load =", "lode =", "unknown field `lode`"),
        ("[0.0001, 0.01]", "[0.0001, 1.0]", "links.loss: a range"),
        ("0.7, 0.5]", "0.7, 0.0]", "links.load: a range"),
        ("2Mbit/s", "2", "links.rate: "),
        ("80ms", "8ms", "links.rtt: a range"),
        ("[[service]]", "[links.shared]\nconnections = 2\n[[service]]", "missing field `within`"),
        ("[[service]]", "[links.shared]\nwithin = \"1h\"\n[[service]]", "within: at most 600s"),
        (
            "[[service]]",
            "[links.shared]\nwithin = \"0s\"\ncross = [\"cubic\"]\n[[service]]",
            "links.shared.within: more than 0s",
        ),
        (
            "[[service]]",
            "[links.shared]\nwithin = \"1s\"\ncross = [\"cubicc\"]\n[[service]]",
            "links.shared.cross: cubicc: no such algorithm",
        ),
        (
            "[[service]]",
            "[links.shared]\nwithin = \"1s\"\naggregates = 0\n[[service]]",
            "links.shared.aggregates: a whole number from 1 to 100",
        ),
        ("kind = \"download\"", "kind = \"download\"\nqoe = \"T\"", "app: no `qoe`"),
        ("fixed = 4", "fixed = 4\nbaselines_every = 2", "baselines_every: 1 with a search"),
        ("fixed = 4", "baselines_every = 0", "baselines_every: a whole number from 1"),
        ("fixed = 4", "fixed = 10001", "fixed: a whole number from 1 to 10000"),
        (
            "[[service]]\nname = \"small-l",
            "[[service]]\ninterval = \"2h\"\nname = \"small-l",
            "service: all have the same interval and knobs",
        ),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let message = FleetScenario::parse(&SMALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(message.contains(words), "{to}: {message}");
    }
}

#[test]
fn every_fleet_that_ships_is_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/fleet");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        FleetScenario::load(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        seen += 1;
    }
    assert!(seen >= 5, "{seen} fleets");
}

/// Each case of the paper has a form in which links are shared, and what is not said is as it was.
#[test]
fn a_scenario_that_extends_another_one_differs_in_what_it_says() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/fleet");
    let load = |name: &str| FleetScenario::load(&folder.join(name)).expect("it is valid");
    for case in ["games", "short-video", "tv", "vod", "car", "policing"] {
        let (alone, shared) = (load(&format!("{case}.toml")), load(&format!("{case}-shared.toml")));
        assert_eq!((shared.app, shared.links.rtt), (alone.app, alone.links.rtt), "{case}");
        assert_eq!(shared.services.len(), alone.services.len(), "{case}");
        let links = &shared.links.shared;
        assert!(links.aggregates > 1 && !links.cross.is_empty() && shared.baselines_every > 1);
        // The incumbent, by which harm is measured, takes part in all intervals.
        let incumbent = shared.services[0].incumbent().map(str::to_owned);
        assert_eq!(shared.compare_with, incumbent, "{case}");
    }
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("fleet.toml");
    let said = |text: &str| {
        std::fs::write(&file, text).expect("a file");
        FleetScenario::load(&file).unwrap_err().to_string()
    };
    assert!(said("extends = 5").starts_with("extends: the path of another scenario"));
    assert!(said("extends = \"none.toml\"").contains("none.toml"));
    assert!(said("extends = \"fleet.toml\"").contains("unknown field `extends`"));
}

#[test]
fn an_outage_lies_within_the_run() {
    let with = |from: u64, until: u64| {
        let outage = format!("from = {from}\nuntil = {until}\n");
        let text = OUTAGE.replace("from = 42\nuntil = 58\n", &outage);
        FleetScenario::parse(&text).map_err(|e| e.to_string())
    };
    assert_eq!(with(0, 78).unwrap().intervals(), 78);
    for (from, until) in [(58, 42), (42, 42), (70, 79), (100, 120)] {
        let e = with(from, until).unwrap_err();
        assert!(e.starts_with("outage: `from` comes before `until`"), "{e}");
        assert!(e.contains("within the 78 intervals of the run"), "{e}");
    }
}
