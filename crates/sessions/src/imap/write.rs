//! Responses as bytes (RFC 9051 §9): the small pieces that several commands share.

use imap_proto::NameEncoding;
use imap_proto::encode::{self, number};
use model::{DateTime, Flags, KeywordTable, MailboxName, SYSTEM_FLAGS, Uid, encode_mailbox_utf7};
use store::{EntryFlags, View};

use super::reply::{Condition, Done};
use crate::Output;

/// A tagged response.
pub(crate) fn tagged(out: &mut Output, tag: &str, done: &Done, highest_modseq: Option<u64>) {
    out.push_str(tag);
    out.push_str(match done.condition {
        Condition::Ok => " OK ",
        Condition::No => " NO ",
        Condition::Bad => " BAD ",
    });
    match (&done.code, highest_modseq) {
        (_, Some(modseq)) => out.push_fmt(format_args!("[HIGHESTMODSEQ {modseq}] ")),
        (Some(code), None) => out.push_fmt(format_args!("[{code}] ")),
        (None, None) => {}
    }
    out.push_str(&done.text);
    out.push_str("\r\n");
}

/// A string in the shortest form that holds it: quoted, or a literal when it has octets that quoted cannot have (RFC 9051 §9 string).
/// With `utf8`, quoted may hold UTF-8 (RFC 6855 §3, RFC 9051 §9 quoted).
pub(crate) fn string(out: &mut Vec<u8>, text: &[u8], utf8: bool) {
    encode::string(out, text, if utf8 { NameEncoding::Utf8 } else { NameEncoding::Utf7 });
}

/// An astring (RFC 9051 §9): an atom where it is one, a string else.
pub(crate) fn astring(out: &mut Vec<u8>, text: &[u8]) {
    // ASTRING-CHAR = ATOM-CHAR / "]"
    let is_astring_char = |b: &u8| b.is_ascii_graphic() && !b"(){%*\"\\".contains(b);
    if !text.is_empty() && text.iter().all(is_astring_char) {
        out.extend_from_slice(text);
    } else {
        string(out, text, false);
    }
}

/// A date-time with its quotes (RFC 9051 §9), without the machinery of formatting.
pub(crate) fn date_time(out: &mut Vec<u8>, when: DateTime) {
    let (date, (hour, minute, second)) = (when.civil_date(), when.time_of_day());
    let digits = |value: u16| [b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8];
    let day = digits(date.day.into());
    let offset = when.offset_minutes.unsigned_abs();
    out.push(b'"');
    out.extend_from_slice(&if date.day < 10 { [b' ', day[1]] } else { day });
    out.push(b'-');
    out.extend_from_slice(date.month_name().as_bytes());
    out.push(b'-');
    out.extend_from_slice(&digits(date.year / 100));
    out.extend_from_slice(&digits(date.year % 100));
    out.push(b' ');
    for (value, separator) in [(hour, b':'), (minute, b':'), (second, b' ')] {
        out.extend_from_slice(&digits(value.into()));
        out.push(separator);
    }
    out.push(if when.offset_minutes < 0 { b'-' } else { b'+' });
    out.extend_from_slice(&digits(offset / 60));
    out.extend_from_slice(&digits(offset % 60));
    out.push(b'"');
}

/// A mailbox name as this session writes them.
pub(crate) fn mailbox(out: &mut Vec<u8>, name: &MailboxName, encoding: NameEncoding) {
    mailbox_text(out, name.as_str(), encoding);
}

/// A mailbox name that need not be valid (OLDNAME), as this session writes them.
pub(crate) fn mailbox_text(out: &mut Vec<u8>, name: &str, encoding: NameEncoding) {
    let encoded;
    let text = match encoding {
        NameEncoding::Utf8 => name,
        NameEncoding::Utf7 => {
            encoded = encode_mailbox_utf7(name);
            &encoded
        }
    };
    let is_atom = |b: u8| b.is_ascii_alphanumeric() || b"-_./+@=,:;&#!~".contains(&b);
    // An atom where it is one and cannot be taken for NIL; else quoted.
    if !text.is_empty() && text.bytes().all(is_atom) && !text.eq_ignore_ascii_case("NIL") {
        out.extend_from_slice(text.as_bytes());
    } else {
        string(out, text.as_bytes(), encoding == NameEncoding::Utf8);
    }
}

/// The untagged FLAGS response and the PERMANENTFLAGS of a mailbox (RFC 9051 §7.3.5, §7.1).
pub(crate) fn mailbox_flags(out: &mut Output, view: &View, read_only: bool) {
    let keywords = || view.keywords().iter().map(model::Keyword::as_str);
    let names: Vec<&str> = SYSTEM_FLAGS.iter().map(|flag| flag.as_str()).chain(keywords()).collect();
    let names = names.join(" ");
    out.push_fmt(format_args!("* FLAGS ({names})\r\n"));
    if read_only {
        out.push_str("* OK [PERMANENTFLAGS ()] Nothing can be changed\r\n");
    } else {
        // \*: a client may make keywords, unless the mailbox has all that it can have.
        let more = if view.keywords().len() < model::limits::KEYWORDS_PER_MAILBOX_MAX { " \\*" } else { "" };
        out.push_fmt(format_args!("* OK [PERMANENTFLAGS ({names}{more})] These are kept\r\n"));
    }
}

/// What a line of [`FlagsLine::write`] has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlagsLine {
    /// `UID`
    pub uid: bool,
    /// `FLAGS`
    pub flags: bool,
    /// `MODSEQ`
    pub modseq: bool,
    /// `\Recent` for these UIDs and above (RFC 3501); `None` in IMAP4rev2.
    pub recent_from: Option<Uid>,
}

impl FlagsLine {
    /// One `* n FETCH (UID u FLAGS (...) MODSEQ (m))` (RFC 9051 §7.5.2, RFC 7162 §3.1.4). Allocates nothing but room in `out`.
    pub fn write(&self, out: &mut Vec<u8>, entry: &EntryFlags, keywords: &KeywordTable) {
        out.extend_from_slice(b"* ");
        number(out, u64::from(entry.seq.get()));
        out.extend_from_slice(b" FETCH (");
        let mut separator: &[u8] = b"";
        if self.uid {
            out.extend_from_slice(b"UID ");
            number(out, u64::from(entry.uid.get()));
            separator = b" ";
        }
        if self.flags {
            out.extend_from_slice(separator);
            flags(out, entry.flags, keywords, self.recent_from.is_some_and(|from| entry.uid >= from));
            separator = b" ";
        }
        if self.modseq {
            out.extend_from_slice(separator);
            out.extend_from_slice(b"MODSEQ (");
            number(out, entry.modseq.0);
            out.push(b')');
        }
        out.extend_from_slice(b")\r\n");
    }
}

/// `FLAGS (\Seen $Junk)`
pub(crate) fn flags(out: &mut Vec<u8>, flags: Flags, keywords: &KeywordTable, recent: bool) {
    out.extend_from_slice(b"FLAGS (");
    let mut first = true;
    for name in keywords.names(flags).chain(recent.then_some("\\Recent")) {
        if !first {
            out.push(b' ');
        }
        first = false;
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_take_the_form_that_holds_them() {
        let write = |text: &[u8], utf8| {
            let mut out = Vec::new();
            string(&mut out, text, utf8);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(write(br#"a"b\c"#, false), r#""a\"b\\c""#);
        assert_eq!(write("ü".as_bytes(), false), "{2}\r\nü");
        assert_eq!(write("ü".as_bytes(), true), "\"ü\"");
        assert_eq!(write(b"a\r\nb", true), "{4}\r\na\r\nb");
        // Every byte once: quoted never holds what it must not (RFC 9051 §9 QUOTED-CHAR).
        for byte in 0..=255u8 {
            let literal = matches!(byte, 0 | b'\r' | b'\n' | 0x80..);
            let mut out = Vec::new();
            string(&mut out, &[byte], false);
            assert_eq!(out.first() == Some(&b'{'), literal, "byte {byte}");
        }
    }

    #[test]
    fn dates_are_as_the_model_writes_them() {
        for (seconds, offset) in [(0, 0), (837_591_865, -420), (1_700_000_000, 330), (253_402_300_799, 0), (-1, -1439)]
        {
            let when = DateTime { unix_seconds: seconds, offset_minutes: offset };
            let mut out = Vec::new();
            date_time(&mut out, when);
            assert_eq!(String::from_utf8(out).unwrap(), format!("\"{when}\""));
        }
    }

    #[test]
    fn an_astring_is_an_atom_where_it_can_be() {
        for byte in 0..=255u8 {
            let mut out = Vec::new();
            astring(&mut out, &[byte]);
            let atom = (0x21..0x7f).contains(&byte) && !b"(){%*\"\\".contains(&byte);
            assert_eq!(out == [byte], atom, "byte {byte}");
        }
    }

    #[test]
    fn mailbox_names_take_the_encoding_of_the_session() {
        let write = |name: &str, encoding| {
            let mut out = Vec::new();
            mailbox(&mut out, &MailboxName::new(name).unwrap(), encoding);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(write("INBOX", NameEncoding::Utf7), "INBOX");
        assert_eq!(write("a b", NameEncoding::Utf7), "\"a b\"");
        assert_eq!(write("nil", NameEncoding::Utf7), "\"nil\"");
        assert_eq!(write("Entwürfe", NameEncoding::Utf7), "Entw&APw-rfe");
        assert_eq!(write("Entwürfe", NameEncoding::Utf8), "\"Entwürfe\"");
        assert_eq!(write("a*%", NameEncoding::Utf8), "\"a*%\"");
    }
}
