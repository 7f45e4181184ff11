//! Mail to elsewhere: an account or one mailbox as mbox files or as a Maildir++ tree.
//!
//! Importing what was exported gives the same octets, flags and internal dates. What the form cannot say by itself is said where other
//! programs pass it over:
//!
//! - mbox: a block of fields on top of each message (Status, X-Status, X-Keywords, and `X-Mailyard` with the internal date and its
//!   zone). Lines are quoted as mboxrd does it, and written with LF. A message whose line ends are not all CRLF is written as it
//!   is (`raw`); one that does not end with a line end gets one (`cut`).
//! - Maildir: the octets with LF, or as they are when their line ends are not all CRLF, which the sizes `S=` and `W=` in the
//!   name tell; the internal date is the file's modification time, its zone in minutes is `Z=`.
//!
//! Nothing that is there is overwritten.

mod maildir;
mod mbox;
mod names;

pub(crate) use self::names::unescape;

use std::ops::ControlFlow;
use std::path::Path;

use model::{Error, ErrorKind, MailboxName, Result};

use crate::{Account, Entry, Reader, View};

/// The form to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportForm {
    /// A file a mailbox.
    Mbox,
    /// A directory a mailbox, a file a message.
    Maildir,
}

/// How to export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The form.
    pub form: ExportForm,
    /// One mailbox, which is written to the path itself; `None`: the whole account, to a directory at the path.
    pub mailbox: Option<MailboxName>,
    /// Whether messages of an mbox get the fields that keep flags and dates.
    pub status_fields: bool,
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions { form: ExportForm::Mbox, mailbox: None, status_fields: true }
    }
}

/// How far an export is, and in the end what it did.
#[derive(Clone, Debug, Default)]
pub struct ExportReport {
    /// Mailboxes that were written.
    pub mailboxes: u64,
    /// Messages that were written.
    pub messages: u64,
    /// Their octets, as stored.
    pub bytes: u64,
    /// What could not be written, or lost something, and why.
    pub notes: Vec<String>,
    /// The caller ended it.
    pub was_stopped: bool,
}

/// Writes the mail of `account` to `path`, where nothing is yet. `progress` is called now and then; `Break` ends the export.
///
/// A message that is damaged is left out and noted.
pub fn export(
    account: &Account,
    path: &Path,
    options: &ExportOptions,
    progress: &mut dyn FnMut(&ExportReport) -> ControlFlow<()>,
) -> Result<ExportReport> {
    let disk = &*account.inner.env().disk;
    if disk.exists(path)? {
        return Err(Error::new(ErrorKind::AlreadyExists, format!("{} is there already", path.display())));
    }
    let mut job = Job { account, options, report: ExportReport::default(), progress };
    match &options.mailbox {
        Some(name) => job.mailbox(account.mailbox(name)?, path)?,
        None => {
            disk.create_dir_all_durable(path)?;
            for info in account.mailboxes() {
                let Some(id) = info.id else { continue };
                let own = match options.form {
                    ExportForm::Mbox => names::mbox_path(&info.name),
                    ExportForm::Maildir => names::maildir_path(&info.name),
                };
                job.mailbox(id, &path.join(own))?;
                if job.report.was_stopped {
                    break;
                }
            }
        }
    }
    Ok(job.report)
}

/// An export under way.
struct Job<'a> {
    account: &'a Account,
    options: &'a ExportOptions,
    report: ExportReport,
    progress: &'a mut dyn FnMut(&ExportReport) -> ControlFlow<()>,
}

/// One message, read whole piece by piece.
struct Source<'a> {
    reader: &'a mut Reader,
    entry: Entry,
}

/// Octets that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;
/// After so many messages the caller is told.
const PROGRESS_MESSAGES: u64 = 500;

impl Job<'_> {
    fn mailbox(&mut self, id: model::MailboxId, path: &Path) -> Result<()> {
        let view = self.account.view(id, false)?;
        match self.options.form {
            ExportForm::Mbox => mbox::write(self, &view, path),
            ExportForm::Maildir => maildir::write(self, &view, path),
        }
        .map_err(|error| error.context(path.display()))?;
        self.report.mailboxes += 1;
        Ok(())
    }

    /// Gives each message of the view to `write`. What is damaged is noted.
    fn messages(&mut self, view: &View, write: &mut dyn FnMut(Source<'_>) -> Result<()>) -> Result<()> {
        let mut reader = self.account.reader();
        for entry in view.all_rows() {
            match write(Source { reader: &mut reader, entry }) {
                Ok(()) => {
                    self.report.messages += 1;
                    self.report.bytes += u64::from(entry.size);
                }
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Expunged) => {
                    self.report.notes.push(format!("UID {} was left out: {error}", entry.uid));
                }
                Err(error) => return Err(error),
            }
            if self.report.messages.is_multiple_of(PROGRESS_MESSAGES) && (self.progress)(&self.report).is_break() {
                self.report.was_stopped = true;
                break;
            }
        }
        Ok(())
    }
}

impl Source<'_> {
    /// Gives the octets to `take`.
    fn for_pieces(&mut self, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut piece = Vec::new();
        let mut at = 0;
        while at < u64::from(self.entry.size) {
            piece.clear();
            self.reader.read(self.entry.email_id, at..at.saturating_add(PIECE_BYTES), &mut piece)?;
            if piece.is_empty() {
                return Err(Error::new(ErrorKind::Corrupt, "the message is shorter than its entry says"));
            }
            take(&piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Looks at the message once: how its lines end.
    fn shape(&mut self) -> Result<Shape> {
        let mut shape = Shape::default();
        self.for_pieces(&mut |piece| {
            shape.push(piece);
            Ok(())
        })?;
        Ok(shape)
    }
}

/// How the lines of a message end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The last two octets.
    last: [u8; 2],
    /// LFs that are not the end of a CRLF, or whose CRLF follows another CR: writing them as LF would lose something.
    pub(crate) is_raw: bool,
    /// Octets that writing CRLF as LF saves.
    line_ends: u64,
}

impl Shape {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        for at in memchr::memchr_iter(b'\n', piece) {
            let before = |n: usize| match at.checked_sub(n) {
                Some(at) => piece.get(at).copied(),
                // In the piece before: the last octet is one before this piece's first.
                None => self.last.get((1 + at).wrapping_sub(n).wrapping_add(1)).copied(),
            };
            self.is_raw |= before(1) != Some(b'\r') || before(2) == Some(b'\r');
            self.line_ends += 1;
        }
        match piece {
            [.., a, b] => self.last = [*a, *b],
            [a] => self.last = [self.last[1], *a],
            [] => {}
        }
    }

    /// Whether the message ends with a line end.
    fn ends_line(&self) -> bool {
        self.last[1] == b'\n'
    }
}

/// Appends `piece` with LF for CRLF; a CR at the end of the last piece waits in `held`.
pub(crate) fn to_lf(piece: &[u8], held: &mut bool, out: &mut Vec<u8>) {
    let mut rest = piece;
    if *held && !rest.is_empty() {
        *held = false;
        if rest.first() != Some(&b'\n') {
            out.push(b'\r');
        }
    }
    while let Some(at) = memchr::memchr(b'\r', rest) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        match after.get(1) {
            Some(b'\n') => {}
            Some(_) => out.push(b'\r'),
            None => *held = true,
        }
        rest = after.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    proptest::proptest! {
        #[test]
        fn shape_and_line_ends_in_any_cut(text in "[a\r\n]{0,16}", cuts in proptest::collection::vec(0usize..4, 0..12)) {
            let bytes = text.as_bytes();
            let (mut shape, mut held, mut out) = (Shape::default(), false, Vec::new());
            let mut rest = bytes;
            for cut in cuts.into_iter().chain([16, 16]) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                shape.push(piece);
                to_lf(piece, &mut held, &mut out);
                rest = after;
            }
            if held {
                out.push(b'\r');
            }
            let expected = text.replace("\r\n", "\n");
            proptest::prop_assert_eq!(&out, expected.as_bytes());
            let is_exact = out.iter().enumerate().flat_map(|(n, byte)| {
                let bare = *byte == b'\n' && (n == 0 || out[n - 1] != b'\r');
                if bare { b"\r\n".to_vec() } else { vec![*byte] }
            }).eq(bytes.iter().copied());
            proptest::prop_assert_eq!(!shape.is_raw, is_exact);
            proptest::prop_assert_eq!(shape.ends_line(), bytes.ends_with(b"\n"));
        }
    }
}
