//! The files in which the messages of an account lie that other programs read and write as well: what the store asks of them, whatever their format.
//!
//! The principle is the same for all: the log follows the files, the files follow the log (`docs/decisions/0007-mbox.md`). A format that
//! implements [`Files`] is behind the same door as the store's own: sessions know nothing of it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use index::{Foreign, ForeignMessage, Log};
use model::{EmailId, Error, ErrorKind, MailboxId, MailboxName, Result};
use platform::Env;

use super::AccountFormat;
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

    /// Makes mailboxes of what others have put beside the files that are known. What cannot be looked at is left for later.
    fn discover(&self);

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
            let files = MboxAccount::open(env, log, listeners, format, &options.mbox)?;
            Ok(files.map(|files| files as Arc<dyn Files>))
        }
    }
}

/// What an account's log is given before it is known that the account has files.
#[derive(Debug, Default)]
pub(crate) struct ForeignSlot {
    files: OnceLock<Weak<dyn Files>>,
}

impl ForeignSlot {
    /// From now on these are the files.
    pub(crate) fn set(&self, files: &Arc<dyn Files>) {
        let _ = self.files.set(Arc::downgrade(files));
    }

    fn files(&self) -> Result<Arc<dyn Files>> {
        let files = self.files.get().and_then(Weak::upgrade);
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
