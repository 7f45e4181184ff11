//! Locking mbox files against the other programs that use them, in the ways that these know.
//!
//! Invariants:
//! - Nothing waits but [`Locker::lock`], and that until its deadline: what others hold is [`ErrorKind::InUse`].
//! - Locks are taken in the configured order and given back in the reverse one. Whoever does not get all of them gives back those that it
//!   got before it waits, so that programs of another order do not wait for each other for ever.
//! - The file that is locked is the one that its path leads to: some programs replace the file instead of changing it.
//! - While a dotlock is held, every operation on [`MailboxLock::file`] keeps it fresh, and fails once somebody took it away.

mod dotlock;
mod kept;
#[cfg(test)]
mod program_tests;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use platform::{Env, File, LockGuard, LockMode, LockTable, OpenMode};

use dotlock::Dotlock;
use kept::KeptFile;

/// The first pause of [`Locker::lock`]; the next are each twice as long, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// How often a file is opened anew that is replaced while it is being locked.
const REPLACED_MAX: usize = 8;

/// A way of locking that mail programs agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Record locks of `fcntl(2)`, as `lockf(3)` takes them.
    Fcntl,
    /// A file `NAME.lock` beside the mailbox file `NAME`; there is only one kind, for reading as for writing.
    Dotlock,
    /// `flock(2)`.
    Flock,
}

impl Method {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Method::Fcntl => "fcntl",
            Method::Dotlock => "dotlock",
            Method::Flock => "flock",
        }
    }

    /// The method of a name.
    pub fn parse(name: &str) -> Option<Method> {
        [Method::Fcntl, Method::Dotlock, Method::Flock].into_iter().find(|method| method.name() == name)
    }
}

/// What is going to be done to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Others may read at the same time (but see [`Method::Dotlock`]).
    Read,
    /// Nobody else may do anything.
    Write,
    /// As for writing; an empty file is made when there is none.
    Create,
}

/// How to lock. It must be what the local delivery agent does: programs that lock in different ways do not see each other.
#[derive(Clone, Debug)]
pub struct LockPolicy {
    /// For reading, in this order.
    pub read: Vec<Method>,
    /// For writing, in this order.
    pub write: Vec<Method>,
    /// How long [`Locker::lock`] waits.
    pub wait_max: Duration,
    /// A dotlock of a holder that nothing is known of counts as left behind when neither it nor the mailbox file changed for so long.
    pub dotlock_stale_after: Duration,
}

impl Default for LockPolicy {
    /// Debian policy §11.6 for writing: fcntl, then dotlock.
    fn default() -> Self {
        LockPolicy {
            read: vec![Method::Fcntl],
            write: vec![Method::Fcntl, Method::Dotlock],
            wait_max: Duration::from_secs(2),
            dotlock_stale_after: Duration::from_secs(120),
        }
    }
}

/// Locks mailbox files by one policy.
#[derive(Clone, Debug)]
pub struct Locker {
    env: Env,
    policy: LockPolicy,
}

impl Locker {
    /// One of this policy.
    pub fn new(env: Env, policy: LockPolicy) -> Locker {
        Locker { env, policy }
    }

    /// Opens and locks a file, or says [`ErrorKind::InUse`] at once.
    pub fn try_lock(&self, path: &Path, access: Access) -> Result<MailboxLock> {
        for _ in 0..REPLACED_MAX {
            if let Some(lock) = self.lock_what_is_there(path, access)? {
                return Ok(lock);
            }
        }
        Err(in_use(path, "it is being replaced again and again"))
    }

    /// Opens and locks a file, and waits for others if need be. The thread is blocked for [`LockPolicy::wait_max`] at most, then it is
    /// [`ErrorKind::InUse`].
    pub fn lock(&self, path: &Path, access: Access) -> Result<MailboxLock> {
        let clock = &self.env.clock;
        let begin = clock.monotonic();
        let mut pause = PAUSE_MIN;
        loop {
            let result = self.try_lock(path, access);
            let left = self.policy.wait_max.saturating_sub(clock.monotonic().saturating_sub(begin));
            match result {
                Err(error) if error.kind() == ErrorKind::InUse && !left.is_zero() => clock.sleep(pause.min(left)),
                result => return result,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// None: the file was replaced meanwhile.
    fn lock_what_is_there(&self, path: &Path, access: Access) -> Result<Option<MailboxLock>> {
        let (mode, methods, lock_mode) = match access {
            Access::Read => (OpenMode::Read, &self.policy.read, LockMode::Shared),
            Access::Write => (OpenMode::ReadWrite, &self.policy.write, LockMode::Exclusive),
            Access::Create => (OpenMode::Create, &self.policy.write, LockMode::Exclusive),
        };
        match self.env.disk.metadata(path) {
            // Opening a pipe would wait for somebody at its other end.
            Ok(metadata) if !metadata.is_file => {
                return Err(Error::new(ErrorKind::Invalid, format!("{} is no plain file", path.display())));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::from(error).context(path.display())),
        }
        let file = self.env.disk.open(path, mode).map_err(|error| Error::from(error).context(path.display()))?;
        let mut lock = MailboxLock { file: Arc::clone(&file), held: Vec::new() };
        for method in methods {
            let held = match method {
                Method::Fcntl => Held::Table(take(&*file, path, LockTable::Fcntl, lock_mode)?),
                Method::Flock => Held::Table(take(&*file, path, LockTable::Flock, lock_mode)?),
                Method::Dotlock => {
                    let dotlock = Dotlock::take(&self.env, path, &*file, self.policy.dotlock_stale_after)?;
                    let dotlock = Arc::new(dotlock);
                    lock.file = Arc::new(KeptFile::new(Arc::clone(&file), Arc::clone(&dotlock)));
                    Held::Dotlock(dotlock)
                }
            };
            lock.held.push(held);
        }
        match self.env.disk.metadata(path) {
            Ok(found) if found.is_same_file(&file.metadata()?) => Ok(Some(lock)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::from(error).context(path.display())),
        }
    }
}

fn take(file: &dyn File, path: &Path, table: LockTable, mode: LockMode) -> Result<LockGuard> {
    file.try_lock(table, mode).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => in_use(path, &format!("another program holds it ({table:?})")),
        _ => Error::from(error).context(format!("{table:?} on {}", path.display())),
    })
}

/// What everybody is told who comes too late.
fn in_use(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::InUse, format!("{} is locked: {why}", path.display()))
}

/// One lock of several.
enum Held {
    Table(LockGuard),
    Dotlock(Arc<Dotlock>),
}

/// A mailbox file, open and locked. Dropping it unlocks.
#[must_use = "the file is locked only while this lives"]
pub struct MailboxLock {
    file: Arc<dyn File>,
    /// In the order in which they were taken.
    held: Vec<Held>,
}

impl MailboxLock {
    /// The locked file. Do everything through this handle: each operation also keeps a dotlock fresh, and fails (`WouldBlock`) when the lock was
    /// taken away, before it does anything. It stays usable, without that, when the locks are gone.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Keeps a dotlock fresh while the file is left alone for long; call it several times within [`LockPolicy::dotlock_stale_after`].
    /// [`ErrorKind::InUse`]: somebody took it away.
    pub fn keep(&self) -> Result<()> {
        for held in &self.held {
            if let Held::Dotlock(dotlock) = held {
                dotlock.keep()?;
            }
        }
        Ok(())
    }

    /// Unlocks; says what dropping could not.
    pub fn release(mut self) -> Result<()> {
        self.unlock()
    }

    fn unlock(&mut self) -> Result<()> {
        let mut result = Ok(());
        while let Some(held) = self.held.pop() {
            match held {
                Held::Table(guard) => drop(guard),
                Held::Dotlock(dotlock) => result = dotlock.release().and(result),
            }
        }
        Ok(result?)
    }
}

impl Drop for MailboxLock {
    fn drop(&mut self) {
        // A dotlock that cannot be removed goes stale.
        let _unlocked = self.unlock();
    }
}
