//! What another choice would have brought, by the log of decisions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use trimtab_fleet::{Decision, Service, Target, WhatIf};
use trimtab_fleet_client::WhatIfBody;

use super::gate::Asked;
use super::log::{Log, service};
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::store::{Store, StoreError};

/// What to do about too long a log.
const INSTEAD: &str = "ask about one of them, or read fewer decisions of each (`last`)";

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WhatIfQuery {
    /// The service
    service: String,
    /// The destination subnet; default: all of the service
    prefix: Option<String>,
    /// An algorithm of the service, as its description writes it
    algorithm: Option<String>,
    /// Knobs that are learnt with their values, as gamma=900,omega=2; the others as they were
    /// chosen
    knobs: Option<String>,
    /// Decisions of each aggregate that are read, the latest ones, up to 10000; default: 1000
    last: Option<usize>,
}

/// `GET /v1/what-if`
pub(super) async fn answer(
    State(engine): State<Arc<Engine>>,
    Asked(query): Asked<WhatIfQuery>,
) -> Result<Json<WhatIfBody>, Refusal> {
    let service = service(&engine, &query.service)?;
    let knobs = query.knobs.as_deref().map_or_else(|| Ok(Vec::new()), knobs)?;
    let target = Target::new(&service, query.algorithm.as_deref(), &knobs);
    let target = target.map_err(|e| Refusal::malformed(e.to_string()))?;
    let (prefix, last) = (query.prefix, query.last);
    let body = engine.ask(move |engine| look(&*engine.store, &service, prefix, &target, last));
    Ok(Json(body.await??))
}

/// Knobs with their values, as `gamma=900,omega=2`.
fn knobs(text: &str) -> Result<Vec<(String, f64)>, Refusal> {
    let fail = || Refusal::malformed(format!("knobs {text:?}: write KNOB=VALUE,KNOB=VALUE"));
    let one = |part: &str| {
        let (knob, value) = part.split_once('=')?;
        Some((knob.trim().to_owned(), value.trim().parse().ok()?))
    };
    text.split(',').map(|part| one(part).ok_or_else(fail)).collect()
}

/// Reads the log of one aggregate or of all, and makes an estimate from it.
fn look(
    store: &dyn Store,
    service: &Service,
    prefix: Option<String>,
    target: &Target,
    last: Option<usize>,
) -> Result<Result<WhatIfBody, Refusal>, StoreError> {
    let name = service.name().as_str().to_owned();
    let log = match Log::read(store, &name, prefix.as_deref(), last, INSTEAD)? {
        Ok(log) => log,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (aggregates, estimate) = (log.aggregates, estimate(service, target, &log.decisions));
    Ok(estimate.map(|estimate| WhatIfBody { service: name, prefix, aggregates, estimate }))
}

/// An estimate, or why there is none.
fn estimate(service: &Service, target: &Target, decisions: &[Decision]) -> Result<WhatIf, Refusal> {
    WhatIf::estimate(service, target, decisions).map_err(|e| Refusal::overlap(e.to_string()))
}

#[cfg(test)]
mod tests {
    use trimtab_fleet::{Interval, Report, Sketch, Summary};
    use trimtab_fleet_client::Name;
    use trimtab_units::Duration;

    use super::*;
    use crate::learning::Learning;
    use crate::services::{Services, key_of};
    use crate::store::{self, Batch, Due, Open, Sqlite};

    const LENGTH_MS: i64 = 1_200_000;

    #[test]
    fn knobs_are_a_list_with_values() {
        let two = vec![("gamma".to_owned(), 900.0), ("omega".to_owned(), 0.5)];
        assert_eq!(knobs("gamma=900, omega=5e-1").unwrap(), two);
        for wrong in ["gamma", "gamma=", "=", "gamma=900,", "gamma=900;omega=2", ""] {
            let refused = knobs(wrong).unwrap_err();
            assert!(refused.message.contains("KNOB=VALUE"), "{wrong}: {}", refused.message);
        }
    }

    /// An engine's file after so many intervals, in which each algorithm brought what is known of
    /// it.
    fn decided(learning: &str, intervals: i64) -> (tempfile::TempDir, Sqlite, Arc<Service>) {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "name = \"tv\"\nincumbent = \"bbr\"\nothers = [\"cubic\"]\n\
             reward = \"mean(throughput)\"\n[knobs]\n\
             gamma = {{ min = 10, max = 1000, scale = \"log\" }}\n[learning]\n{learning}"
        );
        std::fs::write(folder.path().join("tv.toml"), text).expect("a service");
        let services = Services::read(folder.path(), Duration::from_secs(30)).expect("services");
        let file = folder.path().join("engine.db");
        let store = Sqlite::open(&file, &services.lengths()).expect("a store");
        let name = Name { service: "tv".to_owned(), prefix: "203.0.113.0/24".to_owned() };
        for n in 0..intervals {
            let begins_ms = (1_000_000 + n) * LENGTH_MS;
            let row = store.aggregate(&name).expect("it answers");
            let (version, in_force) =
                row.map_or((0, String::new()), |row| (row.version, row.configuration));
            let off = if n % 2 == 0 { 0.5 } else { -0.5 };
            let brings = if in_force.contains("cubic") { 9.6 } else { 10.0 } + off;
            let mut summary = Summary::new(10);
            summary.set("throughput", Sketch::of([brings])).expect("a statistic");
            let interval = Interval((begins_ms / LENGTH_MS) as u64);
            let key = key_of(&name).parse().expect("a key");
            let (of, next) = (version as u64, None);
            let report = Report { key, interval, version: of, summary, next };
            let bytes = report.encode().expect("a report");
            let report = store::Report { name: name.clone(), interval: begins_ms, version, bytes };
            let digest = [n as u8; 32];
            let (sequence, received_ms) = (n + 1, begins_ms);
            let reports = vec![report];
            store
                .accept(&[Batch { token: 1, sequence, digest, received_ms, reports }])
                .expect("kept");
            let now_ms = begins_ms + LENGTH_MS + 30_000;
            let due = Due { service: "tv", through: begins_ms, limit: 10, now_ms };
            let mut decide =
                |open: &Open| services.decide(std::slice::from_ref(open), now_ms).remove(0);
            let closed = store.close(&due, &mut decide);
            assert_eq!(closed.expect("it answers").0, 1);
        }
        (folder, store, services.service("tv").expect("a service"))
    }

    fn ask(
        (_, store, service): &(tempfile::TempDir, Sqlite, Arc<Service>),
        prefix: Option<&str>,
        last: usize,
    ) -> Result<WhatIfBody, Refusal> {
        let target = Target::new(service, Some("cubic"), &[]).expect("it has that");
        look(store, service, prefix.map(str::to_owned), &target, Some(last)).expect("it answers")
    }

    #[test]
    fn the_log_of_an_engine_answers() {
        let engine = decided("acquisition = \"thompson\"\nchance_min = 0.02", 600);
        let body = ask(&engine, None, 1000).unwrap();
        assert_eq!((body.aggregates, body.prefix.as_deref()), (1, None));
        let found = &body.estimate;
        // The first interval had nobody to decide on it.
        assert_eq!(found.decisions, 599);
        // It brings 9.6, and what was in force more.
        for effect in [found.weighted, found.robust] {
            assert!((effect.low..=effect.high).contains(&9.6), "{found:?}");
        }
        assert!(found.gain.high < 0.0 && found.actual > 9.8, "{found:?}");
        assert_eq!(ask(&engine, Some("203.0.113.0/24"), 1000).unwrap().estimate, *found);
        // Fewer decisions show too little of it.
        let refused = ask(&engine, None, 20).unwrap_err();
        assert!(refused.reason == "overlap" && refused.message.contains("longer log"));
        assert_eq!(ask(&engine, Some("198.51.100.0/24"), 1000).unwrap_err().reason, "unknown");
        let text = crate::tables::what_if_text(&body);
        assert!(text.starts_with("tv: ") && text.contains("cubic, doubly robust"), "{text}");
    }

    #[test]
    fn a_log_of_certain_choices_is_refused() {
        let engine = decided("", 40);
        let refused = ask(&engine, None, 1000).unwrap_err();
        assert_eq!(refused.reason, "overlap");
        assert!(refused.message.contains("acquisition = \"thompson\""), "{}", refused.message);
    }
}
