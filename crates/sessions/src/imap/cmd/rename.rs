//! RENAME (RFC 9051 §6.3.6).

use imap_proto::MailboxArg;

use crate::Output;
use crate::imap::cmd::list;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, from: &MailboxArg, to: &MailboxArg, out: &mut Output) -> Started {
    let account = session.account()?;
    let encoding = session.name_encoding();
    let (from_name, to_name) = (from.decode(encoding)?, to.decode_for_create(encoding)?);
    account.rename_mailbox(&from_name, &to_name)?;
    // RFC 9051 §6.3.6: the new name with OLDNAME. RENAME INBOX leaves INBOX where it is.
    if !from_name.is_inbox() {
        list::renamed(session, &account, &to_name, from, out)?;
    }
    Ok(Done::ok("Renamed").into())
}
