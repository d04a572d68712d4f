//! Refusals for the audit: who was refused what, once a minute and with a count, so that nobody fills the disk
//! or hides other lines by asking often.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::allowance::network;
use crate::store::{Line, REFUSED};

/// Refusals are counted over this time.
const WINDOW_MS: i64 = 60_000;
/// Addresses without a token that get lines of their own in that time; others share one line.
const STRANGERS_MAX: usize = 5;
/// Characters of a text that a client chose.
const TEXT_MAX: usize = 160;

/// A request that was refused.
#[derive(Clone, Debug)]
pub(crate) struct Attempt<'a> {
    /// Whose token it came with; none without one that is known.
    pub(crate) token: Option<&'a str>,
    pub(crate) from: Option<IpAddr>,
    /// One word.
    pub(crate) reason: &'static str,
    /// The method and the path.
    pub(crate) what: &'a str,
    pub(crate) message: &'a str,
}

/// Whether a refusal belongs into the audit: somebody tried what they may not.
pub(crate) fn belongs(reason: &str) -> bool {
    ["token", "certificate", "expired", "role", "service"].contains(&reason)
}

/// Who, and for which reason.
type Key = (String, &'static str);

#[derive(Default)]
struct State {
    /// When the time began in which these are counted.
    since_ms: i64,
    counts: BTreeMap<Key, u64>,
    /// Those that were counted in the time before: they get no line of their own at once.
    before: BTreeSet<Key>,
    /// Of these, addresses without a token.
    strangers: usize,
    /// Of addresses beyond the limit.
    others: u64,
    lines: Vec<Line>,
}

/// Refusals that are counted now, and lines that are not written yet.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<State>);

impl Refusals {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one.
    pub(crate) fn add(&self, now_ms: i64, attempt: &Attempt<'_>) {
        let mut state = self.state();
        state.turn(now_ms);
        let from = attempt.from.map_or_else(|| "nowhere".to_owned(), network);
        let who = attempt.token.map_or_else(|| format!("({from})"), str::to_owned);
        let key = (who, attempt.reason);
        if let Some(count) = state.counts.get_mut(&key) {
            *count += 1;
            return;
        }
        if attempt.token.is_none() {
            if state.strangers >= STRANGERS_MAX {
                state.others += 1;
                return;
            }
            state.strangers += 1;
        }
        if state.before.contains(&key) {
            // It goes on: a count when the minute is over is enough.
            state.counts.insert(key, 1);
            return;
        }
        let detail = format!("{}, from {from}: {}", attempt.reason, cut(attempt.message));
        let who = key.0.clone();
        state.lines.push(Line {
            at_ms: now_ms,
            who,
            action: REFUSED,
            subject: cut(attempt.what),
            detail,
        });
        // It has its line.
        state.counts.insert(key, 0);
    }

    /// The lines to write now.
    pub(crate) fn take(&self, now_ms: i64) -> Vec<Line> {
        let mut state = self.state();
        state.turn(now_ms);
        std::mem::take(&mut state.lines)
    }

    /// The lines to write where no more are counted.
    pub(crate) fn take_all(&self, now_ms: i64) -> Vec<Line> {
        let mut state = self.state();
        state.finish(now_ms);
        std::mem::take(&mut state.lines)
    }

    /// These could not be written: they are taken again.
    pub(crate) fn put_back(&self, mut lines: Vec<Line>) {
        let mut state = self.state();
        lines.append(&mut state.lines);
        state.lines = lines;
    }
}

impl State {
    /// Begins a new time where the last one is over.
    fn turn(&mut self, now_ms: i64) {
        if (now_ms - self.since_ms).abs() >= WINDOW_MS {
            self.finish(now_ms);
        }
    }

    fn finish(&mut self, now_ms: i64) {
        let counts = std::mem::take(&mut self.counts);
        self.before = counts.keys().cloned().collect();
        self.strangers = 0;
        let others = std::mem::take(&mut self.others);
        self.since_ms = now_ms;
        let more = counts.into_iter().filter(|(_, count)| *count > 0);
        let lines = more.map(|((who, reason), count)| (who, count, reason.to_owned()));
        let rest = (others > 0).then(|| {
            let reason = "of addresses beyond the first ones of that minute".to_owned();
            ("(others)".to_owned(), others, reason)
        });
        self.lines.extend(lines.chain(rest).map(|(who, count, detail)| Line {
            at_ms: now_ms,
            who,
            action: REFUSED,
            subject: format!("{count} more in a minute"),
            detail,
        }));
    }
}

/// A text of a client, without what neither a terminal nor a database takes.
fn cut(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let mut short: String = text.chars().take(TEXT_MAX).map(clean).collect();
    if short.len() < text.len() && text.chars().nth(TEXT_MAX).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt<'a>(token: Option<&'a str>, from: &str) -> Attempt<'a> {
        let reason = if token.is_some() { "role" } else { "token" };
        let from = Some(from.parse().unwrap());
        Attempt { token, from, reason, what: "GET /v1/status", message: "no" }
    }

    fn said(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| format!("{} | {}", line.who, line.subject)).collect()
    }

    #[test]
    fn each_who_has_a_line_at_once_and_a_count_by_the_minute() {
        let refusals = Refusals::default();
        let minute = |n: i64| 1_000_000 + n * WINDOW_MS;
        refusals.add(minute(0), &attempt(None, "203.0.113.7"));
        refusals.add(minute(0), &attempt(Some("edge-1"), "203.0.113.7"));
        let first = refusals.take(minute(0));
        assert_eq!(said(&first), ["(203.0.113.7) | GET /v1/status", "edge-1 | GET /v1/status"]);
        assert_eq!(first[0].detail, "token, from 203.0.113.7: no");
        for _ in 0..1000 {
            refusals.add(minute(0) + 1, &attempt(None, "203.0.113.7"));
        }
        assert_eq!(said(&refusals.take(minute(1) - 1)), Vec::<String>::new());
        assert_eq!(said(&refusals.take(minute(1))), ["(203.0.113.7) | 1000 more in a minute"]);
        // It goes on, and later it begins anew.
        refusals.add(minute(1), &attempt(None, "203.0.113.7"));
        assert_eq!(said(&refusals.take(minute(1))), Vec::<String>::new());
        assert_eq!(said(&refusals.take(minute(2))), ["(203.0.113.7) | 1 more in a minute"]);
        assert_eq!(said(&refusals.take(minute(3))), Vec::<String>::new());
        refusals.add(minute(3), &attempt(None, "203.0.113.7"));
        assert_eq!(refusals.take(minute(3)).len(), 1);
    }

    #[test]
    fn many_addresses_fill_no_disk_and_hide_no_token() {
        let refusals = Refusals::default();
        let mut lines = Vec::new();
        const MINUTES: i64 = 10;
        for minute in 0..MINUTES {
            for i in 0..2000 {
                let now_ms = 1_000_000 + minute * WINDOW_MS + i * 30;
                let from = format!("2001:db8:{minute:x}:{i:x}::1");
                refusals.add(now_ms, &attempt(None, &from));
                lines.extend(refusals.take(now_ms));
            }
            let now_ms = 1_000_000 + (minute + 1) * WINDOW_MS - 1;
            refusals.add(now_ms, &attempt(Some("robin"), "203.0.113.7"));
        }
        lines.extend(refusals.take_all(2_000_000));
        // One of each of five addresses, and one of all others.
        let of_strangers = lines.iter().filter(|line| line.who.starts_with('(')).count();
        assert_eq!(of_strangers as i64, MINUTES * 6);
        let robin: Vec<&Line> = lines.iter().filter(|line| line.who == "robin").collect();
        assert_eq!(robin.len() as i64, MINUTES, "{robin:?}");
        assert!(lines.iter().any(|line| line.subject == "1995 more in a minute"));
        assert!(lines.iter().any(|line| line.who == "(2001:db8:3:4::/64)"));
    }

    #[test]
    fn what_a_client_writes_is_cut_and_cleaned() {
        assert_eq!(cut("GET /a\n\0b"), "GET /a??b");
        let long = cut(&"ä".repeat(70_000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (TEXT_MAX + 1, true));
        assert_eq!(cut(&"ä".repeat(TEXT_MAX)).chars().count(), TEXT_MAX);
    }

    #[test]
    fn what_could_not_be_written_is_taken_again() {
        let refusals = Refusals::default();
        refusals.add(1_000_000, &attempt(Some("kim"), "::1"));
        let lines = refusals.take(1_000_000);
        refusals.add(1_000_001, &attempt(Some("robin"), "::ffff:192.0.2.1"));
        refusals.put_back(lines);
        let who: Vec<String> = refusals.take(1_000_001).into_iter().map(|line| line.who).collect();
        assert_eq!(who, ["kim", "robin"]);
    }
}
