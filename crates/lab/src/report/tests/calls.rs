//! Calls as the report shows them, on a made-up call.

use roxmltree::Node;
use trimtab_apps::{CallRecord, FrameRecord, Picture, Still};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::read::{Axis, Chart, attribute, charts, points};
use super::*;
use crate::report::series::POINTS_MAX;

/// Frames of 5 kB every 40 ms, each on the screen 60 ms after its capture. For a second from 10 s
/// on none is, and the frame of 15 s takes 150 ms.
fn call(seconds: u64) -> CallRecord {
    let frame = |i: u64| {
        let captured_at = Time::from_millis(40 * i);
        let delay = match i {
            250..275 => None,
            375 => Some(150),
            _ => Some(60),
        };
        FrameRecord {
            captured_at,
            bytes: Bytes::new(5000),
            asked: Rate::from_mbps(1.0),
            height: 360,
            key: i == 0,
            presented_at: delay.map(|ms| captured_at + Duration::from_millis(ms)),
        }
    };
    CallRecord {
        start: Time::ZERO,
        end: Time::from_secs(seconds),
        interval: Duration::from_millis(40),
        frames: (0..25 * seconds).map(frame).collect(),
        audio: Vec::new(),
        pause: None,
        picture: Picture::default(),
        measured_vmaf: None,
        stills: Vec::new(),
    }
}

/// A call of so long by `gcc`, and one by `copa`.
fn comparison(seconds: u64, stills: &[Still]) -> Comparison {
    let bins = 10 * seconds as usize;
    let of = |cc: &str, qoe| {
        let mut run = run(cc, "bus", 0, qoe);
        run.app = "conference".to_owned();
        run.call = Some(CallRecord { stills: stills.to_vec(), ..call(seconds) });
        run.series = Some(Series {
            bin_ms: 100.0,
            capacity_mbps: vec![2.0; bins],
            target_mbps: vec![1.5; bins],
            ..Series::default()
        });
        run
    };
    let runs = vec![of("gcc", 90.0), of("copa", 80.0), of("omniscient", 95.0)];
    Comparison { summary: summarise(&runs), runs, ..specimen() }
}

/// A chart of `gcc`'s call.
fn chart<'a>(html: &'a str, label: &str) -> Chart<'a> {
    let name = format!("aria-label=\"gcc: {label}\"");
    Chart::read(charts(html).into_iter().find(|svg| svg.contains(&name)).expect("the chart"))
}

#[test]
fn freezes_delays_and_rates_stand_where_the_axes_say() {
    let html = page(&comparison(20, &[]), "", "");
    for label in ["frames/s", "frame delay, ms", "Mbit/s"] {
        let rates = chart(&html, "Mbit/s");
        let chart = chart(&html, label);
        let [freeze] = chart.all("freeze")[..] else { panic!("one freeze") };
        // All share the axis whose ticks stand below the last one.
        let d = freeze.attribute("d").expect("a path");
        let (from, until) = d[1..].split_once('H').expect("two ends");
        let from = from.split(' ').next().expect("a number").parse().expect("a number");
        let until = until.split('V').next().expect("a number").parse().expect("a number");
        let off = rates.rounding(Axis::X);
        assert!((rates.at(Axis::X, from) - 10.02).abs() < off, "{d}");
        assert!((rates.at(Axis::X, until) - 11.06).abs() < off, "{d}");
    }
    let delays = chart(&html, "frame delay, ms");
    let longest: Vec<f64> =
        points(delays.all("line")[0]).iter().map(|(_, y)| delays.at(Axis::Y, *y)).collect();
    // Both ends of 100 columns of 200 ms, of which the four from 10.2 s on have none.
    assert_eq!(longest.len(), 2 * 96, "{longest:?}");
    let late = longest.iter().filter(|ms| (*ms - 150.0).abs() < 1.0).count();
    let usual = longest.iter().filter(|ms| (*ms - 60.0).abs() < 1.0).count();
    assert_eq!((late, usual), (2, 190));
    let rates = chart(&html, "Mbit/s");
    for (class, mbps) in [("line", 1.0), ("target", 1.5)] {
        // The first second has whole frames in less than a second.
        for (_, y) in points(rates.all(class)[0]).into_iter().skip(10) {
            assert!((rates.at(Axis::Y, y) - mbps).abs() < 0.05, "{class}");
        }
    }
}

#[test]
fn the_worst_moments_are_listed_and_numbered() {
    let html = page(&comparison(20, &[]), "", "");
    let frames = chart(&html, "frames/s");
    let numbers: Vec<&str> = frames.all("moment").iter().filter_map(Node::text).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
    // Of frames that are as late as any the earliest are picked.
    let frozen = frames.at(Axis::X, attribute(frames.all("moment")[2], "x"));
    assert!((frozen - 11.06).abs() < 0.1, "{frozen}");
    for text in [
        "<li>10.0 s: frozen for 1040 ms</li>",
        "<li>15.2 s: a frame came 150 ms after its capture</li>",
        "1 freeze, 5.20% of the time",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("<img"), "simulated calls have no pictures");
}

#[test]
fn pictures_stand_with_their_moment_in_the_page_itself() {
    let at = Time::from_millis(11_060);
    let html =
        page(&comparison(20, &[Still { at, seen: vec![1, 2, 3], captured: vec![4] }]), "", "");
    let moment = html.split("frozen for 1040 ms<div").nth(1).expect("the moment has pictures");
    let item = moment.split("</li>").next().expect("an item");
    assert!(item.contains("src=\"data:image/jpeg;base64,AQID\"") && item.contains("base64,BA=="));
    assert_eq!(html.matches("<img").count(), 2 * 3, "of the one moment, by each scheme");
    assert!(!html.contains("http"), "it needs no network");
}

#[test]
fn long_calls_have_no_more_points_and_only_two_schemes_are_unfolded() {
    let [short, long] = [60, 3600].map(|seconds| page(&comparison(seconds, &[]), "", ""));
    assert!(long.len() < 2 * short.len(), "{} and {}", long.len(), short.len());
    let drawn = points(chart(&long, "frame delay, ms").all("line")[0]).len();
    assert!((600..=2 * POINTS_MAX).contains(&drawn), "{drawn}");
    assert_eq!(long.matches("<details class=\"call").count(), 3);
    assert_eq!(long.matches(" open><summary>").count(), 3, "two calls, and the first trace");
    assert!(!long.contains("NaN") && !long.contains("inf\""));
}
