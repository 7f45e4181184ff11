//! What one change of an account can do to entries. What it can do to mailboxes is in `mailboxes`; the wait for its durability in `pending`.
//!
//! Invariant: everything that one [`Edit`] did becomes durable at once or not at all; what it read to decide was decided in the same
//! transaction.

use std::sync::Arc;

use index::{NewEntry, Transaction};
use model::{DateTime, Error, ErrorKind, FlagChange, Flags, MailboxId, MailboxName, ModSeq, Result, Uid, UidSet};

use crate::account::{Account, Appended, Copied, Expunged, FlagNames, NewMessage, StoreFlags, StoreMode, Stored};
use crate::format::files::Files;

/// A change in the making; see [`Account::begin`].
pub struct Edit<'a> {
    pub(crate) transaction: &'a mut Transaction,
    /// The account's messages lie in files that others read, too.
    pub(crate) files: Option<&'a dyn Files>,
    pub(crate) effects: Effects,
}

/// What a change means for the files of an account.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Messages came into these mailboxes.
    pub(crate) filled: Vec<MailboxId>,
    /// Entries of these mailboxes have other flags, or were expunged.
    pub(crate) changed: Vec<MailboxId>,
    /// Mailboxes were made, renamed or deleted.
    pub(crate) names: bool,
}

impl Edit<'_> {
    /// Adds messages to a mailbox (RFC 3502).
    pub fn append(&mut self, mailbox: MailboxId, messages: &[NewMessage]) -> Result<Appended> {
        let uid_validity = self.transaction.mailbox(mailbox)?.uidvalidity();
        self.fill(mailbox)?;
        let mut entries = Vec::with_capacity(messages.len());
        for new in messages {
            let flags = flags_of(self.transaction, mailbox, &new.flags)?;
            let email_id = self.transaction.add_message(Arc::clone(&new.message.inner))?;
            let internal_date = new.internal_date.unwrap_or(DateTime::utc(self.transaction.now()));
            let entry = NewEntry { uid: None, flags, internal_date, save_date: None };
            entries.push((self.transaction.add_entry(mailbox, email_id, &entry)?, email_id));
        }
        Ok(Appended { uid_validity, entries })
    }

    /// Copies entries of `from` that are still there to the end of `to`, with flags, keywords and internal dates; all or none.
    pub fn copy(&mut self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        self.fill(to)?;
        let copied = self.transaction.copy(from, uids, to)?;
        pairs(self.transaction, to, &copied, None)
    }

    /// Copies, and expunges what was copied (RFC 6851).
    pub fn move_entries(&mut self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        self.fill(to)?;
        let copied = self.transaction.copy(from, uids, to)?;
        self.take_out(from, &copied.source)?;
        let modseq = (!copied.source.is_empty()).then(|| self.transaction.modseq());
        pairs(self.transaction, to, &copied, modseq)
    }

    /// Appends to `to` and expunges `uid` of `from` (RFC 8508). [`ErrorKind::Expunged`] when `uid` is gone.
    pub fn replace(&mut self, from: MailboxId, uid: Uid, to: MailboxId, message: &NewMessage) -> Result<Appended> {
        let appended = self.append(to, std::slice::from_ref(message))?;
        if self.take_out(from, &UidSet::range(uid.get(), uid.get()))?.is_empty() {
            return Err(Error::new(ErrorKind::Expunged, format!("there is no entry with UID {uid} any more")));
        }
        Ok(appended)
    }

    /// Changes flags of the entries that are still there.
    pub fn store_flags(&mut self, mailbox: MailboxId, uids: &UidSet, request: &StoreFlags) -> Result<Stored> {
        self.effects.changed.push(mailbox);
        let transaction = &mut *self.transaction;
        let is_any_there = transaction.mailbox(mailbox)?.rows_of(uids).next().is_some();
        let change = match request.mode {
            // A keyword that the mailbox does not know is on no entry: removing it makes none.
            StoreMode::Remove => FlagChange::Remove(known_flags(transaction, mailbox, &request.flags)?),
            _ if !is_any_there => FlagChange::Add(Flags::NONE),
            StoreMode::Replace => FlagChange::Replace(flags_of(transaction, mailbox, &request.flags)?),
            StoreMode::Add => FlagChange::Add(flags_of(transaction, mailbox, &request.flags)?),
        };
        let outcome = transaction.set_flags(mailbox, uids, change, request.unchanged_since)?;
        let modseq = (!outcome.changed.is_empty()).then(|| transaction.modseq());
        Ok(Stored { changed: outcome.changed, modified: outcome.modified, modseq })
    }

    /// Expunges the entries with `\Deleted`, of all or of `uids` only.
    pub fn expunge(&mut self, mailbox: MailboxId, uids: Option<&UidSet>) -> Result<Expunged> {
        let deleted = self.transaction.mailbox(mailbox)?.deleted_uids();
        let uids = uids.map_or_else(|| deleted.clone(), |uids| deleted.intersection(uids));
        let uids = self.take_out(mailbox, &uids)?;
        Ok(Expunged { uids, highest_modseq: self.transaction.mailbox(mailbox)?.highest_modseq() })
    }
}

impl Edit<'_> {
    /// What cannot come into the file of a mailbox, or leave it, is not done in the log either.
    fn check_contents(&self, mailbox: MailboxId) -> Result<()> {
        self.files.map_or(Ok(()), |files| files.check_contents(mailbox))
    }

    /// Messages are about to come into a mailbox.
    fn fill(&mut self, mailbox: MailboxId) -> Result<()> {
        self.check_contents(mailbox)?;
        self.effects.filled.push(mailbox);
        let Some(files) = self.files else { return Ok(()) };
        let found = self.transaction.mailbox(mailbox)?;
        let next = found.uidnext().map_or(u32::MAX, Uid::get);
        let floor = files.uid_floor(found)?;
        match Uid::new(floor).filter(|_| floor > next) {
            Some(floor) => self.transaction.skip_uids(mailbox, floor),
            None => Ok(()),
        }
    }

    /// Expunges entries that exist, and says which those were. What is in a file stays known, in a mailbox that nobody sees, until
    /// its octets have left the file.
    pub(crate) fn take_out(&mut self, from: MailboxId, uids: &UidSet) -> Result<UidSet> {
        if self.files.is_none() {
            return self.transaction.expunge(from, uids);
        }
        if self.transaction.mailbox(from)?.existing(uids).is_empty() {
            return Ok(UidSet::new());
        }
        self.check_contents(from)?;
        self.effects.changed.push(from);
        let name = MailboxName::hidden(from);
        let hidden = self.transaction.state().mailbox_named(&name).map(|mailbox| mailbox.id());
        let hidden = match hidden {
            Some(hidden) => hidden,
            // Its UIDs are nobody's business.
            None => self.transaction.create_mailbox_with(&name, &[], 1)?,
        };
        Ok(self.transaction.move_entries(from, uids, hidden)?.source)
    }
}

/// One change each, durable when they return; see the functions of [`Edit`] that have the same names.
impl Account {
    /// [`Edit::append`]
    pub fn append(&self, mailbox: MailboxId, messages: Vec<NewMessage>) -> Result<Appended> {
        self.before_adding(mailbox);
        self.edit(|edit| edit.append(mailbox, &messages))
    }

    /// [`Edit::copy`]
    pub fn copy(&self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        self.before_adding(to);
        self.edit(|edit| edit.copy(from, uids, to))
    }

    /// [`Edit::move_entries`]
    pub fn move_entries(&self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        self.before_adding(to);
        self.edit(|edit| edit.move_entries(from, uids, to))
    }

    /// [`Edit::replace`]
    pub fn replace(&self, from: MailboxId, uid: Uid, to: MailboxId, message: NewMessage) -> Result<Appended> {
        self.before_adding(to);
        self.edit(|edit| edit.replace(from, uid, to, &message))
    }

    /// [`Edit::store_flags`]
    pub fn store_flags(&self, mailbox: MailboxId, uids: &UidSet, request: &StoreFlags) -> Result<Stored> {
        self.edit(|edit| edit.store_flags(mailbox, uids, request))
    }

    /// [`Edit::expunge`]
    pub fn expunge(&self, mailbox: MailboxId, uids: Option<&UidSet>) -> Result<Expunged> {
        self.edit(|edit| edit.expunge(mailbox, uids))
    }
}

/// The bits of `names` in a mailbox; keywords that are new to it are added.
pub(crate) fn flags_of(transaction: &mut Transaction, mailbox: MailboxId, names: &FlagNames) -> Result<Flags> {
    let mut flags = system_flags(names);
    for keyword in &names.keywords {
        flags = flags.with(transaction.keyword(mailbox, keyword)?);
    }
    Ok(flags)
}

/// The bits of `names` in a mailbox, as far as it knows them.
fn known_flags(transaction: &Transaction, mailbox: MailboxId, names: &FlagNames) -> Result<Flags> {
    let table = transaction.mailbox(mailbox)?.keywords();
    let known = names.keywords.iter().filter_map(|keyword| table.find(keyword));
    Ok(known.fold(system_flags(names), |flags, index| flags.with(Flags::keyword(index))))
}

fn system_flags(names: &FlagNames) -> Flags {
    names.system.iter().fold(Flags::NONE, |flags, flag| flags.with(Flags::system(*flag)))
}

/// What a copy did, pair by pair.
pub(crate) fn pairs(
    transaction: &Transaction,
    to: MailboxId,
    copied: &index::Copied,
    expunged_modseq: Option<ModSeq>,
) -> Result<Copied> {
    let uids = copied.source.iter().zip(copied.destination.iter());
    Ok(Copied {
        uid_validity: transaction.mailbox(to)?.uidvalidity(),
        uids: uids.filter_map(|(from, to)| Some((Uid::new(from)?, Uid::new(to)?))).collect(),
        expunged_modseq,
    })
}
