//! RENAME (RFC 9051 §6.3.6).

use std::sync::Arc;

use imap_proto::MailboxArg;
use store::Edit;

use crate::imap::cmd::list;
use crate::imap::reply::{Done, Started, commit};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, from: &MailboxArg, to: &MailboxArg) -> Started {
    let account = session.account()?;
    let encoding = session.name_encoding();
    let (from_name, to_name) = (from.decode(encoding)?, to.decode_for_create(encoding)?);
    let (renamed, old) = (Arc::clone(&account), from.clone());
    let wanted = (from_name.clone(), to_name.clone());
    let change = move |edit: &mut Edit<'_>| edit.rename_mailbox(&wanted.0, &wanted.1);
    Ok(commit(account, change, move |session, (), out| {
        session.note_name(&to_name);
        // RFC 9051 §6.3.6: the new name with OLDNAME. RENAME INBOX leaves INBOX where it is.
        if !from_name.is_inbox() {
            list::renamed(session, &renamed, &to_name, &old, out)?;
        }
        Ok(Done::ok("Renamed"))
    })?)
}
