//! Verifying everything, and repairing the index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EmailId, Error, ErrorKind, Result};
use platform::Env;

use crate::layout::{INDEX_DIR, LOCK_FILE, Layout};
use crate::log::Log;
use crate::reader::{Block, stream_message};
use crate::segment::Segment;
use crate::state::{Mailbox, State};
use crate::tail::{Tail, TailScan, is_message_whole, messages, read_events};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Where in the file, bytes.
    pub offset: u64,
    /// The message that is damaged, if it is one.
    pub email_id: Option<EmailId>,
    /// What is wrong.
    pub what: String,
}

/// What [`Log::check`] looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Messages whose bytes were verified.
    pub messages: u64,
    /// Records that were verified.
    pub records: u64,
    /// Bytes of log files read.
    pub bytes: u64,
    /// What is wrong; empty when all is well.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    fn find(&mut self, file: &Path, offset: u64, email_id: Option<EmailId>, what: impl Into<String>) {
        self.findings.push(Finding { file: file.to_owned(), offset, email_id, what: what.into() });
    }

    /// Notes damage; passes on what is no damage.
    fn note(&mut self, file: &Path, offset: u64, email_id: Option<EmailId>, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.find(file, offset, email_id, error.details());
                Ok(())
            }
            result => result,
        }
    }
}

impl Log {
    /// Reads everything, verifies every checksum, and compares the state with a replay of the whole log. Sessions go on;
    /// sealing and compaction wait.
    pub fn check(self: &Arc<Self>) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        if let Some(journal) = &self.journal {
            self.check_shared(&**journal, &mut report)?;
            return Ok(report);
        }
        let _progress = self.progress();
        // In this order: the state is not older than the files, and the replay stops where the state does.
        let state = self.state();
        let layout = self.layout();
        for segment in &layout.segments {
            check_segment(segment, &mut report)?;
        }
        for tail in &layout.tails {
            check_tail(tail, &mut report)?;
        }
        let (replayed, findings) = crate::recover::replay_log(&layout, &self.options, state.frame)?;
        for finding in findings {
            if !report.findings.contains(&finding) {
                report.findings.push(finding);
            }
        }
        compare(&state, &replayed, &self.dir.join(INDEX_DIR), &mut report);
        check_references(&state, &layout, &self.dir, &mut report)?;
        Ok(report)
    }
}

fn check_segment(segment: &Arc<Segment>, report: &mut CheckReport) -> Result<()> {
    let trailer = &segment.trailer;
    report.bytes += segment.file_len;
    let mut records = 0;
    let events = segment.events(&mut |_, events| {
        records += events.len() as u64;
        Ok(())
    });
    report.records += records;
    report.note(&segment.path, trailer.events.table_at, None, events.map(drop))?;
    for damage in segment.damaged_copies() {
        segment.wear();
        report.find(&segment.path, trailer.events.table_at, None, damage.details());
    }
    if !segment.is_trailer_doubled()? {
        segment.wear();
        report.find(&segment.path, 0, None, "one of the two copies of the segment's trailer is damaged");
    }
    let (mut heads, mut bodies) = (Block::default(), Block::default());
    for (number, row) in segment.rows()?.into_iter().enumerate() {
        let at = trailer.rows_at + number as u64 * crate::segment::format::ROW_BYTES as u64;
        match row {
            Err(error) => report.note(&segment.path, at, None, Err(error))?,
            Ok(row) => {
                report.messages += 1;
                let result = stream_message(segment, &row, 0..u64::MAX, &mut heads, &mut bodies, &mut |_| Ok(()));
                report.note(&segment.path, row.body_at, Some(row.email_id), result)?;
                if segment.row_number(row.email_id)? != Some(number as u32) {
                    segment.wear();
                    report.find(&segment.path, trailer.ids_at, Some(row.email_id), "the id table is damaged");
                }
            }
        }
    }
    Ok(())
}

fn check_tail(tail: &Tail, report: &mut CheckReport) -> Result<()> {
    // Not as the last one: what is behind the durable end is being written right now, and is not looked at.
    let (end, last_frame) = (tail.end(), tail.last_frame());
    report.bytes += end;
    let scan = TailScan::run_up_to(&tail.path, &tail.file, tail.first_frame, end)?;
    for scanned in scan.frames.iter().filter(|scanned| scanned.header.frame.number <= last_frame) {
        let Some(events) = read_events(scanned, &*tail.file)? else { continue };
        report.records += events.len() as u64;
        for (id, message) in messages(scanned, &events) {
            report.messages += 1;
            if !is_message_whole(&*tail.file, &message)? {
                report.find(&tail.path, message.at, Some(id), "the message does not match its checksum");
            }
        }
    }
    report.findings.extend(scan.findings);
    Ok(())
}

/// Whether two states of a mailbox are the same to anybody who looks.
fn is_same(a: &Mailbox, b: &Mailbox) -> bool {
    a.name() == b.name()
        && a.uidvalidity() == b.uidvalidity()
        && a.uidnext == b.uidnext
        && a.highest_modseq() == b.highest_modseq()
        && a.special_use == b.special_use
        && a.keywords() == b.keywords()
        && a.annotations == b.annotations
        && (a.exists(), a.unseen(), a.deleted(), a.octets()) == (b.exists(), b.unseen(), b.deleted(), b.octets())
        && a.all_rows().map(|(_, row)| row).eq(b.all_rows().map(|(_, row)| row))
}

pub(crate) fn compare(state: &State, replayed: &State, index_dir: &Path, report: &mut CheckReport) {
    let is_same_account = state.names == replayed.names
        && state.subscriptions == replayed.subscriptions
        && state.annotations == replayed.annotations
        && state.foreign.used().eq(replayed.foreign.used())
        && state.modseq == replayed.modseq
        && state.email_id_next == replayed.email_id_next
        && state.mailbox_id_next == replayed.mailbox_id_next;
    if !is_same_account {
        report.find(index_dir, 0, None, "the index and the log disagree about the account");
    }
    for mailbox in state.all_mailboxes() {
        if !replayed.mailbox(mailbox.id()).is_some_and(|other| is_same(mailbox, other)) {
            let what = format!("the index and the log disagree about the mailbox {}", mailbox.name());
            report.find(index_dir, 0, None, what);
        }
    }
}

/// Every entry has its message.
fn check_references(state: &State, layout: &Layout, dir: &Path, report: &mut CheckReport) -> Result<()> {
    for mailbox in state.all_mailboxes() {
        for (_, row) in mailbox.all_rows() {
            let in_tail = layout.tails.iter().any(|tail| tail.find(row.email_id).is_some());
            let known = in_tail || state.foreign.has(row.email_id);
            let mut found = known;
            let may_have =
                |segment: &&Arc<Segment>| segment.may_have(row.email_id) || segment.may_have_late(row.email_id);
            for segment in layout.segments.iter().filter(|segment| !known && may_have(segment)) {
                found |= segment.row_number(row.email_id)?.is_some();
            }
            if !found {
                let what = format!("UID {} of {} has no message", row.uid, mailbox.name());
                report.find(dir, 0, Some(row.email_id), what);
            }
        }
    }
    Ok(())
}

/// Removes the index of a closed account; the next opening rebuilds it from the log. `InUse` when it is open.
pub fn remove_index(env: &Env, dir: &Path) -> Result<()> {
    let index = dir.join(INDEX_DIR);
    let _lock = env.disk.lock(&dir.join(LOCK_FILE))?;
    remove_files(env, &index)
}

/// Removes the files of a directory, if there is one.
pub(crate) fn remove_files(env: &Env, index: &Path) -> Result<()> {
    match env.disk.list(index) {
        Ok(entries) => {
            for entry in entries {
                env.disk.remove(&index.join(entry.name))?;
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::from(error)),
    }
}
