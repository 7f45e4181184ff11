//! SUBSCRIBE and UNSUBSCRIBE (RFC 9051 §6.3.7, §6.3.8).

use imap_proto::MailboxArg;
use store::Edit;

use crate::imap::reply::{Done, Started, commit};
use crate::imap::state::Session;

/// A name that is not there may be subscribed (RFC 9051 §6.3.7 leaves it to the server): clients that restore their state rely on it.
pub(crate) fn subscribe(session: &Session, mailbox: &MailboxArg) -> Started {
    set_subscribed(session, mailbox, true, "Subscribed")
}

pub(crate) fn unsubscribe(session: &Session, mailbox: &MailboxArg) -> Started {
    set_subscribed(session, mailbox, false, "Unsubscribed")
}

fn set_subscribed(session: &Session, mailbox: &MailboxArg, subscribed: bool, text: &'static str) -> Started {
    let account = session.account()?;
    let name = mailbox.decode(session.name_encoding())?;
    let wanted = name.clone();
    let change = move |edit: &mut Edit<'_>| edit.set_subscribed(&wanted, subscribed);
    Ok(commit(account, change, move |session, (), _| {
        session.note_name(&name);
        Ok(Done::ok(text))
    })?)
}
