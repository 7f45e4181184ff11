//! POP3 (RFC 1939) with CAPA (RFC 2449), AUTH (RFC 5034), STLS (RFC 2595 §4), response codes (RFC 2449 §8, RFC 3206) and UTF8 (RFC 6856),
//! on INBOX.
//!
//! Invariants: a session works on the view that it got at its login, and locks nothing: several may work on one account, beside IMAP;
//! nothing is deleted but by QUIT, and then all that was marked in one commit or nothing.

mod command;
mod delay;
mod maildrop;
mod session;
mod uidl;

use std::sync::Arc;
use std::time::Duration;

use store::Store;

pub use delay::LastLogins;
pub use session::Pop3Session;
pub use uidl::UidlFormat;

use crate::imap::{Limits, PlainTextLogin};
use crate::{Authenticator, Observer};

/// What all sessions share.
pub struct Context {
    /// The mail.
    pub store: Arc<Store>,
    /// The users.
    pub authenticator: Arc<dyn Authenticator>,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// When users last logged in.
    pub last_logins: Arc<LastLogins>,
    /// The settings. A reload makes a new context; sessions keep the one that they began with.
    pub settings: Settings,
}

/// What an administrator can choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The text of the greeting.
    pub greeting: String,
    /// When a password may be sent in the clear.
    pub plain_text_login: PlainTextLogin,
    /// How UIDL names messages.
    pub uidl_format: UidlFormat,
    /// Whether QUIT marks as `\Seen` what was retrieved.
    pub mark_seen: bool,
    /// How long a user has to wait from one login to the next (RFC 2449 §6.5 LOGIN-DELAY); zero: not at all.
    pub login_delay: Duration,
    /// Whether what was retrieved stays (RFC 2449 §6.7 EXPIRE NEVER); otherwise QUIT deletes it (EXPIRE 0).
    pub keep_retrieved: bool,
    /// The limits: times, failed logins, commands that are none, input that waits.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            greeting: "Mailyard ready".to_owned(),
            plain_text_login: PlainTextLogin::default(),
            uidl_format: UidlFormat::default(),
            mark_seen: true,
            login_delay: Duration::ZERO,
            keep_retrieved: true,
            limits: Limits::default(),
        }
    }
}
