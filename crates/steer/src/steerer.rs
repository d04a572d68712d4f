//! Any of the steerings, without a virtual call.

use trimtab_units::Duration;

use crate::select::Selector;
use crate::{Action, Mortise, Report, Schedule, Steer};

/// Any of the steerings.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one a flow")]
pub enum Steerer {
    /// Mortise.
    Mortise(Mortise),
    /// Algorithms in turn.
    Schedule(Schedule),
    /// The algorithm that suits best.
    Select(Box<Selector>),
}

impl Steer for Steerer {
    fn interval(&self, srtt: Duration) -> Duration {
        match self {
            Self::Mortise(m) => m.interval(srtt),
            Self::Schedule(s) => s.interval(srtt),
            Self::Select(s) => s.interval(srtt),
        }
    }

    fn switches(&self) -> bool {
        match self {
            Self::Mortise(m) => m.switches(),
            Self::Schedule(s) => s.switches(),
            Self::Select(s) => s.switches(),
        }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        match self {
            Self::Mortise(m) => m.on_report(report),
            Self::Schedule(s) => s.on_report(report),
            Self::Select(s) => s.on_report(report),
        }
    }
}
