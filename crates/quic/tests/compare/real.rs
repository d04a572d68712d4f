//! Comparisons on noq over real sockets, next to virtual time. Skipped, with the reason, where the
//! rights for namespaces are missing.

use std::time::Instant;

use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::result::{Comparison, RunRecord};
use trimtab_lab::run::datapath::Datapath;
use trimtab_lab::run::{Recording, pool::Effort};
use trimtab_lab::scenario::Scenario;
use trimtab_noq::Qlog;
use trimtab_quic::{Real, Virtual};

use crate::{LINK, apart, on_noq};

/// Whether runs can be made here; the reason why not, printed. In CI that is a failure.
fn can() -> bool {
    let reason = if !rustix::process::geteuid().is_root() {
        "it needs root, for network namespaces"
    } else if !std::path::Path::new("/dev/net/tun").exists() {
        "there is no /dev/net/tun"
    } else {
        return true;
    };
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
        "CI must run this test: {reason}"
    );
    println!("skipped: {reason}");
    false
}

/// Makes the runs, so many at once, and says whether the machine was quiet enough for exact figures.
fn over_sockets(text: &str, jobs: usize) -> (Result<Comparison, CompareError>, bool) {
    let scenario = Scenario::parse(text).unwrap();
    let datapath = Real::new(&scenario).unwrap();
    let effort = Effort { jobs: Some(jobs), quiet: true };
    let recording = Recording { units: true, series: true };
    let comparison = compare(&scenario, effort, recording, "x", &datapath);
    println!("{datapath:?}");
    (comparison, datapath.warnings().is_empty())
}

/// What an application's users notice.
fn figures(run: &RunRecord) -> Vec<f64> {
    let times = run.rct_ms.as_ref().map(|rct| rct.mean);
    [times, run.bitrate_kbps_mean, run.startup_ms, run.latency_ms].into_iter().flatten().collect()
}

/// All applications at once, each over a link of its own.
#[test]
fn every_application_fares_as_in_virtual_time() {
    if !can() {
        return;
    }
    let text = format!(
        "cc = [\"cubic\"]\n{LINK}duration = \"5s\"\n[[app]]\nkind = \"bulk\"\n\
         [[app]]\nkind = \"download\"\n[[app]]\nkind = \"web\"\n[[app]]\nkind = \"vod\"\n\
         [[app]]\nkind = \"live\"\n"
    );
    let (comparison, quiet) = over_sockets(&text, 5);
    let comparison = comparison.unwrap();
    assert!(comparison.provenance.kernel.is_some_and(|kernel| kernel.starts_with("Linux ")));
    for (real, noq) in comparison.runs.into_iter().zip(on_noq(&text)) {
        let name = &real.app;
        println!("{name}: {:?} over sockets, {:?} in virtual time", figures(&real), figures(&noq));
        assert_eq!((real.datapath.as_str(), real.unfinished), ("quic", 0), "{name}");
        assert!(real.rtt_ms.p50 >= 40.0 && real.utilization <= 1.0, "{name}");
        assert_eq!(real.series.as_ref().map(|series| series.rtt_ms.len()), Some(50), "{name}");
        // A machine that stalls delays what is measured; the warning tells its users.
        let (near, full) = if quiet { (0.1, 0.93) } else { (0.5, 0.6) };
        match name.as_str() {
            "bulk" => assert!(real.utilization > full, "{}", real.utilization),
            "download" | "web" => {
                let sizes = |run: &RunRecord| run.units.iter().map(|u| u.bytes).collect::<Vec<_>>();
                assert_eq!(sizes(&real), sizes(&noq), "{name}: the same requests");
            }
            _ => {}
        }
        for (of_real, of_noq) in figures(&real).into_iter().zip(figures(&noq)) {
            assert!(apart(of_real, of_noq) < near, "{name}: {of_real} and {of_noq}");
        }
    }
}

/// Steered flows and a competitor share a lossy link.
#[test]
fn flows_share_a_link_and_are_steered() {
    if !can() {
        return;
    }
    let text = format!(
        "cc = [\"mortise\", \"switch:cubic,bbr:every=2s\"]\n{LINK}loss = \"0.5%\"\nflows = 2\n\
         stagger = \"500ms\"\nmark = \"1BDP\"\nduration = \"5s\"\n\
         [[app]]\nkind = \"bulk\"\n[[competitor]]\ncc = \"noq:cubic\"\n"
    );
    let runs = over_sockets(&text, 2).0.unwrap().runs;
    for run in &runs {
        let (name, rates) = (&run.cc, &run.flow_throughput_mbps);
        println!("{name}: {rates:?}, loss {}", run.loss_ratio);
        assert_eq!(rates.len(), 3, "{name}");
        assert!(rates.iter().all(|&rate| rate > 0.1), "{name}: {rates:?}");
        assert!(run.utilization > 0.6, "{name}: {}", run.utilization);
        assert!(run.loss_ratio > 0.001 && run.retransmit_ratio > 0.001, "{name}");
    }
    let delta = &runs[0].series.as_ref().unwrap().delta;
    let first = delta[0];
    assert!(delta.iter().any(|delta| *delta != first), "Mortise turns it: {delta:?}");
    let turns: Vec<&str> = runs[1].switches.iter().map(|switch| switch.to.as_str()).collect();
    assert_eq!(turns[0], "bbr", "{turns:?}");
}

/// In slow start every other packet of a large window is lost, which are more gaps than noq bears.
#[test]
fn a_connection_that_ends_fails_its_run_at_once() {
    if !can() {
        return;
    }
    let text = "cc = [\"bbr\"]\ntraces = [\"constant:80Mbit/s\"]\nrtt = \"300ms\"\n\
                buffer = \"30KB\"\nduration = \"30s\"\n[[app]]\nkind = \"bulk\"\n";
    let begin = Instant::now();
    let error = over_sockets(text, 1).0.unwrap_err().to_string();
    assert!(error.starts_with("noq gave up the connection of flow 0 after "), "{error}");
    assert!(error.contains("too many gaps"), "{error}");
    assert!(begin.elapsed().as_secs() < 20, "the run has not waited for its end");
}

#[test]
fn tcp_is_refused_before_any_right_is_asked_for() {
    let text = format!("cc = [\"cubic\"]\ntransport = \"tcp\"\n{LINK}[[app]]\nkind = \"bulk\"\n");
    let scenario = Scenario::parse(&text).unwrap();
    let [real, noq] = [Real::new(&scenario).unwrap_err(), Virtual::new(&scenario).unwrap_err()]
        .map(|e| e.to_string());
    assert!(real.starts_with("--datapath quic runs QUIC"), "{real}");
    assert!(noq.starts_with("--datapath quic-virtual runs QUIC"), "{noq}");
}

#[test]
fn a_run_over_sockets_has_a_log_too() {
    if !can() {
        return;
    }
    let text =
        format!("cc = [\"cubic\"]\n{LINK}seeds = 1\nduration = \"1s\"\n[[app]]\nkind = \"bulk\"\n");
    let scenario = Scenario::parse(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let qlog = Qlog::in_folder(folder.path()).unwrap().at_server();
    let datapath = Real::new(&scenario).unwrap().with_qlog(qlog);
    let effort = Effort { jobs: Some(1), quiet: true };
    compare(&scenario, effort, Recording::default(), "x", &datapath).unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(file.file_name().to_str().unwrap().starts_with("run-0-cubic-seed-0-flow-0-"));
    let log = std::fs::read_to_string(file.path()).unwrap();
    assert!(log.contains("\"scheme\":\"cubic\"") && log.contains("recovery:metrics_updated"));
}
