//! What the index of a message consists of. The numbers are those of the files: another meaning is another
//! [`TEXT_VERSION`](super::parts::TEXT_VERSION).
//!
//! TEXT is answered by [`HEADER`], [`PARTS`] and [`BODY`] together, BODY by [`BODY`]. The five fields that clients ask for by name are there once
//! more, each by itself and uncut, so that `FROM "ann b"` needs no look at a header.

use search::Cut;

use super::texts::Place;

/// The values of Subject, From, To, Cc and Bcc fields of the message's header, each a text.
const NAMED: [&str; 5] = ["subject", "from", "to", "cc", "bcc"];
/// The fields of the message's header, each a text `name: value`.
pub(super) const HEADER: usize = NAMED.len();
/// The text parts, and the header fields of messages inside.
pub(super) const BODY: usize = HEADER + 1;
/// The names of the fields of the message's header as [`name_text`] has them.
pub(super) const NAMES: usize = BODY + 1;
/// The fields of the headers of its parts, each a text `name: value` (RFC 9051 §6.4.4 "including MIME header fields"). Few messages have any, and
/// to read one means to unpack its body.
pub(super) const PARTS: usize = NAMES + 1;
/// How the texts of each are cut.
pub(super) const CUTS: [Cut; PARTS + 1] =
    [Cut::Whole, Cut::Whole, Cut::Whole, Cut::Whole, Cut::Whole, Cut::Tokens, Cut::Joints, Cut::Whole, Cut::Joints];

/// The number of the field that has the texts of a place.
pub(super) fn field_of(place: Place) -> usize {
    match place {
        Place::Header => HEADER,
        Place::PartHeader => PARTS,
        Place::Body => BODY,
    }
}

/// The number of a field that has its own place in the index.
pub(super) fn named(name: &[u8]) -> Option<usize> {
    NAMED.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// A field's name as the text that stands for it: between colons, which no name has, so that no name is found in another.
pub(super) fn name_text(name: &[u8]) -> String {
    format!(":{}:", String::from_utf8_lossy(name).to_ascii_lowercase())
}
