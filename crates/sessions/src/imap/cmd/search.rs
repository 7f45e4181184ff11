//! SEARCH (RFC 9051 §6.4.4).

use imap_proto::command::Search;

use crate::Output;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

/// Starts it. What it says is pulled.
pub(crate) fn run(session: &mut Session, _command: Search, _out: &mut Output) -> Started {
    session.selected()?;
    Err(Done::no("SEARCH follows").into())
}
