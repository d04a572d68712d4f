//! Clients that ask with a certificate instead of a token.
//!
//! `[tls] clients` has the authorities, and each `[[client]]` says what a certificate may do by its
//! name. The first request with a name makes a token `cert:NAME` that has no secret. So the name
//! has a number, is listed, and can be revoked like any other.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{CertificateError, Error as TlsError};
use trimtab_fleet_client::Token;

use crate::config::ClientRule;
use crate::engine::Engine;
use crate::refusals::Attempt;
use crate::store::{KeptToken, StoreError};
use crate::tables::time;
use crate::who::Found;

/// How names of such tokens begin; no other name may have a colon.
pub(crate) const CERTIFIED: &str = "cert:";
/// The longest name, in bytes.
const NAME_MAX: usize = 200;
/// A connection may outlive its certificate, so that it is checked again after so long.
const CHECK_EVERY_MS: i64 = 60_000;
/// The end of the year 9999, in seconds: RFC 5280 has certificates without an end expire then.
const NEVER_S: u64 = 253_402_300_799;

/// Checks certificates of clients.
pub(crate) type Verifier = Arc<dyn ClientCertVerifier>;

/// The certificate that a connection came with; an extension of its requests.
#[derive(Clone)]
pub(crate) struct Presented(Arc<Checked>);

struct Checked {
    chain: Vec<CertificateDer<'static>>,
    names: Vec<String>,
    expires_ms: Option<i64>,
    /// The verifier that found it valid, and when.
    by: Mutex<(Verifier, i64)>,
}

impl Presented {
    /// One that the handshake has checked.
    pub(crate) fn new(chain: &[CertificateDer<'_>], by: Verifier, now_ms: i64) -> Self {
        let chain: Vec<_> = chain.iter().map(|one| one.clone().into_owned()).collect();
        let names = chain.first().map(names).unwrap_or_default();
        let expires_ms = expires_ms(&chain, &by);
        Self(Arc::new(Checked { chain, names, expires_ms, by: Mutex::new((by, now_ms)) }))
    }

    /// The names of its subject: hosts in small letters, and URIs.
    pub(crate) fn names(&self) -> &[String] {
        &self.0.names
    }

    /// Whether the authorities of now accept it; looked at when they change, and once a minute.
    /// [`Engine::certified`] says whether it has expired.
    ///
    /// # Errors
    /// They do not, or none is left.
    pub(crate) fn check(&self, verifier: Option<Verifier>, now_ms: i64) -> Result<(), String> {
        let verifier = verifier.ok_or("the engine takes no certificates of clients any more")?;
        if self.0.expires_ms.is_some_and(|at| at <= now_ms) {
            return Ok(());
        }
        let mut by = self.0.by.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&by.0, &verifier) && (now_ms - by.1).abs() < CHECK_EVERY_MS {
            return Ok(());
        }
        verify(&self.0.chain, &verifier, now_ms.max(0) as u64 / 1000).map_err(|e| e.to_string())?;
        *by = (verifier, now_ms);
        Ok(())
    }
}

fn verify(chain: &[CertificateDer<'_>], by: &Verifier, at_s: u64) -> Result<(), TlsError> {
    let (own, others) = chain.split_first().ok_or(TlsError::NoCertificatesPresented)?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
    by.verify_client_cert(own, others, at).map(drop)
}

/// When the certificate itself expires: a check at the end of time names that moment.
fn expires_ms(chain: &[CertificateDer<'_>], by: &Verifier) -> Option<i64> {
    match verify(chain, by, NEVER_S) {
        Err(TlsError::InvalidCertificate(CertificateError::ExpiredContext {
            not_after, ..
        })) => i64::try_from(not_after.as_secs()).ok().map(|at| at.saturating_mul(1000)),
        _ => None,
    }
}

/// Hosts and URIs among the alternative names of a certificate's subject.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(own) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    let hosts = own.valid_dns_names().map(str::to_ascii_lowercase);
    let all = hosts.chain(own.valid_uri_names().map(str::to_owned));
    // They are shown in logs and lists.
    all.filter(|name| name.chars().all(|c| c.is_ascii_graphic())).collect()
}

/// What the store knows such a token by: no secret has this hash.
fn hash(name: &str) -> Vec<u8> {
    Sha256::new_with_prefix("trimtab certificate\n").chain_update(name).finalize().to_vec()
}

/// The first rule that fits one of these names, and that name.
pub(crate) fn rule_of<'a>(
    rules: &'a [ClientRule],
    names: &'a [String],
) -> Option<(&'a ClientRule, &'a str)> {
    rules.iter().find_map(|rule| Some((rule, rule.of(names)?)))
}

impl Engine {
    /// Counts, logs and writes down that a handshake failed for the client's certificate.
    pub(crate) fn refuse_certificate(&self, from: SocketAddr, why: &str, now_ms: i64) {
        const REASON: &str = "certificate";
        self.metrics.refused(REASON);
        let message = format!("its certificate is refused: {why}");
        let attempt = Attempt {
            token: None,
            from: Some(from.ip()),
            reason: REASON,
            what: "TLS handshake",
            message: &message,
        };
        self.attempts.add(now_ms, &attempt);
        self.refusals.log(now_ms, &format!("refused ({REASON}) TLS from {from}: {message}"));
    }

    /// The token of a name in a certificate, with the rights that a rule gives it now. Blocks.
    pub(crate) fn certified(
        &self,
        rule: &ClientRule,
        name: &str,
        presented: &Presented,
        now_ms: i64,
    ) -> Result<Found, StoreError> {
        if name.len() > NAME_MAX {
            return Ok(Found::Unknown);
        }
        let hash = hash(name);
        let expires_ms = presented.0.expires_ms;
        self.who.certificate_lasts(&hash, expires_ms);
        let mut found = self.token(&hash, now_ms)?;
        if found == Found::Unknown && !self.who.lists(&hash) {
            let new =
                KeptToken { token: token(rule, name, now_ms), hash: hash.clone(), former: None };
            // Another engine may have made it meanwhile: then the list has it.
            self.store.add_token(&new, "(a certificate)")?;
            self.read_tokens(now_ms)?;
            found = self.token(&hash, now_ms)?;
        }
        let Found::Valid(known, _) = found else { return Ok(found) };
        let rights = token(rule, name, known.created_ms);
        let token = Arc::new(Token { id: known.id, used_ms: known.used_ms, ..rights });
        Ok(match expires_ms.filter(|at| *at <= now_ms) {
            Some(at) => {
                let why =
                    format!("the certificate of {name} expired on {} UTC: renew it", time(at));
                Found::Expired(token, why)
            }
            None => Found::Valid(token, expires_ms),
        })
    }
}

fn token(rule: &ClientRule, name: &str, created_ms: i64) -> Token {
    Token {
        id: 0,
        name: format!("{CERTIFIED}{name}"),
        role: rule.role,
        services: rule.services.clone(),
        prefixes: rule.prefixes.clone(),
        created_ms,
        revoked_ms: None,
        expires_ms: None,
        used_ms: None,
        former: None,
    }
}
