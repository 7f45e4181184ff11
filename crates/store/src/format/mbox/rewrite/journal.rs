//! The files of a rewrite: the plan, how far it is, and bytes that must be written twice.
//!
//! `JOURNAL` has a header, two places for the progress, a place for the bytes of a chunk, and the list of pieces; `JOURNAL.new` has the
//! new bytes. The header is written last and synced alone, so a plan that is not whole has none. Byte tables: `docs/format-mbox.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::{Disk, File, OpenMode, SECTOR_BYTES, parent_of};

use super::plan::{PIECE_BYTES, Piece};

const MAGIC: [u8; 8] = *b"MYREWR\x01\n";
const HEADER_BYTES: usize = 72;
const PROGRESS_BYTES: usize = 44;
/// Where the list of pieces begins; the bytes of a chunk are behind it.
pub(super) const PIECES_AT: u64 = 4 * SECTOR_BYTES;
const READ_BYTES: usize = 256 << 10;
/// What marks an end that is to be cut off.
const MARK_BYTES: usize = 32;

/// What the plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// One more than that of the rewrite that this one completes.
    pub(super) generation: u64,
    pub(super) inode: u64,
    pub(super) old_len: u64,
    pub(super) new_len: u64,
    pub(super) pieces: u64,
    pub(super) pieces_crc: u32,
    pub(super) new_bytes: u64,
    pub(super) new_crc: u32,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for value in [self.generation, self.inode, self.old_len, self.new_len, self.pieces, self.new_bytes] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&self.pieces_crc.to_le_bytes());
        bytes.extend_from_slice(&self.new_crc.to_le_bytes());
        bytes.resize(HEADER_BYTES - 4, 0);
        seal(bytes)
    }

    fn decode(bytes: &[u8]) -> Option<Header> {
        let body = unsealed(bytes)?.strip_prefix(MAGIC.as_slice())?;
        let number = |cell: usize| Some(u64::from_le_bytes(body.get(cell * 8..cell * 8 + 8)?.try_into().ok()?));
        let small = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
        Some(Header {
            generation: number(0)?,
            inode: number(1)?,
            old_len: number(2)?,
            new_len: number(3)?,
            pieces: number(4)?,
            new_bytes: number(5)?,
            pieces_crc: small(48)?,
            new_crc: small(52)?,
        })
    }
}

/// The bytes and their checksum.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// The bytes without their checksum, when it is right.
fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    (crc32c::crc32c(body) == u32::from_le_bytes(*crc)).then_some(body)
}

/// Which way pieces are being moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Those that move to the front, front to back.
    Left,
    /// Those that move to the back, and new bytes, back to front.
    Right,
    /// None any more: the end of the file is marked, and is being cut off.
    Cut,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Left, Phase::Right, Phase::Cut];

    fn number(self) -> u64 {
        Phase::ALL.iter().position(|phase| *phase == self).unwrap_or_default() as u64
    }
}

/// How far a rewrite is. In the first phase everything before (`piece`, `offset`) is done; in the second everything from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    pub(super) piece: u64,
    pub(super) offset: u64,
}

/// A chunk whose bytes are in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Redo {
    pub(super) len: u64,
    crc: u32,
}

/// The journal of a rewrite whose plan is durable.
pub(super) struct Journal {
    pub(super) header: Header,
    pub(super) progress: Progress,
    pub(super) redo: Option<Redo>,
    serial: u64,
    list: Arc<dyn File>,
    new: Arc<dyn File>,
    page: Vec<u8>,
    page_first: u64,
}

impl Journal {
    pub(super) fn new(header: Header, list: Arc<dyn File>, new: Arc<dyn File>) -> Journal {
        let progress = Progress { phase: Phase::Left, piece: 0, offset: 0 };
        Journal { header, progress, redo: None, serial: 0, list, new, page: Vec::new(), page_first: 0 }
    }

    /// Reads what a crash left. `None`: no plan that was whole. `Corrupt`: a plan that was, and is damaged now.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: &Path) -> Result<Option<Journal>> {
        let open = |path: &Path| match disk.open(path, OpenMode::ReadWrite) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::from(error)),
        };
        let Some(list) = open(path)? else { return Ok(None) };
        let Some(header) = read_some(&*list, 0, HEADER_BYTES)?.as_deref().and_then(Header::decode) else {
            return Ok(None);
        };
        let damaged = |what: &str| {
            Error::new(ErrorKind::Corrupt, format!("{}: {what} of the rewrite is damaged", path.display()))
        };
        let new = open(&new_bytes_path(path))?.ok_or_else(|| damaged("the file of new bytes"))?;
        let pieces_bytes = header.pieces.checked_mul(PIECE_BYTES as u64).ok_or_else(|| damaged("the header"))?;
        if checksum(&*list, PIECES_AT, pieces_bytes)? != Some(header.pieces_crc) {
            return Err(damaged("the list"));
        }
        if checksum(&*new, 0, header.new_bytes)? != Some(header.new_crc) {
            return Err(damaged("the new bytes"));
        }
        let mut journal = Journal::new(header, list, new);
        for place in [1, 2] {
            let bytes = read_some(&*journal.list, place * SECTOR_BYTES, PROGRESS_BYTES)?;
            if let Some((serial, progress, redo)) = bytes.as_deref().and_then(decode_progress)
                && serial > journal.serial
            {
                (journal.serial, journal.progress, journal.redo) = (serial, progress, redo);
            }
        }
        Ok(Some(journal))
    }

    /// Whether anything of the file was changed yet, but for its length.
    pub(super) fn has_begun(&self) -> bool {
        self.serial > 0
    }

    /// From here on the file counts as changed.
    pub(super) fn begin(&mut self) -> Result<()> {
        if self.has_begun() { Ok(()) } else { self.save(self.progress, self.redo) }
    }

    /// Makes the progress durable. What it says is done must be durable already.
    pub(super) fn save(&mut self, progress: Progress, redo: Option<Redo>) -> Result<()> {
        self.serial += 1;
        (self.progress, self.redo) = (progress, redo);
        let place = 1 + self.serial % 2;
        self.list.write_at(&encode_progress(self.serial, progress, redo), place * SECTOR_BYTES)?;
        Ok(self.list.sync_data()?)
    }

    /// A mark that no program appends: it begins with an octet that no mbox line begins with.
    pub(super) fn mark(header: &Header) -> [u8; MARK_BYTES] {
        let mut mark = [0xff; MARK_BYTES];
        for (cell, byte) in mark.iter_mut().skip(1).zip(header.encode().into_iter().rev().cycle()) {
            *cell = byte;
        }
        mark
    }

    /// Where the bytes of a chunk are: behind the list, on a sector of their own.
    fn redo_at(&self) -> u64 {
        (PIECES_AT + self.header.pieces * PIECE_BYTES as u64).next_multiple_of(SECTOR_BYTES)
    }

    /// Keeps the bytes of a chunk. The place is that of the chunk before, which must be done durably.
    pub(super) fn write_redo(&mut self, bytes: &[u8]) -> Result<Redo> {
        self.list.write_at(bytes, self.redo_at())?;
        // Before the progress that names it, so that no progress ever names bytes that are not there.
        self.list.sync_data()?;
        Ok(Redo { len: bytes.len() as u64, crc: crc32c::crc32c(bytes) })
    }

    /// The bytes of the chunk.
    pub(super) fn read_redo(&self, redo: Redo, into: &mut Vec<u8>) -> Result<()> {
        into.resize(redo.len as usize, 0);
        self.list.read_exact_at(into, self.redo_at())?;
        if crc32c::crc32c(into) != redo.crc {
            return Err(Error::new(ErrorKind::Corrupt, "the journal of a rewrite is damaged"));
        }
        Ok(())
    }

    /// Fills `buf` with new bytes.
    pub(super) fn read_new(&self, buf: &mut [u8], at: u64) -> Result<()> {
        Ok(self.new.read_exact_at(buf, at)?)
    }

    /// A piece of the list; `None` behind its end.
    pub(super) fn piece(&mut self, number: u64) -> Result<Option<Piece>> {
        if number >= self.header.pieces {
            return Ok(None);
        }
        let held = (self.page.len() / PIECE_BYTES) as u64;
        if number < self.page_first || number >= self.page_first + held {
            // Pages, so that walking backwards is as quick as walking forwards.
            let pieces = (READ_BYTES / PIECE_BYTES) as u64;
            self.page_first = number / pieces * pieces;
            let count = pieces.min(self.header.pieces - self.page_first);
            self.page.resize(count as usize * PIECE_BYTES, 0);
            self.list.read_exact_at(&mut self.page, PIECES_AT + self.page_first * PIECE_BYTES as u64)?;
        }
        let at = (number - self.page_first) as usize * PIECE_BYTES;
        let piece = self.page.get(at..at + PIECE_BYTES).and_then(Piece::decode);
        piece.map(Some).ok_or_else(|| Error::new(ErrorKind::Corrupt, "the plan of a rewrite is damaged"))
    }
}

fn encode_progress(serial: u64, progress: Progress, redo: Option<Redo>) -> Vec<u8> {
    let mut bytes = serial.to_le_bytes().to_vec();
    bytes.extend_from_slice(&progress.phase.number().to_le_bytes());
    bytes.extend_from_slice(&progress.piece.to_le_bytes());
    bytes.extend_from_slice(&progress.offset.to_le_bytes());
    bytes.extend_from_slice(&redo.map_or(0, |redo| redo.len as u32).to_le_bytes());
    bytes.extend_from_slice(&redo.map_or(0, |redo| redo.crc).to_le_bytes());
    seal(bytes)
}

fn decode_progress(bytes: &[u8]) -> Option<(u64, Progress, Option<Redo>)> {
    let body = unsealed(bytes)?;
    let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
    let small = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let phase = Phase::ALL.into_iter().find(|phase| Some(phase.number()) == number(8))?;
    let progress = Progress { phase, piece: number(16)?, offset: number(24)? };
    let redo = Redo { len: u64::from(small(32)?), crc: small(36)? };
    Some((number(0)?, progress, (redo.len > 0).then_some(redo)))
}

/// Bytes of a file that may be shorter.
fn read_some(file: &dyn File, at: u64, len: usize) -> Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; len];
    match file.read_exact_at(&mut bytes, at) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The checksum of a range; `None` when the file is shorter.
fn checksum(file: &dyn File, from: u64, len: u64) -> Result<Option<u32>> {
    let (mut crc, mut at, mut left) = (0, from, len);
    while left > 0 {
        let Some(bytes) = read_some(file, at, left.min(READ_BYTES as u64) as usize)? else { return Ok(None) };
        crc = crc32c::crc32c_append(crc, &bytes);
        at += bytes.len() as u64;
        left -= bytes.len() as u64;
    }
    Ok(Some(crc))
}

/// The second journal, for a rewrite that completes one that was interrupted.
pub(super) fn other_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".rest");
    PathBuf::from(name)
}

/// The file of new bytes beside a journal.
pub(super) fn new_bytes_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Removes both files; whether one was there. The list goes first and durably: new bytes alone are no plan.
pub(super) fn remove(disk: &dyn Disk, path: &Path) -> Result<bool> {
    let mut was_there = false;
    for path in [path.to_owned(), new_bytes_path(path)] {
        match disk.remove(&path) {
            Ok(()) => {
                was_there = true;
                disk.sync_dir(parent_of(&path))?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(was_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::format_doc::hold;
    use crate::format::mbox::rewrite::plan::Source;

    #[test]
    fn as_documented() {
        let header = Header {
            generation: 1,
            inode: 2,
            old_len: 3,
            new_len: 4,
            pieces: 5,
            new_bytes: 6,
            pieces_crc: 7,
            new_crc: 8,
        };
        let fields = [
            ("magic", u64::from_le_bytes(MAGIC)),
            ("generation", 1),
            ("inode", 2),
            ("old_len", 3),
            ("new_len", 4),
            ("pieces", 5),
            ("new_bytes", 6),
            ("pieces_crc", 7),
            ("new_crc", 8),
        ];
        hold("format-mbox.md", "### Header of a rewrite", &header.encode(), &fields);
        assert_eq!(header.encode().len(), HEADER_BYTES);
        let progress = Progress { phase: Phase::Cut, piece: 2, offset: 3 };
        let bytes = encode_progress(1, progress, Some(Redo { len: 4, crc: 5 }));
        let fields = [("serial", 1), ("phase", 2), ("piece", 2), ("offset_done", 3), ("redo_len", 4), ("redo_crc", 5)];
        hold("format-mbox.md", "### Progress of a rewrite", &bytes, &fields);
        assert_eq!(bytes.len(), PROGRESS_BYTES);
        let piece = Piece { target: 1, len: 2, source: Source::New(3) };
        hold(
            "format-mbox.md",
            "### Piece of a rewrite",
            &piece.encode(),
            &[("target", 1), ("len", 2), ("source", 3 | 1 << 63)],
        );
    }
}
