//! Experiments and staged rollouts, at engines that run as processes of their own: what edges
//! receive, what is found, and that kills, operators and several engines do not disturb it.

mod hardship;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use trimtab_fleet_client::{
    Action, Client, ConfigurationQuery, ExperimentBody, Held, NewExperiment, NewRollout, OrderBody,
    ReportBatch, RolloutAction, RolloutBody, RolloutOrder, StopExperiment,
};

use crate::common::{Process, Site, batch, now_ms, report};
use trimtab_fleet_client::experiment::{Arm, Design, Phase, Schedule, Verdict};

const AGGREGATES: usize = 12;

fn prefix(aggregate: usize) -> String {
    format!("10.0.{aggregate}.0/24")
}

/// Edges whose aggregates see a throughput of 10 and a little more or less, and less by `worse`
/// where the knob gamma is 100.
struct Edges {
    token: String,
    versions: BTreeMap<String, (u64, f64)>,
    sequence: u64,
    worse: f64,
}

impl Edges {
    fn new(site: &Site, worse: f64) -> Self {
        Self { token: site.edge.clone(), versions: BTreeMap::new(), sequence: 0, worse }
    }

    /// Asks what is in force, at a moment in an interval by which the engine has decided.
    fn hear(&mut self, engine: &Client) {
        let have = (0..AGGREGATES)
            .map(|aggregate| {
                let prefix = prefix(aggregate);
                let version = self.versions.get(&prefix).map(|known| known.0);
                Held { service: "tv".to_owned(), prefix, version }
            })
            .collect();
        let query = ConfigurationQuery { have, wait_s: 0 };
        let Ok(answer) = engine.configurations(&query) else { return };
        for one in answer.configurations {
            let gamma = one.configuration["knobs"]["gamma"].as_f64().unwrap_or(0.0);
            self.versions.insert(one.prefix, (one.version, gamma));
        }
    }

    /// What they saw of an interval.
    fn batch(&mut self, interval: u64) -> ReportBatch {
        self.sequence += 1;
        let reports = (0..AGGREGATES)
            .map(|aggregate| {
                let prefix = prefix(aggregate);
                let (version, gamma) = self.versions.get(&prefix).copied().unwrap_or_default();
                let treated = (gamma - 100.0).abs() < 1e-6;
                let noise = (interval as usize * 7 + aggregate * 5) % 11;
                let level = 10.0 + aggregate as f64 / 4.0 + noise as f64 / 20.0;
                let value = level - if treated { self.worse } else { 0.0 };
                report(&format!("tv/{prefix}"), interval, version, value)
            })
            .collect::<Vec<_>>();
        batch(self.sequence, reports)
    }

    /// Reports an interval, until it is acknowledged.
    fn report(&mut self, engine: &dyn Fn() -> Client, interval: u64) {
        let sent = self.batch(interval);
        let until = Instant::now() + Duration::from_secs(30);
        while engine().report(&sent).is_err() {
            assert!(Instant::now() < until, "nobody takes the reports");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Serves an interval of a second: asks in its course what is in force, and reports at its end.
    fn serve(&mut self, engine: &dyn Fn() -> Client) {
        let interval = now_ms() / 1000;
        // What was reported of the one before it is decided on by now, or soon.
        sleep_until(interval * 1000 + 200);
        while now_ms() < interval * 1000 + 900 {
            match engine().status() {
                Ok(status) if status.counts.waiting_reports == 0 => break,
                _ => std::thread::sleep(Duration::from_millis(30)),
            }
        }
        self.hear(&engine().clone_for(&self.token));
        sleep_until((interval + 1) * 1000);
        let token = self.token.clone();
        self.report(&move || engine().clone_for(&token), interval as u64);
    }
}

fn sleep_until(at_ms: i64) {
    std::thread::sleep(Duration::from_millis((at_ms - now_ms()).max(0) as u64));
}

/// The same engine, asked by somebody else.
trait CloneFor {
    fn clone_for(&self, token: &str) -> Client;
}

impl CloneFor for Client {
    fn clone_for(&self, token: &str) -> Client {
        Client::new(self.url(), token, None).expect("a client")
    }
}

fn gamma_100() -> Arm {
    Arm::Knobs([("gamma".to_owned(), 100.0)].into())
}

fn safe_against_100(design: Design, length: u32) -> NewExperiment {
    NewExperiment {
        service: "tv".to_owned(),
        name: "gamma-100".to_owned(),
        control: Arm::Safe,
        treatment: gamma_100(),
        design,
        length,
        start: None,
        wash_out: None,
        metric: "reward".to_owned(),
        guards: vec!["mean(throughput) > -5%".to_owned()],
        seed: Some(3),
        reason: "to know".to_owned(),
    }
}

const SETTINGS: &str = "[limits]\nrequests_per_second = 1000";

/// Waits until what somebody looks at is as it should be; serves meanwhile.
fn serve_until<T>(
    edges: &mut Edges,
    engine: &dyn Fn() -> Client,
    most: u32,
    mut look: impl FnMut(&Client) -> Option<T>,
) -> T {
    for _ in 0..most {
        edges.serve(engine);
        if let Some(found) = look(&engine()) {
            return found;
        }
    }
    panic!("it does not happen in {most} intervals");
}

fn ended(client: &Client) -> Option<ExperimentBody> {
    client.experiment("tv", "gamma-100").ok().filter(|body| body.state == "over")
}

/// By whole aggregates, with an engine that is killed in between and an aggregate that an operator pins.
#[test]
fn an_experiment_survives_kills_leaves_out_what_operators_hold_and_finds_what_is_there() {
    let site = Site::new(SETTINGS);
    let mut engine = site.start();
    let mut edges = Edges::new(&site, -2.0);
    let ask = |engine: &Process, site: &Site| {
        let (url, token) = (engine.url.clone(), site.operator.clone());
        move || Client::new(&url, &token, None).expect("a client")
    };
    serve_until(&mut edges, &ask(&engine, &site), 4, |client| {
        let known = client.status().ok()?.counts;
        (known.aggregates == AGGREGATES as i64 && known.decisions >= 24).then_some(())
    });
    let operator = engine.client(&site.operator);
    let new = safe_against_100(Design::Prefixes { share: 0.5 }, 8);
    let unnamed = NewExperiment { metric: String::new(), ..new.clone() };
    let said = operator.begin_experiment(&unnamed).unwrap_err().to_string();
    assert!(said.contains("success metric"), "{said}");
    // The engine names who is to be dealt out, and refuses what cannot be.
    let wrong = NewExperiment { guards: vec!["mean(los) < +1%".to_owned()], ..new.clone() };
    let said = operator.begin_experiment(&wrong).unwrap_err().to_string();
    assert!(said.contains("column 6"), "{said}");
    let viewer = engine.client(&site.viewer);
    assert!(viewer.begin_experiment(&new).is_err(), "who may only look begins nothing");
    let begun = operator.begin_experiment(&new).expect("it begins");
    assert_eq!(viewer.experiments(Some("tv")).expect("they look").experiments.len(), 1);
    assert_eq!(begun.report.as_ref().map(|r| r.units.aggregates), Some(AGGREGATES as u64));
    let second = NewExperiment { name: "another".to_owned(), ..new };
    let said = operator.begin_experiment(&second).unwrap_err().to_string();
    assert!(said.contains("gamma-100") && said.contains("is running"), "{said}");

    for turn in 0..3 {
        edges.serve(&ask(&engine, &site));
        if turn == 1 {
            engine.kill();
            engine = site.start();
        }
    }
    let order = OrderBody {
        service: "tv".to_owned(),
        prefix: prefix(3),
        action: Action::Pause,
        version: None,
        knobs: None,
        interval: None,
        reason: String::new(),
    };
    ask(&engine, &site)().order(&order).expect("it is paused");
    engine.kill();
    engine = site.start();
    let body = serve_until(&mut edges, &ask(&engine, &site), 15, ended);
    let report = body.report.expect("a report");
    let effect = report.effect.expect("it is known");
    assert!(effect.high >= 1.7 && effect.low > 0.0, "{report:?}");
    assert!((effect.value - 2.0).abs() < 0.4, "{report:?}");
    assert_eq!((report.units.aggregates, report.units.left), (12, 1));
    assert_eq!((report.over, report.guards[0].verdict), (true, Verdict::Holds));
    assert!(report.left_out.wash_out > 0, "{report:?}");
    // What it did is in the audit log, and nothing of it is in force any more.
    let audit = ask(&engine, &site)().audit(Some(false), 50).expect("a log");
    let actions: Vec<&str> = audit.lines.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions[..4], ["experiment over", "leave", "pause", "experiment begun"]);
    serve_until(&mut edges, &ask(&engine, &site), 6, |client| {
        let all =
            client.aggregates(&trimtab_fleet_client::Listing { limit: 99, ..Default::default() });
        let learns = |one: &trimtab_fleet_client::AggregateBody| {
            one.configuration["knobs"]["gamma"].as_f64().is_some_and(|g| (g - 100.0).abs() > 1e-6)
        };
        all.ok()?.aggregates.iter().all(learns).then_some(())
    });
    // It is as it was, however often one asks.
    let again = ask(&engine, &site)().experiment("tv", "gamma-100").expect("it is kept");
    assert_eq!(again.report, Some(report));
}

/// What breaks a guard goes on no longer than it takes to see it, and what an arm harms takes no further part.
#[test]
fn an_experiment_that_breaks_a_guard_is_stopped_by_the_engine() {
    let site = Site::new(SETTINGS);
    let engine = site.start();
    let mut edges = Edges::new(&site, 2.0);
    let ask = || Client::new(&engine.url, &site.operator, None).expect("a client");
    serve_until(&mut edges, &ask, 6, |client| {
        let known = client.status().ok()?.counts;
        (known.aggregates == AGGREGATES as i64 && known.decisions >= 24).then_some(())
    });
    let new = safe_against_100(Design::Prefixes { share: 0.5 }, 240);
    ask().begin_experiment(&new).expect("it begins");
    let body = serve_until(&mut edges, &ask, 30, |client| {
        let body = client.experiment("tv", "gamma-100").ok()?;
        (body.state == "stopped").then_some(body)
    });
    let why = body.stopped.expect("it says why");
    assert!(why.starts_with("(the engine): mean(throughput) > -5% is broken: "), "{why}");
    let report = body.report.expect("a report");
    assert!(!report.over && report.elapsed < 40, "{report:?}");
    let audit = ask().audit(Some(false), 50).expect("a log").lines;
    assert!(audit.iter().any(|line| line.action == "experiment stopped"), "{audit:?}");
    let alarms: Vec<_> =
        audit.iter().filter(|line| line.who.contains("an alarm in the arm")).collect();
    assert!(alarms.iter().all(|line| line.who.contains("treatment")), "{alarms:?}");
    println!(
        "stopped after {} of 240 intervals, {} left by an alarm",
        report.elapsed,
        alarms.len()
    );
}

/// By time slots, on a store that two engines share; and stopped before its end.
#[test]
fn a_switchback_at_two_engines_is_carried_out_once() {
    let Some(servers) = trimtab_servers::Servers::for_tests() else { return };
    let site = Site::with_store((0, "20ms", SETTINGS), &servers.configuration(true));
    let engines = [site.start(), site.start()];
    let turn = std::cell::Cell::new(0);
    let ask = || {
        turn.set(turn.get() + 1);
        Client::new(&engines[turn.get() % 2].url, &site.operator, None).expect("a client")
    };
    let mut edges = Edges::new(&site, -2.0);
    serve_until(&mut edges, &ask, 5, |client| {
        (client.status().ok()?.counts.aggregates == AGGREGATES as i64).then_some(())
    });
    edges.serve(&ask);
    let design = Design::Switchback { block: 2, schedule: Schedule::Each };
    ask().begin_experiment(&safe_against_100(design, 400)).expect("it begins");
    let body = serve_until(&mut edges, &ask, 20, |client| {
        let body = client.experiment("tv", "gamma-100").ok()?;
        let pairs = body.report.as_ref()?.units.control;
        (pairs >= 3).then_some(body)
    });
    let report = body.report.expect("a report");
    assert!(!report.over && report.confidence > 0.999 && report.p.is_none(), "{report:?}");
    assert!(report.verdict.contains("It is not over"), "{}", report.verdict);
    assert!((report.effect.expect("known").value - 2.0).abs() < 0.4, "{report:?}");
    // No interval counts twice, whichever engine closed it.
    let left = report.left_out;
    let elapsed = u64::from(report.elapsed) * AGGREGATES as u64;
    assert!(left.wash_out + left.other_version + left.no_value + left.unreported < elapsed);
    let stop = StopExperiment {
        service: "tv".to_owned(),
        name: "gamma-100".to_owned(),
        reason: "seen enough".to_owned(),
    };
    let stopped = ask().stop_experiment(&stop).expect("it stops");
    assert_eq!(
        (stopped.state.as_str(), stopped.stopped.as_deref()),
        ("stopped", Some("kim: seen enough"))
    );
    assert!(!stopped.report.expect("a report").over, "stopped is not over");
    assert!(ask().stop_experiment(&stop).unwrap_err().to_string().contains("has ended"));
}

fn rollout(name: &str, worse_than: &str) -> NewRollout {
    NewRollout {
        service: "tv".to_owned(),
        name: name.to_owned(),
        from: None,
        to: gamma_100(),
        stages: Some(vec![0.25, 1.0]),
        intervals: Some(3),
        wash_out: None,
        metric: "reward".to_owned(),
        guards: vec![worse_than.to_owned()],
        seed: Some(1),
        reason: String::new(),
    }
}

/// Those that run the configuration that is rolled out.
fn switched(client: &Client) -> usize {
    let listing = trimtab_fleet_client::Listing { limit: 99, ..Default::default() };
    let all = client.aggregates(&listing).map(|all| all.aggregates).unwrap_or_default();
    let runs = |one: &&trimtab_fleet_client::AggregateBody| {
        one.configuration["knobs"]["gamma"].as_f64().is_some_and(|g| (g - 100.0).abs() < 1e-6)
    };
    all.iter().filter(runs).count()
}

#[test]
fn a_rollout_goes_on_by_itself_and_one_that_harms_goes_back_by_itself() {
    let site = Site::new(SETTINGS);
    let engine = site.start();
    let ask = || Client::new(&engine.url, &site.operator, None).expect("a client");
    let phase = |name: &'static str, wanted: Phase| {
        move |client: &Client| -> Option<RolloutBody> {
            client.rollout("tv", name).ok().filter(|body| body.phase == wanted)
        }
    };
    let mut edges = Edges::new(&site, 2.0);
    serve_until(&mut edges, &ask, 4, |client| {
        (client.status().ok()?.counts.decisions >= 24).then_some(())
    });
    let none = NewRollout { guards: vec![], ..rollout("x", "") };
    assert!(ask().begin_rollout(&none).unwrap_err().to_string().contains("needs a guard metric"));
    let none = NewRollout { metric: String::new(), ..rollout("x", "mean(throughput) > -10%") };
    let said = ask().begin_rollout(&none).unwrap_err().to_string();
    assert!(said.contains("success metric") && said.contains("\"reward\""), "{said}");
    // What makes throughput less by a fifth, where a tenth is the limit, never gets to all.
    // Its success metric becomes better, so that the guard alone can take it back.
    let metric = "-mean(throughput)".to_owned();
    let bad = NewRollout { metric, ..rollout("bad", "mean(throughput) > -10%") };
    ask().begin_rollout(&bad).expect("it begins");
    let mut most = 0;
    let back = serve_until(&mut edges, &ask, 20, |client| {
        most = most.max(switched(client));
        phase("bad", Phase::RolledBack)(client)
    });
    let why = "mean(throughput) > -10% is broken in stage 1";
    assert!(back.why.contains(why), "{}", back.why);
    assert_eq!(
        (most, back.in_force),
        (3, false),
        "a quarter of twelve had it, and nobody keeps it"
    );
    serve_until(&mut edges, &ask, 6, |client| (switched(client) == 0).then_some(()));

    edges.worse = -1.0;
    ask().begin_rollout(&rollout("good", "mean(throughput) > -10%")).expect("it begins");
    let order = |action| {
        let (service, name) = ("tv".to_owned(), "good".to_owned());
        ask().order_rollout(&RolloutOrder { service, name, action, reason: String::new() })
    };
    assert_eq!(order(RolloutAction::Hold).expect("it is held").phase, Phase::Held);
    for _ in 0..5 {
        edges.serve(&ask);
    }
    assert_eq!(ask().rollout("tv", "good").expect("it is there").stage, 0, "it stays");
    assert_eq!(order(RolloutAction::Resume).expect("it goes on").phase, Phase::Running);
    let done = serve_until(&mut edges, &ask, 25, phase("good", Phase::Done));
    assert!(done.in_force, "it is kept");
    serve_until(&mut edges, &ask, 6, |client| (switched(client) == AGGREGATES).then_some(()));
    assert_eq!(order(RolloutAction::Abort).expect("it ends").phase, Phase::Aborted);
    serve_until(&mut edges, &ask, 6, |client| (switched(client) == 0).then_some(()));
    assert!(order(RolloutAction::Abort).unwrap_err().to_string().contains("has ended"));
}
