//! LOGOUT (RFC 9051 §6.1.3).

use store::Moment;

use crate::Output;
use crate::imap::reply::{Done, Reply, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, out: &mut Output) -> Started {
    session.leave(Moment::Logout);
    out.push_str("* BYE Until next time\r\n");
    Ok(Reply::Logout(Done::ok("Logged out")))
}
