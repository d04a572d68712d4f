//! What connections see of an algorithm in an interval, kept for the next scheme that runs it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trimtab_cc::Spec;
use trimtab_fleet::Point;

use super::group::Seen;
use super::scenario::FleetScenario;

/// An interval with the algorithm of each aggregate of a group, by its place among those that are
/// kept.
type Of = (u64, Vec<usize>);

/// What was seen of the aggregates of one group. Connections of an interval are the same for all
/// schemes and services, so what they see of an algorithm is simulated once. Points of the knobs'
/// box are hardly ever tried twice, and are not kept.
#[derive(Default)]
pub(super) struct Memo {
    algorithms: Vec<Spec>,
    seen: Mutex<BTreeMap<Of, Arc<Vec<Seen>>>>,
}

impl Memo {
    /// One that keeps the algorithms of a scenario's services and its baselines.
    pub(super) fn of(scenario: &FleetScenario) -> Self {
        let others = scenario.services.iter().flat_map(|service| {
            let point = |name| service.other_named(name);
            let points = service.others().iter().filter_map(move |other| point(other.name()));
            points.filter_map(|point: Point| service.configuration(0, &point).spec().ok())
        });
        let baselines = scenario.baselines.iter().filter_map(|(_, spec)| *spec);
        let algorithms = others.chain(baselines).collect();
        Self { algorithms, seen: Mutex::default() }
    }

    /// What is kept of these algorithms in an interval, or else what `look` gives. Two threads may
    /// look at the same time: both see the same.
    pub(super) fn get(
        &self,
        n: u64,
        specs: &[Option<Spec>],
        look: impl FnOnce() -> Vec<Seen>,
    ) -> Arc<Vec<Seen>> {
        let place = |spec: &Option<Spec>| {
            let spec = spec.as_ref()?;
            self.algorithms.iter().position(|kept| kept.is_same(spec))
        };
        let Some(places) = specs.iter().map(place).collect::<Option<Vec<usize>>>() else {
            return Arc::new(look());
        };
        let of = (n, places);
        let kept = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = kept().get(&of) {
            return Arc::clone(seen);
        }
        let seen = Arc::new(look());
        kept().insert(of, Arc::clone(&seen));
        seen
    }
}

#[cfg(test)]
mod tests;
