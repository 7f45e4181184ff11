//! A transaction: changes that become durable together or not at all, as one frame of the log.
//!
//! Each operation checks, makes a record of the result, and applies that record to the transaction's own copy of the
//! state, by the same function that replays the log.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    DateTime, EmailId, Error, ErrorKind, FlagChange, Flags, Keyword, MailboxId, MailboxName, ModSeq, Result,
    SpecialUse, Uid, UidSet, limits,
};

use crate::ForeignMessage;
use crate::message::PendingMessage;
use crate::record::{Event, NewRow};
use crate::state::{Frame, Mailbox, State};

/// Bytes of one frame's records, message bytes not counted. STORE on a million entries needs a few megabytes.
pub const FRAME_EVENTS_BYTES_MAX: usize = 64 << 20;
/// Messages in one transaction (RFC 3502 MULTIAPPEND).
pub const FRAME_MESSAGES_MAX: usize = 10_000;
/// Longest annotation key, octets.
pub const ANNOTATION_KEY_BYTES_MAX: usize = 1024;
/// Longest annotation value, octets.
pub const ANNOTATION_VALUE_BYTES_MAX: usize = 64 << 10;

/// A new entry, as the caller wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// `None`: the next one. `Some`: for an import that keeps UIDs; not below UIDNEXT.
    pub uid: Option<Uid>,
    /// Its flags; keyword bits are those of the mailbox.
    pub flags: Flags,
    /// INTERNALDATE.
    pub internal_date: DateTime,
    /// SAVEDATE, seconds since 1970; `None`: now.
    pub save_date: Option<i64>,
}

/// What [`Transaction::set_flags`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlagsOutcome {
    /// Entries whose flags are different now. Entries that had the wanted flags already keep their modseq.
    pub changed: UidSet,
    /// Entries left alone because they changed after UNCHANGEDSINCE (RFC 7162 §3.1.3 MODIFIED).
    pub modified: UidSet,
}

/// What [`Transaction::copy`] did. The n-th UID of one set belongs to the n-th of the other (RFC 4315 COPYUID).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The entries that were there to copy.
    pub source: UidSet,
    /// Their UIDs in the destination, rising.
    pub destination: UidSet,
}

/// Changes in the making; see [`crate::Log::transact`].
#[derive(Debug)]
pub struct Transaction {
    pub(crate) state: State,
    /// The modseq of the state that it changes.
    before: ModSeq,
    frame: Frame,
    ranges_max: usize,
    events: Vec<u8>,
    message_events: Vec<u8>,
    pub(crate) messages: Vec<(EmailId, Arc<PendingMessage>)>,
    /// Foreign messages whose bytes come into the log. Their records come after those of new messages, as their bytes do.
    late: Vec<(EmailId, Arc<PendingMessage>)>,
    /// Foreign messages that are applied and not yet written as a record.
    foreign: Vec<(EmailId, ForeignMessage)>,
    /// Entries of one mailbox that are applied and not yet written as a record.
    open_rows: Option<(MailboxId, Vec<NewRow>)>,
    /// Messages whose bytes are in the log now: applied and not yet written as a record.
    open_late: Vec<EmailId>,
    has_moved_bytes: bool,
}

/// A finished transaction, ready to be written.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The modseq of the state that it changed.
    pub(crate) before: ModSeq,
    pub(crate) frame: Frame,
    pub(crate) events: Vec<u8>,
    pub(crate) events_crc: u32,
    pub(crate) messages: Vec<(EmailId, Arc<PendingMessage>)>,
    /// One more than the largest id among them that was given before.
    pub(crate) late_end: u64,
    /// Which messages are foreign is not as before: some are new, or moved into the log or out of it.
    pub(crate) has_moved_bytes: bool,
}

fn not_found(what: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no such {what}"))
}

impl Transaction {
    pub(crate) fn new(state: State, now: i64, ranges_max: usize) -> Self {
        let frame = Frame { number: state.frame + 1, modseq: state.modseq.next(), time: now };
        Transaction {
            before: state.modseq,
            state,
            frame,
            ranges_max,
            events: Vec::new(),
            message_events: Vec::new(),
            messages: Vec::new(),
            late: Vec::new(),
            foreign: Vec::new(),
            open_rows: None,
            open_late: Vec::new(),
            has_moved_bytes: false,
        }
    }

    /// The state with it, and what is to be written. `None`: nothing changed.
    pub(crate) fn finish(mut self) -> Result<Option<(State, Finished)>> {
        self.close_rows();
        self.has_moved_bytes |= !self.foreign.is_empty();
        if !self.foreign.is_empty() {
            let messages = std::mem::take(&mut self.foreign);
            Event::ForeignMessages { messages }.write(&mut self.message_events, self.frame.time);
        }
        if self.events.is_empty() && self.message_events.is_empty() {
            return Ok(None);
        }
        let late_end = self.late.iter().map(|(id, _)| id.0.saturating_add(1)).max().unwrap_or(0);
        for (email_id, message) in &self.late {
            let (len, header_len, crc) = (message.len(), message.header_len(), message.crc());
            let event = Event::Message { email_id: *email_id, len, header_len, crc };
            event.write(&mut self.message_events, self.frame.time);
        }
        self.messages.append(&mut self.late);
        let mut events = self.message_events;
        events.append(&mut self.events);
        if events.len() > FRAME_EVENTS_BYTES_MAX {
            return Err(Error::over_limit("frame_events_bytes_max", "the transaction changes too much at once"));
        }
        let events_crc = crc32c::crc32c(&events);
        self.state.foreign.purge();
        self.state.finish_frame(&self.frame, events_crc);
        let Transaction { state, before, frame, messages, has_moved_bytes, .. } = self;
        Ok(Some((state, Finished { before, frame, events, events_crc, messages, late_end, has_moved_bytes })))
    }

    /// Everything as it is now, this transaction's own changes and those not yet durable included.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The modseq that every entry changed by this transaction gets.
    pub fn modseq(&self) -> ModSeq {
        self.frame.modseq
    }

    /// The time of the transaction, seconds since 1970 UTC.
    pub fn now(&self) -> i64 {
        self.frame.time
    }

    /// Leaves out `count` modseqs, so that the transaction's own is higher than any that a client can have seen. Has to come before any change.
    pub fn skip_modseqs(&mut self, count: u64) {
        debug_assert!(self.events.is_empty() && self.message_events.is_empty(), "nothing has the modseq yet");
        self.frame.modseq = ModSeq(self.frame.modseq.0.saturating_add(count)).min(ModSeq::LAST);
    }

    /// The next entry of a mailbox gets this UID at least, and the mailbox's highest modseq is the transaction's: for a mailbox that was
    /// set back to an earlier time, since clients may know later numbers.
    pub fn skip_uids(&mut self, mailbox: MailboxId, uidnext: Uid) -> Result<()> {
        self.mailbox(mailbox)?;
        let highest_modseq = self.frame.modseq.0;
        self.record(&Event::MailboxCounters { mailbox, uidnext: u64::from(uidnext.get()), highest_modseq });
        Ok(())
    }

    /// The mailbox, or `NotFound`.
    pub fn mailbox(&self, id: MailboxId) -> Result<&Mailbox> {
        self.state.mailbox(id).map(|mailbox| &**mailbox).ok_or_else(|| not_found("mailbox"))
    }

    fn close_rows(&mut self) {
        if !self.open_late.is_empty() {
            let mut ids = std::mem::take(&mut self.open_late);
            ids.sort_unstable();
            Event::BytesHere { ids }.write(&mut self.events, self.frame.time);
        }
        if let Some((mailbox, rows)) = self.open_rows.take() {
            Event::Entries { mailbox, rows }.write(&mut self.events, self.frame.time);
        }
    }

    /// It is done at this modseq and this time, seconds since 1970, and not now. Has to come before any change.
    pub(crate) fn set_moment(&mut self, modseq: ModSeq, time: i64) {
        debug_assert!(self.events.is_empty() && self.message_events.is_empty(), "nothing has the modseq yet");
        (self.frame.modseq, self.frame.time) = (modseq, time);
    }

    pub(crate) fn record(&mut self, event: &Event) {
        self.close_rows();
        event.write(&mut self.events, self.frame.time);
        let applied = self.state.apply(&self.frame, event, self.ranges_max);
        debug_assert!(applied, "the operation checked what the record needs: {event:?}");
    }

    fn free_name(&self, name: &MailboxName) -> Result<()> {
        match self.state.mailbox_named(name) {
            Some(_) => Err(Error::new(ErrorKind::AlreadyExists, format!("there is a mailbox {name} already"))),
            None => Ok(()),
        }
    }

    /// Creates a mailbox. Its parents are not created. UIDVALIDITY is the time, or one more than the last one given.
    pub fn create_mailbox(&mut self, name: &MailboxName, special_uses: &[SpecialUse]) -> Result<MailboxId> {
        let now = u32::try_from(self.frame.time).unwrap_or(0).max(1);
        let next = self
            .state
            .uidvalidity_last
            .checked_add(1)
            .ok_or_else(|| Error::over_limit("uidvalidity", "the account has used the last UIDVALIDITY"))?;
        self.create_mailbox_with(name, special_uses, now.max(next))
    }

    /// Creates a mailbox with a given UIDVALIDITY (not zero), as an import that keeps UIDs needs it.
    pub fn create_mailbox_with(
        &mut self,
        name: &MailboxName,
        special_uses: &[SpecialUse],
        uidvalidity: u32,
    ) -> Result<MailboxId> {
        self.free_name(name)?;
        if uidvalidity == 0 {
            return Err(Error::new(ErrorKind::Invalid, "UIDVALIDITY is never zero"));
        }
        if !name.is_hidden() {
            self.room_for_mailbox()?;
        }
        let id = MailboxId(self.state.mailbox_id_next);
        let special_use = special_use_bits(special_uses);
        self.record(&Event::MailboxCreated { id, name: name.clone(), uidvalidity, special_use });
        Ok(id)
    }

    /// Renames a mailbox and everything below it (RFC 9051 §6.3.6). The identities and UIDs stay. That renaming INBOX means
    /// something else is the caller's business.
    pub fn rename_mailbox(&mut self, id: MailboxId, name: &MailboxName) -> Result<()> {
        let old = self.mailbox(id)?.name().clone();
        let mut moves = vec![(id, name.clone())];
        for below in self.state.mailboxes_below(&old) {
            let renamed = below.name().rebased(&old, name).ok_or_else(|| not_found("mailbox"))??;
            moves.push((below.id(), renamed));
        }
        if name.is_below(&old) {
            return Err(Error::new(ErrorKind::Invalid, "a mailbox cannot be moved below itself"));
        }
        for (_, renamed) in &moves {
            self.free_name(renamed)?;
        }
        for (id, name) in moves {
            self.record(&Event::MailboxRenamed { id, name });
        }
        Ok(())
    }

    /// Deletes a mailbox; those below it stay. It can be brought back for a while, see [`Transaction::undelete_mailbox`], but
    /// without its foreign messages: these are expunged.
    pub fn delete_mailbox(&mut self, id: MailboxId) -> Result<()> {
        let foreign: UidSet = self.mailbox(id)?.foreign(&self.state).map(|(row, _)| row.uid.get()).collect();
        self.expunge_existing(id, foreign)?;
        self.record(&Event::MailboxDeleted { id });
        Ok(())
    }

    /// Brings a deleted mailbox back under a name that is free, with its UIDs and UIDVALIDITY.
    pub fn undelete_mailbox(&mut self, id: MailboxId, name: &MailboxName) -> Result<()> {
        self.free_name(name)?;
        if !self.state.deleted.contains_key(&id) {
            return Err(not_found("deleted mailbox"));
        }
        self.room_for_mailbox()?;
        self.record(&Event::MailboxUndeleted { id, name: name.clone() });
        Ok(())
    }

    fn room_for_mailbox(&self) -> Result<()> {
        if self.state.mailbox_count() >= limits::MAILBOXES_MAX {
            return Err(Error::over_limit("mailboxes_max", "the account has all the mailboxes that it can have"));
        }
        Ok(())
    }

    /// Says what a mailbox is for, instead of what was said before.
    pub fn set_special_uses(&mut self, id: MailboxId, special_uses: &[SpecialUse]) -> Result<()> {
        let bits = special_use_bits(special_uses);
        if self.mailbox(id)?.special_use != bits {
            self.record(&Event::SpecialUse { id, bits });
        }
        Ok(())
    }

    /// Subscribes to a name, whether or not there is such a mailbox.
    pub fn subscribe(&mut self, name: &MailboxName) -> Result<()> {
        if self.state.subscriptions.contains(name) {
            return Ok(());
        }
        if self.state.subscriptions.len() >= limits::MAILBOXES_MAX {
            return Err(Error::over_limit("mailboxes_max", "the account has all the subscriptions that it can have"));
        }
        self.record(&Event::Subscribed { name: name.clone() });
        Ok(())
    }

    /// Ends a subscription. `false`: there was none.
    pub fn unsubscribe(&mut self, name: &MailboxName) -> bool {
        let was_there = self.state.subscriptions.contains(name);
        if was_there {
            self.record(&Event::Unsubscribed { name: name.clone() });
        }
        was_there
    }

    /// The bit of a keyword in a mailbox; it is added when it is new.
    pub fn keyword(&mut self, mailbox: MailboxId, keyword: &Keyword) -> Result<Flags> {
        let table = self.mailbox(mailbox)?.keywords();
        if let Some(index) = table.find(keyword) {
            return Ok(Flags::keyword(index));
        }
        if table.len() >= limits::KEYWORDS_PER_MAILBOX_MAX {
            return Err(Error::over_limit("keywords_per_mailbox_max", "the mailbox has all the keywords it can have"));
        }
        let index = table.len();
        self.record(&Event::KeywordAdded { mailbox, keyword: keyword.clone() });
        Ok(Flags::keyword(index))
    }

    /// Stores a message. It belongs to no mailbox until [`Transaction::add_entry`] gives it a place; a message without one
    /// is not kept.
    pub fn add_message(&mut self, message: impl Into<Arc<PendingMessage>>) -> Result<EmailId> {
        let message = message.into();
        if self.messages.len() >= FRAME_MESSAGES_MAX {
            return Err(Error::over_limit("frame_messages_max", "too many messages at once"));
        }
        let email_id = EmailId(self.state.email_id_next);
        self.add_message_as(email_id, message)?;
        Ok(email_id)
    }

    /// Stores a message under an id that it has already. `Invalid` when it is not above all that were given.
    pub(crate) fn add_message_as(&mut self, email_id: EmailId, message: Arc<PendingMessage>) -> Result<()> {
        if email_id.0 < self.state.email_id_next {
            return Err(Error::new(ErrorKind::Invalid, format!("the id {email_id} was given before")));
        }
        let (len, header_len, crc) = (message.len(), message.header_len(), message.crc());
        let event = Event::Message { email_id, len, header_len, crc };
        event.write(&mut self.message_events, self.frame.time);
        let applied = self.state.apply(&self.frame, &event, self.ranges_max);
        debug_assert!(applied, "a message record always applies");
        self.messages.push((email_id, message));
        Ok(())
    }

    /// Makes a message known whose bytes lie elsewhere; see [`crate::Foreign`]. It belongs to no mailbox until
    /// [`Transaction::add_entry`] gives it a place; a message without one is not kept.
    pub fn add_foreign(&mut self, message: ForeignMessage) -> Result<EmailId> {
        if message.header_octets > message.octets {
            return Err(Error::new(ErrorKind::Invalid, "a header is not longer than its message"));
        }
        let email_id = EmailId(self.state.email_id_next);
        let event = Event::ForeignMessages { messages: vec![(email_id, message)] };
        let applied = self.state.apply(&self.frame, &event, self.ranges_max);
        debug_assert!(applied, "a message record always applies");
        self.foreign.push((email_id, message));
        Ok(email_id)
    }

    /// Gives a message of this transaction, or any foreign one, a place in a mailbox.
    pub fn add_entry(&mut self, mailbox: MailboxId, email_id: EmailId, entry: &NewEntry) -> Result<Uid> {
        let size = match self.messages.binary_search_by_key(&email_id, |(id, _)| *id) {
            Ok(at) => self.messages.get(at).map_or(0, |(_, message)| message.len()),
            Err(_) => match self.state.foreign(email_id) {
                Some(message) => message.octets,
                None => return Err(not_found("message in this transaction")),
            },
        };
        let row = NewRow {
            uid: Uid::FIRST,
            flags: entry.flags,
            internal_date: entry.internal_date,
            save_date: entry.save_date.unwrap_or(self.frame.time),
            size,
            email_id,
        };
        self.push_row(mailbox, entry.uid, row)
    }

    /// Adds a row with the wanted or the next UID.
    fn push_row(&mut self, id: MailboxId, uid: Option<Uid>, row: NewRow) -> Result<Uid> {
        let mailbox = self.mailbox(id)?;
        let next = mailbox.uidnext().ok_or_else(|| Error::over_limit("uids", "the mailbox has used its last UID"))?;
        let uid = uid.unwrap_or(next);
        if uid < next {
            return Err(Error::new(ErrorKind::Invalid, format!("UID {uid} is below UIDNEXT {next}")));
        }
        let row = NewRow { uid, ..row };
        let event = Event::Entries { mailbox: id, rows: vec![row] };
        let applied = self.state.apply(&self.frame, &event, self.ranges_max);
        debug_assert!(applied, "the mailbox is there");
        match &mut self.open_rows {
            Some((open, rows)) if *open == id => rows.push(row),
            _ => {
                self.close_rows();
                self.open_rows = Some((id, vec![row]));
            }
        }
        Ok(uid)
    }

    /// Copies the entries of `uids` that exist to another mailbox, or to the same. No message bytes are written. Keywords
    /// keep their names; one for which the destination has no room is left out.
    pub fn copy(&mut self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        let source = self.state.mailbox(from).cloned().ok_or_else(|| not_found("mailbox"))?;
        let rows: Vec<_> = source.rows_of(uids).map(|(_, row)| row).collect();
        let mut copied = Copied::default();
        let mut keywords: BTreeMap<usize, Flags> = BTreeMap::new();
        for row in rows {
            let flags = self.translate_flags(&source, row.flags, to, &mut keywords)?;
            let new = NewRow {
                uid: row.uid,
                flags,
                internal_date: row.internal_date,
                save_date: self.frame.time,
                size: row.size,
                email_id: row.email_id,
            };
            let uid = self.push_row(to, None, new)?;
            copied.source.insert(row.uid.get());
            copied.destination.insert(uid.get());
        }
        Ok(copied)
    }

    fn translate_flags(
        &mut self,
        source: &Mailbox,
        flags: Flags,
        to: MailboxId,
        known: &mut BTreeMap<usize, Flags>,
    ) -> Result<Flags> {
        let mut out = Flags::NONE;
        for flag in flags.system_flags() {
            out = out.with(Flags::system(flag));
        }
        for index in flags.keyword_indexes() {
            let bit = match (known.get(&index), source.keywords().name(index)) {
                (Some(bit), _) => *bit,
                (None, None) => Flags::NONE,
                (None, Some(keyword)) => match self.keyword(to, keyword) {
                    Ok(bit) => bit,
                    Err(error) if error.kind() == ErrorKind::Limit => Flags::NONE,
                    Err(error) => return Err(error),
                },
            };
            known.insert(index, bit);
            out = out.with(bit);
        }
        Ok(out)
    }

    /// Copies the entries of `uids` and expunges them here (RFC 6851 MOVE).
    pub fn move_entries(&mut self, from: MailboxId, uids: &UidSet, to: MailboxId) -> Result<Copied> {
        let copied = self.copy(from, uids, to)?;
        self.expunge(from, &copied.source)?;
        Ok(copied)
    }

    /// Changes the flags of the entries of `uids` that exist, but of those that changed after `unchanged_since` (RFC 7162
    /// §3.1.3). Entries that have the wanted flags already keep their modseq.
    pub fn set_flags(
        &mut self,
        mailbox: MailboxId,
        uids: &UidSet,
        change: FlagChange,
        unchanged_since: Option<ModSeq>,
    ) -> Result<FlagsOutcome> {
        let mut outcome = FlagsOutcome::default();
        let now = self.mailbox(mailbox)?;
        let mut rest = Cow::Borrowed(uids);
        if let Some(since) = unchanged_since {
            outcome.modified = now.uids_changed_since(since).collect::<UidSet>().intersection(uids);
            rest = Cow::Owned(uids.difference(&outcome.modified));
        }
        let mut groups: BTreeMap<u128, UidSet> = BTreeMap::new();
        for (uid, before) in now.flags_of(&rest) {
            let flags = change.apply(before);
            if flags != before {
                outcome.changed.insert(uid);
                groups.entry(flags.0).or_default().insert(uid);
            }
        }
        for (flags, uids) in groups {
            self.record(&Event::FlagsSet { mailbox, flags: Flags(flags), uids });
        }
        Ok(outcome)
    }

    /// Expunges the entries of `uids` that exist, and says which those were.
    pub fn expunge(&mut self, mailbox: MailboxId, uids: &UidSet) -> Result<UidSet> {
        let uids = self.mailbox(mailbox)?.existing(uids);
        self.expunge_existing(mailbox, uids)
    }

    /// Expunges the entries with `\Deleted`, of all or of `uids` only, and says which those were.
    pub fn expunge_deleted(&mut self, mailbox: MailboxId, uids: Option<&UidSet>) -> Result<UidSet> {
        let deleted = self.mailbox(mailbox)?.deleted_uids();
        let uids = match uids {
            Some(uids) => deleted.intersection(uids),
            None => deleted,
        };
        self.expunge_existing(mailbox, uids)
    }

    /// The entries of foreign messages are not kept to be brought back. A record of its own says so: when the log is replayed
    /// after compaction, nothing else may say any more that they were foreign.
    fn expunge_existing(&mut self, mailbox: MailboxId, uids: UidSet) -> Result<UidSet> {
        let foreign = match self.state.foreign.is_empty() {
            true => UidSet::new(),
            false => {
                let rows = self.mailbox(mailbox)?.rows_of(&uids);
                rows.filter(|(_, row)| self.state.foreign.has(row.email_id)).map(|(_, row)| row.uid.get()).collect()
            }
        };
        let others = if foreign.is_empty() { uids.clone() } else { uids.difference(&foreign) };
        if !others.is_empty() {
            self.record(&Event::Expunged { mailbox, uids: others });
        }
        if !foreign.is_empty() {
            self.record(&Event::Discarded { mailbox, uids: foreign });
        }
        Ok(uids)
    }

    /// Brings expunged entries back (see [`Mailbox::expunged_since`]) under new UIDs, with their flags and dates. `source` of
    /// the answer are the old UIDs. Entries of foreign messages are never among them: the bytes went with the file.
    pub fn restore(&mut self, mailbox: MailboxId, uids: &UidSet) -> Result<Copied> {
        let expunged = self.mailbox(mailbox)?.expunged_since(i64::MIN);
        let mut rows: Vec<_> = expunged.map(|e| e.row).filter(|row| uids.contains_uid(row.uid)).collect();
        rows.sort_unstable_by_key(|row| row.uid);
        let mut copied = Copied::default();
        for row in rows {
            let new = NewRow {
                uid: row.uid,
                flags: row.flags,
                internal_date: row.internal_date,
                save_date: row.save_date,
                size: row.size,
                email_id: row.email_id,
            };
            let uid = self.push_row(mailbox, None, new)?;
            copied.source.insert(row.uid.get());
            copied.destination.insert(uid.get());
        }
        if !copied.source.is_empty() {
            self.record(&Event::Restored { mailbox, uids: copied.source.clone() });
        }
        Ok(copied)
    }

    /// Entries below `uid` are no longer \Recent to anybody. Worth a sync to nobody: drop the ticket.
    pub fn set_recent_floor(&mut self, mailbox: MailboxId, uid: u32) -> Result<()> {
        if self.mailbox(mailbox)?.recent_floor() < uid {
            self.record(&Event::RecentFloor { mailbox, uid });
        }
        Ok(())
    }

    /// Keeps a value with a mailbox; `None` removes it.
    pub fn annotate_mailbox(&mut self, mailbox: MailboxId, key: &str, value: Option<&[u8]>) -> Result<()> {
        check_annotation(key, value)?;
        if self.mailbox(mailbox)?.annotation(key) != value {
            let (key, value) = (key.to_owned(), value.map(<[u8]>::to_vec));
            self.record(&Event::MailboxAnnotated { mailbox, key, value });
        }
        Ok(())
    }

    /// Keeps a value with the account; `None` removes it.
    pub fn annotate_account(&mut self, key: &str, value: Option<&[u8]>) -> Result<()> {
        check_annotation(key, value)?;
        if self.state.annotation(key) != value {
            self.record(&Event::AccountAnnotated { key: key.to_owned(), value: value.map(<[u8]>::to_vec) });
        }
        Ok(())
    }
}

fn check_annotation(key: &str, value: Option<&[u8]>) -> Result<()> {
    if key.len() > ANNOTATION_KEY_BYTES_MAX {
        return Err(Error::over_limit("annotation_key_bytes_max", "the annotation's key is too long"));
    }
    if value.is_some_and(|value| value.len() > ANNOTATION_VALUE_BYTES_MAX) {
        return Err(Error::over_limit("annotation_value_bytes_max", "the annotation's value is too long"));
    }
    Ok(())
}

fn special_use_bits(special_uses: &[SpecialUse]) -> u16 {
    special_uses.iter().fold(0, |bits, attribute| bits | 1 << attribute.code())
}

mod moved;
#[cfg(test)]
mod tests;
