//! A surrogate fitted to the reward of a service, by the log of decisions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use trimtab_fleet::{Service, SurrogateFit};
use trimtab_fleet_client::SurrogateBody;

use super::gate::Asked;
use super::log::{Log, service};
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::store::{Store, StoreError};

/// What to do about too long a log.
const INSTEAD: &str = "let edges have wider prefixes, or read fewer decisions of each (`last`)";

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FitSurrogateQuery {
    /// The service
    service: String,
    /// Decisions of each aggregate that are read, the latest ones, up to 10000; default: 1000
    last: Option<usize>,
}

/// `GET /v1/fit-surrogate`
pub(super) async fn answer(
    State(engine): State<Arc<Engine>>,
    Asked(query): Asked<FitSurrogateQuery>,
) -> Result<Json<SurrogateBody>, Refusal> {
    let service = service(&engine, &query.service)?;
    let body = engine.ask(move |engine| look(&*engine.store, &service, query.last));
    Ok(Json(body.await??))
}

/// Reads the log of all aggregates, and fits to it.
fn look(
    store: &dyn Store,
    service: &Service,
    last: Option<usize>,
) -> Result<Result<SurrogateBody, Refusal>, StoreError> {
    let name = service.name().as_str();
    let log = match Log::read(store, name, None, last, INSTEAD)? {
        Ok(log) => log,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let fit = SurrogateFit::of(service, &log.decisions);
    let body = |fit| SurrogateBody { service: name.to_owned(), fit };
    Ok(fit.map(body).map_err(|e| Refusal::overlap(e.to_string())))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use hyper_util::service::TowerToHyperService;
    use serde_json::Value;
    use trimtab_fleet::{Interval, Report, Sketch, Summary};
    use trimtab_fleet_client::{Name, NewToken, Role};

    use super::*;
    use crate::config::Config;
    use crate::learning::Learning;
    use crate::run::assemble;
    use crate::services::{Services, key_of};
    use crate::store::{self, Batch, Due, Open, Sqlite};

    const LENGTH_MS: i64 = 1_200_000;
    const AGGREGATES: i64 = 6;

    /// A number between 0 and 1 by an interval and what it is of.
    fn chance(interval: i64, of: i64) -> f64 {
        let mixed = (interval * 64 + of).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) as u64;
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// What an aggregate's connections saw in an interval: players report in nine of ten.
    fn seen(aggregate: i64, n: i64) -> Summary {
        let [a, b, c] = [0, 1, 2].map(|of| chance(n, of * AGGREGATES + aggregate));
        let (throughput, rtt) = (5.0 + aggregate as f64 + 4.0 * a, 0.05 + 0.1 * b);
        let bitrate = 20.0 + 0.5 * throughput - 10.0 * rtt + 0.2 * c;
        let mut summary = Summary::new(10);
        let known = [("throughput", throughput), ("rtt", rtt), ("bitrate", bitrate)];
        for (name, value) in &known[..if n % 10 == 0 { 2 } else { 3 }] {
            summary.set(name, Sketch::of([*value])).expect("a statistic");
        }
        summary
    }

    /// An engine that has decided on so many intervals, with the tokens of an operator and an edge.
    fn engine(intervals: i64) -> (tempfile::TempDir, Arc<Engine>, [String; 2]) {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("it may be written");
        };
        std::fs::create_dir(folder.path().join("services")).expect("a folder");
        write(
            "services/tv.toml",
            "name = \"tv\"\nreward = \"mean(bitrate)\"\nsurrogate = \"mean(throughput)\"\n\
             statistics = [\"bitrate\", \"p50(rtt)\"]\n[knobs]\ngamma = {}\n",
        );
        write("engine.toml", "services = \"services\"\n[store]\nfile = \"engine.db\"\n");
        let file = folder.path().join("engine.toml");
        let tokens = [("kim", Role::Operator, &[][..]), ("edge", Role::Edge, &["tv"])];
        let tokens = tokens.map(|(name, role, of)| {
            crate::add_token(&file, &NewToken::new(name, role, of)).expect("a token")
        });
        let config = Config::read(&file).expect("a configuration");
        let services = Services::read(&config.services, config.grace).expect("services");
        let store = Sqlite::open(&folder.path().join("engine.db"), &services.lengths());
        let store = store.expect("a store");
        store.forgo_sync();
        for n in 0..intervals {
            decide(&store, &services, n);
        }
        let engine = assemble(&config, Arc::new(store), Arc::new(services)).expect("an engine");
        (folder, engine, tokens)
    }

    /// Reports of all aggregates, and the decisions that follow.
    fn decide(store: &Sqlite, services: &Services, n: i64) {
        let begins_ms = (1_000_000 + n) * LENGTH_MS;
        let report = |aggregate: i64| {
            let prefix = format!("203.0.{aggregate}.0/24");
            let name = Name { service: "tv".to_owned(), prefix };
            let version = store.aggregate(&name).expect("it answers").map_or(0, |row| row.version);
            let key = key_of(&name).parse().expect("a key");
            let interval = Interval((begins_ms / LENGTH_MS) as u64);
            let summary = seen(aggregate, n);
            let report = Report { key, interval, version: version as u64, summary, next: None };
            let bytes = report.encode().expect("a report");
            store::Report { name, interval: begins_ms, version, bytes }
        };
        let reports = (0..AGGREGATES).map(report).collect();
        let (digest, sequence) = ([0; 32], n + 1);
        let batch = Batch { token: 1, sequence, digest, received_ms: begins_ms, reports };
        store.accept(&[batch]).expect("kept");
        let now_ms = begins_ms + LENGTH_MS + 30_000;
        let due = Due { service: "tv", through: begins_ms, limit: AGGREGATES as usize, now_ms };
        let mut decide =
            |open: &Open| services.decide(std::slice::from_ref(open), now_ms).remove(0);
        let closed = store.close(&due, &mut decide).expect("it answers").0;
        assert_eq!(closed as i64, AGGREGATES, "of interval {n}");
    }

    /// Asks by the route: status and body.
    fn ask(engine: &Arc<Engine>, token: &str, query: &str) -> (u16, Value) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let request = Request::builder()
            .uri(format!("/v1/fit-surrogate?{query}"))
            .header("Authorization", format!("Bearer {token}"))
            .body(Body::empty())
            .expect("a request");
        let service = TowerToHyperService::new(crate::api::router(engine));
        runtime.expect("threads").block_on(async {
            let answer = hyper::service::Service::call(&service, request).await;
            let (head, body) = answer.expect("it always answers").into_parts();
            let bytes = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
            (head.status.as_u16(), serde_json::from_slice(&bytes).expect("JSON"))
        })
    }

    #[test]
    fn the_log_of_an_engine_has_a_better_surrogate_than_the_service() {
        let (_folder, engine, [operator, edge]) = engine(150);
        let (status, answer) = ask(&engine, &operator, "service=tv");
        assert_eq!(status, 200, "{answer}");
        let body: SurrogateBody = serde_json::from_value(answer).expect("a body");
        let fit = &body.fit;
        // The first interval had nobody to decide on it; of 149 others 14 had no players.
        assert_eq!((fit.decisions, fit.intervals, fit.aggregates), (149 * 6, 135 * 6, 6));
        let found: Vec<&str> = fit.terms.iter().map(|term| term.statistic.as_str()).collect();
        assert_eq!(found, ["mean(throughput)", "p50(rtt)"], "{fit:?}");
        for (term, truth) in fit.terms.iter().zip([0.5, -10.0]) {
            let value = term.coefficient.value;
            assert!((value / truth - 1.0).abs() < 0.03 && term.chosen == 5, "{fit:?}");
        }
        // Throughput explains 1/3, rtt 1/12 and chance 1/300 of what varies.
        let all = 1.0 / 3.0 + 1.0 / 12.0 + 1.0 / 300.0;
        let present = fit.present.as_ref().and_then(|of| of.prediction).expect("it is known");
        assert!((present.r_squared - 1.0 / 3.0 / all).abs() < 0.05, "{fit:?}");
        assert!(fit.fitted.r_squared > 0.98 && fit.gain.low > 0.1, "{fit:?}");
        let bitrate = fit.unsuitable.iter().find(|of| of.statistic == "mean(bitrate)");
        let why = bitrate.map(|of| of.why.as_str());
        assert_eq!(why, Some("it is known in 0 of 84 intervals without a reward"));
        let text = crate::fit_surrogate_text(&body);
        let line = format!("\nsurrogate = \"{}\"\n", fit.surrogate);
        assert!(text.contains(&line) && text.contains("present: mean(throughput)"), "{text}");

        let (status, answer) = ask(&engine, &operator, "service=tv&last=20");
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!((status, &answer["reason"]), (409, &Value::from("overlap")));
        assert!(message.contains("in 108 intervals of 6 aggregates, and 200 of 5"), "{message}");
        assert_eq!(ask(&engine, &operator, "service=radio").0, 404);
        assert_eq!(ask(&engine, &operator, "service=tv&frob=1").0, 400);
        assert_eq!(ask(&engine, &edge, "service=tv").0, 403);
    }
}
