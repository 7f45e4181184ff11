//! TLS towards another server: whom to believe.
//!
//! The certificates of the system are believed as authorities; those of `--ca-file` too, and each of them also as the server's own: servers
//! that are moved away from often have one that they signed themselves, which is no authority's and no authority.

use std::path::Path;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// For connections that trust the system's certificates and those in `ca_file`.
pub fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    // Single ones that cannot be read are no matter: the others are there.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let mut own = Vec::new();
    if let Some(path) = ca_file {
        own = CertificateDer::pem_file_iter(path)
            .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("{}: {error}", path.display())))?;
        if own.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, format!("{}: there is no certificate in it", path.display())));
        }
        roots.add_parsable_certificates(own.clone());
    }
    let authorities = match roots.is_empty() {
        true => None,
        false => Some(
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(wrong)?,
        ),
    };
    let verifier = Verifier { provider: Arc::clone(&provider), authorities, own };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// An error of TLS as ours.
pub fn wrong(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("TLS: {error}"))
}

/// Believes the certificates that were named, and what authorities have signed.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    authorities: Option<Arc<WebPkiServerVerifier>>,
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.own.iter().any(|own| own == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.authorities {
            Some(verifier) => verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now),
            None => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
