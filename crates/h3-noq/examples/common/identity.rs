//! Who a server is, for TLS.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noq::ServerConfig;
use noq::crypto::rustls::QuicServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest as _, Sha256};
use trimtab_h3_noq::{ALPN, noq};

use super::Failure;

/// A chain of certificates, the server's own first, and its key.
pub(crate) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// From two files in PEM.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let unread = |file: &Path, e: &dyn std::error::Error| {
            format!("cannot read {}: {e}; give a file in PEM", file.display())
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|e| unread(certificate, &e))?;
        if chain.is_empty() {
            return Err(format!("{} holds no certificate", certificate.display()).into());
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|e| unread(key, &e))?;
        Ok(Self { chain, key })
    }

    /// A fresh one for these names, which nobody trusts by itself.
    pub(crate) fn self_signed(names: Vec<String>) -> Result<Self, Failure> {
        let signed = rcgen::generate_simple_self_signed(names)?;
        let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
        Ok(Self { chain: vec![signed.cert.into()], key: key.into() })
    }

    /// The server's own certificate.
    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// The hash of the public key by which browsers can be told to trust it: SHA-256 of its DER,
    /// in Base64 (RFC 7469 §2.4).
    pub(crate) fn key_hash(&self) -> Result<String, Failure> {
        let key = ParsedCertificate::try_from(self.certificate())?.subject_public_key_info();
        Ok(STANDARD.encode(Sha256::digest(&key)))
    }

    /// For a server that speaks HTTP/3 alone.
    pub(crate) fn server_config(&self) -> Result<ServerConfig, Failure> {
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        tls.alpn_protocols = vec![ALPN.to_vec()];
        Ok(ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?)))
    }
}
