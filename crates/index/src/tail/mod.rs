//! The tail: where transactions are written first. One file of frames; frozen when it is large, then sealed.

mod frame;
mod kept;
mod scan;
mod write;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use model::EmailId;
use platform::File;

pub(crate) use self::kept::Kept;
pub(crate) use frame::{FRAME_ALIGN, FRAME_HEADER_BYTES, TAIL_HEADER_BYTES};
#[cfg(test)]
pub(crate) use frame::{FRAME_MAGIC, FrameHeader, TAIL_MAGIC, write_tail_header};
pub(crate) use scan::{TailScan, is_message_whole, messages, newer_version, read_events, read_message_events};
pub(crate) use write::{TailWriter, WriteFailure, frame_len};

/// Where a message lies in a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailMessage {
    /// Offset of its first byte.
    pub(crate) at: u64,
    pub(crate) len: u32,
    pub(crate) header_len: u32,
    pub(crate) crc: u32,
}

#[derive(Debug, Default)]
struct Table {
    /// By id. Foreign messages have ids as well, so that many may be missing in between.
    rows: Vec<(EmailId, TailMessage)>,
    /// End of the last durable frame.
    end: u64,
    last_frame: u64,
}

/// One tail file. Its durable part never changes; what is behind that belongs to the writer.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) epoch: u32,
    pub(crate) first_frame: u64,
    table: RwLock<Table>,
    /// One more than the largest id of a late message here: one whose id was given before.
    late_end: AtomicU64,
    /// What was derived from its messages.
    pub(crate) kept: Kept,
}

impl Tail {
    pub(crate) fn new(path: PathBuf, file: Arc<dyn File>, epoch: u32, first_frame: u64) -> Self {
        let table = Table { end: TAIL_HEADER_BYTES as u64, last_frame: first_frame - 1, ..Table::default() };
        Tail {
            path,
            file,
            epoch,
            first_frame,
            table: RwLock::new(table),
            late_end: AtomicU64::new(0),
            kept: Kept::default(),
        }
    }

    /// The file's name for a tail that begins with this frame; names sort like frames.
    pub(crate) fn file_name(first_frame: u64) -> String {
        format!("tail-{first_frame:016x}")
    }

    pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
        let frame = u64::from_str_radix(name.strip_prefix("tail-")?, 16).ok()?;
        (Self::file_name(frame) == name && frame > 0).then_some(frame)
    }

    /// Notes what became durable.
    pub(crate) fn extend(&self, messages: &[(EmailId, TailMessage)], end: u64, last_frame: u64) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            if table.rows.last().is_none_or(|last| last.0 < message.0) {
                table.rows.push(*message);
                continue;
            }
            // Late: the newest bytes of a message count, though all are the same.
            match table.rows.binary_search_by_key(&message.0, |row| row.0) {
                Ok(at) => table.rows[at] = *message,
                Err(at) => table.rows.insert(at, *message),
            }
        }
        table.end = end;
        table.last_frame = last_frame;
    }

    /// Where a message lies, if it is here.
    pub(crate) fn find(&self, id: EmailId) -> Option<TailMessage> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let at = table.rows.binary_search_by_key(&id, |row| row.0).ok()?;
        table.rows.get(at).map(|row| row.1)
    }

    /// Notes that late messages with ids below `end` are here.
    pub(crate) fn has_late_below(&self, end: u64) {
        self.late_end.fetch_max(end, Ordering::Release);
    }

    /// Whether a late message with this id can be here.
    pub(crate) fn may_have_late(&self, id: EmailId) -> bool {
        id.0 < self.late_end.load(Ordering::Acquire)
    }

    /// End of the last durable frame, bytes.
    pub(crate) fn end(&self) -> u64 {
        self.table.read().unwrap_or_else(PoisonError::into_inner).end
    }

    /// [`Tail::end`] and [`Tail::last_frame`] of the same moment.
    pub(crate) fn durable(&self) -> (u64, u64) {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        (table.end, table.last_frame)
    }

    /// The last durable frame; one less than the first when there is none.
    pub(crate) fn last_frame(&self) -> u64 {
        self.table.read().unwrap_or_else(PoisonError::into_inner).last_frame
    }
}
