//! How soon Mortise is where it should be after the capacity steps (Mortise Fig. 9), in the simulator and on this
//! machine's kernel.
//!
//! Where it should be is what the best constant δ on the link after the step is, found by trying
//! many (`oracle.rs`). How soon it is there is read from the course of δ (`arrival.rs`), and the
//! course can be drawn (`plot.rs`). Nothing here judges.

mod arrival;
mod oracle;
mod plot;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::result::{Comparison, Series};
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::{AppSettings, Scenario, ScenarioError, TraceSource, TransportKind};
use trimtab_testbed::{RealError, Rig};
use trimtab_units::{Duration, Rate};

use arrival::Arrival;
use oracle::Oracle;
use plot::Line;

/// The scheme.
const MORTISE: &str = "mortise";

/// How soon Mortise is where it should be after the capacity steps.
#[derive(Debug, Parser)]
#[command(name = "step")]
struct Cli {
    /// The scenario: its traces are steps between two rates. Each is run at each of its
    /// round-trip times, with nobody else on the link
    #[arg(long, default_value = "scenarios/mortise/fig09-step.toml")]
    scenario: PathBuf,
    /// On this machine's kernel as well; needs root
    #[arg(long)]
    kernel: bool,
    /// Draw the courses into this SVG file
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Kernel(#[from] RealError),
    #[error("trace {0}: name a step between two rates, as step:12Mbit/s,48Mbit/s@20s")]
    NoStep(String),
    #[error("{}: {cause}", path.display())]
    Plot { path: PathBuf, cause: std::io::Error },
}

/// A step: to which rate, and when.
#[derive(Clone, Copy, Debug)]
struct Step {
    to: Rate,
    at: Duration,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<(), StepError> {
    let scenario = Scenario::load(&cli.scenario)?;
    println!(
        "| step | RTT | application | δ of the oracle (as good: {:.0}%) | datapath \
         | within 20% of it after | as good as it after |",
        100.0 * oracle::AS_GOOD
    );
    println!("|---|---|---|---|---|---|---|");
    let mut panels = Vec::new();
    for trace in &scenario.traces {
        let step = step_of(trace)?;
        for rtt in &scenario.rtt {
            let alone = Scenario {
                rtt: vec![rtt.clone()],
                competitor: Vec::new(),
                rivals: Vec::new(),
                ..scenario.clone()
            };
            for app in &scenario.app {
                let panel = panel(&alone, trace, step, app, cli.kernel)?;
                let (label, oracle) = (app.label(), &panel.oracle);
                for Line { name, series } in &panel.lines {
                    let Arrival { near, good } = Arrival::of(series, step.at, oracle);
                    let (near, good) = (after(near), after(good));
                    println!("| {trace} | {rtt} | {label} | {oracle} | {name} | {near} | {good} |");
                }
                panels.push(panel);
            }
        }
    }
    if let Some(path) = &cli.svg {
        let fail = |cause| StepError::Plot { path: path.clone(), cause };
        std::fs::write(path, plot::svg(&panels)).map_err(fail)?;
    }
    Ok(())
}

/// The courses of one step with one application.
fn panel(
    scenario: &Scenario,
    trace: &TraceSource,
    step: Step,
    app: &AppSettings,
    on_kernel: bool,
) -> Result<plot::Panel, StepError> {
    let oracle = Oracle::find(scenario, app, step.to)?;
    let mut lines = vec![Line { name: "simulator", series: course(scenario, trace, app, false)? }];
    if on_kernel {
        lines.push(Line { name: "kernel", series: course(scenario, trace, app, true)? });
    }
    let rtt = &scenario.rtt[0];
    let title = format!("{trace}, {rtt}, {}", app.label());
    Ok(plot::Panel { title, step, oracle, lines })
}

fn step_of(trace: &TraceSource) -> Result<Step, StepError> {
    match trace {
        TraceSource::Steps(steps) if steps.len() == 2 => {
            Ok(Step { to: steps[1].1, at: steps[0].0 })
        }
        other => Err(StepError::NoStep(other.to_string())),
    }
}

/// How Mortise fares on one trace with one application.
fn course(
    scenario: &Scenario,
    trace: &TraceSource,
    app: &AppSettings,
    on_kernel: bool,
) -> Result<Series, StepError> {
    let scenario = Scenario {
        cc: scenario.cc.iter().filter(|c| c.label() == MORTISE).cloned().collect(),
        traces: vec![trace.clone()],
        app: vec![app.clone()],
        transport: TransportKind::Tcp,
        seeds: 1,
        ..scenario.clone()
    };
    let (recording, effort) = (Recording { units: false, series: true }, effort());
    let comparison = if on_kernel {
        let rig = Rig::new(&scenario)?;
        compare(&scenario, effort, recording, "", &rig)?
    } else {
        compare(&scenario, effort, recording, "", &Simulator)?
    };
    Ok(series_of(comparison))
}

fn series_of(comparison: Comparison) -> Series {
    comparison.runs.into_iter().find_map(|run| run.series).unwrap_or_default()
}

fn effort() -> Effort {
    Effort { jobs: None, quiet: true }
}

fn after(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "not at all".to_owned(), |s| format!("{s:.1} s"))
}
