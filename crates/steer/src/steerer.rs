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
    /// The algorithm that suits best, and Mortise while it is Copa.
    Both(Both),
}

/// Two steerings of one connection: one chooses the algorithm, the other turns the knobs of one of them. Each sees
/// the same reports and does what it does alone; the first that wants something has its way, as a report has one
/// answer, and the tuner says nothing while another algorithm than its own runs.
#[derive(Clone, Debug)]
pub struct Both {
    /// Chooses the algorithm.
    pub selector: Box<Selector>,
    /// Turns Copa's knobs.
    pub tuner: Box<Mortise>,
}

impl Steer for Both {
    fn interval(&self, srtt: Duration) -> Duration {
        self.selector.interval(srtt).min(self.tuner.interval(srtt))
    }

    fn switches(&self) -> bool {
        true
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        self.selector.on_report(report).or_else(|| self.tuner.on_report(report))
    }
}

impl Steer for Steerer {
    fn interval(&self, srtt: Duration) -> Duration {
        match self {
            Self::Mortise(m) => m.interval(srtt),
            Self::Schedule(s) => s.interval(srtt),
            Self::Select(s) => s.interval(srtt),
            Self::Both(b) => b.interval(srtt),
        }
    }

    fn switches(&self) -> bool {
        match self {
            Self::Mortise(m) => m.switches(),
            Self::Schedule(s) => s.switches(),
            Self::Select(s) => s.switches(),
            Self::Both(b) => b.switches(),
        }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        match self {
            Self::Mortise(m) => m.on_report(report),
            Self::Schedule(s) => s.on_report(report),
            Self::Select(s) => s.on_report(report),
            Self::Both(b) => b.on_report(report),
        }
    }
}
