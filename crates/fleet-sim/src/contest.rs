//! Who takes part, and how one of them fares with one aggregate.

use std::collections::BTreeMap;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_cc::Spec;
use trimtab_fleet::{Aggregate, Configuration, Context, Interval, Key, Service, Sketch, Summary};
use trimtab_steer::customize::Outcome;
use trimtab_units::Duration;

use super::connection::{Came, Connection, generator};
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
    /// The same, begun where others have come to.
    LearnerFrom(&'a Service, Vec<f64>),
    /// One point of the permitted box.
    Point(Vec<f64>),
    /// One point for each context.
    ByContext(&'a BTreeMap<Context, Vec<f64>>),
    /// Any algorithm.
    Algorithm(Box<Spec>),
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
    /// Intervals after which it fell back to the safe configuration.
    pub(super) fallbacks: Vec<u64>,
    /// The best guess over all contexts at the end.
    pub(super) guess: Option<Vec<f64>>,
    /// The best guesses at the end, by context: knobs and values.
    pub(super) learnt: Vec<(String, Vec<(String, f64)>)>,
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
    pub(super) fn summary(&self, n: u64, spec: Spec) -> Summary {
        let hour = self.interval(n).start(self.service.interval()).as_nanos() / 3_600_000_000_000;
        let when = ((hour % 24 / 8) as usize, matches!((hour / 24 + 3) % 7, 5 | 6));
        let came: Vec<Came> = (0..u64::from(self.scenario.connections))
            .map(|number| {
                let of = (u64::from(self.aggregate), n, number);
                Connection::of(self.scenario, self.seed, of, when).run(spec)
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

    /// The algorithm at a point of the permitted box.
    pub(super) fn spec(&self, point: &[f64]) -> Spec {
        let knobs = self.service.configured(point);
        let algorithm = self.service.algorithm().name.to_owned();
        let configuration = Configuration { version: 0, algorithm, knobs };
        configuration.spec().expect("the permitted box lies within the algorithm's ranges")
    }

    /// The reward; the worst that there is without one.
    pub(super) fn reward(&self, summary: &Summary) -> f64 {
        Service::value(self.service.reward(), summary).unwrap_or(0.0)
    }

    /// Runs the whole time.
    pub(super) fn run(&self, policy: &Policy<'_>) -> Course {
        let mut course = Course::default();
        let learning = match policy {
            Policy::Learner(service) | Policy::LearnerFrom(service, _) => Some(*service),
            _ => None,
        };
        let mut learner = Aggregate::new(self.key());
        if let Policy::LearnerFrom(_, values) = policy {
            learner = learner.starting_at(values.clone());
        }
        let mut arms: BTreeMap<Context, Arms> = BTreeMap::new();
        let intervals = self.scenario.intervals();
        for n in 0..intervals {
            let (interval, context) = (self.interval(n), self.context(n));
            let mut arm = None;
            let spec = match policy {
                Policy::Learner(service) | Policy::LearnerFrom(service, _) => learner
                    .open(service, interval)
                    .spec()
                    .expect("the permitted box lies within the algorithm's ranges"),
                Policy::Point(point) => self.spec(point),
                Policy::ByContext(points) => match points.get(&context) {
                    Some(point) => self.spec(point),
                    None => self.spec(&self.service.start()),
                },
                Policy::Algorithm(spec) => **spec,
                Policy::RandomSearch | Policy::EpsilonGreedy => {
                    let greedy = matches!(policy, Policy::EpsilonGreedy);
                    let arms = arms.entry(context).or_insert_with(|| self.arms(greedy, context));
                    let chosen = arms.choose();
                    arm = Some(chosen);
                    self.spec(&arms.points[chosen])
                }
            };
            let summary = self.summary(n, spec);
            let reward = self.reward(&summary);
            if let Some(service) = learning
                && let Ok(decision) = learner.close(service, interval, &summary)
                && matches!(decision.lesson.outcome, Outcome::FellBack { .. })
            {
                course.fallbacks.push(n);
            }
            if let Some((arm, arms)) = arm.zip(arms.get_mut(&context)) {
                arms.note(arm, reward);
            }
            course.rewards.push(reward);
            if n >= intervals * 2 / 3 {
                course.late.merge(&summary);
            }
        }
        if let Some(service) = learning {
            course.guess = learner.guess(service);
            let contexts = service.contexts();
            let of = |c: Context| {
                let centre = learner.learner(c)?.centre();
                Some((contexts.name(c), service.configured(centre)))
            };
            course.learnt = contexts.all().filter_map(of).collect();
        }
        course
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
