//! From a scheme to an algorithm and what steers it, the same on every datapath.

use trimtab_cc::Spec;
use trimtab_steer::scheme::{MortiseSettings, SchemeKind};
use trimtab_steer::select::{Policy, Selector, SelectorConfig};
use trimtab_steer::{Both, Mortise, MortiseConfig, Schedule, Steerer};

use crate::run::prepare::{Prepared, PreparedApp};

impl Prepared {
    /// The algorithm with which a flow of a scheme begins, and what steers it for an application;
    /// `None` leaves it alone.
    ///
    /// # Panics
    /// The scheme governs flows in another way: Muses, or the omniscient sender.
    pub fn steering(&self, kind: &SchemeKind, app: &PreparedApp) -> (Spec, Option<Steerer>) {
        match kind {
            SchemeKind::Rule(spec) | SchemeKind::Oracle(spec) | SchemeKind::OracleDynamic(spec) => {
                (*spec, None)
            }
            SchemeKind::Mortise(settings) => tuned(*settings, false, app),
            SchemeKind::MortiseDisc(settings) => tuned(*settings, true, app),
            SchemeKind::Select(selection) => {
                selected(self.selector(selection), selection.tuned, app)
            }
            SchemeKind::StaticBest(bound) | SchemeKind::OracleSelect(bound) => {
                let config = SelectorConfig::new(bound.candidates.clone(), Policy::External);
                selected(Selector::new(config), false, app)
            }
            SchemeKind::Switch(turns) => {
                let schedule = Schedule::new(turns.specs.clone(), turns.every, turns.how);
                (turns.specs[0], Some(Steerer::Schedule(schedule)))
            }
            SchemeKind::Muses(_) | SchemeKind::Omniscient => {
                unreachable!("the datapath governs these flows itself")
            }
        }
    }
}

/// What a selector chooses; tuned where it is Copa.
fn selected(selector: Selector, tuned: bool, app: &PreparedApp) -> (Spec, Option<Steerer>) {
    let spec = selector.algorithm();
    let steerer = if tuned {
        let tuner = mortise(MortiseSettings::default(), false, app);
        Steerer::Both(Box::new(Both::new(selector, tuner)))
    } else {
        Steerer::Select(Box::new(selector))
    };
    (spec, Some(steerer))
}

/// Copa, steered.
fn tuned(settings: MortiseSettings, discrete: bool, app: &PreparedApp) -> (Spec, Option<Steerer>) {
    let steerer = Steerer::Mortise(Box::new(mortise(settings, discrete, app)));
    (Mortise::algorithm(), Some(steerer))
}

/// Mortise for an application, or `mortise-disc`.
fn mortise(settings: MortiseSettings, discrete: bool, app: &PreparedApp) -> Mortise {
    let mut config = MortiseConfig::new(app.model.clone());
    config.factors = app.factors;
    config.sigma = settings.sigma;
    config.change_points = settings.change_point_detection;
    config.discrete = discrete;
    Mortise::new(config)
}
