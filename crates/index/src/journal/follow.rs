//! A log on a journal: opened, kept up with other nodes, allowed to write.
//!
//! Locks, in this order: `taking` (who changes what this node knows of the others), the head. The database is never asked with the head
//! locked.

use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};

use model::{Error, ErrorKind, ModSeq, Result};
use platform::Env;

use super::{Journal, News, Transacted, Wait, as_foreign};
use crate::check::{CheckReport, Finding};
use crate::layout::{INDEX_DIR, Layout};
use crate::log::{Log, Opened};
use crate::maintain::{Budget, MaintainReport, Progress};
use crate::options::Options;
use crate::reader::Derive;
use crate::record::Event;
use crate::state::State;
use crate::tail::WriteFailure;
use crate::transaction::Finished;

/// A checkpoint is written when so many transactions are not covered by one.
const CHECKPOINT_TRANSACTIONS: u64 = 1000;
/// How often a check reads everything again because somebody wrote meanwhile.
const CHECK_TRIES: u32 = 3;

impl Log {
    /// Opens the account that `journal` stands behind; what this node keeps of it lies in `dir`, which is made when it is missing.
    /// `InUse` when another process uses that directory.
    pub fn open_on(
        env: &Env,
        dir: &Path,
        options: Options,
        derive: Option<Arc<dyn Derive>>,
        journal: Arc<dyn Journal>,
    ) -> Result<Arc<Log>> {
        env.disk.create_dir_all_durable(dir)?;
        let lock = crate::recover::lock(env, dir)?;
        crate::recover::empty_spool(env, dir)?;
        let index = dir.join(INDEX_DIR);
        let mut findings = Vec::new();
        let mut state = crate::checkpoint::load(env, &index, &mut findings);
        // A damaged checkpoint is no damage of the account.
        findings.clear();
        if state.chain != journal.incarnation() {
            state = State::default();
        }
        let news = journal.news(state.modseq)?;
        if news.as_ref().is_some_and(|news| news.is_whole) {
            // Derived from another history, or from nothing.
            crate::check::remove_files(env, &index)?;
        }
        if let Some(news) = news {
            state = state.with_news(&news, options.tombstone_ranges_max);
        }
        state.chain = journal.incarnation();
        let progress = Progress::new(state.frame, findings);
        let opened = Opened { state, layout: Layout::default(), progress, lock };
        let foreign = Some(as_foreign(&journal));
        let log = Log::made(env, dir, options, derive, foreign, Some(journal), opened)?;
        if let Some(journal) = &log.journal {
            journal.attach(Arc::downgrade(&log));
        }
        Ok(log)
    }

    /// Whether this account's truth is a journal that other nodes may write, too.
    pub fn is_shared(&self) -> bool {
        self.journal.is_some()
    }

    /// Whether this node may write: always, but for an account that several nodes share.
    pub fn is_writer(&self) -> bool {
        self.may_write()
    }

    fn taking(&self) -> MutexGuard<'_, ()> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a transaction may be made now: always, but with a journal only by the writer.
    pub(crate) fn may_write(&self) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.is_writer())
    }

    /// Makes this node the writer.
    pub(crate) fn become_writer(self: &Arc<Self>, wait: Wait) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let _taking = self.taking();
        if journal.is_writer() {
            return Ok(());
        }
        self.settle_queue(&**journal);
        if journal.is_writer() {
            return Ok(());
        }
        let since = self.state().modseq;
        journal.take(since, wait, &mut |news| self.install(since, news))
    }

    /// Brings the state up to date with what other nodes committed. The writer knows that there is nothing.
    pub fn catch_up(self: &Arc<Self>) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if journal.is_writer() {
            return Ok(());
        }
        let _taking = self.taking();
        self.settle_queue(&**journal);
        if journal.is_writer() {
            return Ok(());
        }
        let since = self.state().modseq;
        match journal.news(since)? {
            Some(news) => self.install(since, &news),
            None => Ok(()),
        }
    }

    /// Lets another node write: what is queued here becomes durable first.
    pub fn give_way(self: &Arc<Self>) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let _taking = self.taking();
        // In this order: after it nobody queues anything, and what is queued becomes durable.
        journal.stop();
        self.settle_queue(&**journal);
        journal.give()
    }

    /// Makes durable what is queued, or gives it up: what is queued was made on a state that may be about to change.
    fn settle_queue(self: &Arc<Self>, journal: &dyn Journal) {
        // Who waits for a ticket hears of a failure.
        let _ = self.flush();
        debug_assert!(journal.is_writer() || self.is_quiet(), "nobody queues but the writer");
    }

    /// Puts the state with the news in the place of the one that had everything up to `since`.
    fn install(self: &Arc<Self>, since: ModSeq, news: &News) -> Result<()> {
        let state = self.state();
        let mut state = state.with_news(news, self.options.tombstone_ranges_max);
        state.chain = self.journal.as_ref().map_or(0, |journal| journal.incarnation());
        if !self.replace_state(since, state) {
            return Err(Error::new(ErrorKind::Io, "the account was changed while it was brought up to date"));
        }
        self.tell_listener();
        Ok(())
    }

    /// Hands a batch to the journal.
    pub(crate) fn commit_to(
        &self,
        journal: &dyn Journal,
        state: &State,
        batch: &[Finished],
    ) -> Result<(), WriteFailure> {
        if batch.is_empty() {
            return Ok(());
        }
        let ours = || Error::new(ErrorKind::Invalid, "a transaction has records that it cannot have made");
        let batch: Result<Vec<Transacted<'_>>> = batch
            .iter()
            .map(|one| {
                let events = Event::read_all(&one.events, one.frame.time).map_err(|_| ours())?;
                let frame = &one.frame;
                Ok(Transacted {
                    before: one.before,
                    modseq: frame.modseq,
                    time: frame.time,
                    events,
                    messages: &one.messages,
                })
            })
            .collect();
        let result = batch.and_then(|batch| journal.commit(state, &batch));
        // Whatever went wrong, the state goes back to what is known, and the next transaction begins with asking.
        result.map_err(|error| WriteFailure { error, is_clean: true })
    }

    /// [`Log::maintain`] of an account on a journal.
    pub(crate) fn maintain_shared(self: &Arc<Self>, budget: Budget, report: &mut MaintainReport) -> Result<u64> {
        let Some(journal) = &self.journal else { return Ok(0) };
        let now = self.env.clock.now().seconds;
        let retention = i64::try_from(self.options.retention_seconds).unwrap_or(i64::MAX);
        let time = now.saturating_sub(retention);
        self.prune(time);
        if journal.is_writer() && journal.sweep(&self.state(), time)? {
            return Ok(budget.bytes);
        }
        let mut progress = self.progress();
        let frame = self.state().frame;
        let uncovered = frame.saturating_sub(progress.checkpointed());
        if uncovered >= CHECKPOINT_TRANSACTIONS {
            report.checkpointed = self.checkpoint_with(&mut progress)?;
        }
        Ok(0)
    }

    /// Reads all rows and all messages, and compares the state with the rows.
    pub(crate) fn check_shared(self: &Arc<Self>, journal: &dyn Journal, report: &mut CheckReport) -> Result<()> {
        let dir = self.dir.join(INDEX_DIR);
        for _ in 0..CHECK_TRIES {
            self.flush()?;
            self.catch_up()?;
            let before = self.state();
            let Some(news) = journal.news(ModSeq(0))? else { break };
            report.records = (news.entries.len() + news.expunged.len() + news.mailboxes.len()) as u64;
            if news.modseq == before.modseq {
                let fresh = State::default().with_news(&news, self.options.tombstone_ranges_max);
                crate::check::compare(&before, &fresh, &dir, report);
                break;
            }
        }
        let state = self.state();
        let mut reader = self.reader();
        let mut seen = std::collections::BTreeSet::new();
        for mailbox in state.all_mailboxes() {
            for (_, row) in mailbox.all_rows().filter(|(_, row)| seen.insert(row.email_id)) {
                let read = reader.range(row.email_id, 0..u64::MAX, &mut |piece| {
                    report.bytes += piece.len() as u64;
                    Ok(())
                });
                report.messages += 1;
                let what = match read {
                    Ok(()) => continue,
                    Err(error) if error.kind() == ErrorKind::Corrupt => error.details().to_owned(),
                    Err(error) if error.kind() == ErrorKind::Expunged => {
                        if self.state().mailbox(mailbox.id()).is_none_or(|now| now.row_of(row.uid).is_none()) {
                            continue;
                        }
                        format!("UID {} of {} has no message", row.uid, mailbox.name())
                    }
                    Err(error) => return Err(error),
                };
                let (file, email_id) = (self.dir.clone(), Some(row.email_id));
                report.findings.push(Finding { file, offset: 0, email_id, what });
            }
        }
        Ok(())
    }
}
