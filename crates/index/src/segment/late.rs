//! Late messages of a segment: their ids were given in earlier frames, their bytes came into the log in these.
//!
//! They are looked up in a table of their own, sorted by id. Those of an account that was converted follow one another almost without
//! a gap, so that the first look is most often the last. A row that is found has to be verified: the table has no checksum, the row says
//! which message it is.

use model::{EmailId, Result};

use super::Segment;
use super::column::read_or_corrupt;
use super::format::LATE_BYTES;
use crate::codec::Input;

/// Cells read at once.
const CELLS: u32 = 512;

/// The cells that were read last. Belongs to one segment.
#[derive(Debug, Default)]
pub(crate) struct LatePage {
    first: u32,
    bytes: Vec<u8>,
}

impl LatePage {
    fn len(&self) -> u32 {
        (self.bytes.len() / LATE_BYTES) as u32
    }

    fn cell(&self, at: u32) -> Option<(u64, u32)> {
        let from = at as usize * LATE_BYTES;
        let mut input = Input(self.bytes.get(from..from + LATE_BYTES)?);
        Some((input.u64()?, input.u32()?))
    }

    /// Makes this the cells around the one numbered `at`.
    fn load(&mut self, segment: &Segment, at: u32) -> Result<()> {
        if !(self.first..self.first + self.len()).contains(&at) {
            self.first = at / CELLS * CELLS;
            let count = CELLS.min(segment.trailer.late - self.first) as usize;
            self.bytes.resize(count * LATE_BYTES, 0);
            let from = segment.trailer.late_at().saturating_add(u64::from(self.first) * LATE_BYTES as u64);
            let read = read_or_corrupt(&**segment.file()?, &segment.path, &mut self.bytes, from);
            if read.is_err() {
                self.bytes.clear();
            }
            read?;
        }
        Ok(())
    }
}

impl Segment {
    /// Whether a late message with this id can be here.
    pub(crate) fn may_have_late(&self, id: EmailId) -> bool {
        self.trailer.late > 0 && (self.trailer.late_first..=self.trailer.late_last).contains(&id.0)
    }

    /// The number of a late message's row as its table has it, unverified.
    pub(crate) fn late_row(&self, id: EmailId, page: &mut LatePage) -> Result<Option<u32>> {
        let (mut from, mut to) = (0, self.trailer.late);
        // Where it is if none is missing in between; it is never behind that.
        let mut guess = u32::try_from(id.0.wrapping_sub(self.trailer.late_first)).unwrap_or(u32::MAX);
        while from < to {
            page.load(self, guess.clamp(from, to - 1))?;
            let (Some(first), Some(last)) = (page.cell(0), page.len().checked_sub(1).and_then(|at| page.cell(at)))
            else {
                return Ok(None);
            };
            if id.0 < first.0 {
                to = page.first;
            } else if id.0 > last.0 {
                from = page.first + page.len();
            } else {
                return Ok(page.find(id.0).filter(|row| *row < self.trailer.rows));
            }
            guess = from.midpoint(to);
        }
        Ok(None)
    }
}

impl LatePage {
    fn find(&self, id: u64) -> Option<u32> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            let (found, row) = self.cell(middle)?;
            match found.cmp(&id) {
                std::cmp::Ordering::Equal => return Some(row),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }
}
