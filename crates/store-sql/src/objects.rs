//! Which objects of an object store an account has, and which of them are used.
//!
//! Life of an object: a row in `object` says that it is about to be put; it is put; the transaction that brings the message refers to it
//! (`body_object`, `referred`). When its last message is swept, `unused_since` says so. After the grace time its row goes to
//! `doomed_object` in one transaction, then the object is removed, then that row.
//!
//! Invariants:
//! - The writer refers to an object only in a transaction that finds its row in `object`, with the account's row locked; the sweep takes
//!   that row away under the same lock. So an object that is referred to is not doomed, and one that is doomed is never referred to again.
//! - A name is never used again: octets that come back after their object was doomed are put as another generation. So it does not matter
//!   when a removal, or a put that was begun long ago, arrives.
//! - An object whose row says that it was referred to (`referred` > 0) is whole, and is not put again.

use std::collections::BTreeMap;

use index::PendingMessage;
use model::{EmailId, Error, ErrorKind, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use sha2::{Digest as _, Sha256};

use crate::account::{Account, taken_over};
use crate::bodies::{Bodies, CHECKED_BYTES, ObjectName, Placed};
use crate::failure::Failure;
use crate::pool::Pool;
use crate::write::head_bytes;

/// Objects that are doomed in one transaction.
const DOOMED_AT_ONCE: usize = 1000;

/// The bodies of some messages, by message.
pub(crate) type Placements = BTreeMap<EmailId, Placed>;

type NameRow = (Vec<u8>, u64);

fn name((digest, generation): NameRow) -> ObjectName {
    ObjectName { digest, generation }
}

/// SHA-256 of a message from `from` on, and the CRC32Cs of its pieces.
fn digests_of(message: &PendingMessage, from: u64) -> Result<(Vec<u8>, Vec<u32>)> {
    let (mut digest, mut checksums, mut at, mut piece) = (Sha256::new(), Vec::new(), from, Vec::new());
    let end = u64::from(message.len());
    while at < end {
        piece.resize((end - at).min(CHECKED_BYTES) as usize, 0);
        message.read_at(at, &mut piece)?;
        digest.update(&piece);
        checksums.push(crc32c::crc32c(&piece));
        at += piece.len() as u64;
    }
    Ok((digest.finalize().to_vec(), checksums))
}

/// Checksums as they are in the database: four octets each, the highest first.
fn stored(checksums: &[u32]) -> Vec<u8> {
    checksums.iter().flat_map(|checksum| checksum.to_be_bytes()).collect()
}

fn checksums(stored: &[u8]) -> Vec<u32> {
    stored.as_chunks().0.iter().map(|octets| u32::from_be_bytes(*octets)).collect()
}

impl Account {
    /// Puts the bodies that belong there into the object store. Nothing refers to them yet.
    pub(crate) fn place_bodies<'m>(
        &self,
        messages: impl Iterator<Item = (EmailId, &'m PendingMessage)>,
    ) -> Result<Placements> {
        let mut placed = Placements::new();
        let Some(bodies) = &self.bodies else { return Ok(placed) };
        for (id, message) in messages {
            let from = head_bytes(message.header_len());
            let octets = message.len().saturating_sub(from);
            if !bodies.takes(octets.into()) {
                continue;
            }
            let (digest, checksums) = digests_of(message, u64::from(from))?;
            let (generation, is_whole) = self.announce(&digest, octets)?;
            let name = ObjectName { digest, generation };
            if !is_whole {
                bodies.put(self.id, &name, message, u64::from(from))?;
            }
            placed.insert(id, Placed { name, octets: octets.into(), checksums });
        }
        Ok(placed)
    }

    /// Says that an object is about to be put; its generation, and whether it is there already.
    fn announce(&self, digest: &[u8], octets: u32) -> Result<(u64, bool)> {
        let fresh = self.pool.env().random.u64();
        self.pool.run("announcing a body", |connection| {
            connection.query_drop("START TRANSACTION")?;
            let found: Option<(u64, u64)> = connection.exec_first(
                "SELECT generation, referred FROM object WHERE account = ? AND digest = ? \
                 ORDER BY referred DESC, generation LIMIT 1 FOR UPDATE",
                (self.id, digest),
            )?;
            match found {
                Some((generation, _)) => connection.exec_drop(
                    "UPDATE object SET unused_since = UNIX_TIMESTAMP() \
                     WHERE account = ? AND digest = ? AND generation = ? AND unused_since IS NOT NULL",
                    (self.id, digest, generation),
                )?,
                None => connection.exec_drop(
                    "INSERT INTO object (account, digest, generation, octets, referred, unused_since) \
                     VALUES (?, ?, ?, ?, 0, UNIX_TIMESTAMP())",
                    (self.id, digest, fresh, octets),
                )?,
            }
            connection.query_drop("COMMIT")?;
            Ok(found.map_or((fresh, false), |(generation, referred)| (generation, referred > 0)))
        })
    }

    /// Refers to objects, in the transaction of their messages and with the account's row locked.
    pub(crate) fn refer(&self, connection: &mut Conn, placed: &Placements) -> Result<(), Failure> {
        for (id, Placed { name, octets, checksums }) in placed {
            connection.exec_drop(
                "UPDATE object SET referred = referred + 1, unused_since = NULL \
                 WHERE account = ? AND digest = ? AND generation = ?",
                (self.id, &name.digest, name.generation),
            )?;
            if connection.affected_rows() == 0 {
                return Err(taken_over("a body was swept before a message referred to it").into());
            }
            connection.exec_drop(
                "INSERT INTO body_object (account, email_id, digest, generation, octets, checksums) VALUES (?, ?, ?, ?, ?, ?)",
                (self.id, id.0, &name.digest, name.generation, *octets, stored(checksums)),
            )?;
        }
        Ok(())
    }

    /// Where the body of a message lies, if it is not in the database.
    pub(crate) fn object_of(&self, id: EmailId) -> Result<Option<Placed>> {
        let row: Option<(Vec<u8>, u64, u64, Vec<u8>)> = self.pool.run("looking for a body", |connection| {
            Ok(connection.exec_first(
                "SELECT digest, generation, octets, checksums FROM body_object WHERE account = ? AND email_id = ?",
                (self.id, id.0),
            )?)
        })?;
        let placed = |(digest, generation, octets, crcs): (_, _, _, Vec<u8>)| {
            let (name, checksums) = (ObjectName { digest, generation }, checksums(&crcs));
            Placed { name, octets, checksums }
        };
        Ok(row.map(placed))
    }

    /// The object store; an error when there is none here.
    pub(crate) fn bodies(&self) -> Result<&Bodies> {
        let none = || Error::new(ErrorKind::Io, "the body lies in an object store, and none is configured here");
        self.bodies.as_deref().ok_or_else(none)
    }

    /// A message is swept: its object may not be used any more. Within a transaction, with the account's row locked.
    pub(crate) fn let_go(&self, connection: &mut Conn, id: u64) -> Result<(), Failure> {
        let row: Option<(Vec<u8>, u64, u32)> = connection.exec_first(
            "SELECT digest, generation, octets FROM body_object WHERE account = ? AND email_id = ?",
            (self.id, id),
        )?;
        let Some((digest, generation, octets)) = row else { return Ok(()) };
        connection.exec_drop("DELETE FROM body_object WHERE account = ? AND email_id = ?", (self.id, id))?;
        let others: Option<u32> = connection.exec_first(
            "SELECT 1 FROM body_object WHERE account = ? AND digest = ? AND generation = ? LIMIT 1",
            (self.id, &digest, generation),
        )?;
        if others.is_none() {
            // An account that came from another cell has no row for it yet.
            connection.exec_drop(
                "INSERT INTO object (account, digest, generation, octets, referred, unused_since) \
                 VALUES (?, ?, ?, ?, 1, UNIX_TIMESTAMP()) ON DUPLICATE KEY UPDATE unused_since = UNIX_TIMESTAMP()",
                (self.id, &digest, generation, octets),
            )?;
        }
        Ok(())
    }

    /// Dooms what has been unused for the grace time. Within a transaction, with the account's row locked.
    pub(crate) fn doom(&self, connection: &mut Conn) -> Result<(), Failure> {
        self.bodies.as_ref().map_or(Ok(()), |bodies| doom(connection, bodies, self.id).map(drop))
    }

    /// Removes what is doomed.
    pub(crate) fn remove_doomed(&self) -> Result<()> {
        self.bodies.as_ref().map_or(Ok(()), |bodies| remove_doomed(&self.pool, bodies, self.id).map(drop))
    }
}

/// Dooms what an account has not used for the grace time; whether there may be more.
fn doom(connection: &mut Conn, bodies: &Bodies, account: u64) -> Result<bool, Failure> {
    let rows: Vec<NameRow> = connection.exec(
        "SELECT digest, generation FROM object WHERE account = ? AND unused_since <= UNIX_TIMESTAMP() - ? LIMIT ?",
        (account, bodies.grace.as_secs(), DOOMED_AT_ONCE),
    )?;
    for (digest, generation) in &rows {
        // As it is now: a copy of an account refers without that lock.
        connection.exec_drop(
            "DELETE FROM object WHERE account = ? AND digest = ? AND generation = ? AND unused_since IS NOT NULL",
            (account, digest, generation),
        )?;
        if connection.affected_rows() > 0 {
            connection.exec_drop(
                "INSERT IGNORE INTO doomed_object (account, digest, generation) VALUES (?, ?, ?)",
                (account, digest, generation),
            )?;
        }
    }
    Ok(rows.len() >= DOOMED_AT_ONCE)
}

/// Removes what no account has used for the grace time, and what was doomed and is still there: of accounts, too, that nobody opens. How
/// many objects.
pub(crate) fn sweep(pool: &Pool, bodies: &Bodies) -> Result<u64> {
    let accounts: Vec<u64> = pool.run("looking for bodies to remove", |connection| {
        Ok(connection.exec(
            "SELECT account FROM object WHERE unused_since <= UNIX_TIMESTAMP() - ? UNION SELECT account FROM doomed_object",
            (bodies.grace.as_secs(),),
        )?)
    })?;
    let mut removed = 0;
    for account in accounts {
        loop {
            let is_more = pool.run("looking for bodies to remove", |connection| {
                connection.query_drop("START TRANSACTION")?;
                // The lock that a commit takes before it refers to an object.
                connection.exec_drop("SELECT id FROM account WHERE id = ? FOR UPDATE", (account,))?;
                let is_more = doom(connection, bodies, account)?;
                connection.query_drop("COMMIT")?;
                Ok(is_more)
            })?;
            removed += remove_doomed(pool, bodies, account)?;
            if !is_more {
                break;
            }
        }
    }
    Ok(removed)
}

/// Removes the doomed objects of an account, whoever doomed them. How many.
fn remove_doomed(pool: &Pool, bodies: &Bodies, account: u64) -> Result<u64> {
    let mut removed = 0;
    loop {
        let rows: Vec<NameRow> = pool.run("looking for bodies to remove", |connection| {
            Ok(connection.exec(
                "SELECT digest, generation FROM doomed_object WHERE account = ? LIMIT ?",
                (account, DOOMED_AT_ONCE),
            )?)
        })?;
        if rows.is_empty() {
            return Ok(removed);
        }
        for name in rows.into_iter().map(name) {
            bodies.remove(account, &name)?;
            pool.run("removing a body", |connection| {
                Ok(connection.exec_drop(
                    "DELETE FROM doomed_object WHERE account = ? AND digest = ? AND generation = ?",
                    (account, &name.digest, name.generation),
                )?)
            })?;
            removed += 1;
        }
    }
}

/// Removes all objects of an account that is being removed. False: it has some, and this node knows no object store.
pub(crate) fn clear(pool: &Pool, bodies: Option<&Bodies>, account: u64) -> Result<bool> {
    let doom = |table: &str| {
        format!(
            "INSERT IGNORE INTO doomed_object (account, digest, generation) \
             SELECT DISTINCT account, digest, generation FROM {table} WHERE account = ?"
        )
    };
    let is_any = pool.run("removing the bodies of an account", |connection| {
        connection.query_drop("START TRANSACTION")?;
        for table in ["object", "body_object"] {
            connection.exec_drop(doom(table), (account,))?;
        }
        let any: Option<u32> =
            connection.exec_first("SELECT 1 FROM doomed_object WHERE account = ? LIMIT 1", (account,))?;
        connection.query_drop("COMMIT")?;
        Ok(any.is_some())
    })?;
    match bodies {
        _ if !is_any => Ok(true),
        Some(bodies) => remove_doomed(pool, bodies, account).map(|_| true),
        None => Ok(false),
    }
}

/// Forgets the objects of an account that is in another cell now: they are that one's. Those that nothing refers to are removed.
pub(crate) fn forget(pool: &Pool, bodies: Option<&Bodies>, account: u64) -> Result<()> {
    pool.run("forgetting the bodies of an account", |connection| {
        connection.query_drop("START TRANSACTION")?;
        connection.exec_drop(
            "INSERT IGNORE INTO doomed_object (account, digest, generation) \
             SELECT account, digest, generation FROM object WHERE account = ? AND unused_since IS NOT NULL",
            (account,),
        )?;
        for table in ["object", "body_object"] {
            connection.exec_drop(format!("DELETE FROM {table} WHERE account = ?"), (account,))?;
        }
        Ok(connection.query_drop("COMMIT")?)
    })?;
    bodies.map_or(Ok(()), |bodies| remove_doomed(pool, bodies, account).map(drop))
}
