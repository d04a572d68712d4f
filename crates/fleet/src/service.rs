//! The description of a service: how it is configured, what is learnt, and what is good.

mod raw;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::de::DeTable;
use trimtab_cc::{Algorithm, Knob, Spec, SpecError};
use trimtab_qoe::{AggregateFormula, FormulaError, Statistic};
use trimtab_steer::customize::{
    Acquisition, Commons, Dimension, Estimator, Forgetting, Point, Preset, Settings, SettingsError,
    Space,
};
use trimtab_units::{Duration, ParseUnitError, Time};

use crate::prior::{self, PriorRow};
use crate::{
    Chosen, Configuration, Context, Contexts, ContextsError, Guard, GuardError, Interval, Key,
    KeyError, ServiceName, Summary, SummaryError,
};

/// What every edge reports: throughput in Mbit/s, round-trip and request times in seconds, the
/// share of packets that was lost, and the share of playing time in which a video stood still.
pub const BUILT_IN_STATISTICS: [&str; 5] =
    ["throughput", "rtt", "loss", "request_time", "rebuffering"];

/// Shortest and longest interval.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// What flows of others may lose by default: Ware et al. (HotNets 2019) name no number; this one is
/// above what intervals are off by, and well below what BBR takes from CUBIC.
const HARM_MAX: f64 = 0.1;

/// The most other algorithms of a service: each has to be tried everywhere.
const OTHERS_MAX: usize = 12;

/// An algorithm that may take the place of the one whose knobs are learnt.
#[derive(Clone, Debug)]
pub struct Other {
    /// As the service's description writes it.
    pub(crate) name: String,
    /// What that is.
    pub(crate) spec: Spec,
}

impl Other {
    /// As the service's description writes it, e.g. `copa:mvfst`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this is the same algorithm with the same knobs, in whatever order they are set.
    pub(crate) fn is_of(&self, spec: &Spec) -> bool {
        let (own, theirs) = (self.spec.settings(), spec.settings());
        self.spec.algorithm().name == spec.algorithm().name
            && own.len() == theirs.len()
            && own.iter().all(|setting| theirs.contains(setting))
    }
}

/// A knob that is learnt, with its permitted range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnobRange {
    /// Its name.
    pub name: String,
    /// Its unit; `1` for a pure number.
    pub unit: String,
    /// Range and scale.
    pub dimension: Dimension,
    /// Where learning starts.
    pub start: f64,
    /// The value of the safe configuration.
    pub safe: f64,
}

/// How it is learnt: a preset, and what differs from it. See [`Settings`] for the meaning of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is a setting of the same name in trimtab_steer")]
pub struct Learning {
    pub preset: Preset,
    pub estimator: Option<Estimator>,
    pub radius: Option<f64>,
    pub radius_min: Option<f64>,
    pub rate: Option<f64>,
    pub momentum: Option<f64>,
    pub average: Option<u32>,
    pub step_max: Option<f64>,
    pub halving: Option<u32>,
    pub optimism: Option<f64>,
    pub acquisition: Option<Acquisition>,
    pub chance_min: Option<f64>,
    pub forgetting: Option<Forgetting>,
    pub keep: Option<f64>,
    pub cells: Option<u32>,
    pub debt_max: Option<f64>,
    pub alarm_after: Option<u32>,
    pub alarm_deviations: Option<f64>,
    pub rest: Option<u32>,
    pub select_every: Option<u32>,
    pub select_reach: Option<f64>,
    pub select_repeats: Option<u32>,
}

impl Learning {
    /// The settings that it amounts to.
    ///
    /// # Errors
    /// One is out of its range.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        let of = Settings::of(self.preset);
        let radius = self.radius.unwrap_or(of.radius);
        let settings = Settings {
            estimator: self.estimator.unwrap_or(of.estimator),
            radius,
            radius_min: self.radius_min.unwrap_or(of.radius_min.min(radius)),
            rate: self.rate.unwrap_or(of.rate),
            momentum: self.momentum.unwrap_or(of.momentum),
            average: self.average.unwrap_or(of.average),
            step_max: self.step_max.unwrap_or(of.step_max),
            halving: self.halving.unwrap_or(of.halving),
            optimism: self.optimism.unwrap_or(of.optimism),
            acquisition: self.acquisition.unwrap_or(of.acquisition),
            chance_min: self.chance_min.unwrap_or(of.chance_min),
            forgetting: self.forgetting.unwrap_or(of.forgetting),
            keep: self.keep.unwrap_or(of.keep),
            cells: self.cells.unwrap_or(of.cells),
            harm_max: of.harm_max,
            debt_max: self.debt_max.unwrap_or(of.debt_max),
            alarm_after: self.alarm_after.unwrap_or(of.alarm_after),
            alarm_deviations: self.alarm_deviations.unwrap_or(of.alarm_deviations),
            rest: self.rest.unwrap_or(of.rest),
            select_every: self.select_every.unwrap_or(of.select_every),
            select_reach: self.select_reach.unwrap_or(of.select_reach),
            select_repeats: self.select_repeats.unwrap_or(of.select_repeats),
        };
        settings.check()?;
        Ok(settings)
    }
}

/// A service, checked: nothing in it can fail later. `docs/concepts/customize.md` describes every key of its file.
#[derive(Clone, Debug)]
pub struct Service {
    name: ServiceName,
    interval: Duration,
    contexts: Contexts,
    algorithm: &'static Algorithm,
    knobs: Vec<KnobRange>,
    fixed: Vec<(String, f64)>,
    /// The incumbent first, where there is one.
    others: Vec<Other>,
    has_incumbent: bool,
    space: Space,
    active: usize,
    reward: AggregateFormula,
    surrogate: Option<AggregateFormula>,
    guards: Vec<Guard>,
    connections_min: u64,
    side_by_side: Option<f64>,
    settings: Settings,
    seed: u64,
    /// What is known before anything was tried.
    prior: Commons,
    /// The names that formulas may read.
    statistics: Vec<String>,
    /// Statistics that decisions keep beyond those that formulas read.
    kept: Vec<Statistic>,
}

/// Why a text describes no service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The file cannot be read.
    #[error("cannot read the service {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not TOML, or has keys that there are not; the message has line and column.
    #[error("{}", .0.to_string().trim_end())]
    Parse(Box<toml::de::Error>),
    /// The name is none.
    #[error(transparent)]
    Name(KeyError),
    /// The interval is too short or too long.
    #[error("interval = {0:?}: a configuration is in force for 1s to 24h; 10min to 20min is usual")]
    Interval(String),
    /// The interval is no duration.
    #[error("interval = {text:?}: {cause}; write it as \"20min\"")]
    IntervalUnit {
        /// As written.
        text: String,
        /// What is wrong with it.
        cause: ParseUnitError,
    },
    /// The contexts cannot be.
    #[error("contexts: {0}")]
    Contexts(#[from] ContextsError),
    /// There is no such algorithm.
    #[error("there is no algorithm {0:?}: `trimtab cc list` names them")]
    Algorithm(String),
    /// Another algorithm is none.
    #[error("{what} {text:?}: {cause}")]
    Other {
        /// `incumbent` or `others`.
        what: &'static str,
        /// As it is written.
        text: String,
        /// What is wrong with it.
        cause: SpecError,
    },
    /// Another algorithm is named twice.
    #[error("{0} is named twice among algorithm, incumbent and others: leave one out")]
    Twice(String),
    /// Too many other algorithms.
    #[error(
        "{0} other algorithms: at most {OTHERS_MAX}, since each is tried in every context; leave \
         out what is never best"
    )]
    TooMany(usize),
    /// Gradients have no direction towards another algorithm.
    #[error(
        "incumbent and others need a model of the reward, which presets \"paper\" and \"pairs\" \
         do not have: leave them out, or use preset = \"model\""
    )]
    ChoiceNeedsModel,
    /// Gradients say nothing of which arm is likely to be best.
    #[error(
        "acquisition = \"thompson\" needs a model of the reward, which presets \"paper\" and \
         \"pairs\" do not have: leave it out, or use preset = \"model\""
    )]
    AcquisitionNeedsModel,
    /// The algorithm has no such knob.
    #[error("{algorithm} has no knob {knob:?}{}", did_you_mean(.nearest))]
    UnknownKnob {
        /// The algorithm.
        algorithm: &'static str,
        /// The name that is none.
        knob: String,
        /// The knob that was perhaps meant.
        nearest: Option<&'static str>,
    },
    /// What stands behind a knob is no range.
    #[error("knob {knob}: {}", .cause.message())]
    Knob {
        /// The knob.
        knob: String,
        /// What is wrong with it.
        cause: Box<toml::de::Error>,
    },
    /// No knob is named.
    #[error("no knob to learn: name at least one under [knobs]")]
    NoKnob,
    /// A knob's permitted range is not one, or is wider than the guarantees of the algorithm.
    #[error(
        "knob {knob}: the permitted range {min} to {max} must lie within {least} to {most}, min below max"
    )]
    Range {
        /// The knob.
        knob: String,
        /// The least permitted value that was given.
        min: f64,
        /// The largest permitted value that was given.
        max: f64,
        /// The least that the algorithm takes.
        least: f64,
        /// The most that the algorithm takes.
        most: f64,
    },
    /// A logarithmic scale that begins at zero.
    #[error("knob {0}: a logarithmic scale begins above 0")]
    Logarithmic(String),
    /// A value is outside the permitted range.
    #[error("{what} {knob} = {value} is outside the permitted range {min} to {max}")]
    Value {
        /// Of what: `safe`, `start`.
        what: &'static str,
        /// The knob.
        knob: String,
        /// Its value.
        value: f64,
        /// The least permitted value.
        min: f64,
        /// The largest permitted value.
        max: f64,
    },
    /// A safe or start value is given for a knob that is not learnt.
    #[error(
        "{what} {knob}: it is not under [knobs]; a knob that is never changed stands under [fixed]"
    )]
    NotLearnt {
        /// Of what: `safe`, `start`.
        what: &'static str,
        /// The knob.
        knob: String,
    },
    /// A knob is both learnt and fixed.
    #[error("knob {0} stands under [knobs] and under [fixed]: leave one out")]
    LearntAndFixed(String),
    /// The share of the control is none.
    #[error(
        "side_by_side = {0}: the share of the clusters that run the safe configuration next to each \
         trial, above 0 and at most 0.5; 0.25 is usual"
    )]
    SideBySide(f64),
    /// The bound of harm is none.
    #[error(
        "harm_max = {0}: the share of the throughput that flows of others may lose, 0 to 1; 0.1 is \
         usual, and 1 is no bound"
    )]
    HarmMax(f64),
    /// Gradients say nothing of the harm of a point.
    #[error(
        "harm_max needs a model, which presets \"paper\" and \"pairs\" do not have: leave it out, \
         or use preset = \"model\""
    )]
    HarmMaxNeedsModel,
    /// A row of the prior is none.
    #[error("prior {run:?}: {cause}")]
    Prior {
        /// What it says was tried.
        run: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Gradients know nothing but their own trials.
    #[error(
        "prior needs a model, which presets \"paper\" and \"pairs\" do not have: leave it out, or \
         use preset = \"model\""
    )]
    PriorNeedsModel,
    /// The number of active knobs is none.
    #[error("active = {0}: 1 to 8 knobs are learnt at a time; 3 or 4 is usual")]
    Active(usize),
    /// A named statistic is none.
    #[error(transparent)]
    Statistic(SummaryError),
    /// A statistic to keep is none.
    #[error(
        "statistics: {0:?} is none; write a name that edges report, e.g. \"bitrate\", or a statistic \
         to keep of one, e.g. \"p50(rtt)\" or \"mean(bitrate)\""
    )]
    Kept(String),
    /// A reward is no formula.
    #[error("{what} {text:?}: {cause}")]
    Reward {
        /// `reward` or `surrogate`.
        what: &'static str,
        /// The formula.
        text: String,
        /// What is wrong with it.
        cause: FormulaError,
    },
    /// A guard is none.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A setting of learning is out of its range.
    #[error("learning: {0}")]
    Learning(#[from] SettingsError),
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean {name}?"))
}

impl ServiceError {
    /// The byte of the service's text at which the mistake is: the key that is wrong, or the table
    /// that it is missing from; 0 where there is neither.
    pub fn offset(&self, text: &str) -> usize {
        if let Self::Parse(cause) = self {
            return cause.span().map_or(0, |span| span.start);
        }
        let Ok(all) = DeTable::parse(text) else { return 0 };
        let found = self.places().into_iter().map(|place| find(all.get_ref(), &place));
        // The first of those that are found in most parts.
        found.rev().max_by_key(|&(depth, _)| depth).map_or(0, |(_, at)| at)
    }

    /// Where in a service's file it may be, by table and key.
    fn places(&self) -> Vec<Vec<&str>> {
        fn at<'a>(table: &'a str, key: &'a str) -> Vec<Vec<&'a str>> {
            vec![vec![table, key]]
        }
        match self {
            Self::Read { .. } | Self::Parse(_) => vec![],
            Self::Name(_) => vec![vec!["name"]],
            Self::Interval(_) | Self::IntervalUnit { .. } => vec![vec!["interval"]],
            Self::Contexts(ContextsError::Bands(_)) => at("contexts", "bands"),
            Self::Contexts(ContextsError::UtcOffset(_)) => at("contexts", "utc_offset"),
            Self::Algorithm(_) => vec![vec!["algorithm"]],
            Self::Other { what, .. } => vec![vec![*what]],
            Self::Twice(_) | Self::TooMany(_) => vec![vec!["others"]],
            Self::ChoiceNeedsModel => vec![vec!["incumbent"], vec!["others"]],
            Self::AcquisitionNeedsModel => at("learning", "acquisition"),
            Self::UnknownKnob { knob, .. } => {
                let tables = ["fixed", "safe", "start", "knobs"];
                tables.into_iter().flat_map(|table| at(table, knob)).collect()
            }
            Self::NoKnob => vec![vec!["knobs"]],
            Self::Knob { knob, .. } | Self::Range { knob, .. } | Self::Logarithmic(knob) => {
                at("knobs", knob)
            }
            // A safe value that is not written is the algorithm's, and outside of what stands under [knobs].
            Self::Value { what, knob, .. } => [at(what, knob), at("knobs", knob)].concat(),
            Self::NotLearnt { what, knob } => at(what, knob),
            Self::LearntAndFixed(knob) => at("fixed", knob),
            Self::SideBySide(_) => vec![vec!["side_by_side"]],
            Self::Prior { .. } | Self::PriorNeedsModel => vec![vec!["prior"]],
            Self::HarmMax(_) | Self::HarmMaxNeedsModel => vec![vec!["harm_max"]],
            Self::Active(_) => vec![vec!["active"]],
            Self::Statistic(_) | Self::Kept(_) => vec![vec!["statistics"]],
            Self::Reward { what, .. } => vec![vec![*what]],
            Self::Guard(_) => vec![vec!["guards"]],
            Self::Learning(SettingsError { setting, .. }) => at("learning", setting),
        }
    }
}

/// How many of these keys, each in the table of the one before it, there are, and the byte at which
/// the last of them begins.
fn find(table: &DeTable<'_>, keys: &[&str]) -> (usize, usize) {
    let Some((first, rest)) = keys.split_first() else { return (0, 0) };
    let Some((key, value)) = table.iter().find(|(key, _)| **key.get_ref() == **first) else {
        return (0, 0);
    };
    let inside = value.get_ref().as_table().map_or((0, 0), |table| find(table, rest));
    if inside.0 > 0 { (inside.0 + 1, inside.1) } else { (1, key.span().start) }
}

impl Service {
    /// Parses the description of a service.
    ///
    /// # Errors
    /// Says what is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, ServiceError> {
        toml::from_str::<raw::Raw>(text).map_err(|e| ServiceError::Parse(Box::new(e)))?.checked()
    }

    /// Reads the description of a service from a file.
    ///
    /// # Errors
    /// As [`Service::parse`], and when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, ServiceError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ServiceError::Read { path: path.to_owned(), cause })?;
        Self::parse(&text)
    }

    /// Its name.
    pub fn name(&self) -> &ServiceName {
        &self.name
    }

    /// How long a configuration is in force.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The interval at a time since 1970-01-01 00:00 UTC.
    pub fn interval_at(&self, at: Time) -> Interval {
        Interval::at(at, self.interval)
    }

    /// How the week is divided.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The context of an aggregate's interval: that of its beginning.
    pub fn context_at(&self, key: &Key, interval: Interval) -> Context {
        self.contexts.at(&key.prefix, interval.start(self.interval))
    }

    /// The algorithm that is configured.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// The knobs that may be learnt.
    pub fn knobs(&self) -> &[KnobRange] {
        &self.knobs
    }

    /// What may take the place of that algorithm, the incumbent first where there is one.
    pub fn others(&self) -> &[Other] {
        &self.others
    }

    /// What was installed before, to which everything falls back.
    pub fn incumbent(&self) -> Option<&str> {
        self.others.first().filter(|_| self.has_incumbent).map(Other::name)
    }

    /// The same service with its own algorithm alone.
    #[must_use]
    pub fn alone(self) -> Self {
        let prior = Commons::default();
        Self { others: Vec::new(), has_incumbent: false, prior, ..self }
    }

    /// The permitted box.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Knobs that are learnt at a time.
    pub fn active(&self) -> usize {
        self.active
    }

    /// The reward.
    pub fn reward(&self) -> &AggregateFormula {
        &self.reward
    }

    /// The reward for intervals without the statistics of the first.
    pub fn surrogate(&self) -> Option<&AggregateFormula> {
        self.surrogate.as_ref()
    }

    /// What makes a reward, as it is written: the reward and its surrogate, and whether it is that of
    /// arms side by side, which is on another level.
    pub(crate) fn formulas(&self) -> Vec<String> {
        let formulas = std::iter::once(&self.reward).chain(&self.surrogate);
        let arms = self.side_by_side.map(|_| "side by side".to_owned());
        formulas.map(|f| f.text().to_owned()).chain(arms).collect()
    }

    /// The names that formulas may read: what every edge reports, and what this service adds.
    pub fn statistics(&self) -> impl Iterator<Item = &str> {
        self.statistics.iter().map(String::as_str)
    }

    /// Every statistic that is kept of an interval, in their order: what reward, surrogate and guards
    /// read, what `statistics` of the description names as `p50(rtt)`, and what tells of the
    /// bottleneck.
    pub(crate) fn kept(&self) -> BTreeSet<&Statistic> {
        let guards = self.guards.iter().map(Guard::formula);
        let formulas = std::iter::once(&self.reward).chain(&self.surrogate).chain(guards);
        formulas.flat_map(AggregateFormula::statistics).chain(&self.kept).collect()
    }

    /// What must hold of every interval.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The fewest connections whose statistics make a reward.
    pub fn connections_min(&self) -> u64 {
        self.connections_min
    }

    /// The share of the clusters of clients that run the safe configuration in the intervals of
    /// trials, above 0 and at most 0.5; none: all run the trial.
    pub fn side_by_side(&self) -> Option<f64> {
        self.side_by_side
    }

    /// The same service with that share, or with none.
    #[must_use]
    pub fn with_side_by_side(self, share: Option<f64>) -> Self {
        Self { side_by_side: share, ..self }
    }

    /// What flows of others may lose by what is learnt, as a share of the throughput that they get
    /// under the safe configuration: 0 to 1, and 1 is no bound.
    pub fn harm_max(&self) -> f64 {
        self.settings.harm_max
    }

    /// The same service with another prior.
    ///
    /// # Errors
    /// A row is of no algorithm or knob of the service, or learning has no use for it.
    pub fn with_prior(self, rows: &[PriorRow]) -> Result<Self, ServiceError> {
        if !rows.is_empty() && self.settings.estimator != Estimator::Model {
            return Err(ServiceError::PriorNeedsModel);
        }
        let prior = prior::commons(rows, self.algorithm, (&self.knobs, &self.others))?;
        Ok(Self { prior, ..self })
    }

    /// What is known before the fleet has tried anything, with which its findings begin.
    pub fn prior(&self) -> &Commons {
        &self.prior
    }

    /// How it is learnt.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The same service, learnt in another way.
    #[must_use]
    pub fn with_settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// The seed of all draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The same service with other draws.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Where the knobs' learning starts, in the unit cube.
    pub fn start(&self) -> Vec<f64> {
        self.space.unit(&self.knobs.iter().map(|k| k.start).collect::<Vec<_>>())
    }

    /// The safe values of the knobs, in the unit cube.
    pub fn safe_knobs(&self) -> Vec<f64> {
        self.space.unit(&self.knobs.iter().map(|k| k.safe).collect::<Vec<_>>())
    }

    /// The safe configuration: the incumbent, or where there is none the safe knobs.
    pub fn safe(&self) -> Point {
        if self.has_incumbent { Point::other(1) } else { self.safe_knobs().into() }
    }

    /// What is in force first: the incumbent, or where there is none the knobs' start.
    pub fn begin(&self) -> Point {
        if self.has_incumbent { Point::other(1) } else { self.start().into() }
    }

    /// The other algorithm that is in force at a point; none at one of the knobs.
    pub fn other(&self, point: &Point) -> Option<&Other> {
        let index = usize::from(point.choice()).checked_sub(1)?;
        self.others.get(index)
    }

    /// The point of the other algorithm of this name.
    pub fn other_named(&self, name: &str) -> Option<Point> {
        let index = self.others.iter().position(|other| other.name == name)?;
        Some(Point::other(u8::try_from(index + 1).ok()?))
    }

    /// The other algorithm that edges run by this configuration; none where they run the service's
    /// own, or one that it does not have.
    pub fn other_in(&self, configuration: &Configuration) -> Option<&Other> {
        let spec = configuration.spec().ok()?;
        self.others.iter().find(|other| other.is_of(&spec))
    }

    /// The point of a choice; the safe one where there is no such algorithm any more.
    pub fn point(&self, chosen: &Chosen) -> Point {
        match chosen {
            Chosen::Knobs(values) => self.space.unit(values).into(),
            Chosen::Other { algorithm } => {
                self.other_named(algorithm).unwrap_or_else(|| self.safe())
            }
        }
    }

    /// A point as a choice.
    pub fn chosen(&self, point: &Point) -> Chosen {
        match self.other(point) {
            Some(other) => Chosen::Other { algorithm: other.name.clone() },
            None => Chosen::Knobs(self.space.values(point)),
        }
    }

    /// What edges run at a point.
    pub fn configuration(&self, version: u64, point: &Point) -> Configuration {
        let algorithm = self.other(point).map_or(self.algorithm.name, |o| o.spec.algorithm().name);
        let (algorithm, knobs) = (algorithm.to_owned(), self.configured(point));
        Configuration { version, algorithm, knobs, control: None }
    }

    /// Knobs and values at a point, with the fixed ones.
    pub fn configured(&self, point: &Point) -> Vec<(String, f64)> {
        if let Some(other) = self.other(point) {
            let settings = other.spec.settings().iter();
            return settings.map(|(knob, value)| ((*knob).to_owned(), *value)).collect();
        }
        let names = self.knobs.iter().map(|k| k.name.clone());
        names.zip(self.space.values(point)).chain(self.fixed.iter().cloned()).collect()
    }

    /// The value of a formula for an interval; `None` when a statistic is missing or it has none.
    pub fn value(formula: &AggregateFormula, summary: &Summary) -> Option<f64> {
        Some(formula.value(|s| summary.statistic(s))).filter(|value| value.is_finite())
    }
}

/// The knob of that name.
fn knob(algorithm: &'static Algorithm, name: &str) -> Result<&'static Knob, ServiceError> {
    algorithm.knobs.iter().find(|k| k.name == name).ok_or_else(|| {
        let near = |k: &&Knob| strsim::damerau_levenshtein(k.name, name);
        let nearest = algorithm.knobs.iter().min_by_key(near).filter(|k| near(k) <= 3);
        ServiceError::UnknownKnob {
            algorithm: algorithm.name,
            knob: name.chars().take(80).collect(),
            nearest: nearest.map(|k| k.name),
        }
    })
}

#[cfg(test)]
mod tests;
