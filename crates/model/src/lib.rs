//! Ids and small values that every crate of Mailyard shares. No I/O, no clock, no allocation that the caller does not see.
//!
//! A value that exists is valid: each type checks at construction, and nothing checks again later.

mod date;
mod error;
mod flags;
mod ids;
pub mod limits;
mod mailbox_name;
mod numset;
mod special_use;
mod utf7;

pub use date::{CivilDate, DateTime, days_from_civil};
pub use error::{Error, ErrorKind, Result};
pub use flags::{FlagChange, Flags, Keyword, KeywordTable, SYSTEM_FLAGS, SystemFlag};
pub use ids::{AccountName, EmailId, MailboxId, ModSeq, SeqNum, ThreadId, Uid, UidValidity};
pub use mailbox_name::{HIERARCHY_DELIMITER, MailboxName};
pub use numset::{NumSet, UidSet};
pub use special_use::SpecialUse;
pub use utf7::{decode_mailbox_utf7, encode_mailbox_utf7};
