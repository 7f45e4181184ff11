//! The grammar of IMAP, both directions: RFC 9051 and RFC 3501 with the extensions that the module of each command names.
//!
//! Bytes become values here and values become bytes; nothing in this crate knows an account, a socket or a clock. Functions
//! carry the names of the ABNF rules that they read, with the RFC and section beside them.
//!
//! * [`Reader`]: the stream of a client, cut into commands, lines and the octets of messages.
//! * [`command`]: what a client sends, one variant a command.
//! * [`response`]: what a server sends, as values; [`encode`]: the pieces, for the server's hot paths.

mod chars;
pub mod command;
mod date;
pub mod encode;
mod error;
mod flag;
mod frame;
pub mod limits;
mod mailbox;
mod reader;
pub mod response;
mod scan;
mod sequence;

pub use error::SyntaxError;
pub use flag::FlagName;
pub use frame::{Frame, FrameError, FrameLimits, Framer, LiteralMark};
pub use mailbox::{ListPattern, MailboxArg, NameEncoding};
pub use reader::{Event, ReadError, ReadErrorKind, Reader};
pub use sequence::{PartialRange, SeqNumber, SeqRange, SequenceSet};
