//! Ours next to the paper's.

use serde::{Deserialize, Serialize};
use trimtab_steer::scheme::{is_bound, is_steered};

use super::{Entry, Quantity, Recipe};
use crate::result::{Comparison, RunRecord};
use crate::stats::summary::{Runs, TRACES_MIN, in_order, interval, keyed};
use crate::stats::{Estimate, Sums};

/// Stands for the best scheme that is not steered, and no bound.
pub(super) const BEST_FIXED: &str = "best fixed";

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

    fn of(recipe: &Recipe, ours: Estimate) -> Self {
        let border = recipe.contradicts_below;
        if let Some([low, high]) = ours.ci95
            && low <= border
            && border < high
        {
            if high < recipe.at_least { Self::Contradicts } else { Self::NotToldApart }
        } else if ours.value <= border || recipe.at_most.is_some_and(|most| ours.value > most) {
            Self::Contradicts
        } else if ours.value < recipe.at_least {
            Self::Smaller
        } else {
            Self::Agrees
        }
    }
}

/// An entry after its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The entry.
    pub name: String,
    /// What the paper finds.
    pub paper: String,
    /// What was compared.
    pub quantity: Quantity,
    /// The scheme.
    pub scheme: String,
    /// The scheme that it was compared with; without one `ours` is the quantity itself.
    pub versus: Option<String>,
    /// Ours with its 95% interval: percent by which the scheme is better, or the quantity.
    pub ours: Estimate,
    /// The runs of the scheme that counted.
    pub runs: usize,
    /// What it says of the paper's.
    pub verdict: Verdict,
    /// Whether it is of a quick run, which says little of the paper.
    pub quick: bool,
    /// What is known of a difference.
    pub note: String,
}

impl Outcome {
    /// A few lines for a terminal.
    pub fn render(&self) -> String {
        let percent = self.versus.is_some();
        let one = |v: f64| if percent { format!("{v:+.1}%") } else { format!("{v:.3}") };
        let ends = |[low, high]: [f64; 2]| format!(" [{}, {}]", one(low), one(high));
        let interval = self.ours.ci95.map(ends).unwrap_or_default();
        let rival = self.versus.as_ref().map_or(String::new(), |cc| format!(" vs. {cc}"));
        let quick = if self.quick { ", quick" } else { "" };
        let mut text = format!(
            "{}\n  paper    {}\n  ours     {}{interval}: {} of {}{rival}, {} runs{quick}\n  verdict  {}\n",
            self.name,
            self.paper,
            one(self.ours.value),
            self.quantity.name(),
            self.scheme,
            self.runs,
            self.verdict.name(),
        );
        if self.verdict != Verdict::Agrees && !self.note.is_empty() {
            text += &format!("  why      {}\n", self.note);
        }
        text
    }
}

/// Why a result says nothing of the paper's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// No run has it.
    #[error("{entry}: no run of {scheme} has the {quantity}; see its entry in scenarios/papers")]
    Missing {
        /// The entry.
        entry: String,
        /// The scheme.
        scheme: String,
        /// What was looked for.
        quantity: &'static str,
    },
    /// Percent of nothing, or of a negative number.
    #[error(
        "{entry}: the mean {quantity} of {scheme} is not above 0, so no change has a percentage"
    )]
    NotPositive {
        /// The entry.
        entry: String,
        /// The scheme.
        scheme: String,
        /// What was looked for.
        quantity: &'static str,
    },
}

impl Quantity {
    fn of(self, run: &RunRecord) -> Option<f64> {
        match self {
            Self::Qoe => Some(run.users.mean),
            Self::RctMean => Some(run.rct_ms?.mean),
            Self::RctP90 => Some(run.rct_ms?.p90),
            Self::Jain => run.jain,
            Self::Friendliness => run.friendliness,
        }
    }

    /// Whether less is better.
    fn is_cost(self) -> bool {
        matches!(self, Self::RctMean | Self::RctP90)
    }

    /// By how many percent the first mean is better than the second: the papers compare means.
    fn gain_percent(self, sums: &Sums) -> f64 {
        let change = 100.0 * (sums.a / sums.b - 1.0);
        if self.is_cost() { -change } else { change }
    }
}

/// Compares the result of an entry's recipe with the paper. Changes are paired, as in
/// [`crate::stats::summary`], with whole traces resampled where there are enough.
///
/// # Errors
/// The runs lack what is compared.
pub fn judge(
    entry: &Entry,
    recipe: &Recipe,
    comparison: &Comparison,
    quick: bool,
) -> Result<Outcome, JudgeError> {
    let app = recipe.rows.as_deref().or(comparison.runs.first().map(|run| run.app.as_str()));
    let quantity = recipe.quantity;
    let of = |cc: &str| {
        let counts = |run: &&RunRecord| Some(run.app.as_str()) == app && run.cc == cc;
        let runs = comparison.runs.iter().filter(counts);
        keyed(runs.filter(|run| quantity.of(run).is_some()))
    };
    let value = |run: &RunRecord| quantity.of(run).unwrap_or_default();
    let missing = |scheme: &str| JudgeError::Missing {
        entry: entry.name.clone(),
        scheme: scheme.to_owned(),
        quantity: quantity.name(),
    };
    let own = of(&recipe.scheme);
    if own.is_empty() {
        return Err(missing(&recipe.scheme));
    }
    let versus = match recipe.versus.as_deref() {
        Some(BEST_FIXED) => {
            let schemes = in_order(comparison.runs.iter().map(|run| run.cc.as_str()));
            let fixed = schemes.into_iter().filter(|cc| !is_bound(cc) && !is_steered(cc));
            let fixed = fixed.filter(|cc| *cc != recipe.scheme);
            let merit = |cc: &str| {
                let mean = mean(&of(cc), value)?;
                Some(if quantity.is_cost() { -mean } else { mean })
            };
            let best = fixed.filter_map(|cc| Some((cc, merit(cc)?)));
            let best = best.max_by(|a, b| a.1.total_cmp(&b.1));
            Some(best.ok_or_else(|| missing(BEST_FIXED))?.0.to_owned())
        }
        other => other.map(str::to_owned),
    };
    let rivals = versus.as_deref().map(of);
    let sums: Vec<_> = own
        .iter()
        .filter_map(|(key, run)| {
            let other =
                rivals.as_ref().map_or(Some(1.0), |runs| runs.get(key).map(|r| value(r)))?;
            Some((key, Sums::of(value(run), other)))
        })
        .collect();
    if let Some(rival) = &versus {
        if sums.is_empty() {
            return Err(missing(rival));
        }
        if sums.iter().map(|(_, sums)| sums.b).sum::<f64>() <= 0.0 {
            return Err(JudgeError::NotPositive {
                entry: entry.name.clone(),
                scheme: rival.clone(),
                quantity: quantity.name(),
            });
        }
    }
    let traces = in_order(sums.iter().map(|(key, _)| key.trace())).len();
    let runs = sums.len();
    let statistic =
        |sums: &Sums| if versus.is_some() { quantity.gain_percent(sums) } else { sums.mean() };
    let ours = interval(traces >= TRACES_MIN, sums.into_iter(), statistic);
    Ok(Outcome {
        name: entry.name.clone(),
        paper: entry.paper.clone(),
        quantity,
        scheme: recipe.scheme.clone(),
        verdict: Verdict::of(recipe, ours),
        versus,
        ours,
        runs,
        quick,
        note: entry.note.clone(),
    })
}

fn mean(runs: &Runs<'_>, value: impl Fn(&RunRecord) -> f64) -> Option<f64> {
    let sum: f64 = runs.values().map(|run| value(run)).sum();
    (!runs.is_empty()).then(|| sum / runs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::super::{catalogue, find};
    use super::*;

    #[test]
    fn a_verdict_goes_by_the_band_and_the_interval() {
        let entries = catalogue().unwrap();
        let recipe = find(&entries, "mortise/fig8e").unwrap().run.clone().unwrap();
        assert_eq!((recipe.at_least, recipe.contradicts_below), (10.8, 0.0));
        let of = |value, ci95| Verdict::of(&recipe, Estimate { value, ci95 });
        assert_eq!(of(12.0, Some([11.0, 13.0])), Verdict::Agrees);
        assert_eq!(of(3.0, Some([1.0, 5.0])), Verdict::Smaller);
        assert_eq!(of(3.0, Some([-1.0, 5.0])), Verdict::Contradicts, "10.8 is ruled out");
        assert_eq!(of(3.0, Some([-1.0, 12.0])), Verdict::NotToldApart);
        assert_eq!(of(-3.0, Some([-5.0, -1.0])), Verdict::Contradicts);
        let bounded = Recipe { at_most: Some(20.0), ..recipe.clone() };
        let over = Estimate { value: 25.0, ci95: None };
        assert_eq!(Verdict::of(&bounded, over), Verdict::Contradicts);
    }

    #[test]
    fn gains_are_of_means_and_less_time_is_better() {
        let sums = Sums::of(80.0, 100.0) + Sums::of(120.0, 300.0);
        assert_eq!(Quantity::RctMean.gain_percent(&sums), 50.0);
        assert_eq!(Quantity::Qoe.gain_percent(&sums), -50.0);
    }
}
