//! The account as it is: mailboxes, names, subscriptions. Values, no I/O; a clone is cheap and never changes.
//!
//! [`State`] changes only by applying records ([`crate::record::Event`]), both when a transaction makes them and when the
//! log is replayed, so that the two can never disagree.

mod apply;
mod change;
#[cfg(test)]
mod change_tests;
mod chunk;
mod columns;
mod diff;
mod foreign;
mod history;
mod mailbox;
mod news;
mod packed;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{EmailId, MailboxId, MailboxName, ModSeq};

use crate::ForeignMessage;

pub(crate) use apply::{Frame, chain};
pub(crate) use chunk::{Chunk, Slot, Summary};
pub(crate) use columns::CHUNK_ROWS_MAX;
#[cfg(test)]
pub(crate) use columns::COLUMNS;
#[cfg(test)]
pub(crate) use foreign::FOREIGN_COLUMNS;
pub(crate) use foreign::{Block as ForeignBlock, ForeignTable};
pub(crate) use history::{Batch, History, Part};
#[cfg(test)]
pub(crate) use packed::Spec;

pub use columns::Row;
pub use diff::Changes;
pub use mailbox::{ExpungedRow, Mailbox, Rows};

/// A mailbox that was deleted and whose messages can still be brought back.
#[derive(Clone, Debug)]
pub struct DeletedMailbox {
    /// The mailbox as it was.
    pub mailbox: Arc<Mailbox>,
    /// When it was deleted, seconds since 1970 UTC.
    pub deleted_at: i64,
}

/// What the entries of mailboxes come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many entries there are.
    pub messages: u64,
    /// The sum of their sizes, octets. A message that has several entries counts with each.
    pub octets: u64,
}

/// An account at one moment. Published states hold only what is durable.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) mailboxes: Arc<BTreeMap<MailboxId, Arc<Mailbox>>>,
    pub(crate) names: Arc<BTreeMap<MailboxName, MailboxId>>,
    pub(crate) deleted: Arc<BTreeMap<MailboxId, DeletedMailbox>>,
    pub(crate) subscriptions: Arc<BTreeSet<MailboxName>>,
    pub(crate) annotations: Arc<BTreeMap<String, Vec<u8>>>,
    /// The messages whose bytes lie elsewhere.
    pub(crate) foreign: ForeignTable,
    /// Of all mailboxes but the hidden ones, whose entries nobody can see. Kept up with every change of a mailbox.
    pub(crate) usage: Usage,
    /// The modseq of the last transaction.
    pub(crate) modseq: ModSeq,
    pub(crate) email_id_next: u64,
    pub(crate) mailbox_id_next: u64,
    /// The largest UIDVALIDITY ever given.
    pub(crate) uidvalidity_last: u32,
    /// The number of the last frame that is in here.
    pub(crate) frame: u64,
    /// A checksum chained over the frames so far: tells this history from another one with the same numbers.
    pub(crate) chain: u32,
}

impl Default for State {
    fn default() -> Self {
        State {
            mailboxes: Arc::default(),
            names: Arc::default(),
            deleted: Arc::default(),
            subscriptions: Arc::default(),
            annotations: Arc::default(),
            foreign: ForeignTable::default(),
            usage: Usage::default(),
            modseq: ModSeq(0),
            email_id_next: 1,
            mailbox_id_next: 1,
            uidvalidity_last: 0,
            frame: 0,
            chain: 0,
        }
    }
}

impl State {
    /// The mailboxes, by name; not the hidden ones ([`MailboxName::hidden`]).
    pub fn mailboxes(&self) -> impl Iterator<Item = &Arc<Mailbox>> {
        self.all_mailboxes().skip_while(|mailbox| mailbox.name.is_hidden())
    }

    /// The mailboxes and, before them, the hidden ones.
    pub fn all_mailboxes(&self) -> impl Iterator<Item = &Arc<Mailbox>> {
        self.names.values().filter_map(|id| self.mailboxes.get(id))
    }

    /// How many mailboxes there are, hidden ones not counted.
    pub fn mailbox_count(&self) -> usize {
        self.mailboxes.len() - self.names.keys().take_while(|name| name.is_hidden()).count()
    }

    /// The mailbox with this identity.
    pub fn mailbox(&self, id: MailboxId) -> Option<&Arc<Mailbox>> {
        self.mailboxes.get(&id)
    }

    /// The mailbox with this name.
    pub fn mailbox_named(&self, name: &MailboxName) -> Option<&Arc<Mailbox>> {
        self.names.get(name).and_then(|id| self.mailboxes.get(id))
    }

    /// The mailboxes below `name`, at any depth, by name.
    pub fn mailboxes_below<'a>(&'a self, name: &'a MailboxName) -> impl Iterator<Item = &'a Arc<Mailbox>> + 'a {
        // Not simply the names that follow: `a.b` sorts between `a` and `a/b`.
        let from = self.names.range(name.clone()..);
        let prefixed = from.take_while(|(other, _)| other.as_str().starts_with(name.as_str()));
        prefixed.filter(|(other, _)| other.is_below(name)).filter_map(|(_, id)| self.mailboxes.get(id))
    }

    /// The subscribed names; some may belong to no mailbox (RFC 9051 §6.3.7).
    pub fn subscriptions(&self) -> &BTreeSet<MailboxName> {
        &self.subscriptions
    }

    /// Mailboxes that were deleted and can still be brought back.
    pub fn deleted_mailboxes(&self) -> impl Iterator<Item = &DeletedMailbox> {
        self.deleted.values()
    }

    /// One of them.
    pub fn deleted_mailbox(&self, id: MailboxId) -> Option<&DeletedMailbox> {
        self.deleted.get(&id)
    }

    /// Every mailbox has an id below this one.
    pub fn mailbox_ids_end(&self) -> u64 {
        self.mailbox_id_next
    }

    /// The largest UIDVALIDITY ever given.
    pub fn uidvalidity_last(&self) -> u32 {
        self.uidvalidity_last
    }

    /// The value that the account keeps under `key`, if any.
    pub fn annotation(&self, key: &str) -> Option<&[u8]> {
        self.annotations.get(key).map(Vec::as_slice)
    }

    /// All values of the account by their keys.
    pub fn annotations(&self) -> &Arc<BTreeMap<String, Vec<u8>>> {
        &self.annotations
    }

    /// What is known of a message whose bytes lie elsewhere; `None` for every other one.
    pub fn foreign(&self, id: EmailId) -> Option<ForeignMessage> {
        self.foreign.find(id)
    }

    /// How many entries have a message whose bytes lie elsewhere; 0 for every other one.
    pub fn foreign_entries(&self, id: EmailId) -> u32 {
        self.foreign.entries(id)
    }

    /// The messages with ids of `ids` that have an entry or can be brought back, by id, and their sizes, octets.
    pub fn messages(&self, ids: &std::ops::Range<u64>) -> Vec<(EmailId, u32)> {
        let mut found = BTreeMap::new();
        let deleted = self.deleted.values().map(|deleted| &deleted.mailbox);
        for mailbox in self.mailboxes.values().chain(deleted) {
            let kept = mailbox.history.batches().flat_map(|batch| batch.rows());
            for row in mailbox.all_rows().map(|(_, row)| row).chain(kept).filter(|row| ids.contains(&row.email_id.0)) {
                found.insert(row.email_id, row.size);
            }
        }
        found.into_iter().collect()
    }

    /// Every message has an id below this one.
    pub fn email_ids_end(&self) -> u64 {
        self.email_id_next
    }

    /// What the entries of all mailboxes come to, hidden ones not counted. Costs no counting.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The modseq of the last change anywhere in the account.
    pub fn modseq(&self) -> ModSeq {
        self.modseq
    }
}
