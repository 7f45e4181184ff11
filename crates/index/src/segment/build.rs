//! Writing a segment: from tails when they are sealed, from segments when they are compacted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Result};
use platform::{Disk, OpenMode, parent_of};

use super::column::{Codec, ColumnSpan, ColumnWriter, Output};
use super::format::{HEAD_BYTES_MAX, ROW_BYTES, SegmentRow, TRAILER_BYTES, Trailer};
use super::{Segment, file_name};

/// Raw bytes of a block of headers: about 25 messages. Larger blocks shrink more and cost more to look up one header.
pub(crate) const HEAD_BLOCK_BYTES: u32 = 64 << 10;
/// Raw bytes of a block of bodies.
pub(crate) const BODY_BLOCK_BYTES: u32 = 128 << 10;
/// Raw bytes of a block of events.
pub(crate) const EVENT_BLOCK_BYTES: u32 = 256 << 10;
/// zstd level of the events: they are read only to rebuild an index.
const EVENT_LEVEL: i32 = 3;

/// A message that goes into a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) email_id: EmailId,
    pub(crate) len: u32,
    pub(crate) header_len: u32,
    pub(crate) crc: u32,
    /// Its bytes are lost; only its row is written.
    pub(crate) is_damaged: bool,
}

impl From<&SegmentRow> for Incoming {
    fn from(row: &SegmentRow) -> Self {
        let SegmentRow { email_id, len, header_len, crc, is_damaged, .. } = *row;
        Incoming { email_id, len, header_len, crc, is_damaged }
    }
}

/// Gives the bytes `from..to` of the message numbered `n` to the sink.
pub(crate) type Source<'a> = dyn FnMut(usize, u64, u64, &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

/// What a segment will hold besides its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    pub(crate) generation: u32,
    pub(crate) chain: u32,
    /// The ids that were given in these frames, whether or not their messages still are: from, to (excluded).
    pub(crate) ids: (u64, u64),
    /// In the order in which they will lie: by mailbox and UID.
    pub(crate) messages: &'a [Incoming],
    /// The event stream, see [`super::put_frame`].
    pub(crate) events: &'a [u8],
    /// Foreign messages among the events.
    pub(crate) foreign: u32,
    /// zstd level of bodies, 0 for none.
    pub(crate) body_level: i32,
}

/// Writes a segment beside its place, syncs it, moves it into place and makes that durable.
pub(crate) fn build(disk: &Arc<dyn Disk>, log_dir: &Path, plan: &Plan<'_>, source: &mut Source<'_>) -> Result<Segment> {
    let path = log_dir.join(file_name(plan.first_frame, plan.last_frame, plan.generation));
    let temporary = temporary_path(&path);
    let file = disk.open(&temporary, OpenMode::Create)?;
    file.set_len(0)?;
    let mut out = Output::new(file);
    let trailer = write(&mut out, plan, source)?;
    out.put(&trailer.write())?;
    out.flush()?;
    out.file.write_at(&trailer.write(), 0)?;
    out.file.sync_data()?;
    disk.rename(&temporary, &path)?;
    disk.sync_dir(parent_of(&path))?;
    Segment::open(disk, &path)
}

/// Where a file is written before it is moved into place. What is left there is removed when the account is opened.
pub(crate) fn temporary_path(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// The rows of the messages: where each will lie follows from the lengths alone.
fn rows_of(messages: &[Incoming]) -> Vec<SegmentRow> {
    let (mut head_at, mut body_at) = (0, 0);
    let mut rows = Vec::with_capacity(messages.len());
    for message in messages {
        let Incoming { email_id, len, header_len, crc, is_damaged } = *message;
        let head_len = header_len.min(HEAD_BYTES_MAX);
        rows.push(SegmentRow { email_id, head_at, body_at, len, header_len, head_len, crc, is_damaged });
        if !is_damaged {
            head_at += u64::from(head_len);
            body_at += u64::from(len.saturating_sub(head_len));
        }
    }
    rows
}

fn write_events(out: &mut Output, events: &[u8]) -> Result<ColumnSpan> {
    let mut column = ColumnWriter::new(Codec::Zstd(EVENT_LEVEL), EVENT_BLOCK_BYTES);
    column.put(out, events)?;
    column.finish(out)
}

/// A source gave more or fewer bytes than it was asked for.
fn misplaced(row: &SegmentRow) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the message {} is not as long as its record says", row.email_id))
}

/// Events and rows go to both ends of the file: without an index nothing but they says which entries there are and where the
/// messages lie, and decay seldom hits two places far from each other.
fn write(out: &mut Output, plan: &Plan<'_>, source: &mut Source<'_>) -> Result<Trailer> {
    out.put(&[0; TRAILER_BYTES])?;
    let events_copy = write_events(out, plan.events)?;
    let rows = rows_of(plan.messages);
    let mut row_bytes = Vec::with_capacity(rows.len() * ROW_BYTES);
    rows.iter().for_each(|row| row.write(&mut row_bytes));
    let rows_copy_at = out.position();
    out.put(&row_bytes)?;
    let mut heads = ColumnWriter::new(Codec::Lz4, HEAD_BLOCK_BYTES);
    for (n, row) in rows.iter().enumerate() {
        if heads.position() != row.head_at {
            return Err(misplaced(row));
        }
        if !row.is_damaged {
            source(n, 0, u64::from(row.head_len), &mut |bytes| heads.put(out, bytes))?;
        }
    }
    let heads = heads.finish(out)?;
    let body_codec = if plan.body_level == 0 { Codec::Raw } else { Codec::Zstd(plan.body_level) };
    let mut bodies = ColumnWriter::new(body_codec, BODY_BLOCK_BYTES);
    for (n, row) in rows.iter().enumerate() {
        if bodies.position() != row.body_at {
            return Err(misplaced(row));
        }
        if !row.is_damaged {
            source(n, u64::from(row.head_len), u64::from(row.len), &mut |bytes| bodies.put(out, bytes))?;
        }
    }
    let bodies = bodies.finish(out)?;
    let events = write_events(out, plan.events)?;
    let rows_at = out.position();
    out.put(&row_bytes)?;
    let ids_at = out.position();
    let (first_id, end_id) = plan.ids;
    let is_own = |row: &SegmentRow| (first_id..end_id).contains(&row.email_id.0);
    // Where foreign messages alone were given ids there is nothing to look up, and there may be very many of them.
    let has_table = rows.iter().any(is_own);
    let mut ids = vec![0u32; if has_table { (end_id - first_id) as usize } else { 0 }];
    let mut late: Vec<(u64, u32)> = Vec::new();
    for (n, row) in (0u32..).zip(&rows) {
        match row.email_id.0.checked_sub(first_id).and_then(|at| ids.get_mut(at as usize)) {
            Some(id) => *id = n + 1,
            None => late.push((row.email_id.0, n)),
        }
    }
    late.sort_unstable();
    out.put(&ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>())?;
    let cell = |(id, row): &(u64, u32)| [&id.to_le_bytes()[..], &row.to_le_bytes()].concat();
    out.put(&late.iter().flat_map(cell).collect::<Vec<u8>>())?;
    Ok(Trailer {
        first_frame: plan.first_frame,
        last_frame: plan.last_frame,
        generation: plan.generation,
        chain: plan.chain,
        first_id,
        ids: (end_id - first_id) as u32,
        rows: rows.len() as u32,
        rows_at,
        ids_at,
        heads,
        bodies,
        events,
        message_bytes: plan.messages.iter().map(|message| u64::from(message.len)).sum(),
        events_copy,
        rows_copy_at,
        foreign: plan.foreign,
        late: late.len() as u32,
        late_first: late.first().map_or(0, |(id, _)| *id),
        late_last: late.last().map_or(0, |(id, _)| *id),
    })
}
