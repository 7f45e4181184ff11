//! Values to bytes, appended to a caller's buffer: what responses are made of.
//!
//! Nothing here goes through `std::fmt`: a FETCH of flags over hundreds of thousands of messages passes here once a message.
//! Whole responses are in [`crate::response`]; the items of FETCH are written by [`FetchWriter`].

mod fetch;

use model::{MailboxName, NumSet, encode_mailbox_utf7};

use crate::NameEncoding;
use crate::chars::{is_atom_char, is_quoted_char};

pub use crate::date::write_date_time as date_time;
pub use fetch::FetchWriter;

/// Longest string that is written in quotes, octets: longer ones are literals, as clients with fixed line buffers like it.
const QUOTED_BYTES_MAX: usize = 1024;

/// Writes a number.
pub fn number(out: &mut Vec<u8>, value: u64) {
    const EIGHT_DIGITS: u64 = 100_000_000;
    let (before, mut rest) = (value / EIGHT_DIGITS, (value % EIGHT_DIGITS) as u32);
    let mut count = 8;
    if before > 0 {
        number(out, before);
    } else {
        count = rest.checked_ilog10().map_or(1, |log| log as usize + 1);
    }
    // The digits are gathered in a register, the first one lowest; all of it is copied and then cut. Copying only as many octets as
    // there are digits would be a call, and digits in memory would have to be waited for.
    let mut digits = 0u64;
    for _ in 0..count {
        digits = digits << 8 | u64::from(b'0' + (rest % 10) as u8);
        rest /= 10;
    }
    let end = out.len() + count;
    out.extend_from_slice(&digits.to_le_bytes());
    out.truncate(end);
}

/// Writes a set of numbers: `1:3,5`; nothing for the empty set, which the grammar cannot write.
pub fn num_set(out: &mut Vec<u8>, set: &NumSet) {
    for (n, &(first, last)) in set.ranges().iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        number(out, u64::from(first));
        if last != first {
            out.push(b':');
            number(out, u64::from(last));
        }
    }
}

/// Writes a string (RFC 9051 §9 string): quoted when that is possible, else a literal. UTF-8 is quoted only in
/// [`NameEncoding::Utf8`] sessions. NUL, which neither form may hold, is written in a literal all the same: a message that has
/// one cannot be shown otherwise, and clients cope.
pub fn string(out: &mut Vec<u8>, octets: &[u8], encoding: NameEncoding) {
    let quotable = octets.len() <= QUOTED_BYTES_MAX
        && octets.iter().all(|byte| is_quoted_char(*byte) || matches!(byte, b'"' | b'\\'))
        && (octets.is_ascii() || (encoding == NameEncoding::Utf8 && std::str::from_utf8(octets).is_ok()));
    if quotable {
        quoted(out, octets);
    } else {
        literal_mark(out, octets.len() as u64);
        out.extend_from_slice(octets);
    }
}

/// Writes a string, or NIL (RFC 9051 §9 nstring).
pub fn nstring(out: &mut Vec<u8>, octets: Option<&[u8]>, encoding: NameEncoding) {
    match octets {
        Some(octets) => string(out, octets, encoding),
        None => out.extend_from_slice(b"NIL"),
    }
}

/// Writes an astring (RFC 9051 §9): an atom when it can be one and is not NIL, else a string.
pub fn astring(out: &mut Vec<u8>, octets: &[u8], encoding: NameEncoding) {
    let plain = !octets.is_empty() && octets.iter().all(|byte| is_atom_char(*byte));
    if plain && !octets.eq_ignore_ascii_case(b"NIL") {
        out.extend_from_slice(octets);
    } else {
        string(out, octets, encoding);
    }
}

/// Writes a mailbox name as the session wants it.
pub fn mailbox(out: &mut Vec<u8>, name: &MailboxName, encoding: NameEncoding) {
    match encoding {
        NameEncoding::Utf7 => astring(out, encode_mailbox_utf7(name.as_str()).as_bytes(), encoding),
        NameEncoding::Utf8 => astring(out, name.as_str().as_bytes(), encoding),
    }
}

/// Writes a flag-list of names: `(\Seen $Junk)`.
pub fn flag_names<'a>(out: &mut Vec<u8>, names: impl IntoIterator<Item = &'a str>) {
    out.push(b'(');
    let start = out.len();
    for name in names {
        if out.len() > start {
            out.push(b' ');
        }
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b')');
}

/// Writes the mark of a literal (RFC 9051 §4.3): `{n}` and CRLF; the octets are the caller's to send.
pub fn literal_mark(out: &mut Vec<u8>, size: u64) {
    out.push(b'{');
    number(out, size);
    out.extend_from_slice(b"}\r\n");
}

/// Writes the mark of a literal8 (RFC 9051 §9): `~{n}` and CRLF; only BINARY data may come so.
pub fn literal8_mark(out: &mut Vec<u8>, size: u64) {
    out.push(b'~');
    literal_mark(out, size);
}

/// Writes a quoted string; the caller knows that `text` has no NUL, CR or LF.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// `* n NAME` and the line end: EXISTS, EXPUNGE, RECENT.
fn numbered(out: &mut Vec<u8>, value: u32, name: &[u8]) {
    out.extend_from_slice(b"* ");
    number(out, u64::from(value));
    out.extend_from_slice(name);
}

/// Writes `* n EXISTS` (RFC 9051 §7.4.1).
pub fn exists(out: &mut Vec<u8>, count: u32) {
    numbered(out, count, b" EXISTS\r\n");
}

/// Writes `* n RECENT` (RFC 3501 §7.3.2).
pub fn recent(out: &mut Vec<u8>, count: u32) {
    numbered(out, count, b" RECENT\r\n");
}

/// Writes `* n EXPUNGE` (RFC 9051 §7.5.1).
pub fn expunge(out: &mut Vec<u8>, sequence: u32) {
    numbered(out, sequence, b" EXPUNGE\r\n");
}

/// Writes `* VANISHED` (RFC 7162 §3.2.10); nothing for the empty set.
pub fn vanished(out: &mut Vec<u8>, earlier: bool, uids: &NumSet) {
    if uids.is_empty() {
        return;
    }
    out.extend_from_slice(if earlier { b"* VANISHED (EARLIER) " } else { b"* VANISHED " });
    num_set(out, uids);
    out.extend_from_slice(b"\r\n");
}

/// Writes a continuation request (RFC 9051 §7.6): `+ text`.
pub fn continuation(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"+ ");
    line_text(out, text, NameEncoding::Utf7);
    out.extend_from_slice(b"\r\n");
}

/// Text of a line (RFC 9051 §9 text): what cannot stand there becomes `?`.
pub(crate) fn line_text(out: &mut Vec<u8>, text: &str, encoding: NameEncoding) {
    for c in text.chars() {
        match c {
            '\0' | '\r' | '\n' => out.push(b'?'),
            _ if c.is_ascii() || encoding == NameEncoding::Utf8 => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => out.push(b'?'),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scan::Scan;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn strings_take_the_form_that_they_need() {
        use NameEncoding::{Utf7, Utf8};
        assert_eq!(written(|out| string(out, b"a\"\\", Utf7)), r#""a\"\\""#);
        assert_eq!(written(|out| string(out, "é".as_bytes(), Utf7)), "{2}\r\né");
        assert_eq!(written(|out| string(out, "é".as_bytes(), Utf8)), "\"é\"");
        assert_eq!(written(|out| string(out, b"\r\n", Utf8)), "{2}\r\n\r\n");
        assert_eq!(written(|out| nstring(out, None, Utf8)), "NIL");
        assert_eq!(written(|out| astring(out, b"a.b", Utf7)), "a.b");
        assert_eq!(written(|out| astring(out, b"nil", Utf7)), "\"nil\"");
        assert_eq!(written(|out| astring(out, b"", Utf7)), "\"\"");
        let name = MailboxName::new("Entwürfe").unwrap();
        assert_eq!(written(|out| mailbox(out, &name, Utf7)), "Entw&APw-rfe");
        assert_eq!(written(|out| mailbox(out, &name, Utf8)), "\"Entwürfe\"");
        let (at, over) = ("x".repeat(QUOTED_BYTES_MAX), "x".repeat(QUOTED_BYTES_MAX + 1));
        assert!(written(|out| string(out, at.as_bytes(), Utf7)).starts_with('"'));
        assert!(written(|out| string(out, over.as_bytes(), Utf7)).starts_with("{1025}"));
    }

    #[test]
    fn every_octet_comes_back() {
        for byte in 0..=255u8 {
            for encoding in [NameEncoding::Utf7, NameEncoding::Utf8] {
                let mut out = Vec::new();
                string(&mut out, &[byte], encoding);
                let mut scan = Scan::new(&out);
                let back = if byte == 0 { scan.literal().map(<[u8]>::to_vec) } else { scan.string("") };
                assert_eq!(back, Ok(vec![byte]));
            }
        }
    }

    #[test]
    fn numbers_of_every_length() {
        let edges = (0..20).flat_map(|digits| [10u64.pow(digits) - 1, 10u64.pow(digits), 10u64.pow(digits) + 1]);
        for value in edges.chain([u64::MAX]) {
            assert_eq!(written(|out| number(out, value)), value.to_string());
        }
    }

    #[test]
    fn untagged_numbers() {
        assert_eq!(written(|out| exists(out, 23)), "* 23 EXISTS\r\n");
        assert_eq!(written(|out| recent(out, 0)), "* 0 RECENT\r\n");
        assert_eq!(written(|out| expunge(out, 44)), "* 44 EXPUNGE\r\n");
        let uids: NumSet = [300u32, 305, 306].into_iter().collect();
        assert_eq!(written(|out| vanished(out, true, &uids)), "* VANISHED (EARLIER) 300,305:306\r\n");
        assert_eq!(written(|out| vanished(out, false, &NumSet::new())), "");
        assert_eq!(written(|out| continuation(out, "é\n")), "+ ??\r\n");
    }

    proptest! {
        #[test]
        fn numbers_are_decimal(value in any::<u64>()) {
            prop_assert_eq!(written(|out| number(out, value)), value.to_string());
        }

        #[test]
        fn astrings_come_back(octets in proptest::collection::vec(1u8.., 0..20)) {
            let mut out = Vec::new();
            astring(&mut out, &octets, NameEncoding::Utf7);
            prop_assert_eq!(Scan::new(&out).astring(""), Ok(octets));
        }
    }
}
