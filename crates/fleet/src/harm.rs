//! What flows of others lose by a trial, by what the host's own clients see.
//!
//! No host knows the flows of others. But what these get depends on what its clients see, too: the
//! queue and the loss of the bottleneck. A loss-based flow with the round-trip time R and the loss
//! p gets less with either (RFC 5348, section 3.1). So the harm of a trial is estimated by how R and
//! p of the clients differ from those under the safe configuration:
//!
//! ln(before / after) = [`DELAY`] · ln(R / R of safe) + [`LOSS`] · (p - p of safe)
//!
//! The two weights are fitted to simulated bottlenecks that clients share with CUBIC; a test of
//! `crates/lab` prints the fit. The loss of own flows is no full measure of that of others, since a
//! flow that starts too fast loses its own packets in bursts. So the weight of loss is smaller than
//! that equation has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_qoe::{Statistic, StatisticKind};

use crate::{Context, Summary};

/// The logarithm of others' throughput that is lost by that of the round-trip time.
const DELAY: f64 = 0.5;
/// The logarithm of others' throughput that is lost by the share of packets lost.
const LOSS: f64 = 1.5;
/// Each interval of the safe configuration counts so much less with every later one: ten count.
const KEEP: f64 = 0.9;

/// What a decision shows of harm, as shares of the throughput that flows of others get under the
/// safe configuration; below 0 where they gain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Harm {
    /// By what clients saw in this interval.
    pub interval: f64,
    /// By all that is known of what was tried, which is what the bound is about.
    pub expected: f64,
    /// The most that is permitted.
    pub most: f64,
}

/// What clients see of the bottlenecks: the mean round-trip time in seconds, as a logarithm, and
/// the mean share of packets lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    log_rtt: f64,
    loss: f64,
}

impl Bottleneck {
    /// As the clients of an interval saw it; none without round-trip times or losses.
    pub fn of(summary: &Summary) -> Option<Self> {
        let mean = |of: &str| {
            summary.statistic(&Statistic { kind: StatisticKind::Mean, of: of.to_owned() })
        };
        let (rtt, loss) = (mean("rtt")?, mean("loss")?);
        (rtt > 0.0).then(|| Self { log_rtt: libm::log(rtt), loss })
    }

    /// How much less throughput flows of others get than where it is as `before`, as a share of
    /// that; below 0 where it is more.
    pub fn harm_since(&self, before: &Self) -> f64 {
        let lost = DELAY * (self.log_rtt - before.log_rtt) + LOSS * (self.loss - before.loss);
        1.0 - libm::exp(-lost)
    }
}

/// What clients see under the safe configuration, by context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Reference {
    by_context: BTreeMap<Context, Usual>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Usual {
    weight: f64,
    log_rtt: f64,
    loss: f64,
}

impl Reference {
    /// Whether nothing is known.
    pub(crate) fn is_new(&self) -> bool {
        self.by_context.is_empty()
    }

    /// Takes an interval. What flows of others lose in it, where that is known: nothing where the
    /// safe configuration itself is in force.
    pub(crate) fn take(
        &mut self,
        context: Context,
        is_safe: bool,
        summary: &Summary,
    ) -> Option<f64> {
        let seen = Bottleneck::of(summary)?;
        if !is_safe {
            let Usual { log_rtt, loss, .. } = *self.by_context.get(&context)?;
            return Some(seen.harm_since(&Bottleneck { log_rtt, loss }));
        }
        let usual = self.by_context.entry(context).or_default();
        usual.weight = usual.weight * KEEP + 1.0;
        usual.log_rtt += (seen.log_rtt - usual.log_rtt) / usual.weight;
        usual.loss += (seen.loss - usual.loss) / usual.weight;
        None
    }
}

#[cfg(test)]
mod tests;
