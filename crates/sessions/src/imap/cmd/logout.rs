//! LOGOUT (RFC 9051 §6.1.3).

use crate::Output;
use crate::imap::reply::{Done, Reply, Started};

pub(crate) fn run(out: &mut Output) -> Started {
    out.push_str("* BYE Until next time\r\n");
    Ok(Reply::Logout(Done::ok("Logged out")))
}
