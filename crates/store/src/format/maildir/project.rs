//! Making the files of a Maildir show what the log says.
//!
//! What came into a mailbox through us gets a file as soon as it is durable in the log: written in `tmp` and synced, or linked to the file of
//! another mailbox, then renamed, and the directory synced (`compose`). Flags are renames, what was expunged is unlinked, both at once; the log forgets
//! an expunged message at CLOSE, LOGOUT or when idle, so that views that hold it can still read it.
//!
//! Invariants:
//! - A message of others loses a file only when the log says so, and only when every other mailbox that has it has a durable file of its own.
//! - First the files, then the map, then the log forgets: after a power cut in between the next sync sees what is there.
//! - No file is ever replaced: new names are new, and a rename keeps the base.
//! - While a turn is held no other one is waited for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use index::{Mailbox, Row, State};
use model::{EmailId, Error, ErrorKind, Flags, Keyword, KeywordTable, Result, Uid, UidSet};
use platform::Disk;

use super::account::{DirBox, MaildirAccount, Turn, lock};
use super::compose::{self, Source};
use super::keywords::Keywords;
use super::listing::{self, Listed, Subdir};
use super::map::{Map, Position, Record};
use super::name::{Letters, Name, PASSED};
use super::sources::Sources;
use super::{FORWARDED, keyword_file};
use crate::edit::Effects;
use crate::format::files::Moment;
use crate::format::names::Since;

/// Of more files than this that are removed at once none is kept open for those who have not been told.
const GHOSTS_AT_ONCE_MAX: usize = 64;

impl MaildirAccount {
    /// A change is durable in the log: the files follow as far as they can at once. What they cannot, [`MaildirAccount::maintain`] tries again.
    pub(crate) fn follow(&self, effects: &Effects) {
        if effects.names {
            let _later = self.reconcile(Since::Change);
        }
        // What is moved gets its new file before it loses the old one.
        for id in effects.filled.iter().chain(&effects.changed) {
            if let Ok(dir_box) = self.dir_box(*id) {
                dir_box.wanted.store(true, Ordering::Release);
                let _later = self.write_out(&dir_box);
            }
        }
    }

    /// Makes the files follow the log. One thread does it for all who come meanwhile.
    pub(super) fn write_out(&self, dir_box: &DirBox) -> Result<()> {
        while dir_box.wanted.load(Ordering::Acquire) {
            self.find_sources(dir_box)?;
            let mut turn = lock(&dir_box.turn);
            if !dir_box.wanted.swap(false, Ordering::AcqRel) {
                return Ok(());
            }
            let result = self.show(dir_box, &mut turn);
            if !matches!(result, Ok(true)) {
                dir_box.wanted.store(true, Ordering::Release);
                return result.map(drop);
            }
        }
        Ok(())
    }

    /// One pass; whether everything is shown now.
    fn show(&self, dir_box: &DirBox, turn: &mut Turn) -> Result<bool> {
        let Some(maildir) = self.path_of(dir_box.id) else { return Ok(true) };
        if !turn.is_settled {
            self.sync(dir_box, turn)?;
        }
        let state = self.state();
        let Some(mailbox) = state.mailbox(dir_box.id).cloned() else { return Ok(true) };
        doom_expunged(&state, dir_box, &mailbox);
        let rows = to_be_added(dir_box, &mailbox);
        let added = self.add_files(dir_box, turn, &maildir, (&state, &mailbox), &rows);
        let flagged = self.show_flags(dir_box, turn, &maildir, &mailbox);
        let removed = self.remove_files(dir_box, turn, &maildir, &state);
        if turn.is_volatile {
            self.make_names_durable(&maildir)?;
            turn.is_volatile = false;
        }
        self.tell_sizes(turn);
        if !rows.is_empty() {
            // What cannot be written now is written later.
            let _later = self.share_uids(dir_box, &maildir);
        }
        added?;
        let is_all = flagged? & removed?;
        if is_all {
            dir_box.with_map(|map| {
                map.shown = map.shown.max(mailbox.highest_modseq());
                map.touch();
            });
        }
        Ok(is_all)
    }

    /// Makes files for the entries that have none.
    fn add_files(
        &self,
        dir_box: &DirBox,
        turn: &mut Turn,
        maildir: &Path,
        (state, mailbox): (&Arc<State>, &Mailbox),
        rows: &[Row],
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.make_maildir(maildir)?;
        let letters = self.letters_for(turn, maildir, mailbox, rows.iter())?;
        let sources = Sources::new(state);
        let prepare = |row: &Row, syncing| {
            let wanted = letters.of(row.flags, Letters::default());
            let source = match state.foreign(row.email_id) {
                None => Source::Log(row.email_id),
                Some(_) => match self.source_of(&sources, row.email_id)? {
                    Some(source) => source,
                    // It was there a moment ago; whoever has moved it will be seen.
                    None => return Err(Error::new(ErrorKind::InUse, "a message's file has just moved")),
                },
            };
            // What somebody was shown before is not new.
            let subdir = match wanted == Letters::default() && row.uid.get() >= mailbox.recent_floor() {
                true => Subdir::New,
                false => Subdir::Cur,
            };
            self.prepare(maildir, subdir, wanted, row, (source, syncing))
        };
        for batch in compose::batches(rows) {
            self.deliver(maildir, batch, prepare, |row, file| {
                turn.is_volatile = true;
                self.count_in(turn, maildir, file);
                dir_box.with_map(|map| map.insert(row.uid.get(), row.email_id, file));
                lock(&dir_box.uids).add(row.uid.get(), file.base(), &file.name);
            })?;
        }
        Ok(())
    }

    /// Renames files whose flags are not those of the log. False: some have to be looked for first.
    fn show_flags(&self, dir_box: &DirBox, turn: &mut Turn, maildir: &Path, mailbox: &Mailbox) -> Result<bool> {
        let rows: Vec<Row> = mailbox.changed_since(dir_box.shown()).map(|(_, row)| row).collect();
        if rows.is_empty() {
            return Ok(true);
        }
        let letters = self.letters_for(turn, maildir, mailbox, rows.iter())?;
        let mut is_all = letters.is_complete;
        for row in &rows {
            let known = dir_box.with_map(|map| {
                let (at, record) = map.find(row.uid.get())?;
                Some((Position::Live(at), record, map.name(&record).to_vec()))
            });
            let Some((position, record, name)) = known.flatten() else { continue };
            let Some(parsed) = Name::parse(&name) else { continue };
            let wanted = letters.of(row.flags, parsed.letters());
            let is_in_place = record.subdir == Subdir::Cur || wanted == Letters::default();
            if wanted == parsed.letters() && is_in_place {
                continue;
            }
            let new =
                Listed { subdir: Subdir::Cur, name: parsed.with_letters(wanted).write(), base_len: parsed.base.len() };
            is_all &= self.rename(dir_box, turn, maildir, (position, &record, &name), &new)?;
        }
        Ok(is_all)
    }

    /// Gives a file another name; false: it is not where it was.
    fn rename(
        &self,
        dir_box: &DirBox,
        turn: &mut Turn,
        maildir: &Path,
        (position, record, name): (Position, &Record, &[u8]),
        new: &Listed,
    ) -> Result<bool> {
        let from = listing::path(maildir, record.subdir, name);
        match self.env.disk.rename(&from, &listing::path(maildir, new.subdir, &new.name)) {
            Ok(()) => {
                turn.is_volatile = true;
                let was = Name::parse(name).map(|name| name.letters()).unwrap_or_default();
                self.count_renamed(turn, maildir, was, new);
                dir_box.with_map(|map| map.rename(position, new));
                Ok(true)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Somebody else was first: what he did is seen at the next look, and ours is tried again.
                dir_box.is_restless.store(true, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) => Err(Error::from(error).context(from.display())),
        }
    }

    /// Unlinks what was expunged, as far as nobody needs it. False: something is left to be done.
    fn remove_files(&self, dir_box: &DirBox, turn: &mut Turn, maildir: &Path, state: &Arc<State>) -> Result<bool> {
        let doomed: Vec<(Record, Listed)> = dir_box
            .with_map(|map| {
                let listed = |record: &Record| Listed {
                    subdir: record.subdir,
                    name: map.name(record).to_vec(),
                    base_len: map.base(record).len(),
                };
                map.doomed().iter().map(|record| (*record, listed(record))).collect()
            })
            .unwrap_or_default();
        if doomed.is_empty() {
            return Ok(true);
        }
        let needed = self.needed_elsewhere(dir_box, state)?;
        let mut is_all = true;
        let mut gone = std::collections::HashSet::new();
        for (record, file) in &doomed {
            if needed.contains_key(&record.email_id) {
                is_all = false;
                continue;
            }
            if doomed.len() <= GHOSTS_AT_ONCE_MAX
                && state.foreign(record.email_id).is_some()
                && let Ok(Some(opened)) = self.open_file(maildir, file)
            {
                self.served.keep_ghost(record.email_id, opened);
            }
            self.count_out(turn, maildir, file);
            unlink(&*self.env.disk, maildir, file)?;
            turn.is_volatile = true;
            gone.insert((0, file.base().to_vec()));
        }
        dir_box.with_map(|map| map.remove_files(&gone));
        Ok(is_all)
    }

    /// Messages of others that are to go from here and that some other mailbox has without a durable file of its own.
    fn needed_elsewhere(&self, dir_box: &DirBox, state: &Arc<State>) -> Result<HashMap<EmailId, u32>> {
        let pending = counts(MaildirAccount::pending_of(state, dir_box.id).map(|one| &**one));
        let mut needed: HashMap<EmailId, u32> = HashMap::new();
        // Only where there are more entries than those that go.
        let doubtful: HashMap<EmailId, u32> =
            pending.into_iter().filter(|(id, count)| state.foreign_entries(*id) > *count).collect();
        if doubtful.is_empty() {
            return Ok(needed);
        }
        for mailbox in state.mailboxes() {
            let mut entries: HashMap<EmailId, u32> = HashMap::new();
            for (_, row) in mailbox.all_rows().filter(|(_, row)| doubtful.contains_key(&row.email_id)) {
                *entries.entry(row.email_id).or_default() += 1;
            }
            for (id, count) in entries {
                let other = self.dir_box(mailbox.id()).ok();
                let live = other.as_ref().and_then(|other| {
                    other.with_map(|map| map.of_message(id).iter().filter(|record| record.uid != 0).count())
                });
                let is_there =
                    live.is_some_and(|live| live >= count as usize) && self.is_durable(mailbox.id(), dir_box);
                if !is_there {
                    needed.insert(id, count);
                }
            }
        }
        Ok(needed)
    }

    /// Makes the names of a Maildir durable: who found them there does not know whether they are.
    fn is_durable(&self, id: model::MailboxId, ours: &DirBox) -> bool {
        let Some(maildir) = self.path_of(id) else { return false };
        // Our own are made durable before the map is saved and before the log forgets.
        id == ours.id || self.make_names_durable(&maildir).is_ok()
    }

    /// The letters of the keywords of a mailbox; keywords that have none get one, as long as there are any.
    fn letters_for<'r>(
        &self,
        turn: &mut Turn,
        maildir: &Path,
        mailbox: &Mailbox,
        rows: impl Iterator<Item = &'r Row>,
    ) -> Result<MailboxLetters> {
        let used = rows.fold(Flags::NONE, |used, row| used.with(row.flags));
        let table = mailbox.keywords();
        let forwarded = Keyword::new(FORWARDED).ok();
        let names = used.keyword_indexes().filter_map(|index| table.name(index));
        let names: Vec<&Keyword> = names.filter(|name| Some(*name) != forwarded.as_ref()).collect();
        let mut is_complete = true;
        if table.iter().next().is_some() {
            // Also for those that have none any more: their names may have letters that are to go.
            turn.keywords = self.read_keywords(maildir)?;
            if names.iter().any(|name| turn.keywords.letter(name).is_none()) {
                match keyword_file::assign(&self.env, maildir, &names)? {
                    Some(keywords) => turn.keywords = keywords,
                    // Somebody has locked it: the letters follow.
                    None => is_complete = false,
                }
            }
        }
        Ok(MailboxLetters::new(table, &turn.keywords, is_complete))
    }

    /// What is worth doing at such a moment: files that somebody was shown leave `new`, what was expunged is forgotten.
    pub(crate) fn write_back(&self, dir_box: &DirBox, moment: Moment) -> Result<()> {
        if !self.is_dirty(dir_box) && lock(&dir_box.map).is_none() {
            return Ok(());
        }
        if self.is_dirty(dir_box) {
            dir_box.wanted.store(true, Ordering::Release);
            self.write_out(dir_box)?;
        }
        if moment == Moment::Check {
            return Ok(());
        }
        // What was moved from here and could not go is to be elsewhere first.
        if dir_box.with_map(|map| !map.doomed().is_empty()).unwrap_or(false) {
            for mailbox in self.state().mailboxes().filter(|mailbox| mailbox.id() != dir_box.id) {
                let Ok(other) = self.dir_box(mailbox.id()) else { continue };
                self.audit(&other);
                let _later = self.write_out(&other);
            }
            dir_box.wanted.store(true, Ordering::Release);
            self.write_out(dir_box)?;
        }
        let Some(maildir) = self.path_of(dir_box.id) else { return Ok(()) };
        let mut turn = lock(&dir_box.turn);
        self.show_as_seen(dir_box, &mut turn, &maildir)?;
        if turn.is_volatile {
            self.make_names_durable(&maildir)?;
            turn.is_volatile = false;
        }
        self.forget(dir_box, &turn)
    }

    /// Whether there may be something to do.
    pub(super) fn is_dirty(&self, dir_box: &DirBox) -> bool {
        let state = self.state();
        let Some(mailbox) = state.mailbox(dir_box.id) else { return false };
        let is_behind = dir_box.with_map(|map| mailbox.highest_modseq() > map.shown || !map.doomed().is_empty());
        is_behind.unwrap_or(false) || dir_box.wanted.load(Ordering::Acquire)
    }

    /// Moves files out of `new` that somebody was shown: other programs take what is there for new mail.
    fn show_as_seen(&self, dir_box: &DirBox, turn: &mut Turn, maildir: &Path) -> Result<()> {
        let state = self.state();
        let Some(mailbox) = state.mailbox(dir_box.id) else { return Ok(()) };
        let floor = mailbox.recent_floor();
        let shown = dir_box.with_map(|map| {
            let records = map.records().iter().enumerate();
            let is_due = |record: &Record| record.subdir == Subdir::New && record.uid < floor;
            let due = records.filter(|(_, record)| is_due(record));
            due.map(|(at, record)| (Position::Live(at), *record, map.name(record).to_vec())).collect::<Vec<_>>()
        });
        for (position, record, name) in shown.unwrap_or_default() {
            let Some(parsed) = Name::parse(&name) else { continue };
            let new = parsed.with_letters(parsed.letters());
            let new = Listed { subdir: Subdir::Cur, name: new.write(), base_len: parsed.base.len() };
            self.rename(dir_box, turn, maildir, (position, &record, &name), &new)?;
        }
        Ok(())
    }

    /// The files are gone: the log forgets what was expunged.
    fn forget(&self, dir_box: &DirBox, turn: &Turn) -> Result<()> {
        if !turn.is_settled {
            return Ok(());
        }
        let state = self.state();
        let Some(hidden) = MaildirAccount::pending_of(&state, dir_box.id).filter(|hidden| hidden.exists() > 0) else {
            return Ok(());
        };
        // Entries that were expunged just now may still have their records among the living.
        let there = dir_box.with_map(|map| {
            let mut there: HashMap<EmailId, u32> = HashMap::new();
            for record in
                map.doomed().iter().chain(map.records().iter().filter(|record| !is_live(&state, dir_box, record)))
            {
                *there.entry(record.email_id).or_default() += 1;
            }
            there
        });
        let mut there = there.unwrap_or_default();
        let mut done = UidSet::new();
        for (_, row) in hidden.all_rows() {
            match there.get_mut(&row.email_id).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => {
                    done.insert(row.uid.get());
                }
            }
        }
        if done.is_empty() {
            return Ok(());
        }
        let id = hidden.id();
        self.log.commit(|transaction| transaction.expunge(id, &done).map(drop))?;
        let state = self.state();
        self.served.forget_ghosts(|id| state.foreign(id).is_none());
        Ok(())
    }
}

fn is_live(state: &State, dir_box: &DirBox, record: &Record) -> bool {
    let row = state.mailbox(dir_box.id).and_then(|mailbox| mailbox.row_of(Uid::new(record.uid)?));
    row.is_some_and(|(_, row)| row.email_id == record.email_id)
}

/// Removes a file, whatever its name is now.
pub(super) fn unlink(disk: &dyn Disk, maildir: &Path, file: &Listed) -> Result<()> {
    let mut file = file.clone();
    loop {
        let path = listing::path(maildir, file.subdir, &file.name);
        match disk.remove(&path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::from(error).context(path.display())),
        }
        match listing::locate(disk, maildir, &file.name) {
            Ok(Some(found)) => file = found,
            Ok(None) => return Ok(()),
            Err(error) => return Err(Error::from(error).context(maildir.display())),
        }
    }
}

/// The entries that have no file: all of them have come since the names showed everything.
pub(super) fn to_be_added(dir_box: &DirBox, mailbox: &Mailbox) -> Vec<Row> {
    let found = dir_box.with_map(|map| {
        let rows = mailbox.changed_since(map.shown).map(|(_, row)| row);
        rows.filter(|row| map.find(row.uid.get()).is_none()).collect()
    });
    found.unwrap_or_default()
}

/// Files of entries that were expunged since are to go.
fn doom_expunged(state: &Arc<State>, dir_box: &DirBox, mailbox: &Mailbox) {
    dir_box.with_map(|map: &mut Map| {
        let vanished = mailbox.vanished_since(map.shown);
        let is_known = |uid: &u32| map.find(*uid).is_some_and(|(_, record)| !is_live(state, dir_box, &record));
        let gone: Vec<u32> = vanished.iter().filter(is_known).collect();
        match gone.as_slice() {
            [] => {}
            _ => super::sync::bury(state, dir_box, map),
        }
    });
}

/// How often each message is in a mailbox.
pub(super) fn counts(mailbox: Option<&Mailbox>) -> HashMap<EmailId, u32> {
    let mut counts = HashMap::new();
    for (_, row) in mailbox.into_iter().flat_map(|mailbox| mailbox.all_rows()) {
        *counts.entry(row.email_id).or_default() += 1;
    }
    counts
}

/// Flags of the log as the letters of a mailbox's names.
pub(super) struct MailboxLetters {
    /// By index of the keyword.
    by_keyword: Vec<Option<u8>>,
    /// Those that mean something in this mailbox: others in a name stay as they are.
    known: Letters,
    /// Every keyword that can have a letter has one.
    is_complete: bool,
}

impl MailboxLetters {
    pub(super) fn new(table: &KeywordTable, keywords: &Keywords, is_complete: bool) -> Self {
        let forwarded = Keyword::new(FORWARDED).ok();
        let letter = |keyword: &Keyword| match Some(keyword) == forwarded.as_ref() {
            true => Some(PASSED),
            false => keywords.letter(keyword),
        };
        let by_keyword: Vec<Option<u8>> = table.iter().map(letter).collect();
        let system = Letters::of_system(model::SYSTEM_FLAGS).with(PASSED);
        let known = by_keyword.iter().flatten().fold(system, |known, letter| known.with(*letter));
        MailboxLetters { by_keyword, known, is_complete }
    }

    /// What a name should say that says `now`.
    pub(super) fn of(&self, flags: Flags, now: Letters) -> Letters {
        let system = Letters::of_system(flags.system_flags());
        let keywords = flags.keyword_indexes().filter_map(|index| self.by_keyword.get(index).copied().flatten());
        keywords.fold(now.difference(self.known).union(system), Letters::with)
    }
}
