//! A staged rollout: a configuration to more and more aggregates, and back by itself when a guard metric breaks or the success
//! metric becomes worse.
//!
//! ```text
//!   before ──▶ stage 1 ──▶ stage 2 ──▶ … ──▶ last stage ──▶ done
//!                 └────────────┴─────────────────┴──▶ rolled back
//! ```
//!
//! Before anything is switched, the first stage's length of intervals is measured as it is. In each stage those that are
//! switched are compared with those that are not yet, each with its own before (a difference in differences: what is usual
//! for an aggregate, and what happens to all, is neither's merit). In the last stage, where all are, those that were
//! switched last are compared with those that were before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::design::{Arm, GUARDS_MAX, LENGTH_MAX, SpecError};
use super::stats::{ALPHA, Estimate, moments};
use super::{CellOf, GuardMetric, GuardReport, Plan, REWARD, Verdict};
use crate::Interval;

/// A stage in which it cannot be told whether the guards hold, or which has no data of the success
/// metric, lasts so many times its length; then doubt counts against what is new.
const PATIENCE: u32 = 3;
/// Fewer aggregates than this that are switched say too little of how much they differ: it is taken from the others, too.
const OWN_SPREAD_MIN: usize = 10;

/// A rollout of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// What aggregates run before they are switched.
    pub from: Arm,
    /// What is rolled out.
    pub to: Arm,
    /// Shares of the aggregates that are switched, stage by stage, ascending to 1.
    pub stages: Vec<f64>,
    /// The first interval that is measured.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Interval,
    /// How many intervals a stage has at least; three times as many at most.
    pub intervals: u32,
    /// Intervals after each switch that are left out.
    pub wash_out: u32,
    /// What says whether it is better: a formula, more of which is better, or `reward` for the service's. Those from before it
    /// had to be named have the reward.
    #[serde(default = "reward")]
    pub metric: String,
    /// What must hold, as `mean(loss) < +20%`.
    pub guards: Vec<String>,
    /// The seed of the draws.
    #[serde(default)]
    pub seed: u64,
}

fn reward() -> String {
    REWARD.to_owned()
}

/// How a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It goes on by itself.
    Running,
    /// An operator keeps it in its stage. It is still rolled back when a guard breaks.
    Held,
    /// All aggregates have it, later ones too.
    Done,
    /// A guard broke, the success metric became worse, or too little was known of one: all have what
    /// they had.
    RolledBack,
    /// An operator ended it: all have what they had.
    Aborted,
}

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutState {
    /// How it is.
    pub phase: Phase,
    /// 0: before anything is switched.
    pub stage: u32,
    /// The first interval of the stage.
    pub since: Interval,
    /// Why it is so.
    pub why: String,
}

/// What a rollout does next by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The next stage begins.
    Advance,
    /// The last stage is over: it stays.
    Finish,
    /// Everything goes back.
    Back {
        /// Why.
        why: String,
    },
}

/// What is known of the stage that a rollout is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// Intervals of the stage that are over.
    pub elapsed: u32,
    /// Aggregates that are switched.
    pub switched: u64,
    /// Of so many.
    pub aggregates: u64,
    /// What those that are switched are compared with.
    pub compared_with: String,
    /// The success metric: it holds where it is shown to be better, and is broken where it is shown to
    /// be worse. A stage does not go on while there is no data of it. None before anything is switched.
    #[serde(default)]
    pub success: Option<GuardReport>,
    /// The guards, each interval so wide that all that is looked at in the rollout together breaks by chance in 5 of 100
    /// rollouts of something harmless.
    pub guards: Vec<GuardReport>,
    #[serde(skip)]
    /// What follows, if something does.
    pub step: Option<Step>,
}

impl RolloutState {
    /// Where it begins.
    pub fn new(rollout: &Rollout) -> Self {
        let why = "measures what is usual before anything is switched".to_owned();
        Self { phase: Phase::Running, stage: 0, since: rollout.start, why }
    }

    /// The arm that all aggregates keep, once it is over.
    pub fn kept(&self) -> Option<u8> {
        match self.phase {
            Phase::Running | Phase::Held => None,
            Phase::Done => Some(1),
            Phase::RolledBack | Phase::Aborted => Some(0),
        }
    }

    /// After a step that is taken when an interval was closed. The next interval may have begun with what was in force, so
    /// a new stage begins with the one after it.
    #[must_use]
    pub fn after(&self, step: &Step, through: Interval) -> Self {
        let since = through.next().next();
        match step {
            Step::Advance => Self {
                phase: self.phase,
                stage: self.stage + 1,
                since,
                why: "the guards held in the stage before".to_owned(),
            },
            Step::Finish => Self {
                phase: Phase::Done,
                since,
                why: "the guards held in every stage".to_owned(),
                ..self.clone()
            },
            Step::Back { why } => {
                Self { phase: Phase::RolledBack, since, why: why.clone(), ..self.clone() }
            }
        }
    }
}

impl Rollout {
    /// Whether it can be, as far as it can be seen without its service.
    ///
    /// # Errors
    /// Says what cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        let ascending = self.stages.windows(2).all(|pair| pair[0] < pair[1]);
        let ends = self.stages.first().is_some_and(|&first| first > 0.0)
            && self.stages.last().is_some_and(|&last| last == 1.0);
        if !ascending || !ends || self.stages.len() > 20 {
            return Err(SpecError::Stages(self.stages.clone()));
        }
        if !(1..=LENGTH_MAX).contains(&self.intervals) {
            return Err(SpecError::Length(self.intervals));
        }
        if self.wash_out >= self.intervals {
            return Err(SpecError::WashOut { wash_out: self.wash_out, of: self.intervals });
        }
        if self.guards.is_empty() {
            return Err(SpecError::NoGuard);
        }
        if self.guards.len() > GUARDS_MAX {
            return Err(SpecError::Guards);
        }
        Ok(())
    }

    /// The most intervals of a stage.
    pub fn intervals_max(&self) -> u32 {
        self.intervals.saturating_mul(PATIENCE)
    }

    /// Stage, arm, and whether it is left out, of an aggregate's interval.
    pub(super) fn part(
        &self,
        state: &RolloutState,
        place: i64,
        interval: Interval,
    ) -> Option<(i64, u8, bool)> {
        if interval < self.start {
            return None;
        }
        // A stage that was entered has not begun yet in the interval that was already open.
        let begun = interval >= state.since;
        let stage = i64::from(state.stage) - i64::from(!begun);
        let wash_out = begun && stage > 0 && interval.0 - state.since.0 < u64::from(self.wash_out);
        Some((stage.max(0), u8::from(place <= stage), wash_out))
    }

    /// What is known of the present stage, and what follows from it. `places` are those that [`super::places`] gave, `through`
    /// the last interval that was closed.
    pub fn judge(
        &self,
        plan: &Plan,
        state: &RolloutState,
        places: &[i64],
        cells: &[CellOf],
        through: Interval,
    ) -> Judgement {
        let elapsed = (through.0 + 1).saturating_sub(state.since.0).min(u64::from(u32::MAX)) as u32;
        let stage = i64::from(state.stage);
        let is_last = state.stage as usize == self.stages.len();
        let (before, compared_with) = match (state.stage, is_last) {
            (0, _) => (0, "nothing: none is switched yet"),
            (_, false) => (0, "those that are not switched yet, each with its own before"),
            (_, true) => (stage - 1, "those that were switched before, each with its own before"),
        };
        let metrics = 1 + self.guards.len() as u32;
        let looked_at = self.stages.len() as u32 * self.intervals_max() * metrics;
        // One side of the interval decides.
        let alpha = 2.0 * ALPHA / f64::from(looked_at.max(1));
        // Whether to go on is asked after each length of the stage: that the limit is kept to has to be shown, and what breaks it
        // is let on in 5 of 100 stages at most.
        let alpha_on = 2.0 * ALPHA / f64::from(PATIENCE);
        let report = |(metric, guard): (usize, &GuardMetric)| {
            let mut compared = Compared::default();
            for (place, [pre, post]) in both_times(places, cells, metric, [before, stage]) {
                let is_new = if is_last { place == stage } else { place <= stage };
                let side = if is_new { &mut compared.switched } else { &mut compared.others };
                side.push((pre, post));
            }
            let excess = compared.excess(guard);
            let keeps = excess.as_ref().is_some_and(|e| e.effect(alpha_on).high < 0.0);
            let excess = excess.map(|e| e.effect(alpha));
            (GuardReport::new(guard, compared.means(), excess), keeps)
        };
        let success = GuardMetric::not_less(&self.metric, &plan.metric);
        let success = (stage > 0).then(|| report((0, &success)).0);
        let (guards, keep): (Vec<GuardReport>, Vec<bool>) = if stage == 0 {
            (Vec::new(), Vec::new())
        } else {
            (1..).zip(&plan.guards).map(report).unzip()
        };
        let step = self.step(state, elapsed, success.as_ref(), (&guards, &keep));
        Judgement {
            elapsed,
            switched: match state.kept() {
                Some(0) => 0,
                Some(_) => places.len() as u64,
                None => places.iter().filter(|&&place| place <= stage).count() as u64,
            },
            aggregates: places.len() as u64,
            compared_with: compared_with.to_owned(),
            success,
            guards,
            step,
        }
    }

    /// What follows from the success metric, from the guards, and from whether each of these is shown to be kept to.
    fn step(
        &self,
        state: &RolloutState,
        elapsed: u32,
        success: Option<&GuardReport>,
        (guards, keep): (&[GuardReport], &[bool]),
    ) -> Option<Step> {
        if state.kept().is_some() {
            return None;
        }
        let is_broken = |metric: &&GuardReport| metric.verdict == Verdict::Broken;
        let guard = guards.iter().find(is_broken).map(|guard| (guard, "is broken"));
        let worse = success.filter(is_broken).map(|success| (success, "is worse"));
        if let Some((broken, how)) = guard.or(worse) {
            let (control, treatment) =
                (broken.control.unwrap_or(f64::NAN), broken.treatment.unwrap_or(f64::NAN));
            let why = format!(
                "{} {how} in stage {}: {treatment:.4}, where {control:.4} was to be expected",
                broken.guard, state.stage
            );
            return Some(Step::Back { why });
        }
        let is_asked = elapsed.is_multiple_of(self.intervals) || elapsed >= self.intervals_max();
        if state.phase == Phase::Held || elapsed < self.intervals || !is_asked {
            return None;
        }
        // It may be worse, and nobody would see it.
        if let Some(unknown) = success.filter(|success| success.excess.is_none()) {
            let much = if unknown.treatment.is_none() { "no" } else { "too little" };
            return (elapsed >= self.intervals_max()).then(|| Step::Back {
                why: format!(
                    "after {elapsed} intervals of stage {} there is {much} data of the success \
                     metric {}",
                    state.stage, unknown.guard
                ),
            });
        }
        // Non-inferiority: the upper bound is within the limit. That nothing bad was seen shows little.
        let doubtful = guards.iter().zip(keep).find(|(_, keeps)| !**keeps).map(|(guard, _)| guard);
        match doubtful {
            Some(guard) if elapsed >= self.intervals_max() => Some(Step::Back {
                why: format!(
                    "after {elapsed} intervals of stage {} it cannot be told whether {} holds",
                    state.stage, guard.guard
                ),
            }),
            Some(_) => None,
            None if state.stage as usize == self.stages.len() => Some(Step::Finish),
            None => Some(Step::Advance),
        }
    }
}

/// The place of each member with values at both times, and these.
fn both_times(
    places: &[i64],
    cells: &[CellOf],
    metric: usize,
    blocks: [i64; 2],
) -> impl Iterator<Item = (i64, [f64; 2])> {
    let mut values: BTreeMap<usize, [Option<f64>; 2]> = BTreeMap::new();
    for cell in cells {
        for (i, block) in blocks.into_iter().enumerate() {
            if cell.block == block {
                values.entry(cell.member).or_default()[i] = cell.cell.mean(metric);
            }
        }
    }
    let both =
        |(member, [pre, post]): (usize, [Option<f64>; 2])| Some((places[member], [pre?, post?]));
    values.into_iter().filter_map(both)
}

/// Means before and after.
#[derive(Default)]
struct Compared {
    switched: Vec<(f64, f64)>,
    others: Vec<(f64, f64)>,
}

impl Compared {
    /// What was to be expected of those that were switched, and what they had.
    fn means(&self) -> [Option<f64>; 2] {
        if self.switched.is_empty() {
            return [None, None];
        }
        let mean = |all: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
            all.iter().map(of).sum::<f64>() / all.len().max(1) as f64
        };
        let change = mean(&self.others, |(pre, post)| post - pre);
        [Some(mean(&self.switched, |v| v.0) + change), Some(mean(&self.switched, |v| v.1))]
    }

    /// a·after − b·(before + what changed for the others) − c, of those that were switched.
    fn excess(&self, guard: &GuardMetric) -> Option<Estimate> {
        let (a, b, c) = guard.excess();
        let own = |&(pre, post): &(f64, f64)| a * post - b * pre - c;
        let switched: Vec<f64> = self.switched.iter().map(own).collect();
        // A level has no need of the others; what few have to tell of a change is not told.
        let compares = b != 0.0 && self.others.len() > 1;
        let others: Vec<f64> =
            self.others.iter().map(|(pre, post)| b * (post - pre)).filter(|_| compares).collect();
        let alike: Vec<f64> = self.others.iter().map(own).collect();
        let (n, m) = (switched.len(), alike.len());
        if n == 0 || n + m < 3 {
            return None;
        }
        let squares = |values: &[f64]| {
            if values.len() < 2 { 0.0 } else { moments(values).1 * (values.len() - 1) as f64 }
        };
        let (spread, freedom) = if n < OWN_SPREAD_MIN && m > 1 {
            ((squares(&switched) + squares(&alike)) / (n + m - 2) as f64, (n + m - 2) as f64)
        } else if n > 1 {
            (moments(&switched).1, (n - 1) as f64)
        } else {
            return None;
        };
        let (change, change_variance) = if compares {
            let (mean, variance) = moments(&others);
            (mean, variance / others.len() as f64)
        } else {
            (0.0, 0.0)
        };
        let own_variance = spread / n as f64;
        let variance = own_variance + change_variance;
        let below = own_variance * own_variance / freedom
            + if compares { change_variance * change_variance / (m - 1) as f64 } else { 0.0 };
        Some(Estimate {
            value: moments(&switched).0 - change,
            error: variance.sqrt(),
            freedom: if below > 0.0 { (variance * variance / below).max(1.0) } else { freedom },
        })
    }
}
