//! The structure of a message: a tree of parts with their places in the octets.
//!
//! Invariants, held by the scanner: `header.start <= header.end == body.start <= body.end`; the ranges of a
//! child lie inside the body of its parent; children do not overlap and stand in order; a multipart has at
//! least one child; the depth is bounded by the scanner's limits.

use crate::parameter::decode_parameter;
use crate::{Encoding, Envelope};
use std::ops::Range;

/// The structure of a whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// The message itself.
    pub message: Message,
}

/// A message: the outermost one or one inside a message/rfc822 part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its ENVELOPE.
    pub envelope: Envelope,
    /// Its header and body, as a part.
    pub root: Part,
}

/// One part: a leaf, a multipart or a message/rfc822. All offsets are octets from the start of the
/// outermost message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The header block, its empty line included: the message's header for the root of a message, the MIME
    /// header otherwise.
    pub header: Range<u64>,
    /// The body, without the line end that belongs to the delimiter after it. A multipart's body has
    /// everything: what stands before the first delimiter, the parts, what stands after the last.
    pub body: Range<u64>,
    /// Lines of the body as stored: its line ends (LF). A last line without one is not counted, as in other
    /// servers.
    pub body_lines: u64,
    /// Type, upper case: `TEXT`.
    pub media_type: Vec<u8>,
    /// Subtype, upper case: `PLAIN`.
    pub media_subtype: Vec<u8>,
    /// Parameters of Content-Type in order; RFC 2231 continuations joined. Names as written.
    pub parameters: Vec<Parameter>,
    /// Content-Transfer-Encoding as written, upper case; `7BIT` if there is none.
    pub encoding: Vec<u8>,
    /// Content-ID.
    pub id: Option<Vec<u8>>,
    /// Content-Description, undecoded.
    pub description: Option<Vec<u8>>,
    /// Content-MD5.
    pub md5: Option<Vec<u8>>,
    /// Content-Disposition.
    pub disposition: Option<Disposition>,
    /// Content-Language tags.
    pub language: Vec<Vec<u8>>,
    /// Content-Location.
    pub location: Option<Vec<u8>>,
    /// What is inside.
    pub content: Content,
}

/// What a part holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Octets.
    Leaf,
    /// Parts, at least one: where the boundary never appears, one text/plain part has the whole body.
    Multipart(Vec<Part>),
    /// A message (message/rfc822, message/global).
    Message(Box<Message>),
}

/// A parameter of a Content-Type or Content-Disposition, dequoted, otherwise as written. An RFC 2231
/// extended value has a name ending in `*` and keeps its charset and percent encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name as written.
    pub name: Vec<u8>,
    /// Value, dequoted.
    pub value: Vec<u8>,
}

/// A Content-Disposition (RFC 2183).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disposition {
    /// `INLINE`, `ATTACHMENT`, ... upper case.
    pub kind: Vec<u8>,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
}

/// The last word of an IMAP section (RFC 9051 §6.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// No word: BODY\[\], BODY\[1.2\].
    Whole,
    /// HEADER (also for HEADER.FIELDS: run [`crate::fields_subset`] on the octets).
    Header,
    /// TEXT.
    Text,
    /// MIME.
    Mime,
}

impl Structure {
    /// The part with this IMAP part number (RFC 9051 §6.4.5.1); the root for an empty number.
    ///
    /// "Every message has at least one part number": the body of a message that is no multipart is its part 1.
    /// The parts of a message/rfc822 part are those of the message inside it.
    pub fn part(&self, number: &[u32]) -> Option<&Part> {
        let mut here = &self.message.root;
        // Whether a step has led to `here`; the root of the outermost message is where one starts.
        let mut is_numbered = false;
        for &step in number {
            let index = usize::try_from(step.checked_sub(1)?).ok()?;
            let (container, is_root) = match &here.content {
                Content::Message(message) if is_numbered => (&message.root, true),
                _ => (here, !is_numbered),
            };
            here = match &container.content {
                Content::Multipart(children) => children.get(index)?,
                _ if is_root && index == 0 => container,
                _ => return None,
            };
            is_numbered = true;
        }
        Some(here)
    }

    /// The place of an IMAP section, in octets of the message; `None` if the message has no such section:
    /// HEADER and TEXT need a message/rfc822 part or no number at all, MIME needs a number
    /// (RFC 9051 §6.4.5.1).
    pub fn section(&self, number: &[u32], section: Section) -> Option<Range<u64>> {
        let part = self.part(number)?;
        if number.is_empty() {
            return match section {
                Section::Whole => Some(part.header.start..part.body.end),
                Section::Header => Some(part.header.clone()),
                Section::Text => Some(part.body.clone()),
                Section::Mime => None,
            };
        }
        match (section, &part.content) {
            (Section::Whole, _) => Some(part.body.clone()),
            (Section::Mime, _) => Some(part.header.clone()),
            (Section::Header, Content::Message(message)) => Some(message.root.header.clone()),
            (Section::Text, Content::Message(message)) => Some(message.root.body.clone()),
            _ => None,
        }
    }

    /// Octets of the whole message.
    pub fn size(&self) -> u64 {
        self.message.root.body.end
    }

    /// All parts, parents before children, nested messages' roots included.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        let mut waiting = vec![&self.message.root];
        std::iter::from_fn(move || {
            let part = waiting.pop()?;
            match &part.content {
                Content::Leaf => {}
                Content::Multipart(children) => waiting.extend(children.iter().rev()),
                Content::Message(message) => waiting.push(&message.root),
            }
            Some(part)
        })
    }
}

impl Part {
    /// Octets of the body as stored.
    pub fn body_size(&self) -> u64 {
        self.body.end.saturating_sub(self.body.start)
    }

    /// The transfer encoding.
    pub fn transfer_encoding(&self) -> Encoding {
        Encoding::from_name(&self.encoding)
    }

    /// The decoded value of a Content-Type parameter.
    pub fn parameter(&self, name: &str) -> Option<String> {
        decode_parameter(&self.parameters, name)
    }

    /// The decoded file name: Content-Disposition's `filename`, else Content-Type's `name`.
    pub fn filename(&self) -> Option<String> {
        let disposition = self.disposition.as_ref();
        disposition
            .and_then(|disposition| decode_parameter(&disposition.parameters, "filename"))
            .or_else(|| self.parameter("name"))
    }

    /// Whether this is a text part.
    pub fn is_text(&self) -> bool {
        self.media_type == b"TEXT"
    }

    /// Whether SEARCH looks into it when it is a leaf: RFC 9051 §6.4.4 lets a server leave out "terminal content media types other than
    /// TEXT and MESSAGE". So delivery reports (message/delivery-status) are searched, and attached data is not.
    pub fn is_searched(&self) -> bool {
        self.is_text() || self.media_type == b"MESSAGE"
    }

    /// Whether this is a text/html part.
    pub fn is_html(&self) -> bool {
        self.is_text() && self.media_subtype == b"HTML"
    }
}
