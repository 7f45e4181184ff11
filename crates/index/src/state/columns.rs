//! The columns of up to [`CHUNK_ROWS_MAX`] entries: in memory, or mapped from a checkpoint.
//!
//! Invariants: UIDs rise strictly; all columns have the same length; columns that are shared never change; the bytes of mapped
//! ones were verified when the checkpoint was opened.

use std::ops::Range;
use std::sync::Arc;

use model::{DateTime, EmailId, Flags, ModSeq, Uid};
use platform::Mapped;

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

/// Bytes of one row on disk, all columns together.
pub(crate) const ROW_BYTES: usize = 4 + 16 + 8 + 8 + 2 + 8 + 4 + 8;

/// The columns, in their order on disk: name and bytes a row.
#[cfg(test)]
pub(crate) const COLUMNS: [(&str, usize); 8] = [
    ("flags", 16),
    ("modseq", 8),
    ("internal_date", 8),
    ("save_date", 8),
    ("email_id", 8),
    ("uid", 4),
    ("size", 4),
    ("zone", 2),
];

#[derive(Clone, Debug, Default)]
pub(super) struct Owned {
    flags: Vec<u128>,
    modseq: Vec<u64>,
    internal_date: Vec<i64>,
    save_date: Vec<i64>,
    email_id: Vec<u64>,
    uid: Vec<u32>,
    size: Vec<u32>,
    zone: Vec<i16>,
}

/// All columns of a chunk; a clone shares them.
#[derive(Clone, Debug)]
pub(super) enum Columns {
    Owned(Arc<Owned>),
    /// `rows * ROW_BYTES` bytes from `at` on, in the order of [`COLUMNS`].
    Mapped {
        bytes: Mapped,
        at: usize,
        rows: usize,
    },
}

/// A number as it stands on disk: `N` bytes, least significant first.
pub(super) trait Cell<const N: usize>: Copy {
    fn read(bytes: [u8; N]) -> Self;
}

macro_rules! cells {
    ($($type:ty: $bytes:literal),*) => {
        $(impl Cell<$bytes> for $type {
            fn read(bytes: [u8; $bytes]) -> Self {
                <$type>::from_le_bytes(bytes)
            }
        })*
    };
}

cells!(u128: 16, u64: 8, i64: 8, u32: 4, i16: 2);

/// One column, wherever it is.
#[derive(Clone, Copy)]
pub(super) enum Column<'a, T, const N: usize> {
    Owned(&'a [T]),
    Mapped(&'a [[u8; N]]),
}

impl<T: Cell<N>, const N: usize> Column<'_, T, N> {
    #[inline]
    pub(super) fn get(self, row: usize) -> T {
        match self {
            Column::Owned(cells) => cells[row],
            Column::Mapped(cells) => T::read(cells[row]),
        }
    }

    /// Appends these rows to `out`; `None`: all.
    fn copy(self, rows: Option<&[u16]>, out: &mut Vec<T>) {
        match (self, rows) {
            (Column::Owned(cells), None) => out.extend_from_slice(cells),
            (Column::Owned(cells), Some(rows)) => out.extend(rows.iter().map(|row| cells[usize::from(*row)])),
            (Column::Mapped(cells), None) => out.extend(cells.iter().map(|cell| T::read(*cell))),
            (Column::Mapped(cells), Some(rows)) => {
                out.extend(rows.iter().map(|row| T::read(cells[usize::from(*row)])));
            }
        }
    }
}

/// One column. `$before` is the bytes a row of the columns before this one.
macro_rules! column {
    ($column:ident, $type:ty, $bytes:literal, $before:literal) => {
        #[inline]
        pub(super) fn $column(&self) -> Column<'_, $type, $bytes> {
            match self {
                Columns::Owned(owned) => Column::Owned(&owned.$column),
                Columns::Mapped { bytes, at, rows } => {
                    let from = at + $before * rows;
                    let column = bytes.get(from..from + $bytes * rows);
                    Column::Mapped(column.expect("checked when the columns were mapped").as_chunks().0)
                }
            }
        }
    };
}

impl Columns {
    pub(super) fn new() -> Self {
        Columns::Owned(Arc::default())
    }

    /// The columns that begin at `at` of a verified file; `None` when they would not lie inside it.
    pub(super) fn mapped(bytes: Mapped, at: usize, rows: usize) -> Option<Self> {
        let end = at.checked_add(rows.checked_mul(ROW_BYTES)?)?;
        (end <= bytes.len() && rows <= CHUNK_ROWS_MAX).then_some(Columns::Mapped { bytes, at, rows })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Columns::Owned(owned) => owned.uid.len(),
            Columns::Mapped { rows, .. } => *rows,
        }
    }

    /// Rows that take memory: none of a mapped file does.
    pub(super) fn rows_in_memory(&self) -> usize {
        match self {
            Columns::Owned(owned) => owned.uid.len(),
            Columns::Mapped { .. } => 0,
        }
    }

    column!(flags, u128, 16, 0);
    column!(modseq, u64, 8, 16);
    column!(internal_date, i64, 8, 24);
    column!(save_date, i64, 8, 32);
    column!(email_id, u64, 8, 40);
    column!(uid, u32, 4, 48);
    column!(size, u32, 4, 52);
    column!(zone, i16, 2, 56);

    /// A row, with the flags and the modseq that it has here.
    #[inline]
    pub(super) fn row(&self, row: usize) -> Row {
        Row {
            uid: Uid::new(self.uid().get(row)).expect("no row has UID 0: they are checked when they enter"),
            flags: Flags(self.flags().get(row)),
            modseq: ModSeq(self.modseq().get(row)),
            internal_date: DateTime {
                unix_seconds: self.internal_date().get(row),
                offset_minutes: self.zone().get(row).clamp(-1439, 1439),
            },
            save_date: self.save_date().get(row),
            size: self.size().get(row),
            email_id: EmailId(self.email_id().get(row)),
        }
    }

    /// The index of the first of these rows whose UID is not below `uid`, or the end.
    pub(super) fn lower_bound(&self, rows: Range<usize>, uid: u32) -> usize {
        if rows.is_empty() {
            return rows.start;
        }
        let (first, last) = (self.uid().get(rows.start), self.uid().get(rows.end - 1));
        if uid > last {
            return rows.end;
        }
        let among = bounds(rows.len(), first, last, uid);
        let among = rows.start + among.start..rows.start + among.end;
        among.start
            + match self.uid() {
                Column::Owned(cells) => lower_bound(&cells[among], |cell| *cell < uid),
                Column::Mapped(cells) => lower_bound(&cells[among], |cell| u32::read(*cell) < uid),
            }
    }

    /// Whether rows can be appended without a copy of those that are there.
    pub(super) fn is_own(&mut self) -> bool {
        match self {
            Columns::Owned(owned) => Arc::get_mut(owned).is_some(),
            Columns::Mapped { .. } => false,
        }
    }

    fn owned_mut(&mut self) -> &mut Owned {
        if let Columns::Mapped { .. } = self {
            let mut owned = Columns::new();
            owned.extend(self, None);
            *self = owned;
        }
        match self {
            Columns::Owned(owned) => Arc::make_mut(owned),
            Columns::Mapped { .. } => unreachable!("replaced by a copy above"),
        }
    }

    pub(super) fn push(&mut self, row: &Row) {
        let owned = self.owned_mut();
        owned.flags.push(row.flags.0);
        owned.modseq.push(row.modseq.0);
        owned.internal_date.push(row.internal_date.unix_seconds);
        owned.save_date.push(row.save_date);
        owned.email_id.push(row.email_id.0);
        owned.uid.push(row.uid.get());
        owned.size.push(row.size);
        owned.zone.push(row.internal_date.offset_minutes);
    }

    /// Appends these rows of other columns; `None`: all.
    pub(super) fn extend(&mut self, from: &Columns, rows: Option<&[u16]>) {
        let owned = self.owned_mut();
        from.flags().copy(rows, &mut owned.flags);
        from.modseq().copy(rows, &mut owned.modseq);
        from.internal_date().copy(rows, &mut owned.internal_date);
        from.save_date().copy(rows, &mut owned.save_date);
        from.email_id().copy(rows, &mut owned.email_id);
        from.uid().copy(rows, &mut owned.uid);
        from.size().copy(rows, &mut owned.size);
        from.zone().copy(rows, &mut owned.zone);
    }

    /// Gives a row these flags and this modseq.
    pub(super) fn set_mark(&mut self, row: usize, flags: Flags, modseq: ModSeq) {
        let owned = self.owned_mut();
        (owned.flags[row], owned.modseq[row]) = (flags.0, modseq.0);
    }

    /// Writes the columns as they are on disk.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Columns::Mapped { bytes, at, rows } => {
                let columns = bytes.get(*at..at + rows * ROW_BYTES);
                out.extend_from_slice(columns.expect("checked when the columns were mapped"));
            }
            Columns::Owned(owned) => {
                out.extend(owned.flags.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.modseq.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.internal_date.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.save_date.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.email_id.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.uid.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.size.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.zone.iter().flat_map(|v| v.to_le_bytes()));
            }
        }
    }
}

/// Where the first of `count` UIDs from `first` to `last` that is not below `uid`, which is not above `last`, can be: they rise by one at
/// least, so that little is left where few are missing, and nothing where none is.
pub(super) fn bounds(count: usize, first: u32, last: u32, uid: u32) -> Range<usize> {
    let end = count.saturating_sub(1);
    let least = end.saturating_sub(last.saturating_sub(uid) as usize);
    let most = end.min(uid.saturating_sub(first) as usize);
    least..most.max(least)
}

/// The index of the first cell that is not `below`, or the end; those that are come before those that are not.
pub(super) fn lower_bound<T>(cells: &[T], below: impl Fn(&T) -> bool) -> usize {
    /// So many are looked at without a branch between them.
    const NEAR: usize = 16;
    let (near, far) = cells.split_at(cells.len().min(NEAR));
    let count = near.iter().filter(|cell| below(cell)).count();
    if count < NEAR { count } else { count + far.partition_point(below) }
}
