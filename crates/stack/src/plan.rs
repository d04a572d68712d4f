//! A scheme's text, ready to run: its files are read, its steering is made.

use std::fs;
use std::path::Path;

use trimtab_cc::migrate::Switcher;
use trimtab_cc::resume::Resumption;
use trimtab_cc::{ALGORITHMS, Config as Limits, Spec};
use trimtab_qoe::{Factors, Model};
use trimtab_steer::muses::Policy;
use trimtab_steer::rival::Rival;
use trimtab_steer::scheme::{By, Demand, Goal, LearntModel, MusesSettings, Scheme, SchemeKind};
use trimtab_steer::{Driver, Steer, Steerer, Unusable};
use trimtab_units::Time;

use crate::ConfigError;
use crate::stack::Traits;

/// A scheme that any number of paths can begin to run, without I/O.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    label: String,
    start: Start,
    resumption: Option<Resumption>,
}

/// How a path begins, for hosts that read schemes and files themselves
/// ([`Config::prepared`](crate::Config::prepared)).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Start {
    /// With an algorithm; the steering, if any, turns its knobs or has it changed for another.
    Algorithm(Spec, Option<Steerer>),
    /// With a learnt policy; the algorithm takes over if the policy's guard raises an alarm.
    Learnt(Policy, Option<Spec>),
    /// With a rival that goes by a file.
    Rival(Rival),
}

impl Plan {
    /// Reads the text, and the files that it names.
    pub(crate) fn read(
        text: &str,
        model: &Model,
        traits: &'static Traits,
    ) -> Result<Self, ConfigError> {
        let scheme: Scheme = text.parse()?;
        let resumption = match scheme.kind() {
            SchemeKind::Resume(resuming) => Some(resuming.resumption(Time::ZERO)),
            _ => None,
        };
        let start = match scheme.kind().governing() {
            SchemeKind::Muses(settings) => Start::Learnt(policy(settings)?, settings.safe),
            SchemeKind::Plugin(_) => {
                return Err(ConfigError::Plugin { scheme: scheme.label().to_owned() });
            }
            SchemeKind::Rival(settings) => {
                Start::Rival(settings.rival(read, |path, e| unusable(path, &e))?)
            }
            SchemeKind::Stack(_) => {
                let scheme = scheme.label().to_owned();
                return Err(ConfigError::Own { scheme, own: traits.own });
            }
            kind if matches!(kind.demand(), Demand::Foresight) => {
                return Err(ConfigError::Bound { scheme: scheme.label().to_owned() });
            }
            kind => {
                let learnt = learnt(kind)?;
                let goal = Goal {
                    model,
                    factors: Factors::new(),
                    learnt: &|_: &By| learnt.clone(),
                    runs: &|_| true,
                };
                let (spec, steerer) = kind.steering(&goal);
                Start::Algorithm(spec, steerer)
            }
        };
        Ok(Self { label: scheme.label().to_owned(), start, resumption })
    }

    /// A plan that somebody else has made ready.
    pub(crate) fn prepared(label: &str, start: Start) -> Self {
        Self { label: label.to_owned(), start, resumption: None }
    }

    /// The plan, for connections that resume so.
    pub(crate) fn resuming(self, how: Resumption) -> Self {
        Self { resumption: Some(how), ..self }
    }

    /// The plan, for a connection that begins with what an earlier one found to suit its path.
    pub(crate) fn beginning_with(mut self, suited: Spec) -> Self {
        if let Start::Algorithm(first, Some(steerer)) = &mut self.start {
            *first = suited;
            steerer.begin_with(suited);
        }
        self
    }

    /// What this steers away from: its fallback, or the algorithm with which it begins, with the
    /// algorithm's own knobs. A learnt policy without a fallback and a rival have NewReno, which RFC
    /// 9002 §7 describes.
    pub(crate) fn baseline(&self) -> Self {
        let spec = match &self.start {
            Start::Algorithm(spec, steerer) => {
                let own = steerer.as_ref().and_then(Steer::fallback);
                own.unwrap_or_else(|| Spec::of(spec.algorithm()))
            }
            Start::Learnt(_, safe) => safe.unwrap_or_else(|| Spec::of(&ALGORITHMS[0])),
            Start::Rival(_) => Spec::of(&ALGORITHMS[0]),
        };
        Self::prepared(&text(&spec), Start::Algorithm(spec, None))
    }

    /// The steering follows another model.
    pub(crate) fn set_model(&mut self, model: &Model) {
        if let Some(steerer) = self.steerer_mut() {
            steerer.on_model(model);
        }
    }

    /// The text.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// How a connection resumes, by a clock that begins with it; `None` where it does not.
    pub(crate) fn resumption(&self) -> Option<Resumption> {
        self.resumption
    }

    /// How a path begins.
    pub(crate) fn start(&self) -> &Start {
        &self.start
    }

    fn steerer_mut(&mut self) -> Option<&mut Steerer> {
        match &mut self.start {
            Start::Algorithm(_, steerer) => steerer.as_mut(),
            Start::Learnt(..) | Start::Rival(_) => None,
        }
    }
}

impl Start {
    /// The algorithm or policy of a new path. Another can take over from each of them.
    pub(crate) fn driver(&self, limits: &Limits) -> Driver {
        match self {
            Self::Algorithm(spec, _) => Driver::from(Switcher::new(*spec, limits)),
            Self::Learnt(policy, safe) => policy.driver(*safe, limits),
            Self::Rival(rival) => Driver::from(rival.build(limits)),
        }
    }

    /// What steers it.
    pub(crate) fn steerer(&self) -> Option<Steerer> {
        match self {
            Self::Algorithm(_, steerer) => steerer.clone(),
            Self::Learnt(..) | Self::Rival(_) => None,
        }
    }
}

/// The text of an algorithm with its knobs.
pub(crate) fn text(spec: &Spec) -> String {
    let knobs: Vec<_> = spec.settings().iter().map(|(knob, v)| format!("{knob}={v}")).collect();
    let separator = if knobs.is_empty() { "" } else { ":" };
    format!("{}{separator}{}", spec.algorithm().name, knobs.join(","))
}

fn policy(settings: &MusesSettings) -> Result<Policy, ConfigError> {
    let (_, path) = settings.key();
    let bytes = match &settings.model {
        None => settings.shipped().1.to_vec(),
        Some(path) => read(path)?,
    };
    settings.policy(bytes).map_err(|e| unusable(path, &e))
}

/// What was learnt for a scheme that selects. With a fallback the file need not be there.
fn learnt(kind: &SchemeKind) -> Result<Result<LearntModel, Unusable>, ConfigError> {
    let SchemeKind::Select(selection) = kind else { return Ok(Err(Unusable::Missing)) };
    let Some(path) = selection.by.file() else { return Ok(Err(Unusable::Missing)) };
    let bytes = match selection.by.shipped() {
        Some(bytes) => bytes.to_vec(),
        None => match read(path) {
            Err(_) if selection.safe.is_some() => return Ok(Err(Unusable::Missing)),
            bytes => bytes?,
        },
    };
    match selection.by.read(&bytes) {
        Err(problem) if selection.safe.is_some() => Ok(Err(problem.unusable())),
        model => model.map(Ok).map_err(|e| unusable(path, &e)),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|cause| ConfigError::File { path: path.to_owned(), cause })
}

fn unusable(path: &Path, problem: &dyn std::error::Error) -> ConfigError {
    ConfigError::Learnt { path: path.to_owned(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stack;
    use crate::tests::Own;

    fn refused(text: &str) -> String {
        Plan::read(text, &Model::download(), Own::TRAITS).unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_text_names_the_remedy() {
        let problem = refused("cubik");
        assert!(problem.contains("did you mean cubic?"), "{problem}");
        let problem = refused("copa:alpha=1");
        assert!(problem.contains("alpha") && problem.contains("delta"), "{problem}");
        let problem = refused("omniscient");
        assert!(problem.contains("simulator only; name an algorithm such as bbr3"), "{problem}");
        let problem = refused("noq:cubic");
        assert!(problem.contains("CubicConfig"), "{problem}");
        let problem = refused("muses:model=nowhere.trees");
        assert!(problem.contains("nowhere.trees") && problem.contains("model=FILE"), "{problem}");
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let problem = refused(&format!("floo:model={file}"));
        assert!(problem.contains("Cargo.toml cannot be used"), "{problem}");
    }

    #[test]
    fn with_a_fallback_the_file_need_not_be_there() {
        let plan =
            Plan::read("floo:model=nowhere:safe=copa", &Model::download(), Own::TRAITS).unwrap();
        assert!(
            matches!(plan.start(), Start::Algorithm(spec, _) if spec.algorithm().name == "copa")
        );
        assert_eq!(plan.label(), "floo:model=nowhere:safe=copa");
    }

    #[test]
    fn a_baseline_is_the_fallback_or_the_algorithm_as_it_is_alone() {
        for (scheme, baseline) in [
            ("mortise", "copa"),
            ("copa:delta=0.1", "copa"),
            ("mortise:bbr3", "bbr3"),
            ("switch:bbr,cubic:every=3s", "bbr"),
            ("floo:safe=cubic", "cubic"),
            ("muses:safe=bbr3", "bbr3"),
            ("muses:safe=none", "newreno"),
            ("muses:safe=copa:delta=0.2", "copa:delta=0.2"),
        ] {
            let read = |text: &str| Plan::read(text, &Model::download(), Own::TRAITS).unwrap();
            let derived = read(scheme).baseline();
            assert_eq!(derived.label(), baseline, "{scheme}");
            // The text leads back to it.
            let (Start::Algorithm(a, None), Start::Algorithm(b, None)) =
                (derived.start(), read(baseline).start().clone())
            else {
                panic!("{scheme}: {derived:?}")
            };
            assert!(a.is_same(&b), "{scheme}");
        }
    }
}
