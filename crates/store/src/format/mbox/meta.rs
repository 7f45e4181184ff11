//! The header fields in which mail programs keep what they know of a message, and exactly which bytes they take.
//!
//! Whoever writes flags back must change these bytes and no others: so each field comes with its line and its value as ranges of the header.
//! What a value means is not decided here.

use std::ops::Range;

/// A field of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetaName {
    /// `X-IMAPbase: UIDVALIDITY LASTUID keywords` in the first message of a file (c-client, Dovecot).
    ImapBase,
    /// `X-IMAP`: the same, in c-client's pseudo message.
    Imap,
    /// `X-UID`.
    Uid,
    /// `Status`: R(ead), O(ld), D(eleted).
    Status,
    /// `X-Status`: A(nswered), F(lagged), D(eleted), T (draft).
    XStatus,
    /// `X-Keywords`.
    XKeywords,
    /// `Content-Length`.
    ContentLength,
}

impl MetaName {
    /// Every name as it is usually written.
    pub const ALL: [(MetaName, &'static str); 7] = [
        (MetaName::ImapBase, "X-IMAPbase"),
        (MetaName::Imap, "X-IMAP"),
        (MetaName::Uid, "X-UID"),
        (MetaName::Status, "Status"),
        (MetaName::XStatus, "X-Status"),
        (MetaName::XKeywords, "X-Keywords"),
        (MetaName::ContentLength, "Content-Length"),
    ];

    fn of(name: &[u8]) -> Option<MetaName> {
        // All begin with X-, S or C: most fields are dismissed by one octet.
        if !matches!(name.first(), Some(b'X' | b'x' | b'S' | b's' | b'C' | b'c')) {
            return None;
        }
        Self::ALL.iter().find(|(_, text)| name.eq_ignore_ascii_case(text.as_bytes())).map(|(meta, _)| *meta)
    }
}

/// One field. The ranges are octets from the start of the header.
///
/// Invariant: `line.start < value.start <= value.end <= padding_end <= line.end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaField {
    /// Which it is.
    pub name: MetaName,
    /// The field's lines, their line ends included.
    pub line: Range<usize>,
    /// The value, without white space around it; empty when there is none (then it stands where one would be written: behind the
    /// colon, and behind the first space there).
    pub value: Range<usize>,
    /// Where the last line's end (LF or CRLF) begins: what is between the value and this place is padding.
    pub padding_end: usize,
}

impl MetaField {
    /// Octets that the value can grow by without moving anything.
    pub fn padding(&self) -> usize {
        self.padding_end - self.value.end
    }

    /// The value, of the header that the field was read from.
    pub fn value<'h>(&self, header: &'h [u8]) -> &'h [u8] {
        header.get(self.value.clone()).unwrap_or_default()
    }
}

/// The fields of these names in a header (from behind the `From ` line; a body behind it does no harm), in order, each as often as it
/// stands there.
pub fn meta_fields(header: &[u8]) -> impl Iterator<Item = MetaField> + '_ {
    mime::HeaderBlock::new(header).fields().filter_map(|field| {
        let name = MetaName::of(field.name)?;
        let end = field.offset + field.full.len();
        let line_end = match field.full {
            [.., b'\r', b'\n'] => 2,
            [.., b'\n'] => 1,
            _ => 0,
        };
        let padding_end = end - line_end;
        let colon = memchr::memchr(b':', field.full)?;
        let after = field.offset + colon + 1;
        let raw = header.get(after..padding_end)?;
        let value = raw.trim_ascii();
        let start = if value.is_empty() {
            after + usize::from(raw.starts_with(b" "))
        } else {
            padding_end - raw.trim_ascii_start().len()
        };
        Some(MetaField { name, line: field.offset..end, value: start..start + value.len(), padding_end })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(header: &str) -> Vec<(MetaName, String, String, usize)> {
        let fields = meta_fields(header.as_bytes());
        fields
            .map(|field| {
                let text = |range: Range<usize>| header[range].to_owned();
                (field.name, text(field.line.clone()), text(field.value.clone()), field.padding())
            })
            .collect()
    }

    #[test]
    fn every_name() {
        let header: String = MetaName::ALL.iter().map(|(_, name)| format!("Subject: x\n{name}: 1 2\n")).collect();
        let check = |(name, line, value, padding): (MetaName, String, String, usize)| {
            assert!(line.ends_with(": 1 2\n") && value == "1 2" && padding == 0, "{line:?}");
            name
        };
        let names: Vec<_> = shown(&header).into_iter().map(check).collect();
        assert_eq!(names, MetaName::ALL.map(|(name, _)| name));
    }

    #[test]
    fn extents_to_the_octet() {
        let row = |name, line: &str, value: &str, padding| (name, line.to_owned(), value.to_owned(), padding);
        assert_eq!(
            shown(
                "A: b\r\nstatus:RO  \t \r\nX-Keywords: a b\r\n\tc   \r\nX-UID :  7\r\nX-Status:\r\nX-IMAPbase: 1 \
                 0000000002 $x\r\nX-Keywords:        \r\n\r\nStatus: body\r\n"
            ),
            [
                row(MetaName::Status, "status:RO  \t \r\n", "RO", 4),
                row(MetaName::XKeywords, "X-Keywords: a b\r\n\tc   \r\n", "a b\r\n\tc", 3),
                row(MetaName::Uid, "X-UID :  7\r\n", "7", 0),
                row(MetaName::XStatus, "X-Status:\r\n", "", 0),
                row(MetaName::ImapBase, "X-IMAPbase: 1 0000000002 $x\r\n", "1 0000000002 $x", 0),
                row(MetaName::XKeywords, "X-Keywords:        \r\n", "", 7),
            ]
        );
        // The file ends in it.
        assert_eq!(shown("Content-Length: 12"), [row(MetaName::ContentLength, "Content-Length: 12", "12", 0)]);
        assert_eq!(shown("X-UIDS: 1\nX-U: 1\nStatusx: R\n: x\nStatus\n"), []);
    }

    proptest::proptest! {
        #[test]
        fn extents_are_inside_and_in_order(header in "(Status|X-UID|:| |\t|\r|\n|x|\u{e9}){0,40}") {
            let mut at = 0;
            for field in meta_fields(header.as_bytes()) {
                let MetaField { line, value, padding_end, .. } = field;
                proptest::prop_assert!(at <= line.start && line.start < value.start);
                proptest::prop_assert!(value.start <= value.end && value.end <= padding_end && padding_end <= line.end);
                proptest::prop_assert!(line.end <= header.len());
                at = line.end;
            }
        }
    }
}
