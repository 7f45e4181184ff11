//! Which messages are foreign, and what the log knows of them: a table of the whole account, by id, in blocks that states
//! share.
//!
//! Invariants: ids rise strictly from block to block and inside each; no block is empty; between transactions every message here
//! has an entry. While the log is replayed that is not so: compaction may have dropped an entry that kept a message until
//! another one, which comes later, got it. So messages go only with [`ForeignTable::purge`].

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use model::EmailId;
use platform::Mapped;

use super::packed::{Packed, Packer, Place, Spec, layout};
use crate::ForeignMessage;

/// Messages in a block at most.
pub(crate) const FOREIGN_ROWS_MAX: usize = 1024;

/// The columns of a block, in their order on disk.
pub(crate) const FOREIGN_COLUMNS: [Spec; 5] = [
    Spec { name: "email_id", bytes: 8, rises: true },
    Spec { name: "octets", bytes: 4, rises: false },
    Spec { name: "header_octets", bytes: 4, rises: false },
    Spec { name: "digest", bytes: 8, rises: false },
    Spec { name: "entries", bytes: 4, rises: false },
];

/// One message, as small as it goes: there may be hundreds of thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    digest: u64,
    /// Distance of its id from the block's first.
    id: u32,
    octets: u32,
    header_octets: u32,
    /// Entries that have it.
    entries: u32,
}

#[derive(Clone, Debug)]
enum Rows {
    Owned(Vec<Stored>),
    /// In a checkpoint that was verified when it was opened.
    Mapped {
        bytes: Mapped,
        places: [Place; 5],
        rows: usize,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    first: u64,
    rows: Rows,
}

impl Block {
    /// The block whose columns begin at `at` of a verified file.
    pub(crate) fn mapped(bytes: Mapped, at: usize, rows: usize) -> Option<Self> {
        let (places, _) = layout(&bytes, at, rows, &FOREIGN_COLUMNS)?;
        if rows == 0 || rows > FOREIGN_ROWS_MAX {
            return None;
        }
        let first = Packed::<u64>::at(&bytes, places[0], rows, true).get(0);
        Some(Block { first, rows: Rows::Mapped { bytes, places, rows } })
    }

    pub(crate) fn len(&self) -> usize {
        match &self.rows {
            Rows::Owned(rows) => rows.len(),
            Rows::Mapped { rows, .. } => *rows,
        }
    }

    fn id(&self, row: usize) -> u64 {
        match &self.rows {
            Rows::Owned(rows) => self.first.wrapping_add(u64::from(rows[row].id)),
            Rows::Mapped { bytes, places, rows } => Packed::at(bytes, places[0], *rows, true).get(row),
        }
    }

    fn stored(&self, row: usize) -> Stored {
        match &self.rows {
            Rows::Owned(rows) => rows[row],
            Rows::Mapped { bytes, places: [id, octets, header_octets, digest, entries], rows } => {
                let number = |place: &Place| Packed::<u32>::at(bytes, *place, *rows, false).get(row);
                let id = Packed::<u64>::at(bytes, *id, *rows, true).get(row).wrapping_sub(self.first);
                Stored {
                    digest: Packed::at(bytes, *digest, *rows, false).get(row),
                    id: id as u32,
                    octets: number(octets),
                    header_octets: number(header_octets),
                    entries: number(entries),
                }
            }
        }
    }

    fn message(&self, row: usize) -> ForeignMessage {
        let Stored { octets, header_octets, digest, .. } = self.stored(row);
        ForeignMessage { octets, header_octets, digest }
    }

    /// The row of a message.
    fn find(&self, id: u64) -> Option<usize> {
        let distance = usize::try_from(id.checked_sub(self.first)?).ok()?;
        let rows = self.len();
        // Most often none is missing in between; it is never behind that place.
        if distance < rows && self.id(distance) == id {
            return Some(distance);
        }
        let (mut from, mut to) = (0, rows.min(distance));
        while from < to {
            let middle = from.midpoint(to);
            if self.id(middle) < id { from = middle + 1 } else { to = middle }
        }
        (from < rows && self.id(from) == id).then_some(from)
    }

    /// How many rows have ids below this one.
    fn end_before(&self, id: u64) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.id(middle) < id { from = middle + 1 } else { to = middle }
        }
        from
    }

    /// Cuts the rows from `at` on off, which must be some, and gives them as a block.
    fn split(&mut self, at: usize) -> Block {
        let first = self.id(at);
        let shift = (first - self.first) as u32;
        let rows = self.owned_mut().split_off(at).into_iter();
        Block { first, rows: Rows::Owned(rows.map(|row| Stored { id: row.id - shift, ..row }).collect()) }
    }

    fn owned_mut(&mut self) -> &mut Vec<Stored> {
        if let Rows::Mapped { rows, .. } = self.rows {
            self.rows = Rows::Owned((0..rows).map(|row| self.stored(row)).collect());
        }
        match &mut self.rows {
            Rows::Owned(rows) => rows,
            Rows::Mapped { .. } => unreachable!("replaced by a copy above"),
        }
    }

    /// Appends the rows of the next block, when its ids are near enough.
    fn append(&mut self, next: &Block) {
        let shift = (next.first - self.first) as u32;
        let rows = self.owned_mut();
        rows.extend((0..next.len()).map(|row| next.stored(row)).map(|row| Stored { id: row.id + shift, ..row }));
    }

    /// Writes the columns as they are on disk.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let [id, octets, header_octets, digest, entries] = &FOREIGN_COLUMNS;
        let rows: Vec<Stored> = (0..self.len()).map(|row| self.stored(row)).collect();
        let mut packer = Packer::default();
        packer.column(id, rows.iter().map(|row| self.first.wrapping_add(u64::from(row.id))));
        packer.column(octets, rows.iter().map(|row| row.octets));
        packer.column(header_octets, rows.iter().map(|row| row.header_octets));
        packer.column(digest, rows.iter().map(|row| row.digest));
        packer.column(entries, rows.iter().map(|row| row.entries));
        packer.finish(out);
    }
}

/// The foreign messages of an account. Cheap to clone; a clone never changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForeignTable {
    blocks: Arc<Vec<Arc<Block>>>,
    /// Messages that were without an entry at some time since the last purge.
    unused: Vec<EmailId>,
}

impl ForeignTable {
    /// Takes over what a checkpoint says; `None` when it cannot be.
    pub(crate) fn load(blocks: Vec<Block>) -> Option<Self> {
        let last = |block: &Block| block.id(block.len() - 1);
        let is_rising = blocks.windows(2).all(|pair| matches!(pair, [a, b] if last(a) < b.first));
        is_rising
            .then(|| ForeignTable { blocks: Arc::new(blocks.into_iter().map(Arc::new).collect()), unused: Vec::new() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn blocks(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.blocks.iter().map(|block| &**block)
    }

    fn place(&self, id: EmailId) -> Option<(usize, usize)> {
        // Mostly it has just come.
        let is_in_last = self.blocks.last().is_some_and(|last| last.first <= id.0);
        let block = match is_in_last {
            true => self.blocks.len() - 1,
            false => self.blocks.partition_point(|block| block.first <= id.0).checked_sub(1)?,
        };
        self.blocks.get(block)?.find(id.0).map(|row| (block, row))
    }

    /// Whether a message is foreign.
    pub(crate) fn has(&self, id: EmailId) -> bool {
        self.place(id).is_some()
    }

    pub(crate) fn find(&self, id: EmailId) -> Option<ForeignMessage> {
        let (block, row) = self.place(id)?;
        self.blocks.get(block).map(|block| block.message(row))
    }

    /// How many entries have a message.
    pub(crate) fn entries(&self, id: EmailId) -> u32 {
        let place = self.place(id);
        place.and_then(|(block, row)| Some(self.blocks.get(block)?.stored(row).entries)).unwrap_or(0)
    }

    /// The messages that have an entry, with the number of their entries.
    pub(crate) fn used(&self) -> impl Iterator<Item = (EmailId, ForeignMessage, u32)> {
        let rows = self.blocks.iter().flat_map(|block| (0..block.len()).map(move |row| (block, row)));
        let all = rows.map(|(block, row)| (EmailId(block.id(row)), block.message(row), block.stored(row).entries));
        all.filter(|(_, _, entries)| *entries > 0)
    }

    /// Those with ids of `first..end`.
    pub(crate) fn range(&self, first: u64, end: u64) -> impl Iterator<Item = (EmailId, ForeignMessage)> {
        let from = self.blocks.partition_point(|block| block.id(block.len() - 1) < first);
        let blocks = self.blocks.iter().skip(from).take_while(move |block| block.first < end);
        let rows = blocks.flat_map(|block| (0..block.len()).map(move |row| (block, row)));
        let all = rows.map(|(block, row)| (EmailId(block.id(row)), block.message(row)));
        all.filter(move |(id, _)| (first..end).contains(&id.0))
    }

    /// How many there are with ids of `first..end`.
    pub(crate) fn count(&self, first: u64, end: u64) -> u64 {
        let from = self.blocks.partition_point(|block| block.id(block.len() - 1) < first);
        let blocks = self.blocks.iter().skip(from).take_while(|block| block.first < end);
        let count = |block: &Arc<Block>| {
            let is_inside = block.first >= first && block.id(block.len() - 1) < end;
            if is_inside {
                block.len()
            } else {
                (0..block.len()).filter(|row| (first..end).contains(&block.id(*row))).count()
            }
        };
        blocks.map(|block| count(block) as u64).sum()
    }

    /// Adds messages that no entry has yet. Those whose ids do not rise are here already, or were.
    pub(crate) fn add(&mut self, messages: &[(EmailId, ForeignMessage)]) {
        let blocks = Arc::make_mut(&mut self.blocks);
        for &(id, ForeignMessage { octets, header_octets, digest }) in messages {
            if blocks.last().is_some_and(|block| block.id(block.len() - 1) >= id.0) {
                continue;
            }
            self.unused.push(id);
            let row = |distance| Stored { digest, id: distance, octets, header_octets, entries: 0 };
            let room = |block: &&mut Arc<Block>| block.len() < FOREIGN_ROWS_MAX;
            let last = blocks.last_mut().filter(room);
            match last.and_then(|block| u32::try_from(id.0 - block.first).ok().map(|distance| (block, distance))) {
                Some((block, distance)) => Arc::make_mut(block).owned_mut().push(row(distance)),
                None => blocks.push(Arc::new(Block { first: id.0, rows: Rows::Owned(vec![row(0)]) })),
            }
        }
    }

    /// Adds messages that no entry has yet, wherever their ids belong. Of one that is here already this is the newest that is known.
    pub(crate) fn put(&mut self, messages: &[(EmailId, ForeignMessage)]) {
        for &(id, ForeignMessage { octets, header_octets, digest }) in messages {
            self.unused.push(id);
            if self.has(id) {
                self.edit(&[id], |_, row| *row = Stored { digest, id: row.id, octets, header_octets, entries: 0 });
                continue;
            }
            let row = |distance| Stored { digest, id: distance, octets, header_octets, entries: 0 };
            let blocks = Arc::make_mut(&mut self.blocks);
            let after = blocks.partition_point(|block| block.first <= id.0);
            let alone = || Arc::new(Block { first: id.0, rows: Rows::Owned(vec![row(0)]) });
            let Some(before) = after.checked_sub(1) else {
                blocks.insert(0, alone());
                continue;
            };
            let Some(block) = blocks.get_mut(before).map(Arc::make_mut) else { continue };
            let at = block.end_before(id.0);
            let distance = u32::try_from(id.0 - block.first).ok();
            match distance.filter(|_| block.len() < FOREIGN_ROWS_MAX) {
                Some(distance) => block.owned_mut().insert(at, row(distance)),
                None if at == block.len() => blocks.insert(after, alone()),
                // Full: what comes after this message becomes a block of its own.
                None => {
                    let rest = Arc::new(block.split(at));
                    let place = if at == 0 { before..after } else { after..after };
                    blocks.splice(place, [alone(), rest]);
                }
            }
        }
    }

    /// Takes messages out, of ids that rise: their bytes are not elsewhere any more.
    pub(crate) fn remove(&mut self, ids: &[EmailId]) {
        let touched: BTreeSet<usize> = ids.iter().filter_map(|id| self.place(*id)).map(|(block, _)| block).collect();
        self.retain(&touched, |id, _| ids.binary_search(&EmailId(id)).is_err());
    }

    fn edit(&mut self, ids: &[EmailId], mut change: impl FnMut(EmailId, &mut Stored)) {
        for id in ids {
            if let Some((block, row)) = self.place(*id)
                && let Some(block) = Arc::make_mut(&mut self.blocks).get_mut(block)
                && let Some(row) = Arc::make_mut(block).owned_mut().get_mut(row)
            {
                change(*id, row);
            }
        }
    }

    /// New entries have these messages.
    pub(crate) fn hold(&mut self, ids: &[EmailId]) {
        self.edit(ids, |_, row| row.entries = row.entries.saturating_add(1));
    }

    /// Entries that had these messages are gone.
    pub(crate) fn release(&mut self, ids: &[EmailId]) {
        let mut unused = mem::take(&mut self.unused);
        self.edit(ids, |id, row| {
            row.entries = row.entries.saturating_sub(1);
            unused.extend((row.entries == 0).then_some(id));
        });
        self.unused = unused;
    }

    /// Forgets the messages that no entry has: at the end of a transaction, or of a replay of the log.
    pub(crate) fn purge(&mut self) {
        let unused = mem::take(&mut self.unused);
        let is_unused = |(block, row): &(usize, usize)| {
            self.blocks.get(*block).is_some_and(|block| block.stored(*row).entries == 0)
        };
        let places = unused.into_iter().filter_map(|id| self.place(id)).filter(is_unused);
        let touched: BTreeSet<usize> = places.map(|(block, _)| block).collect();
        self.retain(&touched, |_, row| row.entries > 0);
    }

    /// Keeps of the rows of these blocks only those that `is_kept` says, by id.
    fn retain(&mut self, touched: &BTreeSet<usize>, is_kept: impl Fn(u64, &Stored) -> bool) {
        if touched.is_empty() {
            return;
        }
        let blocks = Arc::make_mut(&mut self.blocks);
        let mut kept: Vec<Arc<Block>> = Vec::with_capacity(blocks.len());
        for (number, mut block) in mem::take(blocks).into_iter().enumerate() {
            if touched.contains(&number) {
                // A block without its first message keeps counting from it.
                let first = block.first;
                let block = Arc::make_mut(&mut block);
                block.owned_mut().retain(|row| is_kept(first.wrapping_add(u64::from(row.id)), row));
                if block.len() == 0 {
                    continue;
                }
            }
            match kept.last_mut().filter(|last| fits(last, &block)) {
                Some(last) => Arc::make_mut(last).append(&block),
                None => kept.push(block),
            }
        }
        *blocks = kept;
    }
}

/// Whether two neighbours fit into half a block, and their ids into one.
fn fits(a: &Block, b: &Block) -> bool {
    a.len() + b.len() <= FOREIGN_ROWS_MAX / 2 && b.id(b.len() - 1) - a.first <= u64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use platform::random::Prng;

    use super::*;

    fn message(digest: u64) -> ForeignMessage {
        ForeignMessage { octets: 7, header_octets: 3, digest }
    }

    #[test]
    fn messages_come_and_go_anywhere() {
        let mut prng = Prng::new(1);
        let mut table = ForeignTable::default();
        let mut model: BTreeMap<EmailId, ForeignMessage> = BTreeMap::new();
        for round in 0..60u64 {
            // Near one another, far from one another, and as they come after an import.
            let base = [1 << 20, 1 << 40, round * 3000][prng.index(3)];
            let spread = [3_000, 1 << 34][prng.index(2)];
            let ids: BTreeSet<EmailId> =
                (0..prng.between(1, 3000)).map(|_| EmailId(base + prng.below(spread))).collect();
            if prng.one_in(3) {
                let every = prng.between(1, 3);
                let gone: Vec<EmailId> = model.keys().copied().filter(|_| prng.one_in(every)).collect();
                table.remove(&gone);
                model.retain(|id, _| gone.binary_search(id).is_err());
            }
            let given: Vec<(EmailId, ForeignMessage)> = ids.iter().map(|id| (*id, message(prng.u64()))).collect();
            table.put(&given);
            table.hold(&ids.into_iter().collect::<Vec<_>>());
            model.extend(given);
            table.purge();
            assert!(table.range(0, u64::MAX).eq(model.iter().map(|(id, message)| (*id, *message))));
            assert!(table.used().all(|(id, message, entries)| entries == 1 && table.find(id) == Some(message)));
            let blocks: Vec<&Block> = table.blocks().collect();
            assert!(blocks.iter().all(|block| (1..=FOREIGN_ROWS_MAX).contains(&block.len())));
            assert!(blocks.windows(2).all(|pair| pair[0].id(pair[0].len() - 1) < pair[1].first));
            assert!(!table.has(EmailId(prng.u64() | 1 << 50)));
        }
    }
}
