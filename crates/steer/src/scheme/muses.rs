//! Schemes with a policy learnt by imitation: `muses`, `muses:lstm`, `treeg`, and their text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_cc::muses::{Trees, TreesError};
use trimtab_cc::{Spec, SpecError};

use crate::muses::{Lstm, LstmError, Policy};
use crate::rival::DnaError;

/// Default: what takes over when a policy's guard ends it.
const SAFE: &str = "copa:mvfst";

/// Which policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MusesPolicy {
    /// Several trees, of which the connection's state chooses one.
    Trees,
    /// A single tree learnt from the oracle itself, on wider networks than the paper's.
    Wide,
    /// A single tree for all networks, the paper's baseline.
    Global,
    /// The LSTM that the trees were distilled from.
    Lstm,
}

/// Its settings.
#[derive(Clone, Debug)]
pub struct MusesSettings {
    /// Which policy.
    pub learnt: MusesPolicy,
    /// Its file; `None` for the one that ships with the project.
    pub model: Option<PathBuf>,
    /// What takes over when the policy's guard speaks; `None` lets it go on.
    pub safe: Option<Spec>,
}

/// Why a text names no such scheme.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum MusesError {
    #[error("no setting {0:?}; there are {1}model=FILE, and at the end safe=CC or safe=none")]
    Setting(String, &'static str),
    #[error("safe={0}: it takes an algorithm, e.g. safe=cubic, or none, and comes last: {1}")]
    Safe(String, SpecError),
}

/// Why a file is no policy that can be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The trees.
    #[error(transparent)]
    Trees(#[from] TreesError),
    /// The LSTM.
    #[error(transparent)]
    Lstm(#[from] LstmError),
    /// A rival's table.
    #[error(transparent)]
    Dna(#[from] DnaError),
}

impl MusesSettings {
    /// Reads what follows `muses:` or `treeg:`.
    pub(super) fn parse(text: &str, learnt: MusesPolicy) -> Result<Self, MusesError> {
        let mut settings = Self { learnt, model: None, safe: SAFE.parse().ok() };
        let mut rest = text;
        while !rest.is_empty() {
            // An algorithm has settings of its own, so the fallback takes all that follows.
            if let Some(safe) = rest.trim_start().strip_prefix("safe=") {
                let wrong = |problem| MusesError::Safe(safe.to_owned(), problem);
                let is_none = safe.trim() == "none";
                settings.safe = if is_none { None } else { Some(safe.parse().map_err(wrong)?) };
                break;
            }
            let (setting, then) = rest.split_once(':').unwrap_or((rest, ""));
            rest = then;
            let setting = setting.trim();
            match setting.split_once('=') {
                Some(("model", path)) => settings.model = Some(path.into()),
                None if setting == "lstm" && settings.learnt != MusesPolicy::Global => {
                    settings.learnt = MusesPolicy::Lstm;
                }
                None if setting == "wide" && settings.learnt != MusesPolicy::Global => {
                    settings.learnt = MusesPolicy::Wide;
                }
                None if setting.is_empty() => {}
                _ => {
                    let others = match settings.learnt {
                        MusesPolicy::Global => "",
                        _ => "lstm, wide, ",
                    };
                    return Err(MusesError::Setting(setting.to_owned(), others));
                }
            }
        }
        Ok(settings)
    }

    /// The file, or the name of what ships, by which its policy is known.
    pub fn key(&self) -> (MusesPolicy, &Path) {
        let model = self.model.as_deref();
        (self.learnt.clone(), model.unwrap_or_else(|| Path::new(self.shipped().0)))
    }

    /// The policy that ships with the project, its name and its file.
    pub fn shipped(&self) -> (&'static str, &'static [u8]) {
        match self.learnt {
            MusesPolicy::Trees => ("muses.trees", include_bytes!("../../models/muses.trees")),
            MusesPolicy::Wide => {
                ("muses-wide.trees", include_bytes!("../../models/muses-wide.trees"))
            }
            MusesPolicy::Global => ("treeg.trees", include_bytes!("../../models/treeg.trees")),
            MusesPolicy::Lstm => {
                ("muses.safetensors", include_bytes!("../../models/muses.safetensors"))
            }
        }
    }

    /// Reads the policy. The bytes of trees stay in memory until the program ends: connections borrow them.
    ///
    /// # Errors
    /// The bytes are no such model.
    pub fn policy(&self, bytes: Vec<u8>) -> Result<Policy, PolicyError> {
        Ok(match self.learnt {
            MusesPolicy::Trees | MusesPolicy::Wide | MusesPolicy::Global => {
                // Checked first, so that nothing else stays.
                Trees::parse(&bytes)?;
                Policy::Trees(Trees::parse(bytes.leak())?)
            }
            MusesPolicy::Lstm => Policy::Lstm(Arc::new(Lstm::parse(&bytes)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_any_order() {
        let muses = MusesSettings::parse("", MusesPolicy::Trees).unwrap();
        assert_eq!((&muses.learnt, &muses.model), (&MusesPolicy::Trees, &None));
        assert_eq!(muses.safe.unwrap().algorithm().name, "copa");
        let muses = MusesSettings::parse(
            "model=out/my.safetensors:lstm:safe=copa:delta=0.1",
            MusesPolicy::Trees,
        )
        .unwrap();
        assert_eq!(muses.learnt, MusesPolicy::Lstm);
        assert_eq!(muses.model, Some("out/my.safetensors".into()));
        assert!(muses.safe.unwrap().is_same(&"copa:delta=0.1".parse().unwrap()));
        assert!(MusesSettings::parse("safe=none", MusesPolicy::Global).unwrap().safe.is_none());
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let e = |text, learnt| MusesSettings::parse(text, learnt).unwrap_err().to_string();
        assert!(e("tree", MusesPolicy::Trees).contains("there are lstm, wide, model=FILE"));
        assert!(e("lstm", MusesPolicy::Global).contains("there are model=FILE"));
        assert!(e("safe=quick", MusesPolicy::Trees).contains("e.g. safe=cubic"));
    }

    #[test]
    fn the_shipped_policies_are_sound() {
        use MusesPolicy::{Global, Lstm, Trees, Wide};
        for learnt in [Trees, Wide, Global, Lstm] {
            let settings = MusesSettings::parse("", learnt).unwrap();
            let (name, bytes) = settings.shipped();
            let policy = settings.policy(bytes.to_vec());
            assert!(policy.is_ok(), "{name}: {}", policy.unwrap_err());
        }
    }
}
