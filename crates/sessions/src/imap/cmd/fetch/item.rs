//! The items of FETCH (RFC 9051 §6.4.5, §7.5.2), one by one.

use imap_proto::command::{FetchAtt, Partial, SectionPart, SectionText};
use imap_proto::encode;
use store::{Entry, Reader};

use super::binary::{self, Binary};
use super::section::{Found, Octets, write_origin, write_part};
use super::{Stream, WHOLE_BYTES_MAX, line};
use crate::Output;
use crate::imap::reply::{Done, Stop};

/// An item, with everything worked out that does not depend on the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// `FLAGS`
    Flags,
    /// `UID`
    Uid,
    /// `MODSEQ`
    ModSeq,
    /// `INTERNALDATE`
    InternalDate,
    /// `SAVEDATE`
    SaveDate,
    /// `RFC822.SIZE`
    Size,
    /// `EMAILID`
    EmailId,
    /// `THREADID`
    ThreadId,
    /// `ENVELOPE`
    Envelope,
    /// `BODY`
    Body,
    /// `BODYSTRUCTURE`
    BodyStructure,
    /// `PREVIEW`
    Preview,
    /// `BODY[...]`, `RFC822`, ...
    Octets {
        /// Which.
        octets: Octets,
        /// Whether it sets `\Seen`.
        seen: bool,
    },
    /// `BINARY[...]`
    Binary {
        /// The name in the response.
        label: Vec<u8>,
        /// The part.
        part: Vec<u32>,
        /// Which of its octets.
        partial: Option<Partial>,
        /// Whether it sets `\Seen`.
        seen: bool,
    },
    /// `BINARY.SIZE[...]`
    BinarySize {
        /// The name in the response.
        label: Vec<u8>,
        /// The part.
        part: Vec<u32>,
    },
}

impl Item {
    /// Whether fetching this sets `\Seen`.
    pub(super) fn sets_seen(&self) -> bool {
        matches!(self, Item::Octets { seen: true, .. } | Item::Binary { seen: true, .. })
    }
}

/// What an item of a command comes to.
pub(super) fn plan(att: &FetchAtt) -> Item {
    let seen = att.sets_seen();
    let label = |name: &str, part, partial| {
        let mut label = name.as_bytes().to_vec();
        label.push(b'[');
        write_part(&mut label, part);
        label.push(b']');
        write_origin(&mut label, partial);
        label
    };
    let numbers = |part: &SectionPart| part.0.iter().map(|n| n.get()).collect();
    match att {
        FetchAtt::Envelope => Item::Envelope,
        FetchAtt::Flags => Item::Flags,
        FetchAtt::InternalDate => Item::InternalDate,
        FetchAtt::Rfc822Size => Item::Size,
        FetchAtt::Body => Item::Body,
        FetchAtt::BodyStructure => Item::BodyStructure,
        FetchAtt::Uid => Item::Uid,
        FetchAtt::BodySection { section, partial, .. } => {
            Item::Octets { octets: Octets::of_body(section, *partial), seen }
        }
        FetchAtt::Binary { part, partial, .. } => {
            Item::Binary { label: label("BINARY", part, *partial), part: numbers(part), partial: *partial, seen }
        }
        FetchAtt::BinarySize { part } => {
            Item::BinarySize { label: label("BINARY.SIZE", part, None), part: numbers(part) }
        }
        FetchAtt::Rfc822 => Item::Octets { octets: Octets::named("RFC822", SectionText::Full), seen },
        FetchAtt::Rfc822Header => Item::Octets { octets: Octets::named("RFC822.HEADER", SectionText::Header), seen },
        FetchAtt::Rfc822Text => Item::Octets { octets: Octets::named("RFC822.TEXT", SectionText::Text), seen },
        FetchAtt::ModSeq => Item::ModSeq,
        FetchAtt::SaveDate => Item::SaveDate,
        // The preview was made when the message came: there is nothing to be lazy about.
        FetchAtt::Preview { .. } => Item::Preview,
        FetchAtt::EmailId => Item::EmailId,
        FetchAtt::ThreadId => Item::ThreadId,
    }
}

/// Writes an item (FLAGS is not written here); a literal too large to hold comes back as what is still to be streamed.
///
/// On an error nothing of the item counts: the caller takes back the response, or ends the connection.
pub(super) fn write(
    item: &Item,
    entry: &Entry,
    reader: &mut Reader,
    utf8: bool,
    out: &mut Output,
) -> Result<Option<Stream>, Stop> {
    let id = entry.email_id;
    let bytes = out.bytes_mut();
    match item {
        Item::Flags => {}
        Item::Uid => line::uid(bytes, entry.uid),
        Item::ModSeq => line::modseq(bytes, entry.modseq),
        Item::InternalDate => {
            bytes.extend_from_slice(b"INTERNALDATE ");
            crate::imap::write::date_time(bytes, entry.internal_date);
        }
        Item::SaveDate => {
            bytes.extend_from_slice(b"SAVEDATE ");
            crate::imap::write::date_time(bytes, model::DateTime::utc(entry.save_date));
        }
        Item::Size => {
            bytes.extend_from_slice(b"RFC822.SIZE ");
            encode::number(bytes, u64::from(entry.size));
        }
        Item::EmailId => out.push_fmt(format_args!("EMAILID ({id})")),
        Item::ThreadId => {
            let thread = reader.thread_id(id)?;
            out.push_fmt(format_args!("THREADID ({thread})"));
        }
        Item::Envelope => {
            bytes.extend_from_slice(b"ENVELOPE ");
            bytes.extend_from_slice(reader.envelope(id)?);
        }
        Item::Body => {
            bytes.extend_from_slice(b"BODY ");
            reader.structure(id)?.write_imap(bytes, false);
        }
        Item::BodyStructure => {
            bytes.extend_from_slice(b"BODYSTRUCTURE ");
            bytes.extend_from_slice(reader.body_structure(id)?);
        }
        Item::Preview => {
            bytes.extend_from_slice(b"PREVIEW ");
            crate::imap::write::string(bytes, reader.preview(id)?.as_bytes(), utf8);
        }
        Item::Octets { octets, .. } => {
            bytes.extend_from_slice(&octets.label);
            bytes.push(b' ');
            return write_octets(octets, reader, entry, bytes);
        }
        Item::Binary { label, part, partial, .. } => {
            bytes.extend_from_slice(label);
            bytes.push(b' ');
            return write_binary(binary::find(reader, id, part, *partial)?, bytes);
        }
        Item::BinarySize { label, part } => {
            bytes.extend_from_slice(label);
            bytes.push(b' ');
            match binary::size(reader, id, part)? {
                Some(size) => encode::number(bytes, size),
                None => return Err(unknown_encoding()),
            }
        }
    }
    Ok(None)
}

fn write_octets(
    octets: &Octets,
    reader: &mut Reader,
    entry: &Entry,
    out: &mut Vec<u8>,
) -> Result<Option<Stream>, Stop> {
    let id = entry.email_id;
    if octets.is_header() && u64::from(entry.size) <= WHOLE_BYTES_MAX {
        // The way that synchronising clients go: one look-up, and no copy but the one into the output.
        let header = octets.cut(reader.header(id)?);
        announce(out, header.len() as u64, false);
        out.extend_from_slice(header);
        return Ok(None);
    }
    match octets.find(reader, id)? {
        Found::Nothing => out.extend_from_slice(b"NIL"),
        Found::Bytes(bytes) => {
            announce(out, bytes.len() as u64, false);
            out.extend_from_slice(&bytes);
        }
        Found::Range(range) => {
            let length = range.end - range.start;
            announce(out, length, false);
            if length > WHOLE_BYTES_MAX {
                return Ok(Some(Stream::Raw(id, range)));
            }
            reader.read(id, range, out)?;
        }
    }
    Ok(None)
}

fn write_binary(found: Binary, out: &mut Vec<u8>) -> Result<Option<Stream>, Stop> {
    match found {
        Binary::Nothing => out.extend_from_slice(b"NIL"),
        Binary::Bytes(bytes) => {
            announce(out, bytes.len() as u64, memchr::memchr(0, &bytes).is_some());
            out.extend_from_slice(&bytes);
        }
        Binary::Stream(decoded) => {
            announce(out, decoded.len(), decoded.has_nul());
            return Ok((decoded.len() > 0).then(|| Stream::Decoded(Box::new(decoded))));
        }
        Binary::UnknownEncoding => return Err(unknown_encoding()),
    }
    Ok(None)
}

/// `{12}` or, for octets that may be NUL, `~{12}` (RFC 9051 §9 literal, literal8).
fn announce(out: &mut Vec<u8>, length: u64, literal8: bool) {
    if literal8 {
        out.push(b'~');
    }
    out.push(b'{');
    encode::number(out, length);
    out.extend_from_slice(b"}\r\n");
}

/// What BINARY of a part with an unknown encoding is answered with (RFC 3516 §4.3).
fn unknown_encoding() -> Stop {
    Done::no("The part's transfer encoding cannot be undone").with_code("UNKNOWN-CTE").into()
}
