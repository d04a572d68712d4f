//! A surrogate fitted to the reward, by the log of decisions (paper 002 §3.3, §6.1).
//!
//! Where QoE comes late or rarely, a surrogate of statistics that are always there stands in. The
//! paper derived its own by correlating transport statistics with scores, "resulting in a linear
//! combination of the most highly correlated statistics". This is that combination: least squares
//! with a ridge (`regression`), of at most four statistics, so that a person can read it.
//!
//! A surrogate ranks configurations of one aggregate, so only differences within an aggregate and
//! context count. The mean of each is removed before the fit. Otherwise rich networks, with high
//! throughput and high scores, would decide on the coefficients (Simpson 1951).
//!
//! Figures are of intervals that the fit has not seen (`held_out`): those of other aggregates, and
//! later ones. Start with [`SurrogateFit::of`].

mod held_out;
mod moments;
mod regression;
mod table;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::held_out::HeldOut;
use self::moments::{Products, by_aggregate};
use self::regression::{Line, choose, coefficient_intervals};
use self::table::Table;
use crate::experiment::Effect;
use crate::scale::EXPLAINS;
use crate::{Decision, Service};

/// Fewer intervals with a reward show nothing.
const INTERVALS_MIN: u64 = 200;
/// Fewer aggregates cannot be held out in turn.
const AGGREGATES_MIN: u64 = 5;
/// Fewer intervals to fit to, and fewer held out, show nothing: after one is taken off for each
/// mean that is removed.
const FREEDOM_MIN: (f64, f64) = (100.0, 50.0);

/// What a surrogate explains more than the present one is worth the change from here on: with
/// another formula learning begins anew.
const GAIN_MIN: f64 = 0.01;
/// A statistic that varies in fewer aggregates has no coefficient with an interval.
const VARIES_IN: usize = crate::bootstrap::UNITS_MIN;

/// How well a formula predicts what the reward differs by within an aggregate and context, on
/// intervals that it was not fitted to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The share of these differences' squares that it explains, up to 1; below 0 where it is worse
    /// than to predict no difference at all.
    pub r_squared: f64,
    /// Spearman's correlation of the ranks within each aggregate and context, −1 to 1.
    pub rank_correlation: f64,
}

/// The surrogate that the service has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PresentSurrogate {
    /// Its formula.
    pub formula: String,
    /// How well it predicts on the same intervals, times the factor that fits best where the other
    /// was fitted; none where its statistics are missing in too much of the log.
    pub prediction: Option<Prediction>,
}

/// A statistic of the fitted formula.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SurrogateTerm {
    /// E.g. `p50(rtt)`.
    pub statistic: String,
    /// By how much the reward moves with one unit of it, with the 95% interval by bootstrap over
    /// aggregates.
    pub coefficient: Effect,
    /// In so many of the fits to parts of the log it was chosen, too.
    pub chosen: u64,
}

/// A statistic of the log that the fit did not try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unsuitable {
    /// E.g. `sum(throughput)`.
    pub statistic: String,
    /// What rules it out.
    pub why: String,
}

/// A surrogate that was fitted, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SurrogateFit {
    /// The formula, for the service's `surrogate`. It has no constant: a surrogate counts for the
    /// reward that it goes with, whatever its level.
    pub surrogate: String,
    /// Its statistics, the one that explains most first.
    pub terms: Vec<SurrogateTerm>,
    /// Decisions that were read.
    pub decisions: u64,
    /// Intervals with a reward that it was fitted to.
    pub intervals: u64,
    /// Aggregates of these.
    pub aggregates: u64,
    /// Intervals that the figures are over. Each was predicted by a fit to other aggregates and to
    /// earlier intervals.
    pub held_out: u64,
    /// Fits to parts of the log, by which these were predicted.
    pub fits: u64,
    /// How well such fits predicted.
    pub fitted: Prediction,
    /// The surrogate that the service has.
    pub present: Option<PresentSurrogate>,
    /// By how much the fits explain more than the present surrogate, or without one than nothing: a
    /// difference of `r_squared`, with its 95% interval by bootstrap over aggregates.
    pub gain: Effect,
    /// Whether it explains enough of the reward for the engine to let a surrogate stand in.
    pub stands_in: bool,
    /// The statistics that were tried.
    pub candidates: Vec<String>,
    /// The other statistics of the log.
    pub unsuitable: Vec<Unsuitable>,
}

/// Why there is no surrogate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SurrogateFitError {
    /// The log is too short.
    #[error(
        "cannot fit a surrogate: the log has a reward in {intervals} intervals of {aggregates} \
         aggregates, and {INTERVALS_MIN} of {AGGREGATES_MIN} are needed; ask for a longer log, or \
         again later"
    )]
    TooFew {
        /// Intervals with a reward.
        intervals: u64,
        /// Aggregates of these.
        aggregates: u64,
    },
    /// No statistic of the log is of use.
    #[error(
        "cannot fit a surrogate: no statistic of the log is of use ({}); name more under \
         `statistics` of the service, e.g. \"p50(rtt)\", and ask again later",
        listed(unsuitable)
    )]
    NoCandidate {
        /// What rules each out.
        unsuitable: Vec<Unsuitable>,
    },
    /// Too little is left when the mean of each aggregate and context is removed.
    #[error(
        "cannot fit a surrogate: without the mean of each aggregate and context {earlier:.0} \
         intervals are left to fit to and {later:.0} later ones to check it on, and {} and {} are \
         needed; ask again later",
        FREEDOM_MIN.0,
        FREEDOM_MIN.1
    )]
    TooShort {
        /// Degrees of freedom to fit to.
        earlier: f64,
        /// Degrees of freedom to check on.
        later: f64,
    },
    /// All rewards of an aggregate and context are alike.
    #[error(
        "cannot fit a surrogate: the reward does not vary within an aggregate and context; check \
         that its statistics are reported"
    )]
    Constant,
    /// Nothing predicts the reward.
    #[error(
        "no surrogate: none of {} predicts the reward: on {intervals} intervals that were held out \
         R² is {:.3} (95% from {:.3}); name other statistics under `statistics` of the service, \
         and ask again later",
        candidates.join(", "),
        gain.value,
        gain.low
    )]
    Nothing {
        /// What was tried.
        candidates: Vec<String>,
        /// Intervals that were held out.
        intervals: u64,
        /// R² on these.
        gain: Effect,
    },
    /// The present surrogate is as good.
    #[error(
        "no surrogate that is better than {present:?}: on {intervals} intervals that were held out \
         its R² is {:.3}, and that of the best fit ({found}) is {:.3}, a difference of {:+.3} (95% \
         from {:+.3}); keep it, or name other statistics under `statistics` and ask again later",
        of_present.r_squared,
        of_fitted.r_squared,
        gain.value,
        gain.low
    )]
    NoBetter {
        /// The formula of the present surrogate.
        present: String,
        /// The fitted formula; `0` where no statistic was worth a term.
        found: String,
        /// Intervals that were held out.
        intervals: u64,
        /// How well the present one predicts.
        of_present: Prediction,
        /// How well the fits do.
        of_fitted: Prediction,
        /// The difference of R².
        gain: Effect,
    },
}

fn listed(unsuitable: &[Unsuitable]) -> String {
    let one = |of: &Unsuitable| format!("{}: {}", of.statistic, of.why);
    if unsuitable.is_empty() {
        return "it has none".to_owned();
    }
    unsuitable.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl SurrogateFit {
    /// Fits a surrogate to the reward of a service, by some of its decisions. A reward is that of
    /// the service's present formula, over the statistics of a decision.
    ///
    /// # Errors
    /// The log shows too little, or nothing that is better than the present surrogate.
    pub fn of<'a>(
        service: &Service,
        decisions: impl IntoIterator<Item = &'a Decision>,
    ) -> Result<Self, SurrogateFitError> {
        let mut table = Table::read(service, decisions)?;
        let rows: Vec<&_> = table.rows.iter().collect();
        let products: Vec<Products> = by_aggregate(&rows).map(Products::of).collect();
        if !varies(&products, table.reward()) {
            return Err(SurrogateFitError::Constant);
        }
        let (candidates, constant): (Vec<usize>, Vec<_>) =
            (0..table.candidates.len()).partition(|&column| varies(&products, column));
        table.unsuitable.extend(constant.into_iter().map(|column| Unsuitable {
            statistic: table.candidates[column].clone(),
            why: format!("it does not vary within {VARIES_IN} aggregates and contexts"),
        }));
        if candidates.is_empty() {
            return Err(SurrogateFitError::NoCandidate { unsuitable: table.unsuitable });
        }
        let line = choose(&products, &candidates);
        let held_out = HeldOut::of(&table, &candidates)?;
        let names = |columns: &[usize]| -> Vec<String> {
            columns.iter().map(|&column| table.candidates[column].clone()).collect()
        };
        let surrogate = text(&table, &line);
        let is_better = held_out.gain.low > 0.0 && held_out.gain.value >= GAIN_MIN;
        if line.terms.is_empty() || !is_better {
            let (intervals, gain) = (held_out.intervals, held_out.gain);
            let present = service.surrogate().map(|formula| formula.text().to_owned());
            return Err(match present.zip(held_out.present) {
                Some((present, of_present)) => SurrogateFitError::NoBetter {
                    present,
                    found: surrogate,
                    intervals,
                    of_present,
                    of_fitted: held_out.fitted,
                    gain,
                },
                None => {
                    SurrogateFitError::Nothing { candidates: names(&candidates), intervals, gain }
                }
            });
        }
        let intervals = coefficient_intervals(&products, &line);
        let term = |(&(column, _), coefficient): (&(usize, f64), Effect)| SurrogateTerm {
            statistic: table.candidates[column].clone(),
            coefficient,
            chosen: held_out.lines.iter().filter(|line| line.reads(column)).count() as u64,
        };
        let present = service.surrogate().map(|formula| PresentSurrogate {
            formula: formula.text().to_owned(),
            prediction: held_out.present,
        });
        Ok(Self {
            surrogate,
            terms: line.terms.iter().zip(intervals).map(term).collect(),
            decisions: table.decisions,
            intervals: table.rows.len() as u64,
            aggregates: products.len() as u64,
            held_out: held_out.intervals,
            fits: held_out.lines.len() as u64,
            fitted: held_out.fitted,
            present,
            gain: held_out.gain,
            stands_in: held_out.fitted.r_squared >= EXPLAINS,
            candidates: names(&candidates),
            unsuitable: table.unsuitable,
        })
    }
}

/// Whether a column varies within enough aggregates.
fn varies(products: &[Products], column: usize) -> bool {
    products.iter().filter(|one| one.varies(column)).count() >= VARIES_IN
}

/// The formula, with four digits that matter of each coefficient.
fn text(table: &Table<'_>, line: &Line) -> String {
    let mut text = String::new();
    for &(column, coefficient) in &line.terms {
        // Rounded by its exponent, and written out without one: formulas have none.
        let rounded: f64 = format!("{coefficient:.3e}").parse().unwrap_or(coefficient);
        let sign = match (text.is_empty(), rounded < 0.0) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        };
        text += &format!("{sign}{} * {}", rounded.abs(), table.candidates[column]);
    }
    if text.is_empty() { "0".to_owned() } else { text }
}
