//! `trimtab fleet`.

use std::path::Path;

use trimtab_fleet_sim::{FleetScenario, render, simulate};
use trimtab_lab::output::write_file;
use trimtab_lab::pool::Effort;
use trimtab_lab::report::fleet::plot;

use crate::args::{Fleet, FleetSimulate};
use crate::compare::command_line;
use crate::{Failure, print};

pub(crate) fn run(fleet: &Fleet) -> Result<(), Failure> {
    match fleet {
        Fleet::Simulate(args) => simulated(args),
    }
}

fn simulated(args: &FleetSimulate) -> Result<(), Failure> {
    let mut scenario = FleetScenario::load(&args.scenario)
        .map_err(|e| Failure::input(format!("{}: {e}", args.scenario.display())))?;
    scenario.aggregates = args.aggregates.unwrap_or(scenario.aggregates);
    scenario.duration = args.duration.unwrap_or(scenario.duration);
    let effort = Effort { jobs: args.jobs.map(usize::from), quiet: args.quiet };
    let result =
        simulate(&scenario, args.seed, &effort, &command_line()).map_err(Failure::interrupted)?;
    let json = args.json.as_ref().map_or(Ok(()), |path| {
        write_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &result)?;
            out.write_all(b"\n")
        })
        .map_err(Failure::input)
    });
    let drawn = args.plot.as_ref().map_or(Ok(()), |path| {
        write_file(path, |out| out.write_all(plot(&result).as_bytes())).map_err(Failure::input)
    });
    let table =
        if args.json.as_deref() == Some(Path::new("-")) { Ok(()) } else { print(&render(&result)) };
    json.and(drawn).and(table)
}
