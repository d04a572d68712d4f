//! Comparisons on noq in virtual time, next to the simulator; those over sockets are in `real.rs`.

mod real;

use trimtab_lab::compare::compare;
use trimtab_lab::result::{Comparison, RunRecord};
use trimtab_lab::run::datapath::Datapath;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::run::{Recording, pool::Effort};
use trimtab_lab::scenario::Scenario;
use trimtab_noq::Qlog;
use trimtab_quic::Virtual;

fn on(datapath: &dyn Datapath, scenario: &Scenario) -> Comparison {
    let effort = Effort { jobs: Some(2), quiet: true };
    let recording = Recording { units: true, series: true };
    compare(scenario, effort, recording, "x", datapath).unwrap()
}

fn on_noq(text: &str) -> Vec<RunRecord> {
    let scenario = Scenario::parse(text).unwrap();
    on(&Virtual::new(&scenario).unwrap(), &scenario).runs
}

fn both(text: &str) -> impl Iterator<Item = (RunRecord, RunRecord)> {
    let scenario = Scenario::parse(text).unwrap();
    on_noq(text).into_iter().zip(on(&Simulator, &scenario).runs)
}

const LINK: &str = "traces = [\"constant:12Mbit/s\"]\nrtt = \"40ms\"\nbuffer = \"1BDP\"\n";

#[test]
fn the_same_seed_gives_the_same_record_and_another_seed_another() {
    let text = "cc = [\"mortise\", \"bbr3\"]\ntraces = [\"wifi:seed=1\"]\nloss = \"0.5%\"\n\
                jitter = \"2ms\"\nflows = 2\nseeds = 2\nduration = \"6s\"\n\
                [[app]]\nkind = \"download\"\n[[app]]\nkind = \"web\"\n\
                [[competitor]]\ncc = \"cubic\"\n";
    let scenario = Scenario::parse(text).unwrap();
    let once = || {
        // Another certificate, and other keys.
        let datapath = Virtual::new(&scenario).unwrap();
        serde_json::to_string(&on(&datapath, &scenario)).unwrap()
    };
    let one = once();
    assert_eq!(one, once());
    let runs: Vec<RunRecord> = serde_json::from_str::<Comparison>(&one).unwrap().runs;
    assert!(runs.iter().all(|run| run.datapath == "quic-virtual" && run.requests > 0));
    let [first, second] =
        [0, 1].map(|seed| runs.iter().find(|run| run.seed == seed && run.cc == "bbr3").unwrap());
    assert_ne!(first.throughput_mbps, second.throughput_mbps);
}

/// The same record with logs as without, and in the logs what the scheme did.
#[test]
fn each_flow_of_each_run_has_a_log_with_its_name() {
    let text = format!(
        "cc = [\"mortise\", \"cubic\"]\n{LINK}duration = \"3s\"\n[[app]]\nkind = \"bulk\"\n\
         [[competitor]]\ncc = \"noq:cubic\"\n"
    );
    let scenario = Scenario::parse(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let qlog = Qlog::in_folder(folder.path()).unwrap().at_server();
    let datapath = Virtual::new(&scenario).unwrap().with_qlog(qlog);
    let logged = serde_json::to_value(on(&datapath, &scenario).runs).unwrap();
    assert_eq!(logged, serde_json::to_value(on_noq(&text)).unwrap());
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    // noq's own controller has none.
    let [mortise, cubic] = &files[..] else { panic!("{files:?}") };
    for (file, begins, scheme) in [
        (mortise, "run-0-mortise-seed-0-flow-0-", "mortise"),
        (cubic, "run-1-cubic-seed-0-flow-0-", "cubic"),
    ] {
        assert!(file.file_name().unwrap().to_str().unwrap().starts_with(begins), "{file:?}");
        let log = std::fs::read_to_string(file).unwrap();
        assert!(log.contains(&format!("\"scheme\":\"{scheme}\"")), "{log}");
        assert_eq!(log.contains("trimtab:steered"), scheme == "mortise", "{file:?}");
    }
}

#[test]
fn a_clean_link_is_used_to_the_full() {
    let text = format!(
        "cc = [\"cubic\", \"newreno\"]\n{LINK}duration = \"20s\"\nwarmup = \"3s\"\n\
         [[app]]\nkind = \"bulk\"\n"
    );
    for run in on_noq(&text) {
        println!("{}: {:.3} of the link", run.cc, run.utilization);
        assert!(
            run.utilization > 0.98 && run.utilization <= 1.0,
            "{}: {}",
            run.cc,
            run.utilization
        );
    }
}

/// A viewer who comes late has not seen all when the run ends. A segment that arrives after that leaves
/// the next one due, which nobody asks for.
#[test]
fn a_response_may_come_after_its_client_has_stopped() {
    let text = "cc = [\"cubic\"]\ntraces = [\"constant:0.2Mbit/s\"]\nrtt = \"40ms\"\n\
                duration = \"30s\"\n[[app]]\nkind = \"download\"\n[[competitor]]\n\
                cc = \"cubic\"\napp = \"live\"\nstart = \"3s\"\n";
    for (noq, sim) in both(text) {
        assert!(noq.unfinished > 0, "the run waits for a download, and so for the viewer");
        assert_eq!((noq.requests, noq.unfinished), (sim.requests, sim.unfinished));
    }
}

/// How far two figures are apart, as a share of the second.
fn apart(a: f64, b: f64) -> f64 {
    (a / b - 1.0).abs()
}

/// Throughput, queue and loss of bulk data, of algorithms that answer to losses and of others. A
/// random loss hits other packets here, so what it costs is alike over time only.
#[test]
fn bulk_data_is_as_in_the_simulator() {
    for (loss, seeds, goodput) in [("0%", 1, 0.02), ("1%", 4, 0.1)] {
        let text = format!(
            "cc = [\"newreno\", \"cubic\", \"bbr\", \"bbr3\", \"copa:mvfst\", \"vivace\"]\n\
             {LINK}loss = \"{loss}\"\nseeds = {seeds}\nduration = \"20s\"\nwarmup = \"3s\"\n\
             [[app]]\nkind = \"bulk\"\n"
        );
        // The simulator's BBRv3 gets 8.6 to 10 Mbit/s with these seeds: the mean over them is compared.
        let mut rates = std::collections::BTreeMap::<String, (f64, f64)>::new();
        for (noq, sim) in both(&text) {
            let sums = rates.entry(noq.cc.clone()).or_default();
            *sums = (sums.0 + noq.throughput_mbps, sums.1 + sim.throughput_mbps);
            let figures = |run: &RunRecord| {
                let (rate, queue) = (run.throughput_mbps, run.queue_delay_ms.mean);
                format!("{rate:.2} Mbit/s, queue {queue:.1} ms, loss {:.4}", run.loss_ratio)
            };
            let both = format!("{loss}, {}: {}; {}", noq.cc, figures(&noq), figures(&sim));
            println!("{both}");
            // noq's pacer lets bursts of ten packets out: 10 ms of this link.
            assert!((noq.queue_delay_ms.mean - sim.queue_delay_ms.mean).abs() < 7.0, "{both}");
            assert!((noq.loss_ratio - sim.loss_ratio).abs() < 0.015, "{both}");
            assert!((noq.retransmit_ratio - noq.loss_ratio).abs() < 0.002, "{both}");
            let rtt = noq.rtt_ms.mean - noq.queue_delay_ms.mean;
            assert!((39.0..43.0).contains(&rtt), "{both}: {rtt} ms without the queue");
        }
        for (cc, (noq, sim)) in rates {
            assert!(
                apart(noq, sim) < goodput,
                "{loss}, {cc}: {noq} and {sim}, sums over the seeds"
            );
        }
    }
}

#[test]
fn every_application_fares_as_in_the_simulator() {
    let text = format!(
        "cc = [\"cubic\", \"bbr3\", \"mortise\"]\n{LINK}duration = \"40s\"\n\
         [[app]]\nkind = \"download\"\n[[app]]\nkind = \"web\"\n[[app]]\nkind = \"vod\"\n\
         [[app]]\nkind = \"live\"\n"
    );
    for (noq, sim) in both(&text) {
        let name = format!("{} of {}", noq.app, noq.cc);
        assert_eq!((noq.requests, noq.unfinished), (sim.requests, sim.unfinished), "{name}");
        let figures = |run: &RunRecord| {
            let times = run.rct_ms.as_ref().map(|rct| rct.mean);
            [times, run.bitrate_kbps_mean, run.startup_ms, run.latency_ms]
        };
        let each = figures(&noq).into_iter().zip(figures(&sim));
        println!("{name}: {:?}; {:?}", figures(&noq), figures(&sim));
        for (noq, sim) in each.clone().filter_map(|(noq, sim)| noq.zip(sim)) {
            assert!(apart(noq, sim) < 0.1, "{name}: {noq} and {sim}");
        }
        assert!(each.clone().all(|(noq, sim)| noq.is_some() == sim.is_some()), "{name}");
        assert!(each.flat_map(|(noq, _)| noq).count() > 0, "{name}");
        assert!(noq.users.score().is_finite(), "{name}");
    }
}

#[test]
fn every_kind_of_scheme_runs_and_shows_what_it_did() {
    let text = format!(
        "cc = [\"mortise:bbr3\", \"muses\", \"muses:lstm\", \"floo\", \"select:power:every=4s\", \
         \"switch:cubic,bbr:every=8s\", \"switch:cubic,bbr:every=8s:part\"]\n{LINK}\
         duration = \"30s\"\nwarmup = \"3s\"\n[[app]]\nkind = \"bulk\"\n"
    );
    for (noq, sim) in both(&text) {
        let name = &noq.cc;
        println!("{name}: {:.2} and {:.2} Mbit/s", noq.throughput_mbps, sim.throughput_mbps);
        assert!(apart(noq.throughput_mbps, sim.throughput_mbps) < 0.1, "{name}");
        let turns = |run: &RunRecord| {
            run.switches.iter().map(|switch| switch.to.clone()).collect::<Vec<_>>()
        };
        if name.starts_with("switch") {
            assert_eq!(turns(&noq), ["bbr", "cubic", "bbr"], "{name}");
            for (noq, sim) in noq.switches.iter().zip(&sim.switches) {
                assert!(
                    (noq.at_ms - sim.at_ms).abs() < 100.0,
                    "{name}: {} and {}",
                    noq.at_ms,
                    sim.at_ms
                );
            }
        }
        let made = |run: &RunRecord| run.selections.as_ref().map(|selections| selections.made);
        assert_eq!(made(&noq), made(&sim), "{name}");
    }
}

/// Flows of the scheme next to competitors that come and go, each a connection of its own.
#[test]
fn flows_share_the_link_with_competitors() {
    let text = format!(
        "cc = [\"cubic\"]\n{LINK}flows = 2\nstagger = \"1s\"\nduration = \"30s\"\n\
         warmup = \"5s\"\n[[app]]\nkind = \"bulk\"\n\
         [[competitor]]\ncc = \"newreno\"\nflows = 2\n\
         [[competitor]]\ncc = \"bbr3\"\nstart = \"10s\"\nstop = \"15s\"\n"
    );
    for (noq, sim) in both(&text) {
        println!("{:?}; {:?}", noq.flow_throughput_mbps, sim.flow_throughput_mbps);
        assert_eq!(noq.flow_throughput_mbps.len(), 5);
        assert!(noq.flow_throughput_mbps.iter().all(|&rate| rate > 0.3));
        assert!(noq.utilization > 0.97, "{}", noq.utilization);
        for (noq, sim) in noq.flow_throughput_mbps.iter().zip(&sim.flow_throughput_mbps) {
            assert!((0.6..1.6).contains(&(noq / sim)), "{noq} and {sim} Mbit/s");
        }
    }
}

/// noq's own algorithms, as schemes and as competitors of ours.
#[test]
fn noqs_own_algorithms_run_next_to_ours() {
    let text = format!(
        "cc = [\"noq:cubic\", \"cubic\", \"noq:newreno\", \"newreno\", \"noq:bbr3\", \"bbr3\"]\n\
         {LINK}duration = \"20s\"\nwarmup = \"3s\"\n[[app]]\nkind = \"bulk\"\n"
    );
    let runs = on_noq(&text);
    for run in &runs {
        let (rate, queue) = (run.throughput_mbps, run.queue_delay_ms.mean);
        println!("{}: {rate:.2} Mbit/s, queue {queue:.1} ms, loss {:.4}", run.cc, run.loss_ratio);
        // noq's BBRv3 probes at times of its own, from run to run.
        assert!(run.utilization > 0.8, "{}: {}", run.cc, run.utilization);
        let cwnd = &run.series.as_ref().unwrap().cwnd_bytes;
        assert!(cwnd.iter().all(|&bytes| bytes > 2_000.0), "{}: {cwnd:?}", run.cc);
    }
    for pair in runs.chunks(2) {
        assert!(apart(pair[0].throughput_mbps, pair[1].throughput_mbps) < 0.2, "{}", pair[0].cc);
    }
    let text = format!(
        "cc = [\"cubic\"]\n{LINK}duration = \"40s\"\nwarmup = \"5s\"\n[[app]]\n\
         kind = \"bulk\"\n[[competitor]]\ncc = \"noq:cubic\"\n"
    );
    let scenario = Scenario::parse(&text).unwrap();
    assert!(Virtual::new(&scenario).unwrap().warnings().is_empty());
    let unseeded = Scenario::parse(&text.replace("noq:cubic", "noq:bbr3")).unwrap();
    let warnings = Virtual::new(&unseeded).unwrap().warnings();
    assert!(warnings[0].starts_with("noq:bbr3 draws the times of its probes"), "{warnings:?}");
    let run = &on_noq(&text)[0];
    let share = run.flow_throughput_mbps[0] / run.flow_throughput_mbps.iter().sum::<f64>();
    println!("our CUBIC has {share:.2} of the link next to noq's");
    assert!((0.25..0.75).contains(&share), "{share}");
}

fn mean_ms(run: &RunRecord) -> f64 {
    run.rct_ms.as_ref().expect("it has requests").mean
}

/// RFC 9959: what is known of the path spares the search for its capacity, here as in the simulator.
#[test]
fn a_connection_resumes() {
    let text = "cc = [\"cubic\", \"resume:cwnd=2.5MB,rtt=200ms:cubic\"]\nduration = \"10s\"\n\
                traces = [\"constant:100Mbit/s\"]\nrtt = \"200ms\"\nbuffer = \"1BDP\"\n\
                [[app]]\nkind = \"download\"\nsize = [\"2MB\", \"2MB\"]\n";
    let runs: Vec<_> = both(text).collect();
    for (noq, sim) in &runs {
        let (noq_ms, sim_ms) = (mean_ms(noq), mean_ms(sim));
        println!("{}: {noq_ms:.0} ms, simulated {sim_ms:.0} ms", noq.cc);
        // The handshake of noq confirms the path already; in the simulator the initial window does.
        assert!((0.75..1.1).contains(&(noq_ms / sim_ms)), "{}", noq.cc);
    }
    assert!(mean_ms(&runs[1].0) < mean_ms(&runs[0].0) * 0.75);
}

/// RFC 3168: where the link marks, senders keep the queue short and lose nothing.
#[test]
fn marks_reach_the_sender() {
    let text = format!(
        "cc = [\"cubic\", \"bbr3\"]\n{LINK}mark = \"0.3BDP\"\nduration = \"20s\"\nwarmup = \"5s\"\n\
         [[app]]\nkind = \"bulk\"\n"
    );
    for (noq, sim) in both(&text) {
        // Slow start overflows the buffer before the first mark is answered.
        let (loss, queue) = (noq.loss_ratio, noq.queue_delay_ms.mean);
        println!("{}: loss {loss} and {}, queue {queue} ms", noq.cc, sim.loss_ratio);
        assert!(loss < 0.003 && (loss - sim.loss_ratio).abs() < 0.001);
        assert!(queue < 10.0, "of 40 ms");
        assert!(apart(noq.throughput_mbps, sim.throughput_mbps) < 0.05);
    }
}

#[test]
fn what_it_cannot_run_is_refused_before_anything_runs() {
    let refused = |text: &str| {
        let text = format!("{text}\n{LINK}[[app]]\nkind = \"download\"\n");
        Virtual::new(&Scenario::parse(&text).unwrap()).unwrap_err().to_string()
    };
    let tcp = refused("cc = [\"cubic\"]\ntransport = \"tcp\"");
    assert!(tcp.contains("--transport quic") && tcp.contains("--datapath kernel"), "{tcp}");
    let own = Scenario::parse(&format!("cc = [\"noq:bbr3\"]\n{LINK}[[app]]\nkind = \"bulk\"\n"));
    let effort = Effort { jobs: Some(1), quiet: true };
    let own = compare(&own.unwrap(), effort, Recording::default(), "x", &Simulator).unwrap_err();
    assert!(own.to_string().contains("take --datapath quic-virtual"), "{own}");
    for bound in ["omniscient", "oracle:copa", "static-best", "oracle:select"] {
        let problem = refused(&format!("cc = [\"cubic\", {bound:?}]"));
        assert!(problem.starts_with(&format!("{bound}: ")), "{problem}");
        assert!(problem.contains("--datapath sim"), "{problem}");
    }
}
