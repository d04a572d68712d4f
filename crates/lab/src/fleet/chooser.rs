//! Ways to choose configurations that are not this program's: a library's optimiser, say.

use trimtab_fleet::Service;

use super::Interrupted;
use super::connection::Sample;
use super::contest::{Course, Field};

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
}

/// One aggregate under a scheme from outside.
pub(super) fn run(field: &Field<'_>, scheme: &Scheme) -> Result<Course, SimulateError> {
    let fail = |cause| SimulateError::Scheme { name: scheme.name.clone(), cause };
    let mut chooser = (scheme.begin)(field.service, field.aggregate, field.seed).map_err(fail)?;
    let mut course = Course::default();
    let knobs = field.service.knobs().len();
    for n in 0..field.scenario.intervals() {
        let context = field.service.contexts().name(field.context(n));
        let mut point = chooser.choose(&context).map_err(fail)?;
        if point.len() != knobs || point.iter().any(|x| !x.is_finite()) {
            return Err(fail(format!("{knobs} numbers from 0 to 1 were to come, not {point:?}")));
        }
        point.iter_mut().for_each(|x| *x = x.clamp(0.0, 1.0));
        let summary = field.summary(n, Some(field.spec(&point.clone().into())), Sample::Run);
        let reward = field.reward(&summary);
        chooser.learn(&context, &point, reward).map_err(fail)?;
        course.note(field.scenario, &summary, reward);
    }
    Ok(course)
}
