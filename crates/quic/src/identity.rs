//! Who the servers are, for TLS.

use std::error::Error;
use std::sync::Arc;

use noq_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use noq_proto::rustls::client::Resumption;
use noq_proto::rustls::crypto::{CryptoProvider, ring};
use noq_proto::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq_proto::rustls::server::NoServerSessionStorage;
use noq_proto::rustls::version::TLS13;
use noq_proto::rustls::{CipherSuite, ClientConfig, RootCertStore, ServerConfig};

use crate::error::QuicError;

/// The name in the certificate.
pub(crate) const NAME: &str = "localhost";

/// A certificate and what trusts it. All handshakes of a comparison take packets of the same
/// lengths: the signature has one length (Ed25519), and no connection resumes another.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) server: Arc<QuicServerConfig>,
    pub(crate) client: Arc<QuicClientConfig>,
}

impl Identity {
    /// A fresh one.
    pub(crate) fn new() -> Result<Self, QuicError> {
        let (server, client) = configs()?;
        let fail = |e: NoInitialCipherSuite| QuicError::Certificate(e.to_string());
        let server = QuicServerConfig::try_from(server).map_err(fail)?;
        let client = QuicClientConfig::try_from(client).map_err(fail)?;
        Ok(Self { server: Arc::new(server), client: Arc::new(client) })
    }
}

/// What a stack needs for a server with a fresh certificate, and for a client that trusts it.
pub(crate) fn configs() -> Result<(ServerConfig, ClientConfig), QuicError> {
    make().map_err(|e| QuicError::Certificate(e.to_string()))
}

/// The cipher that most processors are fastest at; QUIC's first packets need it in any case.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

fn make() -> Result<(ServerConfig, ClientConfig), Box<dyn Error>> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let mut params = rcgen::CertificateParams::new(vec![NAME.to_owned()])?;
    // One that is drawn may be a byte shorter.
    params.serial_number = Some(rcgen::SerialNumber::from(1_u64));
    let certificate: CertificateDer<'static> = params.self_signed(&key)?.into();
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());

    let mut server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], private.into())?;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = Resumption::disabled();
    Ok((server, client))
}
