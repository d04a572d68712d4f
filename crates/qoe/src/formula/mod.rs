//! QoE models that users write as formulas.
//!
//! The text is checked and rewritten (`rewrite`), parsed and evaluated by exmex, on numbers that
//! carry their derivatives (`jet`). exmex can also differentiate symbolically, but not `min`, `max`,
//! `abs` or a choice, and every model with a threshold needs one of them.

mod error;
pub(crate) mod expression;
mod functions;
pub(crate) mod jet;
mod rewrite;
mod statistic;
mod token;

use std::sync::Arc;

pub(crate) use error::Problem;
pub use error::{FORMULA_DEPTH_MAX, FORMULA_LEN_MAX, FormulaError};

use crate::factors::Name;
use crate::{Factor, FactorError, Factors, Gradient, OperatingPoint, Samples};
use expression::Expression;
use functions::function;
use jet::Jet;
pub(crate) use rewrite::{Calls, Vocabulary};
use statistic::{Statistic, is_statistic};

/// A variable of an operating point.
struct Axis {
    name: &'static str,
    /// What it is there: Mbit/s, seconds or a ratio.
    at: fn(&OperatingPoint) -> f64,
}

const AXES: [Axis; 3] = [
    Axis { name: "T", at: OperatingPoint::throughput_mbps },
    Axis { name: "D", at: OperatingPoint::delay_s },
    Axis { name: "L", at: OperatingPoint::loss_ratio },
];

/// A variable with one value at an operating point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar {
    /// An index of [`AXES`].
    Axis(usize),
    Factor(FactorRef),
}

impl Scalar {
    fn find(name: &str, user: &[Name]) -> Option<Self> {
        let axis = AXES.iter().position(|axis| axis.name == name).map(Self::Axis);
        axis.or_else(|| FactorRef::find(name, user).map(Self::Factor))
    }

    fn at(&self, point: &OperatingPoint, factors: &Factors) -> Jet {
        match self {
            Self::Axis(axis) => Jet::variable((AXES[*axis].at)(point), *axis),
            Self::Factor(factor) => Jet::constant(factor.get(factors).unwrap_or(f64::NAN)),
        }
    }
}

/// A variable of a formula.
#[derive(Clone, Debug)]
enum Variable {
    Scalar(Scalar),
    Statistic(Box<Statistic>),
}

/// A factor that a formula reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FactorRef {
    Known(Factor),
    User(Name),
}

impl FactorRef {
    /// The factor of that name, if it is a built-in one or among `user`.
    pub(crate) fn find(name: &str, user: &[Name]) -> Option<Self> {
        let own = || user.iter().find(|n| n.as_str() == name).copied().map(Self::User);
        Factor::from_name(name).map(Self::Known).or_else(own)
    }
    pub(crate) fn get(&self, factors: &Factors) -> Option<f64> {
        match self {
            Self::Known(factor) => factors.get(*factor),
            Self::User(name) => factors.get_user(name.as_str()),
        }
    }
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Known(factor) => factor.name(),
            Self::User(name) => name.as_str(),
        }
    }
}

/// Checks the names that an application gives its own factors.
fn user_names(names: &[&str]) -> Result<Vec<Name>, FormulaError> {
    let fail = |error| FormulaError::new(0, Problem::Factor(error));
    names
        .iter()
        .map(|&name| {
            let is_taken = AXES.iter().any(|axis| axis.name == name);
            if is_taken || function(name).is_some() || name == "log" {
                return Err(fail(FactorError::Reserved(name.into())));
            }
            Name::new(name).map_err(fail)
        })
        .collect()
}

/// The names of all variables, for an error message.
fn known_names(user: &[Name]) -> Vec<String> {
    let axes = AXES.map(|axis| axis.name.to_owned());
    let known = axes.into_iter().chain(Factor::ALL.map(|factor| factor.name().to_owned()));
    known.chain(user.iter().map(|name| name.as_str().to_owned())).collect()
}

/// A QoE model given as text: `f` in `T` (throughput, Mbit/s), `D` (delay, s), `L` (loss, 0 to 1)
/// and factors, where more is better.
///
/// * The [`Factor`]s go by their names: `R`, `remaining`, `C`, `Rbar` (Mbit), `V` (s). An
///   application may name more of its own.
/// * Operators: `+ - * / ^`, from the left; a sign binds weaker than a power (`-T^2` is `-(T^2)`);
///   `a^b^c` needs parentheses. Numbers: `12`, `.5`, `1.5e-3`.
/// * Functions: `min` and `max` (2 to 16 arguments), `abs`, `sqrt`, `exp`, `ln`, `log10`, `log2`,
///   `tanh`, `pow(a, b)`, `softplus(x, w)` (`max(0, x)` rounded off over a width `w`), and
///   `if(a < b, then, else)` with `<`, `<=`, `>` or `>=`.
/// * Statistics over [`Samples`]: `mean`, `sd` (standard deviation) and `p0` to `p100` (percentiles)
///   of an expression in exactly one of `T`, `D` and `L`. So `p95(D)` is the tail of the delay, and
///   `mean(ln(T))` the expectation of a utility. Where there are no samples, the operating point is
///   the only one.
/// * At a kink, the slope is that of the later argument of `min` and `max`, of the rising side of
///   `abs`, and of the branch that `if` takes.
///
/// ```
/// use trimtab_qoe::{Factors, Formula, OperatingPoint};
/// use trimtab_units::{Duration, Rate};
///
/// let formula = Formula::parse("ln(T) - weight * max(0, D - 0.1)", &["weight"]).unwrap();
/// let mut factors = Factors::new();
/// factors.set_named("weight", 20.0).unwrap();
/// let point = OperatingPoint {
///     throughput: Rate::from_mbps(8.0),
///     delay: Duration::from_millis(150),
///     loss: 0.0,
/// };
/// let hints = formula.gradient(&point, &factors).hints().unwrap();
/// assert!((hints.lambda - 160.0).abs() < 1e-9); // 20 per second over 1/8 per Mbit/s
///
/// // Nothing but the operating point is known here, so the tail of the delay is the delay.
/// let tail = Formula::parse("ln(T) - 20 * p95(max(0, D - 0.1))", &[]).unwrap();
/// assert_eq!(tail.gradient(&point, &factors).hints().unwrap(), hints);
///
/// let error = Formula::parse("ln(T) - weigth * D", &["weight"]).unwrap_err();
/// assert_eq!(error.column(), Some(9));
/// ```
///
/// Cloning is cheap: the parsed formula is shared.
#[derive(Clone, Debug)]
pub struct Formula {
    shared: Arc<Parsed>,
}

#[derive(Debug)]
struct Parsed {
    text: String,
    expression: Expression,
    variables: Vec<Variable>,
}

impl Formula {
    /// Parses a formula that may also read the application's own `factors`.
    ///
    /// Any text is safe to try: length ([`FORMULA_LEN_MAX`]) and nesting ([`FORMULA_DEPTH_MAX`])
    /// are limited.
    ///
    /// # Errors
    /// Says at which column the text stops being a formula, and what would make it one.
    pub fn parse(text: &str, factors: &[&str]) -> Result<Self, FormulaError> {
        let user = user_names(factors)?;
        let vocabulary = Vocabulary {
            is_known: &|name| Scalar::find(name, &user).is_some(),
            known: &|| known_names(&user),
            calls: Calls::OfExpressions(is_statistic),
        };
        let (expression, names) = Expression::parse(text, &vocabulary)?;
        let variable = |name| match Scalar::find(name, &user) {
            Some(scalar) => Ok(Variable::Scalar(scalar)),
            None => Statistic::parse(name, text, &user).map(|s| Variable::Statistic(Box::new(s))),
        };
        let variables = names.into_iter().map(variable).collect::<Result<_, _>>()?;
        Ok(Self { shared: Arc::new(Parsed { text: text.into(), expression, variables }) })
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.shared.text
    }

    /// The factors that the formula reads.
    pub fn factors(&self) -> impl Iterator<Item = &str> {
        let all = || self.shared.variables.iter().flat_map(Variable::factors);
        let is_first =
            move |(i, factor): &(usize, &FactorRef)| all().take(*i).all(|f| f != *factor);
        all().enumerate().filter(is_first).map(|(_, factor)| factor.name())
    }

    /// Whether it reads a statistic of samples.
    pub fn reads_samples(&self) -> bool {
        self.shared.variables.iter().any(|v| matches!(v, Variable::Statistic(_)))
    }

    /// The score where nothing but the operating point is known; NaN when a factor is not set or
    /// the formula has no value at this point, infinite where it has a pole.
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        self.score_over(point, &Samples::default(), factors)
    }

    /// The score of these samples around an operating point.
    pub fn score_over(&self, point: &OperatingPoint, samples: &Samples, factors: &Factors) -> f64 {
        self.eval(point, samples, factors).value
    }

    /// The derivatives of the score; NaN where it is.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        self.gradient_over(point, &Samples::default(), factors)
    }

    /// The derivatives of the score of these samples, by their means and by the operating point
    /// alike (Mortise Eq. 4).
    ///
    /// While the mean moves, delays keep their ratios above the least one, as they do when a queue
    /// grows; throughputs and losses keep theirs above 0. Samples that are all the same move
    /// together. A formula without statistics has the derivatives of Eq. 3.
    pub fn gradient_over(
        &self,
        point: &OperatingPoint,
        samples: &Samples,
        factors: &Factors,
    ) -> Gradient {
        let jet = self.eval(point, samples, factors);
        if jet.value.is_nan() {
            return Gradient::NAN;
        }
        let [throughput, delay, loss] = jet.partial;
        Gradient { throughput, delay, loss }
    }

    fn eval(&self, point: &OperatingPoint, samples: &Samples, factors: &Factors) -> Jet {
        let slot = |variable: &Variable| match variable {
            Variable::Scalar(scalar) => scalar.at(point, factors),
            Variable::Statistic(statistic) => statistic.eval(point, samples, factors),
        };
        let slots: Vec<Jet> = self.shared.variables.iter().map(slot).collect();
        self.shared.expression.eval(&slots)
    }
}

impl Variable {
    fn factors(&self) -> Box<dyn Iterator<Item = &FactorRef> + '_> {
        match self {
            Self::Scalar(Scalar::Axis(_)) => Box::new(core::iter::empty()),
            Self::Scalar(Scalar::Factor(factor)) => Box::new(core::iter::once(factor)),
            Self::Statistic(statistic) => Box::new(statistic.factors()),
        }
    }
}
