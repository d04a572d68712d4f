//! The split of the recordings: constants are chosen on train and validate, results are of test.
//!
//! `traces/split.toml` is the split, with the rule by which it was made.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{NamedTrace, ScenarioError, TraceSource};

/// A part of the recordings. In text it is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Half of them, to look at while something is built.
    Train,
    /// A fifth, to choose constants by.
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
        let text = include_str!("../../../../traces/split.toml");
        let mut parts: BTreeMap<Self, Kinds> = toml::from_str(text).unwrap_or_default();
        parts.remove(&self).unwrap_or_default()
    }

    /// Those of the traces that are recordings of this part, and those that come from no file.
    ///
    /// # Errors
    /// None is left.
    pub(super) fn of(self, traces: Vec<NamedTrace>) -> Result<Vec<NamedTrace>, ScenarioError> {
        let kinds = self.recordings();
        let is_in = |file: &Path| {
            let kind = file.parent().and_then(Path::file_name).unwrap_or_default();
            let names = kinds.get(&*kind.to_string_lossy());
            names.is_some_and(|names| names.contains(&super::source::short_name(file)))
        };
        let kept: Vec<NamedTrace> = traces
            .into_iter()
            .filter(|trace| match &trace.source {
                TraceSource::Files(file) => is_in(file),
                _ => true,
            })
            .collect();
        if kept.is_empty() {
            return Err(ScenarioError::Invalid(format!(
                "none of the traces is in the part {self} of traces/split.toml: name recordings of \
                 the shared collection, or leave out `split`"
            )));
        }
        Ok(kept)
    }
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

    fn traces(files: &[&str]) -> Vec<NamedTrace> {
        let trace = |text: &&str| {
            let source: TraceSource = text.parse().unwrap();
            NamedTrace { name: (*text).to_owned(), source }
        };
        files.iter().map(trace).collect()
    }

    #[test]
    fn a_part_keeps_its_own_and_what_is_no_file() {
        let of = |part: Part| part.recordings().values().map(Vec::len).sum::<usize>();
        assert_eq!(Part::ALL.map(of), [105, 43, 66]);
        let first = |part: Part| {
            let (kind, names) = part.recordings().into_iter().next().unwrap();
            format!("x/{kind}/{}.trace.gz", names[0])
        };
        let [train, _, test] = Part::ALL.map(first);
        let all = traces(&[&train, &test, "constant:6Mbit/s"]);
        let kept = Part::Test.of(all).unwrap();
        let names: Vec<&str> = kept.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, [test.as_str(), "constant:6Mbit/s"]);
        let e = Part::Test.of(traces(&["mine/bus.trace"])).unwrap_err().to_string();
        assert!(e.contains("the part test"), "{e}");
        assert!("tset".parse::<Part>().unwrap_err().to_string().contains("validate"));
    }
}
