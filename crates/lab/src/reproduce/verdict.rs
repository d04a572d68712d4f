//! Ours next to the paper's.

use serde::{Deserialize, Serialize};

use super::Entry;
use crate::stats::Estimate;

/// The values that agree with the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// From this value on, ours agrees; exclusive where it equals `contradicts_below`.
    pub at_least: f64,
    /// Above this value, ours contradicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Up to this value, ours contradicts; between it and `at_least` it is smaller.
    #[serde(default)]
    pub contradicts_below: f64,
}

impl Band {
    /// Whether a band can be met, and each verdict has room.
    pub fn is_sound(&self) -> bool {
        self.contradicts_below <= self.at_least
            && self.at_most.is_none_or(|most| most > self.at_least)
    }

    /// As people read it, with values in percent or not.
    pub(super) fn words(&self, is_change: bool) -> String {
        let unit = if is_change { "%" } else { "" };
        let from = if self.at_least > self.contradicts_below { "from" } else { "above" };
        let most = self.at_most.map_or(String::new(), |most| format!(" to {most}{unit}"));
        format!("agrees {from} {}{unit}{most}", self.at_least)
    }
}

/// What ours says of the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As in the paper.
    Agrees,
    /// In the paper's direction, and less.
    Smaller,
    /// The opposite of the paper, too much, or no change where the paper's is ruled out.
    Contradicts,
    /// The interval has both the opposite and the paper's size.
    NotToldApart,
}

impl Verdict {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Smaller => "smaller",
            Self::Contradicts => "contradicts",
            Self::NotToldApart => "not told apart",
        }
    }

    /// As files have it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::NotToldApart => "not-told-apart",
            other => other.name(),
        }
    }

    fn of(band: &Band, ours: Estimate) -> Self {
        let border = band.contradicts_below;
        if let Some([low, high]) = ours.ci95
            && low <= border
            && border < high
        {
            if high < band.at_least { Self::Contradicts } else { Self::NotToldApart }
        } else if ours.value <= border || band.at_most.is_some_and(|most| ours.value > most) {
            Self::Contradicts
        } else if ours.value < band.at_least {
            Self::Smaller
        } else {
            Self::Agrees
        }
    }
}

/// What a finding is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Runs, or aggregates of a fleet.
    #[default]
    Runs,
    /// Samples of a distribution.
    Samples,
}

impl Counted {
    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Samples => "samples",
        }
    }
}

/// A claim after its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What was compared, in words.
    pub subject: String,
    /// Whether `ours` is a percentage by which something is better, or the quantity itself.
    pub is_change: bool,
    /// Ours with its 95% interval.
    pub ours: Estimate,
    /// How many runs counted, or aggregates of a fleet, or samples.
    pub runs: usize,
    /// What they are.
    #[serde(default)]
    pub counted: Counted,
    /// What it says of the paper's.
    pub verdict: Verdict,
}

impl Finding {
    pub(super) fn new(
        subject: String,
        is_change: bool,
        band: &Band,
        ours: Estimate,
        runs: usize,
    ) -> Self {
        // Of draws that leave nothing to compare with, an end has no value.
        let has_ends = ours.ci95.is_none_or(|ends| ends.iter().all(|end| end.is_finite()));
        let verdict = if has_ends { Verdict::of(band, ours) } else { Verdict::NotToldApart };
        let ours = Estimate { ci95: ours.ci95.filter(|_| has_ends), ..ours };
        Self { subject, is_change, ours, runs, counted: Counted::Runs, verdict }
    }

    fn render(&self) -> String {
        let one = |v: f64| if self.is_change { format!("{v:+.1}%") } else { format!("{v:.3}") };
        let ends = |[low, high]: [f64; 2]| format!(" [{}, {}]", one(low), one(high));
        let interval = self.ours.ci95.map(ends).unwrap_or_default();
        format!(
            "  {:14} {}{interval}: {}, {} {}\n",
            self.verdict.name(),
            one(self.ours.value),
            self.subject,
            self.runs,
            self.counted.name(),
        )
    }
}

/// An entry after its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The entry.
    pub name: String,
    /// What the paper finds.
    pub paper: String,
    /// Ours, claim by claim.
    pub findings: Vec<Finding>,
    /// Whether it is of a quick run, which says little of the paper.
    pub quick: bool,
    /// What is known of a difference.
    pub note: String,
}

impl Outcome {
    pub(super) fn new(entry: &Entry, findings: Vec<Finding>, quick: bool) -> Self {
        let (name, paper, note) = (entry.name.clone(), entry.paper.clone(), entry.note.clone());
        Self { name, paper, findings, quick, note }
    }

    /// Whether every claim agrees.
    pub fn agrees(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict == Verdict::Agrees)
    }

    /// A few lines for a terminal.
    pub fn render(&self) -> String {
        let quick = if self.quick { " (quick: it says little of the paper)" } else { "" };
        let mut text = format!("{}{quick}\n  paper          {}\n", self.name, self.paper);
        text.extend(self.findings.iter().map(Finding::render));
        if !self.agrees() && !self.note.is_empty() {
            text += &format!("  why            {}\n", self.note);
        }
        text
    }
}

/// How many findings agree, are smaller, contradict and are not told apart, for a terminal.
pub fn tally(outcomes: &[Outcome]) -> String {
    let all = || outcomes.iter().flat_map(|outcome| &outcome.findings);
    let count = |verdict| all().filter(|finding| finding.verdict == verdict).count();
    let kinds = [Verdict::Agrees, Verdict::Smaller, Verdict::Contradicts, Verdict::NotToldApart];
    let parts = kinds.map(|kind| format!("{} {}", count(kind), kind.name()));
    format!("{} figures, {} claims: {}\n", outcomes.len(), all().count(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_goes_by_the_band_and_the_interval() {
        let band = Band { at_least: 10.8, at_most: None, contradicts_below: 0.0 };
        let of = |value, ci95| Verdict::of(&band, Estimate { value, ci95 });
        assert_eq!(of(12.0, Some([11.0, 13.0])), Verdict::Agrees);
        assert_eq!(of(3.0, Some([1.0, 5.0])), Verdict::Smaller);
        assert_eq!(of(3.0, Some([-1.0, 5.0])), Verdict::Contradicts, "10.8 is ruled out");
        assert_eq!(of(3.0, Some([-1.0, 12.0])), Verdict::NotToldApart);
        assert_eq!(of(-3.0, Some([-5.0, -1.0])), Verdict::Contradicts);
        let bounded = Band { at_most: Some(20.0), ..band };
        let over = Estimate { value: 25.0, ci95: None };
        assert_eq!(Verdict::of(&bounded, over), Verdict::Contradicts);
        let open = Estimate { value: 12.0, ci95: Some([11.0, f64::NAN]) };
        let finding = Finding::new("x".to_owned(), true, &band, open, 2);
        assert_eq!((finding.verdict, finding.ours.ci95), (Verdict::NotToldApart, None));
        assert!(bounded.is_sound() && !Band { at_most: Some(5.0), ..band }.is_sound());
    }
}
