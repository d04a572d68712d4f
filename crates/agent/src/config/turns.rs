//! Rules whose connections run several algorithms: in turn, the one that does best, or the one that a policy chooses.

use std::path::Path;

use toml::Spanned;
use trimtab_cc::migrate::Switch;
use trimtab_datapath::Algorithm;
use trimtab_steer::Utility;
use trimtab_steer::select::PERIOD;
use trimtab_units::Duration;

use super::error::{ConfigError, Source};
use super::learnt::Learnt;
use super::raw::RawRule;

/// What `select` says where a learnt policy chooses.
const LEARNT: &str = "floo";

/// More than a few switches a second show nothing of either algorithm.
const EVERY_MIN: Duration = Duration::from_millis(200);

/// Algorithms in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Two at least, each other than the next.
    pub algorithms: Vec<Algorithm>,
    /// How long each runs, or how often one is chosen.
    pub every: Duration,
    /// What goes over.
    pub how: Switch,
    /// What chooses the next one; `None`: it is the next of the list.
    pub select: Option<Select>,
}

/// What chooses among algorithms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// What is to be large on the path (Floo Table 1).
    Rule(Utility),
    /// A learnt policy (Floo).
    Learnt(Learnt),
}

impl Turns {
    /// The one that connections begin with, where nobody chose another.
    pub(crate) fn first(&self) -> Algorithm {
        self.algorithms[0]
    }

    /// The algorithms, beginning with this one; `None` when it is none of them.
    pub(crate) fn from(&self, running: Algorithm) -> Option<Vec<Algorithm>> {
        let place = self.algorithms.iter().position(|algorithm| *algorithm == running)?;
        let mut all = self.algorithms.clone();
        all.rotate_left(place);
        Some(all)
    }
}

/// What a rule says of turns, if anything.
pub(super) fn check(
    source: &Source<'_>,
    raw: &RawRule,
    has_trees: bool,
) -> Result<Option<Turns>, ConfigError> {
    let fail = |at: usize, what: &str| Err(source.error(at, what));
    let Some(first) = raw.turns.first() else {
        let of_trees = [&raw.model, &raw.safe].into_iter().filter(|_| !has_trees);
        let texts = [&raw.switch, &raw.select].into_iter().chain(of_trees);
        let others = texts.flatten().map(|text| text.span().start);
        return match others.chain(raw.every.as_ref().map(|every| every.span().start)).next() {
            Some(at) => fail(
                at,
                "every, switch, select, model and safe say how turns are taken: give turns, as [\"copa\", \"cubic\"]",
            ),
            None => Ok(None),
        };
    };
    let at = first.span().start;
    let algorithms: Vec<Algorithm> = raw
        .turns
        .iter()
        .map(|name| super::algorithm_named(source, name))
        .collect::<Result<_, _>>()?;
    if algorithms.iter().any(Algorithm::asks_trees) {
        return fail(
            at,
            "muses takes no turns: give steer = \"muses\" without turns, and name the fallback by safe",
        );
    }
    let again = algorithms.iter().skip(1).chain(&algorithms[..1]);
    if algorithms.iter().zip(again).any(|(one, next)| one == next) {
        return fail(at, "turns need two algorithms at least, and neighbours must differ");
    }
    if let Some(name) =
        raw.algorithm.as_ref().filter(|name| *name.get_ref() != algorithms[0].name())
    {
        return fail(
            name.span().start,
            "connections begin with the first of turns: leave algorithm out",
        );
    }
    let how = match raw.switch.as_ref().map(|how| (how.get_ref().as_str(), how.span().start)) {
        None | Some(("full", _)) => Switch::Full,
        Some(("part", _)) => Switch::Part,
        Some((_, at)) => {
            return fail(at, "switch is \"full\" (nothing is lost) or \"part\" (the window alone)");
        }
    };
    let select = select(source, raw, &algorithms)?;
    let every = match (&raw.every, &select) {
        (Some(every), _) if every.get_ref().0 >= EVERY_MIN => every.get_ref().0,
        // A learnt policy knows how often it wants to choose.
        (None, Some(Select::Learnt(learnt))) => {
            learnt.model.as_ref().map_or(PERIOD, |model| model.period())
        }
        (every, _) => {
            let at = every.as_ref().map_or(at, |every| every.span().start);
            return fail(at, "turns need a length: give every, e.g. \"20s\", 200ms or more");
        }
    };
    Ok(Some(Turns { algorithms, every, how, select }))
}

/// What a rule says of how the next one is chosen.
fn select(
    source: &Source<'_>,
    raw: &RawRule,
    algorithms: &[Algorithm],
) -> Result<Option<Select>, ConfigError> {
    let fail = |text: &Spanned<String>, what: &str| Err(source.error(text.span().start, what));
    let learns = raw.select.as_ref().is_some_and(|name| name.get_ref() == LEARNT);
    if !learns && let Some(of_learnt) = raw.model.as_ref().or(raw.safe.as_ref()) {
        return fail(of_learnt, "model and safe belong to a learnt policy: give select = \"floo\"");
    }
    let Some(name) = &raw.select else { return Ok(None) };
    if learns {
        let Some(file) = &raw.model else {
            return fail(
                name,
                "a learnt policy needs its file: give model, e.g. \"floo.safetensors\"",
            );
        };
        let safe = match &raw.safe {
            None => algorithms[0],
            Some(name) => {
                let safe = super::algorithm_named(source, name)?;
                if !algorithms.contains(&safe) {
                    return fail(name, "the fallback has to be one of turns");
                }
                safe
            }
        };
        // A relative path starts at the folder of the configuration.
        let file = source.path.parent().unwrap_or(Path::new("")).join(file.get_ref());
        return Ok(Some(Select::Learnt(Learnt::read(&file, algorithms, safe))));
    }
    let known = Utility::ALL.iter().find(|(known, _)| known == name.get_ref());
    let Some((_, utility)) = known else {
        let known = Utility::ALL.map(|(name, _)| name).join(", ");
        let what =
            format!("no utility is called {:?}: give one of {known}, or {LEARNT}", name.get_ref());
        return fail(name, &what);
    };
    Ok(Some(Select::Rule(*utility)))
}
