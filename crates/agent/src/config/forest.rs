//! The trees of a rule whose connections run Muses.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use trimtab_cc::Spec;
use trimtab_cc::muses::Trees;
use trimtab_datapath::Algorithm;
use trimtab_steer::scheme::MusesSettings;

use super::error::{ConfigError, Source, why_unread};
use super::raw::RawRule;
use super::steering::checked_fallback;

/// The algorithm whose trees are chosen.
pub(super) const MUSES: &str = "muses";

/// A model of Muses, and the fallback. A file that cannot be used is no mistake of the
/// configuration: the agent runs, reports it, and connections run the fallback.
#[derive(Clone)]
pub struct Forest {
    /// Its file; `None` for the model that ships with the agent.
    pub file: Option<PathBuf>,
    /// The trees; `None` where they cannot be used.
    pub trees: Option<Trees<'static>>,
    /// What takes over when the guard speaks; `None` lets the policy go on.
    pub safe: Option<Algorithm>,
    /// Its knobs, where they are not its defaults.
    pub(crate) safe_knobs: Vec<(&'static str, f64)>,
    /// The model's number in the kernel, from when it is there.
    pub(crate) number: Option<u8>,
    /// What is wrong, where there are no trees, or no place for them.
    pub(crate) problem: Option<String>,
}

impl Forest {
    /// The trees of a scheme, whose model and safe algorithm may stand in keys of the rule.
    pub(super) fn read(
        source: &Source<'_>,
        raw: &RawRule,
        settings: &MusesSettings,
        at: usize,
    ) -> Result<Self, ConfigError> {
        let (safe, at) = match &raw.safe {
            None => (settings.safe, at),
            Some(name) if name.get_ref() == "none" => (None, at),
            Some(name) => {
                let safe = super::algorithm_named(source, name)?.name();
                // The default has the knobs that are best behind the guard.
                let usual = settings.safe.filter(|usual| usual.algorithm().name == safe);
                let what = "that algorithm is not safe: give copa, cubic, bbr or none";
                let spec = usual.or_else(|| Spec::new(safe));
                let at = name.span().start;
                (Some(spec.ok_or_else(|| source.error(at, what))?), at)
            }
        };
        let checked = safe.as_ref().map(checked_fallback).transpose();
        let (safe, safe_knobs) = match checked.map_err(|what| source.error(at, &what))? {
            Some((safe, knobs)) => (Some(safe), knobs),
            None => (None, Vec::new()),
        };
        let named = raw.model.as_ref().map(|model| Path::new(model.get_ref().as_str()));
        let file = named.or(settings.model.as_deref()).map(|file| source.folder().join(file));
        let (trees, problem) = match read(file.as_deref(), settings.shipped().1) {
            Ok(trees) => (Some(trees), None),
            Err(problem) => (None, Some(problem)),
        };
        Ok(Self { file, trees, safe, safe_knobs, number: None, problem })
    }

    /// What is wrong, and what is done about it; `None` where nothing is.
    pub(crate) fn trouble(&self) -> Option<String> {
        let instead = self.safe.map_or("nothing decides", |safe| safe.name());
        self.problem.as_ref().map(|problem| format!("{problem}; {instead} runs in its place"))
    }
}

/// Reads a model. Connections borrow its bytes until the program ends, so the same bytes are kept once.
fn read(file: Option<&Path>, shipped: &[u8]) -> Result<Trees<'static>, String> {
    static READ: Mutex<Vec<&'static [u8]>> = Mutex::new(Vec::new());
    let shown = file.map_or("the model that ships with trimtab".to_owned(), |file| {
        format!("the model {}", file.display())
    });
    let bytes = match file {
        None => shipped.to_vec(),
        Some(file) => std::fs::read(file).map_err(|e| format!("{shown}: {}", why_unread(&e)))?,
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
            && self.safe_knobs == other.safe_knobs
            && bytes(self) == bytes(other)
    }
}

/// Without the nodes.
impl fmt::Debug for Forest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forest")
            .field("file", &self.file)
            .field("safe", &self.safe)
            .field("safe_knobs", &self.safe_knobs)
            .field("checksum", &self.trees.map(|trees| trees.checksum()))
            .field("number", &self.number)
            .field("problem", &self.problem)
            .finish()
    }
}
