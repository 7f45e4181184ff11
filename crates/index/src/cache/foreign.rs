//! What was derived from foreign messages: kept in a file for each group of consecutive email ids, once enough of it was asked for.
//!
//! Deriving needs the messages' bytes, which are in files that may be large and of which nobody may ever ask this. So nothing is
//! made before somebody asks: then for the message asked about, and kept in memory ([`Kept`]). When many of a group were asked about the
//! maintenance makes the group's file, of the columns that need the headers only or of all, whichever was asked for; whoever goes through
//! a whole mailbox makes it on the way, which is cheaper than to make nearly everything twice. A file that lacks newer messages is made anew
//! from itself and from them.
//!
//! Invariant: a blob is used only for a message of which the log knows the same as when it was made (a mark beside the blobs tells).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use model::{EmailId, Result};

use super::{CacheFile, CacheWriter, DERIVED_COLUMNS_MAX, Derived};
use crate::foreign::ForeignMessage;
use crate::layout::INDEX_DIR;
use crate::log::Log;
use crate::reader::{Derive, Reader};
use crate::state::State;
use crate::tail::Kept;

/// Email ids in a group: its file is a few MiB.
const GROUP_IDS: u64 = 8192;
/// A group's file is made when so many of its messages were asked about that it did not have.
const ASKED_MIN: u32 = 32;
/// Or one in so many of those that it has, if that is more.
const ASKED_PART: u32 = 16;
/// Whoever asks about the last of so many makes the file at once.
const ASKED_MANY: u32 = 1024;
const FILE_PREFIX: &str = "foreign-";

/// The caches of an account's foreign messages.
#[derive(Debug, Default)]
pub(crate) struct ForeignCaches {
    groups: Mutex<HashMap<u64, Group>>,
    kept: Kept,
    /// Held by whoever makes a file.
    building: Mutex<()>,
}

/// What is known of a group.
#[derive(Debug, Default)]
struct Group {
    /// Its file has been looked for.
    is_looked_for: bool,
    cache: Option<Arc<CacheFile>>,
    /// Messages for which columns that need the header only were made since the file was.
    asked_header: u32,
    /// Messages of which all columns were made.
    asked_whole: u32,
}

/// Which columns a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Header,
    Whole,
}

impl Group {
    /// What should be made by the maintenance, if that is worth it by now.
    fn wanted(&self) -> Option<Depth> {
        let rows = self.cache.as_ref().map_or(0, |cache| cache.rows);
        self.wanted_by(ASKED_MIN.max(rows / ASKED_PART))
    }

    /// What should be made if so many are enough.
    fn wanted_by(&self, enough: u32) -> Option<Depth> {
        if self.asked_whole >= enough {
            Some(Depth::Whole)
        } else if self.asked_header.saturating_add(self.asked_whole) >= enough {
            Some(Depth::Header)
        } else {
            None
        }
    }
}

impl ForeignCaches {
    fn groups(&self) -> MutexGuard<'_, HashMap<u64, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, id: EmailId, column: usize, blob: &Arc<[u8]>) {
        if !self.kept.keep(id, column, blob) {
            // Older ones will rather be in a file by now.
            self.kept.clear();
            self.kept.keep(id, column, blob);
        }
    }
}

fn group_of(id: EmailId) -> u64 {
    id.0 / GROUP_IDS
}

/// The row of a message in the file of its group.
fn row_of(id: EmailId) -> u32 {
    (id.0 % GROUP_IDS) as u32
}

fn ids_of(group: u64) -> std::ops::Range<u64> {
    let first = group.saturating_mul(GROUP_IDS);
    first..first.saturating_add(GROUP_IDS)
}

/// Says what the log knows of a message, in a few octets.
fn mark_of(id: EmailId, message: &ForeignMessage) -> [u8; 8] {
    let sizes = u64::from(message.octets) << 32 | u64::from(message.header_octets);
    (message.digest.wrapping_add(sizes.rotate_left(17)) ^ id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()
}

/// Whether this is the name of a cache of foreign messages none of which is there any more.
pub(super) fn is_useless(name: &str, state: &State) -> bool {
    let Some(number) = name.strip_prefix(FILE_PREFIX) else { return false };
    u64::from_str_radix(number, 16).is_ok_and(|group| {
        let ids = ids_of(group);
        state.foreign.count(ids.start, ids.end) == 0
    })
}

/// Whether a column is made from a message's header alone: told by asking for that of an empty one.
fn needs_header_only(derive: &dyn Derive, column: usize) -> bool {
    derive.derive_from_header(column, b"").is_some()
}

impl Derived {
    /// Takes the blob of a foreign message from a cache into `scratch`. `None`: it does not have it.
    fn load_foreign(
        &mut self,
        cache: &Arc<CacheFile>,
        id: EmailId,
        message: &ForeignMessage,
        column: usize,
    ) -> Option<()> {
        let marks = cache.columns.len().checked_sub(1).filter(|marks| column < *marks)?;
        if row_of(id) >= cache.rows {
            return None;
        }
        self.load_from(cache, row_of(id), marks)?;
        if self.scratch.get(1..) != Some(&mark_of(id, message)) {
            return None;
        }
        self.load_from(cache, row_of(id), column)
    }

    /// The same from the cache of the message's group, whichever is the newest.
    fn find_foreign(&mut self, log: &Log, id: EmailId, message: &ForeignMessage, column: usize) -> Option<()> {
        let group = group_of(id);
        if let Some((last, cache)) = self.foreign.take() {
            if last == group && self.load_foreign(&cache, id, message, column).is_some() {
                self.foreign = Some((last, cache));
                return Some(());
            }
            if log.foreign_cache(group).is_some_and(|newest| last == group && Arc::ptr_eq(&newest, &cache)) {
                self.foreign = Some((last, cache));
                return None;
            }
        }
        let cache = log.foreign_cache(group)?;
        let loaded = self.load_foreign(&cache, id, message, column);
        self.foreign = Some((group, cache));
        loaded
    }
}

impl Reader {
    /// See [`Reader::derived`].
    pub(super) fn foreign_derived(&mut self, id: EmailId, message: &ForeignMessage, column: usize) -> Result<&[u8]> {
        if self.derived.last == Some(id) {
            return self.made(column);
        }
        if self.derived.find_foreign(&self.log, id, message, column).is_some() {
            return Ok(self.derived.scratch.get(1..).unwrap_or_default());
        }
        if let Some(blob) = self.log.foreign_caches.kept.find(id, column) {
            return Ok(self.derived.kept.insert(blob));
        }
        if let Some(derive) = self.log.derive.clone()
            && let Some(blob) = derive.derive_from_header(column, self.header(id)?)
        {
            let blob: Arc<[u8]> = blob.into();
            self.log.foreign_caches.keep(id, column, &blob);
            self.log.was_asked(id, Depth::Header);
            return Ok(self.derived.kept.insert(blob));
        }
        self.derived.last = None;
        self.derived.made = self.derive(id)?;
        for (number, blob) in self.derived.made.iter().enumerate() {
            self.log.foreign_caches.keep(id, number, &blob.as_slice().into());
        }
        self.log.was_asked(id, Depth::Whole);
        self.derived.last = Some(id);
        self.made(column)
    }
}

impl Log {
    fn foreign_path(&self, group: u64) -> PathBuf {
        self.dir.join(INDEX_DIR).join(format!("{FILE_PREFIX}{group:x}"))
    }

    /// The cache of a group, if there is one that can be used.
    fn foreign_cache(&self, group: u64) -> Option<Arc<CacheFile>> {
        let derive = self.derive.as_ref()?;
        let mut groups = self.foreign_caches.groups();
        let known = groups.entry(group).or_default();
        if !known.is_looked_for {
            let columns = derive.columns().min(DERIVED_COLUMNS_MAX);
            let found = CacheFile::open(&self.env, self.foreign_path(group), derive.version(), columns + 1);
            known.cache = found.map(Arc::new);
            known.is_looked_for = true;
        }
        known.cache.clone()
    }

    /// A blob had to be made.
    fn was_asked(self: &Arc<Self>, id: EmailId, depth: Depth) {
        let mut groups = self.foreign_caches.groups();
        let group = groups.entry(group_of(id)).or_default();
        let asked = match depth {
            Depth::Header => &mut group.asked_header,
            Depth::Whole => &mut group.asked_whole,
        };
        *asked = asked.saturating_add(1);
        let wanted = group.wanted_by(ASKED_MANY);
        drop(groups);
        if let Some(wanted) = wanted {
            // Whoever asks has what was asked for; why no file could be made the maintenance will say.
            let _ = self.build_foreign(group_of(id), wanted);
        }
    }

    /// Makes the cache of a group of foreign messages that many were asked about. `None`: there is none such. Otherwise the octets of its
    /// messages, about.
    pub(crate) fn build_foreign_cache(self: &Arc<Self>) -> Result<Option<u64>> {
        let due = {
            let groups = self.foreign_caches.groups();
            groups.iter().filter_map(|(group, known)| Some((*group, known.wanted()?))).min()
        };
        due.map_or(Ok(None), |(group, wanted)| self.build_foreign(group, wanted))
    }

    /// Makes the cache of a group; `None` when somebody makes one already.
    fn build_foreign(self: &Arc<Self>, group: u64, wanted: Depth) -> Result<Option<u64>> {
        let Some(derive) = self.derive.clone() else { return Ok(None) };
        let _building = match self.foreign_caches.building.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        let built = self.build_group(&*derive, group, wanted);
        let mut groups = self.foreign_caches.groups();
        let known = groups.entry(group).or_default();
        // Also after an error: not again before as many were asked about.
        (known.asked_header, known.asked_whole) = (0, 0);
        let (cache, octets) = built?;
        (known.is_looked_for, known.cache) = (true, Some(Arc::new(cache)));
        Ok(Some(octets))
    }

    fn build_group(self: &Arc<Self>, derive: &dyn Derive, group: u64, wanted: Depth) -> Result<(CacheFile, u64)> {
        let columns = derive.columns().min(DERIVED_COLUMNS_MAX);
        let is_of_header: Vec<bool> = (0..columns).map(|column| needs_header_only(derive, column)).collect();
        let old = self.foreign_cache(group);
        // What is there goes on being kept.
        let has_whole = old.as_ref().is_some_and(|cache| cache.columns.iter().all(|(offsets, _)| offsets.raw_len > 0));
        let depth = if has_whole { Depth::Whole } else { wanted };
        let is_kept = |column: usize| column >= columns || depth == Depth::Whole || is_of_header[column];
        self.env.disk.create_dir_all_durable(&self.dir.join(INDEX_DIR))?;
        let mut writer = CacheWriter::create(&self.env, self.foreign_path(group), columns + 1, is_kept)?;
        let (state, ids) = (self.state(), ids_of(group));
        let mut octets = 0;
        let (mut reader, mut from_old) = (self.reader(), Derived::default());
        let messages = match &self.journal {
            Some(journal) => journal.messages(ids)?,
            None => state.foreign.range(ids.start, ids.end).collect(),
        };
        for (id, message) in messages {
            while writer.rows < row_of(id) {
                writer.row(|_| None)?;
            }
            let mut blobs: Vec<Option<Vec<u8>>> = vec![None; columns];
            for (column, blob) in blobs.iter_mut().enumerate().filter(|(column, _)| is_kept(*column)) {
                let loaded = old.as_ref().and_then(|old| from_old.load_foreign(old, id, &message, column));
                *blob = loaded.and_then(|()| from_old.scratch.get(1..)).map(<[u8]>::to_vec);
            }
            let is_missing = |blobs: &[Option<Vec<u8>>]| (0..columns).any(|n| is_kept(n) && blobs[n].is_none());
            if is_missing(&blobs) {
                let made = match depth {
                    Depth::Whole => reader.derive(id).map(|made| made.into_iter().map(Some).collect()),
                    Depth::Header => reader.header(id).map(|header| {
                        (0..columns).map(|column| derive.derive_from_header(column, header)).collect::<Vec<_>>()
                    }),
                };
                // One that cannot be read now is made when somebody asks for it.
                blobs = made.ok().filter(|made| made.len() == columns).unwrap_or(blobs);
                octets += u64::from(if depth == Depth::Whole { message.octets } else { message.header_octets });
            }
            let mark = mark_of(id, &message);
            let mark = (!is_missing(&blobs)).then_some(&mark[..]);
            writer.row(|column| if column == columns { mark } else { blobs.get(column)?.as_deref() })?;
        }
        Ok((writer.finish(&self.env, derive.version())?, octets.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_messages_apart() {
        let message = ForeignMessage { octets: 1, header_octets: 2, digest: 3 };
        let mark = mark_of(EmailId(4), &message);
        assert_eq!(mark, mark_of(EmailId(4), &message));
        for other in [
            mark_of(EmailId(5), &message),
            mark_of(EmailId(4), &ForeignMessage { octets: 2, ..message }),
            mark_of(EmailId(4), &ForeignMessage { header_octets: 1, ..message }),
            mark_of(EmailId(4), &ForeignMessage { digest: 4, ..message }),
        ] {
            assert_ne!(mark, other);
        }
    }

    #[test]
    fn names_of_groups() {
        let state = State::default();
        assert!(is_useless("foreign-0", &state) && is_useless("foreign-ffffffffffffffff", &state));
        assert!(!is_useless("foreign-", &state) && !is_useless("cache-0", &state) && !is_useless("mbox-7", &state));
    }
}
