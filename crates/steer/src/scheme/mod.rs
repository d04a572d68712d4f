//! Schemes: what governs a flow. An algorithm with its knobs, a steering, a learnt policy, or a bound.
//!
//! This is the one grammar of their names, for the command, the lab and the testbed. `table.rs`
//! lists them: a new scheme is a file with its settings, and an entry there.
//!
//! A scheme is named `NAME[:SETTING,…]`:
//!
//! | name | what it is |
//! |---|---|
//! | `cubic`, `copa:mit`, `copa:delta=0.1` … | an algorithm of the `cc` crate with its knobs |
//! | `mortise`, `mortise:sigma=0.3,cpd=0` | Copa, its δ steered by the application's preference |
//! | `mortise:bbr3`, `mortise:cubic,sigma=0.3` | another algorithm, how bold it is steered likewise |
//! | `mortise:paper`, `mortise:paper,cpd=0` | Mortise as it was published |
//! | `mortise-disc` | the same with five values of δ only |
//! | `switch:cubic,bbr:every=20s`, `switch:cubic,bbr:part` | algorithms in turn on the same flow, every so often |
//! | `floo`, `floo:shared`, `floo:paper`, `floo:part` | the algorithm that a learnt policy chooses |
//! | `floo+mortise` | both: the algorithm chosen, and δ steered while Copa runs |
//! | `select:power` | the algorithm that a rule chooses |
//! | `select:antelope`, `select:antelope:paper`, `select:antelope:copa` | the algorithm that is foretold the most |
//! | `muses`, `muses:lstm`, `treeg`, `muses:wide`, `muses:safe=copa` | a policy learnt by imitation: trees, the LSTM before them, one tree, one from the oracle itself |
//! | `plugin:./mine.so`, `python:mine.py`, `onnx:mine.onnx` | an algorithm from outside |
//! | `remycc`, `remycc:model=FILE`, `indigo:model=FILE`, `aurora:model=FILE` | a rival that goes by a file: a table that a program has made, or a network |
//! | `mocc:model=FILE`, `orca:model=FILE`, `astraea:model=FILE` | more of these |
//! | `noq:cubic`, `noq:newreno`, `noq:bbr3` | the algorithm that the QUIC stack noq brings itself |
//! | `resume:cubic`, `resume:cwnd=600KB,rtt=50ms:mortise` | any of these, its connections start near the rate of an earlier one |
//! | `static-best`, `static-best:cubic,copa:mvfst` | bound: the best single algorithm of each run |
//! | `oracle:select`, `oracle:select:every=6s:cubic,copa` | bound: at every selection the algorithm that turns out best, tried on forks |
//! | `oracle:copa` | bound: the best constant δ of each run, found by trying them all |
//! | `oracle:copa:restart_probe=1` | the same with other knobs set |
//! | `oracle-dynamic:copa` | bound: at every interval the δ that turns out best, tried on forks |
//! | `omniscient` | bound: a sender that sees the trace |

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use trimtab_cc::{ALGORITHMS, Spec, SpecError};

pub use bound::SelectBound;
pub use every::{EveryError, every, how};
pub use mortise::{MORTISE_SETTINGS, MortiseSettings, PaperSettings, TunerSettings};
pub use muses::{MusesPolicy, MusesSettings, PolicyError};
pub use plugin::{PluginKind, PluginNameError, PluginSettings};
pub use resume::{ResumeError, Resuming};
pub use rival::{RivalName, RivalSettings};
pub use selection::{By, CANDIDATES, LearntModel, Selection, candidates};
pub use stack::{StackCc, StackCcError};
pub use steering::{Demand, Goal};
pub use table::{Role, SCHEMES, SchemeEntry};
pub use turns::{Turns, TurnsError};

use bound::BoundError;
use mortise::MortiseError;
use muses::MusesError;
use rival::RivalTextError;
use selection::SelectionError;

mod bound;
mod every;
mod mortise;
mod muses;
mod plugin;
mod resume;
mod rival;
mod selection;
mod stack;
mod steering;
mod table;
mod turns;

/// The name of the bound that sees the trace.
pub const OMNISCIENT: &str = "omniscient";

/// The name of the preset that imitates Linux.
const LINUX: &str = "linux";

/// A scheme: what it is, and how the user called it.
#[derive(Clone, Debug)]
pub struct Scheme {
    label: String,
    kind: SchemeKind,
}

/// What a scheme is.
#[derive(Clone, Debug)]
pub enum SchemeKind {
    /// An algorithm whose knobs stay as they are.
    Rule(Spec),
    /// Mortise: Copa's δ follows the application's preference.
    Mortise(MortiseSettings),
    /// Mortise as it was published: Copa's δ alone, by the paper's controller.
    Paper(PaperSettings),
    /// Mortise for another algorithm, whose boldness follows the application's preference.
    Tuner(TunerSettings),
    /// Algorithms that take over from each other, whatever the path is like (Floo §5.5.1).
    Switch(Turns),
    /// The algorithm is chosen while the flow runs (Floo).
    Select(Selection),
    /// A policy learnt by imitation multiplies the window (Muses).
    Muses(MusesSettings),
    /// An algorithm from outside, which the host loads.
    Plugin(PluginSettings),
    /// A rival that goes by a file.
    Rival(RivalSettings),
    /// An algorithm of a QUIC stack's own, as a rival and a yardstick.
    Stack(StackCc),
    /// Connections start near the rate of an earlier one (RFC 9959), and another scheme governs
    /// them.
    Resume(Resuming),
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

/// Why a text names no scheme.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{text:?}: {problem}")]
pub struct SchemeError {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("unknown congestion control; {}there are {}; `trimtab cc list` describes them", hint(.suggestion), names().join(", "))]
    Unknown { suggestion: Option<String> },
    #[error("{0}")]
    Spec(SpecError),
    #[error(transparent)]
    Mortise(#[from] MortiseError),
    #[error("it takes an algorithm, e.g. {0}:copa")]
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
    Plugin(#[from] PluginNameError),
    #[error(transparent)]
    Rival(#[from] RivalTextError),
    #[error(transparent)]
    Stack(#[from] StackCcError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Bound(#[from] BoundError),
    #[error("it takes no settings")]
    NoSettings,
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or(String::new(), |s| format!("did you mean {s}? "))
}

/// Every name that a scheme can begin with.
fn names() -> Vec<&'static str> {
    ALGORITHMS.iter().map(|a| a.name).chain(SCHEMES.iter().map(|s| s.name)).collect()
}

impl Scheme {
    /// How the user called it; names its runs.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What it is.
    pub fn kind(&self) -> &SchemeKind {
        &self.kind
    }

    /// The same as Linux has it: the preset `linux` of an algorithm that has one, where no knob is set. The name
    /// stays.
    #[must_use]
    pub fn as_in_linux(&self) -> Self {
        let mut same = self.clone();
        if let SchemeKind::Resume(resuming) = &mut same.kind {
            *resuming.scheme = resuming.scheme.as_in_linux();
        }
        if let SchemeKind::Rule(spec) = &mut same.kind
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
        let SchemeKind::Rule(spec) = &self.kind else { return false };
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

/// Whether the scheme of this name is a bound that no real sender can reach. Reports are drawn
/// from records, which hold names only.
pub fn is_bound(label: &str) -> bool {
    has_role(label, Role::Bound)
}

/// Whether the scheme of this name is steered.
pub fn is_steered(label: &str) -> bool {
    has_role(label, Role::Steering)
}

fn has_role(label: &str, role: Role) -> bool {
    let name = resume::governing(label).split(':').next().unwrap_or_default();
    SCHEMES.iter().any(|entry| entry.role == role && entry.key() == name)
}

impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Self, SchemeError> {
        let text = text.trim();
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let entry = entry_of(name, rest.split(':').next().unwrap_or_default());
        let kind = match entry {
            Some((entry, true)) => (entry.parse)(rest.split_once(':').map_or("", |(_, rest)| rest)),
            Some((entry, false)) => (entry.parse)(rest),
            None => rule(text).map(SchemeKind::Rule),
        };
        let fail = |problem| SchemeError { text: text.to_owned(), problem };
        Ok(Self { label: text.to_owned(), kind: kind.map_err(fail)? })
    }
}

/// The entry of a name, and whether the first setting is a part of its name: `oracle:select` is
/// another scheme than `oracle:CC`.
fn entry_of(name: &str, first: &str) -> Option<(&'static SchemeEntry, bool)> {
    let of = |entry: &SchemeEntry| (entry.key() == name).then(|| entry.second());
    let two = SCHEMES.iter().find(|e| of(e).flatten().is_some_and(|second| second == first));
    let one = || SCHEMES.iter().find(|e| of(e) == Some(None));
    two.map(|entry| (entry, true)).or_else(|| one().map(|entry| (entry, false)))
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

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.label)
    }
}

impl<'de> Deserialize<'de> for Scheme {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::Duration;

    use super::*;

    fn parse(text: &str) -> Result<Scheme, String> {
        text.parse().map_err(|e: SchemeError| e.to_string())
    }

    #[test]
    fn steering_and_bounds_parse() {
        assert!(matches!(parse("newreno").unwrap().kind(), SchemeKind::Rule(_)));
        let Ok(Scheme { kind: SchemeKind::Mortise(m), .. }) = parse("mortise:sigma=0.3,cpd=0")
        else {
            panic!("mortise is a scheme");
        };
        let set = MortiseSettings { sigma: 0.3, change_point_detection: false, discrete: false };
        assert_eq!(m, set);
        assert!(parse("mortise").unwrap().is_steered());
        let copa = parse("mortise:copa,sigma=0.3,cpd=0").unwrap();
        assert!(matches!(copa.kind(), SchemeKind::Mortise(m) if *m == set));
        for (text, name, sigma) in [
            ("mortise:bbr3", "bbr3", 0.5),
            ("mortise:vivace", "vivace", 0.5),
            ("mortise:gcc", "gcc", 0.5),
            ("mortise:cubic,sigma=0.3", "cubic", 0.3),
        ] {
            let scheme = parse(text).unwrap();
            let SchemeKind::Tuner(t) = scheme.kind() else { panic!("{text} is a scheme") };
            assert_eq!((t.tuned.name(), t.sigma), (name, sigma));
            assert!(matches!(scheme.kind().demand(), Demand::Knobs(of) if of == name));
            assert!(scheme.is_steered() && scheme.to_string() == text);
        }
        for (text, sigma, change_points) in [
            ("mortise:paper", 0.5, true),
            ("mortise:paper,cpd=0", 0.5, false),
            ("mortise:paper,sigma=0.3", 0.3, true),
        ] {
            let scheme = parse(text).unwrap();
            let SchemeKind::Paper(set) = scheme.kind() else { panic!("{text} is a scheme") };
            assert_eq!((set.sigma, set.change_points), (sigma, change_points));
            assert!(matches!(scheme.kind().demand(), Demand::Knobs("copa")));
            assert!(scheme.is_steered() && scheme.to_string() == text);
        }
        assert!(parse("omniscient").unwrap().is_bound());
        for steered in
            ["floo", "floo+mortise", "select:power", "select:antelope", "select:antelope:copa"]
        {
            assert!(parse(steered).unwrap().is_steered() && !is_bound(steered), "{steered}");
        }
        let every = parse("oracle:select:every=6s").unwrap();
        assert!(
            matches!(every.kind(), SchemeKind::OracleSelect(b) if b.every == Duration::from_secs(6))
        );
        assert!(every.is_bound() && parse("static-best").unwrap().is_bound());
        assert!(is_bound("static-best:cubic,copa") && is_bound("oracle:select:cubic,copa:mvfst"));
        assert!(is_bound("oracle:copa") && is_bound("oracle-dynamic:copa:mit"));
        assert!(!is_bound("copa:mit") && !is_bound("mortise") && !is_steered("copa"));
        let resumed = parse("resume:mortise:sigma=0.3").unwrap();
        assert!(resumed.is_steered() && !resumed.is_bound());
        assert!(matches!(resumed.kind().demand(), Demand::Start));
        assert!(matches!(resumed.kind().governing(), SchemeKind::Mortise(_)));
        assert!(!is_steered("resume:max_jump=100:cubic"));
        let turns = parse("switch:cubic,bbr:every=5s:part").unwrap();
        assert!(matches!(turns.kind(), SchemeKind::Switch(t) if t.specs.len() == 2));
        assert!(!turns.is_steered() && !turns.is_bound() && !is_steered(turns.label()));
        for learnt in ["muses", "muses:wide", "muses:lstm", "treeg:safe=copa:mit"] {
            let scheme = parse(learnt).unwrap();
            assert!(!scheme.is_steered() && !scheme.is_bound(), "{learnt}");
        }
        assert_eq!(parse(" newreno ").unwrap().to_string(), "newreno");
    }

    #[test]
    fn linux_has_one_form_of_an_algorithm() {
        let cubic = parse("cubic").unwrap();
        let SchemeKind::Rule(spec) = cubic.as_in_linux().kind else { panic!("a rule") };
        let named = parse("cubic:linux").unwrap();
        assert!(matches!(named.kind(), SchemeKind::Rule(s) if s.settings() == spec.settings()));
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
        assert!(e.contains("no setting \"gamma\", only sigma, cpd"), "{e}");
        let e = parse("mortise:reno").unwrap_err();
        assert!(e.contains("but copa (the default), paper, bbr3, vivace, cubic"), "{e}");
        let e = parse("mortise:paper,sigma=2").unwrap_err();
        assert!(e.contains("sigma = 2 is outside its range 0 to 1"), "{e}");
        let e = parse("mortise:paper,delta=1").unwrap_err();
        assert!(e.contains("no setting \"delta\", only sigma, cpd"), "{e}");
        let e = parse("mortise:paper:cpd=0").unwrap_err();
        assert!(e.contains("no setting \"paper:cpd\", only sigma, cpd"), "{e}");
        let e = parse("mortise:bbr3,cpd=0").unwrap_err();
        assert!(e.contains("no setting \"cpd\", only sigma"), "{e}");
        let e = parse("mortise:bbr3,sigma=2").unwrap_err();
        assert!(e.contains("sigma = 2 is outside its range"), "{e}");
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
        assert!(e.contains("write e.g. cubic,bbr,copa:mvfst"), "{e}");
        assert!(parse("static-best:copa").unwrap_err().contains("2 to 16 algorithms"));
        assert!(parse("muses:forest").unwrap_err().contains("there are lstm, wide, model=FILE"));
        let e = parse("oracle").unwrap_err();
        assert!(e.contains("oracle:copa"), "{e}");
        let e = parse("oracle:westwood").unwrap_err();
        assert!(e.contains("westwood has no knob to search over"), "{e}");
        assert!(parse("omniscient:1").unwrap_err().contains("takes no settings"));
    }
}
