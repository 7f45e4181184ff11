//! What has left a mailbox: whole rows while they can still be brought back, UIDs and modseqs afterwards.
//!
//! Invariants: batches are in the order of their modseqs; at or below the floor nothing is known.

use std::sync::Arc;

use model::{ModSeq, UidSet};

use super::chunk::Chunk;
use super::columns::Row;

/// Batches that share one allocation, so that adding one copies little.
const BATCHES_PER_BLOCK: usize = 128;

/// The entries that one transaction expunged from a mailbox.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) modseq: ModSeq,
    /// Seconds since 1970 UTC.
    pub(crate) time: i64,
    pub(crate) uids: UidSet,
    /// What can be brought back, rising by UID; no part is empty.
    pub(crate) parts: Vec<Part>,
}

/// Rows that can be brought back.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A few of a chunk, copied: sharing its columns would keep all of them in memory.
    Few(Vec<Row>),
    /// Many of a chunk.
    Many(Chunk),
}

impl Part {
    fn rows(&self) -> impl Iterator<Item = Row> {
        let (few, many) = match self {
            Part::Few(rows) => (Some(rows), None),
            Part::Many(chunk) => (None, Some(chunk)),
        };
        few.into_iter().flatten().copied().chain(many.into_iter().flat_map(Chunk::rows))
    }
}

impl Batch {
    /// The rows that can be brought back, rising by UID.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> {
        self.parts.iter().flat_map(Part::rows)
    }

    /// Adds rows that can be brought back, behind those that are there.
    pub(crate) fn add(&mut self, rows: Chunk) {
        match self.parts.last_mut() {
            _ if !rows.is_sparse() => self.parts.push(Part::Many(rows)),
            Some(Part::Few(few)) => few.extend(rows.rows()),
            _ => self.parts.push(Part::Few(rows.rows().collect())),
        }
    }

    /// The same without the rows of `uids`; `None` when it has none of them.
    fn without_rows(&self, uids: &UidSet) -> Option<Batch> {
        let (taken, kept): (Vec<Row>, Vec<Row>) = self.rows().partition(|row| uids.contains_uid(row.uid));
        let parts = if kept.is_empty() { Vec::new() } else { vec![Part::Few(kept)] };
        (!taken.is_empty()).then(|| Batch { uids: self.uids.clone(), parts, ..*self })
    }
}

/// The expunged entries of one mailbox. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    blocks: Vec<Arc<Vec<Arc<Batch>>>>,
    /// UID ranges in all batches.
    ranges: usize,
    /// Expunges up to here are forgotten.
    pub(crate) floor: ModSeq,
}

impl History {
    pub(crate) fn batches(&self) -> impl DoubleEndedIterator<Item = &Batch> {
        self.blocks.iter().flat_map(|block| block.iter()).map(|batch| &**batch)
    }

    /// Adds what a transaction expunged; batches come in the order of their modseqs.
    pub(crate) fn push(&mut self, batch: Batch, ranges_max: usize) {
        if batch.uids.is_empty() {
            return;
        }
        self.ranges += batch.uids.ranges().len();
        match self.blocks.last_mut().filter(|block| block.len() < BATCHES_PER_BLOCK) {
            Some(block) => Arc::make_mut(block).push(Arc::new(batch)),
            None => self.blocks.push(Arc::new(vec![Arc::new(batch)])),
        }
        self.forget(ranges_max);
    }

    /// Forgets the oldest batches that hold no rows until at most `ranges_max` ranges are left. Whole blocks only: which
    /// ones does not matter to anybody, since below the floor every absent UID is reported.
    fn forget(&mut self, ranges_max: usize) {
        while self.ranges > ranges_max && self.blocks.len() > 1 {
            let Some(block) = self.blocks.first().filter(|block| block.iter().all(|batch| batch.parts.is_empty()))
            else {
                return;
            };
            self.ranges -= block.iter().map(|batch| batch.uids.ranges().len()).sum::<usize>();
            self.floor = block.last().map_or(self.floor, |batch| batch.modseq);
            self.blocks.remove(0);
        }
    }

    /// The UIDs expunged after `since`; `None` when that is no longer known.
    pub(crate) fn vanished_since(&self, since: ModSeq) -> Option<UidSet> {
        if since < self.floor {
            return None;
        }
        let blocks = self.blocks.iter().skip_while(|block| block.last().is_none_or(|batch| batch.modseq <= since));
        let batches: Vec<_> = blocks.flat_map(|block| block.iter()).filter(|batch| batch.modseq > since).collect();
        if let [only] = batches.as_slice() {
            return Some(only.uids.clone());
        }
        // Sorted first: adding to a set in rising order costs constant time a range.
        let mut ranges: Vec<(u32, u32)> = batches.iter().flat_map(|batch| batch.uids.ranges()).copied().collect();
        ranges.sort_unstable();
        let mut set = UidSet::new();
        for (first, last) in ranges {
            set.insert_range(first, last);
        }
        Some(set)
    }

    /// Changes each batch that `change` says something about.
    fn edit(&mut self, change: impl Fn(&Batch) -> Option<Batch>) {
        for block in &mut self.blocks {
            if block.iter().any(|batch| change(batch).is_some()) {
                for batch in Arc::make_mut(block) {
                    if let Some(changed) = change(batch) {
                        *batch = Arc::new(changed);
                    }
                }
            }
        }
    }

    /// Lets go of the rows that were expunged before `time`.
    pub(crate) fn prune(&mut self, time: i64) {
        self.edit(|batch| {
            let old = batch.time < time && !batch.parts.is_empty();
            old.then(|| Batch { parts: Vec::new(), ..batch.clone() })
        });
    }

    /// Lets go of the rows of `uids`: they have been brought back.
    pub(crate) fn restored(&mut self, uids: &UidSet) {
        self.edit(|batch| batch.without_rows(uids));
    }

    /// Takes over what a checkpoint says.
    pub(crate) fn load(batches: Vec<Batch>, floor: ModSeq) -> Self {
        let mut history = History { floor, ..History::default() };
        for batch in batches {
            history.push(batch, usize::MAX);
        }
        history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_batches_are_forgotten_and_the_floor_says_so() {
        let mut history = History::default();
        for n in 1..=1000u32 {
            let uids = UidSet::range(n * 2, n * 2);
            history.push(Batch { modseq: ModSeq(n.into()), time: 0, uids, parts: Vec::new() }, 300);
        }
        assert!(history.batches().count() <= 300);
        assert!(history.floor > ModSeq(0));
        assert_eq!(history.vanished_since(ModSeq(0)), None);
        assert_eq!(history.vanished_since(ModSeq(998)).unwrap().to_string(), "1998,2000");
        assert_eq!(history.vanished_since(ModSeq(1000)).unwrap().to_string(), "");
    }

    #[test]
    fn so_many_ranges_are_remembered_and_no_more() {
        const EACH: usize = 100;
        let max = crate::Options::default().tombstone_ranges_max;
        let mut history = History::default();
        let mut uid = 0;
        let mut expunge = |history: &mut History, ranges: usize| {
            let uids: UidSet = (0..ranges)
                .map(|_| {
                    uid += 2;
                    uid
                })
                .collect();
            let modseq = ModSeq(u64::from(uid));
            history.push(Batch { modseq, time: 0, uids, parts: Vec::new() }, max);
        };
        for _ in 0..max / EACH {
            expunge(&mut history, EACH);
        }
        assert_eq!(history.ranges, max);
        assert_eq!(history.vanished_since(ModSeq(0)).map(|uids| uids.ranges().len()), Some(max));
        expunge(&mut history, 1);
        assert_eq!(history.vanished_since(ModSeq(0)), None, "the oldest are forgotten");
        assert_eq!(history.ranges, max + 1 - BATCHES_PER_BLOCK * EACH);
        let known = history.vanished_since(history.floor).unwrap();
        assert_eq!(known.ranges().len(), history.ranges);
    }

    #[test]
    fn what_can_be_brought_back_is_not_forgotten() {
        let mut history = History::default();
        for n in 1..=1000u32 {
            let row = Row {
                uid: model::Uid::new(n * 2).unwrap(),
                flags: model::Flags::NONE,
                modseq: ModSeq(n.into()),
                internal_date: model::DateTime::utc(0),
                save_date: 0,
                size: 0,
                email_id: model::EmailId(n.into()),
            };
            let uids = UidSet::range(n * 2, n * 2);
            history.push(Batch { modseq: ModSeq(n.into()), time: 0, uids, parts: vec![Part::Few(vec![row])] }, 300);
        }
        assert_eq!(history.ranges, 1000);
        // Past its time it is, with the next expunge.
        history.prune(1);
        history.push(Batch { modseq: ModSeq(1001), time: 1, uids: UidSet::range(3000, 3000), parts: Vec::new() }, 300);
        assert!(history.ranges <= 300);
    }
}
