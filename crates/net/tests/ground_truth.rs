//! Our links against what Mahimahi did: its logs replayed, packet by packet; and the statistics of the
//! recorded traces.

mod common;

use std::sync::Arc;

use trimtab_net::Trace;
use trimtab_net::mahimahi_log::{Log, replay};
use trimtab_units::Rate;

/// One log of `groundtruth/links`, its trace, and its numbers of arrivals, departures and drops.
fn agrees(log: &str, trace: &str, counts: (usize, usize, usize)) {
    let Some(shared) = common::shared() else { return };
    let log = Log::load(&shared.join(format!("groundtruth/links/{log}.log.gz"))).unwrap();
    let trace = Trace::load(&shared.join(format!("{trace}.trace.gz"))).unwrap();
    let result = replay(&log, &log.link(Arc::new(trace)));
    assert_eq!((result.arrivals, result.departures, result.drops), counts);
    let first = result.mismatches.iter().take(5).collect::<Vec<_>>();
    assert!(first.is_empty(), "{} differences: {first:#?}", result.mismatches.len());
}

#[test]
fn cubic_at_12_mbps() {
    let log = "bulk-cubic-r12-rtt20-b1-l0-1";
    agrees(log, "groundtruth/links/const12", (30_186, 30_112, 74));
}

#[test]
fn four_bbr_flows_at_48_mbps() {
    let log = "bulk-bbrx4-r48-rtt20-b1-l0-1";
    agrees(log, "groundtruth/links/const48", (177_433, 161_226, 16_207));
}

#[test]
fn bbr_download_over_recorded_lte() {
    let log = "download-bbr-nyc-timessquare-3199718-b20-1";
    agrees(log, "traces/cellular-lte/nyc-timessquare-3199718", (48_395, 40_319, 8_076));
}

/// `traces/INDEX.csv` has the statistics of each trace, computed by other code.
#[test]
fn statistics_of_the_recorded_traces() {
    let Some(shared) = common::shared() else { return };
    let index = std::fs::read_to_string(shared.join("traces/INDEX.csv")).unwrap();
    let mut lines = index.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut checked = 0;
    for line in lines.step_by(9) {
        let fields: Vec<&str> = line.split(',').collect();
        let column = |name: &str| fields[names.iter().position(|n| *n == name).unwrap()];
        let number = |name: &str| column(name).parse::<f64>().unwrap();
        let stats = Trace::load(&shared.join("traces").join(column("file"))).unwrap().stats();
        let near = |name: &str, ours: f64| {
            // The index has three decimals, and our rates are whole bytes per second.
            assert!((ours - number(name)).abs() < 0.00052, "{line}: {name} is {ours} here");
        };
        near("duration_s", stats.duration.as_secs_f64());
        for (name, rate) in [
            ("mean_mbps", stats.mean),
            ("median_100ms_mbps", stats.median_100ms),
            ("p5_mbps", stats.p5),
            ("p95_mbps", stats.p95),
        ] {
            near(name, Rate::mbps(rate));
        }
        near("cv", stats.cv);
        near("outage_fraction", stats.outage_fraction);
        checked += 1;
    }
    assert!(checked > 20);
}
