//! Experiments and rollouts of services: what is kept of each, what aggregates run for them, and how they go on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use trimtab_fleet::experiment::{
    Arm, Assignment, CellOf, Experiment, Judgement, Member, Part, Phase, Plan, Report, Rollout,
    RolloutState, SpecError, Step, Verdict,
};
use trimtab_fleet::{Interval, Service, Summary};
use trimtab_fleet_client::{Name, ServiceInfo};

use crate::engine::Engine;
use crate::logging::{log, warn};
use crate::services::key_of;
use crate::store::{
    ITSELF, InStudy, Measured, MemberRow, Standing, Store, StoreError, Study, StudyKind, StudyStep,
};

/// An experiment, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExperimentDocument {
    pub(crate) spec: Experiment,
    /// How long the service's intervals were when it began, in ms; 0 in what was begun before that was written down.
    #[serde(default)]
    pub(crate) interval_ms: i64,
    pub(crate) begun_by: String,
    pub(crate) begun_ms: i64,
    pub(crate) reason: String,
    /// Once it is over or stopped.
    pub(crate) ended: Option<Ended>,
}

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// By whom, and why, where it was stopped before its end.
    pub(crate) stopped: Option<String>,
    pub(crate) report: Report,
}

/// A rollout, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RolloutDocument {
    pub(crate) spec: Rollout,
    /// How long the service's intervals were when it began, in ms; 0 in what was begun before that was written down.
    #[serde(default)]
    pub(crate) interval_ms: i64,
    pub(crate) begun_by: String,
    pub(crate) begun_ms: i64,
    pub(crate) reason: String,
    pub(crate) state: RolloutState,
    /// What it ended by.
    pub(crate) last: Option<Judgement>,
}

/// Reads what is kept; what another version wrote may not be understood.
pub(crate) fn read<T: serde::de::DeserializeOwned>(study: &Study) -> Option<T> {
    serde_json::from_str(&study.document)
        .inspect_err(|e| {
            warn(&format!("{} {}: it is not understood: {e}", study.kind.name(), study.name));
        })
        .ok()
}

pub(crate) fn written<T: Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("a document is plain data")
}

/// Whether the service's intervals have another length than when a study began, whose times then mean nothing any more.
fn is_counted_otherwise(interval_ms: i64, service: &Service) -> bool {
    interval_ms != 0 && interval_ms != service.interval().as_millis() as i64
}

/// Why a study ends.
const OTHER_INTERVALS: &str = "the intervals of the service have another length now";

fn plan_of(study: &Study, service: &Service) -> Option<Plan> {
    let said = |plan: Result<Plan, SpecError>| {
        plan.inspect_err(|e| {
            warn(&format!(
                "{} {} goes with its service no more: {e}",
                study.kind.name(),
                study.name
            ));
        })
        .ok()
    };
    match study.kind {
        StudyKind::Experiment => {
            let document: ExperimentDocument = read(study)?;
            if is_counted_otherwise(document.interval_ms, service) {
                return None;
            }
            said(Plan::of_experiment(&document.spec, service))
        }
        StudyKind::Rollout => {
            let document: RolloutDocument = read(study)?;
            // What it left in force when it was over has no times.
            if document.state.kept().is_none()
                && is_counted_otherwise(document.interval_ms, service)
            {
                return None;
            }
            said(Plan::of_rollout(&document.spec, &document.state, service))
        }
    }
}

/// Plans that were made before, by the number of the study; they are asked for with every interval of every aggregate.
#[derive(Default)]
pub(crate) struct Plans(Mutex<HashMap<i64, Planned>>);

/// For a revision, the plan; none where it is not understood.
type Planned = (i64, Option<Arc<Plan>>);

impl Plans {
    /// What studies want of an aggregate.
    pub(crate) fn of(&self, studies: &[InStudy], service: &Service) -> Wanted {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = studies.iter().filter_map(|in_study| {
            let study = &in_study.study;
            let known = plans.get(&study.id).filter(|(revision, _)| *revision == study.revision);
            let plan = match known {
                Some((_, plan)) => plan.clone(),
                None => {
                    let plan = plan_of(study, service).map(Arc::new);
                    plans.insert(study.id, (study.revision, plan.clone()));
                    plan
                }
            };
            Some((study.id, in_study.place, plan?))
        });
        Wanted(wanted.collect())
    }
}

/// Studies by number, place of the aggregate in each, and plan.
pub(crate) struct Wanted(Vec<(i64, Option<i64>, Arc<Plan>)>);

impl Wanted {
    /// What is to be run in an interval: what the first one wants that wants something.
    pub(crate) fn assignment(&self, key: &str, interval: Interval) -> Option<Assignment> {
        self.0.iter().find_map(|(id, place, plan)| plan.assignment(*id, key, *place, interval))
    }

    /// What an interval amounts to that was this part of one of them; without a summary nobody
    /// reported of what was to be run.
    pub(crate) fn measured(
        &self,
        key: &str,
        interval: Interval,
        part: Option<Part>,
        summary: Option<&Summary>,
        service: &Service,
    ) -> Option<Measured> {
        let part = part?;
        let (id, place, plan) = self.0.iter().find(|(id, _, _)| *id == part.study)?;
        let meant = plan.assignment(*id, key, *place, interval)?.part?;
        let ran = summary.is_some() && (meant.block, meant.arm) == (part.block, part.arm);
        let nothing = Summary::new(0);
        let observation = plan.observe(&meant, summary.unwrap_or(&nothing), service, ran);
        Some(Measured { study: part.study, block: meant.block, arm: meant.arm, observation })
    }
}

/// A member as the analysis takes it.
pub(crate) fn member(name: &Name, baseline: Option<f64>) -> Member {
    Member { key: key_of(name), baseline }
}

/// Members and cells, as the analysis wants them.
fn gathered(store: &dyn Store, study: i64) -> Result<(Vec<MemberRow>, Vec<CellOf>), StoreError> {
    let members = store.members(study)?;
    let index: HashMap<i64, usize> =
        members.iter().enumerate().map(|(i, member)| (member.aggregate, i)).collect();
    let cells = store.cells(study)?.into_iter().filter_map(|row| {
        let member = *index.get(&row.aggregate)?;
        Some(CellOf { member, block: row.block, arm: row.arm, cell: row.cell })
    });
    let cells = cells.collect();
    Ok((members, cells))
}

/// What an experiment has shown after so many intervals; none where its service no longer has what it compares.
pub(crate) fn report(
    store: &dyn Store,
    study: &Study,
    document: &ExperimentDocument,
    service: &Service,
    elapsed: u32,
) -> Result<Option<Report>, StoreError> {
    let Ok(plan) = Plan::of_experiment(&document.spec, service) else { return Ok(None) };
    let (members, cells) = gathered(store, study.id)?;
    let left = members.iter().filter(|member| member.left_ms.is_some()).count() as u64;
    let members: Vec<Member> =
        members.into_iter().map(|row| member(&row.name, row.baseline)).collect();
    Ok(Some(document.spec.report(&plan, service, &members, left, &cells, elapsed)))
}

/// Intervals of an experiment that are over, when `through` is the last one that may be closed. Its
/// last one is over when the engine has said so.
pub(crate) fn elapsed(spec: &Experiment, through: Option<i64>) -> u32 {
    let over = through.map_or(0, |through| (through + 1).saturating_sub(spec.start.0 as i64));
    over.clamp(0, i64::from(spec.length) - 1) as u32
}

/// What is known of a rollout's stage; none where its service no longer has what it rolls out.
pub(crate) fn judge(
    store: &dyn Store,
    study: &Study,
    document: &RolloutDocument,
    service: &Service,
    through: Interval,
) -> Result<Option<Judgement>, StoreError> {
    let plan = Plan::of_rollout(&document.spec, &document.state, service);
    let Ok(plan) = plan else { return Ok(None) };
    let (members, cells) = gathered(store, study.id)?;
    let places: Vec<i64> = members.iter().map(|member| member.place).collect();
    Ok(Some(document.spec.judge(&plan, &document.state, &places, &cells, through)))
}

/// What a rollout that is over is from then on: where all learn, nothing is to be kept.
pub(crate) fn standing_after(spec: &Rollout, phase: Phase) -> Standing {
    let kept = match phase {
        Phase::Running | Phase::Held => return Standing::Running,
        Phase::Done => &spec.to,
        Phase::RolledBack | Phase::Aborted => &spec.from,
    };
    if *kept == Arm::Learn { Standing::Past } else { Standing::Kept }
}

/// When the interval began after which each service was looked at last, so that it is not looked at twice.
#[derive(Default)]
pub(crate) struct Looked(HashMap<String, i64>);

/// Lets what is running of a service go on, when nothing more is due up to an interval.
pub(crate) fn go_on(
    engine: &Engine,
    info: &ServiceInfo,
    through: i64,
    looked: &mut Looked,
) -> Result<(), StoreError> {
    let through_ms = through * info.interval_ms;
    if looked.0.get(&info.name).is_some_and(|before| *before >= through_ms) {
        return Ok(());
    }
    let active = engine.store.active_studies(&info.name)?;
    let running = active.iter().find(|study| study.standing == Standing::Running);
    if let (Some(study), Some(service)) = (running, engine.learning().service(&info.name)) {
        let step = match study.kind {
            StudyKind::Experiment => finish(engine, study, &service, through)?,
            StudyKind::Rollout => roll(engine, study, &service, through)?,
        };
        // Where another caller has changed it meanwhile, that caller goes on with it.
        if let Some(step) = step
            && engine.store.step(study, &step)?
        {
            engine.metrics.study(step.action);
            log(&format!("{} {}: {}", study.service, study.name, step.detail));
        }
    }
    looked.0.insert(info.name.clone(), through_ms);
    Ok(())
}

/// Ends an experiment whose last interval is closed.
fn finish(
    engine: &Engine,
    study: &Study,
    service: &Service,
    through: i64,
) -> Result<Option<StudyStep>, StoreError> {
    let Some(document) = read::<ExperimentDocument>(study) else { return Ok(None) };
    if is_counted_otherwise(document.interval_ms, service) {
        let elapsed = document.spec.length.saturating_sub(1);
        let report = report(&*engine.store, study, &document, service, elapsed)?;
        let stopped = Some(format!("{ITSELF}: {OTHER_INTERVALS}"));
        return Ok(report.map(|report| stopped_by_itself(document, stopped, report)));
    }
    if through < 0 || Interval(through as u64).next() < document.spec.end() {
        // Only blocks that are over count, so that looks are no more than the intervals of confidence are made for.
        let elapsed = elapsed(&document.spec, Some(through));
        let report = report(&*engine.store, study, &document, service, elapsed)?;
        let broken = report
            .as_ref()
            .and_then(|report| report.guards.iter().find(|guard| guard.verdict == Verdict::Broken));
        let why = broken.map(|guard| {
            let (control, treatment) =
                (guard.control.unwrap_or(f64::NAN), guard.treatment.unwrap_or(f64::NAN));
            let guard = &guard.guard;
            format!("{ITSELF}: {guard} is broken: {treatment:.4} under the treatment, {control:.4} under the control")
        });
        return Ok(report
            .filter(|_| why.is_some())
            .map(|report| stopped_by_itself(document.clone(), why, report)));
    }
    let length = document.spec.length;
    let report = report(&*engine.store, study, &document, service, length)?;
    Ok(report.map(|report| StudyStep {
        standing: Standing::Past,
        who: ITSELF.to_owned(),
        action: "experiment over",
        detail: report.verdict.clone(),
        document: written(&ExperimentDocument {
            ended: Some(Ended { stopped: None, report }),
            ..document
        }),
        now_ms: crate::clock::now_ms(),
    }))
}

fn stopped_by_itself(
    document: ExperimentDocument,
    stopped: Option<String>,
    report: Report,
) -> StudyStep {
    StudyStep {
        standing: Standing::Past,
        who: ITSELF.to_owned(),
        action: "experiment stopped",
        detail: stopped.clone().unwrap_or_default(),
        document: written(&ExperimentDocument {
            ended: Some(Ended { stopped, report }),
            ..document
        }),
        now_ms: crate::clock::now_ms(),
    }
}

/// Takes a rollout a stage on, or back.
fn roll(
    engine: &Engine,
    study: &Study,
    service: &Service,
    through: i64,
) -> Result<Option<StudyStep>, StoreError> {
    let Some(document) = read::<RolloutDocument>(study) else { return Ok(None) };
    if is_counted_otherwise(document.interval_ms, service) {
        let why = OTHER_INTERVALS.to_owned();
        let state = RolloutState { phase: Phase::RolledBack, why, ..document.state.clone() };
        return Ok(Some(StudyStep {
            standing: standing_after(&document.spec, state.phase),
            who: ITSELF.to_owned(),
            action: "rollout rolled back",
            detail: state.why.clone(),
            document: written(&RolloutDocument { state, ..document }),
            now_ms: crate::clock::now_ms(),
        }));
    }
    let through = Interval(through.max(0) as u64);
    let Some(judgement) = judge(&*engine.store, study, &document, service, through)? else {
        return Ok(None);
    };
    let Some(step) = judgement.step.clone() else { return Ok(None) };
    let state = document.state.after(&step, through);
    let action = match step {
        Step::Advance => "rollout advanced",
        Step::Finish => "rollout done",
        Step::Back { .. } => "rollout rolled back",
    };
    let detail = match step {
        Step::Advance => {
            let share = document.spec.stages.get(state.stage as usize - 1).copied().unwrap_or(1.0);
            format!("stage {}, {:.0}% of the aggregates: {}", state.stage, 100.0 * share, state.why)
        }
        _ => state.why.clone(),
    };
    let last = state.kept().is_some().then_some(judgement);
    Ok(Some(StudyStep {
        standing: standing_after(&document.spec, state.phase),
        who: ITSELF.to_owned(),
        action,
        detail,
        document: written(&RolloutDocument { state, last, ..document }),
        now_ms: crate::clock::now_ms(),
    }))
}
