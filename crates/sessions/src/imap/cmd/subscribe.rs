//! SUBSCRIBE and UNSUBSCRIBE (RFC 9051 §6.3.7, §6.3.8).

use imap_proto::MailboxArg;

use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

/// A name that is not there may be subscribed (RFC 9051 §6.3.7 leaves it to the server): clients that restore their state rely on it.
pub(crate) fn subscribe(session: &Session, mailbox: &MailboxArg) -> Started {
    let account = session.account()?;
    account.set_subscribed(&mailbox.decode(session.name_encoding())?, true)?;
    Ok(Done::ok("Subscribed").into())
}

pub(crate) fn unsubscribe(session: &Session, mailbox: &MailboxArg) -> Started {
    let account = session.account()?;
    account.set_subscribed(&mailbox.decode(session.name_encoding())?, false)?;
    Ok(Done::ok("Unsubscribed").into())
}
