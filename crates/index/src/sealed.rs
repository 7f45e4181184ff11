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
use crate::state::State;

/// Ids in one part of an account on a journal that counts as sealed.
const SHARED_IDS: u64 = 1024;

/// One sealed segment; with a journal, so many messages that came one after the other.
#[derive(Clone, Debug)]
pub struct Sealed {
    of: Of,
}

#[derive(Clone, Debug)]
enum Of {
    Segment(Arc<Segment>),
    Journal { state: Arc<State>, ids: Range<u64> },
}

impl Sealed {
    /// The last frame, and a checksum over all frames of the log up to it.
    pub fn end(&self) -> (u64, u32) {
        match &self.of {
            Of::Segment(segment) => (segment.trailer.last_frame, segment.trailer.chain),
            // Messages and their ids never change: where the ids end says all of the history up to there.
            Of::Journal { state, ids } => (ids.end, state.chain),
        }
    }

    /// The ids that were given in its frames. Those of all segments follow one another from 1 on.
    pub fn ids(&self) -> Range<u64> {
        match &self.of {
            Of::Segment(segment) => {
                let trailer = &segment.trailer;
                trailer.first_id..trailer.first_id.saturating_add(u64::from(trailer.ids))
            }
            Of::Journal { ids, .. } => ids.clone(),
        }
    }

    /// Whether messages with ids of this range can be here that were given in earlier frames: their bytes came into the log later.
    pub fn may_have_late(&self, ids: &Range<u64>) -> bool {
        let Of::Segment(segment) = &self.of else { return false };
        let trailer = &segment.trailer;
        trailer.late > 0 && trailer.late_first < ids.end && ids.start <= trailer.late_last
    }

    /// The messages in the order in which they lie, and their sizes, octets. Damaged rows are left out.
    pub fn messages(&self) -> Result<Vec<(EmailId, u32)>> {
        match &self.of {
            Of::Segment(segment) => {
                Ok(segment.rows()?.into_iter().flatten().map(|row| (row.email_id, row.len)).collect())
            }
            Of::Journal { state, ids } => Ok(state.messages(ids)),
        }
    }
}

/// How many parts of an account on a journal are full.
fn shared_parts(state: &State) -> u64 {
    state.email_ids_end().saturating_sub(1) / SHARED_IDS
}

impl Log {
    /// The sealed segments, in the order of their frames.
    pub fn sealed(&self) -> Vec<Sealed> {
        if self.is_shared() {
            let state = self.state();
            let parts = 0..shared_parts(&state);
            let of = |part: u64| Of::Journal {
                state: Arc::clone(&state),
                ids: part * SHARED_IDS + 1..(part + 1) * SHARED_IDS + 1,
            };
            return parts.map(|part| Sealed { of: of(part) }).collect();
        }
        self.layout().segments.iter().map(|segment| Sealed { of: Of::Segment(Arc::clone(segment)) }).collect()
    }

    /// Rises whenever [`Log::sealed`] changes.
    pub fn sealed_version(&self) -> u64 {
        if self.is_shared() {
            return shared_parts(&self.state());
        }
        self.layout_version.load(Ordering::Acquire)
    }

    /// Where derived files lie: `index/`. Everything there may be deleted while the account is closed; what is named `*.new` is
    /// when it is opened.
    pub fn index_dir(&self) -> PathBuf {
        self.dir.join(INDEX_DIR)
    }
}
