//! The account log and everything derived from it.
//!
//! One account is one directory: `log/` is the only truth, `index/` can be deleted whenever the account is closed. A
//! [`Log`] is shared by threads; changes are transactions ([`Log::transact`]) that become durable together in batches
//! (one write, one sync), and only then visible to others ([`Log::state`]). A [`State`] is an immutable value; a session
//! keeps an `Arc` of a [`Mailbox`] as its view and asks for the [`Changes`] between two of them. Message bytes are read
//! through a [`Reader`], checked against their checksums.
//!
//! ```text
//!   Transaction ─ records ─▶ head state ─▶ queue ─▶ tail (one write, one sync) ─▶ published state ─▶ listener
//!                                                     │ maintain
//!                                                     ▼
//!                                                  segment (compressed columns)          index/ (checkpoint, cache)
//! ```
//!
//! Bytes on disk: `docs/format-log.md`, `docs/format-index.md`. Why it is so: `docs/decisions/0003-log-and-index.md`.

mod cache;
mod check;
mod checkpoint;
mod codec;
mod compact;
mod files;
mod foreign;
#[cfg(test)]
mod format_doc;
mod journal;
mod layout;
mod live;
mod log;
mod maintain;
mod message;
mod options;
mod reader;
mod record;
mod recover;
mod seal;
mod sealed;
mod segment;
mod state;
mod tail;
mod transaction;

pub use check::{CheckReport, Finding, remove_index};
pub use compact::Space;
pub use files::{LogFile, LogFiles};
pub use foreign::{Foreign, ForeignMessage};
pub use journal::{ExpungedNews, Journal, MailboxNews, News, Transacted, Wait};
pub use log::{HandOver, Job, Listener, Log, Ticket, Wake};
pub use maintain::{Budget, MaintainReport};
pub use message::{MessageWriter, PendingMessage};
pub use options::Options;
pub use reader::{Derive, MessageBytes, MessageInfo, Reader};
pub use record::{Event, NewRow};
pub use sealed::Sealed;
pub use state::{Changes, DeletedMailbox, ExpungedRow, Mailbox, Row, Rows, State, Usage};
pub use transaction::{
    ANNOTATION_KEY_BYTES_MAX, ANNOTATION_VALUE_BYTES_MAX, Copied, FRAME_EVENTS_BYTES_MAX, FRAME_MESSAGES_MAX,
    FlagsOutcome, NewEntry, Transaction,
};
