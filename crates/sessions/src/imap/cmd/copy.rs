//! COPY and MOVE (RFC 9051 §6.4.7, §6.4.8; RFC 4315 §3; RFC 6851).

use imap_proto::{MailboxArg, SequenceSet};
use model::{MailboxId, UidSet};
use store::{Account, Copied, Edit};

use crate::imap::reply::{Done, Started, Stop, commit};
use crate::imap::state::Session;
use crate::imap::status::try_create;

/// COPY. COPYUID is in the tagged response.
pub(crate) fn copy(session: &mut Session, uid: bool, set: &SequenceSet, to: &MailboxArg) -> Started {
    let (account, to) = destination(session, to)?;
    let selected = session.selected()?;
    let uids = selected.uids(set, uid)?;
    let named_none = uids.is_empty();
    let from = selected.mailbox;
    let change = move |edit: &mut Edit<'_>| edit.copy(from, &uids, to);
    Ok(commit(account, change, move |session, copied, _| {
        session.note_added(to, copied.uids.iter().map(|(_, uid)| *uid));
        match copyuid(&copied) {
            Some(code) => Ok(Done::ok("Copied").with_code(code)),
            None => nothing(uid || named_none),
        }
    })?)
}

/// MOVE. COPYUID is in an untagged OK, before the expunges (RFC 6851 §4.3).
pub(crate) fn move_messages(session: &mut Session, uid: bool, set: &SequenceSet, to: &MailboxArg) -> Started {
    session.selected_for_writing()?;
    let (account, to) = destination(session, to)?;
    let selected = session.selected()?;
    let uids = selected.uids(set, uid)?;
    let named_none = uids.is_empty();
    let from = selected.mailbox;
    let change = move |edit: &mut Edit<'_>| edit.move_entries(from, &uids, to);
    Ok(commit(account, change, move |session, copied, out| {
        let Some(code) = copyuid(&copied) else { return nothing(uid || named_none) };
        session.note_added(to, copied.uids.iter().map(|(_, uid)| *uid));
        out.push_fmt(format_args!("* OK [{code}] Moved\r\n"));
        let done = Done::ok("Moved");
        // RFC 7162 §3.2.7 by way of RFC 6851 §4.4.
        Ok(if session.enabled.qresync { done.with_highest_modseq() } else { done })
    })?)
}

fn destination(session: &mut Session, to: &MailboxArg) -> Result<(std::sync::Arc<Account>, MailboxId), Stop> {
    session.selected()?;
    let account = session.account()?;
    let to = account.mailbox(&to.decode(session.name_encoding())?).map_err(try_create)?;
    account.before_adding(to);
    Ok((account, to))
}

/// `COPYUID uidvalidity source destination`; `None` when nothing was copied (RFC 4315 §3).
///
/// The two sets correspond number by number, so both are written in the order of the sources. Destination UIDs are handed out in that
/// order, which makes both rise.
fn copyuid(copied: &Copied) -> Option<String> {
    let sources: UidSet = copied.uids.iter().map(|(source, _)| *source).collect();
    let destinations: UidSet = copied.uids.iter().map(|(_, destination)| *destination).collect();
    (!sources.is_empty()).then(|| format!("COPYUID {} {sources} {destinations}", copied.uid_validity))
}

/// UIDs that are not there are no error (RFC 9051 §6.4.9); sequence numbers that were there when the client looked are.
fn nothing(is_fine: bool) -> Result<Done, Stop> {
    if is_fine {
        Ok(Done::ok("There was nothing to do"))
    } else {
        Err(Done::no("The messages were expunged").with_code("EXPUNGEISSUED").into())
    }
}
