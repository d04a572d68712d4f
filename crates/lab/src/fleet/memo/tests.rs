use trimtab_fleet::Summary;

use super::*;

const FLEET: &str = r#"
aggregates = 1
duration = "6h"
connections = 1
baselines = ["copa", "omniscient"]
[app]
kind = "download"
[links]
rate = ["2Mbit/s", "20Mbit/s"]
rtt = ["20ms", "80ms"]
buffer = [0.5, 4]
[[service]]
name = "small"
reward = "mean(throughput)"
incumbent = "cubic"
others = ["bbr"]
[service.knobs]
initial_rate = { min = 0.2, max = 20, scale = "log" }
[service.safe]
initial_rate = 1
"#;

fn seen(connections: u64) -> Vec<Seen> {
    vec![Seen { summary: Summary::new(connections), arms: None, cross: Vec::new() }]
}

#[test]
fn an_algorithm_is_looked_at_once_in_each_interval_and_a_point_of_the_box_each_time() {
    let memo = Memo::of(&FleetScenario::parse(FLEET).unwrap());
    let mut looks = 0_u32;
    let mut count = |n: u64, specs: &[Option<&str>]| {
        let specs: Vec<_> = specs.iter().map(|s| s.map(|s| s.parse().unwrap())).collect();
        let before = looks;
        memo.get(n, &specs, || {
            looks += 1;
            seen(u64::from(looks))
        });
        looks - before
    };
    for algorithm in ["cubic", "bbr", "copa"] {
        assert_eq!([3, 3, 4].map(|n| count(n, &[Some(algorithm)])), [1, 0, 1], "{algorithm}");
    }
    // Those who share a bottleneck see what all of them run.
    assert_eq!(count(3, &[Some("cubic"), Some("bbr")]), 1);
    assert_eq!(count(3, &[Some("bbr"), Some("cubic")]), 1);
    assert_eq!(count(3, &[Some("cubic"), Some("bbr")]), 0);
    for point in [Some("vivace:initial_rate=3"), None] {
        assert_eq!([3, 3].map(|n| count(n, &[point])), [1, 1], "{point:?}");
        assert_eq!([3, 3].map(|n| count(n, &[Some("bbr"), point])), [1, 1], "{point:?}");
    }
    let kept = memo.get(3, &["cubic".parse().ok()], || unreachable!("it is kept"));
    assert_eq!(kept[0].summary.connections(), 1);
}
