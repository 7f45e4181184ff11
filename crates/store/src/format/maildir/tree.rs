//! The Maildirs of an account's mailboxes: made, renamed and removed as the log says, and found where others have made them.
//!
//! Invariants:
//! - The log comes first, then the directory, then the record of names; each step may be done again. So what was interrupted is finished at the
//!   next opening.
//! - No file is ever removed that was not known to belong to a mailbox that is gone, or that has the only octets of a message that another
//!   mailbox has as well. A directory with such files stays, and is found as a new mailbox.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use index::{Mailbox, State};
use model::{EmailId, Error, MailboxId, MailboxName, Result};
use platform::{Disk, Timestamp, parent_of};

use super::account::{DIR, MaildirAccount, NAMES_HEADER, lock};
use super::layout::{self, SUBDIRS};
use super::listing::{self, Subdir};
use super::map::{Map, Record};
use super::sync::lists;
use crate::format::mbox::identity::Identity;
use crate::format::names::{Names, Since};
use crate::format::{MaildirLayout, adoption};

/// Directories below each other that are looked into.
const LEVELS_MAX: usize = 32;
/// Files that programs keep beside the messages of a mailbox, by how their names begin: they go with it.
const COMPANIONS: [&str; 4] = ["dovecot", "courier", "maildirfolder", "maildirsize"];
/// In `tmp` a file that nobody has touched for so long was left behind (the Maildir page of D. J. Bernstein), seconds.
const LEFT_BEHIND_SECONDS: i64 = 36 * 3600;

/// What was seen of the directories, to see whether they have changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    dirs: BTreeMap<PathBuf, Timestamp>,
}

/// No directory was changed then.
const NEVER: Timestamp = Timestamp { seconds: i64::MIN, nanoseconds: 0 };

/// Whether something is there.
fn there(disk: &dyn Disk, path: &Path) -> Result<bool> {
    disk.exists(path).map_err(|error| Error::from(error).context(path.display()))
}

/// Whether a directory has what makes a Maildir: `cur` and `new`.
fn is_maildir(disk: &dyn Disk, path: &Path) -> bool {
    let is_dir = |subdir: &str| disk.metadata(&path.join(subdir)).is_ok_and(|found| found.is_dir);
    is_dir("cur") && is_dir("new")
}

impl MaildirAccount {
    /// Makes the directories follow the log's mailboxes.
    pub(crate) fn reconcile(&self, since: Since) -> Result<()> {
        self.copy_from_doomed(since);
        let _alone = lock(&self.arranging);
        // A copy: turns are waited for here.
        let before = lock(&self.names).clone();
        let mut names = before.clone();
        let state = self.state();
        for (id, path) in before.iter() {
            if state.mailbox(id).is_none() && self.remove_maildir(&state, id, path)? {
                names.remove(id);
                self.forget_box(id);
            }
        }
        for mailbox in state.mailboxes() {
            let (id, wanted) = (mailbox.id(), layout::path_of(self.layout, mailbox.name())?);
            let had = names.path(id).map(Path::to_owned);
            let is_named = |path: &Path| layout::name_of(self.layout, path).as_ref() == Some(mailbox.name());
            if had.as_ref() == Some(&wanted) || had.as_deref().is_some_and(is_named) {
                continue;
            }
            match had {
                Some(had) => self.rename_maildir(&mut names, id, &had, &wanted)?,
                // That of a mailbox of the same name still waits for its end.
                None if names.has_path(&wanted) => {}
                None => {
                    names.set(id, wanted.clone());
                    // A mailbox without one is empty, so that it may fail; it is made when a message comes.
                    let _later = self.make_new(&wanted, mailbox);
                }
            }
        }
        *lock(&self.names) = names;
        self.save_names()
    }

    fn save_names(&self) -> Result<()> {
        let mut names = lock(&self.names);
        if names.is_dirty() {
            names.save(&*self.env.disk, &self.dir.join(DIR), NAMES_HEADER)?;
            names.set_saved();
        }
        Ok(())
    }

    /// Mailboxes that are gone may have the last files of messages that others were given.
    fn copy_from_doomed(&self, since: Since) {
        let state = self.state();
        let is_gone = |(id, _): &(MailboxId, &Path)| state.mailbox(*id).is_none();
        if since == Since::Opening || !lock(&self.names).iter().any(|one| is_gone(&one)) {
            return;
        }
        for mailbox in state.mailboxes() {
            let Ok(dir_box) = self.dir_box(mailbox.id()) else { continue };
            self.audit(&dir_box);
            let _later = self.write_out(&dir_box);
        }
    }

    fn make_new(&self, path: &Path, mailbox: &Mailbox) -> Result<()> {
        let full = self.full_path(path);
        self.make_maildir(&full)?;
        self.begin_uids(&full, mailbox)?;
        if self.layout == MaildirLayout::MaildirPlusPlus && full != self.root {
            // Delivery agents that count for quotas look for it (Maildir++ page of Courier).
            let disk = &*self.env.disk;
            disk.open(&full.join("maildirfolder"), platform::OpenMode::Create)?;
            disk.sync_dir(&full)?;
        }
        Ok(())
    }

    /// Renames the Maildir of a mailbox. Where something else stands, the mailbox keeps the directory that it has.
    fn rename_maildir(&self, names: &mut Names, id: MailboxId, had: &Path, wanted: &Path) -> Result<()> {
        let disk = &*self.env.disk;
        let (from, to) = (self.full_path(had), self.full_path(wanted));
        match (there(disk, &from.join("cur"))? || there(disk, &from.join("new"))?, there(disk, &to)?) {
            (true, false) => {
                disk.create_dir_all_durable(parent_of(&to))?;
                disk.rename(&from, &to)?;
                disk.sync_dir(parent_of(&to))?;
                disk.sync_dir(parent_of(&from))?;
                self.remove_empty_dirs(parent_of(&from));
            }
            // A directory between others: only what makes the Maildir moves in.
            (true, true) if !there(disk, &to.join("cur"))? || !there(disk, &to.join("new"))? => {
                self.move_into(&from, &to)?;
                self.remove_empty_dirs(&from);
            }
            // Renamed before the record could be changed; or never made.
            (false, _) => {}
            (true, true) => return Ok(()),
        }
        if let Some(dir_box) = self.known_box(id) {
            // The directories are others for the system.
            dir_box.with_map(|map| map.stamp = None);
        }
        names.set(id, wanted.to_owned());
        // What is in Trash does not count.
        self.doubt_sizes();
        Ok(())
    }

    fn move_into(&self, from: &Path, to: &Path) -> Result<()> {
        let disk = &*self.env.disk;
        for entry in disk.list(from)? {
            let name = entry.name.to_str().unwrap_or_default();
            let is_ours = SUBDIRS.contains(&name) || COMPANIONS.iter().any(|companion| name.starts_with(companion));
            if is_ours && !there(disk, &to.join(name))? {
                disk.rename(&from.join(name), &to.join(name))?;
            }
        }
        disk.sync_dir(to)?;
        Ok(disk.sync_dir(from)?)
    }

    /// Whether the Maildir of a mailbox that the log does not have any more is done with: what is known of its files is gone.
    fn remove_maildir(&self, state: &State, id: MailboxId, path: &Path) -> Result<bool> {
        let disk = &*self.env.disk;
        let full = self.full_path(path);
        if !there(disk, &full)? {
            return Ok(true);
        }
        let dir_box = self.dir_box(id)?;
        // Nobody begins anything with a mailbox that is gone; who is at it ends soon.
        let mut turn = lock(&dir_box.turn);
        let map = lock(&dir_box.map).clone().or_else(|| Map::load(disk, &self.map_path(id)));
        if let Some(map) = map {
            let records: Vec<_> = map.records().iter().chain(map.doomed()).copied().collect();
            if self.has_last_copies(state, id, &records) {
                return Ok(false);
            }
            for record in &records {
                let named = listing::Listed {
                    subdir: record.subdir,
                    name: map.name(record).to_vec(),
                    base_len: map.base(record).len(),
                };
                self.count_out(&mut turn, &full, &named);
                super::project::unlink(disk, &full, &named)?;
            }
            self.tell_sizes(&mut turn);
        }
        self.remove_dirs(&full)?;
        Ok(true)
    }

    /// Removes what makes a Maildir, as far as nothing is in it that others may need.
    fn remove_dirs(&self, full: &Path) -> Result<()> {
        let disk = &*self.env.disk;
        for subdir in Subdir::ALL {
            let path = full.join(subdir.as_str());
            if there(disk, &path)? {
                disk.sync_dir(&path)?;
            }
        }
        self.clear_tmp(full);
        // An error is one of those that say that something is in it: then it stays, and is a mailbox of its own from now on.
        if disk.remove_dir(&full.join("new")).is_err() && there(disk, &full.join("new"))? {
            return Ok(());
        }
        let is_empty = disk.remove_dir(&full.join("cur")).is_ok() || !there(disk, &full.join("cur"))?;
        if !is_empty {
            disk.create_dir_all_durable(&full.join("new"))?;
            return Ok(());
        }
        let _left = disk.remove_dir(&full.join("tmp"));
        for entry in disk.list(full)? {
            let name = entry.name.to_str().unwrap_or_default();
            let path = full.join(name);
            if COMPANIONS.iter().any(|companion| name.starts_with(companion)) {
                let _left = if entry.is_dir { self.remove_flat_dir(&path) } else { disk.remove(&path) };
            }
        }
        disk.sync_dir(full)?;
        self.remove_empty_dirs(full);
        Ok(())
    }

    fn remove_flat_dir(&self, path: &Path) -> std::io::Result<()> {
        for entry in self.env.disk.list(path)? {
            self.env.disk.remove(&path.join(entry.name))?;
        }
        self.env.disk.remove_dir(path)
    }

    /// Removes what was left behind in `tmp`.
    pub(super) fn clear_tmp(&self, maildir: &Path) {
        let disk = &*self.env.disk;
        let tmp = maildir.join("tmp");
        let old = self.env.clock.now().seconds.saturating_sub(LEFT_BEHIND_SECONDS);
        for entry in disk.list(&tmp).unwrap_or_default() {
            let path = tmp.join(entry.name);
            let is_old = disk.metadata(&path).is_ok_and(|found| found.is_file && found.changed.seconds < old);
            if is_old {
                let _ = disk.remove(&path);
            }
        }
    }

    /// Whether some mailbox has a message of others of which only these files are known.
    fn has_last_copies(&self, state: &State, id: MailboxId, records: &[Record]) -> bool {
        let ids = records.iter().map(|record| record.email_id).filter(|id| state.foreign(*id).is_some());
        let ids: HashSet<EmailId> = ids.collect();
        let others: Vec<_> = self.open_boxes().into_iter().filter(|other| other.id != id).collect();
        let is_there = |id: EmailId| {
            others.iter().any(|other| other.with_map(|map| !map.of_message(id).is_empty()).unwrap_or(false))
        };
        let mut rows = state.mailboxes().flat_map(|mailbox| mailbox.all_rows()).map(|(_, row)| row.email_id);
        !ids.is_empty() && rows.any(|id| ids.contains(&id) && !is_there(id))
    }

    /// Removes directories that have become empty, upwards. No harm when they stay.
    fn remove_empty_dirs(&self, dir: &Path) {
        for dir in dir.ancestors().take_while(|dir| *dir != self.root && dir.starts_with(&self.root)) {
            if self.env.disk.remove_dir(dir).is_err() || self.env.disk.sync_dir(parent_of(dir)).is_err() {
                return;
            }
        }
    }

    /// Makes mailboxes of the Maildirs that others have put into the tree, and INBOX. What cannot be looked at is left for later.
    pub(crate) fn discover(&self) {
        let mut seen = lock(&self.seen);
        if self.state().mailbox_named(&MailboxName::inbox()).is_none() {
            let _later = self.adopt(&MailboxName::inbox(), PathBuf::new());
        }
        self.look_into(&mut seen, Path::new(""), 0);
    }

    fn look_into(&self, seen: &mut Seen, dir: &Path, level: usize) {
        let full = self.full_path(dir);
        let Ok(found) = self.env.disk.metadata(&full) else { return };
        if seen.dirs.get(dir) != Some(&found.modified) {
            let Ok(entries) = self.env.disk.list(&full) else { return };
            let mut is_complete = !Identity::of(&found).is_fresh(self.env.clock.now());
            seen.dirs.retain(|known, _| known == dir || dir != Path::new("") && !known.starts_with(dir));
            for entry in entries {
                let Some(name) = entry.name.to_str() else { continue };
                let path = dir.join(name);
                let is_level = match self.layout {
                    MaildirLayout::MaildirPlusPlus => name.starts_with('.'),
                    MaildirLayout::Fs => layout::is_mailbox_level(self.layout, name),
                };
                let full = self.root.join(&path);
                let is_dir = || entry.is_dir || self.env.disk.metadata(&full).is_ok_and(|found| found.is_dir);
                if !is_level || !is_dir() {
                    continue;
                }
                if !lock(&self.names).has_path(&path)
                    && let Some(mailbox) = layout::name_of(self.layout, &path)
                {
                    // Half a Maildir may be a whole one the next time.
                    is_complete &= match is_maildir(&*self.env.disk, &full) {
                        true => self.adopt(&mailbox, path.clone()).is_ok(),
                        false => self.layout == MaildirLayout::Fs,
                    };
                }
                if self.layout == MaildirLayout::Fs && level < LEVELS_MAX {
                    seen.dirs.insert(path.clone(), NEVER);
                    self.look_into(seen, &path, level + 1);
                }
            }
            if is_complete {
                seen.dirs.insert(dir.to_owned(), found.modified);
            }
            return;
        }
        let is_below = |known: &&PathBuf| known.parent() == Some(dir);
        let below: Vec<PathBuf> = seen.dirs.keys().filter(is_below).cloned().collect();
        for dir in below {
            self.look_into(seen, &dir, level + 1);
        }
    }

    /// Makes a mailbox of a Maildir.
    fn adopt(&self, name: &MailboxName, path: PathBuf) -> Result<()> {
        let _alone = lock(&self.arranging);
        if self.state().mailbox_named(name).is_some() {
            return Ok(());
        }
        let disk = &*self.env.disk;
        let uid_validity = lists::uid_validity(disk, &self.full_path(&path))?;
        let subscribed = match name.is_inbox() {
            true => lists::subscribed(disk, &self.root, self.layout)?,
            false => Vec::new(),
        };
        let id = self.log.commit(|transaction| adoption::adopt(transaction, name, uid_validity, &subscribed))?;
        if let Some(mailbox) = self.state().mailbox(id) {
            // What cannot be written now is written later.
            let _later = self.begin_uids(&self.full_path(&path), mailbox);
        }
        lock(&self.names).set(id, path);
        self.save_names()
    }
}
