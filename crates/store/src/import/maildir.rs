//! Reading a Maildir: the messages in `cur` and `new` with what their names say, and what the server that kept it has written beside them: UIDs and
//! keywords of Dovecot or of Courier ([`crate::format::maildir`]).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::{DateTime, Keyword, Result, SystemFlag, Uid, UidValidity};
use platform::{Disk, Timestamp};

use super::listed::{Content, FileNotes, Listed, ListedMessage};
use crate::FlagNames;
use crate::format::maildir::courier;
use crate::format::maildir::keywords::Keywords;
use crate::format::maildir::name::{self, Letters, Name};
use crate::format::maildir::uidlist::UidList;
use crate::format::served::Form;

/// What Dovecot and Courier call their lists of UIDs.
const UID_LISTS: [&str; 2] = ["dovecot-uidlist", "courierimapuiddb"];

/// A Maildir, listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Maildir {
    /// Its messages, in the order in which they are imported: those with UIDs first.
    pub(super) files: Vec<MaildirFile>,
    /// The UIDs that its server has given; `None`: there is no list of them.
    pub(super) uids: Option<Uids>,
    /// The keywords of the letters `a` to `z`.
    keywords: Keywords,
    /// Courier's keywords.
    courier: courier::Keywords,
    /// What is odd, or cannot be kept.
    pub(super) notes: FileNotes,
}

/// What a list of UIDs says of the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uids {
    pub(super) uid_validity: UidValidity,
    /// The UID of the next message; never 0.
    pub(super) next: u32,
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
    pub(super) base: Vec<u8>,
    /// The flags that the name says.
    letters: Letters,
    /// Its UID, when the list has it.
    pub(super) uid: Option<u32>,
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
    let mut maildir = Maildir::default();
    let given = maildir.read_uids(disk, path)?;
    if let Some(bytes) = read_small(disk, &path.join("dovecot-keywords"))? {
        maildir.keywords = Keywords::parse(&bytes);
    }
    maildir.read_courier(disk, &path.join("courierimapkeywords"))?;
    let mut files: HashMap<Vec<u8>, MaildirFile> = HashMap::new();
    for name in ["new", "cur"] {
        let dir = path.join(name);
        for entry in disk.list(&dir)?.into_iter().filter(|entry| !entry.is_dir) {
            let Some(name) = Name::parse(entry.name.as_bytes()) else { continue };
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
                base: name.base.to_vec(),
                letters: name.letters(),
                uid: given.get(name.base).copied(),
            };
            files.insert(name.base.to_vec(), file);
        }
    }
    maildir.files = files.into_values().collect();
    // Names begin with the second of their delivery: as a number, so that years do not matter.
    let key = |file: &MaildirFile| {
        let seconds = Name::parse(&file.base).and_then(|name| name.unix_seconds()).unwrap_or(u64::MAX);
        (file.uid.unwrap_or(u32::MAX), seconds)
    };
    maildir.files.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.base.cmp(&b.base)));
    let nameless = maildir.files.iter().filter(|file| maildir.keywords.of(file.letters).1 > 0).count();
    if nameless > 0 {
        let what =
            format!("{nameless} messages have keyword letters that no line of it explains: these keywords are lost");
        maildir.notes.push((path.join("dovecot-keywords"), what));
    }
    Ok(maildir)
}

fn read_small(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    match disk.read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Maildir {
    /// Reads the list of UIDs: of two the one that was written last, since a server that takes over from another leaves the other's list alone. The UIDs by
    /// base name.
    fn read_uids(&mut self, disk: &dyn Disk, path: &Path) -> Result<HashMap<Vec<u8>, u32>> {
        let mut lists = Vec::new();
        for list in UID_LISTS.map(|name| path.join(name)) {
            match disk.metadata(&list) {
                Ok(metadata) => lists.push((metadata.modified, list)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Stable: Dovecot's before Courier's when both are of the same time.
        lists.sort_by(|(a, _), (b, _)| b.cmp(a));
        for (_, file) in lists {
            let bytes = read_small(disk, &file)?.unwrap_or_default();
            let list = UidList::parse(&bytes);
            let Some((uid_validity, list)) = list.and_then(|list| Some((UidValidity::new(list.uid_validity)?, list)))
            else {
                self.notes.push((file, "no list of UIDs that is known here: UIDs are not kept by it".to_owned()));
                continue;
            };
            if list.broken_lines > 0 {
                let what = format!(
                    "{} lines that say no UID, or one that does not rise: their messages get new UIDs",
                    list.broken_lines
                );
                self.notes.push((file, what));
            }
            self.uids = Some(Uids { uid_validity, next: list.next_uid });
            return Ok(list.records.iter().map(|record| (record.base().to_vec(), record.uid)).collect());
        }
        Ok(HashMap::new())
    }

    fn read_courier(&mut self, disk: &dyn Disk, path: &Path) -> Result<()> {
        let entries = match disk.list(path) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        for entry in entries.into_iter().filter(|entry| !entry.is_dir) {
            let Some(bytes) = read_small(disk, &path.join(&entry.name))? else { continue };
            if entry.name == OsStr::new(courier::LIST) {
                self.courier.read_list(&bytes);
            } else {
                self.courier.read_message(entry.name.as_bytes(), &bytes);
            }
        }
        if self.courier.broken_lines > 0 {
            let what = format!("{} lines say nothing that can be kept", self.courier.broken_lines);
            self.notes.push((path.to_owned(), what));
        }
        Ok(())
    }

    /// With its UIDs, when its server has left them.
    pub(super) fn list(&self) -> Option<Listed> {
        let uids = self.uids?;
        let mut notes = self.notes.clone();
        let mut messages = Vec::with_capacity(self.files.len());
        for file in &self.files {
            if !file.is_file {
                notes.push((file.path.clone(), "no plain file: left out".to_owned()));
                continue;
            }
            messages.push(ListedMessage {
                uid: file.uid.and_then(Uid::new),
                name: file.base.clone(),
                path: file.path.clone(),
                content: Content::Whole { bytes: file.len, form: Form { convert: !file.is_raw(), unquote: false } },
                flags: self.flags(file),
                internal_date: Some(DateTime {
                    unix_seconds: file.modified.seconds,
                    offset_minutes: file.offset_minutes(),
                }),
                save_date: None,
            });
        }
        Some(Listed { uid_validity: uids.uid_validity, next_uid: uids.next, modseq: 0, messages, notes })
    }

    /// The flags of a file. Letters without a meaning are passed over.
    pub(super) fn flags(&self, file: &MaildirFile) -> FlagNames {
        let system: Vec<SystemFlag> = file.letters.system().collect();
        let (mut keywords, _) = self.keywords.of(file.letters);
        let passed = file.letters.has(name::PASSED).then(|| Keyword::new("$Forwarded").ok()).flatten();
        for keyword in passed.into_iter().chain(self.courier.of(&file.base).iter().cloned()) {
            if !keywords.contains(&keyword) {
                keywords.push(keyword);
            }
        }
        FlagNames { system, keywords }
    }
}

impl MaildirFile {
    /// Whether the octets are the message as it is: the size of the file and that of the message with CRLF line ends are said
    /// to be the same, although there may be bare LFs. Our own export says so; see [`crate::export`].
    pub(super) fn is_raw(&self) -> bool {
        let name = Name::parse(&self.base);
        name.is_some_and(|name| name.size() == Some(self.len) && name.crlf_size() == Some(self.len))
    }

    /// Minutes east of UTC of the internal date, where our own export has written them.
    pub(super) fn offset_minutes(&self) -> i16 {
        let text = name::field(&self.base, b"Z").and_then(|text| std::str::from_utf8(text).ok());
        let minutes = text.and_then(|text| text.parse().ok()).unwrap_or(0);
        if (-1439..=1439).contains(&minutes) { minutes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(name: &str, len: u64) -> MaildirFile {
        let parsed = Name::parse(name.as_bytes()).unwrap();
        MaildirFile {
            path: PathBuf::from(name),
            is_file: true,
            len,
            modified: Timestamp::default(),
            base: parsed.base.to_vec(),
            letters: parsed.letters(),
            uid: None,
        }
    }

    #[test]
    fn names_and_flags() {
        let mut maildir = Maildir { keywords: Keywords::parse(b"1 $Junk\n"), ..Maildir::default() };
        maildir.courier.read_message(b"1.a.b", b"$Label1\n$junk\n");
        let names = maildir.flags(&file("1.a.b:2,FSabP?", 0));
        assert_eq!(names.system, [SystemFlag::Flagged, SystemFlag::Seen]);
        let keywords: Vec<_> = names.keywords.iter().map(Keyword::as_str).collect();
        assert_eq!(keywords, ["$Junk", "$Forwarded", "$Label1"]);
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
