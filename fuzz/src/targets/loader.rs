//! The loader's channel: whatever a steerer sends, what may be carried out gives sockets our own
//! algorithms alone, tells the service manager one line, and is the same when it is sent again.

use serde_json::Value;
use trimtab_agent::fuzzing;

const CONFIG: &str = "[compare]\nshare = \"10%\"\n[[rule]]\nport = 443\nassign = true\n";

fn is_ours(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.starts_with("trimtab_"))
}

pub(crate) fn target(datagram: &[u8]) {
    match fuzzing::loader(CONFIG, datagram) {
        Err(why) => assert!(!why.contains('\n'), "{why}"),
        Ok(text) => {
            assert_eq!(fuzzing::loader(CONFIG, text.as_bytes()).as_ref(), Ok(&text));
            let request: Value = serde_json::from_str(&text).expect("JSON");
            let list =
                |kind: &str, key: &str| request[kind][key].as_array().cloned().unwrap_or_default();
            let orders = list("order", "orders");
            assert!(orders.iter().all(|order| is_ours(&order["to"])), "{text}");
            let gives = |choice: &Value| match &choice["gives"] {
                Value::String(other) => other == "former" || other == "nothing",
                named => is_ours(&named["algorithm"]),
            };
            assert!(list("follow", "list").iter().all(gives), "{text}");
            let follow = &request["follow"];
            let rollout = follow["rollout"].as_f64().unwrap_or(0.0);
            let share = follow["plan"]["share"].as_f64().unwrap_or(0.5);
            assert!((0.0..=1.0).contains(&rollout) && share > 0.0 && share <= 0.5, "{text}");
            let status = request["alive"]["status"].as_str().unwrap_or_default();
            assert!(!status.contains('\n'), "{text}");
            assert!(request.get("set-default").is_none(), "{text}");
        }
    }
}
