//! What a scan says of one message.

use std::ops::Range;

use crate::format::served::Form;

/// A message's place in an mbox file: octets from the start of the file.
///
/// Invariant: `start <= header <= body <= end <= next`, and `next` is the `start` of the next message or the length of the file: the
/// messages of a file, and what stands before the first, cover it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Where its `From ` line begins.
    pub start: u64,
    /// Where its header begins: behind that line.
    pub header: u64,
    /// Where its body begins: behind the empty line that ends the header (`end`, when there is none).
    pub body: u64,
    /// Where its content ends. The empty line before the next separator is not part of it.
    pub end: u64,
    /// Where the next message begins, or the file ends.
    pub next: u64,
    /// What is particular about it.
    pub flags: MessageFlags,
}

impl Message {
    /// Header and body: the message without its `From ` line.
    pub fn content(&self) -> Range<u64> {
        self.header..self.end
    }

    /// Which of the mbox variants the message was written in, as far as it shows.
    pub fn dialect(&self) -> Dialect {
        let has = |flags| self.flags.has(flags);
        match () {
            () if has(MessageFlags::CONTENT_LENGTH) && has(MessageFlags::ENCLOSES_SEPARATOR) => Dialect::Mboxcl2,
            () if has(MessageFlags::CONTENT_LENGTH) => Dialect::Mboxcl,
            () if has(MessageFlags::QUOTED_TWICE) => Dialect::Mboxrd,
            () if has(MessageFlags::QUOTED) => Dialect::Mboxo,
            () => Dialect::Plain,
        }
    }

    /// How its bytes become those that IMAP serves.
    pub fn form(&self) -> Form {
        Form { convert: true, unquote: self.dialect().unquotes() }
    }
}

/// The variants of mbox. They differ in what is done with body lines that begin with `From `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Nothing in the message tells: no quoted line, no Content-Length that is right.
    Plain,
    /// `From ` was written as `>From `. A `>From ` of the message itself cannot be told from it.
    Mboxo,
    /// One `>` was put before `From `, `>From `, `>>From ` and so on: it can be taken back exactly.
    Mboxrd,
    /// Content-Length says where the body ends, and `From ` was quoted nevertheless.
    Mboxcl,
    /// Content-Length says where the body ends, and nothing was quoted.
    Mboxcl2,
}

impl Dialect {
    /// Whether lines of `>From ` (with any number of `>`) lose one `>` when the message is served.
    ///
    /// A decision: mboxo is read as mboxrd, since `>From ` is far more often the writer's quoting than the author's. In mboxcl2 nothing was
    /// quoted, so nothing is taken away. The answer depends on the message's own bytes only, so that it never changes while these stay.
    pub fn unquotes(self) -> bool {
        self != Dialect::Mboxcl2
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Plain => "plain",
            Dialect::Mboxo => "mboxo",
            Dialect::Mboxrd => "mboxrd",
            Dialect::Mboxcl => "mboxcl",
            Dialect::Mboxcl2 => "mboxcl2",
        }
    }
}

/// A set of things that can be particular about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageFlags(u16);

impl MessageFlags {
    /// Its `From ` line ends with CRLF.
    pub const CRLF: Self = Self(1 << 0);
    /// It has NUL octets.
    pub const NUL: Self = Self(1 << 1);
    /// No empty line stands before its `From ` line, though there is something before it.
    pub const NO_BLANK_BEFORE: Self = Self(1 << 2);
    /// The last of the file, without a line end.
    pub const NO_LAST_NEWLINE: Self = Self(1 << 3);
    /// The last of the file, and it should be longer: its header does not end, or its Content-Length leads beyond the file.
    pub const TRUNCATED: Self = Self(1 << 4);
    /// No empty line ends its header: the next separator does.
    pub const NO_HEADER_END: Self = Self(1 << 5);
    /// The first of the file, and text stands before it.
    pub const TEXT_BEFORE: Self = Self(1 << 6);
    /// Its body has lines of `>From `.
    pub const QUOTED: Self = Self(1 << 7);
    /// Its body has lines of `>>From ` or more.
    pub const QUOTED_TWICE: Self = Self(1 << 8);
    /// Its body has lines of `From ` that are no separators.
    pub const UNQUOTED: Self = Self(1 << 9);
    /// Its Content-Length leads to the next separator or to the end of the file, so that it says where the body ends.
    pub const CONTENT_LENGTH: Self = Self(1 << 10);
    /// It has a Content-Length that leads nowhere.
    pub const CONTENT_LENGTH_WRONG: Self = Self(1 << 11);
    /// Its body, which Content-Length delimits, has lines that would be separators otherwise.
    pub const ENCLOSES_SEPARATOR: Self = Self(1 << 12);

    /// Every flag with its name, as `mailyard scan` shows it.
    pub const NAMES: [(Self, &'static str); 13] = [
        (Self::CRLF, "crlf"),
        (Self::NUL, "nul"),
        (Self::NO_BLANK_BEFORE, "no-blank-before"),
        (Self::NO_LAST_NEWLINE, "no-last-newline"),
        (Self::TRUNCATED, "truncated"),
        (Self::NO_HEADER_END, "no-header-end"),
        (Self::TEXT_BEFORE, "text-before"),
        (Self::QUOTED, "quoted"),
        (Self::QUOTED_TWICE, "quoted-twice"),
        (Self::UNQUOTED, "unquoted"),
        (Self::CONTENT_LENGTH, "content-length"),
        (Self::CONTENT_LENGTH_WRONG, "content-length-wrong"),
        (Self::ENCLOSES_SEPARATOR, "encloses-separator"),
    ];

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of those that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }

    pub(in super::super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn add_if(&mut self, other: Self, is: bool) {
        if is {
            self.add(other);
        }
    }
}
