//! What transactions did, as statements.
//!
//! The records of a batch become statements in their order; rows that go into one table one after the other share a statement. A mailbox
//! that was touched in any way has its row written once, from the state after the batch.

use std::collections::BTreeSet;

use index::{Event, Mailbox, NewRow, PendingMessage, State, Transacted};
use model::{EmailId, Flags, MailboxId, ModSeq, Result, UidSet};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use crate::columns::{self, Columns};
use crate::failure::Failure;
use crate::rows::{Insert, conditions};

/// A header up to this size lies in `header`; a longer one with the body, octets.
pub(crate) const HEAD_BYTES_MAX: u32 = 64 << 10;
/// Octets of one row of `body`.
pub(crate) const PART_BYTES: u64 = 1 << 20;

/// Octets of a message that lie in `header`: its header, or none.
pub(crate) fn head_bytes(header_len: u32) -> u32 {
    if header_len <= HEAD_BYTES_MAX { header_len } else { 0 }
}

/// A batch as it goes to the database, and may go again.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    account: u64,
    messages: Vec<(EmailId, &'a PendingMessage, Columns)>,
    statements: Vec<Statement>,
}

#[derive(Debug)]
enum Statement {
    Rows(Insert),
    /// Made of nothing but numbers.
    Text(String),
}

const ENTRY: &str = "INSERT INTO entry (account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, \
                     save_date, size)";
pub(crate) const MAILBOX: &str = "INSERT INTO mailbox (account, id, name, uidvalidity, uidnext, highest_modseq, created, special_use, \
                       recent_floor, vanished_floor, deleted_at, touched)";
pub(crate) const MAILBOX_AGAIN: &str = " ON DUPLICATE KEY UPDATE name = VALUES(name), uidnext = VALUES(uidnext), \
                             highest_modseq = VALUES(highest_modseq), special_use = VALUES(special_use), \
                             recent_floor = VALUES(recent_floor), vanished_floor = VALUES(vanished_floor), \
                             deleted_at = VALUES(deleted_at), touched = VALUES(touched)";
pub(crate) const KEYWORD: &str = "INSERT INTO keyword (account, mailbox, number, name, touched)";
pub(crate) const ANNOTATION: &str = "INSERT INTO annotation (account, mailbox, name, value, touched)";
pub(crate) const ANNOTATION_AGAIN: &str = " ON DUPLICATE KEY UPDATE value = VALUES(value), touched = VALUES(touched)";
pub(crate) const SUBSCRIPTION: &str = "INSERT INTO subscription (account, name, subscribed, touched)";
pub(crate) const SUBSCRIPTION_AGAIN: &str =
    " ON DUPLICATE KEY UPDATE subscribed = VALUES(subscribed), touched = VALUES(touched)";

impl<'a> Script<'a> {
    /// The statements of a batch; parses its messages. `state` is that after it.
    pub(crate) fn new(account: u64, state: &State, batch: &'a [Transacted<'a>]) -> Result<Script<'a>> {
        let mut script = Script { account, messages: Vec::new(), statements: Vec::new() };
        let mut touched = BTreeSet::new();
        for one in batch {
            for (id, message) in one.messages {
                script.messages.push((*id, message, columns::of(message)?));
            }
            for event in &one.events {
                script.event(state, one, event, &mut touched);
            }
        }
        let last = batch.last().map_or(ModSeq(0), |last| last.modseq);
        for id in touched {
            script.mailbox(state, id, last);
        }
        Ok(script)
    }

    /// The statements that add messages.
    pub(crate) fn of_messages(account: u64, messages: &'a [(EmailId, PendingMessage)]) -> Result<Script<'a>> {
        let messages = messages.iter().map(|(id, message)| Ok((*id, message, columns::of(message)?)));
        Ok(Script { account, messages: messages.collect::<Result<_>>()?, statements: Vec::new() })
    }

    fn event(&mut self, state: &State, of: &Transacted<'_>, event: &Event, touched: &mut BTreeSet<MailboxId>) {
        let modseq = of.modseq.0;
        match event {
            Event::MailboxCreated { id, .. }
            | Event::MailboxRenamed { id, .. }
            | Event::MailboxDeleted { id }
            | Event::MailboxUndeleted { id, .. }
            | Event::SpecialUse { id, .. } => {
                touched.insert(*id);
            }
            Event::RecentFloor { mailbox, .. } | Event::MailboxCounters { mailbox, .. } => {
                touched.insert(*mailbox);
            }
            Event::Subscribed { name } => self.subscription(name.as_str(), true, modseq),
            Event::Unsubscribed { name } => self.subscription(name.as_str(), false, modseq),
            Event::KeywordAdded { mailbox, keyword } => {
                let number = any_mailbox(state, *mailbox).and_then(|mailbox| mailbox.keywords().find(keyword));
                if let Some(number) = number {
                    let values: [Value; 5] = [
                        self.account.into(),
                        mailbox.0.into(),
                        (number as u64).into(),
                        keyword.as_str().into(),
                        modseq.into(),
                    ];
                    self.rows(KEYWORD, 5, "").row(values);
                }
            }
            // Their bytes are written apart; messages that lie elsewhere are of other formats.
            Event::Message { .. }
            | Event::ForeignMessages { .. }
            | Event::BytesHere { .. }
            | Event::BytesElsewhere { .. } => {}
            Event::Entries { mailbox, rows } => {
                touched.insert(*mailbox);
                self.entries(*mailbox, rows, modseq);
            }
            Event::FlagsSet { mailbox, flags, uids } => {
                touched.insert(*mailbox);
                self.flags(*mailbox, *flags, uids, modseq);
            }
            Event::Expunged { mailbox, uids } => {
                touched.insert(*mailbox);
                self.expunge(*mailbox, uids, "email_id", of);
            }
            Event::Discarded { mailbox, uids } => {
                touched.insert(*mailbox);
                self.expunge(*mailbox, uids, "NULL", of);
            }
            Event::Restored { mailbox, uids } => {
                touched.insert(*mailbox);
                let place = self.place(*mailbox);
                for uids in conditions(uids) {
                    self.text(format!(
                        "UPDATE expunged SET email_id = NULL, touched = {modseq} WHERE {place} AND {uids}"
                    ));
                }
            }
            Event::MailboxAnnotated { mailbox, key, value } => {
                self.annotation(mailbox.0, key, value.as_deref(), modseq);
            }
            Event::AccountAnnotated { key, value } => self.annotation(0, key, value.as_deref(), modseq),
        }
    }

    fn text(&mut self, statement: String) {
        self.statements.push(Statement::Text(statement));
    }

    /// The rows that are being gathered, if the last statement inserts such; else a new statement.
    fn rows(&mut self, head: &'static str, columns: usize, tail: &'static str) -> &mut Insert {
        let is_same = matches!(self.statements.last(), Some(Statement::Rows(rows)) if rows.head() == head);
        if !is_same {
            self.statements.push(Statement::Rows(Insert::or_else(head, columns, tail)));
        }
        match self.statements.last_mut() {
            Some(Statement::Rows(rows)) => rows,
            _ => unreachable!("it was pushed when it was not there"),
        }
    }

    fn place(&self, mailbox: MailboxId) -> String {
        format!("account = {} AND mailbox = {}", self.account, mailbox.0)
    }

    fn entries(&mut self, mailbox: MailboxId, rows: &[NewRow], modseq: u64) {
        let account = self.account;
        let insert = self.rows(ENTRY, 11, "");
        for row in rows {
            let (low, high) = halves(row.flags);
            let values: [Value; 11] = [
                account.into(),
                mailbox.0.into(),
                row.uid.get().into(),
                row.email_id.0.into(),
                low.into(),
                high.into(),
                modseq.into(),
                row.internal_date.unix_seconds.into(),
                row.internal_date.offset_minutes.into(),
                row.save_date.into(),
                row.size.into(),
            ];
            insert.row(values);
        }
    }

    fn flags(&mut self, mailbox: MailboxId, flags: Flags, uids: &UidSet, modseq: u64) {
        let (place, (low, high)) = (self.place(mailbox), halves(flags));
        for uids in conditions(uids) {
            self.text(format!(
                "UPDATE entry SET flags = {low}, flags_high = {high}, modseq = {modseq} WHERE {place} AND {uids}"
            ));
        }
    }

    fn expunge(&mut self, mailbox: MailboxId, uids: &UidSet, email_id: &str, of: &Transacted<'_>) {
        let (place, modseq, time) = (self.place(mailbox), of.modseq.0, of.time);
        for uids in conditions(uids) {
            self.text(format!(
                "INSERT INTO expunged (account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, \
                 save_date, size, expunged_modseq, expunged_at, touched) \
                 SELECT account, mailbox, uid, {email_id}, flags, flags_high, modseq, internal_date, zone_minutes, save_date, size, \
                 {modseq}, {time}, {modseq} FROM entry WHERE {place} AND {uids}"
            ));
            self.text(format!("DELETE FROM entry WHERE {place} AND {uids}"));
        }
    }

    fn annotation(&mut self, mailbox: u64, key: &str, value: Option<&[u8]>, modseq: u64) {
        let values: [Value; 5] = [
            self.account.into(),
            mailbox.into(),
            key.as_bytes().into(),
            value.map_or(Value::NULL, |value| value.into()),
            modseq.into(),
        ];
        self.rows(ANNOTATION, 5, ANNOTATION_AGAIN).row(values);
    }

    fn subscription(&mut self, name: &str, is_subscribed: bool, modseq: u64) {
        let values: [Value; 4] = [self.account.into(), name.as_bytes().into(), is_subscribed.into(), modseq.into()];
        self.rows(SUBSCRIPTION, 4, SUBSCRIPTION_AGAIN).row(values);
    }

    fn mailbox(&mut self, state: &State, id: MailboxId, modseq: ModSeq) {
        let deleted_at = state.deleted_mailbox(id).map(|deleted| deleted.deleted_at);
        let Some(mailbox) = any_mailbox(state, id) else { return };
        let values: [Value; 12] = [
            self.account.into(),
            id.0.into(),
            mailbox.name().as_str().into(),
            mailbox.uidvalidity().get().into(),
            mailbox.uidnext_number().into(),
            mailbox.highest_modseq().0.into(),
            mailbox.created().into(),
            mailbox.special_use_bits().into(),
            mailbox.recent_floor().into(),
            mailbox.vanished_floor().0.into(),
            deleted_at.into(),
            modseq.0.into(),
        ];
        self.rows(MAILBOX, 12, MAILBOX_AGAIN).row(values);
    }

    /// Runs it, within a transaction of the database.
    pub(crate) fn run(&self, connection: &mut Conn) -> Result<(), Failure> {
        self.run_messages(connection)?;
        for statement in &self.statements {
            match statement {
                Statement::Rows(rows) => rows.run(connection)?,
                Statement::Text(text) => connection.query_drop(text)?,
            }
        }
        Ok(())
    }

    fn run_messages(&self, connection: &mut Conn) -> Result<(), Failure> {
        let mut message_rows = Insert::new(
            "INSERT INTO message (account, email_id, size, sent_at, from_address, from_name, to_addresses, cc_addresses, subject, \
             message_id, in_reply_to, content_type, attachments)",
            13,
        );
        let mut attachments =
            Insert::new("INSERT INTO attachment (account, email_id, number, content_type, filename, size)", 6);
        let mut headers =
            Insert::new("INSERT INTO header (account, email_id, octets, header_octets, crc, data_crc, data)", 7);
        let mut bodies = Insert::new("INSERT INTO body (account, email_id, part, data_crc, data)", 5);
        for (id, message, columns) in &self.messages {
            let key: [Value; 2] = [self.account.into(), id.0.into()];
            message_rows.row(key.iter().cloned().chain(message_values(message.len(), columns)));
            for (number, attachment) in (1u32..).zip(&columns.attachments) {
                let values: [Value; 4] = [
                    number.into(),
                    attachment.content_type.as_str().into(),
                    attachment.filename.as_deref().into(),
                    attachment.size.into(),
                ];
                attachments.row(key.iter().cloned().chain(values));
            }
            let head_len = head_bytes(message.header_len());
            let mut head = vec![0; head_len as usize];
            message.read_at(0, &mut head)?;
            let sizes: [Value; 4] =
                [message.len().into(), message.header_len().into(), message.crc().into(), crc32c::crc32c(&head).into()];
            headers.row(key.iter().cloned().chain(sizes).chain([Value::Bytes(head)]));
            let (mut at, mut part) = (u64::from(head_len), 0u32);
            while at < u64::from(message.len()) {
                let mut data = vec![0; (u64::from(message.len()) - at).min(PART_BYTES) as usize];
                message.read_at(at, &mut data)?;
                at += data.len() as u64;
                let crc: Value = crc32c::crc32c(&data).into();
                bodies.row(key.iter().cloned().chain([part.into(), crc, Value::Bytes(data)]));
                bodies.flush_if_large(connection)?;
                part += 1;
            }
            headers.flush_if_large(connection)?;
            message_rows.flush_if_large(connection)?;
            attachments.flush_if_large(connection)?;
        }
        message_rows.flush(connection)?;
        attachments.flush(connection)?;
        headers.flush(connection)?;
        bodies.flush(connection)
    }
}

fn message_values(size: u32, columns: &Columns) -> [Value; 11] {
    [
        size.into(),
        columns.sent_at.into(),
        columns.from_address.as_deref().into(),
        columns.from_name.as_deref().into(),
        columns.to_addresses.as_deref().into(),
        columns.cc_addresses.as_deref().into(),
        columns.subject.as_deref().into(),
        columns.message_id.as_deref().into(),
        columns.in_reply_to.as_deref().into(),
        columns.content_type.as_str().into(),
        (columns.attachments.len() as u64).into(),
    ]
}

/// A mailbox, deleted or not.
fn any_mailbox(state: &State, id: MailboxId) -> Option<&Mailbox> {
    let deleted = || state.deleted_mailbox(id).map(|deleted| &*deleted.mailbox);
    state.mailbox(id).map(|mailbox| &**mailbox).or_else(deleted)
}

/// Flags as their two columns.
pub(crate) fn halves(flags: Flags) -> (u64, u64) {
    (flags.0 as u64, (flags.0 >> 64) as u64)
}
