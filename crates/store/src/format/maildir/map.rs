//! Which file each entry of a mailbox has, and what its name said when we last saw it or wrote it.
//!
//! Derived: on disk in `index/maildir-<mailbox id>`, checksummed (`docs/format-maildir.md`); lost, it is made again by reading every message once.
//!
//! Invariants:
//! - Records are in the order of their UIDs, and no UID is there twice; none is 0.
//! - What is saved names only entries that the log has durably and only names that are durable in their directories.

use std::collections::HashSet;
use std::path::Path;

use model::{EmailId, ModSeq, Result};
use platform::{Disk, Timestamp};

use super::by_base::ByBase;
use super::listing::{Listed, Stamp, Subdir};
use super::name::{Letters, Name};
use crate::format::mbox::identity::Identity;

/// The first octets of a map.
const MAGIC: &[u8; 8] = b"MYMDIR\x01\n";
/// Octets before the first row.
const HEADER_BYTES: usize = 136;
/// Octets of a row.
const ROW_BYTES: usize = 20;
/// Names that nothing has any more may take so many octets before the others are moved together.
const WASTE_BYTES_MAX: usize = 1 << 20;

/// What is known of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The entry; 0 for one that was expunged.
    pub(super) uid: u32,
    /// Its message.
    pub(super) email_id: EmailId,
    pub(super) subdir: Subdir,
    /// Where its name is in [`Map::names`], how long it is, and how much of it is the base.
    at: u32,
    len: u8,
    base_len: u8,
}

/// How records are found by their messages.
#[derive(Clone, Debug, Default)]
enum Order {
    /// It was not needed since the last change.
    #[default]
    Unknown,
    /// Email ids do not fall from record to record.
    Rises,
    /// Positions by email id.
    Sorted(Vec<u32>),
}

/// Where a file stands in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Position {
    /// That of an entry.
    Live(usize),
    /// One that is to go.
    Doomed(usize),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    /// The directories when they were looked at last; `None`: they have to be read.
    pub(super) stamp: Option<Stamp>,
    /// Names were made to show what the log says up to here. What the log says later counts more than names after an interruption.
    pub(super) shown: ModSeq,
    records: Vec<Record>,
    /// Files of entries that were expunged.
    doomed: Vec<Record>,
    names: Vec<u8>,
    waste: usize,
    by_id: Order,
    /// `None`: nobody asked.
    by_base: Option<ByBase>,
    /// The same of those that are to go, by their positions; `None`: nobody asked since they changed.
    doomed_by_base: Option<ByBase>,
    changes: usize,
}

impl Map {
    /// Those of entries, UIDs rising.
    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// Those that are to go.
    pub(super) fn doomed(&self) -> &[Record] {
        &self.doomed
    }

    /// The whole name of a file.
    pub(super) fn name(&self, record: &Record) -> &[u8] {
        let at = record.at as usize;
        self.names.get(at..at + usize::from(record.len)).unwrap_or_default()
    }

    /// The part that stays when flags change.
    pub(super) fn base(&self, record: &Record) -> &[u8] {
        base_in(&self.names, record)
    }

    /// The flags that a file's name says.
    pub(super) fn letters(&self, record: &Record) -> Letters {
        Name::parse(self.name(record)).map(|name| name.letters()).unwrap_or_default()
    }

    /// How much was changed since it was saved.
    pub(super) fn changes(&self) -> usize {
        self.changes
    }

    /// Something else than names has changed.
    pub(super) fn touch(&mut self) {
        self.changes += 1;
    }

    /// The record of an entry.
    pub(super) fn find(&self, uid: u32) -> Option<(usize, Record)> {
        let at = self.records.binary_search_by_key(&uid, |record| record.uid).ok()?;
        Some((at, *self.records.get(at)?))
    }

    /// The records of a message, those that are to go last.
    pub(super) fn of_message(&mut self, id: EmailId) -> Vec<Record> {
        let records = &self.records;
        let email_id = |at: usize| records.get(at).map(|record| record.email_id);
        if let Order::Unknown = self.by_id {
            self.by_id = match records.is_sorted_by_key(|record| record.email_id) {
                true => Order::Rises,
                false => {
                    let mut sorted: Vec<u32> = (0..records.len() as u32).collect();
                    sorted.sort_by_key(|at| email_id(*at as usize));
                    Order::Sorted(sorted)
                }
            };
        }
        let mut found: Vec<Record> = match &self.by_id {
            Order::Sorted(sorted) => {
                let first = sorted.partition_point(|at| email_id(*at as usize) < Some(id));
                let of_id = sorted.iter().skip(first).filter_map(|at| records.get(*at as usize));
                of_id.take_while(|record| record.email_id == id).copied().collect()
            }
            _ => {
                let first = records.partition_point(|record| record.email_id < id);
                records.iter().skip(first).take_while(|record| record.email_id == id).copied().collect()
            }
        };
        found.extend(self.doomed.iter().filter(|record| record.email_id == id));
        found
    }

    /// Where the file of a base stands. Costs a look at all of them the first time.
    pub(super) fn find_base(&mut self, base: &[u8]) -> Option<Position> {
        let by_base = self.by_base.get_or_insert_with(|| {
            let names = self.records.iter().map(|record| (base_in(&self.names, record), record.uid));
            names.collect()
        });
        let doomed = self.doomed_by_base.get_or_insert_with(|| {
            let names = self.doomed.iter().zip(0..).map(|(record, at)| (base_in(&self.names, record), at));
            names.collect()
        });
        let is_it = |record: &Record| base_in(&self.names, record) == base;
        let mut live = by_base.candidates(base).filter_map(|uid| {
            let at = self.records.binary_search_by_key(&uid, |record| record.uid).ok()?;
            self.records.get(at).filter(|record| is_it(record)).map(|_| Position::Live(at))
        });
        let mut doomed = doomed.candidates(base).filter_map(|at| {
            let at = at as usize;
            self.doomed.get(at).filter(|record| is_it(record)).map(|_| Position::Doomed(at))
        });
        live.next().or_else(|| doomed.next())
    }

    /// The file that has a base.
    pub(super) fn file_of_base(&mut self, base: &[u8]) -> Option<(Position, Listed)> {
        let position = self.find_base(base)?;
        let record = self.at(position)?;
        let file = Listed { subdir: record.subdir, name: self.name(&record).to_vec(), base_len: base.len() };
        Some((position, file))
    }

    /// All of them.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> + use<> {
        (0..self.records.len()).map(Position::Live).chain((0..self.doomed.len()).map(Position::Doomed))
    }

    /// The record at a position.
    pub(super) fn at(&self, position: Position) -> Option<Record> {
        match position {
            Position::Live(at) => self.records.get(at).copied(),
            Position::Doomed(at) => self.doomed.get(at).copied(),
        }
    }

    fn record(&mut self, uid: u32, email_id: EmailId, file: &Listed) -> Option<Record> {
        let at = u32::try_from(self.names.len()).ok()?;
        let (len, base_len) = (u8::try_from(file.name.len()).ok()?, u8::try_from(file.base_len).ok()?);
        self.names.extend_from_slice(&file.name);
        self.changes += 1;
        Some(Record { uid, email_id, subdir: file.subdir, at, len, base_len })
    }

    /// An entry has this file. Names are no longer than 255 octets: that is what file systems have.
    pub(super) fn insert(&mut self, uid: u32, email_id: EmailId, file: &Listed) {
        let Some(record) = self.record(uid, email_id, file) else { return };
        let at = self.records.partition_point(|other| other.uid < uid);
        let still_rises = matches!(self.by_id, Order::Rises)
            && at == self.records.len()
            && self.records.last().is_none_or(|last| last.email_id <= email_id);
        let before = self.records.get(at).filter(|other| other.uid == uid).copied();
        if let (Some(by_base), Some(before)) = (&mut self.by_base, before) {
            by_base.remove(base_in(&self.names, &before), uid);
        }
        match self.records.get_mut(at).filter(|_| before.is_some()) {
            Some(other) => *other = record,
            None => self.records.insert(at, record),
        }
        if let Some(by_base) = &mut self.by_base {
            by_base.insert(file.base(), uid);
        }
        if !still_rises {
            self.by_id = Order::Unknown;
        }
    }

    /// A file is there of an entry that was expunged.
    pub(super) fn insert_doomed(&mut self, email_id: EmailId, file: &Listed) {
        if let Some(record) = self.record(0, email_id, file) {
            self.doomed.push(record);
            self.doomed_by_base = None;
        }
    }

    /// A file has another name now, or is in the other directory.
    pub(super) fn rename(&mut self, position: Position, file: &Listed) {
        let Some(old) = self.at(position) else { return };
        let Some(record) = self.record(old.uid, old.email_id, file) else { return };
        self.waste += usize::from(old.len);
        let slot = match position {
            Position::Live(at) => self.records.get_mut(at),
            Position::Doomed(at) => self.doomed.get_mut(at),
        };
        if let Some(slot) = slot {
            *slot = record;
        }
        if base_in(&self.names, &old) != file.base() {
            match (&mut self.by_base, position) {
                (Some(by_base), Position::Live(_)) => {
                    by_base.remove(base_in(&self.names, &old), old.uid);
                    by_base.insert(file.base(), old.uid);
                }
                _ => self.doomed_by_base = None,
            }
        }
        if self.waste > WASTE_BYTES_MAX && self.waste > self.names.len() / 2 {
            self.tidy();
        }
    }

    /// Forgets the records for which `is_gone`, told with their base; those of entries first.
    pub(super) fn remove(&mut self, mut is_gone: impl FnMut(&Record, &[u8]) -> bool) {
        let before = self.records.len() + self.doomed.len();
        let (names, by_base) = (&self.names, &mut self.by_base);
        self.records.retain(|record| {
            let is_gone = is_gone(record, base_in(names, record));
            if let (true, Some(by_base)) = (is_gone, by_base.as_mut()) {
                by_base.remove(base_in(names, record), record.uid);
            }
            !is_gone
        });
        self.doomed.retain(|record| !is_gone(record, base_in(names, record)));
        if self.records.len() + self.doomed.len() < before {
            self.changes += 1;
            self.by_id = Order::Unknown;
            self.doomed_by_base = None;
        }
    }

    /// Forgets files by UID (0: those that are to go) and base.
    pub(super) fn remove_files(&mut self, gone: &HashSet<(u32, Vec<u8>)>) {
        if gone.is_empty() {
            return;
        }
        let uids: HashSet<u32> = gone.iter().map(|(uid, _)| *uid).collect();
        self.remove(|record, base| uids.contains(&record.uid) && gone.contains(&(record.uid, base.to_vec())));
    }

    /// It was saved as it is.
    pub(super) fn set_saved(&mut self) {
        self.changes = 0;
    }

    /// The entries of some files were expunged: says what becomes of each.
    pub(super) fn doom_all(&mut self, mut fate: impl FnMut(&Record) -> Fate) {
        let (doomed, names, by_base, mut gone) = (&mut self.doomed, &self.names, &mut self.by_base, 0);
        self.records.retain(|record| {
            let fate = fate(record);
            if fate == Fate::Keep {
                return true;
            }
            if fate == Fate::Doom {
                doomed.push(Record { uid: 0, ..*record });
            }
            if let Some(by_base) = by_base.as_mut() {
                by_base.remove(base_in(names, record), record.uid);
            }
            gone += 1;
            false
        });
        if gone > 0 {
            self.changes += gone;
            self.by_id = Order::Unknown;
            self.doomed_by_base = None;
        }
    }

    /// Moves the names together.
    fn tidy(&mut self) {
        let old = std::mem::take(&mut self.names);
        for record in self.records.iter_mut().chain(&mut self.doomed) {
            let at = record.at as usize;
            record.at = self.names.len() as u32;
            self.names.extend_from_slice(old.get(at..at + usize::from(record.len)).unwrap_or_default());
        }
        self.waste = 0;
    }

    /// Reads a map; `None`: there is none, or it is damaged.
    pub(super) fn load(disk: &dyn Disk, path: &Path) -> Option<Map> {
        Map::decode(&disk.read(path).ok()?)
    }

    /// Replaces the map at `path`.
    pub(super) fn save(&mut self, disk: &dyn Disk, path: &Path) -> Result<()> {
        self.tidy();
        let mut temporary = path.to_owned();
        temporary.as_mut_os_string().push(".new");
        disk.create_dir_all(platform::parent_of(path))?;
        disk.replace_file(path, &temporary, &self.encode())?;
        self.changes = 0;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let rows = self.records.len() + self.doomed.len();
        let mut out = Vec::with_capacity(HEADER_BYTES + rows * ROW_BYTES + self.names.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.shown.0.to_le_bytes());
        for identity in self.stamp.iter().flat_map(|stamp| [stamp.new, stamp.cur]) {
            for number in [identity.device, identity.inode, identity.len] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            for time in [identity.modified, identity.changed] {
                out.extend_from_slice(&time.seconds.to_le_bytes());
                out.extend_from_slice(&time.nanoseconds.to_le_bytes());
            }
        }
        out.resize(HEADER_BYTES - 24, 0);
        let mut body = Vec::with_capacity(rows * ROW_BYTES + self.names.len());
        for record in self.records.iter().chain(&self.doomed) {
            body.extend_from_slice(&record.uid.to_le_bytes());
            body.extend_from_slice(&record.email_id.0.to_le_bytes());
            body.extend_from_slice(&record.at.to_le_bytes());
            body.extend([record.len, record.base_len, u8::from(record.subdir == Subdir::Cur), 0]);
        }
        body.extend_from_slice(&self.names);
        for number in [
            u32::from(self.stamp.is_some()),
            self.records.len() as u32,
            self.doomed.len() as u32,
            self.names.len() as u32,
            crc32c::crc32c(&body),
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&body);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Map> {
        let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let (checked, crc) = header.split_last_chunk::<4>()?;
        let mut input = Input(checked);
        if input.array()? != *MAGIC || crc32c::crc32c(checked) != u32::from_le_bytes(*crc) {
            return None;
        }
        let shown = ModSeq(input.u64()?);
        let (new, cur) = (input.identity()?, input.identity()?);
        let (has_stamp, records, doomed) = (input.u32()?, input.u32()? as usize, input.u32()? as usize);
        let (names_len, crc) = (input.u32()? as usize, input.u32()?);
        let rows = records.checked_add(doomed)?;
        if rows.checked_mul(ROW_BYTES)?.checked_add(names_len)? != body.len() || crc32c::crc32c(body) != crc {
            return None;
        }
        let (table, names) = body.split_at_checked(rows * ROW_BYTES)?;
        let mut input = Input(table);
        let mut all = Vec::with_capacity(rows);
        for _ in 0..rows {
            let (uid, email_id, at) = (input.u32()?, EmailId(input.u64()?), input.u32()?);
            let [len, base_len, is_cur, _] = input.array()?;
            let is_inside = (at as usize).checked_add(usize::from(len))? <= names.len() && base_len <= len;
            let subdir = if is_cur == 0 { Subdir::New } else { Subdir::Cur };
            all.push(Some(Record { uid, email_id, subdir, at, len, base_len }).filter(|_| is_inside)?);
        }
        let doomed = all.split_off(records);
        let is_sorted = all.is_sorted_by(|a, b| a.uid < b.uid) && all.first().is_none_or(|first| first.uid > 0);
        let stamp = (has_stamp != 0).then_some(Stamp { new, cur });
        let names = names.to_vec();
        is_sorted.then_some(Map { stamp, shown, records: all, doomed, names, ..Map::default() })
    }
}

/// The part of a record's name that stays when flags change.
fn base_in<'n>(names: &'n [u8], record: &Record) -> &'n [u8] {
    let at = record.at as usize;
    names.get(at..at + usize::from(record.base_len)).unwrap_or_default()
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Keep,
    /// Its entry was expunged, and the file is to go.
    Doom,
    /// Nothing is known of its entry: the file counts as one that was never seen.
    Forget,
}

/// Reads octets from the front of a slice.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn time(&mut self) -> Option<Timestamp> {
        Some(Timestamp { seconds: self.array().map(i64::from_le_bytes)?, nanoseconds: self.u32()? })
    }

    fn identity(&mut self) -> Option<Identity> {
        let (device, inode, len) = (self.u64()?, self.u64()?, self.u64()?);
        Some(Identity { device, inode, len, modified: self.time()?, changed: self.time()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::format::maildir::listing::listed;

    fn identity(n: u64) -> Identity {
        let time = Timestamp { seconds: n as i64, nanoseconds: 7 };
        Identity { device: 1, inode: n, len: 3, modified: time, changed: time }
    }

    fn example() -> Map {
        let mut map = Map { shown: ModSeq(9), ..Map::default() };
        map.stamp = Some(Stamp { new: identity(4), cur: identity(5) });
        map.insert(2, EmailId(20), &listed(Subdir::Cur, "b:2,S"));
        map.insert(1, EmailId(30), &listed(Subdir::New, "a"));
        map.insert(5, EmailId(20), &listed(Subdir::Cur, "c:2,"));
        map.insert_doomed(EmailId(7), &listed(Subdir::Cur, "d:2,T"));
        map
    }

    fn describe(map: &Map) -> Vec<String> {
        let all = map.records.iter().chain(&map.doomed);
        all.map(|record| {
            let name = String::from_utf8_lossy(map.name(record));
            format!("{} {} {}/{name}", record.uid, record.email_id.0, record.subdir.as_str())
        })
        .collect()
    }

    #[test]
    fn records() {
        let mut map = example();
        assert_eq!(describe(&map), ["1 30 new/a", "2 20 cur/b:2,S", "5 20 cur/c:2,", "0 7 cur/d:2,T"]);
        let uids = |map: &mut Map, id| map.of_message(EmailId(id)).iter().map(|r| r.uid).collect::<Vec<_>>();
        assert_eq!(uids(&mut map, 20), [2, 5]);
        assert_eq!((uids(&mut map, 7), uids(&mut map, 8)), (vec![0], vec![]));
        let position = map.find_base(b"a").unwrap();
        map.rename(position, &listed(Subdir::Cur, "a:2,FS"));
        map.doom_all(|record| if record.uid == 2 { Fate::Doom } else { Fate::Keep });
        assert_eq!(describe(&map), ["1 30 cur/a:2,FS", "5 20 cur/c:2,", "0 7 cur/d:2,T", "0 20 cur/b:2,S"]);
        assert_eq!(uids(&mut map, 20), [5, 0]);
        map.remove(|record, _| record.email_id == EmailId(20));
        assert_eq!(describe(&map), ["1 30 cur/a:2,FS", "0 7 cur/d:2,T"]);
        assert!(map.letters(&map.find(1).unwrap().1).has(b'F'));
    }

    /// What is kept up is what a look at all of them would give.
    #[test]
    fn found_by_base() {
        let mut random = platform::random::Prng::new(5);
        let (mut map, mut next) = (example(), 10);
        for _ in 0..2000 {
            let at = random.index(map.records.len() + 1);
            let uid = map.records.get(at).map(|record| record.uid);
            match (random.below(5), uid) {
                (0, Some(uid)) => map.doom_all(|record| if record.uid == uid { Fate::Doom } else { Fate::Keep }),
                (1, Some(uid)) => map.doom_all(|record| if record.uid == uid { Fate::Forget } else { Fate::Keep }),
                (2, Some(_)) => map.rename(Position::Live(at), &listed(Subdir::New, &format!("n{}", random.below(50)))),
                (3, Some(uid)) => map.remove(|record, _| record.uid == uid),
                _ => {
                    next += 1;
                    map.insert(next, EmailId(1), &listed(Subdir::Cur, &format!("n{}:2,S", random.below(50))));
                }
            }
            let base = format!("n{}", random.below(50));
            let is_it = |record: &Record| map.base(record) == base.as_bytes();
            let is_there = map.records.iter().chain(&map.doomed).any(is_it);
            let found = map.find_base(base.as_bytes());
            assert_eq!(found.is_some(), is_there);
            assert!(found.is_none_or(|at| map.base(&map.at(at).unwrap()) == base.as_bytes()));
        }
    }

    /// `docs/format-maildir.md`
    #[test]
    fn as_documented() {
        use crate::format::format_doc::hold;
        const DOCUMENT: &str = "format-maildir.md";
        let mut map = example();
        let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        let identity = |n: u64| {
            let (modified, changed) = (time(n as i64 + 3, n as u32 + 4), time(n as i64 + 5, n as u32 + 6));
            Identity { device: n, inode: n + 1, len: n + 2, modified, changed }
        };
        map.stamp = Some(Stamp { new: identity(10), cur: identity(20) });
        let bytes = map.encode();
        let (header, body) = bytes.split_at(HEADER_BYTES);
        let magic = u64::from_le_bytes(*MAGIC);
        let names_len = (body.len() - 4 * ROW_BYTES) as u64;
        let mut fields = vec![("magic", magic), ("shown", 9), ("has_stamp", 1), ("entries", 3), ("doomed", 1)];
        fields.extend([("names_len", names_len), ("body_crc", u64::from(crc32c::crc32c(body)))]);
        let of = ["device", "inode", "len", "modified", "modified_ns", "changed", "changed_ns"];
        let names: Vec<(String, u64)> = [("new", 10), ("cur", 20)]
            .into_iter()
            .flat_map(|(dir, n)| of.iter().zip(n..).map(move |(field, value)| (format!("{dir}.{field}"), value)))
            .collect();
        fields.extend(names.iter().map(|(name, value)| (name.as_str(), *value)));
        hold(DOCUMENT, "### Header of a map", header, &fields);
        let row = body.get(ROW_BYTES..2 * ROW_BYTES).unwrap();
        let fields = [("uid", 2), ("email_id", 20), ("at", 0), ("len", 5), ("base_len", 1), ("in_cur", 1)];
        hold(DOCUMENT, "### Row of a map", row, &fields);
        assert_eq!(body.get(4 * ROW_BYTES..).unwrap(), b"b:2,Sac:2,d:2,T");
    }

    #[test]
    fn kept_on_disk() {
        let sim = platform::sim::SimEnv::new(1);
        let (disk, path) = (sim.env().disk, Path::new("/index/maildir-1"));
        let mut map = example();
        map.rename(Position::Live(0), &listed(Subdir::Cur, "a:2,FS"));
        map.save(&*disk, path).unwrap();
        let loaded = Map::load(&*disk, path).unwrap();
        assert_eq!((describe(&loaded), loaded.stamp, loaded.shown), (describe(&map), map.stamp, map.shown));
        let bytes = disk.read(path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(Map::decode(&damaged).is_none(), "octet {at}");
            assert!(Map::decode(&bytes[..at]).is_none(), "cut at {at}");
        }
    }
}
