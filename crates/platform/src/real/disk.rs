//! Files of the operating system. Each operation is the system call it is named after, once.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, AtFlags, FallocateFlags, FlockOperation};
use rustix::io::{Errno, ReadWriteFlags};

use super::batch::RealBatch;
use super::lock::LockedFile;
use crate::clock::Timestamp;
use crate::disk::{Batch, DirEntry, Disk, File, LockGuard, LockMode, LockTable, Metadata, OpenMode};
use crate::mapped::Mapped;

/// How many buffers Linux takes in one `pwritev` (IOV_MAX).
const BUFFERS_PER_CALL: usize = 1024;

/// How often [`Disk::lock`] looks again when the lock file is replaced under it.
const LOCK_ATTEMPTS: usize = 8;

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::Create => options.write(true).create(true),
            OpenMode::CreateNew => options.write(true).create_new(true),
        };
        Ok(Arc::new(RealFile { open: LockedFile::new(options.open(path)?) }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        fs::hard_link(existing, new)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn batch(&self, path: &Path) -> io::Result<Box<dyn Batch>> {
        Ok(Box::new(RealBatch::begin(path)?))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            entries.push(DirEntry { name: entry.file_name(), is_dir: entry.file_type()?.is_dir() });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::OpenOptions::new().append(true).open(path)?.write_all(bytes)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(describe(&fs::metadata(path)?))
    }

    fn check_writable(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::accessat(rustix::fs::CWD, path, Access::WRITE_OK, AtFlags::EACCESS)?)
    }

    fn lock(&self, path: &Path) -> io::Result<LockGuard> {
        // Somebody who held the lock may have removed the file between our open and our flock; then we hold the
        // lock of a file that nobody else will ever find. Only a lock on the file that the path leads to counts.
        for _ in 0..LOCK_ATTEMPTS {
            let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let held = file.metadata()?;
            match fs::metadata(path) {
                Ok(found) if found.ino() == held.ino() && found.dev() == held.dev() => {
                    return Ok(LockGuard::new(file));
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn map(&self, path: &Path) -> io::Result<Mapped> {
        let file = fs::File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Mapped::from_vec(Vec::new()));
        }
        map_file(&file).map(Mapped::from_map)
    }
}

fn describe(metadata: &fs::Metadata) -> Metadata {
    let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) };
    Metadata {
        len: metadata.len(),
        // st_blocks counts 512 bytes each, whatever the file system's block size (stat(3type)).
        allocated_bytes: metadata.blocks().saturating_mul(512),
        is_dir: metadata.is_dir(),
        is_file: metadata.is_file(),
        modified: time(metadata.mtime(), metadata.mtime_nsec()),
        inode: metadata.ino(),
        device: metadata.dev(),
        links: metadata.nlink(),
        changed: time(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// Maps a file that no longer changes.
#[expect(unsafe_code, reason = "a memory map is as safe as the promise that the file stands still")]
fn map_file(file: &fs::File) -> io::Result<memmap2::Mmap> {
    // SAFETY: the map is read-only, so the only danger is somebody changing or cutting the file underneath. The
    // contract of `Disk::map` forbids both for as long as the map lives: the store maps only files that are renamed
    // into place complete and never written again, in a directory whose exclusive lock it holds, and the simulated
    // disk panics in any test where the store breaks that. Removing or replacing the name leaves the mapped inode
    // as it is. What remains is another program of the same user writing into the store's own files, against which
    // no process can defend its memory either.
    unsafe { memmap2::Mmap::map(file) }
}

/// `RWF_DONTCACHE` of `preadv2(2)`: what is read into the page cache for this call leaves it afterwards.
const DONT_CACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(libc::RWF_DONTCACHE.unsigned_abs());

/// An open file; closed with the last handle.
#[derive(Debug)]
struct RealFile {
    open: Arc<LockedFile>,
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.open.file.read_at(buf, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn read_once_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            let into = &mut [IoSliceMut::new(buf)];
            match rustix::io::preadv2(&self.open.file, into, offset, DONT_CACHE) {
                Err(Errno::INTR) => {}
                // Linux before 6.14, and file systems that do not know of it.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return self.read_at(buf, offset),
                result => return Ok(result?),
            }
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.open.file.write_all_at(buf, offset)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        // `advance_slices` wants to change the slices when the system takes only a part; copying the few
        // descriptors (not the bytes) keeps that from the caller.
        let mut owned = bufs.to_vec();
        let mut left = owned.as_mut_slice();
        // Empty buffers in front would make a call that writes nothing look like a full disk.
        IoSlice::advance_slices(&mut left, 0);
        let mut at = offset;
        while !left.is_empty() {
            let batch = left.get(..BUFFERS_PER_CALL).unwrap_or(left);
            match rustix::io::pwritev(&self.open.file, batch, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    at += n as u64;
                    IoSlice::advance_slices(&mut left, n);
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.open.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.open.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.open.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.open.file.sync_all()
    }

    fn set_modified(&self, modified: Timestamp) -> io::Result<()> {
        let since = Duration::new(modified.seconds.unsigned_abs(), 0);
        let whole = if modified.seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(since)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(since)
        };
        let time = whole.and_then(|time| time.checked_add(Duration::from_nanos(modified.nanoseconds.into())));
        self.open.file.set_modified(time.ok_or(io::ErrorKind::InvalidInput)?)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        fallocate(&self.open.file, FallocateFlags::empty(), offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        fallocate(&self.open.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(describe(&self.open.file.metadata()?))
    }

    fn try_lock(&self, table: LockTable, mode: LockMode) -> io::Result<LockGuard> {
        self.open.try_lock(table, mode)
    }
}

fn fallocate(file: &fs::File, flags: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(()); // fallocate(2) refuses an empty range
    }
    match rustix::io::retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, len)) {
        Ok(()) => Ok(()),
        // The file system or the kernel does not know the operation; callers look at the kind.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
        Err(e) => Err(e.into()),
    }
}
