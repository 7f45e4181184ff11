//! APPEND and REPLACE (RFC 9051 §6.3.12, RFC 3502, RFC 8508, RFC 6855 §4, RFC 3516 §4.4): everything but the messages,
//! which are streamed.

use model::DateTime;

use crate::command::Tag;
use crate::{FlagName, MailboxArg, SeqNumber};

/// An APPEND or a REPLACE up to the literal of its first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendStart {
    /// The command's tag.
    pub tag: Tag,
    /// Which of the two.
    pub kind: AppendKind,
    /// Where the messages go.
    pub mailbox: MailboxArg,
    /// The first message.
    pub message: AppendMessage,
}

/// Which command brings messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendKind {
    /// APPEND: one or more messages (RFC 3502).
    Append,
    /// REPLACE (RFC 8508 §3): one message, in the place of another of the selected mailbox.
    Replace {
        /// Whether `target` is a UID.
        uid: bool,
        /// The message that goes.
        target: SeqNumber,
    },
}

/// What stands before the literal of one message (RFC 9051 §9 append-message).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendMessage {
    /// The flags.
    pub flags: Vec<FlagName>,
    /// The internal date; `None` for now.
    pub date: Option<DateTime>,
    /// The literal that follows.
    pub literal: MessageLiteral,
}

/// The announcement of a message's literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLiteral {
    /// Octets; zero aborts the whole command (RFC 3502 §6.3.11).
    pub size: u64,
    /// Whether the client waits for a continuation request before it sends the octets.
    pub synchronising: bool,
    /// Whether it is a literal8, `~{n}`: the message may hold NUL octets.
    pub binary: bool,
    /// Whether it stands in `UTF8 (...)` (RFC 6855 §4).
    pub utf8: bool,
}
