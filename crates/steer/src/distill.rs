//! Which of the trees of Muses a connection asks: the online part of the distillation (Zhong et
//! al., INFOCOM 2022, §III-F), for a datapath that walks the trees and counts the states, and
//! leaves the choice to user space.

use trimtab_cc::muses::{Counts, DRIVEN, Trees};
use trimtab_units::Duration;

use crate::{Action, Insight, KnobValues, Needs, Reason, Report, Steer};

/// The knob that it turns.
pub const TREE: &str = "tree";
/// Between reports: a tenth of T_l, so that the choice comes at most that much late.
const INTERVAL: Duration = Duration::from_secs(1);

/// Chooses the tree of one connection, every T_l (10 s of states), by where its states lay and through Q.
#[derive(Clone, Debug)]
pub struct Distill {
    trees: Trees<'static>,
    tree: usize,
    counts: Counts,
    choices: u64,
}

impl Distill {
    /// Of a connection that begins with `tree`, that with which an earlier one over the same path
    /// ended; with the model's first where there is none, or no such tree.
    pub fn new(trees: Trees<'static>, tree: Option<usize>) -> Self {
        let tree = tree.filter(|tree| *tree < trees.count()).unwrap_or(trees.first());
        Self { trees, tree, counts: Counts::default(), choices: 0 }
    }

    /// The model.
    pub fn trees(&self) -> &Trees<'static> {
        &self.trees
    }

    /// The tree that is asked: the number that the knob has.
    pub fn tree(&self) -> usize {
        self.tree
    }

    /// How often it has chosen, whether another tree or the same again.
    pub fn choices(&self) -> u64 {
        self.choices
    }
}

impl Steer for Distill {
    fn interval(&self, _srtt: Duration) -> Duration {
        INTERVAL
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        let states = report.states.filter(|_| report.algorithm == DRIVEN.name)?;
        self.counts = self.counts.and(&states);
        if self.trees.count() == 1 || self.counts.seen() < self.trees.states() {
            return None;
        }
        let tree = self.trees.nearest(&self.counts);
        self.counts = Counts::default();
        self.choices += 1;
        if tree == self.tree {
            return None;
        }
        self.tree = tree;
        Some(Action::Set(KnobValues::one(TREE, tree as f64)))
    }

    fn reason(&self, _action: &Action) -> Option<Reason> {
        Some(Reason::Nearest)
    }

    fn needs(&self) -> Needs {
        Needs { states: true, ..Needs::default() }
    }

    fn insight(&self) -> Insight {
        Insight { tree: Some((self.trees.checksum(), self.tree)), ..Insight::default() }
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::muses::{BINS, COMPONENTS};
    use trimtab_units::Time;

    use super::*;
    use crate::testing::silent;

    /// Two trees, chosen every four states by the queueing delay: tree 0 where there is none, else
    /// tree 1, which is first.
    static SMALL: &[u8] = include_bytes!("../seeds/trees/small");

    fn report(algorithm: &'static str, segments: &[usize]) -> Report {
        let mut states = Counts::default();
        for segment in segments {
            states.add([*segment; COMPONENTS]);
        }
        Report { states: Some(states), ..silent(Time::ZERO, INTERVAL, algorithm) }
    }

    fn turned(action: Option<Action>) -> Option<f64> {
        match action {
            Some(Action::Set(values)) => values.get(TREE),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_tree_whose_centre_is_nearest_is_asked_after_enough_states() {
        let mut distill = Distill::new(Trees::parse(SMALL).unwrap(), None);
        assert_eq!(distill.tree(), 1, "the model's first");
        let empty = report("muses", &[0, 0]);
        assert_eq!(turned(distill.on_report(&empty)), None, "two of four states");
        assert_eq!(turned(distill.on_report(&empty)), Some(0.0));
        // What comes next is counted anew, and the same choice is no action.
        assert_eq!(turned(distill.on_report(&report("muses", &[0, 0, 0, 0]))), None);
        assert_eq!(turned(distill.on_report(&report("muses", &[BINS - 1; 4]))), Some(1.0));
        assert_eq!((distill.tree(), distill.choices()), (1, 3));
    }

    #[test]
    fn what_another_algorithm_does_is_not_counted() {
        let mut distill = Distill::new(Trees::parse(SMALL).unwrap(), Some(0));
        for _ in 0..5 {
            assert_eq!(turned(distill.on_report(&report("copa", &[BINS - 1; 4]))), None);
            let silent = Report { states: None, ..report("muses", &[]) };
            assert_eq!(turned(distill.on_report(&silent)), None);
        }
        assert_eq!((distill.tree(), distill.choices()), (0, 0));
        assert_eq!(
            Distill::new(Trees::parse(SMALL).unwrap(), Some(2)).tree(),
            1,
            "there is no third"
        );
    }

    #[test]
    fn it_needs_states_and_shows_its_tree() {
        let trees = Trees::parse(SMALL).unwrap();
        let distill = Distill::new(trees, Some(1));
        assert_eq!(distill.needs(), Needs { states: true, ..Needs::default() });
        assert_eq!(distill.insight().tree, Some((trees.checksum(), 1)));
    }
}
