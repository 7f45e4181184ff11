//! Blobs derived from messages (structure, envelope, preview): kept beside each segment, in memory for a tail, made on the spot otherwise.
//!
//! A cache file is never needed: a missing, damaged or outdated one costs time only. It is therefore written without a
//! sync. Byte table: `docs/format-index.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Result};
use platform::{Env, File, OpenMode};

use crate::codec::Input;
use crate::layout::INDEX_DIR;
use crate::log::Log;
use crate::reader::{Block, BlockSource, MessageBytes, Place, Reader};
use crate::segment::Segment;
use crate::segment::column::{Codec, ColumnSpan, ColumnWriter, Output, read_block};
use crate::tail::Tail;

/// Blobs that [`crate::Derive`] may make of a message.
pub(crate) const DERIVED_COLUMNS_MAX: usize = 16;
/// The first bytes of a cache file.
pub(crate) const CACHE_MAGIC: u64 = u64::from_le_bytes(*b"MYCACH\x01\n");
/// Bytes of the header before the columns' spans.
pub(crate) const CACHE_HEADER_BYTES: usize = 24;
/// Bytes of the header for one column: the spans of its offsets and of its blobs.
pub(crate) const CACHE_SPANS_BYTES: usize = 40;
/// Raw bytes of a block.
const BLOCK_BYTES: u32 = 64 << 10;
/// A blob begins with this byte when the message has blobs at all.
const PRESENT: u8 = 1;

/// The blobs of one segment's messages.
#[derive(Debug)]
pub(crate) struct CacheFile {
    path: PathBuf,
    file: Arc<dyn File>,
    /// Of each column: eight bytes a row and one more, where its blobs begin; the blobs.
    columns: Vec<(ColumnSpan, ColumnSpan)>,
}

impl BlockSource for CacheFile {
    fn block(&self, span: &ColumnSpan, number: u64, raw: &mut Vec<u8>) -> Result<()> {
        read_block(&*self.file, &self.path, span, number, raw)
    }
}

fn path_of(dir: &Path, segment: &Segment) -> PathBuf {
    let name = segment.path.file_name().map(|name| name.to_string_lossy().replacen("segment", "cache", 1));
    dir.join(INDEX_DIR).join(name.unwrap_or_default())
}

/// Removes what was kept beside a segment that is gone.
pub(crate) fn remove(env: &Env, dir: &Path, segment: &Segment) {
    // What cannot be removed now is removed when the account is opened.
    let _ = env.disk.remove(&path_of(dir, segment));
}

impl CacheFile {
    /// Bytes of the header: fixed part, spans, checksum.
    fn header_bytes(columns: usize) -> usize {
        CACHE_HEADER_BYTES + columns * CACHE_SPANS_BYTES + 4
    }

    /// The cache of a segment; `None` when there is none of this version that can be used.
    fn open(env: &Env, dir: &Path, segment: &Segment, version: u32, columns: usize) -> Option<CacheFile> {
        let path = path_of(dir, segment);
        let file = env.disk.open(&path, OpenMode::Read).ok()?;
        let mut bytes = vec![0; Self::header_bytes(columns)];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        let mut input = Input(body);
        let is_ours = crc32c::crc32c(body) == u32::from_le_bytes(*crc)
            && input.u64()? == CACHE_MAGIC
            && input.u32()? == version
            && input.u32()? as usize == columns
            && input.u32()? == segment.trailer.rows;
        input.u32()?;
        let mut spans = Vec::with_capacity(columns);
        for _ in 0..columns {
            spans.push((ColumnSpan::read(&mut input)?, ColumnSpan::read(&mut input)?));
        }
        is_ours.then_some(CacheFile { path, file, columns: spans })
    }
}

/// The header of a cache file.
pub(crate) fn header(version: u32, rows: u32, columns: &[(ColumnSpan, ColumnSpan)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&CACHE_MAGIC.to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&(columns.len() as u32).to_le_bytes());
    out.extend_from_slice(&rows.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for (offsets, blobs) in columns {
        offsets.write(&mut out);
        blobs.write(&mut out);
    }
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// What a reader keeps of derived blobs.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    /// The blob of a message in a tail that was asked for last.
    kept: Option<Arc<[u8]>>,
    /// The message in a segment whose blobs were made last, and they.
    last: Option<EmailId>,
    made: Vec<Vec<u8>>,
    /// Of each column the last blocks of offsets and blobs.
    blocks: Vec<(Block<CacheFile>, Block<CacheFile>)>,
    scratch: Vec<u8>,
    /// The segment that was asked about last, and its cache: a lock for every message would be a tenth of the work.
    cache: Option<(Arc<Segment>, Arc<CacheFile>)>,
}

impl Derived {
    /// Takes the blob of a row from the segment's cache into `scratch`. `None`: there is none, or it is damaged.
    fn load(&mut self, log: &Log, segment: &Arc<Segment>, row: u32, column: usize) -> Option<()> {
        if !self.cache.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, segment)) {
            self.cache = Some((Arc::clone(segment), log.cache_of(segment)?));
        }
        let (_, cache) = self.cache.as_ref()?;
        let (offsets, blobs) = cache.columns.get(column)?;
        self.blocks.resize_with(cache.columns.len().max(self.blocks.len()), Default::default);
        let (offset_block, blob_block) = self.blocks.get_mut(column)?;
        let mut bounds = [0; 16];
        let mut filled = 0;
        let at = u64::from(row) * 8;
        let copy = &mut |piece: &[u8]| {
            if let Some(place) = bounds.get_mut(filled..filled + piece.len()) {
                place.copy_from_slice(piece);
                filled += piece.len();
            }
            Ok(())
        };
        if at + 16 > offsets.raw_len {
            return None;
        }
        offset_block.stream(cache, offsets, at..at + 16, copy).ok()?;
        let mut input = Input(&bounds);
        let (from, to) = (input.u64()?, input.u64()?);
        if from >= to || to > blobs.raw_len {
            return None;
        }
        self.scratch.clear();
        let scratch = &mut self.scratch;
        let gather = &mut |piece: &[u8]| {
            scratch.extend_from_slice(piece);
            Ok(())
        };
        blob_block.stream(cache, blobs, from..to, gather).ok()?;
        (self.scratch.first() == Some(&PRESENT)).then_some(())
    }
}

impl Reader {
    /// What [`crate::Derive`] made of a message: its `column`th blob. Made on the spot when it is not kept.
    pub fn derived(&mut self, id: EmailId, column: usize) -> Result<&[u8]> {
        match self.finder.place(id)? {
            Place::Segment(segment, _, row) => {
                if self.derived.last == Some(id) {
                    return self.made(column);
                }
                if self.derived.load(&self.log, segment, row, column).is_some() {
                    return Ok(self.derived.scratch.get(1..).unwrap_or_default());
                }
                if let Some(blob) = self.derive_from_header(id, column)? {
                    return Ok(self.derived.kept.insert(blob));
                }
                self.derived.last = None;
                self.derived.made = self.derive(id)?;
                self.derived.last = Some(id);
                self.made(column)
            }
            Place::Tail(tail, _) => {
                let blob = match tail.kept.find(id, column) {
                    Some(blob) => blob,
                    None => self.derive_and_keep(&tail, id, column)?,
                };
                Ok(self.derived.kept.insert(blob))
            }
        }
    }

    /// Makes a blob of a message in a tail, from its header alone where that is enough.
    fn derive_and_keep(&mut self, tail: &Tail, id: EmailId, column: usize) -> Result<Arc<[u8]>> {
        if let Some(blob) = self.derive_from_header(id, column)? {
            tail.kept.keep(id, column, &blob);
            return Ok(blob);
        }
        let mut wanted = None;
        for (number, blob) in self.derive(id)?.into_iter().enumerate() {
            let blob: Arc<[u8]> = blob.into();
            tail.kept.keep(id, number, &blob);
            if number == column {
                wanted = Some(blob);
            }
        }
        wanted.ok_or_else(|| no_column(column))
    }

    /// Makes a blob that needs nothing but the header; `None` for one that needs more.
    fn derive_from_header(&mut self, id: EmailId, column: usize) -> Result<Option<Arc<[u8]>>> {
        let Some(derive) = self.log.derive.clone() else { return Ok(None) };
        Ok(derive.derive_from_header(column, self.header(id)?).map(Arc::from))
    }

    fn made(&self, column: usize) -> Result<&[u8]> {
        self.derived.made.get(column).map(Vec::as_slice).ok_or_else(|| no_column(column))
    }

    /// Makes the blobs of a message.
    fn derive(&mut self, id: EmailId) -> Result<Vec<Vec<u8>>> {
        let derive = self.log.derive.clone();
        let derive = derive.ok_or_else(|| Error::new(ErrorKind::Invalid, "nothing is derived from messages here"))?;
        let info = self.info(id)?;
        derive.derive(&mut MessageBytes { reader: self, info, id })
    }
}

fn no_column(column: usize) -> Error {
    Error::new(ErrorKind::Invalid, format!("there is no derived column {column}"))
}

impl Log {
    /// The cache of a segment, if there is one that can be used. Looked for once, and again after it was made.
    pub(crate) fn cache_of(&self, segment: &Segment) -> Option<Arc<CacheFile>> {
        let derive = self.derive.as_ref()?;
        let mut cache = segment.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if cache.is_none() {
            let columns = derive.columns().min(DERIVED_COLUMNS_MAX);
            let found = CacheFile::open(&self.env, &self.dir, segment, derive.version(), columns);
            *cache = Some(found.map(Arc::new));
        }
        cache.clone().flatten()
    }

    /// Makes the cache of the first segment that has none. `None`: all have one. Otherwise the octets of its messages.
    pub(crate) fn build_cache(self: &Arc<Self>) -> Result<Option<u64>> {
        let Some(derive) = self.derive.clone() else { return Ok(None) };
        let layout = self.layout();
        let Some(segment) = layout.segments.iter().find(|segment| self.cache_of(segment).is_none()) else {
            return Ok(None);
        };
        self.env.disk.create_dir_all_durable(&self.dir.join(INDEX_DIR))?;
        let path = path_of(&self.dir, segment);
        let temporary = path.with_extension("new");
        let file = self.env.disk.open(&temporary, OpenMode::Create)?;
        file.set_len(0)?;
        let mut out = Output::new(Arc::clone(&file));
        let columns = derive.columns().min(DERIVED_COLUMNS_MAX);
        out.put(&vec![0; CacheFile::header_bytes(columns)])?;
        let mut writers: Vec<(ColumnWriter, ColumnWriter)> = Vec::new();
        let writer = || ColumnWriter::new(Codec::Lz4, BLOCK_BYTES);
        writers.resize_with(columns, || (writer(), writer()));
        let mut reader = self.reader();
        for row in segment.rows()? {
            let blobs = row.and_then(|row| reader.derive(row.email_id)).ok().filter(|blobs| blobs.len() == columns);
            for (n, (offsets, data)) in writers.iter_mut().enumerate() {
                offsets.put(&mut out, &data.position().to_le_bytes())?;
                match blobs.as_ref().and_then(|blobs| blobs.get(n)) {
                    Some(blob) => {
                        data.put(&mut out, &[PRESENT])?;
                        data.put(&mut out, blob)?;
                    }
                    None => data.put(&mut out, &[0])?,
                }
            }
        }
        let mut spans = Vec::new();
        for (mut offsets, data) in writers {
            offsets.put(&mut out, &data.position().to_le_bytes())?;
            spans.push((offsets.finish(&mut out)?, data.finish(&mut out)?));
        }
        out.flush()?;
        file.write_at(&header(derive.version(), segment.trailer.rows, &spans), 0)?;
        let cache = CacheFile { path, file, columns: spans };
        self.env.disk.rename(&temporary, &cache.path)?;
        *segment.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(Some(Arc::new(cache)));
        Ok(Some(segment.trailer.message_bytes))
    }
}

/// Removes caches that belong to no segment, and what was never finished.
pub(crate) fn remove_useless(env: &Env, dir: &Path, segments: &[Arc<Segment>]) {
    let index = dir.join(INDEX_DIR);
    let Ok(entries) = env.disk.list(&index) else { return };
    let wanted: Vec<PathBuf> = segments.iter().map(|segment| path_of(dir, segment)).collect();
    for entry in entries {
        let path = index.join(&entry.name);
        let name = entry.name.to_string_lossy();
        if name.ends_with(".new") || (name.starts_with("cache-") && !wanted.contains(&path)) {
            let _ = env.disk.remove(&path);
        }
    }
}
