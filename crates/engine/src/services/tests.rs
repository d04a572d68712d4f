use trimtab_fleet::Sketch;
use trimtab_fleet_client::Hold;

use super::*;

const LENGTH_MS: i64 = 1_200_000;
/// The first interval.
const BEGIN_MS: i64 = 1_000 * LENGTH_MS;

fn services() -> Services {
    services_with("")
}

/// With more lines in the description of the service.
fn services_with(more: &str) -> Services {
    let text = format!(
        r#"
        name = "tv"
        reward = "mean(throughput)"
        guards = ["mean(loss) < 0.1"]
        {more}
        [knobs]
        gamma = {{ min = 10, max = 5000, scale = "log" }}
        "#
    );
    let service = Arc::new(Service::parse(&text).unwrap());
    Services {
        infos: vec![info(&service, "mean(throughput)".to_owned())],
        all: [("tv".to_owned(), service)].into(),
        plans: Plans::default(),
        found: Mutex::default(),
    }
}

fn name() -> Name {
    Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() }
}

/// An aggregate as the store keeps it.
#[derive(Clone, Default)]
struct Kept {
    version: i64,
    state: Option<String>,
}

/// Decides on interval `n` while the next one goes on, with what was reported of its versions: throughput and loss.
fn decide(
    services: &Services,
    kept: &mut Kept,
    n: i64,
    reported: &[(i64, f64, f64)],
) -> (Closed, Value) {
    let report = |(edge, &(version, throughput, loss)): (i64, &(i64, f64, f64))| {
        let mut summary = Summary::new(10);
        summary.set("throughput", Sketch::of([throughput])).unwrap();
        summary.set("loss", Sketch::of([loss])).unwrap();
        (edge, version, summary, None)
    };
    decide_on(services, kept, n, (0..).zip(reported).map(report).collect())
}

/// What an edge, by its token, reported under a version; by the arm of the next interval, too.
type OfEdge = (i64, i64, Summary, Option<[Summary; 2]>);

/// The same with what edges reported.
fn decide_on(
    services: &Services,
    kept: &mut Kept,
    n: i64,
    reported: Vec<OfEdge>,
) -> (Closed, Value) {
    let begins_ms = BEGIN_MS + n * LENGTH_MS;
    let edges: Vec<Option<i64>> = reported.iter().map(|of| Some(of.0)).collect();
    let report = |(_, version, summary, next): OfEdge| {
        let interval = Interval((begins_ms / LENGTH_MS) as u64);
        let (key, version) = (key(&name()).unwrap(), version as u64);
        Report { key, interval, version, summary, next }.encode().unwrap()
    };
    let open = Open {
        name: name(),
        interval: begins_ms,
        hold: Hold::Learning,
        version: kept.version,
        configuration: String::new(),
        state: kept.state.clone(),
        reports: reported.into_iter().map(report).collect(),
        edges,
        studies: Vec::new(),
    };
    let now_ms = begins_ms + LENGTH_MS + 30_000;
    let closed = services.decide(std::slice::from_ref(&open), now_ms).remove(0).unwrap();
    let decided = Decided {
        interval: begins_ms,
        at_ms: begins_ms + LENGTH_MS + 30_000,
        hold: open.hold,
        version: open.version,
        configuration: String::new(),
        reports: open.edges.len() as i64,
        reward: closed.reward,
        detail: closed.detail.clone(),
    };
    let why = services.explain(&name(), &decided);
    kept.state.clone_from(&closed.state);
    if let Some((version, _)) = &closed.configuration {
        kept.version = *version;
    }
    (closed, why)
}

#[test]
fn what_a_version_saw_before_it_ended_is_told_and_counts_once() {
    let services = services();
    let mut kept = Kept::default();
    decide(&services, &mut kept, 0, &[]);
    let first = kept.version;
    decide(&services, &mut kept, 1, &[(first, 5.0, 0.0)]);
    assert_ne!(kept.version, first, "another point is tried");
    // Until the decision, interval 2 went on with the version of interval 1.
    let mut without = kept.clone();
    let now = (kept.version, 7.0, 0.0);
    let (alone, _) = decide(&services, &mut without, 2, &[now]);
    let (closed, why) = decide(&services, &mut kept, 2, &[(first, 4.0, 0.5), now]);
    assert_eq!((closed.reward, closed.state), (Some(7.0), alone.state), "nothing counts twice");
    let one = Shown { alarm: None, broken: 0, reward: Some(("learnt", 7.0)) };
    assert_eq!(closed.shown, [one]);
    assert_eq!(why["fitting_reports"], 1);
    assert_eq!(why["edges"], json!([1]));
    let ended = &why["ended"][0];
    assert_eq!((&ended["version"], &ended["connections"]), (&json!(first), &json!(10)));
    assert_eq!(ended["broken"], json!(["mean(loss) < 0.1"]));
    let sentence = why["sentence"].as_str().unwrap();
    assert!(sentence.contains("ended within the interval, with 10 connections"), "{sentence}");
    // Of the service's first version there never was a trial.
    let (_, why) = decide(&services, &mut kept.clone(), 3, &[(0, 4.0, 0.0)]);
    let sentence = why["sentence"].as_str().unwrap();
    assert!(sentence.ends_with(". No trial of it is open."), "{sentence}");
    // A guard that breaks again and again is counted, until it makes the aggregate fall back.
    let mut lossy = kept.clone();
    let mut shown = Vec::new();
    for n in 3..13 {
        let reported = [(lossy.version, 5.0, 0.5)];
        shown.extend(decide(&services, &mut lossy, n, &reported).0.shown);
    }
    assert!(shown.iter().filter(|one| one.broken == 1).count() >= 3, "{shown:?}");
    assert!(shown.iter().any(|one| one.alarm == Some("guard")), "{shown:?}");
    assert!(shown.iter().any(|one| one.reward == Some(("safe", 5.0))), "{shown:?}");
    // Versions that no edge can have had leave no trace.
    let invented: Vec<(i64, f64, f64)> = (900..990).map(|version| (version, 1.0, 0.0)).collect();
    let (_, why) = decide(&services, &mut kept, 3, &invented);
    assert_eq!(why.get("ended"), None);
}

#[test]
fn a_trial_that_an_order_cuts_short_is_learnt_from() {
    let services = services();
    let mut kept = Kept::default();
    decide(&services, &mut kept, 0, &[]);
    let tried = kept.version;
    let wish = Wish::Pin(json!({ "gamma": 100.0 }));
    let at_ms = BEGIN_MS + LENGTH_MS * 3 / 2;
    let before = (kept.version, kept.state.as_deref());
    let held = services.wish(&name(), before, &wish, at_ms).unwrap();
    kept = Kept { version: held.configuration.unwrap().0, state: Some(held.state) };
    let pinned = kept.version;
    assert_ne!(pinned, tried);
    let mut alone = kept.clone();
    let both = [(tried, 5.0, 0.0), (pinned, 7.0, 0.0)];
    let (closed, why) = decide(&services, &mut kept, 1, &both);
    assert_eq!((closed.reward, &why["fitting_reports"]), (Some(7.0), &json!(2)));
    assert_eq!(why["earlier"][0]["version"], json!(tried));
    assert_eq!(why["earlier"][0]["reward"], json!(5.0));
    assert_ne!(why["earlier"][0]["lesson"]["outcome"], json!("no-reward"), "{why}");
    // Also where nothing came of what followed it.
    let (closed, why) = decide(&services, &mut alone, 1, &[(tried, 5.0, 0.0)]);
    assert_eq!((closed.reward, &why["decision"]["version"]), (Some(5.0), &json!(tried)));
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let said = |interval: &str, knob: &str| {
        let text = format!(
            "name = \"tv\"\nreward = \"mean(throughput)\"\n\n{interval}\n[knobs]\n# The first one.\n{knob}\n"
        );
        std::fs::write(folder.path().join("tv.toml"), text).unwrap();
        let read = Services::read(folder.path(), Duration::from_secs(30));
        read.err().expect("it is wrong").to_string()
    };
    for (interval, knob, place, words) in [
        ("interval = \"20\"", "gamma = {}", "tv.toml:4", "needs a unit"),
        ("interval = 20", "gamma = {}", "tv.toml:4", "expected a string"),
        ("interval = \"20s\"", "gamma = {}", "tv.toml:4", "not longer than the engine's grace"),
        ("", "gama = {}", "tv.toml:7", "did you mean gamma?"),
        ("", "gamma = { mox = 2 }", "tv.toml:7", "unknown field `mox`"),
    ] {
        let said = said(interval, knob);
        assert!(said.contains(place) && said.contains(words), "{said}");
    }
}

/// Connections of one edge in one arm.
fn throughput(mbps: f64) -> Summary {
    let mut summary = Summary::new(10);
    summary.set("throughput", Sketch::of([mbps; 10])).unwrap();
    summary
}

/// The version of the control in a configuration, if it has one.
fn control_of(closed: &Closed) -> Option<i64> {
    let text = &closed.configuration.as_ref()?.1;
    let configuration: Value = serde_json::from_str(text).unwrap();
    let control = configuration.get("control")?;
    assert_eq!(control["algorithm"], "cubic", "the safe configuration");
    assert_eq!(control["share"], 0.25);
    assert!(control["seed"].is_u64() && control["knobs"].is_object(), "{control}");
    control["version"].as_i64()
}

const SIDE_BY_SIDE: &str = "incumbent = \"cubic\"\nothers = [\"bbr\"]\nside_by_side = 0.25";

/// The first interval with a control; gives the control's version.
fn first_control(services: &Services, kept: &mut Kept) -> i64 {
    control_of(&decide(services, kept, 0, &[]).0).expect("each trial has a control")
}

/// However fast the hour is, and whatever an edge saw that knows no control and ran the trial
/// everywhere, a trial is as much better as it was in the same interval.
#[test]
fn a_trial_is_compared_with_the_control_of_the_same_interval() {
    let services = services_with(SIDE_BY_SIDE);
    assert_eq!(services.infos[0].side_by_side, Some(0.25));
    let mut kept = Kept::default();
    let mut control = first_control(&services, &mut kept);
    for (n, hour) in (1..).zip([5.0, 50.0, 0.5]) {
        let trial = kept.version;
        let reported = vec![
            (1, trial, throughput(hour + 1.0), None),
            (1, control, throughput(hour), None),
            (2, trial, throughput(hour + 3.0), None),
            (2, control, throughput(hour + 2.0), None),
            (3, trial, throughput(900.0), None),
        ];
        let (closed, why) = decide_on(&services, &mut kept, n, reported);
        let pair = &why["decision"]["side_by_side"];
        let difference = pair["difference"].as_f64().unwrap();
        assert!((difference - 1.0).abs() < 1e-6, "{why}");
        assert!((pair["control"].as_f64().unwrap() - hour - 1.0).abs() < 1e-6);
        assert_eq!((&pair["connections"], &why["fitting_reports"]), (&json!(20), &json!(5)));
        assert_eq!(why.get("ended"), None, "the control is no version of before");
        // On the level of the first hour.
        assert!((closed.reward.unwrap() - 7.0).abs() < 1e-6, "{:?}", closed.reward);
        let sentence = why["sentence"].as_str().unwrap();
        assert!(sentence.contains("The control brought"), "{sentence}");
        assert!(sentence.contains("the difference is 1.0000"), "{sentence}");
        if closed.configuration.is_some() {
            control = control_of(&closed).expect("each trial has a control");
        }
    }
}

/// An edge of an older version runs the trial everywhere, and reports that alone.
#[test]
fn without_a_report_of_the_control_a_trial_counts_as_it_is() {
    let services = services_with(SIDE_BY_SIDE);
    let mut kept = Kept::default();
    let control = first_control(&services, &mut kept);
    let trial = kept.version;
    let mut whole = kept.clone();
    let (closed, why) = decide(&services, &mut whole, 1, &[(trial, 7.0, 0.0)]);
    assert_eq!((closed.reward, why["decision"].get("side_by_side")), (Some(7.0), None));
    // Nor where each edge reports another arm.
    let apart = vec![(1, trial, throughput(7.0), None), (2, control, throughput(4.0), None)];
    let (closed, why) = decide_on(&services, &mut kept, 1, apart);
    assert_eq!((closed.reward, why["decision"].get("side_by_side")), (Some(7.0), None));
}

/// What clusters saw by the arm of the next interval is the covariate of the pair that follows.
#[test]
fn what_clusters_saw_before_is_known_of_the_next_pair() {
    let services = services_with(SIDE_BY_SIDE);
    let mut kept = Kept::default();
    let mut control = first_control(&services, &mut kept);
    for n in 1..3 {
        let by_next = |version: i64, halves: [f64; 2]| {
            let next = halves.map(throughput);
            let mut whole = next[0].clone();
            whole.merge(&next[1]);
            (1, version, whole, Some(next))
        };
        let reported = vec![by_next(kept.version, [8.0, 5.0]), by_next(control, [6.0, 3.0])];
        let (closed, why) = decide_on(&services, &mut kept, n, reported);
        let covariate = why["decision"]["side_by_side"].get("covariate").and_then(Value::as_f64);
        // Of both arms together: 7 vs. 4.
        assert_eq!(covariate.map(f64::round), (n > 1).then_some(3.0), "{why}");
        if closed.configuration.is_some() {
            control = control_of(&closed).expect("each trial has a control");
        }
    }
}

const CHOICE: &str = "incumbent = \"cubic\"\nothers = [\"bbr\", \"copa:mvfst\"]";

/// The configuration that an operator's wish puts in force.
fn pinned(services: &Services, kept: &Kept, wish: &Wish) -> Result<Value, String> {
    let at_ms = BEGIN_MS + LENGTH_MS * 3 / 2;
    let held = services.wish(&name(), (kept.version, kept.state.as_deref()), wish, at_ms)?;
    Ok(serde_json::from_str(&held.configuration.unwrap().1).unwrap())
}

#[test]
fn the_incumbent_is_in_force_first_and_edges_get_algorithms_by_name() {
    let services = services_with(CHOICE);
    let first: Value = serde_json::from_str(&services.first(&name()).unwrap()).unwrap();
    assert_eq!(first, json!({ "algorithm": "cubic", "knobs": {} }));
    let info = &services.infos[0];
    assert_eq!((info.incumbent.as_deref(), info.others.len()), (Some("cubic"), 3));
    let mut kept = Kept::default();
    decide(&services, &mut kept, 0, &[]);
    let mut algorithms = Vec::new();
    for n in 1..12 {
        let version = kept.version;
        let (closed, why) = decide(&services, &mut kept, n, &[(version, 5.0, 0.0)]);
        assert_eq!(closed.reward, Some(5.0));
        let tried = why["decision"]["algorithms"]["tried"].as_str().unwrap().to_owned();
        if let Some((_, text)) = closed.configuration {
            let configuration: Value = serde_json::from_str(&text).unwrap();
            algorithms.push(configuration["algorithm"].as_str().unwrap().to_owned());
        }
        assert!(["cubic", "bbr", "copa:mvfst", "vivace"].contains(&tried.as_str()), "{tried}");
    }
    for name in ["bbr", "copa", "vivace"] {
        assert!(algorithms.iter().any(|tried| tried == name), "{name}: {algorithms:?}");
    }
}

#[test]
fn an_operator_pins_another_algorithm_and_rolls_back_to_it() {
    let services = services_with(CHOICE);
    let mut kept = Kept::default();
    decide(&services, &mut kept, 0, &[]);
    let pin = |knobs: Value| pinned(&services, &kept, &Wish::Pin(knobs));
    let copa = json!({ "algorithm": "copa", "knobs": { "delta": 0.04, "competitive": 0.0 } });
    assert_eq!(pin(json!({ "algorithm": "copa:mvfst" })).unwrap(), copa);
    assert_eq!(pin(json!({})).unwrap()["algorithm"], "cubic", "the safe one");
    let gamma = pin(json!({ "gamma": 100.0 })).unwrap();
    assert_eq!(gamma["algorithm"], "vivace");
    let back = |text: &Value| pinned(&services, &kept, &Wish::Back(text.to_string()));
    assert_eq!((back(&copa).unwrap(), back(&gamma).unwrap()), (copa.clone(), gamma));
    let gone = back(&json!({ "algorithm": "copa", "knobs": { "delta": 0.9 } })).unwrap_err();
    assert!(gone.starts_with("the service has no copa:delta=0.9 any more"), "{gone}");
    let unknown = pin(json!({ "algorithm": "vegas" })).unwrap_err();
    assert!(unknown.contains("there are cubic, bbr, copa:mvfst"), "{unknown}");
    let both = pin(json!({ "algorithm": "bbr", "gamma": 1.0 })).unwrap_err();
    assert!(both.contains("leave the knobs out"), "{both}");
}

/// An interval of an aggregate of which an edge reported this.
fn open_of(number: usize, kept: &Kept, n: i64, mbps: f64) -> Open {
    let begins_ms = BEGIN_MS + n * LENGTH_MS;
    let name = Name { prefix: format!("10.0.{number}.0/24"), ..name() };
    let report = Report {
        key: key(&name).unwrap(),
        interval: Interval((begins_ms / LENGTH_MS) as u64),
        version: kept.version as u64,
        summary: throughput(mbps),
        next: None,
    };
    Open {
        name,
        interval: begins_ms,
        hold: Hold::Learning,
        version: kept.version,
        configuration: String::new(),
        state: kept.state.clone(),
        reports: vec![report.encode().unwrap()],
        edges: vec![Some(1)],
        studies: Vec::new(),
    }
}

/// Twelve aggregates in so many intervals, which all begin anew.
fn rounds(services: &Services, intervals: std::ops::Range<i64>) -> Vec<(i64, Option<String>)> {
    let mut all = vec![Kept::default(); 12];
    for n in intervals {
        let open = |(i, kept): (usize, &Kept)| {
            open_of(i, kept, n, 5.0 + (i * 7 % 5) as f64 + kept.version as f64)
        };
        let open: Vec<Open> = all.iter().enumerate().map(open).collect();
        let now_ms = BEGIN_MS + (n + 1) * LENGTH_MS + 30_000;
        for (kept, closed) in all.iter_mut().zip(services.decide(&open, now_ms)) {
            let closed = closed.unwrap();
            kept.state = closed.state;
            kept.version = closed.configuration.map_or(kept.version, |(version, _)| version);
        }
    }
    all.into_iter().map(|kept| (kept.version, kept.state)).collect()
}

/// What all aggregates found, as a text.
fn cells(services: &Services) -> String {
    let found = services.found.lock().unwrap();
    let cells = found.values().flat_map(|found| found.commons.cells());
    cells.map(|cell| format!("{cell:?}")).collect()
}

/// What is decided on many aggregates together is the same whatever the cores do.
#[test]
fn decisions_do_not_depend_on_how_many_cores_there_are() {
    let decided_on = |cores: usize| {
        let services = services_with(CHOICE);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
        let all = pool.install(|| rounds(&services, 0..60));
        (all, cells(&services))
    };
    let (alone, found) = decided_on(1);
    assert!(!found.is_empty(), "they have found something");
    assert_eq!(decided_on(4), (alone, found));
}

/// An engine that begins anew, or another one, decides as the engine would whose decisions they were.
#[test]
fn engines_that_share_what_was_found_decide_alike() {
    let services = services_with(CHOICE);
    services.heed("tv", None);
    assert!(!services.has_found("tv"));
    rounds(&services, 0..60);
    assert!(services.has_found("tv"));
    let kept = services.found("tv", None).expect("they have found something");
    let other = services_with(CHOICE);
    for engine in [&services, &other] {
        engine.heed("tv", Some(&kept));
        assert!(!engine.has_found("tv"));
    }
    assert_eq!(cells(&other), cells(&services));
    let (here, there) = (rounds(&services, 60..90), rounds(&other, 60..90));
    assert_eq!(there, here);
    assert_ne!(rounds(&services_with(CHOICE), 60..90), here, "it matters what was found");
}

#[test]
fn what_two_engines_found_at_once_is_kept_of_both() {
    let (one, other) = (services_with(CHOICE), services_with(CHOICE));
    for engine in [&one, &other] {
        engine.heed("tv", None);
        rounds(engine, 0..30);
    }
    let weight = |services: &Services| services.found.lock().unwrap()["tv"].commons.weight();
    let alone = weight(&one);
    let kept = one.found("tv", None).unwrap();
    assert_eq!(weight(&one), alone);
    // It decided by what was kept before, and adds to what the first one left meanwhile.
    other.found("tv", Some(&kept)).unwrap();
    assert!(weight(&other) > 1.9 * alone, "{} vs. {alone}", weight(&other));
}

/// What another fleet found is where a new one begins, until the store has findings of its own.
#[test]
fn findings_begin_with_the_prior_of_the_service() {
    let prior = "[[prior]]\nrun = \"bbr\"\nadvantage = 2\ntrials = 50";
    let known = || services_with(&format!("{CHOICE}\n{prior}"));
    let services = known();
    services.heed("tv", None);
    assert!(!services.has_found("tv"), "there is nothing to keep yet");
    let begins = cells(&services);
    assert!(begins.contains("weight: 50"), "{begins}");
    assert_ne!(rounds(&services, 0..30), rounds(&services_with(CHOICE), 0..30));
    // What is kept has the prior in it, and does not get it again.
    let kept = services.found("tv", None).unwrap();
    let other = known();
    other.heed("tv", Some(&kept));
    assert_eq!(cells(&other), cells(&services));
}

#[test]
fn what_was_found_of_other_knobs_or_is_not_understood_counts_for_nothing() {
    let services = services_with(CHOICE);
    rounds(&services, 0..60);
    let kept = services.found("tv", None).unwrap();
    let fresh = || services_with(CHOICE);
    for text in [kept.replace("5000", "6000"), kept.replace("gamma", "beta"), "{".to_owned()] {
        assert_ne!(text, kept);
        let engine = fresh();
        engine.heed("tv", Some(&text));
        assert_eq!(cells(&engine), "");
    }
    let engine = fresh();
    engine.heed("tv", Some(&kept));
    assert_eq!(cells(&engine), cells(&services));
}
