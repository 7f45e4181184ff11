//! One user's mail: what can be asked of it, and every change to its entries. Mailboxes are in `mailboxes`.
//!
//! Invariant: a function that changes something returns when the change is durable; what it read to decide was decided in the same
//! transaction.

use std::sync::Arc;

use index::{Log, NewEntry, State, Ticket, Transaction, Wake};
use model::{
    AccountName, DateTime, EmailId, Error, ErrorKind, FlagChange, Flags, Keyword, MailboxId, MailboxName, ModSeq,
    Result, SpecialUse, SystemFlag, Uid, UidSet, UidValidity,
};

use platform::Env;

use crate::listeners::{Listener, ListenerGuard, Listeners};
use crate::recent::RecentFloors;
use crate::writes::Writes;
use crate::{MessageWriter, PendingMessage, Reader, View};

/// One user's mail.
pub struct Account {
    pub(crate) inner: Arc<Inner>,
}

/// What an account, its views and its readers share.
pub(crate) struct Inner {
    name: AccountName,
    env: Env,
    log: Arc<Log>,
    listeners: Arc<Listeners>,
    recent: RecentFloors,
    message_bytes_max: u64,
}

impl Inner {
    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// The machine: for foreign files and the time.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// The account as it is durably.
    pub(crate) fn state(&self) -> Arc<State> {
        self.log.state()
    }

    /// Entries of `mailbox` from here on are \Recent to whoever asks next; from now on they are not. Returns the old floor.
    pub(crate) fn claim_recent(&self, mailbox: &index::Mailbox) -> u32 {
        self.recent.claim(&self.log, mailbox)
    }
}

/// A mailbox, as LIST wants it.
#[derive(Clone, Debug)]
pub struct MailboxInfo {
    /// Its identity (RFC 8474); `None` for a name that is only subscribed, or only a parent of others.
    pub id: Option<MailboxId>,
    /// Its name.
    pub name: MailboxName,
    /// What it is for.
    pub special_use: Vec<SpecialUse>,
    /// Whether the name is subscribed.
    pub subscribed: bool,
    /// Whether mailboxes lie below it.
    pub has_children: bool,
}

/// A mailbox in numbers (RFC 9051 §6.3.11). Costs no reading of entries.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its identity.
    pub id: MailboxId,
    /// Entries.
    pub messages: u32,
    /// Entries without `\Seen`.
    pub unseen: u32,
    /// Entries with `\Deleted`.
    pub deleted: u32,
    /// Octets of all entries.
    pub size: u64,
    /// The UID that the next entry gets at least; `None` when they are used up.
    pub uid_next: Option<Uid>,
    /// RFC 9051 §2.3.1.1.
    pub uid_validity: UidValidity,
    /// The highest modseq of the mailbox (RFC 7162 §3.1.2).
    pub highest_modseq: ModSeq,
    /// Entries that no read-write view was given before (RFC 3501 \Recent).
    pub recent: u32,
}

/// Flags by name, as clients send them: system flags and keywords that may be new to the mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagNames {
    /// System flags.
    pub system: Vec<SystemFlag>,
    /// Keywords.
    pub keywords: Vec<Keyword>,
}

/// A message for [`Account::append`].
pub struct NewMessage {
    /// Its bytes.
    pub message: PendingMessage,
    /// The flags of its entry.
    pub flags: FlagNames,
    /// The internal date; `None`: now.
    pub internal_date: Option<DateTime>,
}

/// What became of an append.
#[derive(Clone, Debug)]
pub struct Appended {
    /// Of the mailbox.
    pub uid_validity: UidValidity,
    /// In the order of the messages: UID and identity.
    pub entries: Vec<(Uid, EmailId)>,
}

/// Messages that are on their way to the disk. Dropping it leaves them on their way.
#[derive(Debug)]
#[must_use = "nothing is durable before it was polled to its end"]
pub struct PendingAppend {
    appended: Option<Appended>,
    ticket: Ticket,
}

impl PendingAppend {
    /// What became of it, once that is durable (or an error: nothing was done). `None` while another thread's sync is under way;
    /// `wake` is called when it is worth asking again. May itself write and sync.
    pub fn poll(&mut self, wake: &Wake) -> Option<Result<Appended>> {
        let settled = self.ticket.poll(wake)?;
        let appended = self.appended.take().ok_or_else(|| Error::new(ErrorKind::Invalid, "asked after the end"));
        Some(settled.and(appended))
    }
}

/// What became of a copy or a move, pair by pair in the order of the source UIDs.
#[derive(Clone, Debug)]
pub struct Copied {
    /// Of the destination.
    pub uid_validity: UidValidity,
    /// Source UID, destination UID.
    pub uids: Vec<(Uid, Uid)>,
    /// The modseq of the expunge in the source, for a move.
    pub expunged_modseq: Option<ModSeq>,
}

/// Which way STORE changes flags (RFC 9051 §6.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// `FLAGS`
    Replace,
    /// `+FLAGS`
    Add,
    /// `-FLAGS`
    Remove,
}

/// How STORE asks for flags (RFC 9051 §6.4.6, RFC 7162 §3.1.3).
#[derive(Clone, Debug)]
pub struct StoreFlags {
    /// Replace, add or remove.
    pub mode: StoreMode,
    /// The flags.
    pub flags: FlagNames,
    /// Entries with a higher modseq stay as they are.
    pub unchanged_since: Option<ModSeq>,
}

/// What became of a STORE.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Entries that now have a new modseq.
    pub changed: UidSet,
    /// Entries left alone because of `unchanged_since` (the MODIFIED response code).
    pub modified: UidSet,
    /// The modseq of the change; `None` when nothing changed.
    pub modseq: Option<ModSeq>,
}

/// What became of an expunge.
#[derive(Clone, Debug)]
pub struct Expunged {
    /// The entries that are gone.
    pub uids: UidSet,
    /// The mailbox's highest modseq afterwards.
    pub highest_modseq: ModSeq,
}

impl Account {
    pub(crate) fn new(
        name: AccountName,
        env: Env,
        log: Arc<Log>,
        message_bytes_max: u64,
        writes: &Arc<Writes>,
    ) -> Self {
        let listeners = Arc::new(Listeners::default());
        let (to_call, count) = (Arc::clone(&listeners), writes.counter(&log));
        log.set_listener(Some(Box::new(move |state| {
            count(state.modseq().0);
            to_call.call();
        })));
        let recent = RecentFloors::default();
        Account { inner: Arc::new(Inner { name, env, log, listeners, recent, message_bytes_max }) }
    }

    /// Its name.
    pub fn name(&self) -> &AccountName {
        &self.inner.name
    }

    /// Makes a change durable; with the answer of `change`.
    pub(crate) fn commit<T>(&self, change: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        self.inner.log.commit(change)
    }

    /// A mailbox in numbers.
    pub fn status(&self, id: MailboxId) -> Result<Status> {
        let state = self.inner.state();
        let mailbox = state.mailbox(id).ok_or_else(no_mailbox)?;
        let floor = self.inner.recent.floor(mailbox);
        Ok(Status {
            id,
            messages: mailbox.exists(),
            unseen: mailbox.unseen(),
            deleted: mailbox.deleted(),
            size: mailbox.octets(),
            uid_next: mailbox.uidnext(),
            uid_validity: mailbox.uidvalidity(),
            highest_modseq: mailbox.highest_modseq(),
            recent: mailbox.exists() - mailbox.count_below(floor),
        })
    }

    /// A stable reading of the mailbox as it is now. `read_write` claims the \Recent entries (RFC 3501 §2.3.2) for this view.
    pub fn view(&self, id: MailboxId, read_write: bool) -> Result<View> {
        let state = self.inner.state();
        let mailbox = state.mailbox(id).ok_or_else(no_mailbox)?;
        let floor = match read_write {
            true => self.inner.claim_recent(mailbox),
            false => self.inner.recent.floor(mailbox),
        };
        let recent_from = Uid::new(floor.max(1));
        Ok(View::new(Arc::clone(&self.inner), Arc::clone(mailbox), recent_from, read_write))
    }

    /// A writer for one message: bytes go in as they arrive, a few KiB at a time are held.
    pub fn message_writer(&self) -> Result<MessageWriter> {
        Ok(MessageWriter::new(self.inner.log.message_writer(), self.inner.message_bytes_max))
    }

    /// Adds messages to a mailbox: all of them or none (RFC 3502).
    pub fn append(&self, mailbox: MailboxId, messages: Vec<NewMessage>) -> Result<Appended> {
        self.commit(|transaction| append_all(transaction, mailbox, messages))
    }

    /// Like [`Account::append`], but returns before the messages are durable: [`PendingAppend::poll`] says when they are. Many clients
    /// that append at once then wait for one sync without a thread for each.
    pub fn begin_append(&self, mailbox: MailboxId, messages: Vec<NewMessage>) -> Result<PendingAppend> {
        let (appended, ticket) = self.inner.log.transact(|transaction| append_all(transaction, mailbox, messages))?;
        Ok(PendingAppend { appended: Some(appended), ticket })
    }

    /// Copies entries of `from` that are still there to the end of `to`, with flags, keywords and internal dates; all or none.
    pub fn copy(&self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        self.commit(|transaction| {
            let copied = transaction.copy(from, uids, to)?;
            pairs(transaction, to, &copied, None)
        })
    }

    /// Copies, and expunges what was copied, as one change (RFC 6851).
    pub fn move_entries(&self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        self.commit(|transaction| {
            let copied = transaction.move_entries(from, uids, to)?;
            let modseq = (!copied.source.is_empty()).then(|| transaction.modseq());
            pairs(transaction, to, &copied, modseq)
        })
    }

    /// Appends to `to` and expunges `uid` of `from`, as one change (RFC 8508). [`ErrorKind::Expunged`] when `uid` is gone.
    pub fn replace(&self, from: MailboxId, uid: Uid, to: MailboxId, message: NewMessage) -> Result<Appended> {
        self.commit(|transaction| {
            let appended = append_all(transaction, to, vec![message])?;
            if transaction.expunge(from, &UidSet::range(uid.get(), uid.get()))?.is_empty() {
                return Err(Error::new(ErrorKind::Expunged, format!("there is no entry with UID {uid} any more")));
            }
            Ok(appended)
        })
    }

    /// Changes flags of the entries that are still there.
    pub fn store_flags(&self, mailbox: MailboxId, uids: &UidSet, request: &StoreFlags) -> Result<Stored> {
        self.commit(|transaction| {
            let is_any_there = transaction.mailbox(mailbox)?.rows_of(uids).next().is_some();
            let change = match request.mode {
                // A keyword that the mailbox does not know is on no entry: removing it makes none.
                StoreMode::Remove => FlagChange::Remove(known_flags(transaction, mailbox, &request.flags)?),
                _ if !is_any_there => FlagChange::Add(Flags::NONE),
                StoreMode::Replace => FlagChange::Replace(flags_of(transaction, mailbox, &request.flags)?),
                StoreMode::Add => FlagChange::Add(flags_of(transaction, mailbox, &request.flags)?),
            };
            let outcome = transaction.set_flags(mailbox, uids, change, request.unchanged_since)?;
            let modseq = (!outcome.changed.is_empty()).then(|| transaction.modseq());
            Ok(Stored { changed: outcome.changed, modified: outcome.modified, modseq })
        })
    }

    /// Expunges the entries with `\Deleted`, of all or of `uids` only.
    pub fn expunge(&self, mailbox: MailboxId, uids: Option<&UidSet>) -> Result<Expunged> {
        self.commit(|transaction| {
            let uids = transaction.expunge_deleted(mailbox, uids)?;
            Ok(Expunged { uids, highest_modseq: transaction.mailbox(mailbox)?.highest_modseq() })
        })
    }

    /// UIDs that were expunged after `since` and are within `known` (RFC 7162 §3.2.5); may name more that are absent, never fewer.
    pub fn vanished_since(&self, mailbox: MailboxId, since: ModSeq, known: &UidSet) -> Result<UidSet> {
        let state = self.inner.state();
        let mailbox = state.mailbox(mailbox).ok_or_else(no_mailbox)?;
        Ok(mailbox.vanished_since(since).intersection(known))
    }

    /// A reader of message bytes and of what was derived from them.
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.inner))
    }

    /// Calls `listener` after every change until the returned guard is dropped.
    pub fn listen(&self, listener: Listener) -> ListenerGuard {
        self.inner.listeners.add(listener)
    }
}

pub(crate) fn no_mailbox() -> Error {
    Error::new(ErrorKind::NotFound, "there is no such mailbox")
}

/// The bits of `names` in a mailbox; keywords that are new to it are added.
pub(crate) fn flags_of(transaction: &mut Transaction, mailbox: MailboxId, names: &FlagNames) -> Result<Flags> {
    let mut flags = system_flags(names);
    for keyword in &names.keywords {
        flags = flags.with(transaction.keyword(mailbox, keyword)?);
    }
    Ok(flags)
}

/// The bits of `names` in a mailbox, as far as it knows them.
fn known_flags(transaction: &Transaction, mailbox: MailboxId, names: &FlagNames) -> Result<Flags> {
    let table = transaction.mailbox(mailbox)?.keywords();
    let known = names.keywords.iter().filter_map(|keyword| table.find(keyword));
    Ok(known.fold(system_flags(names), |flags, index| flags.with(Flags::keyword(index))))
}

fn system_flags(names: &FlagNames) -> Flags {
    names.system.iter().fold(Flags::NONE, |flags, flag| flags.with(Flags::system(*flag)))
}

/// Adds all messages to the mailbox, as part of a transaction.
pub(crate) fn append_all(
    transaction: &mut Transaction,
    mailbox: MailboxId,
    messages: Vec<NewMessage>,
) -> Result<Appended> {
    let uid_validity = transaction.mailbox(mailbox)?.uidvalidity();
    let mut entries = Vec::with_capacity(messages.len());
    for new in messages {
        let flags = flags_of(transaction, mailbox, &new.flags)?;
        let email_id = transaction.add_message(new.message.inner)?;
        let internal_date = new.internal_date.unwrap_or(DateTime::utc(transaction.now()));
        let entry = NewEntry { uid: None, flags, internal_date, save_date: None };
        entries.push((transaction.add_entry(mailbox, email_id, &entry)?, email_id));
    }
    Ok(Appended { uid_validity, entries })
}

/// What a copy did, pair by pair.
pub(crate) fn pairs(
    transaction: &Transaction,
    to: MailboxId,
    copied: &index::Copied,
    expunged_modseq: Option<ModSeq>,
) -> Result<Copied> {
    let uids = copied.source.iter().zip(copied.destination.iter());
    Ok(Copied {
        uid_validity: transaction.mailbox(to)?.uidvalidity(),
        uids: uids.filter_map(|(from, to)| Some((Uid::new(from)?, Uid::new(to)?))).collect(),
        expunged_modseq,
    })
}
