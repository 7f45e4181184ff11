//! What there is to import below a path, and into which mailboxes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{HIERARCHY_DELIMITER, MailboxName, Result, decode_mailbox_utf7, limits};
use platform::{Disk, Metadata, OpenMode};

use super::ImportNote;
use super::maildir;
use crate::export::unescape;
use crate::format::mbox::scan::Reader;

/// One mbox or one Maildir.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) mailbox: MailboxName,
    pub(super) kind: Kind,
}

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file of so many octets.
    Mbox(u64),
    /// A directory with these messages.
    Maildir(maildir::Maildir),
}

impl Source {
    /// Octets of its files.
    pub(super) fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::Mbox(bytes) => *bytes,
            Kind::Maildir(maildir) => maildir.files.iter().map(|file| file.len).sum(),
        }
    }
}

/// Looks below `path`. What is no mail is noted.
pub(super) fn find(
    disk: &dyn Disk,
    path: &Path,
    mailbox: Option<&MailboxName>,
) -> Result<(Vec<Source>, Vec<ImportNote>)> {
    let mut finder = Finder { disk, sources: Vec::new(), notes: Vec::new() };
    let metadata = disk.metadata(path).map_err(|error| model::Error::from(error).context(path.display()))?;
    let own_name = level(path.file_name().unwrap_or_default(), &[".mbox"]);
    if !metadata.is_dir {
        finder.mbox(path, mailbox.map_or(own_name, |name| name.as_str().to_owned()), &metadata);
    } else if maildir::is_maildir(disk, path)? {
        // The top of a Maildir++ tree is INBOX by convention; a Maildir that stands alone has a name of its own.
        let is_tree = own_name.starts_with('.') || own_name.eq_ignore_ascii_case("maildir");
        let has_children = disk.list(path)?.iter().any(|entry| entry.is_dir && is_dotted(&entry.name));
        let name = match mailbox {
            Some(name) => name.as_str().to_owned(),
            None if is_tree || has_children => "INBOX".to_owned(),
            None => own_name,
        };
        let below = mailbox.map_or(String::new(), |name| name.as_str().to_owned());
        finder.maildir_tree(path, name, &below)?;
    } else {
        finder.directory(path, mailbox.map_or("", |name| name.as_str()), 0)?;
    }
    Ok((finder.sources, finder.notes))
}

fn is_dotted(name: &OsStr) -> bool {
    name.as_encoded_bytes().first() == Some(&b'.')
}

/// A file's name as one level of a mailbox name, without one of the endings.
fn level(name: &OsStr, endings: &[&str]) -> String {
    let name = name.to_string_lossy();
    let name = endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    clean(&unescape(name))
}

/// Replaces what no mailbox name may have.
fn clean(level: &str) -> String {
    let is_bad = |c: char| c.is_control() || c == HIERARCHY_DELIMITER || matches!(c, '\u{2028}' | '\u{2029}');
    let clean: String = level.chars().map(|c| if is_bad(c) { '_' } else { c }).collect();
    if clean.is_empty() { "_".to_owned() } else { clean }
}

fn join(above: &str, level: &str) -> String {
    if above.is_empty() { level.to_owned() } else { format!("{above}{HIERARCHY_DELIMITER}{level}") }
}

struct Finder<'a> {
    disk: &'a dyn Disk,
    sources: Vec<Source>,
    notes: Vec<ImportNote>,
}

impl Finder<'_> {
    fn skip(&mut self, file: &Path, what: impl Into<String>) {
        self.notes.push(ImportNote { file: file.to_owned(), offset: 0, skipped: true, what: what.into() });
    }

    fn add(&mut self, path: &Path, name: &str, kind: Kind) {
        match MailboxName::new(name) {
            Ok(mailbox) => self.sources.push(Source { path: path.to_owned(), mailbox, kind }),
            Err(error) => self.skip(path, format!("no mailbox can have this name: {error}")),
        }
    }

    /// A file that should be an mbox. One that cannot be read is a note: it is no reason to leave out the others.
    fn mbox(&mut self, path: &Path, name: String, metadata: &Metadata) {
        match self.is_mbox(path, metadata) {
            Ok(true) => self.add(path, &name, Kind::Mbox(metadata.len)),
            Ok(false) => self.skip(path, "no mbox: there is no From line near its beginning"),
            Err(error) => self.skip(path, format!("it cannot be read: {error}")),
        }
    }

    fn is_mbox(&self, path: &Path, metadata: &Metadata) -> Result<bool> {
        // Opening a pipe or a device could wait for ever. An empty mbox is a mailbox without messages.
        if !metadata.is_file || metadata.len == 0 {
            return Ok(metadata.is_file);
        }
        let file = self.disk.open(path, OpenMode::Read)?;
        Ok(Reader::new(&*file, 0)?.preamble()?.is_some())
    }

    /// A Maildir and what lies below it, as Maildir++ (`.A.B`) or as plain directories.
    fn maildir_tree(&mut self, path: &Path, name: String, below: &str) -> Result<()> {
        let maildir = maildir::read(self.disk, path)?;
        self.add(path, &name, Kind::Maildir(maildir));
        for entry in self.disk.list(path)?.into_iter().filter(|entry| entry.is_dir) {
            let child = path.join(&entry.name);
            let is_own = matches!(entry.name.to_str(), Some("cur" | "new" | "tmp"));
            if is_own {
                continue;
            }
            match maildir::is_maildir(self.disk, &child) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    self.note_failure(&child, Err(error));
                    continue;
                }
            }
            match entry.name.to_string_lossy().strip_prefix('.') {
                Some(dotted) => {
                    let levels: Vec<String> = dotted.split('.').map(maildir_level).collect();
                    let name = join(below, &levels.join(&HIERARCHY_DELIMITER.to_string()));
                    match maildir::read(self.disk, &child) {
                        Ok(maildir) => self.add(&child, &name, Kind::Maildir(maildir)),
                        Err(error) => self.note_failure(&child, Err(error)),
                    }
                }
                None => {
                    let name = join(below, &level(&entry.name, &[]));
                    let result = self.maildir_tree(&child, name.clone(), &name);
                    self.note_failure(&child, result);
                }
            }
        }
        Ok(())
    }

    /// What is below `path` and cannot be read is a note: it is no reason to leave out the rest.
    fn note_failure(&mut self, path: &Path, result: Result<()>) {
        if let Err(error) = result {
            self.skip(path, format!("it cannot be read: {error}"));
        }
    }

    /// A directory that is no Maildir: files are mboxes, directories are levels.
    fn directory(&mut self, path: &Path, above: &str, depth: usize) -> Result<()> {
        if depth >= limits::MAILBOX_LEVELS_MAX {
            self.skip(path, "the directories are nested too deep (limit mailbox_levels_max)");
            return Ok(());
        }
        for entry in self.disk.list(path)? {
            // Indexes and caches of other programs.
            let name = entry.name.to_string_lossy();
            if name.starts_with('.') || name.ends_with(".msf") || name.starts_with("dovecot") {
                continue;
            }
            let child = path.join(&entry.name);
            if !entry.is_dir {
                match self.disk.metadata(&child) {
                    // Following links could lead in circles, and to the same mail twice.
                    Ok(metadata) if metadata.is_dir => self.skip(&child, "a link to a directory: it is not followed"),
                    Ok(metadata) => self.mbox(&child, join(above, &level(&entry.name, &[".mbox"])), &metadata),
                    Err(error) => self.skip(&child, format!("it cannot be read: {error}")),
                }
                continue;
            }
            // Thunderbird keeps what is below the mailbox `A` in the directory `A.sbd`.
            let name = join(above, &level(&entry.name, &[".sbd"]));
            let result = match maildir::is_maildir(self.disk, &child) {
                Ok(true) => self.maildir_tree(&child, name.clone(), &name),
                Ok(false) => self.directory(&child, &name, depth + 1),
                Err(error) => Err(error),
            };
            self.note_failure(&child, result);
        }
        Ok(())
    }
}

/// A level of a Maildir++ name: modified UTF-7 (RFC 3501 §5.1.3), or whatever else stands there.
fn maildir_level(level: &str) -> String {
    clean(&unescape(&decode_mailbox_utf7(level).unwrap_or_else(|| level.to_owned())))
}
