//! What players posted lately, on the disk: an access log has its lines after a restart, and what was
//! posted comes once.
//!
//! A post is written before it is answered. What is kept goes back to the session's time before the
//! open interval, so that a process that reads it knows what the one before knew.

use std::collections::VecDeque;
use std::fs::{DirEntry, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use trimtab_units::{Duration, Time};

use crate::{Event, IDLE, Post};

/// A file has the posts of so long.
const FILE_TIME: Duration = Duration::from_secs(60);
/// All files have so many bytes at most: anybody may post.
const LEN_MAX: u64 = 256 << 20;
const PREFIX: &str = "posts-";

/// A post, as a line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// When it came, in ns since 1970.
    arrived_ns: u64,
    address: IpAddr,
    body: String,
}

/// A file of posts that came since a time.
#[derive(Debug)]
struct Part {
    since: Time,
    path: PathBuf,
    len: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first; the last one is written to.
    parts: VecDeque<Part>,
    file: Option<File>,
    trouble: Option<String>,
}

/// The posts of a folder.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// Files of the process before.
    before: Vec<PathBuf>,
    state: Mutex<State>,
}

impl Journal {
    /// Finds what a process before has kept in a folder.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut parts: Vec<Part> = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            parts.extend(part(&entry?)?);
        }
        parts.sort_by_key(|part| part.since);
        let before = parts.iter().map(|part| part.path.clone()).collect();
        let state = Mutex::new(State { parts: parts.into(), ..State::default() });
        Ok(Self { folder: folder.to_owned(), before, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what the process before had taken in, the oldest first. A line that it did not
    /// finish was never answered, and is left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, mut each: impl FnMut(&Post)) -> io::Result<()> {
        for path in &self.before {
            for line in BufReader::new(File::open(path)?).split(b'\n') {
                let Ok(line) = serde_json::from_slice::<Line>(&line?) else { continue };
                let Ok(events) = Event::parse_all(&line.body) else { continue };
                let arrived = Time::from_nanos(line.arrived_ns);
                each(&Post { address: line.address, arrived, events });
            }
        }
        Ok(())
    }

    /// Keeps a post: it outlasts this process when this returns. Where it cannot be written, there is
    /// [trouble](Self::trouble), and it counts all the same.
    pub(crate) fn add(&self, address: IpAddr, arrived: Time, body: &str) {
        let line = Line { arrived_ns: arrived.as_nanos(), address, body: body.to_owned() };
        let mut state = self.state();
        let done = serde_json::to_vec(&line).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            state.write(&self.folder, arrived, &line)
        });
        state.trouble = done.err().map(|e| {
            let folder = self.folder.display();
            format!(
                "cannot keep posts in {folder}: {e}: until it can, a restart loses those of the open \
                 interval"
            )
        });
    }

    /// Lets go of what nothing needs that counts since a time.
    pub fn forget(&self, needed_since: Time) {
        let needed_since = needed_since - IDLE;
        let mut state = self.state();
        // A file ends where the next one begins.
        while state.parts.get(1).is_some_and(|next| next.since <= needed_since) {
            let Some(old) = state.parts.pop_front() else { return };
            // One that stays is found by the next process, and is too old to count.
            let _ = std::fs::remove_file(old.path);
        }
    }

    /// Why posts are not kept.
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }
}

impl State {
    fn write(&mut self, folder: &Path, now: Time, line: &[u8]) -> io::Result<()> {
        let len: u64 = self.parts.iter().map(|part| part.len).sum();
        if len + line.len() as u64 > LEN_MAX {
            let why = format!("they have {} MiB already", LEN_MAX >> 20);
            return Err(io::Error::other(why));
        }
        let last = self.parts.back().filter(|last| now.since(last.since) < FILE_TIME);
        if self.file.is_none() || last.is_none() {
            let path = folder.join(format!("{PREFIX}{:020}", now.as_nanos()));
            // It has the addresses of clients.
            let mut options = File::options();
            self.file = Some(options.create(true).append(true).mode(0o600).open(&path)?);
            self.parts.push_back(Part { since: now, path, len: 0 });
        }
        if let (Some(file), Some(part)) = (&mut self.file, self.parts.back_mut()) {
            part.len += line.len() as u64;
            file.write_all(line)?;
        }
        Ok(())
    }
}

/// The file of an entry, where it has posts.
fn part(entry: &DirEntry) -> io::Result<Option<Part>> {
    let name = entry.file_name();
    let since = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
    let Some(since) = since.map(Time::from_nanos) else { return Ok(None) };
    Ok(Some(Part { since, path: entry.path(), len: entry.metadata()?.len() }))
}
