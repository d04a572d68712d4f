//! What outlasts the process: the last configurations, and the number of the last batch.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trimtab_fleet::{Configuration, Key};
use trimtab_units::{Duration, Time};

use super::book::{Book, InForce};

const FILE: &str = "edge.json";
const SCHEMA: &str = "trimtab.edge.state/1";

/// Why the folder of an edge cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}: {reason}. An edge keeps its last configurations there: name a folder \
         that it may write to", .path.display())]
pub struct StateError {
    /// What was tried.
    what: &'static str,
    /// The file or folder.
    path: PathBuf,
    /// What the system said.
    reason: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema: String,
    sequence: u64,
    aggregates: Vec<KeptAggregate>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptAggregate {
    key: Key,
    interval_ms: u64,
    configuration: Configuration,
}

/// A folder.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
}

impl State {
    /// Makes the folder, and reads what is there into a book. A file that cannot be understood is
    /// as none: the engine tells anew.
    pub(crate) fn open(
        folder: &Path,
        book: &mut Book,
        now: Time,
    ) -> Result<(Self, u64), StateError> {
        let fail = |what, path: &Path, e: std::io::Error| StateError {
            what,
            path: path.to_owned(),
            reason: e.to_string(),
        };
        std::fs::create_dir_all(folder).map_err(|e| fail("make", folder, e))?;
        let state = Self { folder: folder.to_owned() };
        let path = folder.join(FILE);
        let mut sequence = 0;
        match std::fs::read(&path) {
            Ok(bytes) => {
                if let Ok(kept) = serde_json::from_slice::<Kept>(&bytes)
                    && kept.schema == SCHEMA
                {
                    sequence = kept.sequence;
                    for one in kept.aggregates.into_iter().filter(|one| one.interval_ms > 0) {
                        let interval = Duration::from_millis(one.interval_ms);
                        book.learn(
                            one.key,
                            InForce { configuration: one.configuration, interval },
                            now,
                        );
                    }
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(fail("read", &path, e)),
        }
        // Whether it may be written to is better known now than when there is something to lose.
        state.keep(book, sequence).map_err(|e| fail("write to", folder, e))?;
        Ok((state, sequence))
    }

    /// Replaces what is kept, whole or not at all.
    pub(crate) fn keep(&self, book: &Book, sequence: u64) -> std::io::Result<()> {
        let of = |(key, force): (&Key, &InForce)| KeptAggregate {
            key: key.clone(),
            interval_ms: force.interval.as_millis(),
            configuration: force.configuration.clone(),
        };
        let kept =
            Kept { schema: SCHEMA.to_owned(), sequence, aggregates: book.all().map(of).collect() };
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer(&mut file, &kept)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join(FILE)).map_err(|e| e.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        "tv/203.0.113.0/24".parse().unwrap()
    }

    fn force() -> InForce {
        let knobs = vec![("gamma".to_owned(), 12.5)];
        let (algorithm, version) = ("vivace".to_owned(), 4);
        let configuration = Configuration { version, algorithm, knobs, control: None };
        InForce { configuration, interval: Duration::from_secs(60) }
    }

    #[test]
    fn what_was_kept_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("deep/edge");
        let now = Time::from_secs(1_795_320_000);
        let mut book = Book::default();
        let (state, sequence) = State::open(&folder, &mut book, now).unwrap();
        assert_eq!((sequence, book.all().count()), (0, 0));
        book.learn(key(), force(), now);
        state.keep(&book, 17).unwrap();
        let mut again = Book::default();
        assert_eq!(State::open(&folder, &mut again, now).unwrap().1, 17);
        assert_eq!(again.all().collect::<Vec<_>>(), [(&key(), &force())]);
        // Opened once more, nothing was lost by opening it.
        let mut third = Book::default();
        State::open(&folder, &mut third, now).unwrap();
        assert_eq!(third.all().count(), 1);
    }

    #[test]
    fn what_is_no_state_is_as_none_and_no_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "{", "{\"schema\":\"other/1\",\"sequence\":5,\"aggregates\":[]}"] {
            std::fs::write(folder.path().join(FILE), text).unwrap();
            let mut book = Book::default();
            let (_, sequence) = State::open(folder.path(), &mut book, Time::ZERO).unwrap();
            assert_eq!((sequence, book.all().count()), (0, 0), "{text}");
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = State::open(&file, &mut Book::default(), Time::ZERO).unwrap_err().to_string();
        assert!(error.starts_with("cannot make ") && error.contains("name a folder"), "{error}");
    }
}
