//! `trimtab fleet`.

use std::path::Path;

use serde::Serialize;
use trimtab_lab::fleet::program::scheme;
use trimtab_lab::fleet::{FleetResult, FleetScenario, SimulateError, render, simulate};
use trimtab_lab::report::fleet::plot;
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::picture;
use trimtab_testbed::RealError;
use trimtab_testbed::fleet::{self as real, Course, KernelFleet};

use crate::args::{Fleet, FleetReal, FleetSimulate};
use crate::compare::command_line;
use crate::{Failure, print};

pub(crate) fn run(fleet: &Fleet) -> Result<(), Failure> {
    match fleet {
        Fleet::Simulate(args) => simulated(args),
        Fleet::Real(args) => on_kernel(args),
    }
}

fn simulated(args: &FleetSimulate) -> Result<(), Failure> {
    let mut scenario = FleetScenario::load(&args.scenario)
        .map_err(|e| Failure::input(format!("{}: {e}", args.scenario.display())))?;
    scenario.aggregates = args.aggregates.unwrap_or(scenario.aggregates);
    scenario.connections = args.connections.unwrap_or(scenario.connections);
    scenario.duration = args.duration.unwrap_or(scenario.duration);
    if let Some(after) = args.together_after {
        scenario = scenario.joining(after).map_err(Failure::input)?;
    }
    if let Some(file) = &args.prior {
        let name = file.display();
        let prior = std::fs::read_to_string(file)
            .map_err(|e| Failure::input(format!("cannot read the prior {name}: {e}")))?;
        scenario =
            scenario.beginning_with(&prior).map_err(|e| Failure::input(format!("{name}: {e}")))?;
    }
    if args.save_prior.is_some() && scenario.services.len() > 1 {
        return Err(Failure::input(
            "--save-prior: the scenario has several services, and a prior is of one: leave the \
             others out of a copy",
        ));
    }
    let patience = std::time::Duration::from_nanos(args.scheme_timeout.as_nanos());
    let schemes: Vec<_> =
        args.scheme.iter().map(|(name, command)| scheme(name, command, patience)).collect();
    let seeds = args.seeds.clone().unwrap_or(args.seed..=args.seed);
    let (effort, out) = (args.work.effort(), args.out.as_deref());
    let result = simulate(&scenario, seeds, &schemes, effort, out, &command_line()).map_err(
        |e| match e {
            SimulateError::Interrupted(_) | SimulateError::Stopped { .. } => {
                Failure::interrupted(e)
            }
            e => Failure::input(e),
        },
    )?;
    let saved = args.save_prior.as_deref().map_or(Ok(()), |file| save_prior(&result, file));
    write(&result, &render(&result), args.json.as_deref(), args.plot.as_deref(), plot).and(saved)
}

fn save_prior(result: &FleetResult, file: &Path) -> Result<(), Failure> {
    write_file(file, |out| out.write_all(result.prior().as_bytes())).map_err(Failure::input)
}

fn on_kernel(args: &FleetReal) -> Result<(), Failure> {
    let fleet = KernelFleet::load(&args.scenario)
        .and_then(|fleet| fleet.with(args.learn, args.rounds))
        .map_err(|e| Failure::input(format!("{}: {e}", args.scenario.display())))?;
    let program = std::env::current_exe()
        .map_err(|e| Failure::input(format!("cannot find the trimtab command itself: {e}")))?;
    let mut temporary = None;
    let folder = match &args.keep {
        Some(folder) => {
            std::fs::create_dir(folder).map_err(|e| {
                Failure::input(format!("cannot make the folder {}: {e}", folder.display()))
            })?;
            std::path::absolute(folder).unwrap_or_else(|_| folder.clone())
        }
        None => {
            let made = tempfile::Builder::new().prefix("trimtab-fleet-").tempdir();
            let made =
                made.map_err(|e| Failure::input(format!("cannot make a temporary folder: {e}")))?;
            temporary.insert(made).path().to_owned()
        }
    };
    let tell = |line: &str| {
        if !args.quiet {
            eprintln!("{line}");
        }
    };
    let command = command_line();
    let course = Course { program: &program, folder: &folder, command: &command, tell: &tell };
    let result = real::run(&fleet, &course).map_err(|e| match e {
        RealError::Interrupted => Failure::interrupted("interrupted; nothing was written"),
        e => Failure::input(e),
    })?;
    if result.late_p99_ms > 1.0 || result.lost_elsewhere > 0 {
        eprintln!(
            "warning: this machine was too busy for exact links: packets left up to {:.2} ms late \
             at the 99th percentile, and {} were lost elsewhere than on the links; end other \
             programs",
            result.late_p99_ms, result.lost_elsewhere
        );
    }
    write(&result, &real::render(&result), args.json.as_deref(), args.plot.as_deref(), real::plot)
}

/// Every output is tried; the first failure is reported after them.
fn write<T: Serialize>(
    result: &T,
    table: &str,
    json: Option<&Path>,
    figure: Option<&Path>,
    plot: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let written = json.map_or(Ok(()), |path| {
        write_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, result)?;
            out.write_all(b"\n")
        })
        .map_err(Failure::input)
    });
    let drawn =
        figure.map_or(Ok(()), |path| picture::write(path, &plot(result)).map_err(Failure::input));
    let shown = if json == Some(Path::new("-")) { Ok(()) } else { print(table) };
    written.and(drawn).and(shown)
}
