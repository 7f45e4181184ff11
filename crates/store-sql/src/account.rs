//! One account in the database, as the journal behind a log.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use index::{Foreign, ForeignMessage, Journal, Log, News, State, Transacted, Wait};
use model::{EmailId, Error, ErrorKind, ModSeq, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::bytes::Heads;
use crate::failure::Failure;
use crate::lease::{Tenure, removed};
use crate::pool::Pool;
use crate::read;
use crate::watch::Watch;
use crate::write::Script;

/// An account, as this node sees it.
pub(crate) struct Account {
    pub(crate) pool: Arc<Pool>,
    watch: Arc<Watch>,
    pub(crate) node: u64,
    pub(crate) id: u64,
    pub(crate) incarnation: u32,
    pub(crate) lease: Duration,
    tenure: Mutex<Option<Tenure>>,
    pub(crate) heads: Mutex<Heads>,
    /// When the rows were last swept, by the monotonic clock.
    pub(crate) swept_at: Mutex<Option<Duration>>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Account({})", self.id)
    }
}

impl Account {
    pub(crate) fn new(
        pool: Arc<Pool>,
        watch: Arc<Watch>,
        node: u64,
        id: u64,
        incarnation: u32,
        lease: Duration,
    ) -> Self {
        let (tenure, heads, swept_at) = Default::default();
        Account { pool, watch, node, id, incarnation, lease, tenure, heads, swept_at }
    }

    /// Its log hears of nothing any more.
    pub(crate) fn detach(&self) {
        self.watch.remove(self.id);
    }

    pub(crate) fn tenure(&self) -> MutexGuard<'_, Option<Tenure>> {
        self.tenure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One try to commit; the modseq after it.
    fn try_commit(
        &self,
        connection: &mut Conn,
        tenure: &Tenure,
        script: &Script<'_>,
        state: &State,
    ) -> Result<(), Failure> {
        let modseq = state.modseq().0;
        connection.query_drop("START TRANSACTION")?;
        let (epoch, now) = self.lock_row(connection)?;
        if epoch != tenure.epoch || now != tenure.modseq {
            // A try before this one may have been done although no answer came.
            let was_committed = self.was_committed(connection, tenure, modseq, epoch, now)?;
            connection.query_drop("ROLLBACK")?;
            let lost = "another node has taken over the account; nothing was changed";
            return if was_committed { Ok(()) } else { Err(taken_over(lost).into()) };
        }
        script.run(connection)?;
        connection.exec_drop(
            "UPDATE account SET modseq = ?, email_id_next = ?, mailbox_id_next = ?, uidvalidity_last = ?, \
             lease_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE id = ?",
            (
                modseq,
                state.email_ids_end(),
                state.mailbox_ids_end(),
                state.uidvalidity_last(),
                self.lease_micros(),
                self.id,
            ),
        )?;
        Ok(connection.query_drop("COMMIT")?)
    }
}

/// Nothing was changed, and the caller may do the same anew.
fn taken_over(why: &str) -> Error {
    Error::new(ErrorKind::TakenOver, why)
}

impl Journal for Account {
    fn incarnation(&self) -> u32 {
        self.incarnation
    }

    fn is_writer(&self) -> bool {
        let now = self.pool.env().clock.monotonic();
        self.tenure().is_some_and(|tenure| !tenure.is_ending && now < tenure.until)
    }

    fn take(&self, since: ModSeq, wait: Wait, install: &mut dyn FnMut(&News) -> Result<()>) -> Result<()> {
        self.take_tenure(since, wait, install)
    }

    fn stop(&self) {
        if let Some(tenure) = &mut *self.tenure() {
            tenure.is_ending = true;
        }
    }

    fn give(&self) -> Result<()> {
        self.give_tenure()
    }

    fn news(&self, since: ModSeq) -> Result<Option<News>> {
        self.pool.run("asking for news", |connection| {
            let head = read::head(connection, self.id)?.ok_or_else(removed)?;
            if head.modseq == since.0 {
                return Ok(None);
            }
            connection.query_drop("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            connection.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
            let head = read::head(connection, self.id)?.ok_or_else(removed)?;
            let news = read::news(connection, self.id, since, &head)?;
            connection.query_drop("COMMIT")?;
            Ok(Some(news))
        })
    }

    fn commit(&self, state: &State, batch: &[Transacted<'_>]) -> Result<()> {
        let not_ours = || taken_over("this node may no longer write to the account");
        let tenure = (*self.tenure()).ok_or_else(not_ours)?;
        let is_behind = batch.first().is_some_and(|first| first.before != ModSeq(tenure.modseq));
        let fresh = || if is_behind { Err(taken_over("the change was made on an older state")) } else { Ok(()) };
        let result = fresh().and_then(|()| Script::new(self.id, state, batch)).and_then(|script| {
            let begun = self.pool.env().clock.monotonic();
            self.pool
                .run("writing to an account", |connection| self.try_commit(connection, &tenure, &script, state))?;
            Ok(begun + self.lease)
        });
        let mut held = self.tenure();
        match (&result, &mut *held) {
            (Ok(until), Some(held)) if held.epoch == tenure.epoch => {
                held.modseq = state.modseq().0;
                held.until = *until;
            }
            // What the database has is not known: it is asked before anything else is done.
            (Err(_), _) => *held = None,
            _ => {}
        }
        result.map(drop)
    }

    fn message(&self, id: EmailId) -> Result<Option<ForeignMessage>> {
        self.find_message(id)
    }

    fn messages(&self, ids: Range<u64>) -> Result<Vec<(EmailId, ForeignMessage)>> {
        self.list_messages(ids)
    }

    fn sweep(&self, state: &State, time: i64) -> Result<bool> {
        self.sweep_rows(state, time)
    }

    fn attach(&self, log: Weak<Log>) {
        self.watch.add(self.id, log);
    }
}

impl Foreign for Account {
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
        self.read_header(id, message, out)
    }

    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.read_range(id, message, range, sink)
    }
}
