//! The files beside the log that belong to one mailbox file, and the marker among them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{MailboxId, Result};
use platform::{Disk, OpenMode};

use crate::format::mbox::rewrite;

/// What is in a marker once a sync has failed.
const DOUBT: &[u8] = b"failed\n";

/// Their paths: `<mailbox id>.<kind>`.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The journal of a rewrite.
    pub(super) rewrite: PathBuf,
    /// The intent of an append. An empty file is none.
    pub(super) append: PathBuf,
    /// The marker.
    pub(super) writing: PathBuf,
    /// How much filler the file has.
    pub(super) filler: PathBuf,
}

impl Files {
    pub(super) fn new(dir: &Path, mailbox: MailboxId) -> Files {
        let path = |kind: &str| dir.join(format!("{mailbox}.{kind}"));
        Files { rewrite: path("rewrite"), append: path("append"), writing: path("writing"), filler: path("filler") }
    }
}

/// Removes what is there beside the log for the file of a mailbox, when both are gone. What cannot be removed is known to nobody.
pub fn forget(disk: &dyn Disk, dir: &Path, mailbox: MailboxId) {
    let files = Files::new(dir, mailbox);
    let _gone = rewrite::forget(disk, &files.rewrite);
    for path in [files.append, files.writing, files.filler] {
        let _gone = disk.remove(&path);
    }
}

/// Says that the fields of a file may be newer than what is remembered of them, or torn: until it is settled they count for nothing
/// after a crash, and the log wins ([`super::Recovered::fields_count`]). To drop it is safe: then that stays so.
#[derive(Debug)]
#[must_use = "until it is settled the fields of the file count for nothing"]
pub struct Unsettled {
    disk: Arc<dyn Disk>,
    marker: PathBuf,
    dir: PathBuf,
}

impl Unsettled {
    /// That of a mailbox, whether anything is unsettled or not: for those who remember now, durably, what the file's fields say.
    pub fn of(disk: &Arc<dyn Disk>, dir: &Path, mailbox: MailboxId) -> Unsettled {
        Unsettled { disk: Arc::clone(disk), marker: Files::new(dir, mailbox).writing, dir: dir.to_owned() }
    }

    /// What the fields say is remembered, durably: from now on a difference is somebody else's change.
    pub fn settle(self) -> Result<()> {
        match self.disk.remove(&self.marker) {
            Ok(()) => Ok(self.disk.sync_dir(&self.dir)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A sync of the file has failed: memory may have of it what the disk does not. Marks it, too.
    pub fn doubt(&self) -> Result<()> {
        let marker = self.disk.open(&self.marker, OpenMode::Create)?;
        marker.write_at(DOUBT, 0)?;
        marker.sync_data()?;
        Ok(self.disk.sync_dir(&self.dir)?)
    }

    /// Whether [`Unsettled::doubt`] was called, and `Unsettled::trust` was not since.
    pub fn is_doubted(&self) -> Result<bool> {
        match self.disk.metadata(&self.marker) {
            Ok(found) => Ok(found.len > 0),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The disk has what memory has.
    pub(super) fn trust(&self) -> Result<()> {
        let marker = self.disk.open(&self.marker, OpenMode::ReadWrite)?;
        marker.set_len(0)?;
        Ok(marker.sync_data()?)
    }

    /// Makes the marker, durably.
    pub(super) fn mark(&self) -> Result<()> {
        if !self.is_marked()? {
            self.disk.open(&self.marker, OpenMode::Create)?;
        }
        // Whoever made it may have been stopped before this.
        Ok(self.disk.sync_dir(&self.dir)?)
    }

    pub(super) fn is_marked(&self) -> Result<bool> {
        Ok(self.disk.exists(&self.marker)?)
    }
}
