//! Whether a mailbox has been left alone for a while, so that it is worth writing what nobody waits for.

use std::time::Duration;

use index::State;
use model::{MailboxId, MailboxName, ModSeq};

/// Since when nothing was changed in a mailbox.
#[derive(Debug, Default)]
pub(crate) struct Calm {
    /// The modseqs of the mailbox and of what is pending when they were last looked at, and since when they are so.
    known: Option<([ModSeq; 2], Duration)>,
}

impl Calm {
    /// Whether nothing was changed in the mailbox for `idle`, by the monotonic clock.
    pub(crate) fn is_calm(&mut self, state: &State, id: MailboxId, now: Duration, idle: Duration) -> bool {
        let modseq =
            |mailbox: Option<&std::sync::Arc<index::Mailbox>>| mailbox.map_or(ModSeq(0), |one| one.highest_modseq());
        let modseqs = [modseq(state.mailbox(id)), modseq(state.mailbox_named(&MailboxName::hidden(id)))];
        match self.known {
            Some((known, since)) if known == modseqs => now.saturating_sub(since) >= idle,
            _ => {
                self.known = Some((modseqs, now));
                idle.is_zero()
            }
        }
    }
}
