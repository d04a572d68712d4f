//! What the caller chooses, read from text.

use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use trimtab_cc::resume::Resumption;
use trimtab_qoe::{FormulaError, Model};
use trimtab_steer::safety::{Arm, Safety, Share};
use trimtab_steer::scheme::SchemeError;
use trimtab_units::Duration;

use crate::handle::Handle;
use crate::memory::{Memory, Place};
use crate::paths::Paths;
use crate::plan::{Plan, Start};
use crate::qlog::Qlog;
use crate::stack::{Stack, Traits};

/// A scheme, the QoE model that it steers by, and a seed: what connections on a stack begin with.
/// Adapters name it by an alias, `trimtab_noq::Config` or `trimtab_quinn::Config`.
///
/// ```
/// use trimtab_stack::{Config, Stack};
///
/// fn connection<S: Stack>() -> Result<(), trimtab_stack::ConfigError> {
///     let config = Config::<S>::new("mortise")?.with_model("T - 50*D")?;
///     // The factory is for the stack's transport configuration.
///     let (factory, handle) = config.connection();
///     assert_eq!(handle.scheme(), "mortise");
/// #   drop(factory);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Config<S> {
    settings: Settings,
    stack: PhantomData<fn() -> S>,
}

/// What a configuration says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) plan: Plan,
    pub(crate) model: Model,
    pub(crate) seed: u64,
    /// What remembers destinations, and the connection's own.
    pub(crate) memory: Option<Memory>,
    pub(crate) destination: Option<IpAddr>,
    /// What runs in the holdback, and where the guard goes back to, whatever scheme is set later.
    pub(crate) baseline: Arc<Plan>,
    holdback: Share,
    /// What the arm goes by, in place of the destination.
    key: Option<Arc<[u8]>>,
    pub(crate) guard: Option<Safety>,
    /// Whether somebody takes reports.
    pub(crate) keeps_reports: bool,
    /// Where the logs of paths go.
    pub(crate) qlog: Option<Qlog>,
    /// When the clock that all senders share says zero; `None` for the time since 1970.
    clock_zero: Option<Instant>,
    pub(crate) traits: &'static Traits,
}

/// Why a text is no configuration, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It names no scheme.
    #[error("scheme {0}")]
    Scheme(#[from] SchemeError),
    /// It names a bound, which needs the future of the path.
    #[error(
        "scheme {scheme:?}: a bound runs in the simulator only; name an algorithm such as bbr3, \
         or a steering such as mortise"
    )]
    Bound {
        /// The scheme.
        scheme: String,
    },
    /// It names a plug-in, which a server does not load.
    #[error(
        "scheme {scheme:?}: a plug-in runs in `trimtab compare` only; name an algorithm such as \
         bbr3, or a steering such as mortise"
    )]
    Plugin {
        /// The scheme.
        scheme: String,
    },
    /// It names an algorithm that a stack brings itself.
    #[error(
        "scheme {scheme:?}: a stack's own congestion control runs without Trimtab; give {own} or \
         one like it to the transport configuration"
    )]
    Own {
        /// The scheme.
        scheme: String,
        /// What the stack has of its own.
        own: &'static str,
    },
    /// The file of a learnt model cannot be read.
    #[error("the model {} cannot be read: {cause}; name another with model=FILE", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file of a learnt model holds none that can be used.
    #[error("the model {} cannot be used: {problem}", path.display())]
    Learnt {
        /// The file.
        path: PathBuf,
        /// The cause, and the fix.
        problem: String,
    },
    /// It is neither the name of a QoE model nor a formula.
    #[error(
        "QoE model: {problem}; name download, vod, web or conference, or fix it here:\n{pointer}"
    )]
    Model {
        /// The cause.
        problem: FormulaError,
        /// The formula, with a mark below the place.
        pointer: String,
    },
}

impl<S: Stack> Config<S> {
    /// A scheme by its text, as on Trimtab's command line: `"bbr3"`, `"copa:delta=0.1"`,
    /// `"mortise"`, `"switch:cubic,bbr:every=20s"`, `"floo"`, `"muses"`. The QoE model is
    /// `download` (Mortise Eq. 6), the seed 0. Files that the text names are read here.
    ///
    /// # Errors
    /// The text names no scheme, or one that needs the simulator, or a file that is no model.
    pub fn new(scheme: &str) -> Result<Self, ConfigError> {
        let model = Model::download();
        Ok(Self::of(Plan::read(scheme, &model, S::TRAITS)?, model))
    }

    /// A scheme that the caller has read and made ready, by its text, e.g. the lab, which reads a
    /// learnt model once for many runs. Its steering follows a model already; `model` is for
    /// schemes that [`Handle::set_scheme`] names later.
    pub fn prepared(scheme: &str, start: Start, model: Model) -> Self {
        Self::of(Plan::prepared(scheme, start), model)
    }

    fn of(plan: Plan, model: Model) -> Self {
        Self::with(Settings {
            baseline: Arc::new(plan.baseline()),
            plan,
            model,
            seed: 0,
            memory: None,
            destination: None,
            holdback: Share::default(),
            key: None,
            guard: None,
            keeps_reports: false,
            qlog: None,
            clock_zero: None,
            traits: S::TRAITS,
        })
    }

    fn with(settings: Settings) -> Self {
        Self { settings, stack: PhantomData }
    }

    #[cfg(test)]
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// With another QoE model: `download`, `vod`, `web`, `conference`, or a formula of `T`
    /// (throughput, Mbit/s), `D` (round-trip time, seconds), `L` (share lost, 0 to 1) and the
    /// factors `R`, `remaining`, `Rbar`, `C` and `V`. Only steerings by preference read it.
    ///
    /// `"T - 50*D"` states the price of delay itself: 50 Mbit/s per second, the hint λ of Mortise.
    ///
    /// # Errors
    /// The text is neither; the message marks the place.
    pub fn with_model(self, text: &str) -> Result<Self, ConfigError> {
        self.settings.with_model(text, &[]).map(Self::with)
    }

    /// With a seed of the algorithms' own randomness. Default: 0. The second path of a factory gets
    /// the next number, and so on.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self::with(Settings { seed, ..self.settings })
    }

    /// With a clock that says zero at this time. Flows of Copa that share a queue drain it together,
    /// at times that all senders know. Default: the time since 1970, by the system's clock. In virtual
    /// time that would be another one in each run.
    #[must_use]
    pub fn with_clock(self, zero: Instant) -> Self {
        Self::with(Settings { clock_zero: Some(zero), ..self.settings })
    }

    /// With what an earlier connection observed, by a clock that begins with the connection
    /// (RFC 9959). A scheme such as `resume:cwnd=600KB,rtt=50ms:cubic` says the same in text.
    #[must_use]
    pub fn with_resumption(self, how: Resumption) -> Self {
        let plan = self.settings.plan.resuming(how);
        Self::with(Settings { plan, ..self.settings })
    }

    /// With a memory of destinations: connections of [`connection_to`](Self::connection_to) resume
    /// by it, begin with the algorithm that suited the last one, and leave there what they observe.
    #[must_use]
    pub fn with_memory(self, memory: &Memory) -> Self {
        Self::with(Settings { memory: Some(memory.clone()), ..self.settings })
    }

    /// With another baseline: the scheme that the holdback runs, and to which the guard goes back.
    /// Default: the fallback that the scheme names (`safe=`), else the algorithm with which the
    /// scheme begins, with the algorithm's own knobs, e.g. `copa` for `mortise`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_baseline(self, scheme: &str) -> Result<Self, ConfigError> {
        let baseline = Plan::read(scheme, &self.settings.model, S::TRAITS)?;
        Ok(Self::with(Settings { baseline: Arc::new(baseline), ..self.settings }))
    }

    /// With a holdback: this share of the connections runs the baseline, so that the effect of the
    /// scheme can be measured. Metrics and [`Handle::arm`] show the arm. Default: none.
    ///
    /// The arm goes by a hash that is the same on every machine: of the peer's network, /24 or /48,
    /// since connections to one place share its bottleneck, or of a [key](Self::with_key). A
    /// connection that has neither is not in the holdback.
    #[must_use]
    pub fn with_holdback(self, share: Share) -> Self {
        Self::with(Settings { holdback: share, ..self.settings })
    }

    /// With a key that decides on the arm in place of the peer's address, e.g. that of a user.
    /// Connections with one key are in one arm.
    #[must_use]
    pub fn with_key(self, key: &[u8]) -> Self {
        Self::with(Settings { key: Some(key.into()), ..self.settings })
    }

    /// With the guard of Trimtab's agent: a path that suffers from its scheme, by losses or a long
    /// queue, goes back to the baseline, and is steered again after a rest. The rest shows what the
    /// path does by itself; where that is about as bad, it ends. Default: none.
    ///
    /// ```
    /// use trimtab_stack::{Config, Safety, Share, Stack};
    ///
    /// fn config<S: Stack>() -> Result<Config<S>, trimtab_stack::ConfigError> {
    ///     let safety = Safety { loss: Share::new(0.03), ..Safety::default() };
    ///     let config = Config::new("mortise")?.with_baseline("cubic")?;
    ///     Ok(config.with_guard(safety).with_holdback(Share::new(0.1)))
    /// }
    /// ```
    #[must_use]
    pub fn with_guard(self, safety: Safety) -> Self {
        Self::with(Settings { guard: Some(safety), ..self.settings })
    }

    /// With a log of each path in the format qlog, for qvis and other readers. Default: none, which
    /// costs nothing.
    ///
    /// ```
    /// use trimtab_stack::{Config, Qlog, Stack};
    ///
    /// fn config<S: Stack>() -> Result<Config<S>, Box<dyn std::error::Error>> {
    ///     // Logs go to the folder that `QLOGDIR` names; there are none without it.
    ///     let qlog = Qlog::from_env()?.map(Qlog::at_server);
    ///     Ok(Config::new("mortise")?.with_qlog(qlog))
    /// }
    /// ```
    #[must_use]
    pub fn with_qlog(self, qlog: impl Into<Option<Qlog>>) -> Self {
        Self::with(Settings { qlog: qlog.into(), ..self.settings })
    }

    /// As [`connection`](Self::connection), for a connection to this peer. With a holdback the peer
    /// decides on its arm. With a memory it
    /// resumes what the last connection to the peer observed. A path to another address of the
    /// peer begins as any new one.
    pub fn connection_to(&self, peer: IpAddr) -> (Arc<S::Factory>, Handle) {
        Self::with(Settings { destination: Some(peer), ..self.settings.clone() }).connection()
    }

    /// A factory for the transport configuration of one connection, and the handle that steers it.
    /// A factory that several connections share makes one handle steer all of them alike.
    pub fn connection(&self) -> (Arc<S::Factory>, Handle) {
        let paths = Paths::new(self.settings.clone());
        let handle = paths.handle();
        (Arc::new(paths.into()), handle)
    }
}

impl Settings {
    /// What the clock that all senders share says at this time, which is about now.
    pub(crate) fn clock(&self, now: Instant) -> Duration {
        let clock = match self.clock_zero {
            Some(zero) => now.saturating_duration_since(zero),
            None => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        };
        Duration::from_nanos(u64::try_from(clock.as_nanos()).unwrap_or(0))
    }

    /// With the QoE model of this text, which may name these factors of the application's own.
    pub(crate) fn with_model(self, text: &str, own: &[&str]) -> Result<Self, ConfigError> {
        let model = model(text, own)?;
        let plan = Plan::read(self.plan.label(), &model, self.traits)?;
        let mut baseline = self.baseline;
        Arc::make_mut(&mut baseline).set_model(&model);
        Ok(Self { plan, model, baseline, ..self })
    }

    /// The arm of a connection.
    pub(crate) fn arm(&self) -> Arm {
        match (&self.key, self.destination) {
            (Some(key), _) => Arm::of_key(key, self.holdback),
            (None, Some(destination)) => Arm::of(destination, self.holdback),
            (None, None) => Arm::Treated,
        }
    }

    /// The place of a connection that begins now in the memory of destinations.
    pub(crate) fn place(&self, now: Instant) -> Option<Place> {
        Some(Place::take(self.memory.as_ref()?, self.destination?, now))
    }

    /// How such a connection resumes: by the memory, else as its plan says.
    pub(crate) fn resumption(
        &self,
        plan: &Plan,
        place: Option<&Place>,
        now: Instant,
    ) -> Option<Resumption> {
        let by_scheme = plan.resumption();
        let Some(place) = place else { return by_scheme };
        let by_scheme = by_scheme.unwrap_or_default();
        let saved = place.saved(now).or(by_scheme.saved);
        Some(Resumption { saved, ..by_scheme })
    }
}

/// The QoE model of a text.
fn model(text: &str, own: &[&str]) -> Result<Model, ConfigError> {
    Model::parse(text, own)
        .map_err(|problem| ConfigError::Model { pointer: problem.pointer(text), problem })
}

#[cfg(test)]
mod tests {
    use crate::tests::Config;

    #[test]
    fn a_wrong_formula_is_shown_with_its_place() {
        let problem = Config::new("mortise").unwrap().with_model("T - pirce * D").unwrap_err();
        let text = problem.to_string();
        assert!(text.contains("unknown variable `pirce`"), "{text}");
        assert!(text.ends_with("T - pirce * D\n    ^"), "{text}");
    }
}
