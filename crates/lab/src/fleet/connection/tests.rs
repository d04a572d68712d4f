//! The links of a fleet: what is drawn for whom.

use super::*;

const FLEET: &str = r#"
aggregates = 3
duration = "24h"
connections = 8
[app]
kind = "download"
size = ["100KB", "300KB"]
[links]
rate = ["2Mbit/s", "20Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [0.5, 4]
loss = [0.001, 0.01]
load = [1.0, 0.7, 0.5]
changes = 3
[[service]]
name = "small"
interval = "1h"
reward = "mean(throughput)"
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
[service.safe]
initial_rate = 1
"#;

fn fleet(more: &str) -> FleetScenario {
    FleetScenario::parse(&FLEET.replacen("[[service]]", &format!("{more}\n[[service]]"), 1))
        .unwrap()
}

/// A connection of the first aggregate in the first band of a weekday.
fn connection(scenario: &FleetScenario, interval: u64, number: u64) -> Connection {
    Connection::of(scenario, 7, Sample::Run, (0, interval, number), (0, false))
}

/// Values of tables of the standard normal distribution.
#[test]
fn normal_quantiles_are_those_of_the_tables() {
    for (share, value) in
        [(0.5, 0.0), (0.8413447, 1.0), (0.975, 1.959964), (0.99, 2.326348), (0.999, 3.090232)]
    {
        assert!((quantile(share) - value).abs() < 5e-4, "{share}: {}", quantile(share));
        assert!((quantile(1.0 - share) + value).abs() < 5e-4, "{share} from below");
    }
    assert!(quantile(0.0).is_finite() && quantile(1.0).is_finite());
}

#[test]
fn draws_between_two_values_take_equal_factors_alike() {
    assert_eq!(log_between(0.0, (2.0, 32.0)), 2.0);
    assert!((log_between(0.5, (2.0, 32.0)) - 8.0).abs() < 1e-12);
    assert!((log_between(1.0, (2.0, 32.0)) - 32.0).abs() < 1e-12);
    assert_eq!(log_between(0.25, (0.0, 8.0)), 2.0, "from zero there are no factors");
}

#[test]
fn the_connections_of_an_interval_spread_over_the_whole_range() {
    for interval in 0..20 {
        let at = |n| stratum(7, [3, 1, 0, interval], (n, 8));
        let mut parts: Vec<u64> = (0..8).map(|n| (8.0 * at(n)) as u64).collect();
        parts.sort_unstable();
        assert_eq!(parts, [0, 1, 2, 3, 4, 5, 6, 7], "one in each eighth");
    }
    let order =
        |interval| (0..8).map(|n| stratum(7, [3, 1, 0, interval], (n, 8))).collect::<Vec<_>>();
    assert_ne!(order(0), order(1));
    assert_eq!(order(0), order(0));
}

#[test]
fn links_lie_in_the_ranges_of_the_scenario() {
    let scenario = fleet("");
    for (aggregate, change) in (0..200).flat_map(|a| [(a, 0), (a, 1)]) {
        let links = links(&scenario, 7, aggregate, change);
        assert!((2.0..=20.0).contains(&links.rate_mbps), "{links:?}");
        assert!((0.02..=0.08).contains(&links.rtt_s), "{links:?}");
        assert!((0.5..=4.0).contains(&links.buffer_bdp), "{links:?}");
        assert!((0.001..=0.01).contains(&links.loss), "{links:?}");
    }
    // The median of a log-uniform range is the geometric mean of its ends, √40.
    let slower = (0..200).filter(|&a| links(&scenario, 7, a, 0).rate_mbps < 6.324_555);
    assert!((80..=120).contains(&slower.count()));
}

#[test]
fn changes_come_one_after_the_other_and_stay() {
    let scenario = fleet("");
    for aggregate in 0..50 {
        let by: Vec<u64> = (0..=24).map(|n| changes_by(&scenario, 7, aggregate, n)).collect();
        assert!(by.windows(2).all(|pair| pair[0] <= pair[1]), "{by:?}");
        assert_eq!(by[24], 3, "all of them by the end");
    }
}

#[test]
fn load_takes_its_share_and_weekends_half_of_it() {
    let scenario = fleet("");
    let rate = |band, weekend| {
        let of = (0, 3, 2);
        Connection::of(&scenario, 7, Sample::Run, of, (band, weekend)).rate.mbps()
    };
    for (band, weekend, share) in
        [(1, false, 0.7), (2, false, 0.5), (0, true, 1.0), (1, true, 0.85), (2, true, 0.75)]
    {
        let got = rate(band, weekend) / rate(0, false);
        assert!((got - share).abs() < 1e-5, "band {band}, weekend {weekend}: {got}");
    }
}

#[test]
fn an_outage_takes_capacity_and_adds_loss_while_it_lasts() {
    let (calm, bad) =
        (fleet(""), fleet("[outage]\nfrom = 4\nuntil = 6\ncapacity = 0.2\nloss = 0.05"));
    for interval in 0..8 {
        let (before, with) = (connection(&calm, interval, 1), connection(&bad, interval, 1));
        let (share, loss) = if (4..6).contains(&interval) { (0.2, 0.05) } else { (1.0, 0.0) };
        assert!((with.rate.mbps() / before.rate.mbps() - share).abs() < 1e-5, "{interval}");
        assert!((with.loss - before.loss - loss).abs() < 1e-12, "{interval}");
        assert_eq!((with.seed, with.rtt), (before.seed, before.rtt), "the same connection");
    }
}

#[test]
fn what_hindsight_looks_at_are_other_connections_over_the_same_links() {
    let scenario = fleet("");
    let of = |sample, number| Connection::of(&scenario, 7, sample, (0, 5, number), (0, false));
    let (run, apart) = (of(Sample::Run, 0), of(Sample::Apart, 0));
    assert_eq!((run.rate, run.rtt, run.buffer), (apart.rate, apart.rtt, apart.buffer));
    assert!(run.seed != apart.seed && run.quantile != apart.quantile);
    assert_ne!(run.seed, of(Sample::Run, 1).seed);
}

#[test]
fn a_policer_passes_its_share() {
    let scenario = fleet("[links.policer]\nshare = 0.25\nbucket = \"2s\"");
    let connection = connection(&scenario, 0, 0);
    let policer = connection.policer.unwrap();
    assert!((policer.rate.mbps() / connection.rate.mbps() - 0.25).abs() < 1e-6);
    assert_eq!(policer.burst, connection.rate * Duration::from_secs(2));
}
