//! Words that this project no longer uses, and how many are left of each.
//!
//! Every text is counted, and the counts may only fall: `words.toml` holds them. A text that uses
//! one of the words anew fails, and so does a count that is higher than what is left.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Finding;

/// The words, from `words.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    words: BTreeMap<String, Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    /// What to write in its place.
    instead: String,
    /// How often it still stands in the project.
    left: usize,
}

impl Rules {
    /// Reads `words.toml`.
    ///
    /// # Errors
    /// The text is no such file.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}

/// Whether the words of this file are counted: the project's own prose and code. The CHANGELOG tells
/// what was, and this check has to name the words.
pub fn counts(path: &str) -> bool {
    let text = [".md", ".rs", ".toml", ".py", ".sh", ".h", ".c"].iter().any(|e| path.ends_with(e));
    text && path != "CHANGELOG.md" && !path.starts_with("tools/tidy/")
}

/// Holds the files, by path, against the rules.
pub fn check(rules: &Rules, files: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (word, rule) in &rules.words {
        let each = files.iter().map(|(path, text)| (path, occurrences(text, word)));
        let found: Vec<_> = each.filter(|(_, count)| *count > 0).collect();
        let sum: usize = found.iter().map(|(_, count)| count).sum();
        let what = match sum.cmp(&rule.left) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Less => {
                format!("{word:?} stands {sum} times: lower its `left` from {}", rule.left)
            }
            std::cmp::Ordering::Greater => {
                format!(
                    "{word:?} stands {sum} times, {} allowed: write {} in what you added",
                    rule.left, rule.instead
                )
            }
        };
        findings.push(Finding::at("tools/tidy/words.toml", what));
    }
    findings
}

/// How often a word, or several in a row, stands in a text, in any case.
fn occurrences(text: &str, word: &str) -> usize {
    let text = text.to_lowercase();
    let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(word)
        .filter(|(at, _)| {
            let (before, after) = (&text[..*at], &text[at + word.len()..]);
            !inside(before.chars().next_back()) && !inside(after.chars().next())
        })
        .count()
}
