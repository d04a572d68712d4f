//! What a flow of a run begins with on a network stack that runs a scheme by `trimtab-stack`.

use std::time::Instant;

use trimtab_stack::{Config, Stack, Start};
use trimtab_steer::scheme::{Demand, Scheme, SchemeKind};
use trimtab_units::Time;

use crate::run::prepare::{Prepared, PreparedApp};

/// What a flow of a scheme begins with, on any stack but as the stack's own algorithm, and whether
/// its steering asks for the application's factors. The clock of the run says zero at that time.
pub fn config<S: Stack>(
    scheme: &Scheme,
    app: &PreparedApp,
    prepared: &Prepared,
    (seed, zero): (u64, Instant),
) -> (Config<S>, bool) {
    let governing = scheme.kind().governing();
    let start = match governing {
        SchemeKind::Muses(settings) => {
            Start::Learnt(prepared.policy(settings).clone(), settings.safe)
        }
        SchemeKind::Rival(settings) => Start::Rival(prepared.rival(settings).clone()),
        kind => {
            let (spec, steerer) = prepared.steering(kind, app);
            Start::Algorithm(spec, steerer)
        }
    };
    let config = Config::prepared(scheme.label(), start, app.model.clone());
    let config = config.with_seed(seed).with_clock(zero);
    let config = match scheme.kind() {
        SchemeKind::Resume(resuming) => config.with_resumption(resuming.resumption(Time::ZERO)),
        _ => config,
    };
    (config, !matches!(governing.demand(), Demand::Algorithm(_) | Demand::Plugin))
}
