//! A figure from beginning to end: it runs, is judged and drawn, and leaves files in a folder of its own.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Entry, FleetRecipe, Outcome, Recipe, SampleRecipe};
use crate::compare::{CompareError, compare};
use crate::fleet::{SimulateError, simulate};
use crate::kept::{KeptError, kept};
use crate::report::figure::{Kind, figure_in};
use crate::report::output::{OutputError, write_file};
use crate::report::{fleet, picture, samples};
use crate::run::Recording;
use crate::run::pool::Effort;
use crate::run::simulator::Simulator;

/// The ends of the pictures' names.
const ENDS: [&str; 2] = ["svg", "png"];

/// How figures are run.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The folder of scenarios.
    pub scenarios: PathBuf,
    /// The folder of results. What is there is not run again.
    pub out: PathBuf,
    /// Whether to show only that a figure runs.
    pub quick: bool,
    /// How many runs at once.
    pub effort: Effort,
    /// The command that goes into the record.
    pub command: String,
}

/// Why a figure was not made.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The user asked to stop.
    #[error(transparent)]
    Stopped(Box<dyn Error + Send + Sync>),
    /// The figure cannot be run, judged or drawn.
    #[error("{name}: {cause}")]
    Figure {
        /// Its name.
        name: String,
        /// The cause.
        cause: Box<dyn Error + Send + Sync>,
    },
    /// Nothing of this command makes it.
    #[error("{name} does not run here: {why}")]
    Elsewhere {
        /// Its name.
        name: String,
        /// The command that makes it, or why there is none.
        why: String,
    },
    /// A result that is there is another one.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The folder cannot be made.
    #[error("cannot make the folder {}: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

impl Entry {
    /// Whether [`Self::run`] makes it.
    ///
    /// # Errors
    /// It does not: the error tells what does.
    pub fn check_runs(&self) -> Result<(), ReproduceError> {
        if self.runs() {
            return Ok(());
        }
        let why = if self.command.is_empty() {
            self.note.clone()
        } else {
            format!("`{}` makes it", self.command)
        };
        Err(ReproduceError::Elsewhere { name: self.name.clone(), why })
    }

    /// Runs it, and writes result, verdict and pictures.
    ///
    /// # Errors
    /// It does not run, cannot be judged, or its files cannot be written; or the user asked to stop.
    pub fn run(&self, setting: &Setting) -> Result<Outcome, ReproduceError> {
        self.check_runs()?;
        if let Some(recipe) = &self.compare {
            compared(setting, self, recipe)
        } else if let Some(recipe) = &self.fleet {
            simulated(setting, self, recipe)
        } else {
            let sampled = self.samples.iter().map(|recipe| sampled(setting, self, recipe)).next();
            sampled.unwrap_or_else(|| unreachable!("a figure that runs has one of the three"))
        }
    }
}

fn fail<E: Into<Box<dyn Error + Send + Sync>>>(entry: &Entry) -> impl Fn(E) -> ReproduceError {
    let name = entry.name.clone();
    move |cause| ReproduceError::Figure { name: name.clone(), cause: cause.into() }
}

/// Runs a comparison unless its result is there.
fn compared(setting: &Setting, entry: &Entry, recipe: &Recipe) -> Result<Outcome, ReproduceError> {
    let scenario = recipe.scenario(&setting.scenarios, setting.quick).map_err(fail(entry))?;
    let kind: Kind = recipe.picture.parse().map_err(fail(entry))?;
    let folder = folder(setting, entry)?;
    let file = folder.join("result.json");
    let is_kept = file.exists();
    let comparison = if is_kept {
        kept(&file, &scenario)?
    } else {
        let recording = Recording { units: kind.needs_recording(), series: kind.needs_recording() };
        let result = compare(&scenario, setting.effort, recording, &setting.command, &Simulator);
        result.map_err(|e| match e {
            CompareError::Interrupted(e) => ReproduceError::Stopped(e.into()),
            e => fail(entry)(e),
        })?
    };
    // What ran for minutes is kept whatever happens to the verdict and the picture.
    write(&file, &comparison)?;
    let outcome = entry.judge(&comparison, setting.quick).map_err(fail(entry))?;
    write(&folder.join("verdict.json"), &outcome)?;
    let is_drawn = ENDS.iter().all(|end| folder.join(format!("figure.{end}")).exists());
    if !is_kept || !is_drawn && !kind.needs_recording() {
        let svg = figure_in(kind, &comparison, &recipe.panels).map_err(fail(entry))?;
        draw(&folder, &svg)?;
    }
    Ok(outcome)
}

/// Runs a fleet, of which seeds that are there do not run again.
fn simulated(
    setting: &Setting,
    entry: &Entry,
    recipe: &FleetRecipe,
) -> Result<Outcome, ReproduceError> {
    let scenario = recipe.scenario(&setting.scenarios, setting.quick).map_err(fail(entry))?;
    // Figures of one fleet share its seeds.
    let seeds = setting.out.join("fleets").join(&scenario.name);
    let span = recipe.seeds(setting.quick);
    let result = simulate(&scenario, span, &[], setting.effort, Some(&seeds), &setting.command);
    let result = result.map_err(|e| match e {
        SimulateError::Interrupted(_) | SimulateError::Stopped { .. } => {
            ReproduceError::Stopped(e.into())
        }
        e => fail(entry)(e),
    })?;
    let folder = folder(setting, entry)?;
    write(&folder.join("result.json"), &result)?;
    let outcome = entry.judge_fleet(&result, setting.quick).map_err(fail(entry))?;
    write(&folder.join("verdict.json"), &outcome)?;
    draw(&folder, &fleet::plot(&result))?;
    Ok(outcome)
}

/// Takes samples, which is a matter of a second.
fn sampled(
    setting: &Setting,
    entry: &Entry,
    recipe: &SampleRecipe,
) -> Result<Outcome, ReproduceError> {
    let sets = recipe.sample(&setting.scenarios).map_err(fail(entry))?;
    let folder = folder(setting, entry)?;
    write(&folder.join("result.json"), &sets)?;
    let outcome = entry.judge_samples(&sets).map_err(fail(entry))?;
    write(&folder.join("verdict.json"), &outcome)?;
    draw(&folder, &samples::figure(&sets, &recipe.stated()))?;
    Ok(outcome)
}

fn draw(folder: &Path, svg: &str) -> Result<(), OutputError> {
    ENDS.iter().try_for_each(|end| picture::write(&folder.join(format!("figure.{end}")), svg))
}

/// The folder of an entry.
fn folder(setting: &Setting, entry: &Entry) -> Result<PathBuf, ReproduceError> {
    let path = setting.out.join(entry.folder());
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(cause) => Err(ReproduceError::Folder { path, cause }),
    }
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), OutputError> {
    write_file(path, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}
