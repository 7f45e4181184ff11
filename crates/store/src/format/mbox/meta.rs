//! The header fields in which mail programs keep what they know of a message, and exactly which bytes they take.
//!
//! Whoever writes flags back must change these bytes and no others: so each field comes with its line and its value as ranges of the header.
//! What a value means is not decided here.
//!
//! Invariant: whether a line begins such a field is decided by [`NAME_BYTES_MAX`] octets of it at most ([`MetaName::at`]), so that whoever
//! reads in pieces decides as whoever has the whole header.

use std::ops::Range;

use super::scan::lines::each_line_start;

/// The colon of such a field stands within so many octets of its first line; a line that has it farther on is an ordinary field.
pub const NAME_BYTES_MAX: usize = 64;

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
    /// `X-Mailyard-Filler`: octets without a meaning, which an expunge gave to the message before or behind it rather than to move the
    /// rest of the file.
    Filler,
    /// `Lines`, which mutt writes beside Content-Length whenever it writes a message, also over one that the sender wrote.
    Lines,
    /// `X-Mozilla-Status`: flags, in hexadecimal digits (Thunderbird).
    MozillaStatus,
    /// `X-Mozilla-Status2`: more of them.
    MozillaStatus2,
    /// `X-Mozilla-Keys`: keywords (Thunderbird).
    MozillaKeys,
}

/// What the beginning of a line says: see [`MetaName::at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStart {
    /// A field of this name.
    Meta(MetaName),
    /// Something else.
    Other,
    /// More octets are needed to say.
    More,
}

impl MetaName {
    /// Every name as it is usually written.
    pub const ALL: [(MetaName, &'static str); 12] = [
        (MetaName::ImapBase, "X-IMAPbase"),
        (MetaName::Imap, "X-IMAP"),
        (MetaName::Uid, "X-UID"),
        (MetaName::Status, "Status"),
        (MetaName::XStatus, "X-Status"),
        (MetaName::XKeywords, "X-Keywords"),
        (MetaName::ContentLength, "Content-Length"),
        (MetaName::Filler, "X-Mailyard-Filler"),
        (MetaName::Lines, "Lines"),
        (MetaName::MozillaStatus, "X-Mozilla-Status"),
        (MetaName::MozillaStatus2, "X-Mozilla-Status2"),
        (MetaName::MozillaKeys, "X-Mozilla-Keys"),
    ];

    /// Whether write-back writes and removes fields of this name; the others stay as those who wrote them want them.
    pub fn is_ours(self) -> bool {
        use MetaName::{ContentLength, Lines, MozillaKeys, MozillaStatus, MozillaStatus2};
        !matches!(self, ContentLength | Lines | MozillaStatus | MozillaStatus2 | MozillaKeys)
    }

    /// Judges a line of a header by its beginning; [`NAME_BYTES_MAX`] octets of it are always enough. A continuation line is `Other`.
    #[inline]
    pub fn at(line: &[u8]) -> LineStart {
        // Most lines are dismissed by one octet.
        match line.first() {
            Some(byte) if Self::may_begin(*byte) => Self::at_likely(line),
            Some(_) => LineStart::Other,
            None => LineStart::More,
        }
    }

    /// Whether one of the names begins so.
    #[inline]
    pub(super) fn may_begin(byte: u8) -> bool {
        matches!(byte, b'X' | b'x' | b'S' | b's' | b'C' | b'c' | b'L' | b'l')
    }

    fn at_likely(line: &[u8]) -> LineStart {
        let looked_at = line.get(..NAME_BYTES_MAX).unwrap_or(line);
        if !Self::may_go_on(looked_at) {
            return LineStart::Other;
        }
        match looked_at.iter().position(|byte| matches!(byte, b':' | b'\n')) {
            Some(end) if looked_at.get(end) == Some(&b':') => {
                let name = looked_at.get(..end).unwrap_or_default().trim_ascii_end();
                Self::of(name).map_or(LineStart::Other, LineStart::Meta)
            }
            None if looked_at.len() < NAME_BYTES_MAX => LineStart::More,
            _ => LineStart::Other,
        }
    }

    /// Whether one of the names goes on so: that dismisses Subject, Sender, Content-Type, List-Id and most of what begins with `X-`.
    fn may_go_on(line: &[u8]) -> bool {
        let is = |at: usize, one_of: &[u8]| line.get(at).is_none_or(|byte| one_of.contains(&byte.to_ascii_lowercase()));
        match line.first().map(u8::to_ascii_lowercase) {
            Some(b'x') => is(1, b"-") && is(2, b"iuskm"),
            Some(b's') => is(1, b"t"),
            Some(b'l') => is(2, b"n"),
            // Content-Length.
            _ => is(8, b"l"),
        }
    }

    fn of(name: &[u8]) -> Option<MetaName> {
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
    mime::HeaderBlock::new(header).fields().filter_map(|field| extents(field, 0))
}

/// [`meta_fields`] of a whole header, at a third of the time where all lines end with LF, as nearly always.
pub(super) fn all_fields(header: &[u8]) -> Vec<MetaField> {
    let is_plain = header.ends_with(b"\n\n") && memchr::memchr(b'\r', header).is_none();
    if !is_plain {
        return meta_fields(header).collect();
    }
    let mut fields = Vec::new();
    let mut look_at = |at: usize| match header.get(at) {
        None | Some(b'\n') => false,
        Some(byte) => {
            if MetaName::may_begin(*byte)
                && matches!(MetaName::at(header.get(at..).unwrap_or_default()), LineStart::Meta(_))
            {
                fields.extend(meta_field_at(header, at));
            }
            true
        }
    };
    if look_at(0) {
        each_line_start(header, 0, look_at);
    }
    fields
}

/// The field whose line begins at `at`, if it is one of these.
pub(super) fn meta_field_at(header: &[u8], at: usize) -> Option<MetaField> {
    let field = mime::HeaderBlock::new(header.get(at..)?).fields().next()?;
    if field.offset == 0 { extents(field, at) } else { None }
}

/// The extents of a field of a header block that begins at `base`.
fn extents(field: mime::Field<'_>, base: usize) -> Option<MetaField> {
    let LineStart::Meta(name) = MetaName::at(field.full) else { return None };
    let full = field.full;
    let content = match full {
        [content @ .., b'\r', b'\n'] | [content @ .., b'\n'] => content,
        _ => full,
    };
    let after = memchr::memchr(b':', content)? + 1;
    let raw = content.get(after..)?;
    let value = raw.trim_ascii();
    let start = if value.is_empty() {
        after + usize::from(raw.starts_with(b" "))
    } else {
        content.len() - raw.trim_ascii_start().len()
    };
    let base = base + field.offset;
    Some(MetaField {
        name,
        line: base..base + full.len(),
        value: base + start..base + start + value.len(),
        padding_end: base + content.len(),
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
        // The colon is on the first line and not too far.
        assert_eq!(shown("X-UID\n : 1\n"), []);
        let far = |spaces: usize| shown(&format!("X-UID{}: 1\n", " ".repeat(spaces))).len();
        assert_eq!((far(NAME_BYTES_MAX - 6), far(NAME_BYTES_MAX - 5)), (1, 0));
    }

    #[test]
    fn first_octets_of_all_names() {
        for byte in 0..=255u8 {
            let is_first = MetaName::ALL.iter().any(|(_, name)| name.as_bytes()[0].eq_ignore_ascii_case(&byte));
            assert_eq!(MetaName::at(&[byte]) == LineStart::More, is_first, "{byte}");
        }
        for (name, text) in MetaName::ALL {
            assert!(text.len() < NAME_BYTES_MAX);
            for text in [text.to_owned(), text.to_ascii_lowercase(), text.to_ascii_uppercase()] {
                let cuts = (0..=text.len()).map(|cut| MetaName::at(&text.as_bytes()[..cut]));
                assert!(cuts.into_iter().all(|start| start == LineStart::More), "{text}");
                assert_eq!(MetaName::at(format!("{text} : 1\n").as_bytes()), LineStart::Meta(name));
            }
        }
        for text in
            ["Subject", "sender", "List-Id", "CONTENT-TYPE", "X-Spam-Level", "Xyz", "Content", "Status-Of", "S", "X-"]
        {
            assert_eq!(MetaName::at(format!("{text}: 1\n").as_bytes()), LineStart::Other, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn all_fields_are_those_of_a_header(
            header in "((Status|X-UID|x-keywords|Subject|X-IMAPbase|Lines)( |\t)?:?[ a]{0,70}(\n|\r\n|\n |\n\t|\n\n)?){0,12}(\n\n)?"
        ) {
            let fields: Vec<MetaField> = meta_fields(header.as_bytes()).collect();
            proptest::prop_assert_eq!(all_fields(header.as_bytes()), fields);
        }

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
