//! Carrying out a plan, chunk by chunk.

use model::{Error, ErrorKind, Result};
use platform::File;

use super::Limits;
use super::journal::{Header, Journal, Phase, Progress};
use super::plan::{Piece, Source};
use super::sources::Sources;

/// Parts of a chunk at most: they are held in memory.
const PARTS_MAX: usize = 1 << 16;

/// Does what is left to do, and cuts the file where it is shorter now.
pub(super) fn finish(mut journal: Journal, file: &dyn File, limits: &Limits) -> Result<()> {
    let header = journal.header;
    if journal.progress.phase != Phase::Cut {
        journal = move_pieces(journal, file, limits)?;
    }
    if header.new_len < header.old_len {
        // Whether the end is cut off cannot be told from the length: others may append to the shorter file before the journal is gone.
        journal.begin()?;
        let mark = end_mark(&header);
        file.write_at(&mark, header.old_len - mark.len() as u64)?;
        file.sync_data()?;
        journal.save(Progress { phase: Phase::Cut, ..journal.progress }, None)?;
        file.set_len(header.new_len)?;
        file.sync_data()?;
    }
    Ok(())
}

/// The mark, as much of it as there is room for.
fn end_mark(header: &Header) -> Vec<u8> {
    let room = usize::try_from(header.old_len.saturating_sub(header.new_len)).unwrap_or(usize::MAX);
    Journal::mark(header).into_iter().take(room).collect()
}

/// Whether the part that goes is still there.
pub(super) fn is_marked(file: &dyn File, header: &Header) -> Result<bool> {
    let mark = end_mark(header);
    if file.len()? < header.old_len {
        return Ok(false);
    }
    let mut found = vec![0; mark.len()];
    file.read_exact_at(&mut found, header.old_len - mark.len() as u64)?;
    Ok(found == mark)
}

/// Does what is left to do, but leaves the length.
pub(super) fn move_pieces(mut journal: Journal, file: &dyn File, limits: &Limits) -> Result<Journal> {
    let mut buffer = Vec::new();
    if let Some(redo) = journal.redo {
        // The bytes were in the journal when the power went; the chunk is the one that would be made again.
        journal.read_redo(redo, &mut buffer)?;
        let chunk = Chunk::gather(&mut journal, Bound::Bytes(redo.len))?;
        if chunk.bytes != redo.len {
            return Err(Error::new(ErrorKind::Corrupt, "the journal of a rewrite does not fit its plan"));
        }
        chunk.write(file, &buffer)?;
        file.sync_data()?;
        journal.save(chunk.after, None)?;
    }
    loop {
        let chunk = Chunk::gather(&mut journal, Bound::Sources(limits.chunk_bytes_max))?;
        let is_small = chunk.is_held_up && chunk.bytes < limits.window_bytes;
        if is_small {
            let chunk = Chunk::gather(&mut journal, Bound::Bytes(limits.redo_bytes_max))?;
            chunk.read(&journal, file, &mut buffer)?;
            let redo = journal.write_redo(&buffer)?;
            journal.save(journal.progress, Some(redo))?;
            chunk.write(file, &buffer)?;
            file.sync_data()?;
            journal.save(chunk.after, None)?;
        } else if chunk.parts.is_empty() {
            match journal.progress.phase {
                // The second phase begins behind the last piece. Nothing needs to be durable for that.
                Phase::Left => {
                    journal.progress = Progress { phase: Phase::Right, piece: journal.header.pieces, offset: 0 };
                }
                Phase::Right | Phase::Cut => return Ok(journal),
            }
        } else {
            journal.begin()?;
            chunk.copy(&journal, file, limits.copy_bytes, &mut buffer)?;
            file.sync_data()?;
            journal.save(chunk.after, None)?;
        }
    }
}

/// What ends a chunk.
#[derive(Clone, Copy)]
enum Bound {
    /// Targets may not overlap sources; at most so many bytes.
    Sources(u64),
    /// So many bytes.
    Bytes(u64),
}

impl Bound {
    fn bytes(self) -> u64 {
        match self {
            Bound::Sources(bytes) | Bound::Bytes(bytes) => bytes,
        }
    }
}

/// Pieces, or parts of pieces, that are written before the next sync; by rising target.
struct Chunk {
    parts: Vec<Piece>,
    bytes: u64,
    /// How far the rewrite is when they are written.
    after: Progress,
    /// It would be larger, but for its own sources.
    is_held_up: bool,
}

impl Chunk {
    /// The next chunk of the phase; empty when the phase is over.
    fn gather(journal: &mut Journal, bound: Bound) -> Result<Chunk> {
        let after = journal.progress;
        let mut chunk = Chunk { parts: Vec::new(), bytes: 0, after, is_held_up: false };
        match after.phase {
            Phase::Left => chunk.gather_left(journal, bound)?,
            Phase::Right => chunk.gather_right(journal, bound)?,
            Phase::Cut => {}
        }
        Ok(chunk)
    }

    /// Pieces that move to the front, and the new bytes right before them.
    fn gather_left(&mut self, journal: &mut Journal, bound: Bound) -> Result<()> {
        // Sources rise: the first one is the only one that targets can come near to.
        let mut first_source = None;
        while self.parts.len() < PARTS_MAX && self.bytes < bound.bytes() {
            let Some(piece) = journal.piece(self.after.piece)? else { break };
            if !goes_left(journal, self.after.piece, &piece)? {
                self.after = Progress { piece: self.after.piece + 1, offset: 0, ..self.after };
                continue;
            }
            let rest = tail_of(&piece, self.after.offset);
            let mut len = rest.len.min(bound.bytes() - self.bytes);
            if let (Bound::Sources(_), Source::Old(source)) = (bound, rest.source) {
                first_source = first_source.or(Some(source));
            }
            if let Some(source) = first_source {
                len = len.min(source.saturating_sub(rest.target));
            }
            if len == 0 {
                self.is_held_up = true;
                break;
            }
            self.parts.push(Piece { len, ..rest });
            self.bytes += len;
            self.after = match len == rest.len {
                true => Progress { piece: self.after.piece + 1, offset: 0, ..self.after },
                false => Progress { offset: self.after.offset + len, ..self.after },
            };
        }
        Ok(())
    }

    /// Pieces that move to the back, and all other new bytes. `offset` is how much of the piece before `piece` is still to do, 0 for none.
    fn gather_right(&mut self, journal: &mut Journal, bound: Bound) -> Result<()> {
        let mut last_source_end = None;
        while self.parts.len() < PARTS_MAX && self.bytes < bound.bytes() {
            let Some(number) = self.after.piece.checked_sub(1) else { break };
            let Some(piece) = journal.piece(number)? else { break };
            if piece.moves_left() || goes_left(journal, number, &piece)? {
                self.after = Progress { piece: number, offset: 0, ..self.after };
                continue;
            }
            let left = if self.after.offset == 0 { piece.len } else { self.after.offset };
            let end = piece.target + left;
            let mut len = left.min(bound.bytes() - self.bytes);
            if let (Bound::Sources(_), Source::Old(source)) = (bound, piece.source) {
                last_source_end = last_source_end.or(Some(source + left));
            }
            if let Some(source_end) = last_source_end {
                len = len.min(end.saturating_sub(source_end));
            }
            if len == 0 {
                self.is_held_up = true;
                break;
            }
            self.parts.push(Piece { len, ..tail_of(&piece, left - len) });
            self.bytes += len;
            self.after = match len == left {
                true => Progress { piece: number, offset: 0, ..self.after },
                false => Progress { offset: left - len, ..self.after },
            };
        }
        self.parts.reverse();
        Ok(())
    }

    /// The bytes of the parts, one after another.
    fn read(&self, journal: &Journal, file: &dyn File, into: &mut Vec<u8>) -> Result<()> {
        into.resize(self.bytes as usize, 0);
        let mut sources = Sources::new(journal, file);
        let mut rest = into.as_mut_slice();
        for (n, part) in self.parts.iter().enumerate() {
            let len = (part.len as usize).min(rest.len());
            let (cells, others) = rest.split_at_mut(len);
            sources.read(part, self.parts.get(n + 1..).unwrap_or_default(), cells)?;
            rest = others;
        }
        Ok(())
    }

    /// Puts the bytes that [`Chunk::read`] gave to their places.
    fn write(&self, file: &dyn File, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let mut len = part.len;
            while let Some(next) = parts.next_if(|next| next.target == part.target + len) {
                len += next.len;
            }
            let (run, others) = rest.split_at_checked(len as usize).unwrap_or((rest, &[]));
            file.write_at(run, part.target)?;
            rest = others;
        }
        Ok(())
    }

    /// Copies the parts to their places, through a buffer.
    fn copy(&self, journal: &Journal, file: &dyn File, copy_bytes: usize, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.resize(copy_bytes.max(1), 0);
        let mut sources = Sources::new(journal, file);
        let mut out = Out { file, buffer, filled: 0, at: 0 };
        for (n, part) in self.parts.iter().enumerate() {
            let behind = self.parts.get(n + 1..).unwrap_or_default();
            let mut done = 0;
            while done < part.len {
                let rest = tail_of(part, done);
                let room = out.room(rest.target)?;
                let len = usize::try_from(rest.len).unwrap_or(usize::MAX).min(room.len());
                sources.read(&rest, behind, room.get_mut(..len).unwrap_or_default())?;
                out.filled += len;
                done += len as u64;
            }
        }
        out.flush()
    }
}

/// Joins what lies side by side into one write.
struct Out<'o> {
    file: &'o dyn File,
    buffer: &'o mut [u8],
    /// How much of `buffer` waits to be written, and where it goes.
    filled: usize,
    at: u64,
}

impl Out<'_> {
    /// Room for what comes to this target, at least one byte.
    fn room(&mut self, target: u64) -> Result<&mut [u8]> {
        if self.filled == self.buffer.len() || self.at + self.filled as u64 != target {
            self.flush()?;
            self.at = target;
        }
        Ok(self.buffer.get_mut(self.filled..).unwrap_or_default())
    }

    fn flush(&mut self) -> Result<()> {
        let waiting = self.buffer.get(..std::mem::take(&mut self.filled)).unwrap_or_default();
        if waiting.is_empty() { Ok(()) } else { Ok(self.file.write_at(waiting, self.at)?) }
    }
}

/// Whether a piece is moved in the first phase. New bytes are when the next kept piece moves left: then no source that is still needed lies
/// where they come to.
fn goes_left(journal: &mut Journal, number: u64, piece: &Piece) -> Result<bool> {
    if !matches!(piece.source, Source::New(_)) {
        return Ok(piece.moves_left());
    }
    // New bytes that follow each other are one piece unless a kept one lies between them, which may be missing from the list because it
    // does not move; only a neighbour that begins where this one ends says anything.
    let next = journal.piece(number + 1)?;
    Ok(next.is_some_and(|next| next.moves_left() && next.target == piece.target + piece.len))
}

/// A piece without its first bytes.
fn tail_of(piece: &Piece, from: u64) -> Piece {
    let source = match piece.source {
        Source::Old(at) => Source::Old(at + from),
        Source::New(at) => Source::New(at + from),
    };
    Piece { target: piece.target + from, len: piece.len - from, source }
}
