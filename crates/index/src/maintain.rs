//! The work in the background: sealing, compaction, checkpoints, retention.

use model::Result;

use crate::log::Log;

/// What the maintenance remembers between its steps.
#[derive(Debug, Default)]
pub(crate) struct Progress {}

/// How much [`Log::maintain`] may do in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes read and written, about; a step that was begun is finished.
    pub bytes: u64,
}

/// What [`Log::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintainReport {
    /// Tails sealed into segments.
    pub sealed: u32,
    /// Segments rewritten or merged.
    pub compacted: u32,
    /// Whether a checkpoint was written.
    pub checkpointed: bool,
    /// Bytes of files removed, less those written.
    pub freed_bytes: i64,
    /// There is more to do: call again soon.
    pub is_more: bool,
}

impl Log {
    /// Seals full tails, compacts segments, forgets what is past its retention, writes a checkpoint when one is due. Sessions
    /// go on meanwhile. Call it now and then (every few seconds) from one thread; without it the log grows but stays right.
    pub fn maintain(&self, budget: Budget) -> Result<MaintainReport> {
        let _ = budget;
        todo!()
    }

    /// Writes a checkpoint of the durable state, so that opening replays little.
    pub fn checkpoint(&self) -> Result<()> {
        todo!()
    }

    /// Waits when too many frozen tails pile up.
    pub(crate) fn hold_back(&self) {}
}
