//! What steers the connections of a rule: a scheme by its text, the engine of a fleet, or nothing.

use trimtab_datapath::Algorithm;
use trimtab_qoe::Model;
use trimtab_steer::scheme::{Demand, MortiseSettings, Scheme, SchemeKind};

use super::error::{ConfigError, Source};
use super::fleet::{Customized, FLEET};
use super::forest::Forest;
use super::raw::RawRule;
use super::turns::{Select, Turns};
use super::{TUNED, fleet, known_algorithm};
use crate::datapath;

/// What steers a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Steering {
    /// δ by the gradient of QoE (NSDI 2026).
    Mortise(MortiseSettings),
    /// Algorithms in turn, whatever the path is like.
    Turns(Turns),
    /// The trees of Muses, of which one is chosen by where the connection's states lay (INFOCOM 2022).
    Muses(Forest),
    /// The engine of a fleet, which learns the knobs of each aggregate (paper 002).
    Fleet(Customized),
}

/// Values of knobs.
type Knobs = Vec<(&'static str, f64)>;

/// A scheme that a rule names, and where.
pub(super) struct Named {
    pub(super) kind: SchemeKind,
    pub(super) at: usize,
}

/// The parts of a rule's steering that say which algorithm it is about.
pub(super) struct Parts {
    named: Option<Named>,
    turns: Option<Turns>,
    forest: Option<Forest>,
    customized: Option<Customized>,
}

impl Named {
    /// The scheme of the key `steer`; the engine of a fleet is none.
    fn read(source: &Source<'_>, raw: &RawRule) -> Result<Option<Self>, ConfigError> {
        let Some(text) = raw.steer.as_ref() else { return Ok(None) };
        if [FLEET, "none"].contains(&text.get_ref().as_str()) {
            return Ok(None);
        }
        let at = text.span().start;
        let fail = |what: &str| source.error(at, what);
        let scheme: Scheme = text
            .get_ref()
            .parse()
            .map_err(|e| fail(&format!("{e}; a rule may also say \"{FLEET}\" or \"none\"")))?;
        let name = scheme.label();
        let refused = match scheme.kind().demand() {
            Demand::Knobs(_) if matches!(scheme.kind(), SchemeKind::Paper(_)) => Some(format!(
                "{name} is a control for comparisons, which the agent does not run: give \
                 steer = \"mortise\""
            )),
            Demand::Knobs(of) if matches!(scheme.kind(), SchemeKind::Tuner(_)) => Some(format!(
                "the agent steers no knobs of {of} by experience: give steer = \"mortise\", which \
                 steers {TUNED}"
            )),
            Demand::Knobs(_) | Demand::Switching | Demand::Trees(_) => None,
            Demand::Algorithm(_) => {
                Some(format!("{name} steers nothing: give it as algorithm = {name:?}"))
            }
            Demand::Network => Some(format!(
                "{name} needs floating point, which the kernel does not allow: give \
                 steer = \"muses\""
            )),
            Demand::Plugin => Some(format!(
                "{name} is a plug-in, which runs in comparisons only, not in the kernel"
            )),
            Demand::Stack(_) => {
                Some(format!("{name} is a QUIC stack's own, which the kernel does not have"))
            }
            Demand::Start => Some(format!(
                "{name} changes how connections start, which the kernel does by itself: give steer \
                 the scheme at its end"
            )),
            Demand::Foresight => {
                Some(format!("{name} is a bound, which only the simulator can compute"))
            }
        };
        match refused {
            Some(what) => Err(fail(&what)),
            None => Ok(Some(Self { kind: scheme.kind().clone(), at })),
        }
    }

    /// What says the same as the text of the scheme says already is a mistake.
    fn check_keys(&self, source: &Source<'_>, raw: &RawRule) -> Result<(), ConfigError> {
        let text = raw.steer.as_ref().map_or("", |text| text.get_ref());
        let of_trees = matches!(self.kind, SchemeKind::Muses(_));
        let has_settings = text.contains(':');
        let takes_turns = matches!(self.kind, SchemeKind::Switch(_) | SchemeKind::Select(_));
        let models = [&raw.model, &raw.safe];
        let models = models.into_iter().filter(|_| takes_turns || of_trees && has_settings);
        let others = [&raw.switch, &raw.select].into_iter().filter(|_| takes_turns);
        let texts = models.chain(others).flatten().map(|key| key.span().start);
        let every = raw.every.as_ref().filter(|_| takes_turns).map(|every| every.span().start);
        match texts.chain(every).next() {
            Some(at) => {
                let what = "the settings of a scheme stand in steer, e.g. \
                            steer = \"floo:every=20s:part\": move this there";
                Err(source.error(at, what))
            }
            None => Ok(()),
        }
    }
}

impl Parts {
    pub(super) fn read(source: &Source<'_>, raw: &RawRule) -> Result<Self, ConfigError> {
        let named = Named::read(source, raw)?;
        if let Some(named) = &named {
            named.check_keys(source, raw)?;
        }
        let forest = match named.as_ref().map(|named| (&named.kind, named.at)) {
            Some((SchemeKind::Muses(settings), at)) => {
                Some(Forest::read(source, raw, settings, at)?)
            }
            _ => None,
        };
        let customized = Customized::read(source, raw)?;
        let turns = Turns::read(source, raw, named.as_ref())?;
        Ok(Self { named, turns, forest, customized })
    }

    /// The algorithm that the rule is about.
    pub(super) fn algorithm(
        &self,
        source: &Source<'_>,
        raw: &RawRule,
    ) -> Result<Algorithm, ConfigError> {
        let name = match (&raw.algorithm, &self.turns, &self.named) {
            (Some(name), ..) => {
                let algorithm = super::algorithm_named(source, name)?;
                if algorithm.asks_trees() != self.forest.is_some() {
                    let what = "muses is its trees, and they are chosen: give both or neither of \
                                algorithm = \"muses\" and steer = \"muses\"";
                    return Err(source.error(name.span().start, what));
                }
                return Ok(algorithm);
            }
            (None, Some(turns), _) => return Ok(turns.first()),
            (None, None, _) if self.forest.is_some() => super::forest::MUSES,
            (None, None, _) if self.customized.is_some() => fleet::ALGORITHM,
            (None, None, Some(Named { kind, .. })) => match kind.demand() {
                Demand::Knobs(name) => name,
                _ => TUNED,
            },
            (None, None, None) => TUNED,
        };
        known_algorithm(name).map_err(|what| source.error(0, &what))
    }

    /// What steers connections that run this algorithm and are scored by this model.
    pub(super) fn steering(
        self,
        source: &Source<'_>,
        raw: &RawRule,
        algorithm: Algorithm,
        model: Option<&Model>,
    ) -> Result<Option<Steering>, ConfigError> {
        let fail = |at: usize, what: &str| Err(source.error(at, what));
        let at = raw.steer.as_ref().map_or(0, |text| text.span().start);
        if let (Some(Named { kind: SchemeKind::Mortise(settings), at }), turns) =
            (&self.named, &self.turns)
        {
            let tuned = trimtab_steer::Mortise::algorithm().algorithm().name;
            if model.is_none() {
                let what = "mortise needs a QoE model: give qoe, e.g. \"download\"";
                return fail(*at, what);
            }
            if turns.is_none() && algorithm.name() != tuned {
                let what = format!("mortise steers {tuned}, and not {}", algorithm.name());
                return fail(*at, &what);
            }
            if turns.is_some() {
                let what = "mortise steers one algorithm, and turns name several: give only one of the two";
                return fail(*at, what);
            }
            return Ok(Some(Steering::Mortise(*settings)));
        }
        match (self.turns, self.forest, self.customized) {
            (Some(_), Some(_), _) => {
                fail(at, "muses is one algorithm, and turns name several: give only one of the two")
            }
            (Some(_), _, Some(_)) => fail(
                at,
                "the engine of a fleet turns the knobs of one algorithm, and turns name several: \
                 give only one of the two",
            ),
            (Some(turns), None, None) => Ok(Some(Steering::Turns(turns))),
            (None, Some(forest), _) => Ok(Some(Steering::Muses(forest))),
            (None, None, Some(customized)) => Ok(Some(Steering::Fleet(customized))),
            (None, None, None) => match &self.named {
                Some(named) => fail(named.at, "the agent does not run this scheme"),
                None => Ok(None),
            },
        }
    }
}

impl Steering {
    /// What of its files cannot be used, and what is done about it.
    pub(super) fn trouble(&self) -> Option<String> {
        match self {
            Self::Turns(Turns { select: Some(Select::Learnt(learnt)), .. }) => learnt.trouble(),
            Self::Muses(forest) => forest.trouble(),
            _ => None,
        }
    }

    /// What is not as the rule names it, and need not be.
    pub(super) fn remark(&self) -> Option<String> {
        match self {
            Self::Turns(Turns { select: Some(Select::Learnt(learnt)), .. }) => learnt.masked(),
            _ => None,
        }
    }
}

/// The specification of an algorithm that takes over as the fallback, checked.
pub(super) fn checked_fallback(spec: &trimtab_cc::Spec) -> Result<(Algorithm, Knobs), String> {
    let name = spec.algorithm().name;
    let safe = datapath::algorithm(name).filter(|safe| safe.as_fallback().is_some());
    let safe = safe.ok_or("that algorithm is not safe: give copa, cubic, bbr or none")?;
    // CUBIC is Linux's there.
    let knobs = spec.settings().iter().filter(|(knob, _)| *knob != "linux").copied();
    let knobs: Knobs = knobs.collect();
    match knobs.iter().find(|(knob, _)| safe.knobs().iter().all(|has| has.name != *knob)) {
        Some((knob, _)) => Err(format!("safe={name}: in the kernel it has no knob {knob}")),
        None => Ok((safe, knobs)),
    }
}
