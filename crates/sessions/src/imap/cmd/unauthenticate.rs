//! UNAUTHENTICATE (RFC 8437): back to where a new connection is, for the next user.

use store::Moment;

use crate::imap::reply::{Done, Started};
use crate::imap::state::{Enabled, Session};

pub(crate) fn run(session: &mut Session) -> Started {
    session.account()?;
    // RFC 8437 §3: no \Deleted messages are expunged, everything that ENABLE switched on is off again, TLS and COMPRESS stay.
    session.leave(Moment::Logout);
    session.enabled = Enabled::default();
    session.login = None;
    session.notify = None;
    Ok(Done::ok("Who is next?").into())
}
