//! Orders for many aggregates at once.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::state::{Hold, ServiceInfo};
use super::types::Action;

/// An order for every aggregate that fits: it is carried out on all of them, or on none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BulkOrder {
    /// Of this service; none: of every one.
    pub service: Option<String>,
    /// Subnets within this one; none: all.
    pub within: Option<String>,
    /// What to do.
    pub action: Action,
    /// For `pin`: the knobs, as `{"gamma": 100}`; those left out stay as they are in force. Another
    /// algorithm of the service as `{"algorithm": "bbr"}`.
    pub knobs: Option<Value>,
    /// For `rollback`: to what was in force in this interval.
    pub interval: Option<i64>,
    /// Why, for the audit log.
    #[serde(default)]
    pub reason: String,
    /// Change nothing, and say what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became of such an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkBody {
    /// Whether it was carried out; false of a dry run.
    pub done: bool,
    /// The aggregates that change, in the order of their names.
    pub changes: Vec<BulkChange>,
    /// How many fit, and are as ordered already.
    pub unchanged: u32,
}

/// What changes of an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkChange {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
    /// How it was.
    pub before: BulkState,
    /// How it is, or would be.
    pub after: BulkState,
}

/// How an aggregate is held, and what is in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BulkState {
    /// Whether it learns, or an operator holds it.
    pub hold: Hold,
    /// Of the configuration; 0 is the service's first.
    pub version: u64,
    /// The algorithm and its knobs.
    pub configuration: Value,
}

impl ServiceInfo {
    /// The knobs of a pin that names some: the others as they are in force. Those of another
    /// algorithm are left out, and so have their safe values.
    pub fn knobs_with(&self, in_force: &Value, named: &Map<String, Value>) -> Map<String, Value> {
        let is_own = in_force["algorithm"] == self.algorithm;
        let learnt = self.knobs.iter().filter(|_| is_own);
        let kept = learnt.filter_map(|knob| {
            Some((knob.name.clone(), in_force["knobs"].get(&knob.name)?.clone()))
        });
        kept.chain(named.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `pin gamma=900` put startup_rate_max back to its safe value, which the dashboard does not.
    #[test]
    fn what_is_not_named_stays_as_it_is_in_force() {
        let range = |name: &str| json!({ "name": name, "min": 1.0, "max": 5000.0 });
        let service = serde_json::from_value(json!({
            "name": "tv", "interval_ms": 1000, "algorithm": "vivace", "reward": "mean(throughput)",
            "knobs": [range("gamma"), range("startup_rate_max")],
        }));
        let service: ServiceInfo = service.expect("a service");
        let named = Map::from_iter([("gamma".to_owned(), json!(900.0))]);
        let pinned = |algorithm: &str| {
            let knobs = json!({ "gamma": 400.0, "startup_rate_max": 1000.0, "fixed": 1.0 });
            let in_force = json!({ "algorithm": algorithm, "knobs": knobs });
            Value::from(service.knobs_with(&in_force, &named))
        };
        assert_eq!(pinned("vivace"), json!({ "gamma": 900.0, "startup_rate_max": 1000.0 }));
        assert_eq!(pinned("allegro"), json!({ "gamma": 900.0 }), "its knobs are its own");
    }
}
