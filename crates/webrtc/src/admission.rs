//! Which scenarios can be run.

use trimtab_lab::scenario::Scenario;
use trimtab_steer::scheme::Demand;

use crate::error::WebrtcError;

/// Whether all that the scenario asks for can be run on this datapath.
pub(crate) fn check(scenario: &Scenario, datapath: &'static str) -> Result<(), WebrtcError> {
    for scheme in scenario.schemes() {
        if matches!(scheme.kind().demand(), Demand::Foresight) {
            return Err(WebrtcError::Bound { scheme: scheme.label().to_owned() });
        }
    }
    let is_alone = scenario.flows.iter().all(|&flows| flows == 1);
    if !is_alone || scenario.competitors().next().is_some() {
        return Err(WebrtcError::Company { datapath });
    }
    Ok(())
}
