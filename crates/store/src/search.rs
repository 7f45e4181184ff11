//! Search: which entries of a view match (RFC 9051 §6.4.4). By scan for now; exact always (invariant 8).

use model::{CivilDate, EmailId, Flags, ModSeq, NumSet, Result, ThreadId, UidSet};

use crate::{Reader, View};

/// What is looked for. Strings are UTF-8 needles: substrings, case-folded (invariant 8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Every entry.
    All,
    /// Both and more.
    And(Vec<Query>),
    /// Either.
    Or(Box<Query>, Box<Query>),
    /// The others.
    Not(Box<Query>),
    /// Any of these flags is set.
    HasFlag(Flags),
    /// \Recent for this view.
    Recent,
    /// These sequence numbers.
    Seqs(NumSet),
    /// These UIDs.
    Uids(UidSet),
    /// Internal date, day as written.
    Internal(DateTest),
    /// Date header field, day as written.
    Sent(DateTest),
    /// Save date (RFC 8514), day in UTC.
    Saved(DateTest),
    /// Internal date not older than so many seconds (RFC 5032).
    Younger(u32),
    /// Internal date older.
    Older(u32),
    /// More octets than this.
    Larger(u64),
    /// Fewer octets.
    Smaller(u64),
    /// The header field has the text; an empty text: the field is there.
    Header(String, String),
    /// A decoded text part has the text.
    Body(String),
    /// Header or body.
    Text(String),
    /// A modseq at least this (RFC 7162 §3.1.5).
    ModSeq(ModSeq),
    /// This message.
    EmailId(EmailId),
    /// This thread.
    ThreadId(ThreadId),
}

/// A day compared with a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateTest {
    /// Earlier.
    Before(CivilDate),
    /// That day.
    On(CivilDate),
    /// That day or later.
    Since(CivilDate),
}

/// A search that is under way; made of bounded steps, so that a session can be cancelled and others get their turn.
pub struct Search {}

impl Search {
    /// Starts it. `now_unix_seconds` is what YOUNGER and OLDER count from.
    pub fn new(_view: View, _reader: Reader, _query: Query, _now_unix_seconds: i64) -> Self {
        todo!()
    }

    /// Does a bounded piece of work; `Some` when finished: the sequence numbers that match, and the highest modseq among them.
    pub fn step(&mut self) -> Result<Option<(NumSet, Option<ModSeq>)>> {
        todo!()
    }
}
