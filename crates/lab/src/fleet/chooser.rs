//! Ways to choose configurations that are not this program's: a library's optimiser, say.

use std::path::PathBuf;

use trimtab_fleet::Service;

use super::Interrupted;
use super::connection::Sample;
use super::contest::Course;
use super::group::{Field, Group};

/// What chooses the configurations of one aggregate.
pub trait Chooser {
    /// A point of the unit cube of the service's knobs for an interval of this context.
    ///
    /// # Errors
    /// It cannot; the message says why.
    fn choose(&mut self, context: &str) -> Result<Vec<f64>, String>;

    /// Takes the reward there.
    ///
    /// # Errors
    /// It cannot be told; the message says why.
    fn learn(&mut self, context: &str, point: &[f64], reward: f64) -> Result<(), String>;
}

/// A scheme from outside.
pub struct Scheme {
    /// Its name in the table.
    pub name: String,
    /// Begins with an aggregate of a service, by its number and with the run's seed.
    #[expect(clippy::type_complexity, reason = "said once")]
    pub begin: Box<dyn Fn(&Service, u32, u64) -> Result<Box<dyn Chooser>, String> + Sync>,
}

/// Why a simulation has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A scheme from outside does not do its part.
    #[error("the scheme {name}: {cause}")]
    Scheme {
        /// Which one.
        name: String,
        /// What is wrong.
        cause: String,
    },
    /// The folder of the seeds cannot be used.
    #[error("{}: {cause}", file.display())]
    Store {
        /// The file.
        file: PathBuf,
        /// What is wrong, and what to do.
        cause: String,
    },
    /// The user asked to stop after some of the seeds.
    #[error("interrupted; {} has {done} of {all} seeds, and the same command goes on", folder.display())]
    Stopped {
        /// The folder.
        folder: PathBuf,
        /// Seeds that are there.
        done: usize,
        /// Seeds that were asked for.
        all: usize,
    },
}

/// A group under a scheme from outside.
pub(super) fn run(group: &Group<'_>, scheme: &Scheme) -> Result<Vec<Course>, SimulateError> {
    let fail = |cause| SimulateError::Scheme { name: scheme.name.clone(), cause };
    let begin = |f: &Field<'_>| (scheme.begin)(f.service, f.aggregate, f.seed).map_err(fail);
    let mut choosers = group.fields.iter().map(begin).collect::<Result<Vec<_>, _>>()?;
    let mut courses = vec![Course::default(); group.fields.len()];
    for n in 0..group.fields[0].scenario.intervals() {
        let mut chosen = Vec::new();
        for (field, chooser) in group.fields.iter().zip(&mut choosers) {
            let context = field.service.contexts().name(field.context(n));
            let mut point = chooser.choose(&context).map_err(fail)?;
            let knobs = field.service.knobs().len();
            if point.len() != knobs || point.iter().any(|x| !x.is_finite()) {
                let cause = format!("{knobs} numbers from 0 to 1 were to come, not {point:?}");
                return Err(fail(cause));
            }
            point.iter_mut().for_each(|x| *x = x.clamp(0.0, 1.0));
            chosen.push((context, point));
        }
        let point = |((_, point), field): (&(String, Vec<f64>), &Field<'_>)| {
            Some(field.spec(&point.clone().into()))
        };
        let specs: Vec<_> = chosen.iter().zip(&group.fields).map(point).collect();
        let seen = group.seen(n, &specs, Sample::Run);
        for (i, field) in group.fields.iter().enumerate() {
            let reward = field.reward(&seen[i].summary);
            let (context, point) = &chosen[i];
            choosers[i].learn(context, point, reward).map_err(fail)?;
            courses[i].note(field.scenario, &seen[i], reward);
        }
    }
    Ok(courses)
}
