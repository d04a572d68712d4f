//! One connection's part in what an edge reports of its aggregate.

use std::net::IpAddr;

use trimtab_fleet::{Configuration, Control, Interval, Key};
use trimtab_units::{Bytes, Duration, Rate};

use super::book::Observation;
use super::run::Edge;

/// Less says nothing of a rate: what a first window brings within one round trip.
const ACKED_MIN: Bytes = Bytes::new(14_600);

/// What a connection measured since somebody looked at it last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Bytes acknowledged.
    pub acked: Bytes,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// Time in which the application did not hold the sender back.
    pub busy: Duration,
    /// Sum of all round-trip samples.
    pub rtt_sum: Duration,
    /// Their number.
    pub rtt_count: u64,
}

/// What a connection saw since an interval or its configuration began.
#[derive(Clone, Debug, Default)]
struct Seen {
    sums: Measured,
    request_times: Vec<Duration>,
}

impl Seen {
    fn observation(self) -> Option<Observation> {
        let Measured { acked, lost, busy, rtt_sum, rtt_count } = self.sums;
        let all = acked + lost;
        if all.is_zero() && self.request_times.is_empty() {
            return None;
        }
        let measured = acked >= ACKED_MIN && !busy.is_zero();
        Some(Observation {
            throughput: measured
                .then(|| Rate::from_bytes_per_sec_f64(acked.as_f64() / busy.as_secs_f64())),
            rtt: (rtt_count > 0).then(|| rtt_sum / rtt_count),
            loss: (!all.is_zero()).then(|| lost.ratio(all)),
            request_times: self.request_times,
            others: Vec::new(),
            client: None,
        })
    }
}

/// The part of one connection in its aggregate: it follows the configurations, adds up what the
/// connection measures under each, and hands it to the edge once per interval.
///
/// Its host calls [`on_measured`](Self::on_measured) and then [`follow`](Self::follow) several times
/// an interval, and [`hand_in`](Self::hand_in) when the connection ends.
#[derive(Clone, Debug)]
pub struct Part {
    key: Key,
    client: Option<IpAddr>,
    /// Of the configuration that it runs.
    version: Option<u64>,
    interval: Interval,
    seen: Seen,
}

impl Part {
    /// Of a connection that runs no configuration yet.
    pub fn new(key: Key) -> Self {
        let (client, version) = (None, None);
        Self { key, client, version, interval: Interval::default(), seen: Seen::default() }
    }

    /// The same of a connection whose client is known, so that it may be of the control's arm where
    /// arms run side by side. Others run what is tried.
    #[must_use]
    pub fn of_client(self, client: IpAddr) -> Self {
        Self { client: Some(client), ..self }
    }

    /// The aggregate.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether it has had a configuration.
    pub fn has_followed(&self) -> bool {
        self.version.is_some()
    }

    /// Takes in what was measured since the last time.
    pub fn on_measured(&mut self, more: &Measured) {
        let sums = &mut self.seen.sums;
        sums.acked += more.acked;
        sums.lost += more.lost;
        sums.busy += more.busy;
        sums.rtt_sum += more.rtt_sum;
        sums.rtt_count += more.rtt_count;
    }

    /// Takes in how long responses took that have ended.
    pub fn on_responses(&mut self, times: impl IntoIterator<Item = Duration>) {
        self.seen.request_times.extend(times);
    }

    /// Hands in what it saw of an interval that is over, and gives the configuration where it is to run
    /// another one. Where its client is of the control's arm, that is the control's.
    pub fn follow(&mut self, edge: &Edge) -> Option<Configuration> {
        let force = edge.in_force(&self.key)?;
        let interval = edge.interval(&force);
        let control = force.control_for(&self.key, self.client, interval);
        let version = control.map_or(force.configuration.version, |control| control.version);
        let changed = self.version != Some(version);
        if changed || interval != self.interval {
            self.hand_in(edge);
            (self.version, self.interval) = (Some(version), interval);
        }
        let chosen = || control.map_or_else(|| force.configuration.clone(), Control::configuration);
        changed.then(chosen)
    }

    /// The connection runs something else than the engine chose, until it follows again.
    pub fn pause(&mut self, edge: &Edge) {
        self.hand_in(edge);
        self.version = None;
    }

    /// Hands in what it saw until now: the connection ends, or runs something else from now on.
    pub fn hand_in(&mut self, edge: &Edge) {
        let seen = std::mem::take(&mut self.seen);
        if let Some(version) = self.version
            && let Some(observation) = seen.observation()
        {
            let observation = Observation { client: self.client, ..observation };
            edge.record(&self.key, version, self.interval, &observation);
        }
    }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::{Report, ServiceName, Sketch};
    use trimtab_units::Time;

    use super::super::book::InForce;
    use super::*;

    /// So long that none ends in a test.
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn learn(edge: &Edge, key: &Key, version: u64) {
        let knobs = vec![("gamma".to_owned(), 10.0 * (version + 1) as f64)];
        let algorithm = "vivace".to_owned();
        let configuration = Configuration { version, algorithm, knobs, control: None };
        edge.learn(key.clone(), InForce { configuration, interval: DAY });
    }

    fn megabyte(ms: u64) -> Measured {
        Measured {
            acked: Bytes::new(1_000_000),
            lost: Bytes::new(10_000),
            busy: Duration::from_millis(ms),
            rtt_sum: Duration::from_millis(90),
            rtt_count: 3,
        }
    }

    #[test]
    fn what_it_measured_counts_for_the_version_that_it_ran() {
        let edge = Edge::alone();
        let service: ServiceName = "tv".parse().unwrap();
        let prefix = trimtab_fleet::Prefix::of([203, 0, 113, 9].into(), [24, 48]);
        let mut part = Part::new(Key { service, prefix });
        assert_eq!(part.key().to_string(), "tv/203.0.113.0/24");

        part.on_measured(&megabyte(1000));
        assert_eq!(part.follow(&edge), None, "nobody has told one yet");
        learn(&edge, &part.key().clone(), 1);
        assert_eq!(part.follow(&edge).map(|c| c.to_string()).as_deref(), Some("vivace:gamma=20"));
        // Half of it was idle.
        part.on_measured(&megabyte(500));
        part.on_measured(&megabyte(500));
        part.on_responses([Duration::from_secs(3)]);
        assert_eq!(part.follow(&edge), None, "it runs it");
        learn(&edge, &part.key().clone(), 2);
        assert_eq!(part.follow(&edge).unwrap().version, 2);
        part.on_measured(&megabyte(2000));
        part.pause(&edge);
        // A fallback runs: that says nothing of the engine's choice.
        part.on_measured(&megabyte(100));
        assert_eq!(part.follow(&edge).unwrap().version, 2, "it runs it again");
        // The acknowledgement of a request is no rate.
        part.on_measured(&Measured { acked: Bytes::new(900), ..megabyte(1) });
        part.hand_in(&edge);

        let seen = |report: &Report, name: &str| {
            let sketch = report.summary.get(name);
            let (mean, count) = (sketch.and_then(Sketch::mean), report.summary.connections());
            (mean.map(|mean| (mean * 1000.0).round() / 1000.0), count)
        };
        let reports = edge.close(Time::MAX);
        let [first, second] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!((first.version, second.version), (1, 2));
        assert_eq!(seen(first, "throughput"), (Some(16.0), 1), "2 MB in a second");
        assert_eq!(seen(first, "rtt").0, Some(0.03));
        assert_eq!(seen(first, "loss").0, Some(0.01));
        assert_eq!(seen(first, "request_time").0, Some(3.0));
        assert_eq!(seen(second, "throughput"), (Some(4.0), 2), "the second had no rate");
        assert_eq!(seen(second, "request_time").0, None);
    }

    /// A connection whose client is unknown runs what is tried, as on an edge of an older version.
    #[test]
    fn a_client_of_the_control_runs_it_and_is_reported_with_it() {
        let edge = Edge::alone();
        let key: Key = "tv/203.0.113.0/24".parse().unwrap();
        let (algorithm, knobs) = ("cubic".to_owned(), Vec::new());
        let control = Control { version: 6, algorithm, knobs, share: 0.5, seed: 3 };
        let (algorithm, knobs) = ("vivace".to_owned(), Vec::new());
        let configuration = Configuration { version: 7, algorithm, knobs, control: Some(control) };
        edge.learn(key.clone(), InForce { configuration, interval: DAY });
        let force = edge.in_force(&key).unwrap();
        let mut connections = [0, 0];
        for last in (0..=255).step_by(16) {
            let client = IpAddr::from([203, 0, 113, last]);
            let is_control = force.control_for(&key, Some(client), edge.interval(&force)).is_some();
            let mut part = Part::new(key.clone()).of_client(client);
            let runs = part.follow(&edge).unwrap();
            let expected = if is_control { (6, "cubic") } else { (7, "vivace") };
            assert_eq!((runs.version, runs.algorithm.as_str()), expected);
            part.on_measured(&megabyte(1000));
            part.hand_in(&edge);
            connections[usize::from(is_control)] += 1;
        }
        let mut unknown = Part::new(key.clone());
        assert_eq!(unknown.follow(&edge).unwrap().version, 7);
        unknown.on_measured(&megabyte(1000));
        unknown.hand_in(&edge);
        assert!(connections[0] > 0 && connections[1] > 0, "{connections:?}");
        let reports = edge.close(Time::MAX);
        let of = |version| {
            let of = |report: &&Report| report.version == version;
            reports.iter().find(of).map(|report| report.summary.connections())
        };
        assert_eq!((of(7), of(6)), (Some(connections[0] + 1), Some(connections[1])));
    }
}
