//! Accounts that come into a database and go out of it: copies are made, become accounts, and the other way round.

use std::sync::Arc;

use model::{AccountName, Error, ErrorKind, ModSeq, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::copy::Copy;
use crate::database::{Database, REMOVED, find, removed_name};
use crate::failure::Failure;
use crate::lease::COPY;
use crate::schema;

/// The name of a copy, before that of its account: no account can have it.
const COPY_PREFIX: &str = ".copy-";
/// Octets that the name of an account may have, so that its copy can be named.
const NAME_BYTES_MAX: usize = 255 - COPY_PREFIX.len();

fn copy_name(name: &AccountName) -> Result<Vec<u8>> {
    if name.as_str().len() > NAME_BYTES_MAX {
        return Err(Error::new(ErrorKind::Invalid, "the account's name is too long for a copy of it"));
    }
    Ok(format!("{COPY_PREFIX}{name}").into_bytes())
}

fn find_copy(connection: &mut Conn, copy: &[u8]) -> Result<Option<(u64, u32)>, Failure> {
    Ok(connection.exec_first("SELECT id, incarnation FROM account WHERE name = ? AND owner = ?", (copy, COPY))?)
}

impl Database {
    /// [`store::Cluster::copy`]
    pub(crate) fn copy_of(&self, name: &AccountName, make: bool) -> Result<Option<Arc<dyn store::ClusterCopy>>> {
        schema::check(self.pool())?;
        let copy = copy_name(name)?;
        let env = self.pool().env();
        let fresh = (env.random.u64() >> 1, (env.random.u64() >> 32) as u32 | 1, env.clock.now().seconds);
        let found = self.pool().run("looking for the copy of an account", |connection| {
            if let Some(found) = find_copy(connection, &copy)? {
                return Ok(Some(found));
            }
            if !make {
                return Ok(None);
            }
            if find(connection, name)?.is_some() {
                let text = format!("there is an account {name} in the database already");
                return Err(Error::new(ErrorKind::AlreadyExists, text).into());
            }
            let (id, incarnation, now) = fresh;
            connection.exec_drop(
                "INSERT INTO account (id, name, created, incarnation, modseq, email_id_next, mailbox_id_next, uidvalidity_last, \
                 owner) VALUES (?, ?, ?, ?, 0, 1, 1, 0, ?)",
                (id, &copy, now, incarnation, COPY),
            )?;
            Ok(Some((id, incarnation)))
        })?;
        let copy =
            |(id, incarnation)| Arc::new(Copy::new(self.account(id, incarnation))) as Arc<dyn store::ClusterCopy>;
        Ok(found.map(copy))
    }

    /// [`store::Cluster::publish`]
    pub(crate) fn publish_copy(&self, name: &AccountName) -> Result<()> {
        let copy = copy_name(name)?;
        self.pool().run("letting an account in", |connection| {
            // What nodes know of an earlier stay is forgotten.
            connection.exec_drop(
                "UPDATE account SET name = ?, owner = 0, epoch = epoch + 1, incarnation = incarnation + 1 \
                 WHERE name = ? AND owner = ?",
                (name.as_str().as_bytes(), &copy, COPY),
            )?;
            if connection.affected_rows() == 0 && find(connection, name)?.is_none() {
                return Err(Error::new(ErrorKind::NotFound, format!("there is no copy of the account {name}")).into());
            }
            Ok(())
        })
    }

    /// [`store::Cluster::retire`]
    pub(crate) fn retire_account(&self, name: &AccountName, modseq: ModSeq) -> Result<bool> {
        let copy = copy_name(name)?;
        self.pool().run("letting an account out", |connection| {
            connection.query_drop("START TRANSACTION")?;
            let row: Option<(u64, u64, u64)> = connection.exec_first(
                "SELECT id, modseq, epoch FROM account WHERE name = ? FOR UPDATE",
                (name.as_str().as_bytes(),),
            )?;
            let Some((id, now, epoch)) = row else {
                // A try before this one may have done it although no answer came.
                let is_done = find_copy(connection, &copy)?.is_some();
                connection.query_drop("ROLLBACK")?;
                let gone = || Error::new(ErrorKind::NotFound, format!("there is no account {name}"));
                return if is_done { Ok(true) } else { Err(gone().into()) };
            };
            if now != modseq.0 {
                connection.query_drop("ROLLBACK")?;
                return Ok(false);
            }
            connection.exec_drop(
                "UPDATE account SET name = ?, owner = ?, epoch = epoch + 1 WHERE id = ?",
                (&copy, COPY, id),
            )?;
            connection
                .exec_drop("UPDATE tenure SET modseq_last = ? WHERE account = ? AND epoch = ?", (now, id, epoch))?;
            connection.query_drop("COMMIT")?;
            Ok(true)
        })
    }

    /// [`store::Cluster::drop_copy`]
    pub(crate) fn drop_copy_of(&self, name: &AccountName) -> Result<()> {
        let Ok(copy) = copy_name(name) else { return Ok(()) };
        let found = self.pool().run("removing the copy of an account", |connection| {
            let found = find_copy(connection, &copy)?;
            if let Some((id, _)) = found {
                connection.exec_drop(
                    "UPDATE account SET name = ?, owner = ?, epoch = epoch + 1 WHERE id = ?",
                    (removed_name(id), REMOVED, id),
                )?;
            }
            Ok(found)
        })?;
        if found.is_some() { self.clear_removed() } else { Ok(()) }
    }
}
