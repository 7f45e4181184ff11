//! The operating system: Linux, on a file system with flock, atomic rename and fallocate (ext4, XFS, btrfs, tmpfs).

mod batch;
mod clock;
mod disk;
mod host;
mod lock;
mod watch;

pub use clock::{RealClock, RealRandom};
pub use disk::RealDisk;
pub use host::RealHost;
pub use watch::RealWatch;
