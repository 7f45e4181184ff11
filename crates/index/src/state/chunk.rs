//! Up to [`CHUNK_ROWS_MAX`] entries of one mailbox, as columns. A chunk that is shared never changes: who changes it
//! gets a copy (`Arc::make_mut`), so a view costs nothing and two views compare by pointer.
//!
//! Invariants: UIDs rise strictly; all columns have the same length; the bytes of a mapped chunk were verified when the
//! checkpoint was opened.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use model::{DateTime, EmailId, Flags, ModSeq, SystemFlag, Uid, UidSet};
use platform::Mapped;

use super::packed::{Cell, Packed, Packer, Place, Spec, layout};

/// Entries in a chunk at most.
pub(crate) const CHUNK_ROWS_MAX: usize = 1024;

/// One entry: a message's place in one mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number in the mailbox.
    pub uid: Uid,
    /// Its flags; what the keyword bits mean is the mailbox's keyword table.
    pub flags: Flags,
    /// When it was last changed.
    pub modseq: ModSeq,
    /// INTERNALDATE (RFC 9051 §2.3.3).
    pub internal_date: DateTime,
    /// SAVEDATE (RFC 8514), seconds since 1970 UTC.
    pub save_date: i64,
    /// RFC822.SIZE, octets.
    pub size: u32,
    /// The message.
    pub email_id: EmailId,
}

/// The columns, in their order on disk.
pub(crate) const COLUMNS: [Spec; 8] = [
    Spec { name: "flags", bytes: 16, rises: false },
    Spec { name: "modseq", bytes: 8, rises: false },
    Spec { name: "internal_date", bytes: 8, rises: false },
    Spec { name: "save_date", bytes: 8, rises: false },
    Spec { name: "email_id", bytes: 8, rises: true },
    Spec { name: "uid", bytes: 4, rises: true },
    Spec { name: "size", bytes: 4, rises: false },
    Spec { name: "zone", bytes: 2, rises: false },
];

/// The columns that a flag change leaves alone.
#[derive(Clone, Debug, Default)]
struct Fixed {
    internal_date: Vec<i64>,
    save_date: Vec<i64>,
    email_id: Vec<u64>,
    uid: Vec<u32>,
    size: Vec<u32>,
    zone: Vec<i16>,
}

#[derive(Clone, Debug)]
struct Owned {
    flags: Vec<u128>,
    modseq: Vec<u64>,
    fixed: Arc<Fixed>,
}

#[derive(Clone, Debug)]
enum Columns {
    Owned(Owned),
    /// In a checkpoint that was verified when it was opened.
    Mapped {
        bytes: Mapped,
        places: Box<[Place; 8]>,
        /// All columns.
        range: Range<usize>,
        rows: usize,
    },
}

/// The columns of up to [`CHUNK_ROWS_MAX`] entries.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    columns: Columns,
}

/// One column of a chunk, wherever it is.
#[derive(Clone, Copy)]
enum Column<'a, T> {
    Owned(&'a [T]),
    Packed(Packed<'a, T>),
}

impl<T: Cell> Column<'_, T> {
    #[inline]
    fn get(self, index: usize) -> T {
        match self {
            Column::Owned(cells) => cells[index],
            Column::Packed(cells) => cells.get(index),
        }
    }

    /// Appends these rows to `out`.
    fn copy(self, rows: &[Range<usize>], out: &mut Vec<T>) {
        out.reserve(rows.iter().map(Range::len).sum());
        for rows in rows {
            match self {
                Column::Owned(cells) => out.extend_from_slice(&cells[rows.clone()]),
                Column::Packed(cells) => out.extend(rows.clone().map(|row| cells.get(row))),
            }
        }
    }
}

/// One column, the one of this number among [`COLUMNS`].
macro_rules! column {
    ($column:ident, $type:ty, $number:literal, |$owned:ident| $vec:expr) => {
        #[inline]
        fn $column(&self) -> Column<'_, $type> {
            match &self.columns {
                Columns::Owned($owned) => Column::Owned(&$vec),
                Columns::Mapped { bytes, places, rows, .. } => {
                    Column::Packed(Packed::at(bytes, places[$number], *rows, COLUMNS[$number].rises))
                }
            }
        }
    };
}

/// All columns of a chunk.
struct Cells<'a> {
    flags: Column<'a, u128>,
    modseq: Column<'a, u64>,
    internal_date: Column<'a, i64>,
    save_date: Column<'a, i64>,
    email_id: Column<'a, u64>,
    uid: Column<'a, u32>,
    size: Column<'a, u32>,
    zone: Column<'a, i16>,
}

impl Cells<'_> {
    #[inline]
    fn row(&self, index: usize) -> Row {
        Row {
            uid: Uid::new(self.uid.get(index)).expect("no row has UID 0: they are checked when they enter"),
            flags: Flags(self.flags.get(index)),
            modseq: ModSeq(self.modseq.get(index)),
            internal_date: DateTime {
                unix_seconds: self.internal_date.get(index),
                offset_minutes: self.zone.get(index).clamp(-1439, 1439),
            },
            save_date: self.save_date.get(index),
            size: self.size.get(index),
            email_id: EmailId(self.email_id.get(index)),
        }
    }
}

impl Chunk {
    pub(crate) fn new() -> Self {
        let owned = Owned { flags: Vec::new(), modseq: Vec::new(), fixed: Arc::default() };
        Chunk { columns: Columns::Owned(owned) }
    }

    /// The chunk whose columns begin at `at` of a verified file; `None` when they would not lie inside it.
    pub(crate) fn mapped(bytes: Mapped, at: usize, rows: usize) -> Option<Self> {
        let (places, range) = layout(&bytes, at, rows, &COLUMNS)?;
        let columns = Columns::Mapped { bytes, places: Box::new(places), range, rows };
        (rows <= CHUNK_ROWS_MAX).then_some(Chunk { columns })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.columns {
            Columns::Owned(owned) => owned.flags.len(),
            Columns::Mapped { rows, .. } => *rows,
        }
    }

    column!(flags_column, u128, 0, |o| o.flags);
    column!(modseq_column, u64, 1, |o| o.modseq);
    column!(internal_date_column, i64, 2, |o| o.fixed.internal_date);
    column!(save_date_column, i64, 3, |o| o.fixed.save_date);
    column!(email_id_column, u64, 4, |o| o.fixed.email_id);
    column!(uid_column, u32, 5, |o| o.fixed.uid);
    column!(size_column, u32, 6, |o| o.fixed.size);
    column!(zone_column, i16, 7, |o| o.fixed.zone);

    pub(crate) fn uid(&self, index: usize) -> u32 {
        self.uid_column().get(index)
    }

    pub(crate) fn email_id(&self, index: usize) -> u64 {
        self.email_id_column().get(index)
    }

    #[inline]
    pub(crate) fn row(&self, index: usize) -> Row {
        self.cells().row(index)
    }

    /// These rows.
    pub(crate) fn rows(&self, rows: impl Iterator<Item = usize>) -> impl Iterator<Item = Row> {
        let cells = self.cells();
        rows.map(move |row| cells.row(row))
    }

    #[inline]
    fn cells(&self) -> Cells<'_> {
        Cells {
            flags: self.flags_column(),
            modseq: self.modseq_column(),
            internal_date: self.internal_date_column(),
            save_date: self.save_date_column(),
            email_id: self.email_id_column(),
            uid: self.uid_column(),
            size: self.size_column(),
            zone: self.zone_column(),
        }
    }

    /// The index of the first row at `from` or behind it whose UID is not below `uid`: quick when that is near.
    pub(crate) fn lower_bound(&self, from: usize, uid: u32) -> usize {
        match self.uid_column() {
            Column::Owned(cells) => lower_bound(cells.len(), from, |row| cells[row] < uid),
            Column::Packed(cells) => lower_bound(self.len(), from, |row| cells.get(row) < uid),
        }
    }

    /// The UIDs of the rows that have one of these flags, rising.
    pub(crate) fn uids_with(&self, flags: Flags) -> impl Iterator<Item = u32> {
        let (column, uids) = (self.flags_column(), self.uid_column());
        (0..self.len()).filter(move |row| Flags(column.get(*row)).intersects(flags)).map(move |row| uids.get(row))
    }

    /// UID, flags and modseq of these rows.
    pub(crate) fn flags(&self, rows: Range<usize>) -> impl Iterator<Item = (u32, Flags, ModSeq)> {
        let (uids, flags, modseqs) = (self.uid_column(), self.flags_column(), self.modseq_column());
        rows.map(move |row| (uids.get(row), Flags(flags.get(row)), ModSeq(modseqs.get(row))))
    }

    /// Adds the UIDs of these rows to `uids`.
    pub(crate) fn collect_uids(&self, rows: Range<usize>, uids: &mut UidSet) {
        let column = self.uid_column();
        let Some(last) = rows.end.checked_sub(1).filter(|last| rows.start <= *last) else { return };
        if (column.get(last) - column.get(rows.start)) as usize == last - rows.start {
            // None is missing in between: the usual case in a mailbox that only grows.
            uids.insert_range(column.get(rows.start), column.get(last));
        } else {
            uids.extend(rows.map(|row| column.get(row)));
        }
    }

    /// The rows that changed after `modseq`, rising.
    pub(crate) fn changed_since(&self, modseq: u64) -> impl Iterator<Item = usize> {
        let column = self.modseq_column();
        (0..self.len()).filter(move |row| column.get(*row) > modseq)
    }

    fn owned_mut(&mut self) -> &mut Owned {
        if let Columns::Mapped { rows, .. } = self.columns {
            *self = self.with_rows(slice::from_ref(&(0..rows)));
        }
        match &mut self.columns {
            Columns::Owned(owned) => owned,
            Columns::Mapped { .. } => unreachable!("replaced by a copy above"),
        }
    }

    pub(crate) fn push(&mut self, row: &Row) {
        let owned = self.owned_mut();
        owned.flags.push(row.flags.0);
        owned.modseq.push(row.modseq.0);
        let fixed = Arc::make_mut(&mut owned.fixed);
        fixed.internal_date.push(row.internal_date.unix_seconds);
        fixed.save_date.push(row.save_date);
        fixed.email_id.push(row.email_id.0);
        fixed.uid.push(row.uid.get());
        fixed.size.push(row.size);
        fixed.zone.push(row.internal_date.offset_minutes);
    }

    /// Appends all rows of another chunk.
    pub(crate) fn append(&mut self, from: &Chunk) {
        self.extend(from, slice::from_ref(&(0..from.len())));
    }

    fn extend(&mut self, from: &Chunk, rows: &[Range<usize>]) {
        let owned = self.owned_mut();
        from.flags_column().copy(rows, &mut owned.flags);
        from.modseq_column().copy(rows, &mut owned.modseq);
        let fixed = Arc::make_mut(&mut owned.fixed);
        from.internal_date_column().copy(rows, &mut fixed.internal_date);
        from.save_date_column().copy(rows, &mut fixed.save_date);
        from.email_id_column().copy(rows, &mut fixed.email_id);
        from.uid_column().copy(rows, &mut fixed.uid);
        from.size_column().copy(rows, &mut fixed.size);
        from.zone_column().copy(rows, &mut fixed.zone);
    }

    /// A chunk of these rows of this one.
    pub(crate) fn with_rows(&self, rows: &[Range<usize>]) -> Chunk {
        let mut chunk = Chunk::new();
        chunk.extend(self, rows);
        chunk
    }

    /// Gives rows these flags and this modseq, but for those that a later change gave a larger one. The summary follows.
    pub(crate) fn set_flags(&mut self, rows: Range<usize>, flags: Flags, modseq: ModSeq, summary: &mut Summary) {
        let owned = self.owned_mut();
        let cells = owned.flags[rows.clone()].iter_mut().zip(&mut owned.modseq[rows]);
        for (old, since) in cells.filter(|(_, since)| **since <= modseq.0) {
            summary.reflag(Flags(*old), flags, modseq);
            (*old, *since) = (flags.0, modseq.0);
        }
    }

    /// Writes the columns as they are on disk.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match &self.columns {
            Columns::Mapped { bytes, range, .. } => {
                let columns = bytes.get(range.clone());
                out.extend_from_slice(columns.expect("checked when the chunk was mapped"));
            }
            Columns::Owned(Owned { flags, modseq, fixed }) => {
                let mut packer = Packer::default();
                packer.column(&COLUMNS[0], flags.iter().copied());
                packer.column(&COLUMNS[1], modseq.iter().copied());
                packer.column(&COLUMNS[2], fixed.internal_date.iter().copied());
                packer.column(&COLUMNS[3], fixed.save_date.iter().copied());
                packer.column(&COLUMNS[4], fixed.email_id.iter().copied());
                packer.column(&COLUMNS[5], fixed.uid.iter().copied());
                packer.column(&COLUMNS[6], fixed.size.iter().copied());
                packer.column(&COLUMNS[7], fixed.zone.iter().copied());
                packer.finish(out);
            }
        }
    }
}

/// The first row of `len` at `from` or behind it that is not `below`; those that are come before those that are not.
fn lower_bound(len: usize, from: usize, below: impl Fn(usize) -> bool) -> usize {
    /// So many are looked at without a branch between them.
    const NEAR: usize = 16;
    let near = (from..len).take(NEAR).filter(|row| below(*row)).count();
    let (mut from, mut to) = (from + near, if near < NEAR { from + near } else { len });
    while from < to {
        let middle = from.midpoint(to);
        if below(middle) { from = middle + 1 } else { to = middle }
    }
    from
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
    /// The largest of the rows' modseqs.
    pub(crate) modseq_last: u64,
}

impl Summary {
    pub(crate) fn of(chunk: &Chunk) -> Self {
        let rows = chunk.len();
        let uid = |row: Option<usize>| row.map_or(0, |row| chunk.uid(row));
        let (flags, sizes, modseqs) = (chunk.flags_column(), chunk.size_column(), chunk.modseq_column());
        let (unseen, deleted) = (0..rows).map(|row| Flags(flags.get(row))).fold((0, 0), |(unseen, deleted), flags| {
            let has = |flag| u32::from(flags.has(flag));
            (unseen + 1 - has(SystemFlag::Seen), deleted + has(SystemFlag::Deleted))
        });
        Summary {
            rows: rows as u32,
            uid_first: uid((rows > 0).then_some(0)),
            uid_last: uid(rows.checked_sub(1)),
            unseen,
            deleted,
            octets: (0..rows).map(|row| u64::from(sizes.get(row))).sum(),
            modseq_last: (0..rows).map(|row| modseqs.get(row)).max().unwrap_or(0),
        }
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
