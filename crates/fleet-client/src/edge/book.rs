//! What an edge knows: the configurations in force, and what connections saw of the intervals that are not over yet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use trimtab_fleet::{
    CONTROL, Configuration, Control, Interval, Key, Recorder, Report, Summary, TREATMENT,
};
use trimtab_units::{Duration, Rate, Time};

/// Aggregates that are known at a time. Beyond, destinations have no configuration, so that who
/// connects from everywhere cannot fill the memory.
const AGGREGATES_MAX: usize = 100_000;
/// An aggregate that no connection has asked for in so many intervals is forgotten.
const IDLE_INTERVALS: u64 = 6;
/// The same where the engine has no configuration, so that there is no interval to go by.
const IDLE_UNKNOWN: Duration = Duration::from_secs(600);
/// Nobody records what is older; an interval lasts a day at most.
const AGE_MAX: Duration = Duration::from_secs(3 * 24 * 3600);
/// Between questions for an aggregate that the engine has nothing about: a service may be added there at any time.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// The configuration of an aggregate, and how long the intervals of its service are.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// An algorithm and its knobs.
    pub configuration: Configuration,
    /// Length of the intervals, which are counted from 1970.
    pub interval: Duration,
}

impl InForce {
    /// The control, where the aggregate has one and this client is of its arm in an interval.
    pub fn control_for(
        &self,
        key: &Key,
        client: Option<IpAddr>,
        interval: Interval,
    ) -> Option<&Control> {
        self.configuration.control_for(&key.prefix, client?, interval)
    }
}

/// What one connection saw in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// What it got while it had something to send.
    pub throughput: Option<Rate>,
    /// Mean round-trip time.
    pub rtt: Option<Duration>,
    /// Lost share of its packets, 0 to 1.
    pub loss: Option<f64>,
    /// How long each of its requests took.
    pub request_times: Vec<Duration>,
    /// What the application's logs say: statistics of the service's `statistics`, and `rebuffering`.
    pub others: Vec<(String, f64)>,
    /// Its client, where that is known: what clusters of clients saw before they are drawn for an
    /// arm is reported, too.
    pub client: Option<IpAddr>,
}

/// An aggregate that has been asked for.
#[derive(Clone, Debug)]
struct Known {
    force: Option<Arc<InForce>>,
    used_at: Time,
    /// When the engine was last asked for the first configuration.
    asked_at: Option<Time>,
}

impl Known {
    fn new(now: Time) -> Self {
        Self { force: None, used_at: now, asked_at: None }
    }
}

/// What connections of one aggregate saw in one interval under one version.
#[derive(Clone, Debug)]
struct Recording {
    length: Duration,
    /// By the arm of the next interval; all in the first, where there are no arms.
    arms: [Recorded; 2],
    /// Whether the arm of the next interval is known of all of them.
    by_next: bool,
}

/// What some connections saw.
#[derive(Clone, Debug, Default)]
struct Recorded {
    connections: u64,
    recorders: BTreeMap<String, Recorder>,
}

impl Recorded {
    fn add(&mut self, seen: &Observation) {
        self.connections += 1;
        let mut add = |name: &str, value: f64| {
            self.recorders.entry(name.to_owned()).or_default().record(value);
        };
        if let Some(throughput) = seen.throughput {
            add("throughput", throughput.mbps());
        }
        if let Some(rtt) = seen.rtt {
            add("rtt", rtt.as_secs_f64());
        }
        if let Some(loss) = seen.loss {
            add("loss", loss);
        }
        seen.request_times.iter().for_each(|time| add("request_time", time.as_secs_f64()));
        seen.others.iter().for_each(|(name, value)| add(name, *value));
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::new(self.connections);
        for (name, recorder) in &self.recorders {
            // What cannot be a statistic's name is nothing that a reward could read.
            let _ = summary.set(name, recorder.sketch());
        }
        summary
    }
}

/// An aggregate, an interval, and the version of a configuration that was in force in it, or in part of it.
type Place = (Key, Interval, u64);

/// A report, and how long its interval was.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// What is to be reported.
    pub report: Report,
    /// The length by which its interval is counted.
    pub length: Duration,
}

/// Configurations in, reports out; no clock, no socket.
#[derive(Clone, Debug, Default)]
pub struct Book {
    known: BTreeMap<Key, Known>,
    /// Aggregates whose configuration has changed, or that were forgotten, since somebody took
    /// these; `None` where nobody ever did.
    news: Option<BTreeSet<Key>>,
    recordings: BTreeMap<Place, Recording>,
    /// What was reported lately, with the ends of the intervals: the engine takes each report once,
    /// so there is no second one.
    reported: BTreeMap<(Key, Interval), Time>,
}

impl Book {
    /// The configuration of an aggregate. One that was never asked for is [to be asked for](Self::to_ask) first.
    pub fn in_force(&mut self, key: &Key, now: Time) -> Option<Arc<InForce>> {
        if let Some(known) = self.known.get_mut(key) {
            known.used_at = now;
            return known.force.clone();
        }
        if self.known.len() < AGGREGATES_MAX {
            self.known.insert(key.clone(), Known::new(now));
        }
        None
    }

    /// At most so many aggregates without a configuration that the engine was not asked for lately.
    pub fn to_ask(&self, now: Time, most: usize) -> Vec<Key> {
        let due = |known: &Known| {
            known.force.is_none() && known.asked_at.is_none_or(|at| now.since(at) >= ASK_AGAIN)
        };
        self.known
            .iter()
            .filter(|(_, known)| due(known))
            .map(|(key, _)| key.clone())
            .take(most)
            .collect()
    }

    /// The engine has answered a question for these, with what [`learn`](Self::learn) was told or with nothing.
    pub fn asked(&mut self, keys: &[Key], now: Time) {
        for key in keys {
            if let Some(known) = self.known.get_mut(key) {
                known.asked_at = Some(now);
            }
        }
    }

    /// Aggregates that the engine was asked for and has nothing about.
    pub fn unanswered(&self) -> impl Iterator<Item = &Key> {
        let without = |known: &Known| known.force.is_none() && known.asked_at.is_some();
        self.known.iter().filter(move |(_, known)| without(known)).map(|(key, _)| key)
    }

    /// Aggregates and the versions of their configurations.
    pub fn versions(&self) -> impl Iterator<Item = (&Key, Option<u64>)> {
        self.known.iter().map(|(key, known)| {
            (key, known.force.as_ref().map(|force| force.configuration.version))
        })
    }

    /// How many aggregates have been asked for.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// All configurations.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &InForce)> {
        self.known.iter().filter_map(|(key, known)| Some((key, known.force.as_deref()?)))
    }

    /// The engine has another configuration for an aggregate.
    pub fn learn(&mut self, key: Key, force: InForce, now: Time) {
        if let Some(news) = &mut self.news {
            news.insert(key.clone());
        }
        let known = self.known.entry(key).or_insert_with(|| Known::new(now));
        known.force = Some(Arc::new(force));
    }

    /// The intervals of a service have this length from now on. What was recorded keeps the one
    /// that it was recorded by.
    pub fn set_length(&mut self, service: &str, length: Duration) {
        for (key, known) in &mut self.known {
            let other = known.force.as_ref().filter(|force| force.interval != length);
            if let Some(force) = other.filter(|_| key.service.as_str() == service) {
                known.force = Some(Arc::new(InForce { interval: length, ..(**force).clone() }));
            }
        }
    }

    /// Aggregates whose configuration has changed, or that were forgotten, since the last time that
    /// anybody asked; all, the first time.
    pub fn take_news(&mut self) -> BTreeSet<Key> {
        let news = self.news.replace(BTreeSet::new());
        news.unwrap_or_else(|| self.known.keys().cloned().collect())
    }

    /// The configuration of an aggregate, without asking for it.
    pub fn known(&self, key: &Key) -> Option<Arc<InForce>> {
        self.known.get(key)?.force.clone()
    }

    /// Adds what a connection saw under this version. Where the version changes within an interval, each is reported on
    /// its own. What comes when the interval was reported is left out, which is false.
    pub fn record(
        &mut self,
        key: &Key,
        version: u64,
        interval: Interval,
        seen: &Observation,
    ) -> bool {
        let Some(known) = self.known.get(key) else { return false };
        let Some(force) = &known.force else { return false };
        // Counted by another length it would be of another year, and its end would never come.
        let begins = interval.start(force.interval);
        if begins > known.used_at + force.interval * 2 || begins + AGE_MAX < known.used_at {
            return false;
        }
        if self.reported.contains_key(&(key.clone(), interval)) {
            return false;
        }
        let length = force.interval;
        let next = force
            .configuration
            .control
            .as_ref()
            .zip(seen.client)
            .map(|(control, client)| control.arm(&key.prefix, client, interval.next()));
        let empty = || Recording { length, arms: Default::default(), by_next: true };
        let of = (key.clone(), interval, version);
        let recording = self.recordings.entry(of).or_insert_with(empty);
        recording.by_next &= next.is_some();
        recording.arms[next.unwrap_or(TREATMENT)].add(seen);
        true
    }

    /// Reports of the intervals that ended at least `after` ago, which are over for this book; and
    /// aggregates that nobody has asked for in a long time are forgotten.
    pub fn close(&mut self, now: Time, after: impl Fn(Duration) -> Duration) -> Vec<Ended> {
        let over = |(_, interval, _): &Place, recording: &Recording| {
            now >= interval.end(recording.length) + after(recording.length)
        };
        let ended: Vec<Place> = self
            .recordings
            .iter()
            .filter(|(at, recording)| over(at, recording))
            .map(|(at, _)| at.clone())
            .collect();
        let mut reports = Vec::new();
        for at in ended {
            let Some(recording) = self.recordings.remove(&at) else { continue };
            let (key, interval, version) = at;
            let forgotten = interval.end(recording.length) + recording.length;
            self.reported.insert((key.clone(), interval), forgotten);
            let report = report(key, interval, version, &recording);
            reports.push(Ended { report, length: recording.length });
        }
        self.reported.retain(|_, until| now < *until);
        let mut news = self.news.as_mut();
        self.known.retain(|key, known| {
            let idle =
                known.force.as_ref().map_or(IDLE_UNKNOWN, |force| force.interval * IDLE_INTERVALS);
            let stays = now.since(known.used_at) < idle;
            if let Some(news) = news.as_mut().filter(|_| !stays) {
                news.insert(key.clone());
            }
            stays
        });
        reports
    }
}

fn report(key: Key, interval: Interval, version: u64, recording: &Recording) -> Report {
    let next = [&recording.arms[TREATMENT], &recording.arms[CONTROL]].map(Recorded::summary);
    let mut summary = next[TREATMENT].clone();
    summary.merge(&next[CONTROL]);
    Report { key, interval, version, summary, next: recording.by_next.then_some(next) }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::Sketch;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Time {
        Time::from_secs(1_795_320_000 + seconds)
    }

    fn interval(seconds: u64) -> Interval {
        Interval::at(at(seconds), MINUTE)
    }

    fn key() -> Key {
        "tv/203.0.113.0/24".parse().unwrap()
    }

    fn force(version: u64) -> InForce {
        let knobs = vec![("gamma".to_owned(), 10.0 * version as f64)];
        let algorithm = "vivace".to_owned();
        let configuration = Configuration { version, algorithm, knobs, control: None };
        InForce { configuration, interval: MINUTE }
    }

    /// With a control that half of the clusters run.
    fn with_control(version: u64) -> InForce {
        let mut force = force(version);
        let (algorithm, knobs) = ("cubic".to_owned(), Vec::new());
        let control = Control { version: version - 1, algorithm, knobs, share: 0.5, seed: 7 };
        force.configuration.control = Some(control);
        force
    }

    fn saw(mbps: f64) -> Observation {
        Observation { throughput: Some(Rate::from_mbps(mbps)), ..Observation::default() }
    }

    fn none(_: Duration) -> Duration {
        Duration::ZERO
    }

    #[test]
    fn what_is_asked_for_is_unknown_until_the_engine_tells() {
        let mut book = Book::default();
        assert_eq!(book.in_force(&key(), at(0)), None);
        assert_eq!(book.to_ask(at(0), 9), [key()]);
        book.record(&key(), 0, interval(0), &saw(1.0));
        book.learn(key(), force(3), at(1));
        assert_eq!(book.to_ask(at(1), 9), []);
        assert_eq!(book.versions().next(), Some((&key(), Some(3))));
        assert_eq!(book.in_force(&key(), at(2)).unwrap().configuration.version, 3);
        assert_eq!(book.close(at(120), none), [], "nothing was in force when it was recorded");
    }

    #[test]
    fn an_interval_is_reported_once_when_it_is_over() {
        let mut book = Book::default();
        book.learn(key(), force(1), at(0));
        let mut seen = saw(8.0);
        (seen.rtt, seen.loss) = (Some(Duration::from_millis(40)), Some(0.01));
        seen.request_times = vec![Duration::from_millis(500), Duration::from_millis(1500)];
        seen.others = vec![("bitrate".to_owned(), 3.0)];
        book.record(&key(), 1, interval(5), &seen);
        book.record(&key(), 1, interval(5), &saw(4.0));
        book.record(&key(), 1, interval(65), &saw(2.0));
        let grace = |_| Duration::from_secs(3);
        assert_eq!(book.close(at(62), grace), []);
        let reports = book.close(at(63), grace);
        let [Ended { report, .. }] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!((report.version, report.interval), (1, interval(5)));
        assert_eq!(report.summary.connections(), 2);
        let mean = |name: &str| report.summary.get(name).unwrap().mean().unwrap();
        for (name, expected) in [
            ("throughput", 6.0),
            ("rtt", 0.04),
            ("loss", 0.01),
            ("request_time", 1.0),
            ("bitrate", 3.0),
        ] {
            assert!((mean(name) - expected).abs() < 1e-5, "{name} {}", mean(name));
        }
        assert_eq!(book.close(at(64), grace), []);
        assert_eq!(book.close(at(123), grace).len(), 1);
    }

    #[test]
    fn what_comes_after_the_report_makes_no_second_one() {
        let mut book = Book::default();
        book.learn(key(), force(1), at(0));
        book.record(&key(), 1, interval(5), &saw(4.0));
        assert_eq!(book.close(at(60), none).len(), 1);
        book.record(&key(), 1, interval(5), &saw(9.0));
        book.record(&key(), 1, interval(65), &saw(8.0));
        let reports = book.close(at(120), none);
        assert_eq!(reports.iter().map(|r| r.report.interval).collect::<Vec<_>>(), [interval(65)]);
    }

    #[test]
    fn intervals_of_another_length_are_told_apart() {
        let mut book = Book::default();
        book.learn(key(), force(1), at(0));
        book.in_force(&key(), at(0));
        book.record(&key(), 1, interval(5), &saw(4.0));
        let two = MINUTE * 2;
        book.set_length("vod", two);
        assert_eq!(book.in_force(&key(), at(30)).unwrap().interval, MINUTE);
        book.set_length("tv", two);
        assert_eq!(book.in_force(&key(), at(30)).unwrap().interval, two);
        // A connection that counts by the old length still, and one that does not.
        book.record(&key(), 1, interval(30), &saw(4.0));
        book.record(&key(), 1, Interval::at(at(125), two), &saw(4.0));
        let ended = |book: &mut Book, seconds| -> Vec<(Interval, Duration)> {
            let ended = book.close(at(seconds), none);
            ended.iter().map(|one| (one.report.interval, one.length)).collect()
        };
        assert_eq!(ended(&mut book, 60), [(interval(5), MINUTE)]);
        assert_eq!(ended(&mut book, 360), [(Interval::at(at(125), two), two)]);
        assert!(book.recordings.is_empty(), "nothing waits for another year");
    }

    #[test]
    fn each_version_of_an_interval_is_reported() {
        let mut book = Book::default();
        book.learn(key(), force(2), at(0));
        for (version, mbps) in [(1, 1.0), (2, 6.0), (1, 3.0), (2, 8.0)] {
            book.record(&key(), version, interval(5), &saw(mbps));
        }
        let reports = book.close(at(60), none);
        for (Ended { report, .. }, (version, expected)) in reports.iter().zip([(1, 2.0), (2, 7.0)])
        {
            assert_eq!((report.version, report.summary.connections()), (version, 2));
            let mean = report.summary.get("throughput").unwrap().mean().unwrap();
            assert!((mean - expected).abs() < 1e-5, "{mean}");
        }
        assert_eq!(reports.len(), 2);
        book.record(&key(), 1, interval(5), &saw(9.0));
        assert_eq!(book.close(at(120), none), [], "the interval was reported");
    }

    #[test]
    fn where_arms_run_side_by_side_reports_stand_by_the_arm_of_the_next_interval() {
        let mut book = Book::default();
        let force = with_control(4);
        book.learn(key(), force.clone(), at(0));
        let of = |client: u8| Some(IpAddr::from([203, 0, 113, client]));
        let now = interval(5);
        for client in 0..=255 {
            let arm = force.control_for(&key(), of(client), now);
            let version = arm.map_or(4, |control| control.version);
            let seen = Observation { client: of(client), ..saw(f64::from(client)) };
            book.record(&key(), version, now, &seen);
        }
        let reports = book.close(at(60), none);
        let versions: Vec<u64> = reports.iter().map(|one| one.report.version).collect();
        assert_eq!(versions, [3, 4], "each arm has its report");
        let mut connections = 0;
        for Ended { report, .. } in &reports {
            let next = report.next.as_ref().unwrap();
            connections += report.summary.connections();
            let is_control = |client: &u8| {
                let now = force.control_for(&key(), of(*client), now).is_some() as u64;
                report.version == 4 - now
                    && force.control_for(&key(), of(*client), now_next()).is_some()
            };
            let drawn: Vec<u8> = (0..=255).filter(is_control).collect();
            assert_eq!(next[CONTROL].connections(), drawn.len() as u64);
            let sum: f64 = drawn.iter().map(|client| f64::from(*client)).sum();
            let found = next[CONTROL].get("throughput").map_or(0.0, Sketch::sum);
            assert!((found - sum).abs() < 1e-3, "{found} {sum}");
            let halves = next[TREATMENT].connections() + next[CONTROL].connections();
            assert_eq!(halves, report.summary.connections());
        }
        assert_eq!(connections, 256);
        // Of one whose client is unknown nobody can tell.
        book.record(&key(), 4, now_next(), &Observation { client: of(9), ..saw(1.0) });
        book.record(&key(), 4, now_next(), &saw(2.0));
        let [Ended { report, .. }] = &book.close(at(120), none)[..] else { panic!("one report") };
        assert_eq!((report.next.as_ref(), report.summary.connections()), (None, 2));
    }

    fn now_next() -> Interval {
        interval(5).next()
    }

    #[test]
    fn who_is_not_asked_for_is_forgotten() {
        let mut book = Book::default();
        book.learn(key(), force(1), at(0));
        book.close(at(60 * 5), none);
        assert_eq!(book.all().count(), 1);
        book.close(at(60 * 6), none);
        assert_eq!(book.all().count(), 0);
    }

    #[test]
    fn news_are_what_changed_or_was_forgotten_since_they_were_taken() {
        let other: Key = "tv/198.51.100.0/24".parse().unwrap();
        let mut book = Book::default();
        book.learn(key(), force(1), at(0));
        assert_eq!(book.take_news(), [key()].into());
        assert_eq!(book.take_news(), [].into());
        book.learn(other.clone(), force(1), at(30));
        assert_eq!(book.take_news(), [other.clone()].into());
        book.close(at(60 * 6), none);
        assert_eq!(book.take_news(), [key()].into());
        assert_eq!((book.known(&key()), book.known(&other).is_some()), (None, true));
        // To look is not to use.
        book.close(at(60 * 6 + 30), none);
        assert_eq!(book.known(&other), None);
    }

    #[test]
    fn what_the_engine_does_not_know_is_asked_again_now_and_then_and_forgotten() {
        let mut book = Book::default();
        book.in_force(&key(), at(0));
        assert_eq!((book.to_ask(at(0), 0), book.to_ask(at(0), 1)), (vec![], vec![key()]));
        assert_eq!(book.unanswered().count(), 0);
        book.asked(&[key()], at(0));
        assert_eq!(book.unanswered().collect::<Vec<_>>(), [&key()]);
        assert_eq!(book.to_ask(at(29), 1), []);
        assert_eq!(book.to_ask(at(30), 1), [key()]);
        book.in_force(&key(), at(300));
        book.close(at(899), none);
        assert_eq!(book.versions().count(), 1);
        book.close(at(900), none);
        assert_eq!(book.versions().count(), 0);
    }

    #[test]
    fn there_is_an_end_to_the_aggregates() {
        let mut book = Book::default();
        for i in 0..AGGREGATES_MAX as u32 + 5 {
            let prefix = std::net::Ipv4Addr::from(i << 8);
            book.in_force(&format!("tv/{prefix}/24").parse().unwrap(), at(0));
        }
        assert_eq!(book.versions().count(), AGGREGATES_MAX);
    }
}
