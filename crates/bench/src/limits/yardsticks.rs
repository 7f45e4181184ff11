//! The machine's own figures, measured at the start of every run and recorded beside its results.
//!
//! Each takes a fixed share of a few seconds: work of a fixed size again and again until the share is used up, at least once. A run on
//! another day or machine can then be set in relation to this one.

use super::{Prefill, disk, loopback, memory, single_syncs};
use crate::error::{Doing, Result};
use crate::results::{Limit, Unit};
use std::path::Path;
use std::time::{Duration, Instant};

/// For each of the figures; with what it takes to fill files, 5 s for all.
const BUDGET: Duration = Duration::from_millis(450);
const QUICK_BUDGET: Duration = Duration::from_millis(20);

/// Sizes of the work that is repeated.
struct Work {
    file_bytes: u64,
    memory_bytes: usize,
    stream_bytes: u64,
    /// A message's worth of bytes, written and synced so many times.
    piece_bytes: usize,
    pieces: usize,
    budget: Duration,
}

const FULL: Work = Work {
    file_bytes: 128 << 20,
    memory_bytes: 64 << 20,
    stream_bytes: 256 << 20,
    piece_bytes: 4 << 10,
    pieces: 32,
    budget: BUDGET,
};
const QUICK: Work = Work {
    file_bytes: 8 << 20,
    memory_bytes: 8 << 20,
    stream_bytes: 8 << 20,
    piece_bytes: 4 << 10,
    pieces: 4,
    budget: QUICK_BUDGET,
};

/// Measures them all in a file of its own in `folder`, about 5 s; under 1 s when `quick`.
pub fn yardsticks(folder: &Path, quick: bool) -> Result<Vec<Limit>> {
    let work = if quick { QUICK } else { FULL };
    let path = folder.join("yardsticks");
    let megabytes = work.file_bytes >> 20;
    let pieces = vec![vec![b'x'; work.piece_bytes]; work.pieces];
    let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
    let rate = |amount: f64, took: Duration| amount / took.as_secs_f64().max(1e-9);
    let mut limits = Vec::new();
    let mut add = |name: &str, how: String, unit, amount: f64, once: &mut dyn FnMut() -> Result<Duration>| {
        let began = Instant::now();
        let mut values = vec![rate(amount, once()?)];
        while began.elapsed() < work.budget {
            values.push(rate(amount, once()?));
        }
        limits.push(Limit { name: name.into(), how, unit, values });
        Ok::<(), crate::error::Error>(())
    };
    add(
        "sequential write",
        format!("a new file of {megabytes} MiB, with fdatasync"),
        Unit::BytesPerSecond,
        work.file_bytes as f64,
        &mut || disk::sequential_write(&path, work.file_bytes),
    )?;
    add(
        "sequential read, cold",
        format!("a file of {megabytes} MiB after posix_fadvise(DONTNEED); a cache below the kernel may have it"),
        Unit::BytesPerSecond,
        work.file_bytes as f64,
        &mut || disk::cold_read(&path),
    )?;
    add(
        "sequential read, cached",
        format!("a file of {megabytes} MiB in the page cache"),
        Unit::BytesPerSecond,
        work.file_bytes as f64,
        &mut || disk::cached_read(&path),
    )?;
    add(
        "memory copy",
        format!("one buffer of {} MiB into another; bytes copied, each read and written", work.memory_bytes >> 20),
        Unit::BytesPerSecond,
        work.memory_bytes as f64,
        &mut || Ok(memory::copy(work.memory_bytes)),
    )?;
    for (name, prefill) in [("syncs, prefilled file", Prefill::Yes), ("syncs, growing file", Prefill::No)] {
        add(
            name,
            format!("{} bytes appended and fdatasync, one writer", work.piece_bytes),
            Unit::PerSecond,
            work.pieces as f64,
            &mut || single_syncs(&path, &pieces, prefill),
        )?;
    }
    add(
        "loopback, one stream",
        format!("{} MiB over one TCP connection on 127.0.0.1", work.stream_bytes >> 20),
        Unit::BytesPerSecond,
        work.stream_bytes as f64,
        &mut || loopback::one_stream(work.stream_bytes),
    )?;
    std::fs::remove_file(&path).doing(path.display())?;
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::yardsticks;

    #[test]
    fn all_of_them_and_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = yardsticks(folder.path(), true).expect("measured");
        assert_eq!(limits.len(), 7);
        for limit in &limits {
            assert!(limit.values.iter().all(|value| value.is_finite() && *value > 0.0), "{limit:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
    }
}
