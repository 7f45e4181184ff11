//! What there is to import below a path, and into which mailboxes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{HIERARCHY_DELIMITER, MailboxName, Result, decode_mailbox_utf7, limits};
use platform::{Disk, Metadata, OpenMode};

use super::listed::Listed;
use super::{ImportNote, ImportOptions, cyrus, maildir, subscriptions};
use crate::export::unescape;
use crate::format::mbox::scan::Reader;

/// One mbox or one Maildir.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) mailbox: MailboxName,
    pub(super) kind: Kind,
    /// Whether a mailbox that is made for it is subscribed: nothing there says which are.
    pub(super) subscribe: bool,
}

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file of so many octets.
    Mbox(u64),
    /// A directory with these messages.
    Maildir(Box<maildir::Maildir>),
    /// A mailbox whose server has left UIDs for all of it.
    Listed(Listed),
}

/// What is below a path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) sources: Vec<Source>,
    /// What is no mail, or cannot be read.
    pub(super) notes: Vec<ImportNote>,
    /// The mailboxes that its user had subscribed; `None`: nothing says so.
    pub(super) subscribed: Option<Vec<MailboxName>>,
}

impl Source {
    /// Octets of its files.
    pub(super) fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::Mbox(bytes) => *bytes,
            Kind::Maildir(maildir) => maildir.files.iter().map(|file| file.len).sum(),
            Kind::Listed(listed) => listed.bytes(),
        }
    }
}

/// Looks below `path`. What is no mail is noted.
pub(super) fn find(disk: &dyn Disk, path: &Path, options: &ImportOptions) -> Result<Tree> {
    let mailbox = options.mailbox.as_ref();
    let above = mailbox.map_or("", |name| name.as_str());
    let mut finder = Finder { disk, tree: Tree::default(), above: above.to_owned(), is_utf7: false };
    let metadata = disk.metadata(path).map_err(|error| model::Error::from(error).context(path.display()))?;
    let own_name = level(path.file_name().unwrap_or_default(), &[".mbox"]);
    if !metadata.is_dir {
        if !finder.cyrus_subscriptions(path, &metadata)? {
            finder.mbox(path, mailbox.map_or(own_name, |name| name.as_str().to_owned()), &metadata);
        }
    } else if maildir::is_maildir(disk, path)? {
        finder.maildir_account(path, own_name)?;
    } else {
        let (mailboxes, failed) = cyrus::find(disk, path)?;
        if mailboxes.is_empty() {
            finder.is_utf7 = [".imap", ".subscriptions"].iter().any(|name| disk.metadata(&path.join(name)).is_ok());
            finder.subscriptions(&path.join(".subscriptions"), |bytes| (subscriptions::dovecot(bytes, '/'), 0))?;
            finder.directory(path, above, 0)?;
        } else {
            failed.into_iter().for_each(|(file, what)| finder.skip(&file, what));
            finder.cyrus(mailboxes, options.owner.as_deref());
        }
    }
    let mut tree = finder.tree;
    let subscribe = tree.subscribed.is_none();
    tree.sources.iter_mut().for_each(|source| source.subscribe = subscribe);
    Ok(tree)
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
    tree: Tree,
    /// The mailbox above all; empty for none.
    above: String,
    /// Whether directories and files are named in modified UTF-7, as by a server; else people have named them.
    is_utf7: bool,
}

impl Finder<'_> {
    fn skip(&mut self, file: &Path, what: impl Into<String>) {
        self.tree.notes.push(ImportNote { file: file.to_owned(), offset: 0, skipped: true, what: what.into() });
    }

    fn add(&mut self, path: &Path, name: &str, kind: Kind) {
        match MailboxName::new(name) {
            Ok(mailbox) => self.tree.sources.push(Source { path: path.to_owned(), mailbox, kind, subscribe: false }),
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

    /// A Maildir, with the mailboxes of an account below it or alone.
    fn maildir_account(&mut self, path: &Path, own_name: String) -> Result<()> {
        self.subscriptions(&path.join("subscriptions"), |bytes| {
            let separator = if bytes.contains(&b'/') { '/' } else { '.' };
            (subscriptions::dovecot(bytes, separator), 0)
        })?;
        if self.tree.subscribed.is_none() {
            self.subscriptions(&path.join("courierimapsubscribed"), subscriptions::courier)?;
        }
        // The top of a Maildir++ tree is INBOX by convention; a Maildir that stands alone has a name of its own.
        self.is_utf7 = self.tree.subscribed.is_some() || self.disk.metadata(&path.join("dovecot-uidlist")).is_ok();
        let is_tree =
            own_name.starts_with('.') || own_name.eq_ignore_ascii_case("maildir") || self.tree.subscribed.is_some();
        let has_children = self.disk.list(path)?.iter().any(|entry| entry.is_dir && is_dotted(&entry.name));
        let above = self.above.clone();
        let name = match above.as_str() {
            "" if is_tree || has_children => "INBOX".to_owned(),
            "" => own_name,
            above => above.to_owned(),
        };
        self.maildir_tree(path, name, &above, 0)
    }

    /// Reads which mailboxes were subscribed, if the file is there.
    fn subscriptions(&mut self, file: &Path, read: impl Fn(&[u8]) -> (Vec<Vec<String>>, usize)) -> Result<()> {
        let bytes = match self.disk.read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(model::Error::from(error).context(file.display())),
        };
        let (names, others) = read(&bytes);
        self.subscribed(file, names, others);
        Ok(())
    }

    fn subscribed(&mut self, file: &Path, names: Vec<Vec<String>>, others: usize) {
        if others > 0 {
            self.skip(file, format!("{others} subscribed mailboxes are not of this account"));
        }
        let mut mailboxes = Vec::new();
        for levels in names {
            let is_inbox = matches!(levels.as_slice(), [only] if only.eq_ignore_ascii_case("INBOX"));
            let name = match (self.above.is_empty(), is_inbox) {
                (false, true) => self.above.clone(),
                _ => levels.iter().fold(self.above.clone(), |above, level| join(&above, &clean(&unescape(level)))),
            };
            match MailboxName::new(&name) {
                Ok(name) => mailboxes.push(name),
                Err(error) => self.skip(file, format!("it subscribes what no mailbox can be called: {error}")),
            }
        }
        self.tree.subscribed.get_or_insert_default().append(&mut mailboxes);
    }

    /// A file in which Cyrus keeps what a user has subscribed; whether it is one.
    fn cyrus_subscriptions(&mut self, path: &Path, metadata: &Metadata) -> Result<bool> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !metadata.is_file || !(name == "sub.db" || name.ends_with(".sub")) {
            return Ok(false);
        }
        match subscriptions::cyrus(&self.disk.read(path)?) {
            Some((names, others)) => self.subscribed(path, names, others),
            None => self
                .skip(path, "subscriptions in a database: write them as text with `cvt_cyrusdb FILE twoskip NEW flat`"),
        }
        Ok(true)
    }

    /// The mailboxes of a Cyrus spool: of `owner`, or of the only user whose mailboxes there are.
    fn cyrus(&mut self, mailboxes: Vec<cyrus::Found>, owner: Option<&str>) {
        let mut owners: BTreeMap<Option<String>, (usize, PathBuf)> = BTreeMap::new();
        for found in &mailboxes {
            owners.entry(found.owner.clone()).or_insert_with(|| (0, found.path.clone())).0 += 1;
        }
        let users: Vec<&String> = owners.keys().flatten().collect();
        let is_wanted = |name: &str| match owner {
            // Mail accounts are often the local parts of addresses.
            Some(owner) => name == owner || name.split('@').next() == owner.split('@').next(),
            None => false,
        };
        let wanted = match users.as_slice() {
            [only] => Some((*only).clone()),
            several => {
                let exact = several.iter().find(|name| Some(name.as_str()) == owner);
                exact.or_else(|| several.iter().find(|name| is_wanted(name))).map(|name| (*name).clone())
            }
        };
        for (name, (count, path)) in owners {
            if name.is_none() || name != wanted {
                let whose = name.map_or_else(|| "nobody's own".to_owned(), |name| format!("those of {name}"));
                self.skip(&path, format!("{count} mailboxes are {whose}: left out"));
            }
        }
        for found in mailboxes.into_iter().filter(|found| found.owner.is_some() && found.owner == wanted) {
            let name = match (found.levels.as_slice(), self.above.is_empty()) {
                ([], true) => "INBOX".to_owned(),
                (levels, _) => levels.iter().fold(self.above.clone(), |above, level| join(&above, &clean(level))),
            };
            match cyrus::list(self.disk, &found) {
                Ok(listed) => self.add(&found.path, &name, Kind::Listed(listed)),
                Err(error) => self.skip(&found.path, format!("it cannot be read: {error}")),
            }
        }
    }

    /// A Maildir and what lies below it, as Maildir++ (`.A.B`) or as plain directories.
    fn maildir_tree(&mut self, path: &Path, name: String, below: &str, depth: usize) -> Result<()> {
        let maildir = maildir::read(self.disk, path)?;
        self.add(path, &name, Kind::Maildir(Box::new(maildir)));
        self.maildirs_in(path, below, depth)
    }

    /// The Maildirs in a directory that is one, or that is only a level of names.
    fn maildirs_in(&mut self, path: &Path, below: &str, depth: usize) -> Result<()> {
        if depth >= limits::MAILBOX_LEVELS_MAX {
            self.skip(path, "the directories are nested too deep (limit mailbox_levels_max)");
            return Ok(());
        }
        for entry in self.disk.list(path)?.into_iter().filter(|entry| entry.is_dir) {
            let child = path.join(&entry.name);
            // The messages, and what Courier keeps.
            let is_own = matches!(
                entry.name.to_str(),
                Some("cur" | "new" | "tmp" | "courierimapkeywords" | "courierimaphieracl")
            );
            if is_own {
                continue;
            }
            let is_maildir = match maildir::is_maildir(self.disk, &child) {
                Ok(is_maildir) => is_maildir,
                Err(error) => {
                    self.note_failure(&child, Err(error));
                    continue;
                }
            };
            match entry.name.to_string_lossy().strip_prefix('.') {
                Some(_) if !is_maildir => {}
                Some(dotted) => {
                    let levels: Vec<String> = dotted.split('.').map(maildir_level).collect();
                    let name = join(below, &levels.join(&HIERARCHY_DELIMITER.to_string()));
                    match maildir::read(self.disk, &child) {
                        Ok(maildir) => self.add(&child, &name, Kind::Maildir(Box::new(maildir))),
                        Err(error) => self.note_failure(&child, Err(error)),
                    }
                }
                None => {
                    let name = join(below, &self.level(&entry.name, &[]));
                    let result = match is_maildir {
                        true => self.maildir_tree(&child, name.clone(), &name, depth + 1),
                        // With directories as levels a level may have no messages of its own.
                        false => self.maildirs_in(&child, &name, depth + 1),
                    };
                    self.note_failure(&child, result);
                }
            }
        }
        Ok(())
    }

    /// A file's name as one level of a mailbox name, as whoever named it wrote names.
    fn level(&self, name: &OsStr, endings: &[&str]) -> String {
        let decoded = name.to_str().filter(|_| self.is_utf7).and_then(decode_mailbox_utf7);
        decoded.map_or_else(|| level(name, endings), |name| clean(&name))
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
                    Ok(metadata) => self.mbox(&child, join(above, &self.level(&entry.name, &[".mbox"])), &metadata),
                    Err(error) => self.skip(&child, format!("it cannot be read: {error}")),
                }
                continue;
            }
            // Thunderbird keeps what is below the mailbox `A` in the directory `A.sbd`.
            let name = join(above, &self.level(&entry.name, &[".sbd"]));
            let result = match maildir::is_maildir(self.disk, &child) {
                Ok(true) => self.maildir_tree(&child, name.clone(), &name, depth + 1),
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
