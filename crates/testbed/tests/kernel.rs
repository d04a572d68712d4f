//! Runs on a real kernel. Skipped, with the reason, where the rights or the kernel for them are missing.

use trimtab_kernel::{Doctor, Health};
use trimtab_lab::conform::{Conformance, Subject, Verdict, checks, conform};
use trimtab_lab::result::{Comparison, RunRecord};
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::scenario::Scenario;
use trimtab_testbed::{OnKernel, RealError, Rig};

/// Why these tests cannot run here; in CI they can.
fn reason_to_skip() -> Option<String> {
    let bad = |f: &trimtab_kernel::Finding| f.health == Health::Bad;
    let reason = if !rustix::process::geteuid().is_root() {
        Some("it needs root, for eBPF and network namespaces".to_owned())
    } else if !std::path::Path::new("/dev/net/tun").exists() {
        Some("there is no /dev/net/tun".to_owned())
    } else {
        let findings = Doctor::default().examine();
        let refused = findings.iter().find(|f| f.is_refusal());
        assert_eq!(refused, None, "this kernel has all that is needed, and refuses a program");
        findings.iter().find(|f| bad(f)).map(ToString::to_string)
    };
    if let Some(reason) = &reason {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
            "CI must run this test: {reason}"
        );
        println!("skipped: {reason}");
    }
    reason
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("transport = \"tcp\"\n{text}")).unwrap()
}

/// Runs a scenario on the kernel; `None` where that cannot be.
fn compare(scenario: &Scenario) -> Option<Comparison> {
    if reason_to_skip().is_some() {
        return None;
    }
    let rig = Rig::new(scenario).unwrap();
    let recording = Recording { units: true, series: true };
    let effort = Effort { jobs: Some(2), quiet: true };
    let comparison = trimtab_lab::compare::compare(scenario, effort, recording, "test", &rig);
    println!("{:?}", rig.fidelity());
    Some(comparison.unwrap())
}

fn of<'a>(comparison: &'a Comparison, cc: &str) -> &'a RunRecord {
    comparison.runs.iter().find(|r| r.cc == cc).unwrap()
}

/// The kernel's CUBIC and steered Copa, each for some seconds over a link that changes its rate.
#[test]
fn downloads_over_real_sockets_give_the_record_of_a_simulation() {
    let scenario = scenario(
        "cc = [\"cubic\", \"mortise\"]\ntraces = [\"step:8Mbit/s,24Mbit/s@1s\"]\nduration = \"4s\"\n\
         [[app]]\nkind = \"download\"\n",
    );
    let Some(comparison) = compare(&scenario) else { return };
    assert!(comparison.provenance.kernel.as_deref().is_some_and(|k| k.starts_with("Linux ")));
    for run in &comparison.runs {
        assert_eq!(run.datapath, "kernel");
        // Every request was answered, and its bytes are those that were asked for.
        assert_eq!(run.requests, run.units.len() as u64);
        assert!(run.requests > 0 && run.throughput_mbps > 0.5, "{run:?}");
        assert!(run.rtt_ms.p50 >= 20.0 && run.rtt_ms.p95 < 500.0, "{run:?}");
        assert!(run.utilization > 0.05 && run.utilization <= 1.0, "{run:?}");
        let series = run.series.as_ref().unwrap();
        assert_eq!(series.capacity_mbps.len(), 40);
        assert!(series.cwnd_bytes.iter().any(|w| *w > 10_000.0), "{series:?}");
    }
    // The same requests for both.
    let sizes = |cc| of(&comparison, cc).units.iter().map(|u| u.bytes).collect::<Vec<_>>();
    assert_eq!(sizes("cubic"), sizes("mortise"));

    let delta = |cc| of(&comparison, cc).series.clone().unwrap().delta;
    assert!(delta("cubic").iter().all(|d| d.is_nan()), "CUBIC has no such knob");
    let moved = delta("mortise");
    let (least, most) = moved.iter().fold((f64::MAX, 0.0_f64), |(a, b), d| (a.min(*d), b.max(*d)));
    assert!(least > 0.0 && most / least > 1.02, "the kernel's delta never moved: {moved:?}");

    let json = serde_json::to_string(&comparison).unwrap();
    let back: Comparison = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), json, "the JSON reads back");
}

/// Bulk data of several flows through a small buffer: the link is full, and losses are found and counted.
#[test]
fn several_flows_fill_a_link_and_their_losses_are_counted() {
    let scenario = scenario(
        "cc = [\"cubic\", \"copa:mit\"]\ntraces = [\"constant:24Mbit/s\"]\nbuffer = \"20packets\"\nflows = 4\n\
         duration = \"3s\"\nwarmup = \"1s\"\n[[app]]\nkind = \"bulk\"\n",
    );
    let Some(comparison) = compare(&scenario) else { return };
    for run in &comparison.runs {
        // 24 Mbit/s less the headers.
        assert!((19.0..23.4).contains(&run.throughput_mbps), "{run:?}");
        assert_eq!(run.flow_throughput_mbps.len(), 4);
        assert!(run.flow_throughput_mbps.iter().all(|t| *t > 0.5), "{run:?}");
        // The buffer holds 10 ms, and each way takes 10 ms.
        assert!(run.queue_delay_ms.p95 <= 11.0 && run.rtt_ms.p95 < 40.0, "{run:?}");
    }
    let cubic = of(&comparison, "cubic");
    assert!(cubic.loss_ratio > 0.0 && cubic.retransmit_ratio > 0.0, "{cubic:?}");
    // What is lost is sent again, and little else.
    assert!((cubic.retransmit_ratio - cubic.loss_ratio).abs() < 0.02, "{cubic:?}");
}

/// BBRv3, which Linux lacks, by its name: a link that loses less than it tolerates stays in use.
#[test]
fn bbr3_runs_on_real_sockets() {
    let scenario = scenario(
        "cc = [\"bbr3\"]\ntraces = [\"constant:12Mbit/s\"]\nloss = \"1%\"\nbuffer = \"100KB\"\n\
         duration = \"5s\"\n[[app]]\nkind = \"bulk\"\n",
    );
    let Some(comparison) = compare(&scenario) else { return };
    let run = of(&comparison, "bbr3");
    assert!((8.0..11.8).contains(&run.throughput_mbps), "{run:?}");
}

/// Video ends with the run, and its player's view of it is in the record.
#[test]
fn video_plays_over_real_sockets() {
    let scenario = scenario(
        "cc = [\"bbr\"]\ntraces = [\"constant:12Mbit/s\"]\nduration = \"6s\"\n[[app]]\nkind = \"vod\"\n\
         ladder = \"fast\"\n",
    );
    let Some(comparison) = compare(&scenario) else { return };
    let run = of(&comparison, "bbr");
    assert!(run.requests >= 2 && run.bitrate_kbps_mean.unwrap() > 100.0, "{run:?}");
    assert!(run.startup_ms.unwrap() < 2000.0, "{run:?}");
}

/// The policy begins with CUBIC, and prefers BBR where losses say more than the round-trip time.
#[test]
fn a_learnt_selection_switches_a_running_socket() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/model/small");
    let scenario = scenario(&format!(
        "cc = [\"floo:model={model}:every=1s\"]\ntraces = [\"constant:12Mbit/s\"]\nloss = \"8%\"\n\
         buffer = \"100KB\"\nduration = \"6s\"\n[[app]]\nkind = \"bulk\"\n"
    ));
    let Some(comparison) = compare(&scenario) else { return };
    let [run] = &comparison.runs[..] else { panic!("{:?}", comparison.runs.len()) };
    let selections = run.selections.as_ref().expect("it selects");
    assert!((3..=6).contains(&selections.made), "one a second: {selections:?}");
    assert!(selections.changed >= 1 && selections.fallbacks == 0, "{selections:?}");
    let switches: Vec<_> = run.switches.iter().map(|s| (s.from.as_str(), s.to.as_str())).collect();
    assert_eq!(switches.first(), Some(&("cubic", "bbr")), "{:?}", run.switches);
    assert!(run.switches[0].at_ms >= 1000.0, "{:?}", run.switches);
    // CUBIC has 0.7 Mbit/s of the path with such losses, BBR nearly all of it.
    let rates = &run.series.as_ref().unwrap().throughput_mbps;
    let late = &rates[rates.len() - 20..];
    let late = late.iter().sum::<f64>() / late.len() as f64;
    assert!(late > 6.0, "{late} Mbit/s in the last two seconds: {rates:?}");
}

/// What ships runs with its options, and what the kernel does not have is left out.
#[test]
fn shipped_selections_run_on_the_kernel() {
    let scenario = scenario(
        "cc = [\"floo:every=500ms\", \"floo:counterfactual:every=2s:look=1s\", \"select:antelope\"]\n\
         traces = [\"constant:12Mbit/s\"]\nduration = \"4s\"\n[[app]]\nkind = \"web\"\n",
    );
    let Some(comparison) = compare(&scenario) else { return };
    for run in &comparison.runs {
        let selections = run.selections.as_ref().expect("it selects");
        assert!(selections.made >= 1, "{}: {selections:?}", run.cc);
        assert!(run.requests > 0 && run.throughput_mbps > 0.1, "{run:?}");
        let changes = run.switches.iter().filter(|s| s.from != s.to).count() as u64;
        assert!(changes <= selections.changed + selections.reverts, "{:?}", run.switches);
    }
    let rig = Rig::new(&scenario).unwrap();
    let prepared = trimtab_lab::run::prepare::prepare(&scenario.plan().unwrap()).unwrap();
    let remarks = trimtab_lab::run::datapath::Datapath::remarks(&rig, &prepared);
    let [floo, antelope] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(floo.starts_with("floo:every=500ms: it never chooses westwood"), "{floo}");
    assert!(antelope.contains("never chooses westwood, vegas"), "{antelope}");
}

#[test]
fn what_cannot_run_is_refused_before_anything_does() {
    let with = |text: &str| {
        let text =
            format!("{text}\ntraces = [\"constant:12Mbit/s\"]\n[[app]]\nkind = \"download\"\n");
        Rig::new(&Scenario::parse(&text).unwrap()).unwrap_err()
    };
    let e = with("cc = [\"cubic\", \"omniscient\"]\ntransport = \"tcp\"");
    assert!(matches!(&e, RealError::Scheme { scheme, .. } if scheme == "omniscient"));
    let e = with("cc = [\"cubic\"]\ntransport = \"quic\"");
    assert!(e.to_string().contains("--transport tcp"), "{e}");
}

/// These checks of a subject on the kernel.
fn conformance(subject: &str, names: &[&str]) -> Conformance {
    let checks: Vec<_> = checks().filter(|check| names.contains(&check.name)).collect();
    assert_eq!(checks.len(), names.len());
    let subject = OnKernel::named(subject).unwrap();
    let subjects: [Box<dyn Subject>; 1] = [Box::new(subject)];
    let effort = Effort { jobs: None, quiet: true };
    let conformance = conform(&checks, &subjects, effort).unwrap();
    println!("{:?}\n{:?}", conformance.rows, subjects[0].warnings());
    conformance
}

#[test]
fn the_kernels_cubic_passes_checks_and_says_what_cannot_be_seen_of_it() {
    if reason_to_skip().is_some() {
        return;
    }
    let names = ["initial-window", "window-kept", "one-reduction", "cubic-reduction"];
    let rows = conformance("cubic", &names).rows;
    let words: Vec<_> = rows.iter().map(|row| (row.check.name, row.verdict.word())).collect();
    let verdicts = ["pass", "n/a", "pass", "pass"];
    assert_eq!(words, names.into_iter().zip(verdicts).collect::<Vec<_>>());
    assert!(!rows[0].ours, "it is Linux's");
    let Verdict::NotApplicable(reason) = &rows[1].verdict else { unreachable!("its word is n/a") };
    assert!(reason.contains("TCP_INFO is sampled"), "{reason}");
}

/// The same algorithm in eBPF, but that a loss takes a tenth of its window and not three.
#[test]
fn a_cubic_that_yields_too_little_fails() {
    if reason_to_skip().is_some() {
        return;
    }
    let conformance = conformance("trimtab/cubic:beta=0.9", &["cubic-reduction"]);
    assert!(!conformance.holds());
    let [row] = &conformance.rows[..] else { panic!("{:?}", conformance.rows) };
    let Verdict::Measured(finding) = &row.verdict else { panic!("{:?}", row.verdict) };
    assert!((finding.value - 0.9).abs() < 0.05, "{finding:?}");
}
