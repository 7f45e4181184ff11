//! Out of the log into files; and back into the files that an account had before.
//!
//! The files follow the log as those of any account: the account takes them up before they have anything. So whatever clients do meanwhile
//! comes into them as well, and nothing special happens when the conversion is interrupted: what is missing is added later.

use std::collections::{BTreeMap, HashSet};

use index::ForeignMessage;
use model::{EmailId, ErrorKind, MailboxId, Result};

use super::phase::set_format;
use super::proof::{Compared, Comparer, Place, Prover};
use super::{ConvertReport, Phase, ROUNDS_MAX, Watcher, invalid};
use crate::account::Account;
use crate::format::AccountFormat;
use crate::format::files::{self, Files, Moment, Patience};

/// Messages that leave the log in one transaction at most: each looks through all entries.
const GIVEN_UP_MAX: usize = 5_000;

/// Takes up the new files: from now on they follow.
pub(super) fn begin(account: &Account, to: &AccountFormat) -> Result<()> {
    let inner = &account.inner;
    let mut held = inner.hold();
    inner.log().commit(|transaction| Phase::set(Some(&Phase::Filling { to: to.clone() }), transaction))?;
    held.set_files(files::open(inner.env(), &inner.log(), inner.listeners(), to, inner.options())?);
    Ok(())
}

/// Fills the files, compares and changes the format.
pub(super) fn convert(
    account: &Account,
    to: &AccountFormat,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<()> {
    let inner = &account.inner;
    let files = inner.files().ok_or_else(|| invalid("the new files were not taken up"))?;
    fill(account, &*files, watcher, report)?;
    if report.was_stopped {
        return Ok(());
    }
    let Some(mut prover) = Prover::run(account, &inner.state(), Some(Place::Files(&*files)), watcher, report)? else {
        return Ok(());
    };
    for _ in 0..ROUNDS_MAX {
        if prover.is_current(&inner.state()) {
            break;
        }
        fill(account, &*files, watcher, report)?;
        prover.catch_up(account, &inner.state(), Some(Place::Files(&*files)), report)?;
    }
    // Most of it while everybody may go on.
    files.make_read_durable()?;
    let held = inner.hold();
    let began = inner.env().clock.monotonic();
    if !prover.is_current(&inner.state()) {
        fill(account, &*files, &mut |_, _| std::ops::ControlFlow::Continue(()), report)?;
        prover.catch_up(account, &inner.state(), Some(Place::Files(&*files)), report)?;
        files.make_read_durable()?;
    }
    inner.log().commit(|transaction| {
        set_format(to, transaction)?;
        Phase::set(Some(&Phase::Kept { old: AccountFormat::Native }), transaction)
    })?;
    drop(held);
    report.held += inner.env().clock.monotonic().saturating_sub(began);
    let proof = prover.finish();
    (report.moved, report.moved_bytes) = (proof.equal, proof.bytes);
    report.proof = Some(proof);
    Ok(())
}

/// Lets the files of all mailboxes follow.
fn fill(account: &Account, files: &dyn Files, watcher: &mut Watcher<'_>, report: &mut ConvertReport) -> Result<()> {
    let state = account.inner.state();
    let total = state.mailboxes().map(|mailbox| mailbox.octets()).sum();
    let mut done = 0;
    for mailbox in state.mailboxes() {
        if watcher(done, total).is_break() {
            report.was_stopped = true;
            return Ok(());
        }
        // What is there already, from before it was interrupted, is known then.
        files.refresh(mailbox.id(), Patience::Wait).map_err(|error| error.context(mailbox.name()))?;
        files.write_back(mailbox.id(), Moment::Convert).map_err(|error| error.context(mailbox.name()))?;
        done += mailbox.octets();
    }
    Ok(())
}

/// The log gives up the bytes of messages that are in files, byte for byte.
pub(super) fn give_up_bytes(account: &Account, watcher: &mut Watcher<'_>, report: &mut ConvertReport) -> Result<()> {
    let inner = &account.inner;
    let files = inner.files().ok_or_else(|| invalid("the account has no files"))?;
    fill(account, &*files, watcher, report)?;
    if report.was_stopped {
        return Ok(());
    }
    let state = inner.state();
    let total: u64 = state.mailboxes().map(|mailbox| mailbox.octets()).sum();
    // A message that is in several mailboxes has to be in the files of each.
    let mut good: BTreeMap<EmailId, ForeignMessage> = BTreeMap::new();
    let mut bad: HashSet<EmailId> = HashSet::new();
    let mut comparer = Comparer::new(account, Some(Place::Files(&*files)));
    let mut done = 0;
    for mailbox in state.mailboxes() {
        for (_, row) in mailbox.all_rows() {
            if watcher(done, total).is_break() {
                report.was_stopped = true;
                return Ok(());
            }
            done += u64::from(row.size);
            match comparer.compare(&state, mailbox.id(), &row)? {
                Compared::Equal(known) => drop(good.insert(row.email_id, known)),
                Compared::Differs => {
                    bad.insert(row.email_id);
                    report.stayed.push(super::Stayed { mailbox: mailbox.name().clone(), uid: row.uid });
                }
                Compared::Foreign | Compared::Gone => {}
            }
        }
    }
    files.make_read_durable()?;
    let given: Vec<(EmailId, ForeignMessage)> = good.into_iter().filter(|(id, _)| !bad.contains(id)).collect();
    for piece in given.chunks(GIVEN_UP_MAX) {
        let gone = inner.log().commit(|transaction| transaction.bytes_elsewhere(piece))?;
        report.moved += gone.len() as u64;
        let gone: HashSet<EmailId> = gone.into_iter().collect();
        let octets = piece.iter().filter(|(id, _)| gone.contains(id)).map(|(_, known)| u64::from(known.octets));
        report.moved_bytes += octets.sum::<u64>();
    }
    Ok(())
}

/// Takes up the files that the account had before it came into the log, lets them follow, and gives them their bytes back.
pub(super) fn back(
    account: &Account,
    old: &AccountFormat,
    watcher: &mut Watcher<'_>,
    report: &mut ConvertReport,
) -> Result<()> {
    let inner = &account.inner;
    for mailbox in inner.state().mailboxes() {
        files::check_name(old, mailbox.name()).map_err(|error| error.context(mailbox.name()))?;
    }
    files::prepare(&*inner.env().disk, inner.log().dir(), old)?;
    let began = inner.env().clock.monotonic();
    let mut held = inner.hold();
    // What was expunged meanwhile is still known, so that what the files have of it is taken for nothing new.
    let files = files::open(inner.env(), &inner.log(), inner.listeners(), old, inner.options())?;
    inner.log().commit(|transaction| {
        set_format(old, transaction)?;
        // As if it had never got further: what came into the log is to be given back.
        Phase::set(Some(&Phase::Filling { to: AccountFormat::Native }), transaction)
    })?;
    held.set_files(files);
    drop(held);
    report.held += inner.env().clock.monotonic().saturating_sub(began);
    let ids: Vec<MailboxId> = inner.state().mailboxes().map(|mailbox| mailbox.id()).collect();
    for id in ids {
        match account.refresh(id) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    give_up_bytes(account, watcher, report)?;
    if !report.was_stopped {
        inner.log().commit(|transaction| Phase::set(None, transaction))?;
    }
    Ok(())
}
