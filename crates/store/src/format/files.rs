//! The files in which the messages of an account lie that other programs read and write as well: what the store asks of them, whatever their format.
//!
//! The principle is the same for all: the log follows the files, the files follow the log (`docs/decisions/0007-mbox.md`). A format that
//! implements [`Files`] is behind the same door as the store's own: sessions know nothing of it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use index::{Finding, Foreign, ForeignMessage, Log, Mailbox, Transaction};
use model::{EmailId, Error, ErrorKind, MailboxId, MailboxName, Result};
use platform::{Disk, Env, parent_of};

use super::AccountFormat;
use super::maildir::account::MaildirAccount;
use super::maildir::layout::SUBDIRS;
use super::mbox::account::MboxAccount;
use crate::Options;
use crate::edit::Effects;
use crate::listeners::Listeners;

/// What makes it worth writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// CHECK (RFC 3501 §6.4.1).
    Check,
    /// CLOSE, UNSELECT.
    Close,
    /// LOGOUT.
    Logout,
    /// Nobody has changed anything for a while.
    Idle,
    /// The account is being converted: all is written, whatever the settings say.
    Convert,
}

/// How long to wait for a file that another program has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as the policy says.
    Wait,
    /// Not at all.
    None,
}

/// The files of an account, in one format; they give the octets of foreign messages, too.
///
/// Functions that take a mailbox do nothing for one that has no file (any more): others say so.
pub(crate) trait Files: Foreign + Send + Sync + fmt::Debug {
    /// Whether a mailbox of this name can have a file.
    fn check_name(&self, name: &MailboxName) -> Result<()>;

    /// Whether messages can be put into the files of a mailbox and taken out, as far as that can be told; [`ErrorKind::NotPermitted`].
    fn check_contents(&self, _mailbox: MailboxId) -> Result<()> {
        Ok(())
    }

    /// Whether the files of a mailbox can get another name; [`ErrorKind::NotPermitted`].
    fn check_rename(&self, _mailbox: MailboxId) -> Result<()> {
        Ok(())
    }

    /// Messages are about to come into a mailbox: what other programs have numbered there by now gets its entries first.
    fn before_adding(&self, _mailbox: MailboxId) {}

    /// The UID that a message which comes into a mailbox must have at least, so that no other program has given it; asked within the
    /// transaction.
    fn uid_floor(&self, _mailbox: &Mailbox) -> Result<u32> {
        Ok(0)
    }

    /// A client is deleting a mailbox, in this change: what is to be known of its files later, whatever happens, is said in the same change.
    fn part_with(&self, _transaction: &mut Transaction, _mailbox: MailboxId) -> Result<()> {
        Ok(())
    }

    /// Makes mailboxes of what others have put beside the files that are known. What cannot be looked at is left for later.
    fn discover(&self);

    /// Like [`Files::discover`], for one who wants the mailbox of this name: an error when there is something that cannot be looked at, and
    /// [`ErrorKind::InUse`] when somebody else holds it for longer than we wait.
    fn look_for(&self, _name: &MailboxName) -> Result<()> {
        self.discover();
        Ok(())
    }

    /// Brings the log up to date with what others did to the files of a mailbox; costs a question or two to the file system when there is
    /// nothing to do. [`ErrorKind::InUse`]: somebody else holds them for longer than we wait.
    fn refresh(&self, id: MailboxId, patience: Patience) -> Result<()>;

    /// Makes the files of a mailbox show what the log says, as far as the settings want that now. [`ErrorKind::InUse`]: somebody else has
    /// them; it is tried again when the mailbox is idle.
    fn write_back(&self, id: MailboxId, moment: Moment) -> Result<()>;

    /// A change is durable in the log: the files follow as far as they can at once. What they cannot, [`Files::maintain`] tries again.
    fn follow(&self, effects: &Effects);

    /// A piece of the work that nobody waits for.
    fn maintain(&self) -> Result<()>;

    /// Nobody uses the account any more: what is to be written when idle is written now.
    fn close(&self);

    /// Brings the log up to date and holds each file against it; what is wrong.
    fn check(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// Runs `work` while nobody takes messages out of the files of a mailbox.
    fn hold(&self, _mailbox: MailboxId, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }

    /// The digest by which the format knows a message of these octets, as served.
    fn digest(&self, octets: &[u8]) -> u64;

    /// Reads the copy of a message that is in the files of a mailbox, whether or not the log has its octets as well: as it would be served if
    /// the log had none and knew this of it. False: it is not there (yet), or is not that.
    fn read_back(
        &self,
        mailbox: MailboxId,
        id: EmailId,
        known: &ForeignMessage,
        header: &mut Vec<u8>,
        octets: &mut Vec<u8>,
    ) -> Result<bool>;

    /// Makes everything durable that [`Files::read_back`] has given: asked before anybody relies on the files alone.
    fn make_read_durable(&self) -> Result<()> {
        Ok(())
    }
}

/// Stands for the files of an account that was converted to the store's own format while they are kept: nothing is read from them or
/// written to them. What is expunged meanwhile stays known, as it is still in them: they may be taken up again.
#[derive(Debug)]
pub(crate) struct KeptFiles;

impl Foreign for KeptFiles {
    fn header(&self, id: EmailId, _: &ForeignMessage, _: &mut Vec<u8>) -> Result<()> {
        Err(left_behind(id))
    }

    fn range(
        &self,
        id: EmailId,
        _: &ForeignMessage,
        _: Range<u64>,
        _: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        Err(left_behind(id))
    }
}

/// Only what was expunged before the conversion has no octets in the log.
fn left_behind(id: EmailId) -> Error {
    Error::new(ErrorKind::Expunged, format!("the message {id} was expunged"))
}

impl Files for KeptFiles {
    fn check_name(&self, _: &MailboxName) -> Result<()> {
        Ok(())
    }

    fn discover(&self) {}

    fn refresh(&self, _: MailboxId, _: Patience) -> Result<()> {
        Ok(())
    }

    fn write_back(&self, _: MailboxId, _: Moment) -> Result<()> {
        Ok(())
    }

    fn follow(&self, _: &Effects) {}

    fn maintain(&self) -> Result<()> {
        Ok(())
    }

    fn close(&self) {}

    fn digest(&self, _: &[u8]) -> u64 {
        0
    }

    fn read_back(
        &self,
        _: MailboxId,
        _: EmailId,
        _: &ForeignMessage,
        _: &mut Vec<u8>,
        _: &mut Vec<u8>,
    ) -> Result<bool> {
        Ok(false)
    }
}

/// Makes the directories that an account in `dir` needs for files of this format.
pub(crate) fn prepare(disk: &dyn Disk, dir: &Path, format: &AccountFormat) -> Result<()> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(()),
        AccountFormat::Mbox { inbox, root } => {
            for needed in [&dir.join(super::mbox::account::DIR), parent_of(inbox), root] {
                disk.create_dir_all_durable(needed)?;
            }
            Ok(())
        }
        AccountFormat::Maildir { root, .. } => {
            disk.create_dir_all_durable(&dir.join(super::maildir::account::DIR))?;
            SUBDIRS.iter().try_for_each(|subdir| Ok(disk.create_dir_all_durable(&root.join(subdir))?))
        }
    }
}

/// Whether a mailbox of this name can be in that format.
pub(crate) fn check_name(format: &AccountFormat, name: &MailboxName) -> Result<()> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(()),
        AccountFormat::Mbox { .. } => super::mbox::names::path_of(name).map(drop),
        AccountFormat::Maildir { layout, .. } => super::maildir::layout::path_of(*layout, name).map(drop),
    }
}

/// What is where the files of that format would be, if anything is.
pub(crate) fn taken(disk: &dyn Disk, format: &AccountFormat) -> Result<Option<PathBuf>> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(None),
        AccountFormat::Mbox { inbox, root } => {
            let is_free = match disk.metadata(inbox) {
                Ok(found) => found.len == 0,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
                Err(error) => return Err(Error::from(error).context(inbox.display())),
            };
            // The inbox may lie in the root.
            let is_other = |entry: &platform::DirEntry| root.join(&entry.name) != *inbox;
            let has_others = match disk.list(root) {
                Ok(entries) => entries.iter().any(is_other),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
                Err(error) => return Err(Error::from(error).context(root.display())),
            };
            Ok(if !is_free { Some(inbox.clone()) } else { has_others.then(|| root.clone()) })
        }
        AccountFormat::Maildir { root, .. } => {
            let entries = match disk.list(root) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Error::from(error).context(root.display())),
            };
            for entry in entries {
                let path = root.join(&entry.name);
                let is_subdir = entry.name.to_str().is_some_and(|name| SUBDIRS.contains(&name));
                if !is_subdir || !crate::convert::is_empty_dir(disk, &path)? {
                    return Ok(Some(path));
                }
            }
            Ok(None)
        }
    }
}

/// Takes up the files of an account whose log was opened; `None`: it has none, its messages are in the log.
pub(crate) fn open(
    env: &Env,
    log: &Arc<Log>,
    listeners: &Arc<Listeners>,
    format: &AccountFormat,
    options: &Options,
) -> Result<Option<Arc<dyn Files>>> {
    let (env, log, listeners) = (env.clone(), Arc::clone(log), Arc::clone(listeners));
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(None),
        AccountFormat::Mbox { .. } => {
            let kept = log.dir().join(super::mbox::account::DIR);
            if !env.disk.exists(&kept)? {
                // It was lost; the log knows better.
                env.disk.create_dir_all_durable(&kept)?;
            }
            let files = MboxAccount::open(env, log, listeners, format, &options.mbox)?;
            Ok(files.map(|files| files as Arc<dyn Files>))
        }
        AccountFormat::Maildir { .. } => {
            // Where it was lost, the log knows better.
            env.disk.create_dir_all_durable(&log.dir().join(super::maildir::account::DIR))?;
            let files = MaildirAccount::open(env, log, listeners, format, options)?;
            Ok(files.map(|files| files as Arc<dyn Files>))
        }
    }
}

/// What an account's log is given before it is known whether the account has files; they may come and go.
#[derive(Debug, Default)]
pub(crate) struct ForeignSlot {
    files: RwLock<Option<Weak<dyn Files>>>,
}

impl ForeignSlot {
    /// From now on these are the files; none: there are none.
    pub(crate) fn set(&self, files: Option<&Arc<dyn Files>>) {
        *self.files.write().unwrap_or_else(PoisonError::into_inner) = files.map(Arc::downgrade);
    }

    fn files(&self) -> Result<Arc<dyn Files>> {
        let slot = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let files = slot.as_ref().and_then(Weak::upgrade);
        files.ok_or_else(|| Error::new(ErrorKind::Expunged, "the account's files are closed"))
    }
}

impl Foreign for ForeignSlot {
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
        self.files()?.header(id, message, out)
    }

    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.files()?.range(id, message, range, sink)
    }
}
