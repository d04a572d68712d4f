//! Who may ask: the tokens as this engine knows them, and when each was used.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use trimtab_fleet_client::{Expiring, Role, Token};

use crate::store::{KeptToken, StoreError, Use};
use crate::tables::time;

/// How long the list of tokens is believed; another process may revoke one.
const TOKENS_FOR_MS: i64 = 2000;
/// How long it is believed that a token is not in it; another process may have made one.
const NONE_FOR_MS: i64 = 250;
/// Between two times that uses are written down.
const USES_EVERY_MS: i64 = 60_000;
/// Tokens that people are warned about at a time.
const EXPIRING_MAX: usize = 20;

/// A secret that is valid, or was.
#[derive(Clone, Debug)]
struct Known {
    token: Arc<Token>,
    expires_ms: Option<i64>,
    is_former: bool,
}

/// Whose secret it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is valid, until a time if that is known.
    Valid(Arc<Token>, Option<i64>),
    /// It was, until a time; and what to do.
    Expired(Arc<Token>, String),
    /// Of no token, or of one that is revoked.
    Unknown,
}

/// How many tokens there are that are not revoked, by how long they are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) valid: usize,
    /// Of the valid ones, for less than two weeks.
    pub(crate) expiring: usize,
    pub(crate) expired: usize,
}

/// The tokens, and their uses since they were last written down.
#[derive(Default)]
pub(crate) struct Who {
    secrets: RwLock<Arc<HashMap<Vec<u8>, Known>>>,
    read_ms: AtomicI64,
    uses: Mutex<HashMap<Vec<u8>, (i64, i64)>>,
    /// When the certificates expire that came last by the names of tokens without a secret.
    certificates: Mutex<HashMap<Vec<u8>, i64>>,
    written_ms: AtomicI64,
}

impl Who {
    fn secrets(&self) -> Arc<HashMap<Vec<u8>, Known>> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whose it is that has this hash; the list is read again when it is old. Blocks.
    pub(crate) fn find(
        &self,
        hash: &[u8],
        now_ms: i64,
        read: impl FnOnce() -> Result<Vec<KeptToken>, StoreError>,
    ) -> Result<Found, StoreError> {
        // Looked up by hash: how long that takes tells of the hash, which makes no token.
        let mut secrets = self.secrets();
        let believed_ms = if secrets.contains_key(hash) { TOKENS_FOR_MS } else { NONE_FOR_MS };
        // A list that is of the future is from before the clock was set back.
        let age_ms = now_ms.saturating_sub(self.read_ms.load(Ordering::Relaxed));
        if !(0..believed_ms).contains(&age_ms) {
            self.set(read()?, now_ms);
            secrets = self.secrets();
        }
        let Some(known) = secrets.get(hash).filter(|one| one.token.revoked_ms.is_none()) else {
            return Ok(Found::Unknown);
        };
        let token = Arc::clone(&known.token);
        match known.expires_ms.filter(|at| *at <= now_ms) {
            Some(at) => Ok(Found::Expired(token, why(&known.token.name, at, known.is_former))),
            None => {
                let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
                uses.insert(hash.to_vec(), (token.id, now_ms));
                Ok(Found::Valid(token, known.expires_ms))
            }
        }
    }

    /// Whether the list has this hash, also where its token is revoked.
    pub(crate) fn lists(&self, hash: &[u8]) -> bool {
        self.secrets().contains_key(hash)
    }

    /// Remembers until when the latest certificate of a token is valid.
    pub(crate) fn certificate_lasts(&self, hash: &[u8], expires_ms: Option<i64>) {
        let mut known = self.certificates.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = known.get(hash).copied().max(expires_ms);
        if let Some(latest) = latest {
            known.insert(hash.to_vec(), latest);
        }
    }

    /// Takes over what the store has.
    pub(crate) fn set(&self, all: Vec<KeptToken>, now_ms: i64) {
        let mut secrets = HashMap::with_capacity(all.len());
        for KeptToken { token, hash, former } in all {
            let token = Arc::new(token);
            let known = |expires_ms, is_former| {
                let token = Arc::clone(&token);
                Known { token, expires_ms, is_former }
            };
            if let (Some(hash), Some(former)) = (former, &token.former) {
                secrets.insert(hash, known(Some(former.expires_ms), true));
            }
            secrets.insert(hash, known(token.expires_ms, false));
        }
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(secrets);
        self.read_ms.store(now_ms, Ordering::Relaxed);
    }

    /// The uses to write down, once a minute; or all there are.
    pub(crate) fn take_uses(&self, now_ms: i64, all: bool) -> Vec<Use> {
        let age_ms = now_ms - self.written_ms.load(Ordering::Relaxed);
        if !all && (0..USES_EVERY_MS).contains(&age_ms) {
            return Vec::new();
        }
        self.written_ms.store(now_ms, Ordering::Relaxed);
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        let one = |(hash, (token, at_ms))| Use { token, hash, at_ms };
        uses.into_iter().map(one).collect()
    }

    /// Every token, with when its secret or its latest certificate expires.
    fn present(&self) -> Vec<Arc<Token>> {
        let secrets = self.secrets();
        let certificates = self.certificates.lock().unwrap_or_else(PoisonError::into_inner);
        let present = secrets.iter().filter(|(_, one)| !one.is_former);
        let one = |(hash, one): (&Vec<u8>, &Known)| match certificates.get(hash) {
            Some(at) => Arc::new(Token { expires_ms: Some(*at), ..(*one.token).clone() }),
            None => Arc::clone(&one.token),
        };
        present.map(one).collect()
    }

    /// The numbers of edges' tokens that are valid.
    pub(crate) fn edges(&self, now_ms: i64) -> BTreeSet<i64> {
        let present = self.present().into_iter().filter(|token| {
            token.role == Role::Edge
                && token.revoked_ms.is_none()
                && token.expires_ms.is_none_or(|at| at > now_ms)
        });
        present.map(|token| token.id).collect()
    }

    /// Tokens whose secret expires soon, the next one first.
    pub(crate) fn expiring(&self, now_ms: i64) -> Vec<Expiring> {
        let soon = self.present().into_iter().filter(|token| token.expires_soon(now_ms));
        let mut soon: Vec<Expiring> = soon
            .filter_map(|token| {
                Some(Expiring { name: token.name.clone(), expires_ms: token.expires_ms? })
            })
            .collect();
        soon.sort_unstable_by(|a, b| (a.expires_ms, &a.name).cmp(&(b.expires_ms, &b.name)));
        soon.truncate(EXPIRING_MAX);
        soon
    }

    pub(crate) fn standing(&self, now_ms: i64) -> Standing {
        let mut standing = Standing::default();
        for token in self.present().iter().filter(|token| token.revoked_ms.is_none()) {
            match token.expires_ms {
                Some(at) if at <= now_ms => standing.expired += 1,
                _ => standing.valid += 1,
            }
            standing.expiring += usize::from(token.expires_soon(now_ms));
        }
        standing
    }

    /// What the log says once a day of tokens that expire soon.
    pub(crate) fn warning(&self, now_ms: i64) -> Option<String> {
        let count = self.standing(now_ms).expiring;
        let one = |of: &Expiring| format!("{} on {} UTC", of.name, time(of.expires_ms));
        let named: Vec<String> = self.expiring(now_ms).iter().map(one).collect();
        (count > 0).then(|| {
            let more = count - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!(
                "tokens expire: {}{more}. `trimtab engine token rotate NAME` makes another secret; \
                 a certificate (cert:NAME) is to be renewed",
                named.join(", ")
            )
        })
    }
}

/// What to do about a secret that has expired.
fn why(name: &str, at_ms: i64, is_former: bool) -> String {
    let at = time(at_ms);
    if is_former {
        return format!(
            "this secret of {name} was replaced by another, and expired on {at} UTC: give the one \
             that `trimtab engine token rotate {name}` printed, or make another"
        );
    }
    format!(
        "the token {name} expired on {at} UTC: `trimtab engine token rotate {name}` on the engine's \
         machine makes another secret"
    )
}

#[cfg(test)]
mod tests {
    use trimtab_fleet_client::FormerSecret;

    use super::*;

    const DAY_MS: i64 = 86_400_000;

    fn kept(id: i64, name: &str, expires_ms: Option<i64>) -> KeptToken {
        let token = Token {
            id,
            name: name.to_owned(),
            role: Role::Viewer,
            services: Vec::new(),
            prefixes: Vec::new(),
            created_ms: 0,
            revoked_ms: None,
            expires_ms,
            used_ms: None,
            former: None,
        };
        KeptToken { token, hash: vec![id as u8; 32], former: None }
    }

    fn never_read() -> Result<Vec<KeptToken>, StoreError> {
        panic!("the list is new")
    }

    #[test]
    fn a_secret_is_valid_until_it_expires_and_the_one_before_for_a_while() {
        let who = Who::default();
        let mut rotated = kept(1, "edge-1", Some(9000));
        rotated.former = Some(vec![7; 32]);
        rotated.token.former = Some(FormerSecret { expires_ms: 5500, used_ms: None });
        let find = |hash: u8, now_ms| {
            who.find(&[hash; 32], now_ms, || Ok(vec![rotated.clone(), kept(2, "kim", None)]))
        };
        let name = |found| match found {
            Ok(Found::Valid(token, until)) => format!("{} until {until:?}", token.name),
            Ok(Found::Expired(_, why)) => why,
            other => format!("{other:?}"),
        };
        assert_eq!(name(find(1, 5000)), "edge-1 until Some(9000)");
        assert_eq!(name(find(7, 5499)), "edge-1 until Some(5500)");
        assert_eq!(name(find(2, 5500)), "kim until None");
        assert_eq!(find(3, 5500), Ok(Found::Unknown));
        assert!(name(find(7, 5500)).contains("was replaced by another, and expired on 1970"));
        assert!(name(find(1, 8999)).starts_with("edge-1"));
        let expired = name(find(1, 9000));
        assert!(expired.contains("trimtab engine token rotate edge-1"), "{expired}");
        // Of each the last use, once.
        let mut uses = who.take_uses(60_000, false);
        uses.sort_unstable_by_key(|one| one.hash.clone());
        let uses: Vec<_> = uses.iter().map(|one| (one.token, one.hash[0], one.at_ms)).collect();
        assert_eq!(uses, [(1, 1, 8999), (2, 2, 5500), (1, 7, 5499)]);
        who.find(&[2; 32], 60_001, || Ok(vec![kept(2, "kim", None)])).unwrap();
        assert_eq!(who.take_uses(119_999, false), []);
        assert_eq!(who.take_uses(119_999, true).len(), 1);
    }

    #[test]
    fn a_revoked_token_is_refused_also_after_the_clock_was_set_back() {
        let who = Who::default();
        let long_ago = 1_000_000;
        who.find(&[1; 32], 9 * long_ago, || Ok(vec![kept(1, "kim", None)])).unwrap();
        let mut revoked = kept(1, "kim", None);
        revoked.token.revoked_ms = Some(long_ago);
        let found = who.find(&[1; 32], long_ago, || Ok(vec![revoked]));
        assert_eq!(found, Ok(Found::Unknown));
        assert!(matches!(who.find(&[1; 32], long_ago + 1, never_read), Ok(Found::Unknown)));
        // And uses are written down again, a minute after the last time.
        let who = Who::default();
        who.find(&[1; 32], 9 * long_ago, || Ok(vec![kept(1, "kim", None)])).unwrap();
        assert_eq!(who.take_uses(9 * long_ago, false).len(), 1);
        who.find(&[1; 32], long_ago, || Ok(vec![kept(1, "kim", None)])).unwrap();
        assert_eq!(who.take_uses(long_ago, false).len(), 1);
    }

    #[test]
    fn who_expires_soon_is_named_and_counted() {
        let who = Who::default();
        let mut all: Vec<KeptToken> =
            (0..30).map(|i| kept(i, &format!("edge-{i:02}"), Some((40 - i) * DAY_MS))).collect();
        all[29].token.revoked_ms = Some(1);
        all.push(kept(30, "gone", Some(DAY_MS)));
        all.push(kept(31, "kim", None));
        who.set(all, 2 * DAY_MS);
        let standing = who.standing(2 * DAY_MS);
        assert_eq!(standing, Standing { valid: 30, expiring: 4, expired: 1 });
        let warning = who.warning(2 * DAY_MS).unwrap();
        assert!(warning.starts_with("tokens expire: edge-28 on 1970-01-13 00:00:00 UTC, edge-27"));
        assert_eq!(who.expiring(2 * DAY_MS).len(), 4);
        let warning = who.warning(26 * DAY_MS).unwrap();
        assert!(warning.contains(", edge-01 on 1970-02-09 00:00:00 UTC. `trimtab"), "{warning}");
        // A certificate expires like a secret; a renewed one counts.
        assert!(who.lists(&[31; 32]) && !who.lists(&[32; 32]));
        for (days, expiring) in [(3, 5), (100, 4)] {
            who.certificate_lasts(&[31; 32], Some(days * DAY_MS));
            assert_eq!(who.standing(2 * DAY_MS).expiring, expiring);
        }
        let all = (0..30).map(|i| kept(i, &format!("edge-{i}"), Some(DAY_MS))).collect();
        who.set(all, 0);
        assert!(who.warning(0).unwrap().contains(" and 10 more. `trimtab"));
        assert_eq!(who.warning(DAY_MS), None);
        let found = who.find(&[1; 32], 1000, never_read).unwrap();
        assert!(matches!(found, Found::Valid(..)));
    }
}
