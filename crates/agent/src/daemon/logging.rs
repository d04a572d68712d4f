//! The log: lines on standard error, each with a level. Clients' addresses are no part of it,
//! unless somebody asks for details.

use std::fmt;

use log::{Level, LevelFilter, Log, Metadata, Record, log_enabled};
use rustix::fs::fstat;
use trimtab_datapath::Identity;
use trimtab_steer::safety::Arm;

use crate::config::{Detail, Prefix};

/// Writes the lines of this project's crates, and of no library that it uses.
#[derive(Debug)]
struct Lines {
    to_journal: bool,
}

/// Begins to log, or changes how much is said.
pub(crate) fn say(detail: Detail) {
    // A second one in a process is refused, and the first one goes on.
    let _ = log::set_boxed_logger(Box::new(Lines { to_journal: is_journal() }));
    log::set_max_level(match detail {
        Detail::Error => LevelFilter::Error,
        Detail::Warning => LevelFilter::Warn,
        Detail::Info => LevelFilter::Info,
        Detail::Debug => LevelFilter::Debug,
    });
}

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("trimtab")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}", line(record.level(), record.args(), self.to_journal));
        }
    }

    fn flush(&self) {}
}

/// The journal takes the level from a number in front (sd-daemon(3)), and knows who speaks.
fn line(level: Level, text: &fmt::Arguments<'_>, to_journal: bool) -> String {
    let (number, word) = match level {
        Level::Error => (3, "error: "),
        Level::Warn => (4, "warning: "),
        Level::Info => (6, ""),
        Level::Debug | Level::Trace => (7, "debug: "),
    };
    if to_journal { format!("<{number}>{text}") } else { format!("trimtab agent: {word}{text}") }
}

/// Whether standard error is what systemd gave its unit ($JOURNAL_STREAM of systemd.exec(5)).
fn is_journal() -> bool {
    let named = std::env::var("JOURNAL_STREAM").ok();
    let found = fstat(std::io::stderr()).ok().map(|at| format!("{}:{}", at.st_dev, at.st_ino));
    named.is_some() && named == found
}

/// A connection as the log names it: by its number and the prefix of its client, or by the address
/// where details are asked for.
pub(crate) fn connection(who: &Identity) -> String {
    let number = who.id.0;
    if log_enabled!(Level::Debug) {
        format!("connection {number} to {}", who.remote)
    } else {
        format!("connection {number} to {}", network(who.remote.ip()))
    }
}

/// The prefix by which destinations are compared.
pub(crate) fn network(client: std::net::IpAddr) -> Prefix {
    Prefix::of(client, Arm::prefix(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_level_as_who_reads_it_wants_it() {
        let text = format_args!("all slots are taken");
        assert_eq!(line(Level::Warn, &text, true), "<4>all slots are taken");
        assert_eq!(line(Level::Warn, &text, false), "trimtab agent: warning: all slots are taken");
        assert_eq!(line(Level::Info, &text, false), "trimtab agent: all slots are taken");
    }

    #[test]
    fn clients_are_known_by_their_network() {
        assert_eq!(network("192.0.2.77".parse().unwrap()).to_string(), "192.0.2.0/24");
        assert_eq!(network("2001:db8:1:2::3".parse().unwrap()).to_string(), "2001:db8:1::/48");
    }
}
