//! Conferences and cloud games in the simulator, from the scenario to the record.

use trimtab_lab::compare::compare;
use trimtab_lab::report::table::{Style, render};
use trimtab_lab::result::{Comparison, RunRecord};
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::Scenario;

fn result(text: &str) -> Comparison {
    recorded(text, Recording { units: true, series: false })
}

fn recorded(text: &str, recording: Recording) -> Comparison {
    let scenario = Scenario::parse(text).unwrap();
    compare(&scenario, Effort { jobs: None, quiet: true }, recording, "x", &Simulator).unwrap()
}

fn run<'a>(c: &'a Comparison, cc: &str, rivals: &str) -> &'a RunRecord {
    c.runs.iter().find(|r| r.cc == cc && r.cell.rivals == rivals).unwrap()
}

#[test]
fn a_conference_is_scored_by_what_its_viewer_saw() {
    let c = result(
        "cc = [\"gcc\", \"mortise:gcc\", \"mortise\"]\ntraces = \"constant:2Mbit/s\"\nrtt = \"40ms\"\n\
         buffer = \"4BDP\"\nduration = \"60s\"\n[[app]]\nkind = \"conference\"\n\
         [[rivals]]\nname = \"nobody\"\n\
         [[rivals]]\nname = \"cubic\"\n[[rivals.competitor]]\ncc = \"cubic\"\n",
    );
    for run in &c.runs {
        let (vmaf, delay) = (run.vmaf.unwrap(), run.frame_delay_ms.unwrap());
        let drop = run.drop_ratio.unwrap();
        // Mortise Eq. 13.
        let total = 0.5 * vmaf + 0.3 * (100.0 - delay.mean / 3.0).max(0.0) + 20.0 * (1.0 - drop);
        assert!((run.qoe.mean - total).abs() < 1e-9, "{} {total}", run.qoe.mean);
        // A few frames that are seconds late take the mean above the 95th percentile.
        assert!(delay.mean > 40.0 && delay.p95 > 40.0, "{delay:?}");
        assert!((0.0..1.0).contains(&run.freeze_ratio.unwrap()));
        assert_eq!((run.requests, run.stalls, run.rct_ms), (0, None, None));
        assert_eq!(run.units.len(), 1, "a call is one unit");
    }
    let [alone, shared] = ["nobody", "cubic"].map(|rivals| run(&c, "gcc", rivals));
    assert!(alone.bitrate_kbps_mean.unwrap() > 1_000.0, "{:?}", alone.bitrate_kbps_mean);
    assert!(alone.qoe.mean > 70.0 && alone.drop_ratio.unwrap() < 0.025, "{:?}", alone.drop_ratio);
    let steered = run(&c, "mortise:gcc", "nobody");
    assert!(steered.qoe.mean > 70.0 && steered.drop_ratio.unwrap() < 0.02, "{:?}", steered.qoe);
    let delay = alone.frame_delay_ms.unwrap();
    assert!(delay.mean <= delay.p95, "{delay:?}");
    assert!(shared.frame_delay_ms.unwrap().mean > alone.frame_delay_ms.unwrap().mean);
    assert!(shared.rivals.is_some());
    let text = render(&c, Style { width: 140, lines: false });
    for column in ["VMAF", "frame delay", "dropped", "frozen"] {
        assert!(text.contains(column), "{column}: {text}");
    }
    assert_eq!(result_again(&c), c.runs, "the same bytes");
}

/// The runs of the scenario that a record has.
fn result_again(c: &Comparison) -> Vec<RunRecord> {
    result(&c.provenance.scenario).runs
}

#[test]
fn games_have_a_score_of_their_own_and_settings_are_heard() {
    let c = result(
        "cc = [\"gcc\"]\ntraces = \"constant:12Mbit/s\"\nrtt = \"20ms\"\nbuffer = \"4BDP\"\n\
         duration = \"20s\"\n\
         [[app]]\nkind = \"cloud-game\"\n\
         [[app]]\nname = \"low\"\nkind = \"conference\"\nresolution = \"180p\"\n\
         picture = \"fit\"\n",
    );
    let of = |app: &str| c.runs.iter().find(|r| r.app == app).unwrap();
    let (game, low) = (of("cloud-game"), of("low"));
    let delay = game.frame_delay_ms.unwrap().mean;
    assert!((35.0..80.0).contains(&delay), "{delay}");
    let spoilt = ((delay - 50.0) / 200.0).clamp(0.0, 1.0);
    let kept = 1.0 - game.drop_ratio.unwrap();
    let total = 0.3 * game.vmaf.unwrap() + 50.0 * (1.0 - spoilt) + 20.0 * kept;
    assert!((game.qoe.mean - total).abs() < 1e-3, "{} {total}", game.qoe.mean);
    let kbps = low.bitrate_kbps_mean.unwrap();
    assert!((200.0..310.0).contains(&kbps), "{kbps}");
    // Mortise Eq. 16.
    let fit = 41.06 + 30.53 * (kbps / 1000.0 + 0.1481).ln();
    assert!((low.vmaf.unwrap() - fit).abs() < 1e-3, "{:?} {fit}", low.vmaf);
}

#[test]
fn a_recording_has_the_frames_of_a_call_and_what_its_encoder_was_given() {
    let recording = Recording { units: false, series: true };
    let c = recorded(
        "cc = [\"gcc\"]\ntraces = \"constant:2Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"4BDP\"\n\
         duration = \"20s\"\n[[app]]\nkind = \"conference\"\n[[app]]\nkind = \"bulk\"\n",
        recording,
    );
    let of = |app: &str| c.runs.iter().find(|r| r.app == app).unwrap();
    let (run, bulk) = (of("conference"), of("bulk"));
    let (call, series) = (run.call.as_ref().unwrap(), run.series.as_ref().unwrap());
    assert_eq!((call.frames.len(), call.audio.len()), (600, 0), "sound is left out");
    assert_eq!(Some(call.freeze_ratio()), run.freeze_ratio);
    assert!(call.stills.is_empty(), "nobody saw a picture");
    // Headers and sound are in what is given, and not in what is asked of the encoder.
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let given = mean(&series.target_mbps[100..]);
    let asked: Vec<f64> = call.frames[300..].iter().map(|frame| frame.asked.mbps()).collect();
    assert!(given > 1.04 * mean(&asked) && given < 2.2, "{given} {}", mean(&asked));
    assert!(bulk.call.is_none());
    assert!(bulk.series.as_ref().unwrap().target_mbps.iter().all(|rate| rate.is_nan()));
}
