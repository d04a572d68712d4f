//! The control socket: whatever bytes a client sends, and in whatever pieces, it gets one line of
//! JSON. Orders that were taken are in force, and are the same when the agent starts again.

use trimtab_agent::fuzzing::{self, Agent};

const CONFIG: &str = "[[rule]]\nname = \"web\"\nport = 443\n";

pub(crate) fn target(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    let agent = Agent::new(fuzzing::config(CONFIG).expect("a good configuration"));
    for question in bytes.split_inclusive(|byte| *byte == b'\n') {
        let answer = agent.ask(question, piece.into());
        let (end, line) = answer.split_last().expect("an answer");
        assert!(*end == b'\n' && !line.contains(&b'\n'), "{}", String::from_utf8_lossy(line));
        let answer: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        let answer = answer.as_object().expect("an object");
        assert!(answer.len() == 1, "{answer:?}");
        assert!(answer.contains_key("ok") || answer["error"].is_string(), "{answer:?}");
        if let Ok(Some(order)) = fuzzing::order(question) {
            let again = fuzzing::order(&fuzzing::question(&order)).expect("a question");
            let again = again.expect("an order");
            assert_eq!((again.verb, &again.target), (order.verb, &order.target));
            let lasts = |order: &trimtab_agent::Order| order.lasts.unwrap_or(-1.0);
            assert!((lasts(&again) - lasts(&order)).abs() <= 1e-15 * lasts(&order).abs());
        }
    }
    let (orders, text) = agent.orders();
    let (again, _) = fuzzing::orders(&text).expect("its own file");
    let lasting: Vec<_> =
        orders.iter().filter(|o| !o.target.to_string().starts_with("flow:")).collect();
    assert_eq!(lasting.len(), again.len(), "{text}");
    for (order, again) in lasting.into_iter().zip(&again) {
        assert_eq!((order.held, &order.target), (again.held, &again.target), "{text}");
        let left = |order: &trimtab_agent::HoldStatus| order.left_s.unwrap_or(-1.0);
        assert!((left(order) - left(again)).abs() <= 1e-3, "{text}");
    }
}
