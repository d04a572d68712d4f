//! Figures of a simulated fleet.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::judge::JudgeError;
use super::verdict::{Band, Finding};
use crate::fleet::{FleetResult, FleetScenario, FleetScenarioError, ServiceResult};
use crate::stats::Estimate;

/// Aggregates of a quick run, at most.
const QUICK_AGGREGATES: u32 = 3;

/// Intervals of a quick run, at most.
const QUICK_INTERVALS: u64 = 12;

/// A fleet that is simulated, and the paper's claims of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetRecipe {
    /// The scenario file, in the folder of scenarios.
    pub scenario: String,
    /// Seeds, from 0 on [default: 1].
    #[serde(default = "one")]
    pub seeds: u64,
    /// What the paper claims.
    #[serde(rename = "claim")]
    pub claims: Vec<FleetClaim>,
}

fn one() -> u64 {
    1
}

/// One claim of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetClaim {
    /// The statistic, as `mean(loss)` or `p25(bitrate)`.
    pub statistic: String,
    /// The service [default: the first].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The scheme [default: `learnt`].
    #[serde(default = "learnt")]
    pub scheme: String,
    /// The scheme that it is compared with.
    pub versus: String,
    /// The service of that scheme [default: the same].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus_service: Option<String>,
    /// What agrees with the paper, in percent by which the scheme is better.
    pub band: Band,
}

fn learnt() -> String {
    "learnt".to_owned()
}

impl FleetClaim {
    /// What is compared, in words.
    pub fn subject(&self) -> String {
        let of = |scheme: &str, service: &Option<String>| match service {
            Some(service) => format!("{scheme} ({service})"),
            None => scheme.to_owned(),
        };
        let own = of(&self.scheme, &self.service);
        let rival = of(&self.versus, &self.versus_service);
        format!("{} of {own} vs. {rival}", self.statistic)
    }

    /// Whether less is better.
    fn is_cost(&self) -> bool {
        !["throughput", "bitrate"].iter().any(|good| self.statistic.contains(good))
    }
}

impl FleetRecipe {
    /// The scenario, from a folder of scenarios. `quick` keeps a few aggregates and intervals.
    ///
    /// # Errors
    /// The scenario cannot be read, or is wrong.
    pub fn scenario(
        &self,
        folder: &Path,
        quick: bool,
    ) -> Result<FleetScenario, FleetScenarioError> {
        let mut scenario = FleetScenario::load(&folder.join(&self.scenario))?;
        if quick {
            scenario.aggregates = scenario.aggregates.min(QUICK_AGGREGATES);
            let most = scenario.services[0].interval() * QUICK_INTERVALS;
            scenario.duration = scenario.duration.min(most);
        }
        Ok(scenario)
    }

    /// The seeds that run.
    pub fn seeds(&self, quick: bool) -> std::ops::RangeInclusive<u64> {
        0..=if quick { 0 } else { self.seeds.max(1) - 1 }
    }
}

/// Judges a claim. Vs. the scenario's `compare_with` it is of the last third, and has an interval; else it is
/// of the whole run.
pub(super) fn judge(claim: &FleetClaim, result: &FleetResult) -> Result<Finding, JudgeError> {
    let missing = || JudgeError::Missing { subject: claim.subject() };
    let service = |name: &Option<String>| -> Result<&ServiceResult, JudgeError> {
        let is = |s: &&ServiceResult| name.as_ref().is_none_or(|name| *name == s.service);
        result.services.iter().find(is).ok_or_else(missing)
    };
    let own = service(&claim.service)?;
    let other = service(&claim.versus_service.clone().or(claim.service.clone()))?;
    let sign = if claim.is_cost() { -100.0 } else { 100.0 };
    let compared = own.versus.as_ref().filter(|versus| {
        versus.name == claim.versus && claim.scheme == learnt() && claim.versus_service.is_none()
    });
    let estimate = match compared {
        Some(versus) => {
            let found = versus.statistics.iter().find(|(name, _)| *name == claim.statistic);
            let change = &found.ok_or_else(missing)?.1;
            let mut ends = [sign * change.low, sign * change.high];
            ends.sort_by(f64::total_cmp);
            Estimate { value: sign * change.value, ci95: Some(ends) }
        }
        None => {
            let value = |service: &ServiceResult, scheme: &str| -> Option<f64> {
                let scheme = service.schemes.iter().find(|s| s.name == scheme)?;
                let found = scheme.statistics.iter().find(|(name, _)| *name == claim.statistic);
                found.map(|(_, value)| *value)
            };
            let rival = value(other, &claim.versus).ok_or_else(missing)?;
            if rival <= 0.0 {
                return Err(JudgeError::NotPositive { subject: claim.subject() });
            }
            let own = value(own, &claim.scheme).ok_or_else(missing)?;
            Estimate { value: sign * (own / rival - 1.0), ci95: None }
        }
    };
    let aggregates = result.aggregates as usize * result.seeds as usize;
    Ok(Finding::new(claim.subject(), true, &claim.band, estimate, aggregates))
}
