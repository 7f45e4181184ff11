//! Bringing back what was expunged or deleted, while the account still keeps it (`retention_seconds`).

use index::Transaction;
use model::{ErrorKind, FlagChange, Flags, MailboxId, MailboxName, Result, SystemFlag, Uid, UidSet};

use crate::account::{Account, no_mailbox};
use crate::edit::pairs;

/// What [`Account::restore`] brought back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The mailbox itself was deleted, and is back with what it held.
    pub mailbox: Option<MailboxId>,
    /// Entries that are back: the UID they had, and the one they have now.
    pub uids: Vec<(Uid, Uid)>,
    /// More entries that are back, by the UID they have now: of messages that an mbox file still has. Which UID they had is not known any more.
    pub from_file: Vec<Uid>,
}

impl Account {
    /// Brings back the entries of a mailbox that were expunged at `since` (Unix seconds) or later, with their dates and their flags but
    /// `\Deleted`, under new UIDs; moved ones too. A mailbox of that name that was itself deleted at `since` or later, the last such one, is brought
    /// back first, with its UIDs. [`ErrorKind::NotFound`] when there is neither.
    ///
    /// Of messages that other programs put into an mbox file those are brought back that have not left it yet.
    pub fn restore(&self, name: &MailboxName, since: i64) -> Result<Restored> {
        let id = self.inner.state().mailbox_named(name).map(|mailbox| mailbox.id());
        let Some((id, files)) = id.zip(self.inner.files()) else { return self.restore_now(name, since) };
        let mut restored = Restored::default();
        // Nobody takes out of the file meanwhile what is brought back.
        files.hold(id, &mut || {
            restored = self.restore_now(name, since)?;
            Ok(())
        })?;
        Ok(restored)
    }

    fn restore_now(&self, name: &MailboxName, since: i64) -> Result<Restored> {
        self.commit(|transaction| {
            let mut restored = Restored::default();
            let id = match transaction.state().mailbox_named(name).map(|mailbox| mailbox.id()) {
                Some(id) => id,
                None => {
                    let deleted = transaction.state().deleted_mailboxes();
                    let candidates = deleted.filter(|one| one.mailbox.name() == name && one.deleted_at >= since);
                    let last = candidates.max_by_key(|one| (one.deleted_at, one.mailbox.id()));
                    let id = last.map(|one| one.mailbox.id()).ok_or_else(|| no_mailbox().context(name))?;
                    crate::mailboxes::create_parents(transaction, name)?;
                    transaction.undelete_mailbox(id, name)?;
                    restored.mailbox = Some(id);
                    id
                }
            };
            let expunged = transaction.mailbox(id)?.expunged_since(since);
            let uids: UidSet = {
                let mut uids: Vec<u32> = expunged.map(|expunged| expunged.row.uid.get()).collect();
                uids.sort_unstable();
                uids.into_iter().collect()
            };
            let copied = transaction.restore(id, &uids)?;
            // Nearly every one had it, and the next EXPUNGE would take it away again.
            let deleted = FlagChange::Remove(Flags::system(SystemFlag::Deleted));
            transaction.set_flags(id, &copied.destination, deleted, None)?;
            restored.uids = pairs(transaction, id, &copied, None)?.uids;
            restored.from_file = restore_pending(transaction, id, since)?;
            Ok(restored)
        })
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => error.context("nothing to restore"),
            _ => error,
        })
    }
}

/// Brings back what was expunged since then and is still in the file: such entries are in a hidden mailbox.
fn restore_pending(transaction: &mut Transaction, id: MailboxId, since: i64) -> Result<Vec<Uid>> {
    let state = transaction.state();
    let Some(hidden) = state.mailbox_named(&MailboxName::hidden(id)) else { return Ok(Vec::new()) };
    // They were saved there when they were expunged here.
    let pending = hidden.foreign(state).filter(|(row, _)| row.save_date >= since);
    let (hidden, uids): (_, UidSet) = (hidden.id(), pending.map(|(row, _)| row.uid.get()).collect());
    let back = transaction.move_entries(hidden, &uids, id)?;
    let deleted = FlagChange::Remove(Flags::system(SystemFlag::Deleted));
    transaction.set_flags(id, &back.destination, deleted, None)?;
    Ok(back.destination.iter().filter_map(Uid::new).collect())
}
