//! The account log: transactions in, durable states out.
//!
//! Invariants:
//! - What [`Log::state`] gives is durable: a power cut takes nothing of it back, so no UID that anybody has seen is reused.
//! - At most one thread writes the tail, without holding the mutex; transactions that come meanwhile share the next sync.
//! - After a failed write or sync nothing is written any more until the log is opened anew.

use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use model::{Error, ErrorKind, Result};
use platform::{Env, LockGuard};

use crate::foreign::Foreign;
use crate::journal::{Journal, Wait};
use crate::layout::Layout;
use crate::message::MessageWriter;
use crate::options::Options;
use crate::reader::{Derive, Reader};
use crate::state::State;
use crate::tail::{TailWriter, WriteFailure};
use crate::transaction::{Finished, Transaction};

/// Called with the newest published state after each publication, on the thread whose commit published it. With several
/// threads the same state may come twice. Must be quick and must not commit.
pub type Listener = Box<dyn Fn(&Arc<State>) + Send + Sync>;

/// Called when a ticket that was polled may have settled.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// A batch that is to be written.
pub type Job = Box<dyn FnOnce() + Send>;

/// Takes over the writing for those who poll: returns at once and runs the job soon, on a thread that may wait for the disk.
/// `Err` gives it back: then the thread that polls writes. Called with the log's mutex held.
pub type HandOver = Arc<dyn Fn(Job) -> Result<(), Job> + Send + Sync>;

/// How often the right to write is asked for before a transaction is refused: others want it, or asking takes as long as it holds.
const TAKES_MAX: usize = 5;
/// Failed batches that are remembered for tickets not yet waited for.
const FAILURES_MAX: usize = 1024;

/// One account's log, shared by threads as `Arc<Log>`; one process at a time.
pub struct Log {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) derive: Option<Arc<dyn Derive>>,
    pub(crate) foreign: Option<Arc<dyn Foreign>>,
    pub(crate) foreign_caches: crate::cache::ForeignCaches,
    /// What stands behind the account instead of files.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Held by whoever changes what this node knows of the other nodes of a journal.
    pub(crate) taking: Mutex<()>,
    head: Mutex<Head>,
    settled: Condvar,
    writer: Mutex<TailWriter>,
    published: RwLock<Arc<State>>,
    pub(crate) layout: RwLock<Arc<Layout>>,
    /// Rises with every change of the layout: who has one sees for the price of a load that it is still the newest.
    pub(crate) layout_version: AtomicU64,
    /// Rises with every published state that has other foreign messages than the one before, but for those that were expunged.
    pub(crate) moved_version: AtomicU64,
    /// Held by whoever seals, compacts or writes a checkpoint.
    pub(crate) maintenance: Mutex<crate::maintain::Progress>,
    listener: RwLock<Option<Listener>>,
    /// See [`Log::hand_over_to`].
    other_writer: OnceLock<HandOver>,
    /// Something was wrong when the account was opened: a message that is nowhere may be lost rather than expunged.
    pub(crate) is_damaged: bool,
    spool_serial: AtomicU64,
    lock: Mutex<Option<LockGuard>>,
}

/// What transactions change.
struct Head {
    /// With everything that is queued.
    state: State,
    queue: Vec<Finished>,
    queue_bytes: u64,
    /// The serial number of the last transaction queued. Unlike frame numbers these are never used twice.
    serial: u64,
    /// Everything up to this serial number is durable or has failed.
    settled: u64,
    failures: Vec<Failure>,
    is_writing: bool,
    /// A job to write the queue is on its way.
    is_handed_over: bool,
    /// Who polled, and wants to know when that serial number is settled.
    waiting: Vec<(u64, Wake)>,
    /// Why nothing is written any more.
    closed: Option<String>,
}

struct Failure {
    first: u64,
    last: u64,
    kind: ErrorKind,
    details: String,
}

/// A promise that a transaction will be durable once [`Ticket::wait`] has returned `Ok`. Dropping it leaves the
/// transaction in the queue: it becomes durable with the next one that is waited for, or when the log is closed.
#[derive(Debug)]
#[must_use = "nothing is durable before the ticket was waited for"]
pub struct Ticket {
    log: Arc<Log>,
    serial: u64,
}

impl Ticket {
    /// Waits until the transaction is durable and published. An error means that nothing of it was done: `DiskFull` when
    /// there was no space (the log goes on), `TakenOver` when another node writes to a journal's account (the same may be done anew),
    /// anything else when writing failed (the log is closed).
    pub fn wait(self) -> Result<()> {
        self.log.settle(self.serial)
    }

    /// Like [`Ticket::wait`], but does not wait for another thread's sync: `None` while one is to come, and then `wake` is called
    /// when it is worth asking again. When nobody writes, that is handed over ([`Log::hand_over_to`]), or else this thread does.
    pub fn poll(&self, wake: &Wake) -> Option<Result<()>> {
        self.log.try_settle(self.serial, wake)
    }
}

impl Head {
    /// What became of a transaction; `None` before it is settled.
    fn outcome(&self, serial: u64) -> Option<Result<()>> {
        if serial > self.settled {
            return None;
        }
        let failure = self.failures.iter().find(|failure| (failure.first..=failure.last).contains(&serial));
        Some(failure.map_or(Ok(()), |failure| Err(Error::new(failure.kind, failure.details.clone()))))
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log({})", self.dir.display())
    }
}

/// What a log is made of when it is opened; see `recover`.
pub(crate) struct Opened {
    pub(crate) state: State,
    pub(crate) layout: Layout,
    pub(crate) progress: crate::maintain::Progress,
    pub(crate) lock: LockGuard,
}

impl Log {
    /// Opens the account in `dir`, which is created when it is missing. `foreign` gives the bytes of messages that lie elsewhere,
    /// if the account has such. `InUse` when another process has it open.
    pub fn open(
        env: &Env,
        dir: &Path,
        options: Options,
        derive: Option<Arc<dyn Derive>>,
        foreign: Option<Arc<dyn Foreign>>,
    ) -> Result<Arc<Log>> {
        let opened = crate::recover::open(env, dir, &options)?;
        Self::made(env, dir, options, derive, foreign, None, opened)
    }

    /// A log of what was found.
    pub(crate) fn made(
        env: &Env,
        dir: &Path,
        options: Options,
        derive: Option<Arc<dyn Derive>>,
        foreign: Option<Arc<dyn Foreign>>,
        journal: Option<Arc<dyn Journal>>,
        opened: Opened,
    ) -> Result<Arc<Log>> {
        // A tail that ends in damage stays as it is; the next frame begins another one.
        let is_whole = |tail: &Arc<crate::tail::Tail>| tail.last_frame() == opened.state.frame;
        let tail = opened.layout.tails.last().filter(|tail| is_whole(tail)).cloned();
        let is_damaged = !opened.progress.findings.is_empty();
        let writer = TailWriter::new(env.clone(), dir.join(crate::layout::LOG_DIR), tail)?;
        let state = opened.state;
        Ok(Arc::new(Log {
            env: env.clone(),
            dir: dir.to_owned(),
            options,
            derive,
            foreign,
            foreign_caches: Default::default(),
            journal,
            taking: Mutex::new(()),
            published: RwLock::new(Arc::new(state.clone())),
            head: Mutex::new(Head {
                state,
                queue: Vec::new(),
                queue_bytes: 0,
                serial: 0,
                settled: 0,
                failures: Vec::new(),
                is_writing: false,
                is_handed_over: false,
                waiting: Vec::new(),
                closed: None,
            }),
            settled: Condvar::new(),
            writer: Mutex::new(writer),
            layout: RwLock::new(Arc::new(opened.layout)),
            layout_version: AtomicU64::new(0),
            moved_version: AtomicU64::new(0),
            maintenance: Mutex::new(opened.progress),
            listener: RwLock::new(None),
            other_writer: OnceLock::new(),
            is_damaged,
            spool_serial: AtomicU64::new(0),
            lock: Mutex::new(Some(opened.lock)),
        }))
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The account as it is durably. Keep it as long as you like: it does not change.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it takes no more transactions: it was closed, or a write failed.
    pub fn is_closed(&self) -> bool {
        self.head().closed.is_some()
    }

    /// The account's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.layout.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whoever is told of every newly published state; replaces the one before.
    pub fn set_listener(&self, listener: Option<Listener>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    /// Who writes for those who poll. Only the first call counts; without one, whoever polls first writes.
    pub fn hand_over_to(&self, hand_over: HandOver) {
        let _ = self.other_writer.set(hand_over);
    }

    /// Starts taking a message.
    pub fn message_writer(&self) -> MessageWriter {
        let serial = self.spool_serial.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(crate::layout::SPOOL_DIR).join(format!("message-{serial}"));
        MessageWriter::new(Arc::clone(&self.env.disk), path, self.options.spool_above_bytes)
    }

    /// A reader of messages.
    pub fn reader(self: &Arc<Self>) -> Reader {
        Reader::new(Arc::clone(self))
    }

    /// Runs `change` on the newest state, durable or not, and queues what it did as one frame. When `change` fails, nothing
    /// was done. The ticket waits for the sync; a transaction that changed nothing needs none.
    ///
    /// `ReadOnlyAfterFailure` after a failed write or sync. With a journal this waits until this node is the writer; `TakenOver` when it
    /// never stays so long enough.
    pub fn transact<T>(self: &Arc<Self>, change: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<(T, Ticket)> {
        let now = self.env.clock.now().seconds;
        let mut head = self.head();
        for _ in 0..TAKES_MAX {
            if self.may_write() {
                break;
            }
            drop(head);
            self.become_writer(Wait::Long)?;
            head = self.head();
        }
        if !self.may_write() {
            return Err(Error::new(ErrorKind::TakenOver, "the right to write is lost as soon as it is won"));
        }
        if let Some(why) = &head.closed {
            return Err(Error::new(ErrorKind::ReadOnlyAfterFailure, why.clone()));
        }
        let mut transaction = Transaction::new(head.state.clone(), now, self.options.tombstone_ranges_max);
        let value = change(&mut transaction)?;
        let Some((state, finished)) = transaction.finish()? else {
            // What the caller saw may not be durable yet: then the ticket is that of the last change before it. That change may also have
            // failed, which is nothing to who came later.
            let serial = if head.is_writing || !head.queue.is_empty() { head.serial } else { 0 };
            return Ok((value, Ticket { log: Arc::clone(self), serial }));
        };
        // A journal's history is told by its incarnation alone.
        let chain = if self.is_shared() { head.state.chain } else { state.chain };
        head.state = State { chain, ..state };
        head.serial += 1;
        head.queue_bytes += crate::tail::frame_len(&finished);
        head.queue.push(finished);
        let serial = head.serial;
        let is_too_much = head.queue_bytes > self.options.pending_bytes_max;
        drop(head);
        if is_too_much {
            self.settle(serial)?;
        }
        Ok((value, Ticket { log: Arc::clone(self), serial }))
    }

    /// [`Log::transact`] for a change that is worth waiting for to nobody: not done while another node writes.
    pub fn transact_if_free<T>(self: &Arc<Self>, change: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        if !self.may_write() {
            self.become_writer(Wait::Never)?;
        }
        let (value, _unwaited) = self.transact(change)?;
        Ok(value)
    }

    /// [`Log::transact`] and [`Ticket::wait`].
    pub fn commit<T>(self: &Arc<Self>, change: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        let (value, ticket) = self.transact(change)?;
        ticket.wait()?;
        Ok(value)
    }

    /// Makes everything durable that is queued.
    pub fn flush(self: &Arc<Self>) -> Result<()> {
        let serial = self.head().serial;
        self.settle(serial)
    }

    /// Waits until `serial` is durable; writes the queue itself when nobody else does.
    fn settle(self: &Arc<Self>, serial: u64) -> Result<()> {
        let mut head = self.head();
        loop {
            if let Some(outcome) = head.outcome(serial) {
                return outcome;
            }
            head = if head.is_writing {
                self.settled.wait(head).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.write_queue(head)
            };
        }
    }

    /// [`Log::settle`] that never waits for another thread; see [`Ticket::poll`].
    fn try_settle(self: &Arc<Self>, serial: u64, wake: &Wake) -> Option<Result<()>> {
        let mut head = self.head();
        loop {
            if let Some(outcome) = head.outcome(serial) {
                return Some(outcome);
            }
            if head.is_writing || self.hand_over(&mut head) {
                head.waiting.push((serial, Arc::clone(wake)));
                return None;
            }
            head = self.write_queue(head);
        }
    }

    /// Lets another thread write the queue; false when there is none for it.
    fn hand_over(self: &Arc<Self>, head: &mut Head) -> bool {
        if !head.is_handed_over
            && let Some(hand_over) = self.other_writer.get()
        {
            let log = Arc::clone(self);
            head.is_handed_over = hand_over(Box::new(move || log.write_for_others())).is_ok();
        }
        head.is_handed_over
    }

    /// The job that was handed over.
    fn write_for_others(self: &Arc<Self>) {
        let mut head = self.head();
        head.is_handed_over = false;
        // Otherwise somebody came first; who writes sees to those who came meanwhile.
        if !head.is_writing && !head.waiting.is_empty() {
            drop(self.write_queue(head));
        }
    }

    /// Writes all that is queued as one batch, with the mutex free meanwhile, and publishes it.
    fn write_queue<'a>(self: &'a Arc<Self>, mut head: MutexGuard<'a, Head>) -> MutexGuard<'a, Head> {
        let batch = mem::take(&mut head.queue);
        head.queue_bytes = 0;
        let serial = head.serial;
        let state = head.state.clone();
        head.is_writing = true;
        drop(head);

        let result = match &self.journal {
            Some(journal) => self.commit_to(&**journal, &state, &batch),
            None => self.write_batch(&batch),
        };
        if result.is_ok() {
            *self.published.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
            // After it: who sees the new number sees the state as well.
            if batch.iter().any(|transaction| transaction.has_moved_bytes) {
                self.moved_version.fetch_add(1, Ordering::Release);
            }
        }

        let mut head = self.head();
        head.is_writing = false;
        let is_written = result.is_ok();
        match result {
            Ok(()) => head.settled = serial,
            Err(failure) => self.give_up(&mut head, failure),
        }
        self.settled.notify_all();
        // Those who are in the next batch sleep on when somebody writes it; else one of them has to.
        let mut woken = mem::take(&mut head.waiting);
        if woken.iter().any(|(serial, _)| *serial > head.settled) && self.hand_over(&mut head) {
            let settled = head.settled;
            head.waiting = woken.extract_if(.., |(serial, _)| *serial > settled).collect();
        }
        // Not under the mutex: whoever is called may look at the log.
        drop(head);
        woken.iter().for_each(|(_, wake)| wake());
        if !is_written {
            return self.head();
        }
        self.tell_listener();
        self.head()
    }

    /// Calls whoever wants to know of a newly published state.
    pub(crate) fn tell_listener(&self) {
        if let Some(listener) = &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            listener(&self.state());
        }
    }

    /// Whether nothing is queued or being written.
    pub(crate) fn is_quiet(&self) -> bool {
        let head = self.head();
        head.queue.is_empty() && !head.is_writing
    }

    /// Publishes a state that has more than was known up to `since`. False, and nothing done, when something was changed meanwhile.
    pub(crate) fn replace_state(&self, since: model::ModSeq, state: State) -> bool {
        let mut head = self.head();
        if head.is_writing || !head.queue.is_empty() || head.state.modseq() != since {
            return false;
        }
        head.state = state.clone();
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
        true
    }

    /// Goes on with a state that was loaded from its own checkpoint, whose columns are mapped and take no memory. Nothing is done when something
    /// was changed meanwhile: another checkpoint comes.
    pub(crate) fn rest_on(&self, checkpoint: State) {
        let mut head = self.head();
        let is_the_same = (head.state.frame, head.state.chain) == (checkpoint.frame, checkpoint.chain);
        if is_the_same && !head.is_writing && head.queue.is_empty() && head.closed.is_none() {
            head.state = checkpoint.clone();
            *self.published.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(checkpoint);
        }
    }

    /// Takes back everything that is not durable: the failed batch, and what was built on it meanwhile.
    fn give_up(&self, head: &mut Head, failure: WriteFailure) {
        if !failure.is_clean {
            head.closed = Some(format!("a write failed earlier, the log must be opened anew: {}", failure.error));
        }
        let (first, last) = (head.settled + 1, head.serial);
        // `DiskFull` promises that nothing was changed; after a part was written nobody can.
        let kind = if failure.is_clean { failure.error.kind() } else { ErrorKind::Io };
        head.failures.push(Failure { first, last, kind, details: failure.error.details().to_owned() });
        if head.failures.len() > FAILURES_MAX {
            head.failures.remove(0);
        }
        head.queue.clear();
        head.queue_bytes = 0;
        head.settled = last;
        head.state = State::clone(&self.state());
    }

    /// Writes and syncs a batch; begins a new tail when the old one is full.
    fn write_batch(&self, batch: &[Finished]) -> Result<(), WriteFailure> {
        let Some(first) = batch.first() else { return Ok(()) };
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = writer.tail.as_ref().is_none_or(|tail| tail.end() >= self.options.tail_bytes_max);
        if is_full {
            let tail = writer.begin_tail(first.frame.number)?;
            self.change_layout(|layout| layout.tails.push(tail));
        }
        writer.write(batch, first.frame.number - 1, &self.options)?;
        drop(writer);
        if is_full {
            self.hold_back();
        }
        Ok(())
    }

    /// Freezes the active tail when it is worth a segment. The caller saw that nothing is being written.
    pub(crate) fn freeze_idle_tail(&self) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let is_worth_it = |tail: &Arc<crate::tail::Tail>| {
            tail.last_frame() >= tail.first_frame && tail.end() >= self.options.idle_tail_bytes_max
        };
        let Some(tail) = writer.tail.clone().filter(is_worth_it) else { return Ok(()) };
        let next = writer.begin_tail(tail.last_frame() + 1).map_err(|failure| failure.error)?;
        self.change_layout(|layout| layout.tails.push(next));
        Ok(())
    }

    /// Gives back the prefilled space of the active tail.
    pub(crate) fn trim_tail(&self) -> Result<()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).trim()
    }

    /// The newest state, durable or not, and the durable one: what either refers to must stay.
    pub(crate) fn live_states(&self) -> [State; 2] {
        let head = self.head();
        [head.state.clone(), State::clone(&self.state())]
    }

    /// Lets go of what can no longer be brought back, in the newest state.
    pub(crate) fn prune(&self, time: i64) {
        let mut head = self.head();
        if head.is_writing || !head.queue.is_empty() || head.closed.is_some() {
            return;
        }
        head.state.prune(time);
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(head.state.clone());
    }

    /// Makes everything durable, writes a checkpoint, gives the file lock back. Further transactions fail. Dropping a log
    /// without this is safe; it only makes the next opening slower.
    pub fn close(self: &Arc<Self>) -> Result<()> {
        let flushed = self.flush();
        let mut head = self.head();
        let was_closed = head.closed.replace("the log was closed".to_owned()).is_some();
        drop(head);
        let result = flushed.and_then(|()| if was_closed { Ok(()) } else { self.finish() });
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        result
    }

    fn finish(self: &Arc<Self>) -> Result<()> {
        if self.is_shared() {
            // One that cannot be told lets go by itself, after a while.
            let _ = self.give_way();
        }
        self.trim_tail()?;
        self.checkpoint()
    }
}
