//! The grammar of IMAP, both directions: RFC 9051 and RFC 3501 with the extensions that the module of each command names.
//!
//! Bytes become values here and values become bytes; nothing in this crate knows an account, a socket or a clock. Functions
//! carry the names of the ABNF rules that they read, with the RFC and section beside them.
//!
//! * [`command`]: what a client sends, one variant a command.

pub mod command;
mod flag;
pub mod limits;
mod mailbox;
mod sequence;

pub use flag::FlagName;
pub use mailbox::{ListPattern, MailboxArg, NameEncoding};
pub use sequence::{PartialRange, SeqNumber, SeqRange, SequenceSet};
