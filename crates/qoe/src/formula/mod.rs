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
mod token;

use std::sync::Arc;

pub(crate) use error::Problem;
pub use error::{FORMULA_DEPTH_MAX, FORMULA_LEN_MAX, FormulaError};

use crate::factors::Name;
use crate::{Factor, FactorError, Factors, Gradient, OperatingPoint};
use expression::Expression;
use functions::function;
use jet::Jet;
pub(crate) use rewrite::Vocabulary;

/// A variable of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variable {
    Throughput,
    Delay,
    Loss,
    Factor(FactorRef),
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

/// Checks the names that an application gives its own factors; `is_taken` tells which names mean
/// something else already.
pub(crate) fn user_names(
    names: &[&str],
    is_taken: &dyn Fn(&str) -> bool,
) -> Result<Vec<Name>, FormulaError> {
    let fail = |error| FormulaError::new(0, Problem::Factor(error));
    names
        .iter()
        .map(|&name| {
            if is_taken(name) || function(name).is_some() || name == "log" {
                return Err(fail(FactorError::Reserved(name.into())));
            }
            Name::new(name).map_err(fail)
        })
        .collect()
}

/// The names of all factors, for an error message.
pub(crate) fn factor_names(user: &[Name]) -> impl Iterator<Item = String> {
    let own = user.iter().map(|n| n.as_str().to_owned());
    Factor::ALL.into_iter().map(|f| f.name().to_owned()).chain(own)
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
        let user = user_names(factors, &|name| ["T", "D", "L"].contains(&name))?;
        let find = |name: &str| match name {
            "T" => Some(Variable::Throughput),
            "D" => Some(Variable::Delay),
            "L" => Some(Variable::Loss),
            _ => FactorRef::find(name, &user).map(Variable::Factor),
        };
        let known =
            || ["T", "D", "L"].map(str::to_owned).into_iter().chain(factor_names(&user)).collect();
        let is_known = |name: &str| find(name).is_some();
        let vocabulary = Vocabulary { is_known: &is_known, known: &known, is_statistic: None };
        let (expression, names) = Expression::parse(text, &vocabulary)?;
        let variables = names.into_iter().filter_map(find).collect();
        Ok(Self { shared: Arc::new(Parsed { text: text.into(), expression, variables }) })
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.shared.text
    }

    /// The factors that the formula reads.
    pub fn factors(&self) -> impl Iterator<Item = &str> {
        self.shared.variables.iter().filter_map(|variable| match variable {
            Variable::Factor(factor) => Some(factor.name()),
            _ => None,
        })
    }

    /// The score; NaN when a factor is not set or the formula has no value at this point, infinite
    /// where it has a pole.
    pub fn score(&self, point: &OperatingPoint, factors: &Factors) -> f64 {
        self.eval(point, factors).value
    }

    /// The derivatives of the score; NaN where it is.
    pub fn gradient(&self, point: &OperatingPoint, factors: &Factors) -> Gradient {
        let jet = self.eval(point, factors);
        if jet.value.is_nan() {
            return Gradient::NAN;
        }
        let [throughput, delay, loss] = jet.partial;
        Gradient { throughput, delay, loss }
    }

    fn eval(&self, point: &OperatingPoint, factors: &Factors) -> Jet {
        let slots: Vec<Jet> = self
            .shared
            .variables
            .iter()
            .map(|variable| match variable {
                Variable::Throughput => Jet::variable(point.throughput_mbps(), 0),
                Variable::Delay => Jet::variable(point.delay_s(), 1),
                Variable::Loss => Jet::variable(point.loss_ratio(), 2),
                Variable::Factor(factor) => Jet::constant(factor.get(factors).unwrap_or(f64::NAN)),
            })
            .collect();
        self.shared.expression.eval(&slots)
    }
}
