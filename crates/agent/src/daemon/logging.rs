//! The log: lines on standard error, each with a level. Clients' addresses are no part of it,
//! unless somebody asks for details.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use log::kv::{self, Key, Value, VisitSource, VisitValue};
use log::{Level, LevelFilter, Log, Metadata, Record, log_enabled};
use rustix::fs::fstat;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use trimtab_datapath::Identity;
use trimtab_steer::safety::Arm;

use crate::config::{Detail, LogFormat, Prefix};

/// Writes the lines of this project's crates, and of no library that it uses.
#[derive(Debug)]
struct Lines {
    to_journal: bool,
    /// Whether lines are JSON objects, which a reload may change.
    is_json: AtomicBool,
}

static LINES: OnceLock<Lines> = OnceLock::new();

/// Begins to log, or changes how much is said, and in which form.
pub(crate) fn say(detail: Detail, format: LogFormat) {
    let is_json = AtomicBool::new(false);
    let lines = LINES.get_or_init(|| Lines { to_journal: is_journal(), is_json });
    lines.is_json.store(format == LogFormat::Json, Ordering::Relaxed);
    // A second one in a process is refused, and the first one goes on.
    let _ = log::set_logger(lines);
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
        if !self.enabled(record.metadata()) {
            return;
        }
        let format =
            if self.is_json.load(Ordering::Relaxed) { LogFormat::Json } else { LogFormat::Text };
        eprintln!("{}", line(record, format, self.to_journal, OffsetDateTime::now_utc()));
    }

    fn flush(&self) {}
}

/// The journal takes the level from a number in front (sd-daemon(3)), and knows who speaks.
fn line(record: &Record<'_>, format: LogFormat, to_journal: bool, now: OffsetDateTime) -> String {
    let text = record.args();
    let (number, word) = match record.level() {
        Level::Error => (3, "error"),
        Level::Warn => (4, "warning"),
        Level::Info => (6, "info"),
        Level::Debug | Level::Trace => (7, "debug"),
    };
    match (format, to_journal, word) {
        (LogFormat::Json, true, _) => format!("<{number}>{}", object(record, word, now)),
        (LogFormat::Json, false, _) => object(record, word, now),
        (LogFormat::Text, true, _) => format!("<{number}>{text}"),
        (LogFormat::Text, false, "info") => format!("trimtab agent: {text}"),
        (LogFormat::Text, false, _) => format!("trimtab agent: {word}: {text}"),
    }
}

/// A line of the log as one JSON object.
#[derive(Serialize)]
struct Object<'a> {
    time: String,
    level: &'a str,
    target: &'a str,
    message: String,
    #[serde(flatten)]
    fields: Fields,
}

/// What a call of the log gives with its text, but for what is not known.
#[derive(Default, Serialize)]
#[serde(transparent)]
struct Fields(serde_json::Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let mut field = Field(serde_json::Value::Null);
        value.visit(&mut field)?;
        if !field.0.is_null() {
            self.0.insert(key.to_string(), field.0);
        }
        Ok(())
    }
}

/// A value: a whole number, or a text.
struct Field(serde_json::Value);

impl<'v> VisitValue<'v> for Field {
    fn visit_any(&mut self, value: Value<'_>) -> Result<(), kv::Error> {
        self.0 = value.to_string().into();
        Ok(())
    }

    fn visit_null(&mut self) -> Result<(), kv::Error> {
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }
}

fn object(record: &Record<'_>, level: &str, now: OffsetDateTime) -> String {
    let mut fields = Fields::default();
    // Neither this visitor nor the values have errors.
    let _ = record.key_values().visit(&mut fields);
    let object = Object {
        // It has no error between the years 0 and 9999.
        time: now.format(&Rfc3339).unwrap_or_default(),
        level,
        target: record.target(),
        message: record.args().to_string(),
        fields,
    };
    serde_json::to_string(&object).unwrap_or_default()
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
    use log::kv::ToValue as _;

    use super::*;

    const TEXT: LogFormat = LogFormat::Text;
    const JSON: LogFormat = LogFormat::Json;
    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    #[test]
    fn a_line_has_its_level_as_who_reads_it_wants_it() {
        for (level, format, to_journal, expected) in [
            (Level::Warn, TEXT, true, "<4>all slots are taken"),
            (Level::Warn, TEXT, false, "trimtab agent: warning: all slots are taken"),
            (Level::Info, TEXT, false, "trimtab agent: all slots are taken"),
        ] {
            let args = format_args!("all slots are taken");
            let record = Record::builder().level(level).args(args).build();
            assert_eq!(line(&record, format, to_journal, NOW), expected);
        }
    }

    #[test]
    fn a_line_of_json_is_one_object_with_the_fields_that_are_known() {
        let unknown: Option<&str> = None;
        let fields: [(&str, Value<'_>); 4] = [
            ("connection", 7_u64.into()),
            ("network", "192.0.2.0/24".into()),
            ("rule", "a \"web\"\nrule".into()),
            ("algorithm", unknown.to_value()),
        ];
        for (level, word, number) in
            [(Level::Error, "error", 3), (Level::Warn, "warning", 4), (Level::Info, "info", 6)]
        {
            let args = format_args!("suffers\nfrom \"loss\"");
            let mut record = Record::builder();
            record.level(level).args(args).target("trimtab_agent::core").key_values(&fields);
            let record = record.build();
            let told = line(&record, JSON, false, NOW);
            assert!(!told.contains('\n'), "{told}");
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&told).unwrap(),
                serde_json::json!({
                    "time": "1970-01-01T00:00:00Z",
                    "level": word,
                    "target": "trimtab_agent::core",
                    "message": "suffers\nfrom \"loss\"",
                    "connection": 7,
                    "network": "192.0.2.0/24",
                    "rule": "a \"web\"\nrule",
                })
            );
            // The journal takes the number off, and the object is the message.
            assert_eq!(line(&record, JSON, true, NOW), format!("<{number}>{told}"));
        }
    }

    #[test]
    fn clients_are_known_by_their_network() {
        assert_eq!(network("192.0.2.77".parse().unwrap()).to_string(), "192.0.2.0/24");
        assert_eq!(network("2001:db8:1:2::3".parse().unwrap()).to_string(), "2001:db8:1::/48");
    }
}
