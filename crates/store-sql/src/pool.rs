//! Connections to one database, and the patience with it.
//!
//! A connection that saw an error which may have left something open is closed, not used again. Servers are tried in the order of the
//! configuration, beginning with the one that answered last.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use platform::Env;

use crate::database::Settings;
use crate::failure::Failure;

/// Statements that a connection keeps prepared.
const STATEMENTS_MAX: usize = 64;
/// The wait between two tries, at first; it doubles.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// And at most.
const PAUSE_MAX: Duration = Duration::from_millis(200);

pub(crate) struct Pool {
    env: Env,
    servers: Vec<Opts>,
    /// The server that answered last.
    last_good: AtomicUsize,
    idle: Mutex<Idle>,
    freed: Condvar,
    connections_max: usize,
    timeout: Duration,
    retry: Duration,
}

#[derive(Default)]
struct Idle {
    connections: Vec<Conn>,
    /// Idle ones and those in use.
    open: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} servers)", self.servers.len())
    }
}

/// A connection in use: goes back when it is kept, is closed when it is dropped.
pub(crate) struct Borrowed<'p> {
    pool: &'p Pool,
    connection: Option<Conn>,
}

impl Borrowed<'_> {
    pub(crate) fn get(&mut self) -> Result<&mut Conn, Failure> {
        let gone = || Failure::Ours(Error::new(ErrorKind::Io, "the connection is gone"));
        self.connection.as_mut().ok_or_else(gone)
    }

    /// Nothing is open on it: another may use it.
    fn keep(mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.idle().connections.push(connection);
            self.pool.freed.notify_one();
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if self.connection.take().is_some() {
            self.pool.idle().open -= 1;
            self.pool.freed.notify_one();
        }
    }
}

impl Pool {
    /// Nothing is connected yet. [`ErrorKind::Invalid`]: an address that cannot be one.
    pub(crate) fn new(env: Env, settings: &Settings) -> Result<Arc<Pool>> {
        let timeout = settings.timeout;
        let server = |url: &String| {
            let invalid = |error: mysql::UrlError| {
                Error::new(ErrorKind::Invalid, format!("the address of a database is none: {error}"))
            };
            let opts = OptsBuilder::from_opts(Opts::from_url(url).map_err(invalid)?);
            let opts = opts.tcp_connect_timeout(Some(timeout)).read_timeout(Some(timeout));
            let opts = opts.ssl_opts(settings.tls.as_ref().map(crate::tls::opts));
            let opts = opts.write_timeout(Some(timeout)).stmt_cache_size(STATEMENTS_MAX).prefer_socket(false);
            Ok(Opts::from(opts))
        };
        let servers: Vec<Opts> = settings.urls.iter().map(server).collect::<Result<_>>()?;
        if servers.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "no database is named"));
        }
        Ok(Arc::new(Pool {
            env,
            servers,
            last_good: AtomicUsize::new(0),
            idle: Mutex::default(),
            freed: Condvar::new(),
            connections_max: settings.connections_max.max(1),
            timeout,
            retry: settings.retry,
        }))
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// How long an answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a connection, and again on the same or another one as long as trying again may help and the patience lasts. `work`
    /// must bear to be done twice. `doing` is for the error.
    pub(crate) fn run<T>(&self, doing: &str, mut work: impl FnMut(&mut Conn) -> Result<T, Failure>) -> Result<T> {
        let begun = self.env.clock.monotonic();
        let mut pause = PAUSE_MIN;
        loop {
            let failure = match self.once(&mut work) {
                Ok(value) => return Ok(value),
                Err(failure) => failure,
            };
            let waited = self.env.clock.monotonic().saturating_sub(begun);
            if !failure.is_transient() || waited >= self.retry {
                return Err(failure.into_error(doing));
            }
            tracing::debug!(target: "sql", "{doing}: {failure:?}; tried again");
            self.env.clock.sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn once<T>(&self, work: &mut impl FnMut(&mut Conn) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut borrowed = self.borrow()?;
        let result = work(borrowed.get()?);
        match &result {
            Ok(_) => borrowed.keep(),
            Err(failure) if failure.keeps_connection() => {
                if borrowed.get()?.query_drop("ROLLBACK").is_ok() {
                    borrowed.keep();
                }
            }
            Err(_) => {
                // Another server may be better off, and what is open to this one will fail as well.
                self.last_good.fetch_add(1, Ordering::Relaxed);
                let mut idle = self.idle();
                idle.open -= idle.connections.len();
                idle.connections.clear();
            }
        }
        result
    }

    /// A connection; opened when there is none to spare.
    fn borrow(&self) -> Result<Borrowed<'_>, Failure> {
        let mut idle = self.idle();
        loop {
            if let Some(connection) = idle.connections.pop() {
                return Ok(Borrowed { pool: self, connection: Some(connection) });
            }
            if idle.open < self.connections_max {
                break;
            }
            let (again, waited) = self.freed.wait_timeout(idle, self.timeout).unwrap_or_else(PoisonError::into_inner);
            idle = again;
            if waited.timed_out() {
                let text = "all connections to the database are in use (limit sql.connections_max)";
                return Err(Failure::Ours(Error::new(ErrorKind::Io, text)));
            }
        }
        idle.open += 1;
        drop(idle);
        match self.connect() {
            Ok(connection) => Ok(Borrowed { pool: self, connection: Some(connection) }),
            Err(failure) => {
                self.idle().open -= 1;
                self.freed.notify_one();
                Err(failure)
            }
        }
    }

    /// Connects to the first server that answers.
    fn connect(&self) -> Result<Conn, Failure> {
        let first = self.last_good.load(Ordering::Relaxed) % self.servers.len();
        let mut last = None;
        for step in 0..self.servers.len() {
            let number = (first + step) % self.servers.len();
            let Some(server) = self.servers.get(number) else { continue };
            match begin(server) {
                Ok(connection) => {
                    self.last_good.store(number, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) => last = Some(error),
            }
        }
        let nobody = || Failure::Ours(Error::new(ErrorKind::Invalid, "no database is named"));
        Err(last.map_or_else(nobody, Failure::Sql))
    }
}

/// A new connection, set up as the statements here want it.
fn begin(server: &Opts) -> mysql::Result<Conn> {
    let mut connection = Conn::new(server.clone())?;
    // Every writer locks the account's row first; gap locks would only make neighbours wait.
    connection.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
    connection.query_drop(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION time_zone = '+00:00', SESSION innodb_lock_wait_timeout = 5",
    )?;
    // Galera: reads wait until this server has what others acknowledged. Where there is no Galera, there is no such variable.
    match connection.query_drop("SET SESSION wsrep_sync_wait = 1") {
        Err(mysql::Error::MySqlError(error)) if error.code == 1193 => Ok(connection),
        result => result.map(|()| connection),
    }
}
