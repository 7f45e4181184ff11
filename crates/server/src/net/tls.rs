//! TLS: the certificate, and what SCRAM wants to know of the channel.

use std::path::Path;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use sessions::ChannelBinding;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ProtocolVersion, ServerConfig, ServerConnection};

use super::end_point;
use crate::config::TlsSection;

/// The certificate, ready for handshakes.
#[derive(Debug)]
pub struct Tls {
    /// For rustls.
    pub config: Arc<ServerConfig>,
    /// The channel binding `tls-server-end-point` of the certificate.
    end_point: Option<Vec<u8>>,
}

/// Reads certificate and key; `None` when none is configured. An error names the file.
pub fn load(section: &TlsSection) -> Result<Option<Arc<Tls>>> {
    let (certificate_file, key_file) = (&section.certificate_file, &section.key_file);
    match (certificate_file.as_os_str().is_empty(), key_file.as_os_str().is_empty()) {
        (true, true) => return Ok(None),
        (false, false) => {}
        _ => return Err(Error::new(ErrorKind::Invalid, "tls.certificate_file and tls.key_file go together")),
    }
    let wrong = |path: &Path, error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Invalid, format!("{}: {error}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate_file)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| wrong(certificate_file, &error))?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| wrong(key_file, &error))?;
    let end_point = chain.first().and_then(|certificate| end_point::binding(certificate));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate_file, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| wrong(certificate_file, &error))?;
    Ok(Some(Arc::new(Tls { config: Arc::new(config), end_point })))
}

/// What SCRAM-SHA-256-PLUS can bind to.
///
/// RFC 9266 §4: `tls-exporter` needs TLS 1.3, or TLS 1.2 with the extended master secret, which cannot be asked about here: so only
/// TLS 1.3 has it.
pub fn channel_binding(tls: &Tls, connection: &ServerConnection) -> ChannelBinding {
    let exporter = (connection.protocol_version() == Some(ProtocolVersion::TLSv1_3))
        .then(|| connection.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[])).ok())
        .flatten();
    ChannelBinding { tls_exporter: exporter, tls_server_end_point: tls.end_point.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_and_key_go_together() {
        assert!(load(&TlsSection::default()).unwrap().is_none());
        let one = TlsSection { certificate_file: "x".into(), ..TlsSection::default() };
        assert!(load(&one).unwrap_err().to_string().contains("go together"));
        let missing = TlsSection { certificate_file: "/nowhere".into(), key_file: "/no".into(), ..one };
        assert!(load(&missing).unwrap_err().to_string().contains("/nowhere"));
    }

    #[test]
    fn a_certificate_with_its_key_is_taken_and_with_another_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let make = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (ours, other) = (make(), make());
        let section = TlsSection {
            certificate_file: directory.path().join("cert.pem"),
            key_file: directory.path().join("key.pem"),
            ..TlsSection::default()
        };
        std::fs::write(&section.certificate_file, ours.cert.pem()).unwrap();
        std::fs::write(&section.key_file, ours.signing_key.serialize_pem()).unwrap();
        assert!(load(&section).unwrap().is_some());
        std::fs::write(&section.key_file, other.signing_key.serialize_pem()).unwrap();
        assert!(load(&section).is_err());
    }
}
