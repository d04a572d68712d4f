//! A service's description as it is written, and its checks.

use serde::Deserialize;
use trimtab_cc::{Spec, find};
use trimtab_qoe::{AggregateFormula, Statistic, StatisticKind};
use trimtab_steer::customize::{Acquisition, Commons, Dimension, Estimator, Settings, Space};
use trimtab_units::Duration;

use super::{
    BUILT_IN_STATISTICS, HARM_MAX, INTERVALS, KnobRange, Learning, OTHERS_MAX, Other, Service,
    ServiceError, knob,
};
use crate::prior::PriorRow;
use crate::summary::check_name;
use crate::{Contexts, Guard};

/// Their means tell of the bottleneck, and are kept of each interval.
const OF_BOTTLENECK: [&str; 2] = ["rtt", "loss"];

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    name: String,
    #[serde(default = "twenty_minutes")]
    interval: String,
    #[serde(default = "vivace")]
    algorithm: String,
    incumbent: Option<String>,
    #[serde(default)]
    others: Vec<String>,
    reward: String,
    surrogate: Option<String>,
    #[serde(default)]
    guards: Vec<String>,
    #[serde(default)]
    statistics: Vec<String>,
    active: Option<usize>,
    #[serde(default = "one")]
    connections_min: u64,
    side_by_side: Option<f64>,
    harm_max: Option<f64>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    contexts: Contexts,
    #[serde(default)]
    knobs: toml::Table,
    #[serde(default)]
    fixed: Values,
    #[serde(default)]
    safe: Values,
    #[serde(default)]
    start: Values,
    #[serde(default)]
    learning: Learning,
    #[serde(default)]
    prior: Vec<PriorRow>,
}

/// Values of knobs by name, in the order in which they are written.
type Values = std::collections::BTreeMap<String, f64>;

fn twenty_minutes() -> String {
    "20min".into()
}
fn vivace() -> String {
    "vivace".into()
}
const fn one() -> u64 {
    1
}

/// How the values of a knob are spread.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scale {
    #[default]
    Linear,
    Log,
}

/// A permitted range as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    min: Option<f64>,
    max: Option<f64>,
    #[serde(default)]
    scale: Scale,
}

impl Raw {
    pub(super) fn checked(self) -> Result<Service, ServiceError> {
        let name = self.name.parse().map_err(ServiceError::Name)?;
        let text = &self.interval;
        let interval: Duration = text
            .parse()
            .map_err(|cause| ServiceError::IntervalUnit { text: text.clone(), cause })?;
        if !(INTERVALS.0..=INTERVALS.1).contains(&interval) {
            return Err(ServiceError::Interval(text.clone()));
        }
        self.contexts.check()?;
        let algorithm =
            find(&self.algorithm).ok_or_else(|| ServiceError::Algorithm(self.algorithm.clone()))?;
        for name in self.fixed.keys().chain(self.safe.keys()).chain(self.start.keys()) {
            knob(algorithm, name)?;
        }
        let knobs = self.ranges(algorithm)?;
        if knobs.is_empty() {
            return Err(ServiceError::NoKnob);
        }
        let active = self.active.unwrap_or(knobs.len().min(4));
        if !(1..=8).contains(&active) {
            return Err(ServiceError::Active(active));
        }
        let is_share = |share: f64| share > 0.0 && share <= 0.5;
        if let Some(share) = self.side_by_side.filter(|share| !is_share(*share)) {
            return Err(ServiceError::SideBySide(share));
        }
        let fixed = self.fixed(algorithm, &knobs)?;
        let settings = self.learning.settings()?;
        let is_model = settings.estimator == Estimator::Model;
        match self.harm_max {
            Some(most) if !(0.0..=1.0).contains(&most) => return Err(ServiceError::HarmMax(most)),
            Some(_) if !is_model => return Err(ServiceError::HarmMaxNeedsModel),
            _ => {}
        }
        let harm_max = if is_model { self.harm_max.unwrap_or(HARM_MAX) } else { 1.0 };
        let settings = Settings { harm_max, ..settings };
        let others = self.others()?;
        if !others.is_empty() && !is_model {
            return Err(ServiceError::ChoiceNeedsModel);
        }
        if settings.acquisition == Acquisition::Thompson && !is_model {
            return Err(ServiceError::AcquisitionNeedsModel);
        }
        let (statistics, kept) = self.names()?;
        let names: Vec<&str> = statistics.iter().map(String::as_str).collect();
        let formula = |what, text: &str| {
            AggregateFormula::parse(text, &names).map_err(|cause| ServiceError::Reward {
                what,
                text: text.to_owned(),
                cause,
            })
        };
        let reward = formula("reward", &self.reward)?;
        let surrogate = self.surrogate.as_ref().map(|t| formula("surrogate", t)).transpose()?;
        let guards: Result<Vec<Guard>, _> =
            self.guards.iter().map(|text| Guard::parse(text, &names)).collect();
        let service = Service {
            name,
            interval,
            algorithm,
            space: Space::new(knobs.iter().map(|k| k.dimension).collect()),
            active: active.min(knobs.len()),
            fixed,
            knobs,
            reward,
            surrogate,
            guards: guards?,
            connections_min: self.connections_min,
            side_by_side: self.side_by_side,
            settings,
            has_incumbent: self.incumbent.is_some(),
            others,
            seed: self.seed,
            prior: Commons::default(),
            contexts: self.contexts,
            statistics,
            kept,
        };
        service.with_prior(&self.prior)
    }

    /// The incumbent, and what else may take the place of the algorithm whose knobs are learnt.
    fn others(&self) -> Result<Vec<Other>, ServiceError> {
        let incumbent = self.incumbent.iter().map(|text| ("incumbent", text));
        let mut others: Vec<Other> = Vec::new();
        for (what, text) in incumbent.chain(self.others.iter().map(|text| ("others", text))) {
            let spec: Spec = text.parse().map_err(|cause| ServiceError::Other {
                what,
                text: text.clone(),
                cause,
            })?;
            let is_own = *text == self.algorithm;
            if is_own || others.iter().any(|other| other.is_of(&spec)) {
                return Err(ServiceError::Twice(text.clone()));
            }
            others.push(Other { name: text.clone(), spec });
        }
        if others.len() > OTHERS_MAX {
            return Err(ServiceError::TooMany(others.len()));
        }
        Ok(others)
    }

    /// The names that formulas may read, and the statistics that decisions keep in any case: those
    /// of `statistics` that are written as `p50(rtt)`, and the means that tell of the bottleneck.
    fn names(&self) -> Result<(Vec<String>, Vec<Statistic>), ServiceError> {
        let mut names: Vec<String> = BUILT_IN_STATISTICS.map(str::to_owned).into();
        let (kept, new): (Vec<&String>, Vec<_>) =
            self.statistics.iter().partition(|text| text.contains('('));
        for name in new {
            check_name(name).map_err(ServiceError::Statistic)?;
            names.push(name.clone());
        }
        let statistic = |text: &String| {
            let found = Statistic::parse(text).filter(|found| names.contains(&found.of));
            found.ok_or_else(|| ServiceError::Kept(text.chars().take(80).collect()))
        };
        let of_bottleneck =
            OF_BOTTLENECK.map(|of| Ok(Statistic { kind: StatisticKind::Mean, of: of.to_owned() }));
        let kept =
            kept.into_iter().map(statistic).chain(of_bottleneck).collect::<Result<_, _>>()?;
        Ok((names, kept))
    }

    /// The knobs that may be learnt, in the order of the file.
    fn ranges(
        &self,
        algorithm: &'static trimtab_cc::Algorithm,
    ) -> Result<Vec<KnobRange>, ServiceError> {
        for (what, values) in [("safe", &self.safe), ("start", &self.start)] {
            if let Some(knob) = values.keys().find(|k| !self.knobs.contains_key(*k)) {
                return Err(ServiceError::NotLearnt { what, knob: knob.clone() });
            }
        }
        self.knobs
            .iter()
            .map(|(name, value)| {
                let own = knob(algorithm, name)?;
                let range: RawRange = value.clone().try_into().map_err(|cause| {
                    ServiceError::Knob { knob: name.clone(), cause: Box::new(cause) }
                })?;
                // §5.5: never wider than what the algorithm itself permits.
                let (min, max) = (range.min.unwrap_or(own.min), range.max.unwrap_or(own.max));
                if !(min >= own.min && max <= own.max && min < max) {
                    let (least, most) = (own.min, own.max);
                    return Err(ServiceError::Range { knob: name.clone(), min, max, least, most });
                }
                let logarithmic = matches!(range.scale, Scale::Log);
                if logarithmic && min <= 0.0 {
                    return Err(ServiceError::Logarithmic(name.clone()));
                }
                let inside = |what, value: f64| {
                    if (min..=max).contains(&value) {
                        Ok(value)
                    } else {
                        Err(ServiceError::Value { what, knob: name.clone(), value, min, max })
                    }
                };
                let safe = inside("safe", self.safe.get(name).copied().unwrap_or(own.default))?;
                let start = inside("start", self.start.get(name).copied().unwrap_or(safe))?;
                let dimension = Dimension { min, max, logarithmic };
                Ok(KnobRange { name: name.clone(), unit: own.unit.into(), dimension, start, safe })
            })
            .collect()
    }

    /// The knobs that never change.
    fn fixed(
        &self,
        algorithm: &'static trimtab_cc::Algorithm,
        learnt: &[KnobRange],
    ) -> Result<Vec<(String, f64)>, ServiceError> {
        self.fixed
            .iter()
            .map(|(name, &value)| {
                let own = knob(algorithm, name)?;
                if learnt.iter().any(|k| k.name == *name) {
                    return Err(ServiceError::LearntAndFixed(name.clone()));
                }
                own.check(value).map_err(|_| ServiceError::Value {
                    what: "fixed",
                    knob: name.clone(),
                    value,
                    min: own.min,
                    max: own.max,
                })?;
                Ok((name.clone(), value))
            })
            .collect()
    }
}
