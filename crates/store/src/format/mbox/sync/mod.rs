//! Taking into the log what other programs did to a file.
//!
//! A file that is as it was at the last look is not even opened. One that has grown and has the same end is read from there; any other one
//! is read whole, and its messages are found in the log by their digests ([`lineup`]). Those that are known keep their UIDs wherever they
//! stand now; what is new gets an entry ([`arrivals`]), what is gone is expunged, flags that others changed are changed in the log ([`deltas`]).
//!
//! Invariants:
//! - The log is told first: a map that is saved names only messages that the log has durably.
//! - Nothing is taken for absent that could not be looked at: an error of the disk leaves the log as it is.
//! - Memory: some tens of octets a message while a large file is read whole, a batch of messages besides.

mod arrivals;
mod deltas;
pub(super) mod flags;
mod lineup;

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use index::{Mailbox, Row, State, Ticket, Transaction};
use model::{EmailId, Error, ErrorKind, MailboxId, MailboxName, ModSeq, Result, UidSet};
use platform::{File, OpenMode, parent_of};

use self::arrivals::Arrival;
use self::deltas::{Delta, Deltas};
use self::lineup::Lineup;
use super::account::{FileBox, MboxAccount, Patience, Turn};
use super::digest::DigestOfServed;
use super::identity::{Identity, tail_digest};
use super::intake::intake;
use super::intake_parallel::intake_parallel;
use super::lock::{Access, MailboxLock};
use super::map::{Facts, Map, MapBuilder};
use super::place::{Found, ImapBase, Place};
use super::scan::{MessageFlags, Scanner, Step, not_an_mbox};
use super::write::{Unsettled, keywords_hash};

/// Messages that are new to the log and go into one transaction at most.
const ARRIVALS_MAX: usize = 10_000;
/// Messages that wait for their email ids at most.
const WAITING_MAX: usize = 20_000;
/// How often a file is read anew that somebody changes without a lock.
const RESTLESS_MAX: usize = 3;
/// A file that was changed in the same instant in which it was read is read again, if it is no larger than this, octets: a second change
/// of that instant may not show.
const FRESH_BYTES_MAX: u64 = 1 << 20;
/// No message: what is expected where a pseudo message stood.
const NONE: EmailId = EmailId(0);
/// A map is saved once so many places in it have changed.
const MAP_CHANGES_MAX: usize = 20_000;

impl MboxAccount {
    /// Brings the log up to date with the file of a mailbox. Costs one question to the file system when nothing has changed, and
    /// then waits for nobody. [`ErrorKind::InUse`]: another program has locked the file.
    pub(crate) fn refresh(&self, file_box: &FileBox, patience: Patience) -> Result<()> {
        if self.state().mailbox(file_box.id).is_none() {
            return if self.is_unchanged(file_box)? { Ok(()) } else { self.look_into_kept(file_box) };
        }
        self.watch(file_box);
        if self.is_unchanged(file_box)? {
            return Ok(());
        }
        let turn = match patience {
            Patience::Wait => Some(self.wait_for_turn(file_box)),
            // Whoever has the turn will see what we would have seen.
            Patience::None => file_box.turn.try_lock().ok(),
        };
        let Some(mut turn) = turn else { return Ok(()) };
        self.sync(file_box, &mut turn, patience)
    }

    /// Whether the system says of the file what it said at the last look.
    fn is_unchanged(&self, file_box: &FileBox) -> Result<bool> {
        let (Some(map), Some(path)) = (file_box.map(), self.path_of(file_box.id)) else { return Ok(false) };
        match self.env.disk.metadata(&path) {
            Ok(found) => Ok(is_as_before(&map, &Identity::of(&found), file_box)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::from(error).context(path.display())),
        }
    }

    /// See [`MboxAccount::refresh`].
    pub(super) fn sync(&self, file_box: &FileBox, turn: &mut Turn, patience: Patience) -> Result<()> {
        let Some(path) = self.path_of(file_box.id) else { return Ok(()) };
        self.open_box(file_box, turn)?;
        if !turn.is_whole_wanted && self.is_unchanged(file_box)? {
            return Ok(());
        }
        let lock = match patience {
            Patience::None => self.locker.try_lock(&path, Access::Read),
            Patience::Wait => match self.locker.try_lock(&path, Access::Read) {
                Err(error) if error.kind() == ErrorKind::InUse => {
                    self.options.aside.run(|| self.locker.lock(&path, Access::Read))
                }
                result => result,
            },
        };
        match lock {
            Ok(lock) => self.sync_locked(file_box, turn, &lock),
            Err(_) if !self.env.disk.exists(&path)? => self.absent(file_box, turn),
            Err(error) => Err(error),
        }
    }

    /// Finishes what was interrupted in the file, and takes up its map.
    pub(super) fn open_box(&self, file_box: &FileBox, turn: &mut Turn) -> Result<()> {
        turn.is_open &= !file_box.is_failed.load(Ordering::Acquire);
        if turn.is_open {
            return Ok(());
        }
        // What was interrupted may be long to finish, and a large map takes some milliseconds.
        self.options.aside.run(|| self.open_box_anew(file_box, turn))
    }

    fn open_box_anew(&self, file_box: &FileBox, turn: &mut Turn) -> Result<()> {
        let Some(path) = self.path_of(file_box.id) else { return Ok(()) };
        let is_trusted = self.recover(file_box, &path)?.fields_count;
        let mut map = Map::open(&*self.env.disk, &self.map_path(file_box.id)).filter(|_| is_trusted);
        let state = self.state();
        if let (Some(map), Some(mailbox)) = (&mut map, state.mailbox(file_box.id)) {
            let pending = MboxAccount::pending_of(&state, file_box.id).map(|one| &**one);
            if orphans(mailbox, pending, map).is_empty() { map.set_known() } else { map.distrust() }
        }
        file_box.set_map(map.map(Arc::new));
        (turn.is_open, turn.is_unsettled) = (true, !is_trusted);
        file_box.is_failed.store(false, Ordering::Release);
        Ok(())
    }

    /// The file is not there: an mbox without messages, if the place where it should be can be looked at and is where it was.
    fn absent(&self, file_box: &FileBox, turn: &mut Turn) -> Result<()> {
        let path = self.path_of(file_box.id).unwrap_or_default();
        if self.env.disk.exists(&path)? {
            // It was being renamed.
            return Err(Error::new(ErrorKind::InUse, "the mailbox file has just got another name"));
        }
        let top = if path == self.inbox { parent_of(&self.inbox) } else { &self.root };
        let found = self.env.disk.metadata(top).map_err(|error| Error::from(error).context(top.display()))?;
        let old = file_box.map();
        if old.as_ref().is_some_and(|map| map.facts().identity.device != found.device) {
            // A file system that is not mounted looks like one without files.
            return Err(Error::new(ErrorKind::Io, format!("{} is not where it was", top.display())));
        }
        let mut identity = Identity::of(&found);
        (identity.inode, identity.len) = (0, 0);
        if old.as_ref().is_some_and(|map| map.is_empty() && map.facts().identity.inode == 0) {
            return Ok(());
        }
        let mut reading = Reading::new(self, file_box, turn, old.as_deref(), None)?;
        reading.end_of_file()?;
        reading.finish(identity, 0, 0)
    }

    /// Reads what has changed in a locked file.
    pub(super) fn sync_locked(&self, file_box: &FileBox, turn: &mut Turn, lock: &MailboxLock) -> Result<()> {
        let file = lock.file();
        if turn.is_unsettled {
            // What an interrupted write left there is remembered as it is read now: a power cut must not take it back.
            file.sync_data().or_else(|error| self.sync_failed(file_box, error))?;
        }
        for _ in 0..RESTLESS_MAX {
            let identity = Identity::of_file(&**file)?;
            let old = file_box.map();
            let is_as_before = old.as_ref().is_some_and(|map| is_as_before(map, &identity, file_box));
            if is_as_before && !turn.is_whole_wanted {
                return Ok(());
            }
            let is_doubted = file_box.is_doubted.load(Ordering::Relaxed);
            let is_whole = is_doubted || turn.is_whole_wanted || identity.len <= self.options.whole_bytes_max;
            let grown = match &old {
                Some(map) if !is_whole && has_grown(map, &identity, &**file)? => Some(map.facts().settled as usize),
                _ => None,
            };
            let mut reading = Reading::new(self, file_box, turn, old.as_deref(), grown)?;
            let start = grown.and_then(|settled| old.as_ref()?.place(settled)).map_or(0, |place| place.start);
            let ended = self.go_over(identity.len.saturating_sub(start), || {
                let take = &mut |found| reading.take(found);
                match grown {
                    None => intake_parallel(&**file, self.options.jobs, take),
                    Some(_) => intake(&**file, Scanner::new(start), take),
                }
            })?;
            if ended.step == Step::NotMbox {
                return Err(not_an_mbox());
            }
            if Identity::of_file(&**file)? != identity {
                // What was taken in already is in the file, or will be found to be gone.
                reading.wait()?;
                continue;
            }
            reading.end_of_file()?;
            let settled = grown.unwrap_or(0) + ended.settled.map_or(0, |settled| settled.messages);
            let tail = tail_digest(&**file, identity.len)?;
            let is_noted = reading.has_deltas;
            reading.finish(identity, tail, settled)?;
            if grown.is_none() {
                turn.is_whole_wanted = false;
            }
            if is_doubted {
                file_box.is_doubted.store(false, Ordering::Relaxed);
            }
            if is_noted || turn.is_unsettled {
                // What the log was told is not to be seen as news again.
                self.make_map_durable(file_box)?;
            }
            if mem::take(&mut turn.is_unsettled) {
                // Whatever the fields say is remembered now.
                Unsettled::of(&self.env.disk, &self.files_dir(), file_box.id).settle()?;
            }
            return Ok(());
        }
        Err(Error::new(ErrorKind::InUse, "somebody changes the mailbox file again and again without a lock"))
    }

    /// Sees to it that no older map is found after a power cut: one that did not know what the fields say now.
    pub(super) fn make_map_durable(&self, file_box: &FileBox) -> Result<()> {
        let (disk, path) = (&self.env.disk, self.map_path(file_box.id));
        if let Some(map) = file_box.map().filter(|map| map.changes() > 0) {
            let mut map = Map::clone(&map);
            map.save(disk, &path)?;
            file_box.set_map(Some(Arc::new(map)));
        }
        disk.open(&path, OpenMode::ReadWrite)?.sync_data()?;
        Ok(disk.sync_dir(parent_of(&path))?)
    }

    /// A sync of the file of a mailbox has failed. The next one says that it worked, but nobody knows what the disk has.
    pub(super) fn sync_failed(&self, file_box: &FileBox, error: std::io::Error) -> Result<()> {
        Unsettled::of(&self.env.disk, &self.files_dir(), file_box.id).doubt()?;
        file_box.is_failed.store(true, Ordering::Release);
        file_box.wanted.store(true, Ordering::Release);
        Err(error.into())
    }

    /// The digest of a message as its file would have it.
    pub(super) fn digest_of(
        &self,
        state: &State,
        digests: &mut HashMap<EmailId, u64>,
        id: EmailId,
    ) -> Result<Option<u64>> {
        if let Some(message) = state.foreign(id) {
            return Ok(Some(message.digest));
        }
        if let Some(digest) = digests.get(&id) {
            return Ok(Some(*digest));
        }
        let digest = DigestOfServed::in_log(&self.log, id)?;
        digests.extend(digest.map(|digest| (id, digest)));
        Ok(digest)
    }
}

/// Whether a file has changed since its map was made.
fn is_as_before(map: &Map, found: &Identity, file_box: &FileBox) -> bool {
    // A larger one is looked at when the mailbox is idle.
    let is_in_doubt = found.len <= FRESH_BYTES_MAX && map.facts().is_fresh;
    map.facts().identity == *found && !is_in_doubt && !file_box.is_doubted.load(Ordering::Relaxed)
}

/// Whether something was added to the file. What was changed before that, and not at its old end, does not show: see [`Facts::is_grown`].
fn has_grown(map: &Map, found: &Identity, file: &dyn File) -> Result<bool> {
    let before = &map.facts().identity;
    let may_have = (before.device, before.inode) == (found.device, found.inode) && found.len > before.len;
    Ok(may_have && !map.is_empty() && tail_digest(file, before.len)? == map.facts().tail_digest)
}

/// A reading of a file under way.
struct Reading<'a> {
    account: &'a MboxAccount,
    file_box: &'a FileBox,
    digests: &'a mut HashMap<EmailId, u64>,
    /// The log before it.
    state: Arc<State>,
    old: Option<&'a Map>,
    /// Expected first are the places of `old` from here on, `old_places` of them; then what is not in the file as far as is known.
    old_from: usize,
    old_places: usize,
    lineup: Lineup,
    target: Target,
    /// Messages whose places are not in `target` yet, since those that are new have no email ids yet.
    /// Whether a message is new stands beside it.
    waiting: Vec<(Place, bool)>,
    arrivals: Vec<Arrival>,
    deltas: Vec<Delta>,
    has_deltas: bool,
    base: Option<ImapBase>,
    /// Up to where the file shows what the log says.
    written: ModSeq,
    ticket: Option<Ticket>,
}

/// Where the places go.
enum Target {
    /// A new map.
    New(Box<MapBuilder>),
    /// The old one, whose end was cut off.
    Grown(Box<Map>),
}

impl Target {
    fn push(&mut self, place: &Place) -> Result<()> {
        match self {
            Target::New(builder) => builder.push(place),
            Target::Grown(map) => map.push(place),
        }
    }
}

impl<'a> Reading<'a> {
    /// `grown`: it begins with this place of the old map.
    fn new(
        account: &'a MboxAccount,
        file_box: &'a FileBox,
        turn: &'a mut Turn,
        old: Option<&'a Map>,
        grown: Option<usize>,
    ) -> Result<Self> {
        let state = account.state();
        let gone = || Error::new(ErrorKind::NotFound, "the mailbox was deleted meanwhile");
        let mailbox = state.mailbox(file_box.id).ok_or_else(gone)?;
        let pending = MboxAccount::pending_of(&state, file_box.id);
        let old_from = grown.unwrap_or(0);
        let mut expected: Vec<EmailId> = Vec::new();
        if let Some(map) = old {
            let orphans = match map.is_known() {
                true => HashSet::new(),
                false => orphans(mailbox, pending.map(|pending| &**pending), map),
            };
            let places = (old_from..map.len()).filter_map(|n| Some((n, map.place(n)?)));
            // A pseudo message keeps its position, as one that nothing is like.
            let id = |place: &Place, n| place.email_id.filter(|_| !orphans.contains(&n)).unwrap_or(NONE);
            expected.extend(places.map(|(n, place)| id(&place, n)));
        }
        let old_places = expected.len();
        let unplaced = unplaced(mailbox, pending.map(|pending| &**pending), old);
        expected.extend(unplaced.iter().map(|row| row.email_id));
        let target = match (old, grown) {
            (Some(map), Some(settled)) => {
                let mut map = map.clone();
                map.truncate_from(settled);
                Target::Grown(Box::new(map))
            }
            _ => {
                let path = account.map_path(file_box.id);
                account.env.disk.create_dir_all(parent_of(&path))?;
                Target::New(Box::new(MapBuilder::create(&account.env.disk, &path)?))
            }
        };
        Ok(Reading {
            account,
            file_box,
            digests: &mut turn.digests,
            written: old.map_or(ModSeq(0), |map| map.facts().written),
            state,
            old,
            old_from,
            old_places,
            lineup: Lineup::new(expected),
            target,
            waiting: Vec::new(),
            arrivals: Vec::new(),
            deltas: Vec::new(),
            has_deltas: false,
            base: None,
            ticket: None,
        })
    }

    /// Takes the next message of the file.
    fn take(&mut self, found: Found) -> Result<()> {
        let mut place = place_of(&found);
        if let Some(base) = &found.meta.base {
            self.base = Some(base.clone());
        }
        let mut is_new = false;
        if !found.meta.is_pseudo {
            let (account, state, digests) = (self.account, &self.state, &mut *self.digests);
            let mut digest_of = |id: EmailId| if id == NONE { Ok(None) } else { account.digest_of(state, digests, id) };
            // Messages that are the same may have different flags.
            let (old, from, known) = (self.old, self.old_from, self.old_places);
            let suits = |position: usize| {
                if position >= known {
                    // One that was never seen in the file is not preferred to one that was.
                    return known == 0;
                }
                let old = old.and_then(|map| map.place(from + position));
                old.is_none_or(|old| (old.flags, old.keywords) == (place.flags, place.keywords))
            };
            match self.lineup.take(found.digest, &suits, &mut digest_of)? {
                Some((position, id)) => {
                    place.email_id = Some(id);
                    self.compare(position, &place, found);
                }
                None => {
                    let arrival = Arrival::new(found);
                    is_new = arrival.is_some();
                    self.arrivals.extend(arrival);
                }
            }
        }
        self.waiting.push((place, is_new));
        if self.arrivals.len() >= ARRIVALS_MAX || self.waiting.len() >= WAITING_MAX {
            self.settle()?;
        }
        Ok(())
    }

    /// Notes how the fields of a known message differ from what they said before.
    fn compare(&mut self, position: usize, place: &Place, found: Found) {
        if position >= self.old_places {
            // Not known how they were: what the log says is newer than anything that it does not know of.
            return;
        }
        let Some(old) = self.old.and_then(|map| map.place(self.old_from + position)) else { return };
        let keywords = (old.keywords != place.keywords).then_some(found.meta.keywords);
        self.deltas.extend(Delta::between(&old, place, keywords));
    }

    /// Gives entries to the messages that are new and wait for them.
    fn settle(&mut self) -> Result<()> {
        let arrivals = mem::take(&mut self.arrivals);
        let mut ids = Vec::new();
        if !arrivals.is_empty() {
            let (id, base, mut written) = (self.file_box.id, self.base.as_ref(), self.written);
            let (added, ticket) = self.account.log.transact(|transaction| {
                let mailbox = transaction.mailbox(id)?;
                let is_shown = mailbox.highest_modseq() <= written || mailbox.exists() == 0;
                let ids = arrivals::add(transaction, id, base, arrivals)?;
                if is_shown {
                    written = transaction.mailbox(id)?.highest_modseq();
                }
                Ok(ids)
            })?;
            (ids, self.written) = (added, written);
            self.ticket = Some(ticket);
        }
        let mut ids = ids.into_iter();
        for (mut place, is_new) in self.waiting.drain(..) {
            if is_new {
                place.email_id = ids.next();
            }
            self.target.push(&place)?;
        }
        Ok(())
    }

    /// All of the file was seen: what was not found is gone, and flags that others changed are changed.
    fn end_of_file(&mut self) -> Result<()> {
        self.settle()?;
        let (account, id) = (self.account, self.file_box.id);
        let next = account.state().mailbox(id).and_then(|mailbox| mailbox.uidnext());
        if let Some(base) = self.base.as_ref().filter(|base| next.is_some_and(|next| next.get() <= base.last_uid)) {
            let ((), ticket) = account.log.transact(|transaction| arrivals::pass_over_used(transaction, id, base))?;
            self.ticket = Some(ticket);
        }
        let mut missing: HashMap<EmailId, Missing> = HashMap::new();
        for (position, id) in self.lineup.missing().filter(|(_, id)| *id != NONE) {
            let missing = missing.entry(id).or_default();
            *if position < self.old_places { &mut missing.from_file } else { &mut missing.never_seen } += 1;
        }
        if missing.is_empty() && self.deltas.is_empty() {
            return Ok(());
        }
        let id = self.file_box.id;
        self.has_deltas |= !self.deltas.is_empty();
        let deltas = Deltas::new(mem::take(&mut self.deltas), self.written);
        let never_seen = missing.iter().filter(|(_, missing)| missing.never_seen > 0).map(|(id, _)| *id);
        let kept = account.in_kept_files(&account.state(), &never_seen.collect());
        let mut written = self.written;
        let before = &self.state;
        let ((), ticket) = self.account.log.transact(|transaction| {
            let is_shown = transaction.mailbox(id)?.highest_modseq() <= written;
            deltas.apply(transaction, id)?;
            remove(transaction, before, id, missing, &kept)?;
            if is_shown {
                written = transaction.mailbox(id)?.highest_modseq();
            }
            Ok(())
        })?;
        self.written = written;
        self.ticket = Some(ticket);
        Ok(())
    }

    /// Waits until everything is durable in the log.
    fn wait(&mut self) -> Result<()> {
        self.ticket.take().map_or(Ok(()), Ticket::wait)
    }

    /// Makes the map that of the file as it was read.
    fn finish(mut self, identity: Identity, tail_digest: u64, settled: usize) -> Result<()> {
        self.wait()?;
        let is_fresh = identity.is_fresh(self.account.env.clock.now());
        let is_grown = matches!(self.target, Target::Grown(_));
        let facts = Facts { identity, tail_digest, settled: settled as u32, written: self.written, is_fresh, is_grown };
        let map = match self.target {
            Target::New(builder) => builder.finish(&facts)?,
            Target::Grown(mut map) => {
                map.set_facts(facts);
                map.set_known();
                if map.changes() >= MAP_CHANGES_MAX {
                    map.save(&self.account.env.disk, &self.account.map_path(self.file_box.id))?;
                }
                *map
            }
        };
        self.file_box.set_map(Some(Arc::new(map)));
        Ok(())
    }
}

/// Entries of one message that were expected in the file and are not there.
#[derive(Clone, Copy, Default)]
struct Missing {
    /// They were in the file.
    from_file: u32,
    /// As far as is known they were never written into it.
    never_seen: u32,
    /// All entries that there were, of the mailbox.
    live: u32,
    /// All that were pending.
    pending: u32,
}

impl Missing {
    /// How many entries go: pending ones, and others.
    ///
    /// The places in the file are those of live entries first, as in a removal. Of what vanished as much as possible was to go; and what was
    /// to go and has no place is done with.
    fn gone(&self) -> (u32, u32) {
        let places = (self.live + self.pending).saturating_sub(self.never_seen);
        let with_place = places.saturating_sub(self.live).min(self.pending);
        let removed = self.from_file.min(with_place);
        (self.pending - with_place + removed, self.from_file - removed)
    }
}

/// Expunges what is gone from the file. What was never seen there is still to be written; but a message of other programs of which no other entry
/// is left, here or elsewhere, has no octets any more, but for those that are in a file that is `kept`. `before`: the state of which the
/// entries were expected.
fn remove(
    transaction: &mut Transaction,
    before: &State,
    id: MailboxId,
    mut missing: HashMap<EmailId, Missing>,
    kept: &HashSet<EmailId>,
) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    for (id, missing) in &mut missing {
        // 0 for a message of the log.
        let entries = transaction.state().foreign_entries(*id);
        if entries == missing.from_file + missing.never_seen && !kept.contains(id) {
            missing.from_file += mem::take(&mut missing.never_seen);
        }
    }
    for (_, row) in before.mailbox(id).into_iter().flat_map(|mailbox| mailbox.all_rows()) {
        missing.entry(row.email_id).and_modify(|missing| missing.live += 1);
    }
    for (_, row) in MboxAccount::pending_of(before, id).into_iter().flat_map(|pending| pending.all_rows()) {
        missing.entry(row.email_id).and_modify(|missing| missing.pending += 1);
    }
    let (mut pending, mut live) = (HashMap::new(), HashMap::new());
    for (id, missing) in missing {
        let gone = missing.gone();
        pending.insert(id, gone.0);
        live.insert(id, gone.1);
    }
    if let Some(hidden) = transaction.state().mailbox_named(&MailboxName::hidden(id)).cloned() {
        transaction.expunge(hidden.id(), &taken(&hidden, pending))?;
    }
    let uids = taken(transaction.mailbox(id)?, live);
    transaction.expunge(id, &uids)?;
    Ok(())
}

/// So many entries of each message.
fn taken(mailbox: &Mailbox, mut counts: HashMap<EmailId, u32>) -> UidSet {
    let mut uids = UidSet::new();
    for (_, row) in mailbox.all_rows() {
        if let Some(count) = counts.get_mut(&row.email_id).filter(|count| **count > 0) {
            *count -= 1;
            uids.insert(row.uid.get());
        }
    }
    uids
}

/// Where a message is, and what its fields say. Its email id is not known yet.
pub(super) fn place_of(found: &Found) -> Place {
    let message = &found.message;
    Place {
        email_id: None,
        start: message.start,
        header: message.header,
        body: message.body,
        end: message.end,
        next: message.next,
        form: message.form(),
        is_crlf: message.flags.has(MessageFlags::CRLF),
        flags: found.meta.flags,
        keywords: keywords_hash(&found.meta.keywords),
    }
}

/// The entries that have no place in the map, those of the mailbox itself first.
///
/// Every place of a map that is known has an entry, and every entry up to `written` a place, so that mostly a count tells that there are none.
pub(super) fn unplaced(mailbox: &Mailbox, pending: Option<&Mailbox>, map: Option<&Map>) -> Vec<Row> {
    let all = || [Some(mailbox), pending].into_iter().flatten();
    let Some(map) = map else { return all().flat_map(|mailbox| mailbox.all_rows().map(|(_, row)| row)).collect() };
    let entries: usize = all().map(|mailbox| mailbox.exists() as usize).sum();
    let has_pseudo = map.place(0).is_some_and(|place| place.email_id.is_none());
    let places = map.len() - usize::from(has_pseudo);
    if map.is_known() && entries == places {
        return Vec::new();
    }
    let since = map.facts().written;
    let newer = all().flat_map(|mailbox| mailbox.changed_since(since).map(|(_, row)| row));
    let found: Vec<Row> = newer.filter(|row| map.find(row.email_id).next().is_none()).collect();
    if map.is_known() && entries.checked_sub(places) == Some(found.len()) {
        return found;
    }
    // Some message is there more than once: counted one by one.
    let mut known: HashMap<EmailId, u32> = HashMap::new();
    map.places().filter_map(|place| place.email_id).for_each(|id| *known.entry(id).or_default() += 1);
    let rows = all().flat_map(|mailbox| mailbox.all_rows().map(|(_, row)| row));
    rows.filter(|row| match known.get_mut(&row.email_id) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    })
    .collect()
}

/// The places that have no entry: the map is older than the log, or the file became older than the log with a power cut.
fn orphans(mailbox: &Mailbox, pending: Option<&Mailbox>, map: &Map) -> HashSet<usize> {
    // Most entries are in the order of the file.
    let mut rows = mailbox.email_ids().peekable();
    let mut odd: Vec<(usize, EmailId)> = Vec::new();
    for (n, id) in map.email_ids().enumerate() {
        if let Some(id) = id
            && rows.next_if_eq(&id).is_none()
        {
            odd.push((n, id));
        }
    }
    if odd.is_empty() {
        return HashSet::new();
    }
    let mut left: HashMap<EmailId, u32> = HashMap::new();
    let pending = pending.into_iter().flat_map(|pending| pending.email_ids());
    for id in rows.chain(pending) {
        *left.entry(id).or_default() += 1;
    }
    let mut is_orphan = |(_, id): &(usize, EmailId)| match left.get_mut(id) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    odd.into_iter().filter(|odd| is_orphan(odd)).map(|(n, _)| n).collect()
}
