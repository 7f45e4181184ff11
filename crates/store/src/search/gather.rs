//! Messages into images of the index.

use std::ops::ControlFlow;

use mime::{HeaderBlock, TextSink};
use model::{EmailId, Error, ErrorKind, Result};
use platform::Mapped;
use search::{Builder, Frequent, Index};

use super::fields::{self, CUTS, NAMES, field_of};
use super::texts::{Place, Visitor, visit};
use crate::{Reader, derived};

/// A message with more decoded text than this is not indexed but scanned, octets.
pub(crate) const INDEXED_TEXT_BYTES_MAX: usize = 32 << 20;

/// Memory for messages on their way into one image, bytes: an image is ended when it has taken so much, and a message that takes as much
/// again by itself is not indexed.
pub(crate) const BATCH_MEMORY_BYTES: usize = 64 << 20;

/// Takes messages and makes an image of them.
pub(super) struct Gatherer {
    sink: Sink,
}

/// Where the texts go.
struct Sink {
    builder: Builder,
    folded: String,
    /// Octets of text of the open message.
    text_bytes: usize,
}

impl Sink {
    fn push(&mut self, text: &str) -> ControlFlow<()> {
        self.folded.clear();
        mime::fold_into(text, &mut self.folded);
        self.builder.text(&self.folded);
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        let is_too_much =
            self.text_bytes > INDEXED_TEXT_BYTES_MAX || self.builder.memory_bytes() > 2 * BATCH_MEMORY_BYTES;
        if is_too_much { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl TextSink for Sink {
    fn text(&mut self, chunk: &str) -> ControlFlow<()> {
        self.push(chunk)
    }

    fn boundary(&mut self) -> ControlFlow<()> {
        self.builder.boundary();
        ControlFlow::Continue(())
    }
}

impl Visitor for Sink {
    fn begin(&mut self, place: Place) -> bool {
        self.builder.field(field_of(place));
        true
    }
}

impl Gatherer {
    /// For messages with ids from `base` on, in which these words are frequent.
    pub(super) fn new(base: u64, frequent: &Frequent) -> Self {
        let builder = Builder::new(base, &CUTS, frequent);
        Gatherer { sink: Sink { builder, folded: String::new(), text_bytes: 0 } }
    }

    /// What is frequent in the messages that follow.
    pub(super) fn set_frequent(&mut self, frequent: Frequent) {
        self.sink.builder.set_frequent(frequent);
    }

    /// Adds a message, each only once. One that is damaged, gone or too large is not covered, which is no error: it is scanned.
    pub(super) fn add(&mut self, reader: &mut Reader, id: EmailId) -> Result<()> {
        self.sink.builder.document(id.0)?;
        self.sink.text_bytes = 0;
        match self.texts(reader, id) {
            Ok(ControlFlow::Continue(())) => Ok(()),
            Ok(ControlFlow::Break(())) => {
                self.sink.builder.abandon();
                Ok(())
            }
            Err(error) => {
                self.sink.builder.abandon();
                if is_of_the_message(&error) { Ok(()) } else { Err(error) }
            }
        }
    }

    fn texts(&mut self, reader: &mut Reader, id: EmailId) -> Result<ControlFlow<()>> {
        let header = reader.header(id)?;
        if let Some(day) = derived::day_of(header) {
            self.sink.builder.number(day);
        }
        for field in HeaderBlock::new(header).fields() {
            self.sink.builder.field(NAMES);
            self.sink.builder.text(&fields::name_text(field.name));
            if let Some(number) = fields::named(field.name) {
                self.sink.builder.field(number);
                if self.sink.push(&mime::field_text(field.value)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        visit(reader, id, &mut self.sink)
    }

    /// Whether the image is to be ended now.
    pub(super) fn is_full(&self) -> bool {
        self.sink.builder.memory_bytes() > BATCH_MEMORY_BYTES
    }

    /// The image, to be asked.
    pub(super) fn finish(self) -> Result<Index> {
        Index::open(Mapped::from_vec(self.sink.builder.finish_in_memory()?))
    }
}

/// So many messages say which words are frequent.
const SAMPLE_MESSAGES: usize = 256;

/// The words and pairs of words that are frequent in some of these messages; and how many were looked at.
pub(super) fn frequent_in(reader: &mut Reader, ids: &[EmailId]) -> Result<(Frequent, usize)> {
    let base = ids.iter().map(|id| id.0).min().unwrap_or_default();
    let mut known = Frequent::default();
    let mut looked_at = 0;
    // The words, then the pairs of these words.
    for _ in 0..2 {
        let mut gatherer = Gatherer::new(base, &known);
        let every = ids.len().div_ceil(SAMPLE_MESSAGES).max(1);
        for id in ids.iter().step_by(every) {
            gatherer.add(reader, *id)?;
            if gatherer.is_full() {
                break;
            }
        }
        looked_at = gatherer.sink.builder.len();
        known = Frequent::in_sample(&gatherer.sink.builder, &known);
    }
    Ok((known, looked_at))
}

/// Whether an error concerns one message only.
pub(super) fn is_of_the_message(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Expunged)
}
