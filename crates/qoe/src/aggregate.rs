//! Rewards of an aggregate of connections: formulas over statistics of what all of them saw in an interval.

use core::fmt;
use std::sync::Arc;

use crate::FormulaError;
use crate::formula::expression::Expression;
use crate::formula::jet::Jet;
use crate::formula::{Calls, Vocabulary};

/// Which number of many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatisticKind {
    /// How many there are.
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// A percentile, 0 to 100; 0 is the least of them and 100 the largest.
    Percentile(u8),
}

impl StatisticKind {
    /// Parses `count`, `sum`, `mean`, `p0` to `p100`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "count" => Some(Self::Count),
            "sum" => Some(Self::Sum),
            "mean" => Some(Self::Mean),
            _ => {
                let digits = name.strip_prefix('p')?;
                let percent: u8 = digits.parse().ok()?;
                // One spelling for each: `p5`, and never `p05` or `p+5`.
                (percent <= 100 && percent.to_string() == digits)
                    .then_some(Self::Percentile(percent))
            }
        }
    }
}

impl fmt::Display for StatisticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Sum => f.write_str("sum"),
            Self::Mean => f.write_str("mean"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

/// A number that a formula reads, such as `p75(rtt)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Statistic {
    /// Which number.
    pub kind: StatisticKind,
    /// Of what.
    pub of: String,
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind, self.of)
    }
}

impl Statistic {
    /// Parses what [`Display`](fmt::Display) writes, e.g. `p75(rtt)`. The name is not checked.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('(')?;
        let of = rest.strip_suffix(')')?.trim().to_owned();
        Some(Self { kind: StatisticKind::from_name(kind.trim())?, of })
    }
}

/// A formula over statistics of samples that go by names, as a reward of PCC customization (§3.3).
///
/// A statistic is `count`, `sum`, `mean` or a percentile from `p0` to `p100` of one name; everything else is as in
/// [`crate::Formula`].
///
/// ```
/// use trimtab_qoe::AggregateFormula;
///
/// let reward = AggregateFormula::parse("mean(throughput) - 10 * p75(rtt)", &["throughput", "rtt"]).unwrap();
/// let value = reward.value(|statistic| match statistic.to_string().as_str() {
///     "mean(throughput)" => Some(8.0),
///     "p75(rtt)" => Some(0.05),
///     _ => None,
/// });
/// assert_eq!(value, 7.5);
///
/// let error = AggregateFormula::parse("mean(throughput) - rtt", &["throughput", "rtt"]).unwrap_err();
/// assert_eq!(error.column(), Some(20));
/// ```
#[derive(Clone, Debug)]
pub struct AggregateFormula {
    shared: Arc<Parsed>,
}

#[derive(Debug)]
struct Parsed {
    text: String,
    expression: Expression,
    statistics: Vec<Statistic>,
}

impl AggregateFormula {
    /// Parses a formula over statistics of `names`. Any text is safe to try.
    ///
    /// # Errors
    /// Says at which column the text stops being a formula, and what would make it one.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, FormulaError> {
        let vocabulary = Vocabulary {
            is_known: &|name| names.contains(&name),
            known: &|| names.iter().map(|&name| name.to_owned()).collect(),
            calls: Calls::OfVariables(|name| StatisticKind::from_name(name).is_some()),
        };
        let (expression, slots) = Expression::parse(text, &vocabulary)?;
        // The same statistic may be written with and without spaces: then it has two slots.
        let statistics = slots.into_iter().filter_map(Statistic::parse).collect();
        Ok(Self { shared: Arc::new(Parsed { text: text.into(), expression, statistics }) })
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.shared.text
    }

    /// The statistics that the formula reads, in the order in which it first does.
    pub fn statistics(&self) -> &[Statistic] {
        &self.shared.statistics
    }

    /// The value, given the statistics. NaN when one of them has none, or the formula has no value there.
    pub fn value(&self, of: impl Fn(&Statistic) -> Option<f64>) -> f64 {
        let slot = |statistic| Jet::constant(of(statistic).unwrap_or(f64::NAN));
        let slots: Vec<Jet> = self.shared.statistics.iter().map(slot).collect();
        self.shared.expression.eval(&slots).value
    }

    /// How much the value moves with each of [`AggregateFormula::statistics`]: its exact partial
    /// derivatives, at kinks those of the branch that counts. NaN as for [`AggregateFormula::value`].
    pub fn gradient(&self, of: impl Fn(&Statistic) -> Option<f64>) -> Vec<f64> {
        let values: Vec<f64> =
            self.shared.statistics.iter().map(|s| of(s).unwrap_or(f64::NAN)).collect();
        let by = |moved: usize| {
            let slot = |(i, &value): (usize, &f64)| {
                if i == moved { Jet::variable(value, 0) } else { Jet::constant(value) }
            };
            let slots: Vec<Jet> = values.iter().enumerate().map(slot).collect();
            let jet = self.shared.expression.eval(&slots);
            if jet.value.is_nan() { f64::NAN } else { jet.partial[0] }
        };
        (0..values.len()).map(by).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AggregateFormula, FormulaError> {
        AggregateFormula::parse(text, &["throughput", "rtt", "loss"])
    }

    #[test]
    fn reads_what_it_names() {
        let formula = parse("p50( throughput ) - max(0, mean(loss) - 0.1) / count(rtt)").unwrap();
        let names: Vec<_> = formula.statistics().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["p50(throughput)", "mean(loss)", "count(rtt)"]);
        let value = formula.value(|s| match s.kind {
            StatisticKind::Percentile(50) => Some(7.0),
            StatisticKind::Mean => Some(0.3),
            StatisticKind::Count => Some(2.0),
            _ => None,
        });
        assert!((value - 6.9).abs() < 1e-12, "{value}");
    }

    #[test]
    fn its_gradient_has_a_slope_for_each_statistic() {
        let formula = parse("mean(throughput) / p75(rtt) - max(0, mean(loss) - 0.1)").unwrap();
        let of = |loss: f64| {
            formula.gradient(move |s| match s.kind {
                StatisticKind::Percentile(_) => Some(0.5),
                _ => Some(if s.of == "loss" { loss } else { 4.0 }),
            })
        };
        assert_eq!(of(0.3), [2.0, -16.0, -1.0]);
        assert_eq!(of(0.0), [2.0, -16.0, 0.0]);
        assert!(formula.gradient(|_| None).iter().all(|slope| slope.is_nan()));
    }

    #[test]
    fn has_no_value_without_its_statistics() {
        let formula = parse("mean(rtt) + 0 * mean(loss)").unwrap();
        assert!(formula.value(|s| (s.of == "rtt").then_some(1.0)).is_nan());
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, column, words) in [
            ("1 + thruput", 5, "unknown variable `thruput` (known: throughput, rtt, loss)"),
            ("mean(thruput)", 6, "unknown variable `thruput`"),
            ("2 * rtt", 5, "write mean(rtt), p75(rtt)"),
            ("mean(rtt + 1)", 1, "a statistic of one name"),
            ("mean()", 1, "a statistic of one name"),
            ("mean(", 1, "a statistic of one name"),
            ("average(rtt)", 1, "unknown function `average`"),
            ("p101(rtt)", 1, "unknown function `p101`"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.column(), Some(column), "{text}: {error}");
            assert!(error.to_string().contains(words), "{text}: {error}");
        }
    }
}
