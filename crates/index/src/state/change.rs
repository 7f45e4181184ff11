//! How a mailbox changes: the only functions that write rows. They keep the slots' summaries and the totals right.

use std::mem;
use std::sync::Arc;

use model::{Flags, ModSeq, UidSet};

use super::chunk::{Chunk, Slot, Summary};
use super::columns::{CHUNK_ROWS_MAX, Row};
use super::history::Batch;
use super::mailbox::Mailbox;

/// Rows that are copied to append one to a chunk that somebody else holds.
const SHARED_ROWS_MAX: usize = 64;

impl Slot {
    /// Takes in the rows of the slot behind it.
    fn append(&mut self, next: &Slot) {
        Arc::make_mut(&mut self.chunk).append(&next.chunk);
        self.summary.join(&next.summary);
    }
}

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
        if !self.slots.last_mut().is_some_and(has_room) {
            self.join_last();
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

    /// Makes one chunk of the last two when it can hold both.
    fn join_last(&mut self) {
        if let [.., last, new] = self.slots.as_mut_slice()
            && last.chunk.len() + new.chunk.len() <= CHUNK_ROWS_MAX
        {
            last.append(new);
            self.slots.pop();
        }
    }

    /// Gives the entries of `uids` these flags and this modseq, unless a later change gave them a larger one.
    pub(crate) fn set_flags(&mut self, uids: &UidSet, flags: Flags, modseq: ModSeq) {
        let runs: Vec<_> = self.runs(uids).collect();
        for runs in runs.chunk_by(|a, b| a.0 == b.0) {
            let Some((slot, _)) = runs.first() else { continue };
            let slot = &mut self.slots[*slot];
            let rows = runs.iter().flat_map(|(_, rows)| rows.clone());
            Arc::make_mut(&mut slot.chunk).set_flags(rows, flags, modseq, &mut slot.summary);
        }
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.recount();
    }

    /// Takes the entries of `uids` away and remembers them. UIDs without an entry are remembered as gone.
    pub(crate) fn expunge(&mut self, uids: &UidSet, modseq: ModSeq, time: i64, ranges_max: usize) {
        let runs: Vec<_> = self.runs(uids).collect();
        let mut batch = Batch { modseq, time, uids: uids.clone(), parts: Vec::new() };
        for runs in runs.chunk_by(|a, b| a.0 == b.0) {
            let Some((slot, _)) = runs.first() else { continue };
            let slot = &mut self.slots[*slot];
            let (left, gone) = slot.chunk.split(runs.iter().map(|(_, rows)| rows.clone()));
            slot.summary = if left.len() > 0 { slot.summary.without(&gone, &left) } else { Summary::default() };
            slot.chunk = Arc::new(left);
            batch.add(gone);
        }
        self.slots.retain(|slot| slot.summary.rows > 0);
        self.merge_small();
        self.recount();
        self.uidnext = self.uidnext.max(uids.last().map_or(0, |last| u64::from(last) + 1));
        self.highest_modseq = self.highest_modseq.max(modseq);
        self.history.push(batch, ranges_max);
    }

    /// Joins neighbouring chunks that fit into half a chunk, so that the list stays short.
    fn merge_small(&mut self) {
        let fits = |a: &Slot, b: &Slot| (a.summary.rows + b.summary.rows) as usize <= CHUNK_ROWS_MAX / 2;
        if !self.slots.windows(2).any(|pair| matches!(pair, [a, b] if fits(a, b))) {
            return;
        }
        let mut merged: Vec<Slot> = Vec::with_capacity(self.slots.len());
        for slot in mem::take(&mut self.slots) {
            match merged.last_mut().filter(|last| fits(last, &slot)) {
                Some(last) => last.append(&slot),
                None => merged.push(slot),
            }
        }
        self.slots = merged;
    }
}

/// Whether a row is best appended to this chunk: a shared one is copied for it, so it must be short.
fn has_room(slot: &mut Slot) -> bool {
    let is_own = Arc::get_mut(&mut slot.chunk).is_some_and(Chunk::is_own);
    let max = if is_own { CHUNK_ROWS_MAX } else { SHARED_ROWS_MAX };
    slot.chunk.len() < max
}
