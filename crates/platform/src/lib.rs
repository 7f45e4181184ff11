//! The seams of the Mailyard mail store: disk, clock, randomness, other programs; real and simulated.
//!
//! The store touches files, time and randomness in no other way than through an [`Env`]. [`Env::real`] is the
//! operating system (Linux only); [`sim::SimEnv`] is a seeded machine whose disk can lose power, tear writes,
//! fail and fill up, and whose clock stands still until it is told to move.
//!
//! This is the only crate in which `unsafe` may stand; each block argues why it is sound.

pub mod clock;
pub mod disk;
pub mod env;
pub mod host;
pub mod mapped;
pub mod memory;
pub mod random;
pub mod real;
pub mod sim;
pub mod vector;
pub mod watch;

pub use clock::{Clock, Timestamp};
pub use disk::{
    Batch, DirEntry, Disk, File, LockGuard, LockMode, LockTable, Metadata, OpenMode, SECTOR_BYTES, parent_of,
};
pub use env::Env;
pub use host::Host;
pub use mapped::Mapped;
pub use random::{Prng, Random};
pub use watch::{NameChange, NameNews, Watch, WatchGuard};
