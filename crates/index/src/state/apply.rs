//! Applying records. Everything here is idempotent and total: a record that makes no sense (its mailbox is unknown, because
//! the frame that made it is damaged) is left out and counted, never a panic.

use std::sync::Arc;

use model::{EmailId, MailboxId, MailboxName, ModSeq, UidSet, UidValidity};

use super::columns::Row;
use super::{DeletedMailbox, History, Mailbox, State, Usage};
use crate::ForeignMessage;
use crate::record::{Event, NewRow};

/// What all records of one frame share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) modseq: ModSeq,
    /// Seconds since 1970 UTC.
    pub(crate) time: i64,
}

impl Usage {
    /// With the entries of one mailbox more.
    pub(crate) fn with(self, other: Usage) -> Usage {
        let messages = self.messages.saturating_add(other.messages);
        Usage { messages, octets: self.octets.saturating_add(other.octets) }
    }

    fn without(self, other: Usage) -> Usage {
        let messages = self.messages.saturating_sub(other.messages);
        Usage { messages, octets: self.octets.saturating_sub(other.octets) }
    }
}

impl State {
    fn mailbox_mut(&mut self, id: MailboxId) -> Option<&mut Mailbox> {
        if !self.mailboxes.contains_key(&id) {
            return None;
        }
        Arc::make_mut(&mut self.mailboxes).get_mut(&id).map(Arc::make_mut)
    }

    /// Notes that everything of the frame is applied; `events_crc` is the checksum of its records.
    pub(crate) fn finish_frame(&mut self, frame: &Frame, events_crc: u32) {
        self.frame = frame.number;
        self.modseq = self.modseq.max(frame.modseq);
        self.chain = chain(self.chain, events_crc);
    }

    /// Applies one record of a frame. `false`: it makes no sense here and changed nothing.
    #[must_use]
    pub(crate) fn apply(&mut self, frame: &Frame, event: &Event, ranges_max: usize) -> bool {
        match event {
            Event::MailboxCreated { id, name, uidvalidity, special_use } => {
                self.create(frame, *id, name, *uidvalidity, *special_use)
            }
            Event::MailboxRenamed { id, name } => self.rename(*id, name),
            Event::MailboxDeleted { id } => self.delete(frame, *id),
            Event::MailboxUndeleted { id, name } => self.undelete(*id, name),
            Event::SpecialUse { id, bits } => self.change(*id, |mailbox| mailbox.special_use = *bits),
            Event::Subscribed { name } => {
                Arc::make_mut(&mut self.subscriptions).insert(name.clone());
                true
            }
            Event::Unsubscribed { name } => {
                Arc::make_mut(&mut self.subscriptions).remove(name);
                true
            }
            Event::KeywordAdded { mailbox, keyword } => self.change(*mailbox, |mailbox| {
                // The writer checked the limit; a keyword over it would only be nameless.
                let _ = Arc::make_mut(&mut mailbox.keywords).insert(keyword.clone());
            }),
            Event::Message { email_id, .. } => {
                self.email_id_next = self.email_id_next.max(email_id.0.saturating_add(1));
                true
            }
            Event::ForeignMessages { messages } => {
                let last = messages.last().map_or(0, |(id, _)| id.0);
                self.email_id_next = self.email_id_next.max(last.saturating_add(1));
                self.foreign.add(messages);
                true
            }
            Event::Entries { mailbox, rows } => self.add_entries(frame, *mailbox, rows),
            Event::FlagsSet { mailbox, flags, uids } => {
                self.change(*mailbox, |mailbox| mailbox.set_flags(uids, *flags, frame.modseq))
            }
            Event::Expunged { mailbox, uids } => {
                let has_foreign = !self.foreign.is_empty();
                let mut gone = Vec::new();
                let is_here = self.change(*mailbox, |mailbox| {
                    let batch = mailbox.take(uids, frame.modseq, frame.time);
                    if has_foreign {
                        gone.extend(batch.rows().map(|row| row.email_id));
                    }
                    mailbox.remember_expunged(batch, ranges_max);
                });
                self.release_forgotten(&gone);
                is_here
            }
            Event::Discarded { mailbox, uids } => {
                let mut gone = Vec::new();
                let is_here = self.change(*mailbox, |mailbox| {
                    let mut batch = mailbox.take(uids, frame.modseq, frame.time);
                    gone.extend(batch.rows().map(|row| row.email_id));
                    batch.parts = Vec::new();
                    mailbox.remember_expunged(batch, ranges_max);
                });
                self.foreign.release(&gone);
                is_here
            }
            Event::BytesHere { ids } => {
                self.foreign.remove(ids);
                true
            }
            Event::BytesElsewhere { messages, entries } => self.bytes_elsewhere(messages, entries),
            Event::Restored { mailbox, uids } => self.change(*mailbox, |mailbox| mailbox.history.restored(uids)),
            Event::RecentFloor { mailbox, uid } => {
                self.change(*mailbox, |mailbox| mailbox.recent_floor = mailbox.recent_floor.max(*uid))
            }
            Event::MailboxAnnotated { mailbox, key, value } => self.change(*mailbox, |mailbox| {
                annotate(Arc::make_mut(&mut mailbox.annotations), key, value.as_ref());
            }),
            Event::AccountAnnotated { key, value } => {
                annotate(Arc::make_mut(&mut self.annotations), key, value.as_ref());
                true
            }
            Event::MailboxCounters { mailbox, uidnext, highest_modseq } => self.change(*mailbox, |mailbox| {
                mailbox.uidnext = mailbox.uidnext.max(*uidnext);
                mailbox.highest_modseq = mailbox.highest_modseq.max(ModSeq(*highest_modseq));
            }),
        }
    }

    fn change(&mut self, id: MailboxId, change: impl FnOnce(&mut Mailbox)) -> bool {
        let Some(mailbox) = self.mailbox_mut(id) else { return false };
        let before = mailbox.usage();
        change(mailbox);
        let after = mailbox.usage();
        self.usage = self.usage.without(before).with(after);
        true
    }

    fn create(&mut self, frame: &Frame, id: MailboxId, name: &MailboxName, uidvalidity: u32, special_use: u16) -> bool {
        let is_known = self.mailboxes.contains_key(&id) || self.deleted.contains_key(&id);
        let Some(validity) = UidValidity::new(uidvalidity).filter(|_| !is_known && !self.names.contains_key(name))
        else {
            return false;
        };
        let mailbox = Mailbox {
            id,
            name: name.clone(),
            uidvalidity: validity,
            uidnext: 1,
            highest_modseq: frame.modseq,
            created: frame.time,
            special_use,
            keywords: Arc::default(),
            recent_floor: 1,
            annotations: Arc::default(),
            slots: Vec::new(),
            exists: 0,
            unseen: 0,
            deleted: 0,
            octets: 0,
            history: History::default(),
        };
        Arc::make_mut(&mut self.mailboxes).insert(id, Arc::new(mailbox));
        Arc::make_mut(&mut self.names).insert(name.clone(), id);
        self.mailbox_id_next = self.mailbox_id_next.max(id.0.saturating_add(1));
        self.uidvalidity_last = self.uidvalidity_last.max(uidvalidity);
        true
    }

    fn rename(&mut self, id: MailboxId, name: &MailboxName) -> bool {
        if self.names.contains_key(name) {
            return false;
        }
        let Some(mailbox) = self.mailbox_mut(id) else { return false };
        let old = std::mem::replace(&mut mailbox.name, name.clone());
        let names = Arc::make_mut(&mut self.names);
        names.remove(&old);
        names.insert(name.clone(), id);
        true
    }

    fn delete(&mut self, frame: &Frame, id: MailboxId) -> bool {
        if !self.mailboxes.contains_key(&id) {
            return false;
        }
        let Some(mailbox) = Arc::make_mut(&mut self.mailboxes).remove(&id) else { return false };
        if !self.foreign.is_empty() {
            let held: Vec<EmailId> = mailbox.all_rows().map(|(_, row)| row.email_id).collect();
            self.release_forgotten(&held);
        }
        Arc::make_mut(&mut self.names).remove(&mailbox.name);
        self.usage = self.usage.without(mailbox.usage());
        Arc::make_mut(&mut self.deleted).insert(id, DeletedMailbox { mailbox, deleted_at: frame.time });
        true
    }

    fn undelete(&mut self, id: MailboxId, name: &MailboxName) -> bool {
        if self.names.contains_key(name) || !self.deleted.contains_key(&id) {
            return false;
        }
        let Some(DeletedMailbox { mut mailbox, .. }) = Arc::make_mut(&mut self.deleted).remove(&id) else {
            return false;
        };
        Arc::make_mut(&mut mailbox).name = name.clone();
        self.usage = self.usage.with(mailbox.usage());
        Arc::make_mut(&mut self.mailboxes).insert(id, mailbox);
        Arc::make_mut(&mut self.names).insert(name.clone(), id);
        true
    }

    fn add_entries(&mut self, frame: &Frame, id: MailboxId, rows: &[NewRow]) -> bool {
        let email_id_last = rows.iter().map(|row| row.email_id.0).max().unwrap_or(0);
        self.email_id_next = self.email_id_next.max(email_id_last.saturating_add(1));
        let has_foreign = !self.foreign.is_empty();
        let mut held = Vec::new();
        let is_here = self.change(id, |mailbox| {
            for row in rows {
                // An entry that is there already, or was, stays as it is.
                let is_new = mailbox.append_row(&Row {
                    uid: row.uid,
                    flags: row.flags,
                    modseq: frame.modseq,
                    internal_date: row.internal_date,
                    save_date: row.save_date,
                    size: row.size,
                    email_id: row.email_id,
                });
                if is_new && has_foreign {
                    held.push(row.email_id);
                }
            }
        });
        self.foreign.hold(&held);
        is_here
    }

    /// Lets go of messages whose entries can be brought back. None of them is foreign, but when the log is replayed: compaction drops the
    /// record that the bytes of a message came into the log once nobody needs the message, and the one that it is foreign may still be there.
    fn release_forgotten(&mut self, ids: &[EmailId]) {
        self.foreign.release(ids);
    }

    /// Which entries have the messages is looked up among those that the record names: compaction may have dropped some, and then
    /// nothing that follows will let go of them.
    fn bytes_elsewhere(&mut self, messages: &[(EmailId, ForeignMessage)], entries: &[(MailboxId, UidSet)]) -> bool {
        self.foreign.put(messages);
        let mut held = Vec::new();
        let mut is_whole = true;
        for (id, uids) in entries {
            let Some(mailbox) = self.mailboxes.get(id) else {
                is_whole = false;
                continue;
            };
            let ids = mailbox.rows_of(uids).map(|(_, row)| row.email_id);
            held.extend(ids.filter(|id| messages.binary_search_by_key(id, |(id, _)| *id).is_ok()));
        }
        self.foreign.hold(&held);
        is_whole
    }

    /// Lets go of what was expunged or deleted before `time` (seconds since 1970): it can no longer be brought back.
    pub(crate) fn prune(&mut self, time: i64) {
        let old = |batch: &super::Batch| batch.time < time && !batch.parts.is_empty();
        let touched: Vec<MailboxId> = self
            .mailboxes
            .values()
            .filter(|mailbox| mailbox.history.batches().any(old))
            .map(|mailbox| mailbox.id)
            .collect();
        for id in touched {
            self.change(id, |mailbox| mailbox.history.prune(time));
        }
        if self.deleted.values().any(|deleted| deleted.deleted_at < time) {
            Arc::make_mut(&mut self.deleted).retain(|_, deleted| deleted.deleted_at >= time);
        }
    }
}

/// The history's checksum after one more frame.
pub(crate) fn chain(before: u32, events_crc: u32) -> u32 {
    crc32c::crc32c_append(before, &events_crc.to_le_bytes())
}

fn annotate(map: &mut std::collections::BTreeMap<String, Vec<u8>>, key: &str, value: Option<&Vec<u8>>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.remove(key),
    };
}
