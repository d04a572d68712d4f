//! What operators and viewers ask about experiments and rollouts.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use trimtab_fleet::experiment::{
    Arm, Design, Experiment, Judgement, Member, Phase, Plan, Rollout, RolloutState, assign, places,
};
use trimtab_fleet::{Interval, Service};
use trimtab_fleet_client::{
    ExperimentBody, ExperimentsBody, Hold, NewExperiment, NewRollout, RolloutAction, RolloutBody,
    RolloutOrder, RolloutsBody, StopExperiment,
};

use super::gate::{Asked, Asker, Sent};
use super::operator::length_ms as interval_ms;
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::closer::closable;
use crate::engine::Engine;
use crate::services::key_of;
use crate::store::{Begun, Candidate, NewStudy, Standing, StoreError, Study, StudyKind, StudyStep};
use crate::studies::{
    self, Ended, ExperimentDocument, RolloutDocument, elapsed, member, standing_after, written,
};

/// What was before is known by so many intervals at least, where they are kept.
const PAST_MIN: u32 = 72;
/// Fewer aggregates have nothing to be compared with.
const AGGREGATES_MIN: usize = 4;
const STAGES: [f64; 4] = [0.01, 0.05, 0.25, 1.0];
const STAGE_INTERVALS: u32 = 6;

/// Of which service.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfService {
    /// Of this service only
    service: Option<String>,
}

/// Which one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfName {
    /// The service
    service: String,
    /// Its name
    name: String,
}

/// The last interval of a service that may be closed.
fn through(engine: &Engine, service: &str) -> Option<i64> {
    closable(now_ms(), engine.started_ms, engine.grace_ms, interval_ms(engine, service))
}

fn service(engine: &Engine, name: &str) -> Result<Arc<Service>, Refusal> {
    let service = engine.learning().service(name);
    service.ok_or_else(|| Refusal::unknown(format!("the engine has no service {name:?}")))
}

async fn find(
    engine: &Arc<Engine>,
    kind: StudyKind,
    service: &str,
    name: &str,
) -> Result<Study, Refusal> {
    let asked = service.to_owned();
    let all = engine.ask(move |engine| engine.store.studies(Some(&asked), kind)).await?;
    all.into_iter().find(|study| study.name == name).ok_or_else(|| {
        let kind = kind.name();
        Refusal::unknown(format!(
            "{service} has no {kind} {name:?}: `trimtab engine {kind} list` names them"
        ))
    })
}

/// Experiments or rollouts, the latest first; those that are not understood are left out.
async fn list<T>(
    engine: &Arc<Engine>,
    kind: StudyKind,
    asked: OfService,
    body: fn(&Engine, &Study) -> Option<T>,
) -> Result<Vec<T>, Refusal> {
    let service = asked.service;
    let all = engine.ask(move |engine| engine.store.studies(service.as_deref(), kind)).await?;
    Ok(all.iter().filter_map(|study| body(engine, study)).collect())
}

/// One of them, whole.
async fn shown<T: Send + 'static>(
    engine: &Arc<Engine>,
    kind: StudyKind,
    (service, name): (&str, &str),
    whole: fn(&Engine, &Study) -> Result<Option<T>, StoreError>,
) -> Result<Json<T>, Refusal> {
    let study = find(engine, kind, service, name).await?;
    let body = engine.ask(move |engine| whole(engine, &study)).await?;
    body.map(Json).ok_or_else(not_understood)
}

fn experiment_body(engine: &Engine, study: &Study) -> Option<ExperimentBody> {
    let document: ExperimentDocument = studies::read(study)?;
    let begun = through(engine, &study.service)
        .is_some_and(|through| through + 1 >= document.spec.start.0 as i64);
    let state = match &document.ended {
        Some(Ended { stopped: Some(_), .. }) => "stopped",
        Some(_) => "over",
        None if begun => "running",
        None => "waiting",
    };
    let (stopped, report) =
        document.ended.map_or((None, None), |ended| (ended.stopped, Some(ended.report)));
    Some(ExperimentBody {
        service: study.service.clone(),
        name: study.name.clone(),
        state: state.to_owned(),
        interval_ms: interval_ms(engine, &study.service),
        begun_by: document.begun_by,
        begun_ms: document.begun_ms,
        reason: document.reason,
        spec: document.spec,
        stopped,
        report,
    })
}

/// With what it has shown.
fn whole_experiment(engine: &Engine, study: &Study) -> Result<Option<ExperimentBody>, StoreError> {
    let Some(body) = experiment_body(engine, study).filter(|body| body.report.is_none()) else {
        return Ok(experiment_body(engine, study));
    };
    let service = engine.learning().service(&study.service);
    let document: Option<ExperimentDocument> = studies::read(study);
    let (Some(service), Some(document)) = (service, document) else { return Ok(Some(body)) };
    let over = elapsed(&document.spec, through(engine, &study.service));
    let report = studies::report(&*engine.store, study, &document, &service, over)?;
    Ok(Some(ExperimentBody { report, ..body }))
}

fn not_understood() -> Refusal {
    Refusal::unknown("another version of the engine wrote this, and it is not understood")
}

async fn shown_experiment(
    engine: &Arc<Engine>,
    service: &str,
    name: &str,
) -> Result<Json<ExperimentBody>, Refusal> {
    shown(engine, StudyKind::Experiment, (service, name), whole_experiment).await
}

/// `GET /v1/experiments`
pub(super) async fn experiments(
    State(engine): State<Arc<Engine>>,
    Asked(asked): Asked<OfService>,
) -> Result<Json<ExperimentsBody>, Refusal> {
    let experiments = list(&engine, StudyKind::Experiment, asked, experiment_body).await?;
    Ok(Json(ExperimentsBody { experiments }))
}

/// `GET /v1/experiment`
pub(super) async fn experiment(
    State(engine): State<Arc<Engine>>,
    Asked(asked): Asked<OfName>,
) -> Result<Json<ExperimentBody>, Refusal> {
    shown_experiment(&engine, &asked.service, &asked.name).await
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let letters = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(letters) {
        let message = format!("{name:?} is no name: 1 to 64 letters, digits, and - _ .");
        return Err(Refusal::malformed(message));
    }
    Ok(())
}

/// Nothing begins of a service that an order keeps safe.
fn check_not_safe(engine: &Engine, service: &str) -> Result<(), Refusal> {
    let Some(order) = engine.safe.of(service) else { return Ok(()) };
    Err(Refusal::changed(format!(
        "{service} is on its safe configuration by order of {}, {}: end that order first",
        order.who, order.why
    )))
}

/// The next interval in which something may change.
fn next_interval(service: &Service) -> Interval {
    service.interval_at(trimtab_units::Time::from_millis(now_ms().max(0) as u64)).next()
}

/// Aggregates that learn and were seen lately, with what was known of them; and how many are held by operators.
async fn candidates(
    engine: &Arc<Engine>,
    name: &str,
    start: Interval,
    past: u32,
) -> Result<(Vec<Candidate>, usize), Refusal> {
    let from = start.0 as i64 - i64::from(past.max(PAST_MIN));
    let (asked, from) = (name.to_owned(), from * interval_ms(engine, name));
    let all = engine.ask(move |engine| engine.store.candidates(&asked, from)).await?;
    let count = all.len();
    let free: Vec<Candidate> = all.into_iter().filter(|one| one.hold == Hold::Learning).collect();
    if free.len() < AGGREGATES_MIN {
        let message = format!(
            "{} aggregates of {name} learn and were reported in the last {} intervals: to compare \
             takes {AGGREGATES_MIN} at least",
            free.len(),
            past.max(PAST_MIN)
        );
        return Err(Refusal::malformed(message));
    }
    let held = count - free.len();
    Ok((free, held))
}

async fn begin(engine: &Arc<Engine>, new: NewStudy) -> Result<(), Refusal> {
    let (service, name, kind) = (new.service.clone(), new.name.clone(), new.kind);
    match engine.ask(move |engine| engine.store.begin(&new)).await? {
        Begun::Yes => {
            engine.metrics.study(match kind {
                StudyKind::Experiment => "experiment begun",
                StudyKind::Rollout => "rollout begun",
            });
            Ok(())
        }
        Begun::NameTaken => {
            Err(Refusal::changed(format!("{service} had a {name:?} already: take another name")))
        }
        Begun::Running(other) => Err(Refusal::changed(format!(
            "{other:?} of {service} is running: two at a time would disturb each other. Wait for its end, or stop it"
        ))),
    }
}

fn detail(members: usize, held: usize, reason: &str) -> String {
    let held = if held > 0 { format!(", {held} are held and left out") } else { String::new() };
    let reason = reason.trim();
    let reason = if reason.is_empty() { String::new() } else { format!("; {reason}") };
    format!("{members} aggregates{held}{reason}")
}

/// `POST /v1/experiments`
pub(super) async fn begin_experiment(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<NewExperiment>,
) -> Result<Json<ExperimentBody>, Refusal> {
    let new = sent.value;
    check_name(&new.name)?;
    let of = service(&engine, &new.service)?;
    check_not_safe(&engine, &new.service)?;
    let next = next_interval(&of);
    let start = Interval(new.start.unwrap_or(next.0));
    if start < next {
        return Err(Refusal::malformed(format!(
            "start = {start}: that interval has begun, {next} is the next"
        )));
    }
    let now = now_ms();
    let spec = Experiment {
        control: new.control,
        treatment: new.treatment,
        design: new.design,
        start,
        length: new.length,
        wash_out: new.wash_out.unwrap_or(1),
        metric: Some(new.metric),
        guards: new.guards,
        seed: new.seed.unwrap_or(now as u64),
    };
    Plan::of_experiment(&spec, &of).map_err(|e| Refusal::malformed(e.to_string()))?;
    let (free, held) = candidates(&engine, &new.service, next, spec.length).await?;
    let members: Vec<Member> = free.iter().map(|one| member(&one.name, one.baseline)).collect();
    let places = match spec.design {
        Design::Prefixes { share } => assign(&members, share, spec.seed),
        Design::Switchback { .. } => vec![0; members.len()],
    };
    let document = ExperimentDocument {
        spec,
        interval_ms: interval_ms(&engine, &new.service),
        begun_by: token.name.clone(),
        begun_ms: now,
        reason: new.reason.clone(),
        ended: None,
    };
    let study = NewStudy {
        service: new.service.clone(),
        name: new.name.clone(),
        kind: StudyKind::Experiment,
        document: written(&document),
        members: free
            .iter()
            .zip(places)
            .map(|(one, place)| (one.aggregate, place, one.baseline))
            .collect(),
        who: token.name.clone(),
        detail: detail(members.len(), held, &new.reason),
        now_ms: now,
    };
    begin(&engine, study).await?;
    shown_experiment(&engine, &new.service, &new.name).await
}

fn by(who: &str, reason: &str) -> String {
    if reason.trim().is_empty() { who.to_owned() } else { format!("{who}: {}", reason.trim()) }
}

fn changed(name: &str) -> Refusal {
    Refusal::changed(format!("{name} has changed meanwhile: look again, then say it again"))
}

/// `POST /v1/experiment/stop`
pub(super) async fn stop_experiment(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<StopExperiment>,
) -> Result<Json<ExperimentBody>, Refusal> {
    let StopExperiment { service: of, name, reason } = sent.value;
    let study = find(&engine, StudyKind::Experiment, &of, &name).await?;
    let document: ExperimentDocument = studies::read(&study).ok_or_else(not_understood)?;
    if study.standing != Standing::Running {
        return Err(Refusal::changed(format!("{name} has ended already")));
    }
    let learning = service(&engine, &of)?;
    let over = elapsed(&document.spec, through(&engine, &of));
    let step = engine
        .ask(move |engine| {
            let report = studies::report(&*engine.store, &study, &document, &learning, over)?;
            let Some(report) = report else { return Ok(None) };
            let step = StudyStep {
                standing: Standing::Past,
                who: token.name.clone(),
                action: "experiment stopped",
                detail: reason.clone(),
                document: written(&ExperimentDocument {
                    ended: Some(Ended { stopped: Some(by(&token.name, &reason)), report }),
                    ..document
                }),
                now_ms: now_ms(),
            };
            Ok(Some(engine.store.step(&study, &step)?))
        })
        .await?;
    match step {
        None => return Err(not_understood()),
        Some(false) => return Err(changed(&name)),
        Some(true) => engine.metrics.study("experiment stopped"),
    }
    shown_experiment(&engine, &of, &name).await
}

fn rollout_body(engine: &Engine, study: &Study) -> Option<RolloutBody> {
    let document: RolloutDocument = studies::read(study)?;
    Some(RolloutBody {
        service: study.service.clone(),
        name: study.name.clone(),
        phase: document.state.phase,
        in_force: study.standing != Standing::Past,
        stage: document.state.stage,
        since: document.state.since.0,
        why: document.state.why,
        interval_ms: interval_ms(engine, &study.service),
        begun_by: document.begun_by,
        begun_ms: document.begun_ms,
        reason: document.reason,
        spec: document.spec,
        judgement: document.last,
    })
}

fn judged(engine: &Engine, study: &Study) -> Result<Option<Judgement>, StoreError> {
    let service = engine.learning().service(&study.service);
    let document: Option<RolloutDocument> = studies::read(study);
    let (Some(service), Some(document)) = (service, document) else { return Ok(None) };
    let through = Interval(through(engine, &study.service).unwrap_or(0).max(0) as u64);
    studies::judge(&*engine.store, study, &document, &service, through)
}

/// With what is known of its stage.
fn whole_rollout(engine: &Engine, study: &Study) -> Result<Option<RolloutBody>, StoreError> {
    let Some(body) = rollout_body(engine, study) else { return Ok(None) };
    let judgement = match body.judgement {
        None => judged(engine, study)?,
        judgement => judgement,
    };
    Ok(Some(RolloutBody { judgement, ..body }))
}

async fn shown_rollout(
    engine: &Arc<Engine>,
    service: &str,
    name: &str,
) -> Result<Json<RolloutBody>, Refusal> {
    shown(engine, StudyKind::Rollout, (service, name), whole_rollout).await
}

/// `GET /v1/rollouts`
pub(super) async fn rollouts(
    State(engine): State<Arc<Engine>>,
    Asked(asked): Asked<OfService>,
) -> Result<Json<RolloutsBody>, Refusal> {
    let rollouts = list(&engine, StudyKind::Rollout, asked, rollout_body).await?;
    Ok(Json(RolloutsBody { rollouts }))
}

/// `GET /v1/rollout`
pub(super) async fn rollout(
    State(engine): State<Arc<Engine>>,
    Asked(asked): Asked<OfName>,
) -> Result<Json<RolloutBody>, Refusal> {
    shown_rollout(&engine, &asked.service, &asked.name).await
}

/// `POST /v1/rollouts`
pub(super) async fn begin_rollout(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<NewRollout>,
) -> Result<Json<RolloutBody>, Refusal> {
    let new = sent.value;
    check_name(&new.name)?;
    let of = service(&engine, &new.service)?;
    check_not_safe(&engine, &new.service)?;
    let now = now_ms();
    let usual = if new.to == Arm::Learn { Arm::Safe } else { Arm::Learn };
    let spec = Rollout {
        from: new.from.unwrap_or(usual),
        to: new.to,
        stages: new.stages.unwrap_or_else(|| STAGES.to_vec()),
        start: next_interval(&of),
        intervals: new.intervals.unwrap_or(STAGE_INTERVALS),
        wash_out: new.wash_out.unwrap_or(1),
        metric: new.metric,
        guards: new.guards,
        seed: new.seed.unwrap_or(now as u64),
    };
    if spec.from == spec.to {
        let message = format!("from and to are both {}: nothing would change", spec.to);
        return Err(Refusal::malformed(message));
    }
    let state = RolloutState::new(&spec);
    Plan::of_rollout(&spec, &state, &of).map_err(|e| Refusal::malformed(e.to_string()))?;
    let (free, held) = candidates(&engine, &new.service, spec.start, PAST_MIN).await?;
    let keys: Vec<String> = free.iter().map(|one| key_of(&one.name)).collect();
    let dealt = places(&keys, &spec.stages, spec.seed);
    let document = RolloutDocument {
        spec,
        interval_ms: interval_ms(&engine, &new.service),
        begun_by: token.name.clone(),
        begun_ms: now,
        reason: new.reason.clone(),
        state,
        last: None,
    };
    let study = NewStudy {
        service: new.service.clone(),
        name: new.name.clone(),
        kind: StudyKind::Rollout,
        document: written(&document),
        members: free
            .iter()
            .zip(dealt)
            .map(|(one, place)| (one.aggregate, place, one.baseline))
            .collect(),
        who: token.name.clone(),
        detail: detail(keys.len(), held, &new.reason),
        now_ms: now,
    };
    begin(&engine, study).await?;
    shown_rollout(&engine, &new.service, &new.name).await
}

/// `POST /v1/rollout/order`
pub(super) async fn order_rollout(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<RolloutOrder>,
) -> Result<Json<RolloutBody>, Refusal> {
    let RolloutOrder { service: of, name, action, reason } = sent.value;
    let study = find(&engine, StudyKind::Rollout, &of, &name).await?;
    let document: RolloutDocument = studies::read(&study).ok_or_else(not_understood)?;
    let running = study.standing == Standing::Running;
    let word = match action {
        RolloutAction::Hold => "rollout held",
        RolloutAction::Resume => "rollout resumed",
        RolloutAction::Abort => "rollout aborted",
    };
    if study.standing == Standing::Past || (!running && action != RolloutAction::Abort) {
        return Err(Refusal::changed(format!(
            "{name} has ended: nothing of it is there to {action}",
            action = match action {
                RolloutAction::Hold => "hold",
                RolloutAction::Resume => "resume",
                RolloutAction::Abort => "abort",
            }
        )));
    }
    let who = by(&token.name, &reason);
    let mut state = document.state.clone();
    state.phase = match action {
        RolloutAction::Hold => Phase::Held,
        RolloutAction::Resume => Phase::Running,
        RolloutAction::Abort if matches!(state.phase, Phase::RolledBack) => Phase::RolledBack,
        RolloutAction::Abort => Phase::Aborted,
    };
    state.why = format!("{word} by {who}").replace("rollout ", "");
    // What went back before is let go of.
    let standing = if document.state.kept() == Some(0) {
        Standing::Past
    } else {
        standing_after(&document.spec, state.phase)
    };
    let done = engine
        .ask(move |engine| {
            let last = match action {
                RolloutAction::Abort if document.last.is_none() => judged(engine, &study)?,
                _ => document.last.clone(),
            };
            let step = StudyStep {
                standing,
                who: token.name.clone(),
                action: word,
                detail: reason.clone(),
                document: written(&RolloutDocument { state, last, ..document }),
                now_ms: now_ms(),
            };
            engine.store.step(&study, &step)
        })
        .await?;
    if !done {
        return Err(changed(&name));
    }
    engine.metrics.study(word);
    shown_rollout(&engine, &of, &name).await
}
