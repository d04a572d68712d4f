//! Aggregates of a fleet that share bottlenecks, and what their connections see.

use std::net::IpAddr;
use std::sync::Arc;

use trimtab_cc::Spec;
use trimtab_fleet::{CONTROL, Context, Control, Interval, Key, Point, Service, Sketch, Summary};
use trimtab_units::Duration;

use super::bottleneck::{Bottleneck, Came, CrossCame};
use super::connection::{Connection, Sample};
use super::memo::Memo;
use super::scenario::FleetScenario;

/// The run begins on a Monday: four days after 1970-01-01, a Thursday.
const BEGINS: Duration = Duration::from_secs(4 * 24 * 3600);

/// A statistic of a connection, with its name.
type Named<T> = (&'static str, fn(&T) -> f64);

/// What an edge reports of each connection.
const REPORTED: [Named<Came>; 6] = [
    ("throughput", |c| c.throughput_mbps),
    ("rtt", |c| c.rtt_s),
    ("loss", |c| c.loss),
    ("request_time", |c| c.request_time_s),
    ("rebuffering", |c| c.rebuffering),
    ("bitrate", |c| c.bitrate_mbps),
];

/// What is known of the flows of others.
const OF_OTHERS: [Named<CrossCame>; 3] =
    [("throughput", |c| c.throughput_mbps), ("rtt", |c| c.rtt_s), ("loss", |c| c.loss)];

/// One aggregate of the fleet under one service.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) scenario: &'a FleetScenario,
    pub(super) service: &'a Service,
    pub(super) seed: u64,
    pub(super) aggregate: u32,
}

/// A scenario with a seed, and what was seen of each group of its aggregates.
pub(super) struct Fleet<'a> {
    pub(super) scenario: &'a FleetScenario,
    pub(super) seed: u64,
    memos: Vec<Arc<Memo>>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(scenario: &'a FleetScenario, seed: u64) -> Self {
        let groups = scenario.aggregates.div_ceil(scenario.links.shared.aggregates);
        let memos = (0..groups).map(|_| Arc::new(Memo::of(scenario))).collect();
        Self { scenario, seed, memos }
    }
}

/// Aggregates that share bottlenecks; a single one where none do.
#[derive(Clone)]
pub(super) struct Group<'a> {
    pub(super) fields: Vec<Field<'a>>,
    memo: Arc<Memo>,
}

/// What some clusters of an aggregate's clients run next to what is tried.
pub(super) type NextToIt = Option<(Control, Spec)>;

/// What was seen of an aggregate in an interval.
pub(super) struct Seen {
    /// Of its connections.
    pub(super) summary: Summary,
    /// The same by the arm of each, and then by its arm in the next interval, where arms run side by
    /// side.
    pub(super) arms: Option<[[Summary; 2]; 2]>,
    /// Of the flows of others on their bottlenecks, for each entry of the scenario's `cross`.
    pub(super) cross: Vec<Summary>,
}

impl Seen {
    /// What several that are steered as one saw; the flows of others are not among it.
    pub(super) fn of_all(all: &[&Self]) -> Self {
        let arms = |now: usize, next: usize| {
            merged(all.iter().filter_map(|one| Some(&one.arms.as_ref()?[now][next])))
        };
        let has_arms = all.iter().any(|one| one.arms.is_some());
        let by_arm = [[arms(0, 0), arms(0, 1)], [arms(1, 0), arms(1, 1)]];
        Self {
            summary: merged(all.iter().map(|one| &one.summary)),
            arms: has_arms.then_some(by_arm),
            cross: Vec::new(),
        }
    }
}

/// All connections of some summaries.
pub(super) fn merged<'a>(all: impl Iterator<Item = &'a Summary>) -> Summary {
    let mut merged = Summary::default();
    all.for_each(|one| merged.merge(one));
    merged
}

/// The values of some connections or flows, by name.
fn summary<T>(of: &[T], names: &[Named<T>]) -> Summary {
    let mut summary = Summary::new(of.len() as u64);
    for (name, value) in names {
        let set = summary.set(name, Sketch::of(of.iter().map(value)));
        debug_assert!(set.is_ok(), "few names, and good ones");
    }
    summary
}

impl<'a> Group<'a> {
    /// All of a fleet with a seed. The last one has what is left.
    pub(super) fn all(fleet: &'a Fleet<'_>, service: &'a Service) -> Vec<Self> {
        let &Fleet { scenario, seed, ref memos } = fleet;
        let size = scenario.links.shared.aggregates;
        let group = |(n, memo): (u32, &Arc<Memo>)| Self {
            fields: (n * size..scenario.aggregates.min((n + 1) * size))
                .map(|aggregate| Field { scenario, service, seed, aggregate })
                .collect(),
            memo: Arc::clone(memo),
        };
        (0..).zip(memos).map(group).collect()
    }

    /// What the connections of an interval see, with a congestion control for each aggregate. The
    /// connections are the same for all.
    pub(super) fn seen(&self, n: u64, specs: &[Option<Spec>], sample: Sample) -> Arc<Vec<Seen>> {
        match sample {
            Sample::Run => self.memo.get(n, specs, || self.look(n, specs, &[], sample)),
            Sample::Apart => Arc::new(self.look(n, specs, &[], sample)),
        }
    }

    /// The same for aggregates of which some run a control next to it.
    pub(super) fn seen_by_arm(
        &self,
        n: u64,
        specs: &[Option<Spec>],
        controls: &[NextToIt],
    ) -> Arc<Vec<Seen>> {
        match controls.iter().all(Option::is_none) {
            true => self.seen(n, specs, Sample::Run),
            false => Arc::new(self.look(n, specs, controls, Sample::Run)),
        }
    }

    fn look(
        &self,
        n: u64,
        specs: &[Option<Spec>],
        controls: &[NextToIt],
        sample: Sample,
    ) -> Vec<Seen> {
        let leader = self.fields[0];
        let Field { scenario, seed, .. } = leader;
        let shared = &scenario.links.shared;
        let hour =
            leader.interval(n).start(leader.service.interval()).as_nanos() / 3_600_000_000_000;
        let when = ((hour % 24 / 8) as usize, matches!((hour / 24 + 3) % 7, 5 | 6));
        let count = u64::from(scenario.connections);
        let on_each = u64::from(shared.connections);
        let mut came: Vec<Vec<Came>> = vec![Vec::new(); self.fields.len()];
        let mut gone: Vec<Vec<CrossCame>> = vec![Vec::new(); shared.cross.len()];
        for from in (0..count).step_by(on_each as usize) {
            let numbers = from..count.min(from + on_each);
            let (mut members, mut connections, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
            for (member, field) in self.fields.iter().enumerate() {
                for number in numbers.clone() {
                    let of = (u64::from(field.aggregate), n, number);
                    members.push(member);
                    let control = controls.get(member).and_then(Option::as_ref);
                    let drawn = control.filter(|(c, _)| field.arm(c, number, n) == CONTROL);
                    chosen.push(drawn.map_or(specs[member], |(_, spec)| Some(*spec)));
                    connections.push(Connection::of(scenario, seed, sample, of, when));
                }
            }
            let (steered, others) = Bottleneck { connections, shared }.run(&chosen);
            members.iter().zip(steered).for_each(|(&member, one)| came[member].push(one));
            gone.iter_mut().zip(others).for_each(|(all, one)| all.push(one));
        }
        let cross: Vec<Summary> = gone.iter().map(|of| summary(of, &OF_OTHERS)).collect();
        let seen = |(member, of): (usize, &Vec<Came>)| {
            let control = controls.get(member).and_then(Option::as_ref);
            let arms = control.map(|(control, _)| self.fields[member].by_arm(control, n, of));
            Seen { summary: summary(of, &REPORTED), arms, cross: cross.clone() }
        };
        came.iter().enumerate().map(seen).collect()
    }

    /// The same with one congestion control for all of them.
    pub(super) fn seen_alike(&self, n: u64, spec: Option<Spec>, sample: Sample) -> Arc<Vec<Seen>> {
        self.seen(n, &vec![spec; self.fields.len()], sample)
    }
}

impl Field<'_> {
    /// The arm of a connection by its number: clients are spread evenly over the prefix, as one of
    /// each of 16 clusters after the other.
    fn arm(&self, control: &Control, number: u64, n: u64) -> usize {
        let prefix = self.key().prefix;
        let host = (number % 16 * 16 + number / 16 % 16) as u8;
        let client = match prefix.address() {
            IpAddr::V4(base) => IpAddr::from((base.to_bits() | u32::from(host)).to_be_bytes()),
            other => other,
        };
        control.arm(&prefix, client, self.interval(n))
    }

    /// What connections saw by their arm, and then by that of the next interval.
    fn by_arm(&self, control: &Control, n: u64, came: &[Came]) -> [[Summary; 2]; 2] {
        let mut parts = [[(); 2]; 2].map(|arms| arms.map(|()| Vec::new()));
        for (number, one) in (0..).zip(came) {
            let [now, next] = [n, n + 1].map(|n| self.arm(control, number, n));
            parts[now][next].push(*one);
        }
        parts.map(|arms| arms.map(|part| summary(&part, &REPORTED)))
    }

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
}
