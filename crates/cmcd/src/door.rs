//! From lines of a log to reports to the engine: statistics of each session, next to what agents
//! and servers measured of the same aggregate in the same interval.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use trimtab_fleet_client::edge::{
    CONTROL, Control, Edge, InForce, Interval, Key, Observation, Status, Together,
};
use trimtab_units::{Duration, Rate, Time};

use crate::memory::{KeptAggregate, KeptVersion};
use crate::{Event, IDLE, Post, Reader, Request, Sessions, Slot, Statistics};

/// Aggregates whose versions are kept; an edge has no more.
const AGGREGATES_MAX: usize = 100_000;
/// Versions of one aggregate, the latest: an interval has two, or few more.
const VERSIONS_MAX: usize = 8;
/// After a restart it is known what was in force meanwhile, if that was not longer.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// So long after it was handed in, a report is at the engine, if the engine answers. What a process
/// handed in later than that before its end is handed in again: the engine takes each report once.
const DELIVERED: Duration = Duration::from_secs(10);

/// What has come through the door.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines of the log.
    pub lines: u64,
    /// Lines with CMCD that count for the service.
    pub requests: u64,
    /// Reports that players sent.
    pub reports: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Why the last of them could not.
    pub last_error: Option<String>,
    /// Requests and reports of intervals that were handed in: they came later than `wait` after its
    /// end.
    pub late: u64,
    /// Requests and reports of which it is unknown what was in force: the engine had not answered
    /// yet, or the log has them from before the start.
    pub unknown: u64,
    /// What was handed in for the engine: of each session one for each interval and version.
    pub handed_in: u64,
}

/// A version, the length of its intervals, and what some clusters of clients run instead.
#[derive(Clone, Debug, PartialEq)]
struct Version {
    number: u64,
    interval: Duration,
    control: Option<Control>,
}

/// What was in force when.
#[derive(Debug, Default)]
struct Versions {
    /// Each with when it was first seen, oldest first; `None` where it is unknown from then on.
    known: VecDeque<(Time, Option<Version>)>,
    used: Time,
}

impl Versions {
    fn note(&mut self, force: Option<Arc<InForce>>, now: Time) {
        let Some(force) = force else { return };
        let (number, control) = (force.configuration.version, force.configuration.control.clone());
        self.push(now, Some(Version { number, interval: force.interval, control }));
    }

    fn push(&mut self, since: Time, version: Option<Version>) {
        if self.known.back().is_some_and(|(_, last)| *last == version) {
            return;
        }
        if self.known.len() == VERSIONS_MAX {
            self.known.pop_front();
        }
        self.known.push_back((since, version));
    }

    /// Where what a client of an aggregate did at a time counts.
    fn slot(&self, key: &Key, client: IpAddr, at: Time) -> Option<Slot> {
        let (_, version) = self.known.iter().rev().find(|(since, _)| *since <= at)?;
        let &Version { number, interval: length, ref control } = version.as_ref()?;
        let interval = Interval::at(at, length);
        let is_control = |c: &&Control| c.arm(&key.prefix, client, interval) == CONTROL;
        let version = control.as_ref().filter(is_control).map_or(number, |c| c.version);
        Some(Slot { interval, version, ends: interval.end(length) })
    }
}

/// Reports the sessions of a log to the engine, by an edge of its own.
///
/// The engine takes one report of an edge for each aggregate, interval and version. So the edge
/// needs a token of its own: with the token of an agent, one of both reports would be lost.
#[derive(Debug)]
pub struct Door {
    edge: Edge,
    reader: Reader,
    wait: Duration,
    versions: BTreeMap<Key, Versions>,
    sessions: Sessions,
    /// What ended `wait` before this is handed in.
    handed_in: Time,
    counts: Counts,
}

impl Door {
    /// `wait` is how long after a request was served its line may come. With it and a second more,
    /// the engine's grace must not be over.
    pub fn new(edge: Edge, reader: Reader, wait: Duration) -> Self {
        Self {
            edge,
            reader,
            wait,
            versions: BTreeMap::new(),
            sessions: Sessions::default(),
            handed_in: Time::ZERO,
            counts: Counts::default(),
        }
    }

    /// Takes in a line; `now` is since 1970.
    pub fn on_line(&mut self, text: &str, now: Time) {
        self.counts.lines += 1;
        let (key, line) = match self.reader.read(text) {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => {
                self.counts.unreadable += 1;
                self.counts.last_error = Some(error.to_string());
                return;
            }
        };
        let Some(data) = &line.data else { return };
        self.counts.requests += 1;
        self.ask(&key, now);
        let request = Request { started: line.started, ended: line.ended, data };
        let Self { versions, counts, wait, sessions, handed_in, .. } = self;
        let slot = versions.get(&key).and_then(|all| all.slot(&key, line.address, line.ended));
        let slot = counted(slot, counts, *handed_in, *wait);
        sessions.on_request(&key, request, slot);
    }

    /// Takes in a report that a player at an address sent; `now` is since 1970.
    pub fn on_event(&mut self, address: IpAddr, event: &Event, now: Time) {
        self.take(address, event, now, now);
    }

    /// Takes in again what a process before had taken in, and has in its [`counts`](Self::counts).
    pub fn recall(&mut self, post: &Post, now: Time) {
        let counts = self.counts.clone();
        post.events.iter().for_each(|event| self.take(post.address, event, post.arrived, now));
        self.counts = counts;
    }

    fn take(&mut self, address: IpAddr, event: &Event, arrived: Time, now: Time) {
        self.counts.reports += 1;
        let key = self.reader.key(address);
        self.ask(&key, now);
        let Self { versions, counts, wait, sessions, handed_in, .. } = self;
        let slot = |at| {
            let slot = versions.get(&key).and_then(|all| all.slot(&key, address, at));
            counted(slot, counts, *handed_in, *wait)
        };
        sessions.on_event(&key, event, arrived, slot);
    }

    /// Asks what is in force for an aggregate.
    fn ask(&mut self, key: &Key, now: Time) {
        if self.versions.len() < AGGREGATES_MAX || self.versions.contains_key(key) {
            let force = self.edge.in_force(key);
            let versions = self.versions.entry(key.clone()).or_default();
            versions.note(force, now);
            versions.used = now;
        }
    }

    /// To be called several times a second, and after a restart not before all lines were taken in
    /// that wait: notices which configurations are in force, and hands in what is over.
    pub fn on_time(&mut self, now: Time) {
        for key in self.edge.take_news() {
            if let Some(versions) = self.versions.get_mut(&key) {
                versions.note(self.edge.known(&key), now);
            }
        }
        self.versions.retain(|_, versions| now.since(versions.used) < IDLE);
        let over = self.sessions.take_over(now, self.wait);
        self.handed_in = now;
        let of = |(key, slot, shown): (Key, Slot, Statistics)| {
            (key, slot.version, slot.interval, observation(&shown))
        };
        let all: Vec<_> = over.into_iter().map(of).collect();
        self.counts.handed_in += all.len() as u64;
        self.edge.record_all(&all);
    }

    /// Lines and reports since then are needed for what may not be at the engine yet.
    pub fn needed_since(&self, now: Time) -> Time {
        let of = |versions: &Versions| Some(versions.known.back()?.1.as_ref()?.interval);
        let longest = self.versions.values().filter_map(of).max();
        let delivered = now - self.wait - DELIVERED;
        longest.map_or(now, |length| Interval::at(delivered, length).start(length))
    }

    /// What was in force when, for the next process.
    pub(crate) fn kept(&self) -> Vec<KeptAggregate> {
        let version = |(since, version): &(Time, Option<Version>)| KeptVersion {
            since_ns: since.as_nanos(),
            in_force: version.as_ref().map(|known| (known.number, known.interval.as_nanos())),
            control: version.as_ref().and_then(|known| known.control.clone()),
        };
        let of = |(key, versions): (&Key, &Versions)| {
            let versions = versions.known.iter().map(version).collect();
            KeptAggregate { key: key.clone(), versions }
        };
        self.versions.iter().map(of).collect()
    }

    /// The groups of prefixes that are one aggregate.
    pub(crate) fn together(&self) -> &Together {
        &self.reader.together
    }

    /// What was in force when, of a process before, which was right until a time. What it kept of
    /// aggregates that have other prefixes now counts for none: returns how many these are.
    pub(crate) fn remember(
        &mut self,
        all: Vec<KeptAggregate>,
        together: &Together,
        until: Time,
        now: Time,
    ) -> usize {
        self.handed_in = until.min(now) - DELIVERED;
        let changed = self.reader.together.changed_since(together);
        let before = all.len();
        let mut all = all;
        all.retain(|one| !changed.contains(&one.key.prefix));
        let left_out = before - all.len();
        for KeptAggregate { key, versions } in all.into_iter().take(AGGREGATES_MAX) {
            let known = self.versions.entry(key).or_default();
            known.used = now;
            for KeptVersion { since_ns, in_force, control } in versions {
                // There are no intervals without length.
                let in_force = in_force.filter(|(_, interval_ns)| *interval_ns > 0);
                let version = in_force.map(|(number, interval_ns)| Version {
                    number,
                    interval: Duration::from_nanos(interval_ns),
                    control,
                });
                known.push(Time::from_nanos(since_ns), version);
            }
            if now.since(until) > PAUSE_MAX {
                known.push(until, None);
            }
        }
        left_out
    }

    #[cfg(test)]
    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }

    /// What has come through.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Sessions that are known now.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How the edge does.
    pub fn status(&self) -> Status {
        self.edge.status()
    }
}

/// Where something counts; none where that is unknown, or too long ago.
fn counted(
    slot: Option<Slot>,
    counts: &mut Counts,
    handed_in: Time,
    wait: Duration,
) -> Option<Slot> {
    counts.unknown += u64::from(slot.is_none());
    let is_late = slot.is_some_and(|slot| handed_in >= slot.ends + wait);
    counts.late += u64::from(is_late);
    slot.filter(|_| !is_late)
}

/// As statistics of the engine: `bitrate` in Mbit/s, `rebuffering` as a share, `startup` in s, and
/// `stalls`.
fn observation(shown: &Statistics) -> Observation {
    let others = [
        ("bitrate", shown.bitrate.map(Rate::mbps)),
        ("rebuffering", shown.rebuffering),
        ("stalls", Some(shown.stalls as f64)),
        ("startup", shown.startup.map(Duration::as_secs_f64)),
    ];
    let others = others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Observation { others: others.collect(), ..Observation::default() }
}

#[cfg(test)]
mod tests {
    use trimtab_fleet_client::edge::{Configuration, Report};

    use super::*;
    use crate::Fields;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const WAIT: Duration = Duration::from_secs(5);

    /// A time of today, since an edge takes nothing of another year.
    fn today() -> Time {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        Interval::at(Time::from_secs(since.as_secs()), DAY).start(DAY)
    }

    fn learn(door: &Door, version: u64) {
        let knobs = vec![("gamma".to_owned(), 10.0)];
        let algorithm = "vivace".to_owned();
        let configuration = Configuration { version, algorithm, knobs, control: None };
        let key = "tv/203.0.113.0/24".parse().unwrap();
        door.edge.learn(key, InForce { configuration, interval: DAY });
    }

    fn door() -> Door {
        let service = "tv".parse().unwrap();
        let (path, fields) = (String::new(), Fields::default());
        let (prefix, together) = ([24, 48], trimtab_fleet_client::edge::Together::default());
        let reader = Reader { service, prefix, together, path, fields };
        Door::new(Edge::alone(), reader, WAIT)
    }

    fn line(door: &mut Door, at: Time, cmcd: &str) {
        let text = serde_json::json!({
            "msec": at.as_secs_f64(), "remote_addr": "203.0.113.7", "request_uri": "/a.m4s",
            "status": 200, "http_cmcd_object": cmcd,
        });
        door.on_line(&text.to_string(), at);
    }

    fn mean(report: &Report, name: &str) -> Option<f64> {
        report.summary.get(name)?.mean()
    }

    /// Half of the clusters run the control, and their players' requests count for it, also for the
    /// next process.
    #[test]
    fn requests_count_for_the_arm_of_their_client() {
        let mut door = door();
        let key: Key = "tv/203.0.113.0/24".parse().unwrap();
        let (algorithm, knobs) = ("cubic".to_owned(), Vec::new());
        let control = Control { version: 4, algorithm, knobs, share: 0.5, seed: 1 };
        let (algorithm, knobs) = ("vivace".to_owned(), Vec::new());
        let control = Some(control);
        let configuration = Configuration { version: 5, algorithm, knobs, control };
        let force = InForce { configuration, interval: DAY };
        let at = today() + Duration::from_secs(1);
        door.versions.entry(key.clone()).or_default().note(Some(Arc::new(force.clone())), at);
        let kept = serde_json::to_string(&door.kept()).unwrap();
        let mut next = self::door();
        next.remember(serde_json::from_str(&kept).unwrap(), &Together::default(), at, at);
        let mut seen = [false; 2];
        for client in (0..=255).step_by(16).map(|last| IpAddr::from([203, 0, 113, last])) {
            let of = |door: &Door| door.versions[&key].slot(&key, client, at).unwrap();
            let is_control = force.control_for(&key, Some(client), of(&door).interval).is_some();
            assert_eq!(of(&door).version, if is_control { 4 } else { 5 });
            assert_eq!(of(&next), of(&door));
            seen[usize::from(is_control)] = true;
        }
        assert_eq!(seen, [true; 2]);
    }

    #[test]
    fn each_request_counts_for_what_was_in_force_when_it_was_served() {
        let mut door = door();
        let start = today();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        line(&mut door, at(1), "br=9000,d=4000,ot=v,sid=\"a\"");
        learn(&door, 1);
        door.on_time(at(2));
        line(&mut door, at(3), "bl=0,br=1000,d=4000,ot=v,sid=\"a\"");
        learn(&door, 2);
        door.on_time(at(8));
        // The line came later than the new version, and its request before it.
        let key: Key = "tv/203.0.113.0/24".parse().unwrap();
        let slot = door.versions[&key].slot(&key, [203, 0, 113, 7].into(), at(7));
        assert_eq!(slot.map(|slot| slot.version), Some(1));
        line(&mut door, at(13), "bl=0,br=2000,bs,d=4000,ot=v,sid=\"a\"");
        line(&mut door, at(14), "br=4000,d=4000,ot=v,sid=\"b\"");
        door.on_line("{", at(15));
        door.on_line(r#"{"msec":1,"remote_addr":"::1","request_uri":"/","status":200}"#, at(15));
        door.on_time(start + DAY);
        assert_eq!(door.counts().handed_in, 0, "lines may still come");
        door.on_time(start + DAY + WAIT);
        let counts = door.counts().clone();
        assert_eq!((counts.lines, counts.requests, counts.handed_in), (6, 4, 3));
        assert_eq!((counts.unreadable, counts.unknown, counts.late), (1, 1, 0));
        assert!(counts.last_error.unwrap().starts_with("the line is no JSON object"));
        let reports = door.edge.close(start + DAY * 2);
        let [first, second] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!((first.version, second.version), (1, 2));
        assert_eq!((first.summary.connections(), second.summary.connections()), (1, 2));
        assert_eq!(mean(first, "bitrate"), Some(1.0));
        assert_eq!((mean(first, "rebuffering"), mean(first, "startup")), (None, None));
        assert_eq!((mean(second, "bitrate"), mean(second, "stalls")), (Some(3.0), Some(0.5)));
        // Ten seconds passed, of which four were played.
        assert_eq!(mean(second, "rebuffering"), Some(0.6));
        assert_eq!(second.summary.check_plausible(), Ok(()));
    }

    #[test]
    fn a_session_with_requests_and_reports_counts_once_by_its_reports() {
        let mut door = door();
        learn(&door, 1);
        let start = today();
        line(&mut door, start, "bl=0,br=9000,d=4000,ot=v,sid=\"a\",su");
        let address: IpAddr = [203, 0, 113, 7].into();
        let report = |door: &mut Door, second: u64, keys: &str| {
            let at = start + Duration::from_secs(second);
            let text = format!("{keys},sid=\"a\",ts={},v=2", at.as_nanos() / 1_000_000);
            door.on_event(address, &Event::parse(&text).unwrap(), at);
        };
        report(&mut door, 0, "sta=s");
        report(&mut door, 1, "msd=500,pb=(2000),sta=p");
        report(&mut door, 9, "bsa=(1),pb=(2000),sta=r");
        report(&mut door, 11, "sta=e");
        door.on_time(start + DAY + WAIT);
        assert_eq!((door.counts().reports, door.counts().handed_in), (4, 1));
        let [report] = &door.edge.close(start + DAY * 2)[..] else { panic!("one report") };
        assert_eq!(report.summary.connections(), 1);
        assert_eq!(mean(report, "bitrate"), Some(2.0));
        assert!((mean(report, "rebuffering").unwrap() - 0.2).abs() < 1e-9);
        assert_eq!((mean(report, "stalls"), mean(report, "startup")), (Some(1.0), Some(0.5)));
    }

    #[test]
    fn what_comes_after_the_wait_is_late() {
        let mut door = door();
        learn(&door, 1);
        let start = today();
        line(&mut door, start, "br=1000,d=4000,ot=v,sid=\"a\"");
        door.handed_in = start + DAY + WAIT;
        let text = serde_json::json!({
            "msec": start.as_secs_f64(), "remote_addr": "203.0.113.7", "request_uri": "/a",
            "args": "CMCD=br%3D1000%2Cot%3Dv%2Csid%3D%22a%22", "status": 200,
        });
        door.on_line(&text.to_string(), start + DAY + WAIT);
        assert_eq!((door.counts().late, door.counts().unknown), (1, 0));
    }
}
