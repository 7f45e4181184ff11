//! A mailbox whose server has left the UIDs of its messages beside them: it comes with its UIDVALIDITY and UIDs, so that clients load nothing again.
//!
//! The UIDs there say what was brought already, as they do for another IMAP server: [`super::remote`] keeps them. What lies here are the messages that have no
//! UID yet, since the server has not seen them (in a Maildir, what was delivered last). They get those that the server would give next, and stay *guests*: the
//! account remembers by what they are known (a file name, a digest) until the server has given them UIDs of its own. Then these count.
//!
//! Invariants:
//! - The guests are remembered before their messages are added: whatever kills an import, the next run knows which message each of their UIDs is for.
//! - Nothing here is expunged, and flags here change only when those there have changed since the last run.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use model::{DateTime, ErrorKind, MailboxId, MailboxName, Result, Uid, UidValidity};
use platform::OpenMode;
use sha2::{Digest, Sha256};

use super::remote::{Adopted, RemoteMailbox, RemoteMessage};
use super::source::Source;
use super::{ImportNote, ImportOptions, ImportProgress, ImportReport, ledger, status};
use crate::format::mbox::fields::served_header;
use crate::format::served::{self, Form};
use crate::{Account, FlagNames};

/// Messages that may wait between the two threads.
const QUEUE_MESSAGES: usize = 64;
/// Guests that one annotation remembers: twelve octets each.
const GUESTS_PER_ANNOTATION: usize = index::ANNOTATION_VALUE_BYTES_MAX / GUEST_BYTES;
const GUEST_BYTES: usize = 12;
/// Octets of a file in which a date is looked for.
const HEAD_BYTES: u64 = 256 << 10;
/// The highest modseq of another server that ours is raised above (RFC 7162 allows up to 2^63): damage must not use them up.
const MODSEQ_MAX: u64 = 1 << 53;

/// What somebody should know: of which file, and what is the matter.
pub(super) type FileNotes = Vec<(PathBuf, String)>;

/// What the server has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) uid_validity: UidValidity,
    /// The UID that the server would give next; never 0.
    pub(super) next_uid: u32,
    /// The highest modseq there, 0 when it is not known.
    pub(super) modseq: u64,
    /// In any order; no UID is there twice.
    pub(super) messages: Vec<ListedMessage>,
    /// What is odd, or cannot be kept.
    pub(super) notes: FileNotes,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedMessage {
    /// The UID that it has there.
    pub(super) uid: Option<Uid>,
    /// By what it is known while it has none.
    pub(super) name: Vec<u8>,
    pub(super) path: PathBuf,
    /// Where in the file its octets are, and how they are read.
    pub(super) content: Content,
    pub(super) flags: FlagNames,
    /// `None`: what its header says.
    pub(super) internal_date: Option<DateTime>,
    /// Seconds since 1970; `None`: not known.
    pub(super) save_date: Option<i64>,
}

/// The octets of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A file of so many octets.
    Whole { bytes: u64, form: Form },
    /// A part of an mbox: the fields in which programs keep what they know of a message are not part of it.
    Mbox { header: Range<u64>, body: Range<u64>, form: Form },
}

impl Content {
    fn bytes(&self) -> u64 {
        match self {
            Content::Whole { bytes, .. } => *bytes,
            Content::Mbox { header, body, .. } => body.end.saturating_sub(header.start),
        }
    }

    fn offset(&self) -> u64 {
        match self {
            Content::Whole { .. } => 0,
            Content::Mbox { header, .. } => header.start,
        }
    }
}

impl Listed {
    /// Octets of all messages.
    pub(super) fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.content.bytes()).fold(0, u64::saturating_add)
    }
}

/// Imports one mailbox.
pub(super) fn run(
    account: &Account,
    source: &Source,
    listed: Listed,
    options: &ImportOptions,
    report: &mut ImportReport,
    state: &mut ImportProgress,
    progress: &mut dyn FnMut(&ImportProgress) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let mut note = |file: &Path, offset: u64, what: String, skipped: bool| {
        report.note(ImportNote { file: file.to_owned(), offset, skipped, what });
    };
    listed.notes.iter().for_each(|(file, what)| note(file, 0, what.clone(), false));
    let is_new = account.mailbox(&source.mailbox).is_err();
    let Some((mailbox, key)) = adopt(account, &source.mailbox, &source.path, listed.uid_validity)? else {
        let what = "its UIDVALIDITY is another one than at the last import, so that old and new mail cannot be told apart: left out; \
                    import it into another --mailbox";
        note(&source.path, 0, what.to_owned(), true);
        return Ok(ControlFlow::Continue(()));
    };
    if !report.mailboxes.contains(&source.mailbox) {
        report.mailboxes.push(source.mailbox.clone());
    }
    if source.subscribe && is_new {
        // Most programs show their user nothing else.
        account.set_subscribed(&source.mailbox, true)?;
    }
    if !mailbox.keeps_uids() {
        report.note(ImportNote {
            file: source.path.clone(),
            offset: 0,
            skipped: false,
            what: format!("the mailbox {} has mail of its own: UIDs and UIDVALIDITY are not kept", source.mailbox),
        });
    }
    let mut filling = Filling { account, options, mailbox, report, state, progress, path: &source.path };
    filling.raise_modseq(&listed)?;
    let next_uid = listed.next_uid;
    let coming = filling.sort_out(&key, listed)?;
    let flow = filling.bring(coming)?;
    if flow.is_continue() {
        filling.raise_uidnext(next_uid)?;
    }
    Ok(flow)
}

/// Makes the mailbox ready; with it, what the keys of its guests begin with. `None`: another UIDVALIDITY.
fn adopt(
    account: &Account,
    name: &MailboxName,
    path: &Path,
    uid_validity: UidValidity,
) -> Result<Option<(RemoteMailbox, String)>> {
    let origin = format!("file {}", path.display());
    let mailbox = match account.adopt(name, &[], &origin, uid_validity)? {
        Adopted::Ready(mailbox) => mailbox,
        Adopted::OtherUidValidity => return Ok(None),
    };
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    let key = format!("import/guests/{}/{}", mailbox.id(), ledger::hex(&ledger::checksum(hash)));
    Ok(Some((mailbox, key)))
}

/// A message on its way, with its UID there.
struct Coming {
    uid: Uid,
    message: ListedMessage,
}

/// A mailbox that is being filled.
struct Filling<'a> {
    account: &'a Account,
    options: &'a ImportOptions,
    mailbox: RemoteMailbox,
    report: &'a mut ImportReport,
    state: &'a mut ImportProgress,
    progress: &'a mut dyn FnMut(&ImportProgress) -> ControlFlow<()>,
    path: &'a Path,
}

impl Filling<'_> {
    fn note(&mut self, file: &Path, offset: u64, what: impl Into<String>, skipped: bool) {
        self.report.note(ImportNote { file: file.to_owned(), offset, skipped, what: what.into() });
    }

    /// What comes has higher modseqs than any that the server has given, so that clients that know these hear of every flag (RFC 7162 §3.1.2.1).
    fn raise_modseq(&self, listed: &Listed) -> Result<()> {
        let is_first = self.mailbox.done() == 0 && self.mailbox.keeps_uids();
        if !is_first || listed.modseq > MODSEQ_MAX {
            return Ok(());
        }
        let id = self.mailbox.id();
        self.account.commit(|transaction| {
            let now = transaction.modseq().0;
            if now <= listed.modseq {
                transaction.skip_modseqs(listed.modseq - now + 1);
                transaction.skip_uids(id, Uid::FIRST)?;
            }
            Ok(())
        })
    }

    /// UIDs that the server has given, and whose messages are gone, are not given again (RFC 9051 §2.3.1.1).
    fn raise_uidnext(&self, next: u32) -> Result<()> {
        let id = self.mailbox.id();
        let Some(next) = Uid::new(next).filter(|_| self.mailbox.keeps_uids()) else { return Ok(()) };
        self.account.commit(|transaction| {
            if transaction.mailbox(id)?.uidnext().is_some_and(|here| here < next) {
                transaction.skip_uids(id, next)?;
            }
            Ok(())
        })
    }

    /// Gives each message its UID there, brings the flags of those that were brought before, and answers with the others, UIDs rising.
    fn sort_out(&mut self, key: &str, listed: Listed) -> Result<Vec<Coming>> {
        let mut guests = Guests::load(self.account, key);
        let (mut moved, mut stale) = (Vec::new(), Vec::new());
        let mut highest = listed.messages.iter().filter_map(|message| message.uid).map(Uid::get).max().unwrap_or(0);
        for message in &listed.messages {
            let Some(uid) = message.uid else { continue };
            let name = checksum(&message.name);
            match guests.by_name.get(&name) {
                Some(guest) if *guest == uid.get() => {}
                Some(guest) => moved.push((*guest, uid.get())),
                None if guests.uids.contains_key(&uid.get()) => stale.push(uid.get()),
                None => {}
            }
        }
        let mut kept = Vec::new();
        highest = highest.max(listed.next_uid.saturating_sub(1)).max(self.mailbox.done());
        highest = highest.max(guests.uids.keys().copied().max().unwrap_or(0));
        let mut coming = Vec::with_capacity(listed.messages.len());
        for message in listed.messages {
            let name = checksum(&message.name);
            let uid = message.uid.map(Uid::get).or_else(|| {
                let known = guests.by_name.remove(&name);
                let uid = known.or_else(|| highest.checked_add(1))?;
                highest = highest.max(uid);
                kept.push((uid, name));
                Some(uid)
            });
            match uid.and_then(Uid::new) {
                Some(uid) => coming.push(Coming { uid, message }),
                None => self.note(&message.path, message.content.offset(), "the mailbox has used its last UID", true),
            }
        }
        coming.sort_by_key(|coming| coming.uid);
        self.mailbox.renumber(self.account, &moved, &stale)?;
        Guests::save(self.account, key, guests.chunks, &kept)?;
        let (known, new): (Vec<Coming>, Vec<Coming>) =
            coming.into_iter().partition(|coming| self.mailbox.has_brought(coming.uid.get()));
        self.report.already_there += known.len() as u64;
        self.state.bytes_done += known.iter().map(|known| known.message.content.bytes()).sum::<u64>();
        self.bring_flags(&known, &new)?;
        Ok(new)
    }

    /// Flags of messages that were brought before, when any has changed there since.
    fn bring_flags(&mut self, known: &[Coming], new: &[Coming]) -> Result<()> {
        let mut hash = Sha256::new();
        let mut all: Vec<&Coming> = known.iter().chain(new).collect();
        all.sort_by_key(|coming| coming.uid);
        for coming in all {
            hash.update(format!("{}", coming.uid));
            for flag in &coming.message.flags.system {
                hash.update(flag.as_str());
            }
            for keyword in &coming.message.flags.keywords {
                hash.update(format!(" {keyword}"));
            }
            hash.update("\n");
        }
        let digest = ledger::checksum(hash).iter().take(7).fold(1u64, |digest, byte| digest << 8 | u64::from(*byte));
        if self.mailbox.modseq() == digest {
            return Ok(());
        }
        if !known.is_empty() && self.mailbox.knows_pairs() {
            let flags = known.iter().map(|known| (known.uid, known.message.flags.clone())).collect();
            self.mailbox.set_flags(self.account, flags)?;
        }
        self.mailbox.reached(self.account, digest)
    }

    /// Reads and adds messages, a batch at a time.
    fn bring(&mut self, coming: Vec<Coming>) -> Result<ControlFlow<()>> {
        let account = self.account;
        if !self.options.read_ahead {
            let mut batch = Batch::default();
            for coming in coming {
                let read = read(account, coming);
                if self.take(read?, &mut batch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return self.flush(&mut batch);
        }
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(QUEUE_MESSAGES);
            scope.spawn(move || {
                for coming in coming {
                    // The receiver is gone when the writer has failed or was stopped.
                    if sender.send(read(account, coming)).is_err() {
                        break;
                    }
                }
            });
            let mut batch = Batch::default();
            for read in receiver {
                if self.take(read?, &mut batch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.flush(&mut batch)
        })
    }

    fn take(&mut self, read: Read, batch: &mut Batch) -> Result<ControlFlow<()>> {
        self.state.bytes_done = self.state.bytes_done.saturating_add(read.bytes);
        read.notes.into_iter().for_each(|note| self.report.note(note));
        if let Some(message) = read.message {
            batch.bytes += message.message.size();
            batch.files.push((read.path, read.offset));
            batch.messages.push(message);
        }
        if batch.messages.len() >= self.options.batch_messages || batch.bytes >= self.options.batch_bytes {
            return self.flush(batch);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn flush(&mut self, batch: &mut Batch) -> Result<ControlFlow<()>> {
        let Batch { messages, bytes, files } = std::mem::take(batch);
        let count = messages.len() as u64;
        if count > 0 {
            let uids: Vec<Uid> = messages.iter().map(|message| message.uid).collect();
            let added = self.mailbox.add(self.account, messages, 0)?;
            self.report.imported += count;
            self.report.imported_bytes += bytes;
            self.state.messages += count;
            for uid in added.lost_keywords {
                let (path, offset) = uids
                    .iter()
                    .position(|other| *other == uid)
                    .and_then(|at| files.get(at))
                    .cloned()
                    .unwrap_or_default();
                self.note(&path, offset, "it lost a keyword: the mailbox has all that it can have", false);
            }
            if added.other_uids > 0 {
                let what = format!("{} messages could not keep their UIDs: these were given here", added.other_uids);
                let path = self.path;
                self.note(path, 0, what, false);
            }
        }
        Ok((self.progress)(self.state))
    }
}

/// What becomes durable together.
#[derive(Default)]
struct Batch {
    messages: Vec<RemoteMessage>,
    bytes: u64,
    files: Vec<(PathBuf, u64)>,
}

/// A message that was read, or why it was not.
struct Read {
    message: Option<RemoteMessage>,
    path: PathBuf,
    offset: u64,
    bytes: u64,
    notes: Vec<ImportNote>,
}

fn read(account: &Account, coming: Coming) -> Result<Read> {
    let Coming { uid, message: ListedMessage { path, content, flags, internal_date, save_date, .. } } = coming;
    let (offset, bytes) = (content.offset(), content.bytes());
    let mut read = Read { message: None, path, offset, bytes, notes: Vec::new() };
    let note = |read: &mut Read, what: String, skipped: bool| {
        read.notes.push(ImportNote { file: read.path.clone(), offset, skipped, what });
    };
    let file = match account.inner.env().disk.open(&read.path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) => {
            note(&mut read, format!("it cannot be opened: {error}"), true);
            return Ok(read);
        }
    };
    let mut has_nul = false;
    let mut head = Vec::new();
    let mut writer = account.message_writer()?;
    let mut take = |piece: &[u8]| {
        has_nul |= memchr::memchr(0, piece).is_some();
        writer.write(piece)
    };
    let written = match content {
        Content::Whole { bytes, form } => {
            let len = file.len()?;
            if internal_date.is_none() {
                head.resize(usize::try_from(len.min(HEAD_BYTES)).unwrap_or(0), 0);
                file.read_exact_at(&mut head, 0)?;
            }
            if len != bytes {
                note(&mut read, format!("it has {len} octets, and its server says {bytes}"), false);
            }
            served::read(&*file, 0..len, form, &mut take).map(|()| len)
        }
        Content::Mbox { header, body, form } => {
            let mut raw = vec![0; usize::try_from(header.end.saturating_sub(header.start)).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut raw, header.start)?;
            let mut served = Vec::with_capacity(raw.len());
            served_header(&raw, form, &mut served);
            head = raw;
            take(&served).and_then(|()| served::read(&*file, body, form, &mut take)).map(|()| served.len() as u64)
        }
    };
    match written {
        Err(error) if error.kind() == ErrorKind::Limit => note(&mut read, error.to_string(), true),
        Err(error) => return Err(error.context(read.path.display())),
        Ok(0) => note(&mut read, "an empty message".to_owned(), true),
        Ok(_) => {
            if has_nul {
                note(&mut read, "it has NUL octets".to_owned(), false);
            }
            let internal_date = internal_date
                .or_else(|| status::date(head.get(..mime::header_len(&head)).unwrap_or(&head)))
                .unwrap_or_else(|| DateTime::utc(account.inner.env().clock.now().seconds));
            read.message = Some(RemoteMessage { uid, message: writer.finish()?, flags, internal_date, save_date });
        }
    }
    Ok(read)
}

/// Messages that have no UID of their server's yet.
#[derive(Debug, Default)]
struct Guests {
    by_name: HashMap<u64, u32>,
    uids: HashMap<u32, u64>,
    /// Annotations that remember them.
    chunks: usize,
}

impl Guests {
    fn load(account: &Account, key: &str) -> Guests {
        let mut guests = Guests::default();
        let state = account.inner.state();
        while let Some(value) = state.annotation(&chunk_key(key, guests.chunks)) {
            guests.chunks += 1;
            for guest in value.chunks_exact(GUEST_BYTES) {
                let Some((uid, name)) = guest.split_first_chunk::<4>() else { continue };
                let Some(name) = name.first_chunk::<8>() else { continue };
                let (uid, name) = (u32::from_le_bytes(*uid), u64::from_le_bytes(*name));
                guests.by_name.insert(name, uid);
                guests.uids.insert(uid, name);
            }
        }
        guests
    }

    /// Remembers these instead of what `chunks` annotations remembered.
    fn save(account: &Account, key: &str, chunks: usize, guests: &[(u32, u64)]) -> Result<()> {
        if chunks == 0 && guests.is_empty() {
            return Ok(());
        }
        account.commit(|transaction| {
            let mut used = 0;
            for part in guests.chunks(GUESTS_PER_ANNOTATION) {
                let value: Vec<u8> = part
                    .iter()
                    .flat_map(|(uid, name)| uid.to_le_bytes().into_iter().chain(name.to_le_bytes()))
                    .collect();
                transaction.annotate_account(&chunk_key(key, used), Some(&value))?;
                used += 1;
            }
            (used..chunks).try_for_each(|unused| transaction.annotate_account(&chunk_key(key, unused), None))
        })
    }
}

fn chunk_key(key: &str, chunk: usize) -> String {
    format!("{key}/{chunk}")
}

fn checksum(name: &[u8]) -> u64 {
    let mut hash = Sha256::new();
    hash.update(name);
    ledger::checksum(hash).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Whether an import that did not keep UIDs has brought mail from this path into this mailbox: its place is remembered, and it goes on in its way.
pub(super) fn was_brought_without_uids(account: &Account, source: &Source) -> bool {
    let mailbox: Option<MailboxId> = account.mailbox(&source.mailbox).ok();
    mailbox.is_some_and(|mailbox| account.inner.state().annotation(&ledger::key(source, mailbox)).is_some())
}
