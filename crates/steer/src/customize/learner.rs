//! One context of one aggregate: what to try next, and what its reward taught.

use serde::{Deserialize, Serialize};

use super::chance::Chance;
use super::commons::Known;
use super::draw::direction;
use super::gradient::{Gradient, Step};
use super::model::{Guess, Model};
use super::point::Point;
use super::relevance::{Relevance, TestPoint};
use super::{Alarm, Estimator, Settings, Watch};

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Purpose {
    /// A point on the sphere around the centre.
    Explore {
        /// Whether the direction was added or subtracted.
        plus: bool,
    },
    /// A point near the best guess that may be better than it, by the model of the reward.
    Promising {
        /// The reward that is expected there, and its standard error.
        expected: f64,
        /// The standard error.
        error: f64,
    },
    /// The best guess.
    Best,
    /// One knob alone, to see whether it matters.
    Test(TestPoint),
    /// The safe configuration, after an alarm.
    Safe,
    /// The safe configuration, to see whether it is still what it was thought to be.
    Check,
    /// What somebody said, or the centre: learning is halted.
    Held,
}

/// A configuration to be in force for an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// A point of the unit cube of all knobs, or another algorithm.
    pub point: Point,
    /// What it is for.
    pub purpose: Purpose,
    /// The direction on the unit sphere of the active knobs; empty for other purposes.
    pub direction: Vec<f64>,
    /// The arms among which chance chose it, itself first; empty where the choice was certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chances: Vec<Chance>,
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
    /// The model of the reward took it in.
    Noted {
        /// The reward that was expected of the best guess, and is now.
        before: f64,
        /// Now.
        expected: f64,
        /// The standard error of that.
        error: f64,
        /// How much better the trial was than what is expected of the safe configuration, in deviations of the reward.
        advantage: Option<f64>,
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
    /// Whether the network seems to be another one, so that what was known of it counts for little.
    #[serde(default)]
    pub anew: bool,
    /// An alarm after which the safe configuration is not in force, since that is known to bring
    /// less still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<Alarm>,
}

/// What came of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reward {
    /// Its reward.
    pub value: f64,
    /// The standard error of that by chance of which connections there were, in the unit of
    /// rewards; none where it is not known.
    pub error: Option<f64>,
    /// What flows of others on the same links lose by the trial, as a share of the throughput that
    /// they get under the safe configuration; below 0 where they gain. None where it is not known.
    pub harm: Option<f64>,
}

impl From<f64> for Reward {
    fn from(value: f64) -> Self {
        Self { value, error: None, harm: None }
    }
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
    centre: Point,
    /// Where the knobs are best while another algorithm is better; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stand: Vec<f64>,
    safe: Point,
    active: Vec<usize>,
    phase: Phase,
    gradient: Gradient,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Box<Model>>,
    watch: Watch,
    epoch: u32,
    pairs: u64,
    since_selection: u32,
    /// Whether a guard was broken under the safe configuration when that was last in force for an alarm.
    #[serde(default)]
    safe_breaks: bool,
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
        let knobs = start.len();
        let mut learner = Self {
            centre: start.into(),
            stand: Vec::new(),
            safe: safe.into(),
            phase: Phase::Learning { pair: None },
            gradient: Gradient::new(active.len()),
            model: (settings.estimator == Estimator::Model).then(|| Box::new(Model::new(knobs))),
            active,
            watch: Watch::default(),
            epoch: 0,
            pairs: 0,
            since_selection: 0,
            safe_breaks: false,
            settings,
        };
        learner.keep_inside();
        learner
    }

    /// The same with so many other algorithms to choose from: learning begins at `start` and falls
    /// back to `safe`, which may be others, and the knobs are tried from where it would have begun.
    /// Only a model chooses.
    #[must_use]
    pub fn choosing(mut self, others: u8, start: Point, safe: Point) -> Self {
        if let Some(model) = &mut self.model {
            model.choose_among(others, Some);
            self.safe = safe;
            self.go_to(start);
        }
        self
    }

    /// There are other algorithms to choose from, or they have other numbers: `to` gives the new one
    /// of each; what has none is forgotten. What was learnt of the others and of the knobs stays.
    pub fn choose_among(&mut self, others: u8, to: impl Fn(u8) -> Option<u8>, safe: Point) {
        let Some(model) = &mut self.model else { return };
        model.choose_among(others, &to);
        // Trials that are open have the old numbers.
        self.epoch += 1;
        match self.centre {
            Point::Other { choice } => match to(choice) {
                Some(choice) => self.centre = Point::Other { choice },
                None => self.go_to(safe.clone()),
            },
            Point::Knobs(_) => {}
        }
        // By its number it may be another one.
        self.safe = safe;
        self.safe_breaks = false;
        if let Some(model) = &mut self.model {
            model.look_at_safe();
        }
    }

    /// The best guess now: a point of the unit cube, or another algorithm.
    pub fn centre(&self) -> &Point {
        &self.centre
    }

    /// Where in the unit cube the knobs are best, also while another algorithm is better.
    pub fn stand(&self) -> &[f64] {
        self.centre.knobs().unwrap_or(&self.stand)
    }

    /// The best guess is this from now on.
    fn go_to(&mut self, point: Point) {
        self.stand = if point.knobs().is_some() { Vec::new() } else { self.stand().to_vec() };
        self.centre = point;
    }

    fn guess(&self) -> Guess<'_> {
        Guess { centre: &self.centre, stand: self.stand(), active: &self.active }
    }

    /// The knobs that are learnt now, by their place in the space.
    pub fn active(&self) -> &[usize] {
        &self.active
    }

    /// How far from the centre trials lie now.
    pub fn radius(&self) -> f64 {
        self.gradient.radius(&self.settings)
    }

    /// Steps since the last restart or selection of knobs; for a model, trials that it remembers.
    pub fn steps(&self) -> u32 {
        self.model.as_ref().map_or(self.gradient.steps(), |model| model.trials())
    }

    pub(super) fn model(&self) -> Option<&Model> {
        self.model.as_deref()
    }

    /// The safe configuration is another point from now on. What was learnt stays, and the new one
    /// is looked at soon, since nothing is known of it.
    pub fn set_safe(&mut self, safe: impl Into<Point>) {
        let safe = safe.into();
        let is_of_space = safe.knobs().is_none_or(|knobs| knobs.len() == self.stand().len());
        assert!(is_of_space, "both are points of the same space");
        if self.safe != safe {
            self.safe = safe;
            self.safe_breaks = false;
            if let Some(model) = &mut self.model {
                model.look_at_safe();
            }
        }
    }

    /// Trials are chosen, what is known is forgotten, and harm is bounded, as these settings have
    /// it from now on.
    /// What was learnt stays.
    pub fn follow(&mut self, settings: &Settings) {
        let Settings { acquisition, chance_min, forgetting, harm_max, .. } = *settings;
        self.settings = Settings { acquisition, chance_min, forgetting, harm_max, ..self.settings };
    }

    /// The permitted ranges are others from now on: `to` gives a point's place in the new unit
    /// cube, which may lie outside of it. The best guess moves to the nearest point inside, and
    /// trials outside are forgotten.
    pub fn carry_over(&mut self, to: impl Fn(&[f64]) -> Vec<f64>, safe: impl Into<Point>) {
        // Trials that are open are points of the old cube.
        self.epoch += 1;
        // A point may have no place at all.
        let inside = |x: &f64| if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) };
        let stand: Vec<f64> = to(self.stand()).iter().map(inside).collect();
        match &mut self.centre {
            Point::Knobs(centre) => *centre = stand,
            Point::Other { .. } => self.stand = stand,
        }
        self.gradient = Gradient::new(self.active.len());
        if !self.is_resting() {
            self.phase = Phase::Learning { pair: None };
        }
        if let Some(model) = &mut self.model {
            model.carry_over(to);
        }
        self.set_safe(safe);
        self.keep_inside();
    }

    /// What others are expected to lose where a point is in force, as a share of what they get
    /// under the safe configuration; none without a model.
    pub fn harm_at(&self, point: &Point) -> Option<f64> {
        self.model.as_ref().map(|model| model.harm_at(point))
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
        self.propose_knowing(random, &Known::default())
    }

    /// [`Learner::propose`] for one that may know more than its own trials.
    pub fn propose_knowing(&mut self, random: u64, known: &Known<'_>) -> Trial {
        self.since_selection = self.since_selection.saturating_add(1);
        let due = self.settings.select_every > 0
            && self.since_selection > self.settings.select_every
            && self.active.len() < self.centre.len();
        // While another algorithm is better, no knob matters.
        if due && matches!(self.phase, Phase::Learning { .. }) {
            let tests = Relevance::new(&self.settings, self.centre.len());
            self.phase = Phase::Selecting { tests };
        }
        match &mut self.phase {
            Phase::Resting { .. } => self.plain(self.safe.clone(), Purpose::Safe),
            Phase::Selecting { tests } => {
                let test = tests.propose();
                let mut point = self.stand().to_vec();
                if let TestPoint::Knob { knob, up } = test {
                    let reach = self.settings.select_reach;
                    let moved = point[knob] + if up { reach } else { -reach };
                    point[knob] = moved.clamp(0.0, 1.0);
                }
                self.plain(point.into(), Purpose::Test(test))
            }
            Phase::Learning { .. } => match &self.model {
                Some(model) if model.doubts_safe() => self.plain(self.safe.clone(), Purpose::Check),
                Some(model) => {
                    let (point, purpose, chances) =
                        model.propose(&self.settings, (self.guess(), &self.safe), known, random);
                    Trial { chances, ..self.plain(point, purpose) }
                }
                None => self.explore(random),
            },
        }
    }

    /// A point as a trial, for intervals in which learning is halted.
    pub fn hold_at(&self, point: impl Into<Point>) -> Trial {
        self.plain(point.into(), Purpose::Held)
    }

    fn plain(&self, point: Point, purpose: Purpose) -> Trial {
        let (direction, chances) = (Vec::new(), Vec::new());
        Trial { point, purpose, direction, chances, epoch: self.epoch, pair: 0 }
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
        let mut point = self.stand().to_vec();
        let radius = if plus { self.radius() } else { -self.radius() };
        for (&knob, x) in self.active.iter().zip(&direction) {
            // The centre is a radius away from every side, so this is exact but for rounding.
            point[knob] = (point[knob] + radius * x).clamp(0.0, 1.0);
        }
        let purpose = Purpose::Explore { plus };
        let (point, chances) = (point.into(), Vec::new());
        Trial { point, purpose, direction, chances, epoch: self.epoch, pair: self.pairs }
    }

    /// Takes the reward of the interval in which `trial` was in force: `None` when there is none.
    /// `broken` says whether a guard was broken in it.
    pub fn observe(&mut self, trial: &Trial, reward: Option<f64>, broken: bool) -> Lesson {
        self.observe_knowing(trial, reward.map(Reward::from), broken, &Known::default())
    }

    /// [`Learner::observe`] for one that may know more than its own trials.
    pub fn observe_knowing(
        &mut self,
        trial: &Trial,
        reward: Option<Reward>,
        broken: bool,
        known: &Known<'_>,
    ) -> Lesson {
        let before = self.watch;
        let mut spared = None;
        let lesson = |spared, (outcome, anew)| Lesson {
            mean: before.mean(),
            deviation: before.deviation(),
            outcome,
            anew,
            spared,
        };
        if trial.epoch != self.epoch {
            return lesson(None, (Outcome::Stale, false));
        }
        let Some(came) = reward.filter(|r| r.value.is_finite()) else {
            self.give_up(trial);
            return lesson(None, (Outcome::NoReward, false));
        };
        let reward = came.value;
        if let (Some(harm), Some(model)) = (came.harm.filter(|h| h.is_finite()), &mut self.model) {
            model.note_harm(&self.settings, &trial.point, harm);
        }
        if trial.purpose == Purpose::Safe {
            self.safe_breaks = broken;
            let anew = self.seen_safe(came, known);
            return lesson(None, (self.rested(), anew));
        }
        if trial.purpose == Purpose::Check {
            self.safe_breaks = broken;
        }
        // A guard that the safe configuration breaks as well is no reason to go back to it.
        let broken = broken && !(self.safe_breaks && self.model.is_some());
        if let Some(alarm) = self.watch.note(&self.settings, reward, broken) {
            let is_worse =
                |model: &Model| model.is_worse(&self.settings, &self.safe, reward, known);
            if self.watch.broke() || !self.model.as_deref().is_some_and(is_worse) {
                let anew = self.model.is_none() || Watch::is_severe(&alarm, reward);
                self.fall_back(anew);
                return lesson(None, (Outcome::FellBack { alarm }, anew));
            }
            // What is usual now is for the intervals to come to tell.
            self.watch = Watch::default();
            spared = Some(alarm);
        }
        if self.model.is_some() && !matches!(trial.purpose, Purpose::Test(_) | Purpose::Held) {
            return lesson(spared, self.noted(trial, came, known));
        }
        let outcome = {
            match trial.purpose {
                Purpose::Test(test) => self.tested(test, reward),
                Purpose::Explore { plus } => self.estimate(trial, plus, reward, before),
                Purpose::Held
                | Purpose::Safe
                | Purpose::Check
                | Purpose::Best
                | Purpose::Promising { .. } => Outcome::Gathering {
                    have: self.gradient.gathered(),
                    need: self.settings.average,
                },
            }
        };
        lesson(spared, (outcome, false))
    }

    /// The safe configuration was in force: whether its reward shows that the network is another one.
    fn seen_safe(&mut self, reward: Reward, known: &Known<'_>) -> bool {
        let Some(model) = &mut self.model else { return false };
        let anew = model.note_safe(&self.settings, (&self.safe, reward), known);
        if anew {
            self.watch = Watch::default();
        }
        anew
    }

    /// A trial for the model: the best guess may move, and the safe configuration may be due.
    fn noted(&mut self, trial: &Trial, reward: Reward, known: &Known<'_>) -> (Outcome, bool) {
        let Some(model) = &mut self.model else { return (Outcome::Stale, false) };
        let stand = self.centre.knobs().unwrap_or(&self.stand);
        let guess = Guess { centre: &self.centre, stand, active: &self.active };
        let noted = model.note(&self.settings, (guess, &self.safe), (&trial.point, reward), known);
        let is_other = noted.best.knobs().is_none();
        self.centre = noted.best;
        self.stand = if is_other { noted.stand } else { Vec::new() };
        if let Some((debt, rest)) = noted.debt {
            self.epoch += 1;
            self.go_to(self.safe.clone());
            self.rest(rest);
            return (Outcome::FellBack { alarm: Alarm::Debt { debt } }, noted.anew);
        }
        if noted.anew {
            self.begin_anew();
        }
        (noted.outcome, noted.anew)
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
            // A model takes its trials in by itself.
            Estimator::Model => return Outcome::Stale,
        };
        let estimate: Vec<f64> = trial.direction.iter().map(|x| value * x).collect();
        match self.gradient.add(&self.settings, &estimate, self.watch.deviation()) {
            None => {
                Outcome::Gathering { have: self.gradient.gathered(), need: self.settings.average }
            }
            Some(step) => {
                if let Point::Knobs(centre) = &mut self.centre {
                    self.active.iter().zip(&step.by).for_each(|(&knob, by)| centre[knob] += by);
                }
                Outcome::Stepped { held_back: self.keep_inside(), step }
            }
        }
    }

    /// Keeps the active knobs a radius away from every side of the cube, so that every trial around the centre is
    /// permitted; whether anything had to move.
    fn keep_inside(&mut self) -> bool {
        let radius = if self.model.is_some() { 0.0 } else { self.radius() };
        let mut moved = false;
        let Point::Knobs(centre) = &mut self.centre else { return moved };
        for &knob in &self.active {
            let inside = centre[knob].clamp(radius, 1.0 - radius);
            moved |= inside != centre[knob];
            centre[knob] = inside;
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
    /// A model keeps what it knows unless learning is to start `anew`.
    fn fall_back(&mut self, anew: bool) {
        self.epoch += 1;
        self.go_to(self.safe.clone());
        self.gradient = Gradient::new(self.active.len());
        self.watch = Watch::default();
        if let Some(model) = self.model.as_mut().filter(|_| anew) {
            model.begin_anew();
        }
        self.rest(self.settings.rest);
        self.keep_inside();
    }

    fn rest(&mut self, intervals: u32) {
        if let Some(model) = &mut self.model {
            model.rest();
        }
        self.phase = match intervals {
            0 => Phase::Learning { pair: None },
            left => Phase::Resting { left },
        };
    }

    /// The network is another one: learning starts again from the safe configuration.
    fn begin_anew(&mut self) {
        self.epoch += 1;
        self.watch = Watch::default();
        self.safe_breaks = false;
        self.go_to(self.safe.clone());
    }

    /// Another context of the aggregate has seen that the network is another one, and contexts are
    /// of one network: learning starts again here, too.
    pub fn doubt(&mut self) {
        if let Some(model) = &mut self.model {
            model.begin_anew();
            self.begin_anew();
        }
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

    /// Starts again at another point of the unit cube or another algorithm, as when an operator
    /// rolls back.
    pub fn restart_at(&mut self, point: impl Into<Point>) {
        self.fall_back(true);
        self.phase = Phase::Learning { pair: None };
        self.go_to(match point.into() {
            Point::Knobs(knobs) => {
                Point::Knobs(knobs.iter().map(|unit| unit.clamp(0.0, 1.0)).collect())
            }
            other => other,
        });
        self.keep_inside();
    }
}

#[cfg(test)]
#[path = "learner_tests.rs"]
mod tests;
