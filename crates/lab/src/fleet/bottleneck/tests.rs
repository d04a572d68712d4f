//! Connections over one link.

use super::*;
use crate::fleet::connection::Sample;
use crate::fleet::scenario::FleetScenario;

const FLEET: &str = r#"
aggregates = 2
duration = "24h"
connections = 4
[app]
kind = "download"
size = ["100KB", "300KB"]
[links]
rate = ["2Mbit/s", "20Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [0.5, 4]
loss = [0.001, 0.01]
[[service]]
name = "small"
interval = "1h"
reward = "mean(throughput)"
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
[service.safe]
initial_rate = 1
"#;

fn fleet(shared: &str) -> FleetScenario {
    FleetScenario::parse(&FLEET.replacen("[[service]]", &format!("{shared}\n[[service]]"), 1))
        .unwrap()
}

fn connection(scenario: &FleetScenario, number: u64) -> Connection {
    Connection::of(scenario, 7, Sample::Run, (0, 0, number), (0, false))
}

fn specs(names: &[&str]) -> Vec<Option<Spec>> {
    names.iter().map(|name| Some(name.parse().unwrap())).collect()
}

/// A download of s bytes over r bytes per second takes at least s / r and a round trip.
#[test]
fn a_connection_is_no_faster_than_its_link() {
    let scenario = fleet("");
    for number in 0..4 {
        let connection = connection(&scenario, number);
        for spec in [Some("bbr".parse::<Spec>().unwrap()), Some("cubic".parse().unwrap()), None] {
            let connections = vec![connection.clone()];
            let bottleneck = Bottleneck { connections, shared: &scenario.links.shared };
            let (came, others) = bottleneck.run(&[spec]);
            assert!(came.len() == 1 && others.is_empty());
            let came = came[0];
            assert!(came.throughput_mbps < connection.rate.mbps(), "{came:?}");
            assert!(came.rtt_s >= connection.rtt.as_secs_f64(), "{came:?}");
            let least = 100e3 * 8e-6 / connection.rate.mbps() + connection.rtt.as_secs_f64();
            assert!(came.request_time_s >= least, "{came:?}: not below {least} s");
            assert!((0.0..0.5).contains(&came.loss), "{came:?}");
            assert_eq!((came.rebuffering, came.bitrate_mbps), (0.0, 0.0), "no video");
        }
    }
}

/// What connections and flows of others get together is at most what the link carries.
#[test]
fn those_on_a_link_divide_it() {
    let scenario =
        fleet("[links.shared]\nconnections = 4\nwithin = \"2s\"\ncross = [\"cubic\", \"bbr\"]");
    let shared = &scenario.links.shared;
    let connections: Vec<Connection> = (0..4).map(|n| connection(&scenario, n)).collect();
    let (rate, rtt) = (connections[0].rate.mbps(), connections[0].rtt.as_secs_f64());
    let begun: Vec<f64> = connections.iter().map(|c| c.begins).collect();
    assert!(begun.iter().all(|at| (0.0..1.0).contains(at)) && begun[0] != begun[1], "{begun:?}");
    let bottleneck = Bottleneck { connections: connections.clone(), shared };
    let (came, others) = bottleneck.run(&specs(&["cubic"; 4]));
    assert_eq!((came.len(), others.len()), (4, 2));
    let of_others: f64 = others.iter().map(|other| other.throughput_mbps).sum();
    assert!(of_others < rate && others.iter().all(|o| o.throughput_mbps > 0.0), "{others:?}");
    assert!(others.iter().all(|o| o.rtt_s >= rtt && o.loss < 0.5), "{others:?}");
    // Alone on the same link they get it sooner.
    let alone = Shared::default();
    for (connection, shared) in connections.iter().zip(&came) {
        let mut own = connection.clone();
        own.rate = connections[0].rate;
        let bottleneck = Bottleneck { connections: vec![own], shared: &alone };
        let (own, _) = bottleneck.run(&specs(&["cubic"]));
        assert!(own[0].request_time_s < shared.request_time_s, "{:?} vs. {shared:?}", own[0]);
    }
}

/// A flow of BBR next to CUBIC takes more of a short queue than CUBIC does (Hock et al. 2017).
#[test]
fn selfish_connections_cost_the_flows_of_others() {
    let text = FLEET
        .replace("[\"100KB\", \"300KB\"]", "[\"4MB\", \"4001KB\"]")
        .replace("[0.5, 4]", "[0.5, 0.6]")
        .replace("[0.001, 0.01]", "[0.0, 0.0]")
        .replace(
            "[[service]]",
            "[links.shared]\nconnections = 2\nwithin = \"10s\"\ncross = [\"cubic\"]\n[[service]]",
        );
    let scenario = FleetScenario::parse(&text).unwrap();
    let left = |cc: &str| {
        let connections = (0..2).map(|n| connection(&scenario, n)).collect();
        let bottleneck = Bottleneck { connections, shared: &scenario.links.shared };
        bottleneck.run(&specs(&[cc; 2])).1[0]
    };
    let (bbr, cubic) = (left("bbr"), left("cubic"));
    assert!(bbr.throughput_mbps < cubic.throughput_mbps, "{bbr:?} vs. {cubic:?}");
    assert!(bbr.loss > cubic.loss, "{bbr:?} vs. {cubic:?}");
}
