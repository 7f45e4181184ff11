//! The fixed-width parts of a segment: its trailer and its message rows. Byte tables: `docs/format-log.md`.

use model::EmailId;

use super::column::ColumnSpan;
use crate::codec::Input;

/// The first bytes of a trailer.
pub(crate) const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"MYSEGM\x01\n");
/// The same of a segment with late messages, which older versions would not find.
pub(crate) const SEGMENT_MAGIC_LATE: u64 = u64::from_le_bytes(*b"MYSEGM\x02\n");
/// Bytes of the trailer; a copy of it is the file's header.
pub(crate) const TRAILER_BYTES: usize = 192;
/// Bytes of a message row.
pub(crate) const ROW_BYTES: usize = 48;
/// Bytes of a cell of the table of late messages.
pub(crate) const LATE_BYTES: usize = 12;
/// Of a header only so much is in the header column; the rest is at the front of its body.
pub(crate) const HEAD_BYTES_MAX: u32 = 64 << 10;

/// What a segment is: written when everything else of it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trailer {
    /// The frames whose events and messages are here.
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    /// 1 when it was sealed, one more each time that it was rewritten.
    pub(crate) generation: u32,
    /// [`crate::state::State::chain`] after the last frame.
    pub(crate) chain: u32,
    /// The ids that it may have: `ids` of them from `first_id` on.
    pub(crate) first_id: u64,
    pub(crate) ids: u32,
    /// Messages that it has.
    pub(crate) rows: u32,
    pub(crate) rows_at: u64,
    /// One u32 an id: the row's number plus one, 0 for none. Not there when no row has such an id.
    pub(crate) ids_at: u64,
    pub(crate) heads: ColumnSpan,
    pub(crate) bodies: ColumnSpan,
    pub(crate) events: ColumnSpan,
    /// Octets of all messages.
    pub(crate) message_bytes: u64,
    /// The events once more, at the other end of the file. Empty in a segment that was written without.
    pub(crate) events_copy: ColumnSpan,
    /// Where the rows are once more; 0 in a segment that was written without.
    pub(crate) rows_copy_at: u64,
    /// Foreign messages whose records are among the events.
    pub(crate) foreign: u32,
    /// Late messages: rows whose ids were given in earlier frames. Their table follows the id table, in the order of their ids.
    pub(crate) late: u32,
    /// Their first and last id.
    pub(crate) late_first: u64,
    pub(crate) late_last: u64,
}

impl Trailer {
    /// Rows of messages with ids of this segment.
    pub(crate) fn own_rows(&self) -> u32 {
        self.rows.saturating_sub(self.late)
    }

    /// Where the table of late messages is: for each, in the order of their ids, the id and the row's number.
    pub(crate) fn late_at(&self) -> u64 {
        let ids = if self.own_rows() > 0 { self.ids } else { 0 };
        self.ids_at.saturating_add(u64::from(ids) * 4)
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(TRAILER_BYTES);
        let magic = if self.late > 0 { SEGMENT_MAGIC_LATE } else { SEGMENT_MAGIC };
        out.extend_from_slice(&magic.to_le_bytes());
        out.extend_from_slice(&self.first_frame.to_le_bytes());
        out.extend_from_slice(&self.last_frame.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.chain.to_le_bytes());
        out.extend_from_slice(&self.first_id.to_le_bytes());
        out.extend_from_slice(&self.ids.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.rows_at.to_le_bytes());
        out.extend_from_slice(&self.ids_at.to_le_bytes());
        for column in [&self.heads, &self.bodies, &self.events] {
            column.write(&mut out);
        }
        out.extend_from_slice(&self.message_bytes.to_le_bytes());
        self.events_copy.write(&mut out);
        out.extend_from_slice(&self.rows_copy_at.to_le_bytes());
        out.extend_from_slice(&self.foreign.to_le_bytes());
        out.extend_from_slice(&self.late.to_le_bytes());
        out.extend_from_slice(&self.late_first.to_le_bytes());
        out.extend_from_slice(&self.late_last.to_le_bytes());
        out.resize(TRAILER_BYTES - 4, 0);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Trailer> {
        let bytes = bytes.get(..TRAILER_BYTES)?;
        let crc = Input(bytes.get(TRAILER_BYTES - 4..)?).u32()?;
        let mut input = Input(bytes);
        let is_ours = [SEGMENT_MAGIC, SEGMENT_MAGIC_LATE].contains(&input.u64()?);
        if !is_ours || crc32c::crc32c(bytes.get(..TRAILER_BYTES - 4)?) != crc {
            return None;
        }
        let trailer = Trailer {
            first_frame: input.u64()?,
            last_frame: input.u64()?,
            generation: input.u32()?,
            chain: input.u32()?,
            first_id: input.u64()?,
            ids: input.u32()?,
            rows: input.u32()?,
            rows_at: input.u64()?,
            ids_at: input.u64()?,
            heads: ColumnSpan::read(&mut input)?,
            bodies: ColumnSpan::read(&mut input)?,
            events: ColumnSpan::read(&mut input)?,
            message_bytes: input.u64()?,
            events_copy: ColumnSpan::read(&mut input)?,
            rows_copy_at: input.u64()?,
            foreign: input.u32()?,
            late: input.u32()?,
            late_first: input.u64()?,
            late_last: input.u64()?,
        };
        let is_sound =
            trailer.first_frame > 0 && trailer.first_frame <= trailer.last_frame && trailer.late <= trailer.rows;
        is_sound.then_some(trailer)
    }
}

/// Where a message is in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRow {
    pub(crate) email_id: EmailId,
    /// Where its first bytes are in the header column.
    pub(crate) head_at: u64,
    /// Where the others are in the body column.
    pub(crate) body_at: u64,
    pub(crate) len: u32,
    pub(crate) header_len: u32,
    /// Bytes that are in the header column.
    pub(crate) head_len: u32,
    /// Checksum of the whole message.
    pub(crate) crc: u32,
    /// The message was damaged already when its tail was sealed: its bytes are not here.
    pub(crate) is_damaged: bool,
}

impl SegmentRow {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.email_id.0.to_le_bytes());
        out.extend_from_slice(&self.head_at.to_le_bytes());
        out.extend_from_slice(&self.body_at.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.header_len.to_le_bytes());
        out.extend_from_slice(&self.head_len.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        out.extend_from_slice(&u32::from(self.is_damaged).to_le_bytes());
        let crc = crc32c::crc32c(out.get(from..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<SegmentRow> {
        let bytes = bytes.get(..ROW_BYTES)?;
        let mut input = Input(bytes);
        let row = SegmentRow {
            email_id: EmailId(input.u64()?),
            head_at: input.u64()?,
            body_at: input.u64()?,
            len: input.u32()?,
            header_len: input.u32()?,
            head_len: input.u32()?,
            crc: input.u32()?,
            is_damaged: input.u32()? & 1 != 0,
        };
        let is_whole = crc32c::crc32c(bytes.get(..ROW_BYTES - 4)?) == input.u32()?;
        (is_whole && row.head_len <= row.header_len && row.header_len <= row.len).then_some(row)
    }
}
