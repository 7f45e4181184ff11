//! DELETE (RFC 9051 §6.3.5).
//!
//! A mailbox that is selected, here or in another session, may be deleted: those who have it selected see every message expunged.

use imap_proto::MailboxArg;
use store::Edit;

use crate::imap::reply::{Done, Started, commit};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, mailbox: &MailboxArg) -> Started {
    let account = session.account()?;
    let name = mailbox.decode(session.name_encoding())?;
    let change = |edit: &mut Edit<'_>| edit.delete_mailbox(&name).map(|()| name);
    Ok(commit(account, change, |session, name, _| {
        session.note_name(&name);
        Ok(Done::ok("Deleted"))
    })?)
}
