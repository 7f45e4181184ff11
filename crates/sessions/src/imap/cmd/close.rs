//! CLOSE and UNSELECT (RFC 9051 §6.4.1, §6.4.2; RFC 7162 §3.2.8).

use store::Moment;

use crate::imap::reply::{Done, Started, commit};
use crate::imap::state::Session;

/// Expunges what is `\Deleted`, and says nothing of it: not even HIGHESTMODSEQ, which would make a client miss what it was not
/// told (RFC 7162 §3.2.8).
pub(crate) fn close(session: &mut Session) -> Started {
    let account = session.account()?;
    let selected = session.selected()?;
    let (mailbox, read_only) = (selected.mailbox, selected.read_only || selected.view.is_gone());
    if read_only {
        session.leave(Moment::Close);
        return Ok(Done::ok("Closed").into());
    }
    Ok(commit(
        account,
        move |edit| edit.expunge(mailbox, None),
        |session, _, _| {
            session.leave(Moment::Close);
            Ok(Done::ok("Closed"))
        },
    )?)
}

pub(crate) fn unselect(session: &mut Session) -> Started {
    session.selected()?;
    session.leave(Moment::Close);
    Ok(Done::ok("Unselected").into())
}
