//! BODY and TEXT: the decoded text of one message, read piece by piece.

use std::ops::{ControlFlow, Range};

use mime::{Content, Matcher, Needle, Part, TextExtractor, TextSink};
use model::{EmailId, Result};

use crate::Reader;

/// Octets of a part that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// A needle of BODY or TEXT.
#[derive(Debug)]
pub(super) struct TextNeedle {
    needle: Needle,
    /// TEXT: the header counts too.
    header: bool,
    /// Its number in the query.
    pub(super) id: usize,
}

impl TextNeedle {
    pub(super) fn new(text: &str, header: bool, id: usize) -> Self {
        TextNeedle { needle: Needle::new(text), header, id }
    }
}

/// Feeds a matcher and stops as soon as it has found something.
struct Find<'n>(Matcher<'n>);

impl TextSink for Find<'_> {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        stop_if(self.0.push(chunk))
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        stop_if(self.0.boundary())
    }
}

fn stop_if(found: bool) -> ControlFlow<()> {
    if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Whether the message has the text: in a text part or in the header of a nested message, and for TEXT in its own header.
pub(super) fn message_has(reader: &mut Reader, id: EmailId, needle: &TextNeedle) -> Result<bool> {
    let mut find = Find(Matcher::new(&needle.needle));
    if needle.header {
        let header = reader.header(id)?;
        if mime::header_text(header, &mut find).is_break() || find.boundary().is_break() {
            return Ok(true);
        }
    }
    let structure = reader.structure(id)?;
    let mut search = BodySearch { reader, id, find, mime_headers: needle.header };
    Ok(search.part(&structure.message.root)?.is_break())
}

/// The search of one message's body.
struct BodySearch<'r, 'n> {
    reader: &'r mut Reader,
    id: EmailId,
    find: Find<'n>,
    /// TEXT: the headers of the parts count too (RFC 9051 §6.4.4 "including MIME header fields").
    mime_headers: bool,
}

impl BodySearch<'_, '_> {
    fn part(&mut self, part: &Part) -> Result<ControlFlow<()>> {
        match &part.content {
            Content::Multipart(parts) => {
                for child in parts {
                    if self.mime_headers && self.header(&child.header)?.is_break() || self.part(child)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
            // A message inside the message: its header is text of the outer body.
            Content::Message(message) => match self.header(&message.root.header)? {
                ControlFlow::Continue(()) => self.part(&message.root),
                found => Ok(found),
            },
            Content::Leaf if part.is_text() => self.leaf(part),
            Content::Leaf => Ok(ControlFlow::Continue(())),
        }
    }

    fn header(&mut self, range: &Range<u64>) -> Result<ControlFlow<()>> {
        let mut header = Vec::new();
        self.reader.read(self.id, range.clone(), &mut header)?;
        Ok(match mime::header_text(&header, &mut self.find) {
            ControlFlow::Continue(()) => self.find.boundary(),
            found => found,
        })
    }

    fn leaf(&mut self, part: &Part) -> Result<ControlFlow<()>> {
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
            if extractor.push(&piece, &mut self.find).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            at = end;
        }
        Ok(extractor.finish(&mut self.find))
    }
}
