//! The grammar of IMAP, both directions: RFC 9051 and RFC 3501 with the extensions that the module of each command names.
//!
//! Bytes become values here and values become bytes; nothing in this crate knows an account, a socket or a clock. Functions
//! carry the names of the ABNF rules that they read, with the RFC and section beside them.
//!
//! * [`Reader`]: the stream of a client, cut into commands, lines and the octets of messages; [`Framer`] is the cutting alone.
//! * [`command`]: what a client sends, one variant a command, read and written.
//! * [`response`]: what a server sends, as values, read and written; [`encode`]: the pieces, for the server's hot paths.
//! * [`limits`]: every limit by its name.
//!
//! # Liberal and strict
//! Read although the grammar says otherwise, because clients need it and it cannot be mistaken for anything else: several spaces
//! for one, spaces after `(`, before `)` and at the end of a line; a bare LF as a line end; every name in any case; octets above
//! 127 in quoted strings; mailbox names in plain UTF-8 where modified UTF-7 is due, if they have no `&`; `CHANGEDSINCE 0`; a
//! date-time's day without its padding. Not read: `\x` in a quoted string unless `x` is `"` or `\`; a CR or NUL outside a literal;
//! an unknown option or modifier; modified UTF-7 that is not in its one correct form; `NIL` as anything but an atom where an
//! astring stands.

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

pub use date::read_date_time;
pub use error::SyntaxError;
pub use flag::FlagName;
pub use frame::{Frame, FrameError, FrameLimits, Framer, LiteralMark};
pub use mailbox::{ListPattern, MailboxArg, NameEncoding};
pub use reader::{Event, ReadError, ReadErrorKind, Reader};
pub use sequence::{PartialRange, SeqNumber, SeqRange, SequenceSet};
