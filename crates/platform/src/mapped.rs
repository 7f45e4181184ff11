//! A read-only view of a whole file that no longer changes: a memory map, or plain bytes in the simulation.
//!
//! Invariant: the bytes do not change while any clone lives (the contract of [`crate::Disk::map`]).

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// All the bytes of an immutable file; cheap to clone, derefs to `[u8]`.
#[derive(Clone)]
pub struct Mapped {
    bytes: Bytes,
}

#[derive(Clone)]
enum Bytes {
    Map(Arc<memmap2::Mmap>),
    /// The bytes, and a token that lives as long as they are in use.
    Memory {
        bytes: Arc<Vec<u8>>,
        _in_use: Option<Arc<dyn Any + Send + Sync>>,
    },
}

impl Mapped {
    /// Bytes that were never in a file.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Memory { bytes: Arc::new(bytes), _in_use: None } }
    }

    pub(crate) fn from_map(map: memmap2::Mmap) -> Self {
        Self { bytes: Bytes::Map(Arc::new(map)) }
    }

    pub(crate) fn from_shared(bytes: Arc<Vec<u8>>, in_use: Arc<dyn Any + Send + Sync>) -> Self {
        Self { bytes: Bytes::Memory { bytes, _in_use: Some(in_use) } }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Map(map) => map,
            Bytes::Memory { bytes, .. } => bytes,
        }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} bytes)", self.len())
    }
}
