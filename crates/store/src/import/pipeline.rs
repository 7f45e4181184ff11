//! From one source to its mailbox: a reader that makes messages, a writer that makes them durable in batches.
//!
//! Invariant: items come in the order of the source, and each says how far the source has been read when it is done; a batch and that
//! place become durable together. While a source is compared with the mailbox (see [`super::ledger`]) the place is written at the
//! end only: until then the comparison has to be done again.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use index::{NewEntry, Transaction};
use model::{DateTime, EmailId, Error, ErrorKind, MailboxId, Result};
use platform::{File, OpenMode};
use sha2::{Digest, Sha256};

use super::ledger::{self, Checksum, Known, Place};
use super::maildir::{Maildir, MaildirFile};
use super::source::{Kind, Source};
use super::{ImportNote, ImportOptions, ImportProgress, ImportReport, status};
use crate::edit::flags_of;
use crate::format::mbox::from_line;
use crate::format::mbox::scan::{Message, MessageFlags, Reader, not_an_mbox};
use crate::format::served::{self, Form};
use crate::{Account, FlagNames, PendingMessage};

/// Items that may wait between the two threads.
const QUEUE_ITEMS: usize = 256;
/// Octets that are read at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// What the reader has found.
struct Item {
    /// How far the source has been read: see [`Place::at`].
    at: u64,
    /// Octets of the source that are done.
    bytes_done: u64,
    found: Found,
}

enum Found {
    Message(Box<Prepared>),
    AlreadyThere,
    Note(ImportNote),
}

struct Prepared {
    message: PendingMessage,
    flags: FlagNames,
    internal_date: Option<DateTime>,
    /// What somebody should know about it.
    odd: Option<ImportNote>,
}

/// Takes items; `Break` ends the reading.
type Sink<'a> = dyn FnMut(Item) -> Result<ControlFlow<()>> + 'a;

/// Imports one source.
pub(super) fn run(
    account: &Account,
    source: &Source,
    options: &ImportOptions,
    report: &mut ImportReport,
    state: &mut ImportProgress,
    progress: &mut dyn FnMut(&ImportProgress) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let mailbox = mailbox_for(account, source)?;
    let opened = Opened::new(account, source)?;
    if let Kind::Maildir(maildir) = &source.kind {
        for (file, what) in &maildir.notes {
            report.note(ImportNote { file: file.clone(), offset: 0, skipped: false, what: what.clone() });
        }
    }
    let key = ledger::key(source, mailbox);
    let place = account.inner.state().annotation(&key).map(Place::from_value);
    let (resume, already_there) = match &place {
        Some(Some(place)) if opened.agrees_with(place)? => (place.at, place.messages),
        _ => (0, 0),
    };
    report.already_there += already_there;
    let known = match place {
        Some(_) if resume == 0 => Some(Known::read(account, mailbox)?),
        _ => None,
    };
    let done_before = state.bytes_done;
    let is_comparing = known.is_some();
    let mut reader = Reading { account, source, opened: &opened, known };
    let mut writer = Writer {
        account,
        options,
        mailbox,
        key,
        opened: &opened,
        is_comparing,
        at: resume,
        messages: already_there,
        done_before,
        batch: Vec::new(),
        batch_bytes: 0,
        report,
        state,
        progress,
    };
    let flow = if options.read_ahead {
        read_ahead(&mut reader, &mut writer, resume)?
    } else {
        reader.read(resume, &mut |item| writer.take(item))?
    };
    // A comparison that was ended early has not reached a place that may be remembered.
    writer.is_comparing &= flow.is_break();
    let last = writer.flush()?;
    if !report.mailboxes.contains(&source.mailbox) {
        report.mailboxes.push(source.mailbox.clone());
    }
    Ok(if flow.is_break() { flow } else { last })
}

/// Runs the reader on a thread of its own.
fn read_ahead(reader: &mut Reading<'_>, writer: &mut Writer<'_>, resume: u64) -> Result<ControlFlow<()>> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Item>(QUEUE_ITEMS);
        let reading = scope.spawn(move || {
            reader.read(resume, &mut |item| {
                // The receiver is gone when the writer has failed or was stopped.
                Ok(if sender.send(item).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })
        });
        let mut flow = ControlFlow::Continue(());
        for item in receiver.iter() {
            flow = writer.take(item)?;
            if flow.is_break() {
                break;
            }
        }
        drop(receiver);
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(if flow.is_break() { flow } else { read })
    })
}

fn mailbox_for(account: &Account, source: &Source) -> Result<MailboxId> {
    match account.mailbox(&source.mailbox) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let id = account.create_mailbox(&source.mailbox, &[])?;
            if source.subscribe {
                // Most programs show their user nothing else.
                account.set_subscribed(&source.mailbox, true)?;
            }
            Ok(id)
        }
        result => result,
    }
}

/// A source that can be read.
enum Opened<'a> {
    Mbox(Arc<dyn File>),
    Maildir(&'a Maildir),
}

impl<'a> Opened<'a> {
    fn new(account: &Account, source: &'a Source) -> Result<Self> {
        Ok(match &source.kind {
            Kind::Mbox(_) => Opened::Mbox(account.inner.env().disk.open(&source.path, OpenMode::Read)?),
            Kind::Maildir(maildir) => Opened::Maildir(maildir),
            Kind::Listed(_) => return Err(Error::new(ErrorKind::Invalid, "it is imported with its UIDs")),
        })
    }

    /// The digest of the place `at`.
    fn digest(&self, at: u64) -> Result<Checksum> {
        match self {
            Opened::Mbox(file) => Place::digest_of_mbox(&**file, at),
            Opened::Maildir(maildir) => {
                let mut hash = Sha256::new();
                for file in maildir.files.iter().take(usize::try_from(at).unwrap_or(usize::MAX)) {
                    hash.update(&file.base);
                    hash.update(b"\n");
                }
                Ok(ledger::checksum(hash))
            }
        }
    }

    /// Whether the source is at `place` as it was, so that reading can go on behind it.
    fn agrees_with(&self, place: &Place) -> Result<bool> {
        match self {
            Opened::Mbox(file) => Ok(place.agrees_with(&**file)? && is_followed_by_mail(&**file, place.at)?),
            Opened::Maildir(maildir) => {
                Ok(place.at <= maildir.files.len() as u64 && self.digest(place.at)? == place.digest)
            }
        }
    }
}

/// Makes messages of a source.
struct Reading<'a> {
    account: &'a Account,
    source: &'a Source,
    opened: &'a Opened<'a>,
    known: Option<Known>,
}

/// One message of a source, as the reader needs it.
struct Draft<'a> {
    file: &'a dyn File,
    path: &'a Path,
    bytes: Range<u64>,
    form: Form,
    flags: Option<FlagNames>,
    date: Option<DateTime>,
}

impl Reading<'_> {
    fn read(&mut self, from: u64, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        match self.opened {
            Opened::Mbox(file) => self.read_mbox(&**file, from, sink),
            Opened::Maildir(maildir) => self.read_maildir(maildir, from, sink),
        }
    }

    fn read_mbox(&mut self, file: &dyn File, from: u64, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let mut reader = Reader::new(file, from)?;
        let before = reader.preamble()?.ok_or_else(not_an_mbox)?;
        if !before.is_empty() {
            let what = format!("{} octets before the first From line are no message", before.end - before.start);
            let note = self.note(&self.source.path, before.start, what, true);
            if sink(Item { at: before.end, bytes_done: before.end, found: Found::Note(note) })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        while let Some(message) = reader.next_message()? {
            let flags = message.flags;
            if flags.has(MessageFlags::NO_BLANK_BEFORE) && !flags.has(MessageFlags::TEXT_BEFORE) {
                let note = self.note(&self.source.path, message.start, "no empty line before this From line", false);
                let item = Item { at: message.start, bytes_done: message.start, found: Found::Note(note) };
                if sink(item)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let draft = Draft {
                file,
                path: &self.source.path,
                bytes: message.content(),
                form: message.form(),
                flags: None,
                date: from_line_date(file, &message)?,
            };
            let found = self.prepare(draft)?;
            if sink(Item { at: message.next, bytes_done: message.next, found })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_maildir(&mut self, maildir: &Maildir, from: u64, sink: &mut Sink<'_>) -> Result<ControlFlow<()>> {
        let mut bytes_done = 0;
        for (n, file) in maildir.files.iter().enumerate() {
            bytes_done += file.len;
            if (n as u64) < from {
                continue;
            }
            let found = self.prepare_file(maildir, file)?;
            if sink(Item { at: n as u64 + 1, bytes_done, found })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn prepare_file(&mut self, maildir: &Maildir, file: &MaildirFile) -> Result<Found> {
        if !file.is_file {
            return Ok(Found::Note(self.note(&file.path, 0, "no plain file", true)));
        }
        let opened = match self.account.inner.env().disk.open(&file.path, OpenMode::Read) {
            Ok(opened) => opened,
            Err(error) => {
                return Ok(Found::Note(self.note(&file.path, 0, format!("it cannot be opened: {error}"), true)));
            }
        };
        let draft = Draft {
            file: &*opened,
            path: &file.path,
            bytes: 0..opened.len()?,
            form: Form { convert: !file.is_raw(), unquote: false },
            flags: Some(maildir.flags(file)),
            date: Some(DateTime { unix_seconds: file.modified.seconds, offset_minutes: file.offset_minutes() }),
        };
        self.prepare(draft)
    }

    fn note(&self, file: &Path, offset: u64, what: impl Into<String>, skipped: bool) -> ImportNote {
        ImportNote { file: file.to_owned(), offset, skipped, what: what.into() }
    }

    /// Reads a message and what its header says about its entry.
    fn prepare(&mut self, draft: Draft<'_>) -> Result<Found> {
        let Draft { file, path, mut bytes, mut form, .. } = draft;
        let offset = bytes.start;
        let skip = |what: &str| Ok(Found::Note(self.note(path, offset, what, true)));
        if bytes.is_empty() {
            return skip("an empty message");
        }
        let mut head = Vec::new();
        read_piece(file, bytes.start..bytes.end.min(bytes.start + PIECE_BYTES), &mut head)?;
        let header = head.get(..mime::header_len(&head)).unwrap_or(&head);
        if status::is_internal_data(header) {
            return skip("not mail: what another program keeps in this file for itself");
        }
        // Of a Maildir the file name says it all.
        let block = if draft.flags.is_none() { status::export_block(header) } else { None };
        let fields = block.as_ref().and_then(|block| header.get(..block.len)).unwrap_or(header);
        let (flags, is_expunged) = match draft.flags {
            Some(flags) => (flags, false),
            None => status::flags(fields),
        };
        if is_expunged {
            return skip("deleted by the program that wrote the file, which has not compacted it yet");
        }
        let mut date = draft.date.or_else(|| status::date(header));
        if let Some(block) = block {
            bytes.start += block.len as u64;
            bytes.end -= u64::from(block.is_cut);
            form.convert &= !block.is_raw;
            date = block.date.or(date);
        }
        let mut has_nul = false;
        let mut hash = self.known.is_some().then(Sha256::new);
        let mut writer = self.account.message_writer()?;
        let written = served::read(file, bytes, form, &mut |piece| {
            has_nul |= memchr::memchr(0, piece).is_some();
            if let Some(hash) = &mut hash {
                hash.update(piece);
            }
            writer.write(piece)
        });
        match written {
            Err(error) if error.kind() == ErrorKind::Limit => return skip(&error.to_string()),
            result => result?,
        }
        if let (Some(known), Some(hash)) = (&mut self.known, hash)
            && known.take(&ledger::checksum(hash))
        {
            return Ok(Found::AlreadyThere);
        }
        let odd = has_nul.then(|| self.note(path, offset, "it has NUL octets", false));
        let message = writer.finish()?;
        Ok(Found::Message(Box::new(Prepared { message, flags, internal_date: date, odd })))
    }
}

/// Whether a message begins at `at`, or the file ends there: so does one that has only grown.
fn is_followed_by_mail(file: &dyn File, at: u64) -> Result<bool> {
    Ok(Reader::new(file, at)?.preamble()?.is_some_and(|text| text.is_empty()))
}

/// The date of a message's `From ` line.
fn from_line_date(file: &dyn File, message: &Message) -> Result<Option<DateTime>> {
    let mut line = Vec::new();
    let end = message.header.min(message.start + from_line::LINE_BYTES_MAX as u64);
    read_piece(file, message.start..end, &mut line)?;
    Ok(from_line::parse_from_line(line.trim_ascii_end()))
}

/// Reads a range whole.
fn read_piece(file: &dyn File, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
    out.resize(usize::try_from(range.end - range.start).unwrap_or(usize::MAX), 0);
    Ok(file.read_exact_at(out, range.start)?)
}

/// Makes messages durable.
struct Writer<'a> {
    account: &'a Account,
    options: &'a ImportOptions,
    mailbox: MailboxId,
    key: String,
    opened: &'a Opened<'a>,
    is_comparing: bool,
    /// How far the source is done.
    at: u64,
    /// Messages of the source up to there.
    messages: u64,
    done_before: u64,
    batch: Vec<Prepared>,
    batch_bytes: u64,
    report: &'a mut ImportReport,
    state: &'a mut ImportProgress,
    progress: &'a mut dyn FnMut(&ImportProgress) -> ControlFlow<()>,
}

impl Writer<'_> {
    fn take(&mut self, item: Item) -> Result<ControlFlow<()>> {
        match item.found {
            Found::Note(note) => self.report.note(note),
            Found::AlreadyThere => {
                self.report.already_there += 1;
                self.messages += 1;
            }
            Found::Message(mut prepared) => {
                self.messages += 1;
                prepared.odd.take().into_iter().for_each(|note| self.report.note(note));
                self.batch_bytes += prepared.message.size();
                self.batch.push(*prepared);
            }
        }
        self.at = item.at;
        self.state.bytes_done = self.done_before.saturating_add(item.bytes_done);
        if self.batch.len() >= self.options.batch_messages || self.batch_bytes >= self.options.batch_bytes {
            return self.flush();
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Makes the batch durable, together with the place that it reaches.
    fn flush(&mut self) -> Result<ControlFlow<()>> {
        let batch = std::mem::take(&mut self.batch);
        let (count, bytes) = (batch.len() as u64, std::mem::take(&mut self.batch_bytes));
        let place = match self.is_comparing {
            true => None,
            false => Some(Place { at: self.at, messages: self.messages, digest: self.opened.digest(self.at)? }),
        };
        let dropped = self.account.commit(|transaction| {
            let mut dropped = Vec::new();
            for prepared in &batch {
                dropped.extend(add(transaction, self.mailbox, prepared)?);
            }
            if let Some(place) = &place {
                transaction.annotate_account(&self.key, Some(&place.to_value()))?;
            }
            Ok(dropped)
        })?;
        self.report.imported += count;
        self.report.imported_bytes += bytes;
        self.state.messages += count;
        for id in dropped {
            let what = format!("message {id} lost a keyword: the mailbox has all that it can have");
            let file = self.state.mailbox.as_ref().map_or_else(String::new, ToString::to_string);
            self.report.note(ImportNote { file: file.into(), offset: 0, skipped: false, what });
        }
        Ok((self.progress)(self.state))
    }
}

/// Adds one message; the answer names it when it has lost a keyword.
fn add(transaction: &mut Transaction, mailbox: MailboxId, prepared: &Prepared) -> Result<Option<EmailId>> {
    let Prepared { message, flags: FlagNames { system, keywords }, internal_date, .. } = prepared;
    let mut flags = flags_of(transaction, mailbox, &FlagNames { system: system.clone(), keywords: Vec::new() })?;
    let mut has_lost = false;
    for keyword in keywords {
        match transaction.keyword(mailbox, keyword) {
            Ok(bit) => flags = flags.with(bit),
            // Better without a keyword than without the message.
            Err(error) if error.kind() == ErrorKind::Limit => has_lost = true,
            Err(error) => return Err(error),
        }
    }
    let id = transaction.add_message(Arc::clone(&message.inner))?;
    let internal_date = internal_date.unwrap_or(DateTime::utc(transaction.now()));
    transaction.add_entry(mailbox, id, &NewEntry { uid: None, flags, internal_date, save_date: None })?;
    Ok(has_lost.then_some(id))
}
