//! Sections of a message (RFC 9051 §6.4.5.1): their names as responses echo them, and their octets.

use std::ops::Range;

use imap_proto::command::{Partial, Section, SectionPart, SectionText};
use mime::fields_subset;
use model::{EmailId, Result};
use store::Reader;

/// Which octets of a message an item wants, with everything that does not depend on the message worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Octets {
    /// The item's name in the response: `BODY[1.MIME]<0>`.
    pub label: Vec<u8>,
    part: Vec<u32>,
    text: SectionText,
    partial: Option<Partial>,
}

/// The octets, found.
pub(super) enum Found {
    /// A range of the message.
    Range(Range<u64>),
    /// Octets that stand in the message with gaps: chosen header fields.
    Bytes(Vec<u8>),
    /// The message has no such section.
    Nothing,
}

impl Octets {
    /// `BODY[section]<partial>`.
    pub(super) fn of_body(section: &Section, partial: Option<Partial>) -> Self {
        Octets::new("BODY", section.part.clone(), section.text.clone(), partial)
    }

    /// RFC822, RFC822.HEADER, RFC822.TEXT (RFC 3501 §6.4.5): sections of the whole message under an own name.
    pub(super) fn named(label: &str, text: SectionText) -> Self {
        Octets { label: label.as_bytes().to_vec(), part: Vec::new(), text, partial: None }
    }

    fn new(name: &str, part: SectionPart, text: SectionText, partial: Option<Partial>) -> Self {
        let mut label = name.as_bytes().to_vec();
        label.push(b'[');
        write_part(&mut label, &part);
        let word: &[u8] = match text {
            SectionText::Full => b"",
            SectionText::Header => b"HEADER",
            SectionText::HeaderFields(_) => b"HEADER.FIELDS",
            SectionText::HeaderFieldsNot(_) => b"HEADER.FIELDS.NOT",
            SectionText::Text => b"TEXT",
            SectionText::Mime => b"MIME",
        };
        if !word.is_empty() && !part.0.is_empty() {
            label.push(b'.');
        }
        label.extend_from_slice(word);
        if let SectionText::HeaderFields(names) | SectionText::HeaderFieldsNot(names) = &text {
            label.extend_from_slice(b" (");
            for (n, name) in names.iter().enumerate() {
                if n > 0 {
                    label.push(b' ');
                }
                crate::imap::write::astring(&mut label, name);
            }
            label.push(b')');
        }
        label.push(b']');
        write_origin(&mut label, partial);
        Octets { label, part: part.0.iter().map(|n| n.get()).collect(), text, partial }
    }

    /// Whether this is of the message's own header, all its fields.
    pub(super) fn is_header(&self) -> bool {
        self.part.is_empty() && self.text == SectionText::Header
    }

    /// The window of `octets` that is wanted.
    pub(super) fn cut<'o>(&self, octets: &'o [u8]) -> &'o [u8] {
        let window = window(0..octets.len() as u64, self.partial);
        octets.get(window.start as usize..window.end as usize).unwrap_or_default()
    }

    /// Where the octets are in message `id`.
    pub(super) fn find(&self, reader: &mut Reader, id: EmailId) -> Result<Found> {
        match &self.text {
            SectionText::HeaderFields(names) => self.find_fields(reader, id, names, false),
            SectionText::HeaderFieldsNot(names) => self.find_fields(reader, id, names, true),
            _ => Ok(self
                .find_range(reader, id)?
                .map_or(Found::Nothing, |range| Found::Range(window(range, self.partial)))),
        }
    }

    fn find_fields(&self, reader: &mut Reader, id: EmailId, names: &[Vec<u8>], not: bool) -> Result<Found> {
        let fields = if self.part.is_empty() {
            fields_subset(reader.header(id)?, names, not)
        } else {
            let Some(range) = self.find_range(reader, id)? else { return Ok(Found::Nothing) };
            let mut header = Vec::new();
            reader.read(id, range, &mut header)?;
            fields_subset(&header, names, not)
        };
        Ok(Found::Bytes(match self.partial {
            None => fields,
            Some(_) => self.cut(&fields).to_vec(),
        }))
    }

    /// The section as a range of the message, without the partial; for chosen fields the header that they are of.
    fn find_range(&self, reader: &mut Reader, id: EmailId) -> Result<Option<Range<u64>>> {
        if self.part.is_empty() {
            let (header_bytes, message_bytes) = reader.extent(id)?;
            return Ok(match self.text {
                SectionText::Full => Some(0..message_bytes),
                SectionText::Header | SectionText::HeaderFields(_) | SectionText::HeaderFieldsNot(_) => {
                    Some(0..header_bytes)
                }
                SectionText::Text => Some(header_bytes..message_bytes),
                // The grammar has no MIME without a part.
                SectionText::Mime => None,
            });
        }
        let word = match self.text {
            SectionText::Full => mime::Section::Whole,
            SectionText::Header | SectionText::HeaderFields(_) | SectionText::HeaderFieldsNot(_) => {
                mime::Section::Header
            }
            SectionText::Text => mime::Section::Text,
            SectionText::Mime => mime::Section::Mime,
        };
        Ok(reader.structure(id)?.section(&self.part, word))
    }
}

/// Writes `1.2.3`.
pub(super) fn write_part(out: &mut Vec<u8>, part: &SectionPart) {
    for (n, number) in part.0.iter().enumerate() {
        if n > 0 {
            out.push(b'.');
        }
        imap_proto::encode::number(out, u64::from(number.get()));
    }
}

/// Writes `<0>`: a response to a partial says where it begins (RFC 9051 §7.5.2).
pub(super) fn write_origin(out: &mut Vec<u8>, partial: Option<Partial>) {
    if let Some(partial) = partial {
        out.push(b'<');
        imap_proto::encode::number(out, partial.offset);
        out.push(b'>');
    }
}

/// The part of `range` that `partial` asks for; empty when it begins beyond the end (RFC 9051 §6.4.5).
pub(super) fn window(range: Range<u64>, partial: Option<Partial>) -> Range<u64> {
    let Some(partial) = partial else { return range };
    let start = range.start.saturating_add(partial.offset).min(range.end);
    start..start.saturating_add(partial.length).min(range.end)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn windows_stay_inside() {
        let partial = |offset, length| Some(Partial { offset, length });
        assert_eq!(window(10..20, None), 10..20);
        assert_eq!(window(10..20, partial(0, 5)), 10..15);
        assert_eq!(window(10..20, partial(8, 5)), 18..20);
        assert_eq!(window(10..20, partial(10, 5)), 20..20);
        assert_eq!(window(10..20, partial(u64::MAX, u64::MAX)), 20..20);
    }

    #[test]
    fn labels_echo_the_section() {
        let part = |numbers: &[u32]| SectionPart(numbers.iter().filter_map(|n| NonZeroU32::new(*n)).collect());
        let label =
            |part, text, partial| String::from_utf8(Octets::of_body(&Section { part, text }, partial).label).unwrap();
        assert_eq!(label(part(&[]), SectionText::Full, None), "BODY[]");
        assert_eq!(label(part(&[1, 2]), SectionText::Mime, None), "BODY[1.2.MIME]");
        let names = vec![b"From".to_vec(), b"X(".to_vec()];
        let partial = Some(Partial { offset: 7, length: 9 });
        assert_eq!(label(part(&[]), SectionText::HeaderFields(names), partial), "BODY[HEADER.FIELDS (From \"X(\")]<7>");
    }
}
