//! Calls over the interceptors in virtual time: the same record always, and near the simulator's.

use trimtab_lab::compare::compare;
use trimtab_lab::result::{Comparison, RunRecord};
use trimtab_lab::run::Recording;
use trimtab_lab::run::datapath::Datapath;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::Scenario;
use trimtab_webrtc::Virtual;

fn scenario(app: &str) -> Scenario {
    let text = format!(
        "cc = [\"gcc\", \"copa\"]\ntraces = [\"constant:1.5Mbit/s\"]\nrtt = \"40ms\"\n\
         duration = \"20s\"\n[[app]]\nkind = \"{app}\"\n"
    );
    Scenario::parse(&text).expect("a scenario")
}

fn runs(datapath: &dyn Datapath) -> Comparison {
    let effort = Effort { jobs: Some(1), quiet: true };
    let scenario = scenario("conference");
    compare(&scenario, effort, Recording::default(), "", datapath).expect("runs")
}

#[test]
fn equal_calls_give_equal_records() {
    let datapath = Virtual::new(&scenario("conference")).expect("a datapath");
    let [one, other] = [(), ()].map(|()| runs(&datapath));
    let text = |c: &Comparison| format!("{:?}", c.runs);
    assert_eq!(text(&one), text(&other));
}

/// The interceptors have a pacer, feedback and retransmissions of their own.
#[test]
fn a_call_over_the_interceptors_is_near_the_simulators() {
    let virtually = runs(&Virtual::new(&scenario("conference")).expect("a datapath"));
    let simulated = runs(&Simulator);
    for (v, s) in virtually.runs.iter().zip(&simulated.runs) {
        let rate = |run: &RunRecord| run.bitrate_kbps_mean.expect("a call");
        let p95 = |run: &RunRecord| run.frame_delay_ms.expect("a call").p95;
        println!(
            "{}: {:.0} and {:.0} kbit/s, delay at p95 {:.0} and {:.0} ms, VMAF {:.1?} and {:.1?}",
            v.cc,
            rate(v),
            rate(s),
            p95(v),
            p95(s),
            v.vmaf,
            s.vmaf
        );
        let (rates, delays) = (rate(v) / rate(s), p95(v) / p95(s));
        assert!((0.9..1.1).contains(&rates), "{}: {rates}", v.cc);
        // A window and bursts at 2.5 times the rate: what waits where differs.
        let tolerance = if v.cc == "gcc" { 0.15 } else { 0.5 };
        assert!((delays - 1.0).abs() < tolerance, "{}: {delays}", v.cc);
    }
}

#[test]
fn what_is_no_call_is_refused_by_the_run() {
    let datapath = Virtual::new(&scenario("download")).expect("a datapath");
    let effort = Effort { jobs: Some(1), quiet: true };
    let refused = compare(&scenario("download"), effort, Recording::default(), "", &datapath);
    let message = refused.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(message.contains("take --app conference"), "{message}");
}
