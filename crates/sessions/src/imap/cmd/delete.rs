//! DELETE (RFC 9051 §6.3.5).
//!
//! A mailbox that is selected, here or in another session, may be deleted: those who have it selected see every message expunged.

use imap_proto::MailboxArg;

use crate::imap::reply::{Done, Started, commit};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, mailbox: &MailboxArg) -> Started {
    let account = session.account()?;
    let name = mailbox.decode(session.name_encoding())?;
    Ok(commit(account, |edit| edit.delete_mailbox(&name), |_, (), _| Ok(Done::ok("Deleted")))?)
}
