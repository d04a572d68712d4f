//! Schemes that choose among algorithms while a flow runs: `floo`, `floo:part`, `select:power`, `select:antelope`,
//! `floo+mortise`, and their text.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_cc::migrate::Switch;
use trimtab_cc::{Spec, SpecError};
use trimtab_units::Duration;

use super::every::{self, EveryError};
use crate::select::antelope::Boosted;
use crate::select::{Model, ModelError, Policy, Selector, SelectorConfig};
use crate::{Unusable, Utility};

/// What rules choose among, in this order: Floo's candidates (§4.1). CUBIC starts.
pub const CANDIDATES: [&str; 4] = ["cubic", "bbr", "copa", "westwood"];

/// What chooses.
#[derive(Clone, Debug, PartialEq)]
pub enum By {
    /// A learnt policy that ships with the project, by its name.
    Shipped(&'static str),
    /// A learnt policy, from this file.
    Model(PathBuf),
    /// Antelope's models.
    Antelope(Trees),
    /// What counts on the path (Floo Table 1).
    Rule(Utility),
}

/// Where Antelope's models come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Trees {
    /// They ship with the project, by this name.
    Shipped(&'static str),
    /// A file.
    File(PathBuf),
}

/// What was read from the file of a selection.
#[derive(Clone, Debug)]
pub enum LearntModel {
    /// Floo's policy.
    Floo(Arc<Model>),
    /// Antelope's models.
    Antelope(Arc<Boosted>),
}

/// A scheme that chooses among algorithms.
#[derive(Clone, Debug)]
pub struct Selection {
    /// What chooses.
    pub by: By,
    /// How often; `None` for what the model was made for, and 12 s for rules.
    pub every: Option<Duration>,
    /// What goes over from one algorithm to the next.
    pub how: Switch,
    /// How long after a switch the connection is looked at, to go back; `None` for never.
    pub look: Option<Duration>,
    /// Whether Mortise sets δ while Copa runs.
    pub tuned: bool,
    /// What runs where a learnt policy gives no answer; `None` for what it starts connections with.
    /// With it, the policy's file need not be there.
    pub safe: Option<Spec>,
}

/// Why a text names no selection.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum SelectionError {
    #[error("it takes a rule, e.g. select:power; there are {known} and {ANTELOPE}", known = rules().join(", "))]
    Rule,
    #[error(transparent)]
    Every(#[from] EveryError),
    #[error("no setting {0:?}; there are every=TIME, look=TIME, full and part{1}")]
    Setting(String, &'static str),
    #[error("safe={0}: it takes an algorithm, e.g. safe=cubic, and comes last: {1}")]
    Safe(String, SpecError),
}

fn rules() -> Vec<&'static str> {
    Utility::ALL.iter().map(|(name, _)| *name).collect()
}

/// The candidates of rules.
pub fn candidates() -> Vec<Spec> {
    CANDIDATES.iter().filter_map(|name| Spec::new(name)).collect()
}

/// Floo's policy as its paper learns it. Those learnt from forks of the simulator: for the mean, for
/// the slowest requests, next to rivals, too, and from the paper's own candidates.
const PPO: &str = "floo";
const COUNTERFACTUAL: &str = "floo-counterfactual";
const P90: &str = "floo-p90";
const SHARED: &str = "floo-shared";
const PAPER: &str = "floo-paper";
/// Antelope's selector, in the place of a rule: among our candidates, among those of its published
/// code, and among settings of Copa (Mortise §4, "Antelope Copa").
const ANTELOPE: &str = "antelope";
const ANTELOPE_PAPER: &str = "antelope-paper";
const ANTELOPE_COPA: &str = "antelope-copa";

/// The file of a policy that ships with the project; `models/` has the card of each.
fn shipped(name: &str) -> &'static [u8] {
    match name {
        ANTELOPE => include_bytes!("../../models/antelope.safetensors"),
        ANTELOPE_PAPER => include_bytes!("../../models/antelope-paper.safetensors"),
        ANTELOPE_COPA => include_bytes!("../../models/antelope-copa.safetensors"),
        P90 => include_bytes!("../../models/floo-p90.safetensors"),
        PAPER => include_bytes!("../../models/floo-paper.safetensors"),
        SHARED => include_bytes!("../../models/floo-shared.safetensors"),
        COUNTERFACTUAL => include_bytes!("../../models/floo-counterfactual.safetensors"),
        _ => include_bytes!("../../models/floo.safetensors"),
    }
}

/// The candidates of a policy that ships with the project, by what tells it apart: `floo` or `counterfactual`.
pub(super) fn candidates_of_shipped(name: &str) -> Option<Vec<Spec>> {
    let file = match name {
        "floo" => PPO,
        "counterfactual" => COUNTERFACTUAL,
        _ => return None,
    };
    // A test reads both.
    Model::parse(shipped(file)).ok().map(|model| model.candidates().to_vec())
}

impl Selection {
    /// Reads what follows `floo:` or `floo+mortise:`.
    pub(super) fn floo(text: &str, tuned: bool) -> Result<Self, SelectionError> {
        let by = By::Shipped(if tuned { COUNTERFACTUAL } else { PPO });
        let mut selection = Self { tuned, ..Self::by(by) };
        selection.set_all(
            text,
            |setting| match setting {
                ("counterfactual", None) => Some(By::Shipped(COUNTERFACTUAL)),
                ("p90", None) => Some(By::Shipped(P90)),
                ("shared", None) => Some(By::Shipped(SHARED)),
                ("paper", None) => Some(By::Shipped(PAPER)),
                ("model", Some(path)) => Some(By::Model(path.into())),
                _ => None,
            },
            ", counterfactual, shared, paper, p90, model=FILE, and safe=CC at the end",
        )?;
        Ok(selection)
    }

    /// Reads what follows `select:antelope:`.
    pub(super) fn antelope(text: &str) -> Result<Self, SelectionError> {
        let mut antelope = Self::by(By::Antelope(Trees::Shipped(ANTELOPE)));
        antelope.set_all(
            text,
            |setting| {
                Some(By::Antelope(match setting {
                    ("paper", None) => Trees::Shipped(ANTELOPE_PAPER),
                    ("copa", None) => Trees::Shipped(ANTELOPE_COPA),
                    ("model", Some(path)) => Trees::File(path.into()),
                    _ => return None,
                }))
            },
            ", paper, copa, model=FILE, and safe=CC at the end",
        )?;
        Ok(antelope)
    }

    /// What this chooses, with the default settings.
    pub fn by(by: By) -> Self {
        Self { by, every: None, how: Switch::Full, look: None, tuned: false, safe: None }
    }

    /// Reads what follows `select:`.
    pub(super) fn rule(text: &str) -> Result<Self, SelectionError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let rule = Utility::ALL.iter().find(|(known, _)| *known == name.trim());
        let mut rule = Self::by(By::Rule(rule.ok_or(SelectionError::Rule)?.1));
        rest.split(':')
            .map(str::trim)
            .filter(|s| !s.is_empty())
            .try_for_each(|setting| rule.set(setting, ""))?;
        Ok(rule)
    }

    /// Takes the settings of a learnt selection: those that name what was learnt, `safe=`, and
    /// those that all selections take.
    fn set_all(
        &mut self,
        text: &str,
        learnt: impl Fn((&str, Option<&str>)) -> Option<By>,
        others: &'static str,
    ) -> Result<(), SelectionError> {
        let mut rest = text;
        while !rest.is_empty() {
            // An algorithm has settings of its own, so the fallback takes all that follows.
            if let Some(safe) = rest.trim_start().strip_prefix("safe=") {
                let wrong = |problem| SelectionError::Safe(safe.to_owned(), problem);
                self.safe = Some(safe.parse().map_err(wrong)?);
                break;
            }
            let (setting, then) = rest.split_once(':').unwrap_or((rest, ""));
            rest = then;
            let setting = setting.trim();
            let parts = setting.split_once('=').map_or((setting, None), |(k, v)| (k, Some(v)));
            if let Some(by) = learnt(parts) {
                self.by = by;
            } else if !setting.is_empty() {
                self.set(setting, others)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, setting: &str, others: &'static str) -> Result<(), SelectionError> {
        match (setting.split_once('='), every::how(setting)) {
            (Some(("every", time)), _) => self.every = Some(every::parse(time)?),
            (Some(("look", time)), _) => self.look = Some(every::look(time)?),
            (None, Some(how)) => self.how = how,
            _ => return Err(SelectionError::Setting(setting.to_owned(), others)),
        }
        Ok(())
    }

    /// The selector of a flow, `model` being the one of its file, on a datapath that `runs` these
    /// algorithms. It chooses none of the others.
    ///
    /// # Panics
    /// A rule chooses, and none of [`CANDIDATES`] runs.
    pub fn selector(
        &self,
        model: &Result<LearntModel, Unusable>,
        runs: &dyn Fn(&Spec) -> bool,
    ) -> Selector {
        let model = model.as_ref().map_err(|why| *why);
        let config = match (&self.by, model.and_then(|model| model.only(runs))) {
            (By::Rule(utility), _) => {
                let candidates = candidates().into_iter().filter(runs).collect();
                SelectorConfig::new(candidates, Policy::Rule(*utility))
            }
            (_, Ok(LearntModel::Floo(model))) => SelectorConfig::of_model(model),
            (_, Ok(LearntModel::Antelope(models))) => SelectorConfig::of_boosted(models),
            (_, Err(why)) => SelectorConfig::without_model(self.safe_without_model(), why),
        };
        let period = self.every.unwrap_or(config.period);
        let safe = self.safe.unwrap_or(config.safe);
        Selector::new(SelectorConfig { period, how: self.how, look: self.look, safe, ..config })
    }

    /// What runs where there is no policy.
    fn safe_without_model(&self) -> Spec {
        self.safe.unwrap_or(candidates()[0])
    }

    /// What a datapath that `runs` only some algorithms makes of it; `None` where it runs all that
    /// it chooses among.
    pub fn remark(
        &self,
        model: &Result<LearntModel, Unusable>,
        runs: &dyn Fn(&Spec) -> bool,
    ) -> Option<String> {
        let all = match (&self.by, model) {
            (By::Rule(_), _) => candidates(),
            (_, Ok(model)) => model.candidates().to_vec(),
            (_, Err(_)) => return None,
        };
        let names = |of: &mut dyn Iterator<Item = &Spec>| {
            of.map(|spec| spec.algorithm().name).collect::<Vec<_>>().join(", ")
        };
        let left_out = names(&mut all.iter().filter(|spec| !runs(spec)));
        if left_out.is_empty() {
            return None;
        }
        if all.iter().filter(|spec| runs(spec)).count() >= 2 {
            return Some(format!("it never chooses {left_out}, which this datapath does not have"));
        }
        Some(format!(
            "it chooses among {}, of which fewer than two run on this datapath; {} runs in its place",
            names(&mut all.iter()),
            self.safe_without_model().algorithm().name
        ))
    }
}

impl LearntModel {
    /// What it chooses among.
    fn candidates(&self) -> &[Spec] {
        match self {
            Self::Floo(model) => model.candidates(),
            Self::Antelope(models) => models.candidates(),
        }
    }

    /// The same where only some of its candidates run.
    fn only(&self, runs: &dyn Fn(&Spec) -> bool) -> Result<Self, Unusable> {
        if self.candidates().iter().all(runs) {
            return Ok(self.clone());
        }
        let kept = match self {
            Self::Floo(model) => model.only(runs).map(|model| Self::Floo(model.into())),
            Self::Antelope(models) => models.only(runs).map(|models| Self::Antelope(models.into())),
        };
        kept.ok_or(Unusable::Candidates)
    }
}

impl By {
    /// The file of what was learnt; of what ships with the project, its name. `None` of a rule.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Shipped(name) | Self::Antelope(Trees::Shipped(name)) => Some(Path::new(name)),
            Self::Model(path) | Self::Antelope(Trees::File(path)) => Some(path),
            Self::Rule(_) => None,
        }
    }

    /// The bytes of what ships with the project; `None` of what is read from a file.
    pub fn shipped(&self) -> Option<&'static [u8]> {
        match self {
            Self::Shipped(name) | Self::Antelope(Trees::Shipped(name)) => Some(shipped(name)),
            Self::Model(_) | Self::Antelope(Trees::File(_)) | Self::Rule(_) => None,
        }
    }

    /// Reads the bytes of its file.
    pub fn read(&self, bytes: &[u8]) -> Result<LearntModel, ModelError> {
        Ok(match self {
            Self::Antelope(_) => LearntModel::Antelope(Boosted::parse(bytes)?.into()),
            _ => LearntModel::Floo(Model::parse(bytes)?.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_any_order() {
        let floo = Selection::floo("", false).unwrap();
        assert_eq!(floo.by, By::Shipped("floo"));
        assert_eq!((floo.every, floo.how, floo.tuned), (None, Switch::Full, false));
        let floo = Selection::floo("counterfactual:part:every=6s", true).unwrap();
        assert_eq!(floo.by, By::Shipped("floo-counterfactual"));
        assert_eq!((floo.every, floo.how), (Some(Duration::from_secs(6)), Switch::Part));
        assert!(floo.tuned);
        let floo = Selection::floo("part:model=out/my.safetensors:full", false).unwrap();
        assert_eq!((floo.by, floo.how), (By::Model("out/my.safetensors".into()), Switch::Full));
        assert!(floo.safe.is_none());
        let floo = Selection::floo("every=3s:safe=copa:mvfst:pacing_gain=2", false).unwrap();
        let safe = floo.safe.unwrap();
        assert!(safe.is_same(&"copa:mvfst:pacing_gain=2".parse().unwrap()), "{safe:?}");
        assert_eq!(floo.every, Some(Duration::from_secs(3)));
        let rule = Selection::rule("vivace:every=3s").unwrap();
        assert_eq!(rule.by, By::Rule(Utility::Vivace));
    }

    #[test]
    fn antelope_takes_the_settings_of_what_is_learnt() {
        let shipped = |name| By::Antelope(Trees::Shipped(name));
        let antelope = Selection::antelope("").unwrap();
        assert_eq!(
            (antelope.by, antelope.every, antelope.how),
            (shipped(ANTELOPE), None, Switch::Full)
        );
        for (text, name) in [("paper", ANTELOPE_PAPER), ("every=3s:copa", ANTELOPE_COPA)] {
            assert_eq!(Selection::antelope(text).unwrap().by, shipped(name));
        }
        let antelope = Selection::antelope("part:model=my.safetensors:every=2s:safe=bbr").unwrap();
        assert_eq!(antelope.by, By::Antelope(Trees::File("my.safetensors".into())));
        assert_eq!((antelope.every, antelope.how), (Some(Duration::from_secs(2)), Switch::Part));
        assert!(antelope.safe.unwrap().is_same(&"bbr".parse().unwrap()));
    }

    #[test]
    fn what_a_datapath_lacks_is_never_chosen_and_named() {
        let without = |text: &str, lacking: &[&str]| {
            let selection = match text.strip_prefix("select:") {
                None => Selection::floo(text, false).unwrap(),
                Some(rule) => match rule.strip_prefix("antelope") {
                    Some(text) => Selection::antelope(text.trim_start_matches(':')).unwrap(),
                    None => Selection::rule(rule).unwrap(),
                },
            };
            let model = match selection.by.shipped() {
                Some(bytes) => selection.by.read(bytes).map_err(|e| e.unusable()),
                None => Err(Unusable::Missing),
            };
            let runs = |spec: &Spec| !lacking.contains(&spec.algorithm().name);
            let selector = selection.selector(&model, &runs);
            let candidates = &selector.config().candidates;
            let names = candidates.iter().map(|spec| spec.algorithm().name);
            let names = names.collect::<Vec<_>>().join(" ");
            (names, selector.algorithm().algorithm().name, selection.remark(&model, &runs))
        };
        let (names, first, remark) = without("", &["westwood"]);
        assert_eq!((names.as_str(), first), ("cubic bbr copa", "copa"));
        assert!(remark.unwrap().starts_with("it never chooses westwood, which"));
        let (names, first, remark) = without("select:antelope", &["westwood", "vegas", "copa"]);
        assert_eq!((names.as_str(), first), ("cubic bbr", "cubic"));
        assert!(remark.unwrap().contains("copa, westwood, vegas"));
        let kernel_lacks = ["illinois", "c2tcp", "westwood", "vegas"];
        let (names, first, remark) = without("select:antelope:paper", &kernel_lacks);
        assert_eq!((names.as_str(), first), ("bbr cubic", "cubic"));
        assert!(
            remark.unwrap().contains("it never chooses illinois, c2tcp, westwood, vegas, which")
        );
        let (_, _, remark) = without("select:antelope:copa", &kernel_lacks);
        assert_eq!(remark, None, "all of its own run");
        let (names, _, remark) = without("select:power", &["copa"]);
        assert_eq!(names, "cubic bbr westwood");
        assert!(remark.unwrap().contains("never chooses copa"));
        let (_, _, remark) = without("counterfactual", &["westwood"]);
        assert_eq!(remark, None, "all of its own run");
        let (names, first, remark) = without("safe=cubic", &["bbr", "copa", "westwood"]);
        assert_eq!((names.as_str(), first), ("cubic", "cubic"));
        assert!(remark.unwrap().ends_with("cubic runs in its place"));
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let e = |text: &str| Selection::rule(text).unwrap_err().to_string();
        assert!(e("").contains("select:power; there are power, power-loss"));
        assert!(e("antelop").contains("throughput and antelope"));
        let antelope = Selection::antelope("p90").unwrap_err().to_string();
        assert!(antelope.contains("every=TIME, look=TIME, full and part, paper, copa, model"));
        let candidates = Selection::antelope("candidates=bbr,cubic").unwrap_err().to_string();
        assert!(candidates.contains("no setting \"candidates=bbr,cubic\"; there are every=TIME"));
        assert!(e("power:every=0s").contains("1ms at least"));
        assert!(e("power:model=x").contains("every=TIME, look=TIME, full and part"));
        let e = |text: &str| Selection::floo(text, false).unwrap_err().to_string();
        assert!(e("safe=quick").contains("safe=quick: it takes an algorithm, e.g. safe=cubic"));
        assert!(e("safe=bbr:every=3s").contains("comes last"));
    }

    #[test]
    fn shipped_models_are_models() {
        for name in [PPO, COUNTERFACTUAL, P90, PAPER] {
            let model = Model::parse(shipped(name)).unwrap();
            assert_eq!(model.candidates().len(), CANDIDATES.len(), "{name}");
        }
        assert_eq!(Model::parse(shipped(SHARED)).unwrap().candidates().len(), 6);
        assert_eq!(candidates_of_shipped("counterfactual").unwrap().len(), 4);
        let antelope = Boosted::parse(shipped(ANTELOPE)).unwrap();
        assert_eq!(antelope.candidates().len(), CANDIDATES.len() + 1, "and Vegas");
        // The order of the published code (recvAndSetCC.py). Linux starts with CUBIC.
        let paper = ["bbr", "cubic", "illinois", "c2tcp", "westwood", "vegas"].map(str::to_owned);
        // Those of mortise-disc, the middle one first.
        let copa = [0.04, 0.08, 0.16, 0.3, 0.5].map(|delta| format!("copa:delta={delta}"));
        for (name, texts, first) in [(ANTELOPE_PAPER, &paper[..], 1), (ANTELOPE_COPA, &copa, 2)] {
            let models = Boosted::parse(shipped(name)).unwrap();
            assert_eq!((models.candidates().len(), models.first()), (texts.len(), first), "{name}");
            for (spec, text) in models.candidates().iter().zip(texts) {
                assert!(spec.is_same(&text.parse().unwrap()), "{name}: {spec:?} is not {text}");
            }
        }
    }
}
