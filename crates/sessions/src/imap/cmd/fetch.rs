//! FETCH (RFC 9051 §6.4.5).

use imap_proto::command::Fetch;

use crate::Output;
use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

/// Starts it. What it says is pulled.
pub(crate) fn run(session: &mut Session, _command: Fetch, _out: &mut Output) -> Started {
    session.selected()?;
    Err(Done::no("FETCH follows").into())
}
