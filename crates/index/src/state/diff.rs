//! What changed between two views of one mailbox. Chunks that both share are skipped by pointer, so that the cost is that
//! of the change.

use std::sync::Arc;

use model::UidSet;

use super::chunk::Slot;
use super::mailbox::Mailbox;

/// What a newer view has that an older one has not. The sets are disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New entries. Their UIDs are larger than all that the older view had.
    pub appended: UidSet,
    /// Entries that are gone.
    pub expunged: UidSet,
    /// Entries whose flags (and modseq) differ.
    pub changed: UidSet,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.appended.is_empty() && self.expunged.is_empty() && self.changed.is_empty()
    }
}

/// Walks the rows of a mailbox, chunk by chunk.
struct Cursor<'a> {
    slots: &'a [Slot],
    index: usize,
}

impl<'a> Cursor<'a> {
    fn slot(&self) -> Option<&'a Slot> {
        self.slots.first()
    }

    fn uid(&self) -> Option<u32> {
        self.slot().map(|slot| slot.chunk.uid(self.index))
    }

    fn skip_slot(&mut self) {
        self.slots = self.slots.get(1..).unwrap_or_default();
        self.index = 0;
    }

    fn next(&mut self) {
        self.index += 1;
        if self.slot().is_some_and(|slot| self.index >= slot.chunk.len()) {
            self.skip_slot();
        }
    }
}

impl Mailbox {
    /// What changed since `older`, which is an earlier view of the same mailbox.
    pub fn changes_since(&self, older: &Mailbox) -> Changes {
        let mut changes = Changes::default();
        let mut old = Cursor { slots: &older.slots, index: 0 };
        let mut new = Cursor { slots: &self.slots, index: 0 };
        loop {
            match (old.slot(), new.slot()) {
                (None, None) => return changes,
                (Some(a), Some(b)) if old.index == 0 && new.index == 0 && Arc::ptr_eq(&a.chunk, &b.chunk) => {
                    old.skip_slot();
                    new.skip_slot();
                }
                (Some(a), Some(b)) => {
                    let (old_uid, new_uid) = (a.chunk.uid(old.index), b.chunk.uid(new.index));
                    if old_uid < new_uid {
                        changes.expunged.insert(old_uid);
                        old.next();
                    } else if new_uid < old_uid {
                        changes.appended.insert(new_uid);
                        new.next();
                    } else {
                        if a.chunk.modseq_number(old.index) != b.chunk.modseq_number(new.index) {
                            changes.changed.insert(new_uid);
                        }
                        old.next();
                        new.next();
                    }
                }
                (Some(_), None) => {
                    changes.expunged.extend(old.uid());
                    old.next();
                }
                (None, Some(_)) => {
                    changes.appended.extend(new.uid());
                    new.next();
                }
            }
        }
    }
}
