//! The orders in force as a file, so that they outlive the agent and the machine's restart.
//!
//! Times in it are those of the wall clock, since the monotonic one begins anew with the machine.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use trimtab_units::{Duration, Time};

use super::Target;
use super::holds::{Held, Hold, Holds};
use crate::error::{Error, in_one_line};

/// Its name in the folder of the state.
const NAME: &str = "orders.json";
const SCHEMA: &str = "trimtab.agent.orders/1";

#[derive(Debug, Serialize, Deserialize)]
struct File {
    schema: String,
    orders: Vec<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    held: Held,
    target: Target,
    /// Seconds since 1970.
    since_s: f64,
    until_s: Option<f64>,
    by: String,
}

/// Where the orders are kept.
#[derive(Clone, Debug)]
pub(crate) struct OrderFile(PathBuf);

impl OrderFile {
    /// The file in this folder.
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    /// What an agent before this one had in force; empty where there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is none.
    pub(crate) fn read(&self, now: Time) -> Result<Holds, Error> {
        let fail = |why: &dyn std::fmt::Display| {
            let what = format!("read the orders of before, {}", self.0.display());
            Error::system(what, format!("{why}; nothing is held until you order it again"))
        };
        let text = match std::fs::read_to_string(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Holds::default()),
            read => read.map_err(|error| fail(&error))?,
        };
        parse(&text, now, since_1970_s()).map_err(|why| fail(&why))
    }

    /// Keeps what is in force. It replaces the file as a whole, so that none is ever half a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, holds: &Holds, now: Time) -> Result<(), Error> {
        let new = self.0.with_extension("new");
        let write = || -> std::io::Result<()> {
            let folder = self.0.parent().unwrap_or(Path::new("/"));
            std::fs::create_dir_all(folder)?;
            std::fs::write(&new, text(holds, now, since_1970_s())?)?;
            std::fs::File::open(&new)?.sync_all()?;
            std::fs::rename(&new, &self.0)
        };
        write().map_err(|error| {
            let why = format!("{error}; the orders are in force until the agent ends");
            Error::system(format!("keep the orders in {}", self.0.display()), why)
        })
    }
}

/// The orders of a file with this text; `wall` is `now` in seconds since 1970.
///
/// # Errors
/// It is none: one line that tells why.
pub(crate) fn parse(text: &str, now: Time, wall: f64) -> Result<Holds, String> {
    let file: File = serde_json::from_str(text).map_err(|error| in_one_line(&error))?;
    if file.schema != SCHEMA {
        return Err(format!("its schema is {:?}, not {SCHEMA}", file.schema));
    }
    let of = |kept: Kept| {
        let age = Duration::from_secs_f64((wall - kept.since_s).max(0.0));
        let until = kept.until_s.map(|until| (until - wall).max(0.0));
        let until = until.map(|left| now + Duration::from_secs_f64(left));
        // The machine may have started after the order.
        let since = now - age;
        // Connections have other numbers after a restart of the machine.
        let is_lasting = !matches!(kept.target, Target::Flow(_));
        is_lasting.then(|| Hold::new(kept.held, kept.target, since, until, &kept.by))
    };
    Ok(Holds::new(file.orders.into_iter().filter_map(of).collect()))
}

/// The text of the file with these orders.
pub(crate) fn text(holds: &Holds, now: Time, wall: f64) -> serde_json::Result<String> {
    let orders = holds.iter().map(|hold| Kept {
        held: hold.held,
        target: hold.target.clone(),
        since_s: wall - now.since(hold.since).as_secs_f64(),
        until_s: hold.until.map(|until| wall + until.since(now).as_secs_f64()),
        by: hold.by.clone(),
    });
    serde_json::to_string_pretty(&File { schema: SCHEMA.to_owned(), orders: orders.collect() })
}

fn since_1970_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_outlive_the_agent_and_a_new_start_of_the_clock() {
        let folder = tempfile::tempdir().unwrap();
        let file = OrderFile::at(&folder.path().join("made/on/demand"));
        assert!(file.read(Time::ZERO).unwrap().is_empty());
        let now = Time::from_secs(5000);
        let mut holds = Holds::default();
        for (held, target, until) in [
            (Held::Excluded, "192.0.2.0/24", Some(now + Duration::from_secs(600))),
            (Held::Tripped, "rule:web", None),
            (Held::Paused, "flow:7", None),
        ] {
            let hold = Hold::new(held, target.parse().unwrap(), now, until, "root");
            holds.add(hold).unwrap();
        }
        file.write(&holds, now).unwrap();
        // The machine has started again: its clock is at 3 s.
        let read = file.read(Time::from_secs(3)).unwrap().status(Time::from_secs(3));
        let named: Vec<String> = read.iter().map(|hold| hold.target.to_string()).collect();
        assert_eq!(named, ["192.0.2.0/24", "rule:web"], "a number of a connection lasts not");
        let left = read[0].left_s.unwrap();
        assert!((590.0..=600.0).contains(&left), "{left}");
        assert_eq!((read[1].left_s, read[1].by.as_str()), (None, "root"));
    }

    #[test]
    fn a_damaged_file_is_an_error_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), "{").unwrap();
        let error = OrderFile::at(folder.path()).read(Time::ZERO).unwrap_err().to_string();
        assert!(error.contains("orders.json") && error.contains("order it again"), "{error}");
    }
}
