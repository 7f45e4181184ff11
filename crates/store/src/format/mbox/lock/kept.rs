//! The handle of a file whose dotlock is held: every operation keeps the lock fresh first.

use std::io::{self, IoSlice};
use std::sync::Arc;

use platform::{File, LockGuard, LockMode, LockTable, Metadata, Timestamp};

use super::dotlock::Dotlock;

/// A file and the dotlock on it.
#[derive(Debug)]
pub(super) struct KeptFile {
    file: Arc<dyn File>,
    dotlock: Arc<Dotlock>,
}

impl KeptFile {
    pub(super) fn new(file: Arc<dyn File>, dotlock: Arc<Dotlock>) -> Self {
        KeptFile { file, dotlock }
    }

    fn kept(&self) -> io::Result<&dyn File> {
        self.dotlock.keep()?;
        Ok(&*self.file)
    }
}

impl File for KeptFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.kept()?.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.kept()?.write_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.kept()?.write_vectored_at(bufs, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.kept()?.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.kept()?.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.kept()?.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.kept()?.sync_all()
    }

    fn set_modified(&self, modified: Timestamp) -> io::Result<()> {
        self.kept()?.set_modified(modified)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.kept()?.allocate(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.kept()?.punch_hole(offset, len)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.kept()?.metadata()
    }

    fn try_lock(&self, table: LockTable, mode: LockMode) -> io::Result<LockGuard> {
        self.kept()?.try_lock(table, mode)
    }
}
