//! Remy's greedy search (§4.3).

use trimtab_cc::remy::{AXES, Table, Whisker};

use crate::networks::{Networks, Worth};

/// The steps by which each number of an action is changed, smallest first (`whisker.hh`).
const INCREMENTS: [i32; 4] = [1, 4, 16, 32];
const MULTIPLES: [f64; 4] = [0.01, 0.04, 0.16, 0.5];
const PAUSES_MS: [f64; 3] = [0.05, 0.2, 0.8];
/// The range of each.
const INCREMENT: [i32; 2] = [0, 256];
const MULTIPLE: [f64; 2] = [0.0, 1.0];
const PAUSE_MS: [f64; 2] = [0.25, 3.0];
/// A rule is split after so many rounds of improvements (§4.3: K).
const ROUNDS: u32 = 4;
/// The values by which it is split: those of the paper's memory.
const SPLIT: [usize; 3] = [0, 1, 2];

/// The search.
pub(crate) struct Search {
    networks: Networks,
    best: Table,
    worth: Worth,
    tried: u32,
    rounds: u32,
}

impl Search {
    pub(crate) fn new(begin: Table) -> Self {
        let networks = Networks::new();
        let worth = networks.worth(&begin, true);
        Self { networks, best: begin, worth, tried: 1, rounds: 0 }
    }

    pub(crate) fn best(&self) -> &Table {
        &self.best
    }

    pub(crate) fn utility(&self) -> f64 {
        self.worth.utility
    }

    /// How many tables were tried.
    pub(crate) fn tried(&self) -> u32 {
        self.tried
    }

    /// Improves each rule that is used, the most used first; every few rounds splits that one.
    pub(crate) fn round(&mut self) {
        let before = self.utility();
        for rule in self.by_use() {
            while self.improve(rule) {}
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(ROUNDS) || self.utility() <= before {
            self.split();
        }
    }

    /// The rules that are used, the most used first.
    fn by_use(&self) -> Vec<usize> {
        let mut uses = vec![0u32; self.best.whiskers().len()];
        for memory in &self.worth.memories {
            let rule = self.best.whiskers().iter().position(|rule| rule.domain.contains(memory));
            uses[rule.unwrap_or_default()] += 1;
        }
        let mut rules: Vec<usize> = (0..uses.len()).filter(|rule| uses[*rule] > 0).collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(uses[*rule]));
        rules
    }

    /// Tries what is near a rule's action, and takes the best, if it is better.
    fn improve(&mut self, rule: usize) -> bool {
        let tables: Vec<Table> = nearby(&self.best.whiskers()[rule])
            .into_iter()
            .filter_map(|changed| {
                let mut whiskers = self.best.whiskers().to_vec();
                whiskers[rule] = changed;
                Table::new(whiskers).ok()
            })
            .collect();
        self.tried += tables.len() as u32;
        let networks = &self.networks;
        let utilities: Vec<f64> = std::thread::scope(|scope| {
            let run = |table| scope.spawn(move || networks.worth(table, false).utility);
            let running: Vec<_> = tables.iter().map(run).collect();
            running.into_iter().map(|thread| thread.join().expect("a run ends")).collect()
        });
        let best = utilities.iter().zip(&tables).max_by(|a, b| a.0.total_cmp(b.0));
        let Some((utility, table)) = best.filter(|(utility, _)| **utility > self.utility()) else {
            return false;
        };
        self.worth.utility = *utility;
        self.best = table.clone();
        true
    }

    /// Splits the rule that is used most at the medians of the memories that it saw.
    fn split(&mut self) {
        self.worth = self.networks.worth(&self.best, true);
        let Some(&rule) = self.by_use().first() else { return };
        let old = self.best.whiskers()[rule];
        let seen = self.worth.memories.iter().filter(|memory| old.domain.contains(memory));
        let seen: Vec<&[f64; AXES]> = seen.collect();
        let mut parts = vec![old];
        for axis in SPLIT {
            let mut values: Vec<f64> = seen.iter().map(|memory| memory[axis]).collect();
            values.sort_by(f64::total_cmp);
            let at = values[values.len() / 2];
            if at <= old.domain.lower[axis] || at >= old.domain.upper[axis] {
                continue;
            }
            let halves = |part: Whisker| {
                let (mut below, mut above) = (part, part);
                (below.domain.upper[axis], above.domain.lower[axis]) = (at, at);
                [below, above]
            };
            parts = parts.into_iter().flat_map(halves).collect();
        }
        let mut whiskers = self.best.whiskers().to_vec();
        whiskers.splice(rule..=rule, parts);
        self.best = Table::new(whiskers).expect("the parts of a rule cover it");
    }
}

/// A rule with one number of its action changed.
fn nearby(rule: &Whisker) -> Vec<Whisker> {
    let mut all = Vec::new();
    for sign in [1, -1] {
        for step in INCREMENTS {
            let increment = (rule.increment + sign * step).clamp(INCREMENT[0], INCREMENT[1]);
            all.push(Whisker { increment, ..*rule });
        }
        for step in MULTIPLES {
            let multiple = rounded(rule.multiple + f64::from(sign) * step);
            let multiple = multiple.clamp(MULTIPLE[0], MULTIPLE[1]);
            all.push(Whisker { multiple, ..*rule });
        }
        for step in PAUSES_MS {
            let pause_ms = rounded(rule.pause_ms + f64::from(sign) * step);
            let pause_ms = pause_ms.clamp(PAUSE_MS[0], PAUSE_MS[1]);
            all.push(Whisker { pause_ms, ..*rule });
        }
    }
    all.retain(|changed| changed != rule);
    all
}

/// To four decimals, as Remy does (`Whisker::round()`).
fn rounded(x: f64) -> f64 {
    (x * 10_000.0).round() / 10_000.0
}
