//! What edges ask for.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use tokio::sync::broadcast::error::RecvError;
use trimtab_fleet_client::{
    ConfigurationAnswer, ConfigurationItem, ConfigurationQuery, Held, Name, ReportAnswer,
    ReportBatch, Token,
};

use super::gate::{Asker, Sent};
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::learning::{About, Learning};
use crate::safe::keeping;
use crate::store::{Batch, Outcome, Report, StoreError};

/// Aggregates of one question.
const HAVE_MAX: usize = 1000;
/// Reports of one batch.
const REPORTS_MAX: usize = 10_000;
const WAIT_MAX: Duration = Duration::from_secs(60);

fn own(token: &Token, service: &str) -> Result<(), Refusal> {
    if token.services.iter().any(|own| own == service) {
        return Ok(());
    }
    let message = format!("{} may not speak for the service {service:?}", token.name);
    Err(Refusal::service(message))
}

fn whole(number: u64, what: &str) -> Result<i64, Refusal> {
    i64::try_from(number).map_err(|_| Refusal::malformed(format!("{what} {number} is too large")))
}

/// `POST /v1/reports`
pub(super) async fn report(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<ReportBatch>,
) -> Result<Json<ReportAnswer>, Refusal> {
    let now = now_ms();
    let skew = sent.value.sent_ms.saturating_sub(now);
    if skew.saturating_abs() > engine.skew_ms {
        let message = format!(
            "the clock of {} is {} s off, {} s are allowed: set it, or mend what delays its reports",
            token.name,
            skew / 1000,
            engine.skew_ms / 1000
        );
        return Err(Refusal::clock(message));
    }
    if sent.value.reports.len() > REPORTS_MAX {
        let message = format!("a batch has at most {REPORTS_MAX} reports: send several");
        return Err(Refusal::oversized(message));
    }
    let learning = engine.learning();
    let services = learning.services();
    let length = sent.value.interval_ms;
    if length.is_some_and(|length| !(1000..=86_400_000).contains(&length)) {
        return Err(Refusal::malformed("interval_ms: an interval is 1 s to 24 h long"));
    }
    let times = Times { now, earliest: now - engine.age_ms, latest: now + engine.skew_ms };
    let (mut reports, mut refused) = (Vec::new(), Vec::new());
    for text in &sent.value.reports {
        let (about, bytes) = read(&*learning, text)?;
        own(&token, &about.name.service)?;
        let service = services.iter().find(|known| known.name == about.name.service);
        let service = service.ok_or_else(|| {
            let name = &about.name.service;
            Refusal::service(format!("the engine has no service {name:?} now"))
        })?;
        let length = length.unwrap_or(service.interval_ms);
        match check(about, bytes, length, &times, &token)? {
            Ok(report) => reports.push(report),
            Err(why) => refused.push(why),
        }
    }
    let reports = within_quota(&engine, &token, reports, &mut refused, now).await?;
    let count = reports.len();
    let batch = Batch {
        token: token.id,
        sequence: whole(sent.value.sequence, "the sequence number")?,
        digest: digest(sent.value.sequence, &sent.value.reports),
        received_ms: now,
        reports,
    };
    let (late, repeated, again) = match engine.ingest.keep(batch).await {
        Ok(Outcome::Accepted { late, repeated }) => (late, repeated, false),
        // As many as then were no more than there are now.
        Ok(Outcome::Again { late }) => (late.min(count as u32), 0, true),
        Ok(Outcome::Replayed { last }) => {
            let message = format!(
                "batch {} of {} was sent before, or by somebody else with its token: the last one kept is {last}",
                sent.value.sequence, token.name
            );
            return Err(Refusal::replayed(message));
        }
        Err(e) => {
            if let crate::ingest::NotKept::Store(e) = &e {
                engine.metrics.store_error();
                crate::logging::warn(&format!("store: {e}"));
            }
            return Err(e.into());
        }
    };
    let kept = count - late as usize - repeated as usize;
    let outcome = if again { "again" } else { "kept" };
    let counted = if again { (0, 0) } else { (kept, late) };
    engine.metrics.batch(outcome, counted, repeated);
    engine.metrics.reports_refused(refused.len());
    if let Some(first) = refused.first() {
        let line = format!("{} reports of {} are not kept: {first}", refused.len(), token.name);
        engine.refusals.log(now, &line);
    }
    Ok(Json(ReportAnswer {
        kept: kept as u32,
        late,
        repeated,
        refused: refused.len() as u32,
        refused_why: refused.into_iter().next(),
        again,
        now_ms: now_ms(),
    }))
}

/// Of a batch's number and reports. When it was sent is no part of it: it is another time when it is sent again.
fn digest(sequence: u64, reports: &[String]) -> [u8; 32] {
    let mut all = Sha256::new_with_prefix(sequence.to_le_bytes());
    for report in reports {
        all.update((report.len() as u64).to_le_bytes());
        all.update(report);
    }
    all.finalize().into()
}

fn read(learning: &dyn Learning, text: &str) -> Result<(About, Vec<u8>), Refusal> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|e| Refusal::malformed(format!("a report is not base64: {e}")))?;
    let about = learning.read(&bytes).map_err(Refusal::malformed)?;
    Ok((about, bytes))
}

/// Which intervals are taken, in ms since 1970: those that end at `earliest` or later and begin at `latest` or before.
struct Times {
    now: i64,
    earliest: i64,
    latest: i64,
}

/// A report of an interval of this length, as the store wants it; or why it alone is not kept.
fn check(
    About { name, interval, version, implausible }: About,
    bytes: Vec<u8>,
    length_ms: i64,
    times: &Times,
    token: &Token,
) -> Result<Result<Report, String>, Refusal> {
    let begins_ms = interval.saturating_mul(length_ms);
    if begins_ms > times.latest {
        let latest = times.latest.div_euclid(length_ms);
        let message = format!("{name}: interval {interval} has not begun, {latest} is the latest");
        return Err(Refusal::clock(message));
    }
    if begins_ms + length_ms < times.earliest {
        let (old, most) = ((times.now - begins_ms) / 1000, (times.now - times.earliest) / 1000);
        return Ok(Err(format!(
            "{name}: the interval began {old} s ago, at most {most} s are taken (`age`)"
        )));
    }
    if !token.covers(&name.prefix) {
        let own = token.prefixes.join(", ");
        return Ok(Err(format!("{name}: {} may speak for {own} alone", token.name)));
    }
    if let Some(why) = implausible {
        return Ok(Err(format!("{name}: {why}")));
    }
    Ok(Ok(Report { name, interval: begins_ms, version, bytes }))
}

/// Those of the reports that make no more aggregates than their edge may.
async fn within_quota(
    engine: &Arc<Engine>,
    token: &Token,
    reports: Vec<Report>,
    refused: &mut Vec<String>,
    now_ms: i64,
) -> Result<Vec<Report>, Refusal> {
    let strangers = engine.not_seen(reports.iter().map(|report| &report.name));
    if strangers.is_empty() {
        return Ok(reports);
    }
    let asked = strangers.clone();
    let unknown = engine.ask(move |engine| engine.store.unknown(&asked)).await?;
    let may = engine.made.take(token.id, unknown.len(), now_ms);
    let over: HashSet<&Name> = unknown[may..].iter().collect();
    engine.saw(strangers.iter().filter(|name| !over.contains(name)).cloned());
    let (kept, left): (Vec<Report>, Vec<Report>) =
        reports.into_iter().partition(|report| !over.contains(&report.name));
    refused.extend(left.iter().map(|report| {
        let most = engine.limits.new_aggregates;
        format!(
            "{} would be new, and {} may make {most} aggregates an hour",
            report.name, token.name
        )
    }));
    Ok(kept)
}

/// `POST /v1/configurations`
pub(super) async fn configurations(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<ConfigurationQuery>,
) -> Result<Json<ConfigurationAnswer>, Refusal> {
    let ConfigurationQuery { have, wait_s } = sent.value;
    if have.len() > HAVE_MAX {
        return Err(Refusal::oversized(format!(
            "at most {HAVE_MAX} aggregates at once: ask several times"
        )));
    }
    have.iter().try_for_each(|held| own(&token, &held.service))?;
    let wait = Duration::from_secs(wait_s.into()).min(WAIT_MAX);
    let until = tokio::time::Instant::now() + wait;
    let mut changes = engine.changes.subscribe();
    let names: Vec<Name> = have.iter().map(Held::name).collect();
    let have = Arc::new(have);
    loop {
        let asked = Arc::clone(&have);
        let configurations = engine.ask(move |engine| newer(engine, &asked)).await?;
        let waits = configurations.is_empty()
            && wait_for_one_of(&engine, &mut changes, &names, until).await;
        if !waits {
            return Ok(Json(ConfigurationAnswer { configurations, now_ms: now_ms() }));
        }
    }
}

/// Whether to look again: one of these has changed, or it cannot be known that none has.
async fn wait_for_one_of(
    engine: &Engine,
    changes: &mut tokio::sync::broadcast::Receiver<crate::engine::Changed>,
    names: &[Name],
    until: tokio::time::Instant,
) -> bool {
    loop {
        match tokio::time::timeout_at(until, changes.recv()).await {
            // An empty round is for all: they look again, or go, where the engine ends.
            Ok(Ok(changed)) if changed.is_empty() => {
                return !engine.ending.load(Ordering::Relaxed);
            }
            Ok(Ok(changed)) if changed.iter().any(|name| names.contains(name)) => return true,
            Ok(Ok(_)) => {}
            Ok(Err(RecvError::Lagged(_))) => return true,
            Ok(Err(RecvError::Closed)) | Err(_) => return false,
        }
    }
}

fn newer(engine: &Engine, have: &[Held]) -> Result<Vec<ConfigurationItem>, StoreError> {
    let learning = engine.learning();
    let names: Vec<Name> = have.iter().map(Held::name).collect();
    let force = engine.store.in_force(&names)?;
    let orders = engine.safe.all();
    // Both are in the order of `have`.
    let mut force = force.into_iter().peekable();
    let mut found = Vec::new();
    for (held, name) in have.iter().zip(names) {
        let there = force.next_if(|there| there.name == name);
        let (version, text) = match there {
            Some(there) if keeping(&orders, &name.service).is_none() => {
                (there.version as u64, Some(there.configuration))
            }
            _ => (0, learning.first(&name)),
        };
        // A configuration that a service no longer has belongs to no edge.
        let configuration = text.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(configuration) = configuration.filter(|_| held.version != Some(version)) {
            let Name { service, prefix } = name;
            found.push(ConfigurationItem { service, prefix, version, configuration });
        }
    }
    Ok(found)
}
