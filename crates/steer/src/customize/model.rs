//! Learning by a model of the reward: what to try next, and what the best guess is.
//!
//! A trial is the point near the best guess whose expected reward is highest once `optimism`
//! standard errors are added to it (an upper confidence bound: Srinivas, Krause, Kakade and Seeger,
//! "Gaussian process optimization in the bandit setting", ICML 2010). Where much is known the
//! errors are small and the best guess itself is run; where conditions changed they grow, and it
//! looks around again: no schedule says when.

use serde::{Deserialize, Serialize};

use super::commons::Known;
use super::draw::Draws;
use super::harm::Harms;
use super::memory::{Cell, Memory, on_grid};
use super::point::{At, Point};
use super::search::Region;
use super::shift::Shift;
use super::surrogate::{Seen, Shape, Surrogate};
use super::{Acquisition, Chance, Forgetting, Outcome, Purpose, Reward, Settings, chance};

/// Random points that are looked at before each trial.
const LOOKS: usize = 24;
/// Random points near the best guess that are arms, where chance chooses, and the steps of their
/// grid in each knob: a point comes back, so that a log says something of it.
const NEARBY: usize = 8;
const NEARBY_STEPS: f64 = 20.0;
/// A point nearer to the best guess than this in every knob is the best guess.
const SAME: f64 = 0.015;
/// A reward that is off by so many standard errors is a surprise; so many in a row to one side mean
/// that conditions changed.
const SURPRISE: f64 = 2.0;
const SURPRISES: usize = 3;
/// Nothing is a surprise where nothing was tried within this distance in every knob.
const NEAR: f64 = 0.2;
/// No error is less than this share of the reward: else rewards that hardly vary would make any difference a surprise.
const LEAST: f64 = 0.02;
/// One interval adds no more than this to the debt: what is worse is for the alarm, and one wild interval is none.
const BEHIND_MOST: f64 = 4.0;
/// The safe configuration stays twice as long after each debt that was too large, up to so many
/// doublings: what is lost grows as the logarithm of time at most. Trials without a debt after
/// which that is forgotten.
const DOUBLINGS: u8 = 5;
const FORGIVEN_AFTER: u32 = 24;
/// What is known from before a change: so many cells, each of which counts so much.
const BEFORE: (f64, usize) = (0.3, 8);
/// Trials after which the safe configuration is looked at again, at first and at most; four times
/// as many after each time that it was what it was expected to be. Nothing else would tell that it
/// is better than it was: all others are judged by what is known of it.
const LOOK_AFTER: u16 = 8;
const LOOK_AFTER_MOST: u16 = 96;
/// Trials that a usual error is the mean of, about.
const USUAL_MOST: u16 = 100;
/// Trials after which the model is worth being judged by, and telling others of.
const KNOWN_AFTER: f64 = 6.0;
/// A trial counts for no less and no more than so many usual ones, however few or many connections
/// it had: whatever is off in a whole interval no number of connections makes smaller.
const COUNTS: (f64, f64) = (1.0 / 16.0, 4.0);

/// The model of one context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Model {
    memory: Memory,
    /// Before the conditions last changed.
    before: Memory,
    shape: Shape,
    trials: u32,
    /// Surprises in a row, and whether they were better than expected. They are not believed while
    /// it is not known whether they persist.
    aside: Vec<Cell>,
    better: bool,
    /// What rewards are off by in sum, where that tells of a change.
    #[serde(default, skip_serializing_if = "Shift::is_calm")]
    shift: Shift,
    /// How far rewards have fallen behind what is expected of the safe configuration, in deviations of the noise.
    debt: f64,
    /// Debts that were too large, since there last was none for long.
    debts: u8,
    /// Trials without a debt since.
    calm: u32,
    /// Other algorithms to choose from than that whose knobs are learnt.
    #[serde(default, skip_serializing_if = "is_none")]
    others: u8,
    /// Trials since the safe configuration was last in force, and how many there may be.
    #[serde(default)]
    without_safe: u16,
    #[serde(default = "look_after")]
    look_after: u16,
    /// How far off by chance of its connections a usual reward is; none until that was said of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usual: Option<Usual>,
    /// What others lose by what was tried.
    #[serde(default, skip_serializing_if = "Harms::is_empty")]
    harms: Harms,
}

/// The error of a usual reward: the mean of the logarithms of squared errors, and of how many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Usual {
    log: f32,
    count: u16,
}

fn look_after() -> u16 {
    LOOK_AFTER
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
fn is_none(others: &u8) -> bool {
    *others == 0
}

/// What is thought to be best now.
#[derive(Clone, Copy)]
pub(super) struct Guess<'a> {
    pub(super) centre: &'a Point,
    /// Where the knobs are best, also while another algorithm is better.
    pub(super) stand: &'a [f64],
    /// The knobs that are learnt, by their place in the space.
    pub(super) active: &'a [usize],
}

/// Whether two points are so near that they are one.
fn is_same<'a>(a: impl Into<At<'a>>, b: impl Into<At<'a>>) -> bool {
    let (a, b) = (a.into(), b.into());
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < SAME;
    a.choice == b.choice && a.knobs.iter().zip(b.knobs).all(is_near)
}

/// What a trial led to.
pub(super) struct Noted {
    pub(super) best: Point,
    pub(super) stand: Vec<f64>,
    pub(super) outcome: Outcome,
    pub(super) anew: bool,
    /// The debt, when it is too large, and for how many intervals the safe configuration is to stay.
    pub(super) debt: Option<(f64, u32)>,
}

impl Model {
    pub(super) fn new(knobs: usize) -> Self {
        Self {
            memory: Memory::default(),
            before: Memory::default(),
            shape: Shape::new(knobs),
            trials: 0,
            aside: Vec::new(),
            better: false,
            shift: Shift::default(),
            debt: 0.0,
            debts: 0,
            calm: 0,
            others: 0,
            without_safe: 0,
            look_after: LOOK_AFTER,
            usual: None,
            harms: Harms::default(),
        }
    }

    /// How many usual trials this one counts as. A reward is off by its interval and by the chance
    /// of which connections there were, and its error is the latter. Of usual noise the error of a
    /// usual trial is one part, which shrinks with the number of connections; the rest does not.
    fn counts(&mut self, error: Option<f64>, model: Option<&Surrogate>) -> f64 {
        let Some(square) = error.map(|e| e * e).filter(|e| *e > 0.0 && e.is_finite()) else {
            return 1.0;
        };
        let log = libm::log(square);
        let usual = self.usual.get_or_insert(Usual { log: log as f32, count: 0 });
        usual.count = (usual.count + 1).min(USUAL_MOST);
        usual.log += (log as f32 - usual.log) / f32::from(usual.count);
        let usual = libm::exp(f64::from(usual.log));
        let Some(noise) = model.map(|model| model.noise().powi(2)) else { return 1.0 };
        let part = (usual / noise.max(f64::MIN_POSITIVE)).min(1.0);
        (1.0 / (1.0 - part + part * square / usual)).clamp(COUNTS.0, COUNTS.1)
    }

    /// There are so many other algorithms to choose from. `to` gives the number of each that there
    /// was; what has none any more is forgotten.
    pub(super) fn choose_among(&mut self, others: u8, to: impl Fn(u8) -> Option<u8>) {
        self.others = others;
        self.memory.renumber(&to);
        self.before.renumber(&to);
        self.harms.renumber(&to);
        self.aside.clear();
        self.shift = Shift::default();
    }

    /// Whether the safe configuration was not in force for so long, or was so surprising, that it is to be looked at.
    pub(super) fn doubts_safe(&self) -> bool {
        self.without_safe >= self.look_after
    }

    /// A trial was taken in or put aside.
    fn looked(&mut self, at_safe: bool) {
        if !at_safe {
            self.without_safe = self.without_safe.saturating_add(1);
        } else if self.aside.is_empty() && !self.shift.is_suspicious() {
            self.without_safe = 0;
            self.look_after = (4 * self.look_after).min(LOOK_AFTER_MOST);
        }
    }

    /// Trials since the conditions last changed.
    pub(super) fn trials(&self) -> u32 {
        self.trials
    }

    fn seen<'a>(&'a self, known: &Known<'a>) -> Seen<'a> {
        let others = known.others.iter().filter_map(|l| l.model()).map(|m| &m.memory).collect();
        let choice = self.others > 0;
        Seen { own: &self.memory, before: &self.before, others, fleet: known.fleet, choice }
    }

    /// Whether the aggregate has tried anything itself. What others found does not tell what its
    /// clients see under the safe configuration, with which all is compared.
    fn has_tried(&self, known: &Known<'_>) -> bool {
        let others = known.others.iter().filter_map(|learner| learner.model());
        others.chain([self]).any(|model| model.memory.weight() + model.before.weight() > 0.0)
    }

    fn fit(&self, known: &Known<'_>) -> Option<Surrogate> {
        Surrogate::fit(&self.seen(known), &self.shape)
    }

    /// What to try: a point, what for, and the arms among which chance chose it, the chosen one
    /// first; none where the choice is certain.
    pub(super) fn propose(
        &self,
        settings: &Settings,
        (guess, safe): (Guess<'_>, &Point),
        known: &Known<'_>,
        random: u64,
    ) -> (Point, Purpose, Vec<Chance>) {
        let Some(model) = self.fit(known).filter(|_| self.has_tried(known)) else {
            return (guess.centre.on_grid(), Purpose::Best, Vec::new());
        };
        let active = guess.active;
        let (best, start) = self.best(settings, (guess, safe), known, &model);
        let region = Region { centre: &start, active, reach: settings.radius };
        let mut draws = Draws::new(random);
        if settings.acquisition == Acquisition::Thompson {
            let mut arms = self.arms(&best, &region, &mut draws);
            arms.retain(|arm| self.permits(settings, safe, arm.into()));
            let chances = chance::draw(&model, arms, settings.chance_min, &mut draws);
            let point = chances[0].point.clone();
            let purpose = if is_same(&point, &best) {
                Purpose::Best
            } else {
                let expected = model.expected(&point);
                Purpose::Promising { expected: expected.mean, error: expected.error }
            };
            return (point, purpose, chances);
        }
        let looks = (0..LOOKS).map(|n| {
            // Some anywhere in reach, some near.
            let reach = if n % 2 == 0 { settings.radius } else { settings.radius / 3.0 };
            let mut point = start.clone();
            active.iter().for_each(|&k| point[k] += reach * draws.symmetric());
            region.nearest(&point)
        });
        let worth = |point: At<'_>| {
            if !self.permits(settings, safe, point) {
                return f64::NEG_INFINITY;
            }
            let expected = model.expected(point);
            expected.mean + settings.optimism * expected.error
        };
        let knobs = on_grid(&region.highest(looks, |knobs| worth(knobs.into())));
        let point = self.permitted(settings, safe, self.highest(Point::Knobs(knobs), worth));
        if is_same(&point, &best) {
            return (best.on_grid(), Purpose::Best, Vec::new());
        }
        let expected = model.expected(&point);
        let purpose = Purpose::Promising { expected: expected.mean, error: expected.error };
        (point, purpose, Vec::new())
    }

    /// The arms among which chance chooses: the best guess, every other algorithm, where the knobs
    /// are best, and random points of a grid near that.
    fn arms(&self, best: &Point, region: &Region<'_>, draws: &mut Draws) -> Vec<Point> {
        let others = (1..=self.others).map(Point::other);
        let nearby = (0..NEARBY).map(|_| {
            let mut point = region.centre.to_vec();
            for &knob in region.active {
                let moved = point[knob] + region.reach * draws.symmetric();
                point[knob] = (moved * NEARBY_STEPS).round() / NEARBY_STEPS;
            }
            Point::Knobs(on_grid(&region.nearest(&point)))
        });
        let stand = Point::Knobs(on_grid(region.centre));
        let mut arms = vec![best.on_grid()];
        for arm in others.chain([stand]).chain(nearby) {
            if !arms.iter().any(|other| is_same(&arm, other)) {
                arms.push(arm);
            }
        }
        arms
    }

    /// Whether a point may be in force: it is the safe configuration, or takes no more from others
    /// than is permitted.
    fn permits(&self, settings: &Settings, safe: &Point, point: At<'_>) -> bool {
        is_same(point, safe) || self.harms.permits(settings, point)
    }

    /// A point, or the safe configuration where that point may not be in force.
    fn permitted(&self, settings: &Settings, safe: &Point, point: Point) -> Point {
        if self.permits(settings, safe, (&point).into()) { point } else { safe.on_grid() }
    }

    /// What others lose by a trial, as a share of what they get under the safe configuration.
    pub(super) fn note_harm(&mut self, settings: &Settings, point: &Point, harm: f64) {
        self.harms.note(settings, &point.on_grid(), harm);
    }

    /// What others are expected to lose by a point.
    pub(super) fn harm_at(&self, point: &Point) -> f64 {
        self.harms.expected(point.into())
    }

    /// What the reward is expected to be highest of, and where in the knobs' cube it is, in reach of
    /// what was thought so far. What takes too much from others is not.
    fn best(
        &self,
        settings: &Settings,
        (Guess { centre, stand, active }, safe): (Guess<'_>, &Point),
        known: &Known<'_>,
        model: &Surrogate,
    ) -> (Point, Vec<f64>) {
        let region = Region { centre: stand, active, reach: settings.radius };
        let cells = self.memory.cells().iter().chain(known.fleet).filter(|c| c.choice() == 0);
        let tried = cells.map(|c| region.nearest(&c.knobs()));
        let worth = |point: At<'_>| match self.permits(settings, safe, point) {
            true => model.mean_at(point),
            false => f64::NEG_INFINITY,
        };
        let stand = region.highest(tried, |point| worth(point.into()));
        let first = match centre {
            Point::Knobs(_) => Point::Knobs(stand.clone()),
            Point::Other { .. } => centre.clone(),
        };
        let best = self.highest(first, worth);
        let knobs = Point::Knobs(stand.clone());
        let is_better = best.choice() != 0 && worth((&knobs).into()) > worth((&best).into());
        let best = if is_better { knobs } else { best };
        (self.permitted(settings, safe, best), stand)
    }

    /// The best of a point and all other algorithms; the point where none is better.
    fn highest(&self, first: Point, worth: impl Fn(At<'_>) -> f64) -> Point {
        let mut best = (worth((&first).into()), first);
        for choice in 1..=self.others {
            let point = Point::Other { choice };
            let value = worth((&point).into());
            if value > best.0 {
                best = (value, point);
            }
        }
        best.1
    }

    /// Keeps a trial.
    fn remember(&mut self, settings: &Settings, trial: Cell) {
        let keep = match settings.forgetting {
            Forgetting::Fading => settings.keep,
            Forgetting::ChangePoints => 1.0,
        };
        self.memory.take(trial, keep, settings.cells as usize);
        self.trials = self.trials.saturating_add(1);
    }

    /// Takes a trial.
    pub(super) fn note(
        &mut self,
        settings: &Settings,
        (guess, safe): (Guess<'_>, &Point),
        (point, reward): (&Point, Reward),
        known: &Known<'_>,
    ) -> Noted {
        let model = self.fit(known);
        let before = model.as_ref().map_or(reward.value, |m| m.mean_at(guess.centre));
        let is_known = self.memory.weight() >= KNOWN_AFTER;
        let counts = self.counts(reward.error, model.as_ref());
        let reward = reward.value;
        let trial = Cell::new(point, reward).counting(counts);
        let anew = self.take(settings, (trial, point, reward), model.as_ref(), known);
        self.looked(point.on_grid() == safe.on_grid());
        let Some(model) = self.fit(known) else {
            // There is a trial at least.
            let (best, stand) = (guess.centre.clone(), guess.stand.to_vec());
            return Noted { best, stand, outcome: Outcome::NoReward, anew, debt: None };
        };
        let (best, stand) = self.best(settings, (guess, safe), known, &model);
        let of_safe = model.mean_at(safe);
        let is_known = is_known && !anew;
        let advantage = is_known.then(|| model.deviations(reward - of_safe));
        let noise = model.noise() / counts.sqrt();
        let behind = (of_safe - reward) / noise.max(LEAST * of_safe.abs());
        let debt = if is_known { self.owe(settings, behind) } else { None };
        let expected = model.expected(&best);
        let (expected, error) = (expected.mean, expected.error);
        let outcome = Outcome::Noted { before, expected, error, advantage };
        Noted { best, stand, outcome, anew, debt }
    }

    /// [`Model::note`] for the safe configuration after an alarm: whether the network is another one.
    pub(super) fn note_safe(
        &mut self,
        settings: &Settings,
        (point, reward): (&Point, Reward),
        known: &Known<'_>,
    ) -> bool {
        let model = self.fit(known);
        let counts = self.counts(reward.error, model.as_ref());
        let trial = Cell::new(point, reward.value).counting(counts);
        self.take(settings, (trial, point, reward.value), model.as_ref(), known)
    }

    /// Takes a reward in, or puts it aside for a while; whether it was one surprise too many.
    fn take(
        &mut self,
        settings: &Settings,
        (trial, point, reward): (Cell, &Point, f64),
        model: Option<&Surrogate>,
        known: &Known<'_>,
    ) -> bool {
        let is_known = self.memory.weight() >= KNOWN_AFTER && self.memory.has_near(point, NEAR);
        let off = model.filter(|_| is_known).map(|model| {
            let expected = model.expected(point);
            let noise = model.noise().powi(2) / trial.weight();
            let error = (expected.error.powi(2) + noise).sqrt();
            (reward - expected.mean) / error.max(LEAST * expected.mean.abs())
        });
        let anew = match settings.forgetting {
            Forgetting::Fading => {
                self.take_unless_surprising(settings, trial, off.unwrap_or_default())
            }
            Forgetting::ChangePoints => self.take_and_add_up(settings, trial, off),
        };
        // A first surprise waits for others, and says nothing of noise or lengths yet.
        if self.aside.is_empty() {
            let mut shape = self.shape.clone();
            shape.improve(&self.seen(known));
            self.shape = shape;
        }
        anew
    }

    /// A reward that is off by many standard errors is put aside for a while; whether it was one
    /// too many.
    fn take_unless_surprising(&mut self, settings: &Settings, trial: Cell, off: f64) -> bool {
        let better = off > 0.0;
        let surprising = off.abs() > SURPRISE;
        let goes_on = surprising && (self.aside.is_empty() || better == self.better);
        if goes_on {
            self.better = better;
            self.aside.push(trial.clone());
            if self.aside.len() < SURPRISES {
                return false;
            }
        }
        let aside = core::mem::take(&mut self.aside);
        if goes_on {
            self.begin_anew();
        }
        for cell in aside {
            self.remember(settings, cell);
        }
        if !goes_on {
            self.remember(settings, trial);
        }
        goes_on
    }

    /// What a reward is off by is added up; whether that is too much, and then only trials since
    /// the change are known.
    fn take_and_add_up(&mut self, settings: &Settings, trial: Cell, off: Option<f64>) -> bool {
        let since = off.and_then(|off| self.shift.add(off, &trial));
        let changed = since.is_some();
        match since {
            None => self.remember(settings, trial),
            Some(since) => {
                self.begin_anew();
                since.into_iter().for_each(|cell| self.remember(settings, cell));
            }
        }
        changed
    }

    /// Whether the safe configuration is known to bring less than a reward that was bad, so that
    /// having it in force would make it worse.
    pub(super) fn is_worse(
        &self,
        settings: &Settings,
        safe: &Point,
        reward: f64,
        known: &Known<'_>,
    ) -> bool {
        if self.memory.weight() < KNOWN_AFTER || !self.memory.has_near(safe, NEAR) {
            return false;
        }
        self.fit(known).is_some_and(|model| {
            let expected = model.expected(safe);
            // Some rewards in a row were about as bad as this one.
            let noise = model.noise().powi(2) / f64::from(settings.alarm_after);
            let error = (expected.error.powi(2) + noise).sqrt();
            expected.mean + SURPRISE * error < reward
        })
    }

    /// The safe configuration comes into force, and what is known stays: whether the network is
    /// another one is for its rewards to tell.
    pub(super) fn rest(&mut self) {
        self.aside.clear();
        self.shift = Shift::default();
        (self.without_safe, self.look_after) = (0, LOOK_AFTER);
    }

    /// The safe configuration is to be looked at soon: it is another one.
    pub(super) fn look_at_safe(&mut self) {
        self.debt = 0.0;
        (self.without_safe, self.look_after) = (LOOK_AFTER, LOOK_AFTER);
    }

    /// Points are those of another unit cube from now on; those outside of it are forgotten.
    pub(super) fn carry_over(&mut self, to: impl Fn(&[f64]) -> Vec<f64>) {
        self.memory.carry_over(&to);
        self.before.carry_over(&to);
        self.harms.carry_over(&to);
        self.aside.clear();
        self.shift = Shift::default();
    }

    /// Rewards fell behind what is expected of the safe configuration by so much more.
    fn owe(&mut self, settings: &Settings, behind: f64) -> Option<(f64, u32)> {
        self.debt = (self.debt + behind.min(BEHIND_MOST)).max(0.0);
        if self.debt <= settings.debt_max {
            self.calm = if self.debt == 0.0 { self.calm.saturating_add(1) } else { self.calm };
            if self.calm >= FORGIVEN_AFTER {
                self.debts = 0;
            }
            return None;
        }
        let rest = settings.rest << self.debts.min(DOUBLINGS);
        let owed = (self.debt, rest);
        self.debts = self.debts.saturating_add(1);
        (self.debt, self.calm) = (0.0, 0);
        Some(owed)
    }

    /// What was learnt until now was of another network. How high rewards were tells nothing any
    /// more; which points were better than others may still.
    pub(super) fn begin_anew(&mut self) {
        let memory = core::mem::take(&mut self.memory);
        if memory.weight() >= KNOWN_AFTER {
            self.before = memory.kept_from_before(BEFORE.0, BEFORE.1);
        }
        self.harms.fade(BEFORE.0);
        self.trials = 0;
        self.aside.clear();
        self.shift = Shift::default();
        self.debt = 0.0;
        (self.without_safe, self.look_after) = (0, LOOK_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::Preset;

    fn settings() -> Settings {
        Settings { debt_max: 10.0, rest: 3, ..Settings::of(Preset::Model) }
    }

    /// How long the safe configuration is to stay after so many rewards that are this far behind.
    fn rest_after(model: &mut Model, behind: f64, rewards: u32) -> Option<u32> {
        (0..rewards).find_map(|_| model.owe(&settings(), behind)).map(|(_, rest)| rest)
    }

    #[test]
    fn each_debt_that_is_too_large_rests_twice_as_long() {
        let mut model = Model::new(2);
        let rests: Vec<_> = (0..8).map(|_| rest_after(&mut model, 3.0, 4).unwrap()).collect();
        assert_eq!(rests, [3, 6, 12, 24, 48, 96, 96, 96]);
    }

    #[test]
    fn without_a_debt_for_long_the_debts_before_are_forgotten() {
        let mut model = Model::new(2);
        assert_eq!([(); 2].map(|()| rest_after(&mut model, 4.0, 3)), [Some(3), Some(6)]);
        assert_eq!(rest_after(&mut model, -1.0, FORGIVEN_AFTER - 1), None);
        assert_eq!(rest_after(&mut model, 4.0, 3), Some(12), "not long enough");
        assert_eq!(rest_after(&mut model, 0.0, FORGIVEN_AFTER), None);
        assert_eq!(rest_after(&mut model, 4.0, 3), Some(3));
    }

    /// One wild interval is no debt that is too large, and good ones pay back.
    #[test]
    fn a_debt_grows_slowly_and_is_paid_back() {
        let mut model = Model::new(2);
        assert_eq!(model.owe(&settings(), 1e9), None);
        assert_eq!((model.owe(&settings(), 4.0), model.debt), (None, 8.0));
        assert_eq!((model.owe(&settings(), -3.0), model.debt), (None, 5.0));
        assert_eq!((model.owe(&settings(), -1e9), model.debt), (None, 0.0), "nothing is saved");
        // The limit itself is not too much.
        for behind in [4.0, 4.0, 2.0] {
            assert_eq!(model.owe(&settings(), behind), None);
        }
        assert_eq!(model.owe(&settings(), 0.5), Some((10.5, 3)));
        assert_eq!(model.debt, 0.0, "it begins anew");
    }

    #[test]
    fn the_safe_configuration_is_looked_at_ever_more_seldom() {
        let mut model = Model::new(2);
        let waits: Vec<u32> = (0..4)
            .map(|_| {
                let mut trials = 0;
                while !model.doubts_safe() {
                    model.looked(false);
                    trials += 1;
                }
                model.looked(true);
                trials
            })
            .collect();
        assert_eq!(waits, [8, 32, 96, 96]);
        // While it surprises it is looked at again.
        model.looked(false);
        model.look_at_safe();
        model.aside.push(Cell::new(&[0.5, 0.5], 1.0));
        model.looked(true);
        assert!(model.doubts_safe());
        model.rest();
        assert!(!model.doubts_safe() && model.aside.is_empty());
    }

    /// Nothing is known of the noise before there is a model: a trial counts as one.
    #[test]
    fn a_trial_counts_by_the_part_of_the_noise_that_connections_have() {
        let mut model = Model::new(1);
        assert_eq!((model.counts(None, None), model.counts(Some(2.0), None)), (1.0, 1.0));
        for i in 0..30_u32 {
            let off = if i % 2 == 0 { 2.0 } else { -2.0 };
            let trial = Cell::new(&[0.5], 10.0 + off);
            model.take(
                &settings(),
                (trial, &vec![0.5].into(), 10.0 + off),
                None,
                &Known::default(),
            );
        }
        let fitted = model.fit(&Known::default()).unwrap();
        let noise = fitted.noise();
        let mut of = |usual: f64, error: f64| {
            model.usual = Some(Usual { log: libm::log(usual * usual) as f32, count: USUAL_MOST });
            model.counts(Some(error), Some(&fitted))
        };
        // A usual one, also where its connections explain more than all the noise there is.
        for usual in [0.1 * noise, 0.7 * noise, 3.0 * noise] {
            assert!((of(usual, usual) - 1.0).abs() < 0.02, "{usual}");
        }
        // Half of the variance shrinks to a hundredth of that, or grows fourfold.
        let half = 0.5_f64.sqrt() * noise;
        assert!((of(half, 0.1 * half) - 1.98).abs() < 0.1, "{}", of(half, 0.1 * half));
        assert!((of(half, 2.0 * half) - 0.4).abs() < 0.02, "{}", of(half, 2.0 * half));
        assert_eq!((of(3.0 * noise, 1e-9), of(3.0 * noise, 1e9)), (COUNTS.1, COUNTS.0));
        assert_eq!((of(noise, 0.0), of(noise, f64::NAN)), (1.0, 1.0));
    }

    /// What was known of the network before is kept in part, and only where there was much.
    #[test]
    fn another_network_begins_with_a_part_of_what_is_known() {
        let mut model = Model::new(1);
        for i in 0..12_u32 {
            model.remember(&settings(), Cell::new(&[f64::from(i) / 12.0], 1.0));
        }
        assert_eq!(model.trials(), 12);
        model.debt = 5.0;
        let weight = model.memory.weight();
        model.begin_anew();
        assert_eq!((model.trials(), model.memory.weight(), model.debt), (0, 0.0, 0.0));
        assert_eq!(model.before.cells().len(), BEFORE.1);
        assert!((model.before.weight() / weight - BEFORE.0).abs() < 1e-3);
        // Five trials are too few to be worth it.
        let before = model.before.clone();
        (0..5).for_each(|_| model.remember(&settings(), Cell::new(&[0.5], 9.0)));
        model.begin_anew();
        assert_eq!(model.before, before);
    }
}
