//! The octets of messages that are in Maildirs, for the readers of the log.
//!
//! A file is opened by the name that it had at the last look. When it is not there any more it is looked for under its base, since other
//! programs rename files whenever flags change. Files are never changed once they have their name, so what an open file gives is right or damaged.
//!
//! Invariants:
//! - No turn is waited for here: whoever has one may read.
//! - A message that is read whole is held against its digest, a header and a part of a large message against the sizes.
//! - At most [`SLOTS_MAX`] messages of [`SMALL_BYTES_MAX`] octets and readings of large ones are kept, and [`GHOSTS_MAX`] open files.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use index::{Foreign, ForeignMessage};
use model::{EmailId, Error, ErrorKind, MailboxId, Result};
use platform::{Batch, File, OpenMode};

use super::account::{DirBox, MaildirAccount, lock};
use super::listing::{self, Listed};
use super::map::Map;
use super::name::{Name, field};
use crate::format::files::Patience;
use crate::format::mbox::digest::DigestOfServed;
use crate::format::served::{Form, Normaliser};

/// Messages that are kept, for who reads their parts one after the other; `docs/limits.md`.
const SLOTS_MAX: usize = 8;
/// Files that were removed and are kept open for those who were not told yet.
const GHOSTS_MAX: usize = 64;
/// A message up to so many octets is read whole.
const SMALL_BYTES_MAX: u32 = 128 << 10;
/// A header of a message up to so many octets is read with all of it: it costs the same.
const HEADER_WITH_BODY_BYTES_MAX: u32 = 16 << 10;
/// Octets that are read from a large file at a time; as served they are at most twice as many.
const PIECE_BYTES: usize = 64 << 10;

/// How the octets of a file become those that IMAP serves: `base` says it.
pub(super) fn form_of(base: &[u8]) -> Form {
    Form { convert: field(base, super::RAW.as_bytes()) != Some(b"1"), unquote: false }
}

/// What was read and may be asked for again.
#[derive(Debug, Default)]
pub(super) struct Served {
    small: Mutex<VecDeque<(EmailId, Arc<Vec<u8>>)>>,
    large: Mutex<VecDeque<Cursor>>,
    ghosts: Mutex<VecDeque<(EmailId, Opened)>>,
}

/// What was read back and is not known to be durable.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The file systems that it is on, by their devices; `None`: one on which each file is synced.
    batches: BTreeMap<u64, Option<Box<dyn Batch>>>,
    /// The Maildir that was read from last, and whether its file system has a batch.
    maildir: Option<PathBuf>,
    is_batched: bool,
}

/// A file that can be read.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) file: Arc<dyn File>,
    pub(super) form: Form,
}

/// A large message, read up to somewhere.
#[derive(Debug)]
struct Cursor {
    id: EmailId,
    opened: Opened,
    normaliser: Normaliser,
    /// Octets of the file that were read.
    read_at: u64,
    /// Octets that were made and not given: the first is at `served_at` of the message.
    held: Vec<u8>,
    served_at: u64,
    is_ended: bool,
}

impl Cursor {
    fn new(id: EmailId, opened: Opened) -> Self {
        let normaliser = Normaliser::new(opened.form);
        Cursor { id, opened, normaliser, read_at: 0, held: Vec::new(), served_at: 0, is_ended: false }
    }

    /// Takes the next octets in; false at the end of the file.
    fn advance(&mut self) -> Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        self.served_at += self.held.len() as u64;
        self.held.clear();
        let mut raw = vec![0; PIECE_BYTES];
        let count = self.opened.file.read_at(&mut raw, self.read_at)?;
        self.read_at += count as u64;
        match raw.get(..count).filter(|raw| !raw.is_empty()) {
            Some(raw) => self.normaliser.push(raw, &mut self.held),
            None => {
                self.normaliser.end(&mut self.held);
                self.is_ended = true;
            }
        }
        Ok(true)
    }
}

impl Foreign for MaildirAccount {
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
        let wanted = message.header_octets as usize;
        if message.octets <= HEADER_WITH_BODY_BYTES_MAX || self.served.has(id) {
            let bytes = self.small(id, message)?;
            out.extend_from_slice(bytes.get(..wanted).ok_or_else(|| changed(id))?);
            return Ok(());
        }
        let opened = self.open_message(id)?;
        // As served it is never shorter than in the file.
        let mut raw = vec![0; wanted];
        let count = read_up_to(&*opened.file, &mut raw)?;
        let (mut normaliser, mut served) = (Normaliser::new(opened.form), Vec::with_capacity(wanted));
        normaliser.push(raw.get(..count).unwrap_or_default(), &mut served);
        normaliser.end(&mut served);
        if mime::header_len(served.get(..wanted).ok_or_else(|| changed(id))?) != wanted {
            return Err(changed(id));
        }
        out.extend_from_slice(served.get(..wanted).unwrap_or_default());
        Ok(())
    }

    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if message.octets <= SMALL_BYTES_MAX {
            let bytes = self.small(id, message)?;
            return sink(bytes.get(range.start as usize..range.end as usize).ok_or_else(|| changed(id))?);
        }
        let mut cursor = match self.served.take_cursor(id, range.start) {
            Some(cursor) => cursor,
            None => Cursor::new(id, self.open_message(id)?),
        };
        // Only who reads all of it can hold it against its digest.
        let mut digest = (range == (0..u64::from(message.octets))).then(DigestOfServed::new);
        let mut at = range.start;
        while at < range.end {
            let end = cursor.served_at + cursor.held.len() as u64;
            if at >= end {
                if !cursor.advance()? {
                    return Err(changed(id));
                }
                continue;
            }
            let (from, to) = ((at - cursor.served_at) as usize, (range.end.min(end) - cursor.served_at) as usize);
            let piece = cursor.held.get(from..to).ok_or_else(|| changed(id))?;
            if let Some(digest) = &mut digest {
                digest.push(piece);
            }
            sink(piece)?;
            at += piece.len() as u64;
        }
        if range.end == u64::from(message.octets) {
            while cursor.advance()? {
                if !cursor.held.is_empty() {
                    // It goes on.
                    return Err(changed(id));
                }
            }
        } else {
            self.served.keep_cursor(cursor);
        }
        match digest.map(DigestOfServed::finish).filter(|digest| *digest != message.digest) {
            Some(_other) => Err(changed(id)),
            None => Ok(()),
        }
    }
}

impl MaildirAccount {
    /// A small message, whole and verified.
    fn small(&self, id: EmailId, message: &ForeignMessage) -> Result<Arc<Vec<u8>>> {
        if let Some(bytes) = self.served.find_small(id) {
            return Ok(bytes);
        }
        let opened = self.open_message(id)?;
        // In the file it is not longer than as served; one octet more shows that it is.
        let mut raw = vec![0; message.octets as usize + 1];
        let count = read_up_to(&*opened.file, &mut raw)?;
        let mut normaliser = Normaliser::new(opened.form);
        let mut bytes = Vec::with_capacity(message.octets as usize + 1);
        normaliser.push(raw.get(..count).unwrap_or_default(), &mut bytes);
        normaliser.end(&mut bytes);
        let mut digest = DigestOfServed::new();
        digest.push(&bytes);
        if bytes.len() != message.octets as usize || digest.finish() != message.digest {
            return Err(changed(id));
        }
        let bytes = Arc::new(bytes);
        self.served.keep_small(id, Arc::clone(&bytes));
        Ok(bytes)
    }

    /// See [`crate::format::files::Files::read_back`]. Nothing that was kept is believed.
    pub(super) fn read_copy(
        &self,
        dir_box: &DirBox,
        id: EmailId,
        known: &ForeignMessage,
        header: &mut Vec<u8>,
        octets: &mut Vec<u8>,
    ) -> Result<bool> {
        self.refresh(dir_box, Patience::Wait)?;
        let Some(maildir) = self.path_of(dir_box.id) else { return Ok(false) };
        for file in files_of(dir_box, id) {
            let Some(opened) = self.open_file(&maildir, &file)? else { continue };
            // Whoever made it may not have waited for the disk.
            if !self.has_batch(&maildir)? {
                opened.file.sync_data()?;
                self.make_names_durable(&maildir)?;
            }
            let mut raw = vec![0; known.octets as usize + 1];
            let count = read_up_to(&*opened.file, &mut raw)?;
            let mut normaliser = Normaliser::new(opened.form);
            octets.clear();
            normaliser.push(raw.get(..count).unwrap_or_default(), octets);
            normaliser.end(octets);
            let mut digest = DigestOfServed::new();
            digest.push(octets);
            let header_octets = mime::header_len(octets);
            header.clear();
            header.extend_from_slice(octets.get(..header_octets).unwrap_or_default());
            return Ok(octets.len() == known.octets as usize
                && header_octets == known.header_octets as usize
                && digest.finish() == known.digest);
        }
        Ok(false)
    }

    /// Whether what is read from a Maildir will be made durable by [`MaildirAccount::make_read_durable`].
    fn has_batch(&self, maildir: &Path) -> Result<bool> {
        let mut reading = lock(&self.reading);
        if reading.maildir.as_deref() != Some(maildir) {
            let device = self.env.disk.metadata(&maildir.join("cur"))?.device;
            reading.is_batched = match reading.batches.entry(device) {
                Entry::Occupied(known) => known.get().is_some(),
                Entry::Vacant(new) => new.insert(self.batch(maildir)?).is_some(),
            };
            reading.maildir = Some(maildir.to_owned());
        }
        Ok(reading.is_batched)
    }

    /// See [`crate::format::files::Files::make_read_durable`].
    pub(super) fn make_read_durable(&self) -> Result<()> {
        let read = std::mem::take(&mut *lock(&self.reading));
        Ok(read.batches.values().flatten().try_for_each(|batch| batch.sync())?)
    }

    /// Opens a file that has the message. `Expunged`: there is none any more.
    pub(super) fn open_message(&self, id: EmailId) -> Result<Opened> {
        for round in [Round::Known, Round::Looked] {
            if let Some(opened) = self.open_known(id)? {
                return Ok(opened);
            }
            if round == Round::Known && !self.look_for(id)? {
                break;
            }
        }
        self.served
            .ghost(id)
            .ok_or_else(|| Error::new(ErrorKind::Expunged, format!("the message {id} has left its Maildir")))
    }

    /// Opens a file of the message that some map knows, wherever it is now.
    fn open_known(&self, id: EmailId) -> Result<Option<Opened>> {
        for dir_box in self.open_boxes() {
            let Some(maildir) = self.path_of(dir_box.id) else { continue };
            for file in files_of(&dir_box, id) {
                if let Some(opened) = self.open_file(&maildir, &file)? {
                    return Ok(Some(opened));
                }
            }
        }
        Ok(None)
    }

    /// Opens a file, under the name that it has now; `None`: it is gone.
    pub(super) fn open_file(&self, maildir: &Path, file: &Listed) -> Result<Option<Opened>> {
        let disk = &*self.env.disk;
        let mut file = file.clone();
        for _ in 0..RENAMES_MAX {
            let path = listing::path(maildir, file.subdir, &file.name);
            match disk.open(&path, OpenMode::Read) {
                Ok(opened) => return Ok(Some(Opened { file: opened, form: form_of(file.base()) })),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::from(error).context(path.display())),
            }
            match listing::locate(disk, maildir, &file.name) {
                Ok(Some(found)) => file = found,
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Error::from(error).context(maildir.display())),
            }
        }
        Err(Error::new(ErrorKind::InUse, "somebody renames the message again and again"))
    }

    /// Takes up the maps of the mailboxes that have the message, if nobody is at them; whether there was one that was not known.
    fn look_for(&self, id: EmailId) -> Result<bool> {
        let state = self.state();
        let mut is_news = self.open_doomed();
        for mailbox in state.all_mailboxes() {
            let of = mailbox.name().hidden_of().unwrap_or(mailbox.id());
            let Ok(dir_box) = self.dir_box(of) else { continue };
            if lock(&dir_box.map).is_some() || !mailbox.all_rows().any(|(_, row)| row.email_id == id) {
                continue;
            }
            if let Ok(mut turn) = dir_box.turn.try_lock() {
                self.sync(&dir_box, &mut turn)?;
                is_news = true;
            }
        }
        Ok(is_news)
    }
}

impl MaildirAccount {
    /// Takes up what is known of Maildirs whose mailboxes are gone: they may have the only files of messages that were copied from them. Whether
    /// there was something.
    pub(super) fn open_doomed(&self) -> bool {
        let state = self.state();
        let ids: Vec<MailboxId> = lock(&self.names).iter().map(|(id, _)| id).collect();
        let mut is_news = false;
        for id in ids.into_iter().filter(|id| state.mailbox(*id).is_none()) {
            let Ok(dir_box) = self.dir_box(id) else { continue };
            if lock(&dir_box.map).is_some() {
                continue;
            }
            if let Some(map) = Map::load(&*self.env.disk, &self.map_path(id)) {
                lock(&dir_box.map).get_or_insert(map);
                is_news = true;
            }
        }
        is_news
    }
}

/// How often a file is looked for that is renamed while it is opened.
const RENAMES_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Known,
    Looked,
}

/// The files of a message in a mailbox, as the map knows them.
pub(super) fn files_of(dir_box: &DirBox, id: EmailId) -> Vec<Listed> {
    let found = dir_box.with_map(|map| {
        let records = map.of_message(id);
        let listed = records.iter().map(|record| {
            let name = map.name(record).to_vec();
            let base_len = Name::parse(&name).map_or(name.len(), |name| name.base.len());
            Listed { subdir: record.subdir, name, base_len }
        });
        listed.collect()
    });
    found.unwrap_or_default()
}

/// Reads from the start of a file until `buf` is full or the file ends.
fn read_up_to(file: &dyn File, buf: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn changed(id: EmailId) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the message {id} is not in its file as it was"))
}

impl Served {
    fn has(&self, id: EmailId) -> bool {
        lock(&self.small).iter().any(|(known, _)| *known == id)
    }

    fn find_small(&self, id: EmailId) -> Option<Arc<Vec<u8>>> {
        lock(&self.small).iter().find(|(known, _)| *known == id).map(|(_, bytes)| Arc::clone(bytes))
    }

    fn keep_small(&self, id: EmailId, bytes: Arc<Vec<u8>>) {
        let mut small = lock(&self.small);
        small.truncate(SLOTS_MAX - 1);
        small.push_front((id, bytes));
    }

    /// A reading of a message that has not come beyond `at`.
    fn take_cursor(&self, id: EmailId, at: u64) -> Option<Cursor> {
        let mut large = lock(&self.large);
        let position = large.iter().position(|cursor| cursor.id == id && cursor.served_at <= at)?;
        large.remove(position)
    }

    fn keep_cursor(&self, cursor: Cursor) {
        let mut large = lock(&self.large);
        large.truncate(SLOTS_MAX - 1);
        large.push_front(cursor);
    }

    /// What was read is read again from now on.
    pub(super) fn forget_read(&self) {
        lock(&self.small).clear();
        lock(&self.large).clear();
    }

    /// A file of the message that has lost its name.
    pub(super) fn ghost(&self, id: EmailId) -> Option<Opened> {
        lock(&self.ghosts).iter().find(|(ghost, _)| *ghost == id).map(|(_, opened)| opened.clone())
    }

    /// Keeps a file open whose name is about to go.
    pub(super) fn keep_ghost(&self, id: EmailId, opened: Opened) {
        let mut ghosts = lock(&self.ghosts);
        ghosts.truncate(GHOSTS_MAX - 1);
        ghosts.push_front((id, opened));
    }

    /// Nobody asks for these any more.
    pub(super) fn forget_ghosts(&self, is_gone: impl Fn(EmailId) -> bool) {
        lock(&self.ghosts).retain(|(id, _)| !is_gone(*id));
    }
}
