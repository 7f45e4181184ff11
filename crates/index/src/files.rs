//! The files of a log at one moment, for whoever copies them while the log goes on.
//!
//! Invariants: the files together are the log up to a durable frame, neither less nor more; they stay readable while they are held, also when
//! compaction has removed their names. Put into an empty `log/` under their names, they open as that log.

use std::sync::Arc;

use model::{ModSeq, Result};
use platform::File;

use crate::log::Log;
use crate::tail::Tail;

/// One file of a log.
#[derive(Debug)]
pub struct LogFile {
    /// Its name in `log/`.
    pub name: String,
    /// Its octets, from the first on. A file may be longer: what is behind belongs to later frames.
    pub len: u64,
    /// Whether the octets under this name are the same for ever: a segment. A tail grows.
    pub is_sealed: bool,
    file: Arc<dyn File>,
}

impl LogFile {
    /// Whether it is the name of a file whose octets are the same for ever.
    pub fn is_sealed_name(name: &str) -> bool {
        crate::segment::parse_file_name(name).is_some()
    }

    /// Fills `buf` from `offset` on; both have to be within `len`.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        Ok(self.file.read_exact_at(buf, offset)?)
    }
}

/// What [`Log::files`] gives.
#[derive(Debug)]
pub struct LogFiles {
    /// The last frame that is in them.
    pub frame: u64,
    /// The modseq of the account, of that frame or a little older one.
    pub modseq: ModSeq,
    /// In the order of their frames.
    pub files: Vec<LogFile>,
}

impl Log {
    /// The files that are the log as it is durably now. Commits and maintenance go on meanwhile and afterwards.
    pub fn files(&self) -> Result<LogFiles> {
        let modseq = self.state().modseq();
        // The last tail of this layout may be followed by another one at any moment. Then it ends where it ends: a log that is a little older.
        let layout = self.layout();
        let mut found = LogFiles { frame: 0, modseq, files: Vec::new() };
        for segment in &layout.segments {
            let name = segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Compaction opens what it removes before it does: this is the open handle, or the name is still there.
            let file = Arc::clone(segment.file()?);
            found.files.push(LogFile { name, len: segment.file_len, is_sealed: true, file });
            found.frame = segment.trailer.last_frame;
        }
        for tail in &layout.tails {
            let (len, last_frame) = tail.durable();
            if last_frame < tail.first_frame {
                continue;
            }
            let name = Tail::file_name(tail.first_frame);
            found.files.push(LogFile { name, len, is_sealed: false, file: Arc::clone(&tail.file) });
            found.frame = last_frame;
        }
        Ok(found)
    }
}
