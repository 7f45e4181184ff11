//! Writing a map: rows as they come, the header last, then the rename that makes it the map.
//!
//! Invariant: nothing is synced. A map that a power cut tore fails its checksum and counts as none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Result};
use platform::{Disk, File, OpenMode, parent_of};

use super::layout::{MAP_HEADER_BYTES, ROW_BYTES, Row, Rows, base_for, id_of, pack, write_header};
use super::{Facts, Map};
use crate::format::mbox::place::Place;

/// Octets gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// Builds a map place by place, in bounded memory.
#[derive(Debug)]
pub struct MapBuilder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    temporary: PathBuf,
    file: Arc<dyn File>,
    buffer: Vec<u8>,
    written: u64,
    rows: Rows,
    base: Option<u64>,
    last: Option<EmailId>,
}

impl MapBuilder {
    /// Begins a map that will be `path` when it is finished. Until then it is written beside it, and what is there stays the
    /// map. One at a time for each path.
    pub fn create(disk: &Arc<dyn Disk>, path: &Path) -> Result<MapBuilder> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        disk.create_dir_all(parent_of(path))?;
        // Not written over: a map that was once given this name could still be in use.
        match disk.remove(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let file = disk.open(&temporary, OpenMode::CreateNew)?;
        Ok(MapBuilder {
            disk: Arc::clone(disk),
            path: path.to_owned(),
            temporary,
            file,
            buffer: vec![0; MAP_HEADER_BYTES],
            written: 0,
            rows: Rows { count: 0, crc: 0, base: 0, end: 0, rises: true },
            base: None,
            last: None,
        })
    }

    /// How many places it has.
    pub fn len(&self) -> usize {
        self.rows.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.count == 0
    }

    /// Adds the next place of the file. `Invalid`: it does not begin where the one before ends, or a map cannot say it (a `From ` line of 16 MiB,
    /// a header of 4 GiB, a file of 256 TiB); then the file cannot be served.
    pub fn push(&mut self, place: &Place) -> Result<()> {
        if self.rows.count > 0 && place.start != self.rows.end {
            return Err(not_adjacent(place.start, self.rows.end));
        }
        if self.base.is_none() {
            self.base = place.email_id.map(base_for);
        }
        let row = pack(place, self.base.unwrap_or_default())?;
        self.push_row(&row, place.next)
    }

    /// Begins to count email ids from `base`, for rows that do.
    pub(super) fn with_base(mut self, base: Option<u64>) -> Self {
        self.base = base;
        self
    }

    /// Adds a row as it is; the next one begins at `end`.
    pub(super) fn push_row(&mut self, row: &Row, end: u64) -> Result<()> {
        let id = id_of(row, self.base.unwrap_or_default());
        let count = self.rows.count.checked_add(1);
        self.rows.count = count.ok_or_else(|| Error::new(ErrorKind::Invalid, "too many messages in the mbox"))?;
        self.rows.rises &= self.last <= id;
        self.rows.end = end;
        self.rows.crc = crc32c::crc32c_append(self.rows.crc, row);
        self.last = id;
        self.buffer.extend_from_slice(row);
        if self.buffer.len() > BUFFER_BYTES - ROW_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(&self.buffer, self.written)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Puts it in the place of the map that was there, and opens it. On an error that one stays, or this one is there whole.
    pub fn finish(mut self, facts: &Facts) -> Result<Map> {
        self.rows.base = self.base.unwrap_or_default();
        let facts = Facts { settled: facts.settled.min(self.rows.count), ..*facts };
        self.flush()?;
        self.file.write_at(&write_header(&facts, &self.rows), 0)?;
        self.disk.rename(&self.temporary, &self.path)?;
        // Removed no more when this is dropped.
        self.temporary.clear();
        Ok(Map::of(Some(self.disk.map(&self.path)?), facts, &self.rows))
    }
}

impl Drop for MapBuilder {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // What stays is removed when the account is opened.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}

/// Why places cannot follow each other.
pub(super) fn not_adjacent(start: u64, end: u64) -> Error {
    Error::new(ErrorKind::Invalid, format!("a message at {start} cannot follow one that ends at {end}"))
}
