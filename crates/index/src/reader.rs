//! Reading messages: where a message lies, its header, parts of its body, and what was derived from it.

use std::ops::Range;
use std::sync::Arc;

use model::{EmailId, Result};

use crate::log::Log;

/// Reads messages of one account. Keeps the last block of each kind, so that neighbours cost one decompression; make one a
/// session or a thread.
#[derive(Debug)]
pub struct Reader {
    log: Arc<Log>,
}

/// What is known of a message without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInfo {
    /// Octets.
    pub len: u32,
    /// Octets of the header, the empty line included.
    pub header_len: u32,
}

impl Reader {
    pub(crate) fn new(log: Arc<Log>) -> Self {
        Reader { log }
    }

    /// The sizes of a message. `Expunged`: it is no longer there.
    pub fn info(&mut self, id: EmailId) -> Result<MessageInfo> {
        todo!()
    }

    /// The header, the empty line included. `Corrupt` when its bytes are damaged.
    pub fn header(&mut self, id: EmailId) -> Result<&[u8]> {
        todo!()
    }

    /// Gives the bytes of `range` (offsets in the whole message, header included; cut at its end) to `sink`, in pieces of at
    /// most 128 KiB. What was given before an error must not be believed.
    pub fn range(&mut self, id: EmailId, range: Range<u64>, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        todo!()
    }

    /// What [`Derive`] made of a message: its `column`th blob. Made on the spot when it is not kept.
    pub fn derived(&mut self, id: EmailId, column: usize) -> Result<&[u8]> {
        todo!()
    }
}

/// A message that [`Derive`] is asked about.
pub struct MessageBytes<'a> {
    info: MessageInfo,
    source: &'a mut Reader,
    id: EmailId,
}

impl MessageBytes<'_> {
    /// Its sizes.
    pub fn info(&self) -> MessageInfo {
        self.info
    }

    /// Gives the bytes of `range` to `sink`; see [`Reader::range`].
    pub fn range(&mut self, range: Range<u64>, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.source.range(self.id, range, sink)
    }
}

/// Makes what can be kept beside a message: its structure, its envelope, a preview. Implemented by the store.
pub trait Derive: Send + Sync + std::fmt::Debug {
    /// Changes whenever the blobs change; kept ones of another version are not used.
    fn version(&self) -> u32;

    /// How many blobs there are for a message, at most 16.
    fn columns(&self) -> usize;

    /// The blobs of one message, exactly [`Derive::columns`] of them. An error makes no blobs: the message is asked about
    /// again whenever somebody needs one.
    fn derive(&self, message: &mut MessageBytes<'_>) -> Result<Vec<Vec<u8>>>;
}
