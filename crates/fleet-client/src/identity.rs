//! What the engine knows a client by: a token in each request, or the certificate of its
//! connections.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::error::Error;
use crate::secret::{Credential, Secret, Stamp, stamp};

/// Longer than anything that an engine lets wait.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// How to ask as somebody.
pub(crate) enum Identity {
    /// With a token.
    Token(Credential, Agent),
    /// With a certificate, which may be renewed.
    Certificate(Box<Renewed>),
}

/// A certificate in files that may change, and what asks with it.
pub(crate) struct Renewed {
    certificate: PathBuf,
    key: PathBuf,
    trusted: Option<RootCerts>,
    /// The agent, and of which state of the files it is.
    known: Mutex<(Agent, [Option<Stamp>; 2])>,
}

impl Identity {
    pub(crate) fn new(secret: Secret, authority: Option<&Path>) -> Result<Self, Error> {
        let trusted = authority.map(trusted).transpose()?;
        Ok(match secret {
            Secret::Text(text) => Self::Token(Credential::text(&text), agent(trusted, None)),
            Secret::File(path) => Self::Token(Credential::file(path)?, agent(trusted, None)),
            Secret::Certificate { certificate, key } => {
                let stamps = [stamp(&certificate), stamp(&key)];
                let own = read(&certificate, &key)?;
                let known = Mutex::new((agent(trusted.clone(), Some(own)), stamps));
                Self::Certificate(Box::new(Renewed { certificate, key, trusted, known }))
            }
        })
    }

    /// What asks now, and the token that goes with it.
    pub(crate) fn now(&self) -> (Agent, Option<String>) {
        match self {
            Self::Token(token, agent) => (agent.clone(), Some(token.now())),
            Self::Certificate(renewed) => (renewed.now(), None),
        }
    }
}

impl Renewed {
    /// Files that are away or do not fit leave the last certificate in use.
    fn now(&self) -> Agent {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        if stamps != known.1
            && let Ok(own) = read(&self.certificate, &self.key)
        {
            *known = (agent(self.trusted.clone(), Some(own)), stamps);
        }
        known.0.clone()
    }
}

fn agent(trusted: Option<RootCerts>, own: Option<ClientCert>) -> Agent {
    let mut tls = TlsConfig::builder().client_cert(own);
    if let Some(roots) = trusted {
        tls = tls.root_certs(roots);
    }
    let config =
        Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER_WITHIN));
    config.tls_config(tls.build()).build().into()
}

/// What stands in a file in PEM.
fn items(path: &Path) -> Result<Vec<PemItem<'static>>, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let items: Result<Vec<_>, _> = parse_pem(&bytes).collect();
    items.map_err(|e| e.to_string())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let fail = |reason| Error::Authority { path: path.to_owned(), reason };
    let all = items(path).map_err(fail)?.into_iter().filter_map(|item| match item {
        PemItem::Certificate(one) => Some(one),
        _ => None,
    });
    let all: Vec<_> = all.collect();
    if all.is_empty() { Err(fail("no certificate begins there".to_owned())) } else { Ok(all) }
}

fn trusted(path: &Path) -> Result<RootCerts, Error> {
    Ok(RootCerts::new_with_certs(&certificates(path)?))
}

fn read(certificate: &Path, key: &Path) -> Result<ClientCert, Error> {
    let chain = certificates(certificate)?;
    let fail = |reason: String| Error::Key { path: key.to_owned(), reason };
    let own: Option<PrivateKey<'static>> =
        items(key).map_err(fail)?.into_iter().find_map(|item| match item {
            PemItem::PrivateKey(key) => Some(key),
            _ => None,
        });
    let own = own.ok_or_else(|| fail("no private key begins there".to_owned()))?;
    check(&chain, &own).map_err(|e| match e {
        rustls::Error::InconsistentKeys(_) => {
            fail(format!("it is not the key of the certificate in {}", certificate.display()))
        }
        other => fail(other.to_string()),
    })?;
    Ok(ClientCert::new_with_certs(&chain, own))
}

/// Whether a key is of a certificate and of a kind that TLS takes; ureq panics with another one.
fn check(chain: &[Certificate<'_>], key: &PrivateKey<'_>) -> Result<(), rustls::Error> {
    let chain = chain.iter().map(|one| CertificateDer::from(one.der()).into_owned()).collect();
    let key = PrivateKeyDer::try_from(key.der().to_vec())
        .map_err(|e| rustls::Error::General(e.to_owned()))?;
    let provider = rustls::crypto::ring::default_provider();
    rustls::sign::CertifiedKey::from_der(chain, key, &provider).map(drop)
}
