//! What is done with the files when nobody waits for it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};
use std::time::Duration;

use model::{ErrorKind, Result};

use super::account::{FileBox, MboxAccount, Moment, Patience, lock};
use super::map::Map;
use super::names::Since;

impl MboxAccount {
    /// A piece of the work in the background: names that could not be followed at once, messages that wait to be written into files, mailboxes
    /// that have been left alone for a while. What another program keeps locked waits for the next time; any other error is told, and does
    /// not keep the other files waiting.
    pub(crate) fn maintain(&self) -> Result<()> {
        let mut result = self.reconcile(Since::Change);
        for mailbox in self.state().mailboxes() {
            let Ok(file_box) = self.file_box(mailbox.id()) else { continue };
            let done = match self.maintain_file(&file_box) {
                Err(error) if error.kind() == ErrorKind::InUse => Ok(()),
                done => done.map_err(|error| error.context(mailbox.name())),
            };
            result = result.and(done);
        }
        result
    }

    fn maintain_file(&self, file_box: &Arc<FileBox>) -> Result<()> {
        self.audit(file_box);
        if file_box.wanted.load(Ordering::Acquire) {
            self.refresh(file_box, Patience::None)?;
            self.write_out(file_box)?;
        }
        if self.is_calm(file_box) {
            self.look_at_all(file_box)?;
            if self.is_dirty(file_box) && file_box.map().is_some() {
                self.write_back(file_box, Moment::Idle)?;
            }
            self.save_map(file_box)?;
        }
        Ok(())
    }

    /// Reads all of a file of which only what was added was read, so that what was changed before it at the same time is seen, too.
    pub(super) fn look_at_all(&self, file_box: &FileBox) -> Result<()> {
        if file_box.map().is_none_or(|map| map.facts().is_sure()) {
            return Ok(());
        }
        let Ok(mut turn) = file_box.turn.try_lock() else { return Ok(()) };
        turn.is_whole_wanted = true;
        let result = self.sync(file_box, &mut turn, Patience::None);
        turn.is_whole_wanted = false;
        result
    }

    /// Looks, once, whether something was left to do when the account was open the last time. The file itself is not touched.
    pub(super) fn audit(&self, file_box: &FileBox) {
        if file_box.is_audited.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = self.state();
        let Some(mailbox) = state.mailbox(file_box.id) else { return };
        let pending = MboxAccount::pending_of(&state, file_box.id).map(|one| &**one);
        let is_empty = mailbox.exists() == 0 && pending.is_none_or(|pending| pending.exists() == 0);
        if is_empty {
            return;
        }
        let kept = || Map::open(&*self.env.disk, &self.map_path(file_box.id)).map(Arc::new);
        let is_behind = file_box
            .map()
            .or_else(kept)
            .is_none_or(|map| !super::sync::unplaced(mailbox, pending, Some(&map)).is_empty());
        file_box.wanted.fetch_or(is_behind, Ordering::AcqRel);
    }

    /// Whether nothing was changed in the mailbox for a while.
    fn is_calm(&self, file_box: &FileBox) -> bool {
        let mut turn = match file_box.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let idle = Duration::from_secs(self.options.idle_seconds);
        turn.calm.is_calm(&self.state(), file_box.id, self.env.clock.monotonic(), idle)
    }

    /// Saves a map that has changed, so that the next opening need not look for what is known.
    fn save_map(&self, file_box: &FileBox) -> Result<()> {
        let Some(map) = file_box.map().filter(|map| map.changes() > 0) else { return Ok(()) };
        let _turn = lock(&file_box.turn);
        let mut map = Map::clone(&file_box.map().unwrap_or(map));
        map.save(&self.env.disk, &self.map_path(file_box.id))?;
        file_box.set_map(Some(Arc::new(map)));
        Ok(())
    }

    /// Nobody uses the account any more: what is to be written when idle is written now.
    pub(crate) fn close(&self) {
        for file_box in self.open_boxes() {
            // What fails here is found at the next opening.
            let _later = self.write_out(&file_box).and_then(|()| match file_box.map() {
                Some(_) if self.is_dirty(&file_box) => self.write_back(&file_box, Moment::Idle),
                _ => Ok(()),
            });
            let _later = self.save_map(&file_box);
        }
    }
}
