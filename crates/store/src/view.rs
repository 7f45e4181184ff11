//! A stable reading of a mailbox: sequence numbers, flags and dates as its holder knows them.
//!
//! Invariant: between two calls of [`View::advance`] the same sequence number means the same entry with the same flags.

use std::ops::RangeInclusive;

use model::{DateTime, EmailId, Flags, KeywordTable, MailboxId, ModSeq, NumSet, SeqNum, Uid, UidSet, UidValidity};

use crate::Changes;

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

/// A stable reading of a mailbox; cheap to clone.
#[derive(Clone)]
pub struct View {}

/// Entries of a view in rising order; see [`View::rows`].
pub struct Rows<'a> {
    _view: &'a View,
}

impl Iterator for Rows<'_> {
    type Item = Entry;
    fn next(&mut self) -> Option<Entry> {
        todo!()
    }
}

impl View {
    /// The mailbox.
    pub fn mailbox(&self) -> MailboxId {
        todo!()
    }

    /// How many entries there are: the highest sequence number.
    pub fn exists(&self) -> u32 {
        todo!()
    }

    /// See [`crate::Status`].
    pub fn uid_validity(&self) -> UidValidity {
        todo!()
    }

    /// See [`crate::Status`].
    pub fn uid_next(&self) -> Option<Uid> {
        todo!()
    }

    /// The highest modseq that this view has seen.
    pub fn highest_modseq(&self) -> ModSeq {
        todo!()
    }

    /// What the keyword bits stand for.
    pub fn keywords(&self) -> &KeywordTable {
        todo!()
    }

    /// Entries without \Seen, and the first of them.
    pub fn unseen(&self) -> (u32, Option<SeqNum>) {
        todo!()
    }

    /// The UIDs that are \Recent for this view (RFC 3501 §2.3.2): those from here on.
    pub fn recent_from(&self) -> Option<Uid> {
        todo!()
    }

    /// The entry at a sequence number.
    pub fn entry(&self, _seq: SeqNum) -> Option<Entry> {
        todo!()
    }

    /// The entry with a UID.
    pub fn entry_of(&self, _uid: Uid) -> Option<Entry> {
        todo!()
    }

    /// The highest UID in the view.
    pub fn last_uid(&self) -> Option<Uid> {
        todo!()
    }

    /// Entries by sequence numbers, rising; numbers beyond the end are left out. Reads columns, allocates nothing an entry.
    pub fn rows(&self, _seqs: RangeInclusive<u32>) -> Rows<'_> {
        todo!()
    }

    /// The sequence numbers of those UIDs that are in the view.
    pub fn seqs_of(&self, _uids: &UidSet) -> NumSet {
        todo!()
    }

    /// The UIDs at those sequence numbers.
    pub fn uids_of(&self, _seqs: &NumSet) -> UidSet {
        todo!()
    }

    /// Whether the mailbox has changed since. Costs two loads.
    pub fn has_news(&self) -> bool {
        todo!()
    }

    /// Whether the mailbox was deleted meanwhile.
    pub fn is_gone(&self) -> bool {
        todo!()
    }

    /// Moves the view to the present and tells what is different. With `expunges` false the expunged entries stay in the view, with
    /// their numbers and readable (a server must not send EXPUNGE while FETCH, STORE or SEARCH runs, RFC 9051 §7.5.1), and everything
    /// else moves.
    pub fn advance(&mut self, _expunges: bool) -> Changes {
        todo!()
    }
}
