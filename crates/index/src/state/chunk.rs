//! Up to [`CHUNK_ROWS_MAX`] entries of one mailbox, as columns. A chunk that is shared never changes: who changes it
//! gets a copy (`Arc::make_mut`), so a view costs nothing and two views compare by pointer.
//!
//! Invariants: UIDs rise strictly; all columns have the same length; the bytes of a mapped chunk were verified when the
//! checkpoint was opened.

use std::ops::Range;
use std::sync::Arc;

use model::{DateTime, EmailId, Flags, ModSeq, SystemFlag, Uid};
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
    /// `rows * ROW_BYTES` bytes from `at` on, in the order of [`COLUMNS`].
    Mapped {
        bytes: Mapped,
        at: usize,
        rows: usize,
    },
}

/// The columns of up to [`CHUNK_ROWS_MAX`] entries.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    columns: Columns,
}

/// The `index`th `N` bytes of a column that begins at `at`.
fn cell<const N: usize>(bytes: &[u8], at: usize, index: usize) -> [u8; N] {
    let from = at + index * N;
    bytes
        .get(from..from + N)
        .and_then(|cell| cell.try_into().ok())
        .expect("the checkpoint's reader checked that the columns lie inside the file")
}

/// Reads one cell, wherever the columns are. `$before` is the bytes a row of the columns before this one.
macro_rules! column {
    ($name:ident, $type:ty, $bytes:literal, $before:literal, |$owned:ident| $vec:expr) => {
        pub(crate) fn $name(&self, index: usize) -> $type {
            match &self.columns {
                Columns::Owned($owned) => $vec[index],
                Columns::Mapped { bytes, at, rows } => {
                    assert!(index < *rows, "the row is in the chunk");
                    <$type>::from_le_bytes(cell::<$bytes>(bytes, at + $before * rows, index))
                }
            }
        }
    };
}

impl Chunk {
    pub(crate) fn new() -> Self {
        let owned = Owned { flags: Vec::new(), modseq: Vec::new(), fixed: Arc::default() };
        Chunk { columns: Columns::Owned(owned) }
    }

    /// The chunk whose columns begin at `at` of a verified file; `None` when they would not lie inside it.
    pub(crate) fn mapped(bytes: Mapped, at: usize, rows: usize) -> Option<Self> {
        let end = at.checked_add(rows.checked_mul(ROW_BYTES)?)?;
        (end <= bytes.len() && rows <= CHUNK_ROWS_MAX).then_some(Chunk { columns: Columns::Mapped { bytes, at, rows } })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.columns {
            Columns::Owned(owned) => owned.flags.len(),
            Columns::Mapped { rows, .. } => *rows,
        }
    }

    column!(flags_bits, u128, 16, 0, |o| o.flags);
    column!(modseq_number, u64, 8, 16, |o| o.modseq);
    column!(internal_date, i64, 8, 24, |o| o.fixed.internal_date);
    column!(save_date, i64, 8, 32, |o| o.fixed.save_date);
    column!(email_id, u64, 8, 40, |o| o.fixed.email_id);
    column!(uid, u32, 4, 48, |o| o.fixed.uid);
    column!(size, u32, 4, 52, |o| o.fixed.size);
    column!(zone, i16, 2, 56, |o| o.fixed.zone);

    #[inline]
    pub(crate) fn row(&self, index: usize) -> Row {
        Row {
            uid: Uid::new(self.uid(index)).expect("no row has UID 0: they are checked when they enter"),
            flags: Flags(self.flags_bits(index)),
            modseq: ModSeq(self.modseq_number(index)),
            internal_date: DateTime {
                unix_seconds: self.internal_date(index),
                offset_minutes: self.zone(index).clamp(-1439, 1439),
            },
            save_date: self.save_date(index),
            size: self.size(index),
            email_id: EmailId(self.email_id(index)),
        }
    }

    /// The index of the first row whose UID is not below `uid`.
    pub(crate) fn lower_bound(&self, uid: u32) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.uid(middle) < uid {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn owned_mut(&mut self) -> &mut Owned {
        if let Columns::Mapped { rows, .. } = self.columns {
            let mut copy = Chunk::new();
            copy.extend(self, 0..rows);
            self.columns = copy.columns;
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

    /// Appends rows of another chunk.
    pub(crate) fn extend(&mut self, from: &Chunk, rows: Range<usize>) {
        for index in rows {
            self.push(&from.row(index));
        }
    }

    pub(crate) fn set_flags(&mut self, index: usize, flags: Flags, modseq: ModSeq) {
        let owned = self.owned_mut();
        owned.flags[index] = flags.0;
        owned.modseq[index] = modseq.0;
    }

    /// Keeps the rows for which `keep` (called with each UID, rising) is true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let owned = self.owned_mut();
        let keep: Vec<bool> = owned.fixed.uid.iter().map(|uid| keep(*uid)).collect();
        fn filter<T: Copy>(column: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            column.retain(|_| keep.next().copied().unwrap_or(true));
        }
        filter(&mut owned.flags, &keep);
        filter(&mut owned.modseq, &keep);
        let fixed = Arc::make_mut(&mut owned.fixed);
        filter(&mut fixed.internal_date, &keep);
        filter(&mut fixed.save_date, &keep);
        filter(&mut fixed.email_id, &keep);
        filter(&mut fixed.uid, &keep);
        filter(&mut fixed.size, &keep);
        filter(&mut fixed.zone, &keep);
    }

    /// Writes the columns as they are on disk.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match &self.columns {
            Columns::Mapped { bytes, at, rows } => {
                let columns = bytes.get(*at..at + rows * ROW_BYTES);
                out.extend_from_slice(columns.expect("checked when the chunk was mapped"));
            }
            Columns::Owned(owned) => {
                let fixed = &owned.fixed;
                out.extend(owned.flags.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(owned.modseq.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(fixed.internal_date.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(fixed.save_date.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(fixed.email_id.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(fixed.uid.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(fixed.size.iter().flat_map(|v| v.to_le_bytes()));
                out.extend(fixed.zone.iter().flat_map(|v| v.to_le_bytes()));
            }
        }
    }
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
        let mut summary = Summary::default();
        for index in 0..chunk.len() {
            summary.add(&chunk.row(index));
        }
        summary
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
}

/// A chunk in a mailbox's list.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) summary: Summary,
    /// Entries of the mailbox before this chunk.
    pub(crate) before: u32,
    pub(crate) chunk: Arc<Chunk>,
}
