//! A formula's text as tokens, each with its column.

use super::error::{FORMULA_LEN_MAX, FormulaError, Problem};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Number(f64),
    Name(&'a str),
    /// `+ - * / ^`
    Arithmetic(char),
    /// `< <= > >=`
    Comparison(&'static str),
    Open,
    Close,
    Comma,
}

/// A token, the text that it came from, and the column (in characters, from 1) where it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placed<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) text: &'a str,
    pub(crate) column: usize,
}

/// Splits a formula into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<Placed<'_>>, FormulaError> {
    if text.chars().nth(FORMULA_LEN_MAX).is_some() {
        return Err(FormulaError::new(FORMULA_LEN_MAX + 1, Problem::TooLong));
    }
    let mut found = Vec::new();
    let (mut rest, mut column) = (text, 1);
    while let Some(first) = rest.chars().next() {
        // Bytes equal characters in every token, since tokens are ASCII.
        let len = if first.is_whitespace() {
            first.len_utf8()
        } else {
            let (token, len) = token(rest, first, column)?;
            found.push(Placed { token, text: &rest[..len], column });
            len
        };
        column += rest[..len].chars().count();
        rest = &rest[len..];
    }
    Ok(found)
}

/// The token at the start of `rest` and its length in bytes.
fn token(rest: &str, first: char, column: usize) -> Result<(Token<'_>, usize), FormulaError> {
    let run =
        |allowed: fn(u8) -> bool| rest.bytes().position(|b| !allowed(b)).unwrap_or(rest.len());
    Ok(match first {
        '+' | '-' | '*' | '/' | '^' => (Token::Arithmetic(first), 1),
        '<' if rest.starts_with("<=") => (Token::Comparison("<="), 2),
        '>' if rest.starts_with(">=") => (Token::Comparison(">="), 2),
        '<' => (Token::Comparison("<"), 1),
        '>' => (Token::Comparison(">"), 1),
        '(' => (Token::Open, 1),
        ')' => (Token::Close, 1),
        ',' => (Token::Comma, 1),
        'a'..='z' | 'A'..='Z' | '_' => {
            let len = run(|b| b.is_ascii_alphanumeric() || b == b'_');
            (Token::Name(&rest[..len]), len)
        }
        '0'..='9' | '.' => {
            let len = number_len(rest.as_bytes());
            let bad = || FormulaError::new(column, Problem::BadNumber(rest[..len].into()));
            let value: f64 = rest[..len].parse().map_err(|_| bad())?;
            if !value.is_finite() {
                return Err(bad());
            }
            (Token::Number(value), len)
        }
        other => return Err(FormulaError::new(column, Problem::BadCharacter(other))),
    })
}

/// The length of a number such as `12`, `.5`, `1.5e-3`, with whatever letters or points run on from
/// it, so that `1.2.3` and `5x` are reported whole.
fn number_len(text: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&b) = text.get(len) {
        let exponent_sign = matches!(b, b'+' | b'-')
            && matches!(text[..len].last(), Some(b'e' | b'E'))
            && text.get(len + 1).is_some_and(u8::is_ascii_digit);
        if !(b.is_ascii_alphanumeric() || b == b'.' || b == b'_' || exponent_sign) {
            break;
        }
        len += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_know_their_column() {
        let found = tokens(" R/(1.5e-3 +\tT_x2)<= .5,").unwrap();
        let short: Vec<_> = found.iter().map(|p| (p.token, p.column)).collect();
        use Token::{Arithmetic, Close, Comma, Comparison, Name, Number, Open};
        assert_eq!(
            short,
            [
                (Name("R"), 2),
                (Arithmetic('/'), 3),
                (Open, 4),
                (Number(0.0015), 5),
                (Arithmetic('+'), 12),
                (Name("T_x2"), 14),
                (Close, 18),
                (Comparison("<="), 19),
                (Number(0.5), 22),
                (Comma, 24),
            ]
        );
    }

    #[test]
    fn numbers_end_where_they_should() {
        let all = |text| tokens(text).map(|v| v.iter().map(|p| p.token).collect::<Vec<_>>());
        use Token::{Arithmetic, Number};
        assert_eq!(all("1-2").unwrap(), [Number(1.0), Arithmetic('-'), Number(2.0)]);
        assert_eq!(all("1e2-2").unwrap(), [Number(100.0), Arithmetic('-'), Number(2.0)]);
        for bad in ["1.2.3", "5x", ".", "1e", "1e999", "0x10", "1_000"] {
            assert_eq!(
                all(bad),
                Err(FormulaError::new(1, Problem::BadNumber(bad.into()))),
                "{bad}"
            );
        }
    }

    #[test]
    fn columns_count_characters() {
        let error = tokens("\u{a0}T + é").unwrap_err();
        assert_eq!(error, FormulaError::new(6, Problem::BadCharacter('é')));
    }
}
