//! Several databases ("cells") as one cluster: which account is in which, and what follows an account that moves.
//!
//! The first cell has the `directory`: a row for each account that is not where new accounts were put when there was no other cell. Moving
//! (`moving`) changes the row; a node that finds an account gone asks the directory again and goes on in the other cell ([`Routed`]).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use index::{Foreign, ForeignMessage, Journal, Log, News, State, Transacted, Wait};
use model::{AccountName, EmailId, Error, ErrorKind, ModSeq, Result};
use mysql::prelude::Queryable;
use platform::Env;
use store::{Cluster, ClusterCopy};

use crate::account::Account;
use crate::database::{Database, Settings, find};
use crate::schema;

/// The cell that has the directory.
pub const FIRST_CELL: &str = "main";
/// Characters of a cell's name.
const NAME_CHARS_MAX: usize = 64;
/// How often an account is looked for that is just moving.
const TRIES: usize = 3;

/// Databases that share the accounts.
pub struct Cells {
    pub(crate) env: Env,
    cells: BTreeMap<String, Arc<Database>>,
    /// Where new accounts are put.
    new_accounts: String,
}

impl fmt::Debug for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cells({})", self.cells.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}

/// Where an account is, as the directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cell: String,
    pub(crate) moving_to: Option<String>,
}

impl Cells {
    /// The first cell, the others by name, and the name of the one that new accounts are put into. Nothing is asked yet.
    /// [`ErrorKind::Invalid`]: a name that cannot be one, or is there twice or not at all.
    pub fn new(env: Env, first: Settings, others: Vec<(String, Settings)>, new_accounts: &str) -> Result<Arc<Cells>> {
        let mut cells = BTreeMap::from([(FIRST_CELL.to_owned(), Database::new(env.clone(), first)?)]);
        for (name, settings) in others {
            let is_name = |name: &str| {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(is_part)
            };
            if !is_name(&name) || cells.contains_key(&name) {
                return Err(Error::new(ErrorKind::Invalid, format!("{name:?} cannot be the name of one more cell")));
            }
            cells.insert(name, Database::new(env.clone(), settings)?);
        }
        let new_accounts = if new_accounts.is_empty() { FIRST_CELL } else { new_accounts }.to_owned();
        let cells = Cells { env, cells, new_accounts };
        cells.cell(&cells.new_accounts)?;
        Ok(Arc::new(cells))
    }

    /// Makes the tables in all cells, or brings them up to date. The version of the schema before, of the oldest.
    pub fn update(&self) -> Result<u32> {
        let versions = self.cells.iter().map(|(name, cell)| cell.update().map_err(|error| in_cell(error, name)));
        Ok(versions.collect::<Result<Vec<u32>>>()?.into_iter().min().unwrap_or(0))
    }

    /// An error, [`ErrorKind::Io`], unless all cells can be used as they are.
    pub fn check(&self) -> Result<()> {
        self.cells.iter().try_for_each(|(name, cell)| cell.check().map_err(|error| in_cell(error, name)))
    }

    /// The cell that has the directory.
    pub fn first(&self) -> Result<&Arc<Database>> {
        self.cell(FIRST_CELL)
    }

    /// The cell that an account is in, and the one it is moving to.
    pub fn cell_of(&self, name: &AccountName) -> Result<(String, Option<String>)> {
        let place = self.place(name)?;
        match self.cell(&place.cell)?.find(name)? {
            Some(_) => Ok((place.cell, place.moving_to)),
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no account {name} in a database"))),
        }
    }

    pub(crate) fn cell(&self, name: &str) -> Result<&Arc<Database>> {
        let unknown = || Error::new(ErrorKind::Invalid, format!("no cell {name:?} is configured"));
        self.cells.get(name).ok_or_else(unknown)
    }

    pub(crate) fn others<'a>(&'a self, than: &'a str) -> impl Iterator<Item = &'a Arc<Database>> {
        self.cells.iter().filter(move |(name, _)| *name != than).map(|(_, cell)| cell)
    }

    pub(crate) fn place(&self, name: &AccountName) -> Result<Place> {
        let found: Option<(String, Option<String>)> =
            self.first()?.pool().run("looking into the directory", |connection| {
                Ok(connection
                    .exec_first("SELECT cell, moving_to FROM directory WHERE name = ?", (name.as_str().as_bytes(),))?)
            })?;
        let (cell, moving_to) = found.unwrap_or_else(|| (FIRST_CELL.to_owned(), None));
        Ok(Place { cell, moving_to })
    }

    /// The account, with the cell that it is in. Ends a move that is all but done.
    fn look_up(&self, name: &AccountName) -> Result<Option<(String, Arc<Account>)>> {
        schema::check(self.first()?.pool())?;
        for _ in 0..TRIES {
            let place = self.place(name)?;
            let cell = self.cell(&place.cell)?;
            let found = cell.pool().run("looking for an account", |connection| find(connection, name))?;
            if let Some((id, incarnation)) = found {
                return Ok(Some((place.cell, cell.account(id, incarnation))));
            }
            if !self.end_move(name, &place)? && self.place(name)? == place {
                return Ok(None);
            }
        }
        Err(Error::new(ErrorKind::Io, format!("the account {name} is moving")))
    }

    /// Says in the directory that an account is in a cell, if nothing is said yet.
    fn enter(&self, name: &AccountName, cell: &str) -> Result<()> {
        if cell == FIRST_CELL {
            return Ok(());
        }
        self.first()?.pool().run("writing into the directory", |connection| {
            Ok(connection.exec_drop(
                "INSERT IGNORE INTO directory (name, cell, moving_to) VALUES (?, ?, NULL)",
                (name.as_str().as_bytes(), cell),
            )?)
        })
    }

    fn strike(&self, name: &AccountName) -> Result<()> {
        self.first()?.pool().run("writing into the directory", |connection| {
            Ok(connection.exec_drop("DELETE FROM directory WHERE name = ?", (name.as_str().as_bytes(),))?)
        })
    }

    fn home_of(&self, name: &AccountName) -> Result<&Arc<Database>> {
        self.cell(&self.place(name)?.cell)
    }
}

fn in_cell(error: Error, name: &str) -> Error {
    error.context(format!("cell {name}"))
}

/// The cluster; made of the cells so that what it gives can ask them again.
#[derive(Clone, Debug)]
pub struct CellCluster(pub Arc<Cells>);

impl Cluster for CellCluster {
    fn create(&self, name: &AccountName) -> Result<()> {
        if self.0.look_up(name)?.is_some() {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("there is an account {name} already")));
        }
        // Who comes first says where it is; that there is one of a name is seen to by the cell.
        self.0.enter(name, &self.0.new_accounts)?;
        self.0.home_of(name)?.create(name)
    }

    fn find(&self, name: &AccountName) -> Result<Option<Arc<dyn Journal>>> {
        let Some((cell, account)) = self.0.look_up(name)? else { return Ok(None) };
        Ok(Some(Arc::new(Routed {
            cells: Arc::clone(&self.0),
            name: name.clone(),
            incarnation: account.incarnation,
            current: RwLock::new((cell, account)),
            log: Mutex::default(),
        })))
    }

    fn delete(&self, name: &AccountName) -> Result<()> {
        let place = self.0.place(name)?;
        if place.moving_to.is_some() {
            return Err(Error::new(ErrorKind::InUse, format!("the account {name} is moving to another cell")));
        }
        self.0.cell(&place.cell)?.delete(name)?;
        self.0.strike(name)
    }

    fn accounts(&self) -> Result<Vec<AccountName>> {
        let mut names = Vec::new();
        for cell in self.0.cells.values() {
            names.extend(cell.accounts()?);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn copy(&self, name: &AccountName, make: bool) -> Result<Option<Arc<dyn ClusterCopy>>> {
        if make {
            self.0.enter(name, &self.0.new_accounts)?;
        }
        self.0.home_of(name)?.copy(name, make)
    }

    fn publish(&self, name: &AccountName) -> Result<()> {
        self.0.home_of(name)?.publish(name)
    }

    fn retire(&self, name: &AccountName, modseq: ModSeq) -> Result<bool> {
        let place = self.0.place(name)?;
        if place.moving_to.is_some() {
            return Err(Error::new(ErrorKind::InUse, format!("the account {name} is moving to another cell")));
        }
        self.0.cell(&place.cell)?.retire(name, modseq)
    }

    fn drop_copy(&self, name: &AccountName) -> Result<()> {
        let place = self.0.place(name)?;
        let cell = self.0.cell(&place.cell)?;
        cell.drop_copy(name)?;
        if cell.find(name)?.is_none() { self.0.strike(name) } else { Ok(()) }
    }
}

/// What stands behind an account, wherever it is.
#[derive(Debug)]
struct Routed {
    cells: Arc<Cells>,
    name: AccountName,
    incarnation: u32,
    current: RwLock<(String, Arc<Account>)>,
    log: Mutex<Weak<Log>>,
}

impl Routed {
    fn current(&self) -> (String, Arc<Account>) {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks where the account is; whether that is elsewhere than it was.
    fn has_moved(&self, was: &str) -> Result<bool> {
        let Some((cell, account)) = self.cells.look_up(&self.name)? else { return Ok(false) };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.0 != was {
            // Another thread was here.
            return Ok(true);
        }
        if cell == was || account.incarnation != self.incarnation {
            return Ok(false);
        }
        tracing::info!(target: "sql", account = %self.name, from = was, to = cell, "the account has moved");
        current.1.detach();
        account.attach(Weak::clone(&self.log.lock().unwrap_or_else(PoisonError::into_inner)));
        *current = (cell, account);
        Ok(true)
    }

    /// Asks the account, and again in another cell when it is there.
    fn ask<T>(&self, mut ask: impl FnMut(&Account) -> Result<T>) -> Result<T> {
        for _ in 0..TRIES {
            let (cell, account) = self.current();
            match ask(&account) {
                Err(error) if may_have_moved(&error) && self.has_moved(&cell)? => {}
                result => return result,
            }
        }
        Err(Error::new(ErrorKind::Io, format!("the account {} is moving", self.name)))
    }
}

/// What is said of rows that are gone.
fn may_have_moved(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Expunged | ErrorKind::Corrupt)
}

impl Journal for Routed {
    fn incarnation(&self) -> u32 {
        self.incarnation
    }

    fn is_writer(&self) -> bool {
        self.current().1.is_writer()
    }

    fn take(&self, since: ModSeq, wait: Wait, install: &mut dyn FnMut(&News) -> Result<()>) -> Result<()> {
        self.ask(|account| account.take(since, wait, install))
    }

    fn stop(&self) {
        self.current().1.stop();
    }

    fn give(&self) -> Result<()> {
        self.current().1.give()
    }

    fn news(&self, since: ModSeq) -> Result<Option<News>> {
        self.ask(|account| account.news(since))
    }

    fn commit(&self, state: &State, batch: &[Transacted<'_>]) -> Result<()> {
        let (cell, account) = self.current();
        let result = account.commit(state, batch);
        if let Err(error) = &result
            && may_have_moved(error)
        {
            // The next try is made there.
            let _ = self.has_moved(&cell)?;
            return Err(Error::new(ErrorKind::Io, "the account has moved; nothing was changed"));
        }
        result
    }

    fn message(&self, id: EmailId) -> Result<Option<ForeignMessage>> {
        let (cell, account) = self.current();
        match account.message(id) {
            Ok(None) if self.has_moved(&cell)? => self.current().1.message(id),
            Err(error) if may_have_moved(&error) && self.has_moved(&cell)? => self.current().1.message(id),
            result => result,
        }
    }

    fn messages(&self, ids: Range<u64>) -> Result<Vec<(EmailId, ForeignMessage)>> {
        let (cell, account) = self.current();
        let found = account.messages(ids.clone())?;
        // Rows that are going say nothing.
        if self.has_moved(&cell)? { self.current().1.messages(ids) } else { Ok(found) }
    }

    fn sweep(&self, state: &State, time: i64) -> Result<bool> {
        self.current().1.sweep(state, time)
    }

    fn attach(&self, log: Weak<Log>) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Weak::clone(&log);
        self.current().1.attach(log);
    }
}

impl Foreign for Routed {
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        let (cell, account) = self.current();
        match account.header(id, message, out) {
            Err(error) if may_have_moved(&error) && self.has_moved(&cell)? => {
                out.truncate(before);
                self.current().1.header(id, message, out)
            }
            result => result,
        }
    }

    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (cell, account) = self.current();
        let mut given = 0;
        let mut counting = |piece: &[u8]| {
            given += piece.len() as u64;
            sink(piece)
        };
        match account.range(id, message, range.clone(), &mut counting) {
            Err(error) if may_have_moved(&error) && self.has_moved(&cell)? => {
                // What was given is not given again.
                let mut skip = given;
                self.current().1.range(id, message, range, &mut |piece| {
                    let skipped = skip.min(piece.len() as u64);
                    skip -= skipped;
                    let rest = piece.get(skipped as usize..).unwrap_or_default();
                    if rest.is_empty() { Ok(()) } else { sink(rest) }
                })
            }
            result => result,
        }
    }
}
