//! RFC 8970 PREVIEW.

use crate::{Part, Structure};

/// The part that a preview is made from: the first text part, text/plain preferred.
pub fn preview_part(_structure: &Structure) -> Option<&Part> {
    todo!()
}

/// The preview of a message: at most 200 characters (RFC 8970 §3.1), white space collapsed.
pub fn preview(_message: &[u8], _structure: &Structure) -> String {
    todo!()
}

/// Makes a preview from the raw octets of a part's body.
#[derive(Debug)]
pub struct PreviewBuilder {}

impl PreviewBuilder {
    /// A builder for the text of `part`.
    pub fn new(_part: &Part) -> Self {
        todo!()
    }
    /// Takes the next raw octets; true when no more are needed.
    pub fn push(&mut self, _bytes: &[u8]) -> bool {
        todo!()
    }
    /// The preview.
    pub fn finish(self) -> String {
        todo!()
    }
}
