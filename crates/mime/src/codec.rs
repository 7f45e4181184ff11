//! The structure as bytes, for the cache.
//!
//! | what | how |
//! |---|---|
//! | version | one octet, [`VERSION`] |
//! | message | envelope, part |
//! | number | LEB128: seven bits an octet, the lowest first |
//! | string | number: 0 with a length and octets after it, or the index of a [`COMMON`] string plus 1 |
//! | optional x | 0, or 1 and x |
//! | list of x | number of elements, elements |
//! | envelope | date, subject (optional strings), from (list), sender, reply-to (0 if equal to from, or 1 and the list), to, cc, bcc, in-reply-to, message-id |
//! | address | optional name, adl, mailbox, host |
//! | part | header start (relative to where the parent's body starts or the sibling before ends), header length, body length, lines, type, subtype, parameters, encoding, id, description, md5, disposition, language, location, content |
//! | content | 0; or 1 and a list of parts; or 2 and a message |
//!
//! It is a cache: another version is not read but made anew from the message. What is read is never trusted:
//! lengths are checked against what is left, depth against [`DEPTH_MAX`], ranges against overflow.

use crate::scanner::DEPTH_MAX;
use crate::structure::{Content, Disposition, Message, Parameter, Part, Structure};
use crate::{Address, Envelope};

/// First octet of the encoding.
const VERSION: u8 = 1;

/// Strings so frequent that their index is stored. A change is a new [`VERSION`].
const COMMON: [&[u8]; 40] = [
    b"TEXT",
    b"PLAIN",
    b"HTML",
    b"MULTIPART",
    b"MIXED",
    b"ALTERNATIVE",
    b"RELATED",
    b"SIGNED",
    b"REPORT",
    b"DIGEST",
    b"MESSAGE",
    b"RFC822",
    b"DELIVERY-STATUS",
    b"APPLICATION",
    b"OCTET-STREAM",
    b"PDF",
    b"PGP-SIGNATURE",
    b"PKCS7-SIGNATURE",
    b"IMAGE",
    b"JPEG",
    b"PNG",
    b"GIF",
    b"CALENDAR",
    b"7BIT",
    b"8BIT",
    b"BASE64",
    b"QUOTED-PRINTABLE",
    b"BINARY",
    b"charset",
    b"us-ascii",
    b"utf-8",
    b"UTF-8",
    b"iso-8859-1",
    b"US-ASCII",
    b"boundary",
    b"name",
    b"format",
    b"flowed",
    b"INLINE",
    b"ATTACHMENT",
];

/// The bytes are not an encoded [`Structure`] of a version that this code reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError;

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("damaged or unknown message structure encoding")
    }
}

impl std::error::Error for DecodeError {}

impl Structure {
    /// The structure as bytes; the first is the version.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer { out: vec![VERSION] };
        writer.message(&self.message, 0);
        writer.out
    }

    /// The structure from the bytes of [`Structure::encode`]. Never panics; an error for anything else.
    pub fn decode(bytes: &[u8]) -> Result<Structure, DecodeError> {
        let (&version, rest) = bytes.split_first().ok_or(DecodeError)?;
        if version != VERSION {
            return Err(DecodeError);
        }
        let mut reader = Reader { rest };
        let message = reader.message(0, 0)?;
        if reader.rest.is_empty() { Ok(Structure { message }) } else { Err(DecodeError) }
    }
}

struct Writer {
    out: Vec<u8>,
}

impl Writer {
    fn number(&mut self, mut number: u64) {
        loop {
            let low = (number & 0x7F) as u8;
            number >>= 7;
            if number == 0 {
                return self.out.push(low);
            }
            self.out.push(low | 0x80);
        }
    }

    fn string(&mut self, string: &[u8]) {
        match COMMON.iter().position(|common| *common == string) {
            Some(index) => self.number(index as u64 + 1),
            None => {
                self.number(0);
                self.number(string.len() as u64);
                self.out.extend_from_slice(string);
            }
        }
    }

    fn optional(&mut self, string: Option<&Vec<u8>>) {
        self.number(u64::from(string.is_some()));
        if let Some(string) = string {
            self.string(string);
        }
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(list.len() as u64);
        for element in list {
            each(self, element);
        }
    }

    fn addresses(&mut self, addresses: &[Address]) {
        self.list(addresses, |writer, address| {
            for field in [&address.name, &address.adl, &address.mailbox, &address.host] {
                writer.optional(field.as_ref());
            }
        });
    }

    fn parameters(&mut self, parameters: &[Parameter]) {
        self.list(parameters, |writer, parameter| {
            writer.string(&parameter.name);
            writer.string(&parameter.value);
        });
    }

    fn message(&mut self, message: &Message, base: u64) {
        let envelope = &message.envelope;
        self.optional(envelope.date.as_ref());
        self.optional(envelope.subject.as_ref());
        self.addresses(&envelope.from);
        for like_from in [&envelope.sender, &envelope.reply_to] {
            self.number(u64::from(*like_from != envelope.from));
            if *like_from != envelope.from {
                self.addresses(like_from);
            }
        }
        for list in [&envelope.to, &envelope.cc, &envelope.bcc] {
            self.addresses(list);
        }
        self.optional(envelope.in_reply_to.as_ref());
        self.optional(envelope.message_id.as_ref());
        self.part(&message.root, base);
    }

    /// `base` is where the header may begin at the earliest.
    fn part(&mut self, part: &Part, base: u64) {
        self.number(part.header.start.wrapping_sub(base));
        self.number(part.header.end.wrapping_sub(part.header.start));
        self.number(part.body.end.wrapping_sub(part.body.start));
        self.number(part.body_lines);
        self.string(&part.media_type);
        self.string(&part.media_subtype);
        self.parameters(&part.parameters);
        self.string(&part.encoding);
        for field in [&part.id, &part.description, &part.md5] {
            self.optional(field.as_ref());
        }
        self.number(u64::from(part.disposition.is_some()));
        if let Some(disposition) = &part.disposition {
            self.string(&disposition.kind);
            self.parameters(&disposition.parameters);
        }
        self.list(&part.language, |writer, tag| writer.string(tag));
        self.optional(part.location.as_ref());
        match &part.content {
            Content::Leaf => self.number(0),
            Content::Multipart(children) => {
                self.number(1);
                let mut base = part.body.start;
                self.list(children, |writer, child| {
                    writer.part(child, base);
                    base = child.body.end;
                });
            }
            Content::Message(message) => {
                self.number(2);
                self.message(message, part.body.start);
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&octet, rest) = self.rest.split_first().ok_or(DecodeError)?;
            self.rest = rest;
            let bits = u64::from(octet & 0x7F);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                return Err(DecodeError);
            }
            number |= shifted;
            if octet & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError)
    }

    fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError),
        }
    }

    fn string(&mut self) -> Result<Vec<u8>, DecodeError> {
        let index = usize::try_from(self.number()?).map_err(|_| DecodeError)?;
        if let Some(index) = index.checked_sub(1) {
            return COMMON.get(index).map(|common| common.to_vec()).ok_or(DecodeError);
        }
        let length = usize::try_from(self.number()?).map_err(|_| DecodeError)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(DecodeError)?;
        self.rest = rest;
        Ok(string.to_vec())
    }

    fn optional(&mut self) -> Result<Option<Vec<u8>>, DecodeError> {
        self.flag()?.then(|| self.string()).transpose()
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
        let count = self.number()?;
        // Every element takes an octet at least: a false count fails before it costs memory.
        if count > self.rest.len() as u64 {
            return Err(DecodeError);
        }
        (0..count).map(|_| each(self)).collect()
    }

    fn addresses(&mut self) -> Result<Vec<Address>, DecodeError> {
        self.list(|reader| {
            let (name, adl) = (reader.optional()?, reader.optional()?);
            Ok(Address { name, adl, mailbox: reader.optional()?, host: reader.optional()? })
        })
    }

    fn parameters(&mut self) -> Result<Vec<Parameter>, DecodeError> {
        self.list(|reader| Ok(Parameter { name: reader.string()?, value: reader.string()? }))
    }

    fn message(&mut self, base: u64, depth: usize) -> Result<Message, DecodeError> {
        let (date, subject) = (self.optional()?, self.optional()?);
        let from = self.addresses()?;
        let sender = if self.flag()? { self.addresses()? } else { from.clone() };
        let reply_to = if self.flag()? { self.addresses()? } else { from.clone() };
        let (to, cc, bcc) = (self.addresses()?, self.addresses()?, self.addresses()?);
        let (in_reply_to, message_id) = (self.optional()?, self.optional()?);
        let envelope = Envelope { date, subject, from, sender, reply_to, to, cc, bcc, in_reply_to, message_id };
        Ok(Message { envelope, root: self.part(base, depth)? })
    }

    fn part(&mut self, base: u64, depth: usize) -> Result<Part, DecodeError> {
        // A leaf may lie one below the deepest composite part.
        if depth > DEPTH_MAX {
            return Err(DecodeError);
        }
        let start = base.checked_add(self.number()?).ok_or(DecodeError)?;
        let middle = start.checked_add(self.number()?).ok_or(DecodeError)?;
        let end = middle.checked_add(self.number()?).ok_or(DecodeError)?;
        let body_lines = self.number()?;
        let (media_type, media_subtype) = (self.string()?, self.string()?);
        let (parameters, encoding) = (self.parameters()?, self.string()?);
        let (id, description, md5) = (self.optional()?, self.optional()?, self.optional()?);
        let disposition = match self.flag()? {
            true => Some(Disposition { kind: self.string()?, parameters: self.parameters()? }),
            false => None,
        };
        let language = self.list(Reader::string)?;
        let location = self.optional()?;
        let content = match self.number()? {
            0 => Content::Leaf,
            1 => {
                let mut base = middle;
                Content::Multipart(self.list(|reader| {
                    let child = reader.part(base, depth + 1)?;
                    base = child.body.end;
                    Ok(child)
                })?)
            }
            2 => Content::Message(Box::new(self.message(middle, depth + 1)?)),
            _ => return Err(DecodeError),
        };
        Ok(Part {
            header: start..middle,
            body: middle..end,
            body_lines,
            media_type,
            media_subtype,
            parameters,
            encoding,
            id,
            description,
            md5,
            disposition,
            language,
            location,
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scan;
    use proptest::prelude::*;

    const MESSAGE: &[u8] = b"From: A <a@b>\r\nSubject: x\r\nTo: g: c@d;\r\nReply-To: r@s\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\npre\r\n--b\r\n\r\nhi\r\n--b\r\nContent-Type: message/rfc822\r\n\
        Content-Disposition: attachment; filename=\"x y\"\r\nContent-Language: de, en\r\nContent-ID: <i>\r\n\r\n\
        Subject: in\r\n\r\nbody\r\n--b\r\nContent-Type: image/png; name=x\r\nContent-Transfer-Encoding: base64\r\n\r\n\
        AAAA\r\n--b--\r\n";

    #[test]
    fn round_trip() {
        let structure = scan(MESSAGE).0;
        let bytes = structure.encode();
        assert_eq!(Structure::decode(&bytes).unwrap(), structure);
        // Compact: less than the headers it stands for.
        assert!(bytes.len() < 260, "{}", bytes.len());
        let empty = scan(b"").0;
        assert_eq!(Structure::decode(&empty.encode()).unwrap(), empty);
    }

    #[test]
    fn damage_is_an_error_or_another_structure() {
        let bytes = scan(MESSAGE).0.encode();
        for length in 0..bytes.len() {
            assert!(Structure::decode(&bytes[..length]).is_err(), "{length}");
        }
        let mut more = bytes.clone();
        more.push(0);
        assert_eq!(Structure::decode(&more), Err(DecodeError));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                let _ = Structure::decode(&bad);
            }
        }
        let mut other = bytes;
        other[0] = VERSION + 1;
        assert_eq!(Structure::decode(&other), Err(DecodeError));
    }

    #[test]
    fn depth_is_bounded() {
        // Parts inside parts without end: each a multipart of one.
        let part = [0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1];
        let mut bytes = vec![VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(part.repeat(100_000));
        assert_eq!(Structure::decode(&bytes), Err(DecodeError));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..200)) {
            let bytes = [vec![VERSION], bytes].concat();
            if let Ok(structure) = Structure::decode(&bytes) {
                prop_assert_eq!(Structure::decode(&structure.encode()).unwrap(), structure);
            }
        }
    }
}
