//! What is wrong with a formula, and where.

use core::fmt;

use super::functions::FUNCTIONS;
use crate::FactorError;

/// Longest formula, in characters.
pub const FORMULA_LEN_MAX: usize = 1000;
/// Deepest nesting of parentheses and calls.
pub const FORMULA_DEPTH_MAX: usize = 32;

/// Why a text is not a formula. Its message names the column and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// Column of the problem, counted in characters from 1; 0 when it is not in the text.
    column: usize,
    problem: Problem,
}

/// The kinds of problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Empty,
    TooLong,
    TooDeep,
    BadCharacter(char),
    BadNumber(String),
    UnknownVariable {
        name: String,
        known: Vec<String>,
    },
    UnknownFunction {
        name: String,
        /// Whether statistics of samples stand where it stands.
        statistics: bool,
    },
    /// A name of many values, without a statistic of them.
    BareVariable(String),
    /// A statistic of something else than one name.
    StatisticOfNothing(String),
    /// A statistic of an expression that does not read exactly one of T, D and L.
    StatisticOfAxes(String),
    StatisticInStatistic(String),
    NotCalled(&'static str),
    LoneLog,
    MissingOperand {
        found: Option<String>,
    },
    MissingOperator {
        before: String,
    },
    UnmatchedClose,
    UnmatchedOpen,
    StrayComma,
    ArgumentCount {
        function: &'static str,
        least: usize,
        most: usize,
        found: usize,
    },
    PowerOfPower,
    StrayComparison,
    NoComparison,
    Factor(FactorError),
    /// The library refused what the checks let through.
    Library(String),
}

impl Problem {
    /// A call of something unknown, where statistics of samples may stand.
    pub(crate) fn unknown_function(name: &str) -> Self {
        Self::UnknownFunction { name: name.into(), statistics: true }
    }
}

impl FormulaError {
    pub(crate) fn new(column: usize, problem: Problem) -> Self {
        Self { column, problem }
    }

    /// The error of a part, as one of the whole in which so many characters stand before it.
    pub(crate) fn moved(self, by: usize) -> Self {
        let column = if self.column > 0 { self.column + by } else { 0 };
        Self { column, ..self }
    }

    /// The column of the problem, counted in characters from 1, or `None` when it does not lie in
    /// the formula (but, say, in the name of a factor).
    pub fn column(&self) -> Option<usize> {
        (self.column > 0).then_some(self.column)
    }

    /// The formula with a caret under the problem, on two lines, for a terminal.
    pub fn pointer(&self, formula: &str) -> String {
        // A tab or line break would shift the caret.
        let line: String =
            formula.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        format!("{line}\n{:>column$}", '^', column = self.column.max(1))
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.column > 0 {
            write!(f, "formula, column {}: ", self.column)?;
        }
        self.problem.fmt(f)
    }
}
impl std::error::Error for FormulaError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty; write for example R / (R/T + D)"),
            Self::TooLong => write!(f, "it is longer than {FORMULA_LEN_MAX} characters"),
            Self::TooDeep => {
                write!(f, "parentheses are nested deeper than {FORMULA_DEPTH_MAX} levels")
            }
            Self::BadCharacter(c) => write!(
                f,
                "{c:?} means nothing here; use numbers, names, + - * / ^ < <= > >= ( ) and commas"
            ),
            Self::BadNumber(text) => write!(f, "`{text}` is not a finite number"),
            Self::UnknownVariable { name, known } => {
                write!(f, "unknown variable `{name}` (known: {})", known.join(", "))
            }
            Self::UnknownFunction { name, statistics } => {
                write!(f, "unknown function `{name}` (known:")?;
                for (i, function) in FUNCTIONS.iter().enumerate() {
                    write!(f, "{} {}", if i == 0 { "" } else { "," }, function.name)?;
                }
                if *statistics {
                    f.write_str(", mean, sd, p0 to p100")?;
                }
                f.write_str("); to multiply, write *")
            }
            Self::BareVariable(name) => write!(
                f,
                "`{name}` has many values in an interval: write mean({name}), p75({name}) or another statistic of it"
            ),
            Self::StatisticOfNothing(name) => {
                write!(f, "`{name}` is a statistic of one name, e.g. {name}(throughput)")
            }
            Self::StatisticOfAxes(name) => write!(
                f,
                "`{name}` takes an expression in exactly one of T, D and L, e.g. {name}(D)"
            ),
            Self::StatisticInStatistic(name) => {
                write!(f, "the statistic `{name}` cannot stand inside another")
            }
            Self::NotCalled(name) => {
                write!(f, "`{name}` is a function: put its arguments in parentheses after it")
            }
            Self::LoneLog => {
                f.write_str("`log` has no agreed base; write ln (natural), log10 or log2")
            }
            Self::MissingOperand { found: None } => {
                f.write_str("the formula ends where a number, a name or ( must follow")
            }
            Self::MissingOperand { found: Some(found) } => {
                write!(f, "a number, a name or ( must stand here, not `{found}`")
            }
            Self::MissingOperator { before } => {
                write!(f, "an operator is missing before `{before}`; to multiply, write *")
            }
            Self::UnmatchedClose => f.write_str("this ) closes nothing"),
            Self::UnmatchedOpen => f.write_str("this ( is never closed"),
            Self::StrayComma => f.write_str(
                "a comma only parts the arguments of a function; decimals are written with a point",
            ),
            Self::ArgumentCount { function, least, most, found } => {
                write!(f, "`{function}` takes ")?;
                match (least, most) {
                    (1, 1) => f.write_str("1 argument")?,
                    (a, b) if a == b => write!(f, "{a} arguments")?,
                    (a, b) => write!(f, "{a} to {b} arguments")?,
                }
                write!(f, ", not {found}")
            }
            Self::PowerOfPower => f.write_str("a^b^c has two readings; write (a^b)^c or a^(b^c)"),
            Self::StrayComparison => f.write_str(
                "a comparison stands only as the condition of if(a < b, then, else), once",
            ),
            Self::NoComparison => f.write_str(
                "the condition of if(…) must be a comparison, e.g. if(L < 0.05, then, else)",
            ),
            Self::Factor(error) => error.fmt(f),
            Self::Library(message) => write!(f, "the parser refuses it: {message}"),
        }
    }
}
