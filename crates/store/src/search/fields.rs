//! What the index of a message consists of. The numbers are those of the files: another meaning is another [`super::TEXT_VERSION`].
//!
//! TEXT is answered by [`HEADER`] and [`BODY`] together, BODY by [`BODY`]. The five fields that clients ask for by name are there once
//! more, by themselves, so that `FROM ann` needs no look at a header.

/// The values of Subject, From, To, Cc and Bcc fields of the message's header, each a text.
pub(super) const NAMED: [&str; 5] = ["subject", "from", "to", "cc", "bcc"];
/// The fields of the message's header, each a text `name: value`, and those of its parts (RFC 9051 §6.4.4 "including MIME header
/// fields").
pub(super) const HEADER: usize = NAMED.len();
/// The text parts, and the header fields of messages inside.
pub(super) const BODY: usize = HEADER + 1;
/// How many there are.
pub(super) const COUNT: usize = BODY + 1;

/// The number of a field that has its own place in the index.
pub(super) fn named(name: &[u8]) -> Option<usize> {
    NAMED.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name))
}
