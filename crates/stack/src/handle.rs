//! What the caller keeps of a connection.

use std::sync::Arc;

use trimtab_cc::KnobError;
use trimtab_qoe::{Factor, Factors};
use trimtab_steer::Report;
use trimtab_steer::safety::Arm;
use trimtab_units::Bytes;

use crate::config::ConfigError;
use crate::hints::Response;
use crate::metrics::Metrics;
use crate::path::Path;
use crate::paths::{Kept, Shared};
use crate::plan::Plan;

/// Steers the paths of a factory while they run, and reads what they report. Cheap to clone; every
/// method takes a lock for some microseconds and may be called from any thread.
///
/// A connection usually has one path. What is set holds for all paths, also for those to come.
/// Metrics and the last report are those of the newest path.
///
/// A change takes effect at the path's next packet or acknowledgement. On a path that stands still
/// that may be a while; in noq and quinn `Connection::set_send_window` with the value in force wakes
/// it.
///
/// A connection in the holdback ([`Config::with_holdback`](crate::Config::with_holdback)) keeps its
/// scheme and its knobs: changes are checked, and take effect in the other arm only.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// Why a knob was not set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SetKnobError {
    /// No path was made yet.
    #[error("cannot set knob {0}: there is no path yet; set it in the scheme, e.g. copa:delta=0.1")]
    NoPath(String),
    /// The algorithm has no such knob, or the value is out of its range.
    #[error("cannot set knob {name} of {algorithm}: {cause}")]
    Knob {
        /// The knob.
        name: String,
        /// The algorithm that runs.
        algorithm: &'static str,
        /// The cause, with the knobs and the range that there are.
        cause: KnobError,
    },
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn each(&self, mut change: impl FnMut(&mut Path)) {
        for path in self.shared.paths() {
            change(&mut path.lock());
        }
    }

    fn newest(&self) -> Option<Arc<Kept>> {
        self.shared.paths().pop()
    }

    /// Has another scheme run, by its text ([`Config::new`](crate::Config::new)). The algorithm
    /// takes over with what is known of the path as soon as the running one has converged (Floo
    /// §3.4); until then [`Metrics::pending`] names it. Where the same algorithm runs, its knobs are
    /// turned at once, and it goes on.
    ///
    /// # Errors
    /// As [`Config::new`](crate::Config::new): nothing changes.
    pub fn set_scheme(&self, text: &str) -> Result<(), ConfigError> {
        let mut next = self.shared.next();
        let plan = Plan::read(text, &next.settings.model, next.settings.traits)?;
        self.each(|path| path.change(&plan));
        next.settings.plan = plan;
        Ok(())
    }

    /// Has the steering follow another QoE model
    /// ([`Config::with_model`](crate::Config::with_model)).
    ///
    /// # Errors
    /// The text is neither the name of a model nor a formula: nothing changes.
    pub fn set_model(&self, text: &str) -> Result<(), ConfigError> {
        let mut next = self.shared.next();
        next.settings = next.settings.clone().with_model(text, &[])?;
        self.each(|path| path.set_model(&next.settings.model));
        Ok(())
    }

    /// Sets the application's live factors, such as the size of the response (`R`) or the playback
    /// buffer (`V`). The next report carries them. A factor that is not set is absent.
    pub fn set_factors(&self, factors: Factors) {
        self.shared.say(|hints| hints.set(factors));
    }

    /// States what is good for the connection, as `Hints::describe` of `trimtab-app-sdk` does for
    /// TCP: a QoE model, unless that of the configuration is right, and what is known at the
    /// beginning. A formula may name factors of the application's own that `live` sets.
    ///
    /// # Errors
    /// As [`set_model`](Self::set_model): nothing changes.
    pub fn describe(&self, model: Option<&str>, live: &Factors) -> Result<(), ConfigError> {
        if let Some(text) = model {
            let names = live.iter().map(|(name, _)| name);
            let own: Vec<&str> = names.filter(|name| Factor::from_name(name).is_none()).collect();
            let mut next = self.shared.next();
            next.settings = next.settings.clone().with_model(text, &own)?;
            self.each(|path| path.set_model(&next.settings.model));
        }
        self.update(live);
        Ok(())
    }

    /// States what has changed, as `Hints::update` of `trimtab-app-sdk`: factors that are not set
    /// stay as they were.
    pub fn update(&self, live: &Factors) {
        self.shared.say(|hints| hints.update(live));
    }

    /// A response of this size begins: call it before its first byte is written. As long as it
    /// lives, the factors are of the responses that are open: `R` is the size of the oldest,
    /// `remaining` what is left of all, `Rbar` their mean size. Other factors stay as they were set.
    pub fn begin_response(&self, size: Bytes) -> Response {
        Response::begin(self.shared.clone(), size)
    }

    /// Sets a knob of the algorithm that runs, in the knob's unit. A steering that turns the same
    /// knob sets it again at its next action.
    ///
    /// # Errors
    /// There is no path, no such knob, or the value is out of range: nothing changes on that path.
    pub fn set_knob(&self, name: &str, value: f64) -> Result<(), SetKnobError> {
        let paths = self.shared.paths();
        if paths.is_empty() {
            return Err(SetKnobError::NoPath(name.to_owned()));
        }
        paths.iter().try_for_each(|path| {
            let mut path = path.lock();
            path.set_knob(name, value).map_err(|cause| SetKnobError::Knob {
                name: name.to_owned(),
                algorithm: path.driver().name(),
                cause,
            })
        })
    }

    /// The text of the scheme that was set last. [`Metrics::scheme`] is the one that runs.
    pub fn scheme(&self) -> String {
        self.shared.next().settings.plan.label().to_owned()
    }

    /// The arm of the comparison in which the connection is.
    pub fn arm(&self) -> Arm {
        self.shared.next().settings.arm()
    }

    /// The newest path as it is now; `None` before the first, and once the connection is gone.
    pub fn metrics(&self) -> Option<Metrics> {
        self.newest().map(|path| path.lock().metrics())
    }

    /// All paths as they are now, the oldest first.
    pub fn all_metrics(&self) -> Vec<Metrics> {
        self.shared.paths().iter().map(|path| path.lock().metrics()).collect()
    }

    /// The last report; `None` before the first, and once the connection is gone.
    pub fn last_report(&self) -> Option<Report> {
        self.newest().and_then(|path| path.lock().steering.last().cloned())
    }

    /// Takes the reports of all paths that nobody took yet, each path's in the order of time.
    /// The last 64 of each path are kept, from the first call on: it gives the last report alone.
    /// Call it before the connection begins to get all.
    pub fn take_reports(&self) -> Vec<Report> {
        self.shared.next().settings.keeps_reports = true;
        let mut all = Vec::new();
        self.each(|path| all.extend(path.steering.take_reports()));
        all
    }
}
