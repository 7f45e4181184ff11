//! Making the files show what the log says.
//!
//! What came into a mailbox through us is added to its file as soon as it is durable in the log; UIDs, flags and keywords are written at the
//! moments that the settings name; what was expunged leaves the file then, too.
//!
//! Invariants:
//! - A message of others leaves a file only when the log says so, and only when every other mailbox that has it has it in its own file, synced.
//! - First the file, then the map, then the log forgets what was expunged: after a power cut in between the next sync sees where it stood.
//! - While a turn is held no other one is waited for: octets of other files are taken as they are known, or another time.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use index::{Mailbox, Row, State};
use model::{EmailId, Error, ErrorKind, MailboxId, ModSeq, Result, UidSet};
use platform::{File, Metadata, OpenMode, Timestamp, parent_of};

use super::account::{DIR, FileBox, MboxAccount, Moment, Patience, Turn};
use super::identity::{Identity, tail_digest};
use super::lock::{Access, MailboxLock};
use super::map::{Facts, Map, MapBuilder};
use super::meta::meta_fields;
use super::names::Since;
use super::place::{FileFlags, ImapBase, Place};
use super::rows::RowFinder;
use super::serve::{FileReader, Outcome};
use super::sync::flags::{file_flags, keyword_names};
use super::sync::unplaced;
use super::values;
use super::write::{self, Fate, Job, Outgoing, Settings, Target, Unsettled, Wanted, keywords_hash};
use crate::edit::Effects;

impl MboxAccount {
    /// A change is durable in the log: the files follow as far as they can at once. What they cannot, [`MboxAccount::maintain`] tries again.
    pub(crate) fn follow(&self, effects: &Effects) {
        if effects.names {
            let _later = self.reconcile(Since::Change);
        }
        for id in &effects.filled {
            if let Ok(file_box) = self.file_box(*id) {
                file_box.wanted.store(true, Ordering::Release);
                let _later = self.write_out(&file_box);
            }
        }
    }

    /// Adds to the file what came into the mailbox, if nobody else is at it. One does it for all who come meanwhile.
    pub(super) fn write_out(&self, file_box: &FileBox) -> Result<()> {
        while file_box.wanted.load(Ordering::Acquire) {
            self.take_up(file_box)?;
            self.find_sources(file_box)?;
            let Ok(mut turn) = file_box.turn.try_lock() else { return Ok(()) };
            if !file_box.wanted.swap(false, Ordering::AcqRel) {
                return Ok(());
            }
            let result = self.with_file(file_box, &mut turn, |account, turn, lock, path| {
                account.add_what_came(file_box, turn, lock, path)
            });
            if result.is_err() {
                file_box.wanted.store(true, Ordering::Release);
                return result;
            }
        }
        Ok(())
    }

    /// Sees to it that messages of other files that are to be copied into this one can be read; those that nobody has any more lose their entries.
    /// The map of this one is known.
    fn find_sources(&self, file_box: &FileBox) -> Result<()> {
        let state = self.state();
        let (Some(mailbox), Some(map)) = (state.mailbox(file_box.id), file_box.map()) else { return Ok(()) };
        let rows = to_be_added(mailbox, MboxAccount::pending_of(&state, file_box.id).map(|one| &**one), &map);
        for row in rows.iter().filter(|row| state.foreign(row.email_id).is_some()) {
            match self.read(row.email_id, &mut |_, _| Ok(Outcome::Done)) {
                Err(error) if error.kind() == ErrorKind::Expunged => {
                    let uids = UidSet::range(row.uid.get(), row.uid.get());
                    self.log.commit(|transaction| transaction.expunge(file_box.id, &uids))?;
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Sees to it that the map is known, if nobody else is at the file, who would see to it.
    fn take_up(&self, file_box: &FileBox) -> Result<()> {
        match file_box.turn.try_lock() {
            Ok(mut turn) if file_box.map().is_none() => self.sync(file_box, &mut turn, Patience::None),
            _ => Ok(()),
        }
    }

    /// Runs `work` on the file, locked for writing and as the log knows it. After an error the file is looked at anew.
    fn with_file(
        &self,
        file_box: &FileBox,
        turn: &mut Turn,
        work: impl FnOnce(&Self, &mut Turn, &MailboxLock, &Path) -> Result<()>,
    ) -> Result<()> {
        let Some(path) = self.path_of(file_box.id) else { return Ok(()) };
        self.open_box(file_box, turn)?;
        let access = if self.env.disk.exists(&path)? { Access::Write } else { Access::Create };
        let lock = self.locker.try_lock(&path, access)?;
        let inode = Some(lock.file().metadata()?.inode);
        if turn.named != inode {
            // What is added is to be found again, also in a file that somebody else has just made.
            self.env.disk.sync_dir(parent_of(&path))?;
            turn.named = inode;
        }
        self.sync_locked(file_box, turn, &lock)?;
        let result = work(self, turn, &lock, &path);
        if let Err(error) = &result {
            (turn.is_open, turn.is_doubtful) = (false, true);
            file_box.set_map(None);
            if error.kind() == ErrorKind::Corrupt {
                // The map on the disk may be as wrong.
                file_box.is_doubted.store(true, Ordering::Relaxed);
            }
        }
        result
    }

    fn settings(&self) -> Settings {
        Settings { padding_bytes: self.options.padding_bytes, ..Settings::default() }
    }

    pub(super) fn files_dir(&self) -> PathBuf {
        self.dir.join(DIR)
    }

    /// Finishes or undoes what a power cut interrupted in the file of a mailbox.
    pub(super) fn recover(&self, file_box: &FileBox, path: &Path) -> Result<write::Recovered> {
        let (dir, settings) = (self.files_dir(), self.settings());
        write::recover(&self.env, &self.locker, &settings, path, &dir, file_box.id)
    }

    /// Adds the messages that are in the mailbox and not in the file.
    fn add_what_came(&self, file_box: &FileBox, turn: &mut Turn, lock: &MailboxLock, path: &Path) -> Result<()> {
        let state = self.state();
        let (Some(mailbox), Some(map)) = (state.mailbox(file_box.id), file_box.map()) else { return Ok(()) };
        let mut rows = to_be_added(mailbox, MboxAccount::pending_of(&state, file_box.id).map(|one| &**one), &map);
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_unstable_by_key(|row| row.uid);
        let last = map.len().checked_sub(1).and_then(|last| map.place(last));
        let mut placed: Vec<Place> = Vec::with_capacity(rows.len() + 1);
        let here = FileReader::of_locked(Arc::clone(lock.file()), map.facts().identity);
        let mut outgoing = rows.iter().map(|row| self.outgoing(&state, mailbox, row, (&here, &map)));
        let dir = self.files_dir();
        let (is_doubtful, has_intents) = (turn.is_doubtful, turn.has_intents);
        let target = Target { env: &self.env, path, lock, dir: &dir, mailbox: file_box.id, is_doubtful, has_intents };
        let job = Job {
            // What stands before the last message is not touched.
            places: &mut last.into_iter(),
            fate: &mut |_, _, _| Ok(Fate::Keep),
            removed_bytes: 0,
            base: &base_of(mailbox),
            append: &mut outgoing,
            placed: &mut |place| {
                placed.push(place);
                Ok(())
            },
        };
        let octets = rows.iter().map(|row| u64::from(row.size)).sum();
        let written = self.go_over(octets, || write::write_back(target, &self.settings(), job))?;
        let mut map = Map::clone(&map);
        map.truncate_from(map.len().saturating_sub(1));
        for place in &placed {
            map.push(place)?;
        }
        let was = map.facts().written;
        let is_all = mailbox.changed_since(was).count() == rows.len();
        let now = if is_all { mailbox.highest_modseq() } else { was };
        let settled = map.len().saturating_sub(1);
        let is_grown = map.facts().is_grown;
        map.set_facts(Facts { is_grown, ..self.facts(lock, settled, now)? });
        file_box.set_map(Some(Arc::new(map)));
        for row in &rows {
            turn.digests.remove(&row.email_id);
        }
        // No fields but those of the new messages were written, and of these nothing was known before.
        drop(written);
        (turn.is_doubtful, turn.has_intents) = (false, true);
        Ok(())
    }

    /// `here`: a reader of the file to which it is added, and what that has.
    fn outgoing<'a>(
        &'a self,
        state: &'a State,
        mailbox: &Mailbox,
        row: &Row,
        (here, map): (&'a FileReader, &Map),
    ) -> Outgoing<'a> {
        let (id, size) = (row.email_id, u64::from(row.size));
        let place = map.find(id).next().and_then(|n| map.place(n));
        let read: write::ReadMessage<'a> = match (state.foreign(id), place) {
            (Some(message), Some(place)) => {
                Box::new(move |sink| here.range(&place, &message, 0..size, sink).map(|_always_done| ()))
            }
            (Some(message), None) => Box::new(move |sink| {
                self.read_as_known(id, &mut |reader, place| reader.range(place, &message, 0..size, sink))
            }),
            (None, _) => Box::new(move |sink| self.log.reader().range(id, 0..size, &mut |piece| sink(piece))),
        };
        Outgoing { email_id: id, wanted: wanted(mailbox, row), internal_date: row.internal_date, size, read }
    }

    /// What is known of a file that was just written.
    fn facts(&self, lock: &MailboxLock, settled: usize, written: ModSeq) -> Result<Facts> {
        let file = &**lock.file();
        let is_known_again = bear_own_time(file)?;
        let identity = Identity::of_file(file)?;
        let tail_digest = tail_digest(file, identity.len)?;
        let is_fresh = !is_known_again && identity.is_fresh(self.env.clock.now());
        Ok(Facts { identity, tail_digest, settled: settled as u32, written, is_fresh, is_grown: false })
    }

    /// Makes the file of a mailbox show what the log says, as far as the settings want that now. [`ErrorKind::InUse`]: somebody else has the
    /// file; it is tried again when the mailbox is idle.
    pub(crate) fn write_back(&self, file_box: &FileBox, moment: Moment) -> Result<()> {
        let policy = self.options.write_back;
        if !policy.removes_at(moment) || !self.is_dirty(file_box) {
            return Ok(());
        }
        // What was moved from here is to be elsewhere before it may go.
        let state = self.state();
        if let Some(pending) = MboxAccount::pending_of(&state, file_box.id).filter(|pending| pending.exists() > 0) {
            self.see_to_others(&state, file_box.id, &foreign_of(&state, pending));
        }
        self.take_up(file_box)?;
        self.find_sources(file_box)?;
        let mut turn = self.wait_for_turn(file_box);
        file_box.wanted.store(false, Ordering::Release);
        let octets = file_box.map().map_or(0, |map| map.facts().identity.len);
        let mut write = || {
            self.go_over(octets, || {
                self.with_file(file_box, &mut turn, |account, turn, lock, path| {
                    account.add_what_came(file_box, turn, lock, path)?;
                    account.bring_up_to_date(file_box, lock, path, policy.flags_at(moment))
                })
            })
        };
        let mut result = write();
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Corrupt) {
            // It is not as it was read last; by now it has been doubted, and is read whole.
            result = write();
        }
        if result.is_err() {
            file_box.wanted.store(true, Ordering::Release);
        }
        result
    }

    /// Whether there may be something to write.
    pub(super) fn is_dirty(&self, file_box: &FileBox) -> bool {
        let state = self.state();
        let Some(mailbox) = state.mailbox(file_box.id) else { return false };
        let written = file_box.map().map_or(ModSeq(0), |map| map.facts().written);
        mailbox.highest_modseq() > written && mailbox.exists() > 0
            || MboxAccount::pending_of(&state, file_box.id).is_some_and(|pending| pending.exists() > 0)
    }

    /// Writes fields, and takes out what was expunged.
    fn bring_up_to_date(&self, file_box: &FileBox, lock: &MailboxLock, path: &Path, flags: bool) -> Result<()> {
        let state = self.state();
        let (Some(mailbox), Some(map)) = (state.mailbox(file_box.id), file_box.map()) else { return Ok(()) };
        let removal = self.removal(&state, file_box, mailbox, &map);
        let since = map.facts().written;
        if flags && !map.facts().is_sure() && shows_other_fields(&**lock.file(), mailbox, &map)? {
            // Somebody has changed them since: that is taken into the log first.
            return Err(Error::new(ErrorKind::Corrupt, "fields in the mailbox file are not what they were"));
        }
        let mut finder = RowFinder::new(mailbox);
        // Which entry a place is of a message that is there twice is decided anew each time.
        let is_double = |place: &Place| place.email_id.is_some_and(|id| map.find(id).nth(1).is_some());
        let is_due =
            |row: &Row, place: &Place| differs(mailbox, row, place) && (row.modseq > since || is_double(place));
        let is_behind = flags
            && (mailbox.highest_modseq() > since)
            && map.places().any(|place| {
                let row = place.email_id.and_then(|id| finder.find(id));
                row.is_some_and(|row| is_due(&row, &place))
            });
        let written = if flags { mailbox.highest_modseq() } else { since };
        if removal.octets == 0 && !is_behind {
            let mut map = Map::clone(&map);
            map.set_facts(Facts { written, ..*map.facts() });
            file_box.set_map(Some(Arc::new(map)));
            return self.forget(file_box.id, &removal);
        }
        let map_path = self.map_path(file_box.id);
        let mut builder = MapBuilder::create(&self.env.disk, &map_path)?;
        let mut to_remove = removal.messages.clone();
        let mut finder = RowFinder::new(mailbox);
        let mut fate = |_, place: &Place, is_written: bool| {
            let Some(id) = place.email_id else { return Ok(Fate::Keep) };
            if let Some(count) = to_remove.get_mut(&id).filter(|count| **count > 0) {
                *count -= 1;
                return Ok(Fate::Remove);
            }
            let Some(row) = finder.find(id).filter(|_| flags) else { return Ok(Fate::Keep) };
            // Every one gets all fields once any is written: Dovecot believes a UID only when all before it have theirs, and the next change
            // finds room in place.
            let is_due = is_due(&row, place) || (is_behind || is_written) && !place.flags.has(FileFlags::COMPLETE);
            Ok(if is_due { Fate::Update(wanted(mailbox, &row)) } else { Fate::Keep })
        };
        let dir = self.files_dir();
        // Nothing is added.
        let (is_doubtful, has_intents) = (false, false);
        let target = Target { env: &self.env, path, lock, dir: &dir, mailbox: file_box.id, is_doubtful, has_intents };
        let done = {
            let _alone = file_box.moving.write().unwrap_or_else(PoisonError::into_inner);
            let job = Job {
                places: &mut map.places(),
                fate: &mut fate,
                removed_bytes: removal.octets,
                base: &base_of(mailbox),
                append: &mut std::iter::empty(),
                placed: &mut |place| builder.push(&place),
            };
            let before = lock.file().metadata()?;
            let done = write::write_back(target, &self.settings(), job)?;
            show_change(&**lock.file(), &before)?;
            let settled = builder.len().saturating_sub(1);
            let facts = Facts { is_grown: map.facts().is_grown, ..self.facts(lock, settled, written)? };
            let map = builder.finish(&facts)?;
            file_box.set_map(Some(Arc::new(map)));
            done
        };
        if !done.is_nothing() {
            self.make_map_durable(file_box)?;
        }
        self.forget(file_box.id, &removal)?;
        done.unsettled.settle()
    }

    /// What can leave the file now.
    fn removal(&self, state: &State, file_box: &FileBox, mailbox: &Mailbox, map: &Map) -> Removal {
        let mut removal = Removal::default();
        let Some(pending) = MboxAccount::pending_of(state, file_box.id).filter(|pending| pending.exists() > 0) else {
            return removal;
        };
        let mut counted = None;
        let mut needed = None;
        for (_, row) in pending.all_rows() {
            let (id, uid) = (row.email_id, row.uid.get());
            let places = map.find(id).count() as u32;
            let (here, doomed) = match places {
                // Mostly: one message, one place, one entry, which is this one.
                1 if state.foreign_entries(id) == 1 => (0, 1),
                _ => {
                    let (live, doomed) = counted.get_or_insert_with(|| (counts(mailbox), counts(pending)));
                    let count = |of: &HashMap<EmailId, u32>| of.get(&id).copied().unwrap_or(0);
                    (count(live), count(doomed))
                }
            };
            let gone = removal.messages.get(&id).copied().unwrap_or(0);
            if places <= here + gone {
                // It has no octets of its own.
                removal.entries.insert(uid);
                continue;
            }
            if state.foreign_entries(id) > here + doomed {
                let needed = match &mut needed {
                    Some(needed) => needed,
                    none => none.insert(self.needed_by_others(state, file_box.id, &foreign_of(state, pending))),
                };
                if needed.contains(&id) {
                    continue;
                }
            }
            *removal.messages.entry(id).or_default() += 1;
            let place = map.find(id).nth(gone as usize).and_then(|n| map.place(n));
            removal.octets += place.map_or(0, |place| place.next - place.start);
            removal.entries.insert(uid);
        }
        removal
    }

    /// Lets the other mailboxes that have one of these messages write it into their own files, as far as that can be done at once, and find out what is
    /// in these.
    pub(super) fn see_to_others(&self, state: &State, id: MailboxId, doomed: &HashSet<EmailId>) {
        for mailbox in state.mailboxes().filter(|mailbox| mailbox.id() != id) {
            let Ok(other) = self.file_box(mailbox.id()) else { continue };
            self.audit(&other);
            let _later = self.write_out(&other);
            if other.map().is_none() && mailbox.all_rows().any(|(_, row)| doomed.contains(&row.email_id)) {
                let _later = self.take_up(&other);
            }
        }
    }

    /// Which of the `doomed` messages some mailbox other than `id` has whose own file does not have them yet. Those of which it says that the
    /// file has them are durable there.
    ///
    /// That another file has the octets as well does not count, unless its own mailbox has the message: they may be about to leave that file,
    /// too, each of the two relying on the other.
    pub(super) fn needed_by_others(&self, state: &State, id: MailboxId, doomed: &HashSet<EmailId>) -> HashSet<EmailId> {
        let mut needed = HashSet::new();
        if doomed.is_empty() {
            return needed;
        }
        for other in state.mailboxes().filter(|other| other.id() != id) {
            let mut entries: HashMap<EmailId, usize> = HashMap::new();
            for (_, row) in other.all_rows().filter(|(_, row)| doomed.contains(&row.email_id)) {
                *entries.entry(row.email_id).or_default() += 1;
            }
            if entries.is_empty() {
                continue;
            }
            let known = self.known_box(other.id()).and_then(|file_box| Some((file_box.map()?, file_box)));
            // Mail that was only found there may have been written by who did not wait for the disk.
            let known =
                known.filter(|(map, file_box)| map.facts().identity.len > 0 && self.sync_file(file_box, map).is_ok());
            let map = known.map(|(map, _)| map);
            let is_there =
                |(id, count): (&EmailId, &usize)| map.as_ref().is_some_and(|map| map.find(*id).count() >= *count);
            needed.extend(entries.iter().filter(|entry| !is_there(*entry)).map(|(id, _)| *id));
        }
        needed
    }

    /// Makes the file of a mailbox durable. An error as well when it is another one than that of the map.
    fn sync_file(&self, file_box: &FileBox, map: &Map) -> Result<()> {
        let id = file_box.id;
        let path = self.path_of(id).ok_or_else(|| Error::new(ErrorKind::NotFound, "the mailbox has no file"))?;
        let file = self.env.disk.open(&path, OpenMode::Read)?;
        if Identity::of_file(&*file)? != map.facts().identity {
            return Err(Error::new(ErrorKind::InUse, "the mailbox file has just changed"));
        }
        if Unsettled::of(&self.env.disk, &self.files_dir(), id).is_doubted()? {
            return Err(Error::new(ErrorKind::Io, "what is read of the mailbox file may not be on the disk"));
        }
        file.sync_data().or_else(|error| self.sync_failed(file_box, error))?;
        Ok(self.env.disk.sync_dir(parent_of(&path))?)
    }

    /// The octets have left the file: the log forgets them.
    fn forget(&self, id: MailboxId, removal: &Removal) -> Result<()> {
        if removal.entries.is_empty() {
            return Ok(());
        }
        let Some(hidden) = MboxAccount::pending_of(&self.state(), id).map(|hidden| hidden.id()) else { return Ok(()) };
        self.log.commit(|transaction| transaction.expunge(hidden, &removal.entries).map(drop))
    }
}

/// Lets the other programs see that the file has changed: Dovecot and mutt go by its length and by the second of its last change, and would
/// miss what is written in place within the second of their last look.
fn show_change(file: &dyn File, before: &Metadata) -> Result<()> {
    let now = file.metadata()?;
    if now.len == before.len && now.modified.seconds <= before.modified.seconds {
        let next = before.modified.seconds.saturating_add(1);
        file.set_modified(Timestamp { seconds: next, ..now.modified })?;
    }
    Ok(())
}

/// Gives a file that we have written a time of change that no other write of the same instant gives it; whether that worked. The system's
/// clock ticks every few milliseconds, and a file system may keep less of a time than we ask for.
fn bear_own_time(file: &dyn File) -> Result<bool> {
    let modified = file.metadata()?.modified;
    file.set_modified(Timestamp { nanoseconds: modified.nanoseconds ^ 1, ..modified })?;
    Ok(file.metadata()?.modified != modified)
}

/// What leaves a file.
#[derive(Default)]
struct Removal {
    /// How often each message goes.
    messages: HashMap<EmailId, u32>,
    /// Octets of the file.
    octets: u64,
    /// Entries of the hidden mailbox that are done with.
    entries: UidSet,
}

/// The entries that have no place in the file and are to have one: what was expunged before it was written is not written.
pub(super) fn to_be_added(mailbox: &Mailbox, pending: Option<&Mailbox>, map: &Map) -> Vec<Row> {
    let mut rows = unplaced(mailbox, pending, Some(map));
    rows.retain(|row| mailbox.row_of(row.uid).is_some_and(|(_, found)| found == *row));
    rows
}

/// The messages of a mailbox whose octets are in files only.
fn foreign_of(state: &State, pending: &Mailbox) -> HashSet<EmailId> {
    pending.foreign(state).map(|(row, _)| row.email_id).collect()
}

/// How many entries each message has.
fn counts(mailbox: &Mailbox) -> HashMap<EmailId, u32> {
    let mut counts = HashMap::new();
    for (_, row) in mailbox.all_rows() {
        *counts.entry(row.email_id).or_default() += 1;
    }
    counts
}

/// What the fields of a message should say.
fn wanted(mailbox: &Mailbox, row: &Row) -> Wanted {
    let keywords = keyword_names(row.flags, mailbox.keywords());
    Wanted { uid: row.uid.get(), flags: file_flags(row.flags), keywords }
}

/// Whether fields that the log has others for are not what the map says that they were.
fn shows_other_fields(file: &dyn File, mailbox: &Mailbox, map: &Map) -> Result<bool> {
    let mut finder = RowFinder::new(mailbox);
    let mut header = Vec::new();
    for place in map.places() {
        let row = place.email_id.and_then(|id| finder.find(id));
        if row.is_none_or(|row| !differs(mailbox, &row, &place)) {
            continue;
        }
        header.resize(usize::try_from(place.body - place.header).unwrap_or(usize::MAX), 0);
        file.read_exact_at(&mut header, place.header)?;
        let meta = values::meta(&header, &meta_fields(&header).collect::<Vec<_>>(), false);
        let is_same = meta.flags.without(FileFlags::COMPLETE) == place.flags.without(FileFlags::COMPLETE)
            && keywords_hash(&meta.keywords) == place.keywords;
        if !is_same {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the fields of a message say something else than the log.
fn differs(mailbox: &Mailbox, row: &Row, place: &Place) -> bool {
    let other = FileFlags::OLD.with(FileFlags::COMPLETE);
    file_flags(row.flags).without(other) != place.flags.without(other)
        || keywords_hash(&keyword_names(row.flags, mailbox.keywords())) != place.keywords
}

/// What the file says of itself.
fn base_of(mailbox: &Mailbox) -> ImapBase {
    ImapBase {
        uid_validity: mailbox.uidvalidity().get(),
        last_uid: mailbox.uidnext().map_or(u32::MAX, |next| next.get() - 1),
        keywords: mailbox.keywords().iter().cloned().collect(),
    }
}
