//! Removing the Maildirs of an account that has left them.

use std::path::{Path, PathBuf};

use model::{Error, Result};
use platform::Disk;

use super::account::{DIR, NAMES_HEADER};
use super::layout::SUBDIRS;
use super::listing;
use super::map::Map;
use crate::convert::is_empty_dir;
use crate::format::names::Names;
use crate::store::remove_tree;

/// Files that belong to a Maildir and not to a message.
const BESIDE: [&str; 8] = [
    "maildirfolder",
    "dovecot-keywords",
    "dovecot-uidlist",
    "dovecot-uidvalidity",
    "courierimapuiddb",
    "courierimapsubscribed",
    "subscriptions",
    "maildirsize",
];

/// Removes, durably, the files of the messages that mailboxes of the account in `dir` have by its maps, then directories in which nothing else is,
/// then what the account kept of them. Gives the Maildirs that stay: others have put something there that is nowhere else. It can be
/// interrupted and done again.
pub(crate) fn discard(disk: &dyn Disk, dir: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let kept = dir.join(DIR);
    let mut left = Vec::new();
    let names = Names::load(disk, &kept, NAMES_HEADER)?;
    let mut paths: Vec<_> = names.iter().map(|(id, path)| (id, path.to_owned())).collect();
    // What is below goes first.
    paths.sort_by_key(|(_, path)| std::cmp::Reverse(path.clone()));
    for (id, path) in paths {
        let maildir = if path.as_os_str().is_empty() { root.to_owned() } else { root.join(&path) };
        let map_path = dir.join("index").join(format!("maildir-{id}"));
        if let Some(map) = Map::load(disk, &map_path) {
            for record in map.records().iter().chain(map.doomed()) {
                gone(disk.remove(&listing::path(&maildir, record.subdir, map.name(record))))?;
            }
        }
        if remove_empty(disk, &maildir)? {
            // Without it a file that a power cut brings back would be nobody's.
            let _ = disk.remove(&map_path);
        } else {
            left.push(maildir);
        }
    }
    if disk.exists(&kept)? {
        remove_tree(disk, &kept)?;
        disk.sync_dir(dir)?;
    }
    left.sort();
    Ok(left)
}

/// Removes a Maildir without messages; false: there are some, or Maildirs below it.
fn remove_empty(disk: &dyn Disk, maildir: &Path) -> Result<bool> {
    if !disk.exists(maildir)? {
        // It may be gone since we were interrupted.
        let above = maildir.ancestors().skip(1).find(|above| disk.exists(above).unwrap_or(false));
        above.map_or(Ok(()), |above| disk.sync_dir(above))?;
        return Ok(true);
    }
    for subdir in ["new", "cur"] {
        if !is_empty_dir(disk, &maildir.join(subdir))? {
            for subdir in SUBDIRS {
                gone(disk.sync_dir(&maildir.join(subdir)))?;
            }
            return Ok(false);
        }
    }
    // What was about to replace one of them when somebody was interrupted belongs to it.
    let is_beside = |name: &str| BESIDE.contains(&name.strip_suffix(".tmp").unwrap_or(name)) || name.ends_with(".lock");
    let is_known = |name: &str| SUBDIRS.contains(&name) || is_beside(name);
    let entries = disk.list(maildir)?;
    let has_others = entries.iter().any(|entry| !entry.name.to_str().is_some_and(is_known));
    for subdir in SUBDIRS {
        match disk.list(&maildir.join(subdir)) {
            // What is in `tmp` was never delivered.
            Ok(_) => remove_tree(disk, &maildir.join(subdir))?,
            result => gone(result.map(drop))?,
        }
    }
    for beside in entries.iter().filter(|entry| !entry.is_dir && entry.name.to_str().is_some_and(is_known)) {
        gone(disk.remove(&maildir.join(&beside.name)))?;
    }
    if has_others {
        disk.sync_dir(maildir)?;
    } else {
        disk.remove_dir(maildir)?;
        disk.sync_dir(platform::parent_of(maildir))?;
    }
    // With other directories in it it is no Maildir any more.
    Ok(true)
}

/// Not there is as good as removed.
fn gone(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(Error::from),
    }
}
