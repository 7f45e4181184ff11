//! The map on disk: a header and a row of 20 octets for each message. Byte tables: `docs/format-index.md`.

use model::{EmailId, Error, ErrorKind, ModSeq, Result};
use platform::Timestamp;

use super::Facts;
use crate::format::mbox::identity::Identity;
use crate::format::mbox::place::{FileFlags, Place};
use crate::format::served::Form;

/// The first octets of a map.
pub(super) const MAP_MAGIC: u64 = u64::from_le_bytes(*b"MYMBOX\x01\n");
/// Octets before the first row.
pub(super) const MAP_HEADER_BYTES: usize = 112;
/// Octets of a row.
pub(super) const ROW_BYTES: usize = 20;
/// In the place of an email id: a pseudo message, which has none.
const NO_ID: u32 = u32::MAX;
/// Offsets in a file are less than this: 256 TiB.
const OFFSET_MAX: u64 = 1 << 48;

/// Octets between the end of a message and the next one: three bits.
const GAP_BITS: u8 = 0b111;
const UNQUOTE: u8 = 1 << 3;
const CONVERT: u8 = 1 << 4;
const CRLF: u8 = 1 << 5;

/// The header says that email ids rise from row to row.
const RISES: u32 = 1;
/// [`Facts::is_fresh`].
const FRESH: u32 = 1 << 1;
/// [`Facts::is_grown`].
const GROWN: u32 = 1 << 2;

/// A message's row as it is on disk.
pub(super) type Row = [u8; ROW_BYTES];

/// What the header says beside [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// How many.
    pub(super) count: u32,
    /// CRC32C over all of them.
    pub(super) crc: u32,
    /// What email ids count from.
    pub(super) base: u64,
    /// Where the last message ends, the line ends behind it included.
    pub(super) end: u64,
    /// Email ids do not fall from row to row, and rows without one are the first.
    pub(super) rises: bool,
}

/// The header, its checksum included.
pub(super) fn write_header(facts: &Facts, rows: &Rows) -> Vec<u8> {
    let Facts { identity, tail_digest, settled, written, is_fresh, is_grown } = facts;
    let marks = [(RISES, rows.rises), (FRESH, *is_fresh), (GROWN, *is_grown)];
    let marks = marks.iter().filter(|(_, is_set)| *is_set).fold(0, |marks, (bit, _)| marks | bit);
    let mut out = Vec::with_capacity(MAP_HEADER_BYTES);
    for number in [MAP_MAGIC, identity.device, identity.inode, identity.len] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for time in [identity.modified, identity.changed] {
        out.extend_from_slice(&time.seconds.to_le_bytes());
        out.extend_from_slice(&time.nanoseconds.to_le_bytes());
    }
    for number in [*tail_digest, written.0, rows.base, rows.end] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [rows.count, *settled, marks, rows.crc] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.resize(MAP_HEADER_BYTES - 4, 0);
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Reads octets from the front of a slice.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn time(&mut self) -> Option<Timestamp> {
        Some(Timestamp { seconds: self.array().map(i64::from_le_bytes)?, nanoseconds: self.u32()? })
    }
}

/// Reads a whole map and verifies it; `None`: it is damaged, of another version, or none.
pub(super) fn read(bytes: &[u8]) -> Option<(Facts, Rows)> {
    let (header, rows) = bytes.split_at_checked(MAP_HEADER_BYTES)?;
    let (body, crc) = header.split_last_chunk::<4>()?;
    let mut input = Input(body);
    if input.u64()? != MAP_MAGIC || crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let (device, inode, len) = (input.u64()?, input.u64()?, input.u64()?);
    let (modified, changed) = (input.time()?, input.time()?);
    let identity = Identity { device, inode, len, modified, changed };
    let (tail_digest, written) = (input.u64()?, ModSeq(input.u64()?));
    let (base, end) = (input.u64()?, input.u64()?);
    let (count, settled, marks, crc) = (input.u32()?, input.u32()?, input.u32()?, input.u32()?);
    let is_whole = usize::try_from(count).ok()?.checked_mul(ROW_BYTES)? == rows.len()
        && crc32c::crc32c(rows) == crc
        && settled <= count;
    let rows = Rows { count, crc, base, end, rises: marks & RISES != 0 };
    let (is_fresh, is_grown) = (marks & FRESH != 0, marks & GROWN != 0);
    is_whole.then_some((Facts { identity, tail_digest, settled, written, is_fresh, is_grown }, rows))
}

/// What email ids count from in a map whose first one is this: others may be two thousand million above or below.
pub(super) fn base_for(first: EmailId) -> u64 {
    first.0.saturating_sub(1 << 31)
}

/// A place as a row. `Invalid`: it cannot be said in one.
pub(super) fn pack(place: &Place, base: u64) -> Result<Row> {
    let gap = place.next.checked_sub(place.end).filter(|gap| *gap <= u64::from(GAP_BITS));
    let from_line = place.header.checked_sub(place.start).filter(|len| *len < 1 << 24);
    let header = place.body.checked_sub(place.header).and_then(|len| u32::try_from(len).ok());
    let id = place.email_id.map_or(Some(NO_ID), |id| {
        id.0.checked_sub(base).and_then(|distance| u32::try_from(distance).ok()).filter(|id| *id != NO_ID)
    });
    let is_sound = place.body <= place.end && place.next < OFFSET_MAX;
    let (Some(gap), Some(from_line), Some(header), Some(id), true) = (gap, from_line, header, id, is_sound) else {
        let what = format!("the message at {} of the mbox has parts longer than can be served from it", place.start);
        return Err(Error::new(ErrorKind::Invalid, what));
    };
    let mut bits = gap as u8;
    for (bit, is_set) in [(UNQUOTE, place.form.unquote), (CONVERT, place.form.convert), (CRLF, place.is_crlf)] {
        bits |= if is_set { bit } else { 0 };
    }
    let mut row = [0; ROW_BYTES];
    row[..4].copy_from_slice(&id.to_le_bytes());
    row[4..10].copy_from_slice(&place.start.to_le_bytes()[..6]);
    row[10..13].copy_from_slice(&from_line.to_le_bytes()[..3]);
    row[13..17].copy_from_slice(&header.to_le_bytes());
    row[17..].copy_from_slice(&[bits, place.flags.bits(), place.keywords]);
    Ok(row)
}

/// The place of a row; `next` is where the next one begins.
pub(super) fn unpack(row: &Row, base: u64, next: u64) -> Place {
    let start = start_of(row);
    let from_line = u32::from_le_bytes([row[10], row[11], row[12], 0]);
    let header_len = u32::from_le_bytes([row[13], row[14], row[15], row[16]]);
    let bits = row[17];
    let header = start + u64::from(from_line);
    Place {
        email_id: id_of(row, base),
        start,
        header,
        body: header + u64::from(header_len),
        end: next.saturating_sub(u64::from(bits & GAP_BITS)),
        next,
        form: Form { convert: bits & CONVERT != 0, unquote: bits & UNQUOTE != 0 },
        is_crlf: bits & CRLF != 0,
        flags: FileFlags::from_bits(row[18]),
        keywords: row[19],
    }
}

/// Where the message of a row begins.
pub(super) fn start_of(row: &Row) -> u64 {
    u64::from_le_bytes([row[4], row[5], row[6], row[7], row[8], row[9], 0, 0])
}

/// The message of a row.
pub(super) fn id_of(row: &Row, base: u64) -> Option<EmailId> {
    let distance = u32::from_le_bytes([row[0], row[1], row[2], row[3]]);
    (distance != NO_ID).then(|| EmailId(base.saturating_add(u64::from(distance))))
}
