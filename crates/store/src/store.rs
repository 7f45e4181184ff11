//! The store: a directory of accounts.
//!
//! Invariants: one process at a time holds a store (a lock file), one [`Account`] object at a time can change an account; an account's
//! directory is there whole or not at all (it is made and removed under another name).
//!
//! ```text
//! ROOT/lock               held while a process has the store open
//! ROOT/accounts/NAME/     one account's log and index; NAME is the account's name, which begins with a letter or a digit
//! ROOT/accounts/NAME/in-database   the account is in the database; what else is there is a copy (see `convert/marker.rs`)
//! ROOT/cache/NAME/        what this node keeps of an account that lives in a database; may be removed while the store is closed
//! ROOT/accounts/.new-X/   an account in the making, ROOT/accounts/.deleted-X/ one in removal, ROOT/accounts/.restore-X/ a snapshot
//!                         that is looked into; cleared away when the store is opened
//! ```

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use index::{Budget, HandOver, Journal, Log};
use model::{AccountName, Error, ErrorKind, MailboxName, Result};
use platform::{Disk, Env, LockGuard};

use crate::Account;
use crate::account::Home;
use crate::cluster::Cluster;
use crate::convert::marker;
use crate::derived::MimeDerive;
use crate::format::AccountFormat;
use crate::format::account_format;
use crate::format::files::{self, ForeignSlot};
use crate::format::maildir::account::MaildirOptions;
use crate::format::mbox::account::MboxOptions;
use crate::quota::QuotaLimits;
use crate::writes::{WriteCounts, Writes};

/// How a store behaves; every number has its unit in its name.
#[derive(Clone, Debug)]
pub struct Options {
    /// Largest message, octets. 50 MiB.
    pub message_bytes_max: u64,
    /// How the account logs behave.
    pub log: index::Options,
    /// An account that nobody has used for so long is closed, seconds. 5 minutes.
    pub account_idle_seconds: u64,
    /// Bytes that one call of [`Store::maintain`] reads and writes, about. 4 MiB.
    pub maintain_step_bytes: u64,
    /// What an account may hold that has no limits of its own. No limit.
    pub quota: QuotaLimits,
    /// How accounts in mbox files behave.
    pub mbox: MboxOptions,
    /// How accounts in Maildirs behave.
    pub maildir: MaildirOptions,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            message_bytes_max: 50 << 20,
            log: index::Options::default(),
            account_idle_seconds: 300,
            maintain_step_bytes: 4 << 20,
            quota: QuotaLimits::default(),
            mbox: MboxOptions::default(),
            maildir: MaildirOptions::default(),
        }
    }
}

/// The store.
pub struct Store {
    env: Env,
    accounts_dir: PathBuf,
    cache_dir: PathBuf,
    cluster: Option<Arc<dyn Cluster>>,
    options: Options,
    slots: Mutex<BTreeMap<AccountName, Arc<Slot>>>,
    /// The account that was served last by [`Store::maintain`]. Held while it works, and while an account is made or removed.
    turn: Mutex<Option<AccountName>>,
    writes: Arc<Writes>,
    hand_over: OnceLock<HandOver>,
    _lock: LockGuard,
}

/// A place for an account: opening one account does not make the others wait.
#[derive(Default)]
struct Slot {
    open: Mutex<Option<Open>>,
}

/// An account that is open.
struct Open {
    account: Arc<Account>,
    /// When somebody was last seen to use it, by the monotonic clock.
    used_at: Duration,
}

impl Open {
    /// Whether anybody but the store itself has the account, a view or a reader of it.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.account) > 1 || Arc::strong_count(&self.account.inner) > 1
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that these locks guard can be left half-changed by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Opens the store at `root`, which is made when it is not there. [`ErrorKind::InUse`] when another process holds it.
    pub fn open(env: Env, root: PathBuf, options: Options) -> Result<Arc<Store>> {
        Self::open_with(env, root, options, None)
    }

    /// Like [`Store::open`], as a node of a `cluster` whose accounts it serves besides its own.
    pub fn open_with(
        env: Env,
        root: PathBuf,
        options: Options,
        cluster: Option<Arc<dyn Cluster>>,
    ) -> Result<Arc<Store>> {
        let accounts_dir = root.join("accounts");
        env.disk.create_dir_all_durable(&accounts_dir)?;
        let guard = env
            .disk
            .lock(&root.join("lock"))
            .map_err(|error| Error::from(error).context(format!("the store {} cannot be locked", root.display())))?;
        for entry in env.disk.list(&accounts_dir)? {
            // What a crash left of making or removing an account.
            if entry.name.as_encoded_bytes().first() == Some(&b'.') {
                remove_tree(&*env.disk, &accounts_dir.join(entry.name))?;
            }
        }
        let (slots, turn, writes, hand_over) = Default::default();
        let cache_dir = root.join("cache");
        Ok(Arc::new(Store {
            env,
            accounts_dir,
            cache_dir,
            cluster,
            options,
            slots,
            turn,
            writes,
            hand_over,
            _lock: guard,
        }))
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Who writes and syncs for those who poll a [`crate::Pending`]; for accounts that are opened from now on, and only once. Without it
    /// the thread that polls does.
    pub fn hand_over_to(&self, hand_over: HandOver) {
        let _ = self.hand_over.set(hand_over);
    }

    /// How much was made durable since it was opened.
    pub fn writes(&self) -> WriteCounts {
        self.writes.counts()
    }

    /// Clock, disk and randomness.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Makes an empty account with an INBOX.
    pub fn create_account(&self, name: &AccountName) -> Result<()> {
        self.create_account_as(name, &AccountFormat::Native)
    }

    /// Makes an account whose messages lie where `format` says. In files that are there already its mail is found when the account is opened.
    pub fn create_account_as(&self, name: &AccountName, format: &AccountFormat) -> Result<()> {
        let _alone = lock(&self.turn);
        let dir = self.dir_of(name);
        self.check_free(name)?;
        if *format == AccountFormat::Sql {
            let no_database = || Error::new(ErrorKind::Invalid, "no database is configured for accounts");
            return self.cluster.as_ref().ok_or_else(no_database)?.create(name);
        }
        let making = self.temporary("new");
        let line = format.to_line()?;
        let (log, _) = self.open_log(&making)?;
        log.commit(|transaction| match &line {
            Some(line) => transaction.annotate_account(account_format::KEY, Some(line.as_bytes())),
            None => transaction.create_mailbox(&MailboxName::inbox(), &[]).map(drop),
        })?;
        log.close()?;
        drop(log);
        files::prepare(&*self.env.disk, &making, format)?;
        self.env.disk.rename(&making, &dir)?;
        self.env.disk.sync_dir(&self.accounts_dir)?;
        Ok(())
    }

    /// Where the messages of an account lie.
    pub fn account_format(&self, name: &AccountName) -> Result<AccountFormat> {
        self.account(name)?.format()
    }

    /// Makes a directory, which is durable, the account of that name. [`ErrorKind::AlreadyExists`] when there is one: then the directory stays.
    pub(crate) fn adopt_directory(&self, made: &Path, name: &AccountName) -> Result<()> {
        let _alone = lock(&self.turn);
        let dir = self.dir_of(name);
        self.check_free(name)?;
        self.env.disk.rename(made, &dir)?;
        self.env.disk.sync_dir(&self.accounts_dir)?;
        Ok(())
    }

    /// Removes an account and everything in it; not the files of its messages. [`ErrorKind::InUse`] while someone holds it open.
    pub fn delete_account(&self, name: &AccountName) -> Result<()> {
        self.with_closed(name, |dir| {
            let own = self.dir_of(name);
            if let Some(cluster) = self.cluster.as_ref().filter(|_| dir != own) {
                cluster.delete(name)?;
                if self.env.disk.exists(dir)? {
                    remove_tree(&*self.env.disk, dir)?;
                }
                // What it was before it came into the database.
                if !self.env.disk.exists(&own)? {
                    return Ok(());
                }
            } else if let Some(cluster) = &self.cluster {
                cluster.drop_copy(name)?;
            }
            let dir = own.as_path();
            let doomed = self.temporary("deleted");
            self.env.disk.rename(dir, &doomed)?;
            self.env.disk.sync_dir(&self.accounts_dir)?;
            remove_tree(&*self.env.disk, &doomed)
        })
    }

    /// The accounts, sorted.
    pub fn accounts(&self) -> Result<Vec<AccountName>> {
        let entries = self.env.disk.list(&self.accounts_dir)?;
        let names = entries.iter().filter(|entry| entry.is_dir).filter_map(|entry| entry.name.to_str());
        // What is no account name is none of ours.
        let mut accounts: Vec<AccountName> =
            names.filter_map(|name| AccountName::new(name).ok().filter(|account| account.as_str() == name)).collect();
        if let Some(cluster) = &self.cluster {
            accounts.extend(cluster.accounts()?);
        }
        accounts.sort();
        accounts.dedup();
        Ok(accounts)
    }

    /// The account, opened when it is not open. Everyone gets the same object, until a failed write has closed it
    /// ([`ErrorKind::ReadOnlyAfterFailure`]): then the account is opened anew for who asks next.
    pub fn account(&self, name: &AccountName) -> Result<Arc<Account>> {
        loop {
            let slot = self.slot(name)?;
            let mut open = lock(&slot.open);
            // The slot may have been taken out between the two locks; then it is not the one that others will find.
            if !lock(&self.slots).get(name).is_some_and(|current| Arc::ptr_eq(current, &slot)) {
                continue;
            }
            let used_at = self.env.clock.monotonic();
            if let Some(open) = &mut *open {
                let log = open.account.inner.log();
                if !log.is_closed() {
                    open.used_at = used_at;
                    return Ok(Arc::clone(&open.account));
                }
                // A write failed. Who still has the old object can read and gets errors for changes; from here on there is a
                // new one, which knows what is really on the disk.
                let _ = log.close();
            }
            let account = match self.open_account(name) {
                Ok(account) => Arc::new(account),
                Err(error) => {
                    lock(&self.slots).remove(name);
                    return Err(error.context(format!("opening account {name}")));
                }
            };
            *open = Some(Open { account: Arc::clone(&account), used_at });
            return Ok(account);
        }
    }

    fn open_account(&self, name: &AccountName) -> Result<Account> {
        let (log, foreign) = match self.journal_of(name)? {
            None => self.open_log(&self.dir_of(name))?,
            Some(journal) => {
                let (dir, options) = (self.cache_dir.join(name.as_str()), self.options.log.clone());
                let log = Log::open_on(&self.env, &dir, options, Some(Arc::new(MimeDerive)), journal)?;
                (log, Arc::default())
            }
        };
        if let Some(hand_over) = self.hand_over.get() {
            log.hand_over_to(Arc::clone(hand_over));
        }
        let home = self.cluster.as_ref().map(|cluster| Home {
            cluster: Arc::clone(cluster),
            dir: self.dir_of(name),
            cache_dir: self.cache_dir.join(name.as_str()),
            hand_over: self.hand_over.get().cloned(),
        });
        Account::new(name.clone(), self.env.clone(), log, &self.options, &self.writes, foreign, home)
    }

    /// The process is about to end: from that time of the monotonic clock on, reading a large mbox file is given up, and writing one is not begun
    /// any more. The next process does it.
    pub fn end_long_work_at(&self, at: Duration) {
        self.options.mbox.aside.end_at(at);
    }

    /// Waits until every mbox file is whole that something is being written to: to be called before the process ends while other threads may be
    /// at it. A power cut does no harm then either, but other programs would see the file as it is in between until the next process has
    /// put it right.
    pub fn wait_for_changes(&self) {
        self.options.mbox.aside.wait();
    }

    /// Background work of all open accounts, a bounded piece of it: sealing, compaction, checkpoints, the search index, closing of idle
    /// accounts.
    /// Returns whether more is waiting. The server calls it from a thread of its own.
    ///
    /// The accounts take turns: one that has much to do gets one step, then the next one is asked. An error belongs to one
    /// account, which it names; the next call goes on with the others.
    pub fn maintain(&self) -> Result<bool> {
        self.maintain_parts(true)
    }

    /// Whether somebody searches an account whose index is behind: until [`Store::maintain`] has caught up, there should be no pauses.
    pub fn is_awaited(&self) -> bool {
        let slots = lock(&self.slots);
        // One that is being opened has no searches.
        let is_awaited = |slot: &Arc<Slot>| {
            let open = slot.open.try_lock();
            open.is_ok_and(|open| open.as_ref().is_some_and(|open| open.account.inner.search().is_awaited()))
        };
        slots.values().any(is_awaited)
    }

    /// Of that, only the sealing of what was written: for programs that bring much mail and then end. A server does the rest; until then those
    /// who ask look at the messages themselves.
    pub fn seal(&self) -> Result<bool> {
        self.maintain_parts(false)
    }

    fn maintain_parts(&self, is_all: bool) -> Result<bool> {
        let mut turn = lock(&self.turn);
        for (name, slot) in self.in_turn(turn.as_ref()) {
            *turn = Some(name.clone());
            let Some(account) = lock(&slot.open).as_ref().map(|open| Arc::clone(&open.account)) else { continue };
            // What was queued without anybody waiting (\Recent) becomes durable here.
            let log = account.inner.log();
            let bytes = self.options.maintain_step_bytes;
            account.inner.search().open();
            let work = if is_all { Log::maintain } else { Log::seal };
            let result = log.flush().and_then(|()| work(&log, Budget { bytes }));
            let result = result.and_then(|report| {
                let inner = &account.inner;
                // The log first: it holds up those who write, the search index nobody but those who search meanwhile.
                match report.is_more && !inner.search().is_awaited() || !is_all {
                    true => inner.search().keep_list().map(|()| report.is_more),
                    false => inner.search().maintain(inner, bytes).map(|is_more| is_more || report.is_more),
                }
            });
            let files = account.inner.files().map_or(Ok(()), |files| files.maintain());
            drop(account);
            self.close_when_idle(&name, &slot, result.is_err());
            let is_more = result
                .and_then(|is_more| files.map(|()| is_more))
                .map_err(|error| error.context(format!("maintaining account {name}")))?;
            if is_more {
                return Ok(true);
            }
        }
        *turn = None;
        Ok(false)
    }

    /// Runs `work` on the directory of an account that nobody uses. The account cannot be opened meanwhile.
    pub(crate) fn with_closed<T>(&self, name: &AccountName, work: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let _alone = lock(&self.turn);
        let slot = self.slot(name)?;
        let mut open = lock(&slot.open);
        if open.as_ref().is_some_and(Open::is_in_use) {
            return Err(Error::new(ErrorKind::InUse, format!("account {name} is in use")));
        }
        if let Some(open) = open.take() {
            open.account.close()?;
        }
        let dir = match self.journal_of(name)? {
            None => self.dir_of(name),
            Some(_journal) => self.cache_dir.join(name.as_str()),
        };
        let result = work(&dir);
        lock(&self.slots).remove(name);
        result
    }

    /// What stands behind an account of the cluster; `None` for this store's own.
    fn journal_of(&self, name: &AccountName) -> Result<Option<Arc<dyn Journal>>> {
        marker::settle(self.cluster.as_ref(), &*self.env.disk, &self.dir_of(name), name)
    }

    /// Whether there is an account of that name, here or in the cluster.
    fn is_there(&self, name: &AccountName) -> Result<bool> {
        Ok(self.env.disk.exists(&self.dir_of(name))? || self.journal_of(name)?.is_some())
    }

    fn check_free(&self, name: &AccountName) -> Result<()> {
        match self.is_there(name)? {
            true => Err(Error::new(ErrorKind::AlreadyExists, format!("there is an account {name} already"))),
            false => Ok(()),
        }
    }

    /// Where an account of this store lies.
    pub(crate) fn dir_of(&self, name: &AccountName) -> PathBuf {
        self.accounts_dir.join(name.as_str())
    }

    /// Opens an account's log, with a place for those who give the octets of foreign messages.
    pub(crate) fn open_log(&self, dir: &Path) -> Result<(Arc<Log>, Arc<ForeignSlot>)> {
        self.open_log_on(&self.env, dir)
    }

    /// The same, of files as `env` shows them.
    pub(crate) fn open_log_on(&self, env: &Env, dir: &Path) -> Result<(Arc<Log>, Arc<ForeignSlot>)> {
        let slot = Arc::<ForeignSlot>::default();
        let foreign = Some(Arc::clone(&slot) as Arc<dyn index::Foreign>);
        let log = Log::open(env, dir, self.options.log.clone(), Some(Arc::new(MimeDerive)), foreign)?;
        Ok((log, slot))
    }

    /// An account on a log that was opened elsewhere: of a copy that is only looked at.
    pub(crate) fn account_on(&self, name: &AccountName, log: Arc<Log>, foreign: Arc<ForeignSlot>) -> Result<Account> {
        Account::new(name.clone(), self.env.clone(), log, &self.options, &self.writes, foreign, None)
    }

    /// A directory name that no account can have; what is left of it is cleared away when the store is opened.
    pub(crate) fn temporary(&self, what: &str) -> PathBuf {
        self.accounts_dir.join(format!(".{what}-{:016x}", self.env.random.u64()))
    }

    /// The place of an account that exists.
    fn slot(&self, name: &AccountName) -> Result<Arc<Slot>> {
        if let Some(slot) = lock(&self.slots).get(name) {
            return Ok(Arc::clone(slot));
        }
        if !self.is_there(name)? {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no account {name}")));
        }
        Ok(Arc::clone(lock(&self.slots).entry(name.clone()).or_default()))
    }

    /// The open accounts, beginning behind `last`.
    fn in_turn(&self, last: Option<&AccountName>) -> Vec<(AccountName, Arc<Slot>)> {
        let slots = lock(&self.slots);
        let copy = |(name, slot): (&AccountName, &Arc<Slot>)| (name.clone(), Arc::clone(slot));
        let Some(last) = last else { return slots.iter().map(copy).collect() };
        let behind = slots.range::<AccountName, _>((Bound::Excluded(last), Bound::Unbounded));
        behind.chain(slots.range::<AccountName, _>(..=last)).map(copy).collect()
    }

    /// Closes an account that has been idle for long enough, or that has `failed` and is not used.
    fn close_when_idle(&self, name: &AccountName, slot: &Slot, failed: bool) {
        let mut open = lock(&slot.open);
        let now = self.env.clock.monotonic();
        let Some(account) = &mut *open else { return };
        if account.is_in_use() {
            account.used_at = now;
            return;
        }
        let idle = now.saturating_sub(account.used_at) >= Duration::from_secs(self.options.account_idle_seconds);
        if idle || failed {
            // What could not be written was never acknowledged; the next opening recovers.
            let _ = account.account.close();
            *open = None;
            lock(&self.slots).remove(name);
        }
    }
}

impl Drop for Store {
    /// Closes what nobody uses any more, so that the next opening is quick.
    fn drop(&mut self) {
        for slot in lock(&self.slots).values() {
            if let Some(open) = lock(&slot.open).take().filter(|open| !open.is_in_use()) {
                let _ = open.account.close();
            }
        }
    }
}

/// Removes a directory and all below it. Not durable at once: what comes back after a power cut is removed at the next opening.
pub(crate) fn remove_tree(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for entry in disk.list(dir)? {
        let path = dir.join(&entry.name);
        match entry.is_dir {
            true => remove_tree(disk, &path)?,
            false => disk.remove(&path)?,
        }
    }
    Ok(disk.remove_dir(dir)?)
}
