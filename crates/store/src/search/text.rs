//! BODY and TEXT by scan: whether the decoded text of one message has a needle.

use std::ops::ControlFlow;

use mime::{Matcher, Needle, TextSink};
use model::{EmailId, Result};

use super::texts::{Place, Visitor, visit};
use crate::Reader;

/// A needle of BODY or TEXT.
#[derive(Debug)]
pub(super) struct TextNeedle {
    pub(super) needle: Needle,
    /// TEXT: the headers count too.
    pub(super) header: bool,
    /// Its number in the query.
    pub(super) id: usize,
    /// Its number for the index.
    pub(super) leaf: Option<usize>,
}

impl TextNeedle {
    pub(super) fn new(text: &str, header: bool, id: usize) -> Self {
        TextNeedle { needle: Needle::new(text), header, id, leaf: None }
    }
}

/// Feeds a matcher and stops as soon as it has found something.
struct Find<'n> {
    matcher: Matcher<'n>,
    header: bool,
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
        self.header || place == Place::Body
    }
}

/// Whether the message has the text: in a text part or in the header of a nested message, and for TEXT in its own header.
pub(super) fn message_has(reader: &mut Reader, id: EmailId, needle: &TextNeedle) -> Result<bool> {
    let mut find = Find { matcher: Matcher::new(&needle.needle), header: needle.header };
    Ok(visit(reader, id, &mut find)?.is_break())
}
