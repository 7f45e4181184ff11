//! COMPRESS (RFC 4978 §3).

use crate::imap::reply::{After, Done, Reply, Started};
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, algorithm: &str) -> Started {
    session.account()?;
    if algorithm != "DEFLATE" {
        return Err(Done::bad("DEFLATE is the only algorithm").into());
    }
    if session.compressed {
        return Err(Done::no("DEFLATE is active already").with_code("COMPRESSIONACTIVE").into());
    }
    if !session.context.settings.compress {
        return Err(Done::no("Compression is switched off").with_code("CANNOT").into());
    }
    Ok(Reply::Then(Done::ok("DEFLATE active"), After::Compress))
}
