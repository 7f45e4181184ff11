//! How many syncs the clients' changes cost: what group commit saves can be seen from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use index::Log;

/// Counts of all logs of a store since it was opened.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    syncs: AtomicU64,
    commits: AtomicU64,
}

/// What a store has written since it was opened; see [`crate::Store::writes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Batches of commits that were written and synced.
    pub syncs: u64,
    /// Commits: what one command changes. Those that came while a sync ran shared the next one.
    pub commits: u64,
}

impl Writes {
    /// A function to be called after each batch of `log`, with its newest modseq.
    pub(crate) fn counter(self: &Arc<Self>, log: &Log) -> impl Fn(u64) + Send + Sync + use<> {
        let writes = Arc::clone(self);
        let seen = AtomicU64::new(log.state().modseq().0);
        move |modseq| {
            writes.syncs.fetch_add(1, Ordering::Relaxed);
            // Each commit takes one modseq. Two batches may be reported in either order, so only what is new counts.
            let before = seen.fetch_max(modseq, Ordering::Relaxed);
            writes.commits.fetch_add(modseq.saturating_sub(before), Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> WriteCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WriteCounts { syncs: of(&self.syncs), commits: of(&self.commits) }
    }
}
