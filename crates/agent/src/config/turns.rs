//! Rules whose connections run several algorithms: in turn, the one that does best, or the one that
//! a policy chooses. They are schemes; a rule names them in `steer`, or by keys of their own.

use toml::Spanned;
use trimtab_cc::Spec;
use trimtab_cc::migrate::Switch;
use trimtab_datapath::Algorithm;
use trimtab_steer::Utility;
use trimtab_steer::scheme::{self, By, SchemeKind, Selection};
use trimtab_steer::select::PERIOD;
use trimtab_units::Duration;

use super::error::{ConfigError, Source};
use super::learnt::Learnt;
use super::raw::RawRule;
use super::steering::Named;

/// The value of the key `select` where a learnt policy chooses.
const LEARNT: &str = "floo";

/// Algorithms in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Two at least, each other than the next.
    pub algorithms: Vec<Algorithm>,
    /// How long each runs, or how often one is chosen.
    pub every: Duration,
    /// What goes over.
    pub how: Switch,
    /// How long after a choice the connection is looked at, to go back; `None` for never.
    pub look: Option<Duration>,
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

    /// The turns of a rule, if it has any.
    pub(super) fn read(
        source: &Source<'_>,
        raw: &RawRule,
        named: Option<&Named>,
    ) -> Result<Option<Self>, ConfigError> {
        let listed = listed(source, raw)?;
        let by_keys;
        let named = match named.filter(|named| named.takes_turns()) {
            Some(named) => named,
            None if listed.is_empty() => return no_turns(source, raw, named),
            None => {
                by_keys = of_keys(source, raw)?;
                &by_keys
            }
        };
        let turns = named.turns(source, &listed)?;
        let begins = raw.algorithm.as_ref();
        match (begins.filter(|name| *name.get_ref() != turns.first().name()), raw.turns.first()) {
            (Some(name), Some(_)) => {
                let what = "connections begin with the first of turns: leave algorithm out";
                Err(source.error(name.span().start, what))
            }
            (Some(name), None) => {
                let what =
                    format!("connections begin with {}: leave algorithm out", turns.first().name());
                Err(source.error(name.span().start, &what))
            }
            (None, _) => Ok(Some(turns)),
        }
    }
}

/// The algorithms of the key `turns`.
fn listed(source: &Source<'_>, raw: &RawRule) -> Result<Vec<Algorithm>, ConfigError> {
    let Some(first) = raw.turns.first() else { return Ok(Vec::new()) };
    let at = first.span().start;
    let named = raw.turns.iter().map(|name| super::algorithm_named(source, name));
    let algorithms: Vec<Algorithm> = named.collect::<Result<_, _>>()?;
    if algorithms.iter().any(Algorithm::asks_trees) {
        let what = "muses takes no turns: give steer = \"muses\" without turns, and name the fallback by safe";
        return Err(source.error(at, what));
    }
    let specs = algorithms.iter().filter_map(|algorithm| Spec::new(algorithm.name())).collect();
    let checked = scheme::Turns::new(specs);
    checked.map_err(|problem| source.error(at, &format!("turns: {problem}")))?;
    Ok(algorithms)
}

/// Without turns, keys of turns are mistakes.
fn no_turns(
    source: &Source<'_>,
    raw: &RawRule,
    named: Option<&Named>,
) -> Result<Option<Turns>, ConfigError> {
    let has_trees = named.is_some_and(|named| matches!(named.kind, SchemeKind::Muses(_)));
    let of_trees = [&raw.model, &raw.safe].into_iter().filter(|_| !has_trees);
    let texts = [&raw.switch, &raw.select].into_iter().chain(of_trees);
    let others = texts.flatten().map(|text| text.span().start);
    match others.chain(raw.every.as_ref().map(|every| every.span().start)).next() {
        Some(at) => Err(source.error(
            at,
            "every, switch, select, model and safe say how turns are taken: give turns, e.g. \
             [\"copa\", \"cubic\"]",
        )),
        None => Ok(None),
    }
}

/// The scheme that a rule names by its keys: `turns` and how they are taken.
fn of_keys(source: &Source<'_>, raw: &RawRule) -> Result<Named, ConfigError> {
    let at = raw.turns.first().map_or(0, |name| name.span().start);
    let fail = |text: &Spanned<String>, what: &str| Err(source.error(text.span().start, what));
    let every = match &raw.every {
        None => None,
        Some(text) => Some(
            scheme::every(text.get_ref().0)
                .map_err(|problem| source.error(text.span().start, &problem.to_string()))?,
        ),
    };
    let how = match &raw.switch {
        None => Switch::Full,
        Some(text) => match scheme::how(text.get_ref()) {
            Some(how) => how,
            None => {
                let what = "switch is \"full\" (nothing is lost) or \"part\" (the window alone)";
                return fail(text, what);
            }
        },
    };
    let by = select(source, raw)?;
    if every.is_none() && !matches!(by, Some(By::Model(_))) {
        let what = "turns need a length: give every, e.g. \"20s\", 1ms or more";
        return Err(source.error(at, what));
    }
    let Some(by) = by else {
        // They were checked where they are listed.
        let specs = raw.turns.iter().filter_map(|name| Spec::new(name.get_ref())).collect();
        let every = every.unwrap_or(PERIOD);
        return Ok(Named { kind: SchemeKind::Switch(scheme::Turns { specs, every, how }), at });
    };
    let safe = match &raw.safe {
        None => None,
        Some(name) => Spec::new(super::algorithm_named(source, name)?.name()),
    };
    let at = raw.safe.as_ref().map_or(at, |name| name.span().start);
    let selection = Selection { every, how, safe, ..Selection::by(by) };
    Ok(Named { kind: SchemeKind::Select(selection), at })
}

/// What chooses among the turns of a rule, by its keys.
fn select(source: &Source<'_>, raw: &RawRule) -> Result<Option<By>, ConfigError> {
    let fail = |text: &Spanned<String>, what: &str| Err(source.error(text.span().start, what));
    let learns = raw.select.as_ref().is_some_and(|name| name.get_ref() == LEARNT);
    if !learns && let Some(of_learnt) = raw.model.as_ref().or(raw.safe.as_ref()) {
        return fail(of_learnt, "model and safe belong to a learnt policy: give select = \"floo\"");
    }
    let Some(name) = &raw.select else { return Ok(None) };
    if learns {
        let what = "a learnt policy needs its file: give model, e.g. \"floo.safetensors\"";
        return match &raw.model {
            Some(file) => Ok(Some(By::Model(file.get_ref().into()))),
            None => fail(name, what),
        };
    }
    let known = Utility::ALL.iter().find(|(known, _)| known == name.get_ref());
    let Some((_, utility)) = known else {
        let known = Utility::ALL.map(|(name, _)| name).join(", ");
        let what =
            format!("no utility is called {:?}: give one of {known}, or {LEARNT}", name.get_ref());
        return fail(name, &what);
    };
    Ok(Some(By::Rule(*utility)))
}

impl Named {
    /// Whether it has several algorithms.
    fn takes_turns(&self) -> bool {
        matches!(self.kind, SchemeKind::Switch(_) | SchemeKind::Select(_))
    }

    /// What the scheme is on this datapath, with the algorithms that the rule lists.
    fn turns(&self, source: &Source<'_>, listed: &[Algorithm]) -> Result<Turns, ConfigError> {
        let fail = |what: &str| Err(source.error(self.at, what));
        let selection = match &self.kind {
            SchemeKind::Select(selection) => selection,
            SchemeKind::Switch(turns) => {
                let of = |spec: &Spec| super::known_algorithm(spec.algorithm().name);
                let all = turns.specs.iter().map(of).collect::<Result<Vec<_>, _>>();
                let algorithms = all.map_err(|what| source.error(self.at, &what))?;
                if !listed.is_empty() && algorithms != listed {
                    return fail("turns and steer name different algorithms: leave turns out");
                }
                let turns = Turns {
                    algorithms,
                    every: turns.every,
                    how: turns.how,
                    look: None,
                    select: None,
                };
                return Ok(turns);
            }
            _ => unreachable!("it has several algorithms"),
        };
        if selection.tuned {
            return fail("the agent does not run floo+mortise: give floo or mortise");
        }
        let algorithms = if listed.is_empty() { candidates() } else { listed.to_vec() };
        let select = match &selection.by {
            By::Antelope(_) => {
                return fail("the agent does not run select:antelope: give floo or select:power");
            }
            By::Rule(utility) => Select::Rule(*utility),
            by @ (By::Shipped(_) | By::Model(_)) => {
                let safe = match &selection.safe {
                    None => algorithms[0],
                    Some(spec) if !spec.settings().is_empty() => {
                        return fail("the fallback runs with its defaults: name it without knobs");
                    }
                    Some(spec) => {
                        let is = |one: &&Algorithm| one.name() == spec.algorithm().name;
                        match algorithms.iter().find(is) {
                            Some(safe) => *safe,
                            None => return fail("the fallback has to be one of turns"),
                        }
                    }
                };
                Select::Learnt(Learnt::read(by, source.folder(), &algorithms, safe))
            }
        };
        let of_model = match &select {
            Select::Learnt(learnt) => learnt.model.as_ref().ok().map(|model| model.period()),
            Select::Rule(_) => None,
        };
        let every = selection.every.or(of_model).unwrap_or(PERIOD);
        let (how, look) = (selection.how, selection.look);
        Ok(Turns { algorithms, every, how, look, select: Some(select) })
    }
}

/// The candidates of rules and policies, as far as this datapath has them.
fn candidates() -> Vec<Algorithm> {
    scheme::CANDIDATES.iter().filter_map(|name| crate::datapath::algorithm(name)).collect()
}
