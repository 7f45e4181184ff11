//! LIST and the items of STATUS (RFC 9051 §6.3.9 and §6.3.11; RFC 5258, RFC 5819, RFC 6154, RFC 8438, RFC 8474, RFC 7889, RFC 7162).

use crate::{ListPattern, MailboxArg};

/// LIST (RFC 9051 §9 list).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Which mailboxes.
    pub select: ListSelect,
    /// The reference name.
    pub reference: MailboxArg,
    /// The patterns: one or more. A single empty one in a LIST that is not `extended` asks for the delimiter and the root.
    pub patterns: Vec<ListPattern>,
    /// What to say of each.
    pub returns: ListReturn,
    /// Whether the command has selection options, several patterns or return options (RFC 5258 §3).
    pub extended: bool,
}

/// Selection options of LIST (RFC 9051 §6.3.9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSelect {
    /// `SUBSCRIBED`
    pub subscribed: bool,
    /// `REMOTE`
    pub remote: bool,
    /// `RECURSIVEMATCH`; stands only with SUBSCRIBED or SPECIAL-USE.
    pub recursive_match: bool,
    /// `SPECIAL-USE` (RFC 6154 §2)
    pub special_use: bool,
}

/// Return options of LIST (RFC 9051 §6.3.9.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListReturn {
    /// `SUBSCRIBED`
    pub subscribed: bool,
    /// `CHILDREN`
    pub children: bool,
    /// `SPECIAL-USE` (RFC 6154 §2)
    pub special_use: bool,
    /// `STATUS (...)` (RFC 5819); empty without it.
    pub status: Vec<StatusAtt>,
}

/// An item of STATUS (RFC 9051 §9 status-att).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusAtt {
    /// `MESSAGES`
    Messages,
    /// `RECENT` (RFC 3501 §6.3.10)
    Recent,
    /// `UIDNEXT`
    UidNext,
    /// `UIDVALIDITY`
    UidValidity,
    /// `UNSEEN`
    Unseen,
    /// `DELETED`
    Deleted,
    /// `SIZE` (RFC 8438)
    Size,
    /// `HIGHESTMODSEQ` (RFC 7162 §3.1.7)
    HighestModSeq,
    /// `APPENDLIMIT` (RFC 7889 §3)
    AppendLimit,
    /// `MAILBOXID` (RFC 8474 §4.3)
    MailboxId,
}
