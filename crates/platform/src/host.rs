//! Who we are among the programs that share the files, as lock files have to say it.

use std::fmt;

use crate::clock::Timestamp;

/// The machine's name and its processes.
pub trait Host: Send + Sync + fmt::Debug {
    /// The name of the machine (`uname -n`): a process number means something only beside it.
    fn name(&self) -> String;

    /// The number of this process.
    fn process(&self) -> u32;

    /// Since when a process of this number runs on this machine, whoever it belongs to; none: there is none.
    ///
    /// A number is given out again some time after its process has ended, and after a restart of the machine at once: the time tells
    /// whether this one can have done what was done in its name. It moves when somebody sets the machine's clock; where the system does not tell it,
    /// it is the earliest there is.
    fn running_since(&self, process: u32) -> Option<Timestamp>;
}
