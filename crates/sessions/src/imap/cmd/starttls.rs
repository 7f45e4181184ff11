//! STARTTLS (RFC 9051 §6.2.1).

use crate::imap::reply::{After, Done, Reply, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session) -> Started {
    if session.login.is_some() {
        return Err(Done::bad("TLS comes before the login").into());
    }
    if session.connection.tls {
        return Err(Done::bad("TLS is active already").into());
    }
    if !session.connection.starttls_available {
        return Err(Done::bad("There is no TLS here").into());
    }
    Ok(Reply::Then(Done::ok("Begin the handshake now"), After::StartTls))
}
