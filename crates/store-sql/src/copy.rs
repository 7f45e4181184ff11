//! The copy of an account that lives elsewhere: rows that follow it, and nobody is served from.
//!
//! Its row in `account` has a name that no account can have, and an owner that no node can be: nobody writes to it but who makes it follow.
//! To become the account it is given its name ([`store::Cluster::publish`]), in one statement; so it is the other way round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use index::{ExpungedNews, Journal, MailboxNews, News, PendingMessage, Row};
use model::{EmailId, MailboxId, ModSeq, Result, UidSet};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};

use crate::account::Account;
use crate::failure::Failure;
use crate::lease::removed;
use crate::read;
use crate::rows::{Insert, conditions};
use crate::write::{
    ANNOTATION, ANNOTATION_AGAIN, KEYWORD, MAILBOX, MAILBOX_AGAIN, SUBSCRIPTION, SUBSCRIPTION_AGAIN, Script, halves,
};

/// Rows that are changed in one transaction, about.
const ROWS_PER_TRANSACTION: usize = 10_000;

/// See [`store::ClusterCopy`].
#[derive(Debug)]
pub(crate) struct Copy {
    account: Arc<Account>,
    /// What the rows say, as long as nothing has failed.
    known: Mutex<Option<News>>,
}

const ENTRY: &str = "INSERT INTO entry (account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, \
                     save_date, size)";
const ENTRY_AGAIN: &str =
    " ON DUPLICATE KEY UPDATE flags = VALUES(flags), flags_high = VALUES(flags_high), modseq = VALUES(modseq)";
const EXPUNGED: &str = "INSERT INTO expunged (account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, \
                        zone_minutes, save_date, size, expunged_modseq, expunged_at, touched)";
const EXPUNGED_AGAIN: &str = " ON DUPLICATE KEY UPDATE email_id = VALUES(email_id), expunged_modseq = VALUES(expunged_modseq), \
                              expunged_at = VALUES(expunged_at), touched = VALUES(touched)";
const KEYWORD_AGAIN: &str = " ON DUPLICATE KEY UPDATE name = VALUES(name), touched = VALUES(touched)";

impl Copy {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Copy { account, known: Mutex::default() }
    }

    fn read_rows(&self) -> Result<News> {
        let id = self.account.id;
        let news = self.account.pool.run("reading the copy of an account", |connection| {
            let head = read::head_of_any(connection, id)?.ok_or_else(removed)?;
            read::news(connection, id, ModSeq(0), &head)
        })?;
        Ok(news.sorted())
    }
}

impl store::ClusterCopy for Copy {
    fn end(&self) -> Result<u64> {
        let last: Option<u64> = self.account.pool.run("looking how far a copy is", |connection| {
            let row =
                connection.exec_first("SELECT MAX(email_id) FROM header WHERE account = ?", (self.account.id,))?;
            Ok(row.flatten())
        })?;
        Ok(last.map_or(1, |last| last.saturating_add(1)))
    }

    fn put(&self, messages: &[(EmailId, PendingMessage)]) -> Result<()> {
        let script = Script::of_messages(self.account.id, messages)?;
        let last = messages.last().map_or(0, |(id, _)| id.0);
        self.account.pool.run("copying messages", |connection| {
            connection.query_drop("START TRANSACTION")?;
            // After a lost answer they may be there: all or none.
            let is_there: Option<u32> = connection.exec_first(
                "SELECT 1 FROM header WHERE account = ? AND email_id = ? FOR UPDATE",
                (self.account.id, last),
            )?;
            if is_there.is_none() {
                script.run(connection)?;
            }
            Ok(connection.query_drop("COMMIT")?)
        })
    }

    fn rows(&self) -> Result<News> {
        self.read_rows()
    }

    fn put_rows(&self, rows: &News) -> Result<()> {
        let wanted = rows.clone().sorted();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let there = match known.take() {
            Some(there) => there,
            None => self.read_rows()?,
        };
        let changes = Changes::between(self.account.id, &there, &wanted);
        for piece in &changes.pieces {
            self.account.pool.run("copying the rows of an account", |connection| {
                connection.query_drop("START TRANSACTION")?;
                piece.run(connection)?;
                Ok(connection.query_drop("COMMIT")?)
            })?;
        }
        self.account.pool.run("copying an account", |connection| {
            Ok(connection.exec_drop(
                "UPDATE account SET modseq = ?, email_id_next = ?, mailbox_id_next = ?, uidvalidity_last = ? WHERE id = ?",
                (
                    wanted.modseq.0,
                    wanted.email_id_next,
                    wanted.mailbox_id_next,
                    wanted.uidvalidity_last,
                    self.account.id,
                ),
            )?)
        })?;
        *known = Some(wanted);
        Ok(())
    }

    fn journal(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.account) as Arc<dyn Journal>
    }
}

/// What is done in one transaction; it can be done twice.
#[derive(Debug)]
enum Piece {
    Rows(Insert),
    Text(String),
}

impl Piece {
    fn run(&self, connection: &mut Conn) -> Result<(), Failure> {
        match self {
            Piece::Rows(rows) => rows.run(connection),
            Piece::Text(text) => Ok(connection.query_drop(text)?),
        }
    }
}

/// What has to be done so that rows say something else.
#[derive(Debug)]
struct Changes {
    account: u64,
    touched: u64,
    pieces: Vec<Piece>,
}

impl Changes {
    /// Both are sorted.
    fn between(account: u64, there: &News, wanted: &News) -> Changes {
        let mut changes = Changes { account, touched: wanted.modseq.0, pieces: Vec::new() };
        changes.mailboxes(there, wanted);
        changes.small(there, wanted);
        // First what is gone: an entry that is gone becomes one that is expunged.
        changes.entries(there, wanted);
        changes.expunged(there, wanted);
        changes
    }

    fn insert<T>(
        &mut self,
        (head, columns, tail): (&'static str, usize, &'static str),
        rows: impl IntoIterator<Item = T>,
        mut values: impl FnMut(&Self, T) -> Vec<Value>,
    ) {
        let mut insert = Insert::or_else(head, columns, tail);
        let mut count = 0;
        for row in rows {
            insert.row(values(self, row));
            count += 1;
            if count == ROWS_PER_TRANSACTION {
                self.pieces.push(Piece::Rows(std::mem::replace(&mut insert, Insert::or_else(head, columns, tail))));
                count = 0;
            }
        }
        if count > 0 {
            self.pieces.push(Piece::Rows(insert));
        }
    }

    fn delete(&mut self, table: &str, gone: BTreeMap<MailboxId, UidSet>) {
        for (mailbox, uids) in gone {
            let place = format!("account = {} AND mailbox = {}", self.account, mailbox.0);
            for uids in conditions(&uids) {
                self.pieces.push(Piece::Text(format!("DELETE FROM {table} WHERE {place} AND {uids}")));
            }
        }
    }

    fn mailboxes(&mut self, there: &News, wanted: &News) {
        let old: BTreeMap<MailboxId, &MailboxNews> = there.mailboxes.iter().map(|row| (row.id, row)).collect();
        let new: BTreeMap<MailboxId, &MailboxNews> = wanted.mailboxes.iter().map(|row| (row.id, row)).collect();
        for id in old.keys().filter(|id| !new.contains_key(id)) {
            self.pieces
                .push(Piece::Text(format!("DELETE FROM mailbox WHERE account = {} AND id = {}", self.account, id.0)));
        }
        let changed = new.into_iter().filter(|(id, row)| old.get(id) != Some(row));
        self.insert((MAILBOX, 12, MAILBOX_AGAIN), changed, |of, (_, row)| {
            vec![
                of.account.into(),
                row.id.0.into(),
                row.name.as_str().into(),
                row.uidvalidity.get().into(),
                row.uidnext.into(),
                row.highest_modseq.0.into(),
                row.created.into(),
                row.special_use.into(),
                row.recent_floor.into(),
                row.vanished_floor.0.into(),
                row.deleted_at.into(),
                of.touched.into(),
            ]
        });
    }

    /// Keywords, annotations, subscriptions.
    fn small(&mut self, there: &News, wanted: &News) {
        let keywords = wanted.keywords.iter().filter(|row| !there.keywords.contains(row));
        self.insert((KEYWORD, 5, KEYWORD_AGAIN), keywords, |of, (mailbox, number, name)| {
            vec![of.account.into(), mailbox.0.into(), (*number as u64).into(), name.as_str().into(), of.touched.into()]
        });
        let key = |row: &(Option<MailboxId>, String, Option<Vec<u8>>)| (row.0, row.1.clone());
        let new: BTreeMap<_, _> = wanted.annotations.iter().map(|row| (key(row), row.2.clone())).collect();
        let old: BTreeMap<_, _> = there.annotations.iter().map(|row| (key(row), row.2.clone())).collect();
        // One without a value says that there is none any more.
        let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), None));
        let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
        let changed: Vec<_> = changed.map(|(key, value)| (key.clone(), value.clone())).chain(gone).collect();
        self.insert((ANNOTATION, 5, ANNOTATION_AGAIN), changed, |of, ((mailbox, name), value)| {
            vec![
                of.account.into(),
                mailbox.map_or(0, |mailbox| mailbox.0).into(),
                name.into_bytes().into(),
                value.map_or(Value::NULL, Value::Bytes),
                of.touched.into(),
            ]
        });
        let gone = there.subscriptions.iter().filter(|row| !wanted.subscriptions.contains(row));
        let gone = gone.map(|(name, _)| (name, false));
        let new = wanted.subscriptions.iter().filter(|row| !there.subscriptions.contains(row));
        let changed: Vec<_> = new.map(|(name, _)| (name, true)).chain(gone).collect();
        self.insert((SUBSCRIPTION, 4, SUBSCRIPTION_AGAIN), changed, |of, (name, is_subscribed)| {
            vec![of.account.into(), name.as_str().as_bytes().into(), is_subscribed.into(), of.touched.into()]
        });
    }

    fn entries(&mut self, there: &News, wanted: &News) {
        let key = |(mailbox, row): &(MailboxId, Row)| (*mailbox, row.uid);
        let mut gone: BTreeMap<MailboxId, UidSet> = BTreeMap::new();
        let mut changed = Vec::new();
        let mut old = there.entries.iter().peekable();
        for new in &wanted.entries {
            while let Some(before) = old.next_if(|before| key(before) < key(new)) {
                gone.entry(before.0).or_default().insert(before.1.uid.get());
            }
            match old.next_if(|same| key(same) == key(new)) {
                Some(same) if same == new => {}
                _ => changed.push(new),
            }
        }
        for before in old {
            gone.entry(before.0).or_default().insert(before.1.uid.get());
        }
        self.delete("entry", gone);
        self.insert((ENTRY, 11, ENTRY_AGAIN), changed, |of, (mailbox, row)| {
            of.entry(*mailbox, row, row.email_id.0.into())
        });
    }

    fn expunged(&mut self, there: &News, wanted: &News) {
        let key = |gone: &ExpungedNews| (gone.mailbox, gone.row.uid);
        let old: BTreeMap<_, _> = there.expunged.iter().map(|gone| (key(gone), gone)).collect();
        let new: BTreeMap<_, _> = wanted.expunged.iter().map(|gone| (key(gone), gone)).collect();
        let mut forgotten: BTreeMap<MailboxId, UidSet> = BTreeMap::new();
        for (mailbox, uid) in old.keys().filter(|key| !new.contains_key(*key)) {
            forgotten.entry(*mailbox).or_default().insert(uid.get());
        }
        self.delete("expunged", forgotten);
        let changed: Vec<_> =
            new.iter().filter(|(key, gone)| old.get(*key) != Some(*gone)).map(|(_, gone)| *gone).collect();
        self.insert((EXPUNGED, 14, EXPUNGED_AGAIN), changed, |of, gone| {
            let email_id = if gone.is_kept { gone.row.email_id.0.into() } else { Value::NULL };
            let mut values = of.entry(gone.mailbox, &gone.row, email_id);
            values.extend([gone.modseq.0.into(), gone.time.into(), of.touched.into()]);
            values
        });
    }

    /// The values that `entry` and `expunged` have in common.
    fn entry(&self, mailbox: MailboxId, row: &Row, email_id: Value) -> Vec<Value> {
        let (low, high) = halves(row.flags);
        vec![
            self.account.into(),
            mailbox.0.into(),
            row.uid.get().into(),
            email_id,
            low.into(),
            high.into(),
            row.modseq.0.into(),
            row.internal_date.unix_seconds.into(),
            row.internal_date.offset_minutes.into(),
            row.save_date.into(),
            row.size.into(),
        ]
    }
}
