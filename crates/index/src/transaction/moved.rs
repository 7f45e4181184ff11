//! Messages whose bytes move into the log, or out of it: entries, UIDs, flags and modseqs stay as they are.
//!
//! Invariant: a message is never both without bytes in the log and restorable. One of which an expunged entry or a deleted mailbox
//! can still be brought back keeps its bytes in the log.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, MailboxId, Result, UidSet};

use super::{FRAME_MESSAGES_MAX, Transaction, not_found};
use crate::ForeignMessage;
use crate::message::PendingMessage;
use crate::record::Event;
use crate::state::{Mailbox, State};

/// What the entries of some messages are.
#[derive(Debug, Default)]
struct Entries {
    by_mailbox: BTreeMap<MailboxId, UidSet>,
    /// Messages that have an entry of another size: somebody takes them for others.
    odd: HashSet<EmailId>,
    /// Messages that have an entry.
    used: HashSet<EmailId>,
}

impl Transaction {
    /// Takes the bytes of a foreign message into the log: from now on they are read from there. `NotFound` when it is not foreign,
    /// `Invalid` when the bytes are not of the sizes that the log knows.
    pub fn bytes_here(&mut self, id: EmailId, message: PendingMessage) -> Result<()> {
        let known = self.state.foreign(id).ok_or_else(|| not_found("foreign message"))?;
        if (known.octets, known.header_octets) != (message.len(), message.header_len()) {
            return Err(Error::new(ErrorKind::Invalid, format!("these are not the bytes of message {id}")));
        }
        if self.messages.len() + self.late.len() >= FRAME_MESSAGES_MAX {
            return Err(Error::over_limit("frame_messages_max", "too many messages at once"));
        }
        let applied = self.state.apply(&self.frame, &Event::BytesHere { ids: vec![id] }, self.ranges_max);
        debug_assert!(applied, "such a record always applies");
        self.open_late.push(id);
        self.late.push((id, Arc::new(message)));
        self.has_moved_bytes = true;
        Ok(())
    }

    /// The bytes of these messages are elsewhere, durably: from now on they are read there ([`crate::Foreign`]), and the log may drop
    /// them. Gives back which ones it is so for. The others stay in the log: those that are foreign already, that have no entry,
    /// or of which something can still be brought back.
    ///
    /// Looks through all entries of the account: better called once for many messages. `Invalid` when an entry of one has another size.
    pub fn bytes_elsewhere(&mut self, messages: &[(EmailId, ForeignMessage)]) -> Result<Vec<EmailId>> {
        let mut given: BTreeMap<EmailId, ForeignMessage> = messages.iter().copied().collect();
        given.retain(|id, _| self.state.foreign(*id).is_none());
        if given.values().any(|message| message.header_octets > message.octets) {
            return Err(Error::new(ErrorKind::Invalid, "a header is not longer than its message"));
        }
        for id in restorable(&self.state) {
            given.remove(&id);
        }
        let entries = entries_of(&self.state, &given);
        if let Some(id) = entries.odd.iter().min() {
            return Err(Error::new(ErrorKind::Invalid, format!("the message {id} is not of that size")));
        }
        given.retain(|id, _| entries.used.contains(id));
        if given.is_empty() {
            return Ok(Vec::new());
        }
        let ids = given.keys().copied().collect();
        let messages = given.into_iter().collect();
        self.record(&Event::BytesElsewhere { messages, entries: entries.by_mailbox.into_iter().collect() });
        self.has_moved_bytes = true;
        Ok(ids)
    }
}

/// The messages of entries that can be brought back.
fn restorable(state: &State) -> impl Iterator<Item = EmailId> {
    let deleted = state.deleted.values().map(|deleted| &*deleted.mailbox);
    let in_deleted = deleted.clone().flat_map(|mailbox| mailbox.all_rows().map(|(_, row)| row.email_id));
    let expunged = |mailbox: &Mailbox| -> Vec<EmailId> {
        mailbox.history.batches().flat_map(|batch| batch.rows()).map(|row| row.email_id).collect()
    };
    let all = state.mailboxes.values().map(|mailbox| &**mailbox).chain(deleted);
    in_deleted.chain(all.flat_map(expunged))
}

fn entries_of(state: &State, messages: &BTreeMap<EmailId, ForeignMessage>) -> Entries {
    let mut entries = Entries::default();
    let (Some((first, _)), Some((last, _))) = (messages.first_key_value(), messages.last_key_value()) else {
        return entries;
    };
    for mailbox in state.mailboxes.values() {
        let mut uids = UidSet::new();
        for chunk in mailbox.chunks() {
            for index in 0..chunk.len() {
                let id = EmailId(chunk.email_id(index));
                if !(*first..=*last).contains(&id) {
                    continue;
                }
                let Some(message) = messages.get(&id) else { continue };
                let row = chunk.row(index);
                uids.insert(row.uid.get());
                entries.used.insert(id);
                if row.size != message.octets {
                    entries.odd.insert(id);
                }
            }
        }
        if !uids.is_empty() {
            entries.by_mailbox.insert(mailbox.id, uids);
        }
    }
    entries
}
