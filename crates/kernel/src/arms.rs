//! Which connections begin with what they would run without Trimtab, for comparison, in the form
//! that the hook of the root cgroup reads (`bpf/core/choose.h`).

use std::net::IpAddr;

use trimtab_fleet::Interval;
use trimtab_fleet::experiment::{Schedule, ThreeArms, ThreeArmsSpec, is_reached};
use trimtab_steer::safety::{PrefixKey, Share};
use trimtab_units::{Duration, Time};

use crate::assign::name_bytes;
use crate::error::Error;
use crate::layout::{ARMS_SIZE, COPIES_MAX, COPY_SIZE, RawArms};

/// Places of the draws.
const PLACES: f64 = (1_u64 << 53) as f64;

/// Whose connections begin with what they would run without Trimtab: those of networks that a
/// rollout has not reached, and those of networks whose turn it is. They get the copy of that
/// algorithm. Where there is no copy, they get what the choice for them gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arms {
    /// Share of the networks that a rollout has reached; `None`: there is no rollout.
    pub rollout: Option<Share>,
    /// Three arms, of which the first control runs it.
    pub plan: Option<ThreeArms>,
    /// The length of the plan's intervals, which count from the start of the machine
    /// (`CLOCK_MONOTONIC`).
    pub step: Duration,
    /// Names of algorithms of the kernel, each with that of its copy.
    pub copies: Vec<(String, String)>,
}

impl Arms {
    /// How many copies the kernel's program looks at.
    pub const COPIES_MOST: usize = COPIES_MAX;

    /// Whether connections of a client begin so, as the kernel's program decides it.
    pub fn runs_former(&self, client: IpAddr, now: Time) -> bool {
        let key = PrefixKey::of(client);
        if self.rollout.is_some_and(|share| !is_reached(key.as_ref(), share.get())) {
            return true;
        }
        let Some(plan) = self.plan.as_ref().filter(|_| !self.step.is_zero()) else { return false };
        plan.turn(key.as_ref(), Interval::at(now, self.step)).control == Some(0)
    }

    /// The copy of an algorithm.
    pub fn copy_of(&self, name: &str) -> Option<&str> {
        let mut copies = self.copies.iter().take(COPIES_MAX);
        copies.find(|(of, _)| of == name).map(|(_, copy)| copy.as_str())
    }

    /// As the map has it.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Error> {
        let place = |share: f64| (share * PLACES).ceil() as u64;
        let copies = &self.copies[..self.copies.len().min(COPIES_MAX)];
        let mut raw = RawArms {
            reached: place(self.rollout.map_or(1.0, Share::get)),
            step_ns: self.step.as_nanos(),
            copies: copies.len() as u32,
            ..RawArms::default()
        };
        if let Some(plan) = &self.plan {
            let ThreeArmsSpec { start, block, share, schedule, seed, .. } = plan.spec();
            let (start, length) = (start.0, plan.end().0.saturating_sub(start.0));
            let together = u32::from(schedule == Schedule::Together);
            let (block, share) = (block.into(), place(share));
            raw = RawArms { start, length, block, share, seed, together, ..raw };
        }
        let mut bytes = raw.bytes();
        for (of, copy) in copies {
            bytes.extend(name_bytes(of)?);
            bytes.extend(name_bytes(copy)?);
        }
        bytes.resize(ARMS_SIZE + COPIES_MAX * COPY_SIZE, 0);
        Ok(bytes)
    }
}
