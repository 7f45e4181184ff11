//! What is different between two moments of a view.

use model::{NumSet, UidSet};

/// What [`crate::View::advance`] found.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Entries that are gone: their sequence numbers in the view as it was before, rising. (EXPUNGE responses are sent from the
    /// highest to the lowest, or each lowered by those before it.)
    pub expunged_seqs: NumSet,
    /// The same entries by UID.
    pub expunged_uids: UidSet,
    /// Entries that were there before and have new flags, by UID.
    pub flags_changed: UidSet,
    /// How many entries were added.
    pub added: u32,
    /// Keywords were added to the mailbox: FLAGS and PERMANENTFLAGS are to be sent again.
    pub keywords_changed: bool,
    /// The mailbox is gone: every entry is listed as expunged.
    pub mailbox_deleted: bool,
}

impl Changes {
    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.expunged_uids.is_empty()
            && self.flags_changed.is_empty()
            && self.added == 0
            && !self.keywords_changed
            && !self.mailbox_deleted
    }
}
