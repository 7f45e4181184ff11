//! Mail from elsewhere: mbox files, Maildirs, and directories of them.
//!
//! Decisions:
//! - Bare LF becomes CRLF, everything else stays as it is; what an mbox quotes is unquoted (see [`crate::format::mbox`]).
//! - Flags come from Maildir file names, and from Status, X-Status, X-Keywords and the Mozilla fields of an mbox; these fields
//!   stay in the message, but for those that our own export put there.
//! - The internal date is that of the `From ` line, else of the first Received field, else of the Date field; of a Maildir file its
//!   modification time.
//! - What a server has kept beside the mail comes with it: UIDs, UIDVALIDITY, keywords and subscriptions of Dovecot (Maildir and mbox), Courier and Cyrus,
//!   so that clients load nothing again (`listed.rs`).
//! - **Run twice, nothing is imported twice**, also when the first run was killed: see `ledger.rs`.
//! - Nothing that is odd stops an import: what was left out or looks damaged is in the report with file, offset and reason.
//!
//! One thread reads and parses, the calling thread writes; messages are made durable in batches. Foreign files are only read.

mod cyrus;
mod ledger;
mod listed;
mod maildir;
mod mbox_listed;
mod pipeline;
mod remote;
mod source;
mod status;
pub(crate) mod subscriptions;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use model::{Error, MailboxName, Result};

pub(crate) use self::remote::flags_as_far_as_possible;
pub use self::remote::{Added, Adopted, RemoteMailbox, RemoteMessage};
use self::source::{Kind, Source};
pub(crate) use self::status::{CUT, EXPORT_FIELD, RAW};
use crate::Account;

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Where it goes: the mailbox of a single mbox or Maildir, the mailbox above those of a tree. `None`: mailboxes are named as the
    /// files and directories are, and the top of a Maildir++ tree is INBOX.
    pub mailbox: Option<MailboxName>,
    /// Whose mailboxes are wanted of a spool that has those of many users.
    pub owner: Option<String>,
    /// Messages that become durable together, at most.
    pub batch_messages: usize,
    /// Octets that become durable together, about.
    pub batch_bytes: u64,
    /// Whether a second thread reads ahead. Without it the same calls come in the same order on every run.
    pub read_ahead: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { mailbox: None, owner: None, batch_messages: 2_000, batch_bytes: 8 << 20, read_ahead: true }
    }
}

/// How far an import is.
#[derive(Clone, Debug, Default)]
pub struct ImportProgress {
    /// Octets of the files that are done.
    pub bytes_done: u64,
    /// Octets of all files.
    pub bytes_total: u64,
    /// Messages that are durable in the account now and were not before.
    pub messages: u64,
    /// The mailbox that is being filled.
    pub mailbox: Option<MailboxName>,
}

/// Something about one place of one file that somebody should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The file.
    pub file: PathBuf,
    /// Where in the file, octets.
    pub offset: u64,
    /// Whether a message was left out.
    pub skipped: bool,
    /// What is the matter.
    pub what: String,
}

/// Notes that a report keeps.
pub const NOTES_MAX: usize = 100_000;

/// What an import did.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    /// Messages that were added.
    pub imported: u64,
    /// Their octets, as stored.
    pub imported_bytes: u64,
    /// Messages that an earlier import had brought, also those that were expunged since.
    pub already_there: u64,
    /// Messages that were left out; each has a note.
    pub skipped: u64,
    /// Every skipped or odd message, in the order of the files; [`NOTES_MAX`] at most.
    pub notes: Vec<ImportNote>,
    /// How many notes were left out.
    pub notes_left_out: u64,
    /// The mailboxes that were filled.
    pub mailboxes: Vec<MailboxName>,
    /// The caller ended it; what was imported stays, and the next run goes on from there.
    pub was_stopped: bool,
}

impl ImportReport {
    fn note(&mut self, note: ImportNote) {
        self.skipped += u64::from(note.skipped);
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.notes_left_out += 1;
        }
    }
}

/// Imports the mbox, the Maildir or the tree of them at `path` into `account`. Give an absolute path: by it a second run knows the
/// source again.
///
/// `progress` is called on this thread, after every batch; `Break` ends the import.
pub fn import(
    account: &Account,
    path: &Path,
    options: &ImportOptions,
    progress: &mut dyn FnMut(&ImportProgress) -> ControlFlow<()>,
) -> Result<ImportReport> {
    let mut report = ImportReport::default();
    let disk = &*account.inner.env().disk;
    let source::Tree { sources, notes, subscribed } = source::find(disk, path, options)?;
    notes.into_iter().for_each(|note| report.note(note));
    if sources.is_empty() && subscribed.is_none() {
        let why =
            format!("{}: neither an mbox nor a Maildir, nor a directory of them, nor a Cyrus spool", path.display());
        return Err(Error::new(model::ErrorKind::Invalid, why));
    }
    let mut state =
        ImportProgress { bytes_total: sources.iter().map(Source::bytes).sum(), ..ImportProgress::default() };
    for source in sources {
        let done_before = state.bytes_done;
        let bytes = source.bytes();
        state.mailbox = Some(source.mailbox.clone());
        let path = source.path.clone();
        let flow = bring(account, source, options, &mut report, &mut state, progress)
            .map_err(|error| error.context(path.display()))?;
        if flow.is_break() {
            report.was_stopped = true;
            break;
        }
        state.bytes_done = done_before.saturating_add(bytes);
    }
    if !report.was_stopped {
        subscribed.unwrap_or_default().iter().try_for_each(|name| account.set_subscribed(name, true))?;
    }
    let _ = progress(&state);
    Ok(report)
}

/// Imports one source, with its UIDs where it has them.
fn bring(
    account: &Account,
    source: Source,
    options: &ImportOptions,
    report: &mut ImportReport,
    state: &mut ImportProgress,
    progress: &mut dyn FnMut(&ImportProgress) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let goes_on = listed::was_brought_without_uids(account, &source);
    let listed = match &source.kind {
        Kind::Mbox(bytes) if !goes_on && *bytes > 0 => mbox_listed::list(&*account.inner.env().disk, &source.path)?,
        Kind::Maildir(maildir) if !goes_on => maildir.list(),
        Kind::Listed(listed) => Some(listed.clone()),
        _ => None,
    };
    match listed {
        Some(listed) => listed::run(account, &source, listed, options, report, state, progress),
        None => pipeline::run(account, &source, options, report, state, progress),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_notes_are_kept_and_the_others_are_counted() {
        let mut report = ImportReport::default();
        let note = |n: usize| ImportNote {
            file: PathBuf::from("x"),
            offset: n as u64,
            skipped: n == NOTES_MAX,
            what: String::new(),
        };
        (0..NOTES_MAX).for_each(|n| report.note(note(n)));
        assert_eq!((report.notes.len(), report.notes_left_out, report.skipped), (NOTES_MAX, 0, 0));
        report.note(note(NOTES_MAX));
        assert_eq!((report.notes.len(), report.notes_left_out, report.skipped), (NOTES_MAX, 1, 1));
    }
}
