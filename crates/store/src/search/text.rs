//! BODY and TEXT: the decoded text of one message, read piece by piece.

use std::ops::ControlFlow;

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

/// Whether the message has the text: in a text part or in the header of a nested message, and for TEXT in its own header and in the
/// header of any of its parts ("including MIME header fields", RFC 9051 §6.4.4).
pub(super) fn message_has(reader: &mut Reader, id: EmailId, needle: &TextNeedle) -> Result<bool> {
    let mut find = Find(Matcher::new(&needle.needle));
    if needle.header {
        let header = reader.header(id)?;
        if mime::header_text(header, &mut find).is_break() || find.boundary().is_break() {
            return Ok(true);
        }
    }
    let structure = reader.structure(id)?;
    Ok(search_part(reader, id, &structure.message.root, needle.header, &mut find)?.is_break())
}

/// Searches what is in `part`; its own header is the caller's. `mime_headers`: the headers of the parts below count too.
fn search_part(
    reader: &mut Reader,
    id: EmailId,
    part: &Part,
    mime_headers: bool,
    find: &mut Find<'_>,
) -> Result<ControlFlow<()>> {
    match &part.content {
        Content::Multipart(parts) => {
            for child in parts {
                if (mime_headers && search_header(reader, id, child, find)?.is_break())
                    || search_part(reader, id, child, mime_headers, find)?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }
        // A message inside the message: its header is text of the outer body.
        Content::Message(message) => match search_header(reader, id, &message.root, find)? {
            ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
            ControlFlow::Continue(()) => search_part(reader, id, &message.root, mime_headers, find),
        },
        Content::Leaf if part.is_text() => search_leaf(reader, id, part, find),
        Content::Leaf => Ok(ControlFlow::Continue(())),
    }
}

/// Searches the header of `part`.
fn search_header(reader: &mut Reader, id: EmailId, part: &Part, find: &mut Find<'_>) -> Result<ControlFlow<()>> {
    let mut header = Vec::new();
    reader.read(id, part.header.clone(), &mut header)?;
    Ok(match mime::header_text(&header, find) {
        ControlFlow::Break(()) => ControlFlow::Break(()),
        ControlFlow::Continue(()) => find.boundary(),
    })
}

fn search_leaf(reader: &mut Reader, id: EmailId, part: &Part, find: &mut Find<'_>) -> Result<ControlFlow<()>> {
    let mut extractor = TextExtractor::new(part);
    let mut piece = Vec::new();
    let mut at = part.body.start;
    while at < part.body.end {
        let end = part.body.end.min(at.saturating_add(PIECE_BYTES));
        piece.clear();
        reader.read(id, at..end, &mut piece)?;
        if piece.is_empty() {
            break;
        }
        if extractor.push(&piece, find).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        at = end;
    }
    Ok(extractor.finish(find))
}
