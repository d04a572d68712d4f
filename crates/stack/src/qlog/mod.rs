//! Logs in the format qlog: what congestion control and steering did on each path.
//!
//! The schema is qlog 0.3 in JSON text sequences (draft-ietf-quic-qlog-main-schema-03 §5,
//! draft-ietf-quic-qlog-quic-events-03 §7, RFC 7464), which qvis and Cloudflare's crate `qlog` read.

mod events;
mod trace;
mod writer;

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trimtab_units::Duration;

use events::{Header, VantagePoint};
pub(crate) use trace::{Sight, Trace};
use writer::{Open, Writer};

/// The environment variable that names the folder for logs, as in other programs that speak QUIC.
const FOLDER: &str = "QLOGDIR";
/// So many chunks wait for the disk, of at most some 8 KB each.
const WAITING_MAX: usize = 1024;

/// Where the logs of paths go ([`Config::with_qlog`](crate::Config::with_qlog)): one file or writer
/// per path. Cheap to clone.
///
/// A log has the events `recovery:parameters_set`, `recovery:metrics_updated`,
/// `recovery:congestion_state_updated` and `recovery:packet_lost` of qlog 0.3, and events of the
/// namespace `trimtab` for what the steering did. The documentation lists their fields.
///
/// Files have the names NAME-PROCESS-MILLISECONDS-NUMBER.sqlog: the name given by
/// [`named`](Self::named), the number of this process, the time when the path began, and the log's
/// number in this process.
///
/// A thread writes. A path hands over what it has to say once per second, in chunks of 8 KB, and when
/// it ends. A disk that is full or too slow ends the log with one error through the crate `log`; the
/// connection goes on.
#[derive(Clone)]
pub struct Qlog {
    writer: Arc<Writer>,
    open: Arc<Open>,
    vantage: VantagePoint,
    name: Arc<str>,
}

impl Qlog {
    /// Files in this folder, which is made if it is missing.
    ///
    /// # Errors
    /// The folder cannot be made, or no thread can be started.
    pub fn in_folder(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Self::to(move |name| {
            // Never over another file, e.g. of another process.
            let file = folder.join(format!("{name}.sqlog"));
            Ok(Box::new(OpenOptions::new().write(true).create_new(true).open(file)?))
        })
    }

    /// Files in the folder that the environment variable `QLOGDIR` names; `None` without one.
    ///
    /// # Errors
    /// As [`in_folder`](Self::in_folder).
    pub fn from_env() -> io::Result<Option<Self>> {
        let folder = env::var_os(FOLDER).filter(|folder| folder != OsStr::new(""));
        folder.map(Self::in_folder).transpose()
    }

    /// To what this opens by the name of the log, on the thread that writes.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn to(
        open: impl Fn(&str) -> io::Result<Box<dyn Write + Send>> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let writer = Arc::new(Writer::spawn(WAITING_MAX)?);
        let (open, vantage) = (Arc::new(open), VantagePoint::Unknown);
        Ok(Self { writer, open, vantage, name: "trimtab".into() })
    }

    /// Of connections that this program accepts. Default: the logs leave it open.
    #[must_use]
    pub fn at_server(self) -> Self {
        Self { vantage: VantagePoint::Server, ..self }
    }

    /// Of connections that this program begins.
    #[must_use]
    pub fn at_client(self) -> Self {
        Self { vantage: VantagePoint::Client, ..self }
    }

    /// The same place, under another name, e.g. of one connection: it begins the names of files, and
    /// is the group of the log. Characters other than letters, digits, `.`, `-` and `_` become `_`.
    /// Default: `trimtab`.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        Self { name: name.into(), ..self.clone() }
    }

    /// Waits until all is written that paths have handed over: call it before the program ends, once
    /// its connections are gone.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Begins the log of a path. `clock` is the time that all senders share, of which times in
    /// the log are relative to.
    pub(crate) fn begin(&self, scheme: &str, path: u64, clock: Duration) -> Trace {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{}-{number}", self.name, process::id(), clock.as_millis());
        let title = format!("{scheme}, path {path}");
        let header = Header::new(&title, &self.name, self.vantage, clock);
        Trace::begin(self.writer.output(name, self.open.clone()), &header)
    }
}

impl fmt::Debug for Qlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qlog").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
