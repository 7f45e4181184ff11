//! Names of mailboxes: which file or directory each mailbox of an account has, as a record on disk.
//!
//! The file `names` in the account's directory for its format records which file each mailbox has. It follows the log: a mailbox that the log
//! has under another name gets its file renamed, one that the log does not have any more loses it. Only then the record is changed, so that
//! whatever was interrupted is done when the account is opened again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::{Error, MailboxId, Result};
use platform::Disk;

/// The name of the record, and what it is written under.
const FILE: &str = "names";
const TEMPORARY: &str = "names.new";

/// Where reconciling happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// The account is being opened: what the log says may be old news.
    Opening,
    /// A client has just changed something.
    Change,
}

/// The file of each mailbox, relative to the root; the empty path is INBOX's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    paths: BTreeMap<MailboxId, PathBuf>,
    /// The record on the disk is another one.
    is_dirty: bool,
}

impl Names {
    /// Reads the record in `dir` that begins with the line `header`; none is an empty one.
    pub(crate) fn load(disk: &dyn Disk, dir: &Path, header: &str) -> Result<Self> {
        let path = dir.join(FILE);
        let bytes = match disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Names::default()),
            Err(error) => return Err(Error::from(error).context(path.display())),
        };
        // A record that is damaged takes nothing with it: mailboxes are found under the names that they should have.
        Ok(Names::parse(&bytes, header).unwrap_or_default())
    }

    fn parse(bytes: &[u8], header: &str) -> Option<Self> {
        let (text, check) = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.rsplit_once('\n')?;
        if check != checksum(text) {
            return None;
        }
        let mut lines = text.lines();
        let mut names = Names::default();
        (lines.next()? == header).then_some(())?;
        for line in lines {
            let (id, path) = line.split_once(' ')?;
            names.paths.insert(MailboxId(id.parse().ok()?), PathBuf::from(path));
        }
        Some(names)
    }

    /// Whether the record on the disk is another one, as far as was told.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// It is on the disk.
    pub(crate) fn set_saved(&mut self) {
        self.is_dirty = false;
    }

    /// Replaces the record in `dir`.
    pub(crate) fn save(&self, disk: &dyn Disk, dir: &Path, header: &str) -> Result<()> {
        disk.create_dir_all_durable(dir)?;
        let mut text = header.to_owned();
        for (id, path) in &self.paths {
            // Only such paths are taken in; see `set`.
            let path = path.to_str().unwrap_or_default();
            text.push_str(&format!("\n{} {path}", id.0));
        }
        let text = format!("{text}\n{}\n", checksum(&text));
        Ok(disk.replace_file(&dir.join(FILE), &dir.join(TEMPORARY), text.as_bytes())?)
    }

    /// The file of a mailbox.
    pub(crate) fn path(&self, id: MailboxId) -> Option<&Path> {
        self.paths.get(&id).map(PathBuf::as_path)
    }

    /// Whether some mailbox has this file.
    pub(crate) fn has_path(&self, path: &Path) -> bool {
        self.paths.values().any(|other| other == path)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MailboxId, &Path)> {
        self.paths.iter().map(|(id, path)| (*id, path.as_path()))
    }

    /// Gives a mailbox its file; `path` is UTF-8.
    pub(crate) fn set(&mut self, id: MailboxId, path: PathBuf) {
        self.is_dirty = true;
        self.paths.insert(id, path);
    }

    /// The mailbox has no file any more.
    pub(crate) fn remove(&mut self, id: MailboxId) {
        self.is_dirty = true;
        self.paths.remove(&id);
    }
}

fn checksum(text: &str) -> String {
    format!("crc32c {:08x}", crc32c::crc32c(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HEADER: &str = "mailyard names 1";

    #[test]
    fn record() {
        let sim = platform::sim::SimEnv::new(1);
        let (disk, dir) = (sim.env().disk, Path::new("/a/mbox"));
        disk.create_dir_all(dir).unwrap();
        let mut names = Names::load(&*disk, dir, HEADER).unwrap();
        assert_eq!(names, Names::default());
        names.set(MailboxId(1), PathBuf::new());
        names.set(MailboxId(7), PathBuf::from("a.sbd/b c"));
        names.save(&*disk, dir, HEADER).unwrap();
        names.set_saved();
        assert_eq!(Names::load(&*disk, dir, HEADER).unwrap(), names);
        let file = disk.open(&dir.join(FILE), platform::OpenMode::ReadWrite).unwrap();
        file.write_at(b"8", HEADER.len() as u64 + 1).unwrap();
        assert_eq!(Names::load(&*disk, dir, HEADER).unwrap(), Names::default());
    }
}
