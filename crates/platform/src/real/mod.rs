//! The operating system: Linux, on a file system with flock, atomic rename and fallocate (ext4, XFS, btrfs, tmpfs).

mod clock;
mod disk;

pub use clock::{RealClock, RealRandom};
pub use disk::RealDisk;
