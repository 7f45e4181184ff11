//! The messages of a session, and how they are sent.

use std::sync::Arc;

use model::{Error, ErrorKind, MailboxName, NumSet, Result, SeqNum, SystemFlag};
use store::{Account, Entry, FlagNames, Pending, Reader, StoreFlags, StoreMode, View};

use super::{Settings, UidlFormat};
use crate::Output;

/// Octets of a message that are read at a time.
const PIECE_BYTES: u64 = 64 << 10;

/// INBOX as it was at the login.
pub(super) struct Maildrop {
    pub(super) account: Arc<Account>,
    view: View,
    reader: Reader,
    deleted: NumSet,
    retrieved: NumSet,
}

impl Maildrop {
    pub(super) fn open(account: Arc<Account>) -> Result<Maildrop> {
        let inbox = account.mailbox(&MailboxName::inbox())?;
        let view = account.view(inbox, true)?;
        let reader = account.reader();
        Ok(Maildrop { account, view, reader, deleted: NumSet::new(), retrieved: NumSet::new() })
    }

    /// A message that is not marked as deleted.
    pub(super) fn entry(&self, number: u32) -> Option<Entry> {
        if self.deleted.contains(number) {
            return None;
        }
        self.view.entry(SeqNum::new(number)?)
    }

    /// How many there are, and their octets, without those that are marked.
    pub(super) fn count(&self) -> (u64, u64) {
        let left = self.view.all_rows().filter(|entry| !self.deleted.contains(entry.seq.get()));
        left.fold((0, 0), |(count, octets), entry| (count + 1, octets + u64::from(entry.size)))
    }

    pub(super) fn delete(&mut self, number: u32) {
        self.deleted.insert(number);
    }

    pub(super) fn reset(&mut self) {
        self.deleted = NumSet::new();
    }

    pub(super) fn retrieved(&mut self, number: u32) {
        self.retrieved.insert(number);
    }

    /// The unique name of a message.
    pub(super) fn name(&self, entry: &Entry, format: &UidlFormat) -> String {
        format.name(entry.uid, self.view.uid_validity())
    }

    /// QUIT: what is marked is expunged, all of it or nothing; what was retrieved is seen. `None`: there is nothing to do.
    pub(super) fn finish(&self, settings: &Settings) -> Result<Option<Pending<()>>> {
        let mark_seen = settings.mark_seen;
        let doomed = match settings.keep_retrieved {
            true => self.view.uids_of(&self.deleted),
            // RFC 2449 §6.7: EXPIRE 0 deletes what was retrieved without a DELE.
            false => self.view.uids_of(&self.deleted.union(&self.retrieved)),
        };
        let seen = self.view.uids_of(&self.retrieved).difference(&doomed);
        if doomed.is_empty() && (seen.is_empty() || !mark_seen) {
            return Ok(None);
        }
        let mailbox = self.view.mailbox();
        let add = |flag| StoreFlags {
            mode: StoreMode::Add,
            flags: FlagNames { system: vec![flag], keywords: Vec::new() },
            unchanged_since: None,
        };
        let pending = self.account.begin(move |edit| {
            if mark_seen && !seen.is_empty() {
                edit.store_flags(mailbox, &seen, &add(SystemFlag::Seen))?;
            }
            if !doomed.is_empty() {
                edit.store_flags(mailbox, &doomed, &add(SystemFlag::Deleted))?;
                edit.expunge(mailbox, Some(&doomed))?;
            }
            Ok(())
        })?;
        Ok(Some(pending))
    }
}

/// A list or a message on its way.
pub(super) enum Sending {
    /// `LIST` or `UIDL` of everything, from a number on.
    List { next: u32, names: Option<UidlFormat> },
    /// A message.
    Message(Message),
}

/// A message on its way: its octets from `at` to `end`, and of its body no more than so many lines.
pub(super) struct Message {
    pub(super) entry: Entry,
    at: u64,
    end: u64,
    header: u64,
    lines_left: Option<u64>,
    stuffing: Stuffing,
}

impl Message {
    /// Of RETR, or of TOP with its number of lines. Nothing was said yet.
    pub(super) fn new(maildrop: &mut Maildrop, entry: Entry, lines: Option<u64>) -> Result<Message> {
        let (header, end) = maildrop.reader.extent(entry.email_id)?;
        Ok(Message { entry, at: 0, end, header, lines_left: lines, stuffing: Stuffing::default() })
    }
}

impl Sending {
    /// Writes until the output is full; whether that was all. After an error what follows would be taken for the message.
    pub(super) fn pull(&mut self, maildrop: &mut Maildrop, out: &mut Output) -> Result<bool> {
        match self {
            Sending::List { next, names } => {
                for entry in maildrop.view.rows(*next..=u32::MAX) {
                    if out.is_full() {
                        *next = entry.seq.get();
                        return Ok(false);
                    }
                    let number = entry.seq.get();
                    if maildrop.deleted.contains(number) {
                        continue;
                    }
                    match names {
                        Some(format) => out.push_fmt(format_args!("{number} {}\r\n", maildrop.name(&entry, format))),
                        None => out.push_fmt(format_args!("{number} {}\r\n", entry.size)),
                    }
                }
                out.push_str(".\r\n");
                Ok(true)
            }
            Sending::Message(message) => message.pull(&mut maildrop.reader, out),
        }
    }
}

impl Message {
    fn pull(&mut self, reader: &mut Reader, out: &mut Output) -> Result<bool> {
        let mut piece = Vec::new();
        while !out.is_full() {
            if self.at >= self.end || self.lines_left == Some(0) && self.at >= self.header {
                self.stuffing.finish(out);
                return Ok(true);
            }
            let mut until = self.end.min(self.at.saturating_add(PIECE_BYTES));
            if self.at < self.header {
                until = until.min(self.header);
            }
            piece.clear();
            reader.read(self.entry.email_id, self.at..until, &mut piece)?;
            if piece.is_empty() {
                return Err(Error::new(ErrorKind::Corrupt, "a message is shorter than it was"));
            }
            let mut bytes = piece.as_slice();
            if let Some(lines_left) = self.lines_left.as_mut().filter(|_| self.at >= self.header) {
                bytes = first_lines(bytes, lines_left);
            }
            self.stuffing.push(bytes, out);
            self.at += piece.len() as u64;
        }
        Ok(false)
    }
}

/// As much as belongs to the next lines; counts them down.
fn first_lines<'b>(bytes: &'b [u8], left: &mut u64) -> &'b [u8] {
    let mut end = 0;
    while *left > 0 {
        let rest = bytes.get(end..).unwrap_or_default();
        let Some(line) = rest.iter().position(|byte| *byte == b'\n') else { return bytes };
        end += line + 1;
        *left -= 1;
    }
    bytes.get(..end).unwrap_or_default()
}

/// RFC 1939 §3: a line that begins with a dot gets one more, and a line with nothing but a dot ends it all.
#[derive(Debug, Default)]
struct Stuffing {
    is_inside_line: bool,
}

impl Stuffing {
    fn push(&mut self, mut bytes: &[u8], out: &mut Output) {
        while let Some(first) = bytes.first() {
            if !self.is_inside_line && *first == b'.' {
                out.push(b".");
            }
            // A bare LF ends a line for some clients: stuffed behind it too, and no harm for the others that take the dot away.
            let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
            let (line, rest) = bytes.split_at(end);
            out.push(line);
            self.is_inside_line = !line.ends_with(b"\n");
            bytes = rest;
        }
    }

    fn finish(&mut self, out: &mut Output) {
        out.push_str(if self.is_inside_line { "\r\n.\r\n" } else { ".\r\n" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuffed(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut stuffing, mut out) = (Stuffing::default(), Output::new(1000));
        pieces.iter().for_each(|piece| stuffing.push(piece, &mut out));
        stuffing.finish(&mut out);
        out.pending().to_vec()
    }

    #[test]
    fn dots() {
        assert_eq!(stuffed(&[b""]), b".\r\n");
        assert_eq!(stuffed(&[b".\r\n..\r\na.\r\n"]), b"..\r\n...\r\na.\r\n.\r\n");
        assert_eq!(stuffed(&[b"no end"]), b"no end\r\n.\r\n");
        let text: &[u8] = b"a\r\n.b\r\n\r\n..\r\n.";
        let whole = stuffed(&[text]);
        assert_eq!(whole, b"a\r\n..b\r\n\r\n...\r\n..\r\n.\r\n");
        for cut in 0..text.len() {
            assert_eq!(stuffed(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn lines_of_a_body() {
        let mut left = 2;
        assert_eq!(first_lines(b"a\r\nb\r\nc\r\n", &mut left), b"a\r\nb\r\n");
        assert_eq!((left, first_lines(b"x", &mut left)), (0, &b""[..]));
        let mut left = 5;
        assert_eq!((first_lines(b"a\r\nb", &mut left), left), (&b"a\r\nb"[..], 4));
    }
}
