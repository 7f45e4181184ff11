//! Sealed segments: immutable files with the events and the messages of a range of frames.
//!
//! Invariant: a damaged byte costs at most the messages of the block that it is in. Whatever else there is, is there twice
//! (trailer, events, rows) or can be made from the rest (the id table); the second copy serves when the first is damaged.

pub(crate) mod build;
pub(crate) mod column;
pub(crate) mod format;
mod late;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use model::{EmailId, Error, ModSeq, Result};
use platform::{Disk, File, OpenMode};

use self::column::{ColumnSpan, corrupt, read_block, read_or_corrupt};
use self::format::{ROW_BYTES, SegmentRow, TRAILER_BYTES, Trailer};
pub(crate) use self::late::LatePage;
use crate::cache::CacheFile;
use crate::codec::{Input, put_varint};
use crate::record::{BadEvent, Event};
use crate::state::Frame;
use crate::transaction::FRAME_EVENTS_BYTES_MAX;

/// Rows read at once by whoever reads all of them.
const ROWS_AT_ONCE: u32 = 4096;

/// One sealed segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) trailer: Trailer,
    /// Bytes of the file.
    pub(crate) file_len: u64,
    disk: Arc<dyn Disk>,
    /// Something that is here twice was found damaged once: to be written anew while there is a whole copy.
    is_worn: AtomicBool,
    /// Opened when it is first read.
    file: OnceLock<Arc<dyn File>>,
    /// What is derived from its messages: `None` before anybody looked.
    pub(crate) cache: Mutex<Option<Option<Arc<CacheFile>>>>,
}

/// The file's name; names sort like frames.
pub(crate) fn file_name(first_frame: u64, last_frame: u64, generation: u32) -> String {
    format!("segment-{first_frame:016x}-{last_frame:016x}-{generation:04x}")
}

/// First frame, last frame and generation of a segment's name.
pub(crate) fn parse_file_name(name: &str) -> Option<(u64, u64, u32)> {
    let mut parts = name.strip_prefix("segment-")?.split('-');
    let first = u64::from_str_radix(parts.next()?, 16).ok()?;
    let last = u64::from_str_radix(parts.next()?, 16).ok()?;
    let generation = u32::from_str_radix(parts.next()?, 16).ok()?;
    (file_name(first, last, generation) == name).then_some((first, last, generation))
}

/// Writes the mark that begins a frame in the event column, and its events.
pub(crate) fn put_frame(out: &mut Vec<u8>, frame: &Frame, events: &[u8]) {
    put_varint(out, frame.number);
    put_varint(out, frame.modseq.0);
    out.extend_from_slice(&frame.time.to_le_bytes());
    put_varint(out, events.len() as u64);
    out.extend_from_slice(events);
}

impl Segment {
    /// Opens a segment; the trailer's copy at the front serves when the trailer is damaged.
    pub(crate) fn open(disk: &Arc<dyn Disk>, path: &Path) -> Result<Segment> {
        let file = disk.open(path, OpenMode::Read)?;
        let file_len = file.len()?;
        let mut bytes = vec![0; TRAILER_BYTES];
        let mut found = None;
        let mut is_worn = false;
        for at in [file_len.saturating_sub(TRAILER_BYTES as u64), 0] {
            if found.is_none() && file.read_exact_at(&mut bytes, at).is_ok() {
                found = Trailer::read(&bytes);
            }
            is_worn |= found.is_none();
        }
        let trailer = found.ok_or_else(|| corrupt(path, 0, "both copies of the segment's trailer are damaged"))?;
        Ok(Segment {
            path: path.to_owned(),
            trailer,
            file_len,
            disk: Arc::clone(disk),
            is_worn: AtomicBool::new(is_worn),
            file: OnceLock::new(),
            cache: Mutex::new(None),
        })
    }

    pub(crate) fn file(&self) -> Result<&Arc<dyn File>> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = self.disk.open(&self.path, OpenMode::Read)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Whether something that is here twice was found damaged once.
    pub(crate) fn is_worn(&self) -> bool {
        self.is_worn.load(Ordering::Relaxed)
    }

    /// Notes that one of two copies is damaged.
    pub(crate) fn wear(&self) {
        self.is_worn.store(true, Ordering::Relaxed);
    }

    /// Whether a message with this id can be here.
    pub(crate) fn may_have(&self, id: EmailId) -> bool {
        id.0.checked_sub(self.trailer.first_id).is_some_and(|at| at < u64::from(self.trailer.ids))
    }

    /// Whether the trailer and its copy at the front are both whole.
    pub(crate) fn is_trailer_doubled(&self) -> Result<bool> {
        let mut bytes = vec![0; TRAILER_BYTES];
        for at in [0, self.file_len.saturating_sub(TRAILER_BYTES as u64)] {
            read_or_corrupt(&**self.file()?, &self.path, &mut bytes, at)?;
            if Trailer::read(&bytes) != Some(self.trailer) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number of a message's row as the tables have it, unverified.
    pub(crate) fn row_number(&self, id: EmailId) -> Result<Option<u32>> {
        if self.may_have_late(id) {
            return self.late_row(id, &mut LatePage::default());
        }
        if self.trailer.own_rows() == 0 {
            return Ok(None);
        }
        let index = (id.0.wrapping_sub(self.trailer.first_id)) as u32;
        let mut bytes = Vec::new();
        self.read_ids(index, 1, &mut bytes)?;
        Ok(Input(&bytes).u32().and_then(|number| number.checked_sub(1)).filter(|number| *number < self.trailer.rows))
    }

    /// Reads `count` rows from the row numbered `first` on, as bytes.
    pub(crate) fn read_rows(&self, first: u32, count: u32, out: &mut Vec<u8>) -> Result<()> {
        self.read_rows_at(self.trailer.rows_at, first, count, out)
    }

    fn read_rows_at(&self, rows_at: u64, first: u32, count: u32, out: &mut Vec<u8>) -> Result<()> {
        out.resize(count as usize * ROW_BYTES, 0);
        let at = rows_at.saturating_add(u64::from(first) * ROW_BYTES as u64);
        read_or_corrupt(&**self.file()?, &self.path, out, at)
    }

    /// Reads `count` numbers of the id table from index `first` on, as bytes.
    pub(crate) fn read_ids(&self, first: u32, count: u32, out: &mut Vec<u8>) -> Result<()> {
        out.resize(count as usize * 4, 0);
        let at = self.trailer.ids_at.saturating_add(u64::from(first) * 4);
        read_or_corrupt(&**self.file()?, &self.path, out, at)
    }

    /// The row numbered `row` among `bytes`, which begin with the row `first`; from its copy when it is damaged, `Corrupt` when
    /// that is damaged as well.
    pub(crate) fn row_in(&self, bytes: &[u8], first: u32, row: u32) -> Result<SegmentRow> {
        let at = (row - first) as usize * ROW_BYTES;
        if let Some(row) = bytes.get(at..at + ROW_BYTES).and_then(SegmentRow::read) {
            return Ok(row);
        }
        self.wear();
        self.row_at(self.trailer.rows_copy_at, row).map_err(|_| self.damaged_row(self.trailer.rows_at, row))
    }

    fn damaged_row(&self, rows_at: u64, row: u32) -> Error {
        let offset = rows_at.saturating_add(u64::from(row) * ROW_BYTES as u64);
        corrupt(&self.path, offset, format_args!("message row {row} is damaged"))
    }

    /// One row of the rows that begin at `rows_at`, without recourse to the others.
    fn row_at(&self, rows_at: u64, row: u32) -> Result<SegmentRow> {
        let mut bytes = [0; ROW_BYTES];
        let at = rows_at.saturating_add(u64::from(row) * ROW_BYTES as u64);
        read_or_corrupt(&**self.file()?, &self.path, &mut bytes, at)?;
        SegmentRow::read(&bytes).filter(|_| rows_at > 0).ok_or_else(|| self.damaged_row(rows_at, row))
    }

    /// Every damage to one copy of the events or the rows, whether or not the other copy is whole.
    pub(crate) fn damaged_copies(&self) -> Vec<Error> {
        let trailer = &self.trailer;
        let mut damaged = Vec::new();
        let mut block = Vec::new();
        for span in [&trailer.events, &trailer.events_copy] {
            damaged.extend((0..span.blocks()).filter_map(|number| self.read_block(span, number, &mut block).err()));
        }
        for rows_at in [trailer.rows_at, trailer.rows_copy_at].into_iter().filter(|at| *at > 0) {
            for first in (0..trailer.rows).step_by(ROWS_AT_ONCE as usize) {
                let count = ROWS_AT_ONCE.min(trailer.rows - first);
                if let Err(error) = self.read_rows_at(rows_at, first, count, &mut block) {
                    damaged.push(error);
                    continue;
                }
                let rows = (first..).zip(block.chunks_exact(ROW_BYTES));
                let is_damaged = |(_, bytes): &(u32, &[u8])| SegmentRow::read(bytes).is_none();
                damaged.extend(rows.filter(is_damaged).map(|(row, _)| self.damaged_row(rows_at, row)));
            }
        }
        damaged
    }

    /// Reads a block of the events, from the copy when it is damaged. `Some`: what was wrong with the first.
    fn read_event_block(&self, number: u64, raw: &mut Vec<u8>) -> Result<Option<Error>> {
        let Err(damage) = self.read_block(&self.trailer.events, number, raw) else { return Ok(None) };
        let copy = &self.trailer.events_copy;
        match self.read_block(copy, number, raw) {
            // The blocks of both are cut at the same places.
            Ok(()) if copy.block_bytes == self.trailer.events.block_bytes => {
                self.wear();
                Ok(Some(damage))
            }
            _ => Err(damage),
        }
    }

    /// All rows that are whole, with their numbers; damaged ones are errors of their own.
    pub(crate) fn rows(&self) -> Result<Vec<Result<SegmentRow>>> {
        let mut bytes = Vec::new();
        let mut rows = Vec::with_capacity(self.trailer.rows.min(1 << 20) as usize);
        let mut first = 0;
        while first < self.trailer.rows {
            let count = ROWS_AT_ONCE.min(self.trailer.rows - first);
            self.read_rows(first, count, &mut bytes)?;
            rows.extend((first..first + count).map(|row| self.row_in(&bytes, first, row)));
            first += count;
        }
        Ok(rows)
    }

    pub(crate) fn read_block(&self, span: &ColumnSpan, block: u64, raw: &mut Vec<u8>) -> Result<()> {
        read_block(&**self.file()?, &self.path, span, block, raw)
    }

    /// Gives every frame's events to `visit`, in order. A block that is damaged in both copies ends it with `Corrupt`. `Some`:
    /// the damage that a copy made good.
    pub(crate) fn events(&self, visit: &mut dyn FnMut(Frame, Vec<Event>) -> Result<()>) -> Result<Option<Error>> {
        let span = &self.trailer.events;
        let mut stream = Vec::new();
        let mut used = 0;
        let mut made_good = None;
        let mut block = Vec::new();
        let malformed = || corrupt(&self.path, span.table_at, "the events are malformed");
        for number in 0..span.blocks() {
            let damage = self.read_event_block(number, &mut block)?;
            made_good = made_good.or(damage);
            stream.drain(..used);
            stream.extend_from_slice(&block);
            used = 0;
            if stream.len() > FRAME_EVENTS_BYTES_MAX + 2 * column::BLOCK_BYTES_MAX as usize {
                return Err(malformed());
            }
            while let Some((frame, events, len)) = split_frame(stream.get(used..).unwrap_or_default()) {
                let events = Event::read_all(events, frame.time).map_err(|bad| match bad {
                    BadEvent::UnknownKind(kind) => crate::tail::newer_version(kind),
                    BadEvent::Malformed => malformed(),
                })?;
                visit(frame, events)?;
                used += len;
            }
        }
        if used == stream.len() { Ok(made_good) } else { Err(malformed()) }
    }
}

/// The first frame of an event stream, its events, and how many bytes both are; `None` when they are not all there.
fn split_frame(stream: &[u8]) -> Option<(Frame, &[u8], usize)> {
    let mut input = Input(stream);
    let number = input.varint()?;
    let modseq = ModSeq(input.varint()?);
    let time = input.u64()? as i64;
    let events = input.bytes()?;
    Some((Frame { number, modseq, time }, events, stream.len() - input.0.len()))
}
