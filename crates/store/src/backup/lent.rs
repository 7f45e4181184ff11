//! A disk on which some files of a directory are others, lent for reading: the segments of a snapshot, under the names that the log gives them.
//!
//! So a log is read where its files lie, and only what is wanted of them, with the log's own checksums.
//!
//! Invariants:
//! - A lent file is never written, and its own name never changed. Removing the name that it is lent under ends the loan.
//! - Everything else is as on the disk below.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform::{Batch, DirEntry, Disk, File, LockGuard, Mapped, Metadata, OpenMode, parent_of};

/// See the module.
#[derive(Debug)]
pub(super) struct LendingDisk {
    below: Arc<dyn Disk>,
    /// Where the file of a name is.
    lent: Mutex<BTreeMap<PathBuf, PathBuf>>,
}

impl LendingDisk {
    /// With these loans: the name, and the file.
    pub(super) fn new(below: Arc<dyn Disk>, lent: BTreeMap<PathBuf, PathBuf>) -> Self {
        LendingDisk { below, lent: Mutex::new(lent) }
    }

    fn lent(&self) -> MutexGuard<'_, BTreeMap<PathBuf, PathBuf>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where to read what is at a path.
    fn source(&self, path: &Path) -> PathBuf {
        self.lent().get(path).cloned().unwrap_or_else(|| path.to_owned())
    }

    /// What is at a path that is not lent.
    fn own<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        if self.lent().contains_key(path) { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(path) }
    }
}

impl Disk for LendingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        match mode {
            OpenMode::Read => self.below.open(&self.source(path), mode),
            _ => self.below.open(self.own(path)?, mode),
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.below.create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.lent().remove(path).is_some() { Ok(()) } else { self.below.remove(path) }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.below.remove_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.below.rename(self.own(from)?, self.own(to)?)
    }

    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.below.link(self.own(existing)?, self.own(new)?)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.below.sync_dir(path)
    }

    fn batch(&self, path: &Path) -> io::Result<Box<dyn Batch>> {
        self.below.batch(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = self.below.list(path)?;
        let lent = self.lent();
        let names = lent.keys().filter(|name| parent_of(name) == path).filter_map(|name| name.file_name());
        entries.extend(names.map(|name| DirEntry { name: name.to_owned(), is_dir: false }));
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.below.append(self.own(path)?, bytes)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.below.metadata(&self.source(path))
    }

    fn lock(&self, path: &Path) -> io::Result<LockGuard> {
        self.below.lock(self.own(path)?)
    }

    fn map(&self, path: &Path) -> io::Result<Mapped> {
        self.below.map(&self.source(path))
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        self.below.check_writable(self.own(path)?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use platform::sim::SimEnv;

    #[test]
    fn what_is_lent_is_read_and_never_changed() {
        let below = SimEnv::new(1).env().disk;
        for dir in ["/from", "/to"] {
            below.create_dir_all(Path::new(dir)).unwrap();
        }
        let put =
            |disk: &dyn Disk, path: &str| disk.open(Path::new(path), OpenMode::CreateNew)?.write_at(path.as_bytes(), 0);
        put(&*below, "/from/b.digest").unwrap();
        put(&*below, "/to/a").unwrap();
        let (name, source) = (Path::new("/to/b"), Path::new("/from/b.digest"));
        let disk = LendingDisk::new(Arc::clone(&below), BTreeMap::from([(name.to_owned(), source.to_owned())]));
        put(&disk, "/to/c").unwrap();
        let names = |disk: &LendingDisk| {
            disk.list(Path::new("/to")).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&disk), ["a", "b", "c"]);
        assert_eq!(disk.read(name).unwrap(), b"/from/b.digest");
        assert_eq!(&*disk.map(name).unwrap(), b"/from/b.digest");
        assert_eq!(disk.metadata(name).unwrap(), below.metadata(source).unwrap());

        assert!(disk.open(name, OpenMode::ReadWrite).is_err() && put(&disk, "/to/b").is_err());
        assert!(disk.append(name, b"x").is_err() && disk.lock(name).is_err() && disk.check_writable(name).is_err());
        assert!(disk.rename(name, Path::new("/to/d")).is_err() && disk.rename(Path::new("/to/a"), name).is_err());
        assert!(disk.link(name, Path::new("/to/d")).is_err());
        disk.remove(name).unwrap();
        assert_eq!(names(&disk), ["a", "c"]);
        assert_eq!(below.read(source).unwrap(), b"/from/b.digest");
    }
}
