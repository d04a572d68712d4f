//! The form of CMCD: keys with values, between commas.

use std::borrow::Cow;

use crate::CmcdError;

/// Pairs in one piece of data; version 1 has 18 keys.
const PAIRS_MAX: usize = 64;

/// What stands behind a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Nothing: the key alone means true.
    Alone,
    /// Between quotation marks, which are taken away.
    Quoted(String),
    /// A number or a token.
    Bare(&'a str),
    /// Between parentheses, which are taken away; version 2 has lists.
    List(&'a str),
}

impl Value<'_> {
    /// As an error shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Alone => "nothing".to_owned(),
            Self::Quoted(text) => short(text),
            Self::Bare(text) | Self::List(text) => short(text),
        }
    }
}

/// Text of somebody else, for an error: short, in one line.
pub(crate) fn short(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}

/// Divides data into keys and values.
pub(crate) fn pairs(text: &str) -> Result<Vec<(&str, Value<'_>)>, CmcdError> {
    let mut all = Vec::new();
    let mut rest = blank(text);
    if rest.is_empty() {
        return Ok(all);
    }
    loop {
        let end = rest.find(['=', ',']).unwrap_or(rest.len());
        let key = rest[..end].trim_end_matches([' ', '\t']);
        if !is_key(key) {
            return Err(CmcdError::Key(short(key)));
        }
        if all.len() == PAIRS_MAX {
            return Err(CmcdError::TooMany(PAIRS_MAX));
        }
        let value;
        (value, rest) = match rest[end..].strip_prefix('=') {
            Some(after) => read_value(key, after)?,
            None => (Value::Alone, &rest[end..]),
        };
        all.push((key, value));
        rest = blank(rest);
        if rest.is_empty() {
            return Ok(all);
        }
        let Some(next) = rest.strip_prefix(',') else {
            return Err(CmcdError::Follows { key: key.to_owned(), text: short(rest) });
        };
        rest = blank(next);
    }
}

fn blank(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// A letter, then letters, digits and what reversed names of domains have.
fn is_key(key: &str) -> bool {
    let is_first = key.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
    is_first && key.len() <= 64 && key.bytes().all(goes_on)
}

fn read_value<'a>(key: &str, text: &'a str) -> Result<(Value<'a>, &'a str), CmcdError> {
    if let Some(list) = text.strip_prefix('(') {
        return read_list(key, list);
    }
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        let bare = text[..end].trim_end_matches([' ', '\t']);
        return Ok((Value::Bare(bare), &text[end..]));
    };
    let mut content = String::new();
    let mut escaped = false;
    for (at, c) in quoted.char_indices() {
        match c {
            '"' | '\\' if escaped => {
                content.push(c);
                escaped = false;
            }
            '\\' if !escaped => escaped = true,
            '"' => return Ok((Value::Quoted(content), &quoted[at + 1..])),
            c if escaped || c.is_control() => break,
            c => content.push(c),
        }
    }
    Err(CmcdError::Quotes(key.to_owned()))
}

/// Up to the parenthesis that is in no quotation marks.
fn read_list<'a>(key: &str, text: &'a str) -> Result<(Value<'a>, &'a str), CmcdError> {
    let (mut is_quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            c if c.is_control() => break,
            _ if escaped => escaped = false,
            '\\' if is_quoted => escaped = true,
            '"' => is_quoted = !is_quoted,
            ')' if !is_quoted => return Ok((Value::List(&text[..at]), &text[at + 1..])),
            _ => {}
        }
    }
    Err(CmcdError::List(key.to_owned()))
}

/// Text between quotation marks, as [`pairs`] reads it.
pub(crate) fn quoted(text: &str) -> String {
    let escaped: Cow<'_, str> = if text.contains(['"', '\\']) {
        text.replace('\\', "\\\\").replace('"', "\\\"").into()
    } else {
        text.into()
    };
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_values_or_stand_alone() {
        let all = pairs(" bs , br=3200,sid=\"a,\\\"b\\\\\" ,com.example-Key=7").unwrap();
        let quoted = Value::Quoted("a,\"b\\".to_owned());
        let expected = [
            ("bs", Value::Alone),
            ("br", Value::Bare("3200")),
            ("sid", quoted),
            ("com.example-Key", Value::Bare("7")),
        ];
        assert_eq!(all, expected);
        assert_eq!(pairs("  "), Ok(vec![]));
        let lists = pairs("nor=(\"a,)\" \"b\\\"\"),br=()").unwrap();
        assert_eq!(lists[0].1, Value::List("\"a,)\" \"b\\\"\""));
        assert_eq!(lists[1], ("br", Value::List("")));
    }

    #[test]
    fn what_has_another_form_is_refused() {
        let error = |text: &str| pairs(text).unwrap_err().to_string();
        for text in ["br=1,", ",br=1", "=1", "9a=1", "ä=1", "b r=1"] {
            assert!(error(text).contains("is no key of CMCD"), "{text}: {}", error(text));
        }
        for text in ["sid=\"a", "sid=\"a\\", "sid=\"a\\b\"", "sid=\"a\nb\""] {
            assert!(error(text).starts_with("sid: "), "{text}: {}", error(text));
        }
        assert!(error("sid=\"a\"b").contains("\"b\" follows the value of sid"));
        let many = vec!["bs"; PAIRS_MAX + 1].join(",");
        assert_eq!(pairs(&many), Err(CmcdError::TooMany(PAIRS_MAX)));
    }
}
