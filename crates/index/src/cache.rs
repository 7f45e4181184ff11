//! Blobs derived from messages (structure, envelope, preview): kept beside each segment, made on the spot otherwise.

use model::{EmailId, Error, ErrorKind, Result};

use crate::reader::{MessageBytes, Reader};

/// Blobs that [`crate::Derive`] may make of a message.
pub(crate) const DERIVED_COLUMNS_MAX: usize = 16;

/// What a reader keeps of derived blobs.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// The message whose blobs were made last, and they.
    last: Option<EmailId>,
    blobs: Vec<Vec<u8>>,
}

/// Removes what was kept beside a segment that is gone.
pub(crate) fn remove(_env: &platform::Env, _dir: &std::path::Path, _segment: &crate::segment::Segment) {}

impl Reader {
    /// What [`crate::Derive`] made of a message: its `column`th blob. Made on the spot when it is not kept.
    pub fn derived(&mut self, id: EmailId, column: usize) -> Result<&[u8]> {
        if self.derived.last != Some(id) {
            self.derived.last = None;
            self.derived.blobs = self.derive(id)?;
            self.derived.last = Some(id);
        }
        let blob = self.derived.blobs.get(column).map(Vec::as_slice);
        blob.ok_or_else(|| Error::new(ErrorKind::Invalid, format!("there is no derived column {column}")))
    }

    /// Makes the blobs of a message.
    pub(crate) fn derive(&mut self, id: EmailId) -> Result<Vec<Vec<u8>>> {
        let derive = self.log().derive.clone();
        let derive = derive.ok_or_else(|| Error::new(ErrorKind::Invalid, "nothing is derived from messages here"))?;
        let info = self.info(id)?;
        derive.derive(&mut MessageBytes { reader: self, info, id })
    }
}
