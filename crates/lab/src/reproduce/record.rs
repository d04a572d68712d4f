//! Verdicts that are kept in the repository, and how many entries there are of each kind.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{CatalogueError, Entry, Outcome, Verdict};

/// The file that `trimtab reproduce --record` writes.
const FILE: &str = include_str!("../../scenarios/papers/verdicts.toml");

/// The verdicts of whole runs by the names of their entries, claim by claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<String, Vec<Verdict>>);

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ran as a whole: the worst verdict on its claims.
    Judged(Verdict),
    /// It runs, and no verdict is recorded.
    Open,
    /// Another command shows it.
    Command,
    /// A note says why nothing shows it.
    Reason,
}

impl Status {
    /// All of them, in the order of counts.
    const ALL: [Self; 7] = [
        Self::Judged(Verdict::Agrees),
        Self::Judged(Verdict::Smaller),
        Self::Judged(Verdict::Contradicts),
        Self::Judged(Verdict::NotToldApart),
        Self::Open,
        Self::Command,
        Self::Reason,
    ];

    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Judged(verdict) => verdict.name(),
            Self::Open => "not recorded",
            Self::Command => "by command",
            Self::Reason => "reason",
        }
    }

    /// As a number of entries precedes it.
    fn plural(self) -> &'static str {
        match self {
            Self::Judged(Verdict::Agrees) => "agree",
            Self::Judged(Verdict::Contradicts) => "contradict",
            Self::Reason => "with a reason",
            other => other.name(),
        }
    }
}

impl Record {
    /// The record of the repository.
    ///
    /// # Errors
    /// The file does not read, which its test rules out.
    pub fn shipped() -> Result<Self, CatalogueError> {
        Self::read(FILE)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The text is none.
    pub fn read(text: &str) -> Result<Self, CatalogueError> {
        Ok(Self(toml::from_str(text)?))
    }

    /// Enters what a whole run found. False where the outcome is of a quick run, or of other claims than the
    /// entry has.
    pub fn enter(&mut self, entry: &Entry, outcome: &Outcome) -> bool {
        let verdicts: Vec<Verdict> = outcome.findings.iter().map(|f| f.verdict).collect();
        let fits = !outcome.quick && verdicts.len() == entry.claims();
        if fits {
            self.0.insert(entry.name.clone(), verdicts);
        }
        fits
    }

    /// What is known of an entry. Of several claims the worst verdict counts: a contradiction, then a smaller
    /// effect, then one that is not told apart.
    pub fn status(&self, entry: &Entry) -> Status {
        if !entry.runs() {
            return if entry.command.is_empty() { Status::Reason } else { Status::Command };
        }
        let verdicts = self.0.get(&entry.name).filter(|all| all.len() == entry.claims());
        let Some(verdicts) = verdicts else { return Status::Open };
        let order = [Verdict::Contradicts, Verdict::Smaller, Verdict::NotToldApart];
        let worst = order.into_iter().find(|verdict| verdicts.contains(verdict));
        Status::Judged(worst.unwrap_or(Verdict::Agrees))
    }

    /// How many entries there are, and of each status.
    pub fn counts(&self, entries: &[Entry]) -> String {
        let of = |status: Status| {
            let count = entries.iter().filter(|entry| self.status(entry) == status).count();
            format!("{count} {}", status.plural())
        };
        format!("{} entries: {}", entries.len(), Status::ALL.map(of).join(", "))
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let head =
            "The verdicts of whole runs, claim by claim. `trimtab reproduce --record` writes it.";
        let mut text = format!("# {head}\n");
        for (name, verdicts) in &self.0 {
            let words = verdicts.iter().map(|verdict| format!("\"{}\"", verdict.word()));
            let _ = writeln!(text, "\"{name}\" = [{}]", words.collect::<Vec<_>>().join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Band, Finding, catalogue, find};
    use crate::stats::Estimate;

    fn outcome(entry: &Entry, values: &[f64], quick: bool) -> Outcome {
        let band = Band { at_least: 10.0, at_most: None, contradicts_below: 0.0 };
        let finding = |&value| {
            let ours = Estimate { value, ci95: None };
            Finding::new("x".to_owned(), true, &band, ours, 1)
        };
        Outcome::new(entry, values.iter().map(finding).collect(), quick)
    }

    #[test]
    fn the_worst_claim_decides_and_quick_runs_do_not_count() {
        let entries = catalogue().unwrap();
        let entry = find(&entries, "pcc/fig9").unwrap();
        let mut record = Record::default();
        assert!(!record.enter(entry, &outcome(entry, &[20.0, 20.0], true)));
        assert!(!record.enter(entry, &outcome(entry, &[20.0], false)), "it has two claims");
        assert_eq!(record.status(entry), Status::Open);
        for (values, worst) in [
            ([20.0, 20.0], Verdict::Agrees),
            ([20.0, 5.0], Verdict::Smaller),
            ([-5.0, 5.0], Verdict::Contradicts),
        ] {
            assert!(record.enter(entry, &outcome(entry, &values, false)));
            assert_eq!(record.status(entry), Status::Judged(worst));
        }
        assert_eq!(Record::read(&record.to_toml()).unwrap(), record);
        let text = record.to_toml();
        assert!(text.ends_with("\"pcc/fig9\" = [\"contradicts\", \"smaller\"]\n"), "{text}");
    }

    #[test]
    fn every_entry_is_counted_once() {
        let entries = catalogue().unwrap();
        let counts = Record::default().counts(&entries);
        let numbers: Vec<usize> =
            counts.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        assert_eq!(numbers[0], entries.len());
        assert_eq!(numbers[1..].iter().sum::<usize>(), entries.len(), "{counts}");
    }

    #[test]
    fn what_ships_is_of_entries_that_run() {
        let entries = catalogue().unwrap();
        let record = Record::shipped().unwrap();
        assert_eq!(record.to_toml(), FILE);
        for name in record.0.keys() {
            let entry = find(&entries, name).unwrap();
            let is_judged = matches!(record.status(entry), Status::Judged(_));
            assert!(is_judged, "{name} has other claims now: run it, and `reproduce --record`");
        }
    }
}
