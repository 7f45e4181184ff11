//! CAPABILITY (RFC 9051 §6.1.1).

use crate::Output;
use crate::imap::capability;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, out: &mut Output) -> Started {
    out.push_fmt(format_args!("* CAPABILITY {}\r\n", capability::list(session)));
    Ok(Done::ok("Those are the capabilities").into())
}
