//! By what a file is known again without reading it, and by what a file that grew is.
//!
//! Invariant: as long as the system says of a file what an [`Identity`] says, its octets are those that were there when it was taken. Whoever
//! writes to a file changes its `changed` time at least, which nobody can set back. The clock behind it ticks every few milliseconds: an
//! identity that is [`Identity::is_fresh`] does not tell a second change within its tick.

use std::time::Duration;

use model::Result;
use platform::{File, Metadata, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

/// Octets at the end of a file over which [`tail_digest`] goes.
pub const TAIL_BYTES: u64 = 4096;
/// The coarsest clock that a file system with times below the second has, about: FAT's and that of old NFS servers are left aside.
const TICK: Duration = Duration::from_millis(20);

/// What the system says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// Octets.
    pub len: u64,
    /// When it was last written, or so somebody said.
    pub modified: Timestamp,
    /// When it was last written or given another attribute.
    pub changed: Timestamp,
}

impl Identity {
    /// From what the system says.
    pub fn of(metadata: &Metadata) -> Self {
        let Metadata { device, inode, len, modified, changed, .. } = *metadata;
        Identity { device, inode, len, modified, changed }
    }

    /// Of an open file, as it is now.
    pub fn of_file(file: &dyn File) -> Result<Self> {
        Ok(Identity::of(&file.metadata()?))
    }

    /// Whether the file was changed so shortly before `now` that another change might bear the same time.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let (changed, now) = (self.changed, now);
        let calm = changed.saturating_add(TICK);
        (now.seconds, now.nanoseconds) < (calm.seconds, calm.nanoseconds)
    }
}

/// A digest of the last [`TAIL_BYTES`] octets of the first `len` of a file: a file that has grown and has the same there is taken to have only
/// been appended to. `Io`: the file is shorter.
pub fn tail_digest(file: &dyn File, len: u64) -> Result<u64> {
    let start = len.saturating_sub(TAIL_BYTES);
    let mut tail = vec![0; (len - start) as usize];
    file.read_exact_at(&mut tail, start)?;
    Ok(xxh3_64(&tail))
}
