//! Which aggregates share bottlenecks, by the log of decisions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use trimtab_fleet::{Sharing, Sighting, Together};
use trimtab_fleet_client::SharedBody;

use super::gate::Asked;
use super::log::{self, Most};
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::store::{Store, StoreError};

/// Decisions of each aggregate that are read by default.
const LAST: usize = 200;

/// What is compared at most.
const MOST: Most = Most {
    aggregates: 1000,
    decisions: 250_000,
    instead: "let edges have wider prefixes, or read fewer decisions (`last`)",
};

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SharedQuery {
    /// The service
    service: String,
    /// Decisions of each aggregate that are read, the latest ones, up to 10000; default: 200
    last: Option<usize>,
}

/// `GET /v1/shared`
pub(super) async fn answer(
    State(engine): State<Arc<Engine>>,
    Asked(query): Asked<SharedQuery>,
) -> Result<Json<SharedBody>, Refusal> {
    let name = log::service(&engine, &query.service)?.name().to_string();
    let last = query.last.unwrap_or(LAST);
    let body = engine.ask(move |engine| look(&*engine.store, name, last));
    Ok(Json(body.await??))
}

/// Reads the log of all aggregates, and compares them.
fn look(
    store: &dyn Store,
    service: String,
    last: usize,
) -> Result<Result<SharedBody, Refusal>, StoreError> {
    let mut seen = Vec::new();
    let take = &mut |decision| seen.extend(Sighting::of(&decision));
    if let Err(refusal) = log::read(store, (&service, None), last, &MOST, take)? {
        return Ok(Err(refusal));
    }
    let sharing = Sharing::of(seen);
    Ok(sharing.map_err(|e| Refusal::overlap(e.to_string())).map(|sharing| {
        let together = sharing.added_to(Together::default()).to_string();
        let together = together.lines().map(str::to_owned).collect();
        SharedBody { service, together, sharing }
    }))
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
    const COUNT: u64 = 12;

    /// Like chance, from 0 to 1.
    fn noise(n: u64, interval: u64) -> f64 {
        let mixed = (n * 1000 + interval + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as f64 / (1_u64 << 24) as f64
    }

    /// A store after so many intervals of aggregates, of which the first two have one queue.
    fn decided(intervals: u64) -> (tempfile::TempDir, Sqlite) {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "name = \"tv\"\nreward = \"mean(throughput)\"\n[knobs]\n\
                    gamma = { min = 10, max = 1000, scale = \"log\" }\n";
        std::fs::write(folder.path().join("tv.toml"), text).expect("a service");
        let services = Services::read(folder.path(), Duration::from_secs(30)).expect("services");
        let store = Sqlite::open(&folder.path().join("engine.db"), &services.lengths());
        let store = store.expect("a store");
        for at in 0..intervals {
            let begins_ms = (1_000_000 + at as i64) * LENGTH_MS;
            let report = |n: u64| {
                let name = Name { service: "tv".to_owned(), prefix: format!("10.0.{n}.0/24") };
                let row = store.aggregate(&name).expect("it answers");
                let version = row.map_or(0, |row| row.version);
                let queue = noise(if n < 2 { 0 } else { n }, at);
                let mut summary = Summary::new(10);
                let rtt = 0.05 + 0.05 * queue + 0.005 * noise(100 + n, at);
                summary.set("rtt", Sketch::of([rtt])).expect("a statistic");
                let throughput = Sketch::of([10.0 + noise(200 + n, at)]);
                summary.set("throughput", throughput).expect("a statistic");
                let interval = Interval((begins_ms / LENGTH_MS) as u64);
                let key = key_of(&name).parse().expect("a key");
                let report = Report { key, interval, version: version as u64, summary, next: None };
                let bytes = report.encode().expect("a report");
                store::Report { name, interval: begins_ms, version, bytes }
            };
            let reports = (0..COUNT).map(report).collect();
            let (digest, sequence) = ([at as u8; 32], at as i64 + 1);
            let batch = Batch { token: 1, sequence, digest, received_ms: begins_ms, reports };
            store.accept(&[batch]).expect("kept");
            let now_ms = begins_ms + LENGTH_MS + 30_000;
            let due = Due { service: "tv", through: begins_ms, limit: 100, now_ms };
            let mut decide =
                |open: &Open| services.decide(std::slice::from_ref(open), now_ms).remove(0);
            assert_eq!(store.close(&due, &mut decide).expect("it answers").0, COUNT as usize);
        }
        (folder, store)
    }

    #[test]
    fn the_log_names_who_shares_a_queue() {
        let (_folder, store) = decided(80);
        let ask = |last| look(&store, "tv".to_owned(), last).expect("it answers");
        let body = ask(LAST).unwrap();
        assert_eq!(body.together, ["10.0.0.0/24 10.0.1.0/24"]);
        assert_eq!((body.sharing.aggregates, body.sharing.pairs), (COUNT, 66));
        let text = crate::tables::shared_text(&body);
        assert!(text.starts_with("# tv: 1 of 66 pairs of 12 aggregates share"), "{text}");
        assert!(trimtab_fleet::Together::parse(&text).is_ok(), "edges read it: {text}");
        let refused = ask(20).unwrap_err();
        assert_eq!(refused.reason, "overlap");
        assert!(refused.message.starts_with("0 aggregates have 48"), "{}", refused.message);
    }
}
