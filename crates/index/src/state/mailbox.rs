//! One mailbox as it was at one modseq: what a session holds as its view. Immutable behind an `Arc`.
//!
//! Invariants: the slots' summaries and `before` agree with their chunks, the totals with the slots; no slot is empty;
//! every UID is below `uidnext`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use model::{
    EmailId, Flags, KeywordTable, MailboxId, MailboxName, ModSeq, NumSet, SeqNum, SpecialUse, SystemFlag, Uid, UidSet,
    UidValidity,
};

use super::chunk::{Chunk, Slot};
use super::columns::Row;
use super::history::History;
use super::{State, Usage};
use crate::ForeignMessage;

/// A mailbox at one moment: a view when somebody keeps it.
#[derive(Clone, Debug)]
pub struct Mailbox {
    pub(crate) id: MailboxId,
    pub(crate) name: MailboxName,
    pub(crate) uidvalidity: UidValidity,
    /// One more than the largest UID ever given; 2³² when they are used up.
    pub(crate) uidnext: u64,
    pub(crate) highest_modseq: ModSeq,
    pub(crate) created: i64,
    /// Bit n: the special use with code n.
    pub(crate) special_use: u16,
    pub(crate) keywords: Arc<KeywordTable>,
    pub(crate) recent_floor: u32,
    pub(crate) annotations: Arc<BTreeMap<String, Vec<u8>>>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) exists: u32,
    pub(crate) unseen: u32,
    pub(crate) deleted: u32,
    pub(crate) octets: u64,
    pub(crate) history: History,
}

/// An expunged entry that can still be brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpungedRow {
    /// The entry as it was.
    pub row: Row,
    /// When it was expunged, seconds since 1970 UTC.
    pub expunged_at: i64,
}

impl Mailbox {
    /// Its identity: survives a rename, is never reused.
    pub fn id(&self) -> MailboxId {
        self.id
    }

    /// Its name.
    pub fn name(&self) -> &MailboxName {
        &self.name
    }

    /// Its UIDVALIDITY (RFC 9051 §2.3.1.1): greater than that of any earlier mailbox of the account.
    pub fn uidvalidity(&self) -> UidValidity {
        self.uidvalidity
    }

    /// The UID that the next entry will get; `None` when all are used.
    pub fn uidnext(&self) -> Option<Uid> {
        u32::try_from(self.uidnext).ok().and_then(Uid::new)
    }

    /// HIGHESTMODSEQ (RFC 7162 §3.1.2.1): of the last change of any entry, expunges included.
    pub fn highest_modseq(&self) -> ModSeq {
        self.highest_modseq
    }

    /// When it was created, seconds since 1970 UTC.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// What it is for (RFC 6154).
    pub fn special_uses(&self) -> impl Iterator<Item = SpecialUse> + use<> {
        let bits = self.special_use;
        SpecialUse::EVERY.into_iter().filter(move |attribute| bits & (1 << attribute.code()) != 0)
    }

    /// The same as bits: bit n is the special use with code n.
    pub fn special_use_bits(&self) -> u16 {
        self.special_use
    }

    /// One more than the largest UID ever given; 2³² when they are used up.
    pub fn uidnext_number(&self) -> u64 {
        self.uidnext
    }

    /// Expunges up to this modseq are forgotten.
    pub fn vanished_floor(&self) -> ModSeq {
        self.history.floor
    }

    /// The keywords of its entries.
    pub fn keywords(&self) -> &KeywordTable {
        &self.keywords
    }

    /// Entries with this UID or a larger one are \Recent to the next session that selects it (RFC 3501 §2.3.2).
    pub fn recent_floor(&self) -> u32 {
        self.recent_floor
    }

    /// The value kept under `key`, if any.
    pub fn annotation(&self, key: &str) -> Option<&[u8]> {
        self.annotations.get(key).map(Vec::as_slice)
    }

    /// All values by their keys.
    pub fn annotations(&self) -> &Arc<BTreeMap<String, Vec<u8>>> {
        &self.annotations
    }

    /// Number of entries.
    pub fn exists(&self) -> u32 {
        self.exists
    }

    /// Entries without \Seen.
    pub fn unseen(&self) -> u32 {
        self.unseen
    }

    /// Entries with \Deleted.
    pub fn deleted(&self) -> u32 {
        self.deleted
    }

    /// The sum of the entries' sizes (RFC 8438 STATUS=SIZE), octets.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// The sum of the sizes of the entries with \Deleted (RFC 9208 §4.1.4 DELETED-STORAGE), octets. Reads the chunks that have one.
    pub fn deleted_octets(&self) -> u64 {
        let slots = self.slots.iter().filter(|slot| slot.summary.deleted > 0);
        let rows = slots.flat_map(|slot| slot.chunk.rows()).filter(|row| row.flags.has(SystemFlag::Deleted));
        rows.map(|row| u64::from(row.size)).sum()
    }

    /// What its entries count for; nothing in a hidden mailbox.
    pub(crate) fn usage(&self) -> Usage {
        match self.name.is_hidden() {
            true => Usage::default(),
            false => Usage { messages: self.exists.into(), octets: self.octets },
        }
    }

    /// The same mailbox without any entry: what is left of a view of a mailbox that was deleted.
    pub fn emptied(&self) -> Mailbox {
        let mut mailbox = Mailbox { slots: Vec::new(), ..self.clone() };
        mailbox.recount();
        mailbox
    }

    /// The first entry without \Seen. Reads one chunk at most.
    pub fn first_unseen(&self) -> Option<(SeqNum, Row)> {
        let slot = self.slots.iter().find(|slot| slot.summary.unseen > 0)?;
        let index = (0..slot.chunk.len()).find(|index| !slot.chunk.row(*index).flags.has(SystemFlag::Seen))?;
        self.row(slot.before + index as u32 + 1).map(|row| (seq_num(slot.before + index as u32), row))
    }

    /// The slot of the entry at position `at` (from 0), and its index there.
    fn slot_at(&self, at: u32) -> Option<(&Slot, usize)> {
        let slot = self.slots.partition_point(|slot| slot.before <= at).checked_sub(1)?;
        let slot = self.slots.get(slot)?;
        let index = at - slot.before;
        (index < slot.summary.rows).then_some((slot, index as usize))
    }

    /// Where `uid` is or would be: the slot's number, and the row's index in it.
    pub(crate) fn find(&self, uid: u32) -> (usize, usize) {
        let slot = self.slots.partition_point(|slot| slot.summary.uid_last < uid);
        (slot, self.slots.get(slot).map_or(0, |slot| slot.lower_bound(0, uid)))
    }

    /// The entry with this sequence number (from 1).
    pub fn row(&self, seq: u32) -> Option<Row> {
        let (slot, index) = self.slot_at(seq.checked_sub(1)?)?;
        Some(slot.chunk.row(index))
    }

    /// The UID of a sequence number (from 1).
    pub fn uid_of(&self, seq: u32) -> Option<Uid> {
        let (slot, index) = self.slot_at(seq.checked_sub(1)?)?;
        Uid::new(slot.uid(index))
    }

    /// The entry with this UID, and its sequence number.
    pub fn row_of(&self, uid: Uid) -> Option<(SeqNum, Row)> {
        let (slot, index) = self.find(uid.get());
        let slot = self.slots.get(slot)?;
        (slot.uid(index) == uid.get()).then(|| (seq_num(slot.before + index as u32), slot.chunk.row(index)))
    }

    /// The sequence number of a UID.
    pub fn seq_of(&self, uid: Uid) -> Option<SeqNum> {
        let (slot, index) = self.find(uid.get());
        let slot = self.slots.get(slot)?;
        (slot.uid(index) == uid.get()).then(|| seq_num(slot.before + index as u32))
    }

    /// Entries with a UID below `uid`: the position (from 0) of `uid`, if it is there.
    pub fn count_below(&self, uid: u32) -> u32 {
        let (slot, index) = self.find(uid);
        self.slots.get(slot).map_or(self.exists, |slot| slot.before + index as u32)
    }

    /// The entries at these positions (from 0: sequence number minus one), with their sequence numbers. No allocation a row.
    pub fn rows(&self, positions: Range<u32>) -> Rows<'_> {
        let at = positions.start.min(self.exists);
        let end = positions.end.min(self.exists);
        let slot = self.slots.partition_point(|slot| slot.before <= at).saturating_sub(1);
        Rows { mailbox: self, slot, at, end }
    }

    /// All entries.
    pub fn all_rows(&self) -> Rows<'_> {
        self.rows(0..self.exists)
    }

    /// The messages of all entries, in the order of the UIDs: a tenth of the time of [`Mailbox::all_rows`].
    pub fn email_ids(&self) -> impl Iterator<Item = EmailId> + '_ {
        self.slots.iter().flat_map(|slot| slot.chunk.email_ids())
    }

    /// Where the entries of `uids` lie: the slots' numbers with rows in them, rising, none empty. Costs what the set costs, and
    /// little of what lies between its ranges.
    pub(crate) fn runs<'a>(&'a self, uids: &'a UidSet) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let mut ranges = uids.ranges().iter();
        let mut wanted = ranges.next();
        let (mut at, mut row) = (0, 0);
        std::iter::from_fn(move || {
            loop {
                let &(first, last) = wanted?;
                if self.slots.get(at)?.summary.uid_last < first {
                    at += self.slots.get(at..)?.partition_point(|slot| slot.summary.uid_last < first);
                    row = 0;
                }
                let (slot, number) = (self.slots.get(at)?, at);
                let from = slot.lower_bound(row, first);
                let to = if last >= slot.summary.uid_last {
                    if last == slot.summary.uid_last {
                        wanted = ranges.next();
                    }
                    (at, row) = (at + 1, 0);
                    slot.chunk.len()
                } else {
                    wanted = ranges.next();
                    // Most often none is missing in the range.
                    let whole = from + (last - first) as usize;
                    let is_whole = whole < slot.chunk.len() && slot.uid(whole) == last;
                    row = if is_whole { whole + 1 } else { slot.lower_bound(from, last + 1) };
                    row
                };
                if from < to {
                    return Some((number, from..to));
                }
            }
        })
    }

    /// Like [`Mailbox::runs`], for sequence numbers; those beyond the last entry are left out.
    fn seq_runs<'a>(
        &'a self,
        seqs: impl Iterator<Item = (u32, u32)> + 'a,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let mut at = 0;
        seqs.flat_map(move |(first, last)| {
            let (start, end) = (first.saturating_sub(1), last.min(self.exists));
            // Most often where the range before was.
            let is_there = |slot: &Slot| (slot.before..slot.before + slot.summary.rows).contains(&start);
            if !self.slots.get(at).is_some_and(is_there) {
                at = self.slots.partition_point(|slot| slot.before <= start).saturating_sub(1);
            }
            let slots = (at..).map_while(move |number| self.slots.get(number).map(|slot| (number, slot)));
            slots.take_while(move |(_, slot)| slot.before < end).map(move |(number, slot)| {
                let row = |position: u32| position.saturating_sub(slot.before).min(slot.summary.rows) as usize;
                (number, row(start)..row(end))
            })
        })
    }

    /// Sequence number, UID, flags and modseq of the entries at these ranges of sequence numbers. Reads nothing else of them.
    pub fn flags_at<'a>(
        &'a self,
        seqs: impl Iterator<Item = (u32, u32)> + 'a,
    ) -> impl Iterator<Item = (SeqNum, Uid, Flags, ModSeq)> + 'a {
        self.seq_runs(seqs).flat_map(|(slot, rows)| {
            let slot = &self.slots[slot];
            let seqs = (slot.before + rows.start as u32..).map(seq_num);
            let found = seqs.zip(slot.flags(rows));
            found.filter_map(|(seq, (uid, flags, modseq))| Some((seq, Uid::new(uid)?, flags, modseq)))
        })
    }

    fn uids_at(&self, runs: impl Iterator<Item = (usize, Range<usize>)>) -> UidSet {
        let mut uids = UidSet::new();
        for (slot, rows) in runs {
            self.slots[slot].collect_uids(rows, &mut uids);
        }
        uids
    }

    /// The entries with a UID of `uids`, rising.
    pub fn rows_of<'a>(&'a self, uids: &'a UidSet) -> impl Iterator<Item = (SeqNum, Row)> + 'a {
        self.runs(uids).flat_map(|(slot, rows)| {
            let slot = &self.slots[slot];
            rows.map(|row| (seq_num(slot.before + row as u32), slot.chunk.row(row)))
        })
    }

    /// UID and flags of the entries of `uids`, rising.
    pub(crate) fn flags_of<'a>(&'a self, uids: &'a UidSet) -> impl Iterator<Item = (u32, Flags)> + 'a {
        self.runs(uids).flat_map(|(slot, rows)| self.slots[slot].flags(rows).map(|(uid, flags, _)| (uid, flags)))
    }

    /// The UIDs of a set of sequence numbers; numbers beyond the last entry are left out.
    pub fn uids_of(&self, seqs: &NumSet) -> UidSet {
        self.uids_at(self.seq_runs(seqs.ranges().iter().copied()))
    }

    /// The sequence numbers of those UIDs that exist here.
    pub fn seqs_of(&self, uids: &UidSet) -> NumSet {
        let mut seqs = NumSet::new();
        for (slot, rows) in self.runs(uids) {
            let before = self.slots[slot].before;
            seqs.insert_range(before + rows.start as u32 + 1, before + rows.end as u32);
        }
        seqs
    }

    /// The UIDs of `uids` that exist here, and their sequence numbers.
    pub(crate) fn existing_with_seqs(&self, uids: &UidSet) -> (UidSet, NumSet) {
        let (mut existing, mut seqs) = (UidSet::new(), NumSet::new());
        for (slot, rows) in self.runs(uids) {
            let slot = &self.slots[slot];
            seqs.insert_range(slot.before + rows.start as u32 + 1, slot.before + rows.end as u32);
            slot.collect_uids(rows, &mut existing);
        }
        (existing, seqs)
    }

    /// The UIDs of `uids` that exist here.
    pub fn existing(&self, uids: &UidSet) -> UidSet {
        self.uids_at(self.runs(uids))
    }

    /// The UIDs of all entries.
    pub(crate) fn all_uids(&self) -> UidSet {
        self.uids_at(self.slots.iter().enumerate().map(|(number, slot)| (number, 0..slot.chunk.len())))
    }

    /// The UIDs of the entries with \Deleted. Chunks without one are not read.
    pub fn deleted_uids(&self) -> UidSet {
        let slots = self.slots.iter().filter(|slot| slot.summary.deleted > 0);
        slots.flat_map(|slot| slot.chunk.deleted_uids()).collect()
    }

    /// The entries whose modseq is greater than `since` (RFC 7162 §3.1.4.1 CHANGEDSINCE), rising by UID. Chunks without
    /// such an entry are not read.
    pub fn changed_since(&self, since: ModSeq) -> impl Iterator<Item = (SeqNum, Row)> + '_ {
        self.slots.iter().filter(move |slot| slot.summary.modseq_last > since.0).flat_map(move |slot| {
            let changed = slot.chunk.changed_since(since);
            changed.map(|row| (seq_num(slot.before + row as u32), slot.chunk.row(row)))
        })
    }

    /// The UIDs of [`Mailbox::changed_since`].
    pub(crate) fn uids_changed_since(&self, since: ModSeq) -> impl Iterator<Item = u32> {
        let slots = self.slots.iter().filter(move |slot| slot.summary.modseq_last > since.0);
        slots.flat_map(move |slot| slot.chunk.changed_since(since).map(|row| slot.uid(row)))
    }

    /// The UIDs expunged after `since`: the answer to VANISHED (EARLIER). When that is no longer known exactly, every UID
    /// below UIDNEXT that is not here, which RFC 7162 §3.2.5.2 allows.
    pub fn vanished_since(&self, since: ModSeq) -> UidSet {
        self.history.vanished_since(since).unwrap_or_else(|| {
            let used = UidSet::range(1, u32::try_from(self.uidnext - 1).unwrap_or(u32::MAX));
            if self.uidnext > 1 { used.difference(&self.all_uids()) } else { UidSet::new() }
        })
    }

    /// The expunged entries that can be brought back: those expunged at `since` (seconds since 1970) or later, in the
    /// order of their expunging.
    pub fn expunged_since(&self, since: i64) -> impl Iterator<Item = ExpungedRow> + '_ {
        let batches = self.history.batches().filter(move |batch| batch.time >= since);
        batches.flat_map(|batch| batch.rows().map(|row| ExpungedRow { row, expunged_at: batch.time }))
    }

    /// The entries of messages whose bytes lie elsewhere, by UID, with what is known of these. `state`: the one that has this
    /// mailbox.
    pub fn foreign<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (Row, ForeignMessage)> + 'a {
        let rows = self.all_rows().take_while(|_| !state.foreign.is_empty());
        rows.filter_map(|(_, row)| state.foreign.find(row.email_id).map(|message| (row, message)))
    }

    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.slots.iter().map(|slot| &*slot.chunk)
    }
}

/// The sequence number of a position (from 0).
pub(crate) fn seq_num(position: u32) -> SeqNum {
    SeqNum::new(position + 1).expect("a position is below the 2³²-1 entries that a mailbox can have")
}

/// Entries with their sequence numbers; see [`Mailbox::rows`].
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    mailbox: &'a Mailbox,
    slot: usize,
    at: u32,
    end: u32,
}

impl Iterator for Rows<'_> {
    type Item = (SeqNum, Row);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let mut slot = self.mailbox.slots.get(self.slot)?;
        if self.at - slot.before >= slot.summary.rows {
            self.slot += 1;
            slot = self.mailbox.slots.get(self.slot)?;
        }
        let row = slot.chunk.row((self.at - slot.before) as usize);
        self.at += 1;
        Some((seq_num(self.at - 1), row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.at) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Rows<'_> {}
