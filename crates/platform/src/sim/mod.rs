//! A simulated machine: a seeded disk that loses power, tears, fails and fills up; a clock moved by hand.
//!
//! The same seed and the same calls in the same order give the same results, on every machine. Nothing here waits.
//!
//! # The model
//!
//! **Bytes.** Each file has a durable image (what the platters hold) and a visible one (what programs read). A write, cut or
//! hole changes the visible image at once and is *pending* until a sync of that file, by any handle, makes durable
//! what was pending when the sync began.
//!
//! **Names.** Directories have the same two states. Creating, renaming, linking and removing are pending until
//! `sync_dir` of the directory. Syncing a file does *not* make its name durable (ext4 and XFS would be kinder here),
//! and syncing one directory says nothing of another.
//!
//! **Batches.** `Batch::sync` makes all bytes and names of the disk durable; [`SimDisk::refuse_batches`] makes it a disk that knows none.
//!
//! **A power cut** ([`SimDisk::crash`], or a scheduled one) draws by chance what becomes of everything pending:
//! - Each write arrives, is lost or is torn: of a torn one any subset of its sectors (512 bytes, aligned to the file)
//!   arrives. Later writes may arrive where earlier ones did not, except in the same sector: a sector goes
//!   to the disk as a whole from memory, so it is as it was after the last sync or after one of the writes since.
//! - A write behind the end that is torn may have lengthened the file all the same; sectors that did not arrive are
//!   zeros then, and so is a gap. Bytes of other files never show.
//! - Cuts, growths and holes are in the file system's journal: of one file's, a first few survive, in order among
//!   themselves but in no order with the writes. The last hole that survives may be there in part.
//! - Of each directory's changes a first few survive, in order. A rename between two directories counts in both, and
//!   happened in both or in neither. A file whose name did not survive is gone, however well synced.
//! - Often enough nothing pending survives, or everything.
//! - Handles from before are stale (all calls fail), locks are free, maps stay readable.
//!
//! **Failures** (scheduled or random) return EIO:
//! - a write: some first part of the bytes, from none to all, is in the file (and pending);
//! - a cut, growth, hole or change of names: nothing happened;
//! - a sync: each pending write arrived, was lost or was torn, and is not pending any more, so that the next sync succeeds
//!   without it. Readers still see what was lost, or do not, by chance (Linux marks the pages clean; they stay until
//!   evicted);
//! - a directory sync: its changes are durable or still pending, by chance;
//! - the sync of a batch: both, for every file and every directory.
//!
//! **A full disk** has a budget of 4096-byte blocks. A write that does not fit leaves the part that fits and returns
//! `StorageFull`; names take no space.
//!
//! **Permissions**: [`SimDisk::deny`] names paths at which opening or changing is refused; stays over a power cut.
//!
//! **Bit rot**: [`SimDisk::corrupt`].
//!
//! **Locks** are in the two tables of Linux, and a second program is a second handle, or a second [`SimEnv::as_process`].
//! **Watches** are told in the thread that makes the change, after it.
//!
//! What the model takes for granted of a real disk is argued in `docs/decisions/0001-simulated-disk.md`.

mod batch;
mod clock;
mod disk;
mod faults;
mod file;
mod host;
mod image;
mod lock;
mod space;
mod tree;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::env::Env;
pub use clock::{SIM_START, SimClock, SimRandom};
pub use disk::SimDisk;
pub use faults::{Denial, Effect, Operation, RandomFaults, Stats};
pub use file::SIM_FILE_BYTES_MAX;
pub use host::SimHost;

/// A simulated machine: the parts that a test steers. Clones are the same machine.
#[derive(Debug, Clone)]
pub struct SimEnv {
    /// The disk.
    pub disk: SimDisk,
    /// The clock, at [`SIM_START`] until it is moved.
    pub clock: SimClock,
    /// The random source.
    pub random: SimRandom,
    /// The machine's name and processes.
    pub host: SimHost,
}

impl SimEnv {
    /// A machine with an empty disk. Disk and random source draw from different sequences of the seed.
    pub fn new(seed: u64) -> Self {
        let clock = SimClock::default();
        let mut prng = crate::random::Prng::new(seed);
        let disk = SimDisk::with_clock(prng.u64(), clock.clone());
        Self { disk, clock, random: SimRandom::new(prng.u64()), host: SimHost::default() }
    }

    /// The same machine with another disk, for instance one from [`SimDisk::crash_image`].
    pub fn with_disk(&self, disk: SimDisk) -> Self {
        Self { disk, ..self.clone() }
    }

    /// The same machine as another process on it sees it, with the same disk and clock.
    pub fn as_process(&self, process: u32) -> Self {
        Self { host: self.host.as_process(process), ..self.clone() }
    }

    /// What the store is given.
    pub fn env(&self) -> Env {
        Env {
            disk: Arc::new(self.disk.clone()),
            clock: Arc::new(self.clock.clone()),
            random: Arc::new(self.random.clone()),
            host: Arc::new(self.host.clone()),
            watch: Arc::new(self.disk.clone()),
        }
    }
}

/// Locks, also after a test panicked in another thread: every step here leaves the state consistent.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
