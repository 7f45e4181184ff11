//! BODY and TEXT by scan: whether the decoded text of one message has a needle.

use std::ops::ControlFlow;

use mime::{Matcher, Needle, TextSink};
use model::{EmailId, Result};

use super::texts::{self, Visitor, visit};
use crate::Reader;

/// Where a text is looked for. TEXT is both: each is answered by itself, since headers are read sooner than bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The message's header and those of its parts.
    Headers,
    /// Text parts and the headers of messages inside.
    Body,
}

/// A needle of BODY or TEXT.
#[derive(Debug)]
pub(super) struct TextNeedle {
    pub(super) needle: Needle,
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
    fn begin(&mut self, place: texts::Place) -> bool {
        (place == texts::Place::Body) == (self.place == Place::Body)
    }
}

/// Whether the message has the text there.
pub(super) fn message_has(reader: &mut Reader, id: EmailId, needle: &TextNeedle) -> Result<bool> {
    let mut find = Find { matcher: Matcher::new(&needle.needle), place: needle.place };
    Ok(visit(reader, id, &mut find)?.is_break())
}
