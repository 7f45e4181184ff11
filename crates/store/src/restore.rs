//! Bringing back what was expunged or deleted, while the account still keeps it (`retention_seconds`).

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
}

impl Account {
    /// Brings back the entries of a mailbox that were expunged at `since` (Unix seconds) or later, with their dates and their flags but
    /// `\Deleted`, under new UIDs; moved ones too. A mailbox of that name that was itself deleted at `since` or later, the last such one, is brought
    /// back first, with its UIDs. [`ErrorKind::NotFound`] when there is neither.
    pub fn restore(&self, name: &MailboxName, since: i64) -> Result<Restored> {
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
            Ok(restored)
        })
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => error.context("nothing to restore"),
            _ => error,
        })
    }
}
