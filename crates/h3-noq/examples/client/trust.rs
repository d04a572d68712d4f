//! Which servers a client trusts.

use std::path::Path;
use std::sync::Arc;

use noq::ClientConfig;
use noq::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use trimtab_h3_noq::{ALPN, noq};

use super::Failure;

/// Which servers.
pub(crate) enum Trust {
    /// Those that an authority of Mozilla's programme vouches for.
    Mozilla,
    /// Those that one of these vouches for.
    These(Vec<CertificateDer<'static>>),
    /// Any that has the key of its certificate.
    Anybody,
}

impl Trust {
    /// The certificates of a file in PEM.
    pub(crate) fn file(file: &Path) -> Result<Self, Failure> {
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        Ok(Self::These(read.map_err(|e| format!("cannot read {}: {e}", file.display()))?))
    }

    /// For connections of HTTP/3.
    pub(crate) fn client_config(self) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = rustls::ClientConfig::builder_with_provider(provider as Arc<CryptoProvider>)
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let mut roots = RootCertStore::empty();
        match &self {
            Self::Mozilla => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Self::These(certificates) => {
                for certificate in certificates {
                    roots.add(certificate.clone())?;
                }
            }
            Self::Anybody => {}
        }
        let mut tls = match self {
            Self::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate(algorithms)))
                .with_no_client_auth(),
            _ => builder.with_root_certificates(roots).with_no_client_auth(),
        };
        tls.alpn_protocols = vec![ALPN.to_vec()];
        Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
    }
}

/// Takes any certificate, if its owner signs the handshake.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
