//! APPEND and REPLACE (RFC 9051 §6.3.12, RFC 3502, RFC 8508, RFC 6855 §4, RFC 3516 §4.4): everything but the messages,
//! which are streamed.

use model::DateTime;

use super::Tag;
use super::parse::append_head;
use super::write::{CommandWriter, LiteralForm};
use crate::date::{date_time, write_date_time};
use crate::error::Parse;
use crate::flag::{flag_list, write_flag_list};
use crate::frame::LiteralMark;
use crate::scan::Scan;
use crate::sequence::write_seq_number;
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

/// Whether the literal that `head` leads to is the first message of an APPEND or a REPLACE: all its other arguments are there.
pub(crate) fn leads_to_message(head: &[u8]) -> bool {
    let mut scan = Scan::new(head);
    append_head(&mut scan).is_ok() && scan.peek() == Some(b' ')
}

// RFC 9051 §9 append = "APPEND" SP mailbox [SP flag-list] [SP date-time] SP literal; RFC 8508 §5 replace
/// `head` is what stands before the mark of the literal.
pub(crate) fn append_start(head: &[u8], mark: LiteralMark) -> Parse<AppendStart> {
    let mut scan = Scan::new(head);
    let (tag, kind, mailbox) = append_head(&mut scan)?;
    Ok(AppendStart { tag, kind, mailbox, message: append_message(&mut scan, mark)? })
}

// RFC 3502 §6.3.11: another [SP flag-list] [SP date-time] SP literal
/// `head` begins right after the literal before; `utf8` says that that one stood in `UTF8 (...)`.
pub(crate) fn append_next(head: &[u8], utf8: bool, mark: LiteralMark) -> Parse<AppendMessage> {
    let mut scan = Scan::new(head);
    if utf8 {
        scan.expect(b')', ") after a UTF8 literal")?;
    }
    append_message(&mut scan, mark)
}

/// What stands after the last literal.
pub(crate) fn append_end(tail: &[u8], utf8: bool) -> Parse<()> {
    let mut scan = Scan::new(tail);
    if utf8 {
        scan.expect(b')', ") after a UTF8 literal")?;
    }
    scan.end()
}

// RFC 4466 §3.2 append-message = append-opts SP append-data; RFC 6855 §4 utf8-literal = "UTF8" SP "(" literal8 ")"
fn append_message(scan: &mut Scan, mark: LiteralMark) -> Parse<AppendMessage> {
    scan.sp()?;
    let mut flags = Vec::new();
    if scan.peek() == Some(b'(') {
        flags = flag_list(scan)?;
        scan.sp()?;
    }
    let mut date = None;
    if scan.peek() == Some(b'"') {
        date = Some(date_time(scan)?);
        scan.sp()?;
    }
    let utf8 = scan.eat_word("UTF8");
    if utf8 {
        scan.sp()?;
        scan.expect(b'(', "( after UTF8")?;
        scan.skip_spaces();
        if !mark.binary {
            return scan.error("~ before the literal");
        }
    }
    if !scan.rest().is_empty() {
        return scan.error("flags, a date-time or a literal");
    }
    let LiteralMark { size, synchronising, binary } = mark;
    Ok(AppendMessage { flags, date, literal: MessageLiteral { size, synchronising, binary, utf8 } })
}

impl AppendStart {
    /// The command up to the first message's octets, as a client writes it. With [`LiteralForm::Synchronising`], each piece but
    /// the first waits for a continuation request, and so do the message's octets.
    pub fn write(&self, form: LiteralForm) -> Vec<Vec<u8>> {
        let mut writer = CommandWriter::new(form);
        writer.raw(self.tag.as_str());
        match self.kind {
            AppendKind::Append => writer.raw(" APPEND "),
            AppendKind::Replace { uid, target } => {
                writer.raw(if uid { " UID REPLACE " } else { " REPLACE " });
                write_seq_number(&mut writer.out, target);
                writer.raw(" ");
            }
        }
        writer.astring(&self.mailbox.0);
        self.message.write_to(&mut writer);
        writer.into_pieces_before_message()
    }
}

impl AppendMessage {
    /// The flags, the date and the mark of the literal, as they follow the mailbox or the message before. After the octets of a
    /// message whose literal has `utf8`, a `)` is due.
    pub fn write(&self, form: LiteralForm) -> Vec<u8> {
        let mut writer = CommandWriter::new(form);
        self.write_to(&mut writer);
        writer.out
    }

    fn write_to(&self, writer: &mut CommandWriter) {
        writer.raw(" ");
        if !self.flags.is_empty() {
            write_flag_list(&mut writer.out, &self.flags);
            writer.raw(" ");
        }
        if let Some(date) = self.date {
            write_date_time(&mut writer.out, date);
            writer.raw(" ");
        }
        writer.raw(if self.literal.utf8 { "UTF8 (" } else { "" });
        writer.literal_mark(self.literal.size, self.literal.binary);
    }
}
