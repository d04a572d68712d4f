//! One aggregate: its contexts' learners, the configuration in force, and what becomes of each interval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_qoe::AggregateFormula;
use trimtab_qoe::Statistic;
use trimtab_steer::customize::{Cell, Chance, Known, Learner, Point, Purpose, Reward, Trial};

use crate::control::Control;
use crate::experiment::{Assignment, Part};
use crate::harm::Reference;
use crate::scale::Scale;
use crate::side_by_side::Pairs;
use crate::spread::Spread;
use crate::{
    Algorithms, Chosen, Configuration, Context, Decision, Harm, Interval, Key, KnobRange, Observed,
    Odds, RewardSource, Service, SideBySide, Summary,
};

/// Intervals that may be open at a time: reports of the latest ones may still come.
pub const OPEN_MAX: usize = 4;

/// What an operator may tell an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Hold {
    /// Learn.
    #[default]
    Learning,
    /// Stay at the best guess of each context.
    Paused,
    /// Run this in every context.
    Pinned {
        /// Values of knobs, or another algorithm.
        values: Chosen,
    },
}

/// An interval whose results are awaited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Open {
    context: Context,
    version: u64,
    trial: Trial,
    /// The version of the control, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control: Option<u64>,
    /// Which part of an experiment it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
}

/// The other algorithms that a service has, by the numbers that its learners know them by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Choice {
    /// The incumbent first, where there is one.
    others: Vec<String>,
    has_incumbent: bool,
}

impl Choice {
    fn of(service: &Service) -> Self {
        let others = service.others().iter().map(|other| other.name().to_owned()).collect();
        Self { others, has_incumbent: service.incumbent().is_some() }
    }

    /// Whether there is no choice.
    fn is_none(&self) -> bool {
        self.others.is_empty()
    }
}

/// What was learnt of another description of the service is kept for so many proposals.
const SHELVED: u64 = 200;

/// What was learnt of another description of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Shelf {
    learnt: Vec<KnobRange>,
    algorithm: String,
    #[serde(default, skip_serializing_if = "Choice::is_none")]
    choice: Choice,
    formulas: Vec<String>,
    #[serde(default, skip_serializing_if = "Scale::is_new")]
    scale: Scale,
    #[serde(default, skip_serializing_if = "Spread::is_new")]
    spread: Spread,
    #[serde(default, skip_serializing_if = "Pairs::is_new")]
    pairs: Pairs,
    learners: BTreeMap<Context, Learner>,
    /// The last proposal before it is forgotten.
    until: u64,
}

/// The state of one aggregate: plain data for serde.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    key: Key,
    /// What is learnt, as the service described it: see [`Aggregate::follow`].
    learnt: Vec<KnobRange>,
    /// The algorithm and the formulas, as the service described them; empty in what was kept before that was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    algorithm: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    formulas: Vec<String>,
    /// What else there was to choose from; nothing in what was kept before there was a choice.
    #[serde(default, skip_serializing_if = "Choice::is_none")]
    choice: Choice,
    /// What the rewards are that were learnt from, and how they go with their surrogate.
    #[serde(default, skip_serializing_if = "Scale::is_new")]
    scale: Scale,
    /// How far off rewards are by chance of which connections there were.
    #[serde(default, skip_serializing_if = "Spread::is_new")]
    spread: Spread,
    /// How trials compared with their controls.
    #[serde(default, skip_serializing_if = "Pairs::is_new")]
    pairs: Pairs,
    /// What clients see under the safe configuration.
    #[serde(default, skip_serializing_if = "Reference::is_new")]
    reference: Reference,
    /// What was learnt of another description of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shelf: Option<Box<Shelf>>,
    learners: BTreeMap<Context, Learner>,
    /// How long the intervals are that are open, and the latest one; none in what was kept before that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    length_ns: Option<u64>,
    open: BTreeMap<Interval, Open>,
    /// The latest interval that was opened.
    latest: Option<Interval>,
    version: u64,
    point: Point,
    /// What some clusters run instead, and their share. Its version is the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control: Option<(Point, f64)>,
    hold: Hold,
    /// Proposals until now: the counter of the draws.
    draws: u64,
    /// Where the first context begins, in values of the knobs, when others have learnt something already.
    #[serde(default)]
    prior: Option<Vec<f64>>,
    /// What an experiment wants of it, where it learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assignment: Option<Assignment>,
    /// What other aggregates found. The owner of the aggregates keeps that, once for all of a service.
    #[serde(skip)]
    heeds: Vec<Cell>,
}

/// Why an interval cannot be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// It was never opened, is closed already, or was given up for later ones.
    #[error(
        "interval {0} is not open: it was never begun, is closed already, or {OPEN_MAX} later ones were begun"
    )]
    NotOpen(Interval),
}

impl Aggregate {
    /// A new aggregate that knows nothing.
    pub fn new(key: Key) -> Self {
        Self {
            key,
            learnt: Vec::new(),
            algorithm: String::new(),
            formulas: Vec::new(),
            choice: Choice::default(),
            scale: Scale::default(),
            spread: Spread::default(),
            pairs: Pairs::default(),
            reference: Reference::default(),
            shelf: None,
            learners: BTreeMap::new(),
            length_ns: None,
            open: BTreeMap::new(),
            latest: None,
            version: 0,
            point: Point::default(),
            control: None,
            hold: Hold::default(),
            draws: 0,
            prior: None,
            assignment: None,
            heeds: Vec::new(),
        }
    }

    /// The same with versions that come after this one.
    #[must_use]
    pub fn after_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    /// Hands it what the aggregates of its service found until now ([`Commons::cells`](crate::Commons::cells)): from
    /// now on decisions lean on it where its own trials say little. It is no part of the state.
    pub fn heed(&mut self, found: &[Cell]) {
        self.heeds = found.to_vec();
    }

    /// A new aggregate that begins where others of its service have come to (§7, "Cross-aggregate learning"), given as
    /// values of the knobs under `[knobs]`; see [`Aggregate::guess`].
    #[must_use]
    pub fn starting_at(self, values: Vec<f64>) -> Self {
        Self { prior: Some(values), ..self }
    }

    /// The best guess over all contexts, in values of the knobs under `[knobs]`: the mean of where each
    /// has come to, weighted by their steps. `None` until there was a step.
    pub fn guess(&self, service: &Service) -> Option<Vec<f64>> {
        self.mean_stand(service).map(|point| service.space().values(&point))
    }

    /// Which one it is.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The learner of a context, once there was an interval of it.
    pub fn learner(&self, context: Context) -> Option<&Learner> {
        self.learners.get(&context)
    }

    /// What an operator told it.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Lets it learn, pause, or run given knobs, from the next interval on.
    pub fn set_hold(&mut self, hold: Hold) {
        self.hold = hold;
    }

    /// From the next interval on, what an experiment or a rollout wants is in force; or, with none,
    /// what is learnt. What an operator holds stays.
    pub fn assign(&mut self, assignment: Option<Assignment>) {
        self.assignment = assignment;
    }

    /// Which part of an experiment an interval is whose results are awaited.
    pub fn part_in(&self, interval: Interval) -> Option<Part> {
        self.open.get(&interval)?.part
    }

    /// Starts learning again at these values of the knobs under `[knobs]` or another algorithm, in one
    /// context or all, as when an operator rolls back.
    pub fn restart_at(&mut self, service: &Service, context: Option<Context>, chosen: &Chosen) {
        let point = service.point(chosen);
        for (_, learner) in
            self.learners.iter_mut().filter(|(c, _)| context.is_none_or(|x| x == **c))
        {
            learner.restart_at(point.clone());
        }
    }

    /// The version in force in an interval that is open.
    pub fn version_in(&self, interval: Interval) -> Option<u64> {
        self.open.get(&interval).map(|open| open.version)
    }

    /// The version of the control in an interval that is open, where it has one.
    pub fn control_in(&self, interval: Interval) -> Option<u64> {
        self.open.get(&interval)?.control
    }

    /// The latest interval that was opened, whether its results are awaited still or not.
    pub fn latest(&self) -> Option<Interval> {
        self.latest
    }

    /// The intervals whose results are awaited, oldest first.
    pub fn open_intervals(&self) -> impl Iterator<Item = Interval> {
        self.open.keys().copied()
    }

    /// The configuration for an interval. The same one however often it is asked for; asked for an interval before the
    /// latest, it gives the one in force now.
    ///
    /// At most [`OPEN_MAX`] intervals stay open: the oldest is given up without a reward when there are more.
    pub fn open(&mut self, service: &Service, interval: Interval) -> Configuration {
        self.follow(service);
        let length_ns = service.interval().as_nanos();
        if self.length_ns.replace(length_ns).is_some_and(|then| then != length_ns) {
            // They are counted otherwise now; what was learnt stays.
            self.latest = None;
            for (_, open) in std::mem::take(&mut self.open) {
                self.give_up(&open);
            }
        }
        let begun = self.latest.is_some_and(|latest| interval <= latest);
        if !begun || self.point == Point::default() {
            self.latest = self.latest.max(Some(interval));
            let context = service.context_at(&self.key, interval);
            let trial = self.propose(service, context);
            let control = self.control_of(service, &trial);
            if trial.point != self.point || control != self.control {
                // An engine that knows of no controls takes this one for a version that ended.
                self.version += if control.is_some() { 2 } else { 1 };
                self.point.clone_from(&trial.point);
                self.control = control;
            }
            let learns = self.hold == Hold::Learning;
            let is_as_assigned =
                |a: &&Assignment| learns && (a.values.is_none() || trial.purpose == Purpose::Held);
            let part = self.assignment.as_ref().filter(is_as_assigned).and_then(|a| a.part);
            let (version, control) =
                (self.version, self.control.as_ref().map(|_| self.version - 1));
            self.open.insert(interval, Open { context, version, trial, control, part });
            while self.open.len() > OPEN_MAX {
                if let Some((_, given_up)) = self.open.pop_first() {
                    self.give_up(&given_up);
                }
            }
        }
        self.configuration(service)
    }

    /// Learns what the service describes from now on, and keeps of what was learnt what still means
    /// something: all, where the safe or the first values are others; points inside, where ranges
    /// are; which points were better, where the reward is another one. With other knobs or another
    /// algorithm learning starts anew. What is put away so comes back where the description does
    /// soon, as while engines with different files take turns.
    fn follow(&mut self, service: &Service) {
        let (algorithm, formulas) = (service.algorithm().name, service.formulas());
        let same_names = |one: &[KnobRange], other: &[KnobRange]| {
            one.iter().map(|k| &k.name).eq(other.iter().map(|k| &k.name))
        };
        if self.algorithm.is_empty() && !self.learnt.is_empty() {
            // What was kept before it was written down is of the service as it was.
            algorithm.clone_into(&mut self.algorithm);
            self.formulas.clone_from(&formulas);
        }
        if self.shelf.as_ref().is_some_and(|shelf| self.draws > shelf.until) {
            self.shelf = None;
        }
        let is_same_kind = same_names(&self.learnt, service.knobs()) && self.algorithm == algorithm;
        if !is_same_kind || self.formulas != formulas {
            let until = self.draws.saturating_add(SHELVED);
            let put_away = Shelf {
                learnt: self.learnt.clone(),
                algorithm: std::mem::replace(&mut self.algorithm, algorithm.to_owned()),
                choice: self.choice.clone(),
                formulas: std::mem::replace(&mut self.formulas, formulas),
                scale: std::mem::take(&mut self.scale),
                spread: std::mem::take(&mut self.spread),
                pairs: std::mem::take(&mut self.pairs),
                learners: self.learners.clone(),
                until,
            };
            let back = self.shelf.take().filter(|shelf| {
                same_names(&shelf.learnt, service.knobs())
                    && (&shelf.algorithm, &shelf.formulas) == (&self.algorithm, &self.formulas)
            });
            match back {
                Some(back) => {
                    (self.learnt, self.learners, self.scale) =
                        (back.learnt, back.learners, back.scale);
                    self.choice = back.choice;
                    (self.spread, self.pairs) = (back.spread, back.pairs);
                }
                None if is_same_kind => self.begin_where_it_is(),
                None => {
                    self.learners.clear();
                    self.learnt = service.knobs().to_vec();
                }
            }
            self.reference = Reference::default();
            self.shelf = (!put_away.learners.is_empty()).then(|| Box::new(put_away));
            self.open.clear();
            self.point = Point::default();
        }
        self.follow_choice(service);
        if self.learnt == service.knobs() {
            return;
        }
        self.reference = Reference::default();
        let then = std::mem::replace(&mut self.learnt, service.knobs().to_vec());
        let ranges = |knobs: &[KnobRange]| knobs.iter().map(|k| k.dimension).collect::<Vec<_>>();
        if ranges(&then) == ranges(service.knobs()) {
            self.learners.values_mut().for_each(|learner| learner.set_safe(service.safe()));
            return;
        }
        let to = |point: &[f64]| -> Vec<f64> {
            let both = then.iter().zip(service.knobs()).zip(point);
            both.map(|((then, now), &x)| now.dimension.place(then.dimension.value(x))).collect()
        };
        self.learners.values_mut().for_each(|learner| learner.carry_over(to, service.safe()));
        self.open.clear();
        self.point = Point::default();
    }

    /// What there is to choose from is another one: what was learnt of those that stay, stays.
    fn follow_choice(&mut self, service: &Service) {
        let choice = Choice::of(service);
        if self.choice == choice {
            return;
        }
        self.reference = Reference::default();
        let then = std::mem::replace(&mut self.choice, choice);
        let to = |number: u8| {
            let name = then.others.get(usize::from(number).checked_sub(1)?)?;
            service.other_named(name).map(|point| point.choice())
        };
        let others = self.others();
        for learner in self.learners.values_mut() {
            learner.choose_among(others, to, service.safe());
        }
        self.open.clear();
        self.point = Point::default();
    }

    /// How many other algorithms there are; a service has no more than a number has room for.
    fn others(&self) -> u8 {
        u8::try_from(self.choice.others.len()).unwrap_or(u8::MAX)
    }

    /// Rewards are others from now on: each context begins at its best guess, and how high rewards
    /// were counts for nothing.
    fn begin_where_it_is(&mut self) {
        for learner in self.learners.values_mut() {
            let centre = learner.centre().clone();
            learner.restart_at(centre);
        }
    }

    /// An interval has no result.
    fn give_up(&mut self, open: &Open) {
        if let Some(learner) = self.learners.get_mut(&open.context) {
            learner.observe(&open.trial, None, false);
        }
    }

    /// The configuration in force.
    fn configuration(&self, service: &Service) -> Configuration {
        let control = self.control.as_ref().map(|(point, share)| {
            let version = self.version.saturating_sub(1);
            let Configuration { algorithm, knobs, .. } = service.configuration(version, point);
            // The same for an aggregate as long as its service is, so that edges know in an interval
            // in which arm clusters are in the next one.
            let seed = draw(service.seed(), &self.key, Context(0), 0);
            Control { version, algorithm, knobs, share: *share, seed }
        });
        Configuration { control, ..service.configuration(self.version, &self.point) }
    }

    /// What some clusters are to run next to a trial: the safe configuration, also next to itself.
    /// Then a difference is chance alone, which tells how far others are off. An experiment has arms
    /// of its own.
    fn control_of(&self, service: &Service, trial: &Trial) -> Option<(Point, f64)> {
        let share = service.side_by_side()?;
        let is_apart = |a: &Assignment| a.part.is_some() || a.values.is_some();
        let learns = self.hold == Hold::Learning && !self.assignment.as_ref().is_some_and(is_apart);
        let is_trial = learns && trial.purpose != Purpose::Held;
        (is_trial && self.key.prefix.cluster_bits().is_some()).then(|| (service.safe(), share))
    }

    fn propose(&mut self, service: &Service, context: Context) -> Trial {
        let mut learner = self.take_learner(service, context);
        let trial = match &self.hold {
            Hold::Paused => learner.hold_at(learner.centre().clone()),
            Hold::Pinned { values } => learner.hold_at(service.point(values)),
            Hold::Learning => match self.assignment.as_ref().and_then(|a| a.values.as_ref()) {
                // What keeps an aggregate safe counts more than what is compared.
                Some(values) if !learner.is_resting() => learner.hold_at(service.point(values)),
                _ => {
                    self.draws += 1;
                    let random = draw(service.seed(), &self.key, context, self.draws);
                    learner.propose_knowing(random, &self.known())
                }
            },
        };
        self.learners.insert(context, learner);
        trial
    }

    /// The learner of a context, a new one where there is none, for as long as it looks at the others.
    fn take_learner(&mut self, service: &Service, context: Context) -> Learner {
        let before = self.learners.remove(&context).map(|mut learner| {
            learner.follow(service.settings());
            learner
        });
        before.unwrap_or_else(|| {
            let (start, safe) = (self.start(service), service.safe_knobs());
            let learner =
                Learner::new(service.settings().clone(), start.clone(), safe, service.active());
            match service.incumbent() {
                Some(_) => learner.choosing(self.others(), service.begin(), service.safe()),
                None => learner.choosing(self.others(), start.into(), service.safe()),
            }
        })
    }

    /// What a learner that was taken out may know of the others.
    fn known(&self) -> Known<'_> {
        Known { others: self.learners.values().collect(), fleet: &self.heeds }
    }

    /// Where in the knobs' cube a context that is new begins: at the mean of those that have learnt
    /// something.
    fn start(&self, service: &Service) -> Vec<f64> {
        let prior = self.prior.as_ref().filter(|p| p.len() == service.knobs().len());
        self.mean_stand(service).unwrap_or_else(|| match prior {
            Some(values) => service.space().unit(values),
            None => service.start(),
        })
    }

    /// The mean of where the knobs of all contexts are best, weighted by their steps.
    fn mean_stand(&self, service: &Service) -> Option<Vec<f64>> {
        let steps: f64 = self.learners.values().map(|l| f64::from(l.steps())).sum();
        if steps == 0.0 {
            return None;
        }
        let mut mean = vec![0.0; service.knobs().len()];
        for learner in self.learners.values() {
            let weight = f64::from(learner.steps()) / steps;
            mean.iter_mut().zip(learner.stand()).for_each(|(m, c)| *m += weight * c);
        }
        Some(mean)
    }

    /// Takes what all connections saw in an interval, and where arms ran side by side what each arm
    /// saw; learns from it, and says what it made of it.
    ///
    /// # Errors
    /// The interval is not open; nothing changes.
    pub fn close<'a>(
        &mut self,
        service: &Service,
        interval: Interval,
        observed: impl Into<Observed<'a>>,
    ) -> Result<Decision, CloseError> {
        let observed: Observed<'a> = observed.into();
        let summary = observed.summary;
        let open = self.open.remove(&interval).ok_or(CloseError::NotOpen(interval))?;
        let enough = summary.connections() >= service.connections_min();
        let value = |formula: Option<&AggregateFormula>| {
            formula.filter(|_| enough).and_then(|formula| Service::value(formula, summary))
        };
        let values = (value(Some(service.reward())), value(service.surrogate()));
        let before = self.scale.learnt_from();
        let rewarded = self.scale.take(values);
        if before.is_some_and(|before| self.scale.learnt_from() != Some(before)) {
            self.begin_where_it_is();
            (self.spread, self.pairs) = (Spread::default(), Pairs::default());
        }
        let broken = broken(service, summary);
        let is_safe = open.trial.point == service.safe();
        let harm = if enough { self.reference.take(open.context, is_safe, summary) } else { None };
        let reward = rewarded.map(|(value, source)| Reward {
            value,
            error: self.error_of(service, source, summary),
            harm,
        });
        let (reward, side_by_side) = match rewarded {
            Some((_, RewardSource::Reward)) => {
                self.paired(service, (interval, &open), reward, observed)
            }
            _ => (reward, None),
        };
        let mut learner = self.take_learner(service, open.context);
        let before = learner.centre().clone();
        let lesson =
            learner.observe_knowing(&open.trial, reward, !broken.is_empty(), &self.known());
        let after = learner.centre().clone();
        let harm = harm.zip(learner.harm_at(&open.trial.point)).map(|(interval, expected)| Harm {
            interval,
            expected,
            most: service.harm_max(),
        });
        let active = learner.active().iter().map(|&k| service.knobs()[k].name.clone()).collect();
        if lesson.anew {
            // Contexts are of one network.
            self.learners.values_mut().for_each(Learner::doubt);
            self.pairs.doubt();
            self.reference = Reference::default();
        }
        self.learners.insert(open.context, learner);
        Ok(Decision {
            key: self.key.clone(),
            interval,
            context: service.contexts().name(open.context),
            version: open.version,
            tried: service.configured(&open.trial.point),
            algorithms: algorithms(service, [&open.trial.point, &before, &after]),
            purpose: open.trial.purpose,
            chances: odds(service, &open.trial),
            part: open.part,
            connections: summary.connections(),
            statistics: statistics(service, summary),
            source: rewarded.map_or(RewardSource::Missing, |(_, source)| source),
            reward: reward.map(|reward| reward.value),
            error: reward.and_then(|reward| reward.error),
            side_by_side,
            harm,
            broken,
            lesson,
            active,
            before: service.configured(&before),
            after: service.configured(&after),
        })
    }
}

impl Aggregate {
    /// The reward of an interval as it compares with its control's, where that is known.
    fn paired(
        &mut self,
        service: &Service,
        (interval, open): (Interval, &Open),
        reward: Option<Reward>,
        observed: Observed<'_>,
    ) -> (Option<Reward>, Option<SideBySide>) {
        if service.side_by_side().is_none() {
            return (reward, None);
        }
        let pair = observed
            .arms
            .filter(|_| open.control.is_some())
            .and_then(|arms| self.pairs.compare(service, interval, arms, &self.spread));
        self.pairs.look_ahead(service, interval, observed.next, &self.spread);
        let of_pair = |pair: &SideBySide| {
            let value = self.pairs.reward(open.context, pair);
            Reward { value, error: pair.error, harm: reward.and_then(|reward| reward.harm) }
        };
        let reward = pair.as_ref().map(of_pair).or(reward);
        (reward, pair)
    }

    /// How far off the reward of an interval is by chance of its connections. Of a surrogate that
    /// counts for a reward it is not known.
    fn error_of(
        &mut self,
        service: &Service,
        source: RewardSource,
        summary: &Summary,
    ) -> Option<f64> {
        let formula = match source {
            RewardSource::Reward => Some(service.reward()),
            RewardSource::Surrogate => service.surrogate(),
            RewardSource::Missing => None,
        };
        let is_learnt_from = self.scale.learnt_from() == Some(source);
        self.spread.take(formula.filter(|_| is_learnt_from)?, summary)
    }
}

/// What a version showed in the part of an interval before another one followed. No trial of it is
/// open, or this would be its [`Decision`]. It teaches nothing more, since a trial counts once; what
/// it brought is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The version.
    pub version: u64,
    /// Connections that were reported under it.
    pub connections: u64,
    /// The statistics that the service keeps, with their values.
    pub statistics: Vec<(String, f64)>,
    /// The guards that were broken.
    pub broken: Vec<String>,
}

impl Ended {
    /// What all edges saw under this version.
    pub fn new(service: &Service, version: u64, summary: &Summary) -> Self {
        Self {
            version,
            connections: summary.connections(),
            statistics: statistics(service, summary),
            broken: broken(service, summary),
        }
    }
}

impl core::fmt::Display for Ended {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { version, connections, .. } = self;
        write!(f, "Version {version} ended within the interval, with {connections} connections")?;
        for (name, value) in &self.statistics {
            write!(f, ", {name} {value:.4}")?;
        }
        for guard in &self.broken {
            write!(f, "; {guard} was broken")?;
        }
        f.write_str(". No trial of it is open.")
    }
}

/// The arms among which chance chose a trial, as the service has them.
fn odds(service: &Service, trial: &Trial) -> Vec<Odds> {
    let of = |chance: &Chance| Odds {
        arm: service.chosen(&chance.point),
        probability: chance.probability,
        expected: chance.expected,
    };
    trial.chances.iter().map(of).collect()
}

/// The algorithms of what was tried and of the best guess before and after it.
fn algorithms(service: &Service, points: [&Point; 3]) -> Option<Algorithms> {
    let name = |point| {
        service.other(point).map_or(service.algorithm().name, crate::Other::name).to_owned()
    };
    let [tried, before, after] = points.map(name);
    (!service.others().is_empty()).then_some(Algorithms { tried, before, after })
}

/// The guards that an interval breaks; none where too few connections show it.
fn broken(service: &Service, summary: &Summary) -> Vec<String> {
    let enough = summary.connections() >= service.connections_min();
    let broken = service.guards().iter().filter(|guard| enough && guard.is_broken(summary));
    broken.map(ToString::to_string).collect()
}

/// Every statistic that the service keeps, with the values of this interval.
fn statistics(service: &Service, summary: &Summary) -> Vec<(String, f64)> {
    let value = |s: &Statistic| Some((s.to_string(), summary.statistic(s)?));
    service.kept().into_iter().filter_map(value).collect()
}

/// A number for a draw: the same for the same service, aggregate, context and count, and like chance between them.
fn draw(seed: u64, key: &Key, context: Context, count: u64) -> u64 {
    // FNV-1a over the key, then two rounds of a finaliser with full avalanche.
    let text = key.to_string();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(mix(hash ^ seed.rotate_left(32)) ^ count ^ (u64::from(context.0) << 48))
}

/// A finaliser with full avalanche.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests;
