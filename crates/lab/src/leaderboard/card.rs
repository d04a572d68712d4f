//! What a submission says of itself.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trimtab_steer::scheme::{Scheme, SchemeKind};

/// The card of a submission, a TOML file.
///
/// ```
/// use trimtab_lab::leaderboard::Card;
///
/// let card = Card::parse(
///     r#"
///     scheme = "python:mine.py"
///     authors = ["A. N. Author"]
///     source = "a thesis, chapter 4"
///     licence = "MIT OR Apache-2.0"
///     training = "none: it has rules"
///     run = "save mine.py, and run trimtab where it lies"
///     "#,
/// )
/// .unwrap();
/// assert_eq!(card.scheme.label(), "python:mine.py");
/// let e = Card::parse("scheme = \"python:mine.py\"").unwrap_err();
/// assert!(e.to_string().contains("missing field `authors`"));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The scheme, as after `--cc`. Paths count from the folder in which the command runs.
    pub scheme: Scheme,
    /// Who wrote it.
    pub authors: Vec<String>,
    /// Where it is described: a paper, a repository.
    pub source: String,
    /// Its licence, an SPDX expression: `MIT`, `LicenseRef-Proprietary`.
    pub licence: String,
    /// What it was trained on and tuned with, so that readers see whether a set was among it.
    pub training: String,
    /// How others run it: what to install and to build.
    pub run: String,
}

/// Why there is no card.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// The file cannot be read.
    #[error("cannot read the card {}: {cause}; name a TOML file", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// The text is no card; the message has line and column.
    #[error("the card cannot be used: {}", .0.to_string().trim_end())]
    Parse(#[from] Box<toml::de::Error>),
    /// A key has nothing to say.
    #[error("the card has no {key}: say {wanted}")]
    Empty {
        /// The key.
        key: &'static str,
        /// What stands there.
        wanted: &'static str,
    },
    /// The licence is no SPDX expression.
    #[error(
        "the card's licence {licence:?} is no SPDX expression: {why}; write e.g. MIT, \
         GPL-2.0-only or LicenseRef-Proprietary"
    )]
    Licence {
        /// What stands there.
        licence: String,
        /// What is wrong.
        why: spdx::error::Reason,
    },
    /// The scheme cannot be on the board.
    #[error("the card's scheme {scheme} cannot be submitted: {why}")]
    Scheme {
        /// The scheme.
        scheme: String,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A card of a file.
    #[error("{}: {cause}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        cause: Box<Self>,
    },
}

impl Card {
    /// Reads a card.
    ///
    /// # Errors
    /// The file cannot be read, or is no card.
    pub fn load(path: &Path) -> Result<Self, CardError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| CardError::Read { path: path.to_owned(), cause })?;
        Self::parse(&text)
            .map_err(|cause| CardError::In { path: path.to_owned(), cause: Box::new(cause) })
    }

    /// Reads the text of a card.
    ///
    /// # Errors
    /// The text is no card: a key is missing, empty or not known, the licence is no SPDX expression,
    /// or the scheme cannot be on the board.
    pub fn parse(text: &str) -> Result<Self, CardError> {
        let card: Self = toml::from_str(text).map_err(Box::new)?;
        card.check()?;
        Ok(card)
    }

    fn check(&self) -> Result<(), CardError> {
        let authors = self.authors.iter().map(String::as_str).collect::<String>();
        for (key, value, wanted) in [
            ("authors", &authors, "who wrote it, a list of names"),
            ("source", &self.source, "where it is described, e.g. a paper or a repository"),
            ("training", &self.training, "what it was trained on, or \"none\""),
            ("run", &self.run, "how others run it"),
        ] {
            if value.trim().is_empty() {
                return Err(CardError::Empty { key, wanted });
            }
        }
        if let Err(e) = spdx::Expression::parse(&self.licence) {
            return Err(CardError::Licence { licence: self.licence.clone(), why: e.reason });
        }
        let why = match self.scheme.kind() {
            _ if self.scheme.is_bound() => "no real sender can reach a bound; submit a sender",
            SchemeKind::Stack(_) => "it is a QUIC stack's own, and sets run in the simulator",
            _ if super::SCHEMES.contains(&self.scheme.label()) => {
                "it is on the board without a card; add settings, or submit another"
            }
            _ => return Ok(()),
        };
        Err(CardError::Scheme { scheme: self.scheme.label().to_owned(), why })
    }
}

/// By what is written: two cards with the same text are the same.
impl PartialEq for Card {
    fn eq(&self, other: &Self) -> bool {
        let texts = |card: &Self| {
            let Self { scheme, authors, source, licence, training, run } = card.clone();
            (scheme.label().to_owned(), authors, source, licence, training, run)
        };
        texts(self) == texts(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "scheme = \"onnx:mine.onnx\"\nauthors = [\"A\"]\nsource = \"s\"\n\
        licence = \"MIT\"\ntraining = \"t\"\nrun = \"r\"\n";

    #[test]
    fn a_wrong_card_is_refused_with_what_to_write() {
        Card::parse(GOOD).unwrap();
        let with = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            Card::parse(&text).unwrap_err().to_string()
        };
        for (from, to, expected) in [
            ("run = \"r\"\n", "", "missing field `run`"),
            ("run = \"r\"\n", "run = \"r\"\nemail = \"x\"\n", "unknown field `email`"),
            ("[\"A\"]", "[\" \"]", "the card has no authors: say who wrote it, a list of names"),
            ("\"t\"", "\"\"", "the card has no training: say what it was trained on, or \"none\""),
            ("\"MIT\"", "\"free\"", "licence \"free\" is no SPDX expression"),
            ("onnx:mine.onnx", "omniscient", "omniscient cannot be submitted: no real sender"),
            ("onnx:mine.onnx", "noq:cubic", "it is a QUIC stack's own"),
            ("onnx:mine.onnx", "cubic", "it is on the board without a card"),
            ("onnx:mine.onnx", "onnx", "it takes a file, e.g. onnx:mine.onnx"),
        ] {
            let e = with(from, to);
            assert!(e.contains(expected), "{from} to {to}: {e}");
        }
        let e = Card::load(Path::new("no.toml")).unwrap_err().to_string();
        assert!(e.starts_with("cannot read the card no.toml: "), "{e}");
    }
}
