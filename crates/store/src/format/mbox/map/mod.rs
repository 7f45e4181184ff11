//! The map of an mbox: where each message is, which one of the log it is, and what its fields said when they were last seen.
//!
//! It is derived: without it the file is scanned and its messages are found again by their digests. On disk it is a file of fixed-width rows
//! in the order of the mbox (`docs/format-index.md` has the bytes), memory-mapped and verified when it is opened; what happens since
//! is kept in pages of rows that were copied from it or added, until [`Map::save`] writes all anew.
//!
//! Invariants:
//! - Places follow each other: the next one begins where the one before says, and their order is that of the file.
//! - A clone is cheap and never changes, so that readers may keep one while the map goes on.
//! - A file that is not whole is none: every octet is under a checksum.

mod build;
mod layout;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use model::{EmailId, Error, ErrorKind, ModSeq, Result};
use platform::{Disk, Mapped};

pub use self::build::MapBuilder;
use self::build::not_adjacent;
use self::layout::{MAP_HEADER_BYTES, ROW_BYTES, Row, Rows, base_for, id_of, pack, start_of, unpack};
use super::identity::Identity;
use super::place::Place;

/// Rows that are copied together when one of them changes.
const PAGE_ROWS: usize = 1024;

/// What a map says of the file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The file when it was last looked at.
    pub identity: Identity,
    /// See [`super::identity::tail_digest`].
    pub tail_digest: u64,
    /// So many places cannot change when something is added to the file: a scan of what was added begins at the next one.
    pub settled: u32,
    /// The fields of the file show every change of the log up to this one.
    pub written: ModSeq,
    /// The file had been changed in the instant of that look: a second change of that instant need not show in its identity.
    pub is_fresh: bool,
    /// Only what was added was read when the file was found to have grown. What others changed before it at the same time is not known yet.
    pub is_grown: bool,
}

impl Facts {
    /// Whether everything is as the map has it, as long as the identity is the same.
    pub fn is_sure(&self) -> bool {
        !self.is_fresh && !self.is_grown
    }
}

/// A map; see the module.
#[derive(Clone, Debug)]
pub struct Map {
    facts: Facts,
    mapped: Option<Mapped>,
    pages: Vec<Page>,
    len: usize,
    /// Where the last message ends.
    end: u64,
    /// `None` as long as no place has an email id.
    base: Option<u64>,
    /// See [`Rows::rises`].
    rises: bool,
    /// The rows by email id, when these do not rise; made when somebody asks.
    order: OnceLock<Arc<[u32]>>,
    changes: usize,
    /// See [`Map::is_known`].
    is_known: bool,
}

#[derive(Clone, Debug)]
enum Page {
    /// As in the file.
    Mapped,
    Owned(Arc<Vec<Row>>),
}

impl Map {
    /// Opens the map at `path` and verifies it. `None`: there is none that can be used.
    pub fn open(disk: &dyn Disk, path: &Path) -> Option<Map> {
        let mapped = disk.map(path).ok()?;
        let (facts, rows) = layout::read(&mapped)?;
        Some(Map { is_known: false, ..Map::of(Some(mapped), facts, &rows) })
    }

    /// Of a file without messages.
    pub fn empty(facts: Facts) -> Map {
        Map::of(None, facts, &Rows { count: 0, crc: 0, base: 0, end: 0, rises: true })
    }

    fn of(mapped: Option<Mapped>, facts: Facts, rows: &Rows) -> Map {
        let len = rows.count as usize;
        let mut map = Map {
            facts,
            mapped,
            pages: vec![Page::Mapped; len.div_ceil(PAGE_ROWS)],
            len,
            end: rows.end,
            base: Some(rows.base),
            rises: rows.rises,
            order: OnceLock::new(),
            changes: 0,
            is_known: true,
        };
        if rows.base == 0 && (0..len).all(|n| map.email_id(n).is_none()) {
            map.base = None;
        }
        map
    }

    /// How many places there are, those of pseudo messages included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it says of the file as a whole.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Changes what it says of the file as a whole: after a look at it, or a write to it.
    pub fn set_facts(&mut self, facts: Facts) {
        if self.facts != facts {
            self.facts = facts;
            self.facts.settled = facts.settled.min(self.len as u32);
            self.changes += 1;
        }
    }

    /// Where the last message ends: the length of the file when all of it was mapped.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether every place has an entry in the log. Of a map that was opened that is not known: after a power cut it may be older than the log.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Every place has an entry in the log.
    pub fn set_known(&mut self) {
        self.is_known = true;
    }

    /// What it says of the file is not to be believed: it has to be read.
    pub fn distrust(&mut self) {
        self.facts.identity.inode = 0;
        self.changes += 1;
    }

    /// How many changes were made since it was opened, built or saved.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Where the `n`th message begins, which may be the one behind the last.
    fn start(&self, n: usize) -> u64 {
        if n < self.len { self.row(n).map_or(self.end, start_of) } else { self.end }
    }

    fn row(&self, n: usize) -> Option<&Row> {
        if n >= self.len {
            return None;
        }
        match self.pages.get(n / PAGE_ROWS)? {
            Page::Mapped => {
                let at = MAP_HEADER_BYTES + n * ROW_BYTES;
                self.mapped.as_ref()?.get(at..)?.first_chunk()
            }
            Page::Owned(rows) => rows.get(n % PAGE_ROWS),
        }
    }

    /// The `n`th place, from 0, in the order of the file.
    pub fn place(&self, n: usize) -> Option<Place> {
        let row = self.row(n)?;
        Some(unpack(row, self.base.unwrap_or_default(), self.start(n + 1)))
    }

    /// All places, in the order of the file.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        (0..self.len).map_while(|n| self.place(n))
    }

    /// The messages of all places, in the order of the file: a small part of the time of [`Map::places`].
    pub fn email_ids(&self) -> impl Iterator<Item = Option<EmailId>> + '_ {
        let base = self.base.unwrap_or_default();
        let in_file = self.mapped.as_ref().and_then(|mapped| mapped.get(MAP_HEADER_BYTES..)).unwrap_or_default();
        let (in_file, _) = in_file.as_chunks::<ROW_BYTES>();
        let pages = self.pages.iter().enumerate().map(move |(page, rows)| match rows {
            Page::Mapped => in_file.get(page * PAGE_ROWS..self.len.min((page + 1) * PAGE_ROWS)).unwrap_or_default(),
            Page::Owned(rows) => rows,
        });
        pages.flatten().map(move |row| id_of(row, base))
    }

    fn email_id(&self, n: usize) -> Option<EmailId> {
        id_of(self.row(n)?, self.base.unwrap_or_default())
    }

    /// Where a message is; more than one place, in the order of the file, if it is there more than once.
    ///
    /// A binary search while email ids rise in the order of the file, as they mostly do; otherwise in a list that the first such
    /// question makes (4 octets a place).
    pub fn find(&self, id: EmailId) -> impl Iterator<Item = usize> + '_ {
        let order = if self.rises { None } else { Some(self.order()) };
        let at = move |k: usize| order.map_or(k, |order| order.get(k).map_or(k, |n| *n as usize));
        let (mut from, mut to) = (0, self.len);
        while from < to {
            let middle = from.midpoint(to);
            if self.email_id(at(middle)) < Some(id) { from = middle + 1 } else { to = middle }
        }
        (from..self.len).map(at).take_while(move |n| self.email_id(*n) == Some(id))
    }

    fn order(&self) -> &[u32] {
        self.order.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.len as u32).collect();
            order.sort_unstable_by_key(|n| (self.email_id(*n as usize), *n));
            order.into()
        })
    }

    /// The rows of a page, to be changed: copied from the file if they are there.
    fn page_mut(&mut self, page: usize) -> &mut Vec<Row> {
        if page >= self.pages.len() {
            self.pages.resize(page + 1, Page::Owned(Arc::default()));
        }
        if matches!(self.pages[page], Page::Mapped) {
            let first = page * PAGE_ROWS;
            let last = self.len.min(first + PAGE_ROWS);
            let rows = (first..last).map_while(|n| self.row(n).copied()).collect();
            self.pages[page] = Page::Owned(Arc::new(rows));
        }
        match &mut self.pages[page] {
            Page::Owned(rows) => Arc::make_mut(rows),
            Page::Mapped => unreachable!("replaced by a copy above"),
        }
    }

    /// Forgets the `n`th place and all behind it: they will be found anew.
    pub fn truncate_from(&mut self, n: usize) {
        if n >= self.len {
            return;
        }
        self.end = self.start(n);
        self.len = n;
        self.pages.truncate(n.div_ceil(PAGE_ROWS));
        if let Some(Page::Owned(rows)) = self.pages.last_mut() {
            Arc::make_mut(rows).truncate(n - (n - 1) / PAGE_ROWS * PAGE_ROWS);
        }
        self.facts.settled = self.facts.settled.min(n as u32);
        self.ids_changed();
    }

    fn ids_changed(&mut self) {
        self.order = OnceLock::new();
        self.changes += 1;
        if self.len == 0 {
            (self.rises, self.base) = (true, None);
        }
    }

    /// Adds the next place of the file; `Invalid` as in [`MapBuilder::push`].
    pub fn push(&mut self, place: &Place) -> Result<()> {
        if self.len > 0 && place.start != self.end {
            return Err(not_adjacent(place.start, self.end));
        }
        if self.len >= u32::MAX as usize {
            return Err(Error::new(ErrorKind::Invalid, "too many messages in the mbox"));
        }
        let base = self.base.or(place.email_id.map(base_for));
        let row = pack(place, base.unwrap_or_default())?;
        self.base = base;
        if let Some(last) = self.len.checked_sub(1) {
            self.rises &= self.email_id(last) <= place.email_id;
        }
        self.page_mut(self.len / PAGE_ROWS).push(row);
        self.len += 1;
        self.end = place.next;
        self.ids_changed();
        Ok(())
    }

    /// Writes all of it beside `path`, puts it in its place and goes on with it. On an error both the map and what was at `path` are as they
    /// were. Memory: some hundred KiB.
    pub fn save(&mut self, disk: &Arc<dyn Disk>, path: &Path) -> Result<()> {
        let mut builder = MapBuilder::create(disk, path)?.with_base(self.base);
        for n in 0..self.len {
            let Some(row) = self.row(n) else { break };
            builder.push_row(row, self.start(n + 1))?;
        }
        *self = Map { is_known: self.is_known, ..builder.finish(&self.facts)? };
        Ok(())
    }
}
