//! Algorithms in turn, whatever the path is like: the experiment that shows what switching costs (Floo
//! §5.5.1), and the baseline of every selection.

use alloc::vec::Vec;

use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_units::{Duration, Time};

use crate::{Action, Needs, Reason, Report, Steer};

/// Lets the next algorithm of a list take over every so often, and begins again at its end.
#[derive(Clone, Debug)]
pub struct Schedule {
    specs: Vec<Spec>,
    every: Duration,
    how: Switch,
    /// Number of the one that was asked for last; the connection starts with the first.
    current: usize,
    /// When the next one is to take over; not known before the first report.
    turn_at: Option<Time>,
}

impl Schedule {
    /// Switches through `specs` every `every`. With fewer than two there is nothing to switch to.
    pub fn new(specs: Vec<Spec>, every: Duration, how: Switch) -> Self {
        Self { specs, every, how, current: 0, turn_at: None }
    }
}

impl Steer for Schedule {
    fn interval(&self, _srtt: Duration) -> Duration {
        self.every
    }

    fn needs(&self) -> Needs {
        Needs { switching: true, ..Needs::default() }
    }

    /// Its host may report more often than it asks for.
    fn on_report(&mut self, report: &Report) -> Option<Action> {
        let first = report.now - report.interval + self.every;
        if report.now < *self.turn_at.get_or_insert(first) {
            return None;
        }
        self.turn_at = Some(report.now + self.every);
        self.current = (self.current + 1) % self.specs.len().max(1);
        let to = *self.specs.get(self.current)?;
        Some(Action::Switch { to, how: self.how })
    }

    fn reason(&self, _action: &Action) -> Option<Reason> {
        Some(Reason::Turn)
    }
}
