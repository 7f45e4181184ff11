//! Which node may write to an account.
//!
//! The account's row names an owner, an epoch, and how long the owner may say nothing. The epoch rises whenever the owner changes, and every
//! commit asks for it, so an owner that was taken for dead and is not can do no harm. `tenure` keeps where each epoch ended: who is not sure
//! whether its last commit was done finds it there.
//!
//! Who wants to write and is not the owner says so in `wanted`; the owner sees it with its next look ([`crate::watch`]), makes durable what it
//! has, and hands the account over. Only when it does not answer until its lease is over is it taken from it.

use std::time::Duration;

use index::{News, Wait};
use model::{Error, ErrorKind, ModSeq, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::account::Account;
use crate::failure::{Failure, damaged};
use crate::read;

/// The wait between two looks for an account that another node has.
const LOOK: Duration = Duration::from_millis(10);
/// The owner is told again that we want the account: it may have handed it to us, and taken it again when we were too slow to see that.
const TELL_AGAIN: Duration = Duration::from_millis(500);

/// Owners from here on are none: the account is not here, or not any more.
pub(crate) const NO_NODE: u64 = u64::MAX - 2;
/// The owner of an account that has moved to another cell ([`crate::moving`]).
pub(crate) const MOVED: u64 = u64::MAX - 2;
/// The owner of a copy of an account that lives elsewhere ([`crate::copies`]).
pub(crate) const COPY: u64 = u64::MAX - 1;

/// This node's right to write to an account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tenure {
    pub(crate) epoch: u64,
    /// The account's modseq: nobody else changes it, and the next batch begins behind it.
    pub(crate) modseq: u64,
    /// Until when nobody takes it from us, by the monotonic clock.
    pub(crate) until: Duration,
    /// It is to be given away: no transaction begins any more.
    pub(crate) is_ending: bool,
}

/// What the account's row says of its owner.
struct Owner {
    modseq: u64,
    epoch: u64,
    owner: u64,
    /// Its lease is not over.
    is_alive: bool,
}

/// What came of trying.
enum Tried {
    Taken(Tenure, Option<Box<News>>),
    /// Another node has it.
    Busy {
        owner: u64,
    },
}

fn owner(connection: &mut Conn, account: u64, incarnation: u32) -> Result<Owner, Failure> {
    let row: Option<mysql::Row> = connection.exec_first(
        "SELECT modseq, epoch, owner, lease_until > UTC_TIMESTAMP(6), incarnation FROM account WHERE id = ? FOR UPDATE",
        (account,),
    )?;
    let row = row.ok_or_else(|| Failure::Ours(removed()))?;
    let (modseq, epoch, owner, is_alive, now): (u64, u64, u64, bool, u32) =
        mysql::from_row_opt(row).map_err(damaged)?;
    if owner >= NO_NODE {
        return Err(removed().into());
    }
    if now != incarnation {
        let text = "the account was put back from a copy while it was open; it has to be opened anew";
        return Err(Error::new(ErrorKind::ReadOnlyAfterFailure, text).into());
    }
    Ok(Owner { modseq, epoch, owner, is_alive })
}

pub(crate) fn removed() -> Error {
    Error::new(ErrorKind::NotFound, "the account was removed")
}

/// Makes `node` the owner from the next epoch on.
fn hand_over(connection: &mut Conn, account: u64, from: &Owner, node: u64, lease: Duration) -> Result<u64, Failure> {
    let epoch = from.epoch + 1;
    connection.exec_drop(
        "UPDATE account SET owner = ?, epoch = ?, lease_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE id = ?",
        (node, epoch, micros(lease), account),
    )?;
    connection.exec_drop(
        "UPDATE tenure SET modseq_last = ? WHERE account = ? AND epoch = ?",
        (from.modseq, account, from.epoch),
    )?;
    connection.exec_drop(
        "INSERT INTO tenure (account, epoch, owner, modseq_last) VALUES (?, ?, ?, NULL)",
        (account, epoch, node),
    )?;
    connection.exec_drop("DELETE FROM wanted WHERE account = ? AND node = ?", (account, node))?;
    Ok(epoch)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Account {
    /// [`index::Journal::take`]
    pub(crate) fn take_tenure(
        &self,
        since: ModSeq,
        wait: Wait,
        install: &mut dyn FnMut(&News) -> Result<()>,
    ) -> Result<()> {
        let clock = &self.pool.env().clock;
        let begun = clock.monotonic();
        let mut told = None;
        loop {
            match self.pool.run("asking for the right to write", |connection| self.try_take(connection, since))? {
                Tried::Taken(tenure, news) => {
                    news.map_or(Ok(()), |news| install(&news))?;
                    *self.tenure() = Some(tenure);
                    return Ok(());
                }
                Tried::Busy { .. } if wait == Wait::Never => {
                    return Err(Error::new(ErrorKind::InUse, "another node writes to the account"));
                }
                Tried::Busy { owner } => {
                    // A dead owner is waited for as long as its lease; who hands it over may have much to write first.
                    if clock.monotonic().saturating_sub(begun) > self.lease * 2 + self.pool.timeout() {
                        return Err(Error::new(ErrorKind::Io, "another node does not give the account away"));
                    }
                    let now = clock.monotonic();
                    if told.is_none_or(|(who, at)| who != owner || now.saturating_sub(at) > TELL_AGAIN) {
                        self.pool.run("asking another node for an account", |connection| {
                            Ok(connection.exec_drop(
                                "INSERT INTO wanted (account, node, owner) VALUES (?, ?, ?) \
                                 ON DUPLICATE KEY UPDATE owner = VALUES(owner)",
                                (self.id, self.node, owner),
                            )?)
                        })?;
                        told = Some((owner, now));
                    }
                    clock.sleep(LOOK);
                }
            }
        }
    }

    fn try_take(&self, connection: &mut Conn, since: ModSeq) -> Result<Tried, Failure> {
        let asked_at = self.pool.env().clock.monotonic();
        connection.query_drop("START TRANSACTION")?;
        let found = owner(connection, self.id, self.incarnation)?;
        let epoch = if found.owner == self.node {
            // Still ours, or it was handed to us.
            connection.exec_drop(
                "UPDATE account SET lease_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE id = ?",
                (micros(self.lease), self.id),
            )?;
            found.epoch
        } else if found.owner == 0 || !found.is_alive {
            hand_over(connection, self.id, &found, self.node, self.lease)?
        } else {
            connection.query_drop("ROLLBACK")?;
            return Ok(Tried::Busy { owner: found.owner });
        };
        let news = if found.modseq == since.0 {
            None
        } else {
            let head = read::head(connection, self.id)?.ok_or_else(removed)?;
            Some(Box::new(read::news(connection, self.id, since, &head)?))
        };
        connection.query_drop("COMMIT")?;
        let until = asked_at + self.lease;
        Ok(Tried::Taken(Tenure { epoch, modseq: found.modseq, until, is_ending: false }, news))
    }

    /// [`index::Journal::give`]
    pub(crate) fn give_tenure(&self) -> Result<()> {
        let Some(tenure) = self.tenure().take() else { return Ok(()) };
        self.pool.run("handing over an account", |connection| {
            connection.query_drop("START TRANSACTION")?;
            let found = owner(connection, self.id, self.incarnation)?;
            if found.owner == self.node && found.epoch == tenure.epoch {
                // Anyone: by its number one would always come before another that waits for as long as it does.
                let next = connection.exec_first(
                    "SELECT node FROM wanted WHERE account = ? AND node <> ? ORDER BY RAND() LIMIT 1",
                    (self.id, self.node),
                )?;
                match next {
                    Some(next) => drop(hand_over(connection, self.id, &found, next, self.lease)?),
                    None => connection.exec_drop("UPDATE account SET owner = 0 WHERE id = ?", (self.id,))?,
                }
            }
            Ok(connection.query_drop("COMMIT")?)
        })
    }

    /// Whether the commit that made `modseq` in `tenure` was done, when the account's row is locked and says `epoch` and `now`.
    pub(crate) fn was_committed(
        &self,
        connection: &mut Conn,
        tenure: &Tenure,
        modseq: u64,
        epoch: u64,
        now: u64,
    ) -> Result<bool, Failure> {
        if epoch == tenure.epoch {
            return Ok(now >= modseq);
        }
        let last: Option<Option<u64>> = connection
            .exec_first("SELECT modseq_last FROM tenure WHERE account = ? AND epoch = ?", (self.id, tenure.epoch))?;
        Ok(last.flatten().is_some_and(|last| last >= modseq))
    }

    /// Locks the account's row and says its epoch and modseq.
    pub(crate) fn lock_row(&self, connection: &mut Conn) -> Result<(u64, u64), Failure> {
        let found = owner(connection, self.id, self.incarnation)?;
        Ok((found.epoch, found.modseq))
    }

    /// The microseconds of the lease.
    pub(crate) fn lease_micros(&self) -> u64 {
        micros(self.lease)
    }
}
