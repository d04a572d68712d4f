//! One run: a job, carried out, and its record.
//!
//! A run has two halves. How it is carried out is the datapath's matter: [`crate::run::course`] is that of
//! the simulator, the crate `trimtab-testbed` that of the kernel. What it comes to is the same for all: a
//! [`crate::run::record::Measurement`], of which [`crate::run::record`] makes the record.

pub mod course;
pub mod datapath;
pub mod links;
pub mod pool;
pub mod prepare;
pub mod record;
pub mod score;
pub mod selection;
mod suits;
pub mod switches;

use trimtab_sim::Control;
use trimtab_steer::select::{Policy, Selector, SelectorConfig};
use trimtab_steer::{Both, Mortise, MortiseConfig, Schedule, Steerer};

use crate::bound;
use crate::result::RunRecord;
use crate::run::course::Course;
use crate::run::datapath::Datapath;
use crate::run::prepare::{Prepared, PreparedApp};
use crate::run::record::{Measurement, record};
use crate::scenario::Job;
use trimtab_steer::scheme::{MortiseSettings, SchemeKind};

/// What a record keeps besides its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Every request or chunk.
    pub units: bool,
    /// The course over time.
    pub series: bool,
}

/// Runs a job in the simulator. The same job gives the same record, always.
pub fn run(prepared: &Prepared, job: &Job, recording: Recording) -> RunRecord {
    record(prepared, job, measure(prepared, job), recording, Datapath::Sim)
}

/// Carries out a job in the simulator.
pub fn measure(prepared: &Prepared, job: &Job) -> Measurement {
    let contender = &prepared.plan.scenario.cc[job.contender];
    match contender.kind() {
        SchemeKind::Oracle(spec) => bound::setting::constant(prepared, job, spec),
        SchemeKind::OracleDynamic(spec) => bound::setting::dynamic(prepared, job, spec),
        SchemeKind::StaticBest(bound) => bound::selection::single(prepared, job, bound),
        SchemeKind::OracleSelect(bound) => bound::selection::course(prepared, job, bound),
        kind => Course::new(prepared, job, &control(kind, prepared, job)).measure(),
    }
}

/// What governs the flows of a contender in the simulator.
pub(crate) fn control(kind: &SchemeKind, prepared: &Prepared, job: &Job) -> Control {
    let app = &prepared.apps[job.app];
    match kind {
        SchemeKind::Rule(spec) | SchemeKind::Oracle(spec) | SchemeKind::OracleDynamic(spec) => {
            Control::Algorithm { spec: *spec, steerer: None }
        }
        SchemeKind::Mortise(settings) => steered(*settings, false, app),
        SchemeKind::MortiseDisc(settings) => steered(*settings, true, app),
        SchemeKind::Select(selection) => {
            selected(prepared.selector(selection), selection.tuned, app)
        }
        SchemeKind::Muses(settings) => {
            Control::Muses { policy: prepared.policy(settings).clone(), safe: settings.safe }
        }
        SchemeKind::StaticBest(bound) | SchemeKind::OracleSelect(bound) => {
            let config = SelectorConfig::new(bound.candidates.clone(), Policy::External);
            selected(Selector::new(config), false, app)
        }
        SchemeKind::Switch(turns) => Control::Algorithm {
            spec: turns.specs[0],
            steerer: Some(Steerer::Schedule(Schedule::new(
                turns.specs.clone(),
                turns.every,
                turns.how,
            ))),
        },
        SchemeKind::Omniscient => Control::Omniscient,
    }
}

/// What a selector chooses; tuned where it is Copa.
fn selected(selector: Selector, tuned: bool, app: &PreparedApp) -> Control {
    let spec = selector.algorithm();
    let steerer = if tuned {
        Steerer::Both(Box::new(Both::new(
            selector,
            mortise(MortiseSettings::default(), false, app),
        )))
    } else {
        Steerer::Select(Box::new(selector))
    };
    Control::Algorithm { spec, steerer: Some(steerer) }
}

/// Copa, steered.
fn steered(settings: MortiseSettings, discrete: bool, app: &PreparedApp) -> Control {
    let steerer = Some(Steerer::Mortise(Box::new(mortise(settings, discrete, app))));
    Control::Algorithm { spec: Mortise::algorithm(), steerer }
}

/// Mortise for an application, or `mortise-disc`.
pub fn mortise(settings: MortiseSettings, discrete: bool, app: &PreparedApp) -> Mortise {
    let mut config = MortiseConfig::new(app.model.clone());
    config.factors = app.factors;
    config.sigma = settings.sigma;
    config.change_points = settings.change_point_detection;
    config.discrete = discrete;
    Mortise::new(config)
}
