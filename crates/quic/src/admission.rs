//! Which schemes run on QUIC, and as what.

use trimtab_lab::run::prepare::{Prepared, PreparedApp};
use trimtab_lab::scenario::{Scenario, TransportKind};
use trimtab_noq::{Config, Start};
use trimtab_steer::scheme::{Demand, Scheme, SchemeKind};

use crate::error::QuicError;

/// Whether all that the scenario asks for can be run.
pub(crate) fn check(scenario: &Scenario) -> Result<(), QuicError> {
    if scenario.transport == TransportKind::Tcp {
        return Err(QuicError::Tcp);
    }
    let bound = |scheme: &&Scheme| matches!(scheme.kind().demand(), Demand::Foresight);
    match scenario.schemes().find(bound) {
        Some(scheme) => Err(QuicError::Bound { scheme: scheme.label().to_owned() }),
        None => Ok(()),
    }
}

/// What governs the flows of a scheme for an application.
pub(crate) fn governor(scheme: &Scheme, app: &PreparedApp, prepared: &Prepared) -> Config {
    let start = match scheme.kind() {
        SchemeKind::Muses(settings) => {
            Start::Learnt(prepared.policy(settings).clone(), settings.safe)
        }
        kind => {
            let (spec, steerer) = prepared.steering(kind, app);
            Start::Algorithm(spec, steerer)
        }
    };
    Config::prepared(scheme.label(), start, app.model.clone())
}

/// Whether something steers the flows of a scheme, which asks for the application's factors.
pub(crate) fn is_steered(scheme: &Scheme) -> bool {
    !matches!(scheme.kind().demand(), Demand::Algorithm(_))
}

/// Whether the flows of a scheme change their algorithm.
pub(crate) fn switches(scheme: &Scheme) -> bool {
    matches!(scheme.kind().demand(), Demand::Switching)
}
