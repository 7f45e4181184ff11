//! Many files made durable at once: syncfs(2), where it can be believed.
//!
//! Invariant: the directory is open before anything of the batch is written. The system notes for each open file which failures of the file
//! system it was told of, so that a write that fails in the background, long before the sync, fails the sync.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{fstatfs, syncfs};

use crate::disk::Batch;

/// File systems of the kernel that write everything in `syncfs`, names included, and tell of what failed: ext2 to ext4, XFS, Btrfs, F2FS and tmpfs
/// (statfs(2)). Others may leave that to a server which is never asked, as FUSE does.
const BELIEVED: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// From this version of Linux on syncfs tells of writes that failed (syncfs(2), "Errors").
const LINUX_MIN: (u32, u32) = (5, 8);

/// A file system, since some moment.
#[derive(Debug)]
pub(super) struct RealBatch {
    dir: fs::File,
}

impl RealBatch {
    /// See [`crate::Disk::batch`].
    pub(super) fn begin(path: &Path) -> io::Result<RealBatch> {
        let dir = fs::File::open(path)?;
        let kind = fstatfs(&dir)?.f_type;
        let is_believed = BELIEVED.iter().any(|believed| i128::from(kind) == i128::from(*believed));
        let system = rustix::system::uname();
        let is_told = system.release().to_str().ok().and_then(version).is_some_and(|version| version >= LINUX_MIN);
        if is_believed && is_told { Ok(RealBatch { dir }) } else { Err(io::ErrorKind::Unsupported.into()) }
    }
}

impl Batch for RealBatch {
    fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.dir)?)
    }
}

/// The first two numbers of a release, as in `6.1.0-13-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("6.1.0-13-amd64"), Some((6, 1)));
        assert_eq!(version("5.10"), Some((5, 10)));
        assert!(version("4.19.0-5").is_some_and(|version| version < LINUX_MIN));
        assert!(version("5.7-rc8+").is_some_and(|version| version < LINUX_MIN));
        assert_eq!((version("6"), version(""), version("x.y")), (None, None, None));
    }
}
