//! A handle of a file on the simulated disk.

use std::fmt;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use super::disk::{Course, Held, Machine, SimDisk, concat};
use super::faults::Operation;
use super::hold;
use super::image::Data;
use super::lock::{HandleLocks, SimLock};
use super::space::Full;
use super::tree::{FileNode, FileState};
use crate::clock::Timestamp;
use crate::disk::{File, LockGuard, LockMode, LockTable, Metadata};

/// No simulated file grows beyond this: an offset that large is a bug of the caller, and the images are in memory.
pub const SIM_FILE_BYTES_MAX: u64 = 1 << 30;

/// An open file.
pub(super) struct SimFile {
    disk: SimDisk,
    node: Arc<FileNode>,
    /// The name it was opened by, for traces.
    path: PathBuf,
    boot: u64,
    writable: bool,
    locks: Arc<HandleLocks>,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, node: Arc<FileNode>, path: PathBuf, boot: u64, writable: bool) -> Self {
        Self { disk, node, path, boot, writable, locks: Arc::default() }
    }

    /// The machine, if it is on and has been since this file was opened.
    fn machine(&self) -> io::Result<Held<'_>> {
        let machine = self.disk.machine();
        machine.check_power()?;
        if machine.boot != self.boot {
            return Err(io::Error::other("a handle from before the power cut"));
        }
        Ok(machine)
    }

    /// Does what all operations share that change the file.
    fn modify(
        &self,
        operation: Operation,
        change: impl FnOnce(&mut FileState, &mut Machine, Course) -> Result<(), Full>,
    ) -> io::Result<()> {
        if !self.writable {
            return Err(Errno::BADF.into());
        }
        let mut machine = self.machine()?;
        let course = machine.begin(operation, &self.path)?;
        let inner = &mut *machine;
        inner.listeners.file_changed(&inner.tree, &self.node);
        let mut state = hold(&self.node.state);
        assert!(
            Arc::strong_count(&state.maps) == 1,
            "{operation:?} of {} while it is mapped: the contract of Disk::map is broken",
            self.path.display()
        );
        state.stats.operations += 1;
        state.modified = self.disk.now();
        state.changed = state.modified;
        let full = change(&mut state, &mut machine, course).is_err();
        if full && course == Course::Done {
            return Err(Errno::NOSPC.into());
        }
        course.result()
    }

    fn write(&self, offset: u64, data: Data, len: usize) -> io::Result<()> {
        if len == 0 {
            return self.machine().map(drop);
        }
        let (start, _) = range(offset, len as u64)?;
        self.modify(Operation::Write, |state, machine, course| {
            for stats in [&mut machine.stats, &mut state.stats] {
                stats.writes += 1;
                stats.write_bytes += len as u64;
            }
            match course {
                Course::Fails => state.image.write_part(start, data, machine.prng.index(len + 1)),
                Course::Done | Course::Dies => state.image.write(start, data),
            }
        })
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile({})", self.path.display())
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut machine = self.machine()?;
        let mut state = hold(&self.node.state);
        let n = state.image.read_at(buf, offset);
        for stats in [&mut machine.stats, &mut state.stats] {
            stats.reads += 1;
            stats.read_bytes += n as u64;
        }
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write(offset, Data::Bytes(buf.into()), buf.len())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let bytes = concat(bufs);
        let len = bytes.len();
        self.write(offset, Data::Bytes(bytes), len)
    }

    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        let (start, end) = range(offset, len)?;
        self.write(offset, Data::Zeros(end - start), end - start)
    }

    fn len(&self) -> io::Result<u64> {
        let _machine = self.machine()?;
        Ok(hold(&self.node.state).image.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (_, len) = range(0, len)?;
        self.modify(Operation::SetLen, |state, _, course| {
            if course != Course::Fails {
                state.image.set_len(len);
            }
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let (hook, mark) = {
            let machine = self.machine()?;
            (machine.sync_hook.clone(), hold(&self.node.state).image.sync_mark())
        };
        if let Some(hook) = hook {
            hook(&self.path);
        }
        let mut machine = self.machine()?;
        let course = machine.begin(Operation::Sync, &self.path)?;
        let mut state = hold(&self.node.state);
        machine.stats.syncs += 1;
        state.stats.syncs += 1;
        state.stats.operations += 1;
        match course {
            Course::Done => state.image.sync(mark),
            Course::Fails => state.image.sync_failed(&mut machine.prng),
            Course::Dies => {} // the power cut decides
        }
        course.result()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_modified(&self, modified: Timestamp) -> io::Result<()> {
        let _machine = self.machine()?;
        let mut state = hold(&self.node.state);
        state.modified = modified;
        state.changed = self.disk.now();
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return self.machine().map(drop);
        }
        let (start, end) = range(offset, len)?;
        self.modify(Operation::Allocate, |state, _, course| match course {
            Course::Fails => Ok(()),
            Course::Done | Course::Dies => state.image.allocate(start, end),
        })
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return self.machine().map(drop);
        }
        let (start, end) = range(offset, len)?;
        self.modify(Operation::PunchHole, |state, _, course| {
            if course != Course::Fails {
                state.image.punch(start, end);
            }
            Ok(())
        })
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let _machine = self.machine()?;
        Ok(self.node.metadata())
    }

    fn try_lock(&self, table: LockTable, mode: LockMode) -> io::Result<LockGuard> {
        let _machine = self.machine()?;
        if table == LockTable::Fcntl && mode == LockMode::Exclusive && !self.writable {
            return Err(Errno::BADF.into());
        }
        let guard = SimLock::take(&self.node, &self.locks, table, mode);
        guard.map(LockGuard::new).ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

/// A byte range as indexes; `EFBIG` beyond [`SIM_FILE_BYTES_MAX`].
fn range(offset: u64, len: u64) -> io::Result<(usize, usize)> {
    match offset.checked_add(len) {
        Some(end) if end <= SIM_FILE_BYTES_MAX => Ok((offset as usize, end as usize)),
        _ => Err(Errno::FBIG.into()),
    }
}
