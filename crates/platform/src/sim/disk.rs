//! The simulated disk itself: one lock around names, faults and chance; see the module header of `sim` for the model.

use std::fmt;
use std::io::{self, IoSlice};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;

use super::batch::SimBatch;
use super::clock::SimClock;
use super::faults::{Denial, Effect, Faults, Operation, RandomFaults, Stats};
use super::file::SimFile;
use super::hold;
use super::image::Image;
use super::lock::SimLock;
use super::space::{BLOCK_BYTES, Space};
use super::tree::{DirNode, Edit, FileNode, Node, SIM_DEVICE, Tree, names};
use super::watch::{Listener, Listeners, SimWatch};
use crate::clock::{Clock, Timestamp};
use crate::disk::{Batch, DirEntry, Disk, File, LockGuard, LockMode, LockTable, Metadata, OpenMode};
use crate::mapped::Mapped;
use crate::random::Prng;
use crate::watch::{OnChange, OnNames, Watch, WatchGuard};

/// A simulated disk; see [`crate::sim`]. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    machine: Arc<Mutex<Machine>>,
    clock: SimClock,
}

/// Called at the start of every file sync, see [`SimDisk::on_sync`].
pub(super) type SyncHook = Arc<dyn Fn(&Path) + Send + Sync>;

/// Everything that the operations share.
pub(super) struct Machine {
    pub(super) tree: Tree,
    pub(super) space: Arc<Space>,
    pub(super) prng: Prng,
    pub(super) faults: Faults,
    pub(super) stats: Stats,
    pub(super) sync_hook: Option<SyncHook>,
    /// Counts power cuts; handles and locks of an earlier boot are stale.
    pub(super) boot: u64,
    off: bool,
    next_inode: u64,
    trace: Option<Vec<String>>,
    pub(super) listeners: Listeners,
    denied: Vec<(PathBuf, Denial)>,
    is_without_batches: bool,
}

/// How an operation goes on after [`Machine::begin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Nothing is wrong.
    Done,
    /// It fails with EIO.
    Fails,
    /// It is carried out in memory, and the machine is off.
    Dies,
}

impl Course {
    /// What the caller is told once the effect has been applied.
    pub(super) fn result(self) -> io::Result<()> {
        match self {
            Course::Done => Ok(()),
            Course::Fails => Err(Errno::IO.into()),
            Course::Dies => Err(power_is_off()),
        }
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the simulated machine is off")
}

impl Machine {
    fn boot(tree: Tree, space: Arc<Space>, prng: Prng, next_inode: u64) -> Self {
        Self {
            tree,
            space,
            prng,
            faults: Faults::default(),
            stats: Stats::default(),
            sync_hook: None,
            boot: 0,
            off: false,
            next_inode,
            trace: None,
            listeners: Listeners::default(),
            denied: Vec::new(),
            is_without_batches: false,
        }
    }

    /// Whether a file can be opened, to be written if that is so.
    fn may_open(&self, path: &Path, is_to_write: bool) -> io::Result<()> {
        for (denied, denial) in &self.denied {
            match denial {
                Denial::Opening if path == denied => return Err(Errno::ACCESS.into()),
                Denial::Writing if is_to_write && path.starts_with(denied) => return Err(Errno::ROFS.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the name at this path can be made, changed or removed.
    fn may_change_name(&self, path: &Path) -> io::Result<()> {
        let is_refused =
            |(denied, denial): &&(PathBuf, Denial)| *denial == Denial::Names && path.parent() == Some(denied.as_path());
        match self.denied.iter().find(is_refused) {
            Some(_) => Err(Errno::ACCESS.into()),
            None => self.may_open(path, true),
        }
    }

    pub(super) fn check_power(&self) -> io::Result<()> {
        if self.off { Err(power_is_off()) } else { Ok(()) }
    }

    /// Counts an operation and decides how it goes on.
    pub(super) fn begin(&mut self, operation: Operation, path: &Path) -> io::Result<Course> {
        self.check_power()?;
        self.stats.operations += 1;
        let course = match self.faults.next(operation, &mut self.prng) {
            None => Course::Done,
            Some(Effect::Fail) => Course::Fails,
            Some(Effect::Crash) => {
                self.off = true;
                Course::Dies
            }
        };
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {operation:?} {} {course:?}", self.stats.operations, path.display()));
        }
        Ok(course)
    }

    fn inode(&mut self) -> u64 {
        self.next_inode += 1;
        self.next_inode
    }

    /// Carries out one change of names, unless it fails.
    fn change(&mut self, operation: Operation, path: &Path, edits: Vec<Edit>, now: Timestamp) -> io::Result<()> {
        let course = self.begin(operation, path)?;
        if course != Course::Fails {
            for edit in &edits {
                self.listeners.entry_changed(&self.tree, edit, operation == Operation::Rename);
            }
            self.tree.change(edits, now);
        }
        course.result()
    }

    fn crash(&mut self, prng: &mut Prng) -> (Tree, Arc<Space>) {
        let space = Arc::new(Space::new(self.space.capacity()));
        (self.tree.after_crash(prng, &space), space)
    }
}

/// The control side: what a test does to the disk. The store sees only [`Disk`].
impl SimDisk {
    /// An empty disk without a size limit, with a clock of its own that stands still.
    pub fn new(seed: u64) -> Self {
        Self::with_clock(seed, SimClock::default())
    }

    /// An empty disk that takes its modification times from the clock.
    pub fn with_clock(seed: u64, clock: SimClock) -> Self {
        let machine = Machine::boot(Tree::new(1, clock.now()), Arc::new(Space::new(u64::MAX)), Prng::new(seed), 1);
        Self { machine: Arc::new(Mutex::new(machine)), clock }
    }

    /// Cuts the power and turns the machine on again: what was pending survives, is lost or is torn by chance, all
    /// handles are stale, all locks are free, scheduled faults are forgotten (random ones and the size stay).
    pub fn crash(&self) {
        let mut machine = self.machine();
        let mut prng = machine.prng.fork();
        let (tree, space) = machine.crash(&mut prng);
        machine.tree = tree;
        machine.space = space;
        machine.boot += 1;
        machine.off = false;
        machine.faults.clear_scheduled();
        if let Some(trace) = &mut machine.trace {
            trace.push("power cut".to_owned());
        }
    }

    /// Turns the machine on again after a scheduled crash; the same as [`SimDisk::crash`], which is what happened.
    pub fn restart(&self) {
        self.crash();
    }

    /// Another disk, in the state in which this one could be found if the power went now; this one goes on
    /// undisturbed. Different seeds give different survivors.
    pub fn crash_image(&self, seed: u64) -> SimDisk {
        let mut machine = self.machine();
        let mut prng = Prng::new(seed);
        let (tree, space) = machine.crash(&mut prng);
        let mut image = Machine::boot(tree, space, prng, machine.next_inode);
        image.boot = machine.boot + 1;
        Self { machine: Arc::new(Mutex::new(image)), clock: self.clock.clone() }
    }

    /// Whether a scheduled crash has happened and [`SimDisk::restart`] has not been called since.
    pub fn is_off(&self) -> bool {
        self.machine().off
    }

    /// Schedules the end: at the `n`-th changing or syncing operation from now (1 is the next) the power goes. That
    /// operation and all later ones, reads included, fail until [`SimDisk::restart`].
    pub fn crash_at(&self, n: u64) {
        self.schedule(None, n, Effect::Crash);
    }

    /// Lets the `n`-th changing or syncing operation from now (1 is the next) fail with EIO.
    pub fn fail_at(&self, n: u64) {
        self.schedule(None, n, Effect::Fail);
    }

    /// Schedules an effect for the `nth` operation from now (1 is the next) of this kind, or of any with `None`.
    pub fn schedule(&self, only: Option<Operation>, nth: u64, effect: Effect) {
        self.machine().faults.schedule(only, nth, effect);
    }

    /// Lets operations fail by chance from now on.
    pub fn set_random_faults(&self, faults: RandomFaults) {
        self.machine().faults.random = faults;
    }

    /// Forgets all scheduled and random faults.
    pub fn clear_faults(&self) {
        self.machine().faults.clear();
    }

    /// Lets the file system refuse something at a path from now on, until [`SimDisk::allow_all`].
    pub fn deny(&self, path: &Path, denial: Denial) {
        self.machine().denied.push((path.to_owned(), denial));
    }

    /// Nothing is refused any more.
    pub fn allow_all(&self) {
        self.machine().denied.clear();
    }

    /// From now on the disk is one that knows no batches ([`Disk::batch`]).
    pub fn refuse_batches(&self) {
        self.machine().is_without_batches = true;
    }

    /// Sets the size of the disk, in bytes, rounded down to blocks of 4096; less than is in use makes it full.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.machine().space.set_capacity(bytes.map_or(u64::MAX, |bytes| bytes / BLOCK_BYTES as u64));
    }

    /// Bytes of blocks in use. Those of a removed file count until nothing can bring it back: its removal is durable
    /// and its last handle is closed.
    pub fn used_bytes(&self) -> u64 {
        self.machine().space.used() * BLOCK_BYTES as u64
    }

    /// Flips the bits of the mask in the byte at an offset, on the disk and in the cache, as a decaying disk would.
    pub fn corrupt(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let machine = self.machine();
        let Node::File(file) = machine.tree.find(path)? else { return Err(Errno::ISDIR.into()) };
        if hold(&file.state).image.corrupt(offset, mask) { Ok(()) } else { Err(Errno::INVAL.into()) }
    }

    /// What was done on this disk since it was made.
    pub fn stats(&self) -> Stats {
        self.machine().stats
    }

    /// What was done to the file that now has this name, since it was created or the power last went.
    pub fn file_stats(&self, path: &Path) -> io::Result<Stats> {
        match self.machine().tree.find(path)? {
            Node::File(file) => Ok(hold(&file.state).stats),
            Node::Dir(_) => Err(Errno::ISDIR.into()),
        }
    }

    /// Calls the hook with the file's path when a sync of a file begins, with no lock held: a sync takes time, and a
    /// test can let other things happen meanwhile. What is written during the hook is not covered by that sync.
    pub fn on_sync(&self, hook: impl Fn(&Path) + Send + Sync + 'static) {
        self.machine().sync_hook = Some(Arc::new(hook));
    }

    /// Starts writing down every changing or syncing operation, one line each.
    pub fn start_trace(&self) {
        self.machine().trace = Some(Vec::new());
    }

    /// What was written down since [`SimDisk::start_trace`] or the last call.
    pub fn take_trace(&self) -> Vec<String> {
        self.machine().trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn machine(&self) -> Held<'_> {
        Held { guard: Some(hold(&self.machine)) }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Finds a file, or creates it where the mode says so.
    fn find_or_create(&self, machine: &mut Machine, path: &Path, mode: OpenMode) -> io::Result<Arc<FileNode>> {
        machine.check_power()?;
        match (machine.tree.find(path), mode) {
            (Ok(_), OpenMode::CreateNew) => Err(Errno::EXIST.into()),
            (Ok(Node::Dir(_)), _) => Err(Errno::ISDIR.into()),
            (Ok(Node::File(file)), _) => {
                machine.may_open(path, mode != OpenMode::Read)?;
                Ok(file)
            }
            (Err(Errno::NOENT), OpenMode::Create | OpenMode::CreateNew) => {
                machine.may_change_name(path)?;
                let (dir, name) = machine.tree.find_parent(path)?;
                let file = FileNode::new(machine.inode(), Image::empty(Arc::clone(&machine.space)), self.now());
                let edit = Edit { dir, name: name.to_owned(), node: Some(Node::File(Arc::clone(&file))) };
                machine.change(Operation::Create, path, vec![edit], self.now())?;
                Ok(file)
            }
            (Err(e), _) => Err(e.into()),
        }
    }
}

/// The machine, locked. Listeners are called when it is unlocked again, so that they may use the disk.
pub(super) struct Held<'a> {
    guard: Option<MutexGuard<'a, Machine>>,
}

impl Deref for Held<'_> {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        self.guard.as_ref().expect("taken only by drop")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Machine {
        self.guard.as_mut().expect("taken only by drop")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let called = self.guard.take().map(|mut machine| machine.listeners.take_called());
        called.into_iter().flatten().for_each(|on_change| on_change());
    }
}

impl Watch for SimDisk {
    fn watch(&self, path: &Path, on_change: OnChange) -> io::Result<WatchGuard> {
        let number = self.machine().listeners.add(path, Listener::Path(on_change));
        Ok(WatchGuard::new(SimWatch { disk: self.clone(), number }))
    }

    fn watch_names(&self, dir: &Path, on_names: OnNames) -> io::Result<WatchGuard> {
        let number = self.machine().listeners.add(dir, Listener::Names(on_names));
        Ok(WatchGuard::new(SimWatch { disk: self.clone(), number }))
    }

    /// Nothing is ever left to be told.
    fn settle(&self) {}
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimDisk")
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut machine = self.machine();
        let node = self.find_or_create(&mut machine, path, mode)?;
        machine.stats.opens += 1;
        let boot = machine.boot;
        Ok(Arc::new(SimFile::new(self.clone(), node, path.to_owned(), boot, mode != OpenMode::Read)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.check_power()?;
        let mut dir = Arc::clone(&machine.tree.root);
        let mut so_far = PathBuf::from("/");
        let names = names(path)?;
        for (depth, name) in names.iter().enumerate() {
            so_far.push(name);
            dir = match dir.entry(name) {
                Some(Node::Dir(next)) => next,
                Some(Node::File(_)) if depth + 1 == names.len() => return Err(Errno::EXIST.into()),
                Some(Node::File(_)) => return Err(Errno::NOTDIR.into()),
                None => {
                    machine.may_change_name(&so_far)?;
                    let next = DirNode::new(machine.inode(), self.now());
                    let edit = Edit { dir, name: (*name).to_owned(), node: Some(Node::Dir(Arc::clone(&next))) };
                    machine.change(Operation::Create, &so_far, vec![edit], self.now())?;
                    next
                }
            };
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.check_power()?;
        let (dir, name) = machine.tree.find_parent(path)?;
        machine.may_change_name(path)?;
        match dir.entry(name).ok_or(Errno::NOENT)? {
            Node::Dir(_) => Err(Errno::ISDIR.into()),
            Node::File(_) => {
                let edit = Edit { dir, name: name.to_owned(), node: None };
                machine.change(Operation::Remove, path, vec![edit], self.now())
            }
        }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.check_power()?;
        let (dir, name) = machine.tree.find_parent(path)?;
        machine.may_change_name(path)?;
        match dir.entry(name).ok_or(Errno::NOENT)? {
            Node::File(_) => Err(Errno::NOTDIR.into()),
            Node::Dir(gone) if !hold(&gone.state).visible.is_empty() => Err(Errno::NOTEMPTY.into()),
            Node::Dir(_) => {
                let edit = Edit { dir, name: name.to_owned(), node: None };
                machine.change(Operation::Remove, path, vec![edit], self.now())
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.check_power()?;
        // The checks stand in the order of Linux, so that the same call gives the same error.
        let (from_dir, from_name) = machine.tree.find_parent(from)?;
        let (to_dir, to_name) = machine.tree.find_parent(to)?;
        let moved = from_dir.entry(from_name).ok_or(Errno::NOENT)?;
        let replaced = to_dir.entry(to_name);
        let (from_names, to_names) = (names(from)?, names(to)?);
        if to_names.len() > from_names.len() && to_names.starts_with(&from_names) {
            return Err(Errno::INVAL.into()); // into itself
        }
        if from_names.len() > to_names.len() && from_names.starts_with(&to_names) {
            return Err(Errno::NOTEMPTY.into()); // over a directory that it is in
        }
        if replaced.as_ref().is_some_and(|replaced| replaced.inode() == moved.inode()) {
            return Ok(()); // rename(2): two names of one file stay as they are
        }
        match (&moved, &replaced) {
            (Node::File(_), Some(Node::Dir(_))) => return Err(Errno::ISDIR.into()),
            (Node::Dir(_), Some(Node::File(_))) => return Err(Errno::NOTDIR.into()),
            (Node::Dir(_), Some(Node::Dir(gone))) if !hold(&gone.state).visible.is_empty() => {
                return Err(Errno::NOTEMPTY.into());
            }
            _ => {}
        }
        machine.may_change_name(from)?;
        machine.may_change_name(to)?;
        let edits = vec![
            Edit { dir: from_dir, name: from_name.to_owned(), node: None },
            Edit { dir: to_dir, name: to_name.to_owned(), node: Some(moved) },
        ];
        machine.change(Operation::Rename, to, edits, self.now())
    }

    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.check_power()?;
        let node = machine.tree.find(existing)?;
        let (dir, name) = machine.tree.find_parent(new)?;
        if dir.entry(name).is_some() {
            return Err(Errno::EXIST.into());
        }
        if let Node::Dir(_) = node {
            return Err(Errno::PERM.into());
        }
        machine.may_change_name(new)?;
        let edit = Edit { dir, name: name.to_owned(), node: Some(node) };
        machine.change(Operation::Link, new, vec![edit], self.now())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut machine = self.machine();
        machine.check_power()?;
        let dir = machine.tree.find_dir(path)?;
        let course = machine.begin(Operation::SyncDir, path)?;
        machine.stats.dir_syncs += 1;
        // A failed one may have got there or not; names are in the journal, so nothing is forgotten.
        if course == Course::Done || (course == Course::Fails && machine.prng.one_in(2)) {
            machine.tree.sync_dir(dir.inode);
        }
        course.result()
    }

    fn batch(&self, path: &Path) -> io::Result<Box<dyn Batch>> {
        let machine = self.machine();
        machine.check_power()?;
        machine.tree.find_dir(path)?;
        if machine.is_without_batches {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Box::new(SimBatch { disk: self.clone(), path: path.to_owned(), boot: machine.boot }))
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(path, OpenMode::ReadWrite)?;
        file.write_at(bytes, file.len()?)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut machine = self.machine();
        machine.check_power()?;
        machine.stats.lists += 1;
        let dir = machine.tree.find_dir(path)?;
        let state = hold(&dir.state);
        let entry = |(name, node): (&std::ffi::OsString, &Node)| DirEntry {
            name: name.clone(),
            is_dir: matches!(node, Node::Dir(_)),
        };
        Ok(state.visible.iter().map(entry).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let mut machine = self.machine();
        machine.check_power()?;
        machine.stats.looks += 1;
        Ok(match machine.tree.find(path)? {
            Node::File(file) => file.metadata(),
            Node::Dir(dir) => {
                let modified = hold(&dir.state).modified;
                Metadata {
                    len: 0,
                    allocated_bytes: 0,
                    is_dir: true,
                    is_file: false,
                    modified,
                    inode: dir.inode,
                    device: SIM_DEVICE,
                    links: 1,
                    changed: modified,
                }
            }
        })
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        let machine = self.machine();
        machine.check_power()?;
        match machine.tree.find(path)? {
            Node::File(_) => machine.may_open(path, true),
            Node::Dir(_) => machine.may_change_name(&path.join("any")),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<LockGuard> {
        let mut machine = self.machine();
        let node = self.find_or_create(&mut machine, path, OpenMode::Create)?;
        let guard = SimLock::take(&node, &Arc::default(), LockTable::Flock, LockMode::Exclusive);
        guard.map(LockGuard::new).ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn map(&self, path: &Path) -> io::Result<Mapped> {
        let mut machine = self.machine();
        let node = self.find_or_create(&mut machine, path, OpenMode::Read)?;
        machine.stats.reads += 1;
        let mut state = hold(&node.state);
        state.stats.reads += 1;
        Ok(Mapped::from_shared(Arc::clone(state.image.visible()), Arc::clone(&state.maps) as _))
    }
}

/// The buffers of a vectored write in one piece.
pub(super) fn concat(bufs: &[IoSlice<'_>]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(bufs.iter().map(|buf| buf.len()).sum());
    for buf in bufs {
        bytes.extend_from_slice(buf);
    }
    bytes.into_boxed_slice()
}
