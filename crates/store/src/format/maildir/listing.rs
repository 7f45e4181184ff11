//! Looking at a Maildir: which files are in `new` and `cur`, by their names alone.
//!
//! Other programs rename, deliver and delete while somebody reads a directory, and readdir promises nothing then: a file that is renamed meanwhile
//! may be listed under both names, or under none. So a look says whether anything was changed while it went on ([`Look::is_stable`]); a file that
//! one look does not show need not be gone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use platform::{Clock, Disk};

use super::name::{Letters, Name};
use crate::format::mbox::identity::Identity;

/// The two directories that have messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Subdir {
    /// Messages that no reader has seen: names without flags.
    New,
    /// All others.
    Cur,
}

impl Subdir {
    /// Both, in the order in which they are looked at: most files that move go from the first to the second.
    pub(super) const ALL: [Subdir; 2] = [Subdir::New, Subdir::Cur];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Subdir::New => "new",
            Subdir::Cur => "cur",
        }
    }
}

/// What the system says of both directories. As long as it says the same, no name in them has changed; see [`Identity`] for changes within the clock's tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) new: Identity,
    pub(super) cur: Identity,
}

impl Stamp {
    /// As it is now.
    pub(super) fn take(disk: &dyn Disk, maildir: &Path) -> io::Result<Stamp> {
        let of = |subdir: Subdir| Ok::<_, io::Error>(Identity::of(&disk.metadata(&maildir.join(subdir.as_str()))?));
        Ok(Stamp { new: of(Subdir::New)?, cur: of(Subdir::Cur)? })
    }

    pub(super) fn of(&self, subdir: Subdir) -> &Identity {
        match subdir {
            Subdir::New => &self.new,
            Subdir::Cur => &self.cur,
        }
    }

    /// Which directories they are.
    pub(super) fn inodes(&self) -> [(u64, u64); 2] {
        [self.new, self.cur].map(|identity| (identity.device, identity.inode))
    }

    /// Whether a change in the last instant may not show.
    pub(super) fn is_fresh(&self, clock: &dyn Clock) -> bool {
        let now = clock.now();
        self.new.is_fresh(now) || self.cur.is_fresh(now)
    }
}

/// A file that may be a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) subdir: Subdir,
    /// Its whole name.
    pub(super) name: Vec<u8>,
    /// How much of it is the base.
    pub(super) base_len: usize,
}

impl Listed {
    pub(super) fn base(&self) -> &[u8] {
        self.name.get(..self.base_len).unwrap_or_default()
    }

    /// The flags that its name says.
    pub(super) fn letters(&self) -> Letters {
        Name::parse(&self.name).map(|name| name.letters()).unwrap_or_default()
    }
}

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The directories before they were read: what was changed later has not been seen for certain.
    pub(super) stamp: Stamp,
    /// Nothing was changed while they were read.
    pub(super) is_stable: bool,
    /// Which of them were read.
    pub(super) read: Vec<Subdir>,
    /// The files, those in `cur` last. A base may be there twice.
    pub(super) files: Vec<Listed>,
}

impl Look {
    /// Reads the directories; `only`: not both.
    pub(super) fn take(disk: &dyn Disk, clock: &dyn Clock, maildir: &Path, only: Option<Subdir>) -> io::Result<Look> {
        let stamp = Stamp::take(disk, maildir)?;
        let is_fresh = stamp.is_fresh(clock);
        let read: Vec<Subdir> =
            Subdir::ALL.into_iter().filter(|subdir| only.is_none_or(|only| only == *subdir)).collect();
        let mut files = Vec::new();
        for subdir in &read {
            list(disk, maildir, *subdir, &mut files)?;
        }
        let is_stable = !is_fresh && Stamp::take(disk, maildir)? == stamp;
        Ok(Look { stamp, is_stable, read, files })
    }
}

fn list(disk: &dyn Disk, maildir: &Path, subdir: Subdir, files: &mut Vec<Listed>) -> io::Result<()> {
    for entry in disk.list(&maildir.join(subdir.as_str()))? {
        let name = entry.name.into_encoded_bytes();
        if let Some(base_len) = Name::parse(&name).filter(|_| !entry.is_dir).map(|name| name.base.len()) {
            files.push(Listed { subdir, name, base_len });
        }
    }
    Ok(())
}

/// Where a file is that was renamed a moment ago: by its base, or by what programs leave of it when they add fields.
pub(super) fn locate(disk: &dyn Disk, maildir: &Path, name: &[u8]) -> io::Result<Option<Listed>> {
    let Some(wanted) = Name::parse(name) else { return Ok(None) };
    let mut files = Vec::new();
    // Each once more: it may have gone back, and a directory that is read while it is renamed there may show neither name.
    for subdir in [Subdir::New, Subdir::Cur, Subdir::New, Subdir::Cur] {
        list(disk, maildir, subdir, &mut files)?;
        if let Some(found) = files.iter().find(|file| file.base() == wanted.base) {
            return Ok(Some(found.clone()));
        }
    }
    let stem = |file: &&Listed| Name::parse(&file.name).is_some_and(|name| name.stem() == wanted.stem());
    Ok(files.iter().find(stem).cloned())
}

/// A file of this name.
#[cfg(test)]
pub(super) fn listed(subdir: Subdir, name: &str) -> Listed {
    let base_len = Name::parse(name.as_bytes()).map_or(0, |name| name.base.len());
    Listed { subdir, name: name.as_bytes().to_vec(), base_len }
}

/// The path of a file.
pub(super) fn path(maildir: &Path, subdir: Subdir, name: &[u8]) -> PathBuf {
    let mut path = maildir.join(subdir.as_str());
    path.push(OsStr::from_bytes(name));
    path
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use platform::OpenMode;
    use platform::sim::SimEnv;

    use super::*;

    fn maildir(names: &[&str]) -> (SimEnv, PathBuf) {
        let (sim, dir) = (SimEnv::new(1), PathBuf::from("/m"));
        for subdir in ["new", "cur"] {
            sim.env().disk.create_dir_all(&dir.join(subdir)).unwrap();
        }
        for name in names {
            sim.env().disk.open(&dir.join(name), OpenMode::CreateNew).unwrap();
        }
        (sim, dir)
    }

    #[test]
    fn names_of_messages() {
        let (sim, dir) = maildir(&["new/b", "cur/b:2,S", "cur/a:2,", "new/.x", "new/a,S=1"]);
        sim.env().disk.create_dir_all(&dir.join("cur/d")).unwrap();
        let env = sim.env();
        let look = Look::take(&*env.disk, &*env.clock, &dir, None).unwrap();
        let names: Vec<_> = look.files.iter().map(|file| String::from_utf8_lossy(&file.name)).collect();
        assert_eq!(names, ["a,S=1", "b", "a:2,", "b:2,S"]);
        assert!(!look.is_stable, "just changed");
        env.clock.sleep(std::time::Duration::from_secs(1));
        assert!(Look::take(&*env.disk, &*env.clock, &dir, Some(Subdir::New)).unwrap().is_stable);
    }

    #[test]
    fn located_after_a_rename() {
        let (sim, dir) = maildir(&["cur/1.a,U=7:2,S", "new/2.b"]);
        let disk = sim.env().disk;
        let found = |name: &[u8]| locate(&*disk, &dir, name).unwrap().map(|file| file.name);
        assert_eq!(found(b"1.a,U=7:2,").unwrap(), b"1.a,U=7:2,S");
        assert_eq!(found(b"1.a:2,").unwrap(), b"1.a,U=7:2,S");
        assert_eq!(found(b"2.b:2,S").unwrap(), b"2.b");
        assert_eq!(found(b"3.c"), None);
    }
}
