//! The learnt policy of a rule, as far as its file can be used.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_cc::Spec;
use trimtab_datapath::{Algorithm, can_run};
use trimtab_steer::Unusable;
use trimtab_steer::scheme::By;
use trimtab_steer::select::Model;

use super::error::why_unread;

/// A learnt policy that chooses the algorithm. A file that cannot be used is no mistake of the configuration: the agent
/// runs, reports it, and connections run the fallback.
#[derive(Clone)]
pub struct Learnt {
    /// Its file; of one that ships with the project, its name.
    pub file: PathBuf,
    /// What runs where it gives no answer.
    pub safe: Algorithm,
    /// The policy, with those of its candidates that the rule lets run and the kernel can.
    pub model: Result<Arc<Model>, Unusable>,
    /// What is wrong, where there is no policy.
    problem: Option<String>,
    /// Candidates of the file that are left out.
    left_out: Vec<String>,
}

impl Learnt {
    /// Reads a policy, which may choose among these algorithms. A file stands in this folder, unless
    /// it says otherwise.
    pub(super) fn read(by: &By, folder: &Path, algorithms: &[Algorithm], safe: Algorithm) -> Self {
        let file = match by {
            By::Model(file) => folder.join(file),
            by => by.file().map_or_else(PathBuf::new, Path::to_owned),
        };
        let (mut left_out, mut problem) = (Vec::new(), None);
        let mut none = |why: Unusable, what: &dyn fmt::Display| {
            problem = Some(format!("the model {}: {what}", file.display()));
            why
        };
        let read = match by.shipped() {
            Some(bytes) => Ok(bytes.to_vec()),
            None => std::fs::read(&file).map_err(|e| none(Unusable::Missing, &why_unread(&e))),
        };
        let parsed =
            read.and_then(|bytes| Model::parse(&bytes).map_err(|e| none(e.unusable(), &e)));
        let model = parsed.and_then(|model| {
            let can = |spec: &Spec| can_run(spec, algorithms);
            let without = model.candidates().iter().filter(|spec| !can(spec));
            left_out = without.map(|spec| spec.algorithm().name.to_owned()).collect();
            model.only(can).map(Arc::new).ok_or_else(|| {
                let what = format!(
                    "it chooses among {}, of which fewer than two can run here: give two of them as turns",
                    names(model.candidates())
                );
                none(Unusable::Candidates, &what)
            })
        });
        Self { file, safe, model, problem, left_out }
    }

    /// What is wrong, and what is done about it; `None` where nothing is.
    pub fn trouble(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        Some(format!("{problem}; {} runs in its place", self.safe.name()))
    }

    /// Which of its candidates are never chosen; `None` where all can be.
    pub fn masked(&self) -> Option<String> {
        if self.left_out.is_empty() || self.model.is_err() {
            return None;
        }
        let file = self.file.display();
        Some(format!("the model {file} never chooses {} here", self.left_out.join(", ")))
    }

    /// Which policy it is.
    fn name(&self) -> &str {
        self.model.as_ref().map_or("", |model| model.sha256())
    }
}

fn names(specs: &[Spec]) -> String {
    let names: Vec<&str> = specs.iter().map(|spec| spec.algorithm().name).collect();
    names.join(", ")
}

/// Two are the same when they decide the same.
impl PartialEq for Learnt {
    fn eq(&self, other: &Self) -> bool {
        let same =
            |a: &Self, b: &Self| (&a.file, a.safe, &a.problem) == (&b.file, b.safe, &b.problem);
        same(self, other) && self.left_out == other.left_out && self.name() == other.name()
    }
}

impl Eq for Learnt {}

/// Without the weights.
impl fmt::Debug for Learnt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learnt")
            .field("file", &self.file)
            .field("safe", &self.safe)
            .field("sha256", &self.name())
            .field("problem", &self.problem)
            .field("left_out", &self.left_out)
            .finish()
    }
}
