//! The columns of up to [`CHUNK_ROWS_MAX`] entries: in memory, or mapped from a checkpoint.
//!
//! Invariants: UIDs rise strictly; all columns have the same length; columns that are shared never change; the bytes of mapped
//! ones were verified when the checkpoint was opened.

use std::ops::Range;
use std::sync::Arc;

use model::{DateTime, EmailId, Flags, ModSeq, Uid};
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
    /// In a checkpoint that was verified when it was opened.
    Mapped {
        bytes: Mapped,
        places: Arc<[Place; 8]>,
        /// All columns.
        range: Range<usize>,
        rows: usize,
    },
}

/// One column, wherever it is.
#[derive(Clone, Copy)]
pub(super) enum Column<'a, T> {
    Owned(&'a [T]),
    Packed(Packed<'a, T>),
}

impl<T: Cell> Column<'_, T> {
    #[inline]
    pub(super) fn get(self, row: usize) -> T {
        match self {
            Column::Owned(cells) => cells[row],
            Column::Packed(cells) => cells.get(row),
        }
    }

    /// Appends these rows, of as many as there are, to `out`; `None`: all.
    fn copy(self, rows: Option<&[u16]>, count: usize, out: &mut Vec<T>) {
        match (self, rows) {
            (Column::Owned(cells), None) => out.extend_from_slice(cells),
            (Column::Owned(cells), Some(rows)) => out.extend(rows.iter().map(|row| cells[usize::from(*row)])),
            (Column::Packed(cells), None) => out.extend((0..count).map(|row| cells.get(row))),
            (Column::Packed(cells), Some(rows)) => out.extend(rows.iter().map(|row| cells.get(usize::from(*row)))),
        }
    }
}

/// One column, the one of this number among [`COLUMNS`].
macro_rules! column {
    ($column:ident, $type:ty, $number:literal) => {
        #[inline]
        pub(super) fn $column(&self) -> Column<'_, $type> {
            match self {
                Columns::Owned(owned) => Column::Owned(&owned.$column),
                Columns::Mapped { bytes, places, rows, .. } => {
                    Column::Packed(Packed::at(bytes, places[$number], *rows, COLUMNS[$number].rises))
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
        let (places, range) = layout(&bytes, at, rows, &COLUMNS)?;
        (rows <= CHUNK_ROWS_MAX).then(|| Columns::Mapped { bytes, places: Arc::new(places), range, rows })
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

    column!(flags, u128, 0);
    column!(modseq, u64, 1);
    column!(internal_date, i64, 2);
    column!(save_date, i64, 3);
    column!(email_id, u64, 4);
    column!(uid, u32, 5);
    column!(size, u32, 6);
    column!(zone, i16, 7);

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
                Column::Owned(cells) => lower_bound(among.len(), |row| cells[among.start + row] < uid),
                Column::Packed(cells) => lower_bound(among.len(), |row| cells.get(among.start + row) < uid),
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
        from.flags().copy(rows, from.len(), &mut owned.flags);
        from.modseq().copy(rows, from.len(), &mut owned.modseq);
        from.internal_date().copy(rows, from.len(), &mut owned.internal_date);
        from.save_date().copy(rows, from.len(), &mut owned.save_date);
        from.email_id().copy(rows, from.len(), &mut owned.email_id);
        from.uid().copy(rows, from.len(), &mut owned.uid);
        from.size().copy(rows, from.len(), &mut owned.size);
        from.zone().copy(rows, from.len(), &mut owned.zone);
    }

    /// Gives a row these flags and this modseq.
    pub(super) fn set_mark(&mut self, row: usize, flags: Flags, modseq: ModSeq) {
        let owned = self.owned_mut();
        (owned.flags[row], owned.modseq[row]) = (flags.0, modseq.0);
    }

    /// Writes the columns as they are on disk.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Columns::Mapped { bytes, range, .. } => {
                out.extend_from_slice(bytes.get(range.clone()).expect("checked when the columns were mapped"));
            }
            Columns::Owned(owned) => {
                let [flags, modseq, internal_date, save_date, email_id, uid, size, zone] = &COLUMNS;
                let mut packer = Packer::default();
                packer.column(flags, owned.flags.iter().copied());
                packer.column(modseq, owned.modseq.iter().copied());
                packer.column(internal_date, owned.internal_date.iter().copied());
                packer.column(save_date, owned.save_date.iter().copied());
                packer.column(email_id, owned.email_id.iter().copied());
                packer.column(uid, owned.uid.iter().copied());
                packer.column(size, owned.size.iter().copied());
                packer.column(zone, owned.zone.iter().copied());
                packer.finish(out);
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

/// The index of the first of `len` cells that is not `below`, or the end; those that are come before those that are not.
pub(super) fn lower_bound(len: usize, below: impl Fn(usize) -> bool) -> usize {
    /// So many are looked at without a branch between them.
    const NEAR: usize = 16;
    let near = (0..len.min(NEAR)).filter(|row| below(*row)).count();
    if near < NEAR {
        return near;
    }
    let (mut from, mut to) = (near, len);
    while from < to {
        let middle = from.midpoint(to);
        if below(middle) { from = middle + 1 } else { to = middle }
    }
    from
}
