//! Where work runs that takes long, and until when.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use platform::Clock;

/// Runs work that takes long where it is in nobody's way: reading or moving a large file, waiting for a lock of another program or for somebody
/// who does one of these. Who drives many sessions with few threads knows how. The default runs it where it is, as everything else.
///
/// When the process is about to end, such work ends as well: what only reads is given up, what changes a file is not begun any more, and
/// what has begun to change one is brought to its end.
#[derive(Clone, Default)]
pub struct Aside {
    run: Option<Arc<Run>>,
    end: Arc<End>,
}

type Run = dyn Fn(&mut dyn FnMut()) + Send + Sync;

/// When long work ends. All clones of an [`Aside`] have the same.
struct End {
    /// Milliseconds of the monotonic clock.
    at_ms: AtomicU64,
    /// Changes of files that are under way.
    changes: Mutex<usize>,
    /// There are none any more.
    none_left: Condvar,
}

impl End {
    fn changes(&self) -> MutexGuard<'_, usize> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for End {
    fn default() -> Self {
        End { at_ms: AtomicU64::new(u64::MAX), changes: Mutex::default(), none_left: Condvar::default() }
    }
}

impl Aside {
    /// `run` is given the work and returns when it is done; it must call it exactly once, on the same thread.
    pub fn new(run: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static) -> Self {
        Aside { run: Some(Arc::new(run)), end: Arc::default() }
    }

    /// Runs it there, and gives what it gave.
    pub(crate) fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(run) = &self.run else { return work() };
        let (mut work, mut result) = (Some(work), None);
        run(&mut || result = work.take().map(|work| work()));
        result.expect("whoever runs work aside calls it")
    }

    /// The same if it takes long; otherwise at once.
    pub(crate) fn run_if<T>(&self, is_long: bool, work: impl FnOnce() -> T) -> T {
        if is_long { self.run(work) } else { work() }
    }

    /// Work that takes long ends at that time of the monotonic clock.
    pub(crate) fn end_at(&self, at: Duration) {
        self.end.at_ms.store(u64::try_from(at.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether work that takes long may go on. [`ErrorKind::InUse`]: not any more. Costs next to nothing before somebody has named an end.
    pub(crate) fn check(&self, clock: &dyn Clock) -> Result<()> {
        match self.end.at_ms.load(Ordering::Relaxed) {
            u64::MAX => Ok(()),
            at_ms if clock.monotonic() < Duration::from_millis(at_ms) => Ok(()),
            _ => Err(Error::new(ErrorKind::InUse, "the process is about to end: this is left for the next one")),
        }
    }

    /// A change of a file begins, perhaps as a part of another one.
    pub(crate) fn begin_change(&self) -> Change<'_> {
        *self.end.changes() += 1;
        Change(&self.end)
    }

    /// Waits for the end of every change that has begun.
    pub(crate) fn wait(&self) {
        let changes = self.end.none_left.wait_while(self.end.changes(), |changes| *changes > 0);
        drop(changes.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A change of a file that is under way, until this is dropped.
pub(crate) struct Change<'e>(&'e End);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let mut changes = self.0.changes();
        *changes -= 1;
        if *changes == 0 {
            self.0.none_left.notify_all();
        }
    }
}

impl fmt::Debug for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.run.is_some() { "Aside" } else { "Here" })
    }
}
