//! A checked formula over named variables, ready to evaluate.

use exmex::{Express, FlatEx};

use super::error::{FormulaError, Problem};
use super::functions::JetOperators;
use super::jet::Jet;
use super::rewrite::{Vocabulary, rewrite};

/// An expression whose variables are numbered slots.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    flat: FlatEx<Jet, JetOperators>,
}

impl Expression {
    /// Parses `text`. Returns the expression and the names of its variables, by slot.
    pub(crate) fn parse<'a>(
        text: &'a str,
        vocabulary: &Vocabulary<'_>,
    ) -> Result<(Self, Vec<&'a str>), FormulaError> {
        let rewritten = rewrite(text, vocabulary)?;
        let flat = FlatEx::parse(&rewritten.text)
            .map_err(|e| FormulaError::new(1, Problem::Library(e.msg().into())))?;
        Ok((Self { flat }, rewritten.names))
    }

    /// The value and derivatives, given the value of each slot; NaN if the number of slots differs.
    pub(crate) fn eval(&self, slots: &[Jet]) -> Jet {
        self.flat.eval(slots).unwrap_or(Jet::constant(f64::NAN))
    }
}
