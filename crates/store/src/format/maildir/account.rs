//! The Maildirs of one account: which directory belongs to which mailbox, and who works on it.
//!
//! The log has the mailboxes, the entries and everything that clients change. What other programs do to the files is taken into the log (`sync`),
//! and the files are made to show what the log says (`project`).
//!
//! Invariants:
//! - One thread at a time syncs or changes a Maildir (`DirBox::turn`); nobody waits for a turn while it holds another one.
//! - Mutexes are taken in this order: `seen`, `arranging`, a turn, the log's (within a transaction), `DirBox::uids`, `names`, `boxes`, `DirBox::map`.
//!   The last three are held for a moment, and nothing is waited for meanwhile; `uids` while its file is read or written.
//! - What clients were told is in the log. Whatever happens to a file in between, the next sync makes both agree.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use index::{Finding, ForeignMessage, Log, State};
use model::{EmailId, Error, ErrorKind, MailboxId, MailboxName, ModSeq, Result};
use platform::{Env, NameNews, WatchGuard};

use super::keywords::Keywords;
use super::layout;
use super::listing::Subdir;
use super::map::Map;
use super::news::News;
use super::serve::{Reading, Served};
use super::shared_uids::{SharedUids, UidLists};
use super::size_file::Usage;
use super::sizes::Sizes;
use super::tree::Seen;
use crate::edit::Effects;
use crate::format::files::{Files, Moment, Patience};
use crate::format::idle::Calm;
use crate::format::mbox::digest::DigestOfServed;
use crate::format::names::{Names, Since};
use crate::format::{AccountFormat, MaildirLayout};
use crate::listeners::Listeners;
use crate::quota::QuotaLimits;
use crate::store::Options;

/// The directory of an account in which everything is that belongs to its files and cannot be derived. An account has it if and only if
/// its format is Maildir.
pub(crate) const DIR: &str = "maildir";
/// The first line of the record of which mailbox has which directory.
pub(crate) const NAMES_HEADER: &str = "mailyard maildir names 1";

/// How accounts in Maildirs behave; every number has its unit in its name.
#[derive(Clone, Debug)]
pub struct MaildirOptions {
    /// A mailbox is idle when nothing was changed in it for so long, seconds. 30.
    pub idle_seconds: u64,
    /// Whether `dovecot-uidlist` is kept up.
    pub uid_lists: UidLists,
}

impl Default for MaildirOptions {
    fn default() -> Self {
        MaildirOptions { idle_seconds: 30, uid_lists: UidLists::default() }
    }
}

/// The Maildirs of an account.
#[derive(Debug)]
pub(crate) struct MaildirAccount {
    pub(super) env: Env,
    /// The account's own directory.
    pub(super) dir: PathBuf,
    /// The Maildir of INBOX.
    pub(super) root: PathBuf,
    pub(super) layout: MaildirLayout,
    pub(super) options: MaildirOptions,
    /// What accounts may hold that have no limits of their own.
    pub(super) quota_defaults: QuotaLimits,
    pub(super) log: Arc<Log>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) seen: Mutex<Seen>,
    /// Held by who makes, renames and removes directories; and then, for a moment, `names`.
    pub(super) arranging: Mutex<()>,
    pub(super) names: Mutex<Names>,
    boxes: Mutex<BTreeMap<MailboxId, Arc<DirBox>>>,
    pub(super) served: Served,
    /// Taken while nothing else is locked.
    pub(super) reading: Mutex<Reading>,
    /// Counts the names that were made.
    pub(super) made: AtomicU64,
    pub(super) sizes: Sizes,
}

/// One mailbox and its Maildir.
#[derive(Debug)]
pub(crate) struct DirBox {
    pub(super) id: MailboxId,
    pub(super) turn: Mutex<Turn>,
    /// Which file each entry has; `None`: not known (yet).
    pub(super) map: Mutex<Option<Map>>,
    /// What the last look saw may not be all: look again, whatever the system says.
    pub(super) is_restless: AtomicBool,
    /// The log has something that the files do not show.
    pub(super) wanted: AtomicBool,
    /// It was looked what was left to do from before.
    pub(super) is_audited: AtomicBool,
    /// What the system has told since the last look.
    pub(super) news: Arc<News>,
    watched: Mutex<Option<Watched>>,
    /// What is known of the list of UIDs that Dovecot reads.
    pub(super) uids: Mutex<SharedUids>,
}

/// A Maildir of whose names the system tells.
#[derive(Debug)]
struct Watched {
    maildir: PathBuf,
    _guards: Vec<WatchGuard>,
}

/// What only the thread knows whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The map on the disk was looked for.
    pub(super) is_open: bool,
    /// The Maildir and the log were once seen to agree since the account was opened: what is in one only is news.
    pub(super) is_settled: bool,
    /// What the letters of keywords stand for, and since when.
    pub(super) keywords: Keywords,
    pub(super) calm: Calm,
    /// The mailbox as it was when the work of idle times was done last: its modseq, what was pending, its floor of \Recent.
    pub(super) rested: Option<(ModSeq, u32, u32)>,
    /// Sizes and digests of messages of the log that had to be looked for among the files.
    pub(super) digests: HashMap<EmailId, (u32, u64)>,
    /// Names were changed in the directories that may not be durable.
    pub(super) is_volatile: bool,
    /// What was changed in the files and `maildirsize` was not told.
    pub(super) untold: Usage,
}

/// The lock of a mutex; nothing that these guard is left half-changed by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MaildirAccount {
    /// Takes up the files of an account whose log was opened: finishes what was interrupted with the names of mailboxes. `None`: its format is another.
    pub(crate) fn open(
        env: Env,
        log: Arc<Log>,
        listeners: Arc<Listeners>,
        format: &AccountFormat,
        options: &Options,
    ) -> Result<Option<Arc<Self>>> {
        let AccountFormat::Maildir { root, layout } = format.clone() else { return Ok(None) };
        let dir = log.dir().to_owned();
        let names = Mutex::new(Names::load(&*env.disk, &dir.join(DIR), NAMES_HEADER)?);
        let (options, quota_defaults) = (options.maildir.clone(), options.quota);
        let (seen, arranging, boxes, served, reading, made, sizes) = Default::default();
        let account = MaildirAccount {
            env,
            dir,
            root,
            layout,
            options,
            quota_defaults,
            log,
            listeners,
            seen,
            arranging,
            names,
            boxes,
            served,
            reading,
            made,
            sizes,
        };
        // What cannot be renamed or removed just now keeps nobody from the others; it is tried again.
        let _later = account.reconcile(Since::Opening);
        account.discover();
        Ok(Some(Arc::new(account)))
    }

    /// The mailbox's Maildir; `None`: it has none (any more).
    pub(super) fn path_of(&self, id: MailboxId) -> Option<PathBuf> {
        lock(&self.names).path(id).map(|path| self.full_path(path))
    }

    /// A path as [`Names`] has it.
    pub(super) fn full_path(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    /// Where the map of a mailbox is kept.
    pub(super) fn map_path(&self, id: MailboxId) -> PathBuf {
        self.dir.join("index").join(format!("maildir-{id}"))
    }

    /// The mailbox's Maildir and who works on it. [`ErrorKind::NotFound`]: it has none.
    pub(super) fn dir_box(&self, id: MailboxId) -> Result<Arc<DirBox>> {
        if let Some(found) = lock(&self.boxes).get(&id) {
            return Ok(Arc::clone(found));
        }
        if self.path_of(id).is_none() {
            return Err(Error::new(ErrorKind::NotFound, "the mailbox has no Maildir"));
        }
        let new = Arc::new(DirBox {
            id,
            turn: Mutex::default(),
            map: Mutex::default(),
            is_restless: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            is_audited: AtomicBool::new(false),
            news: Arc::default(),
            watched: Mutex::default(),
            uids: Mutex::default(),
        });
        Ok(Arc::clone(lock(&self.boxes).entry(id).or_insert(new)))
    }

    /// Like [`MaildirAccount::dir_box`], of a mailbox whose Maildir was used since the account was opened.
    pub(super) fn known_box(&self, id: MailboxId) -> Option<Arc<DirBox>> {
        lock(&self.boxes).get(&id).cloned()
    }

    /// Those that are in use.
    pub(super) fn open_boxes(&self) -> Vec<Arc<DirBox>> {
        lock(&self.boxes).values().cloned().collect()
    }

    /// The mailbox is gone, and its Maildir.
    pub(super) fn forget_box(&self, id: MailboxId) {
        lock(&self.boxes).remove(&id);
        // What is left of it costs some bytes and is known to nobody.
        let _ = self.env.disk.remove(&self.map_path(id));
    }

    pub(super) fn state(&self) -> Arc<State> {
        self.log.state()
    }

    /// The mailbox that has what was expunged in `id` while its files are still there.
    pub(super) fn pending_of(state: &State, id: MailboxId) -> Option<&Arc<index::Mailbox>> {
        state.mailbox_named(&MailboxName::hidden(id))
    }

    /// Watches a Maildir from now on. Whoever is told notes the names and wakes the sessions; those in IDLE look themselves, on threads that may
    /// wait for a disk.
    pub(super) fn watch(&self, dir_box: &DirBox) {
        let Some(maildir) = self.path_of(dir_box.id) else { return };
        let mut watched = lock(&dir_box.watched);
        if watched.as_ref().is_some_and(|watched| watched.maildir == maildir) {
            return;
        }
        // Those of a Maildir that was renamed end first.
        *watched = None;
        dir_box.news.begin();
        let watch = |subdir: Subdir| {
            let (listeners, news) = (Arc::clone(&self.listeners), Arc::clone(&dir_box.news));
            let on_names = move |told: NameNews<'_>| {
                news.tell(subdir, told);
                listeners.call();
            };
            let guard = self.env.watch.watch_names(&maildir.join(subdir.as_str()), Arc::new(on_names));
            if guard.is_err() {
                // The directories are looked at when a client asks for news.
                dir_box.news.tell(subdir, NameNews::Blind);
            }
            guard.ok()
        };
        let guards = Subdir::ALL.into_iter().filter_map(watch).collect();
        *watched = Some(Watched { maildir, _guards: guards });
    }

    /// Ends watching directories that are not there any more; the next look watches those that are.
    pub(super) fn unwatch(&self, dir_box: &DirBox) {
        *lock(&dir_box.watched) = None;
        dir_box.news.tell(Subdir::Cur, NameNews::Blind);
    }
}

impl Files for MaildirAccount {
    fn check_name(&self, name: &MailboxName) -> Result<()> {
        layout::path_of(self.layout, name).map(drop)
    }

    fn before_adding(&self, mailbox: MailboxId) {
        MaildirAccount::before_adding(self, mailbox);
    }

    fn uid_floor(&self, mailbox: &index::Mailbox) -> Result<u32> {
        MaildirAccount::uid_floor(self, mailbox)
    }

    fn discover(&self) {
        MaildirAccount::discover(self);
    }

    fn refresh(&self, id: MailboxId, patience: Patience) -> Result<()> {
        match self.dir_box(id) {
            Ok(dir_box) => MaildirAccount::refresh(self, &dir_box, patience),
            // Deleted meanwhile, or not known: others say so.
            Err(_no_maildir) => Ok(()),
        }
    }

    fn write_back(&self, id: MailboxId, moment: Moment) -> Result<()> {
        match self.dir_box(id) {
            Ok(dir_box) => MaildirAccount::write_back(self, &dir_box, moment),
            Err(_no_maildir) => Ok(()),
        }
    }

    fn follow(&self, effects: &Effects) {
        MaildirAccount::follow(self, effects);
    }

    fn maintain(&self) -> Result<()> {
        MaildirAccount::maintain(self)
    }

    fn close(&self) {
        MaildirAccount::close(self);
    }

    fn check(&self) -> Result<Vec<Finding>> {
        MaildirAccount::check(self)
    }

    fn digest(&self, octets: &[u8]) -> u64 {
        let mut digest = DigestOfServed::new();
        digest.push(octets);
        digest.finish()
    }

    fn read_back(
        &self,
        mailbox: MailboxId,
        id: EmailId,
        known: &ForeignMessage,
        header: &mut Vec<u8>,
        octets: &mut Vec<u8>,
    ) -> Result<bool> {
        match self.dir_box(mailbox) {
            Ok(dir_box) => self.read_copy(&dir_box, id, known, header, octets),
            Err(_no_maildir) => Ok(false),
        }
    }

    fn make_read_durable(&self) -> Result<()> {
        MaildirAccount::make_read_durable(self)
    }
}

impl DirBox {
    /// Does something with the map, if it is known.
    pub(super) fn with_map<T>(&self, work: impl FnOnce(&mut Map) -> T) -> Option<T> {
        lock(&self.map).as_mut().map(work)
    }

    /// Up to where the names show what the log says.
    pub(super) fn shown(&self) -> ModSeq {
        self.with_map(|map| map.shown).unwrap_or_default()
    }
}
