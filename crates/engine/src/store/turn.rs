//! Whose turn it is to send the events of a webhook, and up to which line of the audit they were
//! sent: one value of the table `meta` for each webhook.

use std::fmt;
use std::str::FromStr;

/// What an engine asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    /// The name of the webhook.
    pub(crate) hook: &'a str,
    /// The engine that asks.
    pub(crate) engine: &'a str,
    /// Up to this line of the audit it has sent events; none where it had no turn.
    pub(crate) sent: Option<i64>,
    pub(crate) now_ms: i64,
    /// So long it wants the turn.
    pub(crate) until_ms: i64,
}

impl Turn<'_> {
    /// The key of its value.
    pub(super) fn key(&self) -> String {
        format!("webhook:{}", self.hook)
    }

    /// Who has the turn now, by what is kept; none where that is another engine. A webhook that is
    /// new begins after the last line.
    pub(super) fn taken(&self, kept: Option<&str>, last_line: i64) -> Option<Kept> {
        let kept = kept.and_then(|kept| kept.parse::<Kept>().ok());
        let is_free = kept
            .as_ref()
            .is_none_or(|kept| kept.engine == self.engine || kept.until_ms <= self.now_ms);
        let before = kept.map_or(last_line, |kept| kept.line);
        let (engine, until_ms) = (self.engine.to_owned(), self.until_ms);
        is_free.then(|| Kept { line: self.sent.unwrap_or(before).max(before), engine, until_ms })
    }
}

/// A turn, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Events up to this line were sent.
    pub(super) line: i64,
    engine: String,
    until_ms: i64,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.line, self.engine, self.until_ms)
    }
}

impl FromStr for Kept {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let mut next = || words.next().ok_or(());
        Ok(Self {
            line: next()?.parse().map_err(|_| ())?,
            engine: next()?.to_owned(),
            until_ms: next()?.parse().map_err(|_| ())?,
        })
    }
}
