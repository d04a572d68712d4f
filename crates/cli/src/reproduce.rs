//! `trimtab reproduce`.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use trimtab_lab::report::output::write_file;
use trimtab_lab::reproduce::{
    Entry, Outcome, Record, ReproduceError, Setting, catalogue, find, list, page, tally,
};

use crate::args::Reproduce;
use crate::compare::command_line;
use crate::{Failure, print};

pub(crate) fn run(args: &Reproduce) -> Result<(), Failure> {
    let entries = catalogue().map_err(Failure::input)?;
    if let Some(file) = &args.record {
        return record(args, &entries, file);
    }
    let recorded = Record::shipped().map_err(Failure::input)?;
    if args.page {
        return print(&page(&entries, &recorded));
    }
    if args.list {
        return print(&if args.json { as_json(&entries) } else { list(&entries, &recorded) });
    }
    // Every name is looked up before the first figure runs for minutes.
    let chosen: Vec<&Entry> = if args.figures.is_empty() {
        entries.iter().filter(|entry| entry.runs()).collect()
    } else {
        args.figures.iter().map(|name| runnable(&entries, name)).collect::<Result<_, _>>()?
    };
    let (mut outcomes, mut failures) = (Vec::new(), 0);
    let setting = Setting {
        scenarios: args.scenarios.clone(),
        out: args.out.clone(),
        quick: args.quick,
        effort: args.work.effort(),
        command: command_line(),
    };
    for entry in &chosen {
        let outcome = entry.run(&setting).map_err(failure);
        match outcome {
            Ok(outcome) => {
                if !args.json {
                    print(&outcome.render())?;
                }
                outcomes.push(outcome);
            }
            // Of many figures one that fails does not keep the others from running for hours.
            Err(e) if chosen.len() > 1 && !e.is_interrupted() => {
                eprintln!("error: {e}");
                failures += 1;
            }
            Err(e) => return Err(e),
        }
    }
    if args.json {
        print(&as_json(&outcomes))?;
    } else if chosen.len() > 1 {
        print(&tally(&outcomes))?;
    }
    match failures {
        0 => Ok(()),
        n => Err(Failure::input(format!("{n} of {} figures failed: see above", chosen.len()))),
    }
}

/// Takes the verdicts of whole runs over into a file, which keeps those of figures without a result here.
fn record(args: &Reproduce, entries: &[Entry], file: &Path) -> Result<(), Failure> {
    let fail = |path: &Path, e: &dyn Display| Failure::input(format!("{}: {e}", path.display()));
    let text = match fs::read_to_string(file) {
        Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
        text => text.map_err(|e| fail(file, &e))?,
    };
    let mut record = Record::read(&text).map_err(|e| fail(file, &e))?;
    let mut taken = 0;
    for entry in entries.iter().filter(|entry| entry.runs()) {
        let path = args.out.join(entry.folder()).join("verdict.json");
        if !path.exists() {
            continue;
        }
        let text = fs::read(&path).map_err(|e| fail(&path, &e))?;
        let outcome: Outcome = serde_json::from_slice(&text).map_err(|e| fail(&path, &e))?;
        if record.enter(entry, &outcome) {
            taken += 1;
        } else {
            eprintln!("{}: left out: it is of a quick run, or of other claims", path.display());
        }
    }
    write_file(file, |out| out.write_all(record.to_toml().as_bytes())).map_err(Failure::input)?;
    print(&format!("{taken} verdicts taken over\n{}\n", record.counts(entries)))
}

fn as_json(value: &impl Serialize) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

fn runnable<'a>(entries: &'a [Entry], name: &str) -> Result<&'a Entry, Failure> {
    let entry = find(entries, name).map_err(Failure::input)?;
    entry.check_runs().map_err(failure)?;
    Ok(entry)
}

fn failure(e: ReproduceError) -> Failure {
    match e {
        ReproduceError::Stopped(e) => Failure::interrupted(e),
        e => Failure::input(e),
    }
}
