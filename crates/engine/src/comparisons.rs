//! What hosts found by comparing their rules: the last of each host, in memory. Hosts send it again
//! every minute, so it is no part of the store; with several engines each has what it was sent.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trimtab_fleet_client::{HostCompared, HostComparisons, Token};

/// Hosts that may send by one token.
const HOSTS_MAX: usize = 256;
/// Rules and controls of a host.
const RULES_MAX: usize = 128;
/// Metrics of a rule and control.
const METRICS_MAX: usize = 8;
/// Characters of a name.
const NAME_MAX: usize = 253;
/// A host that is silent for so long is forgotten.
const KEPT_MS: i64 = 24 * 3600 * 1000;

/// By token and host.
type Hosts = BTreeMap<(i64, String), Vec<HostCompared>>;

/// The last comparisons of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Comparisons(Mutex<Hosts>);

impl Comparisons {
    /// Keeps what a host found, in place of what it sent before.
    ///
    /// # Errors
    /// It is more than the engine keeps: then what is, and how much it takes.
    pub(crate) fn keep(
        &self,
        token: &Token,
        sent: HostComparisons,
        now_ms: i64,
    ) -> Result<(), String> {
        check(&sent)?;
        let mut hosts = self.hosts(now_ms);
        let at = (token.id, sent.host.clone());
        let of_token = hosts.keys().filter(|(id, _)| *id == token.id).count();
        if of_token >= HOSTS_MAX && !hosts.contains_key(&at) {
            return Err(format!(
                "{HOSTS_MAX} hosts send comparisons by the token {}: give others their own token",
                token.name
            ));
        }
        let found = |found| HostCompared {
            token: token.name.clone(),
            host: sent.host.clone(),
            received_ms: now_ms,
            found,
        };
        hosts.insert(at, sent.rules.into_iter().map(found).collect());
        Ok(())
    }

    /// All that is known.
    pub(crate) fn all(&self, now_ms: i64) -> Vec<HostCompared> {
        self.hosts(now_ms).values().flatten().cloned().collect()
    }

    /// Without those that are silent for long.
    fn hosts(&self, now_ms: i64) -> MutexGuard<'_, Hosts> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = |one: &HostCompared| now_ms - one.received_ms < KEPT_MS;
        hosts.retain(|_, list| list.first().is_some_and(is_new));
        hosts
    }
}

fn check(sent: &HostComparisons) -> Result<(), String> {
    let names = sent.rules.iter().flat_map(|one| [&one.rule, &one.control]);
    let metrics = sent.rules.iter().flat_map(|one| one.metrics.iter().map(|of| &of.metric));
    let is_long = |name: &&String| name.len() > NAME_MAX;
    if sent.host.is_empty() || names.chain(metrics).chain([&sent.host]).any(|name| is_long(&name)) {
        return Err(format!("a host has a name, and no name is longer than {NAME_MAX} bytes"));
    }
    if sent.rules.len() > RULES_MAX {
        return Err(format!("a host compares at most {RULES_MAX} rules and controls"));
    }
    if sent.rules.iter().any(|one| one.metrics.len() > METRICS_MAX) {
        return Err(format!("a comparison has at most {METRICS_MAX} metrics"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use trimtab_fleet_client::{Role, RuleCompared};

    use super::*;

    fn token(id: i64) -> Token {
        Token {
            id,
            name: format!("token-{id}"),
            role: Role::Edge,
            services: Vec::new(),
            prefixes: Vec::new(),
            created_ms: 0,
            revoked_ms: None,
            expires_ms: None,
            used_ms: None,
            former: None,
        }
    }

    fn sent(host: &str, rules: &[&str]) -> HostComparisons {
        let of = |rule: &&str| RuleCompared {
            rule: (*rule).to_owned(),
            control: "former".to_owned(),
            over: false,
            networks: 3,
            metrics: Vec::new(),
        };
        HostComparisons { host: host.to_owned(), rules: rules.iter().map(of).collect() }
    }

    fn known(all: &Comparisons, now_ms: i64) -> Vec<String> {
        let told = all.all(now_ms);
        told.iter().map(|one| format!("{} {} {}", one.token, one.host, one.found.rule)).collect()
    }

    #[test]
    fn the_last_of_each_host_is_kept_for_a_day() {
        let all = Comparisons::default();
        all.keep(&token(1), sent("a", &["web", "tv"]), 0).unwrap();
        all.keep(&token(2), sent("a", &["web"]), 1).unwrap();
        all.keep(&token(1), sent("a", &["tv"]), 2).unwrap();
        assert_eq!(known(&all, 3), ["token-1 a tv", "token-2 a web"]);
        assert_eq!(known(&all, KEPT_MS + 1), ["token-1 a tv"]);
        assert_eq!(known(&all, KEPT_MS + 2), [""; 0]);
    }

    #[test]
    fn there_is_an_end_to_hosts_and_rules() {
        let all = Comparisons::default();
        for i in 0..HOSTS_MAX {
            all.keep(&token(1), sent(&i.to_string(), &["web"]), 0).unwrap();
        }
        let refused = all.keep(&token(1), sent("more", &["web"]), 0).unwrap_err();
        assert!(refused.contains("their own token"), "{refused}");
        all.keep(&token(1), sent("0", &["tv"]), 0).expect("it is known");
        all.keep(&token(2), sent("more", &["web"]), 0).expect("another token");
        for wrong in [sent("", &["web"]), sent("a", &["web"; RULES_MAX + 1])] {
            assert!(all.keep(&token(2), wrong, 0).is_err());
        }
        assert!(all.keep(&token(2), sent(&"a".repeat(NAME_MAX + 1), &[]), 0).is_err());
    }
}
