//! Removing the files of a format that an account has left.

use std::path::{Path, PathBuf};

use model::Result;
use platform::{Disk, Env};

use crate::format::AccountFormat;
use crate::format::{maildir, mbox};
use crate::store::remove_tree;

/// Removes the files of an account in `dir` that were its own in that format, as far as they are as they were when it last looked. Gives those
/// that stay: somebody has changed them since, and what is in them may be nowhere else.
pub(super) fn discard(env: &Env, dir: &Path, format: &AccountFormat) -> Result<Vec<PathBuf>> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(Vec::new()),
        AccountFormat::Maildir { root, .. } => maildir::discard::discard(&*env.disk, dir, root),
        AccountFormat::Mbox { inbox, root } => mbox::discard::discard(&*env.disk, dir, inbox, root),
    }
}

/// Forgets, durably, what an account in `dir` has known of files of that format: it has had such before, and there are none now. A map of files
/// that are not there would mean that somebody has removed them, and their messages.
pub(super) fn forget(disk: &dyn Disk, dir: &Path, format: &AccountFormat) -> Result<()> {
    let (kept, prefix) = match format {
        AccountFormat::Native | AccountFormat::Sql => return Ok(()),
        AccountFormat::Mbox { .. } => (mbox::account::DIR, "mbox-"),
        AccountFormat::Maildir { .. } => (maildir::account::DIR, "maildir-"),
    };
    let index = dir.join("index");
    if disk.exists(&index)? {
        for entry in disk.list(&index)? {
            if entry.name.to_str().is_some_and(|name| name.starts_with(prefix)) {
                disk.remove(&index.join(&entry.name))?;
            }
        }
        disk.sync_dir(&index)?;
    }
    let kept = dir.join(kept);
    if disk.exists(&kept)? {
        remove_tree(disk, &kept)?;
        disk.sync_dir(dir)?;
    }
    Ok(())
}
