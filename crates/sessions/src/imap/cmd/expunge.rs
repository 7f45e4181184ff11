//! EXPUNGE and UID EXPUNGE (RFC 9051 §6.4.3, §6.4.9; RFC 4315 §2.1; RFC 7162 §3.2.7, §3.2.9).
//!
//! What was expunged is said by the updates that follow every command.

use imap_proto::SequenceSet;

use crate::imap::reply::{Done, Started, commit};
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, set: Option<&SequenceSet>) -> Started {
    let account = session.account()?;
    let selected = session.selected_for_writing()?;
    let uids = set.map(|set| selected.uids(set, true)).transpose()?;
    let mailbox = selected.mailbox;
    Ok(commit(
        account,
        move |edit| edit.expunge(mailbox, uids.as_ref()),
        |session, _, _| {
            let done = Done::ok("Expunged");
            // RFC 7162 §3.2.7: a client that resynchronizes learns up to where it knows everything.
            Ok(if session.enabled.qresync { done.with_highest_modseq() } else { done })
        },
    )?)
}
