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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::silent;

    const HALF: Duration = Duration::from_millis(500);

    /// Which algorithms are asked for, and after how many half seconds.
    fn turns(names: &[&str], every: Duration, reports: u64) -> Vec<(u64, &'static str)> {
        let specs = names.iter().map(|name| Spec::new(name).unwrap()).collect();
        let mut schedule = Schedule::new(specs, every, Switch::Part);
        let turn = |k| match schedule.on_report(&silent(Time::ZERO + HALF * k, HALF, "cubic"))? {
            Action::Switch { to, how: Switch::Part } => Some((k, to.algorithm().name)),
            other => panic!("{other:?}"),
        };
        (1..=reports).filter_map(turn).collect()
    }

    #[test]
    fn each_has_its_turn_and_then_the_first_again() {
        let all = ["cubic", "bbr", "copa"];
        let expected = [(4, "bbr"), (8, "copa"), (12, "cubic"), (16, "bbr")];
        assert_eq!(turns(&all, HALF * 4, 17), expected);
        assert_eq!(turns(&all, HALF, 3), [(1, "bbr"), (2, "copa"), (3, "cubic")]);
    }

    #[test]
    fn without_algorithms_there_are_no_turns() {
        assert_eq!(turns(&[], HALF, 4), []);
    }

    #[test]
    fn it_wants_reports_as_often_as_turns_and_a_connection_that_switches() {
        let schedule = Schedule::new(Vec::new(), HALF, Switch::Full);
        assert_eq!(schedule.interval(Duration::from_millis(20)), HALF);
        assert_eq!(schedule.needs(), Needs { switching: true, ..Needs::default() });
    }
}
