//! Keeping the search index: messages that are sealed go into files, those in the tail into memory, small parts are merged.
//!
//! One thread at a time works (the maintenance); searches go on with the parts that they have. What a search finds damaged it takes out,
//! and it is made again here.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use index::{Log, Sealed};
use model::{EmailId, ErrorKind, Result};
use platform::{Disk, Env, Mapped};
use search::{DocSet, Frequent, Index, merge};

use super::gather::{Gatherer, frequent_in, is_of_the_message};
use super::parts::{self, FileName, LIST_FILE, Part, Parts};
use crate::Reader;
use crate::account::Inner;

/// Messages of the tail are indexed in memory when so many octets of them are not: fewer are scanned in about the time that a search
/// takes anyway.
const TAIL_SCAN_BYTES: u64 = 128 << 10;
/// Images of messages in the tail that an account keeps in memory, bytes: over it they are scanned until they are sealed.
pub(crate) const TAIL_IMAGES_BYTES_MAX: u64 = 8 << 20;
/// Parts are merged up to images of this size, bytes.
const PART_BYTES_MAX: u64 = 64 << 20;
/// So many neighbours of one size become one part.
const MERGE_PARTS: usize = 4;
/// When there is nothing else to do, neighbours become one part if what is not the largest is at least this share of it, one over this:
/// every part has its own dictionary.
const SETTLED_SHARE: u64 = 8;
/// Images up to this size count as one size, bytes; each next size is [`MERGE_PARTS`] times the one before.
const SIZE_BYTES_MIN: u64 = 512 << 10;

/// The search index of an account.
pub(crate) struct SearchIndex {
    disk: Arc<dyn Disk>,
    log: Arc<Log>,
    /// `None` before anybody asked.
    parts: Mutex<Option<Parts>>,
    /// The list names a part that is not used any more.
    is_list_stale: AtomicBool,
    /// [`Log::sealed_version`] for which the list on the disk is right, or [`NEVER`].
    listed: AtomicU64,
    /// Held by whoever makes parts.
    work: Mutex<()>,
    /// The words that are frequent in this account's mail, and for how many more messages that is believed.
    frequent: Mutex<(Frequent, usize)>,
}

/// What was found in so many messages is believed of so many times as many.
const SAMPLE_HOLDS: usize = 64;

/// No state of the log.
const NEVER: u64 = u64::MAX;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that these locks guard can be left half-changed by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SearchIndex {
    pub(crate) fn new(env: &Env, log: &Arc<Log>) -> Self {
        let (parts, is_list_stale, work, frequent) = Default::default();
        let listed = AtomicU64::new(NEVER);
        SearchIndex { disk: Arc::clone(&env.disk), log: Arc::clone(log), parts, is_list_stale, listed, work, frequent }
    }

    /// The parts as they are now. Opens their files when nobody has yet.
    pub(super) fn parts(&self) -> Parts {
        let mut parts = lock(&self.parts);
        let load = || {
            let version = self.log.sealed_version();
            let (parts, is_current) = parts::load(&*self.disk, &self.log);
            if is_current {
                self.listed.store(version, Ordering::Relaxed);
            }
            parts
        };
        parts.get_or_insert_with(load).clone()
    }

    /// Opens the parts if nobody has yet. To be called before segments are merged: afterwards the ends by which the parts are known may
    /// be gone.
    pub(crate) fn open(&self) {
        self.parts();
    }

    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) {
        change(lock(&self.parts).get_or_insert_default());
    }

    /// A part turned out to be damaged: nothing is answered from it any more.
    pub(super) fn discard(&self, part: &Arc<Part>) {
        self.change(|parts| parts.remove(std::slice::from_ref(part)));
        self.is_list_stale.store(true, Ordering::Relaxed);
    }

    /// The bytes of many messages came into the log: they are in no part, since those that lie elsewhere are not indexed. All is made again.
    pub(crate) fn start_anew(&self) {
        self.change(|parts| {
            let all = parts.list.clone();
            parts.remove(&all);
        });
        self.is_list_stale.store(true, Ordering::Relaxed);
    }

    /// Like [`SearchIndex::discard`], for the part that has this file.
    pub(super) fn discard_file(&self, file: Option<FileName>) {
        let part = self.parts().list.into_iter().find(|part| part.file.is_some() && part.file == file);
        part.iter().for_each(|part| self.discard(part));
    }

    /// Does a piece of the work, of about `bytes` octets of mail; whether there is more. Messages that cannot be read are left out.
    pub(crate) fn maintain(&self, account: &Arc<Inner>, bytes: u64) -> Result<bool> {
        let _alone = lock(&self.work);
        if self.listed.load(Ordering::Relaxed) != NEVER && !self.disk.exists(&self.log.index_dir().join(LIST_FILE))? {
            // Somebody removed the index. What is in memory still answers, but would be lost.
            *lock(&self.parts) = None;
            self.listed.store(NEVER, Ordering::Relaxed);
        }
        let parts = self.parts();
        // In this order: what the state knows is in these segments or in a tail.
        let sealed = self.log.sealed();
        let sealed_end = sealed.last().map_or(1, |sealed| sealed.ids().end);
        let mut reader = Reader::new(Arc::clone(account));
        self.write_sealed(&parts, sealed_end)?;
        let gap = self.parts().gaps(1, sealed_end).into_iter().next();
        let mut is_more = gap.is_some();
        match gap {
            Some(gap) => self.index_sealed(&sealed, gap, bytes, &mut reader)?,
            None => self.index_tail(sealed_end..account.state().email_ids_end(), bytes, &mut reader)?,
        }
        let parts = self.parts();
        if let Some(group) = group(&parts).or_else(|| if is_more { None } else { scattered(&parts) }) {
            self.merge(&sealed, &group)?;
            is_more = true;
        }
        self.write_list()?;
        Ok(is_more)
    }

    /// Brings only the list up to date: it knows the parts by the ends of segments, and those have changed.
    pub(crate) fn keep_list(&self) -> Result<()> {
        let _alone = lock(&self.work);
        self.write_list()
    }

    /// Writes the list if it is not right. The caller holds the lock of those who work.
    fn write_list(&self) -> Result<()> {
        let is_stale = self.is_list_stale.swap(false, Ordering::Relaxed);
        let version = self.log.sealed_version();
        let is_old = self.listed.load(Ordering::Relaxed) != version;
        let parts = self.parts();
        if is_stale || is_old && parts.list.iter().any(|part| part.file.is_some()) {
            // Nothing names what is not listed: until the list is whole again it counts for nothing.
            self.listed.store(NEVER, Ordering::Relaxed);
            self.disk.create_dir_all_durable(&self.log.index_dir())?;
            parts::save(&*self.disk, &self.log, &self.log.sealed(), &parts)?;
            self.listed.store(version, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The number for the next file.
    fn next_serial(&self) -> u64 {
        let parts = self.parts();
        parts.list.iter().filter_map(|part| part.file).map(|file| file.serial).max().map_or(1, |last| last + 1)
    }

    /// Puts an image into a file and that in the place of `old`.
    fn put(&self, examined: Range<u64>, image: &parts::ImageSource<'_>, old: &[Arc<Part>]) -> Result<()> {
        let index_dir = self.log.index_dir();
        let file = parts::write_part(&*self.disk, &index_dir, self.next_serial(), image)?;
        self.is_list_stale.store(true, Ordering::Relaxed);
        let part = parts::open_part(&*self.disk, &index_dir, examined, file).ok_or_else(|| {
            model::Error::new(ErrorKind::Corrupt, "a part of the search index that was just written cannot be read")
        })?;
        self.replace(old, part);
        Ok(())
    }

    /// Puts a part in the place of `old`; not if a search has thrown one of them away meanwhile.
    fn replace(&self, old: &[Arc<Part>], part: Part) {
        self.change(|parts| {
            let is_there = |old: &Arc<Part>| parts.list.iter().any(|part| Arc::ptr_eq(part, old));
            if old.iter().all(is_there) {
                parts.remove(old);
                parts.insert(Arc::new(part));
            }
        });
    }

    /// Parts in memory whose messages are all sealed become files.
    fn write_sealed(&self, parts: &Parts, sealed_end: u64) -> Result<()> {
        for part in parts.list.iter().filter(|part| part.file.is_none() && part.examined.end <= sealed_end) {
            self.put(part.examined.clone(), &|out| out(part.index.image()), &[Arc::clone(part)])?;
        }
        Ok(())
    }

    /// What is frequent in the mail that is about to be indexed.
    fn frequent(&self, reader: &mut Reader, ids: &[EmailId]) -> Result<Frequent> {
        let mut frequent = lock(&self.frequent);
        if frequent.1 == 0 {
            let (found, looked_at) = frequent_in(reader, ids)?;
            *frequent = (found, looked_at.saturating_mul(SAMPLE_HOLDS));
        }
        frequent.1 = frequent.1.saturating_sub(ids.len());
        Ok(frequent.0.clone())
    }

    /// Indexes sealed messages of `gap` from its beginning on, about `bytes` octets of them.
    fn index_sealed(&self, sealed: &[Sealed], gap: Range<u64>, bytes: u64, reader: &mut Reader) -> Result<()> {
        let Some(segment) = sealed.iter().find(|sealed| sealed.ids().end > gap.start) else { return Ok(()) };
        let end = gap.end.min(segment.ids().end);
        let mut messages = segment.messages()?;
        // Those whose bytes came later lie in later segments.
        for later in sealed.iter().filter(|sealed| sealed.may_have_late(&(gap.start..end))) {
            messages.extend(later.messages()?.into_iter().filter(|(id, _)| (gap.start..end).contains(&id.0)));
        }
        // One that left the log and came back may lie in both.
        let mut seen = BTreeSet::new();
        messages.retain(|(id, _)| seen.insert(id.0));
        let mut chosen: Vec<(u64, u32)> =
            messages.iter().map(|(id, len)| (id.0, *len)).filter(|(id, _)| (gap.start..end).contains(id)).collect();
        chosen.sort_unstable();
        let mut sum = 0;
        let enough = chosen.iter().position(|(_, len)| {
            sum += u64::from(*len);
            sum >= bytes.max(1)
        });
        let mut end = enough.and_then(|last| chosen.get(last + 1)).map_or(end, |(id, _)| *id);
        // As they lie, so that each block is unpacked once.
        let ids: Vec<EmailId> =
            messages.iter().map(|(id, _)| *id).filter(|id| (gap.start..end).contains(&id.0)).collect();
        let frequent = self.frequent(reader, &ids)?;
        let mut gatherer = Gatherer::new(gap.start, &frequent);
        let mut done = BTreeSet::new();
        for id in ids {
            gatherer.add(reader, id)?;
            done.insert(id.0);
            if gatherer.is_full() {
                break;
            }
        }
        let missing = chosen.iter().map(|(id, _)| *id).find(|id| *id < end && !done.contains(id));
        let index = match missing {
            None => gatherer.finish()?,
            // Too much for one image. What is in behind the first message that is not will be done again.
            Some(missing) if missing > gap.start => {
                end = missing;
                let all = gatherer.finish()?;
                merged(&[&all], &|id| id < end)?
            }
            Some(first) => {
                end = first + 1;
                let mut gatherer = Gatherer::new(first, &frequent);
                gatherer.add(reader, EmailId(first))?;
                gatherer.finish()?
            }
        };
        self.put(gap.start..end, &|out| out(index.image()), &[])
    }

    /// Indexes messages of the tail in memory, when there are enough of them.
    fn index_tail(&self, ids: Range<u64>, bytes: u64, reader: &mut Reader) -> Result<()> {
        let parts = self.parts();
        let Some(gap) = parts.gaps(ids.start, ids.end).pop().filter(|gap| gap.end == ids.end) else { return Ok(()) };
        if parts.memory_bytes() >= TAIL_IMAGES_BYTES_MAX {
            return Ok(());
        }
        let mut chosen = Vec::new();
        let (mut sum, mut end) = (0, gap.start);
        for id in gap.clone() {
            end = id + 1;
            match reader.extent(EmailId(id)) {
                Ok((_, len)) => {
                    sum += len;
                    chosen.push(EmailId(id));
                }
                Err(error) if is_of_the_message(&error) => {}
                Err(error) => return Err(error),
            }
            if sum >= bytes.max(TAIL_SCAN_BYTES) {
                break;
            }
        }
        if sum < TAIL_SCAN_BYTES {
            return Ok(());
        }
        let frequent = self.frequent(reader, &chosen)?;
        let mut gatherer = Gatherer::new(gap.start, &frequent);
        for id in chosen {
            gatherer.add(reader, id)?;
            if gatherer.is_full() {
                end = id.0 + 1;
                break;
            }
        }
        self.replace(&[], Part { examined: gap.start..end, index: gatherer.finish()?, file: None });
        Ok(())
    }

    /// Makes neighbours one part, without messages that are gone for good.
    fn merge(&self, sealed: &[Sealed], group: &[Arc<Part>]) -> Result<()> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
        let examined = first.examined.start..last.examined.end;
        let indexes: Vec<&Index> = group.iter().map(|part| &part.index).collect();
        let result = match first.file {
            Some(_) => {
                let live = needed(sealed, examined.clone())?;
                let image =
                    |out: &mut dyn FnMut(&[u8]) -> Result<()>| merge(&indexes, &|id| live.contains(id), out).map(drop);
                self.put(examined, &image, group)
            }
            None => merged(&indexes, &|_| true).map(|index| self.replace(group, Part { examined, index, file: None })),
        };
        match result {
            // One of them is damaged, and which one the error does not say: all are made again.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.change(|parts| parts.remove(group));
                self.is_list_stale.store(true, Ordering::Relaxed);
                Ok(())
            }
            result => result,
        }
    }
}

/// Several images as one in memory.
fn merged(indexes: &[&Index], is_live: &dyn Fn(u64) -> bool) -> Result<Index> {
    let mut image = Vec::new();
    merge(indexes, is_live, &mut |bytes| {
        image.extend_from_slice(bytes);
        Ok(())
    })?;
    Index::open(Mapped::from_vec(image))
}

/// The messages of a range that sealed segments have.
fn needed(sealed: &[Sealed], ids: Range<u64>) -> Result<DocSet> {
    let mut needed = DocSet::new(ids.clone());
    let has_own = |sealed: &&Sealed| sealed.ids().start < ids.end && ids.start < sealed.ids().end;
    for segment in sealed.iter().filter(|sealed| has_own(sealed) || sealed.may_have_late(&ids)) {
        segment.messages()?.iter().filter(|(id, _)| ids.contains(&id.0)).for_each(|(id, _)| needed.insert(id.0));
    }
    Ok(needed)
}

/// The class of a part's size.
fn size_class(part: &Part) -> u32 {
    let mut class = 0;
    let mut bytes = SIZE_BYTES_MIN;
    while part.index.bytes() > bytes {
        class += 1;
        bytes = bytes.saturating_mul(MERGE_PARTS as u64);
    }
    class
}

/// Neighbours that are worth to be made one part, if there are any: of one size or smaller, all in files or all in memory.
fn group(parts: &Parts) -> Option<Vec<Arc<Part>>> {
    let classes: BTreeSet<u32> = parts.list.iter().map(|part| size_class(part)).collect();
    for class in classes {
        let is_small =
            |part: &Part| size_class(part) <= class && part.index.bytes() <= PART_BYTES_MAX / MERGE_PARTS as u64;
        let is_together = |a: &Arc<Part>, b: &Arc<Part>| {
            is_small(a) && is_small(b) && a.file.is_some() == b.file.is_some() && a.examined.end == b.examined.start
        };
        for run in parts.list.chunk_by(is_together).filter(|run| run.len() >= MERGE_PARTS) {
            let mut bytes = 0;
            let fits = run.iter().take_while(|part| {
                bytes += part.index.bytes();
                bytes <= PART_BYTES_MAX
            });
            let group: Vec<Arc<Part>> = fits.cloned().collect();
            if group.len() >= MERGE_PARTS {
                return Some(group);
            }
        }
    }
    None
}

/// Neighbours in files that are worth to be made one part when there is time.
fn scattered(parts: &Parts) -> Option<Vec<Arc<Part>>> {
    let is_together =
        |a: &Arc<Part>, b: &Arc<Part>| a.file.is_some() && b.file.is_some() && a.examined.end == b.examined.start;
    let is_worth = |run: &[Arc<Part>]| {
        let sum: u64 = run.iter().map(|part| part.index.bytes()).sum();
        let largest = run.iter().map(|part| part.index.bytes()).max().unwrap_or_default();
        run.len() > 1 && sum <= PART_BYTES_MAX && (sum - largest).saturating_mul(SETTLED_SHARE) >= largest
    };
    // As many as there can be.
    let mut runs =
        parts.list.chunk_by(is_together).flat_map(|run| (0..run.len()).filter_map(move |from| run.get(from..)));
    runs.find(|run| is_worth(run)).map(<[Arc<Part>]>::to_vec)
}
