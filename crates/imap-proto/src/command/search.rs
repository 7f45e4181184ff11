//! SEARCH and UID SEARCH (RFC 9051 §6.4.4; RFC 4731, RFC 5182, RFC 5032, RFC 7162 §3.1.5, RFC 8474 §6, RFC 8514 §4.3, RFC 9394).

use model::{CivilDate, Keyword, ModSeq, SystemFlag};

use crate::{FlagName, PartialRange, SequenceSet};

/// SEARCH (RFC 9051 §9 search).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the result is wanted as UIDs.
    pub uid: bool,
    /// `RETURN (...)`; `None` asks for an untagged SEARCH response in IMAP4rev1.
    pub returns: Option<SearchReturn>,
    /// `CHARSET`, as sent; `None` is US-ASCII in IMAP4rev1 and UTF-8 in IMAP4rev2.
    pub charset: Option<String>,
    /// What is searched for; several keys in a row are an [`SearchKey::And`].
    pub key: SearchKey,
}

/// Return options of SEARCH (RFC 9051 §6.4.4.1). `RETURN ()` is read as `RETURN (ALL)`, as it is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchReturn {
    /// `MIN`
    pub min: bool,
    /// `MAX`
    pub max: bool,
    /// `ALL`
    pub all: bool,
    /// `COUNT`
    pub count: bool,
    /// `SAVE` (RFC 5182)
    pub save: bool,
    /// `PARTIAL` (RFC 9394 §3.1)
    pub partial: Option<PartialRange>,
}

/// A search key (RFC 9051 §9 search-key). Strings are octets in the search's charset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchKey {
    /// `ALL`
    All,
    /// All of these; one or more.
    And(Vec<SearchKey>),
    /// `OR`
    Or(Box<SearchKey>, Box<SearchKey>),
    /// `NOT`
    Not(Box<SearchKey>),
    /// `ANSWERED`, `DELETED`, `DRAFT`, `FLAGGED`, `SEEN`
    Flag(SystemFlag),
    /// `UNANSWERED`, `UNDELETED`, `UNDRAFT`, `UNFLAGGED`, `UNSEEN`
    Unflag(SystemFlag),
    /// `KEYWORD`
    Keyword(Keyword),
    /// `UNKEYWORD`
    Unkeyword(Keyword),
    /// `NEW` (RFC 3501 §6.4.4): RECENT and UNSEEN.
    New,
    /// `OLD` (RFC 3501 §6.4.4): not RECENT.
    Old,
    /// `RECENT` (RFC 3501 §6.4.4)
    Recent,
    /// `BCC`
    Bcc(Vec<u8>),
    /// `BODY`
    Body(Vec<u8>),
    /// `CC`
    Cc(Vec<u8>),
    /// `FROM`
    From(Vec<u8>),
    /// `SUBJECT`
    Subject(Vec<u8>),
    /// `TEXT`
    Text(Vec<u8>),
    /// `TO`
    To(Vec<u8>),
    /// `HEADER`: an empty value asks whether the field is there.
    Header {
        /// The field's name.
        name: Vec<u8>,
        /// What it must contain.
        value: Vec<u8>,
    },
    /// `BEFORE`: the internal date.
    Before(CivilDate),
    /// `ON`
    On(CivilDate),
    /// `SINCE`
    Since(CivilDate),
    /// `SENTBEFORE`: the Date field.
    SentBefore(CivilDate),
    /// `SENTON`
    SentOn(CivilDate),
    /// `SENTSINCE`
    SentSince(CivilDate),
    /// `SAVEDBEFORE` (RFC 8514 §4.3)
    SavedBefore(CivilDate),
    /// `SAVEDON`
    SavedOn(CivilDate),
    /// `SAVEDSINCE`
    SavedSince(CivilDate),
    /// `SAVEDATESUPPORTED`
    SaveDateSupported,
    /// `OLDER` (RFC 5032 §3): seconds; the internal date is at least so far back.
    Older(u32),
    /// `YOUNGER` (RFC 5032 §3): seconds; the internal date is at most so far back.
    Younger(u32),
    /// `LARGER`: more octets than this.
    Larger(u64),
    /// `SMALLER`: fewer octets than this.
    Smaller(u64),
    /// A sequence set.
    Sequence(SequenceSet),
    /// `UID`
    Uid(SequenceSet),
    /// `MODSEQ` (RFC 7162 §3.1.5)
    ModSeq {
        /// The metadata item, if one is named. A server without modseqs per item ignores it.
        entry: Option<SearchModSeqEntry>,
        /// The least mod-sequence that matches.
        least: ModSeq,
    },
    /// `EMAILID` (RFC 8474 §6): an object id as sent.
    EmailId(String),
    /// `THREADID` (RFC 8474 §6): an object id as sent.
    ThreadId(String),
}

/// The metadata item of a MODSEQ search key (RFC 7162 §7 search-modseq-ext).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchModSeqEntry {
    /// The flag of `"/flags/<flag>"`.
    pub flag: FlagName,
    /// Whose.
    pub entry_type: EntryType,
}

/// entry-type-req (RFC 7162 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryType {
    /// `priv`
    Private,
    /// `shared`
    Shared,
    /// `all`
    All,
}
