//! `trimtab compare`.

use std::path::Path;

use trimtab_lab::compare::{CompareError, compare, compare_on};
use trimtab_lab::report::archive;
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::table::{self, Style};
use trimtab_lab::report::{self, figure::figure};
use trimtab_lab::result::Comparison;
use trimtab_lab::run::Recording;
use trimtab_lab::run::datapath::Datapath;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::scenario::{AppKind, AppSettings, Scenario, TransportKind};
use trimtab_testbed::Rig;

use crate::args::{Compare, DatapathName};
use crate::{Failure, print};

pub(crate) fn run(args: &Compare) -> Result<(), Failure> {
    let scenario = scenario(args)?;
    if args.print_scenario {
        return print(&scenario.to_toml());
    }
    let effort = Effort { jobs: args.jobs.map(usize::from), quiet: args.quiet };
    let recording = Recording {
        units: args.html.is_some() || args.out.is_some(),
        series: args.html.is_some() || args.out.is_some(),
    };
    let comparison = match args.datapath {
        DatapathName::Sim => compare(&scenario, effort, recording, &command_line()),
        DatapathName::Tcp => on_kernel(&scenario, effort, recording)?,
    };
    let comparison = comparison.map_err(|e| match e {
        CompareError::Interrupted(e) => Failure::interrupted(e),
        e => Failure::input(e),
    })?;
    write(args, &scenario, &comparison)
}

/// The runs on this machine's kernel, and a word about the links where they were not true enough.
fn on_kernel(
    scenario: &Scenario,
    effort: Effort,
    recording: Recording,
) -> Result<Result<Comparison, CompareError>, Failure> {
    let rig = Rig::new(scenario).map_err(Failure::input)?;
    // Runs at once take time from each other; who has cores to spare says so.
    let effort = Effort { jobs: effort.jobs.or(Some(1)), ..effort };
    let datapath = (Datapath::Tcp, rig.kernel().to_owned());
    let comparison =
        compare_on(scenario, effort, recording, &command_line(), datapath, |prepared, job| {
            rig.measure(prepared, job)
        });
    let fidelity = rig.fidelity();
    if !fidelity.is_good() {
        eprintln!("warning: {fidelity}");
    }
    Ok(comparison)
}

/// Every output is tried, and the table is printed whatever becomes of the files: what was computed is
/// not lost to a full disk. The first failure is reported after it.
fn write(args: &Compare, scenario: &Scenario, comparison: &Comparison) -> Result<(), Failure> {
    let folder = args
        .out
        .as_ref()
        .map_or(Ok(()), |folder| archive::write(folder, &comparison.runs).map_err(Failure::input));
    let page = args.html.as_ref().map_or(Ok(()), |path| {
        let page = report::page(comparison, &scenario.name, &scenario.about);
        write_file(path, |out| out.write_all(page.as_bytes())).map_err(Failure::input)
    });
    let plots = args.plot.iter().try_for_each(|(kind, path)| {
        let svg = figure(*kind, comparison).map_err(Failure::input)?;
        write_file(path, |out| out.write_all(svg.as_bytes())).map_err(Failure::input)
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
        s.app = args.app.iter().map(|&app| AppSettings::new(app.into())).collect();
    }
    if let Some(file) = &args.workload {
        let downloads = || s.app.iter().filter(|a| a.kind == AppKind::Download);
        if downloads().count() == 0 {
            return Err(Failure::input("--workload is replayed by downloads: add --app download"));
        }
        for app in s.app.iter_mut().filter(|a| a.kind == AppKind::Download) {
            app.workload = Some(file.clone());
        }
    }
    if let Some(qoe) = &args.qoe {
        s.app.iter_mut().for_each(|app| app.qoe = Some(qoe.clone()));
    }
    s.transport = match (args.transport, args.datapath) {
        (Some(transport), _) => transport.into(),
        (None, DatapathName::Sim) => s.transport,
        (None, DatapathName::Tcp) => TransportKind::Tcp,
    };
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
