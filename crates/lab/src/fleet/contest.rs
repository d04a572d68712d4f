//! Who takes part, and how one of them fares with the aggregates of one group.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use trimtab_cc::Spec;
use trimtab_fleet::{
    Aggregate, CloseError, Context, Decision, Finding, Interval, Observed, Point, Prefix, Service,
    Sighting, Summary, TREATMENT, Together,
};
use trimtab_steer::customize::{Cell, Outcome};

use super::connection::{Sample, generator};
use super::group::{Field, Group, NextToIt, Seen, merged};
use super::scenario::FleetScenario;

/// Random points that random search tries in each context before it stays with the best.
const RANDOM_TRIES: usize = 24;
/// Arms of the ε-greedy grid, spread evenly over the permitted box.
const ARMS: usize = 16;
/// The share of intervals in which ε-greedy takes any arm.
const EPSILON: f64 = 0.1;

/// What chooses configurations.
pub(super) enum Policy<'a> {
    /// The production code.
    Learner(&'a Service),
    /// One point of the permitted box, or another algorithm of the service.
    Point(Point),
    /// One of these for each context.
    ByContext(&'a BTreeMap<Context, Point>),
    /// Any algorithm; without one a sender that sees the link, which none is better than.
    Algorithm(Option<Box<Spec>>),
    /// Random points, then the best of them.
    RandomSearch,
    /// A grid, mostly its best arm.
    EpsilonGreedy,
}

/// How it went with one aggregate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Course {
    /// By interval, or of one in so many.
    pub(super) rewards: Vec<f64>,
    /// Intervals that are left out after each that it took part in.
    #[serde(default)]
    pub(super) skips: u64,
    /// Of the last third of the run, all connections.
    pub(super) late: Summary,
    /// Of the last third, the flows of others, for each entry of the scenario's `cross`.
    pub(super) cross: Vec<Summary>,
    /// Rewards of the best guess in each interval of the last third, where it was looked at.
    pub(super) guessed: Vec<f64>,
    /// Intervals after which it fell back to the safe configuration.
    pub(super) fallbacks: Vec<u64>,
    /// The best guesses at the end, by context: knobs and values.
    pub(super) learnt: Vec<(String, Vec<(String, f64)>)>,
    /// Intervals of the last third by the algorithm that was in force, as the service names it.
    pub(super) ran: BTreeMap<String, u64>,
}

impl Course {
    /// From one interval that it took part in to the next.
    pub(super) fn stride(&self) -> u64 {
        self.skips + 1
    }

    /// The reward of an interval that it took part in.
    pub(super) fn at(&self, n: usize) -> Option<f64> {
        let stride = self.stride() as usize;
        self.rewards.get(n / stride).filter(|_| n.is_multiple_of(stride)).copied()
    }

    /// The rewards of the intervals from one to before another.
    pub(super) fn between(&self, from: usize, until: usize) -> &[f64] {
        let place = |n: usize| n.div_ceil(self.stride() as usize).min(self.rewards.len());
        &self.rewards[place(from).min(place(until))..place(until)]
    }

    /// The next interval.
    pub(super) fn note(&mut self, scenario: &FleetScenario, seen: &Seen, reward: f64) {
        if is_late(scenario, self.rewards.len() as u64 * self.stride()) {
            self.late.merge(&seen.summary);
            self.cross.resize_with(seen.cross.len(), Summary::default);
            self.cross.iter_mut().zip(&seen.cross).for_each(|(all, one)| all.merge(one));
        }
        self.rewards.push(reward);
    }
}

/// Whether an interval is of the last third of the run.
fn is_late(scenario: &FleetScenario, n: u64) -> bool {
    n >= scenario.intervals() * 2 / 3
}

/// A course under way, of a group.
#[derive(Clone)]
pub(super) struct Run<'a> {
    group: Group<'a>,
    policy: &'a Policy<'a>,
    members: Vec<Member>,
    /// Whether the best guess is looked at in the last third, too.
    looks: bool,
}

/// What a run knows of one aggregate.
#[derive(Clone)]
struct Member {
    learner: Aggregate,
    arms: BTreeMap<Context, Arms>,
    course: Course,
    /// What the learner found since it was last asked: points and how much better they were than the safe one.
    found: Vec<Finding>,
    /// What its clients saw since it was last asked.
    sighted: Vec<Sighting>,
    /// The member of the group that it is one aggregate with, where it is not the first of them.
    with: Option<usize>,
}

/// What a decision shows of an interval.
#[derive(Clone)]
struct Taught {
    /// The algorithm that was in force, where there is a choice.
    tried: Option<String>,
    fell_back: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(group: Group<'a>, policy: &'a Policy<'a>, looks: bool) -> Self {
        let member = |field: &Field<'_>| Member {
            learner: Aggregate::new(field.key()),
            arms: BTreeMap::new(),
            course: Course::default(),
            found: Vec::new(),
            sighted: Vec::new(),
            with: None,
        };
        let members = group.fields.iter().map(member).collect();
        Self { group, policy, members, looks }
    }

    /// The same in one of so many intervals.
    pub(super) fn in_one_of(mut self, intervals: u64) -> Self {
        self.members.iter_mut().for_each(|m| m.course.skips = intervals.saturating_sub(1));
        self
    }

    /// What other aggregates found, for the intervals to come.
    pub(super) fn heed(&mut self, found: &[Cell]) {
        self.members.iter_mut().for_each(|member| member.learner.heed(found));
    }

    /// What was found since it was last asked.
    pub(super) fn take_found(&mut self) -> Vec<Finding> {
        self.members.iter_mut().flat_map(|member| core::mem::take(&mut member.found)).collect()
    }

    /// What clients saw since it was last asked.
    pub(super) fn take_sighted(&mut self) -> Vec<Sighting> {
        self.members.iter_mut().flat_map(|member| core::mem::take(&mut member.sighted)).collect()
    }

    /// The prefixes of its aggregates.
    pub(super) fn prefixes(&self) -> Vec<Prefix> {
        self.group.fields.iter().map(|field| field.key().prefix).collect()
    }

    /// From now on, those of its aggregates that are in one group are one.
    pub(super) fn join(&mut self, together: &Together) {
        let of: Vec<Prefix> = self.prefixes().into_iter().map(|own| together.of(own)).collect();
        for (i, member) in self.members.iter_mut().enumerate() {
            member.with = of[..i].iter().position(|other| *other == of[i]);
        }
    }

    /// Goes on to an interval.
    pub(super) fn advance(&mut self, until: u64) {
        let intervals = self.group.fields[0].scenario.intervals();
        let course = &self.members[0].course;
        let (next, stride) = (course.rewards.len() as u64 * course.stride(), course.stride());
        for n in (next..until.min(intervals)).step_by(stride as usize) {
            self.step(n);
        }
    }

    fn step(&mut self, n: u64) {
        let Self { group, policy, members, looks } = self;
        let (mut specs, mut controls, mut arms) = (Vec::new(), Vec::<NextToIt>::new(), Vec::new());
        for (member, field) in members.iter_mut().zip(&group.fields) {
            let ((spec, arm), control) = match member.with {
                Some(first) => ((specs[first], arms[first]), controls[first].clone()),
                None => (member.open(field, policy, n), member.control(field, policy, n)),
            };
            specs.push(spec);
            arms.push(arm);
            controls.push(control);
        }
        let seen = group.seen_by_arm(n, &specs, &controls);
        if *looks && is_late(group.fields[0].scenario, n) {
            look(group, members, n);
        }
        let with: Vec<Option<usize>> = members.iter().map(|member| member.with).collect();
        let mut lessons: Vec<Option<Taught>> = Vec::new();
        for (i, member) in members.iter_mut().enumerate() {
            let field = &group.fields[i];
            let taught = match member.with {
                Some(first) => lessons[first].clone(),
                None if !matches!(policy, Policy::Learner(_)) => None,
                None => {
                    let is_with = |other: &usize| *other == i || with[*other] == Some(i);
                    let all: Vec<&Seen> =
                        (0..with.len()).filter(is_with).map(|one| &seen[one]).collect();
                    let all = Seen::of_all(&all);
                    member.learn_from(field, policy, n, &all)
                }
            };
            member.close(field, n, &seen[i], (arms[i], taught.as_ref()));
            lessons.push(taught);
        }
    }

    /// How it went with each aggregate.
    pub(super) fn finish(self) -> Vec<Course> {
        let Self { policy, mut members, .. } = self;
        for i in 0..members.len() {
            if let Some(first) = members[i].with {
                members[i].learner = members[first].learner.clone();
            }
        }
        members.into_iter().map(|member| member.finish(policy)).collect()
    }
}

/// Looks at the best guess of each aggregate, where all have one.
fn look(group: &Group<'_>, members: &mut [Member], n: u64) {
    let guess = |(i, field): (usize, &Field<'_>)| {
        let of = &members[members[i].with.unwrap_or(i)];
        let learner = of.learner.learner(field.context(n))?;
        Some(Some(field.spec(learner.centre())))
    };
    let guesses: Option<Vec<_>> = group.fields.iter().enumerate().map(guess).collect();
    let Some(guesses) = guesses else { return };
    let seen = group.seen(n, &guesses, Sample::Run);
    for ((member, field), seen) in members.iter_mut().zip(&group.fields).zip(seen.iter()) {
        member.course.guessed.push(field.reward(&seen.summary));
    }
}

impl Member {
    /// What is in force in an interval, and the arm that it is of.
    fn open(
        &mut self,
        field: &Field<'_>,
        policy: &Policy<'_>,
        n: u64,
    ) -> (Option<Spec>, Option<usize>) {
        let context = field.context(n);
        let spec = match policy {
            Policy::Learner(service) => Some(
                self.learner
                    .open(service, field.interval(n))
                    .spec()
                    .expect("the permitted box lies within the algorithm's ranges"),
            ),
            Policy::Point(point) => Some(field.spec(point)),
            Policy::ByContext(points) => Some(match points.get(&context) {
                Some(point) => field.spec(point),
                None => field.spec(&field.service.begin()),
            }),
            Policy::Algorithm(spec) => spec.as_deref().copied(),
            Policy::RandomSearch | Policy::EpsilonGreedy => {
                let greedy = matches!(policy, Policy::EpsilonGreedy);
                let arms =
                    self.arms.entry(context).or_insert_with(|| Arms::of(field, greedy, context));
                let chosen = arms.choose();
                return (Some(field.spec(&arms.points[chosen].clone().into())), Some(chosen));
            }
        };
        (spec, None)
    }

    /// What some clusters run next to what is in force in an interval.
    fn control(&mut self, field: &Field<'_>, policy: &Policy<'_>, n: u64) -> NextToIt {
        let Policy::Learner(service) = policy else { return None };
        let control = self.learner.open(service, field.interval(n)).control?;
        let spec = control.configuration().spec();
        Some((control, spec.expect("the permitted box lies within the algorithm's ranges")))
    }

    /// Learns from what was seen of an interval, by the production code where that chooses.
    fn learn_from(
        &mut self,
        field: &Field<'_>,
        policy: &Policy<'_>,
        n: u64,
        seen: &Seen,
    ) -> Option<Taught> {
        let Policy::Learner(service) = policy else { return None };
        let decision = self.learn(service, field.interval(n), seen).ok()?;
        self.found.extend(decision.finding(service));
        if field.scenario.together_after.is_some() {
            self.sighted.extend(Sighting::of(&decision));
        }
        Some(Taught {
            fell_back: matches!(decision.lesson.outcome, Outcome::FellBack { .. }),
            tried: decision.algorithms.map(|algorithms| algorithms.tried),
        })
    }

    /// Takes what was seen of an interval.
    fn close(
        &mut self,
        field: &Field<'_>,
        n: u64,
        seen: &Seen,
        (arm, taught): (Option<usize>, Option<&Taught>),
    ) {
        let reward = field.reward(&seen.summary);
        let tried = taught.and_then(|taught| taught.tried.as_ref());
        if let Some(tried) = tried.filter(|_| is_late(field.scenario, n)) {
            *self.course.ran.entry(tried.clone()).or_default() += 1;
        }
        if taught.is_some_and(|taught| taught.fell_back) {
            self.course.fallbacks.push(n);
        }
        if let Some((arm, arms)) = arm.zip(self.arms.get_mut(&field.context(n))) {
            arms.note(arm, reward);
        }
        self.course.note(field.scenario, seen, reward);
    }

    /// Closes an interval as an engine does with what one edge reports.
    fn learn(
        &mut self,
        service: &Service,
        interval: Interval,
        seen: &Seen,
    ) -> Result<Decision, CloseError> {
        let Some([ours, theirs]) = &seen.arms else {
            return self.learner.close(service, interval, &seen.summary);
        };
        let both = |one: &Summary, other: &Summary| merged([one, other].into_iter());
        let arms = [both(&ours[0], &ours[1]), both(&theirs[0], &theirs[1])];
        let next = [both(&ours[0], &theirs[0]), both(&ours[1], &theirs[1])];
        let summary = &arms[TREATMENT];
        let observed = Observed { summary, arms: Some(&arms), next: Some(&next) };
        self.learner.close(service, interval, observed)
    }

    fn finish(mut self, policy: &Policy<'_>) -> Course {
        if let Policy::Learner(service) = policy {
            let contexts = service.contexts();
            let of = |c: Context| {
                let stand = self.learner.learner(c)?.stand().to_vec();
                Some((contexts.name(c), service.configured(&stand.into())))
            };
            self.course.learnt = contexts.all().filter_map(of).collect();
        }
        self.course
    }
}

/// Points to choose from.
#[derive(Clone)]
struct Arms {
    points: Vec<Vec<f64>>,
    tallies: Vec<(f64, u32)>,
    epsilon: f64,
    random: Pcg64Mcg,
}

impl Arms {
    /// Those of an aggregate in a context: a grid of them, or many at random.
    fn of(field: &Field<'_>, greedy: bool, context: Context) -> Self {
        let parts = [7, u64::from(field.aggregate), u64::from(context.0)];
        let mut random = generator(field.seed, &parts);
        let knobs = field.service.knobs().len();
        let count = if greedy { ARMS } else { RANDOM_TRIES };
        let points: Vec<Vec<f64>> = if greedy {
            (0..count as u32).map(|i| halton(i, knobs)).collect()
        } else {
            (0..count).map(|_| (0..knobs).map(|_| random.random()).collect()).collect()
        };
        let epsilon = if greedy { EPSILON } else { 0.0 };
        Self { tallies: vec![(0.0, 0); count], points, epsilon, random }
    }

    /// Each once, then the best by mean, now and then any.
    fn choose(&mut self) -> usize {
        if let Some(new) = self.tallies.iter().position(|t| t.1 == 0) {
            return new;
        }
        if self.random.random::<f64>() < self.epsilon {
            return self.random.random_range(0..self.points.len());
        }
        let mean = |i: &usize| self.tallies[*i].0 / f64::from(self.tallies[*i].1);
        (0..self.points.len()).max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(0)
    }

    fn note(&mut self, arm: usize, reward: f64) {
        self.tallies[arm].0 += reward;
        self.tallies[arm].1 += 1;
    }
}

/// Point `i` of a low-discrepancy sequence in the unit cube (Halton).
pub(super) fn halton(i: u32, dimensions: usize) -> Vec<f64> {
    const PRIMES: [u32; 16] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];
    let radical = |base: u32| {
        let (mut left, mut scale, mut value) = (i + 1, 1.0, 0.0);
        while left > 0 {
            scale /= f64::from(base);
            value += f64::from(left % base) * scale;
            left /= base;
        }
        value
    };
    PRIMES.iter().take(dimensions).map(|&base| radical(base)).collect()
}

#[cfg(test)]
mod tests;
