//! How fast the disk takes and gives bytes in order, and the page cache gives them.

use super::{CHUNK_BYTES, drain};
use crate::error::{Doing, Result};
use rustix::fs::Advice;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes a new file of so many bytes, one `fdatasync` at its end.
pub fn sequential_write(path: &Path, bytes: u64) -> Result<Duration> {
    // Bytes that do not compress: a disk or host that detects zeros gains nothing.
    let mut random = crate::random::Random::new(1);
    let chunk: Vec<u8> = (0..CHUNK_BYTES / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
    let mut file = File::create(path).doing(path.display())?;
    let began = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
        file.write_all(chunk.get(..count).unwrap_or_default()).doing(path.display())?;
        left -= count as u64;
    }
    file.sync_data().doing(path.display())?;
    Ok(began.elapsed())
}

/// Reads the file from beginning to end, after it was dropped from the page cache. What lies below (the disk's own cache, a host's)
/// may still have it.
pub fn cold_read(path: &Path) -> Result<Duration> {
    let file = File::open(path).doing(path.display())?;
    file.sync_data().doing(path.display())?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).doing(path.display())?;
    Ok(drain(file)?.1)
}

/// Reads the file from beginning to end out of the page cache.
pub fn cached_read(path: &Path) -> Result<Duration> {
    drain(File::open(path).doing(path.display())?)?;
    Ok(drain(File::open(path).doing(path.display())?)?.1)
}
