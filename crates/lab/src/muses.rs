//! Contenders with a policy learnt by imitation: `muses`, `muses:lstm`, `treeg`, and their text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_cc::muses::{Trees, TreesError};
use trimtab_cc::{Spec, SpecError};
use trimtab_sim::Control;
use trimtab_steer::muses::{Lstm, LstmError, Policy};

/// What takes over when a policy's guard speaks, unless told otherwise.
const SAFE: &str = "copa:mvfst";

/// Which policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Learnt {
    /// Several trees, of which the connection's state chooses one.
    Trees,
    /// A single tree for all networks, the paper's baseline.
    Global,
    /// The LSTM that the trees were distilled from.
    Lstm,
}

/// A contender of this kind.
#[derive(Clone, Debug)]
pub struct MusesSettings {
    /// Which policy.
    pub learnt: Learnt,
    /// Its file; `None` for the one that ships with the project.
    pub model: Option<PathBuf>,
    /// What takes over when the policy's guard speaks; `None` lets it go on.
    pub safe: Option<Spec>,
}

/// Why a text names no such contender.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum MusesError {
    #[error("no setting {0:?}; there are {1}model=FILE, and at the end safe=CC or safe=none")]
    Setting(String, &'static str),
    #[error("safe={0}: it takes an algorithm, as in safe=cubic, or none, and comes last: {1}")]
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
}

impl MusesSettings {
    /// Reads what follows `muses:` or `treeg:`.
    pub(crate) fn parse(text: &str, learnt: Learnt) -> Result<Self, MusesError> {
        let mut settings = Self { learnt, model: None, safe: SAFE.parse().ok() };
        let mut rest = text;
        while !rest.is_empty() {
            // An algorithm has settings of its own, so what is safe takes all that follows.
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
                None if setting == "lstm" && settings.learnt != Learnt::Global => {
                    settings.learnt = Learnt::Lstm;
                }
                None if setting.is_empty() => {}
                _ => {
                    let others = if settings.learnt == Learnt::Global { "" } else { "lstm, " };
                    return Err(MusesError::Setting(setting.to_owned(), others));
                }
            }
        }
        Ok(settings)
    }

    /// The file, or the name of what ships, by which its policy is known.
    pub(crate) fn key(&self) -> (Learnt, &Path) {
        let model = self.model.as_deref();
        (self.learnt.clone(), model.unwrap_or_else(|| Path::new(self.shipped().0)))
    }

    /// The policy that ships with the project, its name and its file.
    pub(crate) fn shipped(&self) -> (&'static str, &'static [u8]) {
        match self.learnt {
            Learnt::Trees => ("muses.trees", include_bytes!("../../../models/muses.trees")),
            Learnt::Global => ("treeg.trees", include_bytes!("../../../models/treeg.trees")),
            Learnt::Lstm => {
                ("muses.safetensors", include_bytes!("../../../models/muses.safetensors"))
            }
        }
    }

    /// Reads the policy. The bytes of trees stay in memory until the program ends: connections borrow them.
    ///
    /// # Errors
    /// The bytes are no such model.
    pub(crate) fn policy(&self, bytes: Vec<u8>) -> Result<Policy, PolicyError> {
        Ok(match self.learnt {
            Learnt::Trees | Learnt::Global => {
                // Checked first, so that nothing else stays.
                Trees::parse(&bytes)?;
                Policy::Trees(Trees::parse(bytes.leak())?)
            }
            Learnt::Lstm => Policy::Lstm(Arc::new(Lstm::parse(&bytes)?)),
        })
    }

    /// What governs its flows.
    pub(crate) fn control(&self, policy: &Policy) -> Control {
        Control::Muses { policy: policy.clone(), safe: self.safe }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Effort;
    use crate::run::Recording;
    use crate::scenario::Scenario;

    #[test]
    fn settings_in_any_order() {
        let muses = MusesSettings::parse("", Learnt::Trees).unwrap();
        assert_eq!((&muses.learnt, &muses.model), (&Learnt::Trees, &None));
        assert_eq!(muses.safe.unwrap().algorithm().name, "copa");
        let muses = MusesSettings::parse(
            "model=out/my.safetensors:lstm:safe=copa:delta=0.1",
            Learnt::Trees,
        )
        .unwrap();
        assert_eq!(muses.learnt, Learnt::Lstm);
        assert_eq!(muses.model, Some("out/my.safetensors".into()));
        assert!(muses.safe.unwrap().is_same(&"copa:delta=0.1".parse().unwrap()));
        assert!(MusesSettings::parse("safe=none", Learnt::Global).unwrap().safe.is_none());
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let e = |text, learnt| MusesSettings::parse(text, learnt).unwrap_err().to_string();
        assert!(e("tree", Learnt::Trees).contains("there are lstm, model=FILE"));
        assert!(e("lstm", Learnt::Global).contains("there are model=FILE"));
        assert!(e("safe=quick", Learnt::Trees).contains("as in safe=cubic"));
    }

    #[test]
    fn the_shipped_policies_are_sound() {
        for learnt in [Learnt::Trees, Learnt::Global, Learnt::Lstm] {
            let settings = MusesSettings::parse("", learnt).unwrap();
            let (name, bytes) = settings.shipped();
            let policy = settings.policy(bytes.to_vec());
            assert!(policy.is_ok(), "{name}: {}", policy.unwrap_err());
        }
    }

    fn scenario(cc: &str) -> Scenario {
        Scenario::parse(&format!(
            "cc = [{cc}]\ntraces = [\"constant:12Mbit/s\"]\nduration = \"15s\"\nrtt = \"40ms\"\nbuffer = \"300KB\"\n[[app]]\nkind = \"bulk\"\n"
        ))
        .unwrap()
    }

    /// On a link that stays as it is the shipped policies use it, with less of a queue than CUBIC.
    #[test]
    fn they_run_as_any_other_contender() {
        let effort = Effort { jobs: None, quiet: true };
        let all = scenario("\"cubic\", \"muses\", \"treeg\", \"muses:lstm\"");
        let c = crate::compare::compare(&all, effort, Recording::default(), "x").unwrap();
        let cubic = &c.runs[0];
        for run in &c.runs[1..] {
            assert!(run.utilization > 0.8, "{}: {}", run.cc, run.utilization);
            let (own, other) = (run.queue_delay_ms.p95, cubic.queue_delay_ms.p95);
            assert!(own < other / 2.0, "{}: {own} ms beside {other} ms", run.cc);
        }
    }

    /// A policy that only ever grows, by 5% every 10 ms, runs away on any link: the guard hands over to Copa, which does
    /// not lose most of what it sends.
    #[test]
    fn a_policy_that_runs_away_gives_way() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trees/grows");
        let all = scenario(&format!(
            "\"treeg:model={file}\", \"treeg:model={file}:safe=none\", \"cubic\""
        ));
        let effort = Effort { jobs: None, quiet: true };
        let c = crate::compare::compare(&all, effort, Recording::default(), "x").unwrap();
        let loss = |i: usize| c.runs[i].loss_ratio;
        assert!(loss(1) > 0.5, "{}: a window without bounds", loss(1));
        assert!(loss(0) < loss(1) / 3.0, "{} and {} without the guard", loss(0), loss(1));
        assert!(c.runs[0].utilization > 0.8, "{}", c.runs[0].utilization);
    }

    #[test]
    fn a_model_that_is_not_there_is_known_before_anything_runs() {
        let plan = scenario("\"muses:model=nowhere/at-all.trees\"").plan().unwrap();
        let e = crate::prepare::prepare(&plan).unwrap_err().to_string();
        assert!(e.contains("nowhere/at-all.trees") && e.contains("muses:model=FILE"), "{e}");
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let plan = scenario(&format!("\"muses:model={file}\"")).plan().unwrap();
        let e = crate::prepare::prepare(&plan).unwrap_err().to_string();
        assert!(e.contains("it does not begin with TRIMTREE"), "{e}");
    }
}
