//! What the engine does with each service, at a glance.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use trimtab_fleet::experiment::mean_effect;
use trimtab_fleet_client::{
    Audit, FellBack, Gain, HeldAggregate, Hold, InForceCount, Name, OverviewBody, ServiceOverview,
};

use super::damage;
use super::operator::{PAGE_MAX, json};
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::store::{Decided, FELL_BACK, Row, Search, StoreError};

/// Aggregates whose decisions are read, spread over those of the service.
const SAMPLE: usize = 60;
/// Decisions that are read of each: two days of 20 minutes.
const DECISIONS: usize = 144;
/// With fewer aggregates that had both, chance says anything.
const GAIN_MIN: usize = 3;
/// Held aggregates of each kind that are named.
const HELD_MAX: usize = 20;
/// Lines about fallbacks, and how old they may be.
const FELL_BACK_MAX: usize = 5;
const FELL_BACK_MS: i64 = 24 * 3_600_000;

/// `GET /v1/overview`
pub(super) async fn overview(
    State(engine): State<Arc<Engine>>,
) -> Result<Json<OverviewBody>, Refusal> {
    let all = |engine: &Engine| {
        let lines = engine.store.audit(i64::MAX, Some(false), PAGE_MAX)?;
        let services = engine.learning().services();
        services.iter().map(|service| of_service(engine, &service.name, &lines)).collect()
    };
    let services = engine.ask(all).await?;
    Ok(Json(OverviewBody { services }))
}

fn of_service(engine: &Engine, name: &str, lines: &[Audit]) -> Result<ServiceOverview, StoreError> {
    let search =
        |hold, limit| Search { service: Some(name.to_owned()), hold, limit, ..Search::default() };
    // One that cannot be read holds up no question about all.
    let of = |hold, limit| -> Result<Vec<Row>, StoreError> {
        Ok(engine.store.aggregates(&search(hold, limit))?.into_iter().flatten().collect())
    };
    let mut rows = of(None, PAGE_MAX + 1)?;
    let more = rows.len() > PAGE_MAX;
    rows.truncate(PAGE_MAX);
    let mut held = Vec::new();
    for hold in [Hold::Paused, Hold::Pinned] {
        held.extend(of(Some(hold), HELD_MAX)?.into_iter().map(|row| held_of(row, lines)));
    }
    let since_ms = now_ms() - FELL_BACK_MS;
    let fell_back = lines
        .iter()
        .filter(|line| line.action == FELL_BACK && line.subject == name && line.at_ms >= since_ms)
        .take(FELL_BACK_MAX)
        .map(|line| FellBack { at_ms: line.at_ms, detail: line.detail.clone() });
    Ok(ServiceOverview {
        name: name.to_owned(),
        aggregates: rows.len() as u32,
        more,
        in_force: in_force(engine, name, &rows),
        gain: gain(engine, &rows)?,
        held,
        fell_back: fell_back.collect(),
    })
}

/// With the order that holds it, where that is not long ago.
fn held_of(row: Row, lines: &[Audit]) -> HeldAggregate {
    let subject = row.name.to_string();
    let order = lines.iter().find(|line| {
        line.subject == subject && ["pause", "pin", "rollback"].contains(&line.action.as_str())
    });
    HeldAggregate {
        prefix: row.name.prefix,
        hold: row.hold,
        who: order.map(|line| line.who.clone()),
        at_ms: order.map(|line| line.at_ms),
        why: order.map(|line| line.detail.clone()).unwrap_or_default(),
    }
}

/// The safe configuration of an aggregate.
fn safe_of(engine: &Engine, name: &Name) -> Value {
    json(&engine.learning().first(name).unwrap_or_default())
}

fn in_force(engine: &Engine, service: &str, rows: &[Row]) -> Vec<InForceCount> {
    let is_kept_safe = engine.safe.of(service).is_some();
    let mut counts: BTreeMap<(bool, String), u32> = BTreeMap::new();
    for row in rows {
        let safe = safe_of(engine, &row.name);
        let own = json(&row.configuration);
        let is_safe = is_kept_safe || row.version == 0 || own == safe;
        let shown = if is_safe { safe } else { own };
        let algorithm = shown["algorithm"].as_str().unwrap_or("-").to_owned();
        *counts.entry((is_safe, algorithm)).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|((safe, algorithm), aggregates)| InForceCount { algorithm, safe, aggregates })
        .collect()
}

/// The sums of an aggregate's rewards, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rewards {
    learnt: (f64, u32),
    safe: (f64, u32),
}

impl Rewards {
    /// Adds an interval. What an operator held, what was part of an experiment, and the safe
    /// configuration after an alarm, where the network is bad, would compare different things.
    fn add(&mut self, decided: &Decided, safe: &Value) {
        let why = json(&decided.detail);
        let decision = &why["decision"];
        let kind = decision["purpose"]["kind"].as_str().unwrap_or("held");
        let is_counted = decided.hold == Hold::Learning
            && decision["part"].is_null()
            && !["held", "safe"].contains(&kind);
        let Some(reward) = decided.reward.filter(|_| is_counted) else { return };
        let is_safe = decided.version == 0 || json(&decided.configuration) == *safe;
        let of = if is_safe { &mut self.safe } else { &mut self.learnt };
        *of = (of.0 + reward, of.1 + 1);
    }
}

/// What was learnt, compared with the safe configuration, on some of these aggregates.
fn gain(engine: &Engine, rows: &[Row]) -> Result<Option<Gain>, StoreError> {
    let step = rows.len().div_ceil(SAMPLE).max(1);
    let mut all = Vec::new();
    for row in rows.iter().step_by(step) {
        let safe = safe_of(engine, &row.name);
        let mut rewards = Rewards::default();
        let of = (row.id, &row.name);
        let (sound, _) = damage::decisions(&*engine.store, of, i64::MAX, DECISIONS)?;
        for decided in &sound {
            rewards.add(decided, &safe);
        }
        all.push(rewards);
    }
    Ok(gain_of(&all))
}

fn gain_of(all: &[Rewards]) -> Option<Gain> {
    let both: Vec<&Rewards> = all.iter().filter(|r| r.learnt.1 > 0 && r.safe.1 > 0).collect();
    if both.len() < GAIN_MIN {
        return None;
    }
    let mean = |(sum, count): (f64, u32)| sum / f64::from(count);
    let differences: Vec<f64> = both.iter().map(|r| mean(r.learnt) - mean(r.safe)).collect();
    let safe = both.iter().map(|r| mean(r.safe)).sum::<f64>() / both.len() as f64;
    Some(Gain {
        effect: mean_effect(&differences)?,
        safe,
        aggregates: both.len() as u32,
        learnt_intervals: both.iter().map(|r| r.learnt.1).sum(),
        safe_intervals: both.iter().map(|r| r.safe.1).sum(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decided(algorithm: &str, kind: &str, part: &str, reward: f64) -> Decided {
        let mut detail = json!({ "decision": { "purpose": { "kind": kind } } });
        if !part.is_empty() {
            detail["decision"]["part"] = json!(part);
        }
        Decided {
            interval: 0,
            at_ms: 0,
            hold: Hold::Learning,
            version: 1,
            configuration: json!({ "algorithm": algorithm, "knobs": {} }).to_string(),
            reports: 1,
            reward: Some(reward),
            detail: detail.to_string(),
        }
    }

    #[test]
    fn what_an_alarm_an_operator_or_an_experiment_put_in_force_is_not_compared() {
        let safe = json!({ "algorithm": "cubic", "knobs": {} });
        let mut rewards = Rewards::default();
        let held = Decided { hold: Hold::Pinned, ..decided("vivace", "held", "", 99.0) };
        for one in [
            decided("vivace", "explore", "", 3.0),
            decided("bbr", "best", "", 5.0),
            decided("cubic", "check", "", 2.0),
            decided("cubic", "safe", "", -99.0),
            decided("vivace", "explore", "treatment", 99.0),
            Decided { reward: None, ..decided("bbr", "best", "", 0.0) },
            Decided { detail: "{}".to_owned(), ..decided("bbr", "best", "", 99.0) },
            held,
        ] {
            rewards.add(&one, &safe);
        }
        assert_eq!(rewards, Rewards { learnt: (8.0, 2), safe: (2.0, 1) });
    }

    #[test]
    fn aggregates_are_compared_with_themselves() {
        // One is ten times as fast as the others. The differences are 1, 2 and 3: 2, ± 4.3027 by
        // Student's t of 2 degrees of freedom × 1/√3.
        let pair =
            |safe: f64, more: f64| Rewards { learnt: (2.0 * (safe + more), 2), safe: (safe, 1) };
        let alone = Rewards { learnt: (1000.0, 1), safe: (0.0, 0) };
        let all = [pair(1.0, 1.0), pair(1.0, 2.0), pair(10.0, 3.0), alone];
        let gain = gain_of(&all).expect("enough");
        assert_eq!((gain.aggregates, gain.learnt_intervals, gain.safe_intervals), (3, 6, 3));
        assert!((gain.safe - 4.0).abs() < 1e-12 && (gain.effect.value - 2.0).abs() < 1e-12);
        assert!((gain.effect.high - gain.effect.value - 2.484_138).abs() < 1e-5, "{gain:?}");
        assert_eq!(gain_of(&all[1..]), None, "two are too few");
    }
}
