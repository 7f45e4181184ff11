//! The disk as the mail store sees it: files, directories, locks, maps, and when each of them is durable.
//!
//! Every operation here says what a power cut can still take away after it has returned. The rules in short:
//!
//! - Bytes and lengths of a file are durable once [`File::sync_data`] has returned `Ok`.
//! - Names (create, rename, remove, link, a new directory) are durable once [`Disk::sync_dir`] of *each* directory
//!   whose entries changed has returned `Ok`. Syncing a file does not make its name durable.
//! - All of both, on a whole file system, are durable once [`Batch::sync`] has returned `Ok`.
//! - Before that, writes may survive in any subset and any order, cut at sectors of [`SECTOR_BYTES`].
//! - After a failed write or sync nothing is known about the bytes not yet synced; a later sync that succeeds does
//!   not bring them back. Stop writing, reopen, and read what is there.
//!
//! Both implementations ([`crate::real`] and [`crate::sim`]) are held to one contract by `tests/contract.rs`.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::mapped::Mapped;

/// The unit that a disk writes whole or not at all, in bytes; nothing larger may be taken for atomic.
pub const SECTOR_BYTES: u64 = 512;

/// How [`Disk::open`] opens a file. No mode ever truncates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenMode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// For reading and writing; an empty file is created when there is none.
    Create,
    /// For reading and writing; the file must not exist (`AlreadyExists` otherwise).
    CreateNew,
}

/// One name in a directory, as [`Disk::list`] gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The last component of the path.
    pub name: OsString,
    /// Whether the name stands for a directory. A symbolic link is not followed and counts as a file.
    pub is_dir: bool,
}

/// What [`Disk::metadata`] says of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Length in bytes; of no meaning for a directory.
    pub len: u64,
    /// Bytes of disk blocks held. Less than `len` where the file has holes, more where it is preallocated.
    pub allocated_bytes: u64,
    /// Whether the path is a directory.
    pub is_dir: bool,
    /// Whether the path is a plain file: opening anything else (a pipe, a device) may wait for ever.
    pub is_file: bool,
    /// When the contents (of a directory: the names) last changed. The resolution is the file system's, which can be
    /// as coarse as some milliseconds.
    pub modified: Timestamp,
    /// The inode number: the same for all hard links of a file, and never that of another file of the same file
    /// system that exists at the same time.
    pub inode: u64,
    /// The file system that it is on: with the inode it names the file.
    pub device: u64,
    /// How many names it has.
    pub links: u64,
    /// When contents, names or attributes last changed. Unlike `modified` nobody can set it; it is told by the clock of the machine
    /// that has the disk (on NFS the server's).
    pub changed: Timestamp,
}

impl Metadata {
    /// Whether both are of one file, under whatever names.
    pub fn is_same_file(&self, other: &Metadata) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// By which of the system's two tables of locks [`File::try_lock`] keeps others away. Each counts only for programs that ask the same one.
///
/// Linux makes one table of both on NFS: there, only one of them should be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockTable {
    /// The record locks of `fcntl(2)` and `lockf(3)`, on the whole file. Ours belong to the open file (F_OFD_SETLK), so that closing another
    /// handle does not lose them, and conflict with those of processes (F_SETLK), which most mail programs take.
    Fcntl,
    /// Those of `flock(2)`; [`Disk::lock`] takes them too.
    Flock,
}

/// Who else may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockMode {
    /// Others that take it shared.
    Shared,
    /// Nobody.
    Exclusive,
}

/// A lock from [`Disk::lock`] or [`File::try_lock`]. Dropping it releases the lock, and so does the death of the process.
pub struct LockGuard {
    _held: Box<dyn Any + Send + Sync>,
}

impl LockGuard {
    /// Wraps the object whose drop releases the lock. For implementations of [`Disk`].
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockGuard")
    }
}

/// A file system, or a simulated one.
///
/// Errors are the operating system's: `NotFound`, `AlreadyExists`, `StorageFull` (ENOSPC), `PermissionDenied` and so
/// on have the kind that `std::io::ErrorKind` names; a device error (EIO) has none of the named kinds.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens a regular file.
    ///
    /// Durable: a file that this call created is durable *as a name* after [`Disk::sync_dir`] of its parent.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Creates the directory and those above it that are missing; `Ok` when it is already there.
    ///
    /// Durable: after [`Disk::sync_dir`] of the parent of each directory that was created;
    /// [`Disk::create_dir_all_durable`] does both.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Removes a file's name; the bytes go when the last name, handle and map of it are gone.
    ///
    /// Durable: after [`Disk::sync_dir`] of the parent. Until then the file may be back after a power cut.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory. Durable: after [`Disk::sync_dir`] of the parent.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives a file or directory another name, replacing a file that stands there.
    ///
    /// Atomic: at every instant, power cut included, `to` is the old file or the new one, whole; a power cut leaves
    /// either both names as they were or both changed. Whether the new file's *bytes* are there is up to its
    /// [`File::sync_data`], which must come first.
    ///
    /// Durable: after [`Disk::sync_dir`] of the parents of `from` and of `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives an existing file a second name (a hard link); `AlreadyExists` when `new` is taken.
    ///
    /// Durable: after [`Disk::sync_dir`] of the parent of `new`.
    fn link(&self, existing: &Path, new: &Path) -> io::Result<()>;

    /// Makes every change of names in this directory so far durable. Says nothing about the bytes of the files.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Begins a batch on the file system that has `path`: what is written and named there from now on is made durable at once by
    /// [`Batch::sync`], without a wait for each file. For many files; the sync also waits for what others have written there.
    ///
    /// `Unsupported` where the system does not promise that, or does not tell of writes that failed: then each file is to be synced.
    fn batch(&self, path: &Path) -> io::Result<Box<dyn Batch>>;

    /// The names in a directory, in byte order, without `.` and `..`.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// Adds to the end of a file that exists, in one call: of programs that do so at the same time, on one machine, none overwrites what
    /// another one added (O_APPEND). On an error a first part may have been added.
    ///
    /// Durable: after [`File::sync_data`].
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// What a path is; `NotFound` when it is nothing.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Takes an exclusive lock on a file, creating it (empty) when it is missing. Never waits: `WouldBlock` when
    /// another process, or another guard of this one, holds it.
    ///
    /// The lock is on the file behind the name, so the file must not be replaced by a rename.
    fn lock(&self, path: &Path) -> io::Result<LockGuard>;

    /// A read-only view of all the bytes of a file that no longer changes.
    ///
    /// Contract: nobody writes, cuts or punches the file while the map or a clone of it lives; removing or replacing
    /// the *name* is fine. The store keeps it by mapping only files that are never written after their rename into
    /// place, inside a directory whose lock it holds. The simulated disk panics when the contract is broken.
    fn map(&self, path: &Path) -> io::Result<Mapped>;

    /// Whether a file may be written, or names in a directory be changed; `PermissionDenied` or `ReadOnlyFilesystem` otherwise. Changes nothing,
    /// and says nothing of what is so a moment later.
    fn check_writable(&self, path: &Path) -> io::Result<()>;

    /// Whether the path is anything at all. An error is one that kept us from finding out.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// [`Disk::create_dir_all`], durable on return: syncs the parent of every directory that was missing.
    fn create_dir_all_durable(&self, path: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        for dir in path.ancestors() {
            if dir.as_os_str().is_empty() || self.exists(dir)? {
                break;
            }
            missing.push(dir);
        }
        self.create_dir_all(path)?;
        for dir in missing.iter().rev() {
            self.sync_dir(parent_of(dir))?;
        }
        Ok(())
    }

    /// All the bytes of a file. For small files; the length is not limited here.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Read)?;
        let len = usize::try_from(file.len()?).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Replaces a whole small file atomically and durably: writes `bytes` beside it under `temporary`, syncs them,
    /// renames over `path`, syncs the directory. After a power cut `path` has the old bytes or the new ones.
    ///
    /// Both paths must be in one directory. A `temporary` left by an earlier crash is overwritten.
    fn replace_file(&self, path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(temporary, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_at(bytes, 0)?;
        file.sync_data()?;
        self.rename(temporary, path)?;
        self.sync_dir(parent_of(path))
    }
}

/// See [`Disk::batch`].
pub trait Batch: Send + Sync + fmt::Debug {
    /// Makes durable everything on the file system that was done before the call: bytes, lengths, times and names.
    ///
    /// An error says that something that was written since the batch began may be lost for good, as that of [`File::sync_data`] does.
    fn sync(&self) -> io::Result<()>;
}

/// An open file. All methods take offsets; there is no cursor, and any number of threads may use one handle.
#[expect(clippy::len_without_is_empty, reason = "len asks the file system and can fail")]
pub trait File: Send + Sync + fmt::Debug {
    /// Reads up to `buf.len()` bytes from `offset` on, in one system call. Less than asked for only at the end of
    /// the file (0: at or behind it) or, rarely, when the system interrupts; [`File::read_exact_at`] handles both.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// [`File::read_at`] of what will not be wanted again soon: what the system has to fetch for it is not kept in its cache. That spares what
    /// others have there, and the cost of fresh memory: on a virtual machine more than that of the reading. What is in the cache stays there.
    fn read_once_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buf, offset)
    }

    /// Writes all of `buf` at `offset` (one system call, unless the system takes only a part). Bytes between the old
    /// end and `offset` read as zeros.
    ///
    /// Durable: after [`File::sync_data`]. On an error any part of it may have been written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;

    /// Writes the buffers one after another from `offset` on, like [`File::write_at`] of their concatenation but
    /// without copying.
    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// The length in bytes, as it is now (not as it would be after a power cut).
    fn len(&self) -> io::Result<u64>;

    /// Cuts the file, or grows it with zeros that take no space. Durable: after [`File::sync_data`].
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes durable what was written to this file before the call, by any handle: bytes, and the length with them.
    /// Not its name, see [`Disk::sync_dir`].
    ///
    /// On an error the unsynced bytes are in an unknown state for good: the system may have dropped them and
    /// marked them clean, so that the next sync says `Ok` without them. Never retry.
    fn sync_data(&self) -> io::Result<()>;

    /// [`File::sync_data`], and the times and other attributes as well.
    fn sync_all(&self) -> io::Result<()>;

    /// Says when the contents last changed ([`Metadata::modified`]): for programs that read a meaning from it, as those that
    /// serve a Maildir do. A later write changes it again.
    ///
    /// Durable: after [`File::sync_all`].
    fn set_modified(&self, modified: Timestamp) -> io::Result<()>;

    /// Reserves the blocks of a range; where it reaches behind the end the file grows, and the new bytes read as
    /// zeros. What the file held stays. `StorageFull` now rather than in a later write.
    ///
    /// Writes into a reserved range still change the file system's books at their first sync; to make syncs cheap,
    /// use [`File::write_zeros`]. `Unsupported` where the file system cannot do it.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Makes a range read as zeros and gives its whole blocks back to the file system. The length stays, also where
    /// the range reaches behind the end. `Unsupported` where the file system cannot do it: then nothing changed.
    ///
    /// Durable: after [`File::sync_data`]; before that, any part of the range may still have its old bytes.
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()>;

    /// What this file is now, whatever its name leads to.
    fn metadata(&self) -> io::Result<Metadata>;

    /// Takes a lock on this file, in one of the tables. Never waits: `WouldBlock` when another program, another handle or another guard of this
    /// one holds a lock that does not go with it. A handle has at most one guard in each table. An exclusive lock needs a handle that may write
    /// (`fcntl(2)`: EBADF).
    ///
    /// The lock ends with the guard or with the handle, whichever goes first, and so with the process.
    fn try_lock(&self, table: LockTable, mode: LockMode) -> io::Result<LockGuard>;

    /// Fills `buf` from `offset` on; `UnexpectedEof` when the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        fill(buf, offset, |rest, at| self.read_at(rest, at))
    }

    /// [`File::read_exact_at`] by [`File::read_once_at`].
    fn read_exact_once_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        fill(buf, offset, |rest, at| self.read_once_at(rest, at))
    }

    /// Writes `len` zeros from `offset` on. Unlike [`File::allocate`] this really writes the blocks, so that later
    /// writes into the range change data only and their syncs need no journal commit (on ext4 several times cheaper).
    ///
    /// Durable: after [`File::sync_data`].
    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut at = offset;
        let mut left = len;
        while left > 0 {
            let n = left.min(ZEROS.len() as u64);
            self.write_at(ZEROS.get(..n as usize).unwrap_or(&ZEROS), at)?;
            at += n;
            left -= n;
        }
        Ok(())
    }
}

/// Reads until `buf` is full; `UnexpectedEof` when there is no more.
fn fill(buf: &mut [u8], offset: u64, read: impl Fn(&mut [u8], u64) -> io::Result<usize>) -> io::Result<()> {
    let (mut rest, mut at) = (buf, offset);
    while !rest.is_empty() {
        let count = read(rest, at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        at += count as u64;
        rest = rest.get_mut(count..).unwrap_or_default();
    }
    Ok(())
}

/// The directory that holds a path's last name; `.` for a bare name, the root for the root.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}
