//! What is done with the Maildirs when nobody waits for it.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::{ErrorKind, Result};

use super::account::{DirBox, MaildirAccount, lock};
use super::map::Map;
use crate::format::files::Moment;
use crate::format::names::Since;

/// A map is saved once so much in it has changed.
const MAP_CHANGES_MAX: usize = 20_000;

impl MaildirAccount {
    /// A piece of the work in the background: names that could not be followed at once, messages that wait for their files, mailboxes that have
    /// been left alone for a while. An error is told, and does not keep the other mailboxes waiting.
    pub(crate) fn maintain(&self) -> Result<()> {
        let mut result = self.reconcile(Since::Change);
        for mailbox in self.state().mailboxes() {
            let Ok(dir_box) = self.dir_box(mailbox.id()) else { continue };
            let done = match self.maintain_box(&dir_box) {
                Err(error) if error.kind() == ErrorKind::InUse => Ok(()),
                done => done.map_err(|error| error.context(mailbox.name())),
            };
            result = result.and(done);
        }
        result.and_then(|()| self.maintain_sizes())
    }

    fn maintain_box(&self, dir_box: &DirBox) -> Result<()> {
        self.audit(dir_box);
        if lock(&dir_box.map).is_none() && !dir_box.wanted.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.is_dirty(dir_box) {
            dir_box.wanted.store(true, Ordering::Release);
            self.write_out(dir_box)?;
        }
        let is_calm = self.is_calm(dir_box);
        if is_calm && !self.is_rested(dir_box) {
            self.write_back(dir_box, Moment::Idle)?;
        }
        if self.is_sharing_due(dir_box)
            && let Some(maildir) = self.path_of(dir_box.id)
        {
            let _turn = lock(&dir_box.turn);
            self.share_uids(dir_box, &maildir)?;
        }
        let least = if is_calm { 1 } else { MAP_CHANGES_MAX };
        if dir_box.with_map(|map| map.changes()).is_some_and(|changes| changes >= least) {
            self.save_synced(dir_box)?;
        }
        Ok(())
    }

    /// Looks, once, whether something was left to do when the account was open the last time. The Maildir itself is not looked at.
    pub(super) fn audit(&self, dir_box: &DirBox) {
        if dir_box.is_audited.swap(true, Ordering::AcqRel) || lock(&dir_box.map).is_some() {
            return;
        }
        let state = self.state();
        let Some(mailbox) = state.mailbox(dir_box.id) else { return };
        let is_pending = MaildirAccount::pending_of(&state, dir_box.id).is_some_and(|pending| pending.exists() > 0);
        if mailbox.exists() == 0 && !is_pending {
            return;
        }
        let shown = Map::load(&*self.env.disk, &self.map_path(dir_box.id)).map(|map| map.shown);
        let is_behind = is_pending || shown.is_none_or(|shown| mailbox.highest_modseq() > shown);
        dir_box.wanted.fetch_or(is_behind, Ordering::AcqRel);
    }

    /// Whether everything was done already that is done when a mailbox is left alone, for the mailbox as it is.
    fn is_rested(&self, dir_box: &DirBox) -> bool {
        let state = self.state();
        let pending = MaildirAccount::pending_of(&state, dir_box.id).map_or(0, |pending| pending.exists());
        let now = state.mailbox(dir_box.id).map(|one| (one.highest_modseq(), pending, one.recent_floor()));
        let mut turn = lock(&dir_box.turn);
        now.is_none() || std::mem::replace(&mut turn.rested, now) == now
    }

    /// Whether nothing was changed in the mailbox for a while.
    fn is_calm(&self, dir_box: &DirBox) -> bool {
        let mut turn = match dir_box.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let idle = Duration::from_secs(self.options.idle_seconds);
        turn.calm.is_calm(&self.state(), dir_box.id, self.env.clock.monotonic(), idle)
    }

    /// Nobody uses the account any more: what is to be done when idle is done now.
    pub(crate) fn close(&self) {
        for dir_box in self.open_boxes() {
            // What fails here is found at the next opening.
            let _later = self.write_back(&dir_box, Moment::Idle);
            let _later = self.save_synced(&dir_box);
        }
    }

    /// Saves a map that has changed. What we did ourselves is taken in by its names before, so that the next opening finds nothing new.
    fn save_synced(&self, dir_box: &DirBox) -> Result<()> {
        if dir_box.with_map(|map| map.changes()).is_none_or(|changes| changes == 0) {
            return Ok(());
        }
        let mut turn = lock(&dir_box.turn);
        // A map that is not quite new is worth more than none.
        let synced = self.sync(dir_box, &mut turn);
        self.save_map(dir_box, &mut turn).and(synced)
    }
}
