//! Three arms on one host: what is tried, and two controls, by clusters of clients and by time.
//!
//! Time comes in pairs of blocks. In a pair a cluster takes part or not, by a draw; one that does
//! runs a control in one block and what is tried in the other, and which goes first is drawn, too.
//! So each comparison is a switchback of its own, by [`Experiment`], and the differences are within
//! a cluster. Never by flow: see the [module](super).

use serde::{Deserialize, Serialize};
use statrs::stats_tests::Alternative;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};

use super::analysis::{Limits, compare_groups};
use super::design::{Arm, Design, Experiment, Schedule, SpecError};
use super::report::Effect;
use super::{CellOf, chance};
use crate::Interval;

/// The two controls.
pub const CONTROLS: usize = 2;

/// Seeds of the draws: who takes part in a pair of blocks, and whom a rollout reaches when. The
/// kernel's program draws with the same ones (`crates/kernel/bpf/core/choose.h`).
const PARTS: u64 = 0x7468_7265_6561_726d;
const ROLLOUT: u64 = 0x726f_6c6c_6f75_7420;

/// A comparison of what is tried with two controls.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreeArms {
    experiment: Experiment,
    spec: ThreeArmsSpec,
}

/// How three arms are compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreeArmsSpec {
    /// The first interval.
    pub start: Interval,
    /// The length of a block, in intervals.
    pub block: u32,
    /// How many pairs of blocks there are: 4 or more.
    pub pairs: u32,
    /// Intervals after each change that are left out.
    pub wash_out: u32,
    /// The share of time that clusters spend in the controls, both together: above 0, 0.5 at most.
    pub share: f64,
    /// Whether clusters change each for itself, or all at once since they share a bottleneck.
    pub schedule: Schedule,
    /// The seed of the draws.
    pub seed: u64,
}

/// What a cluster runs in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The control; `None`: what is tried.
    pub control: Option<usize>,
    /// Which comparison this interval is of, by its control, and in which block. `None`: of none, since the cluster
    /// takes no part, or since it has just changed.
    pub part: Option<(usize, i64)>,
}

/// A metric under what is tried and under a control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimated {
    /// The mean under the control.
    pub control: f64,
    /// The mean under what is tried.
    pub treatment: f64,
    /// Pairs of blocks that both have.
    pub pairs: usize,
    /// What is tried less the control.
    pub effect: Effect,
    /// The same as a share of the control's mean; none where that may be zero.
    pub relative: Option<Effect>,
}

impl ThreeArms {
    /// Checks a plan.
    ///
    /// # Errors
    /// It cannot be: then why.
    pub fn new(spec: ThreeArmsSpec) -> Result<Self, SpecError> {
        let ThreeArmsSpec { start, block, pairs, wash_out, share, schedule, seed } = spec;
        if !(share > 0.0 && share <= 0.5) {
            return Err(SpecError::Share(share));
        }
        let length = block.saturating_mul(2).saturating_mul(pairs);
        let design = Design::Switchback { block, schedule };
        let experiment = Experiment {
            control: Arm::Safe,
            treatment: Arm::Learn,
            design,
            start,
            length,
            wash_out,
            metric: None,
            guards: Vec::new(),
            seed,
        };
        experiment.check()?;
        Ok(Self { experiment, spec })
    }

    /// As it was asked for.
    pub fn spec(&self) -> ThreeArmsSpec {
        self.spec
    }

    /// The same draws, with so many pairs of blocks to come after the pair that this interval is in.
    ///
    /// # Errors
    /// That is longer than an experiment may be.
    pub fn prolonged(&self, from: Interval, pairs: u32) -> Result<Self, SpecError> {
        let begun =
            from.0.saturating_sub(self.spec.start.0).div_ceil(2 * u64::from(self.spec.block));
        let begun = u32::try_from(begun).unwrap_or(u32::MAX);
        Self::new(ThreeArmsSpec { pairs: begun.saturating_add(pairs), ..self.spec })
    }

    /// The interval after the last one.
    pub fn end(&self) -> Interval {
        self.experiment.end()
    }

    /// The block that an interval is in; `None` outside of the plan. No cluster changes within one.
    pub fn block(&self, interval: Interval) -> Option<i64> {
        self.experiment.part(b"", 0, interval).map(|(block, ..)| block)
    }

    /// What a cluster, by its key, runs in an interval.
    pub fn turn(&self, cluster: &[u8], interval: Interval) -> Turn {
        let tried = Turn { control: None, part: None };
        let Some((block, arm, wash_out)) = self.experiment.part(cluster, 0, interval) else {
            return tried;
        };
        let ThreeArmsSpec { share, schedule, seed, .. } = self.spec;
        let whose = if schedule == Schedule::Together { b"" } else { cluster };
        let place = place(chance(seed ^ PARTS, whose, block.div_euclid(2) as u64));
        // Half of a pair's time is the control's.
        if place >= 2.0 * share {
            return tried;
        }
        let which = usize::from(place >= share);
        let control = (arm == 0).then_some(which);
        Turn { control, part: (!wash_out).then_some((which, block)) }
    }

    /// What the cells of one comparison say of each of so many metrics, at a time at which it is
    /// over or not. Before the end the intervals are wider, so that one may look after every pair.
    pub fn estimates(
        &self,
        cells: &[CellOf],
        metrics: usize,
        through: Interval,
    ) -> Vec<Option<Estimated>> {
        let elapsed = (through.0 + 1).saturating_sub(self.experiment.start.0);
        let over = elapsed >= u64::from(self.experiment.length);
        let block = u64::from(self.experiment.block());
        // A pair counts when both of its blocks are over.
        let blocks = if over { i64::MAX } else { (elapsed / (2 * block) * 2) as i64 };
        let counted: Vec<CellOf> = cells.iter().filter(|c| c.block < blocks).cloned().collect();
        (0..metrics).map(|metric| self.experiment.estimated(&counted, metric, over)).collect()
    }
}

/// Whether a rollout to this share of the clusters has reached one, by its key. Whom it has reached
/// it also reaches with a larger share.
pub fn is_reached(cluster: &[u8], share: f64) -> bool {
    place(chance(ROLLOUT, cluster, 0)) < share
}

/// A draw from 0 to 1, in the 53 bits that a double holds.
pub(crate) fn place(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// How far a group of clusters is beyond a limit relative to another at the same time, by Welch: the
/// mean of `factors.0`·treatment − `factors.1`·control − `factors.2`, with the interval that misses
/// the truth with probability `alpha`. `None` with fewer than two clusters in either.
pub fn excess(
    control: &[f64],
    treatment: &[f64],
    factors: (f64, f64, f64),
    alpha: f64,
) -> Option<Effect> {
    compare_groups(&Limits { control, treatment, factors }, alpha)
}

/// Whether a group of clusters is mostly beyond a limit relative to another at the same time: of one
/// of each, factors.0·treatment − factors.2 is rather above factors.1·control. By ranks (Mann and
/// Whitney 1947), so one cluster that differs much hides nothing, as it does from [`excess`]. Wrong
/// with probability `alpha` at most. No with fewer than five clusters in either: the normal
/// distribution does not hold there.
pub fn is_mostly_beyond(
    control: &[f64],
    treatment: &[f64],
    factors: (f64, f64, f64),
    alpha: f64,
) -> bool {
    if control.len().min(treatment.len()) < 5 {
        return false;
    }
    let ours: Vec<f64> = treatment.iter().map(|value| factors.0 * value - factors.2).collect();
    let theirs: Vec<f64> = control.iter().map(|value| factors.1 * value).collect();
    let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
    // What cannot be compared, a number that is none, says nothing.
    mannwhitneyu(&ours, &theirs, method, Alternative::Greater).is_ok_and(|(_, p)| p < alpha)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Cell, Observation};
    use super::*;

    fn spec() -> ThreeArmsSpec {
        ThreeArmsSpec {
            start: Interval(100),
            block: 6,
            pairs: 24,
            wash_out: 1,
            share: 0.1,
            schedule: Schedule::Each,
            seed: 7,
        }
    }

    #[test]
    fn the_controls_get_the_share_of_time_that_was_asked_for_each_half_of_it() {
        let plan = ThreeArms::new(spec()).unwrap();
        let (mut of, mut all) = ([0.0; 2], 0.0);
        for cluster in 0..500 {
            let key = format!("10.0.{cluster}.0/24");
            for at in 100..plan.end().0 {
                all += 1.0;
                if let Some(control) = plan.turn(key.as_bytes(), Interval(at)).control {
                    of[control] += 1.0;
                }
            }
        }
        for share in of.map(|count| count / all) {
            assert!((0.045..0.055).contains(&share), "{share}");
        }
        assert_eq!(plan.turn(b"10.0.0.0/24", plan.end()), Turn { control: None, part: None });
    }

    /// A cluster is the same for a whole block, and in a pair it has both arms or none.
    #[test]
    fn a_cluster_that_takes_part_runs_both_arms_of_a_pair() {
        let plan = ThreeArms::new(ThreeArmsSpec { share: 0.5, ..spec() }).unwrap();
        let mut seen: BTreeMap<(usize, i64), [bool; 2]> = BTreeMap::new();
        for at in 100..plan.end().0 {
            let turn = plan.turn(b"192.0.2.0/24", Interval(at));
            let since = (at - 100) % 6;
            assert_eq!(turn.part.is_none(), since == 0, "the first interval is washed out");
            let Some((which, block)) = turn.part else { continue };
            let arm = usize::from(turn.control.is_none());
            seen.entry((which, block / 2)).or_default()[arm] = true;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|both| *both == [true; 2]), "{seen:?}");
    }

    #[test]
    fn all_clusters_change_at_once_where_they_share_a_bottleneck() {
        let spec = ThreeArmsSpec { schedule: Schedule::Together, share: 0.3, ..spec() };
        let plan = ThreeArms::new(spec).unwrap();
        for at in 100..plan.end().0 {
            let [a, b] = [b"a", b"b"].map(|key| plan.turn(key, Interval(at)));
            assert_eq!(a, b);
        }
    }

    /// U is 90 of 100, so z = (90 − 50 − 1/2) / √(100·21/12) = 2.99 and p = 0.0014.
    #[test]
    fn one_that_differs_much_hides_no_difference_of_the_others() {
        let control: Vec<f64> = (0..9).map(|i| 0.01 + 0.001 * f64::from(i)).chain([0.6]).collect();
        let treatment: Vec<f64> = (0..10).map(|i| 0.1 + 0.005 * f64::from(i)).collect();
        let limit = (1.0, 1.0, 0.02);
        assert!(excess(&control, &treatment, limit, 0.01).unwrap().low < 0.0);
        assert!(is_mostly_beyond(&control, &treatment, limit, 0.005));
        assert!(!is_mostly_beyond(&treatment, &control, limit, 0.005));
        assert!(!is_mostly_beyond(&control, &control, (1.0, 1.0, 0.0), 0.4));
        assert!(!is_mostly_beyond(&control[..4], &treatment, limit, 0.005));
        let strange = [f64::NAN; 10];
        assert!(!is_mostly_beyond(&strange, &treatment, limit, 0.005));
    }

    #[test]
    fn a_plan_that_is_prolonged_keeps_its_draws() {
        let plan = ThreeArms::new(ThreeArmsSpec { share: 0.5, ..spec() }).unwrap();
        let from = Interval(100 + 12 * 5 + 7);
        let longer = plan.prolonged(from, 24).unwrap();
        assert_eq!(longer.end(), Interval(100 + 12 * (6 + 24)));
        for at in 100..plan.end().0 {
            let turn = |plan: &ThreeArms| plan.turn(b"192.0.2.0/24", Interval(at));
            assert_eq!(turn(&plan), turn(&longer));
        }
        assert_eq!(plan.prolonged(Interval(1), 24).unwrap(), plan);
        assert!(plan.prolonged(from, u32::MAX).is_err());
    }

    #[test]
    fn a_rollout_reaches_its_share_and_whom_it_reached_before() {
        let keys: Vec<[u8; 4]> = (0..10_000_u32).map(|i| (i << 8).to_be_bytes()).collect();
        let mut before = 0;
        for share in [0.01, 0.05, 0.25, 1.0] {
            let reached = |key: &&[u8; 4]| is_reached(*key, share);
            let count = keys.iter().filter(reached).count();
            // Binomial: five standard deviations.
            let range = 5.0 * (10_000.0 * share * (1.0 - share)).sqrt();
            assert!((count as f64 - 10_000.0 * share).abs() <= range, "{share}: {count}");
            let both = keys.iter().filter(|key| is_reached(*key, share / 5.0) && reached(key));
            let few = keys.iter().filter(|key| is_reached(*key, share / 5.0)).count();
            assert_eq!(both.count(), few);
            assert!(count > before);
            before = count;
        }
    }

    #[test]
    fn a_difference_is_found_with_its_size() {
        let plan = ThreeArms::new(ThreeArmsSpec { share: 0.5, ..spec() }).unwrap();
        let mut cells: BTreeMap<(usize, i64), CellOf> = BTreeMap::new();
        for member in 0..20 {
            let key = format!("10.0.{member}.0/24");
            for at in 100..plan.end().0 {
                let turn = plan.turn(key.as_bytes(), Interval(at));
                let Some((0, block)) = turn.part else { continue };
                let arm = u8::from(turn.control.is_none());
                // Levels that differ by cluster and block, and 5 % more where it is tried.
                let level = 10.0 + member as f64 + (block % 5) as f64;
                let value = level * if arm == 1 { 1.05 } else { 1.0 };
                let cell = Cell::default();
                let of =
                    cells.entry((member, block)).or_insert(CellOf { member, block, arm, cell });
                of.cell.add(&Observation::Values(vec![Some(value), None]));
            }
        }
        let cells: Vec<CellOf> = cells.into_values().collect();
        let [found, none] = &plan.estimates(&cells, 2, plan.end())[..] else { panic!("two") };
        let relative = found.unwrap().relative.unwrap();
        assert!(relative.low > 0.0 && relative.low < 0.05 && relative.high > 0.05, "{relative:?}");
        assert_eq!(*none, None);
        // Half-way through a pair that pair does not count.
        let early = plan.estimates(&cells, 1, Interval(100 + 12 * 5 + 6))[0].unwrap();
        assert_eq!(early.pairs, 5);
    }

    #[test]
    fn a_group_that_is_beyond_its_limit_is_found_and_one_within_is_not() {
        let control = [0.001, 0.002, 0.001, 0.0, 0.003, 0.001];
        let factors = (1.0, 1.0, 0.02);
        let bad = excess(&control, &[0.07, 0.08, 0.075, 0.06, 0.07, 0.065], factors, 1e-3).unwrap();
        assert!(bad.low > 0.0, "{bad:?}");
        let good =
            excess(&control, &[0.003, 0.002, 0.004, 0.001, 0.002, 0.0], factors, 1e-3).unwrap();
        assert!(good.high < 0.0, "{good:?}");
        assert_eq!(excess(&control, &[0.5], factors, 1e-3), None);
    }

    #[test]
    fn plans_that_cannot_be_are_refused() {
        for wrong in [
            ThreeArmsSpec { share: 0.0, ..spec() },
            ThreeArmsSpec { share: 0.6, ..spec() },
            ThreeArmsSpec { pairs: 3, ..spec() },
            ThreeArmsSpec { wash_out: 6, ..spec() },
        ] {
            assert!(ThreeArms::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
