//! Text for search.

use crate::{Part, Structure};
use std::ops::ControlFlow;

/// Takes text in chunks. `Break` ends the reading.
pub trait TextSink {
    /// The next chunk of the current text; chunks are cut between characters.
    fn text(&mut self, chunk: &str) -> ControlFlow<()>;
    /// The current text ends; the next chunk is of another one and no match may span the two.
    fn boundary(&mut self) -> ControlFlow<()>;
}

/// Raw octets of one text part's body in, decoded text out (transfer encoding, character set, HTML).
#[derive(Debug)]
pub struct TextExtractor {}

impl TextExtractor {
    /// An extractor for the body of `part`.
    pub fn new(_part: &Part) -> Self {
        todo!()
    }
    /// Takes the next raw octets, giving text to `sink`.
    pub fn push(&mut self, _bytes: &[u8], _sink: &mut dyn TextSink) -> ControlFlow<()> {
        todo!()
    }
    /// The part ends; also gives the boundary.
    pub fn finish(self, _sink: &mut dyn TextSink) -> ControlFlow<()> {
        todo!()
    }
}

/// The parts whose text SEARCH BODY looks at, in order: text parts (their body is text) and the roots of
/// nested messages (their header is text).
pub fn searched_parts(_structure: &Structure) -> Vec<&Part> {
    todo!()
}

/// The text of SEARCH BODY: all text parts and the headers of nested messages.
pub fn body_text(
    _message: &[u8],
    _structure: &Structure,
    _sink: &mut dyn TextSink,
) -> ControlFlow<()> {
    todo!()
}

/// The decoded text of one part, at most `bytes_max` octets of it.
pub fn part_text(_message: &[u8], _part: &Part, _bytes_max: usize) -> String {
    todo!()
}

/// The decoded text of a header, one field a line, for SEARCH TEXT.
pub fn header_text(_header: &[u8], _sink: &mut dyn TextSink) -> ControlFlow<()> {
    todo!()
}

/// The decoded text of a field's value, for SEARCH HEADER.
pub fn field_text(_value: &[u8]) -> String {
    todo!()
}
