//! What a formula may call, and the operators that evaluate it.

use exmex::{BinOp, MakeOperators, Operator};

use super::jet::Jet;

/// A function that formulas may call.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// Fewest and most arguments.
    pub(crate) arguments: (usize, usize),
    pub(crate) form: Form,
}

/// How a call is handed to exmex, whose own call syntax breaks on nested commas.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// As it stands: `ln(x)`.
    Prefix,
    /// Folded from the left by an infix operator: `max(a, b, c)` is `((a max b) max c)`.
    Fold(&'static str),
    /// `if(c, a, b)`, which is `((c then a) else b)`.
    Choice,
}

const fn prefix(name: &'static str) -> Function {
    Function { name, arguments: (1, 1), form: Form::Prefix }
}
const fn fold(name: &'static str, op: &'static str, most: usize) -> Function {
    Function { name, arguments: (2, most), form: Form::Fold(op) }
}

/// Every function. There is no `log`, since half of all people read it with base 10.
pub(crate) const FUNCTIONS: [Function; 12] = [
    prefix("abs"),
    prefix("exp"),
    Function { name: "if", arguments: (3, 3), form: Form::Choice },
    prefix("ln"),
    prefix("log10"),
    prefix("log2"),
    fold("max", "max", 16),
    fold("min", "min", 16),
    fold("pow", "^", 2),
    fold("softplus", "softplus", 2),
    prefix("sqrt"),
    prefix("tanh"),
];

pub(crate) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// Binding strength, weakest first.
const COMPARISON: i64 = 0;
const SUM: i64 = 1;
const PRODUCT: i64 = 2;
const POWER: i64 = 3;
/// For operators that the rewriting always sets in parentheses.
const ALONE: i64 = 0;

fn infix<'a>(name: &'a str, prio: i64, apply: fn(Jet, Jet) -> Jet) -> Operator<'a, Jet> {
    Operator::make_bin(name, operator(prio, apply))
}

/// Declared as not commutative, so that exmex never reorders `x*2*3` to fold `2*3`: equal
/// priorities then evaluate strictly from the left.
fn operator(prio: i64, apply: fn(Jet, Jet) -> Jet) -> BinOp<Jet> {
    BinOp { apply, prio, is_commutative: false }
}

/// The operators on jets. Transcendental ones come from `libm`, so that every machine agrees.
#[derive(Clone, Debug)]
pub(crate) struct JetOperators;

impl MakeOperators<Jet> for JetOperators {
    fn make<'a>() -> Vec<Operator<'a, Jet>> {
        vec![
            infix("<", COMPARISON, |a, b| Jet::truth(a.value < b.value)),
            infix("<=", COMPARISON, |a, b| Jet::truth(a.value <= b.value)),
            infix(">", COMPARISON, |a, b| Jet::truth(a.value > b.value)),
            infix(">=", COMPARISON, |a, b| Jet::truth(a.value >= b.value)),
            infix("+", SUM, Jet::add),
            Operator::make_bin_unary("-", operator(SUM, Jet::sub), Jet::neg),
            infix("*", PRODUCT, Jet::mul),
            infix("/", PRODUCT, Jet::div),
            infix("^", POWER, Jet::pow),
            infix("max", ALONE, Jet::max),
            infix("min", ALONE, Jet::min),
            infix("softplus", ALONE, Jet::softplus),
            infix("then", ALONE, Jet::then),
            infix("else", ALONE, Jet::or_else),
            Operator::make_unary("abs", Jet::abs),
            Operator::make_unary("exp", Jet::exp),
            Operator::make_unary("ln", Jet::ln),
            Operator::make_unary("log10", Jet::log10),
            Operator::make_unary("log2", Jet::log2),
            Operator::make_unary("sqrt", Jet::sqrt),
            Operator::make_unary("tanh", Jet::tanh),
        ]
    }
}
