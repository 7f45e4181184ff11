//! What is known of a message in an mbox: where it stands, what its fields said, which message of the log it is.

use model::{DateTime, EmailId, Keyword};

use super::scan::Message;
use crate::format::served::Form;

/// Flags as the fields `Status` and `X-Status` of a message said when they were last read or written, and whether all fields are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFlags(u8);

impl FileFlags {
    /// `Status: R`
    pub const SEEN: Self = Self(1 << 0);
    /// `Status: O`: some program has shown it before, so that it is not recent.
    pub const OLD: Self = Self(1 << 1);
    /// `X-Status: A`
    pub const ANSWERED: Self = Self(1 << 2);
    /// `X-Status: F`
    pub const FLAGGED: Self = Self(1 << 3);
    /// `X-Status: T`
    pub const DRAFT: Self = Self(1 << 4);
    /// `X-Status: D`, or `Status: D`.
    pub const DELETED: Self = Self(1 << 5);
    /// Everything that we write is there: the message's UID, both status fields and the keywords, so that a change may find room in place.
    pub const COMPLETE: Self = Self(1 << 6);

    /// Of its bits, as [`FileFlags::bits`] gives them.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without those.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// `X-IMAPbase` or `X-IMAP`: what a file says of itself, in its first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImapBase {
    /// UIDVALIDITY.
    pub uid_validity: u32,
    /// The highest UID that was given.
    pub last_uid: u32,
    /// The keywords of the mailbox.
    pub keywords: Vec<Keyword>,
}

/// What the fields of a message say that programs share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `Status`, `X-Status`.
    pub flags: FileFlags,
    /// `X-Keywords`, those that IMAP can name.
    pub keywords: Vec<Keyword>,
    /// `X-UID`; 0 is none.
    pub uid: Option<u32>,
    /// `X-IMAPbase` or `X-IMAP`.
    pub base: Option<ImapBase>,
    /// c-client's pseudo message, which has nothing but `X-IMAP` for the other programs: no message to anybody.
    pub is_pseudo: bool,
}

/// A message that a reading of the file has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Where.
    pub message: Message,
    /// See `intake`.
    pub digest: u64,
    /// Octets, as served: RFC822.SIZE.
    pub octets: u64,
    /// Octets of the header, as served.
    pub header_octets: u64,
    /// What its fields say.
    pub meta: Meta,
    /// Its `From ` line's date; `None`: there is none that can be read.
    pub date: Option<DateTime>,
}

/// A message's place in the file, as the map keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which message of the log it is; `None` for a pseudo message.
    pub email_id: Option<EmailId>,
    /// Where its `From ` line begins, octets from the start of the file.
    pub start: u64,
    /// Where its header begins.
    pub header: u64,
    /// Where its body begins.
    pub body: u64,
    /// Where its content ends.
    pub end: u64,
    /// Where the next message begins, or the file ends.
    pub next: u64,
    /// How its bytes become those that IMAP serves.
    pub form: Form,
    /// Its `From ` line ends with CRLF.
    pub is_crlf: bool,
    /// What its fields said.
    pub flags: FileFlags,
    /// A short hash over the keywords that its field named, in the order of their names; 0 without keywords.
    pub keywords: u8,
}
