//! One user's mail: what can be asked of it, and how it is changed. The changes are in `edit`; what is asked of mailboxes in `mailboxes`.
//!
//! Invariant: but for [`Account::begin`], a function that changes something returns when the change is durable.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use index::{HandOver, Log, State, Transaction};
use model::{
    AccountName, DateTime, EmailId, Error, ErrorKind, Keyword, MailboxId, MailboxName, ModSeq, Result, SpecialUse,
    SystemFlag, Uid, UidSet, UidValidity,
};

use platform::Env;

use crate::again;
use crate::cluster::Cluster;
use crate::convert;
use crate::edit::{Edit, Effects};
use crate::format::files::{Files, ForeignSlot, Moment, Patience};
use crate::format::{AccountFormat, account_format};
use crate::listeners::{Listener, ListenerGuard, Listeners};
use crate::pending::{Again, Begun, Pending};
use crate::quota::{QuotaLimits, Watch};
use crate::recent::RecentFloors;
use crate::search::SearchIndex;
use crate::writes::Writes;
use crate::{MessageWriter, Options, PendingMessage, Reader, View};

/// One user's mail.
pub struct Account {
    pub(crate) inner: Arc<Inner>,
}

/// What an account, its views and its readers share.
pub(crate) struct Inner {
    name: AccountName,
    env: Env,
    /// What it stands on: another log once it has moved into a database, or out of one.
    ground: RwLock<Ground>,
    listeners: Arc<Listeners>,
    writes: Arc<Writes>,
    recent: RecentFloors,
    message_bytes_max: u64,
    quota: QuotaLimits,
    /// Held for reading while a change is made, so that none is made for the files before and followed by those after.
    files: RwLock<Option<Arc<dyn Files>>>,
    options: Options,
    home: Option<Home>,
}

/// A log, and what belongs to it.
#[derive(Clone)]
pub(crate) struct Ground {
    log: Arc<Log>,
    foreign: Arc<ForeignSlot>,
    search: Arc<SearchIndex>,
}

impl Ground {
    pub(crate) fn new(env: &Env, log: Arc<Log>, foreign: Arc<ForeignSlot>) -> Self {
        let search = Arc::new(SearchIndex::new(env, &log));
        Ground { log, foreign, search }
    }
}

/// Where the store has the account, and where it can move to.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) cluster: Arc<dyn Cluster>,
    /// Of its own log.
    pub(crate) dir: PathBuf,
    /// What this node keeps of it while it is in the database.
    pub(crate) cache_dir: PathBuf,
    pub(crate) hand_over: Option<HandOver>,
}

impl Inner {
    fn ground(&self) -> Ground {
        self.ground.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn log(&self) -> Arc<Log> {
        self.ground().log
    }

    /// Where it is and can go; `None`: there is no database.
    pub(crate) fn home(&self) -> Option<&Home> {
        self.home.as_ref()
    }

    pub(crate) fn name(&self) -> &AccountName {
        &self.name
    }

    /// From now on it stands on this, which has the same mailboxes, entries and numbers.
    pub(crate) fn move_to(&self, held: &mut Held<'_>, ground: Ground, files: Option<Arc<dyn Files>>) {
        let old = self.log();
        self.listen_to(&ground.log);
        if let Some(hand_over) = self.home.as_ref().and_then(|home| home.hand_over.as_ref()) {
            ground.log.hand_over_to(Arc::clone(hand_over));
        }
        held.foreign = Arc::clone(&ground.foreign);
        *self.ground.write().unwrap_or_else(PoisonError::into_inner) = ground;
        held.set_files(files);
        old.set_listener(None);
        // Whoever looks from now on sees all there is.
        self.listeners.call();
    }

    fn listen_to(&self, log: &Arc<Log>) {
        let (to_call, count) = (Arc::clone(&self.listeners), self.writes.counter(log));
        log.set_listener(Some(Box::new(move |state| {
            count(state.modseq().0);
            to_call.call();
        })));
    }

    /// The limits of accounts that have none of their own.
    pub(crate) fn quota_defaults(&self) -> QuotaLimits {
        self.quota
    }

    /// What text search is answered from.
    pub(crate) fn search(&self) -> Arc<SearchIndex> {
        self.ground().search
    }

    /// The machine: for foreign files and the time.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// The account as it is durably.
    pub(crate) fn state(&self) -> Arc<State> {
        self.log().state()
    }

    /// The files of the account, if its messages lie in such.
    pub(crate) fn files(&self) -> Option<Arc<dyn Files>> {
        self.files.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One try to make a change.
    pub(crate) fn begin<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> Result<T>) -> Result<Begun<T>> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let ((value, effects), ticket) = self.log().transact(|transaction| {
            let mut edit = Edit { transaction, files: files.as_deref(), effects: Effects::default() };
            let watch = Watch::begin(edit.transaction, self.quota_defaults());
            let value = change(&mut edit)?;
            watch.end(edit.transaction)?;
            Ok((value, edit.effects))
        })?;
        Ok(Begun::new(value, ticket, files.as_ref().map(|files| (Arc::clone(files), effects))))
    }

    /// Keeps everybody from changing the account, but who goes to the log itself, until the guard is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held { files: self.files.write().unwrap_or_else(PoisonError::into_inner), foreign: self.ground().foreign }
    }

    /// The listeners of the account: for files that are taken up.
    pub(crate) fn listeners(&self) -> &Arc<Listeners> {
        &self.listeners
    }

    /// What the store was opened with.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Entries of `mailbox` from here on are \Recent to whoever asks next; from now on they are not. Returns the old floor.
    pub(crate) fn claim_recent(&self, mailbox: &index::Mailbox) -> u32 {
        self.recent.claim(&self.log(), mailbox)
    }
}

/// Nobody changes the account; see [`Inner::hold`].
pub(crate) struct Held<'a> {
    files: RwLockWriteGuard<'a, Option<Arc<dyn Files>>>,
    foreign: Arc<ForeignSlot>,
}

impl Held<'_> {
    /// From now on these are the files of the account.
    pub(crate) fn set_files(&mut self, files: Option<Arc<dyn Files>>) {
        self.foreign.set(files.as_ref());
        *self.files = files;
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
    /// Octets of these (RFC 9208 §4.1.4).
    pub deleted_size: u64,
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
#[derive(Clone)]
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
        options: &Options,
        writes: &Arc<Writes>,
        foreign: Arc<ForeignSlot>,
        home: Option<Home>,
    ) -> Result<Self> {
        let listeners = Arc::new(Listeners::default());
        let files = convert::open_files(&env, &log, &listeners, options)?;
        foreign.set(files.as_ref());
        let (recent, message_bytes_max) = (RecentFloors::default(), options.message_bytes_max);
        let (files, quota, options) = (RwLock::new(files), options.quota, options.clone());
        let (ground, writes) = (RwLock::new(Ground::new(&env, Arc::clone(&log), foreign)), Arc::clone(writes));
        let inner =
            Inner { name, env, ground, listeners, writes, recent, message_bytes_max, quota, files, options, home };
        inner.listen_to(&log);
        Ok(Account { inner: Arc::new(inner) })
    }

    /// Where its messages lie.
    pub fn format(&self) -> Result<AccountFormat> {
        if self.inner.log().is_shared() {
            return Ok(AccountFormat::Sql);
        }
        AccountFormat::parse(self.inner.state().annotation(account_format::KEY))
    }

    /// Its name.
    pub fn name(&self) -> &AccountName {
        &self.inner.name
    }

    /// Makes a change, and returns before it is durable: [`Pending::poll`] says when it is. Many clients that change something at once
    /// then wait for one sync without a thread for each. When `change` fails, or adds more than the account may hold
    /// ([`ErrorKind::OverQuota`]), nothing was done. `change` runs again when another node came in between (`again`).
    pub fn begin<T>(&self, mut change: impl FnMut(&mut Edit<'_>) -> Result<T> + Send + 'static) -> Result<Pending<T>> {
        let begun = again::until_done(|| self.inner.begin(&mut change))?;
        let is_shared = self.inner.log().is_shared();
        Ok(Pending::new(begun, is_shared.then(|| Again::new(Arc::clone(&self.inner), Box::new(change)))))
    }

    /// To be called before a change that brings messages into a mailbox: where another server gives UIDs to the same files, it is asked which.
    /// Nothing is lost where this is forgotten; but then both may give the same UID to different messages.
    pub fn before_adding(&self, mailbox: MailboxId) {
        if let Some(files) = self.inner.files() {
            files.before_adding(mailbox);
        }
    }

    /// Like [`Account::begin`], and waits until it is durable.
    pub fn edit<T>(&self, mut change: impl FnMut(&mut Edit<'_>) -> Result<T>) -> Result<T> {
        again::until_done(|| self.inner.begin(&mut change)?.wait())
    }

    /// Makes a change durable; with the answer of `change`, which runs again when another node came in between.
    pub(crate) fn commit<T>(&self, mut change: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        again::until_done(|| {
            // Not while it moves.
            let _files = self.inner.files.read().unwrap_or_else(PoisonError::into_inner);
            self.inner.log().commit(&mut change)
        })
    }

    /// Brings the log up to date with what other programs did to the mailbox's file, if it has one, or other nodes to an account that they
    /// share. Costs one question to the file system, or to the database, when there is nothing to do. [`ErrorKind::InUse`]: another program has locked the file for longer than we wait.
    pub fn refresh(&self, id: MailboxId) -> Result<()> {
        self.refresh_with(id, Patience::Wait)
    }

    /// Like [`Account::refresh`], without waiting for anybody. False: there may be news in a file that is locked just now.
    pub fn try_refresh(&self, id: MailboxId) -> Result<bool> {
        match self.refresh_with(id, Patience::None) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::InUse => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn refresh_with(&self, id: MailboxId, patience: Patience) -> Result<()> {
        match self.inner.files() {
            Some(files) => files.refresh(id, patience),
            None => self.inner.log().catch_up(),
        }
    }

    /// Makes the mailbox's file show what the log says, as far as the settings want that at such a moment; nothing for a mailbox without a
    /// file. [`ErrorKind::InUse`]: another program has locked it; it is tried again when the mailbox is idle.
    pub fn write_back(&self, id: MailboxId, moment: Moment) -> Result<()> {
        self.inner.files().map_or(Ok(()), |files| files.write_back(id, moment))
    }

    /// Ends all work on the account; for the store, when nobody uses it any more.
    pub(crate) fn close(&self) -> Result<()> {
        if let Some(files) = self.inner.files() {
            files.close();
        }
        self.inner.log().close()
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
            deleted_size: mailbox.deleted_octets(),
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
        Ok(MessageWriter::new(self.inner.log().message_writer(), self.inner.message_bytes_max))
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
