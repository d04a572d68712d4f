//! Who takes part in a comparison: rule-based algorithms, steering, and bounds.
//!
//! A contender is named `NAME[:SETTING,…]`, as on the command line:
//!
//! | name | what it is |
//! |---|---|
//! | `cubic`, `copa:mit`, `copa:delta=0.1` … | an algorithm of the `cc` crate with its knobs |
//! | `mortise`, `mortise:sigma=0.3,cpd=0` | Copa, its δ steered by the application's preference |
//! | `mortise-disc` | the same with five values of δ only |
//! | `switch:cubic,bbr:every=20s`, `switch:cubic,bbr:part` | algorithms in turn on the same flow, every so often |
//! | `floo`, `floo:counterfactual`, `floo:part` | the algorithm that a learnt policy chooses |
//! | `floo+mortise` | both: the algorithm chosen, and δ steered while Copa runs |
//! | `select:power` | the algorithm that a rule chooses |
//! | `select:antelope` | the algorithm that is foretold the most |
//! | `muses`, `muses:lstm`, `treeg`, `muses:safe=copa` | a policy learnt by imitation: trees, the LSTM before them, one tree |
//! | `static-best`, `static-best:cubic,copa:mvfst` | bound: the best single algorithm of each run |
//! | `oracle:select`, `oracle:select:every=6s:cubic,copa` | bound: at every selection the algorithm that turns out best, tried on forks |
//! | `oracle:copa` | bound: the best constant δ of each run, found by trying them all |
//! | `oracle:copa:restart_probe=1` | the same with other knobs set |
//! | `oracle-dynamic:copa` | bound: at every interval the δ that turns out best, tried on forks |
//! | `omniscient` | bound: a sender that sees the trace |

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use trimtab_cc::{ALGORITHMS, Knob, KnobError, Spec, SpecError};

use crate::muses::{Learnt, MusesError, MusesSettings};
use crate::select_bound::{BoundError, SelectBound};
use crate::selection::{Selection, SelectionError};
use crate::turns::{self, Turns, TurnsError};

/// The name of the bound that sees the trace.
pub const OMNISCIENT: &str = "omniscient";

/// The name of the bound that is the best single algorithm.
pub const STATIC_BEST: &str = "static-best";

/// The name of the preset that imitates Linux.
const LINUX: &str = "linux";

/// A contender: what it is, and how the user called it.
#[derive(Clone, Debug)]
pub struct Contender {
    label: String,
    kind: ContenderKind,
}

/// What a contender is.
#[derive(Clone, Debug)]
pub enum ContenderKind {
    /// An algorithm whose knobs stay as they are.
    Rule(Spec),
    /// Mortise: Copa's δ follows the application's preference.
    Mortise(MortiseSettings),
    /// Mortise with five values of δ (Mortise §5.1, "Mortise Disc").
    MortiseDisc(MortiseSettings),
    /// Algorithms that take over from each other, whatever the path is like (Floo §5.5.1).
    Switch(Turns),
    /// The algorithm is chosen while the flow runs (Floo).
    Select(Selection),
    /// A policy learnt by imitation multiplies the window (Muses).
    Muses(MusesSettings),
    /// Bound: the best single algorithm, per run (Floo's Static_Opt).
    StaticBest(SelectBound),
    /// Bound: the best algorithm at every selection, tried on forks.
    OracleSelect(SelectBound),
    /// Bound: the best constant value of the algorithm's first knob, per run.
    Oracle(Spec),
    /// Bound: the best value of the algorithm's first knob at every interval, tried on forks.
    OracleDynamic(Spec),
    /// Bound: sees the trace (Muses eq. 1).
    Omniscient,
}

/// The settings of Mortise that experiments vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MortiseSettings {
    /// The weight σ of the preference against the present tradeoff in the feedback (Mortise eq. 5).
    pub sigma: f64,
    /// Whether changes of the bandwidth are detected (Mortise §4, Bayesian change-point detection).
    pub change_point_detection: bool,
}

impl Default for MortiseSettings {
    fn default() -> Self {
        Self { sigma: SIGMA.default, change_point_detection: true }
    }
}

static SIGMA: Knob = Knob {
    name: "sigma",
    unit: "1",
    min: 0.0,
    max: 1.0,
    default: 0.5,
    about: "weight of the application's preference in the feedback; the rest is the present tradeoff",
};
static CPD: Knob = Knob {
    name: "cpd",
    unit: "1",
    min: 0.0,
    max: 1.0,
    default: 1.0,
    about: "1 to detect changes of the bandwidth and explore after them, 0 not to",
};
/// The settings of `mortise` and `mortise-disc`.
pub static MORTISE_SETTINGS: [&Knob; 2] = [&SIGMA, &CPD];

/// What a contender is that is no algorithm of the `cc` crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialKind {
    /// A policy of its own, which was learnt.
    Learnt,
    /// Turns knobs or changes the algorithm while the flow runs.
    Steering,
    /// Shows what something costs, and serves nobody better.
    Experiment,
    /// No real sender can reach it.
    Bound,
}

/// A contender that is no algorithm of the `cc` crate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpecialContender {
    /// How it is written on the command line.
    pub name: &'static str,
    /// What it is for.
    pub kind: SpecialKind,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its numeric settings.
    pub settings: &'static [&'static Knob],
}

/// Learnt policies, steering, experiments and bounds, in the order in which they are listed.
pub static SPECIAL: [SpecialContender; 14] = [
    SpecialContender {
        name: "muses",
        kind: SpecialKind::Learnt,
        about: "decision trees multiply the window every 10 ms, and every 10 s the tree that fits the path is chosen; :lstm is the policy that they were distilled from, :model=FILE another model; :safe=CC, at the end, is what takes over where the path is unlike training or the window runs away, copa:mvfst unless told, or none",
        source: "Zhong et al., INFOCOM 2022",
        settings: &[],
    },
    SpecialContender {
        name: "treeg",
        kind: SpecialKind::Learnt,
        about: "the same with a single tree for all paths; takes :model=FILE and :safe=CC",
        source: "Zhong et al., INFOCOM 2022, section IV-A",
        settings: &[],
    },
    SpecialContender {
        name: "mortise",
        kind: SpecialKind::Steering,
        about: "Copa, its delta steered continuously by what the application's users prefer",
        source: "Mortise",
        settings: &MORTISE_SETTINGS,
    },
    SpecialContender {
        name: "mortise-disc",
        kind: SpecialKind::Steering,
        about: "Mortise with five values of delta only",
        source: "Mortise section 5.1",
        settings: &MORTISE_SETTINGS,
    },
    SpecialContender {
        name: "floo",
        kind: SpecialKind::Steering,
        about: "the algorithm that a policy learnt by PPO chooses every 12 s or as :every=TIME says; :counterfactual is the policy learnt from forks of the simulator, :model=FILE another one; :part hands over the window only; :safe=CC, at the end, is what runs where the policy has no answer",
        source: "Floo",
        settings: &[],
    },
    SpecialContender {
        name: "floo+mortise",
        kind: SpecialKind::Steering,
        about: "both: the algorithm chosen by the policy learnt from forks, and Mortise setting delta while Copa runs; takes the same as floo",
        source: "Floo and Mortise",
        settings: &[],
    },
    SpecialContender {
        name: "select:RULE",
        kind: SpecialKind::Steering,
        about: "the algorithm with the largest utility of throughput, delay and loss, each tried for a period: power, power-loss, vivace or throughput",
        source: "Floo section 2.1, table 1",
        settings: &[],
    },
    SpecialContender {
        name: "select:antelope",
        kind: SpecialKind::Steering,
        about: "the algorithm for which boosted trees foretell the largest reward of throughput, delay and loss; a new one has to win twice in a row; takes :every=TIME, :part, :model=FILE, and :safe=CC at the end",
        source: "Zhou et al., ICNP 2021",
        settings: &[],
    },
    SpecialContender {
        name: "switch:CC,CC",
        kind: SpecialKind::Experiment,
        about: "algorithms in turn on the same flow, each for 20 s or as :every=TIME says; :part hands over the window only",
        source: "Floo section 5.5.1",
        settings: &[],
    },
    SpecialContender {
        name: "static-best",
        kind: SpecialKind::Bound,
        about: "bound: the best single algorithm of cubic, bbr, copa and westwood for each run, or of others as in static-best:cubic,copa:mvfst, or of a shipped policy's as in static-best:counterfactual",
        source: "Floo section 5.2, Static_Opt",
        settings: &[],
    },
    SpecialContender {
        name: "oracle:select",
        kind: SpecialKind::Bound,
        about: "bound: every 12 s or as :every=TIME says the one of these algorithms that turns out best, or of others as in oracle:select:cubic,bbr,copa:mvfst or oracle:select:counterfactual",
        source: "Floo, judged by the whole run",
        settings: &[],
    },
    SpecialContender {
        name: "oracle:CC",
        kind: SpecialKind::Bound,
        about: "bound: the best constant value of the algorithm's knob for each run",
        source: "Mortise section 5.2",
        settings: &[],
    },
    SpecialContender {
        name: "oracle-dynamic:CC",
        kind: SpecialKind::Bound,
        about: "bound: at every interval the value of the knob that turns out best",
        source: "Mortise section 5.2, judged by the whole run",
        settings: &[],
    },
    SpecialContender {
        name: OMNISCIENT,
        kind: SpecialKind::Bound,
        about: "bound: a sender that sees the trace",
        source: "Muses equation 1",
        settings: &[],
    },
];

/// Why a text names no contender.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{text:?}: {problem}")]
pub struct ContenderError {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Problem {
    #[error("unknown congestion control; {}there are {}; `trimtab cc list` describes them", hint(.suggestion), names().join(", "))]
    Unknown { suggestion: Option<String> },
    #[error("{0}")]
    Spec(SpecError),
    #[error("{0}")]
    Setting(String),
    #[error("it takes an algorithm, as in {0}:copa")]
    NoAlgorithm(&'static str),
    #[error("{0} has no knob to search over")]
    NoKnobs(&'static str),
    #[error(transparent)]
    Turns(#[from] TurnsError),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error(transparent)]
    Muses(#[from] MusesError),
    #[error(transparent)]
    Bound(#[from] BoundError),
    #[error("it takes no settings")]
    NoSettings,
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or(String::new(), |s| format!("did you mean {s}? "))
}

/// Every name that a contender can begin with.
fn names() -> Vec<&'static str> {
    ALGORITHMS.iter().map(|a| a.name).chain(SPECIAL.iter().map(|s| s.name)).collect()
}

impl Contender {
    /// How the user called it; names its runs.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What it is.
    pub fn kind(&self) -> &ContenderKind {
        &self.kind
    }

    /// The same as Linux has it: the preset `linux` of an algorithm that has one, where no knob is set. The name
    /// stays.
    #[must_use]
    pub fn as_in_linux(&self) -> Self {
        let mut same = self.clone();
        if let ContenderKind::Rule(spec) = &mut same.kind
            && spec.settings().is_empty()
        {
            let presets = spec.algorithm().presets;
            for &(knob, value) in presets.iter().filter(|p| p.name == LINUX).flat_map(|p| p.knobs) {
                let set = spec.set(knob, value);
                debug_assert!(set.is_ok(), "checked by a test of every preset");
            }
        }
        same
    }

    /// Whether it is named without knobs, or with those of the preset `linux`: what a kernel gives that has no knobs
    /// for a single connection.
    pub fn is_as_in_linux(&self) -> bool {
        let ContenderKind::Rule(spec) = &self.kind else { return false };
        let mut presets = spec.algorithm().presets.iter();
        spec.settings().is_empty() || presets.any(|p| p.name == LINUX && p.knobs == spec.settings())
    }

    /// Whether no real sender can reach it.
    pub fn is_bound(&self) -> bool {
        is_bound(&self.label)
    }

    /// Whether its knobs are steered or its algorithm is chosen while it runs.
    pub fn is_steered(&self) -> bool {
        is_steered(&self.label)
    }
}

/// Whether the contender of this name is a bound that no real sender can reach. Reports are drawn
/// from records, which hold names only.
pub fn is_bound(label: &str) -> bool {
    let name = label.split(':').next().unwrap_or_default();
    SPECIAL.iter().any(|s| s.kind == SpecialKind::Bound && s.name.split(':').next() == Some(name))
}

/// Whether the contender of this name is steered.
pub fn is_steered(label: &str) -> bool {
    let name = label.split(':').next().unwrap_or_default();
    SPECIAL
        .iter()
        .any(|s| s.kind == SpecialKind::Steering && s.name.split(':').next() == Some(name))
}

impl FromStr for Contender {
    type Err = ContenderError;

    fn from_str(text: &str) -> Result<Self, ContenderError> {
        let text = text.trim();
        let fail = |problem| ContenderError { text: text.to_owned(), problem };
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let kind = match name {
            "mortise" => ContenderKind::Mortise(mortise_settings(rest).map_err(fail)?),
            "mortise-disc" => ContenderKind::MortiseDisc(mortise_settings(rest).map_err(fail)?),
            "switch" => {
                ContenderKind::Switch(turns::parse(rest).map_err(|e| fail(Problem::Turns(e)))?)
            }
            "floo" => ContenderKind::Select(selected(Selection::floo(rest, false)).map_err(fail)?),
            "floo+mortise" => {
                ContenderKind::Select(selected(Selection::floo(rest, true)).map_err(fail)?)
            }
            "select" => ContenderKind::Select(selected(Selection::rule(rest)).map_err(fail)?),
            "muses" => ContenderKind::Muses(learnt(rest, Learnt::Trees).map_err(fail)?),
            "treeg" => ContenderKind::Muses(learnt(rest, Learnt::Global).map_err(fail)?),
            STATIC_BEST => ContenderKind::StaticBest(
                SelectBound::single(rest).map_err(|e| fail(Problem::Bound(e)))?,
            ),
            "oracle" if rest.split(':').next() == Some("select") => {
                let rest = rest.split_once(':').map_or("", |(_, rest)| rest);
                let bound = SelectBound::course(rest).map_err(|e| fail(Problem::Bound(e)))?;
                ContenderKind::OracleSelect(bound)
            }
            "oracle" => ContenderKind::Oracle(searched("oracle", rest).map_err(fail)?),
            "oracle-dynamic" => {
                ContenderKind::OracleDynamic(searched("oracle-dynamic", rest).map_err(fail)?)
            }
            OMNISCIENT if rest.is_empty() => ContenderKind::Omniscient,
            OMNISCIENT => return Err(fail(Problem::NoSettings)),
            _ => ContenderKind::Rule(rule(text).map_err(fail)?),
        };
        Ok(Self { label: text.to_owned(), kind })
    }
}

fn rule(text: &str) -> Result<Spec, Problem> {
    text.parse().map_err(|e| match e {
        SpecError::UnknownAlgorithm => {
            let name = text.split(':').next().unwrap_or_default();
            Problem::Unknown { suggestion: closest(name) }
        }
        e => Problem::Spec(e),
    })
}

fn selected(selection: Result<Selection, SelectionError>) -> Result<Selection, Problem> {
    selection.map_err(Problem::Selection)
}

fn learnt(text: &str, learnt: Learnt) -> Result<MusesSettings, Problem> {
    MusesSettings::parse(text, learnt).map_err(Problem::Muses)
}

/// The algorithm of an oracle; it needs a knob to search over.
fn searched(oracle: &'static str, text: &str) -> Result<Spec, Problem> {
    if text.is_empty() {
        return Err(Problem::NoAlgorithm(oracle));
    }
    let spec = rule(text)?;
    match spec.algorithm().knobs {
        [] => Err(Problem::NoKnobs(spec.algorithm().name)),
        _ => Ok(spec),
    }
}

fn mortise_settings(text: &str) -> Result<MortiseSettings, Problem> {
    let mut settings = MortiseSettings::default();
    for setting in text.split(',').filter(|s| !s.is_empty()) {
        let known = || MORTISE_SETTINGS.map(|k| k.name).join(", ");
        let wrong = || Problem::Setting(format!("a setting is NAME=VALUE, with {}", known()));
        let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        let knob = MORTISE_SETTINGS.into_iter().find(|k| k.name == name.trim());
        let Some(knob) = knob else {
            return Err(Problem::Setting(format!("no setting {name:?}; there are {}", known())));
        };
        knob.check(value).map_err(|e: KnobError| Problem::Setting(e.to_string()))?;
        if knob.name == SIGMA.name {
            settings.sigma = value;
        } else {
            settings.change_point_detection = value != 0.0;
        }
    }
    Ok(settings)
}

/// The known name that looks most like `name`, if any does.
fn closest(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    names()
        .into_iter()
        .map(|known| known.split(':').next().unwrap_or(known))
        .map(|known| (strsim::jaro_winkler(&name, known), known))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known.to_owned())
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.label)
    }
}

impl<'de> Deserialize<'de> for Contender {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::Duration;

    use super::*;

    fn parse(text: &str) -> Result<Contender, String> {
        text.parse().map_err(|e: ContenderError| e.to_string())
    }

    #[test]
    fn steering_and_bounds_parse() {
        assert!(matches!(parse("newreno").unwrap().kind(), ContenderKind::Rule(_)));
        let Ok(Contender { kind: ContenderKind::Mortise(m), .. }) =
            parse("mortise:sigma=0.3,cpd=0")
        else {
            panic!("mortise is a contender");
        };
        assert_eq!(m, MortiseSettings { sigma: 0.3, change_point_detection: false });
        assert!(parse("mortise").unwrap().is_steered());
        assert!(parse("omniscient").unwrap().is_bound());
        for steered in ["floo", "floo:part", "floo+mortise", "select:power", "select:antelope"] {
            assert!(parse(steered).unwrap().is_steered() && !is_bound(steered), "{steered}");
        }
        let every = parse("oracle:select:every=6s").unwrap();
        assert!(
            matches!(every.kind(), ContenderKind::OracleSelect(b) if b.every == Duration::from_secs(6))
        );
        assert!(every.is_bound() && parse("static-best").unwrap().is_bound());
        assert!(is_bound("static-best:cubic,copa") && is_bound("oracle:select:cubic,copa:mvfst"));
        assert!(is_bound("oracle:copa") && is_bound("oracle-dynamic:copa:mit"));
        assert!(!is_bound("copa:mit") && !is_bound("mortise") && !is_steered("copa"));
        let turns = parse("switch:cubic,bbr:every=5s:part").unwrap();
        assert!(matches!(turns.kind(), ContenderKind::Switch(t) if t.specs.len() == 2));
        assert!(!turns.is_steered() && !turns.is_bound() && !is_steered(turns.label()));
        for learnt in ["muses", "muses:lstm", "treeg:safe=copa:mit"] {
            let contender = parse(learnt).unwrap();
            assert!(!contender.is_steered() && !contender.is_bound(), "{learnt}");
        }
        assert_eq!(parse(" newreno ").unwrap().to_string(), "newreno");
    }

    #[test]
    fn linux_has_one_form_of_an_algorithm() {
        let cubic = parse("cubic").unwrap();
        let ContenderKind::Rule(spec) = cubic.as_in_linux().kind else { panic!("a rule") };
        let named = parse("cubic:linux").unwrap();
        assert!(matches!(named.kind(), ContenderKind::Rule(s) if s.settings() == spec.settings()));
        assert_eq!(cubic.as_in_linux().label(), "cubic");
        assert!(cubic.is_as_in_linux() && named.is_as_in_linux());
        assert!(!parse("cubic:beta=0.5").unwrap().is_as_in_linux());
        assert!(!parse("mortise").unwrap().is_as_in_linux());
    }

    #[test]
    fn mistakes_say_what_to_do() {
        let e = parse("neworeno").unwrap_err();
        assert!(e.contains("did you mean newreno?") && e.contains("trimtab cc list"), "{e}");
        let e = parse("mortise:sigma=2").unwrap_err();
        assert!(e.contains("sigma = 2 is outside its range 0 to 1"), "{e}");
        let e = parse("mortise:sigma=nan").unwrap_err();
        assert!(e.contains("outside its range"), "{e}");
        let e = parse("mortise:gamma=1").unwrap_err();
        assert!(e.contains("no setting \"gamma\"; there are sigma, cpd"), "{e}");
        let e = parse("switch:cubic").unwrap_err();
        assert!(e.contains("switch:cubic,bbr:every=20s"), "{e}");
        assert!(parse("swich:cubic,bbr").unwrap_err().contains("did you mean switch?"));
        let e = parse("select:speed").unwrap_err();
        assert!(e.contains("there are power, power-loss, vivace, throughput"), "{e}");
        let e = parse("floo:every=12").unwrap_err();
        assert!(e.contains("every=12: it takes a time"), "{e}");
        let e = parse("floo:parts").unwrap_err();
        assert!(e.contains("no setting \"parts\"") && e.contains("model=FILE"), "{e}");
        let e = parse("oracle:select:each=6s").unwrap_err();
        assert!(e.contains("name them as in cubic,bbr,copa:mvfst"), "{e}");
        assert!(parse("static-best:copa").unwrap_err().contains("2 to 16 algorithms"));
        assert!(parse("muses:forest").unwrap_err().contains("there are lstm, model=FILE"));
        let e = parse("oracle").unwrap_err();
        assert!(e.contains("oracle:copa"), "{e}");
        let e = parse("oracle:westwood").unwrap_err();
        assert!(e.contains("westwood has no knob to search over"), "{e}");
        assert!(parse("omniscient:1").unwrap_err().contains("takes no settings"));
    }
}
