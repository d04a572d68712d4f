//! The split of the recordings: constants and policies are chosen on train and validate, results
//! are of test.
//!
//! `traces/split.toml` is the split, with the rule by which it was made.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of the recordings. In text it is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Half of them, to look at while something is built, and to learn on.
    Train,
    /// A fifth, to choose constants and policies by.
    Validate,
    /// The rest, for results.
    Test,
}

/// The names of recordings by their kind, which is the name of their folder.
type Kinds = BTreeMap<String, Vec<String>>;

impl Part {
    /// Every part.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validate, Self::Test];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validate => "validate",
            Self::Test => "test",
        }
    }

    /// Its recordings: names of files without `.trace.gz`, by kind.
    pub fn recordings(self) -> Kinds {
        // It is compiled in and parsed by a test.
        let text = include_str!("split.toml");
        let mut parts: BTreeMap<Self, Kinds> = toml::from_str(text).unwrap_or_default();
        parts.remove(&self).unwrap_or_default()
    }
}

/// The name of a recording: that of its file without `.trace` or `.trace.gz`.
pub fn recording_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".trace").unwrap_or(name).to_owned()
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no part of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: no part of the recordings: use train, validate or test")]
pub struct UnknownPart(String);

impl FromStr for Part {
    type Err = UnknownPart;
    fn from_str(text: &str) -> Result<Self, UnknownPart> {
        let named = Self::ALL.into_iter().find(|part| part.name() == text);
        named.ok_or_else(|| UnknownPart(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_recordings() {
        let of = |part: Part| part.recordings().values().map(Vec::len).sum::<usize>();
        assert_eq!(Part::ALL.map(of), [105, 43, 66]);
        assert!("tset".parse::<Part>().unwrap_err().to_string().contains("validate"));
        for part in Part::ALL {
            assert_eq!(part.name().parse(), Ok(part));
        }
    }

    #[test]
    fn a_recording_is_named_without_its_ending() {
        for (file, name) in [("a/b.trace.gz", "b"), ("b.trace", "b"), ("c/b.x", "b.x")] {
            assert_eq!(recording_name(Path::new(file)), name);
        }
    }
}
