//! `trimtab reproduce`.

use std::fs;
use std::path::Path;

use serde::Serialize;
use trimtab_lab::compare::{CompareError, compare};
use trimtab_lab::report::figure::{Kind, figure};
use trimtab_lab::report::output::write_file;
use trimtab_lab::report::picture;
use trimtab_lab::reproduce::{Entry, Outcome, Recipe, catalogue, find, judge, list, page};
use trimtab_lab::result::Comparison;
use trimtab_lab::run::Recording;
use trimtab_lab::run::simulator::Simulator;
use trimtab_lab::scenario::Scenario;

use crate::args::Reproduce;
use crate::compare::command_line;
use crate::{Failure, print};

pub(crate) fn run(args: &Reproduce) -> Result<(), Failure> {
    let entries = catalogue().map_err(Failure::input)?;
    if args.page {
        return print(&page(&entries));
    }
    if args.list {
        return print(&if args.json { as_json(&entries) } else { list(&entries) });
    }
    // Every name is looked up before the first figure runs for minutes.
    let chosen: Vec<(&Entry, &Recipe)> =
        args.figures.iter().map(|name| runnable(&entries, name)).collect::<Result<_, _>>()?;
    let mut outcomes = Vec::new();
    for (entry, recipe) in chosen {
        let outcome = reproduce(args, entry, recipe)?;
        if !args.json {
            print(&outcome.render())?;
        }
        outcomes.push(outcome);
    }
    if args.json { print(&as_json(&outcomes)) } else { Ok(()) }
}

fn as_json(value: &impl Serialize) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default())
}

fn runnable<'a>(entries: &'a [Entry], name: &str) -> Result<(&'a Entry, &'a Recipe), Failure> {
    let entry = find(entries, name).map_err(Failure::input)?;
    let recipe = entry.run.as_ref();
    let recipe =
        recipe.ok_or_else(|| Failure::input(format!("{name} does not run: {}", entry.note)))?;
    Ok((entry, recipe))
}

/// Runs an entry unless its result is there, and writes result, verdict and pictures.
fn reproduce(args: &Reproduce, entry: &Entry, recipe: &Recipe) -> Result<Outcome, Failure> {
    let fail = |e: &dyn std::fmt::Display| Failure::input(format!("{}: {e}", entry.name));
    let scenario = recipe.scenario(&args.scenarios, args.quick).map_err(|e| fail(&e))?;
    let kind: Kind = recipe.picture.parse().map_err(|e| fail(&e))?;
    let folder = args.out.join(entry.folder());
    let file = folder.join("result.json");
    let comparison = if file.exists() {
        kept(&file, &scenario)?
    } else {
        let recording = Recording { units: kind.needs_recording(), series: kind.needs_recording() };
        let result = compare(&scenario, args.work.effort(), recording, &command_line(), &Simulator);
        result.map_err(|e| match e {
            CompareError::Interrupted(e) => Failure::interrupted(e),
            e => fail(&e),
        })?
    };
    let outcome = judge(entry, recipe, &comparison, args.quick).map_err(Failure::input)?;
    if !file.exists() {
        let svg = figure(kind, &comparison).map_err(|e| fail(&e))?;
        for end in ["svg", "png"] {
            picture::write(&folder.join(format!("figure.{end}")), &svg).map_err(Failure::input)?;
        }
        // The result last: a figure that has it is complete.
        write(&file, &comparison)?;
    }
    write(&folder.join("verdict.json"), &outcome)?;
    Ok(outcome)
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = as_json(value);
    write_file(path, |out| out.write_all(text.as_bytes())).map_err(Failure::input)
}

/// The result of an earlier run of the same scenario by the same version.
fn kept(file: &Path, scenario: &Scenario) -> Result<Comparison, Failure> {
    let fail = |why: String| Failure::input(format!("{}: {why}", file.display()));
    let text = fs::read(file).map_err(|e| fail(format!("cannot read it: {e}")))?;
    let kept: Comparison = serde_json::from_slice(&text)
        .map_err(|e| fail(format!("is no result: {e}; delete it, or name another --out")))?;
    let plan = scenario.plan().map_err(Failure::input)?;
    if kept.provenance.scenario != plan.scenario.to_toml()
        || kept.provenance.version != env!("CARGO_PKG_VERSION")
    {
        let why = "is of another scenario or version; delete it, or name another --out";
        return Err(fail(why.to_owned()));
    }
    Ok(kept)
}
