//! FETCH and UID FETCH (RFC 9051 §6.4.5; RFC 3516, RFC 7162 §3.1.4, RFC 8474 §5, RFC 8514 §4.2, RFC 8970 §3, RFC 9394 §3.3).

use std::num::NonZeroU32;

use model::ModSeq;

use crate::{PartialRange, SequenceSet};

/// FETCH with its items; a macro has become the items that it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Whether the numbers are UIDs.
    pub uid: bool,
    /// The messages.
    pub set: SequenceSet,
    /// What is wanted of each, in the order sent, without duplicates.
    pub items: Vec<FetchAtt>,
    /// The modifiers (RFC 4466 §2.5).
    pub modifiers: FetchModifiers,
}

/// The modifiers of FETCH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchModifiers {
    /// `CHANGEDSINCE` (RFC 7162 §3.1.4.1).
    pub changed_since: Option<ModSeq>,
    /// `VANISHED` (RFC 7162 §3.2.6): stands only with UID and CHANGEDSINCE.
    pub vanished: bool,
    /// `PARTIAL` (RFC 9394 §3.3): stands only with UID.
    pub partial: Option<PartialRange>,
}

/// An item of FETCH (RFC 9051 §9 fetch-att).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchAtt {
    /// `ENVELOPE`
    Envelope,
    /// `FLAGS`
    Flags,
    /// `INTERNALDATE`
    InternalDate,
    /// `RFC822.SIZE`
    Rfc822Size,
    /// `BODY` without a section: the structure without extension data.
    Body,
    /// `BODYSTRUCTURE`
    BodyStructure,
    /// `UID`
    Uid,
    /// `BODY[...]` and `BODY.PEEK[...]`
    BodySection {
        /// Which octets of the message.
        section: Section,
        /// Whether `\Seen` stays as it is.
        peek: bool,
        /// Which part of them.
        partial: Option<Partial>,
    },
    /// `BINARY[...]` and `BINARY.PEEK[...]` (RFC 3516 §4.2)
    Binary {
        /// The part whose content transfer encoding is undone; empty for the whole message.
        part: SectionPart,
        /// Whether `\Seen` stays as it is.
        peek: bool,
        /// Which of the decoded octets.
        partial: Option<Partial>,
    },
    /// `BINARY.SIZE[...]` (RFC 3516 §4.3)
    BinarySize {
        /// The part whose decoded size is wanted.
        part: SectionPart,
    },
    /// `RFC822` (RFC 3501 §6.4.5): `BODY[]` under another name.
    Rfc822,
    /// `RFC822.HEADER`: `BODY.PEEK[HEADER]` under another name.
    Rfc822Header,
    /// `RFC822.TEXT`: `BODY[TEXT]` under another name.
    Rfc822Text,
    /// `MODSEQ` (RFC 7162 §3.1.5)
    ModSeq,
    /// `SAVEDATE` (RFC 8514 §4.2)
    SaveDate,
    /// `PREVIEW` (RFC 8970 §3.1)
    Preview {
        /// `(LAZY)`: only if it costs nothing.
        lazy: bool,
    },
    /// `EMAILID` (RFC 8474 §5.1)
    EmailId,
    /// `THREADID` (RFC 8474 §5.2)
    ThreadId,
}

impl FetchAtt {
    /// Whether fetching this sets `\Seen` (RFC 9051 §6.4.5).
    pub fn sets_seen(&self) -> bool {
        match self {
            FetchAtt::BodySection { peek, .. } | FetchAtt::Binary { peek, .. } => !peek,
            FetchAtt::Rfc822 | FetchAtt::Rfc822Text => true,
            _ => false,
        }
    }
}

/// A part of a message, by the numbers of RFC 9051 §6.4.5.1; empty for the message itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectionPart(pub Vec<NonZeroU32>);

/// What stands between the brackets of BODY (RFC 9051 §9 section-spec).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Section {
    /// The part; empty for the message itself.
    pub part: SectionPart,
    /// What of it.
    pub text: SectionText,
}

/// What of a part (RFC 9051 §9 section-msgtext, section-text).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SectionText {
    /// All of it: `[]`, `[1.2]`.
    Full,
    /// `HEADER`
    Header,
    /// `HEADER.FIELDS`: the names as sent.
    HeaderFields(Vec<Vec<u8>>),
    /// `HEADER.FIELDS.NOT`: the names as sent.
    HeaderFieldsNot(Vec<Vec<u8>>),
    /// `TEXT`
    Text,
    /// `MIME`; only with a part.
    Mime,
}

/// A window of octets (RFC 9051 §9 partial): `<offset.length>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partial {
    /// The first octet, from zero.
    pub offset: u64,
    /// How many octets at most.
    pub length: u64,
}
