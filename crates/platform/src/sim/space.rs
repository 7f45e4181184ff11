//! How full the simulated disk is: blocks that files hold, and the budget they come out of.

use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a block of the simulated file system, in bytes.
pub(super) const BLOCK_BYTES: usize = 4096;

/// There is no place for another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// The blocks of the whole disk. All changes happen under the disk's lock, except giving back.
#[derive(Debug)]
pub(super) struct Space {
    used: AtomicU64,
    /// How many blocks there are; no limit when `u64::MAX`.
    capacity: AtomicU64,
}

impl Space {
    pub(super) fn new(capacity: u64) -> Self {
        Self { used: AtomicU64::new(0), capacity: AtomicU64::new(capacity) }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    pub(super) fn set_capacity(&self, blocks: u64) {
        self.capacity.store(blocks, Ordering::Relaxed);
    }

    fn free(&self) -> u64 {
        self.capacity().saturating_sub(self.used())
    }

    /// Takes blocks whether there is place or not.
    pub(super) fn charge(&self, blocks: u64) {
        self.used.fetch_add(blocks, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, blocks: u64) {
        self.used.fetch_sub(blocks, Ordering::Relaxed);
    }
}

/// Which blocks a file holds.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockMap {
    held: Vec<bool>,
    count: u64,
}

impl BlockMap {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Takes the blocks of a byte range in order. When the disk is full, the offset of the first byte that has no
    /// place; the blocks before it are taken.
    pub(super) fn take(&mut self, start: usize, end: usize, space: &Space) -> Result<(), (usize, Full)> {
        for block in self.range(start, end) {
            if self.held[block] {
                continue;
            }
            if space.free() == 0 {
                return Err(((block * BLOCK_BYTES).max(start), Full));
            }
            self.held[block] = true;
            self.count += 1;
            space.charge(1);
        }
        Ok(())
    }

    /// Takes all blocks of a byte range or none.
    pub(super) fn take_all(&mut self, start: usize, end: usize, space: &Space) -> Result<(), Full> {
        let missing = self.range(start, end).filter(|block| !self.held[*block]).count();
        if missing as u64 > space.free() {
            return Err(Full);
        }
        self.take(start, end, space).map_err(|(_, full)| full)
    }

    /// Lets go of the blocks behind `len` bytes; how many these were.
    pub(super) fn cut(&mut self, len: usize) -> u64 {
        let keep = len.div_ceil(BLOCK_BYTES).min(self.held.len());
        let freed = self.held.drain(keep..).filter(|held| *held).count() as u64;
        self.count -= freed;
        freed
    }

    /// Lets go of the blocks that lie wholly in a byte range; how many these were.
    pub(super) fn free_whole(&mut self, start: usize, end: usize) -> u64 {
        let last = (end / BLOCK_BYTES).min(self.held.len());
        let mut freed = 0;
        for held in self.held.get_mut(start.div_ceil(BLOCK_BYTES)..last).unwrap_or_default() {
            freed += u64::from(std::mem::take(held));
        }
        self.count -= freed;
        freed
    }

    /// Takes every block in which the image has a byte other than zero; how many were missing.
    pub(super) fn cover(&mut self, image: &[u8]) -> u64 {
        let mut taken = 0;
        for (block, bytes) in image.chunks(BLOCK_BYTES).enumerate() {
            let held = self.held.get(block).copied().unwrap_or(false);
            if !held && bytes.iter().any(|byte| *byte != 0) {
                self.range(block * BLOCK_BYTES, block * BLOCK_BYTES + 1);
                self.held[block] = true;
                taken += 1;
            }
        }
        self.count += taken;
        taken
    }

    /// The blocks that a byte range touches; the map reaches to all of them afterwards.
    fn range(&mut self, start: usize, end: usize) -> std::ops::Range<usize> {
        let range = start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES).max(start / BLOCK_BYTES);
        if self.held.len() < range.end {
            self.held.resize(range.end, false);
        }
        range
    }
}
