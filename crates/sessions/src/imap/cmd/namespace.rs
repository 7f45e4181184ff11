//! NAMESPACE (RFC 9051 §6.3.10): one personal namespace without a prefix.

use model::HIERARCHY_DELIMITER;

use crate::Output;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &Session, out: &mut Output) -> Started {
    session.account()?;
    out.push_fmt(format_args!("* NAMESPACE ((\"\" \"{HIERARCHY_DELIMITER}\")) NIL NIL\r\n"));
    Ok(Done::ok("Those are the namespaces").into())
}
