//! The bytes of one simulated file: what a reader sees, what the disk holds, and what lies between.
//!
//! Invariants:
//! - Without a failed sync, applying `pending` in order to `durable` gives `visible`.
//! - `blocks` covers every block of `visible` that has a byte other than zero, and `space` has been charged for
//!   exactly these blocks.

use std::sync::Arc;

use super::space::{BlockMap, Full, Space};
use crate::disk::SECTOR_BYTES;
use crate::random::Prng;

const SECTOR: usize = SECTOR_BYTES as usize;

/// The bytes of one write.
#[derive(Debug, Clone)]
pub(super) enum Data {
    Bytes(Box<[u8]>),
    Zeros(usize),
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Zeros(len) => *len,
        }
    }

    fn truncate(self, len: usize) -> Self {
        match self {
            Data::Bytes(bytes) if len < bytes.len() => Data::Bytes(bytes[..len].into()),
            Data::Zeros(zeros) => Data::Zeros(zeros.min(len)),
            whole => whole,
        }
    }

    /// Puts the part of a write at `offset` that lies in `start..end` into the image, which must reach to `end`.
    fn copy_part(&self, offset: usize, image: &mut [u8], start: usize, end: usize) {
        match self {
            Data::Bytes(bytes) => image[start..end].copy_from_slice(&bytes[start - offset..end - offset]),
            Data::Zeros(_) => image[start..end].fill(0),
        }
    }
}

/// A change that the disk does not have yet.
#[derive(Debug, Clone)]
enum Pending {
    Write { offset: usize, data: Data },
    SetLen(usize),
    Punch { start: usize, end: usize },
}

impl Pending {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Pending::Write { offset, data } => {
                let end = offset + data.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                data.copy_part(*offset, image, *offset, end);
            }
            Pending::SetLen(len) => image.resize(*len, 0),
            Pending::Punch { start, end } => {
                let end = (*end).min(image.len());
                if let Some(range) = image.get_mut(*start..end) {
                    range.fill(0);
                }
            }
        }
    }
}

/// What becomes of one pending write when it was not synced.
#[derive(Debug, Clone)]
enum Fate {
    Kept,
    Lost,
    /// For each sector that the write touches, whether it arrived; and whether the file has grown to the write's
    /// end all the same (the rest are zeros then).
    Torn {
        arrived: Vec<bool>,
        grown: bool,
    },
}

/// The bytes of one file.
#[derive(Debug)]
pub(super) struct Image {
    visible: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    pending: Vec<Pending>,
    /// How many pending operations earlier syncs have dealt with: numbers them across syncs.
    settled: u64,
    blocks: BlockMap,
    space: Arc<Space>,
}

impl Drop for Image {
    fn drop(&mut self) {
        self.space.give_back(self.blocks.count());
    }
}

impl Image {
    pub(super) fn empty(space: Arc<Space>) -> Self {
        Self {
            visible: Arc::default(),
            durable: Arc::default(),
            pending: Vec::new(),
            settled: 0,
            blocks: BlockMap::default(),
            space,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.visible.len()
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.blocks.count() * super::space::BLOCK_BYTES as u64
    }

    /// The bytes as a reader sees them, shared and not copied.
    pub(super) fn visible(&self) -> &Arc<Vec<u8>> {
        &self.visible
    }

    pub(super) fn read_at(&self, buf: &mut [u8], offset: u64) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|at| self.visible.get(at..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        n
    }

    /// Writes; when the disk is full, writes the bytes in front of the first block that has no place.
    pub(super) fn write(&mut self, offset: usize, data: Data) -> Result<(), Full> {
        let fits = self.blocks.take(offset, offset + data.len(), &self.space);
        let (data, result) = match fits {
            Ok(()) => (data, Ok(())),
            Err((end, full)) => (data.truncate(end.saturating_sub(offset)), Err(full)),
        };
        if data.len() > 0 {
            self.queue(Pending::Write { offset, data });
        }
        result
    }

    /// Writes only the first `len` bytes, as a failing device may.
    pub(super) fn write_part(&mut self, offset: usize, data: Data, len: usize) -> Result<(), Full> {
        self.write(offset, data.truncate(len))
    }

    pub(super) fn set_len(&mut self, len: usize) {
        let freed = self.blocks.cut(len);
        self.space.give_back(freed);
        self.queue(Pending::SetLen(len));
    }

    pub(super) fn allocate(&mut self, start: usize, end: usize) -> Result<(), Full> {
        self.blocks.take_all(start, end, &self.space)?;
        if self.len() < end {
            self.queue(Pending::SetLen(end));
        }
        Ok(())
    }

    pub(super) fn punch(&mut self, start: usize, end: usize) {
        let freed = self.blocks.free_whole(start, end);
        self.space.give_back(freed);
        self.queue(Pending::Punch { start, end });
    }

    fn queue(&mut self, operation: Pending) {
        operation.apply(Arc::make_mut(&mut self.visible));
        self.pending.push(operation);
    }

    /// The mark to hand to [`Image::sync`]: everything queued so far.
    pub(super) fn sync_mark(&self) -> u64 {
        self.settled + self.pending.len() as u64
    }

    /// Makes durable what was queued before the mark was taken.
    pub(super) fn sync(&mut self, mark: u64) {
        let count = (mark.saturating_sub(self.settled) as usize).min(self.pending.len());
        if count == 0 {
            return;
        }
        let durable = Arc::make_mut(&mut self.durable);
        for operation in self.pending.drain(..count) {
            operation.apply(durable);
        }
        self.settled += count as u64;
    }

    /// A sync that failed: each pending write arrived, was lost or was torn, and is forgotten all the same, as the
    /// page cache of Linux does it. What was lost may be gone from the reader's sight too (a clean page can be
    /// dropped and read again); the length stays what it was.
    pub(super) fn sync_failed(&mut self, prng: &mut Prng) {
        let lengths = self.length_changes();
        let fates = self.choose_fates(prng);
        self.durable = Arc::new(self.settle(&fates, lengths));
        self.settled += self.pending.len() as u64;
        self.pending.clear();
        if prng.one_in(2) {
            let mut read_again = Vec::clone(&self.durable);
            read_again.resize(self.len(), 0);
            self.visible = Arc::new(read_again);
            self.charge_again();
        }
    }

    /// The file as it is found after a power cut at this moment.
    pub(super) fn after_crash(&self, prng: &mut Prng, space: Arc<Space>) -> Self {
        let durable = if self.pending.is_empty() {
            Arc::clone(&self.durable)
        } else {
            let mood = prng.below(8);
            let lengths = self.length_changes();
            let (fates, lengths) = match mood {
                0 => (vec![Fate::Lost; self.pending.len()], 0),
                1 => (vec![Fate::Kept; self.pending.len()], lengths),
                _ => {
                    let lengths = prng.between(0, lengths as u64) as usize;
                    (self.choose_fates(prng), lengths)
                }
            };
            Arc::new(self.settle(&fates, lengths))
        };
        let mut image = Self {
            visible: Arc::clone(&durable),
            durable,
            pending: Vec::new(),
            settled: 0,
            blocks: self.blocks.clone(),
            space,
        };
        image.space.charge(image.blocks.count());
        image.charge_again();
        image
    }

    /// Flips bits under the file system's feet. False when the file does not reach there.
    pub(super) fn corrupt(&mut self, offset: u64, mask: u8) -> bool {
        let Some(at) = usize::try_from(offset).ok().filter(|at| *at < self.visible.len()) else {
            return false;
        };
        Arc::make_mut(&mut self.visible)[at] ^= mask;
        if at < self.durable.len() {
            Arc::make_mut(&mut self.durable)[at] ^= mask;
        }
        true
    }

    /// Makes the block map agree with bytes that changed other than by an operation.
    fn charge_again(&mut self) {
        let freed = self.blocks.cut(self.visible.len());
        self.space.give_back(freed);
        let taken = self.blocks.cover(&self.visible);
        self.space.charge(taken);
    }

    fn length_changes(&self) -> usize {
        self.pending.iter().filter(|operation| !matches!(operation, Pending::Write { .. })).count()
    }

    /// For each pending operation what becomes of it. For cuts and holes this is the second word: the first has the
    /// journal, see [`Image::settle`].
    fn choose_fates(&self, prng: &mut Prng) -> Vec<Fate> {
        let mut fates: Vec<Fate> = self
            .pending
            .iter()
            .map(|operation| match operation {
                Pending::Write { offset, data } => choose_fate(*offset, data.len(), prng),
                Pending::Punch { start, end } => choose_fate(*start, end - start, prng),
                Pending::SetLen(_) => Fate::Kept,
            })
            .collect();
        if self.pending.len() > 1 {
            self.keep_what_lies_under(&mut fates);
        }
        fates
    }

    /// A sector is written from memory as a whole, so where a later write arrived, so did the earlier ones.
    fn keep_what_lies_under(&self, fates: &mut [Fate]) {
        let end =
            self.pending.iter().map(|p| if let Pending::Write { offset, data } = p { offset + data.len() } else { 0 });
        let mut later = vec![false; end.max().unwrap_or(0).div_ceil(SECTOR)];
        for (operation, fate) in self.pending.iter().zip(fates.iter_mut()).rev() {
            let Pending::Write { offset, data } = operation else { continue };
            let sectors = &mut later[offset / SECTOR..(offset + data.len()).div_ceil(SECTOR)];
            if let Fate::Lost = fate {
                if !sectors.contains(&true) {
                    continue;
                }
                *fate = Fate::Torn { arrived: vec![false; sectors.len()], grown: false };
            }
            match fate {
                Fate::Kept => sectors.fill(true),
                Fate::Lost => {}
                Fate::Torn { arrived, .. } => {
                    for (arrived, later) in arrived.iter_mut().zip(sectors) {
                        *arrived |= *later;
                        *later = *arrived;
                    }
                }
            }
        }
    }

    /// The durable bytes plus those pending operations that made it: the writes by their fates, and the first
    /// `lengths` of the operations that the file system keeps in its journal (lengths and holes).
    fn settle(&self, fates: &[Fate], lengths: usize) -> Vec<u8> {
        let mut image = Vec::clone(&self.durable);
        let mut lengths = lengths;
        for (operation, fate) in self.pending.iter().zip(fates) {
            if !matches!(operation, Pending::Write { .. }) {
                if lengths == 0 {
                    continue;
                }
                lengths -= 1;
            }
            match (operation, fate) {
                // A large hole takes more than one transaction: the last that survives may be there in part.
                (Pending::Punch { start, end }, Fate::Torn { arrived, .. }) if lengths == 0 => {
                    let end = (*end).min(image.len());
                    if *start < end {
                        let sectors = end.div_ceil(SECTOR) - start / SECTOR;
                        write_torn(&mut image, *start, &Data::Zeros(end - start), &arrived[..sectors], false);
                    }
                }
                (Pending::SetLen(_) | Pending::Punch { .. }, _) => operation.apply(&mut image),
                (Pending::Write { .. }, Fate::Lost) => {}
                (Pending::Write { .. }, Fate::Kept) => operation.apply(&mut image),
                (Pending::Write { offset, data }, Fate::Torn { arrived, grown }) => {
                    write_torn(&mut image, *offset, data, arrived, *grown);
                }
            }
        }
        image
    }
}

/// Draws what becomes of a write: a third each arrives, is lost, is torn.
fn choose_fate(offset: usize, len: usize, prng: &mut Prng) -> Fate {
    match prng.below(3) {
        0 => Fate::Kept,
        1 => Fate::Lost,
        _ => {
            let count = (offset + len).div_ceil(SECTOR) - offset / SECTOR;
            Fate::Torn { arrived: choose_sectors(count, prng), grown: prng.one_in(2) }
        }
    }
}

/// Draws which sectors of a torn write arrive. Independent coins alone would hardly ever give the shapes at the
/// edges (a clean prefix, all but one) once there are many sectors.
fn choose_sectors(count: usize, prng: &mut Prng) -> Vec<bool> {
    let at = prng.index(count);
    match prng.below(5) {
        0 => (0..count).map(|sector| sector < at).collect(),
        1 => (0..count).map(|sector| sector > at).collect(),
        2 => (0..count).map(|sector| sector != at).collect(),
        3 => (0..count).map(|sector| sector == at).collect(),
        _ => (0..count).map(|_| prng.one_in(2)).collect(),
    }
}

fn write_torn(image: &mut Vec<u8>, offset: usize, data: &Data, arrived: &[bool], grown: bool) {
    let end = offset + data.len();
    if grown && image.len() < end {
        image.resize(end, 0);
    }
    let first = offset / SECTOR;
    for (sector, _) in arrived.iter().enumerate().filter(|(_, arrived)| **arrived) {
        let from = ((first + sector) * SECTOR).max(offset);
        let to = ((first + sector + 1) * SECTOR).min(end);
        if image.len() < to {
            image.resize(to, 0);
        }
        data.copy_part(offset, image, from, to);
    }
}
