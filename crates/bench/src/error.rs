//! What went wrong, for a person to read.

use std::fmt;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure: what was being done, and the cause.
#[derive(Clone, Debug)]
pub struct Error(String);

impl Error {
    /// A failure that has no cause but itself.
    pub fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Adds what was being done to a failure.
pub trait Doing<T> {
    /// `what` is a file, a command, an address: whatever the failure is about.
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error(format!("{what}: {error}")))
    }
}
