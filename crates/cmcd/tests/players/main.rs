//! hls.js and dash.js as they are, in Chromium, behind nginx as the docs configure it: what the log
//! and the module for players report, compared with what the page saw.
//!
//! Skipped, with the reason, where a program or the players are missing; CI has to have them.
//! `./dev players` installs them.

#[path = "../../../engine/tests/common/browser.rs"]
#[allow(dead_code, reason = "the tests of the dashboard use the rest")]
mod browser;
mod site;

use std::time::{Duration as StdDuration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use trimtab_cmcd::{
    Event, Fields, ListenOptions, Listener, Reader, Request, Sessions, Slot, State, Statistics,
    Table,
};
use trimtab_fleet_client::edge::{Interval, Key, Together};
use trimtab_units::{Duration, Time};

use browser::Browser;
use site::Site;

/// One interval is as long as the whole, but for midnight.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// A busy machine reacts so late, each time: a stall begins and ends, a bitrate changes.
const LATE_S: f64 = 0.5;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Time::from_millis(since.as_millis() as u64)
}

fn reader() -> Reader {
    let (service, path) = ("tv".parse().unwrap(), "/media/".to_owned());
    let (prefix, together) = ([24, 48], Together::default());
    Reader { service, prefix, together, path, fields: Fields::default() }
}

/// Lets the network of the page have so much, in kbit/s.
fn throttle(browser: &mut Browser, kbps: f64) {
    let rate = kbps * 1000.0 / 8.0;
    let network = json!({
        "offline": false, "latency": 0, "downloadThroughput": rate, "uploadThroughput": -1,
    });
    browser.tell("Network.emulateNetworkConditions", &network);
}

/// Plays, stalls, plays on, and goes away; what the page saw.
fn watch(browser: &mut Browser, site: &Site, player: &str) -> Value {
    browser.tell("Network.enable", &json!({}));
    throttle(browser, 8000.0);
    let url = format!("http://127.0.0.1:{}/page.html?player={player}", site.port);
    browser.tell("Page.navigate", &json!({ "url": url }));
    browser.until("window.session !== undefined");
    browser.value("video.play().then(() => true)");
    browser.until("video.currentTime > 5");
    throttle(browser, 40.0);
    // What is on its way may end a first stall soon.
    browser.until("session.shown.stalledMs > 1500");
    throttle(browser, 8000.0);
    browser.until("session.shown.state === 'p'");
    let place = browser.value("video.currentTime").as_f64().unwrap();
    browser.until(&format!("video.currentTime > {}", place + 4.0));
    assert_eq!(browser.value("errors"), json!([]));
    let other = format!("http://127.0.0.1:{}/media/", site.port);
    browser.tell("Page.navigate", &json!({ "url": other }));
    browser.until("location.pathname === '/media/' && localStorage.getItem('seen') !== null");
    let seen = browser.value("localStorage.getItem('seen')");
    serde_json::from_str(seen.as_str().unwrap()).unwrap()
}

/// The reports that were posted, until the last one of a session that ends.
fn posted(listener: &Listener) -> Vec<(Event, Time)> {
    let (mut all, start) = (Vec::new(), Instant::now());
    loop {
        while let Some(post) = listener.take() {
            assert_eq!(post.address.to_string(), "127.0.0.1", "as nginx wrote it");
            all.extend(post.events.into_iter().map(|event| (event, now())));
        }
        if all.iter().any(|(event, _)| event.state == Some(State::Quit)) {
            return all;
        }
        assert!(start.elapsed() < StdDuration::from_secs(30), "the last beacon: {all:?}");
        std::thread::sleep(StdDuration::from_millis(20));
    }
}

fn test(player: &str) {
    let Some(mut browser) = Browser::start() else { return };
    let address = "127.0.0.1:0".parse().unwrap();
    let client = Some("x-real-ip".parse().unwrap());
    let listener = Listener::start(ListenOptions { address, client, journal: None }).unwrap();
    let Some(site) = Site::start(listener.address()) else { return };
    let began = now();
    let seen = watch(&mut browser, &site, player);
    let reports = posted(&listener);
    println!("{player}: the page saw {seen}");

    let slot = Slot { interval: Interval::at(began, DAY), version: 1, ends: began + DAY };
    let (reader, mut sessions) = (reader(), Sessions::default());
    let log = site.log();
    let mut table = Table::new(reader.clone(), DAY);
    for text in log.lines() {
        table.on_line(text);
        if let Some((key, line)) = reader.read(text).unwrap() {
            let data = line.data.as_ref().unwrap();
            let request = Request { started: line.started, ended: line.ended, data };
            sessions.on_request(&key, request, Some(slot));
        }
    }
    assert_eq!(table.unreadable, (0, None));
    let key: Key = "tv/127.0.0.0/24".parse().unwrap();
    for (event, at) in &reports {
        sessions.on_event(&key, event, *at, |_| Some(slot));
        // What is sent again counts once.
        sessions.on_event(&key, event, *at, |_| Some(slot));
    }
    assert_eq!(sessions.len(), 1, "requests and reports have one sid");
    let over = sessions.take_over(slot.ends, Duration::ZERO);
    let [(_, _, shown)] = &over[..] else { panic!("{over:?}") };
    println!("{player}: reports show {shown:?}");
    assert_shows(shown, &seen);
    // Requests alone: the bitrate that was asked for, and that it stalled.
    let rows = table.rows();
    println!("{player}: requests alone show {rows:?}");
    assert_eq!(rows.iter().map(|row| row.sessions).max(), Some(1));
    let mbps = rows[0].bitrate_mbps.expect("the player sends br");
    assert!((0.4..3.1).contains(&mbps), "{mbps}");
    // A player gives up some requests, also one with `bs`; the log has no `200` for it.
    let says_bs = |text: &str| text.contains("bs%2C") && text.contains(r#""status":200"#);
    let is_said = log.lines().any(says_bs);
    assert_eq!(rows.iter().map(|row| row.stalls).sum::<u64>() >= 1, is_said, "{log}");
}

fn assert_shows(shown: &Statistics, seen: &Value) {
    let number = |name: &str| seen[name].as_f64().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert_eq!(shown.stalls as f64, number("stalls"));
    let startup_ms = shown.startup.expect("it began").as_secs_f64() * 1000.0;
    assert!((startup_ms - number("startupMs")).abs() <= 1.0, "{startup_ms}");
    let changes = number("stalls") * 2.0;
    let all_s = number("played_s") + number("still_s");
    let share = shown.rebuffering.expect("it played");
    let still = number("still_s") / all_s;
    assert!((share - still).abs() < LATE_S * changes / all_s, "{share} {still}");
    assert!(share > 1.0 / all_s, "it stood still for more than a second: {share}");
    let mbps = shown.bitrate.expect("it is shown").mbps();
    let mean = number("kbit") / number("played_s") / 1000.0;
    // So wrong a bitrate may be around its changes: twice from the lowest to the highest.
    assert!((mbps - mean).abs() < 2.6 * LATE_S * 2.0 / all_s, "{mbps} {mean}");
}

#[test]
fn hls_js_reports_what_the_viewer_saw() {
    test("hls");
}

#[test]
fn dash_js_reports_what_the_viewer_saw() {
    test("dash");
}
