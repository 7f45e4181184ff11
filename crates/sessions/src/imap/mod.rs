//! IMAP: IMAP4rev1 (RFC 3501) and IMAP4rev2 (RFC 9051) with the extensions of `docs/rfc-status.md`.

mod capability;
mod cmd;
mod compress;
mod context;
mod machine;
mod notify;
mod pattern;
mod reply;
mod session;
mod settings;
mod state;
mod status;
mod updates;
mod wanted;
mod write;

use std::sync::Arc;

use store::Store;

pub use cmd::search::question::search_query;
pub use session::ImapSession;
pub use settings::{Limits, PlainTextLogin, Settings};

use crate::{Authenticator, Observer};

/// What all sessions share.
pub struct Context {
    /// The mail.
    pub store: Arc<Store>,
    /// The users.
    pub authenticator: Arc<dyn Authenticator>,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// The settings. A reload makes a new context; sessions keep the one that they began with.
    pub settings: Settings,
}
