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
    let doomed = name.clone();
    let change = move |edit: &mut Edit<'_>| edit.delete_mailbox(&doomed);
    Ok(commit(account, change, move |session, (), _| {
        session.note_name(&name);
        Ok(Done::ok("Deleted"))
    })?)
}
