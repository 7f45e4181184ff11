//! BODY and TEXT by scan: whether the decoded text of one message has a needle.

use std::ops::ControlFlow;

use mime::{Matcher, Needle, TextSink};
use model::{EmailId, Result};

use super::texts::{Place, Visitor, header_texts, visit};
use crate::Reader;

/// A needle of BODY or TEXT.
#[derive(Debug)]
pub(super) struct TextNeedle {
    pub(super) needle: Needle,
    /// Where it is looked for. TEXT is all places: each is answered by itself, since a header is read sooner than a body.
    pub(super) place: Place,
    /// Its number in the query.
    pub(super) id: usize,
    /// Its number for the index.
    pub(super) leaf: Option<usize>,
}

impl TextNeedle {
    pub(super) fn new(text: &str, place: Place, id: usize) -> Self {
        TextNeedle { needle: Needle::new(text), place, id, leaf: None }
    }
}

/// Feeds a matcher and stops as soon as it has found something.
struct Find<'n> {
    matcher: Matcher<'n>,
    place: Place,
}

impl TextSink for Find<'_> {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        self.matcher.text(chunk)
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        TextSink::boundary(&mut self.matcher)
    }
}

impl Visitor for Find<'_> {
    fn begin(&mut self, place: Place) -> bool {
        place == self.place
    }
}

/// Whether the message has the text there.
pub(super) fn message_has(reader: &mut Reader, id: EmailId, needle: &TextNeedle) -> Result<bool> {
    let mut find = Find { matcher: Matcher::new(&needle.needle), place: needle.place };
    let found = match needle.place {
        // Nothing else is read.
        Place::Header => header_texts(reader.header(id)?, &mut find),
        Place::PartHeader | Place::Body => visit(reader, id, &mut find)?,
    };
    Ok(found.is_break())
}
