//! Floo: the algorithm that suits the application and its path best, chosen while the connection runs
//! (Floo, ATC 2023, §3).
//!
//! Reports go into a [`Monitor`]; every selection period a policy looks at the [`State`] that they come to
//! and names one of the candidates, which takes over by [`Action::Switch`].
//!
//! What to read first: the paper's §3.2 and §3.3, then `features.rs`, then `Selector::on_report` below.

pub mod antelope;
mod features;
mod file;
mod forest;
mod look;
mod model;
mod monitor;
mod network;
mod rule;
mod slope;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_units::{Duration, Time};

pub use features::{
    CANDIDATE_FEATURES, FEATURES, FEATURES_LEN, FLOO_FEATURES_LEN, Feature, Scale, State,
    feature_index,
};
pub use file::{CANDIDATES_MAX, ModelError};
pub use forest::SPLITS_MAX;
pub use model::{ENSEMBLE_VERSION, FOREST_VERSION, FORMAT, MEMBERS_MAX, Model, VERSION};
pub use monitor::{Metrics, Monitor};
pub use network::HIDDEN_MAX;
pub use slope::Slope;

use crate::{
    Action, Distrust, Insight, Needs, Reason, Report, Selections, Steer, Unusable, Utility,
};
use antelope::{Boosted, Hysteresis, Interval, Measured};
use look::Look;
use rule::Search;

/// The selection period (Floo §5.1, Appendix F).
pub const PERIOD: Duration = Duration::from_secs(12);

/// What a selection is made by.
#[derive(Clone, Debug)]
pub enum Policy {
    /// Somebody outside decides, and asks the datapath for a switch by himself: a learning agent, or a search through
    /// forks of the world.
    External,
    /// A learnt policy. Without one the safe algorithm runs.
    Model(Result<Arc<Model>, Unusable>),
    /// What models foretell of each candidate (Antelope).
    Antelope(Arc<Boosted>),
    /// A rule of what counts on the path (Floo Table 1).
    Rule(Utility),
}

/// The settings of a [`Selector`].
#[derive(Clone, Debug)]
pub struct SelectorConfig {
    /// What it chooses among; at least one.
    pub candidates: Vec<Spec>,
    /// Number of the candidate that the connection starts with.
    pub first: usize,
    /// What runs whenever the policy gives no answer; it need not be a candidate.
    pub safe: Spec,
    /// How often it chooses. Default of the paper: [`PERIOD`].
    pub period: Duration,
    /// What goes over from one algorithm to the next.
    pub how: Switch,
    /// How long after a switch the selector looks whether the connection got clearly less than
    /// before, and goes back. Shorter than the period; `None` (default): never.
    pub look: Option<Duration>,
    /// What chooses.
    pub policy: Policy,
}

impl SelectorConfig {
    /// Chooses among these, the first of which starts and is safe, every [`PERIOD`], with full switches.
    ///
    /// # Panics
    /// There are no candidates.
    pub fn new(candidates: Vec<Spec>, policy: Policy) -> Self {
        let safe = candidates[0];
        Self { candidates, first: 0, safe, period: PERIOD, how: Switch::Full, look: None, policy }
    }

    /// As a learnt policy wants it; what it starts with is also the fallback.
    pub fn of_model(model: impl Into<Arc<Model>>) -> Self {
        let model = model.into();
        let (first, period) = (model.first(), model.period());
        let candidates = model.candidates().to_vec();
        let safe = candidates[first];
        let policy = Policy::Model(Ok(model));
        Self { candidates, first, safe, period, how: Switch::Full, look: None, policy }
    }

    /// As Antelope's models want it; what it starts with is also the fallback.
    pub fn of_boosted(models: impl Into<Arc<Boosted>>) -> Self {
        let models = models.into();
        let (first, period) = (models.first(), models.period());
        let candidates = models.candidates().to_vec();
        let safe = candidates[first];
        let policy = Policy::Antelope(models);
        Self { candidates, first, safe, period, how: Switch::Full, look: None, policy }
    }

    /// For a learnt policy that is not there: `safe` starts and is asked for at every selection, every [`PERIOD`].
    pub fn without_model(safe: Spec, why: Unusable) -> Self {
        Self { safe, ..Self::new(vec![safe], Policy::Model(Err(why))) }
    }
}

/// Number of the candidate that runs, by the name of the algorithm that does. Of candidates that differ in their knobs
/// alone it is the one that was asked for; `None` where the algorithm is no candidate.
pub fn running(candidates: &[Spec], asked: &Spec, name: &str) -> Option<usize> {
    let runs = |spec: &Spec| spec.algorithm().name == name;
    let exact = candidates.iter().position(|spec| runs(spec) && spec.is_same(asked));
    exact.or_else(|| candidates.iter().position(runs))
}

/// Chooses the algorithm of one connection.
#[derive(Clone, Debug)]
pub struct Selector {
    config: Arc<SelectorConfig>,
    monitor: Monitor,
    search: Search,
    look: Option<Look>,
    /// What Antelope goes by: since the last time that it was enough.
    interval: Interval,
    measured: Measured,
    hysteresis: Hysteresis,
    /// What was asked for last.
    asked: Spec,
    /// Number of the candidate that ran at the last report; `None` where it was another algorithm.
    running: Option<usize>,
    state: State,
    metrics: Metrics,
    now: Time,
    /// When to choose next; not known before the first report.
    next_at: Option<Time>,
    selections: Selections,
    /// Whether the policy had no answer at the last selection.
    fell_back: bool,
    /// Whether the last switch was a way back.
    went_back: bool,
}

impl Selector {
    /// A new connection, which starts with [`Selector::algorithm`].
    pub fn new(config: SelectorConfig) -> Self {
        let asked = config.candidates.get(config.first).copied().unwrap_or(config.safe);
        Self {
            search: Search::new(config.candidates.len()),
            look: config.look.map(Look::new),
            config: Arc::new(config),
            monitor: Monitor::new(),
            interval: Interval::new(),
            measured: Measured::default(),
            hysteresis: Hysteresis::new(),
            asked,
            running: None,
            state: [0.0; FEATURES_LEN],
            metrics: Metrics::default(),
            now: Time::ZERO,
            next_at: None,
            selections: Selections::default(),
            fell_back: false,
            went_back: false,
        }
    }

    /// A connection that runs this already, be it a candidate or not.
    pub fn of_running(config: SelectorConfig, running: Spec) -> Self {
        Self { asked: running, ..Self::new(config) }
    }

    /// What the connection starts with.
    pub fn algorithm(&self) -> Spec {
        self.asked
    }

    /// Its settings.
    pub fn config(&self) -> &SelectorConfig {
        &self.config
    }

    /// The state at the last selection.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The same in units.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What was measured between the last two selections, or since longer where that was not
    /// [enough](Measured::is_enough).
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// What it has done so far.
    pub fn selections(&self) -> Selections {
        self.selections
    }

    /// The choice; `None` where somebody else decides, or what was asked for before shall go on.
    fn choose(&mut self) -> Option<Spec> {
        let config = &self.config;
        let decided = match &config.policy {
            Policy::External => return None,
            Policy::Model(Ok(model)) => model.decide(&self.state, self.running),
            Policy::Model(Err(why)) => Err(Distrust::NoModel(*why)),
            // Where nothing much was measured nothing speaks against what runs.
            Policy::Antelope(_) if !self.measured.is_enough() => return None,
            Policy::Antelope(models) => models
                .decide(&self.measured.inputs())
                .map(|winner| self.hysteresis.settle(winner))
                // After the safe algorithm the next prediction is a first one.
                .inspect_err(|_| self.hysteresis = Hysteresis::new()),
            Policy::Rule(utility) => Ok(self.search.choose(*utility, self.now, config.period)?),
        };
        self.fell_back = decided.is_err();
        Some(match decided {
            Ok(choice) => config.candidates.get(choice).copied().unwrap_or(config.safe),
            Err(distrust) => {
                self.selections.fallbacks += 1;
                self.selections.distrust.get_or_insert(distrust);
                config.safe
            }
        })
    }
}

impl Selector {
    /// Goes back to what ran before the last switch, where the connection got clearly more by it.
    fn look_back(&mut self, report: &Report) -> Option<Action> {
        let back = self.look.as_mut()?.on_report(report, self.running)?;
        let to = *self.config.candidates.get(back)?;
        self.asked = to;
        self.went_back = true;
        self.selections.reverts += 1;
        Some(Action::Switch { to, how: self.config.how })
    }

    /// Whether a candidate was clearly worse of late. The fallback is always allowed.
    fn rests(&self, to: &Spec) -> bool {
        let candidate = self.config.candidates.iter().position(|spec| spec.is_same(to));
        let rests = |look: &Look| candidate.is_some_and(|candidate| look.rests(candidate));
        !self.fell_back && self.look.as_ref().is_some_and(rests)
    }

    /// Looks at what comes of a switch between two candidates.
    fn watch(&mut self, to: &Spec) {
        let Some(look) = &mut self.look else { return };
        let candidate = self.config.candidates.iter().position(|spec| spec.is_same(to));
        match (self.running, candidate) {
            (Some(from), Some(to)) if !self.fell_back => look.on_switch(from, to),
            _ => look.forget(),
        }
    }
}

impl Steer for Selector {
    /// Often enough for the slices of the monitor.
    fn interval(&self, _srtt: Duration) -> Duration {
        let left = self.next_at.map_or(self.config.period, |at| at.since(self.now));
        left.min(monitor::SLICE)
    }

    fn needs(&self) -> Needs {
        Needs {
            switching: true,
            responses: matches!(self.config.policy, Policy::Model(_)),
            ..Needs::default()
        }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        self.now = report.now;
        let next_at = match self.next_at {
            Some(at) => at,
            None => {
                let began = report.now - report.interval;
                self.monitor.begin_period(began);
                began + self.config.period
            }
        };
        self.next_at = Some(next_at);
        self.monitor.on_report(report);
        self.interval.on_report(report);
        self.running = running(&self.config.candidates, &self.asked, report.algorithm);
        if matches!(self.config.policy, Policy::Rule(_)) {
            self.search.on_report(report, self.running);
        }
        if let Some(back) = self.look_back(report) {
            return Some(back);
        }
        if report.now < next_at {
            return None;
        }
        self.next_at = Some(report.now + self.config.period);
        self.metrics = self.monitor.metrics();
        self.state = self.metrics.state();
        self.monitor.begin_period(report.now);
        self.measured = self.interval.measured();
        if self.measured.is_enough() {
            self.interval = Interval::new();
        }
        self.selections.made += 1;
        if let Some(look) = &mut self.look {
            look.on_period();
        }
        let to = self.choose()?;
        if to.is_same(&self.asked) || self.rests(&to) {
            return None;
        }
        self.watch(&to);
        self.asked = to;
        self.went_back = false;
        self.selections.changed += 1;
        Some(Action::Switch { to, how: self.config.how })
    }

    fn reason(&self, _action: &Action) -> Option<Reason> {
        if self.went_back {
            return Some(Reason::Worse);
        }
        Some(match (&self.config.policy, self.selections.distrust) {
            (Policy::Rule(utility), _) => Reason::Rule(*utility),
            (_, Some(why)) if self.fell_back => Reason::Fallback(why),
            _ => Reason::Learnt,
        })
    }

    /// A learnt policy has its own.
    fn fallback(&self) -> Option<Spec> {
        let is_learnt = matches!(self.config.policy, Policy::Model(_) | Policy::Antelope(_));
        is_learnt.then_some(self.config.safe)
    }

    /// What a learnt policy prefers in the last state. Nothing switches here, so what a switch costs
    /// does not count.
    fn suited(&self) -> Option<Spec> {
        let preferred = match &self.config.policy {
            _ if self.selections.made == 0 => return None,
            Policy::Model(Ok(model)) => model.preferred(&self.state, self.running).ok()?,
            _ => return None,
        };
        self.config.candidates.get(preferred).copied()
    }

    fn begin_with(&mut self, spec: Spec) {
        self.asked = spec;
    }

    fn insight(&self) -> Insight {
        let outside = matches!(self.config.policy, Policy::External);
        Insight { selections: (!outside).then_some(self.selections), ..Insight::default() }
    }
}

#[cfg(test)]
mod look_tests;
#[cfg(test)]
mod tests;
