//! Who we are among the programs that share the files, as lock files have to say it.

use std::fmt;

/// The machine's name and its processes.
pub trait Host: Send + Sync + fmt::Debug {
    /// The name of the machine (`uname -n`): a process number means something only beside it.
    fn name(&self) -> String;

    /// The number of this process.
    fn process(&self) -> u32;

    /// Whether a process of this number runs on this machine, whoever it belongs to. A number is given out again some time after its
    /// process has ended: `true` says less than `false`.
    fn is_running(&self, process: u32) -> bool;
}
