//! \Recent (RFC 3501 §2.3.2): which entries no read-write view was given before.
//!
//! One number a mailbox says it: entries with that UID or a larger one are recent to the next read-write view. The number in memory is
//! the truth while the account is open. It is written to the log without waiting for a sync: after a power cut entries may be recent
//! once more, which the RFC allows and nobody minds. Entries that come while several views are open are recent to each of
//! them, as the RFC advises when it cannot be told who was first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use index::{Log, Mailbox};
use model::MailboxId;

/// The floors of an account's mailboxes.
#[derive(Default)]
pub(crate) struct RecentFloors {
    claimed: Mutex<HashMap<MailboxId, u32>>,
}

impl RecentFloors {
    /// The first UID that is recent, if there is an entry with it.
    pub(crate) fn floor(&self, mailbox: &Mailbox) -> u32 {
        let claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.get(&mailbox.id()).copied().unwrap_or(0).max(mailbox.recent_floor())
    }

    /// Takes what is recent in `mailbox`; returns the floor as it was.
    pub(crate) fn claim(&self, log: &Arc<Log>, mailbox: &Mailbox) -> u32 {
        let next = mailbox.uidnext().map_or(u32::MAX, model::Uid::get);
        let before = {
            let mut claimed = self.claimed.lock().unwrap_or_else(PoisonError::into_inner);
            let floor = claimed.entry(mailbox.id()).or_insert(0);
            let before = mailbox.recent_floor().max(*floor);
            *floor = before.max(next);
            before
        };
        // UIDNEXT of an untouched mailbox is 1, and its floor may be 0: nothing to claim.
        if before < next && mailbox.exists() > 0 {
            // Not waited for, and no harm when it fails: see above.
            let _ = log.transact_if_free(|transaction| transaction.set_recent_floor(mailbox.id(), next));
        }
        before
    }
}
