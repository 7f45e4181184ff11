//! Message bytes, and what was derived from them. A reader keeps the last block that it unpacked: reading neighbours is cheap.

use std::ops::Range;
use std::sync::Arc;

use mime::Structure;
use model::{CivilDate, EmailId, Error, ErrorKind, Result, ThreadId};

use crate::account::Inner;
use crate::derived::{self, column};
use crate::order::keys;

/// Reads messages of one account. Checks what it reads; damage is [`model::ErrorKind::Corrupt`] with file and offset.
pub struct Reader {
    inner: index::Reader,
    /// The structure that was asked for last.
    structure: Option<(EmailId, Arc<Structure>)>,
    /// Keeps the account open.
    _account: Arc<Inner>,
}

impl Reader {
    pub(crate) fn new(account: Arc<Inner>) -> Self {
        Reader { inner: account.log().reader(), structure: None, _account: account }
    }

    /// The header block with its blank line, as stored.
    pub fn header(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.header(id)
    }

    /// Octets of header block and of the whole message.
    pub fn extent(&mut self, id: EmailId) -> Result<(u64, u64)> {
        let info = self.inner.info(id)?;
        Ok((u64::from(info.header_len), u64::from(info.len)))
    }

    /// Appends `range` of the message's octets (cut at its end) to `out`. For large ranges call it piece by piece.
    pub fn read(&mut self, id: EmailId, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        let result = self.inner.range(id, range, &mut |piece| {
            out.extend_from_slice(piece);
            Ok(())
        });
        if result.is_err() {
            // What came before an error is not to be believed.
            out.truncate(before);
        }
        result
    }

    /// The MIME structure.
    pub fn structure(&mut self, id: EmailId) -> Result<Arc<Structure>> {
        if let Some((_, structure)) = self.structure.as_ref().filter(|(known, _)| *known == id) {
            return Ok(Arc::clone(structure));
        }
        let structure = Arc::new(derived::structure_of(self.inner.derived(id, column::STRUCTURE)?)?);
        self.structure = Some((id, Arc::clone(&structure)));
        Ok(structure)
    }

    /// ENVELOPE as IMAP writes it, `("date" "subject" …)` (RFC 9051 §7.5.2), kept from when the message came.
    pub fn envelope(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.derived(id, column::ENVELOPE)
    }

    /// BODYSTRUCTURE as IMAP writes it, with extension data; BODY is written from [`Reader::structure`].
    pub fn body_structure(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.derived(id, column::BODY_STRUCTURE)
    }

    /// PREVIEW (RFC 8970), kept from when the message came.
    pub fn preview(&mut self, id: EmailId) -> Result<&str> {
        std::str::from_utf8(self.inner.derived(id, column::PREVIEW)?)
            .map_err(|error| Error::new(ErrorKind::Corrupt, "a derived preview").with_source(error))
    }

    /// The day of the Date field as written, the zone disregarded; `None` when there is none that can be read.
    pub fn sent_date(&mut self, id: EmailId) -> Result<Option<CivilDate>> {
        Ok(derived::sent_date_of(self.inner.derived(id, column::SENT_DAY)?))
    }

    /// The thread that the message belongs to (RFC 8474 §5.2); it never changes.
    pub fn thread_id(&mut self, id: EmailId) -> Result<ThreadId> {
        keys::thread_id(self.references(id)?, id)
    }

    /// See [`keys::sent_time_column`].
    pub(crate) fn sent_time(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.derived(id, column::SENT_TIME)
    }

    /// See [`keys::subject_column`].
    pub(crate) fn base_subject(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.derived(id, column::BASE_SUBJECT)
    }

    /// See [`keys::addresses_column`].
    pub(crate) fn sort_addresses(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.derived(id, column::SORT_ADDRESSES)
    }

    /// See [`keys::references_column`].
    pub(crate) fn references(&mut self, id: EmailId) -> Result<&[u8]> {
        self.inner.derived(id, column::REFERENCES)
    }
}
