//! Messages of a mailbox of a snapshot into a mailbox of an account: those that are missing there.
//!
//! Two messages are the same when size, checksum and internal date are. A mailbox that has fewer of them than the snapshot gets the rest.

use std::collections::HashMap;
use std::sync::Arc;

use index::{Log, Mailbox, NewEntry, Reader, Row, State, Transaction};
use model::{ErrorKind, MailboxId, MailboxName, Result, SpecialUse, Uid, UidSet};

use super::Listener;
use super::restore::{MODSEQS_SKIPPED, RestoreReport, after_skipped};
use crate::account::{Account, FlagNames};
use crate::import::flags_as_far_as_possible;

/// A batch is committed when it has so many messages, or so many octets.
const BATCH_MESSAGES: usize = 2_000;
const BATCH_BYTES: u64 = 8 << 20;

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Where they were.
    Same,
    /// Into another mailbox, with other UIDs.
    Beside(MailboxName),
}

/// A mailbox that is ready for messages.
#[derive(Clone, Copy, Debug)]
struct Ready {
    id: MailboxId,
    /// It has the UIDVALIDITY of the snapshot.
    keeps_uids: bool,
    /// It has given fewer UIDs than the mailbox of the snapshot, which it once was: it is set back.
    is_behind: bool,
}

/// A message on its way.
struct Waiting {
    row: Row,
    flags: FlagNames,
    message: Arc<index::PendingMessage>,
}

/// Brings mailboxes back, one after another.
pub(super) struct Merge<'a> {
    pub(super) from: &'a Arc<Log>,
    pub(super) account: &'a Account,
    pub(super) report: &'a mut RestoreReport,
}

/// What a message is known by.
type Key = (u32, u32, i64);

/// The checksum of a message that lies in a file is made here: the log has none of all its octets.
fn key(reader: &mut Reader, state: &State, row: &Row) -> Result<Key> {
    let info = reader.info(row.email_id)?;
    let mut crc = info.crc;
    if state.foreign(row.email_id).is_some() {
        crc = 0;
        reader.range(row.email_id, 0..u64::MAX, &mut |piece| {
            crc = crc32c::crc32c_append(crc, piece);
            Ok(())
        })?;
    }
    Ok((info.len, crc, row.internal_date.unix_seconds))
}

impl Merge<'_> {
    /// Brings back what is missing of `mailbox`, or of its entries `wanted`, in the order of the UIDs.
    pub(super) fn mailbox(
        &mut self,
        mailbox: &Mailbox,
        wanted: Option<&UidSet>,
        target: &Target,
        listener: Listener<'_>,
    ) -> Result<()> {
        let ready = self.prepare(mailbox, target)?;
        let mut present = self.present(ready.id)?;
        let (mut reader, source) = (self.from.reader(), self.from.state());
        let (mut batch, mut bytes, mut done) = (Vec::new(), 0, 0u64);
        for (_, row) in mailbox.all_rows().filter(|(_, row)| wanted.is_none_or(|uids| uids.contains_uid(row.uid))) {
            match key(&mut reader, &source, &row).map(|key| present.get_mut(&key).filter(|count| **count > 0)) {
                Ok(Some(count)) => {
                    *count -= 1;
                    self.report.already_there += 1;
                }
                Ok(None) => match self.copy(&mut reader, &row, mailbox) {
                    Ok(waiting) => {
                        bytes += u64::from(row.size);
                        batch.push(waiting);
                    }
                    Err(error) if is_damage(error.kind()) => self.note(mailbox, row.uid, &error),
                    Err(error) => return Err(error),
                },
                Err(error) if is_damage(error.kind()) => self.note(mailbox, row.uid, &error),
                Err(error) => return Err(error),
            }
            done += u64::from(row.size);
            if batch.len() >= BATCH_MESSAGES || bytes >= BATCH_BYTES {
                self.add(ready, std::mem::take(&mut batch), None)?;
                bytes = 0;
                if listener(done, mailbox.octets()).is_break() {
                    self.report.was_stopped = true;
                    return Ok(());
                }
            }
        }
        // With the last messages, so that whatever interrupts this, a second run finds the mailbox behind or in order.
        let skip_to = mailbox.uidnext().and_then(after_skipped).filter(|_| ready.is_behind);
        self.add(ready, batch, skip_to)
    }

    fn note(&mut self, mailbox: &Mailbox, uid: Uid, error: &model::Error) {
        self.report.damaged.push(format!("{} UID {uid}: {error}", mailbox.name()));
    }

    /// How often each message is in a mailbox of the account. One that is damaged there counts as missing.
    fn present(&self, id: MailboxId) -> Result<HashMap<Key, u32>> {
        let mut present = HashMap::new();
        let state = self.account.inner.state();
        let mut reader = self.account.inner.log().reader();
        for (_, row) in state.mailbox(id).iter().flat_map(|mailbox| mailbox.all_rows()) {
            match key(&mut reader, &state, &row) {
                Ok(key) => *present.entry(key).or_insert(0) += 1,
                Err(error) if is_damage(error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(present)
    }

    /// Makes the mailbox ready. One that is not there, or that never had a message, becomes the one that it was: with its UIDVALIDITY.
    fn prepare(&self, source: &Mailbox, target: &Target) -> Result<Ready> {
        let modseq_there = self.from.state().modseq();
        let subscribed = self.from.state().subscriptions().contains(source.name());
        self.account.commit(|transaction| {
            if let Target::Beside(name) = target {
                let id = match named(transaction, name) {
                    Some(id) => id,
                    None => {
                        crate::mailboxes::create_parents(transaction, name)?;
                        transaction.create_mailbox(name, &[])?
                    }
                };
                return Ok(Ready { id, keeps_uids: false, is_behind: false });
            };
            let modseq = transaction.state().modseq();
            if modseq < modseq_there {
                transaction.skip_modseqs((modseq_there.0 - modseq.0).saturating_add(MODSEQS_SKIPPED));
            }
            let name = source.name();
            let found = named(transaction, name);
            let id = match found {
                Some(id) if transaction.mailbox(id)?.uidnext() != Some(Uid::FIRST) => id,
                found => {
                    let mut uses: Vec<SpecialUse> = free_uses(transaction, source);
                    if let Some(id) = found {
                        // UIDs were never given: nobody can miss the mailbox that it was.
                        uses.extend(transaction.mailbox(id)?.special_uses());
                        transaction.delete_mailbox(id)?;
                    }
                    uses.sort_unstable();
                    uses.dedup();
                    crate::mailboxes::create_parents(transaction, name)?;
                    transaction.create_mailbox_with(name, &uses, source.uidvalidity().get())?
                }
            };
            if subscribed {
                transaction.subscribe(name)?;
            }
            let now = transaction.mailbox(id)?;
            let keeps_uids = now.uidvalidity() == source.uidvalidity();
            let is_behind =
                keeps_uids && now.uidnext().is_some_and(|next| source.uidnext().is_none_or(|old| next < old));
            Ok(Ready { id, keeps_uids, is_behind })
        })
    }

    /// Reads a message of the snapshot; it has been compared with its checksum.
    fn copy(&self, reader: &mut Reader, row: &Row, source: &Mailbox) -> Result<Waiting> {
        let info = reader.info(row.email_id)?;
        let mut writer = self.account.inner.log().message_writer();
        reader.range(row.email_id, 0..u64::MAX, &mut |piece| writer.write(piece))?;
        let keywords = row.flags.keyword_indexes().filter_map(|index| source.keywords().name(index).cloned());
        let flags = FlagNames { system: row.flags.system_flags().collect(), keywords: keywords.collect() };
        Ok(Waiting { row: *row, flags, message: Arc::new(writer.finish(info.header_len)?) })
    }

    /// Adds messages, all or none.
    fn add(&mut self, ready: Ready, batch: Vec<Waiting>, skip_to: Option<Uid>) -> Result<()> {
        let Ready { id, keeps_uids, .. } = ready;
        let (restored, other_uids, lost_keywords) = self.account.commit(|transaction| {
            let (mut restored, mut other_uids, mut lost_keywords) = (0, 0, 0);
            for Waiting { row, flags, message } in &batch {
                let (flags, has_lost) = flags_as_far_as_possible(transaction, id, flags)?;
                let is_free = transaction.mailbox(id)?.uidnext().is_some_and(|next| next <= row.uid);
                let uid = Some(row.uid).filter(|_| keeps_uids && is_free);
                let email_id = transaction.add_message(Arc::clone(message))?;
                let save_date = Some(row.save_date);
                let entry = NewEntry { uid, flags, internal_date: row.internal_date, save_date };
                transaction.add_entry(id, email_id, &entry)?;
                restored += 1;
                other_uids += u64::from(keeps_uids && uid.is_none());
                lost_keywords += u64::from(has_lost);
            }
            skip_to.map_or(Ok(()), |uid| transaction.skip_uids(id, uid))?;
            Ok((restored, other_uids, lost_keywords))
        })?;
        self.report.restored += restored;
        self.report.other_uids += other_uids;
        self.report.lost_keywords += lost_keywords;
        Ok(())
    }
}

fn named(transaction: &Transaction, name: &MailboxName) -> Option<MailboxId> {
    transaction.state().mailbox_named(name).map(|mailbox| mailbox.id())
}

/// What a mailbox was for, as far as no other one is that now.
fn free_uses(transaction: &Transaction, source: &Mailbox) -> Vec<SpecialUse> {
    let is_taken = |one: &SpecialUse| {
        transaction.state().mailboxes().any(|mailbox| mailbox.special_uses().any(|use_| use_ == *one))
    };
    source.special_uses().filter(|one| !is_taken(one)).collect()
}

/// What concerns one message only.
fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Expunged)
}
