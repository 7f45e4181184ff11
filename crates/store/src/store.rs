//! The store: a directory of accounts.
//!
//! Invariants: one process at a time holds a store (a lock file), one [`Account`] object at a time can change an account; an account's
//! directory is there whole or not at all (it is made and removed under another name).
//!
//! ```text
//! ROOT/lock               held while a process has the store open
//! ROOT/accounts/NAME/     one account's log and index; NAME is the account's name, which begins with a letter or a digit
//! ROOT/accounts/.new-X/   an account in the making, ROOT/accounts/.deleted-X/ one in removal, ROOT/accounts/.restore-X/ a snapshot
//!                         that is looked into; cleared away when the store is opened
//! ```

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use index::{Budget, HandOver, Log};
use model::{AccountName, Error, ErrorKind, MailboxName, Result};
use platform::{Disk, Env, LockGuard, parent_of};

use crate::Account;
use crate::derived::MimeDerive;
use crate::format::account_format::{self, FILES_DIRS};
use crate::format::files::ForeignSlot;
use crate::format::maildir::account::MaildirOptions;
use crate::format::mbox::account::MboxOptions;
use crate::format::{AccountFormat, maildir};
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
            mbox: MboxOptions::default(),
            maildir: MaildirOptions::default(),
        }
    }
}

/// The store.
pub struct Store {
    env: Env,
    accounts_dir: PathBuf,
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
        Ok(Arc::new(Store { env, accounts_dir, options, slots, turn, writes, hand_over, _lock: guard }))
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
        if self.env.disk.exists(&dir)? {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is an account {name} already")));
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
        let needed = match format {
            AccountFormat::Native => Vec::new(),
            AccountFormat::Mbox { inbox, root } => vec![parent_of(inbox).to_owned(), root.clone()],
            AccountFormat::Maildir { root, .. } => maildir::layout::SUBDIRS.map(|subdir| root.join(subdir)).into(),
        };
        for needed in format.dir_name().map(|name| making.join(name)).into_iter().chain(needed) {
            self.env.disk.create_dir_all_durable(&needed)?;
        }
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
        if self.env.disk.exists(&dir)? {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is an account {name} already")));
        }
        self.env.disk.rename(made, &dir)?;
        self.env.disk.sync_dir(&self.accounts_dir)?;
        Ok(())
    }

    /// Removes an account and everything in it; not the files of its messages. [`ErrorKind::InUse`] while someone holds it open.
    pub fn delete_account(&self, name: &AccountName) -> Result<()> {
        self.with_closed(name, |dir| {
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
        accounts.sort();
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
        let (log, foreign) = self.open_log(&self.dir_of(name))?;
        if let Some(hand_over) = self.hand_over.get() {
            log.hand_over_to(Arc::clone(hand_over));
        }
        Account::new(name.clone(), self.env.clone(), log, &self.options, &self.writes, foreign)
    }

    /// Background work of all open accounts, a bounded piece of it: sealing, compaction, checkpoints, the search index, closing of idle
    /// accounts.
    /// Returns whether more is waiting. The server calls it from a thread of its own.
    ///
    /// The accounts take turns: one that has much to do gets one step, then the next one is asked. An error belongs to one
    /// account, which it names; the next call goes on with the others.
    pub fn maintain(&self) -> Result<bool> {
        let mut turn = lock(&self.turn);
        for (name, slot) in self.in_turn(turn.as_ref()) {
            *turn = Some(name.clone());
            let Some(account) = lock(&slot.open).as_ref().map(|open| Arc::clone(&open.account)) else { continue };
            // What was queued without anybody waiting (\Recent) becomes durable here.
            let log = account.inner.log();
            let bytes = self.options.maintain_step_bytes;
            account.inner.search().open();
            let result = log.flush().and_then(|()| log.maintain(Budget { bytes }));
            let result = result.and_then(|report| {
                let inner = &account.inner;
                // The log first: it holds up those who write, the search index nobody.
                match report.is_more {
                    true => inner.search().keep_list().map(|()| true),
                    false => inner.search().maintain(inner, bytes),
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
        let result = work(&self.dir_of(name));
        lock(&self.slots).remove(name);
        result
    }

    /// Where an account lies.
    pub(crate) fn dir_of(&self, name: &AccountName) -> PathBuf {
        self.accounts_dir.join(name.as_str())
    }

    /// Opens an account's log, with a place for those who give the octets of foreign messages if it may have such.
    pub(crate) fn open_log(&self, dir: &Path) -> Result<(Arc<Log>, Option<Arc<ForeignSlot>>)> {
        let mut has_files = false;
        for name in FILES_DIRS {
            has_files |= self.env.disk.exists(&dir.join(name))?;
        }
        let slot = has_files.then(Arc::<ForeignSlot>::default);
        let foreign = slot.clone().map(|slot| slot as Arc<dyn index::Foreign>);
        let log = Log::open(&self.env, dir, self.options.log.clone(), Some(Arc::new(MimeDerive)), foreign)?;
        let format = AccountFormat::parse(log.state().annotation(account_format::KEY))?;
        if let Some(name) = format.dir_name().filter(|_| !has_files) {
            // The directory was lost; the log knows better.
            log.close()?;
            self.env.disk.create_dir_all_durable(&dir.join(name))?;
            return self.open_log(dir);
        }
        Ok((log, slot))
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
        if !self.env.disk.exists(&self.dir_of(name))? {
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
