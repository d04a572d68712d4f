//! Statistics of the samples of an operating point, such as `p95(D)` (Mortise Eq. 4).

use super::error::{FormulaError, Problem};
use super::expression::Expression;
use super::jet::Jet;
use super::rewrite::{Calls, Vocabulary};
use super::{AXES, FactorRef, Scalar, known_names};
use crate::factors::Name;
use crate::samples::Moving;
use crate::{Factors, OperatingPoint, Samples, StatisticKind};

/// Which number of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Mean,
    Deviation,
    /// 0 to 100.
    Percentile(u8),
}

impl Kind {
    fn from_name(name: &str) -> Option<Self> {
        match StatisticKind::from_name(name) {
            Some(StatisticKind::Mean) => Some(Self::Mean),
            Some(StatisticKind::Percentile(percent)) => Some(Self::Percentile(percent)),
            _ => (name == "sd").then_some(Self::Deviation),
        }
    }
}

/// Whether `NAME(…)` is a statistic.
pub(super) fn is_statistic(name: &str) -> bool {
    Kind::from_name(name).is_some()
}

/// A statistic of an expression in one of `T`, `D` and `L`, over the samples of that.
#[derive(Clone, Debug)]
pub(super) struct Statistic {
    kind: Kind,
    axis: usize,
    expression: Expression,
    variables: Vec<Scalar>,
}

impl Statistic {
    /// Parses `call`, a part of `formula` such as `p95(D)`.
    pub(super) fn parse(call: &str, formula: &str, user: &[Name]) -> Result<Self, FormulaError> {
        let column = |part: &str| {
            let before = part.as_ptr() as usize - formula.as_ptr() as usize;
            formula[..before].chars().count() + 1
        };
        let fail = |problem| FormulaError::new(column(call), problem);
        let (name, rest) = call.split_once('(').unwrap_or((call, ""));
        let name = name.trim();
        let of = rest.strip_suffix(')').unwrap_or(rest);
        let kind = Kind::from_name(name).ok_or_else(|| fail(Problem::unknown_function(name)))?;
        if of.trim().is_empty() {
            return Err(fail(Problem::StatisticOfAxes(name.into())));
        }
        let vocabulary = Vocabulary {
            is_known: &|name| Scalar::find(name, user).is_some(),
            known: &|| known_names(user),
            calls: Calls::NoStatistic(is_statistic),
        };
        let (expression, names) =
            Expression::parse(of, &vocabulary).map_err(|error| error.moved(column(of) - 1))?;
        let variables: Vec<Scalar> =
            names.into_iter().filter_map(|name| Scalar::find(name, user)).collect();
        let mut axes = variables.iter().filter_map(|variable| match variable {
            Scalar::Axis(axis) => Some(*axis),
            Scalar::Factor(_) => None,
        });
        let (Some(axis), None) = (axes.next(), axes.next()) else {
            return Err(fail(Problem::StatisticOfAxes(name.into())));
        };
        Ok(Self { kind, axis, expression, variables })
    }

    /// The factors that its expression reads.
    pub(super) fn factors(&self) -> impl Iterator<Item = &FactorRef> {
        self.variables.iter().filter_map(|variable| match variable {
            Scalar::Factor(factor) => Some(factor),
            Scalar::Axis(_) => None,
        })
    }

    /// Its value, and how that changes while the mean of the samples moves.
    pub(super) fn eval(&self, at: &OperatingPoint, samples: &Samples, factors: &Factors) -> Jet {
        let samples = samples.moving(self.axis, (AXES[self.axis].at)(at));
        let mut slots: Vec<Jet> =
            self.variables.iter().map(|variable| variable.at(at, factors)).collect();
        let place = self.variables.iter().position(|v| *v == Scalar::Axis(self.axis));
        let mut value = |sample: &Moving| {
            if let Some(place) = place {
                slots[place] = Jet::moving(sample.value, self.axis, sample.speed);
            }
            (self.expression.eval(&slots), sample.weight)
        };
        let values = samples.iter().map(&mut value).collect();
        match self.kind {
            Kind::Mean => mean(&values),
            Kind::Deviation => deviation(&values),
            Kind::Percentile(percent) => percentile(values, f64::from(percent) / 100.0),
        }
    }
}

/// Values, with their shares of all.
type Values = Vec<(Jet, f64)>;

fn mean(values: &Values) -> Jet {
    let part = |&(value, share): &(Jet, f64)| value.mul(Jet::constant(share));
    values.iter().map(part).fold(Jet::default(), Jet::add)
}

/// The root of the mean square about the mean. Where all are the same it is 0, and so is its slope.
fn deviation(values: &Values) -> Jet {
    let mean = mean(values);
    let square = |&(value, share): &(Jet, f64)| {
        let apart = value.sub(mean);
        apart.mul(apart).mul(Jet::constant(share))
    };
    let variance = values.iter().map(square).fold(Jet::default(), Jet::add);
    if variance.value == 0.0 { Jet::default() } else { variance.sqrt() }
}

/// The least value that a share of them does not exceed.
fn percentile(mut values: Values, share: f64) -> Jet {
    if let Some(&(nan, _)) = values.iter().find(|(value, _)| value.value.is_nan()) {
        return nan;
    }
    values.sort_by(|(a, _), (b, _)| a.value.total_cmp(&b.value));
    let mut seen = 0.0;
    // The shares are rounded: what is within that of the rank has reached it.
    let reached = values.iter().find(|(_, own)| {
        seen += own;
        seen >= share - 1e-9
    });
    reached.or(values.last()).map_or(Jet::constant(f64::NAN), |(value, _)| *value)
}
