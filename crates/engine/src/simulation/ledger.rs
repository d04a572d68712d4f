//! What was reported, sent, answered, counted and decided, and whether that is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::MutexGuard;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use trimtab_fleet::Report;
use trimtab_fleet_client::ReportAnswer;
use trimtab_fleet_client::edge::{Edge, Interval, Key};

use super::host::{GRACE_MS, Host};
use super::world::{AGGREGATES, EDGES, INTERVAL_MS, name, prefix, serves};
use crate::store::{Decided, Row, Search, Store};

/// After a fault, edges try again within ten seconds, the engine gives them the grace, and each
/// looks once a second.
const RECOVERY_MS: i64 = GRACE_MS + 15_000;
/// An aggregate that was set aside is tried again so much later.
const AGAIN_MS: i64 = 60_000;
/// How long after its grace an interval is decided on, where nothing is in the way.
const PROMPT_MS: i64 = 2000;
const ROWS_MAX: usize = 1000;

/// A report: aggregate, interval and version. An edge has one of each.
type Identity = (String, i64, u64);

fn identity(report: &Report) -> Identity {
    (report.key.prefix.to_string(), report.interval.0 as i64 * INTERVAL_MS, report.version)
}

/// What an edge sent, and what it was told.
#[derive(Default)]
pub(super) struct Wire {
    /// The batch that was sent last.
    sequence: u64,
    reports: Vec<Value>,
    sent: BTreeSet<Identity>,
    told: BTreeSet<Identity>,
    kept: u64,
    late: u64,
    repeated: u64,
    again: u64,
}

fn read(report: &Value) -> Identity {
    let bytes = STANDARD.decode(report.as_str().expect("a text")).expect("base64");
    identity(&Report::decode(&bytes).expect("a report"))
}

impl Wire {
    /// A batch goes out, maybe not for the first time.
    pub(super) fn sends(&mut self, batch: &Value) {
        let sequence = batch["sequence"].as_u64().expect("a number");
        let reports = batch["reports"].as_array().expect("a list");
        if sequence == self.sequence {
            assert_eq!(&self.reports, reports, "batch {sequence} has other reports than before");
            return;
        }
        assert!(sequence > self.sequence, "batch {sequence} comes after {}", self.sequence);
        self.sent.extend(reports.iter().map(read));
        (self.sequence, self.reports) = (sequence, reports.clone());
    }

    /// The answer to that batch gets to the edge.
    pub(super) fn receives(&mut self, told: &ReportAnswer) {
        let all = told.kept + told.late + told.repeated;
        assert_eq!(all as usize, self.reports.len(), "each report has one answer: {told:?}");
        self.told.extend(self.reports.iter().map(read));
        self.kept += u64::from(told.kept);
        self.late += u64::from(told.late);
        self.repeated += u64::from(told.repeated);
        self.again += u64::from(told.again);
    }
}

/// Who waits for what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    Edge(usize),
    Aggregate(usize),
}

/// What an episode came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    reports: u64,
    counted: u64,
    late: u64,
    repeated: u64,
    pub(super) again: u64,
    decisions: u64,
    pub(super) prompt: u64,
}

impl Summary {
    pub(super) fn add(&mut self, other: &Self) {
        self.reports += other.reports;
        self.counted += other.counted;
        self.late += other.late;
        self.repeated += other.repeated;
        self.again += other.again;
        self.decisions += other.decisions;
        self.prompt += other.prompt;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} reports, {} counted, {} late, {} made twice; {} batches sent again that were kept; \
             {} decisions, {} of them while something was wrong elsewhere or nothing, all in time",
            self.reports,
            self.counted,
            self.late,
            self.repeated,
            self.again,
            self.decisions,
            self.prompt
        )
    }
}

/// Everything that has to add up.
pub(super) struct Ledger {
    begin_ms: i64,
    /// Of each edge.
    recorded: [BTreeSet<Identity>; EDGES],
    /// Those of them whose interval is by a clock that was off.
    misplaced: [BTreeSet<Identity>; EDGES],
    /// When somebody had to wait, in ms since 1970: from, to.
    stirred: Vec<(Scope, i64, i64)>,
    /// Decisions as they were seen, by aggregate and interval.
    seen: BTreeMap<(String, i64), Decided>,
}

impl Ledger {
    pub(super) fn new(begin_ms: i64) -> Self {
        let none = || std::array::from_fn(|_| BTreeSet::new());
        let (recorded, misplaced) = (none(), none());
        Self { begin_ms, recorded, misplaced, stirred: Vec::new(), seen: BTreeMap::new() }
    }

    /// An edge recorded this in this second. Its clock may have been off.
    pub(super) fn recorded(
        &mut self,
        (edge, now_s): (usize, i64),
        key: &Key,
        interval: Interval,
        version: u64,
    ) {
        let begins_ms = interval.0 as i64 * INTERVAL_MS;
        let of = (key.prefix.to_string(), begins_ms, version);
        let now_ms = self.begin_ms + now_s * 1000;
        if !(begins_ms..begins_ms + INTERVAL_MS).contains(&now_ms) {
            self.misplaced[edge].insert(of.clone());
        }
        self.recorded[edge].insert(of);
    }

    /// These are wrong in this second.
    pub(super) fn note(&mut self, now_s: i64, scopes: impl Iterator<Item = Scope>) {
        let now_ms = self.begin_ms + now_s * 1000;
        for scope in scopes {
            match self.stirred.iter().rposition(|(of, ..)| *of == scope) {
                Some(at) if self.stirred[at].2 >= now_ms - 1000 => self.stirred[at].2 = now_ms,
                _ => self.stirred.push((scope, now_ms, now_ms)),
            }
        }
    }

    /// Whether this was wrong between these, or so shortly before that it may still show.
    fn was_stirred(&self, scope: Scope, from_ms: i64, to_ms: i64) -> bool {
        let again_ms = if matches!(scope, Scope::Aggregate(_)) { AGAIN_MS } else { 0 };
        self.stirred.iter().any(|(of, begun_ms, ended_ms)| {
            *of == scope && *begun_ms <= to_ms && *ended_ms + RECOVERY_MS + again_ms >= from_ms
        })
    }

    /// Reads all decisions: those that were seen before are there, and the same.
    pub(super) fn look(&mut self, host: &Host) {
        let all: BTreeMap<(String, i64), Decided> = host.read(|store| {
            let search = Search { limit: ROWS_MAX, ..Search::default() };
            let all = store.aggregates(&search).expect("aggregates");
            let rows: Vec<Row> = all.into_iter().map(|one| one.expect("it can be read")).collect();
            let of = |row: &Row| {
                let decisions = store.decisions(row.id, i64::MAX, usize::MAX);
                let prefix = row.name.prefix.clone();
                let decisions = decisions.expect("decisions").into_iter();
                decisions.map(move |one| ((prefix.clone(), one.interval), one))
            };
            rows.iter().flat_map(of).collect()
        });
        for (at, decision) in &self.seen {
            assert_eq!(all.get(at), Some(decision), "the decision of {at:?} was lost or changed");
        }
        self.seen = all;
    }

    pub(super) fn check(&self, host: &Host, edges: &[(&Edge, MutexGuard<'_, Wire>)]) -> Summary {
        let mut sum = Summary { decisions: self.seen.len() as u64, ..Summary::default() };
        // Every report was sent until it was answered, and each answer is known to its edge.
        for (n, (edge, wire)) in edges.iter().enumerate() {
            let status = edge.status();
            assert_eq!((status.waiting, status.dropped), (0, 0), "edge {n}: {status:?}");
            assert_eq!((status.kept, status.late), (wire.kept, wire.late), "edge {n}");
            let lost: Vec<_> = self.recorded[n].difference(&wire.told).collect();
            assert!(lost.is_empty(), "edge {n} was never told of {lost:?}");
            sum.reports += wire.kept + wire.late + wire.repeated;
            sum.late += wire.late;
            sum.repeated += wire.repeated;
            sum.again += wire.again;
        }
        // What was acknowledged counts, once; and nothing else does.
        let mut most: BTreeMap<(&str, i64), i64> = BTreeMap::new();
        for (prefix, interval, _) in edges.iter().flat_map(|(_, wire)| &wire.sent) {
            *most.entry((prefix.as_str(), *interval)).or_default() += 1;
        }
        for ((prefix, interval), decision) in &self.seen {
            let most = most.get(&(prefix.as_str(), *interval)).copied().unwrap_or(0);
            let counted = decision.reports;
            assert!(counted <= most, "{prefix} at {interval}: {counted} of {most} reports count");
            sum.counted += counted as u64;
        }
        let kept: u64 = edges.iter().map(|(_, wire)| wire.kept).sum();
        assert_eq!(sum.counted, kept, "what was acknowledged counts once");
        let waiting = host.read(|store| store.counts().expect("counts").waiting_reports);
        assert_eq!(waiting, 0, "every interval is closed");
        // No decision is lost on its way to an edge, either.
        for aggregate in 0..AGGREGATES {
            let row = host.read(|store| store.aggregate(&name(&prefix(aggregate))));
            let row = row.expect("the store answers").expect("it is there");
            let key: Key = format!("tv/{}", prefix(aggregate)).parse().expect("a key");
            for (n, (edge, _)) in edges.iter().enumerate().filter(|(n, _)| serves(*n, aggregate)) {
                let has = edge.known(&key).map(|force| force.configuration.version as i64);
                assert_eq!(has, Some(row.version), "edge {n} of {key}");
            }
            sum.prompt += self.check_in_time(aggregate);
        }
        sum
    }

    /// Intervals that nothing kept waiting are decided on in time, whatever was wrong with other
    /// aggregates and edges; returns how many there are.
    fn check_in_time(&self, aggregate: usize) -> u64 {
        let prefix = prefix(aggregate);
        let mut prompt = BTreeSet::new();
        for (n, recorded) in self.recorded.iter().enumerate() {
            let placed = recorded.difference(&self.misplaced[n]);
            for (_, interval, _) in placed.filter(|(of, ..)| *of == prefix) {
                let due_ms = interval + INTERVAL_MS + GRACE_MS + PROMPT_MS;
                let waits = [Scope::All, Scope::Edge(n), Scope::Aggregate(aggregate)]
                    .into_iter()
                    .any(|scope| self.was_stirred(scope, *interval, due_ms));
                if waits {
                    continue;
                }
                let decision = self.seen.get(&(prefix.clone(), *interval));
                let decision =
                    decision.unwrap_or_else(|| panic!("no decision on {prefix} at {interval}"));
                let at_ms = decision.at_ms;
                assert!(at_ms <= due_ms, "{prefix} at {interval}: decided {at_ms}, due {due_ms}");
                prompt.insert(*interval);
            }
        }
        prompt.len() as u64
    }
}
