//! What an experiment has shown, for people and programs.

use serde::{Deserialize, Serialize};

use super::{GuardReport, LeftOut};

/// A number with its interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// The best guess.
    pub value: f64,
    /// The least that goes with what was seen.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// What was compared with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnitsReport {
    /// Aggregates that were dealt out.
    pub aggregates: u64,
    /// By prefixes: aggregates with results under the control. In a switchback: pairs of blocks.
    pub control: u64,
    /// By prefixes: aggregates with results under the treatment. In a switchback: pairs of blocks.
    pub treatment: u64,
    /// Aggregates that an operator took out by an order, or an alarm under an arm, with what they had shown until then.
    pub left: u64,
    /// Whether what was known before was used to take differences between aggregates out.
    pub adjusted: bool,
}

/// The means of both arms over a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Its first interval.
    pub interval: u64,
    /// Under the control.
    pub control: Option<f64>,
    /// Under the treatment.
    pub treatment: Option<f64>,
}

/// What an experiment has shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The design, in words.
    pub design: String,
    /// The share of aggregates, or of time, with the treatment.
    pub share: f64,
    /// What was compared.
    pub units: UnitsReport,
    /// Intervals that are over, of its length.
    pub elapsed: u32,
    /// Its length, in intervals.
    pub length: u32,
    /// Whether it is over, and this the result.
    pub over: bool,
    /// How sure the intervals of confidence are by themselves, 0 to 1: those from before the end are wider, so that all of
    /// them together miss the truth in 5 of 100 experiments, however often one looks.
    pub confidence: f64,
    /// The mean of the metric under the control.
    pub control: Option<f64>,
    /// The mean of the metric under the treatment.
    pub treatment: Option<f64>,
    /// Treatment less control.
    pub effect: Option<Effect>,
    /// The same as a share of the control's mean; none where that may be zero.
    pub relative: Option<Effect>,
    /// How likely chance alone makes such a difference: by dealing out anew, or by Student's t where there are more than
    /// 5,000 aggregates. Only at the end.
    pub p: Option<f64>,
    /// The least effect that would be found with a power of 80%.
    pub detectable: Option<f64>,
    /// What must not become worse.
    pub guards: Vec<GuardReport>,
    /// Intervals that do not count.
    pub left_out: LeftOut,
    /// The metric over time.
    pub series: Vec<Point>,
    /// What follows, in a sentence or two.
    pub verdict: String,
}
