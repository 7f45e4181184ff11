//! What the server can do, as it says it (RFC 9051 §6.1.1, §7.2.2).
//!
//! Invariant: a capability is named here if and only if `docs/rfc-status.md` says that it is there, and only in the states in which
//! it can be used.

use super::settings::PlainTextLogin;
use super::state::Session;

/// What is there before login and after.
const ALWAYS: &str = "IMAP4rev1 IMAP4rev2 LITERAL+ SASL-IR ID ENABLE";

/// What is there after login. LITERAL- is not named because LITERAL+ is (RFC 7888 §5).
const AUTHENTICATED: &str = "IDLE NAMESPACE UNSELECT UIDPLUS MOVE CHILDREN LIST-EXTENDED LIST-STATUS STATUS=SIZE SPECIAL-USE \
     CREATE-SPECIAL-USE MULTIAPPEND BINARY ESEARCH SEARCHRES WITHIN CONDSTORE QRESYNC UTF8=ACCEPT SAVEDATE PREVIEW OBJECTID \
     REPLACE UNAUTHENTICATE PARTIAL SORT SORT=DISPLAY ESORT THREAD=ORDEREDSUBJECT THREAD=REFERENCES THREAD=REFS CONTEXT=SEARCH \
     CONTEXT=SORT MULTISEARCH I18NLEVEL=1 METADATA FILTERS NOTIFY QUOTA QUOTASET QUOTA=RES-STORAGE QUOTA=RES-MESSAGE";

/// The capabilities in the session's present state, in one line.
pub(crate) fn list(session: &Session) -> String {
    let mut line = ALWAYS.to_owned();
    let settings = &session.context.settings;
    if session.login.is_none() {
        if session.connection.starttls_available && !session.connection.tls {
            line.push_str(" STARTTLS");
        }
        if plain_text_allowed(session) {
            line.push_str(" AUTH=PLAIN AUTH=LOGIN");
        } else {
            line.push_str(" LOGINDISABLED");
        }
        line.push_str(" AUTH=SCRAM-SHA-256");
        if binding_available(session) {
            line.push_str(" AUTH=SCRAM-SHA-256-PLUS");
        }
        return line;
    }
    line.push(' ');
    line.push_str(AUTHENTICATED);
    // RFC 7889 §2: the same limit for every mailbox.
    line.push_str(&format!(" APPENDLIMIT={}", session.context.store.options().message_bytes_max));
    if settings.compress && !session.compressed {
        line.push_str(" COMPRESS=DEFLATE");
    }
    line
}

/// Whether a password may be sent as it is (RFC 9051 §6.2.3 and §11.1).
pub(crate) fn plain_text_allowed(session: &Session) -> bool {
    match session.context.settings.plain_text_login {
        PlainTextLogin::Always => true,
        PlainTextLogin::SecureOnly => session.connection.is_secure(),
    }
}

/// Whether the channel has something that SCRAM can be bound to (RFC 5802 §6).
pub(crate) fn binding_available(session: &Session) -> bool {
    let binding = &session.connection.channel_binding;
    session.connection.tls && (binding.tls_exporter.is_some() || binding.tls_server_end_point.is_some())
}
