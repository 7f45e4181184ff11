//! NOOP (RFC 9051 §6.1.2) and CHECK (RFC 3501 §6.4.1): the updates that follow every command are all that they are for, those included that
//! other programs made in a mailbox file.

use store::Moment;

use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn noop(session: &mut Session) -> Started {
    if let (Ok(account), Some(selected)) = (session.account(), &session.selected) {
        // A file that is locked is for the next time.
        let _is_news = account.try_refresh(selected.mailbox)?;
    }
    Ok(Done::ok("Nothing done").into())
}

/// Everything acknowledged is durable already; where mail lies in a file that others read, too, the file is made to show it.
pub(crate) fn check(session: &mut Session) -> Started {
    let account = session.account()?;
    let mailbox = session.selected()?.mailbox;
    let _is_news = account.try_refresh(mailbox)?;
    session.write_back(Moment::Check)?;
    Ok(Done::ok("Everything is on disk").into())
}
