//! Message bytes, and what was derived from them. A reader keeps the last block that it unpacked: reading neighbours is cheap.

use std::ops::Range;
use std::sync::Arc;

use model::{EmailId, Result};

/// Reads messages of one account. Checks what it reads; damage is [`model::ErrorKind::Corrupt`] with file and offset.
pub struct Reader {}

impl Reader {
    /// The header block with its blank line, as stored.
    pub fn header(&mut self, _id: EmailId) -> Result<&[u8]> {
        todo!()
    }

    /// Octets of header block and of the whole message.
    pub fn extent(&mut self, _id: EmailId) -> Result<(u64, u64)> {
        todo!()
    }

    /// Appends `range` of the message's octets (cut at its end) to `out`. For large ranges call it piece by piece.
    pub fn read(&mut self, _id: EmailId, _range: Range<u64>, _out: &mut Vec<u8>) -> Result<()> {
        todo!()
    }

    /// The MIME structure.
    pub fn structure(&mut self, _id: EmailId) -> Result<Arc<mime::Structure>> {
        todo!()
    }

    /// ENVELOPE as IMAP writes it, `("date" "subject" …)` (RFC 9051 §7.5.2), kept from when the message came.
    pub fn envelope(&mut self, _id: EmailId) -> Result<&[u8]> {
        todo!()
    }

    /// BODYSTRUCTURE as IMAP writes it, with extension data; BODY is written from [`Reader::structure`].
    pub fn body_structure(&mut self, _id: EmailId) -> Result<&[u8]> {
        todo!()
    }

    /// PREVIEW (RFC 8970), kept from when the message came.
    pub fn preview(&mut self, _id: EmailId) -> Result<&str> {
        todo!()
    }
}
