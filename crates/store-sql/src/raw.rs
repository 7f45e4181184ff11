//! What the database itself can do: the transaction of an append, as bare statements, by several connections at once. What Mailyard reaches
//! on the same server is to be held against it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::database::{Database, REMOVED, removed_name};
use crate::failure::Failure;
use crate::lease::COPY;
use crate::schema;

/// Octets of a header.
const HEADER_BYTES: usize = 1500;

/// How much is to be done.
#[derive(Clone, Copy, Debug)]
pub struct RawLoad {
    /// Connections at once, each with an account of its own; they must be allowed ([`crate::Settings::connections_max`]).
    pub connections: usize,
    /// For how long.
    pub duration: Duration,
    /// Octets of each message's body.
    pub octets: usize,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawRate {
    /// Transactions, each with one message.
    pub transactions: u64,
    /// In this time.
    pub took: Duration,
}

impl Database {
    /// Measures, and removes what it made.
    pub fn measure_raw(&self, load: RawLoad) -> Result<RawRate> {
        schema::check(self.pool())?;
        let env = self.pool().env();
        let ids: Vec<u64> = (0..load.connections).map(|_| env.random.u64() >> 1).collect();
        for id in &ids {
            self.pool().run("making ready to measure", |connection| {
                Ok(connection.exec_drop(
                    "INSERT IGNORE INTO account (id, name, created, incarnation, modseq, email_id_next, mailbox_id_next, \
                     uidvalidity_last, owner) VALUES (?, ?, 0, 1, 1, 1, 2, 1, ?)",
                    (id, format!(".measured-{id}"), COPY),
                )?)
            })?;
        }
        let is_over = AtomicBool::new(false);
        let began = env.clock.monotonic();
        let done = thread::scope(|scope| {
            let threads: Vec<_> =
                ids.iter().map(|id| scope.spawn(|| self.append_raw(*id, load.octets, &is_over))).collect();
            env.clock.sleep(load.duration);
            is_over.store(true, Ordering::Relaxed);
            let ended = || Error::new(ErrorKind::Io, "a connection of the measurement ended");
            threads.into_iter().map(|thread| thread.join().map_err(|_| ended())?).sum::<Result<u64>>()
        });
        let took = env.clock.monotonic().saturating_sub(began);
        for id in &ids {
            self.pool().run("removing what was measured", |connection| {
                Ok(connection.exec_drop(
                    "UPDATE account SET name = ?, owner = ? WHERE id = ?",
                    (removed_name(*id), REMOVED, id),
                )?)
            })?;
        }
        self.clear_removed()?;
        Ok(RawRate { transactions: done?, took })
    }

    fn append_raw(&self, account: u64, octets: usize, is_over: &AtomicBool) -> Result<u64> {
        let (header, body) = (vec![b'h'; HEADER_BYTES], vec![b'b'; octets]);
        self.pool().run("measuring", |connection| {
            let mut number: u64 = connection
                .exec_first("SELECT modseq FROM account WHERE id = ?", (account,))?
                .ok_or_else(crate::lease::removed)?;
            let first = number;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                append(connection, account, number, &header, &body)?;
            }
            Ok(number - first)
        })
    }
}

/// What [`crate::write`] does for one message.
fn append(connection: &mut Conn, account: u64, number: u64, header: &[u8], body: &[u8]) -> Result<(), Failure> {
    let size = header.len() + body.len();
    connection.query_drop("START TRANSACTION")?;
    let _row: Option<mysql::Row> = connection.exec_first(
        "SELECT modseq, epoch, owner, lease_until > UTC_TIMESTAMP(6), incarnation FROM account WHERE id = ? FOR UPDATE",
        (account,),
    )?;
    connection.exec_drop(
        "INSERT INTO message (account, email_id, size, sent_at, from_address, from_name, to_addresses, cc_addresses, subject, \
         message_id, in_reply_to, content_type, attachments) VALUES (?, ?, ?, 0, 'ann@example.org', 'Ann', 'ben@example.org', \
         NULL, 'A subject of the usual length', '<1234567890@example.org>', NULL, 'text/plain', 0)",
        (account, number, size),
    )?;
    connection.exec_drop(
        "INSERT INTO header (account, email_id, octets, header_octets, crc, data_crc, data) VALUES (?, ?, ?, ?, 0, 0, ?)",
        (account, number, size, header.len(), header),
    )?;
    connection.exec_drop(
        "INSERT INTO body (account, email_id, part, data_crc, data) VALUES (?, ?, 0, 0, ?)",
        (account, number, body),
    )?;
    connection.exec_drop(
        "INSERT INTO entry (account, mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, save_date, size) \
         VALUES (?, 1, ?, ?, 0, 0, ?, 0, 0, 0, ?)",
        (account, number, number, number, size),
    )?;
    connection.exec_drop(
        "INSERT INTO mailbox (account, id, name, uidvalidity, uidnext, highest_modseq, created, special_use, recent_floor, \
         vanished_floor, deleted_at, touched) VALUES (?, 1, 'INBOX', 1, ?, ?, 0, 0, 1, 0, NULL, ?) \
         ON DUPLICATE KEY UPDATE uidnext = VALUES(uidnext), highest_modseq = VALUES(highest_modseq), touched = VALUES(touched)",
        (account, number, number, number),
    )?;
    connection.exec_drop(
        "UPDATE account SET modseq = ?, email_id_next = ?, lease_until = UTC_TIMESTAMP(6) + INTERVAL 5 SECOND WHERE id = ?",
        (number, number + 1, account),
    )?;
    Ok(connection.query_drop("COMMIT")?)
}
