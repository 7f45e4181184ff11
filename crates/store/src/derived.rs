//! What is derived from a message's bytes and kept beside them: structure, ENVELOPE, BODYSTRUCTURE, preview, sent day, and what SORT and THREAD ask for.
//!
//! The index keeps these as columns of a segment, made by [`MimeDerive`] when the segment is sealed; for messages in the tail the same
//! function runs on demand. They are a cache: another [`VERSION`] of them is made anew, and [`crate::Account::check`] compares
//! them with a fresh parse.

use std::ops::Range;

use index::{Derive, MessageBytes};
use mime::{HeaderBlock, PreviewBuilder, Scanner, Structure};
use model::{CivilDate, Error, ErrorKind, Result};

use crate::order::keys;

/// Changes whenever a derived column would be different for some message.
const VERSION: u32 = 2;

/// The columns, by number. A number never changes its meaning within a [`VERSION`].
pub(crate) mod column {
    /// The structure as [`mime::Structure::encode`] writes it.
    pub(crate) const STRUCTURE: usize = 0;
    /// ENVELOPE as IMAP writes it.
    pub(crate) const ENVELOPE: usize = 1;
    /// BODYSTRUCTURE as IMAP writes it.
    pub(crate) const BODY_STRUCTURE: usize = 2;
    /// The preview, UTF-8.
    pub(crate) const PREVIEW: usize = 3;
    /// The day of the Date field as written, days since 1970-01-01, i32 little-endian; empty without a date.
    pub(crate) const SENT_DAY: usize = 4;
    /// The Date field in UTC; this and the following as [`crate::order::keys`] writes them.
    pub(crate) const SENT_TIME: usize = 5;
    /// The base subject.
    pub(crate) const BASE_SUBJECT: usize = 6;
    /// The addresses that SORT compares.
    pub(crate) const SORT_ADDRESSES: usize = 7;
    /// The message's id and its references.
    pub(crate) const REFERENCES: usize = 8;
    /// How many there are.
    pub(crate) const COUNT: usize = 9;
}

/// Makes the derived columns by parsing the message as MIME.
#[derive(Debug)]
pub(crate) struct MimeDerive;

impl Derive for MimeDerive {
    fn version(&self) -> u32 {
        VERSION
    }

    fn columns(&self) -> usize {
        column::COUNT
    }

    fn derive(&self, message: &mut MessageBytes<'_>) -> Result<Vec<Vec<u8>>> {
        let len = u64::from(message.info().len);
        derive(len, &mut |range, sink| {
            message.range(range, &mut |piece| {
                sink(piece);
                Ok(())
            })
        })
    }

    fn derive_from_header(&self, column: usize, header: &[u8]) -> Option<Vec<u8>> {
        match column {
            column::ENVELOPE => {
                let mut scanner = Scanner::new();
                scanner.push(header);
                let mut envelope = Vec::new();
                scanner.finish().0.message.envelope.write_imap(&mut envelope);
                Some(envelope)
            }
            column::SENT_DAY => Some(sent_day(header)),
            column::SENT_TIME => Some(keys::sent_time_column(header)),
            column::BASE_SUBJECT => Some(keys::subject_column(header)),
            column::SORT_ADDRESSES => Some(keys::addresses_column(header)),
            column::REFERENCES => Some(keys::references_column(header)),
            _ => None,
        }
    }
}

/// The column [`column::SENT_DAY`].
fn sent_day(header: &[u8]) -> Vec<u8> {
    let sent = HeaderBlock::new(header).first("Date").and_then(mime::parse_date);
    let day = sent.and_then(|date| i32::try_from(date.civil_days()).ok());
    day.map_or_else(Vec::new, |day| day.to_le_bytes().to_vec())
}

/// Gives octets of the message under derivation to the sink, in pieces.
pub(crate) type ReadRange<'a> = dyn FnMut(Range<u64>, &mut dyn FnMut(&[u8])) -> Result<()> + 'a;

/// Parses a message of `len` octets and returns its columns. Holds one piece of the message and its header at a time.
pub(crate) fn derive(len: u64, read: &mut ReadRange<'_>) -> Result<Vec<Vec<u8>>> {
    let mut scanner = Scanner::new();
    read(0..len, &mut |piece| scanner.push(piece))?;
    let (structure, _defects) = scanner.finish();
    let mut columns = vec![Vec::new(); column::COUNT];
    let mut set = |number: usize, bytes: Vec<u8>| {
        if let Some(slot) = columns.get_mut(number) {
            *slot = bytes;
        }
    };
    let mut header = Vec::new();
    read(structure.message.root.header.clone(), &mut |piece| header.extend_from_slice(piece))?;
    set(column::SENT_DAY, sent_day(&header));
    set(column::SENT_TIME, keys::sent_time_column(&header));
    set(column::BASE_SUBJECT, keys::subject_column(&header));
    set(column::SORT_ADDRESSES, keys::addresses_column(&header));
    set(column::REFERENCES, keys::references_column(&header));
    // RFC 8970 §3: the first part that has text to show.
    for part in mime::preview_parts(&structure) {
        let mut builder = PreviewBuilder::new(part);
        read_until(part.body.clone(), read, |piece| builder.push(piece))?;
        let preview = builder.finish();
        if !preview.is_empty() {
            set(column::PREVIEW, preview.into_bytes());
            break;
        }
    }
    let (mut envelope, mut body_structure) = (Vec::new(), Vec::new());
    structure.message.envelope.write_imap(&mut envelope);
    structure.write_imap(&mut body_structure, true);
    set(column::ENVELOPE, envelope);
    set(column::BODY_STRUCTURE, body_structure);
    set(column::STRUCTURE, structure.encode());
    Ok(columns)
}

/// Reads a range step by step until `enough` says so.
fn read_until(range: Range<u64>, read: &mut ReadRange<'_>, mut enough: impl FnMut(&[u8]) -> bool) -> Result<()> {
    /// A preview rarely needs more than this, octets.
    const STEP_BYTES: u64 = 16 << 10;
    let mut at = range.start;
    let mut done = false;
    while at < range.end && !done {
        let end = range.end.min(at.saturating_add(STEP_BYTES));
        read(at..end, &mut |piece| done = done || enough(piece))?;
        at = end;
    }
    Ok(())
}

/// The structure from its column.
pub(crate) fn structure_of(bytes: &[u8]) -> Result<Structure> {
    Structure::decode(bytes).map_err(|error| Error::new(ErrorKind::Corrupt, "a derived structure").with_source(error))
}

/// The sent day from its column.
pub(crate) fn sent_date_of(bytes: &[u8]) -> Option<CivilDate> {
    let day = i32::from_le_bytes(bytes.try_into().ok()?);
    Some(CivilDate::from_days(i64::from(day)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_alone_gives_the_same_columns() {
        for message in [
            "From: a@b\r\nDate: Thu, 22 Aug 2002 12:36:23 +0000\r\nSubject: =?utf-8?q?=C3=A9?=\r\n\r\nbody\r\n",
            "Content-Type: multipart/mixed; boundary=x\r\nTo: c@d\r\n\r\n--x\r\nSubject: inner\r\n\r\ny\r\n--x--\r\n",
            "Content-Type: message/rfc822\r\n\r\nFrom: inner@x\r\n\r\nz\r\n",
            "Subject: no end",
            "\r\nonly a body",
            "",
        ] {
            let bytes = message.as_bytes();
            let whole = derive(bytes.len() as u64, &mut |range, sink| {
                sink(&bytes[range.start as usize..range.end as usize]);
                Ok(())
            });
            let whole = whole.expect("bytes in memory can be read");
            let header = message.find("\r\n\r\n").map_or(bytes, |end| &bytes[..end + 4]);
            let header = if message.starts_with("\r\n") { &bytes[..2] } else { header };
            let later = column::SENT_TIME..column::COUNT;
            for column in [column::ENVELOPE, column::SENT_DAY].into_iter().chain(later) {
                let alone = MimeDerive.derive_from_header(column, header).expect("a column of the header");
                assert_eq!(alone, whole[column], "{message:?}, column {column}");
            }
        }
    }
}
