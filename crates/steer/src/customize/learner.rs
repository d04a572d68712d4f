//! One context of one aggregate: what to try next, and what its reward taught.

use serde::{Deserialize, Serialize};

use super::draw::direction;
use super::gradient::{Gradient, Step};
use super::relevance::{Relevance, TestPoint};
use super::{Alarm, Estimator, Settings, Watch};

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Purpose {
    /// A point on the sphere around the centre.
    Explore {
        /// Whether the direction was added or subtracted.
        plus: bool,
    },
    /// One knob alone, to see whether it matters.
    Test(TestPoint),
    /// The safe configuration, after an alarm.
    Safe,
    /// What somebody said, or the centre: learning is halted.
    Held,
}

/// A configuration to be in force for an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// A point of the unit cube of all knobs.
    pub point: Vec<f64>,
    /// What it is for.
    pub purpose: Purpose,
    /// The direction on the unit sphere of the active knobs; empty for other purposes.
    pub direction: Vec<f64>,
    /// Restarts before it: a result from before a restart teaches nothing.
    epoch: u32,
    /// The pair that it belongs to.
    pair: u64,
}

/// What an observation led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// The interval had no reward: nothing is learnt from it.
    NoReward,
    /// The trial is from before a restart, or its pair was given up: nothing is learnt from it.
    Stale,
    /// The opposite point is awaited.
    AwaitsOpposite,
    /// More estimates are awaited.
    Gathering {
        /// Estimates that there are.
        have: u32,
        /// Estimates that make a step.
        need: u32,
    },
    /// The centre moved.
    Stepped {
        /// How it was to move.
        step: Step,
        /// Whether the permitted box held it back.
        held_back: bool,
    },
    /// The safe configuration is in force from now on.
    FellBack {
        /// Why.
        alarm: Alarm,
    },
    /// The safe configuration stays.
    Resting {
        /// For so many more intervals.
        left: u32,
    },
    /// Learning starts again from the safe configuration.
    Restarted,
    /// A knob was tested.
    Tested {
        /// So many more tests.
        left: usize,
    },
    /// The knobs that matter were chosen.
    Selected {
        /// The active ones from now on, by their place in the space.
        active: Vec<usize>,
        /// By knob, how much better its better side was.
        gains: Vec<f64>,
    },
}

/// What an observation led to, with what it was judged by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// The running mean of the rewards before this one.
    pub mean: f64,
    /// The running standard deviation before this one.
    pub deviation: f64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What the learner is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Phase {
    Learning { pair: Option<Pair> },
    Selecting { tests: Relevance },
    Resting { left: u32 },
}

/// Two opposite trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    id: u64,
    direction: Vec<f64>,
    /// Which sign goes first; chance decides, so that what drifts favours neither.
    plus_first: bool,
    proposed: u8,
    /// Of the minus and the plus point.
    rewards: [Option<f64>; 2],
}

/// A learner of one context of one aggregate. See the [module](super).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Learner {
    settings: Settings,
    centre: Vec<f64>,
    safe: Vec<f64>,
    active: Vec<usize>,
    phase: Phase,
    gradient: Gradient,
    watch: Watch,
    epoch: u32,
    pairs: u64,
    since_selection: u32,
}

impl Learner {
    /// A learner that starts at the point `start` of the unit cube and falls back to `safe`. The first `active` knobs
    /// are learnt at first; all, when there are fewer.
    ///
    /// # Panics
    /// The points have different lengths.
    pub fn new(settings: Settings, start: Vec<f64>, safe: Vec<f64>, active: usize) -> Self {
        assert_eq!(start.len(), safe.len(), "both are points of the same space");
        let active: Vec<usize> = (0..active.min(start.len())).collect();
        let mut learner = Self {
            centre: start,
            safe,
            phase: Phase::Learning { pair: None },
            gradient: Gradient::new(active.len()),
            active,
            watch: Watch::default(),
            epoch: 0,
            pairs: 0,
            since_selection: 0,
            settings,
        };
        learner.keep_inside();
        learner
    }

    /// The best guess now: a point of the unit cube.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// The knobs that are learnt now, by their place in the space.
    pub fn active(&self) -> &[usize] {
        &self.active
    }

    /// How far from the centre trials lie now.
    pub fn radius(&self) -> f64 {
        self.gradient.radius(&self.settings)
    }

    /// Steps since the last restart or selection of knobs.
    pub fn steps(&self) -> u32 {
        self.gradient.steps()
    }

    /// What rewards are usual.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Whether the safe configuration is in force.
    pub fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Resting { .. })
    }

    /// The configuration for the next interval. `random` should differ from call to call, and be the same when the
    /// history is repeated.
    pub fn propose(&mut self, random: u64) -> Trial {
        self.since_selection = self.since_selection.saturating_add(1);
        let due = self.settings.select_every > 0
            && self.since_selection > self.settings.select_every
            && self.active.len() < self.centre.len();
        if due && matches!(self.phase, Phase::Learning { .. }) {
            let tests = Relevance::new(&self.settings, self.centre.len());
            self.phase = Phase::Selecting { tests };
        }
        match &mut self.phase {
            Phase::Resting { .. } => self.plain(self.safe.clone(), Purpose::Safe),
            Phase::Selecting { tests } => {
                let test = tests.propose();
                let mut point = self.centre.clone();
                if let TestPoint::Knob { knob, up } = test {
                    let reach = self.settings.select_reach;
                    let moved = point[knob] + if up { reach } else { -reach };
                    point[knob] = moved.clamp(0.0, 1.0);
                }
                self.plain(point, Purpose::Test(test))
            }
            Phase::Learning { .. } => self.explore(random),
        }
    }

    /// A point as a trial, for intervals in which learning is halted.
    pub fn hold_at(&self, point: Vec<f64>) -> Trial {
        self.plain(point, Purpose::Held)
    }

    fn plain(&self, point: Vec<f64>, purpose: Purpose) -> Trial {
        Trial { point, purpose, direction: Vec::new(), epoch: self.epoch, pair: 0 }
    }

    /// Steps 2 and 3 of §4.2.
    fn explore(&mut self, random: u64) -> Trial {
        let Phase::Learning { pair } = &mut self.phase else {
            return self.hold_at(self.centre.clone());
        };
        let opposite =
            pair.take().filter(|p| self.settings.estimator == Estimator::Pairs && p.proposed == 1);
        let (direction, plus) = match &opposite {
            Some(first) => (first.direction.clone(), !first.plus_first),
            None => {
                self.pairs += 1;
                (direction(random, self.active.len()), random & 1 == 0)
            }
        };
        *pair = Some(match opposite {
            Some(first) => Pair { proposed: 2, ..first },
            None => Pair {
                id: self.pairs,
                direction: direction.clone(),
                plus_first: plus,
                proposed: 1,
                rewards: [None; 2],
            },
        });
        // One point has no opposite, and needs no sign: both directions are as likely.
        let plus = plus || self.settings.estimator == Estimator::OnePoint;
        let mut point = self.centre.clone();
        let radius = if plus { self.radius() } else { -self.radius() };
        for (&knob, x) in self.active.iter().zip(&direction) {
            // The centre is a radius away from every side, so this is exact but for rounding.
            point[knob] = (point[knob] + radius * x).clamp(0.0, 1.0);
        }
        let purpose = Purpose::Explore { plus };
        Trial { point, purpose, direction, epoch: self.epoch, pair: self.pairs }
    }

    /// Takes the reward of the interval in which `trial` was in force: `None` when there is none. `broken` says whether a
    /// guard was broken in it.
    pub fn observe(&mut self, trial: &Trial, reward: Option<f64>, broken: bool) -> Lesson {
        let lesson = |watch: &Watch, outcome| Lesson {
            mean: watch.mean(),
            deviation: watch.deviation(),
            outcome,
        };
        let before = self.watch;
        if trial.epoch != self.epoch {
            return lesson(&before, Outcome::Stale);
        }
        let Some(reward) = reward.filter(|r| r.is_finite()) else {
            self.give_up(trial);
            return lesson(&before, Outcome::NoReward);
        };
        let outcome = if trial.purpose == Purpose::Safe {
            self.rested()
        } else if let Some(alarm) = self.watch.note(&self.settings, reward, broken) {
            self.fall_back();
            Outcome::FellBack { alarm }
        } else {
            match trial.purpose {
                Purpose::Explore { plus } => self.estimate(trial, plus, reward, before),
                Purpose::Test(test) => self.tested(test, reward),
                Purpose::Held | Purpose::Safe => Outcome::Gathering {
                    have: self.gradient.gathered(),
                    need: self.settings.average,
                },
            }
        };
        lesson(&before, outcome)
    }

    /// An interval without a reward: its pair is not worth completing.
    fn give_up(&mut self, trial: &Trial) {
        if let Phase::Learning { pair } = &mut self.phase
            && pair.as_ref().is_some_and(|p| p.id == trial.pair)
        {
            *pair = None;
        }
    }

    /// Steps 5 and 6 of §4.2.
    fn estimate(&mut self, trial: &Trial, plus: bool, reward: f64, before: Watch) -> Outcome {
        let value = match self.settings.estimator {
            // Less the mean: the expectation is the same, the variance far smaller.
            Estimator::OnePoint => {
                reward - if before.mean() == 0.0 { reward } else { before.mean() }
            }
            Estimator::Pairs => {
                let Phase::Learning { pair: slot } = &mut self.phase else { return Outcome::Stale };
                let Some(pair) = slot.as_mut().filter(|p| p.id == trial.pair) else {
                    return Outcome::Stale;
                };
                pair.rewards[usize::from(plus)] = Some(reward);
                let [Some(minus), Some(plus)] = pair.rewards else {
                    return Outcome::AwaitsOpposite;
                };
                *slot = None;
                (plus - minus) / 2.0
            }
        };
        let estimate: Vec<f64> = trial.direction.iter().map(|x| value * x).collect();
        match self.gradient.add(&self.settings, &estimate, self.watch.deviation()) {
            None => {
                Outcome::Gathering { have: self.gradient.gathered(), need: self.settings.average }
            }
            Some(step) => {
                for (&knob, by) in self.active.iter().zip(&step.by) {
                    self.centre[knob] += by;
                }
                Outcome::Stepped { held_back: self.keep_inside(), step }
            }
        }
    }

    /// Keeps the active knobs a radius away from every side of the cube, so that every trial around the centre is
    /// permitted; whether anything had to move.
    fn keep_inside(&mut self) -> bool {
        let radius = self.radius();
        let mut moved = false;
        for &knob in &self.active {
            let inside = self.centre[knob].clamp(radius, 1.0 - radius);
            moved |= inside != self.centre[knob];
            self.centre[knob] = inside;
        }
        moved
    }

    fn tested(&mut self, test: TestPoint, reward: f64) -> Outcome {
        let Phase::Selecting { tests } = &mut self.phase else { return Outcome::Stale };
        if !tests.observe(test, reward) {
            return Outcome::Tested { left: tests.left() };
        }
        let gains = tests.gains();
        self.active = tests.best(self.active.len());
        self.phase = Phase::Learning { pair: None };
        self.gradient = Gradient::new(self.active.len());
        self.since_selection = 0;
        self.keep_inside();
        Outcome::Selected { active: self.active.clone(), gains }
    }

    /// §4.3: the safe configuration is in force, and what was usual no longer counts.
    fn fall_back(&mut self) {
        self.epoch += 1;
        self.centre.clone_from(&self.safe);
        self.gradient = Gradient::new(self.active.len());
        self.watch = Watch::default();
        self.phase = if self.settings.rest == 0 {
            Phase::Learning { pair: None }
        } else {
            Phase::Resting { left: self.settings.rest }
        };
        self.keep_inside();
    }

    fn rested(&mut self) -> Outcome {
        let Phase::Resting { left } = &mut self.phase else { return Outcome::Stale };
        *left -= 1;
        if *left > 0 {
            return Outcome::Resting { left: *left };
        }
        self.phase = Phase::Learning { pair: None };
        Outcome::Restarted
    }

    /// Starts again at another point of the unit cube, as when an operator rolls back.
    pub fn restart_at(&mut self, point: &[f64]) {
        self.fall_back();
        self.phase = Phase::Learning { pair: None };
        for (centre, &unit) in self.centre.iter_mut().zip(point) {
            *centre = unit.clamp(0.0, 1.0);
        }
        self.keep_inside();
    }
}
