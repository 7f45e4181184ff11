//! The plan of a rewrite: what the new file consists of, written to disk as it is made, so that a plan for a file of millions of messages
//! takes no memory.
//!
//! Invariants: targets rise and do not overlap; sources of kept pieces rise and do not overlap; a kept piece that does not move is not in
//! the list.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::{Disk, File, OpenMode, parent_of};

use super::journal::{self, Header, Journal, PIECES_AT};

/// Bytes of a piece in the list.
pub(super) const PIECE_BYTES: usize = 24;
/// Set in the source of a piece of new bytes.
const NEW: u64 = 1 << 63;
const BUFFER_BYTES: usize = 256 << 10;

/// A part of the new file that differs from the old one in place or in content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it comes to.
    pub(super) target: u64,
    /// Its length.
    pub(super) len: u64,
    /// Where it comes from.
    pub(super) source: Source,
}

/// Where bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The old file, at this offset.
    Old(u64),
    /// The file of new bytes, at this offset.
    New(u64),
}

impl Piece {
    /// Whether it moves to the front. New bytes do not move.
    pub(super) fn moves_left(&self) -> bool {
        matches!(self.source, Source::Old(source) if source > self.target)
    }

    /// Whether it moves to the back.
    pub(super) fn moves_right(&self) -> bool {
        matches!(self.source, Source::Old(source) if source < self.target)
    }

    pub(super) fn encode(&self) -> [u8; PIECE_BYTES] {
        let source = match self.source {
            Source::Old(at) => at,
            Source::New(at) => at | NEW,
        };
        let mut bytes = [0; PIECE_BYTES];
        for (cell, value) in bytes.chunks_exact_mut(8).zip([self.target, self.len, source]) {
            cell.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Piece> {
        let mut cells = bytes.chunks_exact(8).map(|cell| cell.try_into().map(u64::from_le_bytes));
        let (target, len, source) = (cells.next()?.ok()?, cells.next()?.ok()?, cells.next()?.ok()?);
        let source = if source & NEW == 0 { Source::Old(source) } else { Source::New(source & !NEW) };
        Some(Piece { target, len, source })
    }
}

/// A file that is only appended to, with its checksum.
struct Appender {
    file: Arc<dyn File>,
    at: u64,
    written: u64,
    crc: u32,
    buffer: Vec<u8>,
}

impl Appender {
    fn new(file: Arc<dyn File>, at: u64) -> Self {
        Appender { file, at, written: 0, crc: 0, buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, &self.buffer);
        self.file.write_at(&self.buffer, self.at + self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }
}

/// Takes the plan down.
pub(super) struct PlanWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    pieces: Appender,
    new: Appender,
    count: u64,
    /// Not yet in the list: it may grow.
    open: Option<Piece>,
    old: u64,
    target: u64,
}

impl PlanWriter {
    pub(super) fn create(disk: &Arc<dyn Disk>, path: &Path) -> Result<PlanWriter> {
        journal::remove(&**disk, path)?;
        let list = disk.open(path, OpenMode::CreateNew)?;
        let new = disk.open(&journal::new_bytes_path(path), OpenMode::CreateNew)?;
        Ok(PlanWriter {
            disk: Arc::clone(disk),
            path: path.to_owned(),
            pieces: Appender::new(list, PIECES_AT),
            new: Appender::new(new, 0),
            count: 0,
            open: None,
            old: 0,
            target: 0,
        })
    }

    pub(super) fn old_position(&self) -> u64 {
        self.old
    }

    pub(super) fn keep(&mut self, len: u64) -> Result<()> {
        let piece = Piece { target: self.target, len, source: Source::Old(self.old) };
        (self.old, self.target) = (self.old.saturating_add(len), self.target.saturating_add(len));
        if piece.moves_left() || piece.moves_right() { self.push(piece) } else { Ok(()) }
    }

    pub(super) fn skip(&mut self, len: u64) {
        self.old = self.old.saturating_add(len);
    }

    pub(super) fn insert(&mut self, bytes: &[u8]) -> Result<()> {
        let piece = Piece { target: self.target, len: bytes.len() as u64, source: Source::New(self.new.len()) };
        self.new.push(bytes)?;
        self.target = self.target.saturating_add(piece.len);
        self.push(piece)
    }

    /// Adds a piece, to the one before where they follow each other on both sides.
    fn push(&mut self, piece: Piece) -> Result<()> {
        if piece.len == 0 {
            return Ok(());
        }
        if let Some(open) = &mut self.open {
            let follows = match (open.source, piece.source) {
                (Source::Old(before), Source::Old(at)) | (Source::New(before), Source::New(at)) => {
                    before + open.len == at
                }
                _ => false,
            };
            if follows && open.target + open.len == piece.target {
                open.len += piece.len;
                return Ok(());
            }
        }
        if let Some(done) = self.open.replace(piece) {
            self.count += 1;
            self.pieces.push(&done.encode())?;
        }
        Ok(())
    }

    /// Makes the plan durable. `None`: the new file would be the old one.
    pub(super) fn finish(&mut self, generation: u64, inode: u64, old_len: u64) -> Result<Option<Journal>> {
        if let Some(done) = self.open.take() {
            self.count += 1;
            self.pieces.push(&done.encode())?;
        }
        if self.old > old_len {
            return Err(Error::new(ErrorKind::Invalid, "the plan reaches behind the end of the file"));
        }
        if self.count == 0 && self.target == old_len {
            return Ok(None);
        }
        self.pieces.flush()?;
        self.new.flush()?;
        self.new.file.sync_data()?;
        self.pieces.file.sync_data()?;
        self.disk.sync_dir(parent_of(&self.path))?;
        let header = Header {
            generation,
            inode,
            old_len,
            new_len: self.target,
            pieces: self.count,
            pieces_crc: self.pieces.crc,
            new_bytes: self.new.len(),
            new_crc: self.new.crc,
        };
        // Last, and alone: with it the plan counts.
        self.pieces.file.write_at(&header.encode(), 0)?;
        self.pieces.file.sync_data()?;
        Ok(Some(Journal::new(header, Arc::clone(&self.pieces.file), Arc::clone(&self.new.file))))
    }
}
