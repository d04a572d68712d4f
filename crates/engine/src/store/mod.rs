//! What the engine remembers, behind one trait: SQLite in a file by default, PostgreSQL for several engines.
//!
//! A store knows nothing of learning: a learner's state, a configuration and the reasons of a
//! decision are bytes and texts to it. What it promises is when they are kept: [`Store::accept`]
//! and [`Store::close`] return when what they did is on the disk, all of it or nothing.

mod aside;
mod chain;
mod error;
mod moving;
mod pack;
mod postgres;
mod shared;
mod sqlite;
mod study;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use aside::{Aside, sound};
pub use chain::{AuditCheck, AuditMark, Tampered};
pub(crate) use chain::{Chained, FORGOTTEN, Walk};
pub use error::StoreError;
pub use moving::Moved;
pub(crate) use moving::{back_up, move_to};
pub(crate) use postgres::{Notices, Postgres};
pub(crate) use shared::Shared;
#[cfg(test)]
pub(crate) use sqlite::Cut;
pub(crate) use sqlite::Sqlite;
pub(crate) use study::{
    Begun, Candidate, CellRow, InStudy, Measured, MemberRow, NewStudy, Standing, Study, StudyKind,
    StudyStep,
};
pub(crate) use turn::Turn;

use serde::{Deserialize, Serialize};
use serde_json::json;
use trimtab_fleet_client::{Audit, Counts, Damaged, Hold, Name, Token};

pub(crate) use crate::broker::Tell;
use crate::metrics::Latency;
use crate::tables::time;

/// The version of the tables. Those of an older version are brought up to date, those of a later one are refused.
pub(crate) const SCHEMA_VERSION: u32 = 7;

/// The part of a schema that a version added.
fn since(schema: &'static str, version: u32) -> &'static str {
    let mark = "-- Since version ";
    let at = schema.find(&format!("{mark}{version}")).expect("the schema has this line");
    let part = &schema[at..];
    part[mark.len()..].find(mark).map_or(part, |end| &part[..mark.len() + end])
}

/// How long the intervals of services are, in ms.
pub(crate) type Lengths = std::collections::BTreeMap<String, i64>;

/// What version 4 changes in tables of version 3, in the words of both kinds of SQL.
const FROM_3: &str = include_str!("from-3.sql");

/// A token with what is kept of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptToken {
    pub(crate) token: Token,
    /// SHA-256 of the secret.
    pub(crate) hash: Vec<u8>,
    /// The same of the secret before, where there is one.
    pub(crate) former: Option<Vec<u8>>,
}

impl KeptToken {
    /// What the audit says of a new one.
    fn detail(&self) -> String {
        let Token { role, services, prefixes, expires_ms, .. } = &self.token;
        let expires = expires_ms.map_or_else(|| "never".to_owned(), time);
        format!("{} {} {}, expires: {expires}", role.name(), json!(services), json!(prefixes))
    }
}

/// Another secret for a token.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    pub(crate) name: String,
    /// SHA-256 of the new secret.
    pub(crate) hash: Vec<u8>,
    /// When it expires.
    pub(crate) expires_ms: Option<i64>,
    /// When the present one expires, if it does not before.
    pub(crate) former_expires_ms: i64,
    pub(crate) now_ms: i64,
}

impl Rotation {
    /// What the audit says of it.
    fn detail(&self) -> String {
        let expires = self.expires_ms.map_or_else(|| "never".to_owned(), time);
        let former = time(self.former_expires_ms);
        format!("expires: {expires}; the secret before: {former} at the latest")
    }
}

/// When a secret was used last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The number of its token.
    pub(crate) token: i64,
    /// SHA-256 of it: the token may have another one by now.
    pub(crate) hash: Vec<u8>,
    pub(crate) at_ms: i64,
}

/// A report, as it is kept until its interval is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) name: Name,
    /// When its interval begins, in ms since 1970. The store knows intervals by that, so that they
    /// may have another length from one day to the next.
    pub(crate) interval: i64,
    /// Of the configuration that it was measured under.
    pub(crate) version: i64,
    /// Encoded.
    pub(crate) bytes: Vec<u8>,
}

/// What an edge sends at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The number of the edge's token.
    pub(crate) token: i64,
    /// Larger than that of any batch of this edge before.
    pub(crate) sequence: i64,
    /// SHA-256 of its number and reports, to tell a batch that is sent again from another with its number.
    pub(crate) digest: [u8; 32],
    pub(crate) received_ms: i64,
    pub(crate) reports: Vec<Report>,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It is kept.
    Accepted {
        /// So many of its reports came after their interval was closed; they are not kept.
        late: u32,
        /// So many were kept before, under another number: the same edge, aggregate, interval and version.
        repeated: u32,
    },
    /// It was kept before: the edge did not hear the answer.
    Again {
        /// So many of its reports were late then.
        late: u32,
    },
    /// Another batch with this number, or a later one, was kept before.
    Replayed {
        /// The number of the last one that was kept.
        last: i64,
    },
}

/// An aggregate with reports of an interval that is over.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) name: Name,
    /// When it begins, in ms since 1970.
    pub(crate) interval: i64,
    pub(crate) hold: Hold,
    pub(crate) version: i64,
    pub(crate) configuration: String,
    pub(crate) state: Option<String>,
    /// Encoded.
    pub(crate) reports: Vec<Vec<u8>>,
    /// The tokens of the edges that sent them, in the same order.
    pub(crate) edges: Vec<Option<i64>>,
    /// The experiments and rollouts that decide what it runs, the running one first.
    pub(crate) studies: Vec<InStudy>,
}

/// What closing it leaves.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) state: Option<String>,
    /// A new one, where it changes, with its version.
    pub(crate) configuration: Option<(i64, String)>,
    pub(crate) reward: Option<f64>,
    /// Why, as JSON.
    pub(crate) detail: String,
    /// What it adds to an experiment or a rollout.
    pub(crate) measured: Option<Measured>,
    /// Why it takes no further part in one that is running.
    pub(crate) leaves: Option<String>,
    /// What its decisions show of the learning.
    pub(crate) shown: Vec<Shown>,
}

impl Closed {
    /// What made its aggregate fall back to the safe configuration, where something did.
    fn alarm(&self) -> Option<&'static str> {
        self.shown.iter().find_map(|shown| shown.alarm)
    }
}

/// What one decision shows of the learning, for who counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// What made it fall back to the safe configuration: `guard`, `reward` or `debt`.
    pub(crate) alarm: Option<&'static str>,
    /// Guards that were broken.
    pub(crate) broken: usize,
    /// Who chose what was tried, `learnt` or `safe`, and the reward of that; none where an operator
    /// or a study did.
    pub(crate) reward: Option<(&'static str, f64)>,
}

/// Which aggregates to close.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due<'a> {
    pub(crate) service: &'a str,
    /// When the last interval that is over begins.
    pub(crate) through: i64,
    /// At most so many in one transaction.
    pub(crate) limit: usize,
    pub(crate) now_ms: i64,
}

/// A configuration in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InForce {
    pub(crate) name: Name,
    pub(crate) version: i64,
    pub(crate) configuration: String,
}

/// An aggregate, as a row of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) name: Name,
    pub(crate) hold: Hold,
    pub(crate) version: i64,
    pub(crate) configuration: String,
    /// The learner's; none in a list.
    pub(crate) state: Option<String>,
    /// When the last interval that was closed begins.
    pub(crate) closed: Option<i64>,
    pub(crate) reward: Option<f64>,
    pub(crate) decisions: i64,
    pub(crate) changed_ms: i64,
}

/// An aggregate whose row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) id: i64,
    /// As far as it can be read.
    pub(crate) name: Name,
    /// Whether all of the name can be read, so that the aggregate can be asked for by it.
    pub(crate) is_named: bool,
}

/// An aggregate of a list.
pub(crate) type Listed = Result<Row, Unreadable>;

/// Which aggregates to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// A part of the service's name or the prefix.
    pub(crate) text: String,
    pub(crate) service: Option<String>,
    pub(crate) hold: Option<Hold>,
    /// After this one, in the order of names.
    pub(crate) after: Option<Name>,
    /// So many that can be read, at most.
    pub(crate) limit: usize,
}

/// A decision, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decided {
    /// When it begins, in ms since 1970.
    pub(crate) interval: i64,
    pub(crate) at_ms: i64,
    pub(crate) hold: Hold,
    pub(crate) version: i64,
    pub(crate) configuration: String,
    pub(crate) reports: i64,
    pub(crate) reward: Option<f64>,
    pub(crate) detail: String,
}

/// What an operator does to an aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) who: String,
    pub(crate) action: &'static str,
    pub(crate) hold: Hold,
    /// Put in force, where one is given, with its version.
    pub(crate) configuration: Option<(i64, String)>,
    /// The learner's, where it changes.
    pub(crate) state: Option<String>,
    pub(crate) detail: String,
    pub(crate) now_ms: i64,
}

/// The action of a line that says what was refused.
pub(crate) const REFUSED: &str = "refused";

/// The action of a line that says which aggregates fell back to the safe configuration.
pub(crate) const FELL_BACK: &str = "fell back";
/// It names so many of them.
const FELL_BACK_MAX: usize = 20;

/// Who acts where no person does, in the audit.
pub(crate) const ITSELF: &str = "(the engine)";

/// Lines of the audit go by days: the oldest one stays for up to a day longer than it has to, so
/// that a line says once a day which ones went, and not with each of them.
const AUDIT_SLACK_MS: i64 = 24 * 3_600_000;

/// A line for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at_ms: i64,
    pub(crate) who: String,
    pub(crate) action: &'static str,
    pub(crate) subject: String,
    pub(crate) detail: String,
}

impl Line {
    fn texts(&self) -> [&str; 4] {
        [&self.who, self.action, &self.subject, &self.detail]
    }

    /// That aggregates of a service fell back, each with its alarm; none where none did.
    fn fell_back(service: &str, all: &[(Name, &'static str)], now_ms: i64) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let named = all.iter().take(FELL_BACK_MAX);
        let named: Vec<String> =
            named.map(|(name, alarm)| format!("{} ({alarm})", name.prefix)).collect();
        let more = match all.len() - named.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let detail = format!("{} to the safe configuration: {}{more}", all.len(), named.join(", "));
        let (who, subject) = (ITSELF.to_owned(), service.to_owned());
        Some(Self { at_ms: now_ms, who, action: FELL_BACK, subject, detail })
    }

    /// That lines were deleted: from one up to this one.
    fn forgotten(from: i64, last: &AuditMark, now_ms: i64) -> Self {
        Self {
            at_ms: now_ms,
            who: ITSELF.to_owned(),
            action: FORGOTTEN,
            subject: format!("lines {from} to {}", last.line),
            detail: last.to_string(),
        }
    }
}

/// Says what the orders of services that are kept safe are from now on, and the line in the audit;
/// or why they stay as they are.
pub(crate) type ChangeSafe<'a> = dyn FnMut(&str) -> Result<(String, Line), String> + 'a;

/// Decides on intervals that are over.
pub(crate) trait Decide {
    /// What is made of each, in their order; or why nothing can be, for then its aggregate is set
    /// aside. Each is of another aggregate.
    fn on(&mut self, open: &[Open]) -> Vec<Result<Closed, String>>;

    /// Takes what the aggregates of the service found until now, as [`Decide::found`] left it; none
    /// where nothing is kept. A transaction begins with it.
    fn heed(&mut self, _kept: Option<&str>) {}

    /// Whether the decisions since [`Decide::heed`] found something for other aggregates.
    fn has_found(&self) -> bool {
        false
    }

    /// What is kept from now on, where `kept` is now: another engine may have added to it since.
    fn found(&mut self, _kept: Option<&str>) -> Option<String> {
        None
    }
}

/// The key under which the table `meta` has what the aggregates of a service found.
fn found_key(service: &str) -> String {
    format!("found:{service}")
}

/// One after the other.
impl<F: FnMut(&Open) -> Result<Closed, String>> Decide for F {
    fn on(&mut self, open: &[Open]) -> Vec<Result<Closed, String>> {
        open.iter().map(|open| sound(|| self(open))).collect()
    }
}

/// Cuts a list where an aggregate comes again, by its number: what is decided on it the second time
/// goes by the first.
pub(crate) fn waves<T>(all: &[T], id: impl Fn(&T) -> i64) -> Vec<&[T]> {
    let (mut waves, mut from) = (Vec::new(), 0);
    let mut seen = std::collections::BTreeSet::new();
    for (at, one) in all.iter().enumerate() {
        if !seen.insert(id(one)) {
            waves.push(&all[from..at]);
            seen = [id(one)].into();
            from = at;
        }
    }
    if from < all.len() {
        waves.push(&all[from..]);
    }
    waves
}

/// Where the engine keeps what it must not lose. Calls block.
pub(crate) trait Store: Send + Sync {
    /// Where that is, for who runs the engine.
    fn way(&self) -> String;

    /// How many may be in [`Store::accept`] at a time and be of use.
    fn doors(&self) -> usize {
        1
    }

    /// From now on, tells of changes that other engines with the same store make.
    fn on_change(&self, _tell: Tell) {}

    /// Keeps batches, each wholly or not at all, and says what became of each; in the order given.
    fn accept(&self, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError>;

    /// Closes intervals that are due, the oldest first: for each, asks `decide` and keeps what it
    /// says, in one transaction for all. Says whose configuration changed, and how many were
    /// closed; with fewer than the limit, no more are due. An aggregate that cannot be read or
    /// decided on is [set aside](Self::damaged), and the others are not kept waiting. Who fell back
    /// is a line of the audit.
    fn close(
        &self,
        due: &Due<'_>,
        decide: &mut dyn Decide,
    ) -> Result<(usize, Vec<Name>), StoreError>;

    /// Those of these names of which there is no aggregate, in their order.
    fn unknown(&self, names: &[Name]) -> Result<Vec<Name>, StoreError>;

    /// Aggregates that are set aside.
    fn damaged(&self) -> Vec<Damaged>;

    /// Forgets what aggregates have learnt, of all or of none, and writes that down; false where there
    /// is none of one of these names.
    fn reset(
        &self,
        names: &[Name],
        who: &str,
        detail: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError>;

    /// The configurations in force of those of these that there are.
    fn in_force(&self, names: &[Name]) -> Result<Vec<InForce>, StoreError>;

    /// Aggregates, in the order of their names. One that cannot be read holds up no other: the list
    /// ends with the last one that may be in it and can be read, or with all.
    fn aggregates(&self, search: &Search) -> Result<Vec<Listed>, StoreError>;

    /// The number of one, also of one that cannot be read.
    fn number(&self, name: &Name) -> Result<Option<i64>, StoreError>;

    /// One, without what it has learnt.
    fn aggregate(&self, name: &Name) -> Result<Option<Row>, StoreError>;

    /// The learner's state of one; none where it has none, or there is no such aggregate.
    fn learnt(&self, aggregate: i64) -> Result<Option<String>, StoreError>;

    /// Decisions about one, the latest first, of intervals that begin before a time.
    fn decisions(
        &self,
        aggregate: i64,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Decided>, StoreError>;

    /// Carries out an operator's orders on aggregates that have had no decision and no order since
    /// they were read, on all or on none; takes them out of an experiment or rollout that is
    /// running, and writes each down. False: one has changed.
    fn order(&self, orders: &[(Row, Order)]) -> Result<bool, StoreError>;

    /// The audit log, the latest first, of lines before a given one; of these only what was refused,
    /// or only the others, where that is asked for.
    fn audit(
        &self,
        before: i64,
        refused: Option<bool>,
        limit: usize,
    ) -> Result<Vec<Audit>, StoreError>;

    /// Lines of the audit after one, in their order.
    fn audit_after(&self, line: i64, limit: usize) -> Result<Vec<Chained>, StoreError>;

    /// Takes the turn of sending a webhook's events, or gives it up, and keeps up to which line of
    /// the audit they were sent. Says which line that is; none: it is another engine's turn.
    fn take_turn(&self, turn: &Turn<'_>) -> Result<Option<i64>, StoreError>;

    /// Adds lines to the audit.
    fn write_down(&self, lines: &[Line]) -> Result<(), StoreError>;

    /// The orders that keep services on their safe configurations, as a text; empty where there are
    /// none.
    fn safe_orders(&self) -> Result<String, StoreError>;

    /// Changes them, one caller at a time, and writes that down; or says why not.
    fn change_safe_orders(
        &self,
        change: &mut ChangeSafe<'_>,
    ) -> Result<Result<(), String>, StoreError>;

    /// Checks that no line of the audit was changed, removed or inserted, and that a known one is
    /// there.
    fn check_audit(&self, known: Option<&AuditMark>) -> Result<AuditCheck, StoreError>;

    /// Deletes the lines of the audit from before a time where the oldest is a day older, and adds a
    /// line that says which ones; says how many.
    fn forget_audit(&self, before_ms: i64, now_ms: i64) -> Result<usize, StoreError>;

    /// Every token.
    fn tokens(&self) -> Result<Vec<KeptToken>, StoreError>;

    /// Adds a token and gives it a number, and writes that down; none where the name is taken.
    fn add_token(&self, token: &KeptToken, who: &str) -> Result<Option<i64>, StoreError>;

    /// Gives a token that is not revoked another secret, and writes that down; false where there is
    /// none.
    fn rotate_token(&self, new: &Rotation, who: &str) -> Result<bool, StoreError>;

    /// Keeps when secrets were used, where that is later than what is kept.
    fn used(&self, uses: &[Use]) -> Result<(), StoreError>;

    /// Revokes the token of a name, and writes that down; false where there is none that is not revoked.
    fn revoke_token(&self, name: &str, who: &str, now_ms: i64) -> Result<bool, StoreError>;

    /// Experiments or rollouts, the latest first.
    fn studies(&self, service: Option<&str>, kind: StudyKind) -> Result<Vec<Study>, StoreError>;

    /// Those of a service that decide what aggregates run, the running one first.
    fn active_studies(&self, service: &str) -> Result<Vec<std::sync::Arc<Study>>, StoreError>;

    /// The aggregates of a service that were decided on in an interval that began at a time or
    /// since, with their mean rewards since.
    fn candidates(&self, service: &str, from: i64) -> Result<Vec<Candidate>, StoreError>;

    /// Begins an experiment or a rollout where none of the service is running, and writes it down.
    fn begin(&self, new: &NewStudy) -> Result<Begun, StoreError>;

    /// Changes one that is as it was when it was read, and writes it down. False: it has changed.
    fn step(&self, study: &Study, step: &StudyStep) -> Result<bool, StoreError>;

    /// Who takes part in one.
    fn members(&self, study: i64) -> Result<Vec<MemberRow>, StoreError>;

    /// What was measured in one.
    fn cells(&self, study: i64) -> Result<Vec<CellRow>, StoreError>;

    /// From now on, says how long each question and each transaction takes.
    fn time(&self, latency: Latency);

    /// When each edge reported last, in ms since 1970, by the number of its token.
    fn edges_seen(&self) -> Result<Vec<(i64, i64)>, StoreError>;

    /// How much there is.
    fn counts(&self) -> Result<Counts, StoreError>;

    /// Forgets decisions, and reports that nobody closes, from before a time, at most so many of
    /// each; says how many.
    fn forget(&self, before_ms: i64, limit: usize) -> Result<usize, StoreError>;
}
