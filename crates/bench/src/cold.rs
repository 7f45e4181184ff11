//! Making files cold: out of the page cache, as far as the machine permits.

use crate::error::{Doing, Result};
use rustix::fs::Advice;
use std::path::{Path, PathBuf};

/// How far it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The whole page cache, inodes and directories (proc(5), `/proc/sys/vm/drop_caches`).
    Everything,
    /// The contents of the files only (posix_fadvise(2), `POSIX_FADV_DONTNEED`); inodes and directories stay.
    Contents,
}

impl Dropped {
    /// For the report.
    pub fn explained(self) -> &'static str {
        match self {
            Dropped::Everything => "page cache, inodes and directories dropped",
            Dropped::Contents => {
                "contents of the server's files dropped from the page cache; inodes and directories stay cached"
            }
        }
    }
}

/// Drops everything below these paths from the page cache; what is dirty is written back first, since dirty pages cannot be dropped.
pub fn drop_from_cache(paths: &[PathBuf]) -> Result<Dropped> {
    // Once for all: a sync of each file takes minutes where there is one a message.
    rustix::fs::sync();
    for path in paths {
        drop_tree(path)?;
    }
    match std::fs::write("/proc/sys/vm/drop_caches", "3") {
        Ok(()) => Ok(Dropped::Everything),
        Err(_) => Ok(Dropped::Contents),
    }
}

/// Waits until everything that was written to the file system of this folder is on its disk (syncfs(2)).
pub fn sync(folder: &Path) -> Result<()> {
    let folder = std::fs::File::open(folder).doing(folder.display())?;
    rustix::fs::syncfs(folder).doing("syncfs")
}

fn drop_tree(path: &Path) -> Result<()> {
    // A server's temporary file may go while one looks.
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).doing(path.display())? {
            drop_tree(&entry.doing(path.display())?.path())?;
        }
    } else if metadata.is_file() {
        let Ok(file) = std::fs::File::open(path) else { return Ok(()) };
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).doing(path.display())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::drop_from_cache;

    #[test]
    fn trees_and_missing_files() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("a")).expect("made");
        std::fs::write(folder.path().join("a/b"), vec![0; 100_000]).expect("written");
        drop_from_cache(&[folder.path().to_path_buf(), folder.path().join("not there")]).expect("dropped");
    }
}
