//! CANCELUPDATE (RFC 5267 §4.3.5).

use crate::imap::reply::{Done, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, tags: &[Vec<u8>]) -> Started {
    session.account()?;
    let contexts = &mut session.selected()?.contexts;
    let is_known = |tag: &Vec<u8>| contexts.iter().any(|context| context.tag.as_bytes() == tag.as_slice());
    if !tags.iter().all(is_known) {
        return Err(Done::bad("There are no updates of that tag").into());
    }
    contexts.retain(|context| !tags.iter().any(|tag| context.tag.as_bytes() == tag.as_slice()));
    Ok(Done::ok("No more updates").into())
}
