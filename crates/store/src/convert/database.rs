//! Into a database, and out of one.
//!
//! Both are the same three things: a copy is made where the account goes to, which follows it; it is compared; then the places change
//! while nobody changes the account. What is left behind is a copy that is up to date at that moment, so that going back is to let it
//! follow, and to change the places again.
//!
//! Invariants:
//! - At every moment one place can be written to. The last change of places is two durable steps, one in the directory of the account and
//!   one in the database; between them neither place can be written to, and who opens the account does the second ([`super::marker`]).
//! - The copy has every number that the account has: ids of messages and mailboxes, UIDs, modseqs, and what was expunged at which of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use index::{Budget, Journal, Log, News, PendingMessage, State, Transaction};
use model::{EmailId, Error, ErrorKind, Result};

use super::marker::{self, Way};
use super::phase::{self, Phase};
use super::proof::{Place, Prover};
use super::{ConvertReport, ROUNDS_MAX, Watcher, discard, invalid};
use crate::account::{Account, Ground, Home};
use crate::derived::MimeDerive;
use crate::format::files::{self, ForeignSlot};
use crate::format::{AccountFormat, account_format};
use crate::store::remove_tree;

/// Octets that are copied in one transaction, about.
const BATCH_BYTES: u64 = 4 << 20;
/// Messages that are, at most.
const BATCH_MESSAGES_MAX: usize = 1_000;
/// Begins the name of the directory of a [`shadow`].
const SHADOW_PREFIX: &str = "backup-";
/// So many messages may be left when nobody is let in any more.
const LAST_MESSAGES_MAX: usize = 500;

fn home(account: &Account) -> Result<&Home> {
    account.inner.home().ok_or_else(|| invalid("no database is configured for accounts"))
}

/// Where messages are copied to.
trait Target {
    fn end(&self) -> Result<u64>;
    fn put(&self, messages: Vec<(EmailId, PendingMessage)>) -> Result<()>;
}

impl Target for Arc<dyn crate::ClusterCopy> {
    fn end(&self) -> Result<u64> {
        crate::ClusterCopy::end(&**self)
    }

    fn put(&self, messages: Vec<(EmailId, PendingMessage)>) -> Result<()> {
        crate::ClusterCopy::put(&**self, &messages)
    }
}

impl Target for Arc<Log> {
    fn end(&self) -> Result<u64> {
        Ok(self.state().email_ids_end())
    }

    fn put(&self, messages: Vec<(EmailId, PendingMessage)>) -> Result<()> {
        self.take_in(messages)
    }
}

/// Copies the messages that the target has not, in the order of their ids; false: whoever watched has ended it.
fn fill(
    from: &Arc<Log>,
    state: &State,
    target: &dyn Target,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<bool> {
    let missing = state.messages(&(target.end()?..state.email_ids_end()));
    let total: u64 = missing.iter().map(|(_, size)| u64::from(*size)).sum();
    let (mut done, mut rest) = (0, missing.as_slice());
    let mut reader = from.reader();
    while !rest.is_empty() {
        if watcher(done, total).is_break() {
            report.was_stopped = true;
            return Ok(false);
        }
        let mut octets = 0;
        let is_enough = |(_, size): &(EmailId, u32)| {
            octets += u64::from(*size);
            octets >= BATCH_BYTES
        };
        let count = rest.iter().position(is_enough).map_or(rest.len(), |last| last + 1).min(BATCH_MESSAGES_MAX);
        let (batch, after) = rest.split_at(count);
        let mut messages = Vec::with_capacity(batch.len());
        for (id, _) in batch {
            match read(from, &mut reader, *id) {
                Ok(message) => {
                    (report.moved, report.moved_bytes) =
                        (report.moved + 1, report.moved_bytes + u64::from(message.len()));
                    messages.push((*id, message));
                }
                // It is gone meanwhile, or what could still be brought back is past its time.
                Err(error) if error.kind() == ErrorKind::Expunged => {}
                Err(error) => return Err(error.context(format!("the message {id}"))),
            }
        }
        if !messages.is_empty() {
            target.put(messages)?;
        }
        done += batch.iter().map(|(_, size)| u64::from(*size)).sum::<u64>();
        rest = after;
    }
    Ok(true)
}

fn read(log: &Arc<Log>, reader: &mut index::Reader, id: EmailId) -> Result<PendingMessage> {
    let header = reader.info(id)?.header_len;
    let mut writer = log.message_writer();
    reader.range(id, 0..u64::MAX, &mut |piece| writer.write(piece))?;
    writer.finish(header)
}

/// Rows without what is said of where the account is, but for this.
fn placed(mut rows: News, phase: Option<&Phase>) -> Result<News> {
    let is_of_place =
        |mailbox: &Option<_>, key: &str| mailbox.is_none() && (key == account_format::KEY || key == phase::KEY);
    rows.annotations.retain(|(mailbox, key, _)| !is_of_place(mailbox, key));
    // In rows of what has changed this takes away what was said before.
    let line = phase.map(Phase::line).transpose()?;
    if line.is_some() || !rows.is_whole {
        rows.annotations.push((None, phase::KEY.to_owned(), line.map(String::into_bytes)));
    }
    Ok(rows)
}

fn same(copy: &News, account: &News) -> Result<()> {
    match copy.difference(account) {
        None => Ok(()),
        Some(what) => {
            let text = format!("the copy of the account is not the account, they differ in: {what}");
            Err(Error::new(ErrorKind::Corrupt, text))
        }
    }
}

fn equal(report: &ConvertReport) -> Result<()> {
    match report.stayed.first() {
        None => Ok(()),
        Some(stayed) => {
            let text = format!("UID {} of {} is not the same in the copy", stayed.uid, stayed.mailbox);
            Err(Error::new(ErrorKind::Corrupt, text))
        }
    }
}

fn unwatched() -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |_, _| ControlFlow::Continue(())
}

/// Moves an account of the store's own format into the database; `phase` is what it says there of how it came.
pub(super) fn into(
    account: &Account,
    phase: Option<&Phase>,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<()> {
    let (inner, home) = (&account.inner, home(account)?);
    let log = inner.log();
    let gone = || Error::new(ErrorKind::Io, "the copy in the database is gone");
    let copy = home.cluster.copy(inner.name(), true)?.ok_or_else(gone)?;
    let journal = copy.journal();
    let place = Some(Place::Journal(&*journal));
    let mut prover = None;
    for _ in 0..ROUNDS_MAX {
        let state = inner.state();
        if !fill(&log, &state, &copy, watcher, report)? {
            return Ok(());
        }
        copy.put_rows(&placed(state.news(), phase)?)?;
        match &mut prover {
            None => match Prover::run(account, &state, place, watcher, report)? {
                Some(made) => prover = Some(made),
                None => return Ok(()),
            },
            Some(prover) => drop(prover.catch_up(account, &state, place, report)?),
        }
        let now = inner.state();
        let left = now.messages(&(copy.end()?..now.email_ids_end()));
        if left.len() <= LAST_MESSAGES_MAX {
            break;
        }
    }
    let Some(mut prover) = prover else { return Ok(()) };
    let mut held = inner.hold();
    let began = inner.env().clock.monotonic();
    // Nobody can change it any more. If something goes wrong from here on, it is opened anew, where it is then.
    log.close()?;
    let state = inner.state();
    fill(&log, &state, &copy, &mut unwatched(), report)?;
    let rows = placed(state.news(), phase)?;
    copy.put_rows(&rows)?;
    prover.catch_up(account, &state, place, report)?;
    equal(report)?;
    same(&copy.rows()?, &rows)?;
    marker::set(&*inner.env().disk, &home.dir, Way::Leaving)?;
    home.cluster.publish(inner.name())?;
    let journal = home.cluster.find(inner.name())?.ok_or_else(gone)?;
    let ground = in_database(account, home, journal)?;
    inner.move_to(&mut held, ground, None);
    drop(held);
    report.held += inner.env().clock.monotonic().saturating_sub(began);
    report.proof = Some(prover.finish());
    Ok(())
}

fn in_database(account: &Account, home: &Home, journal: Arc<dyn Journal>) -> Result<Ground> {
    let (env, options) = (account.inner.env(), account.inner.options().log.clone());
    let log = Log::open_on(env, &home.cache_dir, options, Some(Arc::new(MimeDerive)), journal)?;
    Ok(Ground::new(env, log, Arc::default()))
}

/// Moves an account out of the database into a log of its own; `phase` is what it says there. When it is on its way into files, it takes
/// them up.
pub(super) fn out_of(
    account: &Account,
    phase: Option<&Phase>,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<()> {
    let (inner, home) = (&account.inner, home(account)?);
    let (env, shared) = (inner.env(), inner.log());
    let disk = &*env.disk;
    let gone = || Error::new(ErrorKind::NotFound, "the account is no longer in the database");
    let journal = home.cluster.find(inner.name())?.ok_or_else(gone)?;
    let making = home.dir.with_file_name(format!(".new-{:016x}", env.random.u64()));
    marker::begin(disk, &home.dir, &making)?;
    let foreign = Arc::<ForeignSlot>::default();
    let slot = Some(Arc::clone(&foreign) as Arc<dyn index::Foreign>);
    let log = Log::open(env, &home.dir, inner.options().log.clone(), Some(Arc::new(MimeDerive)), slot)?;
    if let Some(Phase::Filling { to }) = phase {
        discard::forget(disk, &home.dir, to)?;
        files::prepare(disk, &home.dir, to)?;
    }
    let result = follow_out(account, home, &shared, &*journal, &log, phase, watcher, report);
    let Ok(Some((mut held, prover, began))) = result else {
        // What is there already is found again.
        log.close()?;
        return result.map(drop);
    };
    let files = match phase {
        Some(Phase::Filling { to }) => files::open(env, &log, inner.listeners(), to, inner.options())
            .inspect_err(|_| drop((shared.close(), log.close())))?,
        _ => None,
    };
    inner.move_to(&mut held, Ground::new(env, log, foreign), files);
    drop(held);
    report.held += env.clock.monotonic().saturating_sub(began);
    report.proof = Some(prover.finish());
    // There is nothing to write any more, and nobody to hand it to.
    let _ = shared.close();
    Ok(())
}

type Left<'a> = (crate::account::Held<'a>, Prover, std::time::Duration);

/// Until the account is in the directory; `None`: whoever watched has ended it.
#[expect(clippy::too_many_arguments, reason = "both places, and who is told")]
fn follow_out<'a>(
    account: &'a Account,
    home: &Home,
    shared: &Arc<Log>,
    journal: &dyn Journal,
    log: &Arc<Log>,
    phase: Option<&Phase>,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<Option<Left<'a>>> {
    let inner = &account.inner;
    let Some(state) = follow(shared, journal, log, phase, watcher, report)? else { return Ok(None) };
    let place = Some(Place::Log(log));
    let Some(mut prover) = Prover::run(account, &state, place, watcher, report)? else { return Ok(None) };
    for _ in 0..ROUNDS_MAX {
        let Some(state) = follow(shared, journal, log, phase, watcher, report)? else { return Ok(None) };
        prover.catch_up(account, &state, place, report)?;
        // The node that may write has less to fear from the others.
        shared.transact(|_| Ok(()))?.1.wait()?;
        let held = inner.hold();
        let began = inner.env().clock.monotonic();
        shared.flush()?;
        let Some(state) = follow(shared, journal, log, phase, &mut unwatched(), report)? else { return Ok(None) };
        prover.catch_up(account, &state, place, report)?;
        equal(report)?;
        let last = shared.state();
        // Another node may have been in between.
        let is_up_to_date = last.modseq() == state.modseq();
        if is_up_to_date {
            same(&placed(state.news(), phase)?, &placed(last.news(), phase)?)?;
        }
        if is_up_to_date && home.cluster.retire(inner.name(), last.modseq())? {
            // From here on it is nowhere else: whoever had it has to open it anew if this fails.
            marker::remove(&*inner.env().disk, &home.dir).inspect_err(|_| drop(shared.close()))?;
            return Ok(Some((held, prover, began)));
        }
        drop(held);
        report.held += inner.env().clock.monotonic().saturating_sub(began);
    }
    Err(Error::new(ErrorKind::InUse, "other nodes keep changing the account; it can be gone on with later"))
}

/// Brings the log up to date, and gives what it has then; `None`: whoever watched has ended it.
fn follow(
    shared: &Arc<Log>,
    journal: &dyn Journal,
    log: &Arc<Log>,
    phase: Option<&Phase>,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<Option<Arc<State>>> {
    if let Some(news) = journal.news(log.state().modseq())? {
        // Then this node knows at least what the news say.
        shared.catch_up()?;
        if !fill(shared, &shared.state(), log, watcher, report)? {
            return Ok(None);
        }
        log.take_over(&placed(news, phase)?)?;
    }
    Ok(Some(log.state()))
}

/// A log on this node that has everything that an account in the database has now: what a backup is made of. It is kept, and follows with the
/// next one; it may be deleted. `None`: whoever watched has ended it.
pub(crate) fn shadow(account: &Account, watcher: &mut Watcher<'_>) -> Result<Option<Arc<Log>>> {
    let (inner, home) = (&account.inner, home(account)?);
    let (env, shared) = (inner.env(), inner.log());
    let disk = &*env.disk;
    let gone = || Error::new(ErrorKind::NotFound, "the account is no longer in the database");
    let journal = home.cluster.find(inner.name())?.ok_or_else(gone)?;
    // One of another history cannot follow.
    let name = format!("{SHADOW_PREFIX}{:08x}", journal.incarnation());
    for entry in disk.list(&home.cache_dir)? {
        if entry.name.to_str().is_some_and(|other| other.starts_with(SHADOW_PREFIX) && other != name) {
            remove_tree(disk, &home.cache_dir.join(&entry.name))?;
        }
    }
    let dir = home.cache_dir.join(name);
    disk.create_dir_all_durable(&dir)?;
    let log = Log::open(env, &dir, inner.options().log.clone(), Some(Arc::new(MimeDerive)), None)?;
    if follow(&shared, &*journal, &log, None, watcher, &mut ConvertReport::default())?.is_none() {
        return Ok(None);
    }
    // Segments are saved once, tails each time.
    while log.maintain(Budget { bytes: BATCH_BYTES })?.is_more {}
    Ok(Some(log))
}

/// Gives up the place where the account was before it came into the database.
pub(super) fn drop_directory(account: &Account) -> Result<()> {
    let (home, disk) = (home(account)?, &*account.inner.env().disk);
    if marker::way(disk, &home.dir)?.is_none() {
        return if disk.exists(&home.dir)? { Err(invalid("the account's directory is in use")) } else { Ok(()) };
    }
    let doomed = home.dir.with_file_name(format!(".deleted-{:016x}", account.inner.env().random.u64()));
    disk.rename(&home.dir, &doomed)?;
    disk.sync_dir(platform::parent_of(&home.dir))?;
    remove_tree(disk, &doomed)
}

/// Gives up what the account has in the database while it is not there.
pub(super) fn drop_copy(account: &Account) -> Result<()> {
    home(account)?.cluster.drop_copy(account.inner.name())
}

/// Whether the old place of an account that came into the database is on this node.
pub(super) fn has_directory(account: &Account) -> Result<bool> {
    Ok(marker::way(&*account.inner.env().disk, &home(account)?.dir)?.is_some())
}

/// Whether an account in files, or in the store's own format, can go into a database.
pub(super) fn check(account: &Account) -> Result<()> {
    home(account).map(drop)
}

/// Notes how far it is.
pub(super) fn note(account: &Account, phase: Option<&Phase>) -> Result<()> {
    account.inner.log().commit(|transaction: &mut Transaction| Phase::set(phase, transaction))
}

/// What an account that goes out says where it is then.
pub(super) fn phase_out(to: &AccountFormat) -> Phase {
    match to {
        AccountFormat::Native => Phase::Kept { old: AccountFormat::Sql },
        to => Phase::Filling { to: to.clone() },
    }
}
