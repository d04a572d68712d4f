//! Logs in the format qlog, as somebody else's reader finds them.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Setting, World};
use trimtab_noq::units::{Bytes, Duration, Time};
use trimtab_noq::{Config, Qlog, Safety};

/// The header, and each event: whether Cloudflare's reader knows it, and what it made of it.
struct Read {
    header: Value,
    events: Vec<(bool, Value)>,
}

impl Read {
    /// Reads the only log in a folder.
    fn of(folder: &Path) -> Self {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let files: Vec<PathBuf> = files.collect();
        assert_eq!(files.len(), 1, "{files:?}");
        // In a build of its own, see there.
        let read = Command::new(env!("CARGO"))
            .args(["run", "--locked", "--quiet", "--profile", "test"])
            .args(["-p", "trimtab-qlog-reader", "--"])
            .arg(&files[0])
            .output()
            .unwrap();
        let (out, said) = (read.stdout, String::from_utf8_lossy(&read.stderr));
        assert!(read.status.success(), "{said}");
        let text = String::from_utf8(out).unwrap();
        let mut lines = text.lines();
        let header = serde_json::from_str(lines.next().unwrap()).unwrap();
        let events = lines.map(|line| {
            let (kind, event) = line.split_once(' ').unwrap();
            (kind == "known", serde_json::from_str(event).unwrap())
        });
        let read = Self { header, events: events.collect() };
        // It skips what it cannot read.
        let written = fs::read(&files[0]).unwrap();
        let written = written.iter().filter(|&&byte| byte == 0x1E).count();
        assert_eq!(1 + read.events.len(), written, "of records in the file");
        read
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().map(|(_, event)| event).filter(move |event| event["name"] == name)
    }

    /// The place of the first event that is so.
    fn first(&self, is: impl Fn(&Value) -> bool) -> usize {
        self.events.iter().position(|(_, event)| is(event)).unwrap()
    }
}

/// A transfer under Mortise, then under CUBIC, whose queue the guard takes for harm.
#[test]
fn a_reader_of_others_finds_what_the_steering_did() {
    let folder = tempfile::tempdir().unwrap();
    let qlog = Qlog::in_folder(folder.path()).unwrap().at_server().named("transfer");
    let safety = Safety {
        delay: Duration::from_millis(50),
        after: Duration::from_secs(3),
        ..Safety::default()
    };
    let config = Config::new("mortise").unwrap().with_model("T - 50*D").unwrap();
    let config = config.with_guard(safety).with_qlog(qlog.clone());
    let mut world =
        World::with(&config, &Setting { buffer: 4.0, loss: 0.0005, ..Setting::default() });
    world.run_until(Time::from_secs(4));
    world.handle.set_knob("delta", 0.3).unwrap();
    world.run_until(Time::from_secs(5));
    world.handle.set_scheme("cubic").unwrap();
    world.run_until(Time::from_secs(15));
    let end = world.handle.metrics().unwrap();
    assert!(end.lost > Bytes::ZERO && end.fallbacks > 0, "{end:?}");
    drop(world);
    qlog.flush();

    let read = Read::of(folder.path());
    assert_eq!(read.header["qlog_version"], "0.3");
    let trace = &read.header["trace"];
    assert_eq!(trace["vantage_point"]["type"], "server");
    assert_eq!(trace["common_fields"]["group_id"], "transfer");
    let times: Vec<f64> = read.events.iter().map(|(_, e)| e["time"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] == 0.0 && times.last() > Some(&14_000.0));
    // The reader knows the events of QUIC, and takes ours as they are.
    for (known, event) in &read.events {
        let name = event["name"].as_str().unwrap();
        assert_eq!(*known, name.starts_with("recovery:"), "{event}");
        assert!(*known || name.starts_with("trimtab:"), "{event}");
    }

    let parameters = read.named("recovery:parameters_set").next().unwrap();
    assert!(parameters["data"]["initial_congestion_window"].as_u64() >= Some(12_000));
    let windows: Vec<u64> = read
        .named("recovery:metrics_updated")
        .filter_map(|event| event["data"]["congestion_window"].as_u64())
        .collect();
    assert!(windows.len() > 50 && windows.iter().all(|window| *window > 0), "{windows:?}");
    // Once a round trip: of 40 ms at least, in 15 s.
    assert!(read.named("recovery:metrics_updated").count() <= 15_000 / 40 + 1);
    assert!(read.named("recovery:packet_lost").count() > 0);
    for state in ["slow_start", "application_limited", "congestion_avoidance"] {
        let is_it = |event: &&Value| event["data"]["new"] == state;
        let count = read.named("recovery:congestion_state_updated").filter(is_it).count();
        assert!(count > 0, "{state}");
    }

    // The steering, in the order of time.
    let scheme = |new: &str, trigger: &str| {
        read.first(|event| {
            let data = &event["data"];
            event["name"] == "trimtab:scheme_set"
                && data["new"] == new
                && data["trigger"] == trigger
        })
    };
    let turned = |event: &Value| {
        let data = &event["data"];
        event["name"] == "trimtab:steered" && data["knobs"]["delta"].as_f64() > Some(0.0)
    };
    let order = [
        scheme("mortise", "begin"),
        read.first(turned),
        read.first(|event| event["name"] == "trimtab:knob_set" && event["data"]["value"] == 0.3),
        scheme("cubic", "application"),
        read.first(|event| event["name"] == "trimtab:algorithm_switched"),
        scheme("copa", "guard"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    let (_, steered) = &read.events[order[1]];
    assert_eq!(
        (&steered["data"]["reason"], &steered["data"]["lambda"]),
        (&"preference".into(), &50.0.into())
    );
    let (_, switched) = &read.events[order[4]];
    assert_eq!(
        (&switched["data"]["old"], &switched["data"]["new"]),
        (&"copa".into(), &"cubic".into())
    );
    assert_eq!(read.events[order[5]].1["data"]["harm"], "delay");
}
