//! The files of mailboxes that are gone.
//!
//! Such a file is removed, but not as long as it has octets that another mailbox needs: a message that was copied from here is in the log
//! without octets until its own file has it. Until then the file is kept, under the name that it had, and is read for these messages only; nobody
//! sees a mailbox there.
//!
//! Invariants:
//! - Whether a file may go is decided by what is in it, as far as that is not known for certain by reading it; and by what every
//!   other mailbox has, durably, in its own file.
//! - A file that somebody else has changed since its mailbox was deleted ([`super::doomed`]) is not removed at all: whoever looks into the directory
//!   then finds a new mailbox.
//! - Whoever decides waits for nobody: what is locked, or in use, is decided another time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use index::State;
use model::{EmailId, Error, ErrorKind, MailboxId, ModSeq, Result};
use platform::parent_of;

use super::account::{FileBox, MboxAccount, Patience};
use super::doomed::Doomed;
use super::identity::{Identity, tail_digest};
use super::intake::intake;
use super::lock::Access;
use super::map::{Facts, Map, MapBuilder};
use super::scan::{Scanner, Step};
use super::sync::place_of;

impl MboxAccount {
    /// Whether the file of a mailbox that the log does not have any more is gone, or is nothing to us any more.
    pub(super) fn remove_file(&self, state: &State, id: MailboxId, path: &Path) -> Result<bool> {
        let disk = &*self.env.disk;
        let full = self.full_path(path);
        let file_box = self.file_box(id)?;
        if file_box.turn.try_lock().is_err() {
            // Somebody who began when there was the mailbox may just be writing.
            return Ok(false);
        }
        let found = match disk.metadata(&full) {
            Ok(found) if found.is_file => found,
            // Somebody has put something else there.
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(Error::from(error).context(full.display())),
        };
        let known = file_box.map().or_else(|| Map::open(disk, &self.map_path(id)).map(Arc::new));
        let identity = Identity::of(&found);
        let known = known.filter(|map| map.facts().identity == identity && map.facts().is_sure());
        let is_touched = match Doomed::noted(state, id) {
            Some(doomed) => !doomed.is_still(&identity),
            None => found.len > 0,
        };
        // It may have mail that came since the mailbox was deleted.
        let is_spared = file_box.is_spared.load(Ordering::Relaxed) || known.is_none() && is_touched;
        let result = match known {
            Some(map) => {
                file_box.set_map(Some(map));
                Ok(())
            }
            None => self.look_into_kept(&file_box),
        };
        match result {
            Err(error) if error.kind() == ErrorKind::InUse => return Ok(false),
            result => result?,
        }
        if is_spared {
            // Without its map on the disk it is spared by the next process as well.
            let _gone = disk.remove(&self.map_path(id));
        }
        let ids: HashSet<EmailId> =
            file_box.map().iter().flat_map(|map| map.places().filter_map(|place| place.email_id)).collect();
        let ids: HashSet<EmailId> = ids.into_iter().filter(|id| state.foreign(*id).is_some()).collect();
        self.see_to_others(state, id, &ids);
        if !self.needed_by_others(&self.state(), id, &ids).is_empty() {
            if is_spared {
                file_box.is_spared.store(true, Ordering::Relaxed);
            } else if let Some(map) = file_box.map() {
                self.doom_again(state, id, &map.facts().identity)?;
            }
            return Ok(false);
        }
        if is_spared {
            return Ok(true);
        }
        let lock = match self.locker.try_lock(&full, Access::Write) {
            Ok(lock) => lock,
            Err(error) if error.kind() == ErrorKind::InUse => return Ok(false),
            Err(error) => return Err(error),
        };
        if file_box.map().is_none_or(|map| Identity::of_file(&**lock.file()).ok() != Some(map.facts().identity)) {
            return Ok(false);
        }
        disk.remove(&full)?;
        disk.sync_dir(parent_of(&full))?;
        drop(lock);
        self.remove_empty_dir(parent_of(&full));
        Ok(true)
    }

    /// Those of mailboxes that are gone whose files are still there.
    pub(super) fn kept_boxes(&self, state: &State) -> Vec<Arc<FileBox>> {
        let ids: Vec<MailboxId> = super::account::lock(&self.names).iter().map(|(id, _)| id).collect();
        let gone = ids.into_iter().filter(|id| state.mailbox(*id).is_none());
        gone.filter_map(|id| self.file_box(id).ok()).collect()
    }

    /// Which of these messages are in such files; all, when that cannot be told just now.
    pub(super) fn in_kept_files(&self, state: &State, ids: &HashSet<EmailId>) -> HashSet<EmailId> {
        let mut found = HashSet::new();
        if ids.is_empty() {
            return found;
        }
        for file_box in self.kept_boxes(state) {
            if self.refresh(&file_box, Patience::None).is_err() {
                return ids.clone();
            }
            let map = file_box.map();
            found.extend(ids.iter().filter(|id| map.as_ref().is_some_and(|map| map.find(**id).next().is_some())));
        }
        found
    }

    /// Finds in the file of a mailbox that is gone what other mailboxes need: by digests, each message for one of the file.
    pub(super) fn look_into_kept(&self, file_box: &FileBox) -> Result<()> {
        let in_use = || Error::new(ErrorKind::InUse, "the file of a deleted mailbox is in use");
        let _turn = file_box.turn.try_lock().map_err(|_| in_use())?;
        let path = self.path_of(file_box.id).ok_or_else(|| Error::new(ErrorKind::NotFound, "the file is gone"))?;
        let state = self.state();
        let is_doomed = match Doomed::noted(&state, file_box.id) {
            Some(doomed) => doomed.is_still(&Identity::of(&self.env.disk.metadata(&path)?)),
            None => false,
        };
        let recovered = self.recover(file_box, &path)?;
        let lock = match self.locker.try_lock(&path, Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                file_box.set_map(None);
                return Ok(());
            }
            lock => lock?,
        };
        let file = &**lock.file();
        let identity = Identity::of_file(file)?;
        if is_doomed && recovered.is_changed {
            self.doom_again(&state, file_box.id, &identity)?;
        }
        let mut wanted = self.foreign_digests();
        let map_path = self.map_path(file_box.id);
        let mut builder = MapBuilder::create(&self.env.disk, &map_path)?;
        let ended = intake(file, Scanner::new(0), &mut |found| {
            let mut place = place_of(&found);
            place.email_id = wanted.get_mut(&found.digest).and_then(Vec::pop);
            builder.push(&place)
        })?;
        if ended.step == Step::NotMbox {
            // Nothing of ours is in it.
            builder = MapBuilder::create(&self.env.disk, &map_path)?;
        }
        if Identity::of_file(file)? != identity {
            return Err(in_use());
        }
        let is_fresh = identity.is_fresh(self.env.clock.now());
        let (tail_digest, written) = (tail_digest(file, identity.len)?, ModSeq(0));
        let facts = Facts { identity, tail_digest, settled: 0, written, is_fresh, is_grown: false };
        file_box.set_map(Some(Arc::new(builder.finish(&facts)?)));
        Ok(())
    }

    /// The messages of all mailboxes whose octets are in files only, by their digests.
    fn foreign_digests(&self) -> HashMap<u64, Vec<EmailId>> {
        let state = self.state();
        let ids: BTreeSet<EmailId> =
            state.all_mailboxes().flat_map(|mailbox| mailbox.foreign(&state).map(|(row, _)| row.email_id)).collect();
        let mut digests: HashMap<u64, Vec<EmailId>> = HashMap::new();
        for id in ids {
            if let Some(message) = state.foreign(id) {
                digests.entry(message.digest).or_default().push(id);
            }
        }
        digests
    }
}
