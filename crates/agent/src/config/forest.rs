//! The trees of a rule whose connections run Muses.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use trimtab_cc::Spec;
use trimtab_cc::muses::Trees;
use trimtab_datapath::Algorithm;

use super::error::{ConfigError, Source};
use super::raw::RawRule;

/// What `steer` says where the trees of Muses are chosen.
pub(super) const MUSES: &str = "muses";
/// The model that ships with the project.
static SHIPPED: &[u8] = include_bytes!("../../../../models/muses.trees");
/// What takes over when the guard speaks, unless the rule says otherwise; and Copa with the knobs that are best behind it.
const SAFE: &str = "copa";
const SAFE_COPA: &str = "copa:mvfst";

/// A model of Muses, and the fallback. A file that cannot be used is no mistake of the configuration: the agent runs, reports it, and
/// connections run the fallback.
#[derive(Clone)]
pub struct Forest {
    /// Its file; `None` for the model that ships with the agent.
    pub file: Option<PathBuf>,
    /// The trees; `None` where they cannot be used.
    pub trees: Option<Trees<'static>>,
    /// What takes over when the guard speaks; `None` lets the policy go on.
    pub safe: Option<Algorithm>,
    /// The model's number in the kernel, from when it is there.
    pub(crate) number: Option<u8>,
    /// What is wrong, where there are no trees, or no place for them.
    pub(crate) problem: Option<String>,
}

impl Forest {
    /// What a rule says of its trees, if anything.
    pub(super) fn read(source: &Source<'_>, raw: &RawRule) -> Result<Option<Self>, ConfigError> {
        if raw.steer.as_ref().is_none_or(|name| name.get_ref() != MUSES) {
            return Ok(None);
        }
        let safe = match &raw.safe {
            None => crate::datapath::algorithm(SAFE),
            Some(name) if name.get_ref() == "none" => None,
            Some(name) => {
                let safe = super::algorithm_named(source, name)?;
                if safe.as_fallback().is_none() {
                    let what = "that algorithm is not safe: give copa, cubic, bbr or none";
                    return Err(source.error(name.span().start, what));
                }
                Some(safe)
            }
        };
        // A relative path starts at the folder of the configuration.
        let folder = source.path.parent().unwrap_or(Path::new(""));
        let file = raw.model.as_ref().map(|model| folder.join(model.get_ref()));
        let (trees, problem) = match read(file.as_deref()) {
            Ok(trees) => (Some(trees), None),
            Err(problem) => (None, Some(problem)),
        };
        Ok(Some(Self { file, trees, safe, number: None, problem }))
    }

    /// What is wrong, and what is done about it; `None` where nothing is.
    pub(crate) fn trouble(&self) -> Option<String> {
        let instead = self.safe.map_or("nothing decides", |safe| safe.name());
        self.problem.as_ref().map(|problem| format!("{problem}; {instead} runs in its place"))
    }

    /// The knobs of the fallback, where they are not its defaults.
    pub(crate) fn safe_knobs(&self) -> Vec<(&'static str, f64)> {
        let spec = SAFE_COPA
            .parse::<Spec>()
            .ok()
            .filter(|_| self.safe.is_some_and(|safe| safe.name() == SAFE));
        spec.map_or_else(Vec::new, |spec| spec.settings().to_vec())
    }
}

/// Reads a model. Connections borrow its bytes until the program ends, so the same bytes are kept once.
fn read(file: Option<&Path>) -> Result<Trees<'static>, String> {
    static READ: Mutex<Vec<&'static [u8]>> = Mutex::new(Vec::new());
    let shown = file.map_or("the model that ships with trimtab".to_owned(), |file| {
        format!("the model {}", file.display())
    });
    let bytes = match file {
        None => SHIPPED.to_vec(),
        Some(file) => std::fs::read(file).map_err(|e| format!("{shown}: {e}"))?,
    };
    Trees::parse(&bytes).map_err(|e| format!("{shown}: {e}"))?;
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = match read.iter().find(|kept| **kept == bytes) {
        Some(kept) => kept,
        None => {
            read.push(bytes.leak());
            read[read.len() - 1]
        }
    };
    Trees::parse(kept).map_err(|e| format!("{shown}: {e}"))
}

/// Two are the same when they decide the same.
impl PartialEq for Forest {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |forest: &Self| forest.trees.map(|trees| trees.as_bytes().to_vec());
        (&self.file, self.safe, &self.problem) == (&other.file, other.safe, &other.problem)
            && bytes(self) == bytes(other)
    }
}

impl Eq for Forest {}

/// Without the nodes.
impl fmt::Debug for Forest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forest")
            .field("file", &self.file)
            .field("safe", &self.safe)
            .field("checksum", &self.trees.map(|trees| trees.checksum()))
            .field("number", &self.number)
            .field("problem", &self.problem)
            .finish()
    }
}
