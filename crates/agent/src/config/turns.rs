//! Rules whose connections run several algorithms: in turn, or the one that does best.

use trimtab_cc::migrate::Switch;
use trimtab_steer::select::Utility;
use trimtab_tcp::Algorithm;
use trimtab_units::Duration;

use super::error::{ConfigError, Source};
use super::raw::RawRule;

/// More than a few switches a second show nothing of either algorithm.
const EVERY_MIN: Duration = Duration::from_millis(200);

/// Algorithms in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Two at least, each other than the next.
    pub algorithms: Vec<Algorithm>,
    /// How long each runs.
    pub every: Duration,
    /// What goes over.
    pub how: Switch,
    /// What is to be large: then the next one is that which does best, and not the next of the list.
    pub select: Option<Utility>,
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
pub(super) fn check(source: &Source<'_>, raw: &RawRule) -> Result<Option<Turns>, ConfigError> {
    let fail = |at: usize, what: &str| Err(source.error(at, what));
    let every = raw.every.as_ref().map(|every| (every.get_ref().0, every.span().start));
    let Some(first) = raw.turns.first() else {
        let others = [&raw.switch, &raw.select];
        let other = others.into_iter().flatten().map(|text| text.span().start).next();
        return match other.or(every.map(|(_, at)| at)) {
            Some(at) => fail(
                at,
                "every, switch and select say how turns are taken: give turns, as [\"copa\", \"cubic\"]",
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
    let again = algorithms.iter().skip(1).chain(&algorithms[..1]);
    if algorithms.iter().zip(again).any(|(one, next)| one == next) {
        return fail(at, "turns need two algorithms at least, each other than the next");
    }
    if let Some(name) =
        raw.algorithm.as_ref().filter(|name| *name.get_ref() != algorithms[0].name())
    {
        return fail(
            name.span().start,
            "connections begin with the first of turns: leave algorithm out",
        );
    }
    let Some((every, _)) = every.filter(|(every, _)| *every >= EVERY_MIN) else {
        let at = every.map_or(at, |(_, at)| at);
        return fail(
            at,
            "turns need to know how long each runs: give every, as \"20s\", 200ms or more",
        );
    };
    let how = match raw.switch.as_ref().map(|how| (how.get_ref().as_str(), how.span().start)) {
        None | Some(("full", _)) => Switch::Full,
        Some(("part", _)) => Switch::Part,
        Some((_, at)) => {
            return fail(at, "switch is \"full\" (nothing is lost) or \"part\" (the window alone)");
        }
    };
    let select = match &raw.select {
        None => None,
        Some(name) => {
            let known = Utility::ALL.iter().find(|(known, _)| known == name.get_ref());
            let Some((_, utility)) = known else {
                let known = Utility::ALL.map(|(name, _)| name).join(", ");
                let what =
                    format!("no utility is called {:?}: give one of {known}", name.get_ref());
                return fail(name.span().start, &what);
            };
            Some(*utility)
        }
    };
    Ok(Some(Turns { algorithms, every, how, select }))
}
