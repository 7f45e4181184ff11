//! Backups of accounts: a directory that any number of snapshots share.
//!
//! ```text
//! DIR/mailyard-backup                       what this is, and in which version; a lock on it is held by whoever writes
//! DIR/accounts/NAME/files/FILE.SHA256       a file of the account's log, or the durable part of one; never changed
//! DIR/accounts/NAME/snapshots/ID            a manifest: which files, under which names, are the log at one moment
//! ```
//!
//! All of a directory is encrypted, or nothing of it: then each file of the log is one that age's programs open (`keys`, `stored`), under
//! the SHA-256 of its encrypted octets, and the manifests are plain. So backing up, listing, comparing and forgetting need no secret key.
//!
//! Invariants:
//! - A manifest is written when every file that it names is there and durable, whole or not at all. So a snapshot that is listed can be
//!   restored, whatever has interrupted this or a later backup.
//! - A file that has its last name is complete, durable and never written again; several snapshots may need it.
//! - A snapshot is the account at one durable frame of its log ([`index::Log::files`]).
//!
//! Sealed segments are copied once; the tails, at most some megabytes, with each snapshot. Octets of messages that lie in mbox files or Maildirs are
//! read through their format and kept once, in packs of their own (`octets`). Byte tables: `docs/format-backup.md`.

mod keys;
mod lent;
mod manifest;
mod merge;
mod octets;
mod parallel;
mod restore;
mod save;
mod stored;
mod verify;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use model::{AccountName, Error, ErrorKind, Result};
use platform::{Disk, Env, LockGuard};

pub use keys::{Identities, Recipients};
pub use manifest::{Snapshot, SnapshotFile};
pub use restore::{Choice, RestoreOptions, RestoreReport};
pub use save::SaveReport;
pub use verify::{BackupFinding, VerifyReport};

/// The file that says what the directory is.
const MARK_FILE: &str = "mailyard-backup";
/// What it says.
const MARK: &[u8] = b"mailyard backup 1\n";
/// What it says when the files are encrypted.
const MARK_ENCRYPTED: &[u8] = b"mailyard backup 2\n";
/// Begins the name of a file that is not finished.
const UNFINISHED: &str = ".new-";
/// Octets that are copied or compared at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Hears how far a long run is, in octets (done, of all); may end it. What is done by then stays and need not be done again.
pub type Listener<'a> = &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>;

/// Which snapshot is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The newest one.
    Newest,
    /// The newest one that was made at this time (Unix seconds) or before.
    At(i64),
    /// The one of this name.
    Id(String),
}

/// A directory of backups.
#[derive(Debug)]
pub struct Repository {
    env: Env,
    dir: PathBuf,
    is_encrypted: bool,
    /// To whom new files are encrypted.
    recipients: Option<Recipients>,
    /// What opens those that are there.
    identities: Option<Identities>,
}

/// Keeps others from writing to the directory meanwhile.
#[derive(Debug)]
pub(crate) struct Writing {
    _lock: LockGuard,
}

impl Repository {
    /// A directory of backups that is there. [`ErrorKind::NotFound`] when it is none.
    pub fn open(env: Env, dir: &Path) -> Result<Repository> {
        let is_encrypted = match env.disk.read(&dir.join(MARK_FILE)) {
            Ok(mark) if mark == MARK => false,
            Ok(mark) if mark == MARK_ENCRYPTED => true,
            Ok(_) => {
                let what = "the backup was made by another version";
                return Err(Error::new(ErrorKind::Invalid, what).context(dir.display()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::new(ErrorKind::NotFound, "there are no backups here").context(dir.display()));
            }
            Err(error) => return Err(Error::from(error).context(dir.display())),
        };
        Ok(Repository { env, dir: dir.to_owned(), is_encrypted, recipients: None, identities: None })
    }

    /// The same, made when the directory is not there or empty, to add snapshots: encrypted when there are recipients. [`ErrorKind::Invalid`]
    /// when the snapshots that are there are not.
    pub fn create(env: Env, dir: &Path, recipients: Option<Recipients>) -> Result<Repository> {
        let disk = &env.disk;
        disk.create_dir_all_durable(dir)?;
        if !disk.exists(&dir.join(MARK_FILE))? {
            let temporary = format!("{UNFINISHED}{MARK_FILE}");
            if disk.list(dir)?.iter().any(|entry| entry.name.as_encoded_bytes() != temporary.as_bytes()) {
                return Err(Error::new(ErrorKind::Invalid, "the directory holds something else").context(dir.display()));
            }
            let mark = if recipients.is_some() { MARK_ENCRYPTED } else { MARK };
            disk.replace_file(&dir.join(MARK_FILE), &dir.join(temporary), mark)?;
        }
        let repository = Repository::open(env, dir)?;
        let what = match (repository.is_encrypted, recipients.is_some()) {
            (true, false) => "the backups here are encrypted: recipients are missing",
            (false, true) => "the backups here are not encrypted: take another directory for those that are to be",
            _ => return Ok(Repository { recipients, ..repository }),
        };
        Err(Error::new(ErrorKind::Invalid, what).context(dir.display()))
    }

    /// The same, with what opens encrypted files: restoring needs it, verifying reads them by it as well.
    #[must_use]
    pub fn with_identities(self, identities: Option<Identities>) -> Repository {
        Repository { identities, ..self }
    }

    /// What opens the files. [`ErrorKind::Invalid`] when they are encrypted and nobody has said.
    fn key(&self) -> Result<Option<&Identities>> {
        match (self.is_encrypted, &self.identities) {
            (false, _) => Ok(None),
            (true, Some(identities)) => Ok(Some(identities)),
            (true, None) => {
                let what = "the backups are encrypted: an identity is needed, the secret key of a recipient";
                Err(Error::new(ErrorKind::Invalid, what).context(self.dir.display()))
            }
        }
    }

    /// The accounts that have snapshots, sorted.
    pub fn accounts(&self) -> Result<Vec<AccountName>> {
        let entries = list(&*self.env.disk, &self.dir.join("accounts"))?;
        let names = entries.iter().filter_map(|name| AccountName::new(name).ok().filter(|one| one.as_str() == name));
        let mut accounts = Vec::new();
        for name in names {
            if !list(&*self.env.disk, &self.snapshots_dir(&name))?.is_empty() {
                accounts.push(name);
            }
        }
        accounts.sort();
        Ok(accounts)
    }

    /// All snapshots of an account, the oldest first. `Corrupt` when a manifest is damaged.
    pub fn snapshots(&self, account: &AccountName) -> Result<Vec<Snapshot>> {
        self.ids(account)?.iter().map(|id| self.snapshot(account, id)).collect()
    }

    /// A snapshot of an account. [`ErrorKind::NotFound`] when there is none such. Other manifests may be damaged.
    pub fn pick(&self, account: &AccountName, pick: &Pick) -> Result<Snapshot> {
        let mut ids = self.ids(account)?;
        let id = match pick {
            Pick::Newest => ids.pop(),
            Pick::At(time) => ids.into_iter().rfind(|id| Snapshot::is_id_until(id, *time)),
            Pick::Id(id) => ids.into_iter().find(|one| one == id),
        };
        let no_such = || Error::new(ErrorKind::NotFound, format!("there is no such snapshot of {account}"));
        self.snapshot(account, &id.ok_or_else(no_such)?)
    }

    /// The names of the snapshots of an account, the oldest first.
    pub fn ids(&self, account: &AccountName) -> Result<Vec<String>> {
        let mut ids = list(&*self.env.disk, &self.snapshots_dir(account))?;
        ids.retain(|id| !id.starts_with('.'));
        ids.sort_unstable();
        Ok(ids)
    }

    /// The snapshot of this name. `Corrupt` when its manifest is damaged.
    pub fn snapshot(&self, account: &AccountName, id: &str) -> Result<Snapshot> {
        let path = self.snapshots_dir(account).join(id);
        let bytes = self.env.disk.read(&path)?;
        let snapshot = Snapshot::read(&bytes).filter(|snapshot| snapshot.id == id && snapshot.account == *account);
        snapshot.ok_or_else(|| Error::new(ErrorKind::Corrupt, "the manifest is damaged").context(path.display()))
    }

    fn account_dir(&self, account: &AccountName) -> PathBuf {
        self.dir.join("accounts").join(account.as_str())
    }

    fn files_dir(&self, account: &AccountName) -> PathBuf {
        self.account_dir(account).join("files")
    }

    fn snapshots_dir(&self, account: &AccountName) -> PathBuf {
        self.account_dir(account).join("snapshots")
    }

    /// Where a file of a snapshot lies.
    fn path_of(&self, account: &AccountName, file: &SnapshotFile) -> PathBuf {
        self.files_dir(account).join(file.stored_name())
    }

    /// Lets nobody else write until the guard is dropped. [`ErrorKind::InUse`] when somebody does.
    fn writing(&self) -> Result<Writing> {
        let lock = self.env.disk.lock(&self.dir.join(MARK_FILE));
        let lock = lock.map_err(|error| Error::from(error).context(format!("the backup {}", self.dir.display())))?;
        Ok(Writing { _lock: lock })
    }
}

/// The names in a directory that may not be there.
fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<String>> {
    match disk.list(dir) {
        Ok(entries) => Ok(entries.iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::from(error).context(dir.display())),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
