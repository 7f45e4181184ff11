//! The tail: where transactions are written first. One file of frames; frozen when it is large, then sealed.

mod frame;
mod kept;
mod scan;
mod write;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use model::EmailId;
use platform::File;

pub(crate) use frame::{FRAME_ALIGN, FRAME_HEADER_BYTES, TAIL_HEADER_BYTES};
#[cfg(test)]
pub(crate) use frame::{FRAME_MAGIC, FrameHeader, TAIL_MAGIC, write_tail_header};
pub(crate) use scan::{TailScan, is_message_whole, messages, newer_version, read_events};
pub(crate) use write::{TailWriter, WriteFailure, frame_len};

/// Where a message lies in a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailMessage {
    /// Offset of its first byte; [`TailMessage::NOWHERE`] when there is no such message.
    pub(crate) at: u64,
    pub(crate) len: u32,
    pub(crate) header_len: u32,
    pub(crate) crc: u32,
}

impl TailMessage {
    const NOWHERE: TailMessage = TailMessage { at: u64::MAX, len: 0, header_len: 0, crc: 0 };
}

#[derive(Debug, Default)]
struct Table {
    /// The id of `rows[0]`.
    first_id: u64,
    rows: Vec<TailMessage>,
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
    /// What was derived from its messages.
    pub(crate) kept: kept::Kept,
}

/// Ids that one tail may leave out before its table would grow without reason: a damaged record may say anything.
const ID_GAP_MAX: u64 = 1 << 20;

impl Tail {
    pub(crate) fn new(path: PathBuf, file: Arc<dyn File>, epoch: u32, first_frame: u64) -> Self {
        let table = Table { end: TAIL_HEADER_BYTES as u64, last_frame: first_frame - 1, ..Table::default() };
        Tail { path, file, epoch, first_frame, table: RwLock::new(table), kept: kept::Kept::default() }
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
        for (id, message) in messages {
            if table.rows.is_empty() {
                table.first_id = id.0;
            }
            let next = table.first_id + table.rows.len() as u64;
            if id.0 < next || id.0 - next > ID_GAP_MAX {
                continue;
            }
            let gap = (id.0 - next) as usize;
            table.rows.extend(std::iter::repeat_n(TailMessage::NOWHERE, gap));
            table.rows.push(*message);
        }
        table.end = end;
        table.last_frame = last_frame;
    }

    /// Where a message lies, if it is here.
    pub(crate) fn find(&self, id: EmailId) -> Option<TailMessage> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let at = usize::try_from(id.0.checked_sub(table.first_id)?).ok()?;
        table.rows.get(at).copied().filter(|message| *message != TailMessage::NOWHERE)
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
