//! The report on made-up results that have everything a report can show.

mod calls;
mod read;

use super::*;
use crate::result::{Provenance, RctRecord, SCHEMA, Series, UsersRecord};
use crate::stats::summary::summarise;
use crate::testing::run;

/// A small pseudo-random number in 0 to 1, the same on every machine.
fn noise(n: u64) -> f64 {
    let n = (n ^ 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((n ^ (n >> 31)) % 1000) as f64 / 1000.0
}

/// A minute of a run: the numbers of its trace and scheme seed the noise.
fn series_of(cc: &str, speed: f64, (quality, delay): (f64, f64), t: u64, c: u64) -> Series {
    let bins = 0..600_u32;
    let wave = |i: u32| 1.0 + 0.6 * libm::sin(f64::from(i) / 25.0) + 0.3 * noise(u64::from(i) + t);
    let steered = |f: fn(f64) -> f64| -> Vec<f64> {
        if is_steered(cc) { bins.clone().map(|i| f(wave(i))).collect() } else { Vec::new() }
    };
    Series {
        bin_ms: 100.0,
        capacity_mbps: bins.clone().map(|i| speed * wave(i)).collect(),
        throughput_mbps: bins
            .clone()
            .map(|i| speed * wave(i) * quality * (0.7 + 0.3 * noise(u64::from(i * 3) + c)))
            .collect(),
        queue_delay_ms: bins.clone().map(|i| delay * (0.3 + noise(u64::from(i) + c))).collect(),
        delta: steered(|w| 0.05 * w),
        lambda: steered(|w| 30.0 * w),
        tau: steered(|w| 22.0 * w * w),
        ..Series::default()
    }
}

fn specimen() -> Comparison {
    let schemes = [
        ("cubic", 0.86, 70.0),
        ("bbr", 0.93, 35.0),
        ("copa:mit", 0.80, 6.0),
        ("copa:mvfst", 0.94, 30.0),
        ("vegas", 0.74, 9.0),
        ("mortise", 0.985, 24.0),
        ("oracle:copa", 0.99, 22.0),
        ("omniscient", 1.1, 2.0),
    ];
    let mut runs = Vec::new();
    for (a, app) in ["download", "vod"].into_iter().enumerate() {
        for t in 0..6_u64 {
            for (c, (cc, quality, delay)) in schemes.into_iter().enumerate() {
                let speed = 4.0 + 6.0 * t as f64;
                let wobble = 1.0 + 0.08 * (noise(t * 31 + c as u64 + 7 * a as u64) - 0.5);
                let mut r = run(cc, &format!("nyc-bus-{t}"), 0, speed * quality * wobble);
                r.app = app.to_owned();
                r.throughput_mbps = speed * quality * wobble * 0.8;
                r.queue_delay_ms.mean = delay * wobble;
                r.units = (0..120)
                    .map(|i| {
                        let u = noise(i * 97 + t);
                        UnitRecord {
                            duration_ms: 80.0 + 900.0 * u * u / quality,
                            qoe: speed * quality * (0.4 + u),
                            bitrate_kbps: (app == "vod").then_some(
                                [800.0, 1500.0, 3000.0, 6000.0]
                                    [(4.0 * u * quality.min(0.99)) as usize],
                            ),
                            ..UnitRecord::default()
                        }
                    })
                    .collect();
                r.rct_ms = RctRecord::of(r.units.iter().map(|u| u.duration_ms));
                if app == "vod" {
                    r.rct_ms = None;
                    r.qoe.mean = quality * wobble * 2.0 - 1.9;
                    r.users = UsersRecord::of(&[r.qoe.mean], false);
                    r.stall_ratio = Some(0.02 / quality);
                    r.bitrate_kbps_mean = Some(3000.0 * quality);
                }
                r.series = Some(series_of(cc, speed, (quality, delay), t, c as u64));
                runs.push(r);
            }
        }
    }
    Comparison {
        schema: SCHEMA.to_owned(),
        provenance: Provenance {
            command: "trimtab compare --html out/demo.html".to_owned(),
            version: "0.1.0".to_owned(),
            kernel: None,
            scenario: "name = \"demo\"\n".to_owned(),
            traces: Vec::new(),
        },
        summary: summarise(&runs),
        cells: Vec::new(),
        served: None,
        runs,
    }
}

/// With `TRIMTAB_REPORT_TO` set to a path, the page is left there to be looked at.
#[test]
fn the_page_is_whole_and_needs_no_network() {
    let comparison = specimen();
    let html = page(&comparison, "Demo <cellular>", "Downloads and video over six links.");
    if let Some(path) = std::env::var_os("TRIMTAB_REPORT_TO") {
        std::fs::write(path, &html).unwrap();
    }
    for needed in [
        "Demo &lt;cellular&gt;",
        "trimtab compare --html",
        "better experience than",
        "mortise",
        "λ",
        "prefers-color-scheme",
    ] {
        assert!(html.contains(needed), "{needed} is missing");
    }
    for forbidden in ["http://", "https://", "//cdn", "<link", "@import", "url(", "NaN", "inf\""] {
        assert!(!html.contains(forbidden), "{forbidden} in the page");
    }
    // Every element that is opened is closed, as far as the ones that can break the page go.
    for tag in ["svg", "section", "details", "figure", "table", "div", "g", "button", "main"] {
        let opened =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
    assert!(html.len() < 3_000_000, "{} bytes are too many to send by mail", html.len());
    assert_eq!(html, page(&comparison, "Demo <cellular>", "Downloads and video over six links."));
}

#[test]
fn an_empty_comparison_still_has_a_page() {
    let empty = Comparison { summary: Vec::new(), runs: Vec::new(), ..specimen() };
    assert!(page(&empty, "", "").contains("</html>"));
}

#[test]
fn the_name_of_a_trace_is_escaped_once() {
    let trace = crate::run::links::trace(&"constant:12Mbit/s".parse().unwrap()).unwrap();
    let html = trace_page("a < b & c", &trace);
    assert!(html.contains("<h1>a &lt; b &amp; c</h1>"), "{html}");
    assert!(html.contains("aria-label=\"capacity of a &lt; b &amp; c\""), "{html}");
    assert!(!html.contains("a < b") && !html.contains("&amp;lt;"), "{html}");
}
