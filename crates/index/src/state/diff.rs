//! What changed between two views of one mailbox. Every change of an entry gives it a modseq above all that were there before, and
//! every expunge is remembered with one, so that the cost is that of the change.

use model::{NumSet, UidSet};

use super::mailbox::Mailbox;

/// What a newer view has that an older one has not. The sets of UIDs are disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New entries. Their UIDs are larger than all that the older view had.
    pub appended: UidSet,
    /// Entries that are gone.
    pub expunged: UidSet,
    /// Their sequence numbers in the older view.
    pub expunged_seqs: NumSet,
    /// Entries whose flags (and modseq) differ.
    pub changed: UidSet,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.appended.is_empty() && self.expunged.is_empty() && self.changed.is_empty()
    }
}

impl Mailbox {
    /// What changed since `older`, which is an earlier view of the same mailbox.
    pub fn changes_since(&self, older: &Mailbox) -> Changes {
        if older.exists == 0 {
            // Also what is left of a view whose mailbox was deleted: when that comes back, nothing in it is as new as it seems.
            return Changes { appended: self.all_uids(), ..Changes::default() };
        }
        let is_new = |uid: u32| u64::from(uid) >= older.uidnext;
        // May name entries that came and went since.
        let vanished = self.history.vanished_since(older.highest_modseq);
        let vanished = vanished.unwrap_or_else(|| older.all_uids().difference(&self.all_uids()));
        let (expunged, expunged_seqs) = older.existing_with_seqs(&vanished);
        let mut changes = Changes { expunged, expunged_seqs, ..Changes::default() };
        for uid in self.uids_changed_since(older.highest_modseq) {
            let changed = if is_new(uid) { &mut changes.appended } else { &mut changes.changed };
            changed.insert(uid);
        }
        changes
    }
}
