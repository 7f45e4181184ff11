//! Columns as they lie in a checkpoint: each a base and, for every row, the distance from it in as few bytes as the largest
//! one needs; none at all when all rows are alike. Any row is read where it lies, without a look at the others.
//!
//! Invariant: what [`layout`] has accepted lies inside the file.

use std::ops::Range;

/// A column: its name in `docs/format-index.md`, and how it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    #[cfg_attr(not(test), expect(dead_code, reason = "only the document asks"))]
    pub(crate) name: &'static str,
    /// Bytes of a value.
    pub(crate) bytes: usize,
    /// Each row's value is expected to be one more than that of the row before.
    pub(crate) rises: bool,
}

/// A value of a column.
pub(crate) trait Cell: Copy {
    /// The value among all integers; equal modulo its own width.
    fn wide(self) -> i128;
    /// The sum, modulo its own width.
    fn plus(self, distance: u64) -> Self;
    /// The value that stands here, in its own width.
    fn read(bytes: &[u8]) -> Self;
    /// Writes it in its own width.
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! cells {
    ($($type:ty),*) => {
        $(impl Cell for $type {
            #[inline]
            fn wide(self) -> i128 {
                self as i128
            }

            #[inline]
            fn plus(self, distance: u64) -> Self {
                self.wrapping_add(distance as $type)
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let cell = bytes.first_chunk().expect("verified when the columns were mapped");
                <$type>::from_le_bytes(*cell)
            }

            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

cells!(u128, u64, i64, u32, i16);

/// Where a column lies in its file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    base_at: usize,
    cells_at: usize,
    width: u8,
}

/// A packed column.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a, T> {
    cells: &'a [u8],
    base: T,
    width: u8,
    rises: bool,
}

impl<'a, T: Cell> Packed<'a, T> {
    /// The column at `place` of the file `bytes`.
    #[inline]
    pub(crate) fn at(bytes: &'a [u8], place: Place, rows: usize, rises: bool) -> Self {
        let cells = place.cells_at..place.cells_at + rows * usize::from(place.width);
        let cells = bytes.get(cells).expect("verified when the columns were mapped");
        Packed { cells, base: T::read(bytes.get(place.base_at..).unwrap_or_default()), width: place.width, rises }
    }

    /// The value of a row; panics when there is no such row.
    #[inline]
    pub(crate) fn get(self, row: usize) -> T {
        let distance = match self.width {
            0 => 0,
            1 => u64::from(self.cells[row]),
            2 => u64::from(u16::from_le_bytes(self.cells.as_chunks().0[row])),
            3 => {
                let [low, middle, high]: [u8; 3] = self.cells.as_chunks().0[row];
                u64::from(u32::from_le_bytes([low, middle, high, 0]))
            }
            4 => u64::from(u32::from_le_bytes(self.cells.as_chunks().0[row])),
            8 => u64::from_le_bytes(self.cells.as_chunks().0[row]),
            _ => return T::read(&self.cells.as_chunks::<16>().0[row]),
        };
        self.base.plus(if self.rises { distance.wrapping_add(row as u64) } else { distance })
    }
}

/// Where the columns of `rows` rows that begin at `at` lie, and where they end; `None` when that cannot be.
pub(crate) fn layout<const N: usize>(
    bytes: &[u8],
    at: usize,
    rows: usize,
    specs: &[Spec; N],
) -> Option<([Place; N], Range<usize>)> {
    let widths = bytes.get(at..at.checked_add(N)?)?;
    let mut base_at = at + N;
    let mut cells_at = base_at + specs.iter().map(|spec| spec.bytes).sum::<usize>();
    let mut places = [Place::default(); N];
    for ((place, spec), width) in places.iter_mut().zip(specs).zip(widths) {
        let is_known = matches!(width, 0..=4 | 8) || (*width == 16 && spec.bytes == 16);
        *place = is_known.then_some(Place { base_at, cells_at, width: *width })?;
        base_at += spec.bytes;
        cells_at = cells_at.checked_add(rows.checked_mul(usize::from(*width))?)?;
    }
    (cells_at <= bytes.len()).then_some((places, at..cells_at))
}

/// Columns being written.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    widths: Vec<u8>,
    bases: Vec<u8>,
    cells: Vec<u8>,
}

impl Packer {
    /// Adds the next column.
    pub(crate) fn column<T: Cell>(&mut self, spec: &Spec, values: impl Iterator<Item = T> + Clone) {
        let distance = |row: usize, value: T| value.wide().wrapping_sub(if spec.rises { row as i128 } else { 0 });
        let mut all = values.clone().enumerate().map(|(row, value)| distance(row, value));
        let first = all.next().unwrap_or(0);
        let (least, most) = all.fold((first, first), |(least, most), next| (least.min(next), most.max(next)));
        let span = most.wrapping_sub(least) as u128;
        let width = match span {
            0 => 0,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xff_ffff => 3,
            0x100_0000..=0xffff_ffff => 4,
            _ if spec.bytes <= 8 || span <= u128::from(u64::MAX) => 8,
            _ => 16,
        };
        self.widths.push(width);
        // The low bytes of the sum of base and distance are those of the value, whatever the rest is.
        self.bases.extend(least.to_le_bytes().iter().take(spec.bytes));
        for (row, value) in values.enumerate() {
            if width == 16 {
                value.put(&mut self.cells);
            } else {
                let bytes = distance(row, value).wrapping_sub(least).to_le_bytes();
                self.cells.extend(bytes.iter().take(usize::from(width)));
            }
        }
    }

    /// Writes all columns.
    pub(crate) fn finish(self, out: &mut Vec<u8>) {
        for part in [self.widths, self.bases, self.cells] {
            out.extend_from_slice(&part);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPECS: [Spec; 5] = [
        Spec { name: "flags", bytes: 16, rises: false },
        Spec { name: "id", bytes: 8, rises: true },
        Spec { name: "date", bytes: 8, rises: false },
        Spec { name: "uid", bytes: 4, rises: true },
        Spec { name: "zone", bytes: 2, rises: false },
    ];

    type Values = (u128, u64, i64, u32, i16);

    fn pack(rows: &[Values]) -> Vec<u8> {
        let mut packer = Packer::default();
        packer.column(&SPECS[0], rows.iter().map(|row| row.0));
        packer.column(&SPECS[1], rows.iter().map(|row| row.1));
        packer.column(&SPECS[2], rows.iter().map(|row| row.2));
        packer.column(&SPECS[3], rows.iter().map(|row| row.3));
        packer.column(&SPECS[4], rows.iter().map(|row| row.4));
        let mut out = b"before".to_vec();
        packer.finish(&mut out);
        out
    }

    fn unpack(bytes: &[u8], rows: usize) -> Option<Vec<Values>> {
        let ([flags, id, date, uid, zone], range) = layout(bytes, 6, rows, &SPECS)?;
        assert!(range.end <= bytes.len());
        let row = |row| {
            (
                Packed::at(bytes, flags, rows, false).get(row),
                Packed::at(bytes, id, rows, true).get(row),
                Packed::at(bytes, date, rows, false).get(row),
                Packed::at(bytes, uid, rows, true).get(row),
                Packed::at(bytes, zone, rows, false).get(row),
            )
        };
        Some((0..rows).map(row).collect())
    }

    proptest! {
        #[test]
        fn columns_come_back(
            rows in proptest::collection::vec(any::<Values>(), 0..20),
            shift in 0u32..=128,
            cut in 0usize..200,
        ) {
            // Small ones as well as large ones.
            let shrink = |(a, b, c, d, e): Values| (
                a.checked_shr(shift).unwrap_or(0),
                b.checked_shr(shift).unwrap_or(0),
                c.checked_shr(shift).unwrap_or(-1),
                d.checked_shr(shift).unwrap_or(0),
                e,
            );
            let rows: Vec<Values> = rows.into_iter().map(shrink).collect();
            let bytes = pack(&rows);
            prop_assert_eq!(unpack(&bytes, rows.len()), Some(rows.clone()));
            // Cut anywhere: an answer or none, never a panic.
            let _ = unpack(bytes.get(..cut).unwrap_or_default(), rows.len());
        }
    }

    #[test]
    fn what_is_alike_takes_no_room() {
        let rows: Vec<Values> = (0..1000).map(|n| (1 << 100, 7 + n, -5, 1 + n as u32, 60)).collect();
        let bytes = pack(&rows);
        assert_eq!(bytes.len(), 6 + SPECS.len() + SPECS.iter().map(|spec| spec.bytes).sum::<usize>());
        assert_eq!(unpack(&bytes, rows.len()), Some(rows));
    }
}
