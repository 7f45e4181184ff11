//! Into the log: the bytes of foreign messages are read, read again, compared, and taken in.
//!
//! What is in the log already is skipped, so that an interrupted conversion goes on where it was. Until the format changes the account has
//! its files as before: what other programs deliver meanwhile is found, and taken in as well.

use std::sync::Arc;
use std::time::Duration;

use index::{ForeignMessage, PendingMessage};
use model::{EmailId, Error, ErrorKind, MailboxId, Result};

use super::phase::set_format;
use super::proof::{Place, Prover};
use super::{ConvertReport, Phase, ROUNDS_MAX, Watcher, discard, forget_expunged, invalid};
use crate::account::{Account, Held};
use crate::format::AccountFormat;
use crate::format::files::{Files, KeptFiles, Moment, Patience};

/// Octets that come into the log in one transaction, about.
const BATCH_BYTES: u64 = 4 << 20;
/// Messages that do, at most.
const BATCH_MESSAGES_MAX: usize = 2_000;

/// Takes everything in, compares and changes the format: to the store's own, and on the way to `to`.
pub(super) fn convert(
    account: &Account,
    to: &AccountFormat,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<()> {
    let inner = &account.inner;
    let files = inner.files().ok_or_else(|| invalid("the account has no files"))?;
    if !take_in_all(account, &*files, watcher, report)? {
        return Ok(());
    }
    let Some(mut prover) = Prover::run(account, &inner.state(), Some(Place::Files(&*files)), watcher, report)? else {
        return Ok(());
    };
    // Files that cannot hold a message byte for byte never had its bytes: it was in the log before.
    report.stayed.clear();
    let old = account.format()?;
    let (held, began) = last_round(account, &*files, watcher, report)?;
    let Some(mut held) = held else { return Ok(()) };
    prover.catch_up(account, &inner.state(), Some(Place::Files(&*files)), report)?;
    report.stayed.clear();
    discard::keep_maps(&*inner.env().disk, inner.log().dir(), &old)?;
    let phase = match to {
        AccountFormat::Native => Phase::Kept { old },
        // Where it is going next. What it comes from stays where it is.
        to => Phase::Filling { to: to.clone() },
    };
    inner.log().commit(|transaction| {
        set_format(&AccountFormat::Native, transaction)?;
        if *to != AccountFormat::Native {
            forget_expunged(transaction)?;
        }
        Phase::set(Some(&phase), transaction)
    })?;
    let next: Option<Arc<dyn Files>> = match to {
        AccountFormat::Native => Some(Arc::new(KeptFiles)),
        to => crate::format::files::open(inner.env(), &inner.log(), inner.listeners(), to, inner.options())?,
    };
    held.set_files(next);
    drop(held);
    report.held += inner.env().clock.monotonic().saturating_sub(began);
    report.proof = Some(prover.finish());
    inner.search().start_anew();
    Ok(())
}

/// Takes a conversion out of the log back, whether it is done or not: what others have put into the new files comes into the log, and the files go.
pub(super) fn back(
    account: &Account,
    made: &AccountFormat,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<()> {
    let inner = &account.inner;
    let files = inner.files().ok_or_else(|| invalid("the account has no files"))?;
    if !take_in_all(account, &*files, watcher, report)? {
        return Ok(());
    }
    let (held, began) = last_round(account, &*files, watcher, report)?;
    let Some(mut held) = held else { return Ok(()) };
    discard::keep_maps(&*inner.env().disk, inner.log().dir(), made)?;
    inner.log().commit(|transaction| {
        forget_expunged(transaction)?;
        set_format(&AccountFormat::Native, transaction)?;
        Phase::set(Some(&Phase::Discarding { old: made.clone() }), transaction)
    })?;
    held.set_files(None);
    drop(held);
    report.held += inner.env().clock.monotonic().saturating_sub(began);
    report.left = discard::settle(inner.env(), &inner.log())?;
    Ok(())
}

/// Takes in what came last, and returns with nobody let in any more and nothing left outside. `None`: whoever watched has ended it.
fn last_round<'a>(
    account: &'a Account,
    files: &dyn Files,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<(Option<Held<'a>>, Duration)> {
    let inner = &account.inner;
    for _ in 0..ROUNDS_MAX {
        // What was expunged leaves the files, if nobody has them just now; otherwise it stays known.
        for mailbox in inner.state().mailboxes() {
            match files.write_back(mailbox.id(), Moment::Close) {
                Err(error) if error.kind() != ErrorKind::InUse => return Err(error.context(mailbox.name())),
                _ => {}
            }
        }
        files.close();
        let held = inner.hold();
        let began = inner.env().clock.monotonic();
        refresh_all(account, files)?;
        let left = outside(account);
        if left.len() > BATCH_MESSAGES_MAX {
            // More than a moment's work.
            drop(held);
            if !take_in_all(account, files, watcher, report)? {
                return Ok((None, began));
            }
            continue;
        }
        take_in(account, &left, report)?;
        if outside(account).is_empty() {
            // What is known of the files is kept with them.
            files.close();
            return Ok((Some(held), began));
        }
    }
    Err(Error::new(ErrorKind::InUse, "mail keeps coming into the files faster than it can be taken in"))
}

fn refresh_all(account: &Account, files: &dyn Files) -> Result<()> {
    files.discover();
    let ids: Vec<MailboxId> = account.inner.state().mailboxes().map(|mailbox| mailbox.id()).collect();
    ids.into_iter().try_for_each(|id| files.refresh(id, Patience::Wait))
}

/// Messages with an entry that clients see whose bytes are not in the log.
fn outside(account: &Account) -> Vec<(EmailId, ForeignMessage)> {
    let state = account.inner.state();
    let mut found: Vec<(EmailId, ForeignMessage)> = state
        .mailboxes()
        .flat_map(|mailbox| mailbox.foreign(&state).map(|(row, known)| (row.email_id, known)).collect::<Vec<_>>())
        .collect();
    // A message that is in several mailboxes comes in once; files are read in the order in which entries were made.
    let mut seen = std::collections::HashSet::new();
    found.retain(|(id, _)| seen.insert(*id));
    found
}

/// Takes in everything that is there now; false: whoever watched has ended it.
fn take_in_all(
    account: &Account,
    files: &dyn Files,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<bool> {
    for _ in 0..ROUNDS_MAX {
        refresh_all(account, files)?;
        let messages = outside(account);
        if messages.is_empty() {
            break;
        }
        let total: u64 = messages.iter().map(|(_, known)| u64::from(known.octets)).sum();
        let mut done = 0;
        let mut rest = messages.as_slice();
        while !rest.is_empty() {
            if watcher(done, total).is_break() {
                report.was_stopped = true;
                return Ok(false);
            }
            let mut octets = 0;
            let is_enough = |(_, known): &(EmailId, ForeignMessage)| {
                octets += u64::from(known.octets);
                octets >= BATCH_BYTES
            };
            let count = rest.iter().position(is_enough).map_or(rest.len(), |last| last + 1).min(BATCH_MESSAGES_MAX);
            let (batch, after) = rest.split_at(count);
            take_in(account, batch, report)?;
            done += batch.iter().map(|(_, known)| u64::from(known.octets)).sum::<u64>();
            rest = after;
        }
    }
    Ok(true)
}

/// Takes messages in, in one transaction. What is gone meanwhile is left out.
fn take_in(account: &Account, messages: &[(EmailId, ForeignMessage)], report: &mut ConvertReport) -> Result<()> {
    let log = account.inner.log();
    let mut reader = log.reader();
    let mut pending: Vec<(EmailId, PendingMessage)> = Vec::with_capacity(messages.len());
    for (id, known) in messages {
        match read_twice(account, &mut reader, *id, known) {
            Ok(message) => pending.push((*id, message)),
            // Other programs may take it away at any time.
            Err(error) if error.kind() == ErrorKind::Expunged => {}
            Err(error) => return Err(error.context(format!("the message {id}"))),
        }
    }
    let (mut count, mut octets) = (0, 0);
    log.commit(|transaction| {
        for (id, message) in pending {
            if transaction.state().foreign(id).is_some() {
                (count, octets) = (count + 1, octets + u64::from(message.len()));
                transaction.bytes_here(id, message)?;
            }
        }
        Ok(())
    })?;
    report.moved += count;
    report.moved_bytes += octets;
    Ok(())
}

/// Reads a message for the log, and again to compare.
fn read_twice(
    account: &Account,
    reader: &mut index::Reader,
    id: EmailId,
    known: &ForeignMessage,
) -> Result<PendingMessage> {
    let mut writer = account.inner.log().message_writer();
    reader.range(id, 0..u64::MAX, &mut |piece| writer.write(piece))?;
    let message = writer.finish(known.header_octets)?;
    let (mut at, mut first) = (0u64, Vec::new());
    let differs = || Error::new(ErrorKind::Corrupt, "read twice, it was not the same");
    reader.range(id, 0..u64::MAX, &mut |piece| {
        first.resize(piece.len(), 0);
        message.read_at(at, &mut first).map_err(|_| differs())?;
        at += piece.len() as u64;
        if first == piece { Ok(()) } else { Err(differs()) }
    })?;
    if at == u64::from(message.len()) && message.len() == known.octets { Ok(message) } else { Err(differs()) }
}
