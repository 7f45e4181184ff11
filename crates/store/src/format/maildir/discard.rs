//! Removing the Maildirs of an account that has left them.

use std::path::{Path, PathBuf};

use model::Result;
use platform::Disk;

use super::account::{DIR, NAMES_HEADER};
use super::layout::SUBDIRS;
use super::listing::{Listed, Subdir};
use super::map::Map;
use crate::format::names::Names;
use crate::store::remove_tree;

/// Removes the files that belong to entries of the account in `dir` as its maps know them, and what the account kept of them. Gives the Maildirs
/// that stay, as somebody has put other messages there.
pub(crate) fn discard(disk: &dyn Disk, dir: &Path, root: &Path) -> Result<Vec<PathBuf>> {
    let kept = dir.join(DIR);
    let mut left = Vec::new();
    let names = Names::load(disk, &kept, NAMES_HEADER)?;
    // Those below others first.
    let mut all: Vec<_> = names.iter().collect();
    all.sort_by_key(|(_, path)| std::cmp::Reverse(path.to_owned()));
    for (id, path) in all {
        let maildir = if path.as_os_str().is_empty() { root.to_owned() } else { root.join(path) };
        if !disk.exists(&maildir)? {
            continue;
        }
        let map_path = dir.join("index").join(format!("maildir-{id}"));
        if let Some(map) = Map::load(disk, &map_path) {
            for record in map.records().iter().chain(map.doomed()) {
                let name = map.name(record).to_vec();
                let file = Listed { subdir: record.subdir, base_len: map.base(record).len(), name };
                super::project::unlink(disk, &maildir, &file)?;
            }
        }
        let is_empty = |subdir: Subdir| crate::convert::is_empty_dir(disk, &maildir.join(subdir.as_str()));
        if !(is_empty(Subdir::New)? && is_empty(Subdir::Cur)?) {
            left.push(maildir);
            continue;
        }
        for subdir in SUBDIRS {
            // Somebody may be writing into it.
            let _left = disk.remove_dir(&maildir.join(subdir));
        }
        for name in ["maildirfolder", super::KEYWORDS_FILE] {
            let _left = disk.remove(&maildir.join(name));
        }
        let _ = disk.remove(&map_path);
        // The top is where the administrator has made it.
        if maildir != root {
            let _left = disk.remove_dir(&maildir);
        }
    }
    if disk.exists(&kept)? {
        remove_tree(disk, &kept)?;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use platform::sim::SimEnv;

    use super::*;

    #[test]
    fn what_others_have_put_there_stays() {
        let sim = SimEnv::new(1);
        let (disk, dir, root) = (sim.env().disk, Path::new("/a"), Path::new("/m"));
        let mut names = Names::default();
        for (id, path) in [(1, ""), (2, ".x")] {
            names.set(model::MailboxId(id), PathBuf::from(path));
            for subdir in SUBDIRS {
                disk.create_dir_all(&root.join(path).join(subdir)).unwrap();
            }
        }
        names.save(&*disk, &dir.join(DIR), NAMES_HEADER).unwrap();
        disk.open(&root.join(".x/new/1.a"), platform::OpenMode::CreateNew).unwrap();
        let left = discard(&*disk, dir, root).unwrap();
        assert_eq!(left, [root.join(".x")]);
        assert!(!disk.exists(&root.join("cur")).unwrap() && !disk.exists(&dir.join(DIR)).unwrap());
    }
}
