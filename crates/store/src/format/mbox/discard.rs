//! Removing the mbox files of an account that has left them.

use std::path::{Path, PathBuf};

use model::{Error, Result};
use platform::{Disk, OpenMode, parent_of};

use super::account::DIR;
use super::identity::Identity;
use super::map::Map;
use super::names::{HEADER, Names};
use crate::store::remove_tree;

/// Removes the files that belong to mailboxes of the account in `dir` and are as its maps know them, and what the account kept of them. Gives
/// those that stay.
pub(crate) fn discard(disk: &dyn Disk, dir: &Path, inbox: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let kept = dir.join(DIR);
    let mut left = Vec::new();
    for (id, path) in Names::load(disk, &kept, HEADER)?.iter() {
        let path = if path.as_os_str().is_empty() { inbox.to_owned() } else { root.join(path) };
        let map_path = dir.join("index").join(format!("mbox-{id}"));
        let known = Map::open(disk, &map_path).map(|map| map.facts().identity);
        let found = match disk.open(&path, OpenMode::Read) {
            Ok(file) => Identity::of_file(&*file)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::from(error).context(path.display())),
        };
        if known == Some(found) || found.len == 0 {
            disk.remove(&path)?;
            disk.sync_dir(parent_of(&path))?;
        } else {
            left.push(path);
            continue;
        }
        let _ = disk.remove(&map_path);
        // Directories that were for children alone.
        let mut above = parent_of(&path);
        while above != root && above.starts_with(root) && crate::convert::is_empty_dir(disk, above)? {
            disk.remove_dir(above)?;
            above = parent_of(above);
        }
    }
    if disk.exists(&kept)? {
        remove_tree(disk, &kept)?;
    }
    Ok(left)
}
