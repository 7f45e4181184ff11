//! Character sets.

use std::borrow::Cow;

/// Streaming decoder from a labelled character set to UTF-8. Never fails: what cannot be decoded
/// becomes U+FFFD; an unknown label means UTF-8 where valid, else windows-1252.
#[derive(Debug)]
pub struct CharsetDecoder {}

impl CharsetDecoder {
    /// A decoder for `label` as found in a message, junk and all.
    pub fn new(_label: &[u8]) -> Self {
        todo!()
    }
    /// Decodes `input`, appending to `out`.
    pub fn push(&mut self, _input: &[u8], _out: &mut String) {
        todo!()
    }
    /// Flushes what was held back.
    pub fn finish(&mut self, _out: &mut String) {
        todo!()
    }
}

/// Whether `label` names a character set that is known (for SEARCH CHARSET).
pub fn charset_known(_label: &[u8]) -> bool {
    todo!()
}

/// `bytes` of the character set `label` as text.
pub fn decode_charset<'a>(_label: &[u8], _bytes: &'a [u8]) -> Cow<'a, str> {
    todo!()
}
