//! What a scheme needs of its host, and what steers a flow of it. Hosts ask here and name no scheme.

use trimtab_cc::Spec;
use trimtab_qoe::{Factors, Model};

use super::{By, LearntModel, MortiseSettings, MusesPolicy, MusesSettings, SchemeKind, StackCc};
use crate::select::{Policy, Selector, SelectorConfig};
use crate::{Both, Mortise, PaperMortise, Schedule, Steerer, Tuner, Unusable};

/// What a scheme needs of the datapath that runs it.
#[derive(Clone, Debug)]
pub enum Demand<'a> {
    /// An algorithm, whose knobs stay as they are.
    Algorithm(&'a Spec),
    /// The algorithm of this name, whose knobs are turned while it runs.
    Knobs(&'static str),
    /// Algorithms that take over from each other on a running flow.
    Switching,
    /// Trees, which the datapath asks.
    Trees(&'a MusesSettings),
    /// A network, or a rival's table, which needs floating point.
    Network,
    /// A file of the user's, which the datapath's host loads.
    Plugin,
    /// The QUIC stack whose own algorithm it is.
    Stack(StackCc),
    /// Connections whose start is Trimtab's: another window before the path is known.
    Start,
    /// Copies of the world, or its future.
    Foresight,
}

/// What a flow is steered for, and by what was learnt.
#[derive(Clone, Copy)]
pub struct Goal<'a> {
    /// What the application's users like.
    pub model: &'a Model,
    /// The values of the model's factors.
    pub factors: Factors,
    /// What was read for a scheme that is learnt.
    pub learnt: &'a dyn Fn(&By) -> Result<LearntModel, Unusable>,
    /// Whether the datapath runs an algorithm with its knobs; what it does not is never chosen.
    pub runs: &'a dyn Fn(&Spec) -> bool,
}

impl SchemeKind {
    /// What it needs of a datapath.
    pub fn demand(&self) -> Demand<'_> {
        match self {
            Self::Rule(spec) => Demand::Algorithm(spec),
            Self::Mortise(_) => Demand::Knobs(Mortise::algorithm().algorithm().name),
            Self::Paper(_) => Demand::Knobs(PaperMortise::algorithm().algorithm().name),
            Self::Tuner(settings) => Demand::Knobs(settings.tuned.name()),
            Self::Switch(_) | Self::Select(_) => Demand::Switching,
            Self::Muses(settings) if settings.learnt == MusesPolicy::Lstm => Demand::Network,
            Self::Rival(_) => Demand::Network,
            Self::Muses(settings) => Demand::Trees(settings),
            Self::Plugin(_) => Demand::Plugin,
            Self::Stack(cc) => Demand::Stack(*cc),
            Self::Resume(_) => Demand::Start,
            Self::Oracle(_)
            | Self::OracleDynamic(_)
            | Self::StaticBest(_)
            | Self::OracleSelect(_)
            | Self::Omniscient => Demand::Foresight,
        }
    }

    /// What governs a flow once it has started: this, or the scheme that resumes.
    pub fn governing(&self) -> &Self {
        match self {
            Self::Resume(resuming) => resuming.scheme.kind(),
            kind => kind,
        }
    }

    /// The algorithm with which a flow begins, and what steers it; `None` leaves it alone.
    ///
    /// # Panics
    /// The host governs such flows itself: Muses, rivals with a file, plug-ins, those of a stack, and
    /// the omniscient sender.
    pub fn steering(&self, goal: &Goal<'_>) -> (Spec, Option<Steerer>) {
        match self {
            Self::Rule(spec) | Self::Oracle(spec) | Self::OracleDynamic(spec) => (*spec, None),
            Self::Mortise(settings) => {
                let steerer = Steerer::Mortise(Box::new(goal.mortise(*settings)));
                (Mortise::algorithm(), Some(steerer))
            }
            Self::Paper(settings) => {
                let mut config = settings.config(goal.model.clone());
                config.factors = goal.factors;
                let steerer = Steerer::Paper(Box::new(PaperMortise::new(config)));
                (PaperMortise::algorithm(), Some(steerer))
            }
            Self::Tuner(settings) => {
                let mut config = settings.config(goal.model.clone());
                config.factors = goal.factors;
                let tuner = Tuner::new(settings.tuned, config);
                (tuner.algorithm(), Some(Steerer::Tuner(Box::new(tuner))))
            }
            Self::Select(selection) => {
                let selector = selection.selector(&(goal.learnt)(&selection.by), goal.runs);
                let spec = selector.algorithm();
                let steerer = if selection.tuned {
                    let tuner = goal.mortise(MortiseSettings::default());
                    Steerer::Both(Box::new(Both::new(selector, tuner)))
                } else {
                    Steerer::Select(Box::new(selector))
                };
                (spec, Some(steerer))
            }
            Self::StaticBest(bound) | Self::OracleSelect(bound) => {
                let config = SelectorConfig::new(bound.candidates.clone(), Policy::External);
                let selector = Selector::new(config);
                (selector.algorithm(), Some(Steerer::Select(Box::new(selector))))
            }
            Self::Switch(turns) => {
                let schedule = Schedule::new(turns.specs.clone(), turns.every, turns.how);
                (turns.specs[0], Some(Steerer::Schedule(schedule)))
            }
            Self::Resume(resuming) => resuming.scheme.kind().steering(goal),
            Self::Muses(_)
            | Self::Rival(_)
            | Self::Plugin(_)
            | Self::Stack(_)
            | Self::Omniscient => {
                unreachable!("the host governs these flows itself")
            }
        }
    }
}

impl Goal<'_> {
    fn mortise(&self, settings: MortiseSettings) -> Mortise {
        let mut config = settings.config(self.model.clone());
        config.factors = self.factors;
        Mortise::new(config)
    }
}
