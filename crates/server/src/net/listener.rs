//! Sockets that take connections.

use std::fmt;
use std::net::SocketAddr;

use model::{Error, Result};
use tokio::net::TcpListener;

/// What is spoken on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// IMAP, STARTTLS if there is a certificate.
    Imap,
    /// IMAP over TLS.
    Imaps,
    /// POP3, STLS if there is a certificate.
    Pop3,
    /// POP3 over TLS.
    Pop3s,
    /// LMTP, for mail transfer agents of trusted networks.
    Lmtp,
    /// Metrics over HTTP.
    Metrics,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 6] =
        [Protocol::Imap, Protocol::Imaps, Protocol::Pop3, Protocol::Pop3s, Protocol::Lmtp, Protocol::Metrics];

    /// Whether TLS begins at once.
    pub const fn is_tls(self) -> bool {
        matches!(self, Protocol::Imaps | Protocol::Pop3s)
    }

    /// Its name on the command line, in the configuration, in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Imap => "imap",
            Protocol::Imaps => "imaps",
            Protocol::Pop3 => "pop3",
            Protocol::Pop3s => "pop3s",
            Protocol::Lmtp => "lmtp",
            Protocol::Metrics => "metrics",
        }
    }

    /// The protocol of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Protocol::ALL.into_iter().find(|protocol| protocol.name() == name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which addresses to listen on.
pub type Listeners = Vec<(Protocol, SocketAddr)>;

/// A socket that listens.
pub struct Bound {
    /// What is spoken on it.
    pub protocol: Protocol,
    /// Its address, with the port that a 0 became.
    pub address: SocketAddr,
    /// The socket.
    pub listener: TcpListener,
}

/// Opens all of them, or none.
pub async fn bind(listeners: &Listeners) -> Result<Vec<Bound>> {
    let mut bound = Vec::with_capacity(listeners.len());
    for (protocol, address) in listeners {
        let open = async {
            let listener = TcpListener::bind(address).await?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) =
            open.await.map_err(|error: std::io::Error| Error::from(error).context(format!("{protocol}={address}")))?;
        bound.push(Bound { protocol: *protocol, address, listener });
    }
    Ok(bound)
}
