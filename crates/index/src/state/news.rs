//! A state from rows, or brought up to date by rows: for accounts whose truth is in a database.
//!
//! Rows say what is, not what happened, so several transactions at once cannot be told from one that did the same. That is enough: UIDs and
//! modseqs are in the rows, and [`super::diff`] compares states, not histories.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Flags, MailboxId, ModSeq, UidSet};

use super::history::{Batch, Part};
use super::{DeletedMailbox, History, Mailbox, Row, State};
use crate::journal::{ExpungedNews, MailboxNews, News};

impl State {
    /// This state with what the rows say. `ranges_max`: see [`crate::Options::tombstone_ranges_max`].
    pub(crate) fn with_news(&self, news: &News, ranges_max: usize) -> State {
        let mut state = if news.is_whole { State::default() } else { self.clone() };
        let mut mailboxes = state.take_mailboxes();
        for row in &news.mailboxes {
            let (mailbox, deleted_at) = mailboxes.entry(row.id).or_insert_with(|| (Arc::new(made(row)), None));
            set(Arc::make_mut(mailbox), row);
            *deleted_at = row.deleted_at;
        }
        for (id, number, keyword) in &news.keywords {
            if let Some((mailbox, _)) = mailboxes.get_mut(id) {
                let table = Arc::make_mut(&mut Arc::make_mut(mailbox).keywords);
                debug_assert!(*number <= table.len(), "keywords come in the order of their numbers");
                // One over the limit would only be nameless.
                let _ = table.insert(keyword.clone());
            }
        }
        for (id, key, value) in &news.annotations {
            let map = match id {
                None => &mut state.annotations,
                Some(id) => match mailboxes.get_mut(id) {
                    Some((mailbox, _)) => &mut Arc::make_mut(mailbox).annotations,
                    None => continue,
                },
            };
            match value {
                Some(value) => Arc::make_mut(map).insert(key.clone(), value.clone()),
                None => Arc::make_mut(map).remove(key),
            };
        }
        for (name, is_subscribed) in &news.subscriptions {
            let names = Arc::make_mut(&mut state.subscriptions);
            if *is_subscribed {
                names.insert(name.clone())
            } else {
                names.remove(name)
            };
        }
        for of_one in news.entries.chunk_by(|a, b| a.0 == b.0) {
            if let Some((id, _)) = of_one.first()
                && let Some((mailbox, _)) = mailboxes.get_mut(id)
            {
                change_entries(Arc::make_mut(mailbox), of_one.iter().map(|(_, row)| row));
            }
        }
        for (id, expunged) in by_mailbox(&news.expunged) {
            if let Some((mailbox, _)) = mailboxes.get_mut(&id) {
                expunge(Arc::make_mut(mailbox), &expunged, ranges_max);
            }
        }
        // As the rows say, whatever the entries did to them.
        for row in &news.mailboxes {
            if let Some((mailbox, _)) = mailboxes.get_mut(&row.id) {
                set(Arc::make_mut(mailbox), row);
            }
        }
        state.put_mailboxes(mailboxes);
        state.email_id_next = state.email_id_next.max(news.email_id_next);
        state.mailbox_id_next = state.mailbox_id_next.max(news.mailbox_id_next);
        state.uidvalidity_last = state.uidvalidity_last.max(news.uidvalidity_last);
        state.modseq = state.modseq.max(news.modseq);
        state.frame = state.frame.max(state.modseq.0);
        state
    }

    /// All mailboxes, those that are deleted with the time.
    fn take_mailboxes(&mut self) -> BTreeMap<MailboxId, (Arc<Mailbox>, Option<i64>)> {
        let there = self.mailboxes.iter().map(|(id, mailbox)| (*id, (Arc::clone(mailbox), None)));
        let gone = self.deleted.iter().map(|(id, one)| (*id, (Arc::clone(&one.mailbox), Some(one.deleted_at))));
        let all = there.chain(gone).collect();
        (self.mailboxes, self.deleted, self.names) = Default::default();
        all
    }

    fn put_mailboxes(&mut self, all: BTreeMap<MailboxId, (Arc<Mailbox>, Option<i64>)>) {
        let (mut there, mut names, mut gone) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (id, (mailbox, deleted_at)) in all {
            match deleted_at {
                Some(deleted_at) => {
                    gone.insert(id, DeletedMailbox { mailbox, deleted_at });
                }
                None => {
                    names.insert(mailbox.name.clone(), id);
                    there.insert(id, mailbox);
                }
            }
        }
        (self.mailboxes, self.names, self.deleted) = (Arc::new(there), Arc::new(names), Arc::new(gone));
    }
}

/// A mailbox without entries.
fn made(row: &MailboxNews) -> Mailbox {
    Mailbox {
        id: row.id,
        name: row.name.clone(),
        uidvalidity: row.uidvalidity,
        uidnext: 1,
        highest_modseq: ModSeq(0),
        created: row.created,
        special_use: 0,
        keywords: Arc::default(),
        recent_floor: 1,
        annotations: Arc::default(),
        slots: Vec::new(),
        exists: 0,
        unseen: 0,
        deleted: 0,
        octets: 0,
        history: History::load(Vec::new(), row.vanished_floor),
    }
}

fn set(mailbox: &mut Mailbox, row: &MailboxNews) {
    mailbox.name = row.name.clone();
    mailbox.uidnext = mailbox.uidnext.max(row.uidnext);
    mailbox.highest_modseq = mailbox.highest_modseq.max(row.highest_modseq);
    mailbox.special_use = row.special_use;
    mailbox.recent_floor = mailbox.recent_floor.max(row.recent_floor);
    mailbox.history.floor = mailbox.history.floor.max(row.vanished_floor);
}

/// Adds the entries that are new, which rise, and sets the flags of the others.
fn change_entries<'a>(mailbox: &mut Mailbox, rows: impl Iterator<Item = &'a Row>) {
    let mut flagged: BTreeMap<(ModSeq, Flags), UidSet> = BTreeMap::new();
    for row in rows {
        if !mailbox.append_row(row) {
            flagged.entry((row.modseq, row.flags)).or_default().insert(row.uid.get());
        }
    }
    for ((modseq, flags), uids) in flagged {
        mailbox.set_flags(&uids, flags, modseq);
    }
}

fn by_mailbox(expunged: &[ExpungedNews]) -> BTreeMap<MailboxId, Vec<&ExpungedNews>> {
    let mut all: BTreeMap<MailboxId, Vec<&ExpungedNews>> = BTreeMap::new();
    for one in expunged {
        all.entry(one.mailbox).or_default().push(one);
    }
    all
}

/// Takes entries out, one batch for each transaction in the order of their modseqs. What was known as expunged already can only have been
/// brought back meanwhile.
fn expunge(mailbox: &mut Mailbox, expunged: &[&ExpungedNews], ranges_max: usize) {
    let known = mailbox.history.batches().last().map_or(mailbox.history.floor, |batch| batch.modseq);
    let restored: UidSet =
        rising(expunged.iter().filter(|one| one.modseq <= known && !one.is_kept).map(|one| one.row.uid.get()));
    if !restored.is_empty() {
        mailbox.history.restored(&restored);
    }
    let mut batches: BTreeMap<(ModSeq, i64), Vec<&ExpungedNews>> = BTreeMap::new();
    for one in expunged.iter().filter(|one| one.modseq > known) {
        batches.entry((one.modseq, one.time)).or_default().push(one);
    }
    for ((modseq, time), mut gone) in batches {
        gone.sort_unstable_by_key(|one| one.row.uid);
        let uids: UidSet = gone.iter().map(|one| one.row.uid.get()).collect();
        let _rows = mailbox.take(&uids, modseq, time);
        let kept: Vec<Row> = gone.iter().filter(|one| one.is_kept).map(|one| one.row).collect();
        let parts = if kept.is_empty() { Vec::new() } else { vec![Part::Few(kept)] };
        mailbox.remember_expunged(Batch { modseq, time, uids, parts }, ranges_max);
    }
}

fn rising(uids: impl Iterator<Item = u32>) -> UidSet {
    let mut uids: Vec<u32> = uids.collect();
    uids.sort_unstable();
    uids.into_iter().collect()
}
