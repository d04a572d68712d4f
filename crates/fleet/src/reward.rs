//! Conditions over statistics: guards.

use core::fmt;
use core::str::FromStr;

use trimtab_qoe::{AggregateFormula, FormulaError};

use crate::Summary;

/// What must hold of an interval: `mean(loss) < 0.1`.
#[derive(Clone, Debug)]
pub struct Guard {
    text: String,
    formula: AggregateFormula,
    below: bool,
    limit: f64,
}

/// Why a text is no guard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// There is no comparison with a number in it.
    #[error("{0:?} is no guard: write a formula, < or >, and a number, e.g. \"mean(loss) < 0.1\"")]
    Form(String),
    /// What stands before the comparison is no formula.
    #[error("guard {text:?}: {cause}")]
    Formula {
        /// The guard.
        text: String,
        /// What is wrong with its formula.
        cause: FormulaError,
    },
}

impl Guard {
    /// Parses a guard over statistics of `names`.
    ///
    /// # Errors
    /// It is no comparison of a formula with a number.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, GuardError> {
        let form = || GuardError::Form(text.chars().take(200).collect());
        let at = text.rfind(['<', '>']).ok_or_else(form)?;
        let (formula, rest) = text.split_at(at);
        let limit = f64::from_str(rest[1..].trim()).ok().filter(|limit| limit.is_finite());
        let formula = AggregateFormula::parse(formula, names)
            .map_err(|cause| GuardError::Formula { text: text.to_owned(), cause })?;
        let limit = limit.ok_or_else(form)?;
        Ok(Self { text: text.to_owned(), formula, below: rest.starts_with('<'), limit })
    }

    /// What is compared.
    pub fn formula(&self) -> &AggregateFormula {
        &self.formula
    }

    /// Whether the interval broke it. Without its statistics it is not broken.
    pub fn is_broken(&self, summary: &Summary) -> bool {
        let value = self.formula.value(|statistic| summary.statistic(statistic));
        if self.below { value >= self.limit } else { value <= self.limit }
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sketch;

    #[test]
    fn holds_or_is_broken() {
        let mut summary = Summary::new(1);
        summary.set("loss", Sketch::of([0.05, 0.25])).unwrap();
        let guard = |text: &str| Guard::parse(text, &["loss", "rtt"]).unwrap();
        assert!(guard("mean(loss) < 0.1").is_broken(&summary));
        assert!(!guard("mean(loss) < 0.2").is_broken(&summary));
        assert!(guard("count(loss) > 10").is_broken(&summary));
        assert!(!guard("p75(rtt) < 0.5").is_broken(&summary), "nobody measured it");
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for text in ["mean(loss)", "mean(loss) <", "mean(loss) < x", "mean(loss) < inf", ""] {
            let error = Guard::parse(text, &["loss"]).unwrap_err();
            assert!(matches!(error, GuardError::Form(_)), "{text}: {error}");
        }
        let error = Guard::parse("mean(los) < 0.1", &["loss"]).unwrap_err().to_string();
        assert!(error.contains("column 6") && error.contains("known: loss"), "{error}");
    }

    #[test]
    fn a_guard_is_broken_at_its_limit_and_only_the_last_comparison_counts() {
        let mut summary = Summary::new(2);
        summary.set("loss", Sketch::of([0.5, 0.5])).unwrap();
        let guard = |text: &str| Guard::parse(text, &["loss"]).unwrap();
        for (text, is_broken) in [
            ("mean(loss) < 0.5", true),
            ("mean(loss) > 0.5", true),
            ("mean(loss) < 0.5000001", false),
            ("mean(loss) > 0.4999999", false),
            ("  mean(loss)  >-1e0 ", false),
            ("1 - mean(loss) < 0.6", false),
        ] {
            assert_eq!(guard(text).is_broken(&summary), is_broken, "{text}");
            assert_eq!(guard(text).to_string(), text);
        }
    }
}
