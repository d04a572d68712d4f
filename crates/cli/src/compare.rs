//! `trimtab compare`.

use std::path::Path;

use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::report::archive;
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::table::{self, Style};
use trimtab_lab::report::{self, figure, picture};
use trimtab_lab::result::Comparison;
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::scenario::{AppSettings, Scenario};

use crate::args::Compare;
use crate::{Failure, print};

/// The folder of the figures within that of `--out`.
const FIGURES: &str = "figures";

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
    let folder = args.out.as_ref().map_or(Ok(()), |folder| {
        archive::write(folder, &comparison.runs).map_err(Failure::input)?;
        figure::write_all(&folder.join(FIGURES), comparison).map_err(Failure::input)
    });
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
    let bare = args.app.is_empty() && args.cc.is_empty() && args.traces.is_empty();
    let mut s = match &args.scenario {
        Some(path) => Scenario::load(path).map_err(Failure::input)?,
        None if bare => Scenario::demo(),
        None => Scenario::default(),
    };
    if !args.app.is_empty() {
        s.app = args.app.iter().map(|&kind| AppSettings::new(kind)).collect();
    }
    if let Some(file) = &args.workload {
        let replayed = s.app.iter_mut().map(|app| app.replay(file)).filter(|&takes| takes).count();
        if replayed == 0 {
            return Err(Failure::input("--workload is replayed by downloads: add --app download"));
        }
    }
    if let Some(qoe) = &args.qoe {
        s.app.iter_mut().for_each(|app| app.qoe = Some(qoe.clone()));
    }
    let given = args.transport.map(Into::into);
    s.transport = given.or(args.datapath.transport).unwrap_or(s.transport);
    replace(&mut s.cc, &args.cc);
    replace(&mut s.traces, &args.traces);
    replace(&mut s.rtt, &args.rtt);
    replace(&mut s.buffer, &args.buffer);
    replace(&mut s.loss, &args.loss);
    replace(&mut s.jitter, &args.jitter);
    s.mark = args.mark.or(s.mark);
    replace(&mut s.flows, &args.flows);
    s.duration = args.duration.unwrap_or(s.duration);
    s.seeds = args.seeds.unwrap_or(s.seeds);
    s.first_seed = args.first_seed.unwrap_or(s.first_seed);
    s.share_min = args.share_min.or(s.share_min);
    s.thin = args.thin.or(s.thin);
    s.validate().map_err(Failure::input)?;
    Ok(s)
}

fn replace<T: Clone>(list: &mut Vec<T>, given: &[T]) {
    if !given.is_empty() {
        list.clear();
        list.extend_from_slice(given);
    }
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
