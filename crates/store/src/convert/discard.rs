//! Removing the files of a format that an account has left.
//!
//! Invariant: the log says that they are being removed until all that is to go is gone durably. So they go, whenever the power does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use index::Log;
use model::Result;
use platform::{Disk, Env, OpenMode};

use super::Phase;
use crate::format::AccountFormat;
use crate::format::{maildir, mbox};
use crate::store::remove_tree;

/// Removes the files that the account has left, of which its log says that they are being removed, and that it says so. Gives those that stay:
/// somebody has changed them since, and what is in them may be nowhere else.
pub(super) fn settle(env: &Env, log: &Arc<Log>) -> Result<Vec<PathBuf>> {
    let Some(Phase::Discarding { old }) = Phase::of(&log.state())? else { return Ok(Vec::new()) };
    let left = discard(env, log.dir(), &old)?;
    log.commit(|transaction| Phase::set(None, transaction))?;
    Ok(left)
}

/// Removes, durably, the files of an account in `dir` that were its own in that format, as far as they are as they were when it last looked. Gives those
/// that stay. Files that an earlier call has removed are not missed.
fn discard(env: &Env, dir: &Path, format: &AccountFormat) -> Result<Vec<PathBuf>> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(Vec::new()),
        AccountFormat::Maildir { root, .. } => maildir::discard::discard(&*env.disk, dir, root),
        AccountFormat::Mbox { inbox, root } => mbox::discard::discard(&*env.disk, dir, inbox, root),
    }
}

/// Where an account in `dir` keeps what it knows of files of that format: what cannot be derived, and how the names of maps in `index` begin.
fn places(dir: &Path, format: &AccountFormat) -> Option<(PathBuf, &'static str)> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => None,
        AccountFormat::Mbox { .. } => Some((dir.join(mbox::account::DIR), "mbox-")),
        AccountFormat::Maildir { .. } => Some((dir.join(maildir::account::DIR), "maildir-")),
    }
}

/// The maps of an account in `dir`, whose names begin with `prefix`.
fn maps(disk: &dyn Disk, dir: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let index = dir.join("index");
    if !disk.exists(&index)? {
        return Ok(Vec::new());
    }
    let is_map = |entry: &platform::DirEntry| entry.name.to_str().is_some_and(|name| name.starts_with(prefix));
    Ok(disk.list(&index)?.iter().filter(|entry| is_map(entry)).map(|entry| index.join(&entry.name)).collect())
}

/// Makes durable what an account in `dir` knows of files of that format, which it is leaving: without their maps nobody could tell later whether they
/// are as they were left.
pub(super) fn keep_maps(disk: &dyn Disk, dir: &Path, format: &AccountFormat) -> Result<()> {
    let Some((_, prefix)) = places(dir, format) else { return Ok(()) };
    let maps = maps(disk, dir, prefix)?;
    maps.iter().try_for_each(|map| disk.open(map, OpenMode::Read)?.sync_data())?;
    if !maps.is_empty() {
        disk.sync_dir(&dir.join("index"))?;
    }
    Ok(())
}

/// Forgets, durably, what an account in `dir` has known of files of that format: it has had such before, and there are none now. A map of files
/// that are not there would mean that somebody has removed them, and their messages.
pub(super) fn forget(disk: &dyn Disk, dir: &Path, format: &AccountFormat) -> Result<()> {
    let Some((kept, prefix)) = places(dir, format) else { return Ok(()) };
    let maps = maps(disk, dir, prefix)?;
    maps.iter().try_for_each(|map| disk.remove(map))?;
    let index = dir.join("index");
    if disk.exists(&index)? {
        // Also for those that were removed before, and may be back after a power cut.
        disk.sync_dir(&index)?;
    }
    if disk.exists(&kept)? {
        remove_tree(disk, &kept)?;
        disk.sync_dir(dir)?;
    }
    Ok(())
}
