//! The files of an account's mailboxes: made, renamed and removed as the log says, and found where others have made them.
//!
//! Invariants:
//! - The log comes first, then the file, then the record of names; each step may be done again. So what was interrupted is finished at the next
//!   opening.
//! - No file is ever replaced. Which are removed, and which are kept although their mailboxes are gone, is in [`super::kept`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use index::{Mailbox, State};
use model::{Error, ErrorKind, MailboxId, MailboxName, Result};
use platform::{OpenMode, Timestamp, parent_of};

use super::account::{DIR, MboxAccount, lock};
use super::doomed::Doomed;
use super::identity::Identity;
use super::lists;
use super::lock::{Access, Method};
use super::meta::meta_fields;
use super::names::{self, Names, Since};
use super::scan::Reader;
use super::values;
use crate::format::adoption;

/// Directories below each other that are looked into.
const LEVELS_MAX: usize = 32;
/// How much of a header is looked at for what the file says of itself, octets.
const HEADER_BYTES_MAX: u64 = 64 << 10;

/// What was seen of the directories, to see whether they have changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    dirs: BTreeMap<PathBuf, Timestamp>,
    /// Files that could not be looked at the last time.
    put_off: BTreeMap<MailboxName, PathBuf>,
}

impl MboxAccount {
    /// Makes the files follow the log's mailboxes, one step after another: each is in the record before the next begins. What cannot be
    /// done just now keeps nothing else from being done; the first error is told.
    pub(crate) fn reconcile(&self, since: Since) -> Result<()> {
        let _only = lock(&self.reconciling);
        let result = self.follow_log(since);
        self.is_behind.store(result.is_err(), Ordering::Release);
        result
    }

    /// Tries again what failed when the files were to follow: until then a mailbox and its file have different names.
    pub(super) fn catch_up(&self) {
        if self.is_behind.load(Ordering::Acquire) {
            let _later = self.reconcile(Since::Change);
        }
    }

    fn follow_log(&self, since: Since) -> Result<()> {
        let state = self.state();
        let all: Vec<(MailboxId, PathBuf)> = lock(&self.names).iter().map(|(id, path)| (id, path.to_owned())).collect();
        let mut result = Ok(());
        for (id, path) in all.iter().filter(|(id, _)| state.mailbox(*id).is_none()) {
            if let Some(heir) = self.heir(&state, *id, path) {
                let mut names = lock(&self.names);
                names.remove(*id);
                names.set(heir, path.clone());
                drop(names);
                self.forget_box(*id);
                continue;
            }
            match self.remove_file(&state, *id, path) {
                Ok(true) => {
                    lock(&self.names).remove(*id);
                    self.forget_box(*id);
                }
                Ok(false) => {}
                Err(error) => result = result.and(Err(error)),
            }
        }
        if since == Since::Opening {
            for mailbox in state.mailboxes() {
                result = result.and(self.note_renamed(mailbox));
            }
        }
        for mailbox in state.mailboxes() {
            result = result.and(self.follow_name(mailbox));
        }
        result.and(self.save_names()).and_then(|()| self.forget_doomed(&state))
    }

    /// The mailbox that has taken the place of one which was not deleted by a client: it gets the file.
    fn heir(&self, state: &State, id: MailboxId, path: &Path) -> Option<MailboxId> {
        if Doomed::noted(state, id).is_some() {
            return None;
        }
        let name = if path.as_os_str().is_empty() { MailboxName::inbox() } else { names::name_of(path)? };
        let heir = state.mailbox_named(&name)?.id();
        lock(&self.names).path(heir).is_none().then_some(heir)
    }

    fn save_names(&self) -> Result<()> {
        let mut names = lock(&self.names);
        if names.is_dirty() {
            names.save(&*self.env.disk, &self.dir.join(DIR), names::HEADER)?;
            names.set_saved();
        }
        Ok(())
    }

    /// Where a new file of a mailbox goes: into the directories that others have made for such names, and beside a directory, or whatever else it
    /// is, that has its own name.
    fn place_of(&self, name: &MailboxName) -> Result<PathBuf> {
        let wanted = names::path_of(name)?;
        if name.is_inbox() {
            return Ok(wanted);
        }
        let found = |path: &Path| self.env.disk.metadata(&self.root.join(path)).ok();
        let is_dir = |path: &Path| found(path).is_some_and(|found| found.is_dir);
        let mut path = PathBuf::new();
        for component in wanted.parent().into_iter().flat_map(Path::components) {
            let ours = path.join(component);
            let theirs = names::of_level(component.as_os_str()).map(|level| path.join(level));
            path = theirs.filter(|theirs| !is_dir(&ours) && is_dir(theirs)).unwrap_or(ours);
        }
        path.push(wanted.file_name().unwrap_or_default());
        let is_taken = found(&path).is_some_and(|found| !found.is_file);
        // What is in the way otherwise is found when the file is made.
        Ok(if is_taken { names::beside(&path) } else { path })
    }

    /// Whether a mailbox of this name could have a file. [`ErrorKind::NotPermitted`]: something is in the way, or we must not make files there.
    pub(super) fn check_place(&self, name: &MailboxName) -> Result<()> {
        let full = self.full_path(&self.place_of(name)?);
        let cannot = |path: &Path, why: &str| {
            Err(Error::new(ErrorKind::NotPermitted, format!("no mailbox can be made at {}: {why}", path.display())))
        };
        match self.env.disk.metadata(&full) {
            Ok(found) if !found.is_file && !name.is_inbox() => return cannot(&full, "it is no plain file"),
            _ => {}
        }
        for dir in full.ancestors().skip(1) {
            match self.env.disk.metadata(dir) {
                Ok(found) if found.is_dir => return self.check_writable(dir),
                Ok(_) => return cannot(dir, "it is no directory"),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::from(error).context(dir.display())),
            }
        }
        Ok(())
    }

    /// [`ErrorKind::NotPermitted`]: the system does not let us write the file, or change the names in the directory. What else may be wrong is
    /// found when that is done.
    fn check_writable(&self, path: &Path) -> Result<()> {
        use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match self.env.disk.check_writable(path) {
            Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
                Err(Error::new(ErrorKind::NotPermitted, format!("{}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Whether messages can be put into the file of a mailbox, and taken out: what is said to be done must come to be done.
    pub(super) fn check_file_writable(&self, id: MailboxId) -> Result<()> {
        let Some(path) = self.path_of(id) else { return Ok(()) };
        let makes_files = self.options.locks.write.contains(&Method::Dotlock);
        if makes_files || matches!(self.env.disk.exists(&path), Ok(false)) {
            self.check_writable(parent_of(&path))?;
        }
        self.check_writable(&path)
    }

    /// Whether the file of a mailbox can get another name, or be removed.
    pub(super) fn check_name_writable(&self, id: MailboxId) -> Result<()> {
        match self.path_of(id) {
            Some(path) if matches!(self.env.disk.exists(&path), Ok(true)) => self.check_writable(parent_of(&path)),
            _ => Ok(()),
        }
    }

    /// The file that a mailbox has and the one that it should have; `None`: they are the same.
    fn other_name(&self, mailbox: &Mailbox) -> Result<Option<(Option<PathBuf>, PathBuf)>> {
        let had = lock(&self.names).path(mailbox.id()).map(Path::to_owned);
        let is_right = |had: &PathBuf| match mailbox.name().is_inbox() {
            true => had.as_os_str().is_empty(),
            false => names::name_of(had).as_ref() == Some(mailbox.name()),
        };
        Ok(if had.as_ref().is_some_and(is_right) { None } else { Some((had, self.place_of(mailbox.name())?)) })
    }

    /// A file that was renamed before that could be recorded: there is one at most, and nothing else may be renamed before it is known.
    fn note_renamed(&self, mailbox: &Mailbox) -> Result<()> {
        let Some((Some(had), wanted)) = self.other_name(mailbox)? else { return Ok(()) };
        let disk = &*self.env.disk;
        if disk.exists(&self.full_path(&had))? {
            return Ok(());
        }
        for path in [names::beside(&wanted), wanted] {
            let is_file = match disk.metadata(&self.full_path(&path)) {
                Ok(found) => found.is_file,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
                Err(error) => return Err(error.into()),
            };
            let mut names = lock(&self.names);
            if is_file && !names.has_path(&path) {
                names.set(mailbox.id(), path);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes or renames the file of a mailbox.
    fn follow_name(&self, mailbox: &Mailbox) -> Result<()> {
        let Some((had, wanted)) = self.other_name(mailbox)? else { return Ok(()) };
        let mut names = lock(&self.names);
        match had {
            Some(had) => self.rename_file(&mut names, mailbox.id(), &had, &wanted)?,
            None => {
                let path = free_path(&names, wanted);
                names.set(mailbox.id(), path.clone());
                self.make_file(&path);
            }
        }
        names.save(&*self.env.disk, &self.dir.join(DIR), names::HEADER)?;
        names.set_saved();
        Ok(())
    }

    /// Makes an empty file, so that others see the mailbox. A mailbox without a file is an empty one, so that it may fail.
    fn make_file(&self, path: &Path) {
        let full = self.full_path(path);
        if path.as_os_str().is_empty() {
            // Delivery agents make that one.
            return;
        }
        let disk = &*self.env.disk;
        let _ = disk.create_dir_all_durable(parent_of(&full)).and_then(|()| {
            disk.open(&full, OpenMode::Create)?;
            disk.sync_dir(parent_of(&full))
        });
    }

    /// Renames a file, unless something else stands there: then the mailbox keeps the one that it has.
    fn rename_file(&self, names: &mut Names, id: MailboxId, had: &Path, wanted: &Path) -> Result<()> {
        let disk = &*self.env.disk;
        let (from, to) = (self.full_path(had), self.full_path(wanted));
        let there = |path: &Path| disk.exists(path).map_err(|error| Error::from(error).context(path.display()));
        match (there(&from)?, there(&to)?) {
            (true, false) if !names.has_path(wanted) => {
                disk.create_dir_all_durable(parent_of(&to))?;
                disk.rename(&from, &to)?;
                // Known at once, whatever happens: nobody may take the file for gone.
                names.set(id, wanted.to_owned());
                disk.sync_dir(parent_of(&to))?;
                disk.sync_dir(parent_of(&from))?;
                self.remove_empty_dir(parent_of(&from));
                return Ok(());
            }
            // Never made, or taken away.
            (false, _) if !names.has_path(wanted) => {}
            _ => return Ok(()),
        }
        names.set(id, wanted.to_owned());
        Ok(())
    }

    /// Removes a directory of children that has become empty. No harm when it stays.
    pub(super) fn remove_empty_dir(&self, dir: &Path) {
        if dir != self.root && dir.starts_with(&self.root) {
            let _ = self.env.disk.remove_dir(dir);
        }
    }

    /// Makes mailboxes of the files that others have put into the tree, and INBOX, which there is without a file as well. What cannot be
    /// looked at, or is no mbox, is left for later.
    pub(crate) fn discover(&self) {
        let mut seen = lock(&self.seen);
        seen.put_off.clear();
        if self.state().mailbox_named(&MailboxName::inbox()).is_none() {
            self.try_to_adopt(&mut seen, MailboxName::inbox(), PathBuf::new());
        }
        self.look_into(&mut seen, Path::new(""), 0);
    }

    /// Like [`MboxAccount::discover`], for one who wants the mailbox of this name: its file may be locked, which is waited for as long as the
    /// settings say ([`ErrorKind::InUse`]), or may be one that we cannot read.
    pub(crate) fn look_for_mailbox(&self, name: &MailboxName) -> Result<()> {
        self.discover();
        let Some(path) = lock(&self.seen).put_off.remove(name) else { return Ok(()) };
        let full = self.full_path(&path);
        match self.options.aside.run(|| self.locker.lock(&full, Access::Read)) {
            Ok(_free) => self.adopt(name, path),
            // It has just gone.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether the file need not be looked at again before its directory changes.
    fn try_to_adopt(&self, seen: &mut Seen, name: MailboxName, path: PathBuf) -> bool {
        let result = self.adopt(&name, path.clone());
        if result.is_err() {
            seen.put_off.insert(name, path);
        }
        result.is_ok()
    }

    fn look_into(&self, seen: &mut Seen, dir: &Path, level: usize) {
        let full = self.root.join(dir);
        let Ok(found) = self.env.disk.metadata(&full) else { return };
        let is_new = seen.dirs.get(dir) != Some(&found.modified);
        let is_calm = !Identity::of(&found).is_fresh(self.env.clock.now());
        if is_new {
            let Ok(entries) = self.env.disk.list(&full) else { return };
            let mut is_complete = is_calm;
            seen.dirs.retain(|known, _| known == dir || !known.starts_with(dir));
            for entry in entries {
                let path = dir.join(&entry.name);
                let Some(name) = entry.name.to_str() else { continue };
                let full = self.root.join(&path);
                if entry.is_dir || names::is_children_dir(name) {
                    if level < LEVELS_MAX && names::is_level(name) {
                        seen.dirs.insert(path.clone(), NEVER);
                        self.look_into(seen, &path, level + 1);
                    }
                } else if full != self.inbox
                    && !lock(&self.names).has_path(&path)
                    && let Some(mailbox) = names::name_of(&path)
                {
                    // One that is locked may be one the next time.
                    is_complete &= self.try_to_adopt(seen, mailbox, path);
                }
            }
            if is_complete {
                seen.dirs.insert(dir.to_owned(), found.modified);
            }
            return;
        }
        let below: Vec<PathBuf> = seen.dirs.keys().filter(|known| known.parent() == Some(dir)).cloned().collect();
        for dir in below {
            self.look_into(seen, &dir, level + 1);
        }
    }

    /// Makes a mailbox of a file, with the UIDVALIDITY that the file names.
    fn adopt(&self, name: &MailboxName, path: PathBuf) -> Result<()> {
        if self.state().mailbox_named(name).is_some() {
            return Ok(());
        }
        let uid_validity = match self.peek(&self.full_path(&path))? {
            Peeked::Mbox(uid_validity) => uid_validity,
            Peeked::Nothing if path.as_os_str().is_empty() => None,
            Peeked::Nothing => return Ok(()),
        };
        let subscribed = match name.is_inbox() {
            true => lists::subscribed(&*self.env.disk, &self.root)?,
            false => Vec::new(),
        };
        let id = self.log.commit(|transaction| adoption::adopt(transaction, name, uid_validity, &subscribed))?;
        lock(&self.names).set(id, path);
        self.save_names()
    }

    /// What a file is, by its beginning.
    fn peek(&self, path: &Path) -> Result<Peeked> {
        match self.env.disk.metadata(path) {
            Ok(found) if found.is_file => {}
            Ok(_) => return Ok(Peeked::Nothing),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Peeked::Nothing),
            Err(error) => return Err(error.into()),
        }
        let lock = self.locker.try_lock(path, Access::Read)?;
        let file = &**lock.file();
        let mut reader = Reader::new(file, 0)?;
        if reader.preamble()?.is_none() {
            return Ok(Peeked::Nothing);
        }
        let Some(first) = reader.next_message()? else { return Ok(Peeked::Mbox(None)) };
        let mut header = vec![0; (first.body - first.header).min(HEADER_BYTES_MAX) as usize];
        file.read_exact_at(&mut header, first.header)?;
        let fields: Vec<_> = meta_fields(&header).collect();
        let base = values::meta(&header, &fields, true).base;
        Ok(Peeked::Mbox(base.map(|base| base.uid_validity)))
    }
}

/// No directory was changed then.
const NEVER: Timestamp = Timestamp { seconds: i64::MIN, nanoseconds: 0 };

/// What a file is.
enum Peeked {
    /// An mbox; the UIDVALIDITY that it names.
    Mbox(Option<u32>),
    /// Not there, or something else.
    Nothing,
}

/// A path that no other mailbox has: that of a mailbox of the same name may still be waiting for its end.
fn free_path(names: &Names, wanted: PathBuf) -> PathBuf {
    let mut path = wanted.clone();
    let mut number = 1;
    while names.has_path(&path) {
        path = wanted.clone();
        path.as_mut_os_string().push(format!("=7E{number}"));
        number += 1;
    }
    path
}
