//! Locks on open files: `fcntl(2)` and `flock(2)`.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::FlockOperation;

use crate::disk::{LockGuard, LockMode, LockTable};

/// An open file and what is locked through it.
#[derive(Debug)]
pub(super) struct LockedFile {
    pub(super) file: fs::File,
    /// Whether there is a guard, for each table. The system would take a second lock for a change of the first.
    fcntl: AtomicBool,
    flock: AtomicBool,
}

impl LockedFile {
    pub(super) fn new(file: fs::File) -> Arc<Self> {
        Arc::new(Self { file, fcntl: AtomicBool::new(false), flock: AtomicBool::new(false) })
    }

    fn is_held(&self, table: LockTable) -> &AtomicBool {
        match table {
            LockTable::Fcntl => &self.fcntl,
            LockTable::Flock => &self.flock,
        }
    }

    pub(super) fn try_lock(self: &Arc<Self>, table: LockTable, mode: LockMode) -> io::Result<LockGuard> {
        if self.is_held(table).swap(true, Ordering::Acquire) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match set(&self.file, table, Some(mode)) {
            Ok(()) => Ok(LockGuard::new(Held { file: Arc::clone(self), table })),
            Err(error) => {
                self.is_held(table).store(false, Ordering::Release);
                Err(error)
            }
        }
    }
}

/// Unlocks when dropped.
struct Held {
    file: Arc<LockedFile>,
    table: LockTable,
}

impl Drop for Held {
    fn drop(&mut self) {
        // It can only fail on a network file system whose server is gone; closing the file is all that is left then.
        let _unlocked = set(&self.file.file, self.table, None);
        self.file.is_held(self.table).store(false, Ordering::Release);
    }
}

/// Sets the lock that the open file has in a table; none: unlocks.
fn set(file: &fs::File, table: LockTable, mode: Option<LockMode>) -> io::Result<()> {
    match (table, mode) {
        (LockTable::Fcntl, Some(LockMode::Shared)) => set_record_lock(file, libc::F_RDLCK),
        (LockTable::Fcntl, Some(LockMode::Exclusive)) => set_record_lock(file, libc::F_WRLCK),
        (LockTable::Fcntl, None) => set_record_lock(file, libc::F_UNLCK),
        (LockTable::Flock, mode) => {
            let operation = match mode {
                Some(LockMode::Shared) => FlockOperation::NonBlockingLockShared,
                Some(LockMode::Exclusive) => FlockOperation::NonBlockingLockExclusive,
                None => FlockOperation::Unlock,
            };
            Ok(rustix::io::retry_on_intr(|| rustix::fs::flock(file, operation))?)
        }
    }
}

/// F_OFD_SETLK on the whole file, also on what it grows by.
#[expect(unsafe_code, reason = "rustix offers only the locks of the process, which any close of the file loses")]
fn set_record_lock(file: &fs::File, kind: libc::c_int) -> io::Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        // Must be 0 for this kind of lock (fcntl(2)).
        l_pid: 0,
    };
    loop {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and the kernel only reads the struct, which outlives the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EACCES | libc::EAGAIN) => return Err(io::ErrorKind::WouldBlock.into()), // either, says POSIX
            _ => return Err(error),
        }
    }
}
