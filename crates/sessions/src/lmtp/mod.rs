//! LMTP (RFC 2033) with the rules of RFC 5321, SIZE (RFC 1870), PIPELINING (RFC 2920), 8BITMIME (RFC 6152), SMTPUTF8 (RFC 6531), CHUNKING
//! and BINARYMIME (RFC 3030), ENHANCEDSTATUSCODES (RFC 2034), STARTTLS (RFC 3207) and the envelope identifiers of DSN (RFC 3461).
//!
//! Invariants:
//! * 250 to a recipient means that its copy is durable; each recipient has a reply of its own, in the order of the RCPT commands.
//! * A message is received once. What is held of it in memory grows neither with its size nor with the number of its recipients.
//! * Below the header fields that are put on top, a message is stored octet by octet as it came. A bare CR or LF in it is text: it ends no
//!   line, so that only CRLF "." CRLF ends DATA (RFC 5321 §2.3.8, §4.1.1.4), and nobody can smuggle a second message behind a first one
//!   past a sender that reads lines in another way.
//! * Octets of a message are never taken for commands: after a BDAT whose size cannot be read the connection is closed.

mod address;
mod command;
mod delivery;
mod dots;
mod incoming;
mod reply;
mod session;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, MailboxName, Result};
use store::Store;

pub use address::Address;
pub use session::LmtpSession;

use crate::Observer;

/// What all sessions share.
pub struct Context {
    /// The mail.
    pub store: Arc<Store>,
    /// Who gets mail here.
    pub recipients: Arc<dyn Recipients>,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// The settings. A reload makes a new context; sessions keep the one that they began with.
    pub settings: Settings,
}

/// Knows who gets mail here. Implemented by the server over its users and its configuration.
pub trait Recipients: Send + Sync {
    /// Where the mail of `address` goes. [`model::ErrorKind::NotFound`]: to nobody here.
    fn destination(&self, address: &Address) -> Result<Destination>;
}

/// Where the mail of an address goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The account of a user; it is made when it is not there yet.
    pub account: AccountName,
    /// Which mailbox.
    pub place: Place,
}

/// Which mailbox of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// INBOX.
    Inbox,
    /// This one, or INBOX when it is not there.
    IfThere(MailboxName),
    /// This one, or it is an error.
    Exactly(MailboxName),
}

/// What is answered for an account that may hold no more (RFC 9208, RFC 3463 §3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverQuota {
    /// 452 4.2.2: the client tries again.
    #[default]
    Retry,
    /// 552 5.2.2: the client sends the mail back.
    Reject,
}

/// What an administrator can choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this host: in the greeting and in `Received`.
    pub hostname: String,
    /// What is answered for an account that may hold no more.
    pub over_quota: OverQuota,
    /// Whether the parameters of RFC 3461 are offered, so that clients say the id of a delivery (ENVID) and one that is repeated after its
    /// answer was lost is recognised. Who asks for a report of success (NOTIFY=SUCCESS) gets none then: transfer agents leave it to whoever
    /// offers this.
    pub offers_dsn: bool,
    /// Recipients of one message; further ones are for another transaction (RFC 5321 §4.5.3.1.8: 100 at least).
    pub recipients_max: usize,
    /// How long a client may be silent (RFC 5321 §4.5.3.2.7: 5 minutes at least).
    pub idle_time_max: Duration,
    /// Lines in a row that are no commands before the connection is closed.
    pub bad_commands_max: u32,
    /// Received octets that a session holds while they wait.
    pub input_bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            hostname: "localhost".to_owned(),
            over_quota: OverQuota::default(),
            offers_dsn: false,
            recipients_max: 1000,
            idle_time_max: Duration::from_secs(300),
            bad_commands_max: 20,
            input_bytes_max: 65_536,
        }
    }
}

/// Octets of a command line with its end. RFC 5321 §4.5.3.1.4 has 512, extensions and long addresses need more.
const LINE_BYTES_MAX: usize = 4096;
/// Octets of an address (RFC 5321 §4.5.3.1.3 has 256; of UTF-8 there may be more).
const PATH_BYTES_MAX: usize = 512;
/// Octets of the name that a client gives itself (RFC 5321 §4.5.3.1.2).
const DOMAIN_BYTES_MAX: usize = 255;
/// Octets of an ENVID as it is sent (RFC 3461 §4.4: 100 at most).
const ENVID_BYTES_MAX: usize = 100;
/// No more than so many octets are put on top of a message: two addresses, two names, a date.
const TRACE_BYTES_MAX: u64 = 4096;
