//! Bottlenecks that connections share, as a scenario describes them.

use serde::Deserialize;
use trimtab_cc::Spec;
use trimtab_units::Duration;

use super::error::{FleetScenarioError, value};

/// Longest time within which connections begin.
const WITHIN_MAX: Duration = Duration::from_secs(600);
/// The most aggregates, connections of each, or flows of others on one bottleneck.
const FLOWS_MAX: u32 = 100;

/// What connections share a bottleneck with. Default: each has a link of its own.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Aggregates that share each bottleneck: 1 to 100.
    pub aggregates: u32,
    /// Connections of each of them on one bottleneck: 1 to 100.
    pub connections: u32,
    /// They begin within this time, spread evenly.
    pub within: Duration,
    /// Flows that nobody steers: bulk data over the same bottleneck, one for each entry. They begin
    /// before the connections do.
    pub cross: Vec<(String, Spec)>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { aggregates: 1, connections: 1, within: Duration::ZERO, cross: Vec::new() }
    }
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawShared {
    #[serde(default = "one")]
    aggregates: u32,
    #[serde(default = "one")]
    connections: u32,
    within: String,
    #[serde(default)]
    cross: Vec<String>,
}

const fn one() -> u32 {
    1
}

impl RawShared {
    pub(super) fn checked(self) -> Result<Shared, FleetScenarioError> {
        for (key, count) in [
            ("links.shared.aggregates", self.aggregates),
            ("links.shared.connections", self.connections),
        ] {
            if !(1..=FLOWS_MAX).contains(&count) {
                return Err(value(key, format!("a whole number from 1 to {FLOWS_MAX}")));
            }
        }
        if self.cross.len() > FLOWS_MAX as usize {
            return Err(value("links.shared.cross", format!("at most {FLOWS_MAX} flows")));
        }
        let within = self.within.parse::<Duration>();
        let within = within.map_err(|e| value("links.shared.within", e.to_string()))?;
        if within > WITHIN_MAX {
            return Err(value("links.shared.within", format!("at most {WITHIN_MAX}")));
        }
        let cross = self.cross.into_iter().map(|text| {
            let spec = text.parse::<Spec>();
            let spec = spec.map_err(|e| value("links.shared.cross", format!("{text}: {e}")))?;
            Ok((text, spec))
        });
        let cross = cross.collect::<Result<Vec<_>, FleetScenarioError>>()?;
        if within.is_zero() && !cross.is_empty() {
            return Err(value(
                "links.shared.within",
                "more than 0s: what the flows of others get is measured in this time",
            ));
        }
        Ok(Shared { aggregates: self.aggregates, connections: self.connections, within, cross })
    }
}
