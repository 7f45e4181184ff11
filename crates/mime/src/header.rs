//! Header fields as stored (RFC 5322 §2.2, tolerant).
//!
//! The rules, the same everywhere in this crate:
//! * a line ends with LF; a CR before it belongs to the line end; a CR elsewhere is an octet like any other;
//! * the header ends with the first empty line, whatever stands before it, or with the octets. A line that
//!   is no field does not end it: programs that cut messages at the empty line must find the same place;
//! * a field begins with a name (printable, no white space inside) and a colon; lines that begin with space or
//!   tab continue it. Any other line (an mbox `From ` line, junk) is no field and is passed over, together
//!   with its continuations.

use memchr::memchr;

/// A header block: the fields of the octets given, up to the empty line if there is one.
#[derive(Clone, Copy, Debug)]
pub struct HeaderBlock<'a> {
    bytes: &'a [u8],
}

/// One field of a header, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Name, as written, without white space before the colon.
    pub name: &'a [u8],
    /// Everything after the colon up to the line end that ends the field (excluded), folding included.
    pub value: &'a [u8],
    /// The whole field, its last line end included.
    pub full: &'a [u8],
    /// Octets from the start of the block to the start of the field.
    pub offset: usize,
}

/// A field or a run of lines that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A field.
    Field(Field<'a>),
    /// Lines that are no field, at this offset.
    Junk(usize),
}

impl Item<'_> {
    /// Octets from the start of the block.
    pub(crate) fn offset(&self) -> usize {
        match self {
            Item::Field(field) => field.offset,
            Item::Junk(offset) => *offset,
        }
    }
}

impl<'a> HeaderBlock<'a> {
    /// The header at the start of `bytes`, which may be only the header or a whole message.
    pub fn new(bytes: &'a [u8]) -> Self {
        HeaderBlock { bytes }
    }

    /// The fields, in order, without allocation.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        self.items().filter_map(|item| match item {
            Item::Field(field) => Some(field),
            Item::Junk(_) => None,
        })
    }

    /// Fields and junk, in order.
    pub(crate) fn items(&self) -> Items<'a> {
        Items { bytes: self.bytes, position: 0 }
    }

    /// The raw value of the first field with this name (any case).
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.fields().find(|field| field.is(name.as_bytes())).map(|field| field.value)
    }
}

impl Field<'_> {
    /// Whether the field has this name (any case: RFC 5322 §1.2.2).
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Iterator of [`HeaderBlock::items`].
#[derive(Clone, Debug)]
pub(crate) struct Items<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let start = self.position;
        let rest = self.bytes.get(start..)?;
        let first_line = line_len(rest);
        if first_line == 0 || is_empty_line(rest.get(..first_line)?) {
            // Stay at the end for ever.
            self.position = self.bytes.len().saturating_add(1);
            return None;
        }
        let mut length = first_line;
        while let Some(b' ' | b'\t') = rest.get(length) {
            length += line_len(rest.get(length..)?);
        }
        self.position = start + length;
        let full = rest.get(..length)?;
        Some(match split_name(full) {
            Some((name, value)) => Item::Field(Field { name, value, full, offset: start }),
            None => Item::Junk(start),
        })
    }
}

/// Name and value of a field's octets; `None` if they are no field.
fn split_name(full: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', full)?;
    let name = full.get(..colon)?.trim_ascii_end();
    // RFC 5322 §3.6.8 ftext, and octets above 127 (RFC 6532 does not allow them, spam does not ask).
    if name.is_empty() || !name.iter().all(|&octet| octet > b' ' && octet != 127) {
        return None;
    }
    Some((name, strip_line_end(full.get(colon + 1..)?)))
}

/// Octets of the first line, its line end included; 0 only for no octets.
pub(crate) fn line_len(bytes: &[u8]) -> usize {
    memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1)
}

/// Whether a line (line end included) is empty.
pub(crate) fn is_empty_line(line: &[u8]) -> bool {
    line == b"\n" || line == b"\r\n"
}

/// `line` without the line end that it may have.
pub(crate) fn strip_line_end(line: &[u8]) -> &[u8] {
    match line {
        [rest @ .., b'\r', b'\n'] | [rest @ .., b'\n'] => rest,
        _ => line,
    }
}

/// Octets of the header at the start of `message`, the empty line included; everything if there is none.
pub fn header_len(message: &[u8]) -> usize {
    let mut position = 0;
    while let Some(rest) = message.get(position..) {
        let length = line_len(rest);
        position += length;
        if length == 0 || rest.get(..length).is_some_and(is_empty_line) {
            break;
        }
    }
    position
}

/// The octets of BODY\[HEADER.FIELDS (names)\], or with `not` of BODY\[HEADER.FIELDS.NOT (names)\]: the
/// fields as stored and the empty line as stored; if the header has none, none is added
/// (RFC 9051 §7.5.2 BODY\[section\]: "except in the case of a message that has no body and no blank line").
/// Lines that are no field are in neither.
pub fn fields_subset<N: AsRef<[u8]>>(header: &[u8], names: &[N], not: bool) -> Vec<u8> {
    let header = header.get(..header_len(header)).unwrap_or(header);
    let mut out = Vec::new();
    let mut end = 0;
    for item in HeaderBlock::new(header).items() {
        match item {
            Item::Field(field) => {
                end = field.offset + field.full.len();
                if names.iter().any(|name| field.is(name.as_ref())) != not {
                    out.extend_from_slice(field.full);
                }
            }
            Item::Junk(offset) => end = offset,
        }
    }
    // The octets after the last field are junk and the empty line; only the latter is wanted.
    let mut rest = header.get(end..).unwrap_or_default();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(line_len(rest));
        if is_empty_line(line) {
            out.extend_from_slice(line);
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(header: &[u8]) -> Vec<&[u8]> {
        HeaderBlock::new(header).fields().map(|f| f.name).collect()
    }

    #[test]
    fn fields_fold_and_keep_their_octets() {
        let header = b"Subject: a\r\n b\r\n\tc\r\nTo : x\n\nBody: no\n";
        let fields: Vec<_> = HeaderBlock::new(header).fields().collect();
        assert_eq!(fields.len(), 2);
        assert_eq!(fields[0].value, b" a\r\n b\r\n\tc");
        assert_eq!(fields[0].full, b"Subject: a\r\n b\r\n\tc\r\n");
        assert_eq!(fields[1].name, b"To");
        assert_eq!(fields[1].offset, 20);
        assert_eq!(HeaderBlock::new(header).first("SUBJECT"), Some(&b" a\r\n b\r\n\tc"[..]));
    }

    #[test]
    fn junk_is_passed_over() {
        let header = b" leading\nFrom me@x Mon 10:20:30\nA: 1\nno colon\n continued: x\n: empty\nB:2";
        assert_eq!(names(header), [b"A", b"B"]);
    }

    #[test]
    fn white_space_line_is_a_continuation() {
        assert_eq!(header_len(b"A: 1\n \nB: 2\n\nx"), 13);
        assert_eq!(names(b"A: 1\n \nB: 2\n\nx"), [b"A", b"B"]);
    }

    #[test]
    fn header_ends_at_the_empty_line_or_with_the_octets() {
        assert_eq!(header_len(b""), 0);
        assert_eq!(header_len(b"\r\nbody"), 2);
        assert_eq!(header_len(b"A: 1\r\n\r\nbody"), 8);
        assert_eq!(header_len(b"A: 1\nB: 2"), 9);
        assert_eq!(header_len(b"A: 1\r\r\n\nx"), 8);
    }

    #[test]
    fn subset_keeps_octets_and_the_empty_line() {
        let header = b"From x\nA: 1\r\n 2\r\nb: 3\nJunk\nC: 4\r\n\r\nbody";
        assert_eq!(fields_subset(header, &["B", "a"], false), b"A: 1\r\n 2\r\nb: 3\n\r\n");
        assert_eq!(fields_subset(header, &["a"], true), b"b: 3\nC: 4\r\n\r\n");
        assert_eq!(fields_subset(header, &["zz"], false), b"\r\n");
        assert_eq!(fields_subset(b"A: 1\njunk\n\n", &["a"], false), b"A: 1\n\n");
        assert_eq!(fields_subset(b"A: 1", &["a"], false), b"A: 1");
    }

    #[test]
    fn every_octet_as_a_name_character() {
        for octet in 0..=255u8 {
            let line = [b'a', octet, b'b', b':', b'1'];
            let is_field = !names(&line).is_empty();
            assert_eq!(is_field, octet > 32 && octet != 127 || octet == b'\n', "{octet}");
        }
    }
}
