//! Which schemes run on QUIC, and as what.

use std::sync::Arc;

use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use trimtab_lab::run::prepare::{Prepared, PreparedApp};
use trimtab_lab::run::stack;
use trimtab_lab::scenario::{Scenario, TransportKind};
use trimtab_noq::{Config, Handle, Qlog};
use trimtab_stack::Stack;
use trimtab_steer::scheme::{Demand, Scheme, SchemeKind, StackCc};
use trimtab_units::Time;

use crate::clock::Clock;
use crate::error::QuicError;

/// Whether all that the scenario asks for can be run on this datapath.
pub(crate) fn check(scenario: &Scenario, datapath: &'static str) -> Result<(), QuicError> {
    if scenario.transport == TransportKind::Tcp {
        return Err(QuicError::Tcp { datapath });
    }
    for scheme in scenario.schemes() {
        if matches!(scheme.kind().demand(), Demand::Foresight) {
            return Err(QuicError::Bound { scheme: scheme.label().to_owned() });
        }
    }
    Ok(())
}

/// Which schemes give other results when run again, and why.
pub(crate) fn unseeded(scenario: &Scenario) -> Vec<String> {
    let bbr3 = |scheme: &Scheme| {
        matches!(scheme.kind(), SchemeKind::Stack(StackCc::NoqBbr3)).then(|| {
            format!(
                "{scheme} draws the times of its probes from the system: the same seed gives other \
                 results each time"
            )
        })
    };
    scenario.schemes().find_map(bbr3).into_iter().collect()
}

/// What governs a flow.
pub(crate) struct Governor {
    /// For the server.
    pub(crate) controllers: Arc<dyn ControllerFactory + Send + Sync>,
    /// What steers it, and shows what it does; noq's own has none.
    pub(crate) handle: Option<Handle>,
    /// Whether the steering asks for the application's factors.
    pub(crate) wants_factors: bool,
}

/// What governs a flow of a scheme, for an application.
pub(crate) fn governor(
    scheme: &Scheme,
    app: &PreparedApp,
    prepared: &Prepared,
    (seed, clock): (u64, Clock),
    log: Option<Qlog>,
) -> Governor {
    if let SchemeKind::Stack(cc) = scheme.kind().governing() {
        return Governor { controllers: own(*cc), handle: None, wants_factors: false };
    }
    let (config, wants_factors) = config(scheme, app, prepared, (seed, clock));
    let config: Config = config.with_qlog(log);
    let (controllers, handle) = config.connection();
    Governor { controllers, handle: Some(handle), wants_factors }
}

/// What a flow of a scheme begins with, on any stack but as the stack's own algorithm, and whether
/// its steering asks for the application's factors.
pub(crate) fn config<S: Stack>(
    scheme: &Scheme,
    app: &PreparedApp,
    prepared: &Prepared,
    (seed, clock): (u64, Clock),
) -> (trimtab_stack::Config<S>, bool) {
    stack::config(scheme, app, prepared, (seed, clock.instant(Time::ZERO)))
}

/// noq's own algorithm, as it comes.
pub(crate) fn own(cc: StackCc) -> Arc<dyn ControllerFactory + Send + Sync> {
    match cc {
        StackCc::NoqCubic => Arc::new(CubicConfig::default()),
        StackCc::NoqNewReno => Arc::new(NewRenoConfig::default()),
        StackCc::NoqBbr3 => Arc::new(Bbr3Config::default()),
    }
}

/// Whether the flows of a scheme change their algorithm.
pub(crate) fn switches(scheme: &Scheme) -> bool {
    matches!(scheme.kind().governing().demand(), Demand::Switching)
}
