//! The orders in force.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trimtab_units::{Duration, Time};

use super::target::Subject;
use super::{Order, Target};
use crate::kernel::places::cgroup_ids;

/// Orders at once; a list that nobody can read is a configuration that is missing.
const MOST: usize = 1000;
/// Between looks for cgroups that were made below those that orders name.
const CGROUPS_AGAIN: Duration = Duration::from_secs(2);

/// Why a connection is left alone. The later ones are stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// An operator paused its steering.
    Paused,
    /// An operator excluded the place that it goes to or comes from.
    Excluded,
    /// An operator had its former algorithm restored.
    Restored,
    /// The breaker of its rule tripped.
    Tripped,
}

impl Held {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Excluded => "excluded",
            Self::Restored => "restored",
            Self::Tripped => "tripped",
        }
    }

    /// Whether it goes back to its former algorithm, too.
    pub(crate) fn wants_former(self) -> bool {
        self != Self::Paused
    }
}

/// An order in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hold {
    pub(crate) held: Held,
    pub(crate) target: Target,
    pub(crate) since: Time,
    /// `None`: until somebody resumes it.
    pub(crate) until: Option<Time>,
    /// Who ordered it, and why as far as that is known.
    pub(crate) by: String,
    /// The numbers of the cgroups that it names.
    cgroups: BTreeSet<u64>,
}

/// An order in force, for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldStatus {
    /// How connections stand that it covers.
    pub held: Held,
    /// Which these are.
    pub target: Target,
    /// For how long it has been in force, in seconds.
    pub for_s: f64,
    /// How long it will be, in seconds; `None`: until somebody resumes it.
    pub left_s: Option<f64>,
    /// Who ordered it, or why the breaker tripped.
    pub by: String,
}

/// All orders in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    all: Vec<Hold>,
    cgroups_at: Time,
}

impl Holds {
    /// Those that an agent before this one had.
    pub(crate) fn new(all: Vec<Hold>) -> Self {
        Self { all, cgroups_at: Time::ZERO }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.all.iter()
    }

    /// What is the strongest order that covers this.
    pub(crate) fn on(&self, subject: &Subject<'_>) -> Option<Held> {
        let covers = |hold: &&Hold| hold.target.covers(subject, &hold.cgroups);
        self.all.iter().filter(covers).map(|hold| hold.held).max()
    }

    /// Whether the breaker of a rule has tripped.
    pub(crate) fn has_tripped(&self, rule: &str) -> bool {
        let is = |hold: &Hold| {
            hold.held == Held::Tripped && matches!(&hold.target, Target::Rule(name) if name == rule)
        };
        self.all.iter().any(is)
    }

    /// Whether every connection is to have its former algorithm.
    pub(crate) fn restore_all(&self) -> bool {
        self.all.iter().any(|hold| hold.target == Target::All && hold.held.wants_former())
    }

    /// Adds one. It takes the place of the same order on the same target.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn add(&mut self, hold: Hold) -> Result<(), String> {
        self.all.retain(|old| (old.held, &old.target) != (hold.held, &hold.target));
        if self.all.len() >= MOST {
            return Err(format!(
                "{MOST} orders are in force: write rules in the configuration, and resume some"
            ));
        }
        self.all.push(hold);
        Ok(())
    }

    /// Ends those on a target; of all, every one but exclusions, which are ended by their names.
    /// How many there were.
    pub(crate) fn resume(&mut self, target: &Target) -> usize {
        let before = self.all.len();
        self.all.retain(|hold| match target {
            Target::All => hold.held == Held::Excluded,
            target => hold.target != *target,
        });
        before - self.all.len()
    }

    /// Ends those whose time is over, and of connections that have ended; gives what they were.
    pub(crate) fn expire(&mut self, now: Time, is_open: impl Fn(u64) -> bool) -> Vec<Hold> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let is_over = |hold: &Hold| {
            let has_ended = matches!(hold.target, Target::Flow(id) if !is_open(id));
            has_ended || hold.until.is_some_and(|until| until <= now)
        };
        let (over, all) = std::mem::take(&mut self.all).into_iter().partition(is_over);
        self.all = all;
        over
    }

    /// Looks for cgroups that were made meanwhile; whether there are any.
    pub(crate) fn find_cgroups(&mut self, now: Time) -> bool {
        if now.since(self.cgroups_at) < CGROUPS_AGAIN {
            return false;
        }
        self.cgroups_at = now;
        let mut changed = false;
        for hold in &mut self.all {
            let found = cgroups_of(&hold.target);
            changed |= found != hold.cgroups;
            hold.cgroups = found;
        }
        changed
    }

    pub(crate) fn status(&self, now: Time) -> Vec<HoldStatus> {
        let of = |hold: &Hold| HoldStatus {
            held: hold.held,
            target: hold.target.clone(),
            for_s: now.since(hold.since).as_secs_f64(),
            left_s: hold.until.map(|until| until.since(now).as_secs_f64()),
            by: hold.by.clone(),
        };
        self.all.iter().map(of).collect()
    }
}

impl Hold {
    pub(crate) fn new(
        held: Held,
        target: Target,
        now: Time,
        until: Option<Time>,
        by: &str,
    ) -> Self {
        let cgroups = cgroups_of(&target);
        Self { held, target, since: now, until, by: by.to_owned(), cgroups }
    }

    /// What an order asks for, of one of its verbs that hold.
    ///
    /// # Errors
    /// It cannot be: then why.
    pub(crate) fn of(order: &Order, held: Held, by: &str, now: Time) -> Result<Self, String> {
        let until = match order.lasts {
            None => None,
            Some(lasts) if lasts > 0.0 && lasts <= super::LONGEST.as_secs_f64() => {
                Some(now + Duration::from_secs_f64(lasts))
            }
            Some(_) => return Err("an order lasts more than 0 s and up to 366 days".to_owned()),
        };
        if held == Held::Excluded && !order.target.is_place() {
            return Err(format!(
                "{} is no place to exclude: name a destination, port:NUMBER or cgroup:/PATH; or \
                 use `restore` or `pause`, which take any target",
                order.target
            ));
        }
        let hold = Self::new(held, order.target.clone(), now, until, by);
        match &order.target {
            Target::Cgroup(path) if hold.cgroups.is_empty() => Err(format!(
                "there is no cgroup {path} (of the second version): /proc/PID/cgroup has the path"
            )),
            _ => Ok(hold),
        }
    }
}

fn cgroups_of(target: &Target) -> BTreeSet<u64> {
    match target {
        Target::Cgroup(path) => cgroup_ids(path),
        _ => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verb;
    use super::*;

    fn order(target: &str, lasts: Option<f64>) -> Order {
        Order { verb: Verb::Exclude, target: target.parse().unwrap(), lasts }
    }

    #[test]
    fn orders_end_by_their_time_by_their_name_and_with_their_connection() {
        let mut holds = Holds::default();
        let add = |holds: &mut Holds, held, target: &str, lasts| {
            let hold = Hold::of(&order(target, lasts), held, "root", Time::ZERO).unwrap();
            holds.add(hold).unwrap();
        };
        add(&mut holds, Held::Excluded, "192.0.2.0/24", Some(10.0));
        add(&mut holds, Held::Excluded, "port:22", None);
        add(&mut holds, Held::Paused, "rule:web", None);
        add(&mut holds, Held::Restored, "flow:3", None);
        // The same order again is no second one.
        add(&mut holds, Held::Paused, "rule:web", None);
        assert_eq!(holds.iter().count(), 4);
        let over = holds.expire(Time::from_secs(9), |id| id == 3);
        assert_eq!(over.len(), 0);
        let over = holds.expire(Time::from_secs(10), |_| false);
        let named: Vec<String> = over.iter().map(|hold| hold.target.to_string()).collect();
        assert_eq!(named, ["192.0.2.0/24", "flow:3"]);
        assert_eq!(holds.resume(&"rule:video".parse().unwrap()), 0);
        assert_eq!(holds.resume(&Target::All), 1, "an exclusion stays until it is named");
        assert_eq!(holds.resume(&"port:22".parse().unwrap()), 1);
        assert!(holds.is_empty());
    }

    #[test]
    fn the_strongest_order_counts() {
        let mut holds = Holds::default();
        for (held, target) in [(Held::Restored, "rule:web"), (Held::Paused, "all")] {
            let hold = Hold::of(&order(target, None), held, "root", Time::ZERO).unwrap();
            holds.add(hold).unwrap();
        }
        let remote = Some("192.0.2.1".parse().unwrap());
        let of = |rule| Subject { rule, flow: Some(1), remote, port: 443, cgroup: None };
        assert_eq!(holds.on(&of(Some("web"))), Some(Held::Restored));
        assert_eq!(holds.on(&of(None)), Some(Held::Paused));
    }

    #[test]
    fn what_cannot_be_ordered_is_refused_with_what_can() {
        for (target, held, lasts, says) in [
            ("rule:web", Held::Excluded, None, "restore"),
            ("cgroup:/there/is/none", Held::Paused, None, "no cgroup"),
            ("all", Held::Paused, Some(0.0), "366 days"),
            ("all", Held::Paused, Some(f64::NAN), "366 days"),
        ] {
            let refused = Hold::of(&order(target, lasts), held, "root", Time::ZERO).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
