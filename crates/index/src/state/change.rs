//! How a mailbox changes: the only functions that write rows. They keep the slots' summaries and the totals right.

use std::sync::Arc;

use model::{Flags, ModSeq, UidSet};

use super::chunk::{CHUNK_ROWS_MAX, Chunk, Row, Slot, Summary};
use super::history::Batch;
use super::mailbox::Mailbox;

impl Mailbox {
    /// Sets the totals and each slot's `before` from the slots' summaries.
    pub(crate) fn recount(&mut self) {
        (self.exists, self.unseen, self.deleted, self.octets) = (0, 0, 0, 0);
        for slot in &mut self.slots {
            slot.before = self.exists;
            self.exists += slot.summary.rows;
            self.unseen += slot.summary.unseen;
            self.deleted += slot.summary.deleted;
            self.octets += slot.summary.octets;
        }
    }

    /// Appends an entry, whose UID is larger than all here. `false`, and nothing done, when it is not.
    pub(crate) fn append_row(&mut self, row: &Row) -> bool {
        if self.slots.last().is_some_and(|slot| slot.summary.uid_last >= row.uid.get()) {
            return false;
        }
        if self.slots.last().is_none_or(|slot| slot.chunk.len() >= CHUNK_ROWS_MAX) {
            let slot = Slot { summary: Summary::default(), before: self.exists, chunk: Arc::new(Chunk::new()) };
            self.slots.push(slot);
        }
        let slot = self.slots.last_mut().expect("pushed when there was none");
        Arc::make_mut(&mut slot.chunk).push(row);
        let before = slot.summary;
        slot.summary.add(row);
        self.exists += 1;
        self.unseen += slot.summary.unseen - before.unseen;
        self.deleted += slot.summary.deleted - before.deleted;
        self.octets += u64::from(row.size);
        self.uidnext = self.uidnext.max(u64::from(row.uid.get()) + 1);
        self.highest_modseq = self.highest_modseq.max(row.modseq);
        true
    }

    /// Gives the entries of `uids` these flags and this modseq, unless a later change gave them a larger one.
    pub(crate) fn set_flags(&mut self, uids: &UidSet, flags: Flags, modseq: ModSeq) {
        let mut touched = Vec::new();
        for &(first, last) in uids.ranges() {
            let (mut at, mut index) = self.find(first);
            while let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.summary.uid_first <= last) {
                let end = last.checked_add(1).map_or(slot.chunk.len(), |after| slot.chunk.lower_bound(after));
                if index < end {
                    let chunk = Arc::make_mut(&mut slot.chunk);
                    for index in index..end {
                        if chunk.modseq_number(index) <= modseq.0 {
                            chunk.set_flags(index, flags, modseq);
                        }
                    }
                    if touched.last() != Some(&at) {
                        touched.push(at);
                    }
                }
                (at, index) = (at + 1, 0);
            }
        }
        for at in touched {
            let slot = &mut self.slots[at];
            slot.summary = Summary::of(&slot.chunk);
        }
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.recount();
    }

    /// Takes the entries of `uids` away and remembers them. UIDs without an entry are remembered as gone.
    pub(crate) fn expunge(&mut self, uids: &UidSet, modseq: ModSeq, time: i64, ranges_max: usize) {
        let rows: Vec<Row> = self.rows_of(uids).map(|(_, row)| row).collect();
        let mut gone = rows.iter().map(|row| row.uid.get()).peekable();
        for slot in &mut self.slots {
            let last = slot.summary.uid_last;
            if gone.peek().is_none_or(|uid| *uid > last) {
                continue;
            }
            Arc::make_mut(&mut slot.chunk).retain(|uid| gone.next_if_eq(&uid).is_none());
            slot.summary = Summary::of(&slot.chunk);
        }
        self.slots.retain(|slot| slot.summary.rows > 0);
        self.merge_small();
        self.recount();
        self.uidnext = self.uidnext.max(uids.last().map_or(0, |last| u64::from(last) + 1));
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.history.push(Batch { modseq, time, uids: uids.clone(), rows }, ranges_max);
    }

    /// Joins neighbouring chunks that fit into half a chunk, so that the list stays short.
    fn merge_small(&mut self) {
        let fits = |a: &Slot, b: &Slot| (a.summary.rows + b.summary.rows) as usize <= CHUNK_ROWS_MAX / 2;
        if !self.slots.windows(2).any(|pair| matches!(pair, [a, b] if fits(a, b))) {
            return;
        }
        let mut merged: Vec<Slot> = Vec::with_capacity(self.slots.len());
        for slot in std::mem::take(&mut self.slots) {
            match merged.last_mut().filter(|last| fits(last, &slot)) {
                Some(last) => {
                    let chunk = Arc::make_mut(&mut last.chunk);
                    chunk.extend(&slot.chunk, 0..slot.chunk.len());
                    last.summary = Summary::of(chunk);
                }
                None => merged.push(slot),
            }
        }
        self.slots = merged;
    }
}
