//! SELECT and EXAMINE with their parameters (RFC 9051 §6.3.2, RFC 7162 §3.1.8 and §3.2.5).

use model::{ModSeq, NumSet, UidValidity};

use crate::MailboxArg;

/// SELECT or EXAMINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// The mailbox.
    pub mailbox: MailboxArg,
    /// `(CONDSTORE)`
    pub condstore: bool,
    /// `(QRESYNC (...))`
    pub qresync: Option<QResync>,
}

/// What a client remembers of a mailbox (RFC 7162 §3.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QResync {
    /// The last known UIDVALIDITY.
    pub uidvalidity: UidValidity,
    /// The last known mod-sequence; positive.
    pub modseq: ModSeq,
    /// The known UIDs; `None` is all that may be.
    pub known_uids: Option<NumSet>,
    /// Message sequence numbers and the UIDs that they had (§3.2.5.2).
    pub seq_match: Option<SeqMatchData>,
}

/// Corresponding message sequence numbers and UIDs, both rising (RFC 7162 §3.2.5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeqMatchData {
    /// The sequence numbers.
    pub sequence: NumSet,
    /// The UIDs; as many.
    pub uids: NumSet,
}
