//! Rows into a log on files: an account that leaves a database for a log of its own, with every number that it had.
//!
//! Rows say what is, so a history is made that leads there. Entries of a mailbox come into being in the order of their UIDs, each at a
//! modseq that is not above its own nor above that of any later UID; a change of flags gives it the one it has. It is the same with what
//! is gone. A log that has everything up to some modseq is brought further by what was changed after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Flags, MailboxId, MailboxName, ModSeq, Result, Uid, UidSet};

use super::{MailboxNews, News};
use crate::ForeignMessage;
use crate::log::Log;
use crate::message::PendingMessage;
use crate::record::{Event, NewRow};
use crate::state::{Row, State};
use crate::transaction::Transaction;

/// Rows in one record.
const ROWS_MAX: usize = 10_000;

/// What one frame of the history does to the entries of mailboxes.
#[derive(Default)]
struct Step {
    entries: BTreeMap<MailboxId, Vec<NewRow>>,
    flags: BTreeMap<(MailboxId, Flags), UidSet>,
    expunged: BTreeMap<MailboxId, UidSet>,
    discarded: BTreeMap<MailboxId, UidSet>,
}

/// When a frame of the history was: by modseq, then by time.
type Moment = (ModSeq, i64);

impl Log {
    /// Takes messages in under the ids that they have, which rise and are above all that the log knows. They are kept only if what
    /// [`Log::take_over`] says later has a place for them; until then nothing may be sealed.
    pub fn take_in(self: &Arc<Self>, messages: Vec<(EmailId, PendingMessage)>) -> Result<()> {
        self.commit(|transaction| {
            let (modseq, now) = (transaction.state().modseq(), transaction.now());
            transaction.set_moment(modseq, now);
            messages.into_iter().try_for_each(|(id, message)| transaction.add_message_as(id, Arc::new(message)))
        })
    }

    /// Takes over what rows say, of an account of which this log has everything up to its modseq; `news` is all that was changed after it.
    /// [`ErrorKind::Invalid`]: they do not fit together.
    pub fn take_over(self: &Arc<Self>, news: &News) -> Result<()> {
        let state = self.state();
        if news.modseq < state.modseq {
            return Err(Error::new(ErrorKind::Invalid, "the rows are older than the log"));
        }
        if news.is_whole && state.modseq > ModSeq(0) {
            return Err(Error::new(ErrorKind::Invalid, "the rows are of another history than the log"));
        }
        self.names_that_come(&state, news, state.modseq)?;
        for ((modseq, time), step) in steps(&state, news) {
            // Dates are written as distances from the time of the frame.
            let time = if time == i64::MIN { step.time() } else { time };
            self.frame((modseq, time), |transaction| {
                step.record(transaction);
                Ok(())
            })?;
        }
        self.rest(news)?;
        self.flush()
    }

    /// One frame of the history, not waited for.
    fn frame(
        self: &Arc<Self>,
        (modseq, time): Moment,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<()> {
        let ((), _unwaited) = self.transact(|transaction| {
            transaction.set_moment(modseq, time);
            change(transaction)
        })?;
        Ok(())
    }

    /// Mailboxes that are new, those that were deleted and are back, and names that are wanted by others are made free.
    fn names_that_come(self: &Arc<Self>, state: &State, news: &News, base: ModSeq) -> Result<()> {
        let renamed = |row: &&MailboxNews| state.mailbox(row.id).is_some_and(|known| *known.name() != row.name);
        for row in news.mailboxes.iter().filter(renamed) {
            let (id, name) = (row.id, on_the_way(row.id));
            self.frame((base, 0), |transaction| {
                transaction.record(&Event::MailboxRenamed { id, name });
                Ok(())
            })?;
        }
        for row in &news.mailboxes {
            let (id, name) = (row.id, on_the_way(row.id));
            let is_known = state.mailbox(id).is_some();
            let deleted_at = state.deleted_mailbox(id).map(|one| one.deleted_at);
            if is_known || (deleted_at.is_some() && row.deleted_at == deleted_at) {
                continue;
            }
            self.frame((base, row.created), |transaction| {
                let is_free = row.deleted_at.is_none() && transaction.state().mailbox_named(&row.name).is_none();
                let name = if is_free { row.name.clone() } else { name };
                let uidvalidity = row.uidvalidity.get();
                transaction.record(&match deleted_at {
                    Some(_) => Event::MailboxUndeleted { id, name },
                    None => Event::MailboxCreated { id, name, uidvalidity, special_use: row.special_use },
                });
                Ok(())
            })?;
        }
        self.frame((base, 0), |transaction| {
            for (mailbox, number, keyword) in &news.keywords {
                let known = |known: &Arc<crate::state::Mailbox>| known.keywords().len();
                if transaction.state().mailbox(*mailbox).map(known).is_some_and(|len| len <= *number) {
                    transaction.record(&Event::KeywordAdded { mailbox: *mailbox, keyword: keyword.clone() });
                }
            }
            Ok(())
        })
    }

    /// What has no place in the history: names, counters, annotations.
    fn rest(self: &Arc<Self>, news: &News) -> Result<()> {
        let last = news.modseq;
        for row in news.mailboxes.iter().filter(|row| row.deleted_at.is_some()) {
            let Some(time) = row.deleted_at.filter(|_| self.newest(|state| state.mailbox(row.id).is_some())) else {
                continue;
            };
            self.frame((last, time), |transaction| {
                settle(transaction, row);
                let (id, name) = (row.id, row.name.clone());
                // Another one may have the name: it gets it back.
                let other =
                    transaction.state().mailbox_named(&name).map(|other| other.id()).filter(|other| *other != id);
                if let Some(id) = other {
                    transaction.record(&Event::MailboxRenamed { id, name: on_the_way(id) });
                }
                if transaction.mailbox(id)?.name() != &name {
                    transaction.record(&Event::MailboxRenamed { id, name: name.clone() });
                }
                transaction.record(&Event::MailboxDeleted { id });
                if let Some(id) = other {
                    transaction.record(&Event::MailboxRenamed { id, name });
                }
                Ok(())
            })?;
        }
        self.frame((last, 0), |transaction| {
            for row in news.mailboxes.iter().filter(|row| row.deleted_at.is_none()) {
                if transaction.mailbox(row.id)?.name() != &row.name {
                    transaction.record(&Event::MailboxRenamed { id: row.id, name: row.name.clone() });
                }
                settle(transaction, row);
            }
            for (mailbox, key, value) in &news.annotations {
                let (key, value) = (key.clone(), value.clone());
                transaction.record(&match mailbox {
                    None => Event::AccountAnnotated { key, value },
                    Some(mailbox) if transaction.state().mailbox(*mailbox).is_none() => continue,
                    Some(mailbox) => Event::MailboxAnnotated { mailbox: *mailbox, key, value },
                });
            }
            for (name, is_subscribed) in &news.subscriptions {
                let name = name.clone();
                transaction.record(&match is_subscribed {
                    true => Event::Subscribed { name },
                    false => Event::Unsubscribed { name },
                });
            }
            numbers(transaction, news);
            Ok(())
        })
    }

    fn newest(&self, ask: impl FnOnce(&State) -> bool) -> bool {
        let [newest, _] = self.live_states();
        ask(&newest)
    }
}

/// The name of a mailbox whose own is not free yet.
fn on_the_way(id: MailboxId) -> MailboxName {
    MailboxName::new(&format!("~moving {}", id.0)).unwrap_or_else(|_| MailboxName::hidden(id))
}

fn settle(transaction: &mut Transaction, row: &MailboxNews) {
    let mailbox = row.id;
    let Some(known) = transaction.state().mailbox(mailbox).cloned() else { return };
    if known.special_use_bits() != row.special_use {
        transaction.record(&Event::SpecialUse { id: mailbox, bits: row.special_use });
    }
    if known.recent_floor() < row.recent_floor {
        transaction.record(&Event::RecentFloor { mailbox, uid: row.recent_floor });
    }
    let (uidnext, highest_modseq) = (row.uidnext, row.highest_modseq.0);
    if known.uidnext_number() < uidnext || known.highest_modseq() < row.highest_modseq {
        transaction.record(&Event::MailboxCounters { mailbox, uidnext, highest_modseq });
    }
}

/// Numbers that were given and that nothing has any more are not given again.
fn numbers(transaction: &mut Transaction, news: &News) {
    if let Some(last) = news.email_id_next.checked_sub(1).filter(|last| *last >= transaction.state().email_ids_end()) {
        let nothing = ForeignMessage { octets: 0, header_octets: 0, digest: 0 };
        transaction.record(&Event::ForeignMessages { messages: vec![(EmailId(last), nothing)] });
    }
    let state = transaction.state();
    if state.mailbox_ids_end() < news.mailbox_id_next || state.uidvalidity_last() < news.uidvalidity_last {
        let last = state.mailbox_ids_end().max(news.mailbox_id_next.saturating_sub(1));
        let (id, uidvalidity) = (MailboxId(last), news.uidvalidity_last.max(1));
        let name = on_the_way(id);
        transaction.record(&Event::MailboxCreated { id, name, uidvalidity, special_use: 0 });
        // In a frame of the year 1970: it cannot be brought back.
        transaction.record(&Event::MailboxDeleted { id });
    }
}

/// The history of the entries, in its order.
fn steps(state: &State, news: &News) -> BTreeMap<Moment, Step> {
    let mut steps: BTreeMap<Moment, Step> = BTreeMap::new();
    // Of each mailbox the entries that are to come into being, by UID: the row, and a modseq at which it was there.
    let mut coming: BTreeMap<MailboxId, BTreeMap<Uid, (Row, ModSeq)>> = BTreeMap::new();
    let known = |id: MailboxId, uid: Uid| {
        let mailbox = state.mailbox(id).or_else(|| state.deleted_mailbox(id).map(|one| &one.mailbox));
        mailbox.and_then(|mailbox| mailbox.row_of(uid)).map(|(_, row)| row)
    };
    for (id, row) in &news.entries {
        match known(*id, row.uid) {
            Some(old) if old.modseq == row.modseq && old.flags == row.flags => {}
            Some(_) => flag(&mut steps, *id, row),
            None => drop(coming.entry(*id).or_default().insert(row.uid, (*row, row.modseq))),
        }
    }
    for gone in &news.expunged {
        let (id, uid) = (gone.mailbox, gone.row.uid);
        if gone.modseq <= state.modseq && !news.is_whole {
            // It was brought back meanwhile, or is too old for that.
            continue;
        }
        match known(id, uid) {
            None if gone.is_kept => drop(coming.entry(id).or_default().insert(uid, (gone.row, gone.row.modseq))),
            // Its flags were changed before.
            Some(old) if gone.is_kept && old != gone.row => flag(&mut steps, id, &gone.row),
            _ => {}
        }
        let step = steps.entry((gone.modseq, gone.time)).or_default();
        let place = if gone.is_kept { &mut step.expunged } else { &mut step.discarded };
        place.entry(id).or_default().insert(uid.get());
    }
    for (id, rows) in coming {
        let mut limit = ModSeq::LAST;
        for (row, modseq) in rows.into_values().rev() {
            limit = limit.min(modseq);
            if modseq > limit {
                flag(&mut steps, id, &row);
            }
            let new = NewRow {
                uid: row.uid,
                flags: row.flags,
                internal_date: row.internal_date,
                save_date: row.save_date,
                size: row.size,
                email_id: row.email_id,
            };
            steps.entry((limit, i64::MIN)).or_default().entries.entry(id).or_default().push(new);
        }
    }
    // What was expunged and forgotten may be any UID that is not there.
    for row in news.mailboxes.iter().filter(|row| row.vanished_floor > state.modseq) {
        let step = steps.entry((row.vanished_floor, 0)).or_default();
        let discarded = step.discarded.entry(row.id).or_default();
        *discarded = discarded.union(&absent(state, news, row));
    }
    steps
}

/// UIDs of a mailbox of which nothing is said.
fn absent(state: &State, news: &News, row: &MailboxNews) -> UidSet {
    let mut uids: Vec<u32> = Vec::new();
    if let Some(known) = state.mailbox(row.id) {
        uids.extend(known.all_rows().map(|(_, row)| row.uid.get()));
        uids.extend(known.history.batches().flat_map(|batch| batch.uids.iter()));
    }
    uids.extend(news.entries.iter().filter(|(id, _)| *id == row.id).map(|(_, row)| row.uid.get()));
    uids.extend(news.expunged.iter().filter(|gone| gone.mailbox == row.id).map(|gone| gone.row.uid.get()));
    uids.sort_unstable();
    let (mut absent, mut next) = (UidSet::new(), 1u32);
    for uid in uids {
        if uid > next {
            absent.insert_range(next, uid - 1);
        }
        next = uid.saturating_add(1);
    }
    let end = u32::try_from(row.uidnext).unwrap_or(u32::MAX);
    if next < end {
        absent.insert_range(next, end - 1);
    }
    absent
}

fn flag(steps: &mut BTreeMap<Moment, Step>, id: MailboxId, row: &Row) {
    let step = steps.entry((row.modseq, i64::MIN)).or_default();
    step.flags.entry((id, row.flags)).or_default().insert(row.uid.get());
}

impl Step {
    /// A time that is near those of its entries.
    fn time(&self) -> i64 {
        self.entries.values().flatten().map(|row| row.save_date).max().unwrap_or(0)
    }

    fn record(self, transaction: &mut Transaction) {
        for (mailbox, mut rows) in self.entries {
            // They were found from the last on.
            rows.reverse();
            for rows in rows.chunks(ROWS_MAX) {
                transaction.record(&Event::Entries { mailbox, rows: rows.to_vec() });
            }
        }
        for ((mailbox, flags), uids) in self.flags {
            transaction.record(&Event::FlagsSet { mailbox, flags, uids });
        }
        for (mailbox, uids) in self.expunged {
            transaction.record(&Event::Expunged { mailbox, uids });
        }
        for (mailbox, uids) in self.discarded {
            transaction.record(&Event::Discarded { mailbox, uids });
        }
    }
}
