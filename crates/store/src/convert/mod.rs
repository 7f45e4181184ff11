//! Moving an account from one format into another while it is used.
//!
//! The log of an account is the same in every format; only where the bytes of messages lie differs. So a conversion rewrites nothing: UIDs,
//! UIDVALIDITY, flags, dates and modseqs cannot change, and a client that synchronises notices nothing. What moves is bytes.
//!
//! - **Out of the log into files** (`outwards`): the account takes up the new files as if they had been its own for ever, and they
//!   follow the log as those of any account do. When they have everything, and what was read back from them was compared, the account's format
//!   changes. The log keeps the bytes until [`finish`].
//! - **Into the log** (`inwards`): the bytes of each foreign message are read twice, compared and taken into the log. When none is left, the
//!   format changes. The files stay as they are until [`finish`].
//! - Between two kinds of files: both, one after the other.
//! - **Into a database and out of one** (`database`): another store for the whole account, which follows it until the places change.
//!
//! Invariants:
//! - At every moment the account can be opened and used, and every message can be read: a conversion that was killed goes on where it was, or
//!   is taken back ([`roll_back`]).
//! - What a message's bytes are never depends on the format: one that files cannot hold byte for byte is served from the log for ever.
//! - The format changes in one commit, while nobody else changes anything; what was not compared before is compared then.

mod database;
mod discard;
mod inwards;
pub(crate) mod marker;
mod outwards;
mod phase;
mod proof;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use index::{Log, Transaction};
use model::{Error, ErrorKind, MailboxName, Result, Uid, UidSet};
use platform::{Disk, Env};

pub(crate) use self::database::shadow;
pub use self::phase::Phase;
use self::phase::set_format;
pub use self::proof::Proof;
use crate::Options;
use crate::account::Account;
use crate::format::AccountFormat;
use crate::format::account_format;
use crate::format::files::{self, Files, KeptFiles};
use crate::listeners::Listeners;

/// How often the last changes are followed before nobody is let in any more.
const ROUNDS_MAX: usize = 8;

/// Called again and again with what is done and of how much; `Break` ends the conversion where it is.
pub type Watcher<'w> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'w;

/// A message whose bytes its format cannot hold: they stay in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stayed {
    /// Its mailbox.
    pub mailbox: MailboxName,
    /// Its entry there.
    pub uid: Uid,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct ConvertReport {
    /// The format that the account is in now.
    pub format: AccountFormat,
    /// What is left to be done, or can be taken back.
    pub phase: Option<Phase>,
    /// Messages whose bytes were moved by this run, and their octets.
    pub moved: u64,
    /// Their octets.
    pub moved_bytes: u64,
    /// What was compared before the format changed.
    pub proof: Option<Proof>,
    /// Messages that the new format cannot hold byte for byte.
    pub stayed: Vec<Stayed>,
    /// How long nobody could change the account.
    pub held: Duration,
    /// Files of the old store that were not removed: somebody has changed them.
    pub left: Vec<PathBuf>,
    /// Whoever watched has ended it.
    pub was_stopped: bool,
}

/// Takes up the files of an account that is opened, as far as its conversion is.
pub(crate) fn open_files(
    env: &Env,
    log: &Arc<Log>,
    listeners: &Arc<Listeners>,
    options: &Options,
) -> Result<Option<Arc<dyn Files>>> {
    if log.is_shared() {
        return Ok(None);
    }
    // What cannot be removed just now is removed at the next opening.
    let _later = discard::settle(env, log);
    let state = log.state();
    let format = AccountFormat::parse(state.annotation(account_format::KEY))?;
    let open = |format: &AccountFormat| files::open(env, log, listeners, format, options);
    match (&format, Phase::of(&state)?) {
        (AccountFormat::Native, Some(Phase::Filling { to })) => open(&to),
        (AccountFormat::Native, Some(Phase::Kept { old: AccountFormat::Sql })) => Ok(None),
        (AccountFormat::Native, Some(Phase::Kept { .. })) => Ok(Some(Arc::new(KeptFiles))),
        _ => open(&format),
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, what)
}

/// Where the conversion of an account stands.
pub fn phase(account: &Account) -> Result<Option<Phase>> {
    Phase::of(&account.inner.state())
}

/// Moves an account into another format; goes on with a conversion that was interrupted. Sessions go on meanwhile. [`ErrorKind::Invalid`]:
/// it is in that format, another conversion is under way, or there is something where the new files would be. [`ErrorKind::InUse`]: another
/// program has a file that is needed; it can be gone on with later.
pub fn convert(account: &Account, to: &AccountFormat, watcher: &mut Watcher<'_>) -> Result<ConvertReport> {
    let from = account.format()?;
    discard::settle(account.inner.env(), &account.inner.log())?;
    match phase(account)? {
        None if from == *to => return Err(invalid("the account is in that format already")),
        None => begin(account, &from, to)?,
        Some(Phase::Filling { to: begun }) if begun == *to => {}
        Some(Phase::Filling { .. }) => {
            return Err(invalid("a conversion into another format is under way: it can be rolled back"));
        }
        Some(Phase::Kept { .. }) if from == *to => {
            return Err(invalid("the account was converted already: that can be finished, or rolled back"));
        }
        Some(Phase::Kept { .. } | Phase::Discarding { .. }) => {
            return Err(invalid("an earlier conversion has to be finished or rolled back first"));
        }
    }
    let mut report = ConvertReport { format: from.clone(), ..ConvertReport::default() };
    match from {
        AccountFormat::Native => {}
        AccountFormat::Sql => database::out_of(account, Some(&database::phase_out(to)), watcher, &mut report)?,
        _ => inwards::convert(account, to, watcher, &mut report)?,
    }
    match to {
        _ if report.was_stopped => {}
        AccountFormat::Native => {}
        AccountFormat::Sql => {
            let kept = Phase::Kept { old: AccountFormat::Native };
            database::into(account, Some(&kept), watcher, &mut report)?;
        }
        to => {
            outwards::convert(account, to, watcher, &mut report)?;
            if from == AccountFormat::Sql && !report.was_stopped {
                // What can be gone back to is the log.
                database::drop_copy(account)?;
            }
        }
    }
    (report.format, report.phase) = (account.format()?, phase(account)?);
    Ok(report)
}

/// Notes in the log what is to be done.
fn begin(account: &Account, from: &AccountFormat, to: &AccountFormat) -> Result<()> {
    let (inner, disk) = (&account.inner, &*account.inner.env().disk);
    // What cannot be written as a line is refused before anything is made.
    to.to_line()?;
    if *from == AccountFormat::Sql || *to == AccountFormat::Sql {
        database::check(account)?;
    }
    if !matches!(to, AccountFormat::Native | AccountFormat::Sql) {
        if let Some(taken) = files::taken(disk, to)? {
            return Err(invalid(format!("there is something in {} already", taken.display())));
        }
        for mailbox in inner.state().mailboxes() {
            files::check_name(to, mailbox.name()).map_err(|error| error.context(mailbox.name()))?;
        }
    }
    if *from != AccountFormat::Sql {
        if *to != AccountFormat::Native {
            discard::forget(disk, inner.log().dir(), to)?;
        }
        files::prepare(disk, inner.log().dir(), to)?;
    }
    if *from == AccountFormat::Native && *to != AccountFormat::Sql {
        return outwards::begin(account, to);
    }
    database::note(account, Some(&Phase::Filling { to: to.clone() }))
}

/// Ends a conversion that is done: what the account was before is given up. What was expunged before can be brought back no more if it was in
/// files. [`ErrorKind::Invalid`]: there is nothing to finish.
pub fn finish(account: &Account, watcher: &mut Watcher<'_>) -> Result<ConvertReport> {
    let mut report = ConvertReport { format: account.format()?, ..ConvertReport::default() };
    let old = match phase(account)? {
        Some(Phase::Kept { old }) => old,
        Some(Phase::Discarding { .. }) => {
            report.left = discard::settle(account.inner.env(), &account.inner.log())?;
            return Ok(report);
        }
        None | Some(Phase::Filling { .. }) => return Err(invalid("there is no conversion to finish")),
    };
    if report.format == AccountFormat::Sql || old == AccountFormat::Sql {
        match old {
            AccountFormat::Sql => database::drop_copy(account)?,
            _ => database::drop_directory(account)?,
        }
        database::note(account, None)?;
    } else if old == AccountFormat::Native {
        outwards::give_up_bytes(account, watcher, &mut report)?;
        if !report.was_stopped {
            account.inner.log().commit(|transaction| Phase::set(None, transaction))?;
        }
    } else {
        let inner = &account.inner;
        let mut held = inner.hold();
        inner.log().commit(|transaction| {
            forget_expunged(transaction)?;
            Phase::set(Some(&Phase::Discarding { old }), transaction)
        })?;
        held.set_files(None);
        drop(held);
        report.left = discard::settle(inner.env(), &inner.log())?;
    }
    report.phase = phase(account)?;
    Ok(report)
}

/// Takes a conversion back: the account is in its old format again, with everything that happened since. [`ErrorKind::Invalid`]: there is
/// nothing to take back.
pub fn roll_back(account: &Account, watcher: &mut Watcher<'_>) -> Result<ConvertReport> {
    let format = account.format()?;
    let mut report = ConvertReport { format: format.clone(), ..ConvertReport::default() };
    match (phase(account)?, &format) {
        (None, _) => return Err(invalid("there is no conversion to roll back")),
        (Some(Phase::Discarding { .. }), _) => {
            report.left = discard::settle(account.inner.env(), &account.inner.log())?;
        }
        (Some(Phase::Filling { .. }), AccountFormat::Sql) => {
            database::drop_directory(account)?;
            database::note(account, None)?;
        }
        (Some(Phase::Filling { to: AccountFormat::Sql }), AccountFormat::Native) => {
            database::drop_copy(account)?;
            database::note(account, None)?;
        }
        (Some(Phase::Kept { .. }), AccountFormat::Sql) => {
            if !database::has_directory(account)? {
                return Err(invalid("what the account was before is on another node, or given up"));
            }
            database::out_of(account, None, watcher, &mut report)?;
            if !report.was_stopped {
                // The log still says that the account is on its way into the database.
                database::drop_copy(account)?;
                database::note(account, None)?;
            }
        }
        (Some(Phase::Kept { old: AccountFormat::Sql }), AccountFormat::Native) => {
            database::into(account, None, watcher, &mut report)?;
            if !report.was_stopped {
                database::drop_directory(account)?;
                database::note(account, None)?;
            }
        }
        (Some(Phase::Filling { to }), AccountFormat::Native) => inwards::back(account, &to, watcher, &mut report)?,
        (Some(Phase::Kept { old: AccountFormat::Native }), made) => inwards::back(account, made, watcher, &mut report)?,
        // What came into the log is given back; nothing else was done.
        (Some(Phase::Filling { .. }), _) => {
            outwards::give_up_bytes(account, watcher, &mut report)?;
            if !report.was_stopped {
                account.inner.log().commit(|transaction| Phase::set(None, transaction))?;
            }
        }
        (Some(Phase::Kept { old }), _) => outwards::back(account, &old, watcher, &mut report)?,
    }
    (report.format, report.phase) = (account.format()?, phase(account)?);
    Ok(report)
}

/// Lets go of what was expunged and was still in files.
fn forget_expunged(transaction: &mut Transaction) -> Result<()> {
    let state = transaction.state().clone();
    for mailbox in state.all_mailboxes().filter(|mailbox| mailbox.name().is_hidden()) {
        transaction.expunge(mailbox.id(), &UidSet::range(1, u32::MAX))?;
    }
    Ok(())
}

/// Makes an account one of the store's own format, whatever it was: of a copy, beside which there are no files.
pub(crate) fn forget_files(transaction: &mut Transaction) -> Result<()> {
    forget_expunged(transaction)?;
    set_format(&AccountFormat::Native, transaction)?;
    Phase::set(None, transaction)
}

/// Whether a directory has anything in it.
pub(crate) fn is_empty_dir(disk: &dyn Disk, path: &Path) -> Result<bool> {
    match disk.list(path) {
        Ok(entries) => Ok(entries.is_empty()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::from(error).context(path.display())),
    }
}
