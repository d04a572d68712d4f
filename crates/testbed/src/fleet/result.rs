//! What a fleet on the kernel showed: figures for machines, and estimates with their intervals.

use std::collections::BTreeMap;

use serde::Serialize;
use trimtab_lab::stats::{self, Sums, bca};

/// Knobs and their values.
pub(super) type Knobs = BTreeMap<String, f64>;

/// A fleet on the kernel.
#[derive(Clone, Debug, Serialize)]
pub struct FleetRun {
    /// `trimtab.fleet-kernel/2`. Fields may be added without a new one.
    pub schema: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// The command that it came from.
    pub command: String,
    /// The kernel's name and version.
    pub kernel: String,
    /// The scenario's name.
    pub scenario: String,
    /// What it shows.
    pub about: String,
    /// The service's name.
    pub service: String,
    /// Its reward.
    pub reward: String,
    /// How long an interval is, in s.
    pub interval_s: f64,
    /// How long the fleet learnt, in s.
    pub learn_s: f64,
    /// How long a block of the comparison is, in s.
    pub block_s: f64,
    /// Rounds of the comparison.
    pub rounds: u32,
    /// Clients of each edge.
    pub clients: u32,
    /// By edge.
    pub edges: Vec<EdgeResult>,
    /// The 99th percentile of how late packets left a link, in the worst block, in ms: what the links were worth.
    pub late_p99_ms: f64,
    /// Packets that were lost elsewhere than on the links: the machine was too slow.
    pub lost_elsewhere: u64,
}

/// An edge.
#[derive(Clone, Debug, Serialize)]
pub struct EdgeResult {
    /// Its name.
    pub name: String,
    /// The destinations that it is known by.
    pub prefix: String,
    /// Where the capacity comes from.
    pub link: String,
    /// Its mean, in Mbit/s.
    pub capacity_mbps: f64,
    /// Base round-trip time, in ms.
    pub rtt_ms: f64,
    /// Buffer, in KB.
    pub buffer_kb: f64,
    /// Random loss, 0 to 1.
    pub loss: f64,
    /// The configuration that it began with, and is compared with.
    pub default: BTreeMap<String, f64>,
    /// The best guess in the end.
    pub learnt: BTreeMap<String, f64>,
    /// What was tried and learnt, interval by interval.
    pub course: Vec<Moment>,
    /// Every block of the comparison.
    pub blocks: Vec<Block>,
    /// By arm.
    pub arms: Vec<ArmResult>,
    /// Each arm but the default vs. the default.
    pub differences: Vec<Difference>,
}

/// An interval of learning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// When it began, in s since learning did.
    pub at_s: f64,
    /// What was tried.
    pub tried: BTreeMap<String, f64>,
    /// The best guess after it.
    pub guess: BTreeMap<String, f64>,
    /// What it brought; none when too few connections ran what was to be tried.
    pub reward: Option<f64>,
}

/// Who has the links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// What was learnt.
    Learnt,
    /// The service's safe configuration.
    Default,
    /// An algorithm of the kernel's own.
    #[serde(untagged)]
    Rival(String),
}

impl Arm {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Learnt => "learnt",
            Self::Default => "default",
            Self::Rival(name) => name,
        }
    }
}

/// A block of the comparison on one edge. Of downloads only those count that every arm of its round
/// made: they are the same ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// The round.
    pub round: u32,
    /// The arm.
    pub arm: Arm,
    /// Downloads that count.
    pub downloads: usize,
    /// All that were done.
    pub done: usize,
    /// That did not come to their end.
    pub failed: u64,
    /// Mean time of those that count, in s.
    pub download_s: f64,
    /// Mean rate of those that count, in Mbit/s.
    pub download_mbps: f64,
    /// Mean wait in the link's queue, in ms.
    pub queue_ms: f64,
    /// Packets that the link dropped, as a share of those that came, random loss and all; 0 to 1.
    pub lost: f64,
    /// What the link carried, in Mbit/s.
    pub carried_mbps: f64,
    /// Mean reward of its intervals, as the engine has it; none of others.
    pub reward: Option<f64>,
}

/// A mean with its 95% interval over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The lower end; `null` where an interval would mean nothing, as with one round.
    pub lo: Option<f64>,
    /// The upper end; `null` as above.
    pub hi: Option<f64>,
}

impl Estimate {
    /// The ends of the interval.
    pub fn ends(&self) -> Option<[f64; 2]> {
        Some([self.lo?, self.hi?])
    }
}

impl From<stats::Estimate> for Estimate {
    fn from(of: stats::Estimate) -> Self {
        let [lo, hi] = of.ci95.map_or([None; 2], |ends| ends.map(Some));
        Self { mean: of.value, lo, hi }
    }
}

/// How an arm did on an edge.
#[derive(Clone, Debug, Serialize)]
pub struct ArmResult {
    /// Which.
    pub arm: Arm,
    /// Downloads that count.
    pub downloads: usize,
    /// Their mean time, in s.
    pub download_s: Option<Estimate>,
    /// Mean wait in the queue, in ms.
    pub queue_ms: Option<Estimate>,
    /// Dropped share, 0 to 1.
    pub lost: Option<Estimate>,
    /// Mean rate of downloads, in Mbit/s.
    pub download_mbps: Option<Estimate>,
    /// Reward.
    pub reward: Option<Estimate>,
}

/// An arm vs. the default, by differences within rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Which.
    pub arm: Arm,
    /// Reward more than the default's.
    pub reward: Option<Estimate>,
    /// Mean time of downloads, relative to the default's: -0.1 is a tenth faster.
    pub download: Option<Estimate>,
}

/// The mean of some values with its interval.
fn estimate(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    let units: Vec<Sums> = values.filter(|v| v.is_finite()).map(|v| Sums::of(v, 0.0)).collect();
    bca(&units, Sums::mean).map(Into::into)
}

/// Mean of the first by mean of the second, less one.
fn ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Estimate> {
    let units: Vec<Sums> = pairs
        .filter(|(a, b)| a.is_finite() && b.is_finite() && *b > 0.0)
        .map(|(a, b)| Sums::of(a, b))
        .collect();
    bca(&units, |s| s.a / s.b - 1.0).map(Into::into)
}

/// The arms of an edge, in the order of `arms`.
pub(super) fn arms(arms: &[Arm], blocks: &[Block]) -> Vec<ArmResult> {
    let of = |arm: &Arm| {
        let own = || blocks.iter().filter(|block| block.arm == *arm);
        ArmResult {
            arm: arm.clone(),
            downloads: own().map(|block| block.downloads).sum(),
            download_s: estimate(own().map(|block| block.download_s)),
            queue_ms: estimate(own().map(|block| block.queue_ms)),
            lost: estimate(own().map(|block| block.lost)),
            download_mbps: estimate(own().map(|block| block.download_mbps)),
            reward: estimate(own().filter_map(|block| block.reward)),
        }
    };
    arms.iter().map(of).collect()
}

/// Every arm but the default, vs. it.
pub(super) fn differences(arms: &[Arm], blocks: &[Block]) -> Vec<Difference> {
    let of = |arm: &Arm| {
        let pairs = || {
            blocks.iter().filter(move |block| block.arm == *arm).filter_map(|block| {
                let same = |b: &&Block| b.round == block.round && b.arm == Arm::Default;
                Some((block, blocks.iter().find(same)?))
            })
        };
        Difference {
            arm: arm.clone(),
            reward: estimate(
                pairs().filter_map(|(own, default)| Some(own.reward? - default.reward?)),
            ),
            download: ratio(pairs().map(|(own, default)| (own.download_s, default.download_s))),
        }
    };
    arms.iter().filter(|arm| **arm != Arm::Default).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(round: u32, arm: &Arm, download_s: f64, reward: Option<f64>) -> Block {
        Block {
            round,
            arm: arm.clone(),
            downloads: 3,
            done: 4,
            failed: 0,
            download_s,
            download_mbps: 8.0 / download_s,
            queue_ms: 10.0,
            lost: 0.01,
            carried_mbps: 5.0,
            reward,
        }
    }

    /// Rounds differ far more than arms do, and always in the same way: the difference within rounds sees it.
    #[test]
    fn arms_are_compared_within_rounds() {
        let arms_ = [Arm::Learnt, Arm::Default, Arm::Rival("cubic".to_owned())];
        let blocks: Vec<Block> = (0..6)
            .flat_map(|round| {
                let slow = 1.0 + f64::from(round);
                [
                    block(round, &arms_[0], 0.9 * slow, Some(slow + 0.5)),
                    block(round, &arms_[1], slow, Some(slow)),
                    block(round, &arms_[2], 1.2 * slow, None),
                ]
            })
            .collect();
        let all = differences(&arms_, &blocks);
        assert_eq!(all.len(), 2, "the default is not compared with itself");
        let learnt = all[0].reward.unwrap();
        assert!((learnt.mean - 0.5).abs() < 1e-9, "{learnt:?}");
        assert_eq!(learnt.ends(), None, "the same in every round");
        let faster = all[0].download.unwrap();
        assert!((faster.mean + 0.1).abs() < 1e-9, "{faster:?}");
        assert_eq!(all[1].reward, None, "the engine knows nothing of it");
        assert!((all[1].download.unwrap().mean - 0.2).abs() < 1e-9);
        let own = arms(&arms_, &blocks);
        assert!((own[1].download_s.unwrap().mean - 3.5).abs() < 1e-9);
        assert!(own[1].download_s.unwrap().hi.unwrap() > 4.0, "rounds differ");
        assert_eq!(own.iter().map(|arm| arm.downloads).sum::<usize>(), 54);
    }

    /// A block without a download has no mean time: it counts for nothing, and makes no NaN.
    #[test]
    fn a_block_without_downloads_is_left_out() {
        let arms_ = [Arm::Learnt, Arm::Default];
        let blocks = [
            block(1, &arms_[0], f64::NAN, None),
            block(1, &arms_[1], 2.0, Some(1.0)),
            block(2, &arms_[0], 1.0, Some(3.0)),
            block(2, &arms_[1], 2.0, Some(1.0)),
            block(3, &arms_[0], 1.0, Some(3.0)),
        ];
        let own = arms(&arms_, &blocks);
        assert_eq!(own[0].download_s.unwrap().mean, 1.0);
        let difference = &differences(&arms_, &blocks)[0];
        assert_eq!(difference.download.unwrap().mean, -0.5);
        assert_eq!(difference.reward.unwrap().mean, 2.0);
        let none = differences(&arms_, &blocks[..1]);
        assert_eq!((none[0].download, none[0].reward), (None, None));
    }

    #[test]
    fn names_of_arms_are_the_same_for_people_and_programs() {
        for arm in [Arm::Learnt, Arm::Default, Arm::Rival("bbr".to_owned())] {
            assert_eq!(serde_json::to_value(&arm).unwrap(), arm.name());
        }
    }
}
