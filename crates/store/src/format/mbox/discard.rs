//! Removing the mbox files of an account that has left them.

use std::path::{Path, PathBuf};

use model::{Error, Result};
use platform::{Disk, OpenMode, parent_of};

use super::account::DIR;
use super::identity::Identity;
use super::map::Map;
use super::names::{HEADER, Names};
use crate::store::remove_tree;

/// Removes, durably, the files that belong to mailboxes of the account in `dir` and are as its maps know them, then what the account kept of them.
/// Gives those that stay. It can be interrupted and done again.
pub(crate) fn discard(disk: &dyn Disk, dir: &Path, inbox: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let kept = dir.join(DIR);
    let mut left = Vec::new();
    for (id, path) in Names::load(disk, &kept, HEADER)?.iter() {
        let path = if path.as_os_str().is_empty() { inbox.to_owned() } else { root.join(path) };
        let map_path = dir.join("index").join(format!("mbox-{id}"));
        let known = Map::open(disk, &map_path).map(|map| map.facts().identity);
        match disk.open(&path, OpenMode::Read) {
            Ok(file) => {
                let found = Identity::of_file(&*file)?;
                if known != Some(found) && found.len > 0 {
                    left.push(path);
                    continue;
                }
                disk.remove(&path)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::from(error).context(path.display())),
        }
        remove_above(disk, parent_of(&path), root)?;
        // Without it a file that a power cut brings back would be nobody's.
        let _ = disk.remove(&map_path);
    }
    if disk.exists(&kept)? {
        remove_tree(disk, &kept)?;
        disk.sync_dir(dir)?;
    }
    Ok(left)
}

/// Makes durable what was removed from a directory, and removes those that were for children alone.
fn remove_above(disk: &dyn Disk, dir: &Path, root: &Path) -> Result<()> {
    let mut above = dir;
    loop {
        match disk.sync_dir(above) {
            // It went with the file, before we were interrupted.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            synced => {
                synced?;
                if above == root || !above.starts_with(root) || !crate::convert::is_empty_dir(disk, above)? {
                    return Ok(());
                }
                disk.remove_dir(above)?;
            }
        }
        above = parent_of(above);
    }
}
