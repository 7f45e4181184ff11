//! The streaming structure scanner.

use crate::{Defect, Limits, Structure};

/// Reads a message once, in any cut, and finds its structure. Memory is bounded by the limits, not by
/// the message.
#[derive(Debug)]
pub struct Scanner {}

impl Scanner {
    /// A scanner with the default limits.
    pub fn new() -> Self {
        Scanner::with_limits(Limits::default())
    }
    /// A scanner with limits of one's own.
    pub fn with_limits(_limits: Limits) -> Self {
        todo!()
    }
    /// Takes the next octets of the message.
    pub fn push(&mut self, _bytes: &[u8]) {
        todo!()
    }
    /// The message ends.
    pub fn finish(self) -> (Structure, Vec<Defect>) {
        todo!()
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner::new()
    }
}

/// The structure of a message that is at hand whole.
pub fn scan(message: &[u8]) -> (Structure, Vec<Defect>) {
    let mut scanner = Scanner::new();
    scanner.push(message);
    scanner.finish()
}
