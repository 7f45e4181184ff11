//! A database with accounts: settings, and making and finding accounts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use index::Journal;
use model::{AccountName, Error, ErrorKind, MailboxId, MailboxName, ModSeq, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use platform::Env;
use store::{Cluster, ClusterCopy};

use crate::account::Account;
use crate::failure::{Failure, damaged};
use crate::lease::NO_NODE;
use crate::pool::Pool;
use crate::schema;
use crate::tls::Tls;
use crate::watch::Watch;

/// How a database is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its servers, as `mysql://USER:PASSWORD@HOST:PORT/DATABASE`. With several, all have the same data (Galera), and the first that
    /// answers is used.
    pub urls: Vec<String>,
    /// Connections that are open at once, at most.
    pub connections_max: usize,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long something is tried again before the client hears of it.
    pub retry: Duration,
    /// How often is asked what other nodes did.
    pub poll: Duration,
    /// How long a node that says nothing keeps the right to write to an account.
    pub lease: Duration,
    /// With `None` connections are not encrypted.
    pub tls: Option<Tls>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            urls: Vec::new(),
            connections_max: 16,
            timeout: Duration::from_secs(10),
            retry: Duration::from_secs(5),
            poll: Duration::from_millis(100),
            lease: Duration::from_secs(5),
            tls: None,
        }
    }
}

/// A database with accounts, as one node sees it.
pub struct Database {
    pool: Arc<Pool>,
    watch: Arc<Watch>,
    /// This node, for as long as it runs.
    node: u64,
    settings: Settings,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database(node {:016x})", self.node)
    }
}

/// "Duplicate entry".
const DUPLICATE: u16 = 1062;

impl Database {
    /// Nothing is asked yet: a database that is away now may be there when somebody wants mail.
    pub fn new(env: Env, settings: Settings) -> Result<Arc<Database>> {
        let pool = Pool::new(env.clone(), &settings)?;
        // Never 0, which is nobody.
        let node = env.random.u64() | 1;
        let watch = Watch::start(Arc::clone(&pool), node, settings.poll);
        Ok(Arc::new(Database { pool, watch, node, settings }))
    }

    /// Makes the tables, or brings them up to date. Returns the version of the schema that was there; 0: none.
    pub fn update(&self) -> Result<u32> {
        schema::update(&self.pool)
    }

    /// An error, [`ErrorKind::Io`], unless the database can be used as it is.
    pub fn check(&self) -> Result<()> {
        schema::check(&self.pool)
    }

    /// The version of the schema that this program needs.
    pub fn schema_version() -> u32 {
        schema::newest()
    }
}

impl Database {
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// An account that was found.
    pub(crate) fn account(&self, id: u64, incarnation: u32) -> Arc<Account> {
        let (pool, watch) = (Arc::clone(&self.pool), Arc::clone(&self.watch));
        Arc::new(Account::new(pool, watch, self.node, id, incarnation, self.settings.lease))
    }

    /// Removes the rows of accounts that were removed; also of those of which somebody else did not finish the removal.
    pub(crate) fn clear_removed(&self) -> Result<()> {
        let removed: Vec<u64> = self.pool.run("looking for removed accounts", |connection| {
            Ok(connection.exec("SELECT id FROM account WHERE owner = ?", (REMOVED,))?)
        })?;
        for id in removed {
            for table in TABLES {
                loop {
                    let count = self.pool.run("removing an account", |connection| {
                        connection.exec_drop(
                            format!("DELETE FROM {table} WHERE account = ? LIMIT {REMOVED_AT_ONCE}"),
                            (id,),
                        )?;
                        Ok(connection.affected_rows())
                    })?;
                    if count < REMOVED_AT_ONCE {
                        break;
                    }
                }
            }
            self.pool.run("removing an account", |connection| {
                Ok(connection.exec_drop("DELETE FROM account WHERE id = ? AND owner = ?", (id, REMOVED))?)
            })?;
        }
        Ok(())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.watch.stop();
    }
}

impl Cluster for Database {
    fn create(&self, name: &AccountName) -> Result<()> {
        schema::check(&self.pool)?;
        let env = self.pool.env();
        // Of 63 bits, since not every program reads unsigned numbers.
        let (id, incarnation) = (env.random.u64() >> 1, (env.random.u64() >> 32) as u32 | 1);
        let now = env.clock.now().seconds;
        let uidvalidity = u32::try_from(now).unwrap_or(1).max(1);
        let mut is_retry = false;
        self.pool.run("making an account", |connection| {
            // After a lost answer the account may be there: then with this id.
            if std::mem::replace(&mut is_retry, true) && find(connection, name)?.is_some_and(|found| found.0 == id) {
                return Ok(());
            }
            let made = insert(connection, id, name, now, incarnation, uidvalidity);
            match made {
                Err(Failure::Sql(mysql::Error::MySqlError(error))) if error.code == DUPLICATE => {
                    Err(Error::new(ErrorKind::AlreadyExists, format!("there is an account {name} already")).into())
                }
                result => result,
            }
        })
    }

    fn find(&self, name: &AccountName) -> Result<Option<Arc<dyn Journal>>> {
        schema::check(&self.pool)?;
        let found = self.pool.run("looking for an account", |connection| find(connection, name))?;
        Ok(found.map(|(id, incarnation)| self.account(id, incarnation) as Arc<dyn Journal>))
    }

    fn delete(&self, name: &AccountName) -> Result<()> {
        let not_there = || Error::new(ErrorKind::NotFound, format!("there is no account {name}"));
        let found = self.pool.run("looking for an account", |connection| find(connection, name))?;
        let (id, _) = found.ok_or_else(not_there)?;
        // First nobody finds it or writes to it any more; then its rows go, some at a time.
        self.pool.run("removing an account", |connection| {
            Ok(connection.exec_drop(
                "UPDATE account SET name = ?, owner = ?, epoch = epoch + 1 WHERE id = ?",
                (removed_name(id), REMOVED, id),
            )?)
        })?;
        self.clear_removed()
    }

    fn accounts(&self) -> Result<Vec<AccountName>> {
        let names = self.pool.run("listing accounts", |connection| {
            Ok(connection.query::<Vec<u8>, _>("SELECT name FROM account ORDER BY name")?)
        })?;
        let names = names.iter().filter_map(|name| AccountName::new(std::str::from_utf8(name).ok()?).ok());
        let mut names: Vec<AccountName> = names.collect();
        names.sort();
        Ok(names)
    }

    fn copy(&self, name: &AccountName, make: bool) -> Result<Option<Arc<dyn ClusterCopy>>> {
        self.copy_of(name, make)
    }

    fn publish(&self, name: &AccountName) -> Result<()> {
        self.publish_copy(name)
    }

    fn retire(&self, name: &AccountName, modseq: ModSeq) -> Result<bool> {
        self.retire_account(name, modseq)
    }

    fn drop_copy(&self, name: &AccountName) -> Result<()> {
        self.drop_copy_of(name)
    }
}

/// What a removed account is called: no account can be.
pub(crate) fn removed_name(id: u64) -> String {
    format!("{REMOVED_PREFIX}{id}")
}

/// The owner of an account that was removed and whose rows are going.
pub(crate) const REMOVED: u64 = u64::MAX;
/// The name of such an account, before its id: no account can have it.
const REMOVED_PREFIX: &str = ".removed-";
/// Rows that are deleted in one transaction: those of `body` have up to 1 MiB.
const REMOVED_AT_ONCE: u64 = 500;

/// The tables that have an account's rows, but for `account`.
const TABLES: [&str; 12] = [
    "tenure",
    "wanted",
    "mailbox",
    "entry",
    "expunged",
    "keyword",
    "annotation",
    "subscription",
    "message",
    "attachment",
    "header",
    "body",
];

pub(crate) fn find(connection: &mut Conn, name: &AccountName) -> Result<Option<(u64, u32)>, Failure> {
    let row = connection.exec_first(
        "SELECT id, incarnation FROM account WHERE name = ? AND owner < ?",
        (name.as_str().as_bytes(), NO_NODE),
    )?;
    row.map(|row: mysql::Row| mysql::from_row_opt(row).map_err(damaged)).transpose()
}

/// Makes an account and its INBOX.
fn insert(
    connection: &mut Conn,
    id: u64,
    name: &AccountName,
    now: i64,
    incarnation: u32,
    uidvalidity: u32,
) -> Result<(), Failure> {
    connection.query_drop("START TRANSACTION")?;
    connection.exec_drop(
        "INSERT INTO account (id, name, created, incarnation, modseq, email_id_next, mailbox_id_next, uidvalidity_last) \
         VALUES (?, ?, ?, ?, 1, 1, 2, ?)",
        (id, name.as_str().as_bytes(), now, incarnation, uidvalidity),
    )?;
    connection.exec_drop(
        "INSERT INTO mailbox (account, id, name, uidvalidity, uidnext, highest_modseq, created, special_use, recent_floor, \
         vanished_floor, deleted_at, touched) VALUES (?, ?, ?, ?, 1, 1, ?, 0, 1, 0, NULL, 1)",
        (id, MailboxId(1).0, MailboxName::inbox().as_str(), uidvalidity, now),
    )?;
    Ok(connection.query_drop("COMMIT")?)
}
