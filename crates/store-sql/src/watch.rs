//! One thread a database that looks, again and again, what other nodes did to the accounts that are open here, and which of them other
//! nodes want to write to.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use index::Log;
use model::ErrorKind;
use mysql::prelude::Queryable;

use crate::lease::NO_NODE;
use crate::pool::Pool;

/// Accounts in one question.
const ACCOUNTS_PER_QUESTION: usize = 500;

pub(crate) struct Watch {
    pool: Arc<Pool>,
    node: u64,
    shared: Mutex<Shared>,
    changed: Condvar,
}

#[derive(Default)]
struct Shared {
    open: BTreeMap<u64, Weak<Log>>,
    is_stopped: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

impl Watch {
    /// Looks every `poll`. Ends when it is stopped.
    pub(crate) fn start(pool: Arc<Pool>, node: u64, poll: Duration) -> Arc<Watch> {
        let watch = Arc::new(Watch { pool, node, shared: Mutex::default(), changed: Condvar::new() });
        let looking = Arc::clone(&watch);
        let begun = thread::Builder::new().name("sql-watch".to_owned()).spawn(move || looking.run(poll));
        if let Err(error) = begun {
            tracing::error!(target: "sql", "no thread to look after other nodes: {error}");
        }
        watch
    }

    pub(crate) fn stop(&self) {
        self.shared().is_stopped = true;
        self.changed.notify_all();
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the log hears of its account.
    pub(crate) fn add(&self, account: u64, log: Weak<Log>) {
        self.shared().open.insert(account, log);
        self.changed.notify_all();
    }

    /// The account is not here any more.
    pub(crate) fn remove(&self, account: u64) {
        self.shared().open.remove(&account);
    }

    fn run(&self, poll: Duration) {
        let mut was_away = false;
        loop {
            let open = {
                let mut shared = self.shared();
                while shared.open.is_empty() && !shared.is_stopped {
                    shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
                }
                if !shared.is_stopped {
                    (shared, _) = self.changed.wait_timeout(shared, poll).unwrap_or_else(PoisonError::into_inner);
                }
                if shared.is_stopped {
                    return;
                }
                shared.open.retain(|_, log| log.strong_count() > 0);
                shared.open.clone()
            };
            let is_away = match self.look(&open) {
                Ok(()) => false,
                Err(error) => {
                    if !was_away {
                        tracing::warn!(target: "sql", "cannot see what other nodes do: {error}");
                    }
                    true
                }
            };
            was_away = is_away;
        }
    }

    fn look(&self, open: &BTreeMap<u64, Weak<Log>>) -> model::Result<()> {
        let wanted: Vec<u64> = self.pool.run("looking who waits", |connection| {
            Ok(connection.exec("SELECT account FROM wanted WHERE owner = ?", (self.node,))?)
        })?;
        // One account's trouble is not that of the others.
        let mut trouble = None;
        let mut note = |result: model::Result<()>| match result {
            // It was removed: who still has it open hears of that.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => drop(trouble.get_or_insert(error)),
            Ok(()) => {}
        };
        for log in wanted.iter().filter_map(|account| open.get(account)?.upgrade()) {
            note(log.give_way());
        }
        let followed: Vec<(u64, Arc<Log>)> = open
            .iter()
            .filter_map(|(account, log)| Some((*account, log.upgrade()?)))
            .filter(|(_, log)| !log.is_writer())
            .collect();
        for accounts in followed.chunks(ACCOUNTS_PER_QUESTION) {
            let ids: Vec<String> = accounts.iter().map(|(id, _)| id.to_string()).collect();
            let question =
                format!("SELECT id, modseq FROM account WHERE id IN ({}) AND owner < {NO_NODE}", ids.join(","));
            let answers: BTreeMap<u64, u64> = self
                .pool
                .run("looking for news", |connection| Ok(connection.query::<(u64, u64), _>(&question)?))?
                .into_iter()
                .collect();
            for (id, log) in accounts {
                // One that is not there may have moved.
                if answers.get(id).is_none_or(|modseq| *modseq != log.state().modseq().0) {
                    note(log.catch_up());
                }
            }
        }
        trouble.map_or(Ok(()), Err)
    }
}
