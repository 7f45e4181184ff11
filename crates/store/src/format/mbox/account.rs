//! The mbox files of one account: which file belongs to which mailbox, and who works on it.
//!
//! The log has the mailboxes, the entries and everything that clients change; the files have the octets of what other programs put there
//! (`sync` takes that into the log) and are made to show what the log says (`project`).
//!
//! Invariants:
//! - One thread at a time syncs or writes a file (`FileBox::turn`); nobody waits for a turn while it holds another one.
//! - While octets of a file are moved nobody reads it (`FileBox::moving`); its map is replaced, never changed, so that readers keep theirs.
//! - Mutexes are taken in this order: `reconciling`, `seen`, `names`, `boxes`. None but the first is held while a turn is waited for, and that is
//!   never taken by who has a turn.
//! - What clients were told is in the log. Whatever happens to a file in between, the next sync makes both agree.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use index::{Finding, ForeignMessage, Log, State, Transaction};
use model::{EmailId, Error, ErrorKind, MailboxId, MailboxName, Result};
use platform::{Env, WatchGuard};

use super::digest::DigestOfServed;
use super::lock::{LockPolicy, Locker};
use super::map::Map;
use super::names::{self, Names, Since};
use super::serve::FileReader;
use super::tree::Seen;
use crate::Aside;
use crate::edit::Effects;
use crate::format::AccountFormat;
use crate::format::files::Files;
pub(crate) use crate::format::files::{Moment, Patience};
use crate::format::idle::Calm;
use crate::listeners::Listeners;

/// The directory of an account in which everything is that belongs to its files and cannot be derived. An account has it if and only if
/// its format is mbox.
pub(crate) const DIR: &str = "mbox";

/// How accounts in mbox files behave; every number has its unit in its name.
#[derive(Clone, Debug)]
pub struct MboxOptions {
    /// How the files are locked.
    pub locks: LockPolicy,
    /// When flags are written into the files.
    pub write_back: WriteBack,
    /// A mailbox is idle when nothing was changed in it for so long, seconds. 30.
    pub idle_seconds: u64,
    /// Octets that are left free in a message's fields when these are written, so that the next change finds room in place. 0: none. 32.
    pub padding_bytes: usize,
    /// Threads that read a large file. 1.
    pub jobs: usize,
    /// A file up to this size is read whole whenever it has changed; of a larger one that has grown only what is new is read at first, and the
    /// rest when the mailbox is idle. 524,288.
    pub whole_bytes_max: u64,
    /// Where work runs that takes long. At once, where it is.
    pub aside: Aside,
}

impl Default for MboxOptions {
    fn default() -> Self {
        MboxOptions {
            locks: LockPolicy::default(),
            write_back: WriteBack::default(),
            idle_seconds: 30,
            padding_bytes: 32,
            jobs: 1,
            whole_bytes_max: 512 << 10,
            aside: Aside::default(),
        }
    }
}

/// When UIDs, flags and keywords are written into the files, for the other programs. What was expunged leaves its file at CLOSE, LOGOUT and
/// when idle whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// At CHECK.
    pub check: bool,
    /// At CLOSE and UNSELECT, and when another mailbox is selected.
    pub close: bool,
    /// At LOGOUT.
    pub logout: bool,
    /// When nothing was changed for a while, and when the account is closed.
    pub idle: bool,
}

impl Default for WriteBack {
    fn default() -> Self {
        WriteBack { check: true, close: true, logout: true, idle: true }
    }
}

impl WriteBack {
    /// Whether flags are written now.
    pub(super) fn flags_at(self, moment: Moment) -> bool {
        match moment {
            Moment::Check => self.check,
            Moment::Close => self.close,
            Moment::Logout => self.logout,
            Moment::Idle => self.idle,
            Moment::Convert => true,
        }
    }

    /// Whether what was expunged leaves the file now.
    pub(super) fn removes_at(self, moment: Moment) -> bool {
        self.flags_at(moment) || moment != Moment::Check
    }
}

/// The files of an account.
#[derive(Debug)]
pub(crate) struct MboxAccount {
    pub(super) env: Env,
    /// The account's own directory.
    pub(super) dir: PathBuf,
    pub(super) inbox: PathBuf,
    pub(super) root: PathBuf,
    pub(super) options: MboxOptions,
    pub(super) locker: Locker,
    pub(super) log: Arc<Log>,
    pub(super) listeners: Arc<Listeners>,
    /// Held by who makes the files follow the log's mailboxes.
    pub(super) reconciling: Mutex<()>,
    /// Something failed when they were to follow: it is tried again by whoever looks next.
    pub(super) is_behind: AtomicBool,
    pub(super) names: Mutex<Names>,
    pub(super) seen: Mutex<Seen>,
    boxes: Mutex<BTreeMap<MailboxId, Arc<FileBox>>>,
}

/// One mailbox and its file.
#[derive(Debug)]
pub(crate) struct FileBox {
    pub(super) id: MailboxId,
    pub(super) turn: Mutex<Turn>,
    /// Held by who reads octets of the file, and alone by who moves them.
    pub(super) moving: RwLock<()>,
    /// Where the messages are; `None`: not known (yet).
    map: RwLock<Option<Arc<Map>>>,
    /// Reads the file as the map, or an older one, knows it.
    pub(super) reader: Mutex<Option<Arc<FileReader>>>,
    /// A message was not where the map has it, though the system says that the file is as it was, or has only grown.
    pub(super) is_doubted: AtomicBool,
    /// A sync of the file has failed: what can be told of it is to be found out anew, as after a crash.
    pub(super) is_failed: AtomicBool,
    /// Something came into the mailbox that is not in the file.
    pub(super) wanted: AtomicBool,
    /// The mailbox is gone, and somebody has changed the file since: then it stays in any case.
    pub(super) is_spared: AtomicBool,
    /// It was looked what was left to do from before.
    pub(super) is_audited: AtomicBool,
    pub(super) watch: OnceLock<Option<WatchGuard>>,
}

/// What only the thread knows whose turn it is.
#[derive(Debug)]
pub(super) struct Turn {
    /// An interrupted write was looked for, and the map on the disk.
    pub(super) is_open: bool,
    /// All of the file is to be read, whatever the system says of it.
    pub(super) is_whole_wanted: bool,
    /// The file has a marker that its fields count for nothing, until a new map is made.
    pub(super) is_unsettled: bool,
    /// A sync of the file has failed, perhaps in an earlier process, so that memory may have of it what the disk does not.
    pub(super) is_doubtful: bool,
    /// Something was added to the file: the name of the file of intents is durable.
    pub(super) has_intents: bool,
    /// The inode of the file whose name is durable, however it was made.
    pub(super) named: Option<u64>,
    pub(super) calm: Calm,
    /// Digests of messages of the log that had to be looked for in the file.
    pub(super) digests: HashMap<EmailId, u64>,
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            is_open: false,
            is_whole_wanted: false,
            is_unsettled: false,
            is_doubtful: true,
            has_intents: false,
            named: None,
            calm: Calm::default(),
            digests: HashMap::new(),
        }
    }
}
/// A file of fewer octets is not worth the way to another thread.
const LONG_BYTES: u64 = 4 << 20;

/// The lock of a mutex; nothing that these guard is left half-changed by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MboxAccount {
    /// Takes up the files of an account whose log was opened: finishes what was interrupted with the names of mailboxes.
    pub(crate) fn open(
        env: Env,
        log: Arc<Log>,
        listeners: Arc<Listeners>,
        format: &AccountFormat,
        options: &MboxOptions,
    ) -> Result<Option<Arc<Self>>> {
        let AccountFormat::Mbox { inbox, root } = format.clone() else { return Ok(None) };
        let dir = log.dir().to_owned();
        let names = Names::load(&*env.disk, &dir.join(DIR), names::HEADER)?;
        let locker = Locker::new(env.clone(), options.locks.clone());
        let (options, names, seen, boxes) = (options.clone(), Mutex::new(names), Mutex::default(), Mutex::default());
        let (reconciling, is_behind) = Default::default();
        let account = MboxAccount {
            env,
            dir,
            inbox,
            root,
            options,
            locker,
            log,
            listeners,
            reconciling,
            is_behind,
            names,
            seen,
            boxes,
        };
        // A file that cannot be renamed or removed just now keeps nobody from the others; it is tried again.
        let _later = account.reconcile(Since::Opening);
        account.discover();
        Ok(Some(Arc::new(account)))
    }

    /// The turn at a file. Who has it may have much to do.
    pub(super) fn wait_for_turn<'b>(&self, file_box: &'b FileBox) -> MutexGuard<'b, Turn> {
        match file_box.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => self.options.aside.run(|| lock(&file_box.turn)),
        }
    }

    /// Runs work that goes over so many octets of a file.
    pub(super) fn go_over<T>(&self, octets: u64, work: impl FnOnce() -> T) -> T {
        self.options.aside.run_if(octets >= LONG_BYTES, work)
    }

    /// The mailbox's file; `None`: it has none (any more).
    pub(super) fn path_of(&self, id: MailboxId) -> Option<PathBuf> {
        lock(&self.names).path(id).map(|path| self.full_path(path))
    }

    /// A path as [`Names`] has it.
    pub(super) fn full_path(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.inbox.clone() } else { self.root.join(path) }
    }

    /// Where the map of a mailbox is kept.
    pub(super) fn map_path(&self, id: MailboxId) -> PathBuf {
        self.dir.join("index").join(format!("mbox-{id}"))
    }

    /// The mailbox's file and who works on it. [`ErrorKind::NotFound`]: it has none.
    pub(crate) fn file_box(&self, id: MailboxId) -> Result<Arc<FileBox>> {
        if let Some(found) = self.known_box(id) {
            return Ok(found);
        }
        if self.path_of(id).is_none() {
            return Err(Error::new(ErrorKind::NotFound, "the mailbox has no file"));
        }
        let new = Arc::new(FileBox {
            id,
            turn: Mutex::default(),
            moving: RwLock::default(),
            map: RwLock::default(),
            reader: Mutex::default(),
            is_doubted: AtomicBool::new(false),
            is_failed: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            is_spared: AtomicBool::new(false),
            is_audited: AtomicBool::new(false),
            watch: OnceLock::new(),
        });
        Ok(Arc::clone(lock(&self.boxes).entry(id).or_insert(new)))
    }

    /// Like [`MboxAccount::file_box`], of a mailbox whose file was used since the account was opened.
    pub(super) fn known_box(&self, id: MailboxId) -> Option<Arc<FileBox>> {
        lock(&self.boxes).get(&id).cloned()
    }

    /// Those that are in use.
    pub(super) fn open_boxes(&self) -> Vec<Arc<FileBox>> {
        lock(&self.boxes).values().cloned().collect()
    }

    /// The mailbox is gone, and its file.
    pub(super) fn forget_box(&self, id: MailboxId) {
        lock(&self.boxes).remove(&id);
        // What is left of it costs some bytes and is known to nobody.
        let _ = self.env.disk.remove(&self.map_path(id));
        super::write::forget(&*self.env.disk, &self.files_dir(), id);
    }

    pub(super) fn state(&self) -> Arc<State> {
        self.log.state()
    }

    /// Which mailbox's file has the messages of a mailbox, which may be a hidden one.
    pub(super) fn file_of(mailbox: &index::Mailbox) -> MailboxId {
        mailbox.name().hidden_of().unwrap_or(mailbox.id())
    }

    /// The mailbox that has what was expunged in `id` while its file still has the octets.
    pub(super) fn pending_of(state: &State, id: MailboxId) -> Option<&Arc<index::Mailbox>> {
        state.mailbox_named(&MailboxName::hidden(id))
    }
}

impl Files for MboxAccount {
    fn check_name(&self, name: &MailboxName) -> Result<()> {
        self.check_place(name)
    }

    fn check_contents(&self, id: MailboxId) -> Result<()> {
        self.check_file_writable(id)
    }

    fn check_rename(&self, id: MailboxId) -> Result<()> {
        self.check_name_writable(id)
    }

    fn part_with(&self, transaction: &mut Transaction, id: MailboxId) -> Result<()> {
        self.check_name_writable(id)?;
        self.doom(transaction, id)
    }

    fn discover(&self) {
        self.catch_up();
        MboxAccount::discover(self);
    }

    fn look_for(&self, name: &MailboxName) -> Result<()> {
        self.catch_up();
        self.look_for_mailbox(name)
    }

    fn refresh(&self, id: MailboxId, patience: Patience) -> Result<()> {
        self.catch_up();
        match self.file_box(id) {
            Ok(file_box) => MboxAccount::refresh(self, &file_box, patience),
            // Deleted meanwhile, or not known: others say so.
            Err(_no_file) => Ok(()),
        }
    }

    fn write_back(&self, id: MailboxId, moment: Moment) -> Result<()> {
        match self.file_box(id) {
            Ok(file_box) => MboxAccount::write_back(self, &file_box, moment),
            Err(_no_file) => Ok(()),
        }
    }

    fn follow(&self, effects: &Effects) {
        MboxAccount::follow(self, effects);
    }

    fn maintain(&self) -> Result<()> {
        MboxAccount::maintain(self)
    }

    fn close(&self) {
        MboxAccount::close(self);
    }

    fn check(&self) -> Result<Vec<Finding>> {
        MboxAccount::check(self)
    }

    fn hold(&self, mailbox: MailboxId, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let file_box = self.file_box(mailbox).ok();
        let _turn = file_box.as_ref().map(|file_box| lock(&file_box.turn));
        work()
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
        let Ok(file_box) = self.file_box(mailbox) else { return Ok(false) };
        self.read_copy(&file_box, id, known, header, octets)
    }
}

impl FileBox {
    /// Where its messages were at the last look.
    pub(super) fn map(&self) -> Option<Arc<Map>> {
        self.map.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file was looked at. What a reader has kept of it may be older, even if the system says the same of it.
    pub(super) fn set_map(&self, map: Option<Arc<Map>>) {
        *lock(&self.reader) = None;
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = map;
    }
}
