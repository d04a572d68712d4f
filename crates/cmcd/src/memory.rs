//! What outlasts the process: from where the log is to be read again, which versions were in force
//! when, and by which groups of prefixes.
//!
//! The interval that is open is counted anew after a restart, from the log and from the
//! [journal](crate::Journal) of posts. So a process that is killed loses nothing of it. What it
//! handed in last is handed in again, and the engine takes each report once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use trimtab_fleet_client::edge::{Control, Key, Together};
use trimtab_units::{Duration, Time};

use crate::Door;
use crate::tail::Place;

const FILE: &str = "follow.json";
const SCHEMA: &str = "trimtab.cmcd.follow/1";
/// Between looks at whether something is to be written.
const LOOK: Duration = Duration::from_secs(5);

/// What was in force from a time on: a version, and the length of its intervals in ns; `None` where
/// that is unknown. And what some clusters of clients ran instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptVersion {
    pub(crate) since_ns: u64,
    pub(crate) in_force: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<Control>,
}

/// What was in force for an aggregate, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptAggregate {
    pub(crate) key: Key,
    pub(crate) versions: Vec<KeptVersion>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    schema: String,
    /// None where lines come from a pipe, or from none.
    #[serde(default)]
    place: Option<Place>,
    /// The groups of prefixes, as text; none of a process of an earlier version.
    #[serde(default)]
    together: Option<String>,
    aggregates: Vec<KeptAggregate>,
}

/// A file in a folder of the process.
#[derive(Debug)]
pub struct Memory {
    path: PathBuf,
    /// What was read at the start, and until when it was right.
    kept: Option<(Kept, Time)>,
    /// Where the log was read to, and when.
    marks: VecDeque<(Time, Option<Place>)>,
    written: Option<Kept>,
    looked: Time,
    trouble: Option<io::Error>,
}

impl Memory {
    /// Reads what is in a folder. What cannot be understood is as nothing.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join(FILE);
        let kept = read(&path).filter(|(kept, _)| kept.schema == SCHEMA);
        // What is read again is needed again if this process ends soon.
        let marks = kept.iter().map(|(kept, until)| (*until, kept.place)).collect();
        Self { path, kept, marks, written: None, looked: Time::ZERO, trouble: None }
    }

    /// From where the log is to be read again; none the first time.
    pub fn place(&self) -> Option<Place> {
        self.kept.as_ref()?.0.place
    }

    /// Hands over what was in force when, before any line. Says what of it counts for nothing.
    pub fn restore(&mut self, door: &mut Door, now: Time) -> Option<String> {
        let (kept, until) = self.kept.take()?;
        // Nothing else writes the file; one that did not tell had the same groups.
        let together = kept.together.and_then(|text| Together::parse(&text).ok());
        let together = together.unwrap_or_else(|| door.together().clone());
        let left_out = door.remember(kept.aggregates, &together, until, now);
        (left_out > 0).then(|| {
            format!(
                "the groups of prefixes are others than before: what {left_out} aggregates showed \
                 before this start in the open interval is left out"
            )
        })
    }

    /// To be called several times a second with where the log was read to, once nothing waits there
    /// from before the start: writes what has changed.
    pub fn on_time(&mut self, door: &Door, place: Option<Place>, now: Time) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        self.marks.push_back((now, place));
        let needed = door.needed_since(now);
        // The last place before what is needed.
        while self.marks.get(1).is_some_and(|(at, _)| *at <= needed) {
            self.marks.pop_front();
        }
        let place = self.marks.front().map_or(place, |(_, place)| *place);
        let together = Some(door.together().to_string());
        let kept = Kept { schema: SCHEMA.to_owned(), place, together, aggregates: door.kept() };
        let done = if self.written.as_ref() == Some(&kept) {
            // It is right until now.
            File::options()
                .write(true)
                .open(&self.path)
                .and_then(|file| file.set_modified(SystemTime::now()))
        } else {
            write(&self.path, &kept)
        };
        self.trouble = done.err();
        self.written = self.trouble.is_none().then_some(kept);
    }

    /// Why it cannot be written, and so a restart would begin at the end of the log.
    pub fn trouble(&self) -> Option<String> {
        let error = self.trouble.as_ref()?;
        let path = self.path.display();
        Some(format!(
            "cannot write {path}: {error}: until it can, a restart loses the open interval"
        ))
    }
}

fn read(path: &Path) -> Option<(Kept, Time)> {
    let until = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let until = Time::from_nanos(u64::try_from(until.as_nanos()).ok()?);
    Some((serde_json::from_slice(&std::fs::read(path).ok()?).ok()?, until))
}

/// Whole, or not at all.
fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    let next = path.with_extension("new");
    let mut file = File::create(&next)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    file.sync_all()?;
    std::fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::Arc;

    use trimtab_fleet_client::edge::{Configuration, Edge, InForce, Interval, Report};

    use super::*;
    use crate::{Fields, IDLE, Journal, ListenOptions, Listener, More, Post, Reader, Tail};

    const HOUR: Duration = Duration::from_secs(3600);
    const WAIT: Duration = Duration::from_secs(5);
    /// Each has a version of its own: that of the first, and 10, 20 and 30 more.
    const PREFIXES: [&str; 4] =
        ["203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24", "127.0.0.0/24"];

    struct Process {
        door: Door,
        tail: Tail,
        memory: Memory,
    }

    /// As `trimtab cmcd follow` starts.
    fn start(folder: &Path, now: Time, version: u64) -> Process {
        start_with(folder, now, version, "").0
    }

    /// The same with groups of prefixes, and what it says then.
    fn start_with(
        folder: &Path,
        now: Time,
        version: u64,
        together: &str,
    ) -> (Process, Option<String>) {
        let (service, path) = ("tv".parse().unwrap(), String::new());
        let (prefix, together) = ([24, 48], Together::parse(together).unwrap());
        let reader = Reader { service, prefix, together, path, fields: Fields::default() };
        let mut memory = Memory::open(folder);
        let tail = Tail::resume(&folder.join("log"), memory.place()).unwrap();
        let mut door = Door::new(Edge::alone(), reader, WAIT);
        let said = memory.restore(&mut door, now);
        for (at, prefix) in (0..).zip(PREFIXES) {
            let (version, algorithm, knobs) = (version + at * 10, "vivace".to_owned(), vec![]);
            let configuration = Configuration { version, algorithm, knobs, control: None };
            let key = format!("tv/{prefix}").parse().unwrap();
            door.edge().learn(key, InForce { configuration, interval: HOUR });
        }
        (Process { door, tail, memory }, said)
    }

    impl Process {
        fn look(&mut self, now: Time) {
            while self.tail.read(|line| self.door.on_line(line, now)).unwrap() == More::Now {}
            self.door.on_time(now);
            self.memory.on_time(&self.door, Some(self.tail.place()), now);
        }
    }

    fn log(folder: &Path, at: Time, session: &str) {
        log_of(folder, at, "203.0.113.7", session);
    }

    fn log_of(folder: &Path, at: Time, address: &str, session: &str) {
        let line = serde_json::json!({
            "msec": at.as_secs_f64(), "remote_addr": address, "request_uri": "/a.m4s",
            "status": 200, "http_cmcd_object": format!("br=1000,d=4000,ot=v,sid=\"{session}\""),
        });
        let mut file = File::options().append(true).create(true).open(folder.join("log")).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    /// What is to be reported: of each interval and version how many connections.
    fn reported(process: &Process, until: Time) -> Vec<(Interval, u64, u64)> {
        let of = |report: Report| (report.interval, report.version, report.summary.connections());
        process.door.edge().close(until).into_iter().map(of).collect()
    }

    /// An hour of today that began some minutes ago, as the file's time of change is of now.
    fn now() -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Time::from_nanos(since.as_nanos() as u64)
    }

    #[test]
    fn a_killed_process_counts_the_open_interval_anew_and_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        // The interval that is open now, however far it is; the one before is over.
        let open = Interval::at(now(), HOUR);
        let (start_of, second) = (open.start(HOUR), Duration::from_secs(1));
        log(folder, start_of - HOUR, "skipped: nobody followed yet");
        let mut first = start(folder, start_of - second * 30, 1);
        first.look(start_of - second * 30);
        log(folder, start_of - second * 20, "before");
        first.look(start_of - second * 20);
        log(folder, start_of, "a");
        first.look(start_of + second);
        first.look(start_of + WAIT + second * 5);
        assert_eq!(first.door.counts().handed_in, 1, "the interval before is reported");
        log(folder, start_of + second, "b");
        first.look(start_of + WAIT + second * 12);
        assert_eq!(first.memory.trouble(), None);
        // Killed: what it knew is gone, and a line comes while nobody follows.
        drop(first);
        log(folder, start_of + second * 2, "c");
        let at = start_of + WAIT + second * 20;
        let mut again = start(folder, at, 1);
        again.look(at);
        again.look(at + HOUR);
        // The interval before was reported.
        assert_eq!(reported(&again, at + HOUR * 2), [(open, 1, 3)]);
    }

    #[test]
    fn an_interval_that_ended_while_nobody_followed_is_handed_in() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let open = Interval::at(now(), HOUR);
        let (end, second) = (open.end(HOUR), Duration::from_secs(1));
        log(folder, end - second * 30, "nobody follows yet");
        let mut first = start(folder, end - second * 30, 1);
        first.look(end - second * 25);
        log(folder, end - second * 20, "a");
        first.look(end - second * 20);
        File::open(folder.join(FILE)).unwrap().set_modified(system(end - second * 20)).unwrap();
        drop(first);
        log(folder, end - second * 2, "b");
        // It is back when the wait is over, and is killed again before it has read anything.
        drop(start(folder, end + WAIT, 1));
        let mut again = start(folder, end + WAIT + second, 1);
        again.look(end + WAIT + second);
        assert_eq!(reported(&again, end + HOUR), [(open, 1, 2)]);
    }

    fn system(time: Time) -> SystemTime {
        UNIX_EPOCH + std::time::Duration::from_nanos(time.as_nanos())
    }

    /// Prefixes that join or leave an aggregate ran what was in force for another one.
    #[test]
    fn other_groups_leave_out_what_other_aggregates_showed_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let open = Interval::at(now(), HOUR);
        let at = |second| open.start(HOUR) + Duration::from_secs(second);
        log(folder, at(0), "nobody follows yet");
        let mut first = start(folder, at(0), 1);
        let all = ["203.0.113.7", "198.51.100.7", "192.0.2.7"];
        let log_all = |second, what: &str| {
            for address in all {
                log_of(folder, at(second), address, &format!("{what} {address}"));
            }
        };
        first.look(at(0));
        log_all(1, "a");
        first.look(at(1));
        log_all(2, "b");
        first.look(at(6));
        drop(first);
        let groups = "203.0.113.0/24 198.51.100.0/24";
        let (mut again, said) = start_with(folder, at(7), 1, groups);
        assert!(said.unwrap().contains("what 2 aggregates showed"));
        again.look(at(8));
        log_all(9, "c");
        again.look(at(9));
        again.look(at(15));
        assert_eq!(start_with(folder, at(16), 1, groups).1, None, "they are the same");
        assert!(start_with(folder, at(16), 1, "").1.is_some());
        again.look(open.end(HOUR) + WAIT);
        // The group has the version of its first prefix, and the two sessions that came after.
        let mut all = reported(&again, open.end(HOUR) + HOUR);
        all.sort_unstable();
        assert_eq!(all, [(open, 1, 2), (open, 21, 3)]);
    }

    /// A process that was killed and the next one report of posts what one reports that lives on.
    #[test]
    fn posts_of_a_killed_process_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        log(folder, now(), "");
        let listen = || {
            let journal = Arc::new(Journal::open(folder).unwrap());
            let address = "127.0.0.1:0".parse().unwrap();
            let options = ListenOptions { address, client: None, journal: Some(journal.clone()) };
            (journal, Listener::start(options).unwrap())
        };
        let post = |listener: &Listener, keys: &str| {
            let ts = now().as_nanos() / 1_000_000;
            let body = format!("{keys},sid=\"a\",ts={ts},v=2");
            let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length:";
            let mut stream = TcpStream::connect(listener.address()).unwrap();
            write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
            std::thread::sleep(std::time::Duration::from_millis(100));
            listener.take().unwrap()
        };
        let take = |process: &mut Process, post: &Post| {
            let each = |event| process.door.on_event(post.address, event, post.arrived);
            post.events.iter().for_each(each);
        };
        // All is in one interval.
        while Interval::at(now() + LOOK * 4, HOUR) != Interval::at(now(), HOUR) {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        let mut first = start(folder, now(), 1);
        let (_, listener) = listen();
        for keys in ["sta=s", "msd=500,pb=(2000),sn=1,sta=p", "bsa=(1),pb=(4000),sn=2,sta=r"] {
            take(&mut first, &post(&listener, keys));
            first.look(now());
        }
        first.look(now() + LOOK);
        // As if it were killed here, but it goes on in memory.
        let mut again = start(folder, now(), 1);
        let (journal, listener) = listen();
        journal.read(|post| again.door.recall(post, now())).unwrap();
        again.look(now());
        assert_eq!((again.door.counts().reports, again.door.sessions()), (0, 1));
        let last = post(&listener, "bsa=(2),pb=(4000),sn=3,sta=e");
        let ends = Interval::at(now(), HOUR).end(HOUR) + WAIT;
        let mut reports = Vec::new();
        for process in [&mut first, &mut again] {
            take(process, &last);
            process.door.on_time(ends);
            reports.push(process.door.edge().close(ends + HOUR));
        }
        assert_eq!((reports[0].len(), reports[0][0].summary.connections()), (1, 1));
        assert_eq!(reports[0], reports[1]);
        // What nothing needs any more goes.
        journal.forget(ends + IDLE);
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(files.filter(|name| name.to_string_lossy().starts_with("posts-")).count(), 1);
    }

    #[test]
    fn what_was_in_force_while_nobody_looked_is_unknown_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (at, second) = (now(), Duration::from_secs(1));
        log(folder, at, "a");
        let mut first = start(folder, at, 1);
        first.look(at + second);
        drop(first);
        log(folder, at + second * 600, "b");
        let later = at + second * 1200;
        let mut again = start(folder, later, 2);
        again.look(later);
        assert_eq!(again.door.counts().unknown, 1, "either version may have been in force");
    }

    #[test]
    fn what_is_damaged_or_cannot_be_written_is_said_and_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log"), "").unwrap();
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let mut process = start(folder.path(), now(), 1);
        assert_eq!(process.memory.place(), None);
        // As a full disk: every write to it fails.
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("follow.new")).unwrap();
        process.look(now());
        let trouble = process.memory.trouble().unwrap();
        assert!(trouble.contains("follow.json: No space left on device"), "{trouble}");
        std::fs::remove_file(folder.path().join("follow.new")).unwrap();
        process.look(now() + LOOK);
        assert_eq!(process.memory.trouble(), None);
    }
}
