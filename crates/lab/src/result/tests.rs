//! Records: what they sum up, and what their JSON keeps.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::report::cells::cells;
use crate::stats::summary::summarise;
use crate::testing::run;

#[test]
fn experience_is_summed_up_by_its_mean_and_percentiles() {
    // 1 to 101: percentile p is 1 + p.
    let got = QoeRecord::of((1..=101).rev().map(f64::from));
    assert_eq!(got, QoeRecord { mean: 51.0, p5: 6.0, p50: 51.0, p95: 96.0 });
    assert_eq!(QoeRecord::of([]), QoeRecord::default(), "nothing was delivered");
    assert_eq!(QoeRecord::of([f64::NAN, 3.0]).mean, 3.0, "what has no score does not count");
    let got = RctRecord::of((1..=101).map(f64::from)).unwrap();
    assert_eq!(got, RctRecord { mean: 51.0, p50: 51.0, p90: 91.0, p95: 96.0, p99: 100.0 });
    assert_eq!(RctRecord::of([]), None);
}

fn versus(change_percent: Option<f64>) -> Versus {
    Versus {
        cc: "cubic".to_owned(),
        pairs: 3,
        score_percent: change_percent,
        score_ci95: change_percent.map(|v| [v - 1.0, v + 1.0]),
        score_difference: -0.5,
        score_difference_ci95: Some([-0.75, -0.25]),
        change_percent,
        change_ci95: change_percent.map(|v| [v - 1.0, v + 1.0]),
        ratio_of_means_percent: Some(99.0),
        ratio_of_means_ci95: None,
        difference: -0.5,
        difference_ci95: Some([-0.75, -0.25]),
        better_share: 0.0,
    }
}

#[test]
fn a_change_is_shown_in_percent_only_where_that_has_a_meaning() {
    let ratio = versus(Some(-12.34)).shown(Scale::Ratio);
    assert_eq!((ratio.value, ratio.ci95, ratio.percent), (-12.34, Some([-13.34, -11.34]), true));
    assert_eq!(ratio.text(ratio.value), "-12.3%");
    for difference in
        [versus(Some(-12.34)).shown(Scale::Difference), versus(None).shown(Scale::Ratio)]
    {
        assert_eq!((difference.value, difference.ci95), (-0.5, Some([-0.75, -0.25])));
        assert_eq!(difference.text(difference.value), "-0.500");
        assert_eq!(difference.text(0.25), "+0.250");
    }
}

/// A comparison in which every optional part is there in some runs and not in others.
fn drawn(seed: u64) -> Comparison {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut runs = Vec::new();
    for (trace, cc, seed) in
        (0..6).flat_map(|t| ["cubic", "mortise", "omniscient"].map(|cc| (t, cc, 0)))
    {
        let mut any = || libm::exp(40.0 * random.random::<f64>() - 20.0);
        let mut run = run(cc, &format!("t{trace}"), seed, any());
        run.cell.rtt_steps = if trace % 2 == 0 { "step:9ms,8ms@7s" } else { "" }.to_owned();
        run.cell.jitter_ms = if trace % 2 == 0 { 0.0 } else { any() };
        run.rtt_ms = RttRecord { mean: any(), p50: any(), p95: any() };
        run.jain = (trace > 2).then(&mut any);
        run.friendliness = (trace > 3).then(&mut any);
        run.flow_throughput_mbps = (0..trace).map(|_| any()).collect();
        run.latency_ms = (trace == 1).then(&mut any);
        run.stalls = (trace == 1).then_some(4);
        run.switches = (0..trace)
            .map(|i| SwitchRecord {
                at_ms: any(),
                from: "cubic".to_owned(),
                to: "bbr".to_owned(),
                waited_ms: any(),
                loss_ratio: any(),
                turn_ms: any(),
                settled_ms: (i > 1).then(&mut any),
                settles: (i > 0).then_some(i > 1),
                queue_delay_ms: any(),
            })
            .collect();
        run.selections = (trace == 4).then(|| SelectionsRecord {
            made: 9,
            changed: 2,
            fallbacks: 1,
            reverts: 0,
            distrust: Some("rtt is \"odd\"\n".to_owned()),
        });
        runs.push(run);
    }
    Comparison {
        schema: SCHEMA.to_owned(),
        provenance: Provenance {
            command: "trimtab compare --qoe 'T < \"λ\"'".to_owned(),
            version: "1".to_owned(),
            kernel: seed.is_multiple_of(2).then(|| "6.18".to_owned()),
            scenario: "name = \"x\"\n".to_owned(),
            traces: vec![TraceOrigin { trace: "t0".to_owned(), sha256: "ab".to_owned() }],
        },
        summary: summarise(&runs),
        cells: cells(&runs),
        served: None,
        runs,
    }
}

/// Numbers of all magnitudes, to the last digit.
#[test]
fn the_json_of_a_comparison_reads_back_as_the_same_one() {
    for seed in 0..20 {
        let comparison = drawn(seed);
        let json = serde_json::to_string_pretty(&comparison).unwrap();
        assert_eq!(serde_json::from_str::<Comparison>(&json).unwrap(), comparison);
    }
}

#[test]
fn what_a_run_does_not_have_is_not_in_its_json() {
    let json = serde_json::to_value(run("cubic", "t", 0, 1.0)).unwrap();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    for absent in
        ["stall_ratio", "jain", "friendliness", "switches", "selections", "units", "series"]
    {
        assert!(!keys.contains(&absent), "{absent}: {keys:?}");
    }
    assert!(json["cell"].get("jitter_ms").is_none() && json["cell"]["flows"] == 1, "{json}");
    assert_eq!((&json["transport"], &json["rct_ms"]["p99"]), (&"quic".into(), &3000.0.into()));
}

/// A file of an earlier version, which lacks what came later.
#[test]
fn older_records_read_with_what_they_meant() {
    let mut json = serde_json::to_value(drawn(1)).unwrap();
    json.as_object_mut().unwrap().remove("cells");
    for run in json["runs"].as_array_mut().unwrap() {
        let run = run.as_object_mut().unwrap();
        run.retain(|key, _| {
            !["datapath", "transport", "switches", "selections"].contains(&key.as_str())
        });
    }
    let old: Comparison = serde_json::from_value(json).unwrap();
    assert!(old.cells.is_empty());
    assert!(
        old.runs.iter().all(|run| run.datapath == "sim" && run.transport == TransportKind::Quic)
    );
    assert!(old.runs.iter().all(|run| run.switches.is_empty() && run.selections.is_none()));
}
