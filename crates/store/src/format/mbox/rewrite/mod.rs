//! Changing a file that others hold open, in place: bytes go, bytes come, everything behind them moves, and the inode stays.
//!
//! Invariants:
//! - A power cut at any operation leaves a file that [`recover`] makes the old one or the new one, whole.
//! - Memory is bounded by [`Limits`], whatever the file's size; each byte that must move is written once, and once more to the journal
//!   only where it moves by less than [`Limits::window_bytes`].
//! - A disk that has no room says so before anything moved.
//!
//! The caller holds the file's locks from [`Rewrite::begin`] to the end of [`Rewrite::run`], and calls [`recover`] before anything
//! else reads the file.
//!
//! # Why it is safe
//!
//! A plan is a list of pieces in the order of the new file: bytes kept from the old one, new bytes. Pieces keep their order, so those that
//! move to the left can be moved from the front to the back, and after that those that move to the right from the back to the front,
//! without one overwriting another that was not moved yet. New bytes go along with either, see `plan::Piece`.
//!
//! Work goes in chunks. A chunk's targets overlap none of its own sources, so that it can be done again from the start; chunks that
//! cannot be made so (a large piece that moves by little) are written to the journal first. After a chunk the file is synced, then the
//! progress; only then the next chunk begins, which may overwrite the sources of the one before.

mod journal;
mod plan;
mod run;
mod sources;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::{Disk, File};

use journal::{Header, Journal, Phase};
use plan::PlanWriter;

/// Sizes, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A chunk that would be smaller than this goes through the journal.
    pub window_bytes: u64,
    /// The largest chunk that goes through the journal; it is held in memory.
    pub redo_bytes_max: u64,
    /// The largest chunk that does not.
    pub chunk_bytes_max: u64,
    /// What is copied at once.
    pub copy_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { window_bytes: 256 << 10, redo_bytes_max: 4 << 20, chunk_bytes_max: 64 << 20, copy_bytes: 1 << 20 }
    }
}

/// A change of one file in the making. Dropping it changes nothing.
pub struct Rewrite {
    disk: Arc<dyn Disk>,
    file: Arc<dyn File>,
    journal_path: PathBuf,
    plan: PlanWriter,
    generation: u64,
    inode: u64,
    old_len: u64,
    limits: Limits,
}

/// What [`recover`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// No change was under way.
    Nothing,
    /// One was being planned; the file is the old one.
    Undone,
    /// One was under way; the file is the new one now.
    Finished,
    /// One was under way, on a file that is no longer there: whatever stands there now was left alone.
    Replaced,
}

impl Rewrite {
    /// Begins to plan. `journal` is where the plan and the journal are kept, files on a disk that survives as long as the target's; an
    /// earlier rewrite with the same journal was finished by [`recover`].
    pub fn begin(
        disk: &Arc<dyn Disk>,
        target: &Path,
        file: Arc<dyn File>,
        journal: &Path,
        limits: Limits,
    ) -> Result<Rewrite> {
        Rewrite::begin_at(disk, target, file, journal.to_owned(), 1, limits)
    }

    fn begin_at(
        disk: &Arc<dyn Disk>,
        target: &Path,
        file: Arc<dyn File>,
        journal_path: PathBuf,
        generation: u64,
        limits: Limits,
    ) -> Result<Rewrite> {
        let inode = disk.metadata(target)?.inode;
        let old_len = file.len()?;
        let plan = PlanWriter::create(disk, &journal_path)?;
        Ok(Rewrite { disk: Arc::clone(disk), file, journal_path, plan, generation, inode, old_len, limits })
    }

    /// The next bytes of the old file stay.
    pub fn keep(&mut self, len: u64) -> Result<()> {
        self.plan.keep(len)
    }

    /// The next bytes of the old file go.
    pub fn skip(&mut self, len: u64) {
        self.plan.skip(len);
    }

    /// Bytes that come here.
    pub fn insert(&mut self, bytes: &[u8]) -> Result<()> {
        self.plan.insert(bytes)
    }

    /// How far in the old file the plan is.
    pub fn position(&self) -> u64 {
        self.plan.old_position()
    }

    /// Gives the plan up.
    pub fn abandon(self) -> Result<()> {
        journal::remove(&*self.disk, &self.journal_path).map(drop)
    }

    /// Keeps the rest of the old file, makes the plan durable, and carries it out; gives the new length. When it fails before anything
    /// moved the file is the old one ([`ErrorKind::DiskFull`]); later, [`recover`] has to finish it.
    pub fn run(self) -> Result<u64> {
        self.run_after(&mut || Ok(()), false)
    }

    /// [`Rewrite::run`], but `hand_over` is called before anything moves: at a time when nothing keeps the change from being carried out any more,
    /// by [`recover`] if not by this. See [`is_begun`].
    pub fn run_in_place_of(self, hand_over: &mut dyn FnMut() -> Result<()>) -> Result<u64> {
        self.run_after(hand_over, true)
    }

    fn run_after(mut self, hand_over: &mut dyn FnMut() -> Result<()>, begins: bool) -> Result<u64> {
        let settled = self.settle();
        if settled.as_ref().is_err_and(|error| error.kind() == ErrorKind::DiskFull) {
            journal::remove(&*self.disk, &self.journal_path)?;
        }
        let Some(mut journal) = settled? else {
            journal::remove(&*self.disk, &self.journal_path)?;
            hand_over()?;
            return Ok(self.old_len);
        };
        let new_len = journal.header.new_len;
        if let Err(error) = make_room(&*self.file, self.old_len, new_len) {
            if error.kind() == ErrorKind::DiskFull {
                // Nothing moved: as if it had never been begun.
                self.file.set_len(self.old_len)?;
                self.file.sync_data()?;
                journal::remove(&*self.disk, &self.journal_path)?;
            }
            return Err(error.context("the mailbox file cannot grow"));
        }
        if begins {
            journal.begin()?;
        }
        hand_over()?;
        run::finish(journal, &*self.file, &self.limits)?;
        journal::remove(&*self.disk, &self.journal_path)?;
        Ok(new_len)
    }

    /// Keeps the rest of the old file and makes the plan durable. `None`: there is nothing to do.
    fn settle(&mut self) -> Result<Option<Journal>> {
        let rest = self.old_len.checked_sub(self.plan.old_position());
        let rest = rest.ok_or_else(|| Error::new(ErrorKind::Invalid, "the plan reaches behind the end of the file"))?;
        self.plan.keep(rest)?;
        self.plan.finish(self.generation, self.inode, self.old_len)
    }
}

/// Takes the space that the new file needs, durably: zeros at its end.
fn make_room(file: &dyn File, old_len: u64, new_len: u64) -> Result<()> {
    grow(file, old_len, new_len)?;
    if new_len > old_len { Ok(file.sync_data()?) } else { Ok(()) }
}

/// Lengthens a file by zeros that have their space.
pub(super) fn grow(file: &dyn File, old_len: u64, new_len: u64) -> Result<()> {
    let Some(more) = new_len.checked_sub(old_len).filter(|more| *more > 0) else { return Ok(()) };
    match file.allocate(old_len, more) {
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(file.write_zeros(old_len, more)?),
        other => Ok(other?),
    }
}

/// Whether there is anything for [`recover`] to do.
pub fn is_pending(disk: &dyn Disk, journal_path: &Path) -> Result<bool> {
    let paths = [journal_path.to_owned(), journal::other_path(journal_path)];
    for path in paths.iter().flat_map(|path| [path.clone(), journal::new_bytes_path(path)]) {
        if disk.exists(&path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes whatever there is of a rewrite, of a file that is gone.
pub fn forget(disk: &dyn Disk, journal_path: &Path) -> Result<()> {
    journal::remove(disk, journal_path)?;
    journal::remove(disk, &journal::other_path(journal_path)).map(drop)
}

/// Whether a rewrite is under way that [`recover`] will bring to its end, and not undo.
pub fn is_begun(disk: &Arc<dyn Disk>, journal_path: &Path) -> Result<bool> {
    for path in [journal_path.to_owned(), journal::other_path(journal_path)] {
        if Journal::open(disk, &path)?.is_some_and(|journal| journal.has_begun()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Brings a rewrite that was interrupted to its end, or undoes it. What others appended to the file meanwhile stays behind the rest. `file` is the
/// target, when it is open (and locked) already.
pub fn recover(
    disk: &Arc<dyn Disk>,
    target: &Path,
    file: Option<&Arc<dyn File>>,
    journal_path: &Path,
    limits: Limits,
) -> Result<Recovered> {
    // A recovery may itself be a rewrite, with the other journal: the younger one counts once it has begun, until then the older one.
    let paths = [journal_path.to_owned(), journal::other_path(journal_path)];
    let mut newest: Option<(Journal, &Path)> = None;
    let age = |journal: &Journal| match (journal.has_begun(), journal.header.generation) {
        (true, generation) => (true, generation),
        (false, generation) => (false, u64::MAX - generation),
    };
    for path in &paths {
        let Some(journal) = Journal::open(disk, path)? else { continue };
        if newest.as_ref().is_none_or(|(other, _)| age(other) < age(&journal)) {
            newest = Some((journal, path));
        }
    }
    let mut was_planned = false;
    for path in paths.iter().filter(|path| newest.as_ref().is_none_or(|(_, newest)| path != newest)) {
        was_planned |= journal::remove(&**disk, path)?;
    }
    let Some((journal, path)) = newest else {
        return Ok(if was_planned { Recovered::Undone } else { Recovered::Nothing });
    };
    let inode = journal.header.inode;
    let recovery = match disk.metadata(target) {
        Ok(metadata) if metadata.inode == inode => {
            let file = match file {
                Some(file) => Arc::clone(file),
                None => disk.open(target, platform::OpenMode::ReadWrite)?,
            };
            Recovery { disk, target, file, path, journal_path, limits }
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {
            journal::remove(&**disk, path)?;
            return Ok(Recovered::Replaced);
        }
    };
    let recovered = recovery.run(journal)?;
    journal::remove(&**disk, &paths[0])?;
    journal::remove(&**disk, &paths[1])?;
    Ok(recovered)
}

/// A recovery of a file that is still there.
struct Recovery<'r> {
    disk: &'r Arc<dyn Disk>,
    target: &'r Path,
    file: Arc<dyn File>,
    /// The journal that is being followed, one of the two.
    path: &'r Path,
    journal_path: &'r Path,
    limits: Limits,
}

impl Recovery<'_> {
    fn run(&self, journal: Journal) -> Result<Recovered> {
        let Header { old_len, new_len, generation, .. } = journal.header;
        let len = self.file.len()?;
        if !journal.has_begun() {
            let room = old_len..new_len.min(len);
            let end = zeros_end(&*self.file, room.clone())?;
            if end > room.start && end < len {
                self.cut_out(room.start..end, generation)?;
            } else if end > room.start {
                self.file.set_len(room.start)?;
                self.file.sync_data()?;
            }
            return Ok(Recovered::Undone);
        }
        if journal.progress.phase == Phase::Cut && !run::is_marked(&*self.file, &journal.header)? {
            // Cut already; what is behind the new end is mail that came since.
            return Ok(Recovered::Finished);
        }
        if len < old_len.max(new_len) {
            let text = format!("{} was cut off while it was rewritten: it has {len} bytes", self.target.display());
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        if new_len < old_len && len > old_len {
            // Others appended behind the part that goes: that part is taken out by a change of its own.
            run::move_pieces(journal, &*self.file, &self.limits)?;
            self.cut_out(new_len..old_len, generation)?;
        } else {
            run::finish(journal, &*self.file, &self.limits)?;
        }
        Ok(Recovered::Finished)
    }

    /// Takes a range out of the file, by a rewrite that cannot be undone any more before that of `generation` is removed.
    fn cut_out(&self, range: Range<u64>, generation: u64) -> Result<()> {
        let other = journal::other_path(self.journal_path);
        let path = if self.path == other { self.journal_path.to_owned() } else { other };
        let file = Arc::clone(&self.file);
        let mut rest = Rewrite::begin_at(self.disk, self.target, file, path, generation + 1, self.limits)?;
        rest.keep(range.start)?;
        rest.skip(range.end - range.start);
        if let Some(mut journal) = rest.settle()? {
            journal.begin()?;
            journal::remove(&**self.disk, self.path)?;
            run::finish(journal, &*self.file, &self.limits)?;
        }
        Ok(())
    }
}

/// Where the zeros that begin at the start of the range end.
pub(super) fn zeros_end(file: &dyn File, range: Range<u64>) -> Result<u64> {
    let mut piece = vec![0; 64 << 10];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(piece.len() as u64) as usize;
        let Some(part) = piece.get_mut(..len) else { break };
        file.read_exact_at(part, at)?;
        if let Some(other) = part.iter().position(|byte| *byte != 0) {
            return Ok(at + other as u64);
        }
        at += len as u64;
    }
    Ok(at)
}
