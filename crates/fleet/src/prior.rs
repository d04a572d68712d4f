//! What is known of a service before its fleet has tried anything: findings of another fleet, or of
//! a simulated one, as the service's description writes them.

use serde::{Deserialize, Serialize};
use trimtab_cc::{Algorithm, Spec};
use trimtab_steer::customize::{Commons, Finding, Space};

use crate::{Cell, KnobRange, Other, Point, Service, ServiceError};

/// So many trials a prior counts as at most, all its rows together: what the fleet itself finds is
/// to outweigh it within a day.
const TRIALS_MAX: f64 = 400.0;

/// A row of a prior: trials of one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorRow {
    /// What was tried, as `compare --cc` writes it: an algorithm among the service's others, or its
    /// own with the knobs that differ from their defaults.
    pub run: String,
    /// How much better it was than the safe configuration, in standard deviations of the rewards of
    /// an aggregate.
    pub advantage: f64,
    /// How many trials that is the mean of, above 0.
    pub trials: f64,
}

/// What is wrong with a row, and what would be right.
type Fault = String;

impl PriorRow {
    /// What it says, in the unit cube of these knobs and with the numbers of these other algorithms.
    pub(crate) fn finding(
        &self,
        algorithm: &Algorithm,
        knobs: &[KnobRange],
        others: &[Other],
    ) -> Result<Finding, Fault> {
        if !self.advantage.is_finite() {
            return Err(format!("advantage = {} is no number", self.advantage));
        }
        if !(self.trials > 0.0 && self.trials.is_finite()) {
            return Err(format!("trials = {}: give a number above 0", self.trials));
        }
        let point = self.point(algorithm, knobs, others)?;
        Ok(Finding { point, advantage: self.advantage, trials: self.trials })
    }

    fn point(
        &self,
        algorithm: &Algorithm,
        knobs: &[KnobRange],
        others: &[Other],
    ) -> Result<Point, Fault> {
        let spec: Spec = self.run.parse().map_err(|e| format!("{e}"))?;
        let other = others.iter().position(|other| other.is_of(&spec));
        if let Some(number) = other.and_then(|index| u8::try_from(index + 1).ok()) {
            return Ok(Point::other(number));
        }
        if spec.algorithm().name != algorithm.name {
            return Err(format!(
                "the service does not run it: name it under others, or remove the row; there are \
                 {} and {} others",
                algorithm.name,
                others.len()
            ));
        }
        let value = |knob: &KnobRange| {
            let set = spec.settings().iter().find(|(name, _)| *name == knob.name);
            let of_algorithm = || algorithm.knobs.iter().find(|own| own.name == knob.name);
            let value = set.map(|(_, value)| *value).or_else(|| Some(of_algorithm()?.default));
            let value =
                value.ok_or_else(|| format!("{} has no knob {}", algorithm.name, knob.name))?;
            let (min, max) = (knob.dimension.min, knob.dimension.max);
            // A value is written with a few digits.
            let slack = 1e-3 * (max - min);
            if !(min - slack..=max + slack).contains(&value) {
                return Err(format!(
                    "{} = {value} is outside the permitted range {min} to {max}: remove the row",
                    knob.name
                ));
            }
            Ok(value.clamp(min, max))
        };
        let values = knobs.iter().map(value).collect::<Result<Vec<f64>, Fault>>()?;
        let space = Space::new(knobs.iter().map(|knob| knob.dimension).collect());
        Ok(space.unit(&values).into())
    }

    /// A finding as a row of this service.
    fn of(service: &Service, cell: &Cell) -> Self {
        let point = cell.point();
        let rounded = |value: f64| format!("{value:.4}").parse::<f64>().unwrap_or(value);
        let run = service.other(&point).map_or_else(
            || {
                let names = service.knobs().iter().map(|knob| knob.name.as_str());
                let set = names.zip(service.space().values(&point));
                let set: Vec<String> = set.map(|(k, v)| format!("{k}={}", rounded(v))).collect();
                format!("{}:{}", service.algorithm().name, set.join(","))
            },
            |other| other.name().to_owned(),
        );
        Self { run, advantage: rounded(cell.mean()), trials: rounded(cell.weight()) }
    }

    /// Reads rows as a service's description has them: tables `[[prior]]`, and nothing else.
    ///
    /// # Errors
    /// It is no TOML, or a row has a key that there is not.
    pub fn parse(text: &str) -> Result<Vec<Self>, ServiceError> {
        let file = toml::from_str::<File>(text);
        Ok(file.map_err(|e| ServiceError::Parse(Box::new(e)))?.prior)
    }

    /// Rows as a service's description has them.
    pub fn write(rows: Vec<Self>) -> String {
        toml::to_string(&File { prior: rows }).expect("rows are tables of numbers and texts")
    }

    /// What a fleet found of a service, the surest gain first.
    pub fn all(service: &Service, found: &Commons) -> Vec<Self> {
        let mut rows: Vec<Self> =
            found.cells().iter().map(|cell| Self::of(service, cell)).collect();
        rows.sort_by(|a, b| b.surely().total_cmp(&a.surely()));
        rows
    }

    /// The advantage less its standard error: that of a trial is one deviation.
    fn surely(&self) -> f64 {
        self.advantage - self.trials.recip().sqrt()
    }
}

/// These findings as the aggregates of a fleet begin with them.
pub(crate) fn commons(
    rows: &[PriorRow],
    algorithm: &Algorithm,
    (knobs, others): (&[KnobRange], &[Other]),
) -> Result<Commons, ServiceError> {
    let finding = |row: &PriorRow| {
        row.finding(algorithm, knobs, others)
            .map_err(|cause| ServiceError::Prior { run: row.run.clone(), cause })
    };
    let findings = rows.iter().map(finding).collect::<Result<Vec<_>, _>>()?;
    let trials: f64 = findings.iter().map(|finding| finding.trials).sum();
    let share = (TRIALS_MAX / trials).min(1.0);
    let mut commons = Commons::default();
    for finding in findings {
        commons.add(&Finding { trials: share * finding.trials, ..finding });
    }
    Ok(commons)
}

/// Rows as a file has them: tables `[[prior]]`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    prior: Vec<PriorRow>,
}

#[cfg(test)]
mod tests;
