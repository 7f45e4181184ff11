//! An account moves from one cell to another while it is used.
//!
//! 1. The directory says where it is going (`moving_to`); a row in the other cell is made ready, with the id that the account has.
//! 2. Messages are copied in the order of their ids, read back and compared; then the other rows, as often as there is news.
//! 3. The mover becomes the account's only writer, as any node does, copies what came last and compares.
//! 4. The account's row in the old cell says that it has moved: nobody writes there any more. The row in the new cell gets the account's
//!    name. The directory says where it is. These three steps can be done by anybody who finds the first one done ([`Cells::end_move`]).
//! 5. The rows in the old cell are removed.
//!
//! Killed anywhere, it is gone on with where it was; UIDs, modseqs, ids and the epoch stay, so what nodes know of the account stays right.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use index::{Journal, Wait};
use model::{AccountName, EmailId, Error, ErrorKind, ModSeq, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Value};
use store::ClusterCopy;

use crate::account::Account;
use crate::cells::{Cells, Place};
use crate::copy::Copy;
use crate::database::{Database, REMOVED, find, removed_name};
use crate::failure::Failure;
use crate::lease::{COPY, MOVED};
use crate::read;
use crate::rows::Insert;

/// Octets that are copied in one transaction, about.
const BATCH_BYTES: u64 = 4 << 20;
/// Messages that are looked at in one batch.
const BATCH_MESSAGES: usize = 500;
/// How often the last changes are followed before the account is locked.
const ROUNDS_MAX: usize = 8;
/// How often it is tried to lock the account for long enough.
const TRIES_MAX: usize = 8;
/// The tables with a message's rows, as they are written.
const MESSAGE_TABLES: [(&str, &str); 4] = [
    ("header", "INSERT INTO header"),
    ("body", "INSERT INTO body"),
    ("message", "INSERT INTO message"),
    ("attachment", "INSERT INTO attachment"),
];

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    /// The cell that the account is in now.
    pub cell: String,
    /// Messages that were copied and compared by this run.
    pub moved: u64,
    /// Their octets.
    pub moved_bytes: u64,
    /// How long nobody could change the account.
    pub held: Duration,
    /// Whoever watched has ended it.
    pub was_stopped: bool,
}

/// Called again and again with the octets that are done, and of how many; `Break` ends the move where it is.
pub type Watcher<'w> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'w;

/// The name of an account that is on its way, before its id: no account can have it.
const MOVING_PREFIX: &str = ".moving-";

fn moving_name(id: u64) -> Vec<u8> {
    format!("{MOVING_PREFIX}{id}").into_bytes()
}

/// A move under way.
struct Move<'a> {
    from: &'a Arc<Database>,
    to: &'a Arc<Database>,
    source: Arc<Account>,
    copy: Copy,
}

impl Cells {
    /// Moves an account into another cell, or goes on with that. [`ErrorKind::NotFound`]: there is no such account. [`ErrorKind::Invalid`]: no
    /// such cell, or it is on its way to another.
    pub fn move_account(&self, name: &AccountName, to: &str, watcher: &mut Watcher<'_>) -> Result<MoveReport> {
        let target = self.cell(to)?;
        let mut report = MoveReport::default();
        let mut place = self.place(name)?;
        let not_there = || Error::new(ErrorKind::NotFound, format!("there is no account {name} in a database"));
        if place.cell != to {
            if let Some(other) = place.moving_to.as_ref().filter(|other| *other != to) {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!("the account {name} is on its way to cell {other}"),
                ));
            }
            let from = self.cell(&place.cell)?;
            let found = from.pool().run("looking for an account", |connection| find(connection, name))?;
            if let Some((id, incarnation)) = found {
                self.clear_moved(id, target)?;
                self.announce(name, &place.cell, to)?;
                let source = from.account(id, incarnation);
                let copy = Copy::new(make_ready(target, &source)?);
                let moving = Move { from, to: target, source, copy };
                if !moving.run(self, watcher, &mut report)? {
                    report.cell = place.cell;
                    return Ok(report);
                }
            } else if place.moving_to.is_none() {
                return Err(not_there());
            }
            place.moving_to = Some(to.to_owned());
            self.end_move(name, &place)?;
        }
        let found = target.pool().run("looking for an account", |connection| find(connection, name))?;
        let (id, _) = found.ok_or_else(not_there)?;
        for other in self.others(to) {
            self.clear_moved(id, other)?;
        }
        report.cell = to.to_owned();
        Ok(report)
    }

    /// Says where it is going.
    fn announce(&self, name: &AccountName, from: &str, to: &str) -> Result<()> {
        self.first()?.pool().run("writing into the directory", |connection| {
            Ok(connection.exec_drop(
                "INSERT INTO directory (name, cell, moving_to) VALUES (?, ?, ?) \
                 ON DUPLICATE KEY UPDATE moving_to = VALUES(moving_to)",
                (name.as_str().as_bytes(), from, to),
            )?)
        })
    }

    /// Ends the move of an account whose row in the old cell says that it has moved; whether it was on its way.
    pub(crate) fn end_move(&self, name: &AccountName, place: &Place) -> Result<bool> {
        let Some(to) = &place.moving_to else { return Ok(false) };
        let (from, target) = (self.cell(&place.cell)?, self.cell(to)?);
        let moved: Option<(u64, u64)> = from.pool().run("looking for an account that moves", |connection| {
            Ok(connection.exec_first(
                "SELECT id, epoch FROM account WHERE name = ? AND owner = ?",
                (name.as_str().as_bytes(), MOVED),
            )?)
        })?;
        let Some((id, epoch)) = moved else { return Ok(false) };
        target.pool().run("letting an account in", |connection| {
            Ok(connection.exec_drop(
                "UPDATE account SET name = ?, owner = 0, epoch = ? WHERE id = ? AND owner = ?",
                (name.as_str().as_bytes(), epoch, id, COPY),
            )?)
        })?;
        self.first()?.pool().run("writing into the directory", |connection| {
            Ok(connection.exec_drop(
                "UPDATE directory SET cell = moving_to, moving_to = NULL WHERE name = ? AND cell = ? AND moving_to = ?",
                (name.as_str().as_bytes(), &place.cell, to),
            )?)
        })?;
        Ok(true)
    }

    /// Removes what a move has left behind.
    fn clear_moved(&self, id: u64, cell: &Database) -> Result<()> {
        let is_there = cell.pool().run("removing what has moved", |connection| {
            connection.exec_drop(
                "UPDATE account SET name = ?, owner = ? WHERE id = ? AND owner = ?",
                (removed_name(id), REMOVED, id, MOVED),
            )?;
            let row: Option<u32> =
                connection.exec_first("SELECT 1 FROM account WHERE id = ? AND owner = ?", (id, REMOVED))?;
            Ok(row.is_some())
        })?;
        if is_there { cell.clear_removed() } else { Ok(()) }
    }
}

/// The row that the account will have, under a name that nobody finds.
fn make_ready(target: &Database, source: &Account) -> Result<Arc<Account>> {
    let (id, incarnation) = (source.id, source.incarnation);
    let created: i64 = source.pool.run("reading an account", |connection| {
        let row: Option<i64> = connection.exec_first("SELECT created FROM account WHERE id = ?", (id,))?;
        Ok(row.unwrap_or(0))
    })?;
    target.pool().run("making ready for an account", |connection| {
        Ok(connection.exec_drop(
            "INSERT IGNORE INTO account (id, name, created, incarnation, modseq, email_id_next, mailbox_id_next, \
             uidvalidity_last, owner) VALUES (?, ?, ?, ?, 0, 1, 1, 0, ?)",
            (id, moving_name(id), created, incarnation, COPY),
        )?)
    })?;
    Ok(target.account(id, incarnation))
}

type Rows = Vec<Vec<Value>>;

fn rows_of(connection: &mut Conn, table: &str, account: u64, (first, last): (u64, u64)) -> Result<Rows, Failure> {
    let statement = format!("SELECT * FROM {table} WHERE account = ? AND email_id BETWEEN ? AND ?");
    let rows: Vec<mysql::Row> = connection.exec(statement, (account, first, last))?;
    let mut rows: Rows = rows.into_iter().map(mysql::Row::unwrap).collect();
    // By their keys, whatever order a server gives them in.
    rows.sort_by_key(|row| format!("{:?}", row.get(1..3)));
    Ok(rows)
}

impl Move<'_> {
    fn id(&self) -> u64 {
        self.source.id
    }

    /// Until the old cell says that it has moved; false: whoever watched has ended it.
    fn run(&self, cells: &Cells, watcher: &mut Watcher<'_>, report: &mut MoveReport) -> Result<bool> {
        let mut since = ModSeq(0);
        for _ in 0..ROUNDS_MAX {
            let before = report.moved;
            if !self.copy_messages(watcher, report)? {
                report.was_stopped = true;
                return Ok(false);
            }
            since = self.copy_rows()?;
            if report.moved - before < BATCH_MESSAGES as u64 {
                break;
            }
        }
        let clock = &cells.env.clock;
        for _ in 0..TRIES_MAX {
            self.source.take(since, Wait::Long, &mut |_| Ok(()))?;
            let began = clock.monotonic();
            let is_done = self.last_round(report);
            report.held += clock.monotonic().saturating_sub(began);
            match is_done {
                Ok(true) => return Ok(true),
                // The lease was over too soon, and another node has written.
                Ok(false) => {}
                Err(error) => {
                    let _ = self.source.give();
                    return Err(error);
                }
            }
        }
        Err(Error::new(ErrorKind::InUse, "other nodes keep changing the account; it can be gone on with later"))
    }

    /// What came last, compared; then it has moved. False: others could write meanwhile.
    fn last_round(&self, report: &mut MoveReport) -> Result<bool> {
        let modseq = self.copy_rows()?;
        self.copy_messages(&mut |_, _| ControlFlow::Continue(()), report)?;
        self.leave_out_what_is_gone()?;
        let tenure = (*self.source.tenure()).ok_or_else(|| Error::new(ErrorKind::Io, "the account was taken over"))?;
        if tenure.modseq != modseq.0 {
            return Ok(false);
        }
        let id = self.id();
        let is_done = self.from.pool().run("letting an account out", |connection| {
            connection.query_drop("START TRANSACTION")?;
            let row: Option<(u64, u64, u64)> =
                connection.exec_first("SELECT owner, epoch, modseq FROM account WHERE id = ? FOR UPDATE", (id,))?;
            let is_ours = match row {
                // A try before this one was done.
                Some((MOVED, ..)) => true,
                Some((_, epoch, now)) if epoch == tenure.epoch && now == modseq.0 => {
                    connection
                        .exec_drop("UPDATE account SET owner = ?, epoch = epoch + 1 WHERE id = ?", (MOVED, id))?;
                    true
                }
                _ => false,
            };
            connection.query_drop("COMMIT")?;
            Ok(is_ours)
        })?;
        *self.source.tenure() = None;
        Ok(is_done)
    }

    /// All rows but those of messages; compared. The modseq that they have.
    fn copy_rows(&self) -> Result<ModSeq> {
        let id = self.id();
        let rows = self.from.pool().run("reading an account", |connection| {
            connection.query_drop("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            connection.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
            let head = read::head(connection, id)?.ok_or_else(crate::lease::removed)?;
            let rows = read::news(connection, id, ModSeq(0), &head)?;
            connection.query_drop("COMMIT")?;
            Ok(rows)
        })?;
        self.copy.put_rows(&rows)?;
        match self.copy.rows()?.difference(&rows) {
            None => Ok(rows.modseq),
            Some(what) => {
                let text = format!("the copy in the other cell is not the account, they differ in: {what}");
                Err(Error::new(ErrorKind::Corrupt, text))
            }
        }
    }

    /// Copies messages that are not there yet; false: whoever watched has ended it.
    fn copy_messages(&self, watcher: &mut Watcher<'_>, report: &mut MoveReport) -> Result<bool> {
        let id = self.id();
        let mut next = self.copy.end()?;
        let total: u64 = self.from.pool().run("looking how much moves", |connection| {
            let sum: Option<Option<u64>> = connection.exec_first(
                "SELECT CAST(SUM(size) AS UNSIGNED) FROM message WHERE account = ? AND email_id >= ?",
                (id, next),
            )?;
            Ok(sum.flatten().unwrap_or(0))
        })?;
        let mut done = 0;
        loop {
            if watcher(done, total).is_break() {
                return Ok(false);
            }
            let sizes: Vec<(u64, u32)> = self.from.pool().run("looking what moves", |connection| {
                Ok(connection.exec(
                    "SELECT email_id, size FROM message WHERE account = ? AND email_id >= ? ORDER BY email_id LIMIT ?",
                    (id, next, BATCH_MESSAGES),
                )?)
            })?;
            let mut octets = 0;
            let is_enough = |(_, size): &(u64, u32)| {
                octets += u64::from(*size);
                octets >= BATCH_BYTES
            };
            let count = sizes.iter().position(is_enough).map_or(sizes.len(), |last| last + 1);
            let (Some((first, _)), Some((last, _))) = (sizes.first(), sizes.get(..count).and_then(<[_]>::last)) else {
                return Ok(true);
            };
            self.copy_batch((*first, *last))?;
            let batch = sizes.iter().take(count).map(|(_, size)| u64::from(*size)).sum::<u64>();
            (report.moved, report.moved_bytes) = (report.moved + count as u64, report.moved_bytes + batch);
            done += batch;
            next = last + 1;
        }
    }

    /// Copies the rows of messages with neighbouring ids, and reads them back.
    fn copy_batch(&self, ids: (u64, u64)) -> Result<()> {
        let id = self.id();
        let mut tables = Vec::new();
        for (table, head) in MESSAGE_TABLES {
            let rows = self.from.pool().run("reading messages", |connection| rows_of(connection, table, id, ids))?;
            tables.push((table, head, rows));
        }
        self.to.pool().run("copying messages", |connection| {
            connection.query_drop("START TRANSACTION")?;
            for (table, head, rows) in &tables {
                let place = format!("DELETE FROM {table} WHERE account = ? AND email_id BETWEEN ? AND ?");
                // Of a try before this one whose answer was lost.
                connection.exec_drop(place, (id, ids.0, ids.1))?;
                let mut insert = Insert::new(head, rows.first().map_or(0, Vec::len));
                for row in rows {
                    insert.row(row.iter().cloned());
                    insert.flush_if_large(connection)?;
                }
                insert.flush(connection)?;
            }
            Ok(connection.query_drop("COMMIT")?)
        })?;
        for (table, _, rows) in &tables {
            let there = self.to.pool().run("comparing messages", |connection| rows_of(connection, table, id, ids))?;
            if there != *rows {
                let text = format!("messages {} to {} are not the same in the other cell ({table})", ids.0, ids.1);
                return Err(Error::new(ErrorKind::Corrupt, text));
            }
        }
        Ok(())
    }

    /// Messages that were swept since they were copied go there as well; and none is missing.
    fn leave_out_what_is_gone(&self) -> Result<()> {
        let id = self.id();
        let ids = |cell: &Database| {
            let ids: Vec<u64> = cell.pool().run("comparing messages", |connection| {
                Ok(connection.exec("SELECT email_id FROM message WHERE account = ?", (id,))?)
            })?;
            Ok::<BTreeSet<u64>, Error>(ids.into_iter().collect())
        };
        let (ours, theirs) = (ids(self.from)?, ids(self.to)?);
        if let Some(missing) = ours.difference(&theirs).next() {
            let text = format!("message {} is not in the other cell", EmailId(*missing));
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        for gone in theirs.difference(&ours) {
            for (table, _) in MESSAGE_TABLES {
                self.to.pool().run("removing messages", |connection| {
                    let statement = format!("DELETE FROM {table} WHERE account = ? AND email_id = ?");
                    Ok(connection.exec_drop(statement, (id, gone))?)
                })?;
            }
        }
        Ok(())
    }
}
