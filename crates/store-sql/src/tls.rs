//! TLS to the database. Sockets of the machine itself are not encrypted.

use std::path::PathBuf;

use mysql::{ClientIdentity, SslOpts};

/// Whom to trust, and who we are. Files are PEM, and read with each connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate of the authority that signed those of the servers, or a server's own when it has signed itself. The name in the
    /// address must be one of the certificate's.
    pub ca_file: PathBuf,
    /// Our certificate with its chain, and the key, for a server that asks for one (`REQUIRE X509`).
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// For the driver, which trusts nobody else (`patches/webpki-roots`).
pub(crate) fn opts(tls: &Tls) -> SslOpts {
    let identity = tls.identity.clone().map(|(certificate, key)| ClientIdentity::new(certificate, key));
    SslOpts::default().with_root_cert_path(Some(tls.ca_file.clone())).with_client_identity(identity)
}
