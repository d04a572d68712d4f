//! The log: lines on standard error, as text or as JSON objects, each with a level.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::tables::iso_time;

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// `trimtab engine: …`
    #[default]
    Text,
    /// An object with `time`, `level`, `target` and `message`.
    Json,
}

/// Whether lines are JSON objects; a process has one log.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes lines so from now on.
pub(crate) fn use_format(format: LogFormat) {
    IS_JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

/// A line of the log as one JSON object.
#[derive(Serialize)]
struct Object<'a> {
    time: String,
    level: &'a str,
    target: &'a str,
    message: &'a str,
}

/// A line, with the level `info` or `warning`.
fn line(format: LogFormat, level: &str, message: &str, now_ms: i64) -> String {
    match (format, level) {
        (LogFormat::Text, "info") => format!("trimtab engine: {message}"),
        (LogFormat::Text, level) => format!("trimtab engine: {level}: {message}"),
        (LogFormat::Json, level) => {
            let object =
                Object { time: iso_time(now_ms), level, target: "trimtab_engine", message };
            serde_json::to_string(&object).expect("a line is plain data")
        }
    }
}

fn say(level: &str, message: &str) {
    let is_json = IS_JSON.load(Ordering::Relaxed);
    let format = if is_json { LogFormat::Json } else { LogFormat::Text };
    eprintln!("{}", line(format, level, message, now_ms()));
}

/// A line for the operator of the engine.
pub(crate) fn log(message: &str) {
    say("info", message);
}

/// A line about something that is wrong, or was refused.
pub(crate) fn warn(message: &str) {
    say("warning", message);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_a_text_or_an_object() {
        let text = |level| line(LogFormat::Text, level, "ends", 0);
        assert_eq!(text("info"), "trimtab engine: ends");
        assert_eq!(text("warning"), "trimtab engine: warning: ends");
        let object = line(LogFormat::Json, "warning", "a \"b\"\nc", 1_795_320_000_042);
        let expected = json!({
            "time": "2026-11-22T04:00:00.042Z", "level": "warning", "target": "trimtab_engine",
            "message": "a \"b\"\nc",
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&object).unwrap(), expected);
        assert!(!object.contains('\n'), "one line");
    }
}
