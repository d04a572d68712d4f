//! What runs for a figure.

use std::path::Path;

use serde::{Deserialize, Serialize};
use trimtab_net::Part;
use trimtab_units::Duration;

use super::area::AreaClaim;
use super::claim::Claim;
use crate::report::figure::Panels;
use crate::scenario::{AppKind, Given, Scenario, ScenarioError, TransportKind, quantity};

/// Points of the grid that a quick run keeps at most.
const QUICK_POINTS: u32 = 6;

/// How long a quick run lasts at most, after what its results leave out.
const QUICK_DURATION: Duration = Duration::from_secs(30);

/// A comparison of schemes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The scenario file, in the folder of scenarios.
    pub scenario: String,
    /// An application in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppKind>,
    /// The transport in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    /// The schemes in place of the scenario's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<String>,
    /// The number of seeds in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    /// The length of a run in place of the scenario's.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The start of a run that results leave out, in place of the scenario's.
    #[serde(with = "quantity::optional", default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Duration>,
    /// The part of the recordings in place of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Part>,
    /// The picture in the paper's form: a kind of `trimtab compare --plot`.
    pub picture: String,
    /// The panels of a picture of ellipses: parts of the names of their traces, by title.
    #[serde(default, skip_serializing_if = "Panels::is_empty")]
    pub panels: Panels,
    /// What the paper claims.
    #[serde(rename = "claim", default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// What it claims of the areas of ellipses.
    #[serde(rename = "area", default, skip_serializing_if = "Vec::is_empty")]
    pub areas: Vec<AreaClaim>,
}

impl Recipe {
    /// The scenario, from a folder of scenarios. `quick` keeps one seed and a few points of the
    /// grid, which shows that it works and says little of the paper.
    ///
    /// # Errors
    /// The scenario cannot be read, or does not fit the recipe.
    pub fn scenario(&self, folder: &Path, quick: bool) -> Result<Scenario, ScenarioError> {
        let cc: Result<Vec<_>, _> = self.cc.iter().map(|cc| cc.parse()).collect();
        let given = Given {
            app: self.app.into_iter().collect(),
            cc: cc.map_err(|e| ScenarioError::Invalid(format!("in the catalogue: {e}")))?,
            transport: self.transport,
            seeds: if quick { Some(1) } else { self.seeds },
            duration: self.duration,
            ..Given::default()
        };
        let mut scenario = given.scenario(Some(&folder.join(&self.scenario)))?;
        scenario.warmup = self.warmup.unwrap_or(scenario.warmup);
        scenario.split = self.split.or(scenario.split);
        if quick {
            scenario.thin = Some(scenario.thin.map_or(QUICK_POINTS, |n| n.min(QUICK_POINTS)));
            scenario.duration = scenario.duration.min(scenario.warmup + QUICK_DURATION);
        }
        Ok(scenario)
    }
}
