//! `trimtab compare`.

use std::path::Path;

use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::table::{self, Style};
use trimtab_lab::report::{self, figure, picture};
use trimtab_lab::result::Comparison;
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::scenario::{Given, Scenario};

use crate::args::Compare;
use crate::{Failure, print};

pub(crate) fn run(args: &Compare) -> Result<(), Failure> {
    let scenario = scenario(args)?;
    if args.print_scenario {
        return print(&scenario.to_toml());
    }
    let effort = Effort { jobs: args.jobs.map(usize::from), quiet: args.quiet };
    let is_drawn = args.plot.iter().any(|(kind, _)| kind.needs_recording());
    let everything = args.html.is_some() || args.out.is_some() || is_drawn;
    let recording = Recording { units: everything, series: everything };
    let datapath = (args.datapath.open)(&scenario)?;
    let comparison = compare(&scenario, effort, recording, &command_line(), datapath.as_ref());
    let comparison = comparison.map_err(|e| match e {
        CompareError::Interrupted(e) => Failure::interrupted(e),
        e => Failure::input(e),
    })?;
    write(args, &scenario, &comparison)
}

/// Every output is tried, and the table is printed whatever becomes of the files: what was computed is
/// not lost to a full disk. The first failure is reported after it.
fn write(args: &Compare, scenario: &Scenario, comparison: &Comparison) -> Result<(), Failure> {
    let folder = args
        .out
        .as_ref()
        .map_or(Ok(()), |folder| report::write_folder(folder, comparison).map_err(Failure::input));
    let page = args.html.as_ref().map_or(Ok(()), |path| {
        let page = report::page(comparison, &scenario.name, &scenario.about);
        write_file(path, |out| out.write_all(page.as_bytes())).map_err(Failure::input)
    });
    let plots = args.plot.iter().try_for_each(|(kind, path)| {
        let svg = figure::figure(*kind, comparison).map_err(Failure::input)?;
        picture::write(path, &svg).map_err(Failure::input)
    });
    let json = args.json.as_ref().map_or(Ok(()), |path| {
        write_file(path, |out| {
            serde_json::to_writer_pretty(&mut *out, comparison)?;
            out.write_all(b"\n")
        })
        .map_err(Failure::input)
    });
    let table = if args.json.as_deref() == Some(Path::new("-")) {
        Ok(())
    } else {
        print(&table::render(comparison, Style::of_stdout()))
    };
    folder.and(page).and(plots).and(json).and(table)
}

/// The scenario of the file (the demo without one), with what the flags replace.
fn scenario(args: &Compare) -> Result<Scenario, Failure> {
    let given = Given {
        app: args.app.clone(),
        cc: args.cc.clone(),
        traces: args.traces.clone(),
        transport: args.transport.map(Into::into).or(args.datapath.transport),
        workload: args.workload.clone(),
        qoe: args.qoe.clone(),
        rtt: args.rtt.clone(),
        buffer: args.buffer.clone(),
        loss: args.loss.clone(),
        jitter: args.jitter.clone(),
        mark: args.mark,
        flows: args.flows.clone(),
        duration: args.duration,
        seeds: args.seeds,
        first_seed: args.first_seed,
        share_min: args.share_min,
        thin: args.thin,
    };
    let mut scenario = given.scenario(args.scenario.as_deref()).map_err(Failure::input)?;
    scenario.split = args.split.or(scenario.split);
    Ok(scenario)
}

/// The command as it was typed, quoted where a shell needs it.
pub(crate) fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = |arg: String| {
        if !arg.is_empty() && arg.chars().all(plain) {
            arg
        } else {
            format!("'{}'", arg.replace('\'', "'\\''"))
        }
    };
    let given = std::env::args_os().skip(1).map(|a| quoted(a.to_string_lossy().into_owned()));
    std::iter::once("trimtab".to_owned()).chain(given).collect::<Vec<_>>().join(" ")
}
