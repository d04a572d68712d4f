//! Aggregates that become one in the middle of a run, since the log shows that they share a
//! bottleneck: what a person does who asks `trimtab engine shared` and follows it.

use serde::{Deserialize, Serialize};
use trimtab_fleet::{Sharing, Sighting, Together};

use super::contest::Run;
use super::scenario::FleetScenario;

/// What was found of the pairs of aggregates that share a bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Pairs that share one.
    pub pairs: u64,
    /// Those of them that were found.
    pub found: u64,
    /// Pairs that were found and share none. They stay apart here, as links are of one simulation.
    pub wrong: u64,
}

impl Joined {
    /// Those of one more fleet.
    pub(super) fn add(&mut self, other: Self) {
        self.pairs += other.pairs;
        self.found += other.found;
        self.wrong += other.wrong;
    }
}

/// What the engine's log would hold.
#[derive(Default)]
pub(super) struct Log {
    seen: Vec<Sighting>,
    joined: Option<Joined>,
}

impl Log {
    /// Takes what clients saw. At the time that the scenario names, aggregates of one bottleneck
    /// become one.
    pub(super) fn follow(&mut self, scenario: &FleetScenario, runs: &mut [Run<'_>], until: u64) {
        let length = scenario.services[0].interval();
        let Some(after) = scenario.together_after else { return };
        self.seen.extend(runs.iter_mut().flat_map(Run::take_sighted));
        if self.joined.is_some() || length * until < after {
            return;
        }
        // Too few have nothing found; the scenario was checked.
        let sharing = Sharing::of(std::mem::take(&mut self.seen)).unwrap_or_default();
        let mut joined = Joined::default();
        for run in &*runs {
            let own = run.prefixes();
            let all = own.len() as u64;
            joined.pairs += all * (all - 1) / 2;
            let within = sharing.found.iter();
            let within = within.filter(|s| own.contains(&s.one) && own.contains(&s.other));
            joined.found += within.count() as u64;
        }
        joined.wrong = sharing.found.len() as u64 - joined.found;
        let together = sharing.added_to(Together::default());
        runs.iter_mut().for_each(|run| run.join(&together));
        self.joined = Some(joined);
    }

    /// What was found, once it was looked for.
    pub(super) const fn joined(&self) -> Option<Joined> {
        self.joined
    }
}
