//! What outlasts the process: from where the log is to be read again, and which versions were in
//! force when.
//!
//! The interval that is open is counted anew after a restart, from the log. So a process that is
//! killed loses nothing of it. What was reported comes too late to count again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use trimtab_fleet_client::edge::{Control, Key};
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
    place: Place,
    aggregates: Vec<KeptAggregate>,
}

/// A file in a folder of the process.
#[derive(Debug)]
pub struct Memory {
    path: PathBuf,
    /// What was read at the start, and until when it was right.
    kept: Option<(Kept, Time)>,
    /// Where the log was read to, and when.
    marks: VecDeque<(Time, Place)>,
    written: Option<Kept>,
    looked: Time,
    trouble: Option<io::Error>,
}

impl Memory {
    /// Reads what is in a folder. What cannot be understood is as nothing.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join(FILE);
        let kept = read(&path).filter(|(kept, _)| kept.schema == SCHEMA);
        Self {
            path,
            kept,
            marks: VecDeque::new(),
            written: None,
            looked: Time::ZERO,
            trouble: None,
        }
    }

    /// From where the log is to be read again; none the first time.
    pub fn place(&self) -> Option<Place> {
        self.kept.as_ref().map(|(kept, _)| kept.place)
    }

    /// Hands over what was in force when, before any line.
    pub fn restore(&mut self, door: &mut Door, now: Time) {
        if let Some((kept, until)) = self.kept.take() {
            door.remember(kept.aggregates, until, now);
        }
    }

    /// To be called several times a second with where the log was read to: writes what has changed.
    pub fn on_time(&mut self, door: &Door, place: Place, now: Time) {
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
        let kept = Kept { schema: SCHEMA.to_owned(), place, aggregates: door.kept() };
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
    use std::io::Write as _;

    use trimtab_fleet_client::edge::{Configuration, Edge, InForce, Interval, Report};

    use super::*;
    use crate::{Fields, More, Reader, Tail};

    const HOUR: Duration = Duration::from_secs(3600);
    const WAIT: Duration = Duration::from_secs(5);

    struct Process {
        door: Door,
        tail: Tail,
        memory: Memory,
    }

    /// As `trimtab cmcd follow` starts.
    fn start(folder: &Path, now: Time, version: u64) -> Process {
        let (service, path) = ("tv".parse().unwrap(), String::new());
        let (prefix, together) = ([24, 48], trimtab_fleet_client::edge::Together::default());
        let reader = Reader { service, prefix, together, path, fields: Fields::default() };
        let mut memory = Memory::open(folder);
        let tail = Tail::resume(&folder.join("log"), memory.place()).unwrap();
        let mut door = Door::new(Edge::alone(), reader, WAIT);
        memory.restore(&mut door, now);
        let configuration =
            Configuration { version, algorithm: "vivace".to_owned(), knobs: vec![], control: None };
        let key = "tv/203.0.113.0/24".parse().unwrap();
        door.edge().learn(key, InForce { configuration, interval: HOUR });
        Process { door, tail, memory }
    }

    impl Process {
        fn look(&mut self, now: Time) {
            while self.tail.read(|line| self.door.on_line(line, now)).unwrap() == More::Now {}
            self.door.on_time(now);
            self.memory.on_time(&self.door, self.tail.place(), now);
        }
    }

    fn log(folder: &Path, at: Time, session: &str) {
        let line = serde_json::json!({
            "msec": at.as_secs_f64(), "remote_addr": "203.0.113.7", "request_uri": "/a.m4s",
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
