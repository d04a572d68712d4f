//! Is this better than what connections would run otherwise? Three arms, and what follows from them.
//!
//! * **Who runs what**, here: by cluster of clients (their prefix) and by time, never by flow.
//!   Connections to one place share its bottleneck, and a difference between them says nothing of
//!   what happens when all run the same (Spang et al., "Unbiased experiments in congested
//!   networks", IMC 2021).
//! * **What it brings** ([`compare`]): the estimate, by the statistics of `trimtab_fleet`.
//! * **Whether it does harm** ([`breaker`]): the same measurements, by the second.

pub(crate) mod breaker;
pub(crate) mod compare;

use std::net::IpAddr;

use trimtab_fleet::Interval;
use trimtab_fleet::experiment::{Schedule, ThreeArms, ThreeArmsSpec, Turn, is_reached};
use trimtab_steer::safety::{Arm, PrefixKey, Share};
use trimtab_units::{Duration, Time};

use crate::config::{Bottleneck, Compare, Config, Prefix, Rollout, STEP};
use crate::kernel::assign::copies;

/// The controls in the order of [`Turn::control`].
pub(crate) const CONTROLS: [Arm; 2] = [Arm::Former, Arm::Holdback];

/// Which part of a comparison a moment of a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) arm: Arm,
    /// The control that it is compared with, and the block; `None`: it does not count.
    pub(crate) part: Option<(usize, i64)>,
}

/// Who runs what, and when.
#[derive(Clone, Debug)]
pub(crate) struct Arms {
    holdback: Share,
    rollout: Option<(Rollout, Time)>,
    compare: Compare,
    plan: Option<ThreeArms>,
}

/// The cluster of a client: connections to it share its bottleneck.
pub(crate) fn cluster(client: IpAddr) -> Prefix {
    Prefix::of(client, Arm::prefix(client))
}

/// The step that a moment is in.
pub(crate) fn step(now: Time) -> Interval {
    Interval::at(now, STEP)
}

fn steps(time: Duration) -> u32 {
    time.as_secs_f64().div_euclid(STEP.as_secs_f64()) as u32
}

impl Arms {
    /// By a configuration, from now on; a rollout began at this time.
    pub(crate) fn new(config: &Config, rollout_since: Time, now: Time) -> Self {
        let rollout = config.rollout.clone().map(|rollout| (rollout, rollout_since));
        let mut arms =
            Self { holdback: config.holdback, rollout, compare: config.compare, plan: None };
        arms.plan_anew(now);
        arms
    }

    /// By another configuration. Where it compares as before, every cluster keeps its arm: else the
    /// controls of the first block would begin with what the rules did to them before.
    pub(crate) fn follow(&mut self, config: &Config, rollout_since: Time, now: Time) {
        let is_as_before = (config.holdback, config.compare) == (self.holdback, self.compare);
        let plan = self.plan.take().filter(|plan| is_as_before && step(now) < plan.end());
        *self = Self::new(config, rollout_since, now);
        if let Some(plan) = plan.and_then(|plan| plan.prolonged(step(now), self.compare.pairs).ok())
        {
            self.plan = Some(plan);
        }
    }

    /// A comparison begins with the next step.
    pub(crate) fn plan_anew(&mut self, now: Time) {
        let Compare { share, block, wash_out, pairs, bottleneck } = self.compare;
        let start = step(now).next();
        let spec = ThreeArmsSpec {
            start,
            block: steps(block),
            pairs,
            // What began before the step that a change falls into is washed out with it.
            wash_out: steps(wash_out),
            share: share.get(),
            schedule: match bottleneck {
                Bottleneck::Clients => Schedule::Each,
                Bottleneck::Host => Schedule::Together,
            },
            // Another one each time, so that no cluster is always the first.
            seed: start.0,
        };
        // The configuration was checked; without a share there is no plan.
        self.plan = ThreeArms::new(spec).ok();
    }

    pub(crate) fn plan(&self) -> Option<&ThreeArms> {
        self.plan.as_ref()
    }

    /// Whether the comparison is over.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.plan.as_ref().is_some_and(|plan| step(now) >= plan.end())
    }

    /// What a client's cluster runs.
    pub(crate) fn of(&self, client: IpAddr, now: Time) -> Place {
        let alone = |arm| Place { arm, part: None };
        if Arm::of(client, self.holdback) == Arm::Holdback {
            return alone(Arm::Holdback);
        }
        let key = PrefixKey::of(client);
        // By another draw than the holdback's, which would else take the first networks.
        if let Some((_, share, _)) = self.stage(now)
            && !is_reached(key.as_ref(), share.get())
        {
            return alone(Arm::Former);
        }
        let Some(plan) = &self.plan else { return alone(Arm::Treated) };
        let Turn { control, part } = plan.turn(key.as_ref(), step(now));
        Place { arm: control.map_or(Arm::Treated, |which| CONTROLS[which]), part }
    }

    /// What the hook of the root cgroup has to know to begin connections in their arm. The suffix is
    /// that of our algorithms' names. A new stage or plan makes another one.
    pub(crate) fn hooked(&self, suffix: &str, now: Time) -> trimtab_kernel::Arms {
        if !self.changes() {
            return trimtab_kernel::Arms::default();
        }
        trimtab_kernel::Arms {
            rollout: self.stage(now).map(|(_, share, _)| share),
            plan: self.plan.clone(),
            step: STEP,
            copies: copies(suffix),
        }
    }

    /// The stage of the rollout, from 1 on, its share, and the time until the next one; `None` where
    /// there is none, or it is over.
    pub(crate) fn stage(&self, now: Time) -> Option<(usize, Share, Option<Duration>)> {
        let (rollout, since) = self.rollout.as_ref()?;
        let elapsed = now.since(*since);
        let last = rollout.stages.len() - 1;
        let passed = (elapsed.as_secs_f64() / rollout.every.as_secs_f64().max(1.0)) as usize;
        let at = passed.min(last);
        let share = rollout.stages[at];
        if at == last && share.get() >= 1.0 {
            return None;
        }
        let left = (at < last).then(|| rollout.every.mul_f64((at + 1) as f64));
        Some((at + 1, share, left.map(|end| end - elapsed)))
    }

    /// The block and the stage of a moment: as long as both are the same, so is every cluster's arm.
    pub(crate) fn phase(&self, now: Time) -> (Option<i64>, Option<usize>) {
        let block = self.plan.as_ref().and_then(|plan| plan.block(step(now)));
        (block, self.stage(now).map(|(stage, ..)| stage))
    }

    /// Whether arms may change with time.
    pub(crate) fn changes(&self) -> bool {
        self.plan.is_some() || self.rollout.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The kernel's hook begins connections in the arm that the agent has them in.
    #[test]
    fn the_hook_and_the_agent_agree_on_who_runs_the_former_algorithm() {
        let start = Time::from_secs(1000);
        let compare = "[compare]\nshare = \"50%\"\nblock = \"20s\"\npairs = 4\n";
        let rollout = "[rollout]\nstages = [\"10%\", \"60%\"]\nevery = \"60s\"\n";
        for text in [compare.to_owned(), format!("{compare}{rollout}"), String::new()] {
            let config = Config::parse(Path::new("a"), &text).unwrap();
            let arms = Arms::new(&config, start, start);
            let mut counts = [0; 2];
            for i in 0..10_000_u32 {
                let client = match i % 2 {
                    0 => IpAddr::from((0x0a00_0001 + (i << 8)).to_be_bytes()),
                    _ => IpAddr::from(
                        ((0x2001_0db8_u128 << 96) + (u128::from(i) << 80)).to_be_bytes(),
                    ),
                };
                let now = start + Duration::from_millis(u64::from(i % 200) * 1000);
                let is_former = arms.of(client, now).arm == Arm::Former;
                assert_eq!(arms.hooked("_x", now).runs_former(client, now), is_former, "{client}");
                counts[usize::from(is_former)] += 1;
            }
            assert!(counts[0] > 1000 && (text.is_empty() || counts[1] > 1000), "{counts:?}");
        }
        let config = Config::parse(Path::new("a"), compare).unwrap();
        let hooked = Arms::new(&config, start, start).hooked("_x", start);
        assert!(hooked.copies.len() <= trimtab_kernel::Arms::COPIES_MOST);
        assert_eq!(hooked.copy_of("cubic"), Some("trimtab_cubic_x"));
        assert_eq!(hooked.copy_of("reno"), None);
    }
}
