//! Guard metrics: what must not become worse for the sake of what becomes better.

use core::fmt;

use serde::{Deserialize, Serialize};
use trimtab_qoe::{AggregateFormula, FormulaError};

use super::report::Effect;

/// How far the treatment may go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Limit {
    /// By this share of the control's value, as `+20%`: 0.2.
    Share {
        /// How far from the control's value, as a share of it.
        by: f64,
    },
    /// By this much, as `+0.05`.
    Difference {
        /// How far from the control's value.
        by: f64,
    },
    /// To this value, as `0.1`.
    Level {
        /// The value.
        at: f64,
    },
}

/// What must hold of the treatment: `mean(loss) < +20%`.
#[derive(Clone, Debug)]
pub struct GuardMetric {
    text: String,
    formula: AggregateFormula,
    below: bool,
    limit: Limit,
}

/// Why a text is no guard metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardMetricError {
    /// There is no comparison with a limit in it.
    #[error(
        "{0:?} is no guard metric: write a formula, < or >, and how far the treatment may be from the control, e.g. \
         \"mean(loss) < +20%\", \"mean(throughput) > -5%\", \"p75(rtt) < +0.05\"; or a value, e.g. \"mean(loss) < 0.1\""
    )]
    Form(String),
    /// What stands before the comparison is no formula.
    #[error("guard metric {text:?}: {cause}")]
    Formula {
        /// The guard.
        text: String,
        /// What is wrong with its formula.
        cause: FormulaError,
    },
}

impl GuardMetric {
    /// Parses a guard metric over statistics of `names`.
    ///
    /// # Errors
    /// It is no comparison of a formula with a limit.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, GuardMetricError> {
        let form = || GuardMetricError::Form(text.chars().take(200).collect());
        let at = text.rfind(['<', '>']).ok_or_else(form)?;
        let (formula, rest) = text.split_at(at);
        let below = rest.starts_with('<');
        let written = rest[1..].trim();
        let (number, percent) =
            written.strip_suffix('%').map_or((written, false), |number| (number.trim_end(), true));
        let by: f64 = number.parse().ok().filter(|by: &f64| by.is_finite()).ok_or_else(form)?;
        let limit = match (percent, written.starts_with(['+', '-'])) {
            (true, true) => Limit::Share { by: by / 100.0 },
            (false, true) => Limit::Difference { by },
            (false, false) => Limit::Level { at: by },
            (true, false) => return Err(form()),
        };
        let formula = AggregateFormula::parse(formula, names)
            .map_err(|cause| GuardMetricError::Formula { text: text.to_owned(), cause })?;
        Ok(Self { text: text.to_owned(), formula, below, limit })
    }

    /// A metric that must not become less; as written, with its formula.
    pub(super) fn not_less(text: &str, formula: &AggregateFormula) -> Self {
        let limit = Limit::Difference { by: 0.0 };
        Self { text: text.to_owned(), formula: formula.clone(), below: false, limit }
    }

    /// What is compared.
    pub fn formula(&self) -> &AggregateFormula {
        &self.formula
    }

    /// The limit.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// How far beyond its limit the treatment is, is a·treatment − b·control − c; this is (a, b, c).
    pub(super) fn excess(&self) -> (f64, f64, f64) {
        let sign = if self.below { 1.0 } else { -1.0 };
        match self.limit {
            Limit::Share { by } => (sign, sign * (1.0 + by), 0.0),
            Limit::Difference { by } => (sign, sign, sign * by),
            Limit::Level { at } => (sign, 0.0, sign * at),
        }
    }
}

impl fmt::Display for GuardMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is known of a guard metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval of confidence is within the limit.
    Holds,
    /// The limit is in the interval: it cannot be told yet.
    Open,
    /// The whole interval is beyond the limit.
    Broken,
}

/// A guard metric, with what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuardReport {
    /// As it is written.
    pub guard: String,
    /// Its mean under the control.
    pub control: Option<f64>,
    /// Its mean under the treatment.
    pub treatment: Option<f64>,
    /// How far beyond the limit the treatment is, negative where it is within; none where too little is known.
    pub excess: Option<Effect>,
    /// What follows.
    pub verdict: Verdict,
}

impl GuardReport {
    pub(super) fn new(
        guard: &GuardMetric,
        means: [Option<f64>; 2],
        excess: Option<Effect>,
    ) -> Self {
        let verdict = match &excess {
            Some(excess) if excess.low > 0.0 => Verdict::Broken,
            Some(excess) if excess.high < 0.0 => Verdict::Holds,
            _ => Verdict::Open,
        };
        let [control, treatment] = means;
        Self { guard: guard.to_string(), control, treatment, excess, verdict }
    }
}
