//! What a client sends: one variant a command, every value checked as far as the grammar goes.
//!
//! Strings whose meaning depends on the session (mailbox names, search strings in a charset) are kept as octets. APPEND and
//! REPLACE are not here: their messages are streamed, see [`AppendStart`].

mod append;
mod esearch;
mod fetch;
mod list;
mod metadata;
mod notify;
mod parse;
mod quota;
mod search;
mod select;
mod sort;
mod write;

use std::fmt;

use model::{ModSeq, SpecialUse};

use crate::chars::is_tag_char;
use crate::{FlagName, MailboxArg, SequenceSet, limits};

pub(crate) use append::{append_end, append_next, append_start, leads_to_message};
pub(crate) use fetch::section;
pub(crate) use list::status_att;
pub(crate) use parse::{id_params_list, mailbox, tag, tag_of};
pub(crate) use search::objectid;

pub use append::{AppendKind, AppendMessage, AppendStart, MessageLiteral};
pub use esearch::{MultiSearch, SearchSource};
pub use fetch::{Fetch, FetchAtt, FetchModifiers, Partial, Section, SectionPart, SectionText};
pub use list::{List, ListReturn, ListSelect, StatusAtt};
pub use metadata::{GetMetadata, MetadataDepth, MetadataEntry, SetMetadata};
pub use notify::{EventGroup, MailboxFilter, Notify, NotifyEvent};
pub use parse::{CommandError, CommandErrorKind, command, search_criteria};
pub use quota::SetQuota;
pub use search::{EntryType, Search, SearchKey, SearchModSeqEntry, SearchReturn};
pub use select::{QResync, Select, SeqMatchData};
pub use sort::{Sort, SortCriterion, SortKey, Thread, ThreadAlgorithm};
pub use write::LiteralForm;

/// A tag (RFC 9051 §9): what the client will find again in the tagged response.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Tag(String);

impl Tag {
    /// A tag of a client's own; `None` when no tag may look like this.
    pub fn new(text: &str) -> Option<Tag> {
        let fits = (1..=limits::TAG_BYTES_MAX).contains(&text.len());
        (fits && text.bytes().all(is_tag_char)).then(|| Tag(text.to_owned()))
    }

    /// The tag as sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Octets that no log may show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A command with its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The tag.
    pub tag: Tag,
    /// The rest.
    pub body: CommandBody,
}

/// The commands (RFC 9051 §6). `uid` says that the command came with the prefix UID: numbers in it, and in its untagged
/// responses where they speak of it, are UIDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandBody {
    /// CAPABILITY (RFC 9051 §6.1.1)
    Capability,
    /// NOOP (RFC 9051 §6.1.2)
    Noop,
    /// LOGOUT (RFC 9051 §6.1.3)
    Logout,
    /// ID (RFC 2971 §3.1)
    Id(IdParams),
    /// STARTTLS (RFC 9051 §6.2.1)
    StartTls,
    /// AUTHENTICATE (RFC 9051 §6.2.2, RFC 4959)
    Authenticate {
        /// The SASL mechanism, in upper case.
        mechanism: String,
        /// The initial response as sent: base64, or `=` for an empty one.
        initial_response: Option<Secret>,
    },
    /// LOGIN (RFC 9051 §6.2.3)
    Login {
        /// The user's name.
        user: Vec<u8>,
        /// The password.
        password: Secret,
    },
    /// UNAUTHENTICATE (RFC 8437)
    Unauthenticate,
    /// COMPRESS (RFC 4978 §3): the algorithm, in upper case.
    Compress(String),
    /// ENABLE (RFC 5161 §3.1, RFC 9051 §6.3.1)
    Enable(Vec<EnableCapability>),
    /// SELECT (RFC 9051 §6.3.2)
    Select(Select),
    /// EXAMINE (RFC 9051 §6.3.3)
    Examine(Select),
    /// CREATE (RFC 9051 §6.3.4)
    Create {
        /// The name; decode it with [`MailboxArg::decode_for_create`].
        mailbox: MailboxArg,
        /// `USE` (RFC 6154 §3); empty without it.
        special_use: Vec<UseAttribute>,
    },
    /// DELETE (RFC 9051 §6.3.5)
    Delete(MailboxArg),
    /// RENAME (RFC 9051 §6.3.6)
    Rename {
        /// The old name.
        from: MailboxArg,
        /// The new name.
        to: MailboxArg,
    },
    /// SUBSCRIBE (RFC 9051 §6.3.7)
    Subscribe(MailboxArg),
    /// UNSUBSCRIBE (RFC 9051 §6.3.8)
    Unsubscribe(MailboxArg),
    /// LIST (RFC 9051 §6.3.9, RFC 5258, RFC 5819)
    List(List),
    /// LSUB (RFC 3501 §6.3.9)
    Lsub {
        /// The reference name.
        reference: MailboxArg,
        /// The pattern.
        pattern: crate::ListPattern,
    },
    /// NAMESPACE (RFC 9051 §6.3.10)
    Namespace,
    /// STATUS (RFC 9051 §6.3.11)
    Status {
        /// The mailbox.
        mailbox: MailboxArg,
        /// What is asked for, without duplicates.
        items: Vec<StatusAtt>,
    },
    /// GETQUOTA (RFC 9208 §4.1.1): the quota root.
    GetQuota(Vec<u8>),
    /// GETQUOTAROOT (RFC 9208 §4.1.2)
    GetQuotaRoot(MailboxArg),
    /// SETQUOTA (RFC 9208 §4.1.3)
    SetQuota(SetQuota),
    /// NOTIFY (RFC 5465 §3.1)
    Notify(Notify),
    /// GETMETADATA (RFC 5464 §4.2)
    GetMetadata(Box<GetMetadata>),
    /// SETMETADATA (RFC 5464 §4.3)
    SetMetadata(Box<SetMetadata>),
    /// IDLE (RFC 9051 §6.3.13): what ends it comes as a line.
    Idle,
    /// CHECK (RFC 3501 §6.4.1)
    Check,
    /// CLOSE (RFC 9051 §6.4.1)
    Close,
    /// UNSELECT (RFC 9051 §6.4.2)
    Unselect,
    /// EXPUNGE (RFC 9051 §6.4.3)
    Expunge,
    /// UID EXPUNGE (RFC 9051 §6.4.9, RFC 4315 §2.1)
    UidExpunge(SequenceSet),
    /// SEARCH (RFC 9051 §6.4.4)
    Search(Box<Search>),
    /// SORT (RFC 5256 §3)
    Sort(Box<Sort>),
    /// THREAD (RFC 5256 §3)
    Thread(Box<Thread>),
    /// ESEARCH (RFC 7377)
    MultiSearch(Box<MultiSearch>),
    /// CANCELUPDATE (RFC 5267 §4.3.5): the tags of the commands whose updates are to end; one or more.
    CancelUpdate(Vec<Vec<u8>>),
    /// FETCH (RFC 9051 §6.4.5)
    Fetch(Fetch),
    /// STORE (RFC 9051 §6.4.6)
    Store(Store),
    /// COPY (RFC 9051 §6.4.7)
    Copy {
        /// Whether the numbers are UIDs.
        uid: bool,
        /// The messages.
        set: SequenceSet,
        /// Where to.
        mailbox: MailboxArg,
    },
    /// MOVE (RFC 9051 §6.4.8, RFC 6851)
    Move {
        /// Whether the numbers are UIDs.
        uid: bool,
        /// The messages.
        set: SequenceSet,
        /// Where to.
        mailbox: MailboxArg,
    },
}

/// Field-value pairs of ID (RFC 2971 §3); `None` for NIL in the place of the list or of a value.
pub type IdParams = Option<Vec<(Vec<u8>, Option<Vec<u8>>)>>;

/// What ENABLE can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnableCapability {
    /// `IMAP4rev2` (RFC 9051 §6.3.1)
    Imap4Rev2,
    /// `CONDSTORE` (RFC 7162 §3.1)
    CondStore,
    /// `QRESYNC` (RFC 7162 §3.2.3)
    QResync,
    /// `UTF8=ACCEPT` (RFC 6855 §3)
    Utf8Accept,
    /// Anything else, in upper case: it is ignored (RFC 5161 §3.1).
    Other(String),
}

/// An attribute of `CREATE ... (USE (...))` (RFC 6154 §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseAttribute {
    /// One that Mailyard knows.
    Known(SpecialUse),
    /// Another, with its backslash: answered with NO and the code USEATTR.
    Unknown(String),
}

/// STORE (RFC 9051 §6.4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Whether the numbers are UIDs.
    pub uid: bool,
    /// The messages.
    pub set: SequenceSet,
    /// `UNCHANGEDSINCE` (RFC 7162 §3.1.3); zero is allowed and fails every message that has a mod-sequence.
    pub unchanged_since: Option<ModSeq>,
    /// What happens to the flags.
    pub mode: StoreMode,
    /// `.SILENT`: no untagged FETCH is wanted.
    pub silent: bool,
    /// The flags, in the order sent.
    pub flags: Vec<FlagName>,
}

/// How STORE changes the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// `FLAGS`
    Replace,
    /// `+FLAGS`
    Add,
    /// `-FLAGS`
    Remove,
}
