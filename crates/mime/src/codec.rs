//! The structure as bytes, for the cache.

use crate::Structure;

/// The bytes are not an encoded [`Structure`] of a version that this code reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError;

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("damaged or unknown message structure encoding")
    }
}

impl std::error::Error for DecodeError {}

impl Structure {
    /// The structure as bytes; the first is the version.
    pub fn encode(&self) -> Vec<u8> {
        todo!()
    }
    /// The structure from the bytes of [`Structure::encode`].
    pub fn decode(_bytes: &[u8]) -> Result<Structure, DecodeError> {
        todo!()
    }
}
