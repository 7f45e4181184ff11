//! What is wrong with bytes that do not follow the grammar.

use std::fmt;

/// A place where the bytes leave the grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// What should have stood there, as the sentence "expected ..." goes on.
    pub expected: &'static str,
    /// The octet where it should have begun, from zero at the start of the command or response.
    pub at: usize,
    /// The name of the limit that was met, if that is what is wrong.
    pub limit: Option<&'static str>,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Some(limit) => write!(f, "over the limit {limit} at octet {}", self.at),
            None => write!(f, "expected {} at octet {}", self.expected, self.at),
        }
    }
}

impl std::error::Error for SyntaxError {}

/// The result of a rule of the grammar.
pub(crate) type Parse<T> = Result<T, SyntaxError>;
