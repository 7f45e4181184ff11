//! NOOP (RFC 9051 §6.1.2) and CHECK (RFC 3501 §6.4.1): the updates that follow every command are all that they are for.

use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn noop() -> Started {
    Ok(Done::ok("Nothing done").into())
}

/// Everything acknowledged is durable already: there is no checkpoint to wait for.
pub(crate) fn check(session: &mut Session) -> Started {
    session.selected()?;
    Ok(Done::ok("Everything is on disk").into())
}
