//! Orders that keep services on their safe configurations, all aggregates at once.
//!
//! Such an order changes nothing that is kept of an aggregate. While it is in force, edges get the
//! service's first configuration, which is the safe one, as version 0. Nothing is learnt of the
//! service, and its experiments and rollouts stand still. Orders are in the store, so that they
//! outlive engines; each engine reads them once a second.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use trimtab_fleet_client::{EndSafe, NewSafe, SafeOrder};

use crate::engine::Engine;
use crate::services::untouched;
use crate::store::{Closed, ITSELF, Line};
use crate::tables::time;

/// How often an engine looks for orders that another one took.
const READ_EVERY: Duration = Duration::from_secs(1);

/// The orders in force, as this engine knows them.
#[derive(Default)]
pub(crate) struct Safe(RwLock<Arc<Vec<SafeOrder>>>);

impl Safe {
    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Arc<Vec<SafeOrder>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The one that keeps a service.
    pub(crate) fn of(&self, service: &str) -> Option<SafeOrder> {
        keeping(&self.all(), service).cloned()
    }

    /// Takes over what the store has; says whether that is something else than before.
    pub(crate) fn set(&self, orders: Vec<SafeOrder>) -> bool {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = **known != orders;
        *known = Arc::new(orders);
        is_new
    }
}

/// Looks for orders of other engines until this one ends. Trouble with the store is for the closer to tell.
pub(crate) async fn follow(engine: Weak<Engine>) {
    loop {
        tokio::time::sleep(READ_EVERY).await;
        let Some(engine) = engine.upgrade() else { return };
        let _ = tokio::task::spawn_blocking(move || engine.read_safe()).await;
    }
}

/// Orders as they are kept. Where they are not understood, every service is kept safe.
pub(crate) fn read(text: &str) -> Vec<SafeOrder> {
    if text.is_empty() {
        return Vec::new();
    }
    serde_json::from_str(text).unwrap_or_else(|e| {
        let why = format!("the orders in the store are not understood: {e}");
        vec![SafeOrder { service: None, who: ITSELF.to_owned(), at_ms: 0, why }]
    })
}

fn written(orders: &[SafeOrder]) -> String {
    if orders.is_empty() { String::new() } else { json!(orders).to_string() }
}

/// The order that keeps a service.
pub(crate) fn keeping<'a>(orders: &'a [SafeOrder], service: &str) -> Option<&'a SafeOrder> {
    orders.iter().find(|order| order.service.as_deref().is_none_or(|own| own == service))
}

fn line(action: &'static str, services: &[String], (who, why): (&str, &str), now_ms: i64) -> Line {
    let subject =
        if services.is_empty() { "every service".to_owned() } else { services.join(", ") };
    let (who, detail) = (who.to_owned(), why.trim().to_owned());
    Line { at_ms: now_ms, who, action, subject, detail }
}

/// The orders with a new one, and its line in the audit.
pub(crate) fn with(text: &str, new: &NewSafe, who: &str, now_ms: i64) -> (String, Line) {
    let mut orders = read(text);
    let mut add = |service: Option<String>| {
        orders.retain(|order| order.service != service);
        let (who, why) = (who.to_owned(), new.why.trim().to_owned());
        orders.push(SafeOrder { service, who, at_ms: now_ms, why });
    };
    if new.services.is_empty() {
        add(None);
    }
    new.services.iter().for_each(|service| add(Some(service.clone())));
    (written(&orders), line("safe", &new.services, (who, &new.why), now_ms))
}

/// The orders without these, and the line in the audit; or why that cannot be.
pub(crate) fn without(
    text: &str,
    end: &EndSafe,
    who: &str,
    now_ms: i64,
) -> Result<(String, Line), String> {
    let mut orders = read(text);
    if orders.is_empty() {
        return Err("no order keeps a service on its safe configuration".to_owned());
    }
    if end.services.is_empty() {
        orders.clear();
    }
    for service in &end.services {
        if orders.iter().any(|order| order.service.is_none()) {
            return Err(format!(
                "one order keeps every service safe, {service} with the others: end it for all"
            ));
        }
        if keeping(&orders, service).is_none() {
            return Err(format!("no order keeps {service} on its safe configuration"));
        }
        orders.retain(|order| order.service.as_deref() != Some(service));
    }
    Ok((written(&orders), line("safe ended", &end.services, (who, &end.reason), now_ms)))
}

/// Closes an interval of a service that an order keeps safe.
pub(crate) fn close(order: &SafeOrder) -> Closed {
    let SafeOrder { who, at_ms, why, .. } = order;
    let sentence = format!(
        "Nothing was learnt: the safe configuration has been in force since {} UTC by order of {who}: {why}",
        time(*at_ms)
    );
    let detail = json!({ "sentence": sentence, "safe": true }).to_string();
    Closed { detail, ..untouched("") }
}

/// Whether such an order was in force when an interval was closed, by the detail of its decision.
pub(crate) fn was(why: &Value) -> bool {
    why["safe"] == true
}

impl Engine {
    /// Reads the orders from the store. Who waits for a configuration looks again where they have
    /// changed. Blocks.
    pub(crate) fn read_safe(&self) -> Result<(), crate::store::StoreError> {
        if self.safe.set(read(&self.store.safe_orders()?)) {
            // Nobody may wait.
            let _ = self.changes.send(Arc::default());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(services: &[&str]) -> NewSafe {
        let services = services.iter().map(|name| (*name).to_owned()).collect();
        NewSafe { services, why: " trouble at the peer ".to_owned() }
    }

    fn end(services: &[&str]) -> EndSafe {
        let services = services.iter().map(|name| (*name).to_owned()).collect();
        EndSafe { services, reason: "over".to_owned() }
    }

    #[test]
    fn an_order_is_for_every_service_or_for_some_and_ends_as_it_was_given() {
        let (some, line) = with("", &new(&["tv", "vod"]), "kim", 5);
        let texts = (line.who.as_str(), line.action, line.subject.as_str(), line.detail.as_str());
        assert_eq!(texts, ("kim", "safe", "tv, vod", "trouble at the peer"));
        let orders = read(&some);
        let tv = keeping(&orders, "tv").expect("it is kept safe");
        assert_eq!((tv.who.as_str(), tv.at_ms, tv.why.as_str()), ("kim", 5, "trouble at the peer"));
        assert_eq!(keeping(&orders, "web"), None);
        let (again, _) = with(&some, &new(&["tv"]), "robin", 6);
        assert_eq!(read(&again).len(), 2);
        assert_eq!(keeping(&read(&again), "tv").expect("as before").who, "robin");
        let (rest, _) = without(&again, &end(&["tv"]), "kim", 7).unwrap();
        assert_eq!((keeping(&read(&rest), "tv"), read(&rest).len()), (None, 1));
        assert!(without(&rest, &end(&["tv"]), "kim", 7).unwrap_err().contains("no order keeps tv"));

        let (all, line) = with(&rest, &new(&[]), "kim", 8);
        assert_eq!(line.subject, "every service");
        assert!(keeping(&read(&all), "one that is to come").is_some());
        let refused = without(&all, &end(&["vod"]), "kim", 9).unwrap_err();
        assert!(refused.contains("end it for all"), "{refused}");
        let (none, line) = without(&all, &end(&[]), "kim", 9).unwrap();
        assert_eq!((none.as_str(), line.action, line.detail.as_str()), ("", "safe ended", "over"));
        assert!(without(&none, &end(&[]), "kim", 9).is_err());
    }

    #[test]
    fn what_is_not_understood_keeps_everything_safe() {
        let orders = read("{\"of another version\": 1}");
        assert!(keeping(&orders, "tv").expect("all").why.contains("not understood"));
        assert_eq!(without("[", &end(&[]), "kim", 9).unwrap().0, "");
    }
}
