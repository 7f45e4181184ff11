//! The seams in one value that is handed down through the store.

use std::sync::Arc;

use crate::clock::Clock;
use crate::disk::Disk;
use crate::host::Host;
use crate::random::Random;
use crate::real::{RealClock, RealDisk, RealHost, RealRandom, RealWatch};
use crate::watch::Watch;

/// Everything that the store may ask of the machine; cheap to clone.
#[derive(Debug, Clone)]
pub struct Env {
    /// Files, directories, locks.
    pub disk: Arc<dyn Disk>,
    /// Dates and intervals.
    pub clock: Arc<dyn Clock>,
    /// Identifiers and salts.
    pub random: Arc<dyn Random>,
    /// Who we are among the programs that share the files.
    pub host: Arc<dyn Host>,
    /// News of what others do to files.
    pub watch: Arc<dyn Watch>,
}

impl Env {
    /// The machine that this runs on.
    pub fn real() -> Self {
        Self {
            disk: Arc::new(RealDisk),
            clock: Arc::new(RealClock::default()),
            random: Arc::new(RealRandom),
            host: Arc::new(RealHost),
            watch: Arc::new(RealWatch::default()),
        }
    }
}
