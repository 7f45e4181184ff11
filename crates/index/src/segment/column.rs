//! A column: a stream of bytes cut into blocks of equal raw size, each compressed and checksummed on its own, so that any
//! range is read by decompressing only the blocks that it touches.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::File;

use crate::codec::Input;

/// How a block is stored. The numbers never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// As it is (0); also what the others fall back to when they would not shrink a block.
    Raw,
    /// LZ4 block format (1).
    Lz4,
    /// A zstd frame (2), made at this level.
    Zstd(i32),
}

impl Codec {
    fn compress(self, raw: &[u8]) -> Result<(u8, Vec<u8>)> {
        let packed = match self {
            Codec::Raw => return Ok((0, raw.to_vec())),
            Codec::Lz4 => (1, lz4::block::compress(raw, None, false)?),
            Codec::Zstd(level) => (2, zstd::bulk::compress(raw, level)?),
        };
        Ok(if packed.1.len() < raw.len() { packed } else { (0, raw.to_vec()) })
    }
}

/// Bytes of an entry in a column's block table.
pub(crate) const BLOCK_ENTRY_BYTES: usize = 24;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) at: u64,
    pub(crate) stored_len: u32,
    pub(crate) codec: u32,
    pub(crate) crc: u32,
}

impl BlockEntry {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.stored_len.to_le_bytes());
        out.extend_from_slice(&self.codec.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        let crc = crc32c::crc32c(out.get(from..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Option<BlockEntry> {
        let mut input = Input(bytes);
        let entry = BlockEntry { at: input.u64()?, stored_len: input.u32()?, codec: input.u32()?, crc: input.u32()? };
        (crc32c::crc32c(bytes.get(..BLOCK_ENTRY_BYTES - 4)?) == input.u32()?).then_some(entry)
    }
}

/// Where a column is in its file. 20 bytes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnSpan {
    /// Offset of the block table.
    pub(crate) table_at: u64,
    /// Bytes of the stream before compression.
    pub(crate) raw_len: u64,
    /// Raw bytes of every block but the last. Not zero in a column that has any.
    pub(crate) block_bytes: u32,
}

impl ColumnSpan {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.table_at.to_le_bytes());
        out.extend_from_slice(&self.raw_len.to_le_bytes());
        out.extend_from_slice(&self.block_bytes.to_le_bytes());
    }

    pub(crate) fn read(input: &mut Input<'_>) -> Option<ColumnSpan> {
        let span = ColumnSpan { table_at: input.u64()?, raw_len: input.u64()?, block_bytes: input.u32()? };
        (span.raw_len == 0 || (1..=BLOCK_BYTES_MAX).contains(&span.block_bytes)).then_some(span)
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.raw_len.div_ceil(u64::from(self.block_bytes.max(1)))
    }

    /// Raw bytes of a block; `None` when there is no such block.
    fn raw_len_of(&self, block: u64) -> Option<usize> {
        let from = block.checked_mul(u64::from(self.block_bytes))?;
        let left = self.raw_len.checked_sub(from).filter(|left| *left > 0)?;
        usize::try_from(left.min(u64::from(self.block_bytes))).ok()
    }
}

/// A reader refuses larger blocks: they would be damage.
pub(crate) const BLOCK_BYTES_MAX: u32 = 1 << 20;

/// A file that is written from front to back, with its position.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) file: Arc<dyn File>,
    flushed: u64,
    buffer: Vec<u8>,
}

impl Output {
    /// Bytes gathered before they are written.
    const BUFFER_BYTES: usize = 1 << 20;

    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        Output { file, flushed: 0, buffer: Vec::new() }
    }

    pub(crate) fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= Self::BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.flushed)?;
        self.flushed = self.position();
        self.buffer.clear();
        Ok(())
    }
}

/// Writes one column; only one at a time into an [`Output`].
#[derive(Debug)]
pub(crate) struct ColumnWriter {
    codec: Codec,
    block_bytes: usize,
    block: Vec<u8>,
    table: Vec<u8>,
    raw_len: u64,
}

impl ColumnWriter {
    pub(crate) fn new(codec: Codec, block_bytes: u32) -> Self {
        let block_bytes = block_bytes.clamp(1, BLOCK_BYTES_MAX) as usize;
        ColumnWriter { codec, block_bytes, block: Vec::with_capacity(block_bytes), table: Vec::new(), raw_len: 0 }
    }

    /// Where the next byte will be in the stream.
    pub(crate) fn position(&self) -> u64 {
        self.raw_len
    }

    pub(crate) fn put(&mut self, out: &mut Output, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.block_bytes - self.block.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.block.extend_from_slice(now);
            self.raw_len += now.len() as u64;
            bytes = rest;
            if self.block.len() == self.block_bytes {
                self.end_block(out)?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self, out: &mut Output) -> Result<()> {
        let (codec, stored) = self.codec.compress(&self.block)?;
        let entry = BlockEntry {
            at: out.position(),
            stored_len: stored.len() as u32,
            codec: u32::from(codec),
            crc: crc32c::crc32c(&stored),
        };
        entry.write(&mut self.table);
        out.put(&stored)?;
        self.block.clear();
        Ok(())
    }

    /// Writes the last block and the block table.
    pub(crate) fn finish(mut self, out: &mut Output) -> Result<ColumnSpan> {
        if !self.block.is_empty() {
            self.end_block(out)?;
        }
        let span = ColumnSpan { table_at: out.position(), raw_len: self.raw_len, block_bytes: self.block_bytes as u32 };
        out.put(&self.table)?;
        Ok(span)
    }
}

/// `Corrupt`, with file and offset.
pub(crate) fn corrupt(path: &Path, offset: u64, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{} at {offset}: {what}", path.display()))
}

/// Reads a block of a column into `raw`, whose old contents are gone also after an error.
pub(crate) fn read_block(file: &dyn File, path: &Path, span: &ColumnSpan, block: u64, raw: &mut Vec<u8>) -> Result<()> {
    let result = UNPACKER.with_borrow_mut(|unpacker| unpacker.read_block(file, path, span, block, raw));
    if result.is_err() {
        raw.clear();
    }
    result
}

thread_local! {
    static UNPACKER: RefCell<Unpacker> = const { RefCell::new(Unpacker { zstd: None, stored: Vec::new() }) };
}

/// What a thread keeps for reading blocks: making it anew costs as much as a small block itself.
struct Unpacker {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// A block as it is stored: at most [`BLOCK_BYTES_MAX`].
    stored: Vec<u8>,
}

impl Unpacker {
    /// Leaves anything in `raw` after an error.
    fn read_block(
        &mut self,
        file: &dyn File,
        path: &Path,
        span: &ColumnSpan,
        block: u64,
        raw: &mut Vec<u8>,
    ) -> Result<()> {
        let damaged_entry = |at: u64| corrupt(path, at, format_args!("the table entry of block {block} is damaged"));
        let raw_len = span.raw_len_of(block).ok_or_else(|| damaged_entry(span.table_at))?;
        let entry_at = block
            .checked_mul(BLOCK_ENTRY_BYTES as u64)
            .and_then(|offset| span.table_at.checked_add(offset))
            .ok_or_else(|| damaged_entry(span.table_at))?;
        let mut entry = [0; BLOCK_ENTRY_BYTES];
        read_or_corrupt(file, path, &mut entry, entry_at)?;
        let entry = BlockEntry::read(&entry).ok_or_else(|| damaged_entry(entry_at))?;
        let damaged = || corrupt(path, entry.at, format_args!("block {block} does not match its checksum"));
        if entry.stored_len as usize > raw_len {
            return Err(damaged());
        }
        // A buffer that has the right length already is not filled with zeros first.
        raw.resize(raw_len, 0);
        self.stored.resize(entry.stored_len as usize, 0);
        read_or_corrupt(file, path, &mut self.stored, entry.at)?;
        if crc32c::crc32c(&self.stored) != entry.crc {
            return Err(damaged());
        }
        let len = match entry.codec {
            0 => {
                std::mem::swap(raw, &mut self.stored);
                raw.len()
            }
            1 => self.unpack_lz4(raw).map_err(|_| damaged())?,
            2 => self.unpack_zstd(raw).map_err(|_| damaged())?,
            codec => return Err(corrupt(path, entry_at, format_args!("block {block} has the unknown codec {codec}"))),
        };
        if len == raw_len { Ok(()) } else { Err(damaged()) }
    }

    fn unpack_lz4(&mut self, raw: &mut [u8]) -> io::Result<usize> {
        let raw_len = i32::try_from(raw.len()).map_err(io::Error::other)?;
        lz4::block::decompress_to_buffer(&self.stored, Some(raw_len), raw)
    }

    fn unpack_zstd(&mut self, raw: &mut [u8]) -> io::Result<usize> {
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => self.zstd.insert(zstd::bulk::Decompressor::new()?),
        };
        zstd.decompress_to_buffer(self.stored.as_slice(), raw)
    }
}

/// Reads exactly; a file that ends too early is damage.
pub(crate) fn read_or_corrupt(file: &dyn File, path: &Path, buf: &mut [u8], at: u64) -> Result<()> {
    file.read_exact_at(buf, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => corrupt(path, at, "the file ends too early"),
        _ => Error::from(error).context(path.display()),
    })
}
