//! `trimtab reproduce`.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::fleet::{SimulateError, simulate};
use trimtab_lab::kept::kept;
use trimtab_lab::report::figure::{Kind, figure_in};
use trimtab_lab::report::fleet;
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::{picture, samples};
use trimtab_lab::reproduce::{
    Entry, FleetRecipe, Outcome, Recipe, Record, SampleRecipe, catalogue, find, list, page, tally,
};
use trimtab_lab::run::Recording;
use trimtab_lab::run::simulator::Simulator;

use crate::args::Reproduce;
use crate::compare::command_line;
use crate::{Failure, print};

/// The ends of the pictures' names.
const ENDS: [&str; 2] = ["svg", "png"];

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
    for entry in &chosen {
        let outcome = if let Some(recipe) = &entry.compare {
            compared(args, entry, recipe)
        } else if let Some(recipe) = &entry.fleet {
            simulated(args, entry, recipe)
        } else if let Some(recipe) = &entry.samples {
            sampled(args, entry, recipe)
        } else {
            continue;
        };
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
    if entry.runs() {
        return Ok(entry);
    }
    let why = if entry.command.is_empty() {
        entry.note.clone()
    } else {
        format!("`{}` makes it", entry.command)
    };
    Err(Failure::input(format!("{name} does not run here: {why}")))
}

fn fail(entry: &Entry) -> impl Fn(&dyn Display) -> Failure {
    let name = entry.name.clone();
    move |e| Failure::input(format!("{name}: {e}"))
}

/// Runs a comparison unless its result is there, and writes result, verdict and pictures.
fn compared(args: &Reproduce, entry: &Entry, recipe: &Recipe) -> Result<Outcome, Failure> {
    let fail = fail(entry);
    let scenario = recipe.scenario(&args.scenarios, args.quick).map_err(|e| fail(&e))?;
    let kind: Kind = recipe.picture.parse().map_err(|e| fail(&e))?;
    let folder = folder(args, entry)?;
    let file = folder.join("result.json");
    let is_kept = file.exists();
    let comparison = if is_kept {
        kept(&file, &scenario).map_err(Failure::input)?
    } else {
        let recording = Recording { units: kind.needs_recording(), series: kind.needs_recording() };
        let result = compare(&scenario, args.work.effort(), recording, &command_line(), &Simulator);
        result.map_err(|e| match e {
            CompareError::Interrupted(e) => Failure::interrupted(e),
            e => fail(&e),
        })?
    };
    // What ran for minutes is kept whatever happens to the verdict and the picture.
    write(&file, &comparison)?;
    let outcome = entry.judge(&comparison, args.quick).map_err(|e| fail(&e))?;
    write(&folder.join("verdict.json"), &outcome)?;
    let is_drawn = ENDS.iter().all(|end| folder.join(format!("figure.{end}")).exists());
    if !is_kept || !is_drawn && !kind.needs_recording() {
        let svg = figure_in(kind, &comparison, &recipe.panels).map_err(|e| fail(&e))?;
        draw(&folder, &svg)?;
    }
    Ok(outcome)
}

/// Runs a fleet, of which seeds that are there do not run again, and writes result, verdict and pictures.
fn simulated(args: &Reproduce, entry: &Entry, recipe: &FleetRecipe) -> Result<Outcome, Failure> {
    let fail = fail(entry);
    let scenario = recipe.scenario(&args.scenarios, args.quick).map_err(|e| fail(&e))?;
    // Figures of one fleet share its seeds.
    let seeds = args.out.join("fleets").join(&scenario.name);
    let (effort, command) = (args.work.effort(), command_line());
    let span = recipe.seeds(args.quick);
    let result = simulate(&scenario, span, &[], effort, Some(&seeds), &command);
    let result = result.map_err(|e| match e {
        SimulateError::Interrupted(_) | SimulateError::Stopped { .. } => Failure::interrupted(e),
        e => fail(&e),
    })?;
    let folder = folder(args, entry)?;
    write(&folder.join("result.json"), &result)?;
    let outcome = entry.judge_fleet(&result, args.quick).map_err(|e| fail(&e))?;
    write(&folder.join("verdict.json"), &outcome)?;
    draw(&folder, &fleet::plot(&result))?;
    Ok(outcome)
}

/// Takes samples, which is a matter of a second, and writes them, verdict and pictures.
fn sampled(args: &Reproduce, entry: &Entry, recipe: &SampleRecipe) -> Result<Outcome, Failure> {
    let fail = fail(entry);
    let sets = recipe.sample(&args.scenarios).map_err(|e| fail(&e))?;
    let folder = folder(args, entry)?;
    write(&folder.join("result.json"), &sets)?;
    let outcome = entry.judge_samples(&sets).map_err(|e| fail(&e))?;
    write(&folder.join("verdict.json"), &outcome)?;
    draw(&folder, &samples::figure(&sets, &recipe.stated()))?;
    Ok(outcome)
}

fn draw(folder: &Path, svg: &str) -> Result<(), Failure> {
    for end in ENDS {
        picture::write(&folder.join(format!("figure.{end}")), svg).map_err(Failure::input)?;
    }
    Ok(())
}

/// The folder of an entry.
fn folder(args: &Reproduce, entry: &Entry) -> Result<PathBuf, Failure> {
    let folder = args.out.join(entry.folder());
    fs::create_dir_all(&folder)
        .map_err(|e| Failure::input(format!("cannot make the folder {}: {e}", folder.display())))?;
    Ok(folder)
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = as_json(value);
    write_file(path, |out| out.write_all(text.as_bytes())).map_err(Failure::input)
}
