//! Up to [`CHUNK_ROWS_MAX`] entries of one mailbox: columns, which may be shared with other chunks, and what happened to their rows
//! since. So a flag change or an expunge costs a few bytes for each row of a chunk, not a copy of its columns.
//!
//! A chunk that is shared never changes: who changes it gets a copy (`Arc::make_mut`), so a view costs nothing.
//!
//! Invariants: the rows that are left rise; of columns in memory half are left at least, and one of [`ROWS_PER_SHARED_ROW`] in what was
//! expunged.

use std::ops::Range;
use std::sync::Arc;

use model::{EmailId, Flags, ModSeq, SystemFlag, UidSet};
use platform::Mapped;

use super::columns::{CHUNK_ROWS_MAX, Columns, Row, bounds, lower_bound};

/// A chunk has one mark at most for so many rows of its columns, and never more than their numbers can name.
const ROWS_PER_MARK: usize = 4;
/// What was expunged shares columns in memory when it is one of so many rows at least.
const ROWS_PER_SHARED_ROW: usize = 8;

/// The numbers of the rows of a full chunk.
static EVERY_ROW: [u16; CHUNK_ROWS_MAX] = {
    let mut rows = [0; CHUNK_ROWS_MAX];
    let mut row = 0;
    while row < CHUNK_ROWS_MAX {
        rows[row] = row as u16;
        row += 1;
    }
    rows
};

/// Up to [`CHUNK_ROWS_MAX`] entries; a clone shares the columns.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    columns: Columns,
    /// The rows of the columns that are left, rising; `None`: all.
    left: Option<Arc<Vec<u16>>>,
    /// Flags that rows were given since the columns were made.
    changed: Option<Arc<Changed>>,
}

/// Flags and modseqs instead of those in the columns.
#[derive(Clone, Debug)]
struct Changed {
    /// For each row of the columns 0, or one more than the index of its mark.
    numbers: Vec<u8>,
    /// The same for all rows that one transaction gave the same flags.
    marks: Vec<(Flags, ModSeq)>,
    /// Of the chunk before the first change: what the columns cannot have.
    before: Summary,
}

impl Changed {
    #[inline]
    fn mark(&self, row: usize) -> Option<(Flags, ModSeq)> {
        usize::from(self.numbers[row]).checked_sub(1).map(|mark| self.marks[mark])
    }
}

impl Chunk {
    pub(crate) fn new() -> Self {
        Chunk { columns: Columns::new(), left: None, changed: None }
    }

    /// The chunk whose columns begin at `at` of a verified file; `None` when they would not lie inside it.
    pub(crate) fn mapped(bytes: Mapped, at: usize, rows: usize) -> Option<Self> {
        Columns::mapped(bytes, at, rows).map(|columns| Chunk { columns, left: None, changed: None })
    }

    /// Whether its columns take no memory.
    #[cfg(test)]
    pub(crate) fn is_mapped(&self) -> bool {
        self.columns.rows_in_memory() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.left.as_ref().map_or_else(|| self.columns.len(), |left| left.len())
    }

    /// Where a row is in the columns.
    #[inline]
    fn at(&self, row: usize) -> usize {
        self.left.as_ref().map_or(row, |left| usize::from(left[row]))
    }

    /// The flags and the modseq of a row of the columns, if they are not there.
    #[inline]
    fn mark(&self, at: usize) -> Option<(Flags, ModSeq)> {
        self.changed.as_ref().and_then(|changed| changed.mark(at))
    }

    pub(crate) fn uid(&self, row: usize) -> u32 {
        self.columns.uid().get(self.at(row))
    }

    pub(crate) fn email_id(&self, row: usize) -> u64 {
        self.columns.email_id().get(self.at(row))
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> Row {
        let at = self.at(row);
        let row = self.columns.row(at);
        match self.mark(at) {
            Some((flags, modseq)) => Row { flags, modseq, ..row },
            None => row,
        }
    }

    /// All rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> {
        (0..self.len()).map(|row| self.row(row))
    }

    /// The messages of all rows.
    pub(crate) fn email_ids(&self) -> impl Iterator<Item = EmailId> + '_ {
        let ids = self.columns.email_id();
        (0..self.len()).map(move |row| EmailId(ids.get(self.at(row))))
    }

    /// The index of the first of these rows whose UID is not below `uid`, or the end.
    fn lower_bound(&self, rows: Range<usize>, uid: u32) -> usize {
        let Some(left) = self.left.as_deref() else { return self.columns.lower_bound(rows, uid) };
        let at = self.columns.lower_bound(0..self.columns.len(), uid);
        {
            let left = &left[rows.clone()];
            rows.start + lower_bound(left.len(), |row| usize::from(left[row]) < at)
        }
    }

    /// The UIDs of these rows.
    fn uids(&self, rows: impl Iterator<Item = usize>) -> impl Iterator<Item = u32> {
        let (uids, left) = (self.columns.uid(), self.left.as_deref().map(Vec::as_slice));
        rows.map(move |row| uids.get(left.map_or(row, |left| usize::from(left[row]))))
    }

    /// The size of a row, octets.
    fn size(&self, row: usize) -> u32 {
        self.columns.size().get(self.at(row))
    }

    /// Flags and modseq of these rows.
    pub(crate) fn marks(&self, rows: Range<usize>) -> impl Iterator<Item = (Flags, ModSeq)> {
        let (flags, modseqs) = (self.columns.flags(), self.columns.modseq());
        let (left, changed) = (self.left.as_deref().map(Vec::as_slice), self.changed.as_deref());
        rows.map(move |row| {
            let at = left.map_or(row, |left| usize::from(left[row]));
            let mark = changed.and_then(|changed| changed.mark(at));
            mark.unwrap_or_else(|| (Flags(flags.get(at)), ModSeq(modseqs.get(at))))
        })
    }

    /// The UIDs of the rows with \Deleted, rising.
    pub(crate) fn deleted_uids(&self) -> impl Iterator<Item = u32> {
        let is_deleted = |flags: Flags, _| flags.has(SystemFlag::Deleted);
        self.uids(self.rows_that(|before| before.deleted > 0, is_deleted).into_iter().map(usize::from))
    }

    /// The rows that changed after `since`, rising.
    pub(crate) fn changed_since(&self, since: ModSeq) -> impl Iterator<Item = usize> + use<> {
        let rows = self.rows_that(|before| before.modseq_last > since.0, |_, modseq| modseq > since);
        rows.into_iter().map(usize::from)
    }

    /// The rows that are wanted for their flags and modseq. The columns are read only when they can have one.
    fn rows_that(&self, columns_can: impl Fn(&Summary) -> bool, is_wanted: impl Fn(Flags, ModSeq) -> bool) -> Vec<u16> {
        let (flags, modseqs) = (self.columns.flags(), self.columns.modseq());
        let in_columns = |at| is_wanted(Flags(flags.get(at)), ModSeq(modseqs.get(at)));
        let left = self.left.as_deref().map(Vec::as_slice);
        let at = |row: usize| left.map_or(row, |left| usize::from(left[row]));
        let Some(changed) = &self.changed else { return picked(self.len(), |row| in_columns(at(row))) };
        let mut wanted = [false; 1 + u8::MAX as usize];
        for (wanted, (flags, modseq)) in wanted.iter_mut().skip(1).zip(&changed.marks) {
            *wanted = is_wanted(*flags, *modseq);
        }
        let number = |row| usize::from(changed.numbers[at(row)]);
        if columns_can(&changed.before) {
            picked(self.len(), |row| wanted[number(row)] || number(row) == 0 && in_columns(at(row)))
        } else {
            picked(self.len(), |row| wanted[number(row)])
        }
    }

    /// Whether a row can be appended without a copy of those that are there.
    pub(crate) fn is_own(&mut self) -> bool {
        self.is_plain() && self.columns.is_own()
    }

    /// Whether the columns say everything.
    fn is_plain(&self) -> bool {
        self.left.is_none() && self.changed.is_none()
    }

    /// The same rows, in columns of their own.
    fn flattened(&self) -> Chunk {
        let mut chunk = Chunk::new();
        chunk.append(self);
        chunk
    }

    fn flatten(&mut self) {
        if !self.is_plain() {
            *self = self.flattened();
        }
    }

    pub(crate) fn push(&mut self, row: &Row) {
        self.flatten();
        self.columns.push(row);
    }

    /// Appends all rows of another chunk.
    pub(crate) fn append(&mut self, from: &Chunk) {
        self.flatten();
        let len = self.len();
        self.columns.extend(&from.columns, from.left.as_ref().map(|left| left.as_slice()));
        if from.changed.is_some() {
            let marks = (0..from.len()).filter_map(|row| from.mark(from.at(row)).map(|mark| (row, mark)));
            marks.for_each(|(row, (flags, modseq))| self.columns.set_mark(len + row, flags, modseq));
        }
    }

    /// What is left without these rows, which rise; and only these.
    pub(crate) fn split(&self, gone: impl Iterator<Item = Range<usize>>) -> (Chunk, Chunk) {
        let (mut left, mut taken) = (Vec::with_capacity(self.len()), Vec::new());
        let all = self.left.as_deref().map_or(EVERY_ROW.as_slice(), Vec::as_slice);
        let put = |into: &mut Vec<u16>, rows: Range<usize>| into.extend_from_slice(&all[rows]);
        let mut from = 0;
        for gone in gone {
            put(&mut left, from..gone.start);
            from = gone.end;
            put(&mut taken, gone);
        }
        put(&mut left, from..self.len());
        let part = |rows| Chunk { left: Some(Arc::new(rows)), ..self.clone() };
        let (mut left, taken) = (part(left), part(taken));
        if left.len() * 2 < self.columns.rows_in_memory() {
            left.flatten();
        }
        (left, taken)
    }

    /// Whether this part of a chunk keeps columns in memory of which it has few rows.
    pub(crate) fn is_sparse(&self) -> bool {
        self.len() * ROWS_PER_SHARED_ROW < self.columns.rows_in_memory()
    }

    /// Gives rows these flags and this modseq, but for those that a later change gave a larger one. The summary follows.
    pub(crate) fn set_flags(
        &mut self,
        rows: impl Iterator<Item = usize>,
        flags: Flags,
        modseq: ModSeq,
        summary: &mut Summary,
    ) {
        let marks_max = (self.columns.len() / ROWS_PER_MARK).clamp(1, u8::MAX.into());
        if self.changed.as_ref().is_some_and(|changed| changed.marks.len() >= marks_max) {
            self.flatten();
        }
        let Chunk { columns, left, changed } = self;
        let left = left.as_deref().map(Vec::as_slice);
        let new = || Arc::new(Changed { numbers: vec![0; columns.len()], marks: Vec::new(), before: *summary });
        let changed = Arc::make_mut(changed.get_or_insert_with(new));
        changed.marks.push((flags, modseq));
        let is_after_columns = changed.before.modseq_last <= modseq.0;
        let (flags_before, modseqs_before) = (columns.flags(), columns.modseq());
        for row in rows {
            let at = left.map_or(row, |left| usize::from(left[row]));
            let mark = changed.mark(at);
            let is_after = match mark {
                Some((_, since)) => since <= modseq,
                None => is_after_columns || modseqs_before.get(at) <= modseq.0,
            };
            if is_after {
                let old = mark.map_or_else(|| Flags(flags_before.get(at)), |(flags, _)| flags);
                summary.reflag(old, flags, modseq);
                changed.numbers[at] = changed.marks.len() as u8;
            }
        }
    }

    /// Writes the columns as they are on disk.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.is_plain() { self.columns.write(out) } else { self.flattened().columns.write(out) }
    }
}

impl FromIterator<Row> for Chunk {
    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Self {
        let mut chunk = Chunk::new();
        rows.into_iter().for_each(|row| chunk.push(&row));
        chunk
    }
}

/// Those of `count` rows that are wanted. Without a branch for each, since which are cannot be foreseen.
fn picked(count: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<u16> {
    let mut rows = vec![0; count];
    let mut found = 0;
    for row in 0..count {
        rows[found] = row as u16;
        found += usize::from(is_wanted(row));
    }
    rows.truncate(found);
    rows
}

/// What is known of a chunk without touching its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) rows: u32,
    pub(crate) uid_first: u32,
    pub(crate) uid_last: u32,
    pub(crate) unseen: u32,
    pub(crate) deleted: u32,
    pub(crate) octets: u64,
    /// No row has a larger modseq; after an expunge none may have this one.
    pub(crate) modseq_last: u64,
}

impl Summary {
    #[cfg(test)]
    pub(crate) fn of(chunk: &Chunk) -> Self {
        let mut summary = Summary::default();
        chunk.rows().for_each(|row| summary.add(&row));
        summary
    }

    /// What is left when the rows of `gone` are taken away and those of `left`, one at least, remain.
    pub(crate) fn without(mut self, gone: &Chunk, left: &Chunk) -> Self {
        for (row, (flags, _)) in gone.marks(0..gone.len()).enumerate() {
            self.unseen = self.unseen.saturating_sub(u32::from(!flags.has(SystemFlag::Seen)));
            self.deleted = self.deleted.saturating_sub(u32::from(flags.has(SystemFlag::Deleted)));
            self.octets = self.octets.saturating_sub(u64::from(gone.size(row)));
        }
        let (first, last) = (left.uid(0), left.uid(left.len() - 1));
        Summary { rows: left.len() as u32, uid_first: first, uid_last: last, ..self }
    }

    /// The rows of a chunk behind those of this one.
    pub(crate) fn join(&mut self, next: &Summary) {
        self.rows += next.rows;
        self.uid_last = next.uid_last;
        self.unseen += next.unseen;
        self.deleted += next.deleted;
        self.octets += next.octets;
        self.modseq_last = self.modseq_last.max(next.modseq_last);
    }

    pub(crate) fn add(&mut self, row: &Row) {
        if self.rows == 0 {
            self.uid_first = row.uid.get();
        }
        self.rows += 1;
        self.uid_last = row.uid.get();
        self.unseen += u32::from(!row.flags.has(SystemFlag::Seen));
        self.deleted += u32::from(row.flags.has(SystemFlag::Deleted));
        self.octets += u64::from(row.size);
        self.modseq_last = self.modseq_last.max(row.modseq.0);
    }

    /// A row's flags changed, with this modseq.
    pub(crate) fn reflag(&mut self, before: Flags, after: Flags, modseq: ModSeq) {
        let has = |flags: Flags, flag| u32::from(flags.has(flag));
        self.unseen = (self.unseen + has(before, SystemFlag::Seen)).saturating_sub(has(after, SystemFlag::Seen));
        self.deleted =
            (self.deleted + has(after, SystemFlag::Deleted)).saturating_sub(has(before, SystemFlag::Deleted));
        self.modseq_last = self.modseq_last.max(modseq.0);
    }
}

/// A chunk in a mailbox's list.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) summary: Summary,
    /// Entries of the mailbox before this chunk.
    pub(crate) before: u32,
    pub(crate) chunk: Arc<Chunk>,
}

impl Slot {
    /// The UID of a row. Reads the chunk only when some between its first UID and its last are missing.
    pub(crate) fn uid(&self, row: usize) -> u32 {
        let Summary { rows, uid_first, uid_last, .. } = self.summary;
        if uid_last - uid_first == rows - 1 { uid_first + row as u32 } else { self.chunk.uid(row) }
    }

    /// The index of the first row at `from` or behind it whose UID is not below `uid`, which is not above the last one.
    pub(crate) fn lower_bound(&self, from: usize, uid: u32) -> usize {
        let Summary { rows, uid_first, uid_last, .. } = self.summary;
        let among = bounds(rows as usize, uid_first, uid_last, uid);
        let start = among.start.max(from);
        if start >= among.end { start } else { self.chunk.lower_bound(start..among.end, uid) }
    }

    /// UID, flags and modseq of these rows.
    pub(crate) fn flags(&self, rows: Range<usize>) -> impl Iterator<Item = (u32, Flags, ModSeq)> {
        let uids = rows.clone().map(|row| self.uid(row));
        uids.zip(self.chunk.marks(rows)).map(|(uid, (flags, modseq))| (uid, flags, modseq))
    }

    /// Adds the UIDs of these rows to `uids`.
    pub(crate) fn collect_uids(&self, rows: Range<usize>, uids: &mut UidSet) {
        if rows.is_empty() {
            return;
        }
        let (first, last) = (self.uid(rows.start), self.uid(rows.end - 1));
        if (last - first) as usize == rows.len() - 1 {
            uids.insert_range(first, last);
        } else {
            uids.extend(self.chunk.uids(rows));
        }
    }
}
