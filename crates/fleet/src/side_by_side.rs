//! What a trial brought compared with its control in the same interval.
//!
//! Both arms have the same hour, so it cancels in their difference. What does not cancel is which
//! clusters chance drew. CUPED takes out what is known of these from before (Deng, Xu, Kohavi and
//! Walker, "Improving the sensitivity of online controlled experiments by utilizing pre-experiment
//! data", WSDM 2013): the difference of the same two groups of clusters in the interval *before*
//! them, where no arm told them apart. Its expectation is zero, since the draw is independent of the
//! interval before, so any multiple of it may be subtracted. The multiple is θ = cov/var, from pairs
//! of earlier intervals alone: so the estimate has no bias, whatever the covariate is worth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_qoe::AggregateFormula;

use crate::control::{CONTROL, TREATMENT};
use crate::spread::Spread;
use crate::{Context, Interval, Service, Summary};

/// So many pairs with a covariate, and so many differences without an effect, say something.
const KNOWN_AFTER: f64 = 8.0;
/// Each counts so much less with every later one.
const KEEP: f64 = 0.99;
/// A covariate helps where its correlation with the difference is two standard errors above chance,
/// which is 1/√n without any correlation.
const SIGNIFICANT: f64 = 4.0;

/// What edges reported of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What all connections saw that ran what was tried.
    pub summary: &'a Summary,
    /// By arm, what edges saw that reported both arms of this interval.
    pub arms: Option<&'a [Summary; 2]>,
    /// By the arm of the *next* interval, what all connections saw.
    pub next: Option<&'a [Summary; 2]>,
}

impl<'a> From<&'a Summary> for Observed<'a> {
    fn from(summary: &'a Summary) -> Self {
        Self { summary, arms: None, next: None }
    }
}

/// How a trial compared with its control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideBySide {
    /// The reward of the control's clusters.
    pub control: f64,
    /// Connections of these.
    pub connections: u64,
    /// The reward of the trial's clusters less that of the control's, less what the covariate
    /// explains of it.
    pub difference: f64,
    /// The standard error of that; none until one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// The same difference of the same clusters in the interval before; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covariate: Option<f64>,
    /// How much of the covariate was subtracted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub theta: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
fn is_zero(theta: &f64) -> bool {
    *theta == 0.0
}

/// A covariate, and for which interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Before {
    interval: Interval,
    difference: f64,
}

/// Moments of covariates (x) and of differences (y) of earlier intervals, all weighted alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Moments {
    weight: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

/// What is known of the pairs of an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pairs {
    /// The reward of the control in the first pair of each context.
    levels: BTreeMap<Context, f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Before>,
    moments: Moments,
    /// By how much the variance of a difference without an effect is above what its connections
    /// explain, as the mean of ratios, and of how many: connections of a cluster are alike.
    placebo: f64,
    placebos: f64,
}

/// The value of the formula in each arm, where both have enough connections.
fn values(formula: &AggregateFormula, service: &Service, arms: &[Summary; 2]) -> Option<[f64; 2]> {
    let value = |summary: &Summary| {
        let enough = summary.connections() >= service.connections_min().max(1);
        Service::value(formula, summary).filter(|_| enough)
    };
    Some([value(&arms[TREATMENT])?, value(&arms[CONTROL])?])
}

/// One over the connections of one arm, and of the other.
fn per_connection(arms: &[Summary; 2]) -> f64 {
    arms.iter().map(|arm| 1.0 / arm.connections() as f64).sum()
}

impl Moments {
    /// West's update (Communications of the ACM 22(9), 1979).
    fn add(&mut self, x: f64, y: f64) {
        for sum in [&mut self.weight, &mut self.xx, &mut self.yy, &mut self.xy] {
            *sum *= KEEP;
        }
        self.weight += 1.0;
        let (dx, dy) = (x - self.x, y - self.y);
        self.x += dx / self.weight;
        self.y += dy / self.weight;
        self.xx += dx * (x - self.x);
        self.yy += dy * (y - self.y);
        self.xy += dx * (y - self.y);
    }

    /// θ, and what is left of the variance of a difference with this covariate: the unexplained
    /// share, by the degrees of freedom that are left, and more by what θ is itself off by.
    fn fitted(&self, x: f64) -> Option<(f64, f64)> {
        let explained = self.xy * self.xy / (self.xx * self.yy);
        let known = self.weight >= KNOWN_AFTER && self.weight * explained > SIGNIFICANT;
        let left = (1.0 - explained) * (self.weight - 1.0) / (self.weight - 2.0);
        let left = left * (1.0 + x * x / self.xx);
        (known && left < 1.0).then(|| (self.xy / self.xx, left))
    }
}

impl Pairs {
    /// Whether nothing is known.
    pub(crate) fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// The network is another one: how high rewards were tells nothing any more.
    pub(crate) fn doubt(&mut self) {
        self.levels.clear();
    }

    /// How the arms of an interval compare; none where one of them has no reward.
    pub(crate) fn compare(
        &mut self,
        service: &Service,
        interval: Interval,
        arms: &[Summary; 2],
        spread: &Spread,
    ) -> Option<SideBySide> {
        let [treatment, control] = values(service.reward(), service, arms)?;
        let difference = treatment - control;
        let before = self.before.filter(|before| before.interval == interval);
        let covariate = before.map(|before| before.difference);
        let fitted = covariate.and_then(|x| Some((x, self.moments.fitted(x)?)));
        let (explained, theta, left) = match fitted {
            Some((x, (theta, left))) => (theta * x, theta, left),
            None => (0.0, 0.0, 1.0),
        };
        if let Some(x) = covariate {
            self.moments.add(x, difference);
        }
        let apart = if self.placebos >= KNOWN_AFTER { self.placebo.max(1.0) } else { 1.0 };
        let error = |variance: f64| (variance * per_connection(arms) * apart * left).sqrt();
        Some(SideBySide {
            control,
            connections: arms[CONTROL].connections(),
            difference: difference - explained,
            error: spread.per_connection().map(error),
            covariate,
            theta,
        })
    }

    /// Takes what clusters saw by the arm that they are in next.
    pub(crate) fn look_ahead(
        &mut self,
        service: &Service,
        interval: Interval,
        next: Option<&[Summary; 2]>,
        spread: &Spread,
    ) {
        let both = next.and_then(|next| Some((next, values(service.reward(), service, next)?)));
        self.before = both.map(|(_, [treatment, control])| Before {
            interval: interval.next(),
            difference: treatment - control,
        });
        if let (Some((next, [treatment, control])), Some(variance)) =
            (both, spread.per_connection())
            && variance > 0.0
        {
            let ratio = (treatment - control).powi(2) / (variance * per_connection(next));
            self.placebos = self.placebos * KEEP + 1.0;
            self.placebo += (ratio - self.placebo) / self.placebos;
        }
    }

    /// What the learner is to take for the reward of an interval with a pair: the difference, on one
    /// level for all of a context's pairs, however high rewards were in their hours.
    pub(crate) fn reward(&mut self, context: Context, pair: &SideBySide) -> f64 {
        *self.levels.entry(context).or_insert(pair.control) + pair.difference
    }
}

#[cfg(test)]
mod tests;
