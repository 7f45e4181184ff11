//! Writing batches of frames: one write and one sync a batch.
//!
//! Invariant: nothing is written behind the end of the durable frames until the space for it is there, so that a full disk
//! fails a batch before anything of it was written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EmailId, Error, Result};
use platform::{Env, OpenMode};

use super::frame::{FrameHeader, write_tail_header};
use super::{FRAME_ALIGN, FRAME_HEADER_BYTES, TAIL_HEADER_BYTES, Tail, TailMessage};
use crate::options::Options;
use crate::transaction::Finished;

/// Batches from this size on are not prefilled: their sync is dominated by their own bytes.
const PREFILL_BATCH_BYTES_MAX: u64 = 1 << 20;
/// Frames are gathered up to this size before they are written; a batch below it is one write.
const WRITE_BYTES: usize = 1 << 20;

/// A batch that could not be made durable.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    pub(crate) error: Error,
    /// Nothing of it was written: the log is as it was and can go on.
    pub(crate) is_clean: bool,
}

impl WriteFailure {
    fn dirty(error: impl Into<Error>) -> Self {
        WriteFailure { error: error.into(), is_clean: false }
    }
}

/// Owns the end of the active tail.
#[derive(Debug)]
pub(crate) struct TailWriter {
    env: Env,
    log_dir: PathBuf,
    pub(crate) tail: Option<Arc<Tail>>,
    /// Length of the active tail's file.
    allocated: u64,
}

/// Gathers frames and writes them in large pieces.
struct Gather<'a> {
    tail: &'a Tail,
    at: u64,
    bytes: Vec<u8>,
}

impl Gather<'_> {
    fn position(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tail.file.write_at(&self.bytes, self.at)?;
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn flush_if_large(&mut self) -> io::Result<()> {
        if self.bytes.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }
}

/// Bytes of the frame of a transaction.
pub(crate) fn frame_len(transaction: &Finished) -> u64 {
    let data: u64 = transaction.messages.iter().map(|(_, message)| u64::from(message.len())).sum();
    (FRAME_HEADER_BYTES as u64 + transaction.events.len() as u64 + data).next_multiple_of(FRAME_ALIGN)
}

impl TailWriter {
    /// Goes on at the end of `tail`, if there is one.
    pub(crate) fn new(env: Env, log_dir: PathBuf, tail: Option<Arc<Tail>>) -> Result<Self> {
        let allocated = tail.as_ref().map_or(Ok(0), |tail| tail.file.len())?;
        let mut writer = TailWriter { env, log_dir, tail, allocated };
        // What a crash left behind the end may be a hole, in which a write can still meet a full disk.
        writer.trim()?;
        Ok(writer)
    }

    /// Begins a new tail, whose first frame will be `first_frame`. Its name and header are durable after this.
    pub(crate) fn begin_tail(&mut self, first_frame: u64) -> Result<Arc<Tail>, WriteFailure> {
        let path = self.log_dir.join(Tail::file_name(first_frame));
        let clean = |error: io::Error, path: &Path, env: &Env| {
            // A tail without frames is harmless, but the name must be free for the next attempt.
            let is_full = Error::from(io::Error::from(error.kind())).kind() == model::ErrorKind::DiskFull;
            let is_clean = is_full && env.disk.remove(path).is_ok();
            WriteFailure { error: error.into(), is_clean }
        };
        let epoch = self.env.random.u64() as u32;
        // One that is there already was begun and given up: nothing in it can be durable, or its frames would count.
        let opened = self.env.disk.open(&path, OpenMode::Create);
        let file = match opened.and_then(|file| file.set_len(0).map(|()| file)) {
            Ok(file) => file,
            Err(error) => {
                let is_full = error.kind() == io::ErrorKind::StorageFull;
                return Err(WriteFailure { error: error.into(), is_clean: is_full });
            }
        };
        let header = write_tail_header(epoch, first_frame);
        file.write_at(&header, 0).map_err(|error| clean(error, &path, &self.env))?;
        // The header itself becomes durable with the first batch; only the name needs a sync of its own.
        self.env.disk.sync_dir(&self.log_dir).map_err(WriteFailure::dirty)?;
        let tail = Arc::new(Tail::new(path, file, epoch, first_frame));
        self.allocated = TAIL_HEADER_BYTES as u64;
        self.tail = Some(Arc::clone(&tail));
        Ok(tail)
    }

    /// Makes room up to `need`, prefilled with zeros for small batches: a sync of a prefilled range is cheaper than one of a
    /// growing file.
    fn reserve(&mut self, tail: &Tail, need: u64, batch_bytes: u64, options: &Options) -> Result<(), WriteFailure> {
        if need <= self.allocated {
            return Ok(());
        }
        let is_prefilled = options.preallocate_bytes_min > 0 && batch_bytes <= PREFILL_BATCH_BYTES_MAX;
        let result = if is_prefilled {
            let max = options.preallocate_bytes_max.max(options.preallocate_bytes_min);
            let step = (need / 4).clamp(options.preallocate_bytes_min, max);
            let to = (need + step).next_multiple_of(4096);
            tail.file.write_zeros(self.allocated, to - self.allocated).map(|()| to)
        } else {
            match tail.file.allocate(self.allocated, need - self.allocated) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(self.allocated),
                result => result.map(|()| need),
            }
        };
        match result {
            Ok(allocated) => self.allocated = allocated,
            Err(error) => {
                // Only zeros behind the end can have been written.
                let is_clean = Error::from(io::Error::from(error.kind())).kind() == model::ErrorKind::DiskFull;
                return Err(WriteFailure { error: error.into(), is_clean });
            }
        }
        Ok(())
    }

    /// Writes the transactions as frames of the active tail and syncs it.
    pub(crate) fn write(
        &mut self,
        batch: &[Finished],
        durable_before: u64,
        options: &Options,
    ) -> Result<(), WriteFailure> {
        let Some(tail) = self.tail.clone() else {
            return Err(WriteFailure::dirty(Error::new(model::ErrorKind::Io, "there is no tail to write to")));
        };
        let from = tail.end();
        let batch_bytes: u64 = batch.iter().map(frame_len).sum();
        self.reserve(&tail, from + batch_bytes, batch_bytes, options)?;
        let mut gather =
            Gather { tail: &tail, at: from, bytes: Vec::with_capacity(batch_bytes.min(WRITE_BYTES as u64) as usize) };
        let mut messages = Vec::new();
        for transaction in batch {
            write_frame(&mut gather, transaction, durable_before, &mut messages).map_err(WriteFailure::dirty)?;
        }
        gather.flush().map_err(WriteFailure::dirty)?;
        tail.file.sync_data().map_err(WriteFailure::dirty)?;
        self.allocated = self.allocated.max(gather.at);
        tail.has_late_below(batch.iter().map(|transaction| transaction.late_end).max().unwrap_or(0));
        tail.extend(&messages, gather.at, batch.last().map_or(durable_before, |last| last.frame.number));
        Ok(())
    }

    /// Gives back the prefilled space behind the last frame. Needs no sync: it changes nothing that is read.
    pub(crate) fn trim(&mut self) -> Result<()> {
        if let Some(tail) = self.tail.as_ref().filter(|tail| tail.end() < self.allocated) {
            tail.file.set_len(tail.end())?;
            self.allocated = tail.end();
        }
        Ok(())
    }
}

fn write_frame(
    gather: &mut Gather<'_>,
    transaction: &Finished,
    durable_before: u64,
    messages: &mut Vec<(EmailId, TailMessage)>,
) -> Result<()> {
    let header = FrameHeader {
        epoch: gather.tail.epoch,
        frame: transaction.frame,
        durable_before,
        events_len: transaction.events.len() as u32,
        events_crc: transaction.events_crc,
        data_len: transaction.messages.iter().map(|(_, message)| u64::from(message.len())).sum(),
    };
    header.write(&mut gather.bytes);
    gather.bytes.extend_from_slice(&transaction.events);
    for (id, message) in &transaction.messages {
        let (len, header_len, crc) = (message.len(), message.header_len(), message.crc());
        messages.push((*id, TailMessage { at: gather.position(), len, header_len, crc }));
        match message.memory() {
            Some(bytes) => gather.bytes.extend_from_slice(bytes),
            None => copy_spool(gather, message)?,
        }
        gather.flush_if_large()?;
    }
    let end = gather.position().next_multiple_of(FRAME_ALIGN);
    gather.bytes.resize(gather.bytes.len() + (end - gather.position()) as usize, 0);
    Ok(gather.flush_if_large()?)
}

/// Copies a message from its spool file, in pieces.
fn copy_spool(gather: &mut Gather<'_>, message: &crate::message::PendingMessage) -> Result<()> {
    const PIECE: usize = 256 << 10;
    let mut at = 0u64;
    while at < u64::from(message.len()) {
        let len = PIECE.min((u64::from(message.len()) - at) as usize);
        let from = gather.bytes.len();
        gather.bytes.resize(from + len, 0);
        message.read_at(at, gather.bytes.get_mut(from..).unwrap_or_default())?;
        at += len as u64;
        gather.flush_if_large()?;
    }
    Ok(())
}
