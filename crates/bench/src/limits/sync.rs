//! How often the machine can make bytes durable: one writer, and several that share syncs.

use crate::error::{Doing, Error, Result};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Whether the file has its final size, with blocks that were written before, when the measured writes begin. A file system then has no
/// sizes or block maps to sync beside the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefill {
    /// The file grows with every write.
    No,
    /// The file was filled with zeros and synced.
    Yes,
}

/// Writes the pieces one after the other, each with its own `fdatasync`.
pub fn single_syncs(path: &Path, pieces: &[&[u8]], prefill: Prefill) -> Result<Duration> {
    let file = create(path, pieces, prefill)?;
    let began = Instant::now();
    let mut at = 0;
    for piece in pieces {
        file.write_all_at(piece, at).and_then(|()| file.sync_data()).doing(path.display())?;
        at += piece.len() as u64;
    }
    Ok(began.elapsed())
}

/// Writes the pieces from `writers` threads, each of which waits until its piece is durable before it brings the next. All pieces that
/// arrive while a sync runs share the next one. Gives the time and the number of syncs.
pub fn group_commit(path: &Path, pieces: &[&[u8]], writers: usize, prefill: Prefill) -> Result<(Duration, u64)> {
    let group = Group::create(path, pieces, prefill)?;
    let per_writer = pieces.len().div_ceil(writers.max(1)).max(1);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = pieces
            .chunks(per_writer)
            .map(|mine| scope.spawn(|| mine.iter().try_for_each(|piece| group.commit(piece))))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::new("a writer failed"))?)
    })?;
    let took = began.elapsed();
    Ok((took, group.lock().batch))
}

fn create(path: &Path, pieces: &[&[u8]], prefill: Prefill) -> Result<File> {
    let mut file = File::create(path).doing(path.display())?;
    if prefill == Prefill::Yes {
        let mut left: usize = pieces.iter().map(|piece| piece.len()).sum();
        let zeros = vec![0; 1 << 20];
        while left > 0 {
            let piece = zeros.get(..left.min(zeros.len())).unwrap_or_default();
            file.write_all(piece).doing(path.display())?;
            left -= piece.len();
        }
    }
    file.sync_all().doing(path.display())?;
    Ok(file)
}

/// A file whose writers share syncs: whoever finds no sync running leads the next one.
pub struct Group {
    file: File,
    state: Mutex<State>,
    synced: Condvar,
}

#[derive(Default)]
struct State {
    /// Waiting for the next sync.
    pending: Vec<u8>,
    /// Where the next batch goes.
    end: u64,
    /// Syncs done.
    batch: u64,
    leading: bool,
}

impl Group {
    /// For these pieces.
    pub fn create(path: &Path, pieces: &[&[u8]], prefill: Prefill) -> Result<Group> {
        Ok(Group { file: create(path, pieces, prefill)?, state: Mutex::default(), synced: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until the piece is durable.
    pub fn commit(&self, piece: &[u8]) -> Result<()> {
        let mut state = self.lock();
        state.pending.extend_from_slice(piece);
        // A sync that runs now has taken its bytes already: ours go with the one after it.
        let ours = state.batch + u64::from(state.leading) + 1;
        loop {
            if state.batch >= ours {
                return Ok(());
            }
            if state.leading {
                state = self.synced.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                continue;
            }
            state.leading = true;
            let bytes = std::mem::take(&mut state.pending);
            let at = state.end;
            state.end += bytes.len() as u64;
            drop(state);
            let done = self.file.write_all_at(&bytes, at).and_then(|()| self.file.sync_data());
            state = self.lock();
            state.leading = false;
            state.batch += 1;
            self.synced.notify_all();
            done.doing("group commit")?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Prefill, group_commit, single_syncs};

    #[test]
    fn everything_is_written_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let pieces: Vec<Vec<u8>> = (1..=60u8).map(|number| vec![number; usize::from(number)]).collect();
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        for prefill in [Prefill::No, Prefill::Yes] {
            single_syncs(&path, &pieces, prefill).expect("written");
            assert_eq!(std::fs::read(&path).expect("read"), pieces.concat());
            let (_, syncs) = group_commit(&path, &pieces, 7, prefill).expect("written");
            assert!((1..=60).contains(&syncs));
            let mut bytes = std::fs::read(&path).expect("read");
            bytes.sort_unstable();
            assert_eq!(bytes, pieces.concat(), "prefill {prefill:?}");
        }
    }
}
