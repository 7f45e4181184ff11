//! Messages whose bytes lie elsewhere: in an mbox that other programs write as well.
//!
//! The log has their entries, and of each message its sizes and a digest by which it is found again in its file. Whoever
//! serves the file gives the bytes ([`Foreign`]). Such a message is never restored: its bytes go with the file.

use std::ops::Range;

use model::{EmailId, Error, ErrorKind, Result};

/// Gives the bytes of foreign messages, as they are served to clients. Implemented by the store, given to [`crate::Log::open`].
///
/// Both functions verify what they read: `Corrupt` when a file is not as it was, `Expunged` when the message has left it.
pub trait Foreign: Send + Sync + std::fmt::Debug {
    /// Appends the header of a message to `out`, the empty line included: as many octets as the log was told, which `message` says.
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()>;

    /// Gives the bytes of `range` to `sink`, in pieces of at most 128 KiB. The range is not empty and inside the message.
    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;
}

/// What the log knows of a foreign message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignMessage {
    /// Octets, as served.
    pub octets: u32,
    /// Octets of the header, as served, the empty line included.
    pub header_octets: u32,
    /// Over its bytes in the file, but for what programs change there; says which message of the file it is.
    pub digest: u64,
}

/// Gives a foreign message's bytes to `sink` and holds what came against its length.
pub(crate) fn stream(
    foreign: &dyn Foreign,
    id: EmailId,
    message: &ForeignMessage,
    range: Range<u64>,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let len = u64::from(message.octets);
    let (start, end) = (range.start.min(len), range.end.min(len));
    if start >= end {
        return Ok(());
    }
    let mut given = 0;
    foreign.range(id, message, start..end, &mut |piece| {
        given += piece.len() as u64;
        if given > end - start { Err(wrong_length(id)) } else { sink(piece) }
    })?;
    if given == end - start { Ok(()) } else { Err(wrong_length(id)) }
}

/// Replaces `out` by a foreign message's header.
pub(crate) fn header(foreign: &dyn Foreign, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    foreign.header(id, message, out)?;
    if out.len() == message.header_octets as usize { Ok(()) } else { Err(wrong_length(id)) }
}

fn wrong_length(id: EmailId) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the message {id} is not as long in its file as it was"))
}
