//! The work in the background: sealing, compaction, retention, checkpoints. One thread at a time; sessions go on.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};

use model::Result;

use crate::check::Finding;
use crate::layout::INDEX_DIR;
use crate::log::Log;
use crate::segment::Segment;

/// What the maintenance remembers between its steps.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The last frame that the checkpoint covers.
    checkpointed: u64,
    /// End of the active tail when it was written.
    covered_end: u64,
    /// The last frame and the time at which nothing was found to compact.
    looked_at: Option<(u64, i64)>,
    /// Segments in which compaction met damage: they stay as they are, for whoever wants to save what is left.
    damaged: BTreeSet<PathBuf>,
    /// The last frame when the maintenance last looked: unchanged means idle.
    frame_before: u64,
    /// What was wrong when the account was opened.
    pub(crate) findings: Vec<Finding>,
}

impl Progress {
    /// The last frame that the checkpoint covers.
    pub(crate) fn checkpointed(&self) -> u64 {
        self.checkpointed
    }

    pub(crate) fn new(checkpointed: u64, findings: Vec<Finding>) -> Self {
        Progress { checkpointed, findings, ..Progress::default() }
    }
}

/// Dead messages are looked for at most this often, seconds.
const COMPACTION_LOOK_SECONDS: i64 = 60;

/// How much [`Log::maintain`] may do in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes read and written, about; a step that was begun is finished.
    pub bytes: u64,
}

/// What [`Log::maintain`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaintainReport {
    /// Tails sealed into segments.
    pub sealed: u32,
    /// Segments rewritten or merged.
    pub compacted: u32,
    /// Segments, and groups of foreign messages, whose derived blobs were made.
    pub cached: u32,
    /// Whether a checkpoint was written.
    pub checkpointed: bool,
    /// Bytes of files removed, less those written.
    pub freed_bytes: i64,
    /// There is more to do: call again soon.
    pub is_more: bool,
}

impl Log {
    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found damaged when the account was opened.
    pub fn damage(&self) -> Vec<Finding> {
        self.progress().findings.clone()
    }

    /// Seals full tails, compacts segments, forgets what is past its retention, writes a checkpoint when one is due. Sessions
    /// go on meanwhile. Call it now and then (every few seconds) from one thread; without it the log grows but stays right.
    pub fn maintain(self: &Arc<Self>, budget: Budget) -> Result<MaintainReport> {
        let mut report = MaintainReport::default();
        let mut done = match self.is_shared() {
            true => self.maintain_shared(budget, &mut report)?,
            false => self.maintain_log(budget, &mut report)?,
        };
        // Without the lock: whoever has the files of foreign messages may find that one has changed, and write that into the log.
        while done < budget.bytes {
            let Some(bytes) = self.build_foreign_cache()? else { break };
            report.cached += 1;
            done += bytes;
        }
        report.is_more = done >= budget.bytes;
        Ok(report)
    }

    /// Seals full tails and writes a checkpoint, and leaves everything else to the next [`Log::maintain`]: for a program that brings much mail and
    /// then ends. Compaction and derived blobs cost several times as much, and nobody waits for them.
    pub fn seal(self: &Arc<Self>, budget: Budget) -> Result<MaintainReport> {
        if self.is_shared() {
            return self.maintain(budget);
        }
        let mut report = MaintainReport::default();
        let mut progress = self.progress();
        let done = self.seal_full(&mut progress, budget, &mut report)?;
        if report.sealed > 0 {
            report.checkpointed = self.checkpoint_with(&mut progress)?;
        }
        report.is_more = done >= budget.bytes;
        Ok(report)
    }

    /// Seals tails that are full. Bytes read and written, about.
    fn seal_full(&self, progress: &mut Progress, budget: Budget, report: &mut MaintainReport) -> Result<u64> {
        let mut done = 0;
        while done < budget.bytes {
            let Some(bytes) = self.seal_oldest()? else { break };
            report.sealed += 1;
            progress.looked_at = None;
            done += bytes;
        }
        Ok(done)
    }

    /// Everything that needs the log alone. Bytes read and written, about.
    fn maintain_log(self: &Arc<Self>, budget: Budget, report: &mut MaintainReport) -> Result<u64> {
        let mut progress = self.progress();
        let now = self.env.clock.now().seconds;
        let retention = i64::try_from(self.options.retention_seconds).unwrap_or(i64::MAX);
        self.prune(now.saturating_sub(retention));
        if progress.frame_before == self.state().frame {
            self.freeze_idle_tail()?;
        }
        let mut done = self.seal_full(&mut progress, budget, report)?;
        // Looking for dead messages reads every segment's rows: not again before something changed.
        let frame = self.state().frame;
        let is_due = progress.looked_at.is_none_or(|(looked_at, when)| {
            frame > looked_at && now.saturating_sub(when) >= COMPACTION_LOOK_SECONDS
                || now.saturating_sub(when) >= 86_400
        });
        // One of two copies is damaged: not to be left so until something else changes.
        let is_worn = |segment: &Arc<Segment>| segment.is_worn() && !progress.damaged.contains(&segment.path);
        let is_due = is_due || self.layout().segments.iter().any(is_worn);
        while is_due && done < budget.bytes {
            let Some((old, new)) = self.compact_one(&mut progress.damaged)? else {
                progress.looked_at = Some((frame, now));
                break;
            };
            report.compacted += u32::from(old > 0);
            report.freed_bytes += old as i64 - new as i64;
            done += old + new;
        }
        while done < budget.bytes {
            let Some(bytes) = self.build_cache()? else { break };
            report.cached += 1;
            done += bytes;
        }
        if progress.frame_before == frame {
            self.trim_tail()?;
        }
        progress.frame_before = frame;
        let is_long = self.uncovered_bytes(&progress) >= self.options.checkpoint_bytes;
        if report.sealed > 0 || report.compacted > 0 || is_long {
            report.checkpointed = self.checkpoint_with(&mut progress)?;
        }
        Ok(done)
    }

    /// Bytes that opening the account now would have to replay.
    fn uncovered_bytes(&self, progress: &Progress) -> u64 {
        let layout = self.layout();
        let tails = layout.tails.iter().filter(|tail| tail.last_frame() > progress.checkpointed);
        tails.map(|tail| tail.end()).sum::<u64>().saturating_sub(progress.covered_end)
    }

    /// Writes a checkpoint of the durable state, so that opening replays little, and goes on with its columns: entries that came one by one
    /// take some ninety octets each in memory, those of a checkpoint none.
    pub fn checkpoint(&self) -> Result<()> {
        let mut progress = self.progress();
        self.checkpoint_with(&mut progress).map(drop)
    }

    pub(crate) fn checkpoint_with(&self, progress: &mut Progress) -> Result<bool> {
        let layout = self.layout();
        let covered_end = layout.tails.last().map_or(0, |tail| tail.end());
        let state = self.state();
        if state.frame <= progress.checkpointed {
            return Ok(false);
        }
        crate::checkpoint::save(&self.env, &self.dir.join(INDEX_DIR), &state)?;
        (progress.checkpointed, progress.covered_end) = (state.frame, covered_end);
        if !self.is_closed() {
            self.rest_on(crate::checkpoint::load(&self.env, &self.dir.join(INDEX_DIR), &mut Vec::new()));
        }
        Ok(true)
    }

    /// Seals a tail at once when too many frozen ones pile up, so that an import cannot outrun the maintenance. That it fails
    /// does not hurt the log; the next maintenance will say why.
    pub(crate) fn hold_back(&self) {
        if self.layout().tails.len() > self.options.frozen_tails_max {
            let mut progress = self.progress();
            progress.looked_at = None;
            let _ = self.seal_oldest();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use model::{DateTime, FlagChange, Flags, MailboxName, SystemFlag, UidSet};
    use platform::sim::SimEnv;

    use super::*;
    use crate::{ForeignMessage, NewEntry, Options, Row};

    const MESSAGES: u32 = 3000;

    #[test]
    fn what_a_checkpoint_has_takes_no_memory() {
        let sim = SimEnv::new(1);
        let options = Options { checkpoint_bytes: 1, ..Options::default() };
        let open = || Log::open(&sim.env(), Path::new("/ann"), options.clone(), None, None).unwrap();
        let log = open();
        let inbox = log.commit(|transaction| transaction.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
        let add = |count: u32| {
            log.commit(|transaction| {
                for n in 0..count {
                    let message = ForeignMessage { octets: n + 1, header_octets: 1, digest: n.into() };
                    let id = transaction.add_foreign(message)?;
                    let internal_date = DateTime::utc(i64::from(n));
                    let entry = NewEntry { uid: None, flags: Flags::NONE, internal_date, save_date: None };
                    transaction.add_entry(inbox, id, &entry)?;
                }
                Ok(())
            })
            .unwrap();
        };
        let rows =
            |log: &Log| -> Vec<Row> { log.state().mailbox(inbox).unwrap().all_rows().map(|(_, row)| row).collect() };
        let in_memory = || {
            let state = log.state();
            state.mailbox(inbox).unwrap().slots.iter().filter(|slot| !slot.chunk.is_mapped()).count()
        };
        add(MESSAGES);
        let before = rows(&log);
        assert!(in_memory() > 0);
        assert!(log.maintain(Budget { bytes: 1 << 20 }).unwrap().checkpointed);
        assert_eq!((in_memory(), rows(&log)), (0, before));
        // What is changed then is right as well, here and after a restart.
        add(1);
        let few: UidSet = (5..1500).collect();
        let seen = FlagChange::Add(Flags::system(SystemFlag::Seen));
        log.commit(|transaction| transaction.set_flags(inbox, &few, seen, None).map(drop)).unwrap();
        log.commit(|transaction| transaction.expunge(inbox, &UidSet::range(1, 100)).map(drop)).unwrap();
        let changed = rows(&log);
        assert_eq!((changed.len() as u32, changed[0].flags.has(SystemFlag::Seen)), (MESSAGES + 1 - 100, true));
        assert!(log.maintain(Budget { bytes: 1 << 20 }).unwrap().checkpointed);
        assert_eq!((in_memory(), rows(&log)), (0, changed.clone()));
        assert_eq!(log.state().foreign.used().count(), changed.len());
        log.close().unwrap();
        assert_eq!(rows(&open()), changed);
    }
}
