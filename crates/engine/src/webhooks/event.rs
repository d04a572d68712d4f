//! An event as a webhook gets it: a line of the audit as JSON, with a signature.
//!
//! Form, headers and signature are those of Standard Webhooks
//! (<https://github.com/standard-webhooks/standard-webhooks>, "Signature scheme"), so that its
//! libraries check them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;
use trimtab_fleet::Prefix;
use trimtab_fleet_client::Audit;

use crate::store::Chained;
use crate::tables::iso_time;

/// How secrets begin.
const PREFIX: &str = "whsec_";
/// The bytes of a secret, as Standard Webhooks recommends.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The most characters of a text, so that a body stays small.
const TEXT_MAX: usize = 2000;

/// Which lines of the audit are events, and of which type. Refusals have none: they name addresses.
const TYPES: [(&str, &str); 21] = [
    ("fell back", "fallback"),
    ("experiment begun", "experiment.begun"),
    ("experiment over", "experiment.over"),
    ("experiment stopped", "experiment.stopped"),
    ("rollout begun", "rollout.begun"),
    ("rollout advanced", "rollout.advanced"),
    ("rollout done", "rollout.done"),
    ("rollout rolled back", "rollout.rolled_back"),
    ("rollout held", "rollout.held"),
    ("rollout resumed", "rollout.resumed"),
    ("rollout aborted", "rollout.aborted"),
    ("safe", "safe.begun"),
    ("safe ended", "safe.ended"),
    ("pause", "order.pause"),
    ("resume", "order.resume"),
    ("pin", "order.pin"),
    ("rollback", "order.rollback"),
    ("reset", "order.reset"),
    ("token added", "token.added"),
    ("token rotated", "token.rotated"),
    ("token revoked", "token.revoked"),
];

/// Whether `wanted` is a type, or the part of one before its dot.
pub(crate) fn is_type(wanted: &str) -> bool {
    TYPES.iter().any(|(_, of)| covers(wanted, of))
}

fn covers(wanted: &str, of: &str) -> bool {
    of.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What a webhook is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The same from every engine, and each time that it is sent.
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) at_ms: i64,
    pub(super) body: String,
}

impl Event {
    /// The event of a line of the audit, where it is one.
    pub(super) fn of(chained: &Chained) -> Option<Self> {
        let Audit { id: line, at_ms, who, action, subject, detail } = &chained.line;
        let (_, kind) = TYPES.iter().find(|(of, _)| of == action)?;
        let hash: String = chained.hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let body = json!({
            "type": kind,
            "timestamp": iso_time(*at_ms),
            "data": {
                "line": line, "who": cut(who), "action": action, "subject": cut(subject),
                "detail": cut(detail),
            },
        });
        let id = format!("audit-{line}-{hash}");
        Some(Self { id, kind, at_ms: *at_ms, body: body.to_string() })
    }

    /// Whether one of these types, or of their beginnings, is its own. None: all are wanted.
    pub(super) fn is_wanted(&self, types: &[String]) -> bool {
        types.is_empty() || types.iter().any(|wanted| covers(wanted, self.kind))
    }

    /// The header `webhook-signature` at a time in s since 1970, with one signature for each secret.
    pub(super) fn signature(&self, secrets: &[Vec<u8>], at_s: i64) -> String {
        let signed = |secret: &Vec<u8>| {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes any length");
            mac.update(format!("{}.{at_s}.{}", self.id, self.body).as_bytes());
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        };
        secrets.iter().map(signed).collect::<Vec<_>>().join(" ")
    }
}

/// The secrets of a file, one in a line; or what is wrong with it.
pub(super) fn secrets(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let read = |line: &str| {
        let secret = line.strip_prefix(PREFIX).and_then(|rest| STANDARD.decode(rest).ok());
        secret.filter(|secret| SECRET_BYTES.contains(&secret.len())).ok_or_else(|| {
            format!("a line is no secret: write {PREFIX} and 24 to 64 random bytes in base64")
        })
    };
    let all: Vec<Vec<u8>> = lines.map(read).collect::<Result<_, _>>()?;
    if all.is_empty() { Err("there is no secret in it".to_owned()) } else { Ok(all) }
}

/// A text without addresses of clients, and not longer than it may be.
fn cut(text: &str) -> String {
    let text = without_addresses(text);
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Where an edge reports smaller subnets than usual, down to single addresses, those are named by the
/// usual ones.
fn without_addresses(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || ".:/".contains(c);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let other = rest.find(is_part).unwrap_or(rest.len());
        clean.push_str(&rest[..other]);
        rest = &rest[other..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        clean.push_str(&network(&rest[..end]));
        rest = &rest[end..];
    }
    clean
}

/// A word with the usual subnet in the place of a smaller one.
fn network(word: &str) -> String {
    let whole = word.trim_end_matches(['.', ':', '/']);
    let found =
        [word, whole].into_iter().find_map(|text| Some((text, text.parse::<Prefix>().ok()?)));
    let Some((text, prefix)) = found else { return word.to_owned() };
    let usual = Prefix::of(prefix.address(), Prefix::BITS);
    if prefix.len() <= usual.len() {
        return word.to_owned();
    }
    format!("{usual}{}", &word[text.len()..])
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn chained(action: &str, detail: &str) -> Chained {
        let texts = ["kim", action, "tv/203.0.113.0/24", detail].map(str::to_owned);
        let [who, action, subject, detail] = texts;
        let line = Audit { id: 12, at_ms: 1_795_320_000_042, who, action, subject, detail };
        Chained { line, previous: vec![0; 32], hash: (0..32).collect() }
    }

    #[test]
    fn an_event_has_the_same_id_and_body_whichever_engine_sends_it() {
        let event = Event::of(&chained("pin", "trouble at the peer")).expect("an event");
        assert_eq!(Event::of(&chained("pin", "trouble at the peer")), Some(event.clone()));
        assert_eq!((event.id.as_str(), event.kind), ("audit-12-0001020304050607", "order.pin"));
        let body: Value = serde_json::from_str(&event.body).expect("JSON");
        let expected = json!({
            "type": "order.pin", "timestamp": "2026-11-22T04:00:00.042Z",
            "data": {
                "line": 12, "who": "kim", "action": "pin", "subject": "tv/203.0.113.0/24",
                "detail": "trouble at the peer",
            },
        });
        assert_eq!(body, expected);
        let long = Event::of(&chained("pin", &"ä".repeat(100_000))).expect("an event");
        assert!(long.body.len() < 5000, "{}", long.body.len());
    }

    #[test]
    fn refusals_name_addresses_and_are_no_events() {
        for action in ["refused", "audit forgotten", "store moved"] {
            assert_eq!(Event::of(&chained(action, "")), None);
        }
    }

    #[test]
    fn a_client_is_named_by_its_network() {
        for (text, expected) in [
            ("tv 203.0.113.7/32", "tv 203.0.113.0/24"),
            (
                "203.0.113.7 (guard), 2001:db8:1:2::9/128 (reward)",
                "203.0.113.0/24 (guard), 2001:db8:1::/48 (reward)",
            ),
            ("at 203.0.113.7: 203.0.113.9.", "at 203.0.113.0/24: 203.0.113.0/24."),
            ("[\"203.0.113.64/26\"]", "[\"203.0.113.0/24\"]"),
            ("tv 203.0.113.0/24 10.0.0.0/8", "tv 203.0.113.0/24 10.0.0.0/8"),
            (
                "version 12: {\"gamma\":900.5} a/b 1:2 äé",
                "version 12: {\"gamma\":900.5} a/b 1:2 äé",
            ),
        ] {
            assert_eq!(without_addresses(text), expected);
        }
    }

    #[test]
    fn a_type_or_its_first_part_chooses_events() {
        let event = Event::of(&chained("rollout rolled back", "")).expect("an event");
        let wants = |types: &[&str]| {
            event.is_wanted(&types.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        };
        assert!(wants(&[]) && wants(&["rollout"]) && wants(&["safe", "rollout.rolled_back"]));
        assert!(!wants(&["rollout.done"]) && !wants(&["roll"]) && !wants(&["fallback"]));
        assert!(is_type("fallback") && is_type("order") && is_type("safe.ended"));
        assert!(!is_type("") && !is_type("fall") && !is_type("order.") && !is_type("refused"));
    }

    /// The message by which the reference libraries of Standard Webhooks are tested.
    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        let event = Event {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            kind: "fallback",
            at_ms: 0,
            body: "{\"test\": 2432232314}".to_owned(),
        };
        let secret = secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").expect("a secret");
        assert_eq!(
            event.signature(&secret, 1_614_265_330),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        let two = [secret.clone(), secret].concat();
        assert_eq!(event.signature(&two, 1_614_265_330).split(' ').count(), 2);
    }

    #[test]
    fn a_file_without_a_good_secret_is_refused() {
        for text in ["", "\n", "secret", "whsec_", "whsec_AAAA", "whsec_not base64!"] {
            assert!(secrets(text).is_err(), "{text:?}");
        }
    }
}
