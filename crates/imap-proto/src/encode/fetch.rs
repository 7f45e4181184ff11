//! The items of an untagged FETCH, piece by piece (RFC 9051 §7.5.2): so that a body can be streamed between two of them.

use model::{DateTime, EmailId, ModSeq, ThreadId, Uid};

use super::{date_time, flag_names, literal_mark, literal8_mark, nstring, number};
use crate::NameEncoding;
use crate::command::{Section, SectionPart};

/// Writes one FETCH response into buffers that the caller may change between two pieces; it knows only whether a space is due.
#[derive(Clone, Copy, Debug)]
#[must_use = "a response that is begun must be ended"]
pub struct FetchWriter {
    has_items: bool,
}

impl FetchWriter {
    /// `* n FETCH (`
    pub fn start(out: &mut Vec<u8>, sequence: u32) -> Self {
        out.extend_from_slice(b"* ");
        number(out, u64::from(sequence));
        out.extend_from_slice(b" FETCH (");
        FetchWriter { has_items: false }
    }

    /// `)` and the line end.
    pub fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b")\r\n");
    }

    /// The name of an item; its value is the caller's to write.
    pub fn item(&mut self, out: &mut Vec<u8>, name: &str) {
        self.name(out, name.as_bytes());
        out.push(b' ');
    }

    fn name(&mut self, out: &mut Vec<u8>, name: &[u8]) {
        if self.has_items {
            out.push(b' ');
        }
        self.has_items = true;
        out.extend_from_slice(name);
    }

    /// `UID`
    pub fn uid(&mut self, out: &mut Vec<u8>, uid: Uid) {
        self.name(out, b"UID ");
        number(out, u64::from(uid.get()));
    }

    /// `FLAGS`
    pub fn flags<'a>(&mut self, out: &mut Vec<u8>, names: impl IntoIterator<Item = &'a str>) {
        self.name(out, b"FLAGS ");
        flag_names(out, names);
    }

    /// `MODSEQ` (RFC 7162 §3.1.4.2)
    pub fn modseq(&mut self, out: &mut Vec<u8>, modseq: ModSeq) {
        self.name(out, b"MODSEQ (");
        number(out, modseq.0);
        out.push(b')');
    }

    /// `RFC822.SIZE`
    pub fn rfc822_size(&mut self, out: &mut Vec<u8>, octets: u64) {
        self.name(out, b"RFC822.SIZE ");
        number(out, octets);
    }

    /// `INTERNALDATE`
    pub fn internal_date(&mut self, out: &mut Vec<u8>, time: DateTime) {
        self.name(out, b"INTERNALDATE ");
        date_time(out, time);
    }

    /// `SAVEDATE` (RFC 8514 §4.2)
    pub fn save_date(&mut self, out: &mut Vec<u8>, time: Option<DateTime>) {
        self.name(out, b"SAVEDATE ");
        match time {
            Some(time) => date_time(out, time),
            None => out.extend_from_slice(b"NIL"),
        }
    }

    /// `EMAILID` (RFC 8474 §5.1)
    pub fn email_id(&mut self, out: &mut Vec<u8>, id: EmailId) {
        self.name(out, b"EMAILID (M");
        hexadecimal(out, id.0);
        out.push(b')');
    }

    /// `THREADID` (RFC 8474 §5.2)
    pub fn thread_id(&mut self, out: &mut Vec<u8>, id: Option<ThreadId>) {
        self.name(out, b"THREADID ");
        match id {
            Some(id) => {
                out.extend_from_slice(b"(T");
                hexadecimal(out, id.0);
                out.push(b')');
            }
            None => out.extend_from_slice(b"NIL"),
        }
    }

    /// `PREVIEW` (RFC 8970 §3.2); `None` when a lazy one is not at hand.
    pub fn preview(&mut self, out: &mut Vec<u8>, text: Option<&str>, encoding: NameEncoding) {
        self.name(out, b"PREVIEW ");
        nstring(out, text.map(str::as_bytes), encoding);
    }

    /// `BODY[...]<origin>` and a space; the string, the literal's mark or NIL follows.
    pub fn body_section(&mut self, out: &mut Vec<u8>, section: &Section, origin: Option<u64>) {
        self.name(out, b"BODY");
        section.write(out);
        write_origin(out, origin);
        out.push(b' ');
    }

    /// `BODY[...]<origin> {n}` and the line end: the octets are the caller's to send.
    pub fn body_section_literal(&mut self, out: &mut Vec<u8>, section: &Section, origin: Option<u64>, size: u64) {
        self.body_section(out, section, origin);
        literal_mark(out, size);
    }

    /// `BINARY[...]<origin> ~{n}` and the line end (RFC 3516 §4.2): the octets are the caller's to send. Without `nul`, which
    /// says that there is a NUL among them, it is a plain literal.
    pub fn binary_literal(&mut self, out: &mut Vec<u8>, part: &SectionPart, origin: Option<u64>, size: u64, nul: bool) {
        self.binary(out, part, origin);
        if nul { literal8_mark(out, size) } else { literal_mark(out, size) }
    }

    /// `BINARY[...]<origin>` and a space; the value follows.
    pub fn binary(&mut self, out: &mut Vec<u8>, part: &SectionPart, origin: Option<u64>) {
        self.name(out, b"BINARY[");
        part.write(out);
        out.push(b']');
        write_origin(out, origin);
        out.push(b' ');
    }

    /// `BINARY.SIZE[...]` (RFC 3516 §4.3)
    pub fn binary_size(&mut self, out: &mut Vec<u8>, part: &SectionPart, octets: u64) {
        self.name(out, b"BINARY.SIZE[");
        part.write(out);
        out.extend_from_slice(b"] ");
        number(out, octets);
    }
}

/// The digits of an object id, as its `Display` writes them.
fn hexadecimal(out: &mut Vec<u8>, value: u64) {
    let significant = (u64::BITS - value.leading_zeros()).div_ceil(4).max(1);
    for place in (0..significant).rev() {
        let digit = (value >> (place * 4) & 15) as u8;
        out.push(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
    }
}

fn write_origin(out: &mut Vec<u8>, origin: Option<u64>) {
    if let Some(origin) = origin {
        out.push(b'<');
        number(out, origin);
        out.push(b'>');
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::command::SectionText;

    #[test]
    fn object_ids_are_written_as_they_display() {
        for value in (0..64).map(|bit| 1u64 << bit).chain([0, 0xabc, 0x1234_5678_9abc_def0, u64::MAX]) {
            let mut out = Vec::new();
            let mut fetch = FetchWriter::start(&mut out, 1);
            fetch.email_id(&mut out, EmailId(value));
            fetch.thread_id(&mut out, Some(ThreadId(value)));
            fetch.end(&mut out);
            let expected = format!("* 1 FETCH (EMAILID ({}) THREADID ({}))\r\n", EmailId(value), ThreadId(value));
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn items_are_a_space_apart() {
        let mut out = Vec::new();
        let mut fetch = FetchWriter::start(&mut out, 23);
        fetch.uid(&mut out, Uid::new(4827313).unwrap());
        fetch.flags(&mut out, ["\\Seen", "$Junk"]);
        fetch.flags(&mut out, []);
        fetch.modseq(&mut out, ModSeq(17));
        fetch.rfc822_size(&mut out, 44827);
        fetch.internal_date(&mut out, DateTime::utc(0));
        fetch.save_date(&mut out, None);
        fetch.email_id(&mut out, EmailId(0x1f));
        fetch.thread_id(&mut out, None);
        fetch.thread_id(&mut out, Some(ThreadId(2)));
        fetch.preview(&mut out, Some("hi"), NameEncoding::Utf7);
        let part = SectionPart(vec![NonZeroU32::MIN]);
        let section = Section { part: part.clone(), text: SectionText::HeaderFields(vec![b"Subject".to_vec()]) };
        fetch.body_section_literal(&mut out, &section, Some(0), 2);
        out.extend_from_slice(b"ab");
        fetch.binary_literal(&mut out, &part, None, 1, true);
        out.extend_from_slice(b"\0");
        fetch.binary_size(&mut out, &part, 7);
        fetch.item(&mut out, "ENVELOPE");
        out.extend_from_slice(b"NIL");
        fetch.end(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "* 23 FETCH (UID 4827313 FLAGS (\\Seen $Junk) FLAGS () MODSEQ (17) RFC822.SIZE 44827 \
             INTERNALDATE \" 1-Jan-1970 00:00:00 +0000\" SAVEDATE NIL EMAILID (M1f) THREADID NIL THREADID (T2) \
             PREVIEW \"hi\" BODY[1.HEADER.FIELDS (Subject)]<0> {2}\r\nab BINARY[1] ~{1}\r\n\0 BINARY.SIZE[1] 7 \
             ENVELOPE NIL)\r\n"
        );
    }
}
