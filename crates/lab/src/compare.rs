//! The comparison from beginning to end.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::report::cells::cells;
use crate::result::{Comparison, Provenance, RunRecord, SCHEMA};
use crate::run::Recording;
use crate::run::datapath::{Datapath, RunError};
use crate::run::pool::{Effort, INTERRUPTED, Interrupted, run_all};
use crate::run::prepare::{PrepareError, Prepared, prepare};
use crate::run::record::record;
use crate::scenario::{Job, Scenario, ScenarioError};
use crate::stats::overload::served;
use crate::stats::summary::summarise;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The datapath cannot carry an application.
    #[error(
        "{app} makes media as it goes, and --datapath {datapath} carries requests only: \
         take --datapath sim"
    )]
    Media {
        /// The application.
        app: &'static str,
        /// The datapath.
        datapath: &'static str,
    },
    /// Something that it names is wrong.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// A run could not be carried out; in the simulator only because of an algorithm from outside.
    #[error(transparent)]
    Run(RunError),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Runs a scenario on a datapath. `command` goes into the record; `recording` says what is kept besides
/// numbers.
///
/// # Errors
/// The scenario or something that it names is wrong: nothing has run then. Or the user asked to stop, or a
/// run failed; after the first failure no further one begins.
pub fn compare(
    scenario: &Scenario,
    effort: Effort,
    recording: Recording,
    command: &str,
    datapath: &dyn Datapath,
) -> Result<Comparison, CompareError> {
    let prepared = ready(scenario, datapath)?;
    for warning in prepared.warnings().iter().chain(&datapath.remarks(&prepared)) {
        eprintln!("warning: {warning}");
    }
    let runs = run(&prepared, &prepared.plan.jobs, effort, recording, datapath)?;
    Ok(comparison(&prepared, runs, command, datapath))
}

/// Reads and checks everything that a comparison needs.
///
/// # Errors
/// The scenario or something that it names is wrong, or the datapath cannot carry it.
pub fn ready(scenario: &Scenario, datapath: &dyn Datapath) -> Result<Prepared, CompareError> {
    if !datapath.carries_media()
        && let Some(app) = scenario.app.iter().map(|app| app.kind.info()).find(|info| info.media)
    {
        return Err(CompareError::Media { app: app.name, datapath: datapath.name() });
    }
    Ok(prepare(&scenario.plan()?)?)
}

/// Does these jobs of a comparison, and gives their records in the same order.
///
/// # Errors
/// The user asked to stop, or a run failed; after the first failure no further one begins.
pub(crate) fn run(
    prepared: &Prepared,
    jobs: &[Job],
    effort: Effort,
    recording: Recording,
    datapath: &dyn Datapath,
) -> Result<Vec<RunRecord>, CompareError> {
    let effort = Effort { jobs: effort.jobs.or(datapath.jobs()), ..effort };
    let first_failure = Mutex::new(None);
    let runs = run_all(jobs, effort, |job| {
        if lock(&first_failure).is_some() {
            return None;
        }
        let measured = datapath.measure(prepared, job);
        let checked =
            measured.and_then(|measured| Ok(prepared.check_plugs().map(|()| measured)?));
        match checked {
            Ok(measured) => Some(record(prepared, job, measured, recording, datapath.name())),
            Err(failure) => {
                lock(&first_failure).get_or_insert(failure);
                None
            }
        }
    })?;
    for warning in datapath.warnings() {
        eprintln!("warning: {warning}");
    }
    // A run that was told to stop has failed, too.
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(Interrupted.into());
    }
    match first_failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(CompareError::Run(failure)),
        None => Ok(runs.into_iter().flatten().collect()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sums up the records of all runs, which are in the order of the plan.
pub(crate) fn comparison(
    prepared: &Prepared,
    runs: Vec<RunRecord>,
    command: &str,
    datapath: &dyn Datapath,
) -> Comparison {
    Comparison {
        schema: SCHEMA.to_owned(),
        provenance: Provenance {
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: datapath.system(),
            scenario: prepared.plan.scenario.to_toml(),
            traces: prepared.origins(),
        },
        summary: summarise(&runs),
        cells: cells(&runs),
        served: served(&runs),
        runs,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::run::simulator::Simulator;

    fn scenario(extra: &str) -> Scenario {
        Scenario::parse(&format!(
            "cc = [\"newreno\", \"omniscient\"]\ntraces = [\"step:4Mbit/s,12Mbit/s@5s\"]\nduration = \"20s\"\n{extra}"
        ))
        .unwrap()
    }

    #[test]
    fn the_same_scenario_gives_the_same_bytes_on_any_number_of_cores() {
        let s = scenario(
            "seeds = 2\nflows = [1, 2]\nloss = \"0.5%\"\n[[app]]\nkind = \"download\"\n[[app]]\nkind = \"vod\"\n",
        );
        let with = |jobs| {
            let effort = Effort { jobs: Some(jobs), quiet: true };
            let c = compare(&s, effort, Recording { units: true, series: true }, "x", &Simulator)
                .unwrap();
            assert!(c.runs.iter().all(|r| r.requests > 0 && r.qoe.mean.is_finite()));
            assert!(c.runs.iter().all(|r| r.utilization > 0.0 && r.utilization <= 1.0));
            serde_json::to_string(&c).unwrap()
        };
        let one = with(1);
        assert_eq!(one, with(3));
        let back: Comparison = serde_json::from_str(&one).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), one, "the JSON reads back");
    }

    #[test]
    fn seeing_the_trace_is_better_than_not() {
        // Random losses mislead who cannot see that the link is free.
        let s = scenario("loss = \"1%\"\nseeds = 3\n[[app]]\nkind = \"download\"\n");
        let c =
            compare(&s, Effort { jobs: None, quiet: true }, Recording::default(), "x", &Simulator)
                .unwrap();
        let of = |cc: &str| c.summary.iter().find(|r| r.cc == cc).unwrap();
        assert!(of("omniscient").qoe_mean > of("newreno").qoe_mean);
        assert!(of("newreno").of_omniscient.unwrap().value < 1.0);
    }

    /// RFC 3168 §5: CUBIC takes a mark as a loss, and BBRv1 does not answer. Nothing is sent again for a mark.
    #[test]
    fn who_answers_marks_backs_off() {
        let with = |mark: &str| {
            let s = Scenario::parse(&format!(
                "cc = [\"cubic\", \"bbr\"]\ntraces = [\"constant:20Mbit/s\"]\nbuffer = \"2BDP\"\n\
                 duration = \"20s\"\nwarmup = \"5s\"\n{mark}[[app]]\nkind = \"bulk\"\n"
            ))
            .unwrap();
            let effort = Effort { jobs: None, quiet: true };
            let c = compare(&s, effort, Recording::default(), "x", &Simulator).unwrap();
            assert_eq!(c.provenance.scenario.contains("mark = "), !mark.is_empty());
            c.runs
        };
        let (none, tenth, threshold) =
            (with(""), with("mark = \"10%\"\n"), with("mark = \"0.5BDP\"\n"));
        let [cubic, bbr] = [0, 1].map(|i| tenth[i].throughput_mbps / none[i].throughput_mbps);
        assert!(cubic < 0.2, "CUBIC keeps {cubic} of its throughput");
        assert!(bbr > 0.95, "BBR keeps {bbr} of its throughput");
        assert_eq!(tenth[0].loss_ratio, 0.0, "no queue is left to overflow");
        // A threshold keeps CUBIC's queue at a fraction of the buffer, and the link in use.
        let [without, queue] = [&none, &threshold].map(|runs| runs[0].queue_delay_ms.mean);
        assert!(queue < 0.5 * without, "{queue} ms next to {without} ms");
        assert!(threshold[0].utilization > 0.9, "{}", threshold[0].utilization);
    }

    /// What `trimtab compare --scenario scenarios/links/ecn.toml` runs: of all algorithms only
    /// BBRv1, which does not answer, gets much more than CUBIC.
    #[test]
    fn marks_leave_none_but_bbr_much_more_than_cubic() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/links/ecn.toml");
        let s = Scenario::load(&file).unwrap();
        let c =
            compare(&s, Effort { jobs: None, quiet: true }, Recording::default(), "x", &Simulator)
                .unwrap();
        let cubic = c.summary.iter().find(|row| row.cc == "cubic").unwrap().throughput_mbps;
        for row in &c.summary {
            let (cc, times) = (&row.cc, row.throughput_mbps / cubic);
            println!("{cc}: {:.3} Mbit/s, {times:.2} times CUBIC", row.throughput_mbps);
            let expected = if cc == "bbr" { 5.0..20.0 } else { 0.4..1.3 };
            assert!(expected.contains(&times), "{cc}: {times:.2} times CUBIC");
        }
    }

    /// Floo §5.5.1 on a stable link, in small: what is handed over keeps the loss away.
    #[test]
    fn switches_are_counted_and_cost_less_with_all_that_is_known() {
        let s = Scenario::parse(
            "cc = [\"switch:cubic,bbr:every=8s\", \"switch:cubic,bbr:every=8s:part\", \"cubic\"]\n\
             traces = [\"constant:12Mbit/s\"]\nbuffer = \"1BDP\"\nrtt = \"40ms\"\n\
             duration = \"32s\"\n[[app]]\nkind = \"bulk\"\n",
        )
        .unwrap();
        let c =
            compare(&s, Effort { jobs: None, quiet: true }, Recording::default(), "x", &Simulator)
                .unwrap();
        let of = |i: usize| &c.runs[i].switches;
        let names: Vec<&str> = of(0).iter().map(|s| s.to.as_str()).collect();
        assert_eq!(names, ["bbr", "cubic", "bbr"], "{:?}", of(0));
        assert_eq!((of(1).len(), of(2).len()), (3, 0));
        for (full, part) in of(0).iter().zip(of(1)) {
            assert!(part.loss_ratio > 10.0 * full.loss_ratio, "full {full:?}, part {part:?}");
            // BBR's ProbeRTT, when the minimum of 10 s is due, counts as not yet settled.
            assert!(full.settles == Some(true) && full.settled_ms < Some(3000.0), "{full:?}");
            assert!((full.turn_ms - 8000.0).abs() < 300.0, "{full:?}");
            assert_eq!(part.waited_ms, 0.0);
        }
        let text = crate::report::table::render(
            &c,
            crate::report::table::Style { width: 120, lines: false },
        );
        assert!(
            text.contains("after a switch, and time until") && text.contains("never"),
            "{text}"
        );
    }

    #[test]
    fn a_wrong_formula_shows_its_place_before_anything_runs() {
        let s = scenario("[[app]]\nkind = \"download\"\nqoe = \"T / (D + \"\n");
        let e = compare(&s, Effort::default(), Recording::default(), "x", &Simulator)
            .unwrap_err()
            .to_string();
        assert!(e.contains("column") && e.contains('^'), "{e}");
    }

    /// The simulator under another name; runs with seed 1 fail where it is to.
    struct Lab {
        fails: bool,
        begun: std::sync::atomic::AtomicUsize,
    }

    impl Datapath for Lab {
        fn name(&self) -> &'static str {
            "lab"
        }
        fn system(&self) -> Option<String> {
            Some("Lab 1.0".to_owned())
        }
        fn jobs(&self) -> Option<usize> {
            Some(1)
        }
        fn measure(
            &self,
            prepared: &Prepared,
            job: &crate::scenario::Job,
        ) -> Result<crate::run::record::Measurement, RunError> {
            self.begun.fetch_add(1, Ordering::SeqCst);
            if self.fails && job.seed == 1 {
                return Err("no such interface: name another".into());
            }
            Simulator.measure(prepared, job)
        }
    }

    #[test]
    fn a_run_that_fails_is_the_last_one_and_says_why() {
        let s = scenario("seeds = 4\n[[app]]\nkind = \"bulk\"\n");
        let lab = |fails| Lab { fails, begun: 0.into() };
        let effort = Effort { jobs: None, quiet: true };
        let with = |lab: &Lab| compare(&s, effort, Recording::default(), "x", lab);
        let failing = lab(true);
        let e = with(&failing).unwrap_err();
        assert!(matches!(&e, CompareError::Run(_)), "{e:?}");
        assert_eq!(e.to_string(), "no such interface: name another");
        assert_eq!(failing.begun.into_inner(), 3, "two schemes with seed 0, one with seed 1");
        let c = with(&lab(false)).unwrap();
        assert_eq!((c.runs.len(), c.provenance.kernel.as_deref()), (8, Some("Lab 1.0")));
        assert!(c.runs.iter().all(|run| run.datapath == "lab"));
    }

    #[test]
    fn calls_are_refused_before_anything_runs_where_nothing_carries_media() {
        let s = scenario("[[app]]\nkind = \"bulk\"\n[[app]]\nkind = \"conference\"\n");
        let lab = Lab { fails: false, begun: 0.into() };
        let e = compare(&s, Effort::default(), Recording::default(), "x", &lab).unwrap_err();
        assert_eq!(
            e.to_string(),
            "conference makes media as it goes, and --datapath lab carries requests only: \
             take --datapath sim"
        );
        assert_eq!(lab.begun.into_inner(), 0);
    }

    /// What the record says is all that it takes to get the same numbers again.
    #[test]
    fn the_record_of_a_comparison_repeats_it() {
        let s = scenario(
            "seeds = 2\nfirst_seed = 5\nbuffer = [\"20packets\", \"1BDP\"]\n\
             [[app]]\nkind = \"web\"\n[[competitor]]\ncc = \"cubic\"\n",
        );
        let effort = Effort { jobs: None, quiet: true };
        let run = |s: &Scenario| compare(s, effort, Recording::default(), "x", &Simulator).unwrap();
        let first = run(&s);
        let again = run(&Scenario::parse(&first.provenance.scenario).unwrap());
        assert_eq!(first, again);
        let seeds: Vec<u64> = first.runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds[..4], [5, 5, 6, 6]);
        let [origin] = &first.provenance.traces[..] else { panic!("one trace") };
        assert_eq!((origin.trace.as_str(), origin.sha256.len()), ("step:4Mbit/s,12Mbit/s@5s", 64));
    }
}
