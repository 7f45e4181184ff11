//! The lock that is a file: `NAME.lock` beside the mailbox file `NAME`.
//!
//! Made so that it works over NFS (open(2), under O_EXCL): a file of a name that nobody else uses is linked to the lock's name; whether that
//! worked is told by its count of links, whatever the answer was. Its contents are `PROCESS:HOST`, as Dovecot writes them; programs that read a number only
//! (liblockfile) find one.
//!
//! A lock that is in the way is taken away only when its holder
//! - is a process of this machine that does not run any more; or
//! - is unknown (another machine, a program that writes no host, a number that was given to a younger process) and neither the lock nor the mailbox file changed
//!   for some time, by the clock of the file system. A holder that works changes one of them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use platform::{Disk, Env, File, LockMode, LockTable, Metadata, OpenMode, Timestamp, parent_of};

use super::in_use;

/// What is read of a lock's contents, in bytes: a number and a host name.
const CONTENTS_BYTES: usize = 512;

/// Letters of a host name that go into a file name.
const HOST_CHARS: usize = 64;

/// A process that is younger than its lock by more than this did not make it. Start times have whole seconds.
const START_SLACK: Duration = Duration::from_secs(2);

/// A lock that is held. Not released by dropping: see [`Dotlock::release`].
#[derive(Debug)]
pub(super) struct Dotlock {
    env: Env,
    path: PathBuf,
    /// Open as long as the lock is held, so that no other file can have its inode number.
    file: Arc<dyn File>,
    contents: String,
    refresh_after: Duration,
    /// When it was refreshed, by the monotonic clock; none once it is released.
    refreshed: Mutex<Option<Duration>>,
}

impl Dotlock {
    /// Takes the lock of a mailbox file, or says [`ErrorKind::InUse`] at once.
    pub(super) fn take(env: &Env, mailbox: &Path, mailbox_file: &dyn File, stale_after: Duration) -> Result<Dotlock> {
        let path = lock_path(mailbox)?;
        let contents = format!("{}:{}", env.host.process(), env.host.name());
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => {
                Error::new(ErrorKind::NotPermitted, format!("{}: {error}", path.display()))
            }
            _ => Error::from(error).context(path.display()),
        };
        let own = OwnName::create(env, &path, &contents).map_err(failed)?;
        for is_second in [false, true] {
            if let Some(file) = own.become_lock(&path, &contents).map_err(failed)? {
                return Ok(Dotlock {
                    env: env.clone(),
                    file,
                    path,
                    contents,
                    refresh_after: stale_after / 4,
                    refreshed: Mutex::new(Some(env.clock.monotonic())),
                });
            }
            let now = own.file.metadata()?.changed;
            let other = Other::look(env, &path).map_err(failed)?;
            match other {
                None => {} // it went just now
                Some(other) if is_second => return Err(in_use(mailbox, &other.describe(&path))),
                Some(other) => {
                    let unchanged_since = other.metadata.changed.max(mailbox_file.metadata()?.changed);
                    let is_old = unchanged_since.saturating_add(stale_after) <= now;
                    if !other.is_stale(env, is_old) || !other.take_away(env, &path).map_err(failed)? {
                        return Err(in_use(mailbox, &other.describe(&path)));
                    }
                }
            }
        }
        Err(in_use(mailbox, "others come and go"))
    }

    /// Makes the lock look used, now and then. `WouldBlock`: somebody took it away. `Ok` once it is released.
    pub(super) fn keep(&self) -> io::Result<()> {
        let mut refreshed = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.env.clock.monotonic();
        match *refreshed {
            Some(last) if now.saturating_sub(last) >= self.refresh_after => {}
            _ => return Ok(()),
        }
        if !self.is_there()? {
            let text = format!("{}: another program took our lock away", self.path.display());
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        // Written, and not only set to a time of ours: the time must be that of the machine that has the disk.
        self.file.write_at(self.contents.as_bytes(), 0)?;
        self.file.sync_data()?;
        *refreshed = Some(now);
        Ok(())
    }

    /// Removes the lock, if it is still ours.
    pub(super) fn release(&self) -> io::Result<()> {
        let mut refreshed = self.refreshed.lock().unwrap_or_else(PoisonError::into_inner);
        if refreshed.take().is_some() && self.is_there()? {
            self.env.disk.remove(&self.path)?;
        }
        Ok(())
    }

    fn is_there(&self) -> io::Result<bool> {
        match self.env.disk.metadata(&self.path) {
            Ok(found) => Ok(found.is_same_file(&self.file.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// `NAME.lock`.
fn lock_path(mailbox: &Path) -> Result<PathBuf> {
    let name = mailbox.file_name();
    let mut name = name.ok_or_else(|| Error::new(ErrorKind::Invalid, "a mailbox file without a name"))?.to_owned();
    name.push(".lock");
    Ok(mailbox.with_file_name(name))
}

/// A name beside the lock that nobody else uses.
fn unique_path(env: &Env, lock: &Path) -> PathBuf {
    let host: String =
        env.host.name().chars().take(HOST_CHARS).map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = format!(".mailyard-{host}-{}-{:016x}.lock", env.host.process(), env.random.u64());
    parent_of(lock).join(OsString::from(name))
}

/// The file that becomes the lock; its own name goes with this value.
struct OwnName {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl OwnName {
    fn create(env: &Env, lock: &Path, contents: &str) -> io::Result<OwnName> {
        let path = unique_path(env, lock);
        let file = env.disk.open(&path, OpenMode::CreateNew)?;
        let own = OwnName { disk: Arc::clone(&env.disk), path, file };
        own.file.write_at(contents.as_bytes(), 0)?;
        Ok(own)
    }

    /// Gives the file the lock's name; none: it is taken.
    fn become_lock(&self, lock: &Path, contents: &str) -> io::Result<Option<Arc<dyn File>>> {
        let linked = self.disk.link(&self.path, lock);
        if self.file.metadata()?.links == 2 {
            return Ok(Some(Arc::clone(&self.file)));
        }
        match linked {
            // No hard links here: such a file system is no NFS of version 2, so O_EXCL can be relied on.
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                match self.disk.open(lock, OpenMode::CreateNew) {
                    Ok(file) => file.write_at(contents.as_bytes(), 0).map(|()| Some(file)),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
                    Err(error) => Err(error),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(error),
            // It was linked, and somebody else removed it at once.
            Ok(()) => Ok(None),
        }
    }
}

impl Drop for OwnName {
    fn drop(&mut self) {
        // What stays is a small file that nobody asks for.
        let _removed = self.disk.remove(&self.path);
    }
}

/// The lock of somebody.
struct Other {
    /// Open, so that no other file can have its inode number.
    file: Arc<dyn File>,
    metadata: Metadata,
    contents: Vec<u8>,
}

/// What is known of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Runs,
    Ended,
    Unknown,
}

impl Other {
    fn look(env: &Env, path: &Path) -> io::Result<Option<Other>> {
        let file = match env.disk.open(path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        let mut contents = vec![0; CONTENTS_BYTES];
        let len = file.read_at(&mut contents, 0)?;
        contents.truncate(len);
        Ok(Some(Other { file, metadata, contents }))
    }

    fn is_stale(&self, env: &Env, is_old: bool) -> bool {
        match holder(env, &self.contents, self.metadata.changed) {
            Holder::Runs => false,
            Holder::Ended => true,
            Holder::Unknown => is_old,
        }
    }

    /// Removes it, if it is still there and nobody else is at it. Between looking and removing, others may have removed it and made their own:
    /// those who use this code are kept out by a lock on the file, and what others made is put back.
    fn take_away(&self, env: &Env, path: &Path) -> io::Result<bool> {
        let _only = match self.file.try_lock(LockTable::Flock, LockMode::Exclusive) {
            Ok(guard) => Some(guard),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(_) => None, // a file system without such locks
        };
        let is_it = |path: &Path| match env.disk.metadata(path) {
            Ok(found) => Ok(found.is_same_file(&self.metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        let is_unchanged = self.file.metadata()?.changed == self.metadata.changed;
        if !is_unchanged || !is_it(path)? {
            return Ok(false);
        }
        let aside = unique_path(env, path);
        match env.disk.rename(path, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        let is_it = is_it(&aside)?;
        if !is_it {
            match env.disk.link(&aside, path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        env.disk.remove(&aside)?;
        Ok(is_it)
    }

    fn describe(&self, path: &Path) -> String {
        let contents = String::from_utf8_lossy(&self.contents);
        format!("{} says {:?}", path.display(), contents.trim())
    }
}

/// What is known of the holder of a lock with these contents that changed last then.
fn holder(env: &Env, contents: &[u8], changed: Timestamp) -> Holder {
    let parsed = std::str::from_utf8(contents).ok().and_then(|text| text.trim().split_once(':'));
    let Some((process, host)) = parsed else { return Holder::Unknown };
    let Some(process) = process.parse::<u32>().ok().filter(|process| *process > 0) else { return Holder::Unknown };
    if host != env.host.name() {
        return Holder::Unknown;
    }
    match env.host.running_since(process) {
        None => Holder::Ended,
        Some(since) if since <= changed.saturating_add(START_SLACK) => Holder::Runs,
        // A younger process of the same number; or somebody set the clock.
        Some(_) => Holder::Unknown,
    }
}
