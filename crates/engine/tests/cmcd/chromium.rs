//! The same with a real player: Chromium plays, and its buffer, bitrates and stalls are its own.
//!
//! How fast it plays depends on what else the machine does. So this asserts what does not: the knob
//! moves towards the configuration with the better reward, at most two intervals after the first;
//! the session counts once; and the log shows what the page itself counted and measured.

use std::sync::atomic::Ordering;
use std::time::{Duration as StdDuration, Instant};

use serde_json::{Value, json};
use trimtab_cmcd::{Fields, Reader, Row, Source, Table, Tail};
use trimtab_fleet_client::DecisionBody;
use trimtab_fleet_client::edge::{Edge, Key, Together};
use trimtab_units::Duration;

use crate::browser::Browser;
use crate::common::{Site, until};
use crate::server::Server;
use crate::{decisions, describe, door, gamma, guesses, is_moved, now, options};

/// A rate at which the player goes up to 6 Mbit/s, and one at which it stalls then.
const PLAYS_KBPS: u64 = 12_000;
const STALLS_KBPS: u64 = 1000;
/// A request is a moment on its way, longer on a busy machine; and `bl` is known to 0.1 s.
const ON_ITS_WAY_S: f64 = 1.0;

/// What the player gets by the knob that is in force: 2 Mbit/s with the smaller of the first two,
/// which is for 1.5 Mbit/s of video, and 12 Mbit/s with the larger, which is for 6.
fn kbps(gamma: f64) -> u64 {
    let place = gamma.ln() / 5000.0_f64.ln();
    (2200.0 * (5.65 * (place - 0.39)).exp()) as u64
}

#[test]
fn what_chromium_plays_moves_the_knob_to_the_better_reward() {
    let options_of = ["--autoplay-policy=no-user-gesture-required", "--mute-audio"];
    let options_of = options_of.map(str::to_owned);
    let Some(mut browser) = Browser::start_for("127.0.0.1", &options_of) else { return };
    let site = Site::at(0, "900ms", "");
    // So long that what the player asks for follows what it measured under the same knob.
    describe(&site, "12s");
    // A busy machine takes its time. The other service is too short for such a grace.
    let config = std::fs::read_to_string(site.config()).unwrap().replace("900ms", "2500ms");
    std::fs::write(site.config(), config).unwrap();
    std::fs::remove_file(site.folder.path().join("services/vod.toml")).unwrap();
    let engine = site.start();
    let key: Key = "tv/127.0.0.0/24".parse().unwrap();
    let edge = Edge::start(&options(&site, &engine.url, "server", &site.edge)).unwrap();
    let path = site.folder.path().join("access.log");
    let server = Server::start(&path);
    let mut source = Source::File(Tail::from_end(&path).unwrap());
    let mut door = door(&site, &engine.url, &key, "/", Duration::from_millis(500));
    let viewer = engine.client(&site.viewer);
    let page = format!("http://{}/player.html", server.address);
    browser.tell("Page.navigate", &json!({ "url": page }));
    browser.until("typeof seen === 'object'");

    let start = Instant::now();
    let learnt = loop {
        let error = browser.value("seen.error");
        assert_eq!(error, json!(""));
        assert!(start.elapsed() < StdDuration::from_secs(180), "{:?}", door.counts());
        if let Some(force) = edge.in_force(&key) {
            server.kbps.store(kbps(gamma(&force)), Ordering::Relaxed);
        }
        source.read(|line| door.on_line(line, now())).unwrap();
        door.on_time(now());
        let mut decisions = decisions(&viewer, &key);
        decisions.retain(|decision| decision.reward.is_some());
        if let Some(moved) = decisions.iter().position(is_moved) {
            decisions.truncate(moved + 1);
            break decisions;
        }
        std::thread::sleep(StdDuration::from_millis(100));
    };
    assert_moved_to_the_better(&learnt);

    // A stall, and what the log shows of the whole, compared with what the player saw.
    server.kbps.store(PLAYS_KBPS, Ordering::Relaxed);
    browser.until("seen.kbps.at(-1) === 6000 && in_store_s() > 1");
    let stalls = browser.value("seen.stalls").as_u64().unwrap();
    server.kbps.store(STALLS_KBPS, Ordering::Relaxed);
    browser.until(&format!("seen.stalls > {stalls}"));
    server.kbps.store(PLAYS_KBPS, Ordering::Relaxed);
    let played = browser.value("seen.kbps.length").as_u64().unwrap();
    browser.until(&format!("seen.kbps.length > {played} + 2"));
    browser.value("is_stopping = true");
    browser.until("has_stopped");
    let seen = browser.value("seen");
    let all = seen["kbps"].as_array().unwrap().len();
    let log = || std::fs::read_to_string(&path).unwrap();
    let whole = || Some(log()).filter(|text| text.matches("ot=v").count() >= all);
    let log = until("the last line of the log", whole);
    let (service, fields) = (key.service.clone(), Fields::default());
    let (prefix, together) = ([24, 48], Together::default());
    let reader = Reader { service, prefix, together, path: "/".to_owned(), fields };
    // One interval is as long as the whole, but for midnight.
    let mut table = Table::new(reader, Duration::from_secs(24 * 3600));
    log.lines().for_each(|line| table.on_line(line));
    match &table.rows()[..] {
        [row] => assert_shows(row, &seen),
        rows => println!("not compared, since a day ended: {rows:?}"),
    }
}

fn assert_moved_to_the_better(learnt: &[DecisionBody]) {
    let [.., first, second] = learnt else { panic!("one arm is not enough: {learnt:?}") };
    let at = |arm: &DecisionBody| arm.configuration["knobs"]["gamma"].as_f64().unwrap();
    let slope = (second.reward.unwrap() - first.reward.unwrap()) / (at(second) - at(first));
    let (before, after) = guesses(second).unwrap();
    let rewards = [first, second].map(|arm| (at(arm), arm.reward));
    assert_eq!((after - before).signum(), slope.signum(), "{before} to {after}: {rewards:?}");
    let intervals = second.interval - first.interval;
    assert!(intervals <= 2, "it moved {intervals} intervals after the first arm");
    for arm in learnt {
        let connections = arm.why["decision"]["connections"].as_u64();
        assert_eq!(connections, Some(1), "the session counts once: {arm:?}");
    }
    println!("gamma {before:.0} to {after:.0}, {intervals} after the first arm: {rewards:?}");
}

fn assert_shows(row: &Row, seen: &Value) {
    println!("the player saw {seen}; the log shows {row:?}");
    let number = |name: &str| seen[name].as_f64().expect("a number");
    assert_eq!(row.sessions, 1);
    let kbps = seen["kbps"].as_array().unwrap().iter();
    let kbps: Vec<f64> = kbps.filter_map(Value::as_f64).collect();
    let mean = kbps.iter().sum::<f64>() / kbps.len() as f64 / 1000.0;
    assert!((row.bitrate_mbps.unwrap() - mean).abs() < 1e-3, "{mean}");
    // A stall shows in the next request for video; one that follows before it is not another.
    assert_eq!(row.stalls as f64, number("starved"));
    assert!((1.0..=number("stalls")).contains(&number("starved")));
    let (stalled_s, played_s) = (number("stalled_ms") / 1000.0, number("played_s"));
    let share = stalled_s / (stalled_s + played_s);
    // It goes on a moment after the segment that ended the stall has come, which no key shows.
    let off = ON_ITS_WAY_S * number("stalls") / (stalled_s + played_s);
    assert!((row.rebuffering.unwrap() - share).abs() < off, "{share} {off}");
    // An upper limit: until the first request that is not urgent, by the page's own clock.
    let startup_s = row.startup_s.unwrap();
    assert!((startup_s - number("calm_ms") / 1000.0).abs() < ON_ITS_WAY_S, "{startup_s}");
    assert!(startup_s > number("startup_ms") / 1000.0 - ON_ITS_WAY_S, "{startup_s}");
}
