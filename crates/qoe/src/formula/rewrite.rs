//! Checks a formula and rewrites it into the subset of exmex's syntax that means what it says.
//!
//! exmex takes parsing and evaluation off our hands, but gives no position with its errors, loses
//! track of nested commas, reads `-x^2` as `(-x)^2`, has no exponents in numbers and splits a name
//! like `min_rtt` after `min`. This pass walks the tokens once with a stack of open parentheses,
//! reports whatever is wrong with its column, and writes the same formula with numbered variables,
//! calls of several arguments as parenthesized infix operators, and signs as factors of −1.

use std::iter::{Copied, Peekable};
use std::slice::Iter;

use super::error::{FORMULA_DEPTH_MAX, FormulaError, Problem};
use super::functions::{Form, Function, function};
use super::token::{Placed, Token, tokens};

/// A formula for exmex, and the variables `v000`, `v001`, … in it.
#[derive(Debug)]
pub(crate) struct Rewritten<'a> {
    pub(crate) text: String,
    pub(crate) names: Vec<&'a str>,
}

/// One open parenthesis, or the formula itself at the bottom.
struct Frame {
    column: usize,
    /// Where in the output it began.
    start: usize,
    call: Option<&'static Function>,
    commas: usize,
    compared: bool,
    /// The last operator in this frame since it opened or since its last comma.
    last: Option<char>,
}

impl Frame {
    fn new(column: usize, start: usize, call: Option<&'static Function>) -> Self {
        Self { column, start, call, commas: 0, compared: false, last: None }
    }
    fn is_condition(&self) -> bool {
        self.commas == 0 && self.call.is_some_and(|f| matches!(f.form, Form::Choice))
    }
    /// What separates argument `commas` from the next (see [`Form`]).
    fn separator(&self, function: &Function) -> String {
        let op = match function.form {
            Form::Prefix => "",
            Form::Fold(op) => op,
            Form::Choice if self.commas == 0 => "then",
            Form::Choice => "else",
        };
        let close = if self.commas == 0 { ")" } else { "))" };
        format!("{close}{op}(")
    }
}

struct Rewriter<'a> {
    out: String,
    names: Vec<&'a str>,
    frames: Vec<Frame>,
}

/// The tokens of a formula that come next.
type TokensLeft<'t, 'a> = Peekable<Copied<Iter<'t, Placed<'a>>>>;

/// The names that a formula may use.
pub(crate) struct Vocabulary<'v> {
    /// Whether there is a variable of this name.
    pub(crate) is_known: &'v dyn Fn(&str) -> bool,
    /// All variables, for an error message.
    pub(crate) known: &'v dyn Fn() -> Vec<String>,
    /// What calls there are besides those of functions.
    pub(crate) calls: Calls,
}

/// Which `NAME(…)` are statistics of samples, by their names. Each such call is a variable of the
/// rewritten formula, with its whole text as its name.
#[derive(Clone, Copy)]
pub(crate) enum Calls {
    /// `NAME(VARIABLE)`. Variables stand only in them.
    OfVariables(fn(&str) -> bool),
    /// `NAME(…)` with anything inside, which is left to the caller.
    OfExpressions(fn(&str) -> bool),
    /// None: what is a statistic elsewhere is a mistake here.
    NoStatistic(fn(&str) -> bool),
}

/// Checks and rewrites `text`, whose variables are those of the vocabulary.
pub(crate) fn rewrite<'a>(
    text: &'a str,
    vocabulary: &Vocabulary<'_>,
) -> Result<Rewritten<'a>, FormulaError> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Err(FormulaError::new(1, Problem::Empty));
    }
    let mut r =
        Rewriter { out: String::new(), names: Vec::new(), frames: vec![Frame::new(0, 0, None)] };
    let mut operand_next = true;
    let mut tokens_left = tokens.iter().copied().peekable();
    while let Some(at) = tokens_left.next() {
        let fail = |problem| Err(FormulaError::new(at.column, problem));
        operand_next = match (at.token, operand_next) {
            (Token::Number(value), true) => {
                // Never an exponent: `Display` writes every finite number out.
                r.out += &value.to_string();
                false
            }
            (Token::Name(name), true) => r.name(name, at, &mut tokens_left, text, vocabulary)?,
            (Token::Open, true) => {
                r.open(at.column, None)?;
                true
            }
            (Token::Arithmetic(sign @ ('+' | '-')), true) => {
                r.sign(sign);
                true
            }
            (_, true) => return fail(Problem::MissingOperand { found: Some(at.text.into()) }),
            (Token::Number(_) | Token::Name(_) | Token::Open, false) => {
                return fail(Problem::MissingOperator { before: at.text.into() });
            }
            (Token::Arithmetic(op), false) => {
                r.arithmetic(op, at)?;
                true
            }
            (Token::Comparison(op), false) => {
                r.comparison(op, at)?;
                true
            }
            (Token::Comma, false) => {
                r.comma(at)?;
                true
            }
            (Token::Close, false) => {
                r.close(at)?;
                false
            }
        };
    }
    if operand_next {
        let end = text.trim_end().chars().count() + 1;
        return Err(FormulaError::new(end, Problem::MissingOperand { found: None }));
    }
    match r.frames.last() {
        Some(open) if r.frames.len() > 1 => {
            Err(FormulaError::new(open.column, Problem::UnmatchedOpen))
        }
        _ => Ok(Rewritten { text: r.out, names: r.names }),
    }
}

impl<'a> Rewriter<'a> {
    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the bottom frame is never popped")
    }

    /// Rewrites a name, with the parenthesis or the variable of a statistic that follows it. True
    /// where an operand comes next.
    fn name(
        &mut self,
        name: &str,
        at: Placed<'a>,
        left: &mut TokensLeft<'_, 'a>,
        text: &'a str,
        vocabulary: &Vocabulary<'_>,
    ) -> Result<bool, FormulaError> {
        let Vocabulary { is_known, known, calls } = *vocabulary;
        let fail = |problem| Err(FormulaError::new(at.column, problem));
        let called = left.next_if(|next| next.token == Token::Open);
        match (called, function(name), calls) {
            (Some(_), None, Calls::NoStatistic(is)) if is(name) => {
                fail(Problem::StatisticInStatistic(name.into()))
            }
            (Some(_), None, Calls::OfExpressions(is)) if is(name) => {
                let Some(close) = closing(left) else {
                    return fail(Problem::UnmatchedOpen);
                };
                self.variable(between(text, at, close));
                Ok(false)
            }
            (Some(_), None, Calls::OfVariables(is)) if is(name) => {
                let argument = left.next_if(|t| matches!(t.token, Token::Name(_)));
                let Some(argument) = argument else {
                    return fail(Problem::StatisticOfNothing(name.into()));
                };
                if !is_known(argument.text) {
                    let (name, known) = (argument.text.into(), known());
                    let problem = Problem::UnknownVariable { name, known };
                    return Err(FormulaError::new(argument.column, problem));
                }
                let Some(close) = left.next_if(|t| t.token == Token::Close) else {
                    return fail(Problem::StatisticOfNothing(name.into()));
                };
                self.variable(between(text, at, close));
                Ok(false)
            }
            (Some(_), Some(function), _) => {
                self.open(at.column, Some(function))?;
                Ok(true)
            }
            _ if name == "log" => fail(Problem::LoneLog),
            (Some(_), None, Calls::OfExpressions(_)) => fail(Problem::unknown_function(name)),
            (Some(_), None, _) => {
                fail(Problem::UnknownFunction { name: name.into(), statistics: false })
            }
            (None, Some(function), _) => fail(Problem::NotCalled(function.name)),
            (None, None, Calls::OfVariables(_)) if is_known(name) => {
                fail(Problem::BareVariable(name.into()))
            }
            (None, None, _) if is_known(name) => {
                // `at.text` is the name, and lives as long as the formula.
                self.variable(at.text);
                Ok(false)
            }
            (None, None, _) => {
                let known = known();
                fail(Problem::UnknownVariable { name: name.into(), known })
            }
        }
    }

    fn variable(&mut self, name: &'a str) {
        let slot = self.names.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        // Padded, so that exmex's alphabetical order is the order of slots.
        self.out += &format!("{{v{slot:03}}}");
    }

    fn sign(&mut self, sign: char) {
        if sign == '+' {
            return;
        }
        let text = match self.top().last {
            // An exponent cannot be a product; here exmex's own tight sign is the right one.
            Some('^') => "-",
            Some('/') => "(-1)/",
            _ => "(-1)*",
        };
        self.out += text;
    }

    fn open(&mut self, column: usize, call: Option<&'static Function>) -> Result<(), FormulaError> {
        // The bottom frame is no parenthesis.
        if self.frames.len() > FORMULA_DEPTH_MAX {
            return Err(FormulaError::new(column, Problem::TooDeep));
        }
        self.frames.push(Frame::new(column, self.out.len(), call));
        if let Some(function) = call.filter(|f| matches!(f.form, Form::Prefix)) {
            self.out += function.name;
        }
        self.out.push('(');
        Ok(())
    }

    fn arithmetic(&mut self, op: char, at: Placed<'_>) -> Result<(), FormulaError> {
        let frame = self.top();
        if op == '^' && frame.last == Some('^') {
            return Err(FormulaError::new(at.column, Problem::PowerOfPower));
        }
        frame.last = Some(op);
        self.out.push(op);
        Ok(())
    }

    fn comparison(&mut self, op: &str, at: Placed<'_>) -> Result<(), FormulaError> {
        let frame = self.top();
        if !frame.is_condition() || frame.compared {
            return Err(FormulaError::new(at.column, Problem::StrayComparison));
        }
        frame.compared = true;
        frame.last = None;
        self.out += op;
        Ok(())
    }

    fn comma(&mut self, at: Placed<'_>) -> Result<(), FormulaError> {
        let frame = self.top();
        let Some(function) = frame.call else {
            return Err(FormulaError::new(at.column, Problem::StrayComma));
        };
        if frame.is_condition() && !frame.compared {
            return Err(FormulaError::new(frame.column, Problem::NoComparison));
        }
        let separator = frame.separator(function);
        frame.commas += 1;
        frame.last = None;
        self.out += &separator;
        Ok(())
    }

    fn close(&mut self, at: Placed<'_>) -> Result<(), FormulaError> {
        if self.frames.len() == 1 {
            return Err(FormulaError::new(at.column, Problem::UnmatchedClose));
        }
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        self.out.push(')');
        let Some(function) = frame.call else { return Ok(()) };
        let (least, most) = function.arguments;
        let found = frame.commas + 1;
        if !(least..=most).contains(&found) {
            let problem = Problem::ArgumentCount { function: function.name, least, most, found };
            return Err(FormulaError::new(frame.column, problem));
        }
        if !matches!(function.form, Form::Prefix) {
            // One parenthesis per fold, around everything to its left: a, b, c → ((a·b)·c).
            self.out.insert_str(frame.start, &"(".repeat(frame.commas));
            self.out.push(')');
        }
        Ok(())
    }
}

/// Takes the tokens up to the parenthesis that closes the one before them, and gives that.
fn closing<'a>(left: &mut TokensLeft<'_, 'a>) -> Option<Placed<'a>> {
    let mut open = 1;
    left.find(|next| {
        match next.token {
            Token::Open => open += 1,
            Token::Close => open -= 1,
            _ => {}
        }
        open == 0
    })
}

/// The text from one token to another one of a single byte.
fn between<'a>(text: &'a str, from: Placed<'_>, to: Placed<'_>) -> &'a str {
    let place = |token: Placed<'_>| token.text.as_ptr() as usize - text.as_ptr() as usize;
    &text[place(from)..=place(to)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> String {
        let known = |name: &str| ["T", "D", "min_rtt"].contains(&name);
        let calls = Calls::NoStatistic(|_| false);
        let vocabulary = Vocabulary { is_known: &known, known: &Vec::new, calls };
        rewrite(text, &vocabulary).unwrap().text
    }

    #[test]
    fn calls_become_infix() {
        assert_eq!(rewritten("max(T, D)"), "(({v000})max({v001}))");
        assert_eq!(rewritten("max(T, 1, D)"), "((({v000})max(1))max({v001}))");
        assert_eq!(rewritten("if(T<1, 2, 3)"), "((({v000}<1)then(2))else(3))");
        assert_eq!(rewritten("ln(min(T,min_rtt))"), "ln((({v000})min({v001})))");
    }

    #[test]
    fn signs_bind_weaker_than_powers() {
        assert_eq!(rewritten("-T^2"), "(-1)*{v000}^2");
        assert_eq!(rewritten("2/-T^2"), "2/(-1)/{v000}^2");
        assert_eq!(rewritten("T^-2"), "{v000}^-2");
        assert_eq!(rewritten("+T - -1e-3"), "{v000}-(-1)*0.001");
    }
}
