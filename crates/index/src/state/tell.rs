//! A state as rows: the way back from [`super::news`], for an account that moves between a log and a database.

use std::collections::BTreeMap;

use model::{DateTime, EmailId, Flags, MailboxId, ModSeq, Uid};

use super::{Mailbox, Row, State};
use crate::journal::{ExpungedNews, MailboxNews, News};

impl State {
    /// Everything that is here, as rows; in the order that [`News::sorted`] has. Where the bytes of messages lie is not in it.
    pub fn news(&self) -> News {
        let mut news = News {
            is_whole: true,
            modseq: self.modseq,
            email_id_next: self.email_id_next,
            mailbox_id_next: self.mailbox_id_next,
            uidvalidity_last: self.uidvalidity_last,
            ..News::default()
        };
        let there = self.mailboxes.values().map(|mailbox| (&**mailbox, None));
        let gone = self.deleted.values().map(|one| (&*one.mailbox, Some(one.deleted_at)));
        for (mailbox, deleted_at) in there.chain(gone) {
            tell(mailbox, deleted_at, &mut news);
        }
        news.annotations.extend(self.annotations.iter().map(|(key, value)| (None, key.clone(), Some(value.clone()))));
        news.subscriptions = self.subscriptions.iter().map(|name| (name.clone(), true)).collect();
        news.sorted()
    }
}

fn tell(mailbox: &Mailbox, deleted_at: Option<i64>, news: &mut News) {
    let id = mailbox.id;
    news.mailboxes.push(MailboxNews {
        id,
        name: mailbox.name.clone(),
        uidvalidity: mailbox.uidvalidity,
        uidnext: mailbox.uidnext,
        highest_modseq: mailbox.highest_modseq,
        created: mailbox.created,
        special_use: mailbox.special_use,
        recent_floor: mailbox.recent_floor,
        vanished_floor: mailbox.history.floor,
        deleted_at,
    });
    let names = (0..mailbox.keywords.len()).filter_map(|number| Some((number, mailbox.keywords.name(number)?.clone())));
    news.keywords.extend(names.map(|(number, name)| (id, number, name)));
    news.annotations
        .extend(mailbox.annotations.iter().map(|(key, value)| (Some(id), key.clone(), Some(value.clone()))));
    news.entries.extend(mailbox.all_rows().map(|(_, row)| (id, row)));
    for batch in mailbox.history.batches() {
        let kept: BTreeMap<Uid, Row> = batch.rows().map(|row| (row.uid, row)).collect();
        for uid in batch.uids.iter().filter_map(Uid::new) {
            let row = kept.get(&uid).copied();
            let (modseq, time) = (batch.modseq, batch.time);
            let is_kept = row.is_some();
            let row = row.unwrap_or_else(|| bare(uid));
            news.expunged.push(ExpungedNews { mailbox: id, row, modseq, time, is_kept });
        }
    }
}

/// What is left of an entry that cannot be brought back.
fn bare(uid: Uid) -> Row {
    let (flags, modseq, internal_date) = (Flags::NONE, ModSeq(0), DateTime::utc(0));
    Row { uid, flags, modseq, internal_date, save_date: 0, size: 0, email_id: EmailId(0) }
}

impl News {
    /// The same in one order, with nothing that says that something is not there, and of entries that cannot be brought back the UID alone.
    pub fn sorted(mut self) -> News {
        self.mailboxes.sort_unstable_by_key(|mailbox| mailbox.id);
        self.keywords.sort_unstable_by_key(|(mailbox, number, _)| (*mailbox, *number));
        self.annotations.retain(|(_, _, value)| value.is_some());
        self.annotations.sort_unstable();
        self.subscriptions.retain(|(_, is_subscribed)| *is_subscribed);
        self.subscriptions.sort_unstable();
        self.entries.sort_unstable_by_key(|(mailbox, row)| (*mailbox, row.uid));
        for gone in self.expunged.iter_mut().filter(|gone| !gone.is_kept) {
            gone.row = bare(gone.row.uid);
        }
        self.expunged.sort_unstable_by_key(|gone| (gone.mailbox, gone.row.uid));
        self
    }

    /// What is different between two accounts that should be one, in words; `None`: nothing. What is below the floor of either is known
    /// to neither, and numbers that are given next may be higher here.
    pub fn difference(&self, from: &News) -> Option<String> {
        let mut floors: BTreeMap<MailboxId, ModSeq> = BTreeMap::new();
        for other in self.mailboxes.iter().chain(&from.mailboxes) {
            let floor = floors.entry(other.id).or_default();
            *floor = (*floor).max(other.vanished_floor);
        }
        let [ours, theirs] = [self, from].map(|news| news.clone().sorted().above(&floors));
        let is_behind = ours.email_id_next < theirs.email_id_next
            || ours.mailbox_id_next < theirs.mailbox_id_next
            || ours.uidvalidity_last < theirs.uidvalidity_last
            || ours.modseq < theirs.modseq;
        if is_behind {
            return Some("the numbers that are given next".to_owned());
        }
        if ours.mailboxes != theirs.mailboxes {
            return Some("the mailboxes".to_owned());
        }
        let entry = ours.entries.iter().zip(&theirs.entries).find(|(a, b)| a != b);
        if let Some(((id, row), _)) = entry {
            return Some(format!("UID {} of the mailbox {id}", row.uid));
        }
        let gone = ours.expunged.iter().zip(&theirs.expunged).find(|(a, b)| a != b);
        if let Some((gone, _)) = gone {
            return Some(format!("the expunged UID {} of the mailbox {}", gone.row.uid, gone.mailbox));
        }
        let is_same = ours.entries.len() == theirs.entries.len()
            && ours.expunged.len() == theirs.expunged.len()
            && ours.keywords == theirs.keywords
            && ours.annotations == theirs.annotations
            && ours.subscriptions == theirs.subscriptions;
        (!is_same).then(|| "entries, keywords, annotations or subscriptions that are missing".to_owned())
    }

    /// Without what was forgotten.
    fn above(mut self, floors: &BTreeMap<MailboxId, ModSeq>) -> News {
        let floor = |id: MailboxId| floors.get(&id).copied().unwrap_or_default();
        for mailbox in &mut self.mailboxes {
            mailbox.vanished_floor = floor(mailbox.id);
        }
        self.expunged.retain(|gone| gone.is_kept || gone.modseq > floor(gone.mailbox));
        // One that is there only for its numbers.
        self.mailboxes.retain(|mailbox| mailbox.deleted_at != Some(0));
        self
    }
}
