//! Verifying everything, and repairing the index.

use std::path::{Path, PathBuf};

use model::{EmailId, Result};
use platform::Env;

use crate::log::Log;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Where in the file, bytes.
    pub offset: u64,
    /// The message that is damaged, if it is one.
    pub email_id: Option<EmailId>,
    /// What is wrong.
    pub what: String,
}

/// What [`Log::check`] looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Messages whose bytes were verified.
    pub messages: u64,
    /// Records that were verified.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// What is wrong; empty when all is well.
    pub findings: Vec<Finding>,
}

impl Log {
    /// Reads everything, verifies every checksum, and compares the state with a replay of the whole log.
    pub fn check(&self) -> Result<CheckReport> {
        todo!()
    }
}

/// Removes the index of a closed account; the next opening rebuilds it from the log.
pub fn remove_index(env: &Env, dir: &Path) -> Result<()> {
    let index = dir.join(crate::layout::INDEX_DIR);
    let _lock = env.disk.lock(&dir.join(crate::layout::LOCK_FILE))?;
    match env.disk.list(&index) {
        Ok(entries) => {
            for entry in entries {
                env.disk.remove(&index.join(entry.name))?;
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}
