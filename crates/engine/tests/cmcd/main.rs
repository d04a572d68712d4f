//! From the requests of players to a changed knob: a log, the door that reads it, an engine that is
//! a process of its own, and what it decides.

#[path = "../common/browser.rs"]
#[allow(dead_code, reason = "the tests of the dashboard use the rest")]
mod browser;
mod chromium;
#[path = "../common/mod.rs"]
mod common;
mod server;
#[path = "../../../agent/tests/agent/webm.rs"]
mod webm;

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration as StdDuration, Instant};

use common::Site;
use trimtab_cmcd::{Cmcd, Door, Fields, ObjectType, Reader, Source, Tail};
use trimtab_engine::add_token;
use trimtab_fleet_client::edge::{Edge, InForce, Key, Observation, Options, Together};
use trimtab_fleet_client::{Client, DecisionBody, Name, NewToken, Role};
use trimtab_units::{Duration, Rate, Time};

const KEY: &str = "tv/203.0.113.0/24";
/// Players that watch all the time.
const PLAYERS: u64 = 4;
/// Each of them asks for an object so often, which plays as long.
const PERIOD_MS: u64 = 400;

#[test]
fn engine_process() {
    common::run_if_asked();
}

/// A service that is learnt by what players report, in pairs of opposite configurations.
fn describe(site: &Site, interval: &str) {
    let text = "statistics = [\"bitrate\", \"startup\", \"stalls\"]\n\
                reward = \"mean(bitrate) - 20 * mean(rebuffering)\"\n\
                [knobs]\ngamma = { min = 1, max = 5000, scale = \"log\" }\n\
                [safe]\ngamma = 100\n[start]\ngamma = 100\n\
                [learning]\npreset = \"pairs\"\naverage = 1\n";
    let text = format!("name = \"tv\"\ninterval = \"{interval}\"\n{text}");
    std::fs::write(site.folder.path().join("services/tv.toml"), text).unwrap();
}

/// The door for requests below `/tv/` or another path, with a token of its own.
fn door(site: &Site, url: &str, key: &Key, path: &str, wait: Duration) -> Door {
    let token = add_token(&site.config(), &NewToken::new("cmcd-1", Role::Edge, &["tv"])).unwrap();
    let edge = Edge::start(&options(site, url, "cmcd", &token)).unwrap();
    let (service, fields) = (key.service.clone(), Fields::default());
    let (prefix, together) = ([24, 48], Together::default());
    let reader = Reader { service, prefix, together, path: path.to_owned(), fields };
    Door::new(edge, reader, wait)
}

/// All decisions until now, oldest first; none where nobody has asked for the aggregate yet.
fn decisions(viewer: &Client, key: &Key) -> Vec<DecisionBody> {
    let name = Name { service: key.service.to_string(), prefix: key.prefix.to_string() };
    let known = viewer.decisions(&name, 100);
    let mut decisions = known.map_or_else(|_| Vec::new(), |known| known.decisions);
    decisions.sort_by_key(|decision| decision.interval);
    decisions
}

fn is_moved(decision: &DecisionBody) -> bool {
    guesses(decision).is_some_and(|(before, after)| before != after)
}

fn options(site: &Site, url: &str, name: &str, token: &str) -> Options {
    Options {
        engine: url.to_owned(),
        token: token.into(),
        authority: None,
        folder: site.folder.path().join(name),
    }
}

fn now() -> Time {
    Time::from_millis(common::now_ms() as u64)
}

fn gamma(force: &InForce) -> f64 {
    let knobs = &force.configuration.knobs;
    knobs.iter().find(|(name, _)| name == "gamma").map(|(_, value)| *value).expect("it is learnt")
}

/// What the players get by the knob that is in force: bitrate in Mbit/s, more with a higher one.
fn bitrate_mbps(gamma: f64) -> f64 {
    1.0 + 4.0 * gamma.ln() / 5000.0_f64.ln()
}

/// A line as nginx writes it with `escape=json`: an object that a player asked for.
fn line(player: u64, number: u64, mbps: f64) -> String {
    let data = Cmcd {
        bitrate: Some(Rate::from_mbps(mbps)),
        buffer: Some(Duration::from_millis(if number == 0 { 0 } else { PERIOD_MS })),
        duration: Some(Duration::from_millis(PERIOD_MS)),
        object: Some(ObjectType::Video),
        session: Some(format!("player-{player}")),
        is_urgent: number == 0,
        ..Cmcd::default()
    };
    let line = serde_json::json!({
        "msec": common::now_ms() as f64 / 1000.0,
        "remote_addr": format!("203.0.113.{}", 10 + player),
        "request_uri": format!("/tv/{number}.m4s"),
        "request_time": "0.050",
        "status": "206",
        "http_cmcd_object": data.to_string(),
        "http_cmcd_session": "",
    });
    format!("{line}\n")
}

/// The best guess for the knob before and after a decision.
fn guesses(decision: &DecisionBody) -> Option<(f64, f64)> {
    let of = |which: &str| {
        let knobs = decision.why["decision"][which].as_array()?;
        knobs.iter().find(|knob| knob[0] == "gamma")?[1].as_f64()
    };
    Some((of("before")?, of("after")?))
}

fn statistic(decision: &DecisionBody, name: &str) -> Option<f64> {
    let all = decision.why["decision"]["statistics"].as_array()?;
    all.iter().find(|statistic| statistic[0] == name)?[1].as_f64()
}

#[test]
fn what_players_report_moves_the_knob_that_they_are_better_with() {
    let site = Site::at(0, "900ms", "");
    describe(&site, "2s");
    let engine = site.start();
    // The server, which runs what is in force, and reports what its connections measure.
    let server = Edge::start(&options(&site, &engine.url, "server", &site.edge)).unwrap();
    let key: Key = KEY.parse().unwrap();
    let path = site.folder.path().join("access.log");
    let mut log = File::create(&path).unwrap();
    let mut source = Source::File(Tail::from_end(&path).unwrap());
    let mut door = door(&site, &engine.url, &key, "/tv/", Duration::from_millis(100));
    let viewer = engine.client(&site.viewer);

    let (start, mut sent) = (Instant::now(), 0);
    let decisions = loop {
        assert!(start.elapsed() < StdDuration::from_secs(60), "{:?}", door.counts());
        let due = start.elapsed().as_millis() as u64 / PERIOD_MS;
        if let Some(force) = server.in_force(&key).filter(|_| sent <= due) {
            for player in 0..PLAYERS {
                log.write_all(line(player, sent, bitrate_mbps(gamma(&force))).as_bytes()).unwrap();
            }
            let throughput = Some(Rate::from_mbps(50.0));
            let seen = Observation { throughput, ..Observation::default() };
            server.record(&key, force.configuration.version, server.interval(&force), &seen);
            sent = due + 1;
        }
        source.read(|line| door.on_line(line, now())).unwrap();
        door.on_time(now());
        let decisions = decisions(&viewer, &key);
        if decisions.iter().any(is_moved) {
            break decisions;
        }
        std::thread::sleep(StdDuration::from_millis(50));
    };

    let learnt: Vec<&DecisionBody> = decisions.iter().filter(|one| one.reward.is_some()).collect();
    for decision in &learnt {
        // The reward is what the players got, who never stalled. A request in the moment of a
        // change may count for the version before it.
        let mbps = bitrate_mbps(decision.configuration["knobs"]["gamma"].as_f64().unwrap());
        assert!((decision.reward.unwrap() - mbps).abs() < 0.3, "{decision:?}");
        assert_eq!(statistic(decision, "mean(rebuffering)"), Some(0.0), "{decision:?}");
    }
    let moved = learnt.iter().position(|one| is_moved(one)).unwrap();
    let (before, after) = guesses(learnt[moved]).unwrap();
    assert!(after > before, "players are better with a larger gamma: {before} to {after}");
    // Both arms were reported, the larger and the smaller, in the last two intervals with a reward.
    let arms: Vec<f64> =
        learnt[..=moved].iter().rev().take(2).filter_map(|one| one.reward).collect();
    let [second, first] = arms[..] else { panic!("one arm is not enough: {arms:?}") };
    assert!((second - first).abs() > 0.6, "{arms:?}");
    let intervals = learnt[moved].interval - learnt[moved - 1].interval;
    assert!(intervals <= 2, "it moved {intervals} intervals after the first arm");
    let counts = door.counts();
    assert_eq!(counts.unreadable, 0, "{counts:?}");
    println!(
        "gamma {before:.0} to {after:.0}, {intervals} interval after the first arm, of {} requests",
        counts.requests
    );
}
