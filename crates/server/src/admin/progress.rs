//! How far a command is, and what is odd, on the way to whoever asked.

/// Something worth knowing that is no failure: a message that was skipped, a file that ends early.
pub type Notice = String;

/// Listens to a command that runs.
pub trait Progress: Send {
    /// So many of `total` (0: not known) are done; `unit` says what is counted: `bytes`, `messages`.
    fn advanced(&mut self, done: u64, total: u64, unit: &'static str);
    /// Something worth knowing.
    fn notice(&mut self, notice: Notice);
    /// Whether whoever asked has gone: the command ends at the next convenient moment, with what it has done so far kept.
    fn is_cancelled(&self) -> bool;
}

/// Nobody listens.
impl Progress for () {
    fn advanced(&mut self, _done: u64, _total: u64, _unit: &'static str) {}
    fn notice(&mut self, _notice: Notice) {}
    fn is_cancelled(&self) -> bool {
        false
    }
}
