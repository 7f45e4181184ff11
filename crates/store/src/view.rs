//! A stable reading of a mailbox: sequence numbers, flags and dates as its holder knows them.
//!
//! A view is a snapshot of the mailbox, which costs nothing to keep, and its *ghosts*: entries that were expunged meanwhile but that
//! the holder has not been told about (RFC 9051 §7.5.1 forbids it at many moments). The sequence number of an entry is its rank
//! among both.
//!
//! Invariants: between two calls of [`View::advance`] the same sequence number means the same entry with the same flags; ghosts are
//! sorted by UID, and none of them is in the snapshot.

use std::ops::RangeInclusive;
use std::sync::Arc;

use index::{Mailbox, Row};
use model::{
    DateTime, EmailId, Flags, KeywordTable, MailboxId, ModSeq, NumSet, SeqNum, SystemFlag, Uid, UidSet, UidValidity,
};

use crate::Changes;
use crate::account::Inner;

/// A message's place in the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position in the view.
    pub seq: SeqNum,
    /// Its UID.
    pub uid: Uid,
    /// Its flags; keywords by [`View::keywords`].
    pub flags: Flags,
    /// When it last changed.
    pub modseq: ModSeq,
    /// RFC 9051 §2.3.3.
    pub internal_date: DateTime,
    /// RFC 8514: when it came to this mailbox, Unix seconds.
    pub save_date: i64,
    /// RFC822.SIZE, octets.
    pub size: u32,
    /// The message.
    pub email_id: EmailId,
}

impl Entry {
    fn new(seq: SeqNum, row: &Row) -> Self {
        Entry {
            seq,
            uid: row.uid,
            flags: row.flags,
            modseq: row.modseq,
            internal_date: row.internal_date,
            save_date: row.save_date,
            size: row.size,
            email_id: row.email_id,
        }
    }
}

/// An entry's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFlags {
    /// Its position in the view.
    pub seq: SeqNum,
    /// Its UID.
    pub uid: Uid,
    /// Its flags; keywords by [`View::keywords`].
    pub flags: Flags,
    /// When it last changed.
    pub modseq: ModSeq,
}

/// A stable reading of a mailbox; cheap to clone.
#[derive(Clone)]
pub struct View {
    account: Arc<Inner>,
    mailbox: Arc<Mailbox>,
    ghosts: Arc<Vec<Row>>,
    /// Entries from here on are \Recent for this view.
    recent_from: Option<Uid>,
    /// Whether the view claims the \Recent entries that it learns of.
    read_write: bool,
    /// The holder was told that the mailbox is gone.
    gone: bool,
}

impl View {
    /// The mailbox as `mailbox` has it, without ghosts.
    pub(crate) fn new(account: Arc<Inner>, mailbox: Arc<Mailbox>, recent_from: Option<Uid>, read_write: bool) -> Self {
        View { account, mailbox, ghosts: Arc::default(), recent_from, read_write, gone: false }
    }

    /// The mailbox.
    pub fn mailbox(&self) -> MailboxId {
        self.mailbox.id()
    }

    /// How many entries there are: the highest sequence number.
    pub fn exists(&self) -> u32 {
        self.mailbox.exists() + self.ghosts.len() as u32
    }

    /// See [`crate::Status`].
    pub fn uid_validity(&self) -> UidValidity {
        self.mailbox.uidvalidity()
    }

    /// See [`crate::Status`].
    pub fn uid_next(&self) -> Option<Uid> {
        self.mailbox.uidnext()
    }

    /// The highest modseq that this view has seen.
    pub fn highest_modseq(&self) -> ModSeq {
        self.mailbox.highest_modseq()
    }

    /// What the keyword bits stand for.
    pub fn keywords(&self) -> &KeywordTable {
        self.mailbox.keywords()
    }

    /// Entries without \Seen, and the first of them.
    pub fn unseen(&self) -> (u32, Option<SeqNum>) {
        let is_unseen = |row: &&Row| !row.flags.has(SystemFlag::Seen);
        let count = self.mailbox.unseen() + self.ghosts.iter().filter(is_unseen).count() as u32;
        let ghost = self.ghosts.iter().find(is_unseen).map(|row| row.uid);
        let first = match (self.mailbox.first_unseen().map(|(_, row)| row.uid), ghost) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        (count, first.and_then(|uid| self.seq_of(uid)))
    }

    /// The UIDs that are \Recent for this view (RFC 3501 §2.3.2): those from here on.
    pub fn recent_from(&self) -> Option<Uid> {
        self.recent_from
    }

    /// The entry at a sequence number.
    pub fn entry(&self, seq: SeqNum) -> Option<Entry> {
        self.rows(seq.get()..=seq.get()).next()
    }

    /// The entry with a UID.
    pub fn entry_of(&self, uid: Uid) -> Option<Entry> {
        let (position, ghost) = self.ghost_rank(uid);
        match ghost {
            Some(row) => Some(Entry::new(seq_at(self.mailbox.count_below(uid.get()) + position)?, row)),
            None => {
                let (seq, row) = self.mailbox.row_of(uid)?;
                Some(Entry::new(seq_at(seq.get() - 1 + position)?, &row))
            }
        }
    }

    /// The highest UID in the view.
    pub fn last_uid(&self) -> Option<Uid> {
        let last = self.mailbox.exists().checked_sub(1).and_then(|_| self.mailbox.uid_of(self.mailbox.exists()));
        last.max(self.ghosts.last().map(|row| row.uid))
    }

    /// Entries by sequence numbers, rising; numbers beyond the end are left out. Reads columns, allocates nothing an entry.
    pub fn rows(&self, seqs: RangeInclusive<u32>) -> Rows<'_> {
        let start = seqs.start().max(&1) - 1;
        let end = (*seqs.end()).min(self.exists());
        // A ghost's position is its rank plus the entries before it, which rises with its rank.
        let ghosts_before = partition_point(self.ghosts.len(), |rank| {
            self.ghosts.get(rank).is_some_and(|row| rank as u32 + self.mailbox.count_below(row.uid.get()) < start)
        });
        let live_start = start.saturating_sub(ghosts_before as u32);
        let mut live = self.mailbox.rows(live_start..self.mailbox.exists());
        let next_live = if self.ghosts.is_empty() { None } else { live.next() };
        Rows { live, next_live, ghosts: self.ghosts.get(ghosts_before..).unwrap_or_default(), at: start, end }
    }

    /// The flags of the entries at these ranges of sequence numbers, like [`View::rows`]. Where a few of many are wanted that costs much
    /// less, since each column of an entry that is read is a wait for memory.
    pub fn flags<'a>(
        &'a self,
        seqs: impl Iterator<Item = (u32, u32)> + Clone + 'a,
    ) -> impl Iterator<Item = EntryFlags> + 'a {
        let merged = (!self.ghosts.is_empty()).then(|| seqs.clone().flat_map(|(first, last)| self.rows(first..=last)));
        let merged = merged.into_iter().flatten();
        let live = self.ghosts.is_empty().then(|| self.mailbox.flags_at(seqs));
        let live = live.into_iter().flatten();
        let merged = merged.map(|Entry { seq, uid, flags, modseq, .. }| EntryFlags { seq, uid, flags, modseq });
        merged.chain(live.map(|(seq, uid, flags, modseq)| EntryFlags { seq, uid, flags, modseq }))
    }

    /// All entries.
    pub fn all_rows(&self) -> Rows<'_> {
        self.rows(1..=u32::MAX)
    }

    /// The sequence numbers of those UIDs that are in the view.
    pub fn seqs_of(&self, uids: &UidSet) -> NumSet {
        if self.ghosts.is_empty() {
            return self.mailbox.seqs_of(uids);
        }
        let mut seqs = NumSet::new();
        for &(first, last) in uids.ranges() {
            let (from, to) =
                (self.count_below(first), last.checked_add(1).map_or(self.exists(), |n| self.count_below(n)));
            if from < to {
                seqs.insert_range(from + 1, to);
            }
        }
        seqs
    }

    /// The UIDs at those sequence numbers.
    pub fn uids_of(&self, seqs: &NumSet) -> UidSet {
        if self.ghosts.is_empty() {
            return self.mailbox.uids_of(seqs);
        }
        let mut uids = UidSet::new();
        for &(first, last) in seqs.ranges() {
            uids.extend(self.rows(first..=last).map(|entry| entry.uid.get()));
        }
        uids
    }

    /// Whether the mailbox has changed since. Costs two loads.
    pub fn has_news(&self) -> bool {
        match self.account.state().mailbox(self.mailbox.id()) {
            Some(now) => !self.ghosts.is_empty() || !Arc::ptr_eq(now, &self.mailbox),
            None => !self.gone,
        }
    }

    /// Whether the mailbox was deleted meanwhile.
    pub fn is_gone(&self) -> bool {
        self.gone || self.account.state().mailbox(self.mailbox.id()).is_none()
    }

    /// Moves the view to the present and tells what is different. With `expunges` false the expunged entries stay in the view, with
    /// their numbers and readable (a server must not send EXPUNGE while FETCH, STORE or SEARCH runs, RFC 9051 §7.5.1), and everything
    /// else moves. That a mailbox was deleted is told with `expunges` true only, since all its entries go with it.
    pub fn advance(&mut self, expunges: bool) -> Changes {
        let state = self.account.state();
        let Some(now) = state.mailbox(self.mailbox.id()) else {
            return if expunges { self.leave() } else { Changes::default() };
        };
        if Arc::ptr_eq(now, &self.mailbox) && (self.ghosts.is_empty() || !expunges) {
            return Changes::default();
        }
        let found = now.changes_since(&self.mailbox);
        let mut changes = Changes {
            flags_changed: found.changed,
            added: u32::try_from(found.appended.len()).unwrap_or(u32::MAX),
            keywords_changed: now.keywords().len() != self.mailbox.keywords().len(),
            ..Changes::default()
        };
        if expunges {
            (changes.expunged_uids, changes.expunged_seqs) = (found.expunged, found.expunged_seqs);
            if !self.ghosts.is_empty() {
                changes.expunged_uids = self.ghost_uids().union(&changes.expunged_uids);
                changes.expunged_seqs = self.seqs_of(&changes.expunged_uids);
            }
            self.ghosts = Arc::default();
        } else if !found.expunged.is_empty() {
            let mut ghosts: Vec<Row> = self.mailbox.rows_of(&found.expunged).map(|(_, row)| row).collect();
            ghosts.extend_from_slice(&self.ghosts);
            ghosts.sort_unstable_by_key(|row| row.uid);
            self.ghosts = Arc::new(ghosts);
        }
        self.mailbox = now.clone();
        if self.read_write && changes.added > 0 {
            self.account.claim_recent(&self.mailbox);
        }
        changes
    }

    /// The mailbox is gone, and now the holder knows.
    fn leave(&mut self) -> Changes {
        let changes = Changes {
            expunged_seqs: if self.exists() > 0 { NumSet::range(1, self.exists()) } else { NumSet::new() },
            expunged_uids: self.all_rows().map(|entry| entry.uid).collect(),
            mailbox_deleted: !self.gone,
            ..Changes::default()
        };
        self.gone = true;
        self.ghosts = Arc::default();
        self.mailbox = Arc::new(self.mailbox.emptied());
        changes
    }

    /// The UIDs in the view that are expunged in the mailbox already: what an answer may say `[EXPUNGEISSUED]` about.
    pub fn ghost_uids(&self) -> UidSet {
        self.ghosts.iter().map(|row| row.uid).collect()
    }

    /// Entries with a UID below `uid`.
    fn count_below(&self, uid: u32) -> u32 {
        self.mailbox.count_below(uid) + self.ghosts.partition_point(|row| row.uid.get() < uid) as u32
    }

    fn seq_of(&self, uid: Uid) -> Option<SeqNum> {
        self.entry_of(uid).map(|entry| entry.seq)
    }

    /// How many ghosts are before `uid`, and whether it is one.
    fn ghost_rank(&self, uid: Uid) -> (u32, Option<&Row>) {
        let rank = self.ghosts.partition_point(|row| row.uid < uid);
        (rank as u32, self.ghosts.get(rank).filter(|row| row.uid == uid))
    }
}

/// The sequence number of a position from 0.
fn seq_at(position: u32) -> Option<SeqNum> {
    SeqNum::new(position.checked_add(1)?)
}

/// The first of `0..len` for which `before` is false; `before` is true up to there.
fn partition_point(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Entries of a view in rising order; see [`View::rows`].
pub struct Rows<'a> {
    live: index::Rows<'a>,
    /// Taken from `live` already; only used while there are ghosts.
    next_live: Option<(SeqNum, Row)>,
    ghosts: &'a [Row],
    /// The position of the next entry, from 0.
    at: u32,
    end: u32,
}

impl Iterator for Rows<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.at >= self.end {
            return None;
        }
        let seq = seq_at(self.at)?;
        self.at += 1;
        // The two streams have no UID in common.
        let ghost_first = match (&self.next_live, self.ghosts.first()) {
            (Some((_, live)), Some(ghost)) => ghost.uid < live.uid,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let row = if ghost_first {
            let (ghost, rest) = self.ghosts.split_first()?;
            self.ghosts = rest;
            *ghost
        } else {
            match self.next_live.take() {
                Some((_, row)) => {
                    self.next_live = if self.ghosts.is_empty() { None } else { self.live.next() };
                    row
                }
                None => self.live.next()?.1,
            }
        };
        Some(Entry::new(seq, &row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.at) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Rows<'_> {}
