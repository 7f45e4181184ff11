//! Reading a Maildir: the messages in `cur` and `new`, in the order of `dovecot-uidlist` or of their names; flags and keywords from
//! the file names (`:2,FS`, letters `a` to `z` by `dovecot-keywords`).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use model::{Keyword, Result, SystemFlag};
use platform::{Disk, Timestamp};

use crate::FlagNames;

/// A Maildir, listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Maildir {
    /// Its messages, in the order in which they are imported.
    pub(super) files: Vec<MaildirFile>,
    /// The keywords of the letters `a` to `z`.
    pub(super) keywords: Vec<Option<String>>,
}

/// One message file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MaildirFile {
    pub(super) path: PathBuf,
    /// Whether it can be read as a file: opening a pipe could wait for ever.
    pub(super) is_file: bool,
    /// Octets.
    pub(super) len: u64,
    pub(super) modified: Timestamp,
    /// The name without its flags: it stays when flags change.
    pub(super) base: String,
    /// The letters after `:2,`.
    pub(super) flags: String,
}

/// Whether a directory is a Maildir: it has `cur` and `new`.
pub(super) fn is_maildir(disk: &dyn Disk, path: &Path) -> Result<bool> {
    for name in ["cur", "new"] {
        match disk.metadata(&path.join(name)) {
            Ok(metadata) if metadata.is_dir => {}
            Ok(_) => return Ok(false),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Lists a Maildir. `new` comes before `cur`: a file that is moved meanwhile (by the program that serves the Maildir) is found twice
/// at most, and then taken once.
pub(super) fn read(disk: &dyn Disk, path: &Path) -> Result<Maildir> {
    let order = read_uidlist(disk, path)?;
    let mut files: HashMap<String, MaildirFile> = HashMap::new();
    for name in ["new", "cur"] {
        let dir = path.join(name);
        for entry in disk.list(&dir)?.into_iter().filter(|entry| !entry.is_dir) {
            let name = entry.name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            let (base, flags) = split_name(&name);
            let file_path = dir.join(&entry.name);
            let metadata = match disk.metadata(&file_path) {
                Ok(metadata) => metadata,
                // Moved or removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let file = MaildirFile {
                path: file_path,
                is_file: metadata.is_file,
                len: metadata.len,
                modified: metadata.modified,
                base: base.to_owned(),
                flags: flags.to_owned(),
            };
            files.insert(base.to_owned(), file);
        }
    }
    let mut files: Vec<MaildirFile> = files.into_values().collect();
    // Names begin with the second of their delivery: as a number, so that years do not matter.
    let key = |file: &MaildirFile| {
        let seconds = file.base.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        (order.get(&file.base).copied().unwrap_or(u32::MAX), seconds)
    };
    files.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.base.cmp(&b.base)));
    Ok(Maildir { files, keywords: read_keywords(disk, path)? })
}

/// The name without flags, and the flags. Some systems write `;` or `!` where the colon is not allowed.
fn split_name(name: &str) -> (&str, &str) {
    for mark in [":2,", ";2,", "!2,"] {
        if let Some((base, flags)) = name.rsplit_once(mark) {
            return (base, flags);
        }
    }
    (name, "")
}

fn read_small(disk: &dyn Disk, path: &Path, name: &str) -> Result<Option<String>> {
    match disk.read(&path.join(OsStr::new(name))) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `dovecot-uidlist`, version 3 (`UID [fields] :NAME`) or 1 (`UID NAME`): by base name.
fn read_uidlist(disk: &dyn Disk, path: &Path) -> Result<HashMap<String, u32>> {
    let text = read_small(disk, path, "dovecot-uidlist")?.unwrap_or_default();
    let mut order = HashMap::new();
    for line in text.lines().skip(1) {
        let Some((uid, rest)) = line.split_once(' ') else { continue };
        let name = rest.split_once(':').map_or(rest, |(_, name)| name);
        if let Ok(uid) = uid.parse() {
            order.insert(split_name(name).0.to_owned(), uid);
        }
    }
    Ok(order)
}

/// `dovecot-keywords`: `0 NAME` for the letter `a` and so on.
fn read_keywords(disk: &dyn Disk, path: &Path) -> Result<Vec<Option<String>>> {
    let mut keywords = vec![None; 26];
    for line in read_small(disk, path, "dovecot-keywords")?.unwrap_or_default().lines() {
        let Some((number, name)) = line.split_once(' ') else { continue };
        if let Some(slot) = number.parse::<usize>().ok().and_then(|number| keywords.get_mut(number)) {
            *slot = Some(name.trim().to_owned());
        }
    }
    Ok(keywords)
}

impl Maildir {
    /// The flags that a file's letters stand for. Letters without a meaning are passed over.
    pub(super) fn flags(&self, file: &MaildirFile) -> FlagNames {
        let mut names = FlagNames::default();
        for letter in file.flags.bytes() {
            match letter {
                b'D' => names.system.push(SystemFlag::Draft),
                b'F' => names.system.push(SystemFlag::Flagged),
                b'R' => names.system.push(SystemFlag::Answered),
                b'S' => names.system.push(SystemFlag::Seen),
                b'T' => names.system.push(SystemFlag::Deleted),
                b'P' => names.keywords.extend(Keyword::new("$Forwarded")),
                b'a'..=b'z' => {
                    let name = self.keywords.get(usize::from(letter - b'a')).and_then(Option::as_deref);
                    names.keywords.extend(name.and_then(|name| Keyword::new(name).ok()));
                }
                _ => {}
            }
        }
        names
    }
}

impl MaildirFile {
    /// The number of a field of the base name: `,S=1234`.
    fn field(&self, name: &str) -> Option<&str> {
        self.base.split(',').skip(1).find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether the octets are the message as it is: the size of the file and that of the message with CRLF line ends are said
    /// to be the same, although there may be bare LFs. Our own export says so; see [`crate::export`].
    pub(super) fn is_raw(&self) -> bool {
        let len = self.len.to_string();
        self.field("S") == Some(&len) && self.field("W") == Some(&len)
    }

    /// Minutes east of UTC of the internal date, where our own export has written them.
    pub(super) fn offset_minutes(&self) -> i16 {
        let minutes = self.field("Z").and_then(|text| text.parse().ok()).unwrap_or(0);
        if (-1439..=1439).contains(&minutes) { minutes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(name: &str, len: u64) -> MaildirFile {
        let (base, flags) = split_name(name);
        MaildirFile {
            path: PathBuf::from(name),
            is_file: true,
            len,
            modified: Timestamp::default(),
            base: base.to_owned(),
            flags: flags.to_owned(),
        }
    }

    #[test]
    fn names_and_flags() {
        let maildir = Maildir { files: Vec::new(), keywords: vec![None, Some("$Junk".to_owned())] };
        let names = maildir.flags(&file("1.a.b:2,FSabP?", 0));
        assert_eq!(names.system, [SystemFlag::Flagged, SystemFlag::Seen]);
        assert_eq!(names.keywords, [Keyword::new("$Junk").unwrap(), Keyword::new("$Forwarded").unwrap()]);
        assert_eq!(split_name("1.a:1,x"), ("1.a:1,x", ""));
        assert_eq!(split_name("1.a!2,S"), ("1.a", "S"));
    }

    #[test]
    fn fields_of_names() {
        assert!(file("1.a,S=10,W=10:2,", 10).is_raw());
        assert!(!file("1.a,S=10,W=11:2,", 10).is_raw());
        assert!(!file("1.a,S=10,W=10:2,", 9).is_raw());
        assert_eq!(file("1.a,S=1,Z=-90:2,", 1).offset_minutes(), -90);
        assert_eq!(file("1.a,Z=99999", 1).offset_minutes(), 0);
    }
}
