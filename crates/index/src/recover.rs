//! Opening an account: which files count, the state from the newest checkpoint, and what happened since from the log.
//!
//! Invariants: nothing that was acknowledged is cut; opening twice gives the same state; the log is changed only by cutting a
//! torn end and removing files that nothing needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::{Env, LockGuard, OpenMode, parent_of};

use crate::check::Finding;
use crate::layout::{INDEX_DIR, LOCK_FILE, LOG_DIR, Layout, SPOOL_DIR};
use crate::log::Opened;
use crate::maintain::Progress;
use crate::options::Options;
use crate::record::Event;
use crate::segment::{self, Segment};
use crate::state::State;
use crate::tail::{self, Tail, TailScan};

/// The files of `log/`, in the order of their frames.
#[derive(Debug, Default)]
struct Files {
    /// The segments that count.
    segments: Vec<Arc<Segment>>,
    tails: Vec<(u64, PathBuf)>,
    /// Segments that were replaced, and files that were never finished.
    useless: Vec<PathBuf>,
    findings: Vec<Finding>,
}

/// A tail and what was found in it.
struct FoundTail {
    path: PathBuf,
    first_frame: u64,
    file: Arc<dyn platform::File>,
    scan: TailScan,
}

/// Opens the account in `dir`; creates it when it is missing.
pub(crate) fn open(env: &Env, dir: &Path, options: &Options) -> Result<Opened> {
    let log_dir = dir.join(LOG_DIR);
    if !env.disk.exists(&log_dir)? {
        env.disk.create_dir_all_durable(&log_dir)?;
    }
    let lock = lock(env, dir)?;
    empty_spool(env, dir)?;
    let mut files = list(env, &log_dir)?;
    let sealed = files.segments.last().map_or(0, |segment| segment.trailer.last_frame);
    let state = crate::checkpoint::load(env, &dir.join(INDEX_DIR), &mut files.findings);
    let tails = scan_tails(env, &mut files, sealed, state.frame)?;
    if !files.useless.is_empty() {
        // What replaced them may have a name that is not durable yet.
        env.disk.sync_dir(&log_dir)?;
        for path in &files.useless {
            env.disk.remove(path)?;
        }
        // A tail that comes back after frames were written elsewhere would claim their numbers.
        env.disk.sync_dir(&log_dir)?;
    }
    let mut replay = Replay { state, options, findings: Vec::new() };
    if !replay.is_covered_by(&files.segments, &tails) {
        replay.state = State::default();
    }
    let checkpointed = replay.state.frame;
    for segment in &files.segments {
        replay.segment(segment)?;
    }
    let mut layout = Layout { segments: files.segments, tails: Vec::new() };
    match tails.last() {
        Some(last) => make_durable(env, &log_dir, last, checkpointed)?,
        // Perhaps a new account whose directories could not be synced the last time.
        None if layout.segments.is_empty() => {
            env.disk.sync_dir(dir)?;
            env.disk.sync_dir(parent_of(dir))?;
        }
        None => {}
    }
    for found in tails {
        replay.tail(&found)?;
        let tail = Tail::scanned(&found.path, found.file, found.first_frame, &found.scan);
        replay.messages(&tail, &found.scan)?;
        files.findings.extend(found.scan.findings);
        layout.tails.push(Arc::new(tail));
    }
    if let Some(tail) = layout.tails.last().filter(|tail| tail.last_frame() < replay.state.frame) {
        let (from, to) = (tail.last_frame() + 1, replay.state.frame);
        replay.find(&tail.path.clone(), tail.end(), format!("the frames {from} to {to} are damaged"));
    }
    files.findings.append(&mut replay.findings);
    replay.state.foreign.purge();
    crate::cache::remove_useless(env, dir, &layout.segments, &replay.state);
    let progress = Progress::new(checkpointed, files.findings);
    Ok(Opened { state: replay.state, layout, progress, lock })
}

/// Locks the account's directory; `InUse` when another process has.
pub(crate) fn lock(env: &Env, dir: &Path) -> Result<LockGuard> {
    let lock = env.disk.lock(&dir.join(LOCK_FILE));
    lock.map_err(|error| Error::from(error).context(format_args!("locking the account in {}", dir.display())))
}

/// Removes messages that were on their way in when the account was last open.
pub(crate) fn empty_spool(env: &Env, dir: &Path) -> Result<()> {
    let spool = dir.join(SPOOL_DIR);
    match env.disk.list(&spool) {
        Ok(entries) => {
            for entry in entries {
                env.disk.remove(&spool.join(entry.name))?;
            }
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn list(env: &Env, log_dir: &Path) -> Result<Files> {
    let mut files = Files::default();
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    for entry in env.disk.list(log_dir)? {
        let path = log_dir.join(&entry.name);
        let name = entry.name.to_string_lossy();
        if let Some(first_frame) = Tail::parse_file_name(&name) {
            files.tails.push((first_frame, path));
        } else if segment::parse_file_name(&name).is_some() {
            match Segment::open(&env.disk, &path) {
                Ok(segment) => segments.push(Arc::new(segment)),
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    files.findings.push(Finding { file: path, offset: 0, email_id: None, what: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        } else if name.ends_with(".new") {
            files.useless.push(path);
        }
    }
    // A segment counts unless another one covers its frames: a wider one, or a later generation of the same range.
    let replaced = |old: &Segment, new: &Segment| {
        let (a, b) = (&old.trailer, &new.trailer);
        b.first_frame <= a.first_frame
            && b.last_frame >= a.last_frame
            && ((b.first_frame, b.last_frame) != (a.first_frame, a.last_frame) || b.generation > a.generation)
    };
    let (useless, mut counting): (Vec<_>, Vec<_>) =
        segments.iter().cloned().partition(|old| segments.iter().any(|new| replaced(old, new)));
    counting.sort_unstable_by_key(|segment| segment.trailer.first_frame);
    files.useless.extend(useless.iter().map(|segment| segment.path.clone()));
    files.segments = counting;
    files.tails.sort_unstable();
    Ok(files)
}

/// Reads the tails behind the segments, cuts a torn end, and forgets tails that are sealed already or were never begun.
/// The checkpoint was written after the frame `checkpointed` was durable: what is damaged up to there is not torn.
fn scan_tails(env: &Env, files: &mut Files, sealed: u64, checkpointed: u64) -> Result<Vec<FoundTail>> {
    let mut found: Vec<FoundTail> = Vec::new();
    let mut tails = std::mem::take(&mut files.tails);
    // Tails that were begun and in which nothing was ever durable: the one before them is the last one. The name of one that
    // was given up can come back after frames of its number were written elsewhere; it holds no more than a header then.
    while let Some((first_frame, path)) = tails.last() {
        let file = env.disk.open(path, OpenMode::Read)?;
        let is_bare = file.len()? <= tail::TAIL_HEADER_BYTES as u64;
        let is_new = *first_frame > checkpointed;
        let is_useless =
            is_bare || (is_new && TailScan::run(path, &file, *first_frame, Some(checkpointed))?.frames.is_empty());
        if !is_useless {
            break;
        }
        files.useless.push(path.clone());
        tails.pop();
    }
    for (n, (first_frame, path)) in tails.iter().enumerate() {
        let next = tails.get(n + 1).map(|(next, _)| *next);
        // The next tail begins where this one ends: if a segment reaches up to there, this one is sealed.
        if next.is_some_and(|next| next <= sealed + 1) {
            files.useless.push(path.clone());
            continue;
        }
        let file = env.disk.open(path, OpenMode::ReadWrite)?;
        let scan = TailScan::run(path, &file, *first_frame, next.is_none().then_some(checkpointed))?;
        if scan.frames.last().is_some_and(|last| last.header.frame.number <= sealed) {
            files.useless.push(path.clone());
            continue;
        }
        // Frames that the checkpoint has and the tail has not were durable: they are damaged, not torn, and stay as they are.
        let is_torn = scan.frames.last().is_some_and(|last| last.header.frame.number >= checkpointed);
        if scan.is_dirty_behind && is_torn {
            file.set_len(scan.end)?;
            file.sync_data()?;
        }
        found.push(FoundTail { path: path.clone(), first_frame: *first_frame, file, scan });
    }
    Ok(found)
}

/// Writes the frames of the last batch again and syncs them, unless a later frame or the checkpoint proves that they are
/// durable: they may be in the page cache only, left there by a process that was killed, or by a sync that failed.
fn make_durable(env: &Env, log_dir: &Path, tail: &FoundTail, checkpointed: u64) -> Result<()> {
    let proven = tail.scan.durable.max(checkpointed);
    let Some(first) = tail.scan.frames.iter().find(|frame| frame.header.frame.number > proven) else { return Ok(()) };
    let mut at = if first.header.frame.number == tail.first_frame { 0 } else { first.at };
    let mut piece = Vec::new();
    while at < tail.scan.end {
        piece.resize((tail.scan.end - at).min(1 << 20) as usize, 0);
        tail.file.read_exact_at(&mut piece, at)?;
        tail.file.write_at(&piece, at)?;
        at += piece.len() as u64;
    }
    tail.file.sync_data()?;
    Ok(env.disk.sync_dir(log_dir)?)
}

/// A state in the making.
struct Replay<'a> {
    state: State,
    options: &'a Options,
    findings: Vec<Finding>,
}

impl Replay<'_> {
    /// Whether the state (of a checkpoint) is one that this very log went through.
    fn is_covered_by(&self, segments: &[Arc<Segment>], tails: &[FoundTail]) -> bool {
        let (frame, chain) = (self.state.frame, self.state.chain);
        if let Some(segment) = segments.iter().find(|segment| segment.trailer.last_frame >= frame) {
            return frame == 0 || (segment.trailer.last_frame == frame && segment.trailer.chain == chain);
        }
        let mut at = segments.last().map_or((0, 0), |segment| (segment.trailer.last_frame, segment.trailer.chain));
        for scanned in tails.iter().flat_map(|tail| &tail.scan.frames) {
            let number = scanned.header.frame.number;
            if at.0 >= frame {
                break;
            }
            if number > at.0 + 1 {
                // Frames are damaged. The checkpoint is all that there is of them.
                return true;
            }
            if number > at.0 {
                at = (number, crate::state::chain(at.1, scanned.header.events_crc));
            }
        }
        // A log that ends too early ends in damage, or it is an older one that was put here.
        at == (frame, chain) || (at.0 < frame && tails.last().is_some_and(|tail| tail.scan.is_dirty_behind))
    }

    fn segment(&mut self, segment: &Segment) -> Result<()> {
        let trailer = &segment.trailer;
        if trailer.last_frame <= self.state.frame {
            return Ok(());
        }
        let covered = self.state.frame;
        if trailer.first_frame > covered + 1 {
            self.missing(&segment.path, covered + 1, trailer.first_frame - 1);
        }
        let (state, ranges_max) = (&mut self.state, self.options.tombstone_ranges_max);
        let mut odd = 0u64;
        let result = segment.events(&mut |frame, events| {
            if frame.number > covered {
                for event in &events {
                    odd += u64::from(!state.apply(&frame, event, ranges_max));
                }
                state.modseq = state.modseq.max(frame.modseq);
            }
            Ok(())
        });
        match result {
            Ok(None) => {}
            // What a copy made good is worth knowing all the same.
            Ok(Some(damage)) => self.find(&segment.path, trailer.events.table_at, damage.details().to_owned()),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.find(&segment.path, trailer.events.table_at, error.to_string());
            }
            Err(error) => return Err(error),
        }
        if odd > 0 {
            self.find(&segment.path, trailer.events.table_at, format!("{odd} records refer to what is not there"));
        }
        self.state.email_id_next = self.state.email_id_next.max(trailer.first_id + u64::from(trailer.ids));
        (self.state.frame, self.state.chain) = (trailer.last_frame, trailer.chain);
        Ok(())
    }

    /// Applies the frames of a tail that the state has not.
    fn tail(&mut self, found: &FoundTail) -> Result<()> {
        for scanned in &found.scan.frames {
            let header = &scanned.header;
            let number = header.frame.number;
            if number <= self.state.frame {
                continue;
            }
            if number > self.state.frame + 1 {
                self.missing(&found.path, self.state.frame + 1, number - 1);
            }
            if let Some(events) = tail::read_events(scanned, &*found.file)? {
                for event in &events {
                    if !self.state.apply(&header.frame, event, self.options.tombstone_ranges_max) {
                        let what = format!("a record of frame {number} refers to what is not there");
                        self.find(&found.path, scanned.at, what);
                    }
                }
            }
            self.state.finish_frame(&header.frame, header.events_crc);
        }
        Ok(())
    }

    /// Notes where the messages of a tail are.
    fn messages(&mut self, tail: &Tail, scan: &TailScan) -> Result<()> {
        let (end, last) = (tail.end(), tail.last_frame());
        for scanned in &scan.frames {
            let events = tail::read_message_events(scanned, &*tail.file)?;
            tail.extend(&tail::messages(scanned, &events), end, last);
            tail.has_late_below(late_end(&events));
        }
        Ok(())
    }

    fn missing(&mut self, path: &Path, from: u64, to: u64) {
        self.find(path, 0, format!("the frames {from} to {to} are missing"));
    }

    fn find(&mut self, path: &Path, offset: u64, what: String) {
        self.findings.push(Finding { file: path.to_owned(), offset, email_id: None, what });
    }
}

/// One more than the largest id of a late message of a frame.
fn late_end(events: &[Event]) -> u64 {
    let ids = events.iter().filter_map(|event| match event {
        Event::BytesHere { ids } => ids.last(),
        _ => None,
    });
    ids.map(|id| id.0.saturating_add(1)).max().unwrap_or(0)
}

/// The state of a closed or open account from its log alone: what a check compares with.
pub(crate) fn replay_log(layout: &Layout, options: &Options, upto: u64) -> Result<(State, Vec<Finding>)> {
    let mut replay = Replay { state: State::default(), options, findings: Vec::new() };
    for segment in &layout.segments {
        replay.segment(segment)?;
    }
    for tail in &layout.tails {
        let mut scan = TailScan::run_up_to(&tail.path, &tail.file, tail.first_frame, tail.end())?;
        scan.frames.retain(|frame| frame.header.frame.number <= upto);
        let found =
            FoundTail { path: tail.path.clone(), first_frame: tail.first_frame, file: Arc::clone(&tail.file), scan };
        replay.tail(&found)?;
        replay.findings.extend(found.scan.findings);
    }
    replay.state.foreign.purge();
    Ok((replay.state, replay.findings))
}
