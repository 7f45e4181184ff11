//! Blobs derived from the messages of a tail, kept in memory until the tail is sealed: a segment has them on disk.
//!
//! Invariant: at most [`KEPT_BYTES_MAX`] bytes; what does not fit is made again whenever somebody asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::EmailId;

/// Bytes that are kept beside one tail: a full one holds about 2,000 ordinary messages, whose blobs take a third of this.
pub(crate) const KEPT_BYTES_MAX: usize = 4 << 20;
/// What a blob takes beside its own bytes, about.
const ENTRY_BYTES: usize = 64;

/// The blobs, by message and column.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Blobs>);

#[derive(Debug, Default)]
struct Blobs {
    by_message: HashMap<(u64, usize), Arc<[u8]>>,
    bytes: usize,
}

impl Kept {
    fn blobs(&self) -> MutexGuard<'_, Blobs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blob, if it is kept.
    pub(crate) fn find(&self, id: EmailId, column: usize) -> Option<Arc<[u8]>> {
        self.blobs().by_message.get(&(id.0, column)).cloned()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        *self.blobs() = Blobs::default();
    }

    /// Keeps a blob if there is room for it; says so.
    pub(crate) fn keep(&self, id: EmailId, column: usize, blob: &Arc<[u8]>) -> bool {
        let mut blobs = self.blobs();
        let bytes = blobs.bytes + blob.len() + ENTRY_BYTES;
        if bytes <= KEPT_BYTES_MAX && blobs.by_message.insert((id.0, column), Arc::clone(blob)).is_none() {
            blobs.bytes = bytes;
        }
        bytes <= KEPT_BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_kept_and_no_more() {
        let kept = Kept::default();
        let half: Arc<[u8]> = vec![1; KEPT_BYTES_MAX / 2 - ENTRY_BYTES].into();
        for id in 1..=2 {
            kept.keep(EmailId(id), 0, &half);
            assert_eq!(kept.find(EmailId(id), 0), Some(Arc::clone(&half)));
        }
        kept.keep(EmailId(3), 0, &Vec::new().into());
        assert_eq!(kept.find(EmailId(3), 0), None, "one over");
        assert_eq!(kept.find(EmailId(1), 1), None, "another column");
    }
}
