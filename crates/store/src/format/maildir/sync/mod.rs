//! Taking into the log what other programs did to a Maildir.
//!
//! A Maildir whose two directories are as they were at the last look is not even listed. Otherwise the names of which the system has told
//! ([`by_name`]), or else all names in what has changed, are held against the map: a file is known by its base name ([`diff`]); only files with a
//! base that is not known are opened ([`arrivals`]).
//! What is new gets an entry, what is gone is expunged, flags that others changed are changed in the log ([`deltas`]).
//!
//! Invariants:
//! - The log is told first: a map names only entries that the log has durably.
//! - A file counts as gone when the system has told that it was removed, when a look that nobody disturbed does not show it, or when none of
//!   [`LOOKS_MAX`] does.
//! - News that were taken and not used are lost to nobody: then everything is looked at again.
//! - Nothing is taken for absent that could not be looked at: an error of the disk leaves the log as it is.

mod arrivals;
mod by_name;
mod deltas;
mod diff;
pub(super) mod lists;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use index::{State, Ticket};
use model::{Error, ErrorKind, Result, UidSet};
use platform::parent_of;

use self::arrivals::Newcomer;
use self::diff::Diff;
use super::account::{DirBox, MaildirAccount, Turn, lock};
use super::keywords::Keywords;
use super::listing::{self, Look, Stamp, Subdir};
use super::map::{Fate, Map, Position};
use super::news::Told;
use crate::format::adoption::read_if_there;
use crate::format::files::Patience;

/// How often a Maildir is looked at anew that others change meanwhile.
const LOOKS_MAX: usize = 3;
/// Messages that are new to the log and go into one transaction at most.
const ARRIVALS_MAX: usize = 10_000;

impl MaildirAccount {
    /// Brings the log up to date with the Maildir of a mailbox. Costs two questions to the file system when nothing has changed.
    pub(crate) fn refresh(&self, dir_box: &DirBox, patience: Patience) -> Result<()> {
        self.watch(dir_box);
        if self.is_unchanged(dir_box)? {
            return Ok(());
        }
        let turn = match patience {
            Patience::Wait => Some(lock(&dir_box.turn)),
            // Whoever has the turn will see what we would have seen.
            Patience::None => dir_box.turn.try_lock().ok(),
        };
        let Some(mut turn) = turn else { return Ok(()) };
        self.sync(dir_box, &mut turn)
    }

    /// Whether the system says of the directories what it said at the last look.
    fn is_unchanged(&self, dir_box: &DirBox) -> Result<bool> {
        let known = dir_box.with_map(|map| map.stamp).flatten();
        let (Some(known), Some(maildir)) = (known, self.path_of(dir_box.id)) else { return Ok(false) };
        if dir_box.is_restless.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if dir_box.news.is_all_told() {
            self.env.watch.settle();
            if !dir_box.news.is_nothing() {
                return Ok(false);
            }
        }
        match Stamp::take(&*self.env.disk, &maildir) {
            Ok(now) => Ok(now == known),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::from(error).context(maildir.display())),
        }
    }

    /// See [`MaildirAccount::refresh`].
    pub(super) fn sync(&self, dir_box: &DirBox, turn: &mut Turn) -> Result<()> {
        let Some(maildir) = self.path_of(dir_box.id) else { return Ok(()) };
        self.open_box(dir_box, turn);
        if dir_box.news.is_all_told() {
            self.env.watch.settle();
        }
        let told = dir_box.news.take();
        let done = self.sync_told(dir_box, turn, &maildir, &told);
        if done.is_err() {
            dir_box.news.lose();
            lock(&dir_box.uids).forget();
        } else if !dir_box.news.is_nothing() {
            // Whoever was told of it meanwhile found our turn taken.
            self.listeners.call();
        }
        done
    }

    fn sync_told(&self, dir_box: &DirBox, turn: &mut Turn, maildir: &Path, told: &Told) -> Result<()> {
        let looked = match self.look_told(dir_box, maildir, told) {
            Ok(Looked::Unchanged) => {
                turn.is_settled = true;
                return Ok(());
            }
            Ok(Looked::Changed(diff)) => Some(*diff),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.unwatch(dir_box);
                self.absent(dir_box, maildir, error)?
            }
            Err(error) => return Err(Error::from(error).context(maildir.display())),
        };
        let Some(diff) = looked else { return Ok(()) };
        self.take_in(dir_box, turn, maildir, diff)
    }

    /// Looks at what has changed, and at no more than that where the system has told what it is.
    fn look_told(&self, dir_box: &DirBox, maildir: &Path, told: &Told) -> std::io::Result<Looked> {
        let disk = &*self.env.disk;
        // After the news were taken: what comes later will be told.
        let now = Stamp::take(disk, maildir)?;
        let known = dir_box.with_map(|map| map.stamp).flatten();
        let is_restless = dir_box.is_restless.load(Ordering::Relaxed);
        if known == Some(now)
            && !is_restless
            && (told.is_nothing() || told.names.is_empty() && !now.is_fresh(&*self.env.clock))
        {
            return Ok(Looked::Unchanged);
        }
        if known.is_some_and(|known| known.inodes() != now.inodes()) {
            // Other directories stand there now.
            self.unwatch(dir_box);
        } else if known.is_some() && !is_restless && !told.is_any && !told.is_nothing() {
            let mut is_there = |subdir: Subdir, name: &[u8]| disk.exists(&listing::path(maildir, subdir, name));
            let mut file_of = |base: &[u8]| dir_box.with_map(|map| map.file_of_base(base)).flatten();
            if let Some(diff) = by_name::look(told, now, &mut file_of, &mut is_there)? {
                return Ok(Looked::Changed(Box::new(diff)));
            }
        }
        self.look(dir_box, maildir, known.as_ref(), now).map(|diff| Looked::Changed(Box::new(diff)))
    }

    /// Takes up the map of a mailbox.
    pub(super) fn open_box(&self, dir_box: &DirBox, turn: &mut Turn) {
        if turn.is_open {
            return;
        }
        let disk = &*self.env.disk;
        let mut map = Map::load(disk, &self.map_path(dir_box.id)).unwrap_or_default();
        let is_fresh = map.stamp.is_none_or(|stamp| stamp.is_fresh(&*self.env.clock));
        dir_box.is_restless.store(is_fresh, Ordering::Relaxed);
        bury(&self.state(), dir_box, &mut map);
        *lock(&dir_box.map) = Some(map);
        turn.is_open = true;
        // What is to be shown after an interruption is found by comparing.
        dir_box.wanted.store(true, Ordering::Release);
    }

    /// Lists until it is clear what is different from what was `known`; the directories are `now`.
    fn look(&self, dir_box: &DirBox, maildir: &Path, known: Option<&Stamp>, now: Stamp) -> std::io::Result<Diff> {
        let (disk, clock) = (&*self.env.disk, &*self.env.clock);
        // Where only one directory was touched, the other need not be read: nobody moved a file between them.
        let is_restless = dir_box.is_restless.load(Ordering::Relaxed);
        let same = |subdir| !is_restless && known.is_some_and(|known| known.of(subdir) == now.of(subdir));
        let only = match (same(Subdir::New), same(Subdir::Cur)) {
            (false, true) => Some(Subdir::New),
            (true, false) => Some(Subdir::Cur),
            _ => None,
        };
        let compare = |look: Look| dir_box.with_map(|map| Diff::new(map, look)).unwrap_or_default();
        if only.is_some() {
            let diff = compare(Look::take(disk, clock, maildir, only)?);
            // The other directory was asked before this one was read, and again after it.
            if diff.missing.is_empty() && known.is_some_and(|known| other(known, only) == other(&diff.stamp, only)) {
                return Ok(diff);
            }
        }
        let mut diff = compare(Look::take(disk, clock, maildir, None)?);
        let mut gone: Option<HashSet<Position>> = None;
        for _ in 1..LOOKS_MAX {
            let missing: HashSet<Position> = diff.missing.iter().copied().collect();
            gone = Some(gone.map_or(missing.clone(), |gone| gone.intersection(&missing).copied().collect()));
            if diff.is_stable || diff.missing.is_empty() {
                break;
            }
            diff = compare(Look::take(disk, clock, maildir, None)?);
        }
        // What some look has shown is not gone; where it is now, the next one will tell.
        if !diff.is_stable
            && let Some(gone) = gone
        {
            diff.missing.retain(|position| gone.contains(position));
        }
        Ok(diff)
    }

    /// A directory is not there: a Maildir that somebody has removed has no messages, if the place where it should be can be looked at and
    /// is where it was.
    fn absent(&self, dir_box: &DirBox, maildir: &Path, error: std::io::Error) -> Result<Option<Diff>> {
        let known = dir_box.with_map(|map| map.stamp.map(|stamp| stamp.cur.device)).flatten();
        let not_there = |path: &Path, error: std::io::Error| Error::from(error).context(path.display());
        let is_empty = dir_box.with_map(|map| map.records().is_empty() && map.doomed().is_empty()).unwrap_or(true);
        if maildir == self.root || self.env.disk.exists(maildir)? {
            // Half a Maildir, or an INBOX that went away: something is being repaired, or is not mounted.
            return if is_empty { Ok(None) } else { Err(not_there(maildir, error)) };
        }
        let top = self.env.disk.metadata(&self.root.join("cur")).map_err(|error| not_there(&self.root, error))?;
        if known.is_some_and(|device| device != top.device) {
            return Err(not_there(maildir, error));
        }
        Ok((!is_empty).then(|| dir_box.with_map(|map| Diff::all_gone(map)).unwrap_or_default()))
    }

    /// Tells the log what is different, and then the map.
    fn take_in(&self, dir_box: &DirBox, turn: &mut Turn, maildir: &Path, diff: Diff) -> Result<()> {
        let (mut newcomers, has_vanished) = self.read_new(maildir, &diff)?;
        // Whatever was changed meanwhile will be told.
        let mut is_restless = (!diff.is_stable || has_vanished) && !dir_box.news.is_all_told();
        if diff.has_keywords() || newcomers.iter().any(|newcomer| newcomer.letters().keywords().next().is_some()) {
            turn.keywords = self.read_keywords(maildir)?;
        }
        if !(diff.moved.is_empty() && diff.unknown.is_empty() && diff.missing.is_empty()) {
            // Whoever did it may have told nobody what it changes in the quota.
            self.doubt_sizes();
        }
        let state = self.state();
        let renamed = self.recognise(&state, dir_box, turn, &diff, &mut newcomers)?;
        let taken: HashSet<Position> = renamed.iter().map(|(position, _)| *position).collect();
        let missing: Vec<Position> =
            diff.missing.iter().filter(|position| !taken.contains(position)).copied().collect();
        let mut ticket = self.tell_changes(dir_box, turn, &diff, &renamed, &missing)?;
        let known: Vec<_> = newcomers.iter().map(|newcomer| newcomer.known).collect();
        let mut arrived = Vec::new();
        let mut news: Vec<Newcomer> = Vec::new();
        let mut others: Vec<Newcomer> = Vec::new();
        for (newcomer, known) in newcomers.into_iter().zip(known) {
            if known.is_some() { others.push(newcomer) } else { news.push(newcomer) }
        }
        // Where it cannot be had, both servers may give UIDs of their own.
        let list_lock = if news.is_empty() { None } else { self.lock_uids(maildir).unwrap_or_default() };
        let lists = self.read_lists(&state, dir_box, maildir, &news)?;
        news.sort_by(|a, b| {
            let uid = |one: &Newcomer| lists.uid(one.file.base()).unwrap_or(u32::MAX);
            uid(a).cmp(&uid(b)).then_with(|| a.in_order_of_arrival(b))
        });
        let mut left = news.len();
        for batch in news.chunks(ARRIVALS_MAX) {
            left -= batch.len();
            let (ids, last) = self.tell_arrivals(dir_box, turn, batch, &lists, left == 0)?;
            arrived.extend(ids);
            ticket = Some(last);
        }
        {
            let mut uids = lock(&dir_box.uids);
            for (newcomer, (uid, _)) in news.iter().zip(&arrived) {
                uids.add(*uid, newcomer.file.base(), &newcomer.file.name);
            }
        }
        if list_lock.is_some() {
            // Before the log is durable: the UIDs of a list are believed, whoever wrote them. What cannot be written now is written later.
            let _later = self.add_uids(dir_box);
        }
        ticket.map_or(Ok(()), Ticket::wait)?;
        dir_box.with_map(|map| {
            for (position, file) in diff.moved.iter().chain(&renamed) {
                map.rename(*position, file);
            }
            let gone: HashSet<(u32, Vec<u8>)> = missing
                .iter()
                .filter_map(|position| map.at(*position))
                .map(|record| (record.uid, map.base(&record).to_vec()))
                .collect();
            if !gone.is_empty() {
                map.remove_files(&gone);
            }
            for newcomer in &others {
                match newcomer.known {
                    Some((0, id)) => map.insert_doomed(id, &newcomer.file),
                    Some((uid, id)) => map.insert(uid, id, &newcomer.file),
                    None => {}
                }
            }
            for (newcomer, (uid, id)) in news.iter().zip(&arrived) {
                map.insert(*uid, *id, &newcomer.file);
            }
            is_restless |= map.stamp.is_none() && !diff.is_whole;
            map.stamp = Some(diff.stamp);
            map.touch();
        });
        dir_box.is_restless.store(is_restless, Ordering::Relaxed);
        turn.is_settled = true;
        turn.digests.clear();
        if list_lock.is_some() {
            let _later = self.write_uids(&self.state(), dir_box, maildir);
        }
        Ok(())
    }

    /// Expunges what is gone and changes flags that others changed.
    fn tell_changes(
        &self,
        dir_box: &DirBox,
        turn: &Turn,
        diff: &Diff,
        renamed: &[(Position, super::listing::Listed)],
        missing: &[Position],
    ) -> Result<Option<Ticket>> {
        let found = dir_box.with_map(|map| {
            let of = |(position, file): &(Position, super::listing::Listed)| {
                let record = map.at(*position).filter(|record| record.uid != 0)?;
                deltas::Delta::between(record.uid, map.letters(&record), file.letters())
            };
            let deltas: Vec<_> = diff.moved.iter().chain(renamed).filter_map(of).collect();
            let uids = missing.iter().filter_map(|position| map.at(*position)).map(|record| record.uid);
            let mut gone: Vec<u32> = uids.filter(|uid| *uid != 0).collect();
            gone.sort_unstable();
            (deltas, gone.into_iter().collect::<UidSet>(), map.shown)
        });
        let Some((deltas, gone, mut shown)) = found else { return Ok(None) };
        if deltas.is_empty() && gone.is_empty() {
            return Ok(None);
        }
        // After an interruption nobody can say who wrote what is newer than what was shown: the log wins.
        let only_until = (!turn.is_settled).then_some(shown);
        let id = dir_box.id;
        let ((), ticket) = self.log.transact(|transaction| {
            let is_shown = transaction.mailbox(id)?.highest_modseq() <= shown;
            deltas::apply(transaction, id, &deltas, &turn.keywords, only_until)?;
            transaction.expunge(id, &gone)?;
            if is_shown {
                shown = transaction.mailbox(id)?.highest_modseq();
            }
            Ok(())
        })?;
        dir_box.with_map(|map| map.shown = shown);
        Ok(Some(ticket))
    }

    /// What the letters of keywords stand for in a Maildir now.
    pub(super) fn read_keywords(&self, maildir: &Path) -> Result<Keywords> {
        let bytes = read_if_there(&*self.env.disk, &maildir.join(super::KEYWORDS_FILE))?;
        Ok(bytes.map_or_else(Keywords::default, |bytes| Keywords::parse(&bytes)))
    }

    /// Saves a map that has changed, so that the next opening need not look for what is known.
    pub(super) fn save_map(&self, dir_box: &DirBox, turn: &mut Turn) -> Result<()> {
        let Some(maildir) = self.path_of(dir_box.id) else { return Ok(()) };
        if dir_box.with_map(|map| map.changes()).is_none_or(|changes| changes == 0) {
            return Ok(());
        }
        self.make_names_durable(&maildir)?;
        turn.is_volatile = false;
        let Some(mut map) = lock(&dir_box.map).clone() else { return Ok(()) };
        if dir_box.is_restless.load(Ordering::Relaxed) || !self.is_certain(dir_box, &maildir, map.stamp) {
            map.stamp = None;
        }
        map.save(&*self.env.disk, &self.map_path(dir_box.id))?;
        dir_box.with_map(Map::set_saved);
        Ok(())
    }

    /// Whether nothing was changed since `stamp` that the times of the directories do not show.
    fn is_certain(&self, dir_box: &DirBox, maildir: &Path, stamp: Option<Stamp>) -> bool {
        let is_all_told = dir_box.news.is_all_told();
        if is_all_told {
            self.env.watch.settle();
        }
        let is_still = |stamp| Stamp::take(&*self.env.disk, maildir).is_ok_and(|now| now == stamp);
        // Where nothing is told, the look itself has seen to that.
        stamp.is_some_and(|stamp| {
            !is_all_told || !stamp.is_fresh(&*self.env.clock) && is_still(stamp) && dir_box.news.is_nothing()
        })
    }

    /// Makes the names in both directories durable, whoever changed them.
    pub(super) fn make_names_durable(&self, maildir: &Path) -> Result<()> {
        for subdir in Subdir::ALL {
            match self.env.disk.sync_dir(&maildir.join(subdir.as_str())) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        match self.env.disk.sync_dir(maildir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(self.env.disk.sync_dir(parent_of(maildir))?)
            }
            result => Ok(result?),
        }
    }
}

/// What a look has shown.
enum Looked {
    /// Nothing that is not known.
    Unchanged,
    Changed(Box<Diff>),
}

/// The stamp of the directory that was not read.
fn other(stamp: &Stamp, read: Option<Subdir>) -> crate::format::mbox::identity::Identity {
    match read {
        Some(Subdir::New) => stamp.cur,
        _ => stamp.new,
    }
}

/// Files whose entries the log does not have any more are to go, if the log still knows their messages as expunged; of others nothing is known.
pub(super) fn bury(state: &Arc<State>, dir_box: &DirBox, map: &mut Map) {
    let mailbox = state.mailbox(dir_box.id);
    let pending = MaildirAccount::pending_of(state, dir_box.id);
    let mut expunged = super::project::counts(pending.map(|pending| &**pending));
    for record in map.doomed() {
        if let Some(count) = expunged.get_mut(&record.email_id) {
            *count = count.saturating_sub(1);
        }
    }
    map.doom_all(|record| {
        let row = mailbox.and_then(|mailbox| mailbox.row_of(model::Uid::new(record.uid)?));
        if row.is_some_and(|(_, row)| row.email_id == record.email_id) {
            return Fate::Keep;
        }
        match expunged.get_mut(&record.email_id).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                Fate::Doom
            }
            None => Fate::Forget,
        }
    });
}

/// The message vanished while it was looked at.
pub(super) fn is_gone(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
