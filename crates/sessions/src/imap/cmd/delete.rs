//! DELETE (RFC 9051 §6.3.5).
//!
//! A mailbox that is selected, here or in another session, may be deleted: those who have it selected see every message expunged.

use imap_proto::MailboxArg;

use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, mailbox: &MailboxArg) -> Started {
    let account = session.account()?;
    account.delete_mailbox(&mailbox.decode(session.name_encoding())?)?;
    Ok(Done::ok("Deleted").into())
}
