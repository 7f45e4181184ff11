//! What a server sends (RFC 9051 §7), as values: written by the server where speed is no matter, read by clients.
//!
//! A FETCH response is a generic tree here, see [`FetchItem`]; the server writes it with [`crate::encode::FetchWriter`].

mod code;
mod parse;
mod reader;
mod value;
mod write;

use model::{MailboxName, ModSeq, NumSet, SpecialUse, Uid, UidValidity, encode_mailbox_utf7};

use crate::command::{IdParams, StatusAtt, Tag};
use crate::{FlagName, MailboxArg, NameEncoding, PartialRange};

pub use code::{Code, PlainCode};
pub use parse::response;
pub use reader::{ResponseError, ResponseReader};
pub use value::{FetchItem, Value};
pub use write::{status, tagged};

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// `+ ...` (RFC 9051 §7.6): text, or base64.
    Continue(String),
    /// `tag OK ...`
    Tagged(Tag, StatusText),
    /// `* OK ...`, the greeting too.
    Status(StatusText),
    /// `* CAPABILITY` (RFC 9051 §7.2.2): the names as sent.
    Capability(Vec<String>),
    /// `* ENABLED` (RFC 9051 §7.2.1): the names as sent.
    Enabled(Vec<String>),
    /// `* FLAGS` (RFC 9051 §7.3.5)
    Flags(Vec<FlagName>),
    /// `* LIST` (RFC 9051 §7.3.1)
    List(ListItem),
    /// `* LSUB` (RFC 3501 §7.2.3)
    Lsub(ListItem),
    /// `* STATUS` (RFC 9051 §7.3.4)
    MailboxStatus(MailboxArg, Vec<StatusItem>),
    /// `* SEARCH` (RFC 3501 §7.2.5)
    Search {
        /// The numbers as sent.
        numbers: Vec<u32>,
        /// `(MODSEQ n)` (RFC 7162 §3.1.5)
        modseq: Option<ModSeq>,
    },
    /// `* ESEARCH` (RFC 9051 §7.3.4)
    ESearch(ESearch),
    /// `* NAMESPACE` (RFC 9051 §7.3.3): personal, other users', shared.
    Namespace([Vec<Namespace>; 3]),
    /// `* n EXISTS`
    Exists(u32),
    /// `* n RECENT`
    Recent(u32),
    /// `* n EXPUNGE`
    Expunge(u32),
    /// `* VANISHED` (RFC 7162 §3.2.10)
    Vanished {
        /// `(EARLIER)`
        earlier: bool,
        /// Which; not empty.
        uids: NumSet,
    },
    /// `* n FETCH`
    Fetch {
        /// The message's sequence number.
        sequence: u32,
        /// Its items as sent.
        items: Vec<FetchItem>,
    },
    /// `* ID` (RFC 2971 §3.2)
    Id(IdParams),
    /// Any other untagged response: its name in upper case and what follows, as octets.
    Other {
        /// The first word.
        name: String,
        /// What stands behind it and a space.
        rest: Vec<u8>,
    },
}

/// The first word of a status response (RFC 9051 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusKind {
    /// `OK`
    Ok,
    /// `NO`
    No,
    /// `BAD`
    Bad,
    /// `PREAUTH`: as a greeting only.
    PreAuth,
    /// `BYE`
    Bye,
}

impl StatusKind {
    /// The word itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            StatusKind::Ok => "OK",
            StatusKind::No => "NO",
            StatusKind::Bad => "BAD",
            StatusKind::PreAuth => "PREAUTH",
            StatusKind::Bye => "BYE",
        }
    }
}

/// A status response without its tag (RFC 9051 §9 resp-cond-state, resp-text).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusText {
    /// Which.
    pub kind: StatusKind,
    /// The response code.
    pub code: Option<Code>,
    /// The text for people.
    pub text: String,
}

/// One mailbox of LIST or LSUB (RFC 9051 §9 mailbox-list).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// The attributes.
    pub attributes: Vec<ListAttribute>,
    /// The hierarchy delimiter; `None` when there is no hierarchy.
    pub delimiter: Option<u8>,
    /// The name as sent.
    pub mailbox: MailboxArg,
    /// `CHILDINFO` (RFC 9051 §6.3.9.6): the selection options that mailboxes below match.
    pub child_info: Vec<String>,
    /// `OLDNAME` (RFC 9051 §6.3.9.7)
    pub old_name: Option<MailboxArg>,
}

/// An attribute of a mailbox (RFC 9051 §7.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListAttribute {
    /// `\Noinferiors`
    NoInferiors,
    /// `\Noselect`
    NoSelect,
    /// `\NonExistent`
    NonExistent,
    /// `\HasChildren`
    HasChildren,
    /// `\HasNoChildren`
    HasNoChildren,
    /// `\Marked`
    Marked,
    /// `\Unmarked`
    Unmarked,
    /// `\Subscribed`
    Subscribed,
    /// `\Remote`
    Remote,
    /// What the mailbox is for (RFC 6154).
    SpecialUse(SpecialUse),
    /// Another, with its backslash.
    Other(String),
}

/// An item of a STATUS response (RFC 9051 §9 status-att-val).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusItem {
    /// An item whose value is a number; for APPENDLIMIT too, if there is a limit.
    Number(StatusAtt, u64),
    /// `APPENDLIMIT NIL` (RFC 7889 §3): no limit for this mailbox.
    NoAppendLimit,
    /// `MAILBOXID` (RFC 8474 §4.3)
    MailboxId(String),
}

/// An ESEARCH response (RFC 9051 §9 esearch-response).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ESearch {
    /// The tag of the command that it answers, or whose results it updates.
    pub tag: Option<String>,
    /// `MAILBOX` (RFC 7377 §2.1): where, as sent.
    pub mailbox: Option<MailboxArg>,
    /// `UIDVALIDITY` (RFC 7377 §2.1): of that mailbox.
    pub uid_validity: Option<u32>,
    /// Whether the numbers are UIDs.
    pub uid: bool,
    /// `MIN`
    pub min: Option<u32>,
    /// `MAX`
    pub max: Option<u32>,
    /// `ALL`; left out when empty. The order of a SORT is lost, and ADDTO and REMOVEFROM (RFC 5267) are passed over.
    pub all: Option<NumSet>,
    /// `COUNT`
    pub count: Option<u32>,
    /// `PARTIAL` (RFC 9394 §3.1): the range asked for and what lies in it.
    pub partial: Option<(PartialRange, NumSet)>,
    /// `MODSEQ` (RFC 7162 §3.1.5)
    pub modseq: Option<ModSeq>,
}

/// A namespace (RFC 9051 §9 namespace-descr).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// What names in it begin with, as sent.
    pub prefix: Vec<u8>,
    /// The hierarchy delimiter.
    pub delimiter: Option<u8>,
}

impl MailboxArg {
    /// The octets of a name in a session.
    pub fn encode(name: &MailboxName, encoding: NameEncoding) -> MailboxArg {
        MailboxArg(match encoding {
            NameEncoding::Utf7 => encode_mailbox_utf7(name.as_str()).into_bytes(),
            NameEncoding::Utf8 => name.as_str().as_bytes().to_vec(),
        })
    }
}

/// `COPYUID` and `APPENDUID` speak of one life of a mailbox (RFC 4315 §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UidsIn {
    /// The UIDVALIDITY of the mailbox that the UIDs are in.
    pub uidvalidity: UidValidity,
    /// The UIDs. As a set: a server of ours assigns rising ones.
    pub uids: NumSet,
}

impl UidsIn {
    /// One UID.
    pub fn one(uidvalidity: UidValidity, uid: Uid) -> Self {
        UidsIn { uidvalidity, uids: [uid].into_iter().collect() }
    }
}
