//! The sealed part of the log as others see it who derive something from its messages and keep that in files of their own.
//!
//! What is derived from messages up to an id belongs to this very log if the log has gone through the same frames: each sealed segment
//! ends with a checksum of all frames up to there. Segments are merged and rewritten, but their ends are never moved: an end either
//! stays or is gone.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{EmailId, Result};

use crate::layout::INDEX_DIR;
use crate::log::Log;
use crate::segment::Segment;

/// One sealed segment.
#[derive(Clone, Debug)]
pub struct Sealed {
    segment: Arc<Segment>,
}

impl Sealed {
    /// The last frame, and a checksum over all frames of the log up to it.
    pub fn end(&self) -> (u64, u32) {
        (self.segment.trailer.last_frame, self.segment.trailer.chain)
    }

    /// The ids that were given in its frames. Those of all segments follow one another from 1 on.
    pub fn ids(&self) -> Range<u64> {
        let trailer = &self.segment.trailer;
        trailer.first_id..trailer.first_id.saturating_add(u64::from(trailer.ids))
    }

    /// Whether messages with ids of this range can be here that were given in earlier frames: their bytes came into the log later.
    pub fn may_have_late(&self, ids: &Range<u64>) -> bool {
        let trailer = &self.segment.trailer;
        trailer.late > 0 && trailer.late_first < ids.end && ids.start <= trailer.late_last
    }

    /// The messages in the order in which they lie, and their sizes, octets. Damaged rows are left out.
    pub fn messages(&self) -> Result<Vec<(EmailId, u32)>> {
        Ok(self.segment.rows()?.into_iter().flatten().map(|row| (row.email_id, row.len)).collect())
    }
}

impl Log {
    /// The sealed segments, in the order of their frames.
    pub fn sealed(&self) -> Vec<Sealed> {
        self.layout().segments.iter().map(|segment| Sealed { segment: Arc::clone(segment) }).collect()
    }

    /// Rises whenever [`Log::sealed`] changes.
    pub fn sealed_version(&self) -> u64 {
        self.layout_version.load(Ordering::Acquire)
    }

    /// Where derived files lie: `index/`. Everything there may be deleted while the account is closed; what is named `*.new` is
    /// when it is opened.
    pub fn index_dir(&self) -> PathBuf {
        self.dir.join(INDEX_DIR)
    }
}
