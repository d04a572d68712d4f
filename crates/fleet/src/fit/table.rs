//! What the log has to fit a surrogate to: the statistics that one may read, and the intervals with
//! a reward.

use std::collections::{BTreeMap, BTreeSet};

use trimtab_qoe::{AggregateFormula, Statistic, StatisticKind};

use super::{AGGREGATES_MIN, INTERVALS_MIN, SurrogateFitError, Unsuitable};
use crate::{Decision, Interval, Key, Service};

/// A statistic that is known in a smaller share of intervals is left out, or intervals would be.
const KNOWN_MIN: f64 = 0.9;
/// So many intervals without a reward show which statistics go missing with it.
const WITHOUT_MIN: usize = 20;

/// An interval with a reward.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    pub(super) key: &'a Key,
    pub(super) context: &'a str,
    pub(super) interval: Interval,
    /// The candidates, then the present surrogate where it is known, then the reward; all finite.
    pub(super) values: Vec<f64>,
}

/// Intervals with a reward, in the order of aggregates, contexts and time.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    pub(super) candidates: Vec<String>,
    pub(super) unsuitable: Vec<Unsuitable>,
    /// Whether there is a present surrogate with enough values.
    pub(super) has_present: bool,
    pub(super) rows: Vec<Row<'a>>,
    /// Decisions that were read.
    pub(super) decisions: u64,
}

/// A decision with what may be computed from it.
struct Known<'a> {
    decision: &'a Decision,
    by_name: BTreeMap<&'a str, f64>,
    reward: Option<f64>,
    present: Option<f64>,
}

impl<'a> Known<'a> {
    fn new(service: &Service, decision: &'a Decision) -> Self {
        let finite = decision.statistics.iter().filter(|(_, value)| value.is_finite());
        let by_name: BTreeMap<&str, f64> =
            finite.map(|(name, value)| (name.as_str(), *value)).collect();
        let value = |formula: &AggregateFormula| {
            let value = formula.value(|s| by_name.get(s.to_string().as_str()).copied());
            value.is_finite().then_some(value)
        };
        let (reward, present) = (value(service.reward()), service.surrogate().and_then(value));
        Self { decision, by_name, reward, present }
    }

    fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}

impl<'a> Table<'a> {
    /// Reads decisions, in any order.
    pub(super) fn read(
        service: &Service,
        decisions: impl IntoIterator<Item = &'a Decision>,
    ) -> Result<Self, SurrogateFitError> {
        let mut read = 0;
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for decision in decisions {
            read += 1;
            if decision.connections < service.connections_min() {
                continue;
            }
            let known = Known::new(service, decision);
            if known.reward.is_some() { with.push(known) } else { without.push(known) }
        }
        check(&with)?;
        let (mut candidates, mut unsuitable) = (Vec::new(), Vec::new());
        let names: BTreeSet<&str> =
            with.iter().flat_map(|one| one.by_name.keys().copied()).collect();
        for name in names {
            match rules_out(service, name, &with, &without) {
                None => candidates.push(name.to_owned()),
                Some(why) => unsuitable.push(Unsuitable { statistic: name.to_owned(), why }),
            }
        }
        if candidates.is_empty() {
            return Err(SurrogateFitError::NoCandidate { unsuitable });
        }
        let has_present = is_most(&with, |one| one.present.is_some());
        let row = |one: &Known<'a>| {
            let read = candidates.iter().map(|name| one.by_name.get(name.as_str()).copied());
            let present = has_present.then_some(one.present);
            Some(Row {
                key: &one.decision.key,
                context: &one.decision.context,
                interval: one.decision.interval,
                values: read.chain(present).chain([one.reward]).collect::<Option<_>>()?,
            })
        };
        let mut rows: Vec<Row<'a>> = with.iter().filter_map(row).collect();
        rows.sort_by_key(|row| (row.key, row.context, row.interval));
        Ok(Self { candidates, unsuitable, has_present, rows, decisions: read })
    }

    /// The columns of a row.
    pub(super) fn width(&self) -> usize {
        self.reward() + 1
    }

    /// The column of the reward.
    pub(super) fn reward(&self) -> usize {
        self.candidates.len() + usize::from(self.has_present)
    }

    /// The column of the present surrogate.
    pub(super) fn present(&self) -> Option<usize> {
        self.has_present.then_some(self.candidates.len())
    }
}

/// Whether there are enough.
fn check(with: &[Known<'_>]) -> Result<(), SurrogateFitError> {
    let aggregates = with.iter().map(|one| &one.decision.key).collect::<BTreeSet<_>>().len() as u64;
    let intervals = with.len() as u64;
    if intervals >= INTERVALS_MIN && aggregates >= AGGREGATES_MIN {
        return Ok(());
    }
    Err(SurrogateFitError::TooFew { intervals, aggregates })
}

fn is_most(of: &[Known<'_>], holds: impl Fn(&Known<'_>) -> bool) -> bool {
    of.iter().filter(|one| holds(one)).count() as f64 >= KNOWN_MIN * of.len() as f64
}

/// Why no surrogate reads a statistic; none where one may.
fn rules_out(
    service: &Service,
    name: &str,
    with: &[Known<'_>],
    without: &[Known<'_>],
) -> Option<String> {
    let Some(statistic) = Statistic::parse(name) else {
        return Some("it is no statistic of this version".to_owned());
    };
    if matches!(statistic.kind, StatisticKind::Count | StatisticKind::Sum) {
        return Some(
            "it goes with the amount of traffic, which no configuration decides".to_owned(),
        );
    }
    let knows = |one: &&Known<'_>| one.knows(name);
    if !is_most(with, |one| one.knows(name)) {
        let known = with.iter().filter(knows).count();
        return Some(format!("it is known in {known} of {} intervals with a reward", with.len()));
    }
    // A surrogate is for intervals without a reward, so these show what is known then. Where there
    // are none, what the reward reads is taken to go missing with it.
    if without.len() >= WITHOUT_MIN {
        let known = without.iter().filter(knows).count();
        let said =
            || format!("it is known in {known} of {} intervals without a reward", without.len());
        return (!is_most(without, |one| one.knows(name))).then(said);
    }
    let is_read = service.reward().statistics().iter().any(|read| read.of == statistic.of);
    is_read.then(|| "the reward reads it".to_owned())
}
