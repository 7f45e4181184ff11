//! The texts of one message, read piece by piece: what SEARCH looks into, and what goes into the index. One walk for both, so that they
//! cannot disagree.

use std::ops::{ControlFlow, Range};

use mime::{Content, Part, TextExtractor, TextSink};
use model::{EmailId, Result};

use crate::Reader;

/// Octets of a part that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// Where a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the message's own header.
    Header,
    /// In the header of one of its parts: counts for TEXT only.
    PartHeader,
    /// In a part of type text or message, or in the header of a message inside.
    Body,
}

/// Takes the texts of a message.
pub(super) trait Visitor: TextSink {
    /// The next texts are of this place; false: they are not wanted.
    fn begin(&mut self, place: Place) -> bool;
}

/// Gives the texts of a message to `visitor` until it has enough.
pub(super) fn visit(reader: &mut Reader, id: EmailId, visitor: &mut dyn Visitor) -> Result<ControlFlow<()>> {
    if visitor.begin(Place::Header) && header_texts(reader.header(id)?, visitor).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    let structure = reader.structure(id)?;
    Walk { reader, id, visitor }.part(&structure.message.root)
}

/// Gives the texts of a header.
pub(super) fn header_texts(header: &[u8], visitor: &mut dyn Visitor) -> ControlFlow<()> {
    mime::header_text(header, visitor)?;
    visitor.boundary()
}

/// The walk through one message's body.
struct Walk<'a> {
    reader: &'a mut Reader,
    id: EmailId,
    visitor: &'a mut dyn Visitor,
}

impl Walk<'_> {
    fn part(&mut self, part: &Part) -> Result<ControlFlow<()>> {
        match &part.content {
            Content::Multipart(parts) => {
                for child in parts {
                    if self.header(Place::PartHeader, &child.header)?.is_break() || self.part(child)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            // A message inside the message: its header is text of the outer body.
            Content::Message(message) => match self.header(Place::Body, &message.root.header)? {
                ControlFlow::Continue(()) => self.part(&message.root),
                enough => Ok(enough),
            },
            Content::Leaf if part.is_searched() => self.leaf(part),
            Content::Leaf => Ok(ControlFlow::Continue(())),
        }
    }

    fn header(&mut self, place: Place, range: &Range<u64>) -> Result<ControlFlow<()>> {
        if !self.visitor.begin(place) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut header = Vec::new();
        self.reader.read(self.id, range.clone(), &mut header)?;
        Ok(header_texts(&header, self.visitor))
    }

    fn leaf(&mut self, part: &Part) -> Result<ControlFlow<()>> {
        if !self.visitor.begin(Place::Body) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut extractor = TextExtractor::new(part);
        let mut piece = Vec::new();
        let mut at = part.body.start;
        while at < part.body.end {
            let end = part.body.end.min(at.saturating_add(PIECE_BYTES));
            piece.clear();
            self.reader.read(self.id, at..end, &mut piece)?;
            if piece.is_empty() {
                break;
            }
            if extractor.push(&piece, self.visitor).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            at = end;
        }
        Ok(extractor.finish(self.visitor))
    }
}
