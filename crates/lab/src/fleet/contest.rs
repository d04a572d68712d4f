//! Who takes part, and how one of them fares with one aggregate.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_cc::Spec;
use trimtab_fleet::{Aggregate, Context, Interval, Key, Point, Service, Sketch, Summary};
use trimtab_steer::customize::{Cell, Outcome};
use trimtab_units::Duration;

use super::connection::{Came, Connection, Sample, generator};
use super::scenario::FleetScenario;

/// The run begins on a Monday: four days after 1970-01-01, a Thursday.
const BEGINS: Duration = Duration::from_secs(4 * 24 * 3600);
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
#[derive(Clone, Debug, Default)]
pub(super) struct Course {
    /// By interval.
    pub(super) rewards: Vec<f64>,
    /// Of the last third of the run, all connections.
    pub(super) late: Summary,
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
    /// The next interval.
    pub(super) fn note(&mut self, scenario: &FleetScenario, summary: &Summary, reward: f64) {
        if is_late(scenario, self.rewards.len() as u64) {
            self.late.merge(summary);
        }
        self.rewards.push(reward);
    }
}

/// Whether an interval is of the last third of the run.
fn is_late(scenario: &FleetScenario, n: u64) -> bool {
    n >= scenario.intervals() * 2 / 3
}

/// A statistic of a connection, with its name.
type Named = (&'static str, fn(&Came) -> f64);

/// One aggregate of the fleet under one service.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) scenario: &'a FleetScenario,
    pub(super) service: &'a Service,
    pub(super) seed: u64,
    pub(super) aggregate: u32,
}

/// A course under way.
#[derive(Clone)]
pub(super) struct Run<'a> {
    field: Field<'a>,
    policy: &'a Policy<'a>,
    learner: Aggregate,
    arms: BTreeMap<Context, Arms>,
    course: Course,
    /// What the learner found since it was last asked: points and how much better they were than the safe one.
    found: Vec<(Point, f64)>,
    /// Whether the best guess is looked at in the last third, too.
    looks: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(field: Field<'a>, policy: &'a Policy<'a>, looks: bool) -> Self {
        Self {
            learner: Aggregate::new(field.key()),
            field,
            policy,
            arms: BTreeMap::new(),
            course: Course::default(),
            found: Vec::new(),
            looks,
        }
    }

    /// What other aggregates found, for the intervals to come.
    pub(super) fn heed(&mut self, found: &[Cell]) {
        self.learner.heed(found);
    }

    /// What was found since it was last asked.
    pub(super) fn take_found(&mut self) -> Vec<(Point, f64)> {
        core::mem::take(&mut self.found)
    }

    /// Goes on to an interval.
    pub(super) fn advance(&mut self, until: u64) {
        let intervals = self.field.scenario.intervals();
        for n in self.course.rewards.len() as u64..until.min(intervals) {
            self.step(n);
        }
    }

    fn step(&mut self, n: u64) {
        let field = self.field;
        let (interval, context) = (field.interval(n), field.context(n));
        let mut arm = None;
        let spec = match self.policy {
            Policy::Learner(service) => Some(
                self.learner
                    .open(service, interval)
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
                let greedy = matches!(self.policy, Policy::EpsilonGreedy);
                let arms = self.arms.entry(context).or_insert_with(|| field.arms(greedy, context));
                let chosen = arms.choose();
                arm = Some(chosen);
                Some(field.spec(&arms.points[chosen].clone().into()))
            }
        };
        let summary = field.summary(n, spec, Sample::Run);
        let reward = field.reward(&summary);
        if let Policy::Learner(service) = self.policy {
            let guess = self.learner.learner(context).map(|l| field.spec(l.centre()));
            let is_late = is_late(field.scenario, n);
            if let Ok(decision) = self.learner.close(service, interval, &summary) {
                if let Some(algorithms) = decision.algorithms.as_ref().filter(|_| is_late) {
                    *self.course.ran.entry(algorithms.tried.clone()).or_default() += 1;
                }
                if matches!(decision.lesson.outcome, Outcome::FellBack { .. }) {
                    self.course.fallbacks.push(n);
                }
                self.found.extend(decision.finding(service));
            }
            if let Some(guess) = guess.filter(|_| self.looks && is_late) {
                let reward = field.reward(&field.summary(n, Some(guess), Sample::Run));
                self.course.guessed.push(reward);
            }
        }
        if let Some((arm, arms)) = arm.zip(self.arms.get_mut(&context)) {
            arms.note(arm, reward);
        }
        self.course.note(field.scenario, &summary, reward);
    }

    pub(super) fn finish(mut self) -> Course {
        if let Policy::Learner(service) = self.policy {
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

impl Field<'_> {
    /// Its key: a /24 of its own.
    pub(super) fn key(&self) -> Key {
        let [_, b, c, d] = self.aggregate.to_be_bytes();
        let prefix = format!("{}.{c}.{d}.0/24", 100 + u32::from(b));
        let text = format!("{}/{prefix}", self.service.name());
        text.parse().expect("a service's name and a prefix make a key")
    }

    pub(super) fn interval(&self, n: u64) -> Interval {
        Interval(BEGINS.as_nanos() / self.service.interval().as_nanos() + n)
    }

    pub(super) fn context(&self, n: u64) -> Context {
        self.service.context_at(&self.key(), self.interval(n))
    }

    /// What the connections of an interval see with this congestion control. The connections are the same for all.
    pub(super) fn summary(&self, n: u64, spec: Option<Spec>, sample: Sample) -> Summary {
        let hour = self.interval(n).start(self.service.interval()).as_nanos() / 3_600_000_000_000;
        let when = ((hour % 24 / 8) as usize, matches!((hour / 24 + 3) % 7, 5 | 6));
        let came: Vec<Came> = (0..u64::from(self.scenario.connections))
            .map(|number| {
                let of = (u64::from(self.aggregate), n, number);
                Connection::of(self.scenario, self.seed, sample, of, when).run(spec)
            })
            .collect();
        let mut summary = Summary::new(came.len() as u64);
        let statistics: [Named; 6] = [
            ("throughput", |c| c.throughput_mbps),
            ("rtt", |c| c.rtt_s),
            ("loss", |c| c.loss),
            ("request_time", |c| c.request_time_s),
            ("rebuffering", |c| c.rebuffering),
            ("bitrate", |c| c.bitrate_mbps),
        ];
        for (name, of) in statistics {
            let set = summary.set(name, Sketch::of(came.iter().map(of)));
            debug_assert!(set.is_ok(), "six good names");
        }
        summary
    }

    /// The algorithm at a point of the permitted box, or another one.
    pub(super) fn spec(&self, point: &Point) -> Spec {
        self.service
            .configuration(0, point)
            .spec()
            .expect("the permitted box lies within the algorithm's ranges")
    }

    /// The reward; the worst that there is without one.
    pub(super) fn reward(&self, summary: &Summary) -> f64 {
        Service::value(self.service.reward(), summary).unwrap_or(0.0)
    }

    fn arms(&self, greedy: bool, context: Context) -> Arms {
        let parts = [7, u64::from(self.aggregate), u64::from(context.0)];
        let mut random = generator(self.seed, &parts);
        let knobs = self.service.knobs().len();
        let count = if greedy { ARMS } else { RANDOM_TRIES };
        let points: Vec<Vec<f64>> = if greedy {
            (0..count as u32).map(|i| halton(i, knobs)).collect()
        } else {
            (0..count).map(|_| (0..knobs).map(|_| random.random()).collect()).collect()
        };
        let epsilon = if greedy { EPSILON } else { 0.0 };
        Arms { tallies: vec![(0.0, 0); count], points, epsilon, random }
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
